//! What waits for a die under an order that reorders, and which of it may be taken.
//!
//! The translation layer relies on a die that works in order of issue. So an order gets to see an entry only if taking it
//! now breaks nothing, which is the case when
//!
//! 1. the operation on another die that it waits for has ended,
//! 2. nothing before it in the queue of its die must come first ([`Pending::must_follow`]).
//!
//! The oldest entry of a queue needs 1 alone, and what it waits for was issued before it. So over the whole drive the oldest entry
//! that is not yet taken can always be: no order brings the engine to a halt.

use super::queue::{Cells, KINDS, NONE, Queued};
use crate::engine::{Candidate, Choice};
use flashwright_ftl::OpKind;
use serde::{Deserialize, Serialize};

/// An entry that waits.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Pending {
    pub entry: Queued,
    /// The block of its page.
    pub block: u32,
    /// How many operations of its request lie between it and the one that it waits for, on the same die, plus 1; 0 if
    /// there is none.
    pub behind: u32,
}

impl Pending {
    fn kind(&self) -> OpKind {
        KINDS[usize::from(self.entry.what.kind())]
    }

    /// Whether it is the read of a copy: a run does not name the pages that it reads.
    fn reads_anything(&self) -> bool {
        self.entry.what.copy() > 0 && self.kind() == OpKind::Read
    }

    /// Whether it must come after `earlier`, which was issued to the same die before it. It must
    ///
    /// - if the log says that it waits for `earlier`, or if both belong to one run, which is a sequence;
    /// - if one of them erases the other's block;
    /// - if both program the same block, whose pages are programmed in order;
    /// - if it reads the page that `earlier` programs.
    ///
    /// A read of an unknown page counts as a read of each page of the die.
    fn must_follow(&self, earlier: &Pending) -> bool {
        if earlier.entry.sequence + u64::from(self.behind) == self.entry.sequence {
            return true;
        }
        let same_block = earlier.block == self.block || earlier.reads_anything() || self.reads_anything();
        match (earlier.kind(), self.kind()) {
            (OpKind::Erase, _) | (_, OpKind::Erase) => same_block,
            (OpKind::Program, OpKind::Program) => same_block,
            (OpKind::Program, _) => self.reads_anything() || earlier.entry.what.ppn() == self.entry.what.ppn(),
            (OpKind::Read | OpKind::OobRead, _) => false,
        }
    }
}

/// What a die may take next, oldest first. There is always something.
///
/// To find out whether an operation may be taken, all those before it are looked at; so ask for what you want by
/// [`Ready::first`], which looks at nothing else.
#[derive(Debug)]
pub struct Ready<'a> {
    waiting: &'a [Pending],
    cells: &'a Cells,
    now: u64,
    oldest: usize,
}

impl<'a> Ready<'a> {
    /// What of `waiting` may be taken at `now`, if anything.
    pub(super) fn new(waiting: &'a [Pending], cells: &'a Cells, now: u64) -> Option<Self> {
        let mut ready = Self { waiting, cells, now, oldest: 0 };
        ready.oldest = (0..waiting.len()).find(|at| ready.may_take(*at))?;
        Some(ready)
    }

    fn may_take(&self, at: usize) -> bool {
        let Pending { entry, .. } = self.waiting[at];
        (entry.waits_for == NONE || self.cells.end(entry.waits_for) <= self.now)
            && !self.waiting[..at].iter().any(|earlier| self.waiting[at].must_follow(earlier))
    }

    fn candidate(&self, at: usize) -> Candidate {
        let Pending { entry, .. } = &self.waiting[at];
        Candidate {
            kind: KINDS[usize::from(entry.what.kind())],
            class: entry.what.class(),
            slot: entry.slot,
            sequence: entry.sequence,
        }
    }

    /// The oldest.
    #[must_use]
    pub fn oldest(&self) -> Choice {
        Choice(self.oldest)
    }

    /// The oldest of those that are `wanted`.
    pub fn first(&self, mut wanted: impl FnMut(&Candidate) -> bool) -> Option<Choice> {
        (self.oldest..self.waiting.len()).find(|at| wanted(&self.candidate(*at)) && self.may_take(*at)).map(Choice)
    }

    /// All.
    pub fn iter(&self) -> impl Iterator<Item = (Choice, Candidate)> {
        (self.oldest..self.waiting.len()).filter(|at| self.may_take(*at)).map(|at| (Choice(at), self.candidate(at)))
    }
}
