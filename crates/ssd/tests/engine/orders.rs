//! The parallel engine alone, fed with random operations: under several orders, heard and unheard, against the reference
//! model, to the end of each operation.

use super::random_config;
use super::reference::{Operation, Order, Reference};
use crate::common::*;
use flashwright_block::{Bytes, Rng, chance};
use flashwright_ftl::{FlashOp, OpKind};
use flashwright_nand::{Geometry, Ppn};
use flashwright_ssd::DriveConfig;
use flashwright_ssd::engine::{ByClass, Choice, DieOrder, EndedOp, Fifo, Observer, OpClass, Parallel, Ready};
use std::collections::BTreeMap;

// --- orders, each written twice ---

/// Reads of the host first, but of each die at most `limit` in a row past something older.
#[derive(Clone)]
struct HostReadsFirst {
    limit: u32,
    passed: Vec<u32>,
}

impl DieOrder for HostReadsFirst {
    fn next(&mut self, die: usize, ready: &Ready<'_>) -> Choice {
        let read = ready.first(|op| op.class == OpClass::HostRead).filter(|_| self.passed[die] < self.limit);
        let choice = read.unwrap_or(ready.oldest());
        self.passed[die] = if choice == ready.oldest() { 0 } else { self.passed[die] + 1 };
        choice
    }
}

fn naive_host_reads_first(limit: u32, dies: usize) -> Order {
    let mut passed = vec![0; dies];
    Order::By(Box::new(move |die, free: &[&Operation]| {
        for (at, op) in free.iter().enumerate() {
            if op.class == OpClass::HostRead && (at == 0 || passed[die] < limit) {
                passed[die] = if at == 0 { 0 } else { passed[die] + 1 };
                return at;
            }
        }
        passed[die] = 0;
        0
    }))
}

/// Whatever may be taken, in no order at all: what holds the operations together is the engine's rule alone.
#[derive(Clone)]
struct Scrambled;

fn scramble(sequence: u64) -> u64 {
    (sequence + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23).wrapping_mul(0xD6E8_FEB8_6659_FD93)
}

impl DieOrder for Scrambled {
    fn next(&mut self, _die: usize, ready: &Ready<'_>) -> Choice {
        ready.iter().min_by_key(|(_, op)| scramble(op.sequence)).unwrap().0
    }
}

fn naive_scrambled() -> Order {
    Order::By(Box::new(|_, free: &[&Operation]| (0..free.len()).min_by_key(|at| scramble(free[*at].sequence)).unwrap()))
}

/// The oldest that may be taken: as FIFO, but nothing waits behind what waits for another die.
#[derive(Clone)]
struct Oldest;

impl DieOrder for Oldest {
    fn next(&mut self, _die: usize, ready: &Ready<'_>) -> Choice {
        ready.oldest()
    }
}

// --- random operations ---

type Requests = Vec<(u64, Vec<FlashOp>)>;

/// Few blocks, so that operations meet on them; dependencies on the same die and on others, some beyond the request.
fn random_ops(rng: &mut Rng, geometry: &Geometry) -> Vec<FlashOp> {
    let (pages, per_die) = (geometry.pages_per_block(), geometry.pages() / geometry.dies());
    let count = draw(rng, 8);
    (0..count)
        .map(|at| {
            let copies = if chance(rng, 0.2) { 1 + draw(rng, pages) } else { 0 };
            let kind = if copies > 0 { OpKind::Program } else { *pick(rng, &[&KIND[..], &KIND[..2]].concat()) };
            let page = match kind {
                OpKind::Erase => 0,
                _ => draw(rng, pages - copies.saturating_sub(1)),
            };
            let after = if chance(rng, 0.4) { 1 + draw(rng, at + 2) } else { 0 };
            FlashOp {
                ppn: Ppn(draw(rng, geometry.dies()) * per_die + draw(rng, 3) * pages + page),
                kind,
                cause: if chance(rng, 0.5) { CAUSE[0] } else { *pick(rng, &CAUSE) },
                after,
                copies,
            }
        })
        .collect()
}

fn random_list(rng: &mut Rng, geometry: &Geometry) -> Requests {
    let (mut arrival, burst) = (0, *pick(rng, &[0.3, 0.7, 0.95]));
    (0..40)
        .map(|_| {
            if !chance(rng, burst) {
                arrival +=
                    if chance(rng, 0.7) { u64::from(draw(rng, 60)) * 50_000 } else { u64::from(draw(rng, 2_000_000)) };
            }
            (arrival, random_ops(rng, geometry))
        })
        .collect()
}

// --- both side by side ---

trait Heard: Observer {
    fn heard(&self) -> &[EndedOp];
}

impl Heard for () {
    fn heard(&self) -> &[EndedOp] {
        &[]
    }
}

impl Heard for Vec<EndedOp> {
    fn heard(&self) -> &[EndedOp] {
        self
    }
}

/// What an engine made of a list of requests.
#[derive(Default)]
struct Played {
    /// The end of each request.
    ends: Vec<u64>,
    /// By request, entry, copy and kind: what was told, and the time up to which the engine had been run before.
    told: BTreeMap<(usize, u32, u32, u8), (EndedOp, u64)>,
    dies: Vec<u64>,
    channels: Vec<u64>,
}

fn play<O: DieOrder, W: Heard>(mut engine: Parallel<O, W>, requests: &Requests, geometry: &Geometry) -> Played {
    let mut played = Played { ends: vec![0; requests.len()], ..Played::default() };
    // By slot, the request; what was heard so far, and the time up to which the engine had been run when it was.
    let (mut in_slot, mut heard, mut before) = (BTreeMap::new(), 0, 0);
    let mut note = |engine: &Parallel<O, W>, in_slot: &BTreeMap<u32, usize>, now: u64| {
        for op in &engine.observer.heard()[heard..] {
            let request = in_slot[&u32::try_from(op.request).unwrap()];
            let again = played.told.insert((request, op.entry, op.copy, op.kind as u8), (*op, before));
            assert_eq!(again, None, "told twice");
        }
        (heard, before) = (engine.observer.heard().len(), now);
    };
    let arrivals = requests.iter().map(|(arrival, _)| *arrival).chain([u64::MAX]);
    for (at, until) in arrivals.enumerate() {
        while let Some((slot, end)) = engine.next_completion(until) {
            note(&engine, &in_slot, end);
            played.ends[in_slot[&slot]] = end;
        }
        note(&engine, &in_slot, until);
        if let Some((_, ops)) = requests.get(at) {
            in_slot.insert(engine.issue(until, 0, ops, geometry), at);
            note(&engine, &in_slot, until);
        }
    }
    let busy = engine.busy();
    played.dies = busy.dies.iter().map(|time| time.0).collect();
    played.channels = busy.channels.iter().map(|time| time.0).collect();
    played
}

struct Case {
    seed: u64,
    config: DriveConfig,
    requests: Requests,
}

impl Case {
    fn random(seed: u64) -> Self {
        let mut rng = rng(seed);
        let config = random_config(&mut rng).with_settings(&["host.queue-depth=65536"]).unwrap();
        let requests = random_list(&mut rng, &config.layout());
        Self { seed, config, requests }
    }

    fn engine<O: DieOrder, W: Observer>(&self, order: O, observer: W) -> Parallel<O, W> {
        Parallel::new(&self.config.layout(), self.config.times(), 0, order, observer)
    }

    /// Compares an engine, heard and unheard, with the reference model; answers that and the operations taken out of turn.
    fn compare<O: DieOrder + Clone>(&self, name: &str, order: O, naive: Order) -> (Reference<'_>, usize) {
        let what = format!("seed {}, {name}, {:?}", self.seed, self.config.timing);
        let reference = Reference::new(&self.config, &self.requests, naive).run();
        let geometry = self.config.layout();
        let heard = play(self.engine(order.clone(), Vec::new()), &self.requests, &geometry);
        let unheard = play(self.engine(order, ()), &self.requests, &geometry);
        let ends: Vec<u64> = reference.end.iter().map(|end| end.unwrap()).collect();
        for played in [&heard, &unheard] {
            assert_eq!(played.ends, ends, "{what}: requests");
            assert_eq!(played.dies, reference.die_busy, "{what}: dies");
            assert_eq!(played.channels, reference.bus_busy, "{what}: buses");
        }
        assert_eq!(heard.told.len(), reference.operations.len(), "{what}: operations told");
        for op in &reference.operations {
            let (told, before) = heard.told[&(op.request, op.entry, op.copy, op.kind as u8)];
            let expected = (op.start.unwrap(), op.end.unwrap(), op.die, op.class, op.page);
            let found = (told.start.0, told.end.0, told.die as usize, told.class, told.ppn.map(|ppn| ppn.0));
            assert_eq!(found, expected, "{what}: start, end, die, class and page of {told:?}");
            // An end was told before the engine was run past it; a bus that takes no time breaks that.
            let in_time = before < told.end.0 || self.config.timing.bus_rate.0.is_none();
            assert!(in_time, "{what}: {told:?} was told after the engine had run until {before}");
        }
        let overtaken = reference
            .operations
            .iter()
            .enumerate()
            .filter(|(at, op)| reference.operations[..*at].iter().any(|old| old.die == op.die && old.start > op.start))
            .count();
        (reference, overtaken)
    }
}

#[test]
fn every_operation_ends_when_the_reference_model_says() {
    let (mut operations, mut copies, mut across) = (0, 0, 0);
    for seed in 0..300 {
        let case = Case::random(seed);
        let (reference, overtaken) = case.compare("fifo", Fifo, Order::OfIssue);
        assert_eq!(overtaken, 0, "seed {seed}: fifo");
        let all = &reference.operations;
        operations += all.len();
        copies += all.iter().filter(|op| op.copy > 1).count();
        across += all.iter().filter(|op| op.depends_on.is_some_and(|awaited| all[awaited].die != op.die)).count();
    }
    println!("{operations} operations, {copies} of them in runs, {across} wait for another die's");
    assert!(operations > 40_000 && copies > 10_000 && across > 3_000, "{operations}, {copies}, {across}: too easy");
}

pub fn naive_by_class(passed_max: u32, dies: usize) -> Order {
    let mut passed = vec![0; dies];
    let rank = |op: &Operation| match op.class {
        OpClass::HostRead | OpClass::Mapping => 0,
        OpClass::HostWrite => 1,
        OpClass::Cleaning | OpClass::WearLevelling => 2,
    };
    Order::By(Box::new(move |die, all: &[&Operation]| {
        let best = (0..all.len()).min_by_key(|at| (rank(all[*at]), *at)).unwrap();
        let at = if passed[die] < passed_max { best } else { 0 };
        passed[die] = if at == 0 { 0 } else { passed[die] + 1 };
        at
    }))
}

#[test]
fn other_orders_agree_with_the_reference_model() {
    let mut overtaken = [0; 4];
    for seed in 1000..1250 {
        let case = Case::random(seed);
        let dies = case.config.layout().dies() as usize;
        let limit = u32::try_from(seed % 4).unwrap();
        let reads_first = HostReadsFirst { limit, passed: vec![0; dies] };
        overtaken[0] += case.compare("host reads first", reads_first, naive_host_reads_first(limit, dies)).1;
        overtaken[1] += case.compare("scrambled", Scrambled, naive_scrambled()).1;
        overtaken[2] += case.compare("oldest", Oldest, Order::By(Box::new(|_, _| 0))).1;
        let by_class = ByClass::new(1 + limit, dies);
        overtaken[3] += case.compare("by class", by_class, naive_by_class(1 + limit, dies)).1;
    }
    println!("{overtaken:?} operations went past an older one");
    assert!(overtaken.iter().all(|count| *count > 1_000), "{overtaken:?}: too easy");
}

/// What holds an operation back under an order that would take it: each pair on one die, the second a read of the host
/// unless it can't be. The order takes the youngest.
#[test]
fn an_operation_goes_past_another_unless_it_must_follow() {
    #[derive(Clone)]
    struct Youngest;
    impl DieOrder for Youngest {
        fn next(&mut self, _die: usize, ready: &Ready<'_>) -> Choice {
            ready.iter().last().unwrap().0
        }
    }
    let case = Case::random(0);
    let geometry = Geometry::new(1, 1, 1, 4, 4, Bytes(4096));
    let op = |kind, page| FlashOp { ppn: Ppn(page), kind, cause: CAUSE[0], after: 0, copies: 0 };
    let run = |page| FlashOp { copies: 1, ..op(OpKind::Program, page) };
    let waits = |op| FlashOp { after: 1, ..op };
    let (read, program, erase) = (OpKind::Read, OpKind::Program, OpKind::Erase);
    for (first, second, passes) in [
        (op(read, 0), op(read, 0), true),
        (op(read, 0), waits(op(read, 1)), false),
        (op(program, 1), op(read, 0), true),
        (op(program, 1), op(read, 1), false),
        (op(program, 1), op(OpKind::OobRead, 1), false),
        (op(program, 0), op(program, 1), false),
        (op(program, 0), op(program, 4), true),
        (op(read, 0), op(program, 1), true),
        (op(read, 1), op(erase, 0), false),
        (op(read, 4), op(erase, 0), true),
        (op(erase, 0), op(read, 1), false),
        (op(erase, 0), op(erase, 4), true),
        // A run reads who knows what.
        (run(4), op(erase, 8), false),
        (op(program, 0), run(4), false),
        (op(read, 0), run(4), true),
    ] {
        let mut engine = case_engine(&geometry, &case, Youngest);
        engine.issue(0, 0, &[first, second], &geometry);
        engine.next_completion(u64::MAX);
        let starts = |entry| engine.observer.iter().find(|op| op.entry == entry).unwrap().start;
        assert_eq!(starts(1) < starts(0), passes, "{second:?} past {first:?}");
    }
}

fn case_engine<O: DieOrder>(geometry: &Geometry, case: &Case, order: O) -> Parallel<O, Vec<EndedOp>> {
    Parallel::new(geometry, case.config.times(), 0, order, Vec::new())
}

/// A request that comes at the very moment when a die is free still has its say, and one that comes while the die works too.
#[test]
fn what_comes_while_a_die_works_is_considered() {
    let case = Case::random(0);
    let geometry = Geometry::new(1, 1, 1, 4, 4, Bytes(4096));
    let op = |kind, page| FlashOp { ppn: Ppn(page), kind, cause: CAUSE[0], after: 0, copies: 0 };
    let program_takes = case.config.times().alone(OpKind::Program);
    for comes in [1, program_takes - 1, program_takes] {
        let order = HostReadsFirst { limit: 1, passed: vec![0] };
        let mut engine = case_engine(&geometry, &case, order);
        engine.issue(0, 0, &[op(OpKind::Program, 0), op(OpKind::Program, 1)], &geometry);
        assert_eq!(engine.next_completion(comes), None);
        let read = engine.issue(comes, 0, &[op(OpKind::Read, 8)], &geometry);
        let ends = program_takes + case.config.times().alone(OpKind::Read);
        assert_eq!(engine.next_completion(u64::MAX), Some((read, ends)), "a read that comes at {comes}");
    }
}
