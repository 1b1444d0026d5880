//! The engines against a reference model that is too simple to be wrong, and against what queueing theory says of any
//! engine.
//!
//! Here whole drives are compared: both are fed with the same operations, which a second drive that takes everything at
//! once has logged. `operations.rs`, `chips.rs` and `ordered.rs` compare engines without a
//! drive: the end of each operation, other orders, suspension, and the engine of single pages with that of chip commands.

mod chip_safety;
mod chips;
mod operations;
mod ordered;
mod reference;
mod serial;

use crate::common::*;
use flashwright_block::{BlockDevice, Completion, Nanos, Request, RequestKind, Rng, Seed, chance};
use flashwright_ftl::OpKind;
use flashwright_ssd::{DriveConfig, Rate, Ssd};
use reference::{Order, Reference};
use std::collections::BTreeMap;

// --- both side by side ---

/// Times that are multiples of 50 us, so that ties abound, or odd ones.
pub fn random_config(rng: &mut Rng) -> DriveConfig {
    let (channels, dies, planes) = (1 + draw(rng, 3), 1 + draw(rng, 3), 1 + draw(rng, 2));
    let (blocks, np) = (6 + draw(rng, 8), *pick(rng, &[2, 3, 4, 7]));
    let logical = channels * dies * planes * (blocks - 4) * np * 9 / 10;
    let round = chance(rng, 0.6);
    let mut time = |units: &[u32], odd: u32| {
        let nanos = if round { *pick(rng, units) * 50_000 } else { 1 + draw(rng, odd) };
        format!("\"{nanos} ns\"")
    };
    let mut settings = shape(channels, dies, planes, blocks, np, logical.max(2));
    settings.extend([
        format!("timing.read={}", time(&[1, 2], 100_000)),
        format!("timing.program={}", time(&[2, 4, 6], 900_000)),
        format!("timing.erase={}", time(&[3, 14], 3_000_000)),
        format!("timing.command={}", if round { time(&[0, 0, 1], 1) } else { time(&[0], 900) }),
    ]);
    // 100 us, 50 us, or an odd time a page; free transfers only where commands are free too, or moments without length
    // would have an order that the rules do not give.
    let rates: &[&str] = if round { &["40.96 MB/s", "81.92 MB/s"] } else { &["33 MB/s", "400 MB/s"] };
    settings.extend([
        format!("timing.bus-rate={:?}", pick(rng, rates)),
        format!("timing.transfer-spare={}", !round && chance(rng, 0.5)),
        format!("timing.pipelined={}", chance(rng, 0.6)),
        format!("timing.bus-order={}", pick(rng, &["first-come", "commands-first", "data-first"])),
        format!("host.queue-depth={}", pick(rng, &[1, 2, 5, 30])),
        format!("host.partial-pages={:?}", pick(rng, &["whole", "read-modify-write"])),
        format!("placement.allocation={:?}", pick(rng, &["dynamic", "static"])),
        format!("placement.policy={:?}", pick(rng, &["single", "gc-separate"])),
        format!("gc.free-blocks-min={}", 1 + draw(rng, 2)),
    ]);
    if chance(rng, 0.15) {
        settings.extend(["timing.bus-rate=none".to_owned(), "timing.command=\"0 ns\"".to_owned()]);
    }
    config(&settings)
}

fn random_requests(rng: &mut Rng, ssd: &Ssd, count: usize) -> Vec<Request> {
    let (logical, grain) = (ssd.logical_pages(), u32::try_from(ssd.sectors_per_page()).unwrap());
    let (writes, whole, burst) = (*pick(rng, &[0.4, 0.7, 1.0]), chance(rng, 0.4), *pick(rng, &[0.3, 0.8, 0.95]));
    let mut arrival = 0;
    (0..count)
        .map(|_| {
            if !chance(rng, burst) {
                arrival +=
                    if chance(rng, 0.7) { u64::from(draw(rng, 60)) * 50_000 } else { u64::from(draw(rng, 2_000_000)) };
            }
            let first = draw(rng, logical);
            let count = 1 + draw(rng, 6.min(logical - first));
            let (first, count) = (first * grain, count * grain);
            let (cut, short) = if whole { (0, 0) } else { (draw(rng, grain), draw(rng, grain)) };
            let kind = match draw(rng, 20) {
                0 => RequestKind::Trim,
                _ if chance(rng, writes) => RequestKind::Write,
                _ => RequestKind::Read,
            };
            Request {
                arrival: Nanos(arrival),
                ..sectors(kind, u64::from(first + cut), count.saturating_sub(cut + short).max(1))
            }
        })
        .collect()
}

#[test]
fn the_drive_agrees_with_the_reference_model() {
    let (mut drives, mut operations, mut across) = (0, 0, 0);
    for seed in 0..400 {
        let mut rng = rng(seed);
        let config = random_config(&mut rng);
        let Ok(mut ssd) = Ssd::new(&config, Seed(seed), false) else { continue };
        fill(&mut ssd, u32::MAX); // so that cleaning starts soon
        let requests = random_requests(&mut rng, &ssd, 120);
        let mut logger =
            Ssd::new(&config.with_settings(&["host.queue-depth=65536"]).unwrap(), Seed(seed), false).unwrap();
        fill(&mut logger, u32::MAX);
        let mut logged = Vec::new();
        for request in &requests {
            logger.submit(*request).unwrap();
            logged.push((request.arrival.0, logger.flash().log().to_vec()));
        }
        let reference = Reference::new(&config, &logged, Order::OfIssue).run();
        let mut found = BTreeMap::new();
        for request in &requests {
            ssd.submit(*request).unwrap();
        }
        for completion in drain(&mut ssd).unwrap() {
            found.insert(completion.tag.0, (completion.start.0, completion.end.0));
        }
        for (at, request) in requests.iter().enumerate() {
            let expected = (reference.start[at].unwrap(), reference.end[at].unwrap());
            assert_eq!(
                found[&(at as u64)],
                expected,
                "seed {seed}, request {at} ({request:?}): start and end against the reference model's; {:?}",
                config.timing
            );
        }
        let busy = ssd.busy_times();
        assert_eq!(busy.dies.iter().map(|time| time.0).collect::<Vec<_>>(), reference.die_busy, "seed {seed}: dies");
        assert_eq!(
            busy.channels.iter().map(|time| time.0).collect::<Vec<_>>(),
            reference.bus_busy,
            "seed {seed}: buses"
        );
        drives += 1;
        operations += reference.operations.len();
        across += reference
            .operations
            .iter()
            .filter(|op| op.depends_on.is_some_and(|awaited| reference.operations[awaited].die != op.die))
            .count();
    }
    println!("{drives} drives, {operations} operations, {across} of them waiting for another die's");
    assert!(operations > 100_000 && across > 1_000, "{operations} operations, {across} across dies: too easy");
}

/// One request at a time by `execute`, which may add its end up at once, and by `submit` and `wait`, which go from event to event;
/// now and then two are in flight.
#[test]
fn a_request_that_meets_nobody_ends_as_it_would_from_event_to_event() {
    let mut executed = 0;
    for seed in 0..200 {
        let mut rng = rng(seed);
        let config = random_config(&mut rng);
        let Ok(mut short) = Ssd::new(&config, Seed(seed), false) else { continue };
        fill(&mut short, u32::MAX); // so that cleaning starts soon
        let mut long = short.clone();
        let (mut found, mut expected) = (Completion::default(), Completion::default());
        for request in random_requests(&mut rng, &short, 80) {
            if chance(&mut rng, 0.2) {
                let both = [&mut short, &mut long].map(|ssd| {
                    ssd.submit(request).unwrap();
                    ssd.submit(request).unwrap();
                    drain(ssd).unwrap()
                });
                assert_eq!(both[0], both[1], "seed {seed}");
                continue;
            }
            short.execute(request, &mut found).unwrap();
            long.submit(request).unwrap();
            assert!(long.wait(Nanos(u64::MAX), &mut expected).unwrap());
            assert_eq!(found, expected, "seed {seed}: {:?}", config.timing);
            executed += 1;
        }
        assert_eq!(short.busy_times(), long.busy_times(), "seed {seed}");
        assert_eq!(short.now(), long.now(), "seed {seed}");
    }
    assert!(executed > 5_000, "only {executed} requests");
}

// --- what holds for any engine ---

/// 4 KiB pages at 40 MB/s, 50 us and 200 us, one channel, without a queue's limit (algorithms 6.3).
fn channel_of(dies: u32, pipelined: bool) -> Ssd {
    let mut settings = shape(1, dies, 1, 64, 64, dies * 2048);
    settings.extend([format!("timing.pipelined={pipelined}"), "host.queue-depth=65536".to_owned()]);
    Ssd::new(&config(&settings), Seed(1), false).unwrap()
}

/// All `count` pages asked for at once; the time until the last is done. They were written in this order before, so
/// that consecutive pages lie on consecutive dies.
fn time_for(dies: u32, pipelined: bool, kind: RequestKind, count: u32) -> u64 {
    let mut ssd = channel_of(dies, pipelined);
    if kind == RequestKind::Read {
        fill(&mut ssd, count);
    }
    for lpn in 0..count {
        let request = pages(&ssd, kind, lpn, 1);
        ssd.submit(request).unwrap();
    }
    drain(&mut ssd).unwrap().iter().map(|completion| completion.end.0).max().unwrap()
}

/// The table of algorithms 6.3. X = 102.4 us.
///
/// ```text
///   2 reads     held: 2 x (50 + X) = 304.8       pipelined: 50 + 2 X = 254.8
///   2 programs  held: 2 x (X + 200) = 604.8      pipelined: 2 X + 200 = 404.8
///   steady, in MB/s of 4096 bytes in so many us, over 1000 pages:
///   reads, 2 dies      held: 152.4 a page = 26.9         pipelined: bus bound, 50 + 1000 X = 102,450 = 40.0
///   programs, held: 302.4 a page, however many dies = 13.5
///   programs, pipelined, 1 die: 302.4 = 13.5;  2 dies: 2 in 302.4 = 27.1;  4 dies: bus bound, 1000 X + 200 = 39.9
/// ```
#[test]
fn two_operations_and_steady_rates_on_one_channel() {
    use RequestKind::{Read, Write};
    for (kind, pipelined, nanos) in
        [(Read, false, 304_800), (Read, true, 254_800), (Write, false, 604_800), (Write, true, 404_800)]
    {
        assert_eq!(time_for(2, pipelined, kind, 2), nanos, "two of {kind:?}, pipelined: {pipelined}");
    }
    let rate = |dies, pipelined, kind| {
        let mb_per_s = 4096.0 * 1000.0 / (time_for(dies, pipelined, kind, 1000) as f64 / 1e9) / 1e6;
        (mb_per_s * 10.0).round() / 10.0
    };
    assert_eq!(rate(2, false, Read), 26.9);
    assert_eq!(rate(2, true, Read), 40.0);
    assert_eq!([1, 2, 4].map(|dies| rate(dies, false, Write)), [13.5, 13.5, 13.5]);
    assert_eq!([1, 2, 4].map(|dies| rate(dies, true, Write)), [13.5, 27.1, 39.9]);
}

/// A clustered page of k chips on one channel costs what k pages on k chips cost that are asked for at once
/// ( k transfers and one program), to the nanosecond.
#[test]
fn a_clustered_page_costs_what_its_parts_cost_side_by_side() {
    use RequestKind::{Read, Write};
    for (kind, pipelined) in [(Read, false), (Read, true), (Write, false), (Write, true)] {
        for chips in 1..=5 {
            let mut settings = shape(1, chips, 1, 64, 64, chips * 2048);
            settings.extend([format!("timing.pipelined={pipelined}"), format!("geometry.cluster-dies={chips}")]);
            let mut ssd = Ssd::new(&config(&settings), Seed(1), false).unwrap();
            assert_eq!(ssd.sectors_per_page(), 8 * u64::from(chips));
            fill(&mut ssd, 1);
            let request = pages(&ssd, kind, 0, 1);
            let time = perform(&mut ssd, request).unwrap()[0].end.0;
            assert_eq!(
                time,
                time_for(chips, pipelined, kind, chips),
                "{kind:?}, {chips} chips, pipelined: {pipelined}"
            );
        }
    }
}

/// A channel programs no faster than min(dies / (X + P), 1 / X), and comes within 2 % of it over 2,000 pages.
#[test]
fn a_channel_reaches_its_bound_and_no_more() {
    let (x, p) = (102_400.0, 200_000.0);
    for dies in 1..=8 {
        let bound = (f64::from(dies) / (x + p)).min(1.0 / x);
        let found = 2000.0 / time_for(dies, true, RequestKind::Write, 2000) as f64;
        assert!(found <= bound * (1.0 + 1e-9) && found > 0.98 * bound, "{dies} dies: {found} of {bound} pages a ns");
    }
}

/// Without buses and without dependencies across dies a die never rests while it has work: everything asked for at
/// once is done when the die with the most work has done it.
#[test]
fn no_die_rests_while_it_has_work() {
    for seed in 0..20 {
        let mut settings = shape(2, 2, 1, 16, 4, 180);
        settings.extend(["timing.bus-rate=none".to_owned(), "host.queue-depth=65536".to_owned()]);
        let mut ssd = Ssd::new(&config(&settings), Seed(seed), false).unwrap();
        let mut rng = rng(seed);
        let mut work = [0u64; 4];
        for _ in 0..600 {
            let kind = if chance(&mut rng, 0.7) { RequestKind::Write } else { RequestKind::Read };
            let lpn = draw(&mut rng, 180);
            let request = pages(&ssd, kind, lpn, 1);
            ssd.submit(request).unwrap();
            for op in written_out(ssd.flash().log()) {
                work[ssd.flash().geometry().die_of(op.ppn).index()] += match op.kind {
                    OpKind::Read | OpKind::OobRead => 50_000,
                    OpKind::Program => 200_000,
                    OpKind::Erase => 700_000,
                };
            }
        }
        let last = drain(&mut ssd).unwrap().iter().map(|completion| completion.end.0).max().unwrap();
        assert_eq!(last, *work.iter().max().unwrap(), "seed {seed}");
        assert_eq!(ssd.busy_times().dies.iter().map(|time| time.0).collect::<Vec<_>>(), work);
    }
}

/// Little's law, exactly: a closed loop that keeps `depth` requests outstanding accumulates `depth` seconds of response
/// a second, up to the moment of its last submission.
#[test]
fn a_closed_loop_obeys_littles_law() {
    for depth in [1, 2, 7, 32, 50] {
        let mut ssd = Ssd::new(&config(&shape(2, 2, 1, 32, 8, 700)), Seed(3), false).unwrap();
        let mut rng = rng(depth as u64);
        let done = closed_loop(&mut ssd, depth, 4_000, |ssd| {
            let kind = if chance(&mut rng, 0.6) { RequestKind::Write } else { RequestKind::Read };
            pages(ssd, kind, draw(&mut rng, 700), 1)
        });
        let horizon = done.iter().map(|completion| completion.request.arrival.0).max().unwrap();
        let outstanding: u64 = done.iter().map(|c| c.end.0.min(horizon) - c.request.arrival.0).sum();
        assert_eq!(outstanding, depth as u64 * horizon, "depth {depth}");
        // The usual form, with its error at the edges of the run.
        let throughput = done.len() as f64 / done.iter().map(|c| c.end.0).max().unwrap() as f64;
        let response = done.iter().map(|c| c.response_time().0 as f64).sum::<f64>() / done.len() as f64;
        let little = throughput * response;
        assert!((little / depth as f64 - 1.0).abs() < 0.03, "depth {depth}: throughput x response = {little}");
    }
}

/// With one channel and one die there is nothing to do side by side.
#[test]
fn one_die_is_serial() {
    for seed in 0..60 {
        let mut rng = rng(seed);
        let more = [
            format!("timing.pipelined={}", chance(&mut rng, 0.5)),
            format!("timing.command=\"{} ns\"", draw(&mut rng, 2) * 700),
            format!("host.partial-pages={:?}", pick(&mut rng, &["whole", "read-modify-write"])),
        ];
        let build = |model: &str, depth: u32| {
            let settings = [format!("timing.model={model:?}"), format!("host.queue-depth={depth}")];
            let all = [&shape(1, 1, 2, 12, 4, 60)[..], &more, &settings].concat();
            Ssd::new(&config(&all), Seed(seed), true).unwrap()
        };
        let mut serial = build("serial", 1);
        let requests = random_requests(&mut rng, &serial, 150);
        let run = |ssd: &mut Ssd| {
            requests.iter().for_each(|request| _ = ssd.submit(*request).unwrap());
            let mut done = drain(ssd).unwrap();
            done.sort_by_key(|completion| completion.tag);
            done
        };
        let expected = run(&mut serial);
        assert_eq!(run(&mut build("parallel", 1)), expected, "seed {seed}: one at a time");
        // Taken all at once they start earlier and end alike, but for those that need no flash.
        for (found, expected) in run(&mut build("parallel", 200)).iter().zip(&expected) {
            assert!(
                found.end == expected.end || found.effects.flash_ops == 0,
                "seed {seed}: {found:?} against {expected:?}"
            );
        }
    }
}

/// Transfers are rounded up to a nanosecond, so that no rate is ever exceeded.
#[test]
fn transfers_round_up() {
    assert_eq!(Rate(Some(3)).transfer(1).0, 333_333_334);
    assert_eq!(Rate(Some(200_000_000)).transfer(4096).0, 20_480);
}

/// Random reads of 4 KiB, 256 in flight, on 8 channels of 4 dies: 50 us on the array, 20.48 us on the bus, commands of 0.32 us. A
/// command that waits for a transfer leaves its die idle. An independent event model gave 245,000, 235,000 and 331,000 reads per
/// second; its queues are not known in detail, so 7 % are allowed.
#[test]
fn commands_first_keeps_dies_busy() {
    let reads_per_s = |order: &str| {
        let mut settings = shape(8, 4, 1, 64, 64, 8 * 4 * 64 * 64 * 7 / 10);
        settings.extend([
            "timing.bus-rate=\"200 MB/s\"".to_owned(),
            "timing.command=\"320 ns\"".to_owned(),
            format!("timing.bus-order={order}"),
            "host.queue-depth=256".to_owned(),
        ]);
        let mut ssd = Ssd::new(&config(&settings), Seed(1), false).unwrap();
        fill(&mut ssd, u32::MAX);
        let (mut rng, logical, count) = (rng(5), ssd.logical_pages(), 20_000);
        let done = closed_loop(&mut ssd, 256, count, |ssd| pages(ssd, RequestKind::Read, draw(&mut rng, logical), 1));
        count as f64 * 1e9 / done.last().unwrap().end.0 as f64
    };
    let found = ["first-come", "data-first", "commands-first"].map(reads_per_s);
    println!("reads per second: {found:.0?}");
    for (found, expected) in found.into_iter().zip([245_000.0, 235_000.0, 331_000.0]) {
        assert!((found / expected - 1.0).abs() < 0.07, "{found}, expected {expected}");
    }
}
