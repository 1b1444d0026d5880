//! What the spare areas and the journal say: the newest copy of every page.

use super::SYSTEM;
use crate::{Cause, Flash};
use flashwright_nand::{BlockId, Condition, Ppn, TORN};

/// The newest copy of a logical page, or of a page of the scheme's own tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Newest {
    /// Where it is.
    pub ppn: Ppn,
    /// Its version.
    pub version: u64,
    /// The number of its program.
    pub sequence: u64,
}

/// A block with programmed pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The block.
    pub block: BlockId,
    /// The number of its first program that can be read; 0 if there is none.
    pub opened: u64,
}

/// What a mount found.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    newest: Vec<Option<Newest>>,
    /// Blocks with programmed pages, in the order in which they were opened.
    pub blocks: Vec<Found>,
    /// Pages that can't be read.
    pub torn_pages: u64,
    /// Trimmed runs: first page, number of pages, sequence number.
    pub trims: Vec<(u32, u32, u64)>,
}

impl Scan {
    /// Reads the spare areas of all programmed pages, of which there may be `owners` different ones, and of the first erased page
    /// behind them in every block. The journal says which of them are trimmed.
    pub fn of(owners: u32, flash: &mut Flash) -> Self {
        let mut scan = Self { newest: vec![None; owners as usize], ..Self::default() };
        for block in (0..flash.geometry().blocks()).map(BlockId) {
            if matches!(flash.nand().condition(block), Condition::Good | Condition::Retired) {
                scan.read_block(block, flash);
            }
        }
        scan.blocks.sort_by_key(|found| (found.opened, found.block));
        let (trims, is_unfinished) = flash.read_journal();
        scan.trims = trims;
        for (first, pages, sequence) in scan.trims.iter().copied() {
            for lpn in first..first + pages {
                let Some(newest) = scan.newest.get_mut(lpn as usize) else { continue };
                if newest.is_none_or(|newest| newest.version < sequence) {
                    *newest = None;
                    flash.still_trimmed(lpn);
                }
            }
        }
        if is_unfinished {
            flash.write_snapshot(true);
        }
        scan
    }

    fn read_block(&mut self, block: BlockId, flash: &mut Flash) {
        let pages = flash.nand().next_page(block);
        let mut opened = 0;
        for page in 0..(pages + 1).min(flash.geometry().pages_per_block()) {
            let ppn = flash.geometry().page_at(block, page);
            let owner = flash.read_oob(ppn, Cause::Translation);
            let Some(owner) = owner else { continue };
            if owner == TORN || owner == SYSTEM {
                self.torn_pages += u64::from(owner == TORN);
                continue;
            }
            let Some(spare) = flash.spare_area(ppn) else { continue };
            if opened == 0 {
                opened = spare.sequence;
            }
            let found = Newest { ppn, version: spare.version, sequence: spare.sequence };
            let Some(newest) = self.newest.get_mut(owner.index()) else { continue };
            if newest.is_none_or(|newest| (newest.version, newest.sequence) < (found.version, found.sequence)) {
                *newest = Some(found);
            }
        }
        if pages > 0 {
            self.blocks.push(Found { block, opened });
        }
    }

    /// The newest copy of a page.
    #[must_use]
    pub fn newest(&self, owner: u32) -> Option<Newest> {
        self.newest.get(owner as usize).copied().flatten()
    }

    /// The number of the last trim of a page; 0 if there is none.
    pub(crate) fn trimmed_at(&self, owner: u32) -> u64 {
        let of_owner = self.trims.iter().filter(|(first, pages, _)| (*first..first + pages).contains(&owner));
        of_owner.map(|(.., sequence)| *sequence).max().unwrap_or(0)
    }

    /// Another copy of the same version takes the place of the newest one.
    pub(crate) fn prefer(&mut self, owner: u32, copy: Newest) {
        self.newest[owner as usize] = Some(copy);
    }

    /// A page has no copy that counts.
    pub(crate) fn forget(&mut self, owner: u32) {
        self.newest[owner as usize] = None;
    }

    /// The pages that have a copy, and these.
    pub fn all(&self) -> impl Iterator<Item = (u32, Newest)> {
        (0u32..).zip(&self.newest).filter_map(|(owner, newest)| newest.map(|newest| (owner, newest)))
    }
}
