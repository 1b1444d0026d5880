//! What changes on the chips, in the order decided.

use super::{Checkpoints, Journal, Programmed, Record};
use crate::Cause;
use flashwright_nand::{BlockId, Divisor, Geometry, Lpn, Ppn};
use serde::{Deserialize, Serialize};

/// A change of the chips.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Change {
    /// The number of entries in the log with the operation that makes it; 0 if no log is kept.
    pub mark: u32,
    /// Its cause.
    pub cause: Cause,
    /// The blocks with what a program replaces: the copy before, and the record of a trim.
    pub replaces_in: Vec<BlockId>,
    /// What changes.
    pub what: Changed,
}

/// What a change does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Changed {
    /// A page is programmed.
    Program(Ppn, Programmed),
    /// A block is erased.
    Erase(BlockId),
    /// A block is taken out of use. It takes no operation.
    Retire(BlockId),
}

/// No page.
const NOWHERE: u32 = u32::MAX;

/// Numbers programs, and lists changes until somebody takes them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Tracker {
    /// The next sequence number.
    next: u64,
    /// By physical page, of its last program; it means nothing once the page is erased.
    sequences: Vec<u64>,
    versions: Vec<u64>,
    /// By logical page, and by page of the scheme's own tables: the last copy programmed, or [`NOWHERE`].
    places: Vec<u32>,
    pages_per_block: Divisor,
    /// Blocks with pages whose trims wait to be written.
    trimmed_in: Vec<BlockId>,
    /// Whether the next program is the host's page of a merge.
    is_in_merge: bool,
    pub journal: Journal,
    pub checkpoints: Option<Checkpoints>,
    #[serde(skip)]
    pub changes: Vec<Change>,
}

impl Tracker {
    pub fn new(logical_pages: u32, blocks: &[BlockId], geometry: &Geometry) -> Self {
        Self {
            next: 1,
            sequences: vec![0; geometry.pages() as usize],
            versions: vec![0; geometry.pages() as usize],
            places: vec![NOWHERE; logical_pages as usize],
            pages_per_block: Divisor::new(geometry.pages_per_block()),
            trimmed_in: Vec::new(),
            is_in_merge: false,
            journal: Journal::new(logical_pages, blocks, geometry),
            checkpoints: None,
            changes: Vec::new(),
        }
    }

    /// Sequence number and version of a programmed page.
    #[inline]
    pub fn numbers(&self, ppn: Ppn) -> (u64, u64) {
        (self.sequences[ppn.index()], self.versions[ppn.index()])
    }

    /// The number that the next program gets.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The next program is the host's page of a merge, so its request is answered only when the merge has ended. Its version gets a
    /// number of its own, so spare areas tell it from a page that was written by itself, whose version is the number of its program.
    pub fn in_merge(&mut self) {
        self.is_in_merge = true;
    }

    pub fn trimmed(&mut self, lpn: Lpn) {
        let sequence = self.next;
        self.next += 1;
        self.journal.trimmed(lpn.0, sequence);
        let place = self.places.get_mut(lpn.index()).map_or(NOWHERE, |place| std::mem::replace(place, NOWHERE));
        let block = BlockId(self.pages_per_block.of(place));
        if place != NOWHERE && self.trimmed_in.last() != Some(&block) {
            self.trimmed_in.push(block);
        }
    }

    /// A page was programmed, with new content or a copy of another page.
    #[allow(clippy::too_many_arguments)]
    pub fn programmed(
        &mut self,
        ppn: Ppn,
        owner: Lpn,
        copy_of: Option<Ppn>,
        page: Programmed,
        mark: u32,
        cause: Cause,
    ) {
        let new = self.next;
        self.next += u64::from(std::mem::take(&mut self.is_in_merge));
        let sequence = self.next;
        self.next += 1;
        let version = copy_of.map_or(new, |from| self.versions[from.index()]);
        (self.sequences[ppn.index()], self.versions[ppn.index()]) = (sequence, version);
        let mut replaces_in = if copy_of.is_none() { self.journal.written(owner.0) } else { Vec::new() };
        if owner != super::SYSTEM {
            let before = self.put(owner, ppn);
            replaces_in.extend(before.map(|before| BlockId(self.pages_per_block.of(before))));
            if before.is_none() && copy_of.is_some() {
                // Cleaning for the tables of a long trim moves pages that the trim has yet to reach: it holds for the copy too.
                self.trimmed(owner);
            }
        }
        let what = Changed::Program(ppn, Programmed { owner: owner.0, sequence, version, ..page });
        self.changes.push(Change { mark, cause, replaces_in, what });
    }

    /// A page has a new place; returns the one before.
    pub fn put(&mut self, owner: Lpn, ppn: Ppn) -> Option<u32> {
        if self.places.len() <= owner.index() {
            self.places.resize(owner.index() + 1, NOWHERE);
        }
        let before = std::mem::replace(&mut self.places[owner.index()], ppn.0);
        (before != NOWHERE).then_some(before)
    }

    /// The last copy programmed of a logical page, or of a page of the scheme's own tables.
    pub fn places(&self) -> &[u32] {
        &self.places
    }

    /// A page of a checkpoint was programmed.
    pub fn checkpointed(&mut self, ppn: Ppn, record: Record, mark: u32, cause: Cause) {
        let page = Programmed { record: Some(Box::new(record)), ..Programmed::default() };
        self.programmed(ppn, super::SYSTEM, None, page, mark, cause);
    }

    /// A page of the journal was programmed.
    pub fn recorded(&mut self, ppn: Ppn, record: Record, mark: u32, cause: Cause) {
        let page = Programmed { record: Some(Box::new(record)), ..Programmed::default() };
        self.programmed(ppn, super::SYSTEM, None, page, mark, cause);
        if let Some(change) = self.changes.last_mut() {
            change.replaces_in.clone_from(&self.trimmed_in);
        }
        if !self.journal.is_behind() {
            self.trimmed_in.clear();
        }
    }

    pub fn erased(&mut self, block: BlockId, mark: u32, cause: Cause) {
        self.changes.push(Change { mark, cause, replaces_in: Vec::new(), what: Changed::Erase(block) });
    }

    pub fn retired(&mut self, block: BlockId, mark: u32) {
        self.changes.push(Change { mark, cause: Cause::Host, replaces_in: Vec::new(), what: Changed::Retire(block) });
    }

    /// Power was lost: the numbers of pages are found anew.
    pub fn forget(&mut self) {
        self.sequences.fill(0);
        self.versions.fill(0);
        self.places.fill(NOWHERE);
        self.trimmed_in.clear();
        self.changes.clear();
        self.journal.forget();
        if let Some(checkpoints) = &mut self.checkpoints {
            checkpoints.forget();
        }
        self.next = 1;
    }

    /// A page was found when the drive was mounted.
    pub fn found(&mut self, ppn: Ppn, sequence: u64, version: u64) {
        (self.sequences[ppn.index()], self.versions[ppn.index()]) = (sequence, version);
        self.next = self.next.max(sequence + 1);
    }

    /// A trim was found when the drive was mounted.
    pub fn found_trim(&mut self, sequence: u64) {
        self.next = self.next.max(sequence + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trim_holds_for_a_copy_that_cleaning_makes_before_the_page_is_invalid() {
        let geometry = Geometry::new(1, 1, 1, 4, 4, flashwright_block::Bytes(4096));
        let mut tracker = Tracker::new(8, &[BlockId(2), BlockId(3)], &geometry);
        let page = Programmed::default;
        tracker.programmed(Ppn(0), Lpn(5), None, page(), 1, Cause::Host);
        tracker.trimmed(Lpn(5));
        let record = tracker.journal.next_trims();
        tracker.recorded(Ppn(8), record, 2, Cause::Translation);
        tracker.programmed(Ppn(4), Lpn(5), Some(Ppn(0)), page(), 3, Cause::Gc);
        assert_eq!(tracker.places()[5], NOWHERE, "a checkpoint must not name the copy");
        assert!(tracker.journal.is_behind(), "the block of the copy may be erased only once a trim is on flash");
        assert_eq!(tracker.trimmed_in, [BlockId(1)]);
    }
}
