//! Properties of schedulers that use the drive's known sizes: bounds of waiting, batches, and impossible settings.

use crate::common::Recorder;
use flashwright_block::{BlockDevice, Completion, Nanos, Request, RequestKind, Rng, Seed, below, chance};
use flashwright_host::{LayerFigures, Stack, StackSettings};

const SECTORS: u64 = 1 << 16;

fn stack(text: &str, depth: u32) -> Stack<Recorder> {
    let settings: StackSettings = toml::from_str(text).expect("settings of the host");
    Stack::new(&settings, Recorder::new(SECTORS, depth, |_| 100_000)).expect("sound settings")
}

/// Requests without order: reads and writes of 1 to 64 sectors, some of them where the last one ended.
fn play(stack: &mut Stack<Recorder>, seed: u64, count: usize) {
    let mut rng: Rng = Seed(seed).stream("host");
    let (mut clock, mut end, mut done) = (0, 0, Completion::default());
    for _ in 0..count {
        clock += below(&mut rng, 400_000);
        let sectors = 1 + below(&mut rng, 64);
        let first_sector = if chance(&mut rng, 0.4) { end } else { below(&mut rng, SECTORS) }.min(SECTORS - sectors);
        end = first_sector + sectors;
        let kind = if chance(&mut rng, 0.5) { RequestKind::Read } else { RequestKind::Write };
        let sectors = u32::try_from(sectors).expect("few");
        while stack.wait(Nanos(clock), &mut done).expect("no faults") {}
        stack
            .submit(Request { arrival: Nanos(clock), first_sector, sectors, kind, ..Request::default() })
            .expect("no faults");
    }
    while stack.wait(Nanos(u64::MAX), &mut done).expect("no faults") {}
}

fn extra(layer: &LayerFigures, name: &str) -> f64 {
    layer.extra.iter().find(|(known, _)| known == name).expect("the figure").1
}

#[test]
fn nothing_pends_longer_than_the_timeout_and_each_that_pended_is_counted_once() {
    let cases =
        [("pai", 1, "pending"), ("pas+pai", 5, "pending"), ("pasa+pai", 5, "pending"), ("pasa+pai", 10, "well-formed")];
    for (chain, timeout_ms, merge) in cases {
        let text = format!(
            "scheduler = \"{chain}\"\npai = {{ timeout = \"{timeout_ms} ms\", merge = \"{merge}\" }}\n\
             [block-layer]\nplug-requests = 0\n\
             [profile]\nclustered-page = \"8 KiB\"\nread-buffer = \"64 KiB\"\nwrite-buffer = \"63 KiB\"\n"
        );
        // Deep enough that what has expired never finds the drive full.
        let mut stack = stack(&text, 256);
        play(&mut stack, 5, 20_000);
        let figures = stack.figures();
        let layer = figures.last().expect("PAI is lowest");
        let timeout_ns = 1e6 * f64::from(timeout_ms);
        let [mean_ns, longest_ns, joined, expired, hurried, left, most] = [
            "pending_mean_ns",
            "pending_longest_ns",
            "joined_pending_requests",
            "expired_requests",
            "hurried_requests",
            "left_pending_requests",
            "pending_max_requests",
        ]
        .map(|name| extra(layer, name));
        assert_eq!(longest_ns, timeout_ns, "{chain}: some expire, none waits longer");
        assert!(0.0 < mean_ns && mean_ns < timeout_ns, "{chain}: {mean_ns} ns");
        assert!(joined > 0.0 && expired > 0.0 && hurried > 0.0 && most > 1.0, "{chain}: {layer:?}");
        assert!(expired + hurried < left, "{chain}: some leave well-formed");
        assert_eq!(extra(layer, "pending_now_requests"), 0.0, "{chain}");
        let longest = layer.read_waits.longest_ns.max(layer.write_waits.longest_ns);
        assert_eq!(longest as f64, timeout_ns, "{chain}: nor does anything wait that does not pend");
    }
}

#[test]
fn pending_makes_requests_better_aligned() {
    let share = |chain: &str| {
        let text = format!(
            "scheduler = \"{chain}\"\n[block-layer]\nplug-requests = 0\n\
             [profile]\nclustered-page = \"4 KiB\"\nread-buffer = \"64 KiB\"\nwrite-buffer = \"64 KiB\"\n"
        );
        let mut stack = stack(&text, 1);
        play(&mut stack, 6, 20_000);
        let figures = stack.figures();
        let layer = figures.last().expect("a filter");
        (layer.reads.aligned_at_both_ends.expect("known") + layer.writes.aligned_at_both_ends.expect("known")) as f64
            / (layer.reads.requests + layer.writes.requests) as f64
    };
    let [noop, pasa, both] = ["noop", "pasa", "pasa+pai"].map(share);
    assert!(1.5 * noop < pasa && 1.1 * pasa < both, "aligned at both ends: {noop} noop, {pasa} pasa, {both} pasa+pai");
}

#[test]
fn batches_hold_one_direction_and_one_request_of_a_zone_and_do_not_overlap() {
    let text = "scheduler = \"ssd-friendly\"\n[block-layer]\nplug-requests = 0\nmerge = false\n";
    // With room for a whole batch and equal times for all requests, a batch is what goes out at one moment.
    let mut stack = stack(text, 8);
    play(&mut stack, 7, 20_000);
    let dispatched = &stack.device().dispatched;
    let mut widest = 0;
    for batch in dispatched.chunk_by(|one, next| one.0 == next.0) {
        assert!(batch.iter().all(|(_, request)| request.kind == batch[0].1.kind), "{batch:?}");
        let zones: Vec<u64> = batch.iter().map(|(_, request)| request.first_sector / (SECTORS / 8)).collect();
        assert!(zones.is_sorted_by(|one, next| one < next), "one a zone: {batch:?}");
        widest = widest.max(batch.len());
    }
    assert!(widest > 2, "requests queue up");
    let figures = &stack.figures()[0];
    assert!(extra(figures, "read_batches") > 100.0 && extra(figures, "write_batches") > 100.0);
    assert_eq!(extra(figures, "read_batches") + extra(figures, "write_batches"), {
        dispatched.chunk_by(|one, next| one.0 == next.0).count() as f64
    });
}

#[test]
fn one_zone_is_batching_of_reads_and_writes_in_order() {
    let text = "scheduler = \"ssd-friendly\"\nssd-friendly = { zones = 1, per-zone = \"all\" }\n[block-layer]\n\
                plug-requests = 9\nmerge = false\n";
    let mut stack = stack(text, 1);
    let (mut done, mut sectors) = (Completion::default(), Vec::new());
    for at in 0..9_u64 {
        let kind = if at.is_multiple_of(2) { RequestKind::Read } else { RequestKind::Write };
        let first_sector = 60_000 - 7_000 * at; // falling, so no order of sectors explains it
        sectors.push(first_sector);
        stack.submit(Request { first_sector, sectors: 1, kind, ..Request::default() }).expect("no faults");
    }
    while stack.wait(Nanos(u64::MAX), &mut done).expect("no faults") {}
    let handed: Vec<u64> = stack.device().dispatched.iter().map(|(_, request)| request.first_sector).collect();
    let (reads, writes) = (sectors.iter().step_by(2), sectors.iter().skip(1).step_by(2));
    assert_eq!(handed, reads.chain(writes).copied().collect::<Vec<_>>());
}

#[test]
fn settings_that_cannot_be_are_refused_with_key_and_reason() {
    let problems = |text: &str| -> Vec<String> {
        let settings: StackSettings = toml::from_str(text).expect("well-formed");
        settings.problems(SECTORS).into_iter().map(|problem| format!("{}: {}", problem.key, problem.what)).collect()
    };
    let all = problems("scheduler = \"pasa+pai\"");
    let keys: Vec<&str> = all.iter().map(|problem| problem.split(':').next().expect("a key")).collect();
    assert_eq!(keys, ["profile.clustered-page", "profile.read-buffer", "profile.write-buffer"], "{all:?}");
    assert!(
        all.iter().all(|problem| problem.contains("found \"unknown\"") && problem.contains("probe the drive")),
        "{all:?}"
    );
    let page = "[profile]\nclustered-page = \"16 KiB\"\n";
    assert!(problems(&format!("scheduler = \"pai\"\n{page}")).is_empty());
    let block = problems(&format!("scheduler = \"pai\"\npai = {{ unit = \"block\" }}\n{page}"));
    assert!(block.len() == 1 && block[0].starts_with("profile.clustered-block: found \"unknown\""), "{block:?}");
    let zones = problems("scheduler = \"ssd-friendly\"\n[ssd-friendly]\nspan = \"1 GiB\"\nmax-merge = \"100 B\"\n");
    assert_eq!(
        zones,
        [
            "ssd-friendly.span: found \"1 GiB\", expected \"512 B\" to the device's \"32 MiB\"",
            "ssd-friendly.max-merge: found \"100 B\", expected \"none\" or at least \"512 B\"",
        ]
    );
    let word = toml::from_str::<StackSettings>("scheduler = \"none\"\nssd-friendly = { max-merge = \"much\" }");
    let error = word.expect_err("no size").to_string();
    assert!(error.contains("found \"much\", expected \"none\" or a size such as \"64 KiB\""), "{error}");
}

#[test]
fn settings_are_written_as_they_are_read() {
    let text = "scheduler = \"pasa+ssd-friendly\"\npasa = { unit = \"block\", without-buffer = \"page\" }\n\
                ssd-friendly = { span = \"1 MiB\", max-merge = \"64 KiB\", share = \"adaptive\", per-zone = \"all\" }\n";
    let settings: StackSettings = toml::from_str(text).expect("well-formed");
    let written = toml::to_string(&settings).expect("all of it can be written");
    assert_eq!(toml::from_str::<StackSettings>(&written).expect("what we write"), settings);
    assert!(written.contains("span = \"1 MiB\"") && written.contains("max-merge = \"64 KiB\""), "{written}");
}
