//! What waits for a die, and the operations and requests that it belongs to.

use super::phases::COPY;
use crate::engine::{EndedOp, OpClass};
use flashwright_block::Nanos;
use flashwright_ftl::{FlashOp, OP_KINDS, OpKind};
use flashwright_nand::{Geometry, Ppn};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

pub(super) const NEVER: u64 = u64::MAX;
pub(super) const NONE: u32 = u32::MAX;

/// An entry in the queue of its die: an operation, or a run of copies.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Queued {
    /// Issue order over the whole drive: settles ties.
    pub sequence: u64,
    /// The request it belongs to.
    pub slot: u32,
    /// The cell that must be set before it starts, or [`NONE`].
    pub waits_for: u32,
    /// The cell that it sets when its end is known, or [`NONE`].
    pub sets: u32,
    /// Operations, or copies.
    pub left: u32,
    pub what: What,
}

/// What an entry does. Packed: entries are written more often than read.
///
/// ```text
///   bits   0..8   OpKind or COPY
///          8..16  class
///         16..32  0
///         32..64  the page: of an erase the first of its block, of a run the first it programs
/// ```
///
/// All but the kind are 0 where no observer looks at them.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct What(u64);

impl What {
    #[inline(always)]
    pub fn only(kind: u8) -> Self {
        Self(u64::from(kind))
    }

    #[inline(always)]
    pub fn new(kind: u8, class: OpClass, ppn: Ppn) -> Self {
        Self(u64::from(kind) | (class as u64) << 8 | u64::from(ppn.0) << 32)
    }

    /// [`OpKind`] or [`COPY`], as a number.
    #[inline(always)]
    pub fn kind(self) -> u8 {
        self.0 as u8
    }

    pub fn class(self) -> OpClass {
        OpClass::ALL[usize::from((self.0 >> 8) as u8)]
    }

    pub fn ppn(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// [`OpKind`]s by number.
pub(super) const KINDS: [OpKind; OP_KINDS] = [OpKind::Read, OpKind::Program, OpKind::Erase, OpKind::OobRead];

impl Queued {
    /// What an observer hears of it, or of one part of a copy: the `kind` part of copy `copy`, if that is not 0. `first`
    /// is the sequence number of its request.
    pub fn ended(&self, first: u64, copy: u32, kind: OpKind, die: usize, start: u64, end: u64) -> EndedOp {
        // The pages of a run follow each other.
        let ppn = self.what.ppn() + if self.what.kind() == COPY { copy - 1 } else { 0 };
        EndedOp {
            request: u64::from(self.slot),
            entry: u32::try_from(self.sequence - first).expect("a request's operations fit 32 bits"),
            copy,
            ppn: (copy == 0 || kind == OpKind::Program).then_some(Ppn(ppn)),
            kind,
            class: self.what.class(),
            die: u32::try_from(die).expect("dies are counted in 32 bits"),
            start: Nanos(start),
            end: Nanos(end),
        }
    }
}

/// An entry is copied more often than anything else here.
const _: () = assert!(size_of::<Queued>() == 32);

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Die {
    /// The entry being served; meaningless while `idle`.
    pub current: Queued,
    pub idle: bool,
    /// When the operations granted so far leave the die.
    pub free_at: u64,
    /// When the current entry took the die.
    pub started: u64,
    pub busy: u64,
    /// The cell that the current entry waits for, or [`NONE`].
    pub blocked_on: u32,
    /// What waits, in order of issue.
    pub queue: VecDeque<Queued>,
}

/// A request in flight.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Slot {
    /// Entries that have not ended.
    pub left: u32,
    pub end: u64,
    /// Issue order: settles ties between completions.
    pub sequence: u64,
}

/// Bits of a slot in [`done_key`].
const SLOT_BITS: u32 = 24;
pub(super) const SLOT_MAX: u32 = (1 << SLOT_BITS) - 1;

/// Orders completions by end, then by issue.
#[inline(always)]
pub(super) fn done_key(end: u64, sequence: u64, slot: u32) -> u128 {
    debug_assert!(slot <= SLOT_MAX && sequence < 1 << (64 - SLOT_BITS));
    u128::from(end) << 64 | u128::from(sequence << SLOT_BITS | u64::from(slot))
}

/// Completions to come, in order. Only what was granted and has not ended is here, at most about one a die, and most of what
/// comes ends last: so a sorted list that is filled from its end beats a heap.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Done {
    /// See [`done_key`]; those before `next` have been taken.
    keys: Vec<u128>,
    next: usize,
    /// The time of the first, or [`NEVER`].
    pub first_at: u64,
}

impl Done {
    pub fn new() -> Self {
        Self { keys: Vec::new(), next: 0, first_at: NEVER }
    }

    /// Takes the first, which there is, and answers its slot.
    #[inline(always)]
    pub fn take(&mut self) -> u32 {
        let slot = self.keys[self.next] as u32 & SLOT_MAX;
        self.next += 1;
        match self.keys.get(self.next) {
            Some(key) => self.first_at = (*key >> 64) as u64,
            None => {
                self.keys.clear();
                (self.next, self.first_at) = (0, NEVER);
            }
        }
        slot
    }

    #[inline(always)]
    pub fn add(&mut self, key: u128) {
        if self.keys.len() == self.keys.capacity() {
            self.make_room();
        }
        self.keys.push(key);
        self.first_at = self.first_at.min((key >> 64) as u64);
        let mut place = self.keys.as_mut_slice();
        // Those that come later move up. The key stays in registers: what was just written in two halves is read whole with a stall.
        while let [rest @ .., before, last] = place
            && rest.len() >= self.next
            && key < *before
        {
            *last = *before;
            let shorter = place.len() - 1;
            place = &mut place[..shorter];
        }
        if let Some(last) = place.last_mut() {
            *last = key;
        }
    }

    /// Moves what is left to the front, or grows where little was taken.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self) {
        self.keys.drain(..self.next);
        self.next = 0;
        self.keys.reserve(2 * self.keys.len() + 16);
    }
}

/// The end of an operation that others on other dies wait for.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Cell {
    end: u64,
    waiters: u32,
}

/// The cells, and which operations of the request being issued have one.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Cells {
    cells: Vec<Cell>,
    free: Vec<u32>,
    /// By position in the request's log, a cell or [`NONE`]; empty if it has none.
    #[serde(skip)]
    of: Vec<u32>,
}

impl Cells {
    /// Makes a cell for each operation that one on another die waits for. On the same die the queue sees to it.
    #[inline]
    pub fn make(&mut self, ops: &[FlashOp], geometry: &Geometry) {
        self.of.clear();
        // What was issued before needs no cell: on the same die the queue serves, on others nothing may wait for it.
        for at in 1..ops.len() {
            let op = &ops[at];
            if op.after == 0 || op.after as usize > at {
                continue;
            }
            let before = at - op.after as usize;
            if geometry.die_of(ops[before].ppn) == geometry.die_of(op.ppn) {
                continue;
            }
            self.count_waiter(before, ops.len());
        }
    }

    /// One more waits for the operation at `before`, of `len`.
    #[inline(never)]
    fn count_waiter(&mut self, before: usize, len: usize) {
        if self.of.is_empty() {
            self.of.resize(len, NONE);
        }
        if self.of[before] == NONE {
            let fresh = Cell { end: NEVER, waiters: 0 };
            let cell = self.free.pop().unwrap_or_else(|| {
                self.cells.push(fresh);
                u32::try_from(self.cells.len() - 1).expect("cells in flight fit 32 bits")
            });
            self.cells[cell as usize] = fresh;
            self.of[before] = cell;
        }
        self.cells[self.of[before] as usize].waiters += 1;
    }

    /// Whether no operation of the request has a cell.
    #[inline(always)]
    pub fn none(&self) -> bool {
        self.of.is_empty()
    }

    /// The cells that operation `at` waits for and sets, if some operation has one. One that waits for an operation on its own die waits for no
    /// cell, even if that operation has one for other dies: it was not counted among the cell's waiters.
    #[inline(always)]
    pub fn of(&self, at: usize, ops: &[FlashOp], geometry: &Geometry) -> (u32, u32) {
        let before = at.checked_sub(ops[at].after as usize).unwrap_or(at);
        let same_die = geometry.die_of(ops[before].ppn) == geometry.die_of(ops[at].ppn);
        (if same_die { NONE } else { self.of[before] }, self.of[at])
    }

    /// When the operation of a cell ends, or [`NEVER`] while that is open.
    #[inline(always)]
    pub fn end(&self, cell: u32) -> u64 {
        self.cells[cell as usize].end
    }

    #[inline(always)]
    pub fn set(&mut self, cell: u32, end: u64) {
        self.cells[cell as usize].end = end;
    }

    /// One operation less waits for `cell`; the last returns it.
    #[inline(always)]
    pub fn release(&mut self, cell: u32) {
        let state = &mut self.cells[cell as usize];
        assert!(state.waiters > 0, "an operation waited for a cell that does not count it");
        state.waiters -= 1;
        if state.waiters == 0 {
            self.free.push(cell);
        }
    }

    /// Whether nothing waits for a cell.
    #[cfg(test)]
    pub fn all_free(&self) -> bool {
        self.free.len() == self.cells.len()
    }
}
