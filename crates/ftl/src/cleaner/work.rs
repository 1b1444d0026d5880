//! A clean or a recycling of a block, and its progress.

use crate::{Cause, Flash};
use flashwright_nand::{BlockId, Ppn};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Pages to be moved to one frontier, with their owners.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Moving {
    pub from: Vec<u32>,
    pub lpns: Vec<u32>,
}

impl Moving {
    /// Empties the lists for this many streams.
    #[inline]
    pub fn clear(lists: &mut Vec<Self>, streams: usize) {
        lists.resize(streams, Self::default());
        for list in lists {
            list.from.clear();
            list.lpns.clear();
        }
    }
}

/// Lists the valid pages of a block by the stream that each goes to.
#[inline]
pub(crate) fn list_pages(
    block: BlockId,
    moving: &mut [Moving],
    flash: &Flash,
    mut stream: impl FnMut(Ppn, u32) -> usize,
) {
    let first = flash.geometry().first_page(block).0;
    let spares = flash.nand().spares(block);
    let owner = |ppn: u32| spares[(ppn - first) as usize];
    if let [only] = moving {
        // Two separate loops are twice as fast; most drives have one stream.
        only.from.extend(flash.valid_pages(block).map(|ppn| ppn.0));
        only.lpns.extend(only.from.iter().map(|ppn| owner(*ppn)));
        for (ppn, lpn) in only.from.iter().zip(&only.lpns) {
            let stream = stream(Ppn(*ppn), *lpn);
            debug_assert_eq!(stream, 0, "there is one stream");
        }
        return;
    }
    for ppn in flash.valid_pages(block) {
        let lpn = owner(ppn.0);
        let list = &mut moving[stream(ppn, lpn)];
        list.from.push(ppn.0);
        list.lpns.push(lpn);
    }
}

/// A block that is being cleaned or recycled, and the progress.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Work {
    pub(super) block: BlockId,
    /// The cause that copies and the erase count under: wear for a recycling.
    pub(super) cause: Cause,
    /// The pages to move, by stream.
    pub(super) moving: Vec<Moving>,
    /// The next page to move: its stream and its index in that list.
    pub(super) stream: usize,
    pub(super) next: usize,
    /// Pages copied.
    pub(super) copied: u32,
    /// The block that takes the pages of a recycling, with its next page, until it is sealed.
    pub(super) into: Option<(BlockId, u32)>,
    pub(super) erased: bool,
    /// Pages of the map to be written, and how many of them are written.
    pub(super) pending: Vec<u32>,
    pub(super) written: usize,
    /// Whether the block was in the SLC cache.
    pub(super) folds: bool,
    /// Whether it has paused: pages may have become invalid since they were listed.
    pub(super) rested: bool,
}

impl Default for Work {
    fn default() -> Self {
        Self {
            block: BlockId(0),
            cause: Cause::Gc,
            moving: Vec::new(),
            stream: 0,
            next: 0,
            copied: 0,
            into: None,
            erased: false,
            pending: Vec::new(),
            written: 0,
            folds: false,
            rested: false,
        }
    }
}

impl Work {
    /// Begins work on a block whose pages are listed.
    pub(super) fn begin(&mut self, block: BlockId, cause: Cause, into: Option<(BlockId, u32)>) {
        (self.block, self.cause, self.into) = (block, cause, into);
        (self.stream, self.next, self.copied, self.written) = (0, 0, 0, 0);
        (self.erased, self.rested, self.folds) = (false, false, false);
    }

    /// Whether it holds a block, which is then neither free nor sealed.
    pub fn holds(&self, block: BlockId) -> bool {
        !self.erased && block == self.block || self.into.is_some_and(|(into, _)| block == into)
    }

    /// The block that it folds and has yet to erase.
    pub fn folding(&self) -> Option<BlockId> {
        (self.folds && !self.erased).then_some(self.block)
    }

    /// Blocks that it holds.
    pub fn blocks(&self) -> usize {
        usize::from(!self.erased) + usize::from(self.into.is_some())
    }

    /// The work pauses; finished writes leave its list.
    pub(super) fn rest(&mut self) {
        self.pending.drain(..self.written);
        self.written = 0;
        self.rested = true;
    }

    /// All pages are copied: now each page of the map has to be written once.
    pub(super) fn order_pending(&mut self) {
        if self.cause == Cause::Wear {
            self.pending.sort_unstable();
            self.pending.dedup();
        } else if self.rested {
            let mut seen = BTreeSet::new();
            self.pending.retain(|page| seen.insert(*page));
        }
    }
}
