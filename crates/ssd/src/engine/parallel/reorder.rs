//! The part of the engine that serves an order that reorders.
//!
//! Under [`Fifo`](crate::engine::Fifo) what a die takes next is known when the end of its last operation is: at the last
//! grant of the bus, some time before that end. An order that reorders must not choose so early, for what is issued
//! meanwhile has its say. So here a die *decides* when it is free, after the completions of that moment and what they bring, and
//! before its grants. Dies keep no entry while they wait for another die: an entry is taken only when it can start.
//!
//! Runs of copies are written out, so that others can pass between the operations of a run. It costs an entry each.

use super::pending::{Pending, Ready};
use super::queue::{NEVER, NONE, Queued, What};
use super::{Parallel, Want};
use crate::engine::{DieOrder, Observer, OpClass};
use flashwright_ftl::{FlashOp, OpKind};
use flashwright_nand::{Geometry, Ppn};
use serde::{Deserialize, Serialize};

/// What waits for the dies, and when these decide; empty under an order that does not reorder.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Desk {
    /// By die, in order of issue.
    waiting: Vec<Vec<Pending>>,
    /// By die, when it decides next, or [`NEVER`].
    decides_at: Vec<u64>,
}

impl Desk {
    pub fn new(geometry: &Geometry) -> Self {
        let dies = geometry.dies() as usize;
        Self { waiting: vec![Vec::new(); dies], decides_at: vec![NEVER; dies] }
    }

    /// Whether anything waits for a die.
    pub fn has_work(&self, die: usize) -> bool {
        self.waiting.get(die).is_some_and(|waiting| !waiting.is_empty())
    }
}

impl<O: DieOrder, W: Observer> Parallel<O, W> {
    /// Puts the operations of a request where their dies choose from, runs of copies written out.
    pub(super) fn issue_to_desk(&mut self, now: u64, slot: u32, ops: &[FlashOp], geometry: &Geometry) {
        let mut entries = 0;
        for (at, op) in ops.iter().enumerate() {
            let die = geometry.die_of(op.ppn).index();
            let (waits_for, sets) = if self.cells.none() { (NONE, NONE) } else { self.cells.of(at, ops, geometry) };
            let (class, block) = (OpClass::of(op), geometry.block_of(op.ppn).0);
            let parts = (2 * op.copies).max(1);
            for part in 0..parts {
                let copied = part / 2;
                let kind = if op.copies > 0 && part % 2 == 0 { OpKind::Read } else { op.kind };
                let copy = if op.copies > 0 { u16::try_from(copied + 1).expect("a run lies in a block") } else { 0 };
                let entry = Queued {
                    sequence: self.sequence,
                    slot,
                    waits_for: if part == 0 { waits_for } else { NONE },
                    sets: if part + 1 == parts { sets } else { NONE },
                    left: 1,
                    what: What::new(kind as u8, class, copy, Ppn(op.ppn.0 + copied)),
                };
                let behind = if part == 0 { op.after } else { 0 };
                self.desk.waiting[die].push(Pending { entry, block, behind });
            }
            entries += parts;
            self.sequence += 1;
            if self.dies[die].idle {
                self.decide_by(die, now);
            }
        }
        self.slots[slot as usize].left = entries;
    }

    /// Makes a die that is idle, or will be when its array is done, decide by `at`.
    fn decide_by(&mut self, die: usize, at: u64) {
        let decides_at = &mut self.desk.decides_at[die];
        *decides_at = (*decides_at).min(at.max(self.dies[die].free_at));
    }

    /// When a die decides next, if that is not after `limit`.
    pub(super) fn next_decision(&self, limit: u64) -> Option<u64> {
        self.desk.decides_at.iter().copied().min().filter(|at| *at <= limit && *at != NEVER)
    }

    /// Lets the dies take what their order chooses at `now`.
    pub(super) fn decide(&mut self, now: u64) {
        for die in 0..self.dies.len() {
            if self.desk.decides_at[die] != now {
                continue;
            }
            self.desk.decides_at[die] = NEVER;
            let waiting = &self.desk.waiting[die];
            let Some(ready) = Ready::new(waiting, &self.cells, now) else {
                // All wait for other dies. Those whose ends are not known yet come back by `reconsider`.
                let ends = waiting.iter().map(|pending| pending.entry.waits_for).filter(|cell| *cell != NONE);
                self.desk.decides_at[die] =
                    ends.map(|cell| self.cells.end(cell)).filter(|end| *end > now).min().unwrap_or(NEVER);
                continue;
            };
            let choice = self.order.next(die, &ready);
            let Pending { entry, .. } = self.desk.waiting[die].remove(choice.0);
            let state = &mut self.dies[die];
            (state.idle, state.current) = (false, entry);
            if self.start(die, now) {
                self.leave(die);
            }
            self.choose(self.channel_of[die] as usize);
        }
    }

    /// The current entry of a die was granted its last phase: the die decides again when that is over.
    pub(super) fn leave(&mut self, die: usize) {
        self.dies[die].idle = true;
        self.wants[die] = Want::NOTHING;
        if !self.desk.waiting[die].is_empty() {
            self.decide_by(die, 0);
        }
    }

    /// What others wait for ends at `end`: dies with nothing to do look again then.
    pub(super) fn reconsider(&mut self, end: u64) {
        for die in 0..self.dies.len() {
            if self.dies[die].idle && !self.desk.waiting[die].is_empty() {
                self.decide_by(die, end);
            }
        }
    }
}
