//! The parallel engine against a twin that is too simple to be wrong, and against what queueing theory says of any engine.
//!
//! The twin walks from moment to moment over plain lists and looks at everything each time. It is written from the rules:
//!
//! * A die serves its operations in order of issue, one at a time from its first phase to its last. An operation that
//!   depends on another's end waits at the head of its queue.
//! * Pipelined, the bus is held for commands and transfers only; otherwise for the whole operation.
//! * A free bus goes to the die that has been ready for it longest, ties to the operation issued earlier.
//! * The drive takes so many requests at once; the others wait and are taken in order as places get free.
//!
//! Both are fed with the same operations, which a second drive that takes everything at once has logged.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers of tests count as library code

use crate::common::*;
use flashwright_block::{BlockDevice, Nanos, Request, RequestKind, Rng, Seed, chance};
use flashwright_ftl::{FlashOp, OpKind};
use flashwright_ssd::{DriveConfig, Rate, Ssd};
use std::collections::{BTreeMap, VecDeque};

// --- the twin ---

/// A stretch of an operation: on the bus or on the die alone.
#[derive(Clone, Copy, Debug)]
enum Phase {
    Bus(u64),
    Array(u64),
}

struct Operation {
    request: usize,
    die: usize,
    phases: VecDeque<Phase>,
    /// Its place in the list of all operations, where it depends on one.
    depends_on: Option<usize>,
    end: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
enum Doing {
    Nothing,
    /// Ready for the bus since then.
    WaitingForBus {
        operation: usize,
        since: u64,
    },
    Busy {
        operation: usize,
        until: u64,
    },
}

struct Twin<'a> {
    config: &'a DriveConfig,
    requests: &'a [(u64, Vec<FlashOp>)],
    pages_per_die: u32,
    operations: Vec<Operation>,
    queues: Vec<VecDeque<usize>>,
    doing: Vec<Doing>,
    took_die: Vec<u64>,
    die_busy: Vec<u64>,
    bus_until: Vec<u64>,
    bus_busy: Vec<u64>,
    /// The next request to be taken, in order; when each was taken and when it ended.
    next: usize,
    start: Vec<Option<u64>>,
    end: Vec<Option<u64>>,
}

impl<'a> Twin<'a> {
    fn new(config: &'a DriveConfig, requests: &'a [(u64, Vec<FlashOp>)]) -> Self {
        let g = &config.geometry;
        let (channels, dies) = (g.channels as usize, (g.channels * g.dies_per_channel) as usize);
        Self {
            config,
            requests,
            pages_per_die: g.planes_per_die * g.blocks_per_plane * g.pages_per_block,
            operations: Vec::new(),
            queues: vec![VecDeque::new(); dies],
            doing: vec![Doing::Nothing; dies],
            took_die: vec![0; dies],
            die_busy: vec![0; dies],
            bus_until: vec![0; channels],
            bus_busy: vec![0; channels],
            next: 0,
            start: vec![None; requests.len()],
            end: vec![None; requests.len()],
        }
    }

    fn phases(&self, kind: OpKind) -> VecDeque<Phase> {
        let t = &self.config.timing;
        let spare = self.config.geometry.spare_size.0;
        let page = self.config.geometry.page_size.0 + if t.transfer_spare { spare } else { 0 };
        let (command, page, spare) = (t.command.0, t.bus_rate.transfer(page).0, t.bus_rate.transfer(spare).0);
        let (array, transfer) = match kind {
            OpKind::Read => (t.read.0, page),
            OpKind::Program => (t.program.0, page),
            OpKind::Erase => (t.erase.0, 0),
            OpKind::OobRead => (t.oob_read.0, spare),
        };
        let all = match kind {
            _ if !t.pipelined => vec![Phase::Bus(command + array + transfer)],
            OpKind::Program => vec![Phase::Bus(command + transfer), Phase::Array(array)],
            OpKind::Erase => vec![Phase::Bus(command), Phase::Array(array)],
            OpKind::Read | OpKind::OobRead => vec![Phase::Bus(command), Phase::Array(array), Phase::Bus(transfer)],
        };
        // A command that takes no time needs no bus.
        let silent = t.pipelined && kind != OpKind::Program && command == 0;
        all.into_iter().skip(usize::from(silent)).collect()
    }

    fn channel(&self, die: usize) -> usize {
        die / self.config.geometry.dies_per_channel as usize
    }

    fn run(mut self) -> Self {
        let mut now = 0;
        loop {
            // Whatever can happen at this moment happens; buses are given away once nothing else is left to happen.
            while self.phases_end(now)
                || self.requests_end(now)
                || self.requests_are_taken(now)
                || self.dies_take_operations(now)
                || self.buses_are_given(now)
            {}
            let phase_ends = self.doing.iter().filter_map(|doing| match doing {
                Doing::Busy { until, .. } => Some(*until),
                _ => None,
            });
            let arrivals = self.requests[self.next..].iter().map(|(arrival, _)| *arrival).take(1);
            let moments = phase_ends.chain(self.bus_until.iter().copied()).chain(arrivals);
            match moments.filter(|moment| *moment > now).min() {
                Some(moment) => now = moment,
                None => return self,
            }
        }
    }

    fn phases_end(&mut self, now: u64) -> bool {
        let mut happened = false;
        for die in 0..self.doing.len() {
            if let Doing::Busy { operation, until } = self.doing[die]
                && until == now
            {
                self.enter_next_phase(die, operation, now);
                happened = true;
            }
        }
        happened
    }

    fn enter_next_phase(&mut self, die: usize, operation: usize, now: u64) {
        self.doing[die] = match self.operations[operation].phases.front().copied() {
            Some(Phase::Bus(_)) => Doing::WaitingForBus { operation, since: now },
            Some(Phase::Array(span)) => {
                self.operations[operation].phases.pop_front();
                Doing::Busy { operation, until: now + span }
            }
            None => {
                self.operations[operation].end = Some(now);
                self.die_busy[die] += now - self.took_die[die];
                Doing::Nothing
            }
        };
    }

    fn requests_end(&mut self, now: u64) -> bool {
        let mut happened = false;
        for request in 0..self.next {
            let mine = || self.operations.iter().filter(|operation| operation.request == request);
            if self.end[request].is_none() && mine().all(|operation| operation.end.is_some()) {
                self.end[request] = Some(now);
                happened = true;
            }
        }
        happened
    }

    fn requests_are_taken(&mut self, now: u64) -> bool {
        let outstanding = (0..self.next).filter(|request| self.end[*request].is_none()).count();
        let Some((arrival, ops)) = self.requests.get(self.next) else { return false };
        if *arrival > now || outstanding >= self.config.host.queue_depth.requests() as usize {
            return false;
        }
        let first = self.operations.len();
        for (at, op) in ops.iter().enumerate() {
            let die = (op.ppn.0 / self.pages_per_die) as usize;
            self.queues[die].push_back(first + at);
            self.operations.push(Operation {
                request: self.next,
                die,
                phases: self.phases(op.kind),
                depends_on: (op.after > 0).then(|| first + at - usize::from(op.after)),
                end: None,
            });
        }
        self.start[self.next] = Some(now);
        self.next += 1;
        true
    }

    fn dies_take_operations(&mut self, now: u64) -> bool {
        let mut happened = false;
        for die in 0..self.doing.len() {
            if let (Doing::Nothing, Some(operation)) = (self.doing[die], self.queues[die].front().copied()) {
                let awaited = self.operations[operation].depends_on;
                if awaited.is_none_or(|awaited| self.operations[awaited].end.is_some()) {
                    self.queues[die].pop_front();
                    self.took_die[die] = now;
                    self.enter_next_phase(die, operation, now);
                    happened = true;
                }
            }
        }
        happened
    }

    fn buses_are_given(&mut self, now: u64) -> bool {
        for channel in 0..self.bus_until.len() {
            let waiting =
                (0..self.doing.len()).filter(|die| self.channel(*die) == channel).filter_map(|die| {
                    match self.doing[die] {
                        Doing::WaitingForBus { operation, since } => Some((since, operation)),
                        _ => None,
                    }
                });
            if self.bus_until[channel] <= now
                && let Some((_, operation)) = waiting.min()
            {
                let Some(Phase::Bus(span)) = self.operations[operation].phases.pop_front() else { unreachable!() };
                self.doing[self.operations[operation].die] = Doing::Busy { operation, until: now + span };
                self.bus_until[channel] = now + span;
                self.bus_busy[channel] += span;
                return true;
            }
        }
        false
    }
}

// --- both side by side ---

/// Times that are multiples of 50 us, so that ties abound, or odd ones.
fn random_config(rng: &mut Rng) -> DriveConfig {
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
fn the_engine_agrees_with_its_naive_twin() {
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
            logged.push((request.arrival.0, written_out(logger.flash().log())));
        }
        let twin = Twin::new(&config, &logged).run();
        let mut found = BTreeMap::new();
        for request in &requests {
            ssd.submit(*request).unwrap();
        }
        for completion in drain(&mut ssd).unwrap() {
            found.insert(completion.tag.0, (completion.start.0, completion.end.0));
        }
        for (at, request) in requests.iter().enumerate() {
            let expected = (twin.start[at].unwrap(), twin.end[at].unwrap());
            assert_eq!(
                found[&(at as u64)],
                expected,
                "seed {seed}, request {at} ({request:?}): start and end against the twin's; {:?}",
                config.timing
            );
        }
        let busy = ssd.busy_times();
        assert_eq!(busy.dies.iter().map(|time| time.0).collect::<Vec<_>>(), twin.die_busy, "seed {seed}: dies");
        assert_eq!(busy.channels.iter().map(|time| time.0).collect::<Vec<_>>(), twin.bus_busy, "seed {seed}: buses");
        drives += 1;
        operations += twin.operations.len();
        across += twin
            .operations
            .iter()
            .filter(|op| op.depends_on.is_some_and(|awaited| twin.operations[awaited].die != op.die))
            .count();
    }
    println!("{drives} drives, {operations} operations, {across} of them waiting for another die's");
    assert!(operations > 100_000 && across > 1_000, "{operations} operations, {across} across dies: too easy");
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
            assert!(found.end == expected.end || found.flash_ops == 0, "seed {seed}: {found:?} against {expected:?}");
        }
    }
}

/// Transfers are rounded up to a nanosecond, so that no rate is ever exceeded.
#[test]
fn transfers_round_up() {
    assert_eq!(Rate(Some(3)).transfer(1).0, 333_333_334);
    assert_eq!(Rate(Some(200_000_000)).transfer(4096).0, 20_480);
}
