//! Properties of every scheduler and every stack of them: each host request completes once, its sectors reach the
//! device once, a read returns what was last written before it, and no request waits forever.

use crate::common::Recorder;
use flashwright_block::{BlockDevice, Completion, Nanos, Request, RequestKind, Rng, Seed, below, chance};
use flashwright_host::{Chain, SchedulerName, Stack, StackSettings};

/// Sectors of the device: few, so that requests meet.
pub const SECTORS: u64 = 4096;

/// A busy host: bursts, pauses, sequential runs, hot sectors.
pub struct Host {
    rng: Rng,
    clock: u64,
    run: u64,
}

impl Host {
    pub fn new(seed: u64) -> Self {
        Self { rng: Seed(seed).stream("host"), clock: 0, run: 0 }
    }

    pub fn next(&mut self) -> Request {
        let rng = &mut self.rng;
        self.clock += match below(rng, 10) {
            0 => below(rng, 20_000_000),
            1..=3 => below(rng, 300_000),
            _ => 0,
        };
        let kind = match below(rng, 100) {
            0 => RequestKind::Flush,
            1..=2 => RequestKind::Trim,
            3..=50 => RequestKind::Write,
            _ => RequestKind::Read,
        };
        let sectors = if kind == RequestKind::Flush {
            0
        } else {
            {
                let most = 1 << below(rng, 8);
                1 + below(rng, most)
            }
        };
        let first = match below(rng, 4) {
            0 | 1 => self.run,
            2 => below(rng, 64),
            _ => below(rng, SECTORS - sectors + 1),
        };
        let first_sector = first.min(SECTORS - sectors) * u64::from(kind != RequestKind::Flush);
        self.run = if first_sector + sectors + 256 > SECTORS { 0 } else { first_sector + sectors };
        Request {
            arrival: Nanos(self.clock),
            first_sector,
            sectors: u32::try_from(sectors).expect("few"),
            process: u32::try_from(below(rng, 4)).expect("few"),
            fua: kind == RequestKind::Write && chance(rng, 0.02),
            kind,
            ..Request::default()
        }
    }
}

/// Settings under which every chain can be built; what stands behind `with` is set, too.
pub fn settings(chain: &str, merge: bool) -> StackSettings {
    let (chain, more) = chain.split_once(" with ").unwrap_or((chain, ""));
    let text = format!(
        "scheduler = \"{chain}\"\n{more}\n[block-layer]\nmax-request = \"64 KiB\"\nmerge = {merge}\nqueue-requests = 32\n\
         [profile]\nclustered-page = \"8 KiB\"\nclustered-block = \"256 KiB\"\nread-buffer = \"32 KiB\"\nwrite-buffer = \"31 KiB\"\n"
    );
    toml::from_str(&text).expect("sound settings")
}

/// Plays `count` requests and checks what must hold. The recorder asserts that conflicting requests are never in flight
/// together and that the depth is kept, so the order of dispatch is the order in which conflicting requests take effect.
fn check(chain: &str, depth: u32, seed: u64, count: usize, merge: bool) {
    let device = Recorder::new(SECTORS, depth, |request| 20_000 + 1_000 * u64::from(request.sectors));
    let mut stack = Stack::new(&settings(chain, merge), device).expect("sound settings");
    let mut host = Host::new(seed);
    let (mut asked, mut times, mut done) = (Vec::new(), Vec::new(), Completion::default());
    let mut last_end = Nanos(0);
    let mut complete = |done: &Completion, times: &mut Vec<Option<(Nanos, Nanos)>>, asked: &[Request]| {
        let at = usize::try_from(done.tag.0).expect("few");
        assert!(times[at].replace((done.start, done.end)).is_none(), "{chain}: request {at} completes once");
        let request = &done.request;
        assert_eq!((request.first_sector, request.sectors), (asked[at].first_sector, asked[at].sectors));
        assert!(done.start <= done.end && request.arrival <= done.start, "{chain}: {done:?}");
        assert!(last_end <= done.end, "{chain}: completions come in order of time");
        last_end = done.end;
    };
    for _ in 0..count {
        let request = Request { stream: u16::try_from(asked.len() % (1 << 16)).expect("small"), ..host.next() };
        while stack.wait(request.arrival, &mut done).expect("no faults") {
            complete(&done, &mut times, &asked);
        }
        asked.push(request);
        times.push(None);
        assert_eq!(stack.submit(request).expect("no faults").0 as usize, asked.len() - 1);
    }
    while stack.wait(Nanos(u64::MAX), &mut done).expect("no faults") {
        complete(&done, &mut times, &asked);
    }
    let unfinished = times.iter().position(Option::is_none);
    assert_eq!(unfinished, None, "{chain}: every request completes: {:?}", unfinished.map(|at| asked[at]));

    let dispatched = &stack.device().dispatched;
    // Each sector sees the reads and changes that the host asked for, in the host's order. Where nothing is merged, the
    // stream says which request a part comes from.
    let uses = |requests: &mut dyn Iterator<Item = &Request>| {
        let mut uses = vec![Vec::new(); SECTORS as usize];
        for request in requests {
            for sector in request.first_sector..request.end_sector() {
                uses[sector as usize].push((request.kind, if merge { 0 } else { request.stream }));
            }
        }
        for uses in &mut uses {
            for reads in uses.chunk_by_mut(|one, next| [one.0, next.0] == [RequestKind::Read; 2]) {
                reads.sort_unstable_by_key(|(_, stream)| *stream); // their order is free
            }
        }
        uses
    };
    let asked_uses = uses(&mut asked.iter());
    let handed_uses = uses(&mut dispatched.iter().map(|(_, request)| request));
    for (sector, (asked, handed)) in asked_uses.iter().zip(&handed_uses).enumerate() {
        assert_eq!(asked, handed, "{chain}: uses of sector {sector}");
    }
    // On every sector, a change comes after everything before it, and a read after every change before it. In a stack a
    // request may begin when the parts of an earlier one are done that it overlaps, so times of whole requests say nothing.
    let stacked = chain.contains('+');
    let mut last_change = vec![Nanos(0); SECTORS as usize];
    let mut last_use = vec![Nanos(0); SECTORS as usize];
    for (request, time) in asked.iter().zip(&times).filter(|_| !stacked) {
        let (start, end) = time.expect("checked above");
        for sector in (request.first_sector..request.end_sector()).map(|sector| sector as usize) {
            let before = if request.kind == RequestKind::Read { last_change[sector] } else { last_use[sector] };
            assert!(
                before <= start,
                "{chain}: {request:?} starts at {start}, but sector {sector} is in use until {before}"
            );
            last_use[sector] = last_use[sector].max(end);
            if request.kind != RequestKind::Read {
                last_change[sector] = end;
            }
        }
    }
    for layer in stack.figures() {
        let handed = layer.reads.requests + layer.writes.requests + layer.others;
        assert!(handed > 0 && layer.requests > 0, "{chain}: {layer:?}");
    }
}

pub fn names() -> Vec<&'static str> {
    SchedulerName::ALL.iter().map(|name| name.listed().name).collect()
}

#[test]
fn every_scheduler_keeps_every_request_and_the_order_of_overlapping_ones() {
    for name in names() {
        for depth in [1, 4, 32] {
            check(name, depth, 7 + u64::from(depth), 20_000, true);
            check(name, depth, 8 + u64::from(depth), 5_000, false);
        }
    }
}

#[test]
fn so_do_schedulers_with_other_rules() {
    for variant in [
        "deadline with deadline = { batch-rule = \"contiguous\", front-merges = false }",
        "cfq with cfq = { version = \"2.6.24\" }",
        "cfq with cfq = { rotational = true }",
        "cfq with cfq = { slice-idle = \"0 ns\", target-latency = \"0 ns\", slice-sync = \"1 ms\" }",
        "anticipatory with anticipatory = { antic-expire = \"0 ns\", read-batch-expire = \"1 ms\" }",
        "kyber with kyber = { read-latency = \"1 us\", write-latency = \"1 us\" }",
    ] {
        for depth in [1, 4, 32] {
            check(variant, depth, 21 + u64::from(depth), 10_000, true);
        }
    }
}

#[test]
fn each_scheduler_stacks_on_each() {
    for above in names() {
        for under in names() {
            check(&format!("{above}+{under}"), 4, 11, 3_000, true);
            check(&format!("{above}+{under}"), 4, 12, 3_000, false);
        }
    }
    // What is cut and lies in several queues, above a filter.
    check("pas+pai+noop", 2, 14, 30_000, true);
    check("pasa+pai+deadline", 2, 15, 30_000, true);
    check(&names().join("+"), 2, 12, 3_000, true);
    check(&names().join("+"), 2, 13, 3_000, false);
}

#[test]
fn options_lose_nothing_and_change_no_order_either() {
    for chain in [
        "pas+pai+noop with pai.merge = 'well-formed'",
        "pai with pai = { merge = 'well-formed', idle-dispatch = true, unit = 'block' }",
        "pasa+pai with pasa = { unit = 'block', without-buffer = 'page' }",
        "ssd-friendly with ssd-friendly = { zones = 3, span = '1 MiB', per-zone = 'all', barrier = false }",
        "ssd-friendly with ssd-friendly = { share = 'adaptive', max-merge = '8 KiB' }",
        "ssd-friendly with ssd-friendly = { reads = 3, writes = 2, zones = 1 }",
    ] {
        check(chain, 4, 16, 10_000, true);
    }
}

#[test]
#[ignore = "long: ten million requests through every scheduler"]
fn ten_million_requests_through_every_scheduler() {
    for name in names() {
        for round in 0..100 {
            check(name, [1, 2, 8, 32][round % 4], 100 + round as u64, 100_000, round % 8 != 7);
        }
    }
}

#[test]
fn one_seed_gives_one_schedule_and_a_saved_stack_goes_on_as_the_original() {
    for name in names() {
        let device = || Recorder::new(SECTORS, 4, |_| 100_000);
        let mut stacks = [0, 1].map(|_| Stack::new(&settings(name, true), device()).expect("sound settings"));
        let mut host = Host::new(3);
        let mut done = Completion::default();
        for at in 0..2_000 {
            let request = host.next();
            for stack in &mut stacks {
                while stack.wait(request.arrival, &mut done).expect("no faults") {}
                stack.submit(request).expect("no faults");
            }
            if at == 1_000 {
                let Stack::Filtered(filter) = &stacks[0] else { panic!("a scheduler was asked for") };
                let copy = filter.clone();
                stacks[1] = Stack::Filtered(copy);
            }
        }
        for stack in &mut stacks {
            while stack.wait(Nanos(u64::MAX), &mut done).expect("no faults") {}
        }
        assert_eq!(stacks[0].device().dispatched, stacks[1].device().dispatched, "{name}");
    }
}

#[test]
fn chains_are_read_and_written() {
    for name in names() {
        assert_eq!(name.parse::<Chain>().expect("a name").to_string(), name);
    }
    let error = "noop+elevator".parse::<Chain>().expect_err("no such scheduler");
    assert!(error.contains("\"elevator\"") && error.contains("deadline"), "{error}");
}
