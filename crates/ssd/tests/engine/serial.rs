//! The serial engine's ends of operations: those of the parallel engine on one die that gets one request after the other.

use super::random_config;
use crate::common::*;
use flashwright_block::{Bytes, chance};
use flashwright_ftl::{FlashOp, OP_KINDS, OpKind};
use flashwright_nand::{Geometry, Ppn};
use flashwright_ssd::engine::{EndedOp, Parallel, Serial, Work};

/// Operations by kind, with those of runs.
fn counts(ops: &[FlashOp]) -> [u64; OP_KINDS] {
    let mut counts = [0; OP_KINDS];
    for op in ops {
        counts[op.kind as usize] += u64::from(op.copies.max(1));
        counts[OpKind::Read as usize] += u64::from(op.copies);
    }
    counts
}

#[test]
fn serial_ends_are_those_of_one_die_that_does_one_request_after_the_other() {
    let mut operations = 0;
    for seed in 0..100 {
        let mut rng = rng(seed);
        let (geometry, times) = (Geometry::new(1, 1, 1, 4, 5, Bytes(4096)), random_config(&mut rng).times());
        let mut serial = Serial::new(&times, 0, Vec::<EndedOp>::new());
        let mut unheard = Serial::new(&times, 0, ());
        let mut parallel = Parallel::new(&geometry, times, 0, Vec::<EndedOp>::new());
        let (mut free_at, mut arrival) = (0, 0);
        for _ in 0..50 {
            arrival += u64::from(draw(&mut rng, 1_000_000));
            let ops: Vec<FlashOp> = (0..1 + draw(&mut rng, 6))
                .map(|_| {
                    let copies = if chance(&mut rng, 0.3) { 1 + draw(&mut rng, geometry.pages_per_block()) } else { 0 };
                    let kind = if copies > 0 { OpKind::Program } else { *pick(&mut rng, &KIND) };
                    let ppn = Ppn(draw(&mut rng, 4) * geometry.pages_per_block());
                    FlashOp { ppn, kind, cause: *pick(&mut rng, &CAUSE), after: 0, copies }
                })
                .collect();
            let work =
                Work { totals: [[0; OP_KINDS], counts(&ops), counts(&ops)], log: &ops, background_at: ops.len() };
            // The request's number is the slot of the other engine, where there is only one at a time.
            let served = serial.serve(arrival, 0, 0, work, &geometry);
            assert_eq!(served, unheard.serve(arrival, 0, 0, work, &geometry), "seed {seed}: heard and unheard");
            let slot = parallel.issue(arrival.max(free_at), 0, &ops, &geometry);
            assert_eq!(parallel.next_completion(u64::MAX), Some((slot, served.1)), "seed {seed}");
            free_at = served.1;
        }
        assert_eq!(serial.observer, parallel.observer, "seed {seed}: ends");
        assert_eq!(serial.busy(), parallel.busy().dies[0], "seed {seed}: busy");
        operations += serial.observer.len();
    }
    assert!(operations > 10_000, "{operations} operations: too easy");
}

/// 50 us to read, 200 us to program, 102.4 us to transfer. A request that reads and leaves a program in the background, with
/// a latency of 7 us: it ends at 50 + 102.4 + 7, the program follows, and then comes the next request's read.
#[test]
fn serial_work_in_the_background_follows_the_end_of_its_request() {
    let config = config(&shape(1, 1, 1, 16, 4, 40));
    let geometry = config.layout();
    let mut serial = Serial::new(&config.times(), 7_000, Vec::<EndedOp>::new());
    let op = |kind| FlashOp { ppn: Ppn(0), kind, cause: CAUSE[0], after: 0, copies: 0 };
    let log = [op(OpKind::Read), op(OpKind::Program)];
    let work = Work { totals: [[5, 5, 5, 5], [6, 5, 5, 5], [6, 6, 5, 5]], log: &log, background_at: 1 };
    assert_eq!(serial.serve(0, 0, 10, work, &geometry), (0, 159_400));
    assert_eq!(serial.serve(1_000, 0, 11, work, &geometry), (461_800, 621_200));
    let found: Vec<_> = serial.observer.iter().map(|op| (op.request, op.entry, op.start.0, op.end.0)).collect();
    let expected =
        [(10, 0, 0, 152_400), (10, 1, 159_400, 461_800), (11, 0, 461_800, 614_200), (11, 1, 621_200, 923_600)];
    assert_eq!(found, expected);
}
