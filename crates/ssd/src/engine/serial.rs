//! One operation at a time, in order (`timing.model = "serial"`).

use super::{EndedOp, Observer, OpClass};
use flashwright_block::Nanos;
use flashwright_config::Times;
use flashwright_ftl::{FlashOp, OP_KINDS, OpKind};
use flashwright_nand::Geometry;
use serde::{Deserialize, Serialize};

/// The engine. It works from counts alone; only `W`, which hears when each operation ended, needs a log.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Serial<W = ()> {
    /// Time of one operation, by [`OpKind`].
    alone: [u64; OP_KINDS],
    /// Time between the last operation of a request and its end.
    latency: u64,
    /// When the drive is free.
    free_at: u64,
    busy: u64,
    /// What hears of ends.
    pub observer: W,
}

/// What an observer receives as the request of operations that no request waits for.
pub const NO_REQUEST: u64 = u64::MAX;

/// What a request makes the flash do.
#[derive(Clone, Copy, Debug)]
pub struct Work<'a> {
    /// Operations so far by [`OpKind`]: before it, after what it waits for, and after what follows in the background.
    pub totals: [[u64; OP_KINDS]; 3],
    /// The operations one by one, those in the background from `background_at` on; read only if someone listens.
    pub log: &'a [FlashOp],
    /// Where in the log the background begins.
    pub background_at: usize,
}

impl<W: Observer> Serial<W> {
    /// An engine at rest. `latency` nanoseconds pass between the last operation of a request and its end.
    #[must_use]
    pub fn new(times: &Times, latency: u64, observer: W) -> Self {
        let alone = [OpKind::Read, OpKind::Program, OpKind::Erase, OpKind::OobRead].map(|kind| times.alone(kind));
        Self { alone, latency, free_at: 0, busy: 0, observer }
    }

    /// Serves a request that comes at `arrival` and answers when it starts and ends, `least` and the latency after its start at
    /// the earliest. What follows in the background keeps the next one waiting. All times are in nanoseconds; `request` is
    /// what the observer is told.
    #[inline(always)]
    pub fn serve(&mut self, arrival: u64, least: u64, request: u64, work: Work<'_>, geometry: &Geometry) -> (u64, u64) {
        let time_of = |from: &[u64; OP_KINDS], to: &[u64; OP_KINDS]| -> u64 {
            (0..OP_KINDS).map(|kind| (to[kind] - from[kind]) * self.alone[kind]).sum()
        };
        let [before, awaited, after] = &work.totals;
        let (awaited, background) = (time_of(before, awaited), time_of(awaited, after));
        let start = arrival.max(self.free_at);
        let end = start + self.latency + awaited.max(least);
        self.free_at = end + background;
        self.busy += awaited + background;
        if self.observer.listens() {
            let (awaited, background) = work.log.split_at(work.background_at);
            self.tell(start, request, 0, awaited, geometry);
            self.tell(end, request, awaited.len(), background, geometry);
        }
        (start, end)
    }

    /// Performs operations that no request waits for, at `at` or once the drive is free. `totals` are the operations so far by
    /// [`OpKind`], before them and after.
    #[cold]
    pub fn work(&mut self, at: u64, totals: [&[u64; OP_KINDS]; 2], log: &[FlashOp], geometry: &Geometry) {
        let [before, after] = totals;
        let time: u64 = (0..OP_KINDS).map(|kind| (after[kind] - before[kind]) * self.alone[kind]).sum();
        let start = at.max(self.free_at);
        self.free_at = start + time;
        self.busy += time;
        if self.observer.listens() {
            self.tell(start, NO_REQUEST, 0, log, geometry);
        }
    }

    /// When the drive is free.
    #[must_use]
    pub fn free_at(&self) -> u64 {
        self.free_at
    }

    /// Tells of operations one after the other, from `at` on; the first is number `first` of its request.
    fn tell(&mut self, mut at: u64, request: u64, first: usize, ops: &[FlashOp], geometry: &Geometry) {
        for (entry, op) in (first..).zip(ops) {
            for part in 0..(2 * op.copies).max(1) {
                let reads = op.copies > 0 && part % 2 == 0;
                let kind = if reads { OpKind::Read } else { op.kind };
                let start = at;
                at += self.alone[kind as usize];
                self.observer.ended(EndedOp {
                    request,
                    entry: u32::try_from(entry).expect("a request's operations fit 32 bits"),
                    copy: if op.copies > 0 { part / 2 + 1 } else { 0 },
                    ppn: (!reads).then_some(flashwright_nand::Ppn(op.ppn.0 + part / 2)),
                    kind,
                    class: OpClass::of(op),
                    die: geometry.die_of(op.ppn).0,
                    start: Nanos(start),
                    end: Nanos(at),
                });
            }
        }
    }

    /// How long the flash worked: one figure, as if it were one die.
    #[must_use]
    pub fn busy(&self) -> Nanos {
        Nanos(self.busy)
    }
}
