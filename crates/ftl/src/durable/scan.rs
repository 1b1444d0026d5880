//! What a checkpoint, the spare areas and the journal say: the newest copy of every page.

use super::{BlockThen, Image, SYSTEM};
use crate::{Cause, Flash};
use flashwright_nand::{BlockId, Condition, Lpn, Ppn, TORN};

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
    /// Trimmed runs after the checkpoint: first page, number of pages, sequence number.
    pub trims: Vec<(u32, u32, u64)>,
    /// The number up to which the checkpoint holds that was read; 0 if there was none.
    pub checkpoint: u64,
    /// Pages of the scheme's own tables that were older than what they say when the checkpoint was taken, by their number among these.
    pub(crate) stale: Vec<u32>,
    /// With a checkpoint, one bit for each page of which it or a spare area has told.
    known: Vec<u64>,
}

impl Scan {
    /// Reads the newest checkpoint and the spare areas of pages that were programmed after it, of which there may be `owners`
    /// different ones, and of the first erased page behind them in every block. The journal says which of them are trimmed. Without
    /// a checkpoint it reads the spare areas of all programmed pages.
    pub fn of(owners: u32, flash: &mut Flash) -> Self {
        let mut scan = Self { newest: vec![None; owners as usize], ..Self::default() };
        let checkpoint = flash.read_checkpoint();
        if let Some(image) = &checkpoint {
            scan.checkpoint = image.sequence;
            scan.known = vec![0; (flash.geometry().pages() as usize).div_ceil(64)];
        }
        let mut is_unchanged = Vec::new();
        for block in (0..flash.geometry().blocks()).map(BlockId) {
            let is_read = matches!(flash.nand().condition(block), Condition::Good | Condition::Retired);
            is_unchanged.push(match &checkpoint {
                Some(image) if is_read => scan.read_since(block, image.blocks[block.index()], flash),
                _ => false,
            });
            if is_read && checkpoint.is_none() {
                scan.read_block(block, 0, 0, flash);
            }
        }
        let mut gone = checkpoint.map(|image| scan.take_places(image, &is_unchanged, flash)).unwrap_or_default();
        scan.blocks.sort_by_key(|found| (found.opened, found.block));
        let (trims, is_unfinished) = flash.read_journal();
        scan.trims = trims;
        scan.trims.retain(|(.., sequence)| *sequence > scan.checkpoint);
        gone.retain(|owner| scan.newest(*owner).is_none() && scan.trimmed_at(*owner) == 0);
        if !gone.is_empty() {
            scan.find_older(&gone, flash);
        }
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

    /// Reads the spare areas of a block from a page on. It was opened under this number, or its first page read says so.
    fn read_block(&mut self, block: BlockId, from: u32, mut opened: u64, flash: &mut Flash) {
        let pages = flash.nand().next_page(block);
        for page in from..(pages + 1).min(flash.geometry().pages_per_block()) {
            let ppn = flash.geometry().page_at(block, page);
            let owner = flash.read_oob(ppn, Cause::Translation);
            let Some(owner) = owner else { continue };
            self.knows_of(ppn);
            if owner == TORN || owner == SYSTEM {
                self.torn_pages += u64::from(owner == TORN);
                continue;
            }
            let Some(spare) = flash.spare_area(ppn) else { continue };
            if opened == 0 {
                opened = spare.sequence;
            }
            if spare.sequence <= self.checkpoint {
                continue; // the checkpoint knows whether it is current
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

    /// Reads what was programmed in a block after a checkpoint. Returns whether it still holds what it held then, which the number of
    /// its first page tells.
    fn read_since(&mut self, block: BlockId, then: BlockThen, flash: &mut Flash) -> bool {
        if then.first == 0 {
            self.read_block(block, 0, 0, flash);
            return false;
        }
        let first = flash.geometry().page_at(block, 0);
        let is_unchanged = flash.spare_area(first).is_some_and(|spare| spare.sequence == then.first);
        if !is_unchanged {
            self.read_block(block, 0, 0, flash);
            return false;
        }
        flash.read_oob(first, Cause::Translation);
        self.torn_pages += u64::from(then.torn);
        self.read_block(block, then.pages, then.opened, flash);
        true
    }

    /// Takes the places that a checkpoint names, where nothing newer was found and they still hold what they held. Returns the owners
    /// of places that don't.
    fn take_places(&mut self, image: Image, is_unchanged: &[bool], flash: &Flash) -> Vec<u32> {
        let mut gone = Vec::new();
        self.stale = image.stale;
        for (owner, ppn) in (0..).zip(image.places) {
            let Some(ppn) = ppn else { continue };
            let is_unchanged = is_unchanged[flash.geometry().block_of(ppn).index()];
            let spare = flash.spare_area(ppn).filter(|spare| spare.owner == Lpn(owner));
            let Some(spare) = spare.filter(|spare| is_unchanged || spare.sequence <= self.checkpoint) else {
                gone.push(owner);
                continue;
            };
            self.knows_of(ppn);
            let newest = &mut self.newest[owner as usize];
            newest.get_or_insert(Newest { ppn, version: spare.version, sequence: spare.sequence });
        }
        gone
    }

    /// Pages that neither lie where the checkpoint says nor were written or trimmed since: an earlier mount has undone a clean, and
    /// their sources are older than the checkpoint. Reads all spare areas and takes the newest of what was there before it.
    fn find_older(&mut self, owners: &[u32], flash: &mut Flash) {
        self.read_rest(0..flash.geometry().blocks(), flash);
        for ppn in (0..flash.geometry().pages()).map(Ppn) {
            let spare = flash.spare_area(ppn).filter(|_| self.knows(ppn));
            let Some(spare) = spare.filter(|spare| owners.binary_search(&spare.owner.0).is_ok()) else { continue };
            let found = Newest { ppn, version: spare.version, sequence: spare.sequence };
            let newest = &mut self.newest[spare.owner.index()];
            if newest.is_none_or(|newest| (newest.version, newest.sequence) < (found.version, found.sequence)) {
                *newest = Some(found);
            }
        }
    }

    fn knows_of(&mut self, ppn: Ppn) {
        if let Some(word) = self.known.get_mut(ppn.index() / 64) {
            *word |= 1 << (ppn.0 % 64);
        }
    }

    /// Whether the checkpoint or a spare area has told of a page; always without a checkpoint, since all are read then.
    pub(crate) fn knows(&self, ppn: Ppn) -> bool {
        self.known.get(ppn.index() / 64).is_none_or(|word| word >> (ppn.0 % 64) & 1 == 1)
    }

    /// Reads the spare areas of the pages of some blocks that nothing has told of. Returns whether there were any.
    pub(crate) fn read_rest(&mut self, blocks: std::ops::Range<u32>, flash: &mut Flash) -> bool {
        let mut has_read = false;
        let is_read = |block: &BlockId, flash: &Flash| {
            matches!(flash.nand().condition(*block), Condition::Good | Condition::Retired)
        };
        for block in blocks.map(BlockId).filter(|block| is_read(block, flash)).collect::<Vec<_>>() {
            for page in 0..flash.nand().next_page(block) {
                let ppn = flash.geometry().page_at(block, page);
                if !self.knows(ppn) {
                    flash.read_oob(ppn, Cause::Translation);
                    self.knows_of(ppn);
                    has_read = true;
                }
            }
        }
        has_read
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
