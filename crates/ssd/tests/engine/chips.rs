//! The engine of chip commands alone: with random operations against the reference model, and worked by hand.

use super::orders::naive_by_class;
use super::random_config;
use super::reference::{Order, Reference};
use crate::common::*;
use flashwright_block::{Rng, chance};
use flashwright_ftl::{Cause, FlashOp, OpKind};
use flashwright_nand::{Geometry, Ppn};
use flashwright_ssd::engine::{Awaits, Chips};
use flashwright_ssd::{DieOrderName, DriveConfig};
use std::collections::BTreeMap;

type Requests = Vec<(u64, Vec<FlashOp>)>;

fn op(kind: OpKind, page: u32) -> FlashOp {
    FlashOp { ppn: Ppn(page), kind, cause: Cause::Host, after: 0, copies: 0 }
}

/// Operations that keep the chip's law: few blocks, pages programmed in order, no page read twice in a request.
struct Writer {
    /// By block, the next page to program.
    next: BTreeMap<u32, u32>,
}

impl Writer {
    fn request(&mut self, rng: &mut Rng, geometry: &Geometry) -> Vec<FlashOp> {
        let (pages, per_die) = (geometry.pages_per_block(), geometry.pages() / geometry.dies());
        let mut ops: Vec<FlashOp> = Vec::new();
        for _ in 0..draw(rng, 8) {
            let first = draw(rng, geometry.dies()) * per_die + draw(rng, 3) * pages;
            let next = self.next.entry(first).or_default();
            let wanted = *pick(rng, &[OpKind::Read, OpKind::OobRead, OpKind::Read, OpKind::Program, OpKind::Program, OpKind::Erase]);
            let (kind, page) = match wanted {
                OpKind::Program if *next == pages => (OpKind::Erase, 0),
                OpKind::Read | OpKind::OobRead if *next == 0 => (OpKind::Program, 0),
                OpKind::Read | OpKind::OobRead => (wanted, draw(rng, *next)),
                _ => (wanted, *next),
            };
            let (kind, page) = if kind == OpKind::Erase { (kind, 0) } else { (kind, page) };
            *next = match kind {
                OpKind::Program => *next + 1,
                OpKind::Erase => 0,
                _ => *next,
            };
            let ppn = first + page;
            let reads = |kind| matches!(kind, OpKind::Read | OpKind::OobRead);
            if reads(kind) && ops.iter().any(|other| other.ppn.0 == ppn && reads(other.kind)) {
                continue; // it would join the other
            }
            let cause = if chance(rng, 0.5) { Cause::Host } else { *pick(rng, &CAUSE) };
            let after = if chance(rng, 0.4) { draw(rng, u32::try_from(ops.len()).unwrap() + 1) } else { 0 };
            ops.push(FlashOp { cause, after, ..op(kind, ppn) });
        }
        ops
    }
}

fn play(config: &DriveConfig, requests: &Requests) -> (Vec<u64>, Chips) {
    let geometry = config.layout();
    let mut engine = Chips::new(config, 0);
    let (mut ends, mut in_slot) = (vec![0; requests.len()], BTreeMap::new());
    let arrivals = requests.iter().map(|(arrival, _)| *arrival).chain([u64::MAX]);
    for (at, until) in arrivals.enumerate() {
        while let Some((slot, end)) = engine.next_completion(until) {
            ends[in_slot[&slot]] = end;
        }
        if let Some((_, ops)) = requests.get(at) {
            in_slot.insert(engine.issue(until, 0, ops, Awaits::Request, &geometry, |_| false), at);
        }
    }
    (ends, engine)
}

#[test]
fn orders_and_suspensions_agree_with_the_reference_model() {
    let (mut operations, mut suspended) = (0, 0);
    for seed in 0..1_000 {
        let mut rng = rng(seed);
        let suspends = *pick(&mut rng, &["nothing", "erases", "programs-and-erases"]);
        let order = *pick(&mut rng, &["fifo", "by-class"]);
        let config = random_config(&mut rng)
            .with_settings(&[
                "host.queue-depth=65536".to_owned(),
                "timing.pipelined=true".to_owned(),
                format!("timing.die-order={order}"),
                format!("timing.passed-max={}", 1 + draw(&mut rng, 4)),
                format!("chips.suspends={suspends}"),
                format!("chips.suspend={} ns", pick(&mut rng, &[0, 1_000, 50_000])),
                format!("chips.resume={} ns", pick(&mut rng, &[0, 3_000, 50_000])),
                format!("chips.run-least={} ns", pick(&mut rng, &[0, 7_000, 100_000])),
                format!("chips.suspensions-max={}", 1 + draw(&mut rng, 3)),
            ])
            .unwrap();
        let geometry = config.layout();
        let mut writer = Writer { next: BTreeMap::new() };
        let (mut arrival, burst) = (0, *pick(&mut rng, &[0.3, 0.7, 0.95]));
        let requests: Requests = (0..40)
            .map(|_| {
                if !chance(&mut rng, burst) {
                    let odd = u64::from(draw(&mut rng, 2_000_000));
                    arrival += if chance(&mut rng, 0.7) { u64::from(draw(&mut rng, 60)) * 50_000 } else { odd };
                }
                (arrival, writer.request(&mut rng, &geometry))
            })
            .collect();
        let naive = match config.timing.die_order {
            DieOrderName::Fifo => Order::By(Box::new(|_, _| 0)),
            DieOrderName::ByClass => naive_by_class(config.timing.passed_max, geometry.dies() as usize),
        };
        let reference = Reference::new(&config, &requests, naive).run();
        let (ends, engine) = play(&config, &requests);
        let expected: Vec<u64> = reference.end.iter().map(|end| end.unwrap()).collect();
        let what = format!("seed {seed}, {order}, {:?}, {:?}", config.timing, config.chips);
        assert_eq!(ends, expected, "{what}: requests");
        let busy = engine.busy();
        assert_eq!(busy.dies.iter().map(|time| time.0).collect::<Vec<_>>(), reference.die_busy, "{what}: dies");
        assert_eq!(busy.channels.iter().map(|time| time.0).collect::<Vec<_>>(), reference.bus_busy, "{what}: buses");
        let counted: u32 = reference.operations.iter().map(|op| op.suspensions).sum();
        let figures = engine.figures();
        assert_eq!(figures.programs_suspended + figures.erases_suspended, u64::from(counted), "{what}: suspensions");
        operations += reference.operations.len();
        suspended += counted;
    }
    println!("{operations} operations, {suspended} suspensions");
    assert!(operations > 100_000 && suspended > 4_000, "{operations}, {suspended}: too easy");
}
