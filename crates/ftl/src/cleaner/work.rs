//! A clean or a recycling of a block, and its progress.

use crate::policies::placement::{Placement, Relocation};
use crate::{Cause, Flash};
use flashwright_nand::{BlockId, Lpn};
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

/// Lists the valid pages of a block with their owners, and calls `seen` for each owner.
#[inline]
pub(crate) fn list_pages(block: BlockId, list: &mut Moving, flash: &Flash, mut seen: impl FnMut(u32)) {
    let first = flash.geometry().first_page(block).0;
    let spares = flash.nand().spares(block);
    for (base, mut bits) in flash.valid_words(block) {
        // Room for all pages of a word at once: lists that grow page by page take twice as long.
        let (at, count) = (list.from.len(), bits.count_ones() as usize);
        list.from.resize(at + count, 0);
        list.lpns.resize(at + count, 0);
        for (from, lpn) in list.from[at..].iter_mut().zip(&mut list.lpns[at..]) {
            let ppn = base + bits.trailing_zeros();
            bits &= bits - 1;
            *from = ppn;
            *lpn = spares[(ppn - first) as usize];
            seen(*lpn);
        }
    }
}

/// As [`list_pages`], by the stream that the placement policy names for each page.
#[inline]
pub(crate) fn list_pages_by_stream(
    block: BlockId,
    moving: &mut [Moving],
    placement: &mut Placement,
    flash: &Flash,
    mut seen: impl FnMut(u32),
) {
    if let Some(stream) = placement.moves_to() {
        return list_pages(block, &mut moving[usize::from(stream)], flash, seen);
    }
    let first = flash.geometry().first_page(block).0;
    let spares = flash.nand().spares(block);
    for from in flash.valid_pages(block) {
        let lpn = spares[(from.0 - first) as usize];
        seen(lpn);
        let list = &mut moving[usize::from(placement.relocation(Relocation { lpn: Lpn(lpn), from, flash }))];
        list.from.push(from.0);
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
