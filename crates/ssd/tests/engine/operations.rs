//! The parallel engine alone, fed with random operations: heard and unheard, against the reference model, to the end of each
//! operation.

use super::random_config;
use super::reference::{Order, Reference};
use crate::common::*;
use flashwright_block::{Rng, chance};
use flashwright_ftl::{FlashOp, OpKind};
use flashwright_nand::{Geometry, Ppn};
use flashwright_ssd::DriveConfig;
use flashwright_ssd::engine::{EndedOp, Observer, Parallel};
use std::collections::BTreeMap;

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
    /// By request, entry, copy and kind: what was heard, and the time up to which the engine had been run before.
    operations: BTreeMap<(usize, u32, u32, u8), (EndedOp, u64)>,
    dies: Vec<u64>,
    channels: Vec<u64>,
}

fn play<W: Heard>(mut engine: Parallel<W>, requests: &Requests, geometry: &Geometry) -> Played {
    let mut played = Played { ends: vec![0; requests.len()], ..Played::default() };
    // By slot, the request; what was heard so far, and the time up to which the engine had been run when it was.
    let (mut in_slot, mut heard, mut before) = (BTreeMap::new(), 0, 0);
    let mut note = |engine: &Parallel<W>, in_slot: &BTreeMap<u32, usize>, now: u64| {
        for op in &engine.observer.heard()[heard..] {
            let request = in_slot[&u32::try_from(op.request).unwrap()];
            let again = played.operations.insert((request, op.entry, op.copy, op.kind as u8), (*op, before));
            assert_eq!(again, None, "heard twice");
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

    fn engine<W: Observer>(&self, observer: W) -> Parallel<W> {
        Parallel::new(&self.config.layout(), self.config.times(), 0, observer)
    }

    /// Compares the engine, heard and unheard, with the reference model, and answers that.
    fn compare(&self) -> Reference<'_> {
        let what = format!("seed {}, {:?}", self.seed, self.config.timing);
        let reference = Reference::new(&self.config, &self.requests, Order::OfIssue).run();
        let geometry = self.config.layout();
        let heard = play(self.engine(Vec::new()), &self.requests, &geometry);
        let unheard = play(self.engine(()), &self.requests, &geometry);
        let ends: Vec<u64> = reference.end.iter().map(|end| end.unwrap()).collect();
        for played in [&heard, &unheard] {
            assert_eq!(played.ends, ends, "{what}: requests");
            assert_eq!(played.dies, reference.die_busy, "{what}: dies");
            assert_eq!(played.channels, reference.bus_busy, "{what}: buses");
        }
        assert_eq!(heard.operations.len(), reference.operations.len(), "{what}: operations heard");
        for op in &reference.operations {
            let (operation, before) = heard.operations[&(op.request, op.entry, op.copy, op.kind as u8)];
            let expected = (op.start.unwrap(), op.end.unwrap(), op.die, op.class, op.page);
            let found = (
                operation.start.0,
                operation.end.0,
                operation.die as usize,
                operation.class,
                operation.ppn.map(|ppn| ppn.0),
            );
            assert_eq!(found, expected, "{what}: start, end, die, class and page of {operation:?}");
            // An end was told before the engine was run past it; a bus that takes no time breaks that.
            let in_time = before < operation.end.0 || self.config.timing.bus_rate.0.is_none();
            assert!(in_time, "{what}: {operation:?} was told after the engine had run until {before}");
        }
        reference
    }
}

#[test]
fn every_operation_ends_when_the_reference_model_says() {
    let (mut operations, mut copies, mut across) = (0, 0, 0);
    for seed in 0..300 {
        let case = Case::random(seed);
        let reference = case.compare();
        let all = &reference.operations;
        operations += all.len();
        copies += all.iter().filter(|op| op.copy > 1).count();
        across += all.iter().filter(|op| op.depends_on.is_some_and(|awaited| all[awaited].die != op.die)).count();
    }
    println!("{operations} operations, {copies} of them in runs, {across} wait for another die's");
    assert!(operations > 40_000 && copies > 10_000 && across > 3_000, "{operations}, {copies}, {across}: too easy");
}
