//! A table of the pages in RAM, by logical block.

use crate::Destage;
use crate::index::Index;
use crate::managers::{Leaves, RamContext};
use flashwright_ftl::Violation;
use flashwright_nand::Lpn;
use serde::{Deserialize, Serialize};

/// Pages grouped by logical block. A group keeps its slot while a page of it is held; slots are reused, so policies can
/// thread lists through them ([`flashwright_ftl::SlotLists`]). It takes 20 bytes and two bits per page of the block for
/// each group, and 4 bytes per logical block.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Groups {
    slots: Index,
    /// By slot, side by side as a use of a group touches all of it: the block below and the count of pages above; a note of the
    /// manager; for each 64 pages of the block one bit each for held, and as many for newer than the copy on flash.
    records: Vec<u64>,
    free: Vec<u32>,
    pages: u32,
    pages_per_block: u32,
    /// The shift that divides by `pages_per_block`, if it is a power of two.
    shift: Option<u32>,
    /// Words of a record.
    words: usize,
}

/// Words of a record before the bits.
const BITS: usize = 2;
/// A page more in the first word of a record.
const ONE_PAGE: u64 = 1 << 32;

impl Groups {
    /// An empty table of blocks of `pages_per_block` pages.
    #[must_use]
    pub fn new(pages_per_block: u32, logical_pages: u32) -> Self {
        Self {
            slots: Index::new(logical_pages.div_ceil(pages_per_block)),
            records: Vec::new(),
            free: Vec::new(),
            pages: 0,
            pages_per_block,
            shift: pages_per_block.is_power_of_two().then(|| pages_per_block.trailing_zeros()),
            words: BITS + 2 * pages_per_block.div_ceil(64) as usize,
        }
    }

    /// The first word of a slot's record.
    #[inline(always)]
    fn record(&self, slot: u32) -> usize {
        slot as usize * self.words
    }
    /// The bits of a slot: held and dirty by turns.
    #[inline(always)]
    fn bits(&self, slot: u32) -> &[u64] {
        &self.records[self.record(slot)..][..self.words][BITS..]
    }
    /// What the manager noted of a slot in use; 0 for a new group.
    #[inline(always)]
    pub(crate) fn note(&self, slot: u32) -> u64 {
        self.records[self.record(slot) + 1]
    }
    /// Notes something of a slot in use.
    #[inline(always)]
    pub(crate) fn set_note(&mut self, slot: u32, note: u64) {
        let at = self.record(slot) + 1;
        self.records[at] = note;
    }

    /// Pages held.
    #[inline(always)]
    #[must_use]
    pub fn pages(&self) -> u32 {
        self.pages
    }
    /// Groups with a page held.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.slots.len()
    }
    /// Whether nothing is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.len() == 0
    }
    /// The block of a page, and the page's place in it.
    #[inline(always)]
    #[must_use]
    pub fn place(&self, lpn: Lpn) -> (u32, u32) {
        match self.shift {
            Some(shift) => (lpn.0 >> shift, lpn.0 & (self.pages_per_block - 1)),
            None => (lpn.0 / self.pages_per_block, lpn.0 % self.pages_per_block),
        }
    }
    /// Warms the CPU cache for a page.
    #[inline(always)]
    pub fn expect(&self, lpn: Lpn) {
        self.slots.expect(self.place(lpn).0);
    }
    /// Pages of a block.
    #[inline(always)]
    #[must_use]
    pub fn pages_per_block(&self) -> u32 {
        self.pages_per_block
    }
    /// The slot of a block's group, if a page of it is held.
    #[inline(always)]
    #[must_use]
    pub fn slot(&self, block: u32) -> Option<u32> {
        self.slots.get(block)
    }
    /// As [`Groups::slot`] for any number, whether or not there is such a block.
    #[must_use]
    pub fn find_group(&self, block: u32) -> Option<u32> {
        self.slots.find(block)
    }
    /// The block of the group in a slot in use.
    #[inline(always)]
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // the lower half
    pub fn block(&self, slot: u32) -> u32 {
        self.records[self.record(slot)] as u32
    }
    /// The first page that the group in a slot in use holds.
    #[inline(always)]
    #[must_use]
    pub fn first_page(&self, slot: u32) -> Lpn {
        let first = self.block(slot) * self.pages_per_block;
        let held = self.bits(slot).iter().step_by(2).zip((first..).step_by(64));
        Lpn(held
            .filter(|(word, _)| **word != 0)
            .map(|(word, first)| first + word.trailing_zeros())
            .next()
            .unwrap_or(first))
    }
    /// The only page of the group in a slot in use, as it leaves alone; none if the group has more.
    #[inline(always)]
    pub(crate) fn leaves(&self, slot: u32) -> Option<Leaves> {
        (self.count(slot) == 1).then(|| {
            let lpn = self.first_page(slot);
            Leaves { slot, lpn, dirty: self.is_dirty(slot, self.place(lpn).1) }
        })
    }
    /// The slot of the group that a destage of one block names.
    #[inline(always)]
    #[must_use]
    pub fn slot_of_destage(&self, out: &Destage) -> Option<u32> {
        let lpn = out.pages.first().or(out.dropped.first())?;
        self.slot(self.place(Lpn(*lpn)).0)
    }
    /// Pages of the group in a slot; none if it is free.
    #[inline(always)]
    #[must_use]
    pub fn count(&self, slot: u32) -> u32 {
        (self.records[self.record(slot)] >> 32) as u32
    }
    /// Pages of the group in a slot that are newer than their copies on flash.
    #[must_use]
    pub fn dirty(&self, slot: u32) -> u32 {
        self.bits(slot).iter().skip(1).step_by(2).map(|word| word.count_ones()).sum()
    }

    /// The word and the bit of a page that say that it is held; the next word says that it is dirty.
    #[inline(always)]
    fn bit(&self, slot: u32, offset: u32) -> (usize, u64) {
        (self.record(slot) + BITS + offset as usize / 64 * 2, 1 << (offset % 64))
    }
    /// Whether the group in a slot holds the page at `offset` of its block.
    #[inline(always)]
    #[must_use]
    pub fn holds(&self, slot: u32, offset: u32) -> bool {
        let (word, bit) = self.bit(slot, offset);
        self.records[word] & bit != 0
    }
    /// Whether a page that is held is newer than its copy on flash.
    #[inline(always)]
    #[must_use]
    pub fn is_dirty(&self, slot: u32, offset: u32) -> bool {
        let (word, bit) = self.bit(slot, offset);
        self.records[word + 1] & bit != 0
    }
    /// Sets whether a held page is newer than its copy on flash.
    #[inline(always)]
    pub fn set_dirty(&mut self, slot: u32, offset: u32, dirty: bool) {
        let (word, bit) = self.bit(slot, offset);
        let word = &mut self.records[word + 1];
        *word = if dirty { *word | bit } else { *word & !bit };
    }
    /// The slot of a page's group and the page's offset in the block, if it is held.
    #[inline(always)]
    #[must_use]
    pub fn find(&self, lpn: Lpn) -> Option<(u32, u32)> {
        let (block, offset) = self.place(lpn);
        self.slot(block).filter(|slot| self.holds(*slot, offset)).map(|slot| (slot, offset))
    }

    /// Adds a page that is not held; returns its group's slot, and whether the group is new.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // slots are counted in 32 bits
    pub fn insert(&mut self, lpn: Lpn, dirty: bool) -> (u32, bool) {
        let (block, offset) = self.place(lpn);
        let (slot, new) = match self.slot(block) {
            Some(slot) => (slot, false),
            None => {
                let slot = self.free.pop().unwrap_or_else(|| {
                    let slot = self.records.len() / self.words;
                    self.records.resize(self.records.len() + self.words, 0);
                    slot as u32
                });
                let at = self.record(slot);
                (self.records[at], self.records[at + 1]) = (u64::from(block), 0);
                self.slots.insert(block, slot);
                (slot, true)
            }
        };
        let (word, bit) = self.bit(slot, offset);
        debug_assert!(self.records[word] & bit == 0, "page {} taken in twice", lpn.0);
        let at = self.record(slot);
        self.records[at] += ONE_PAGE;
        self.records[word] |= bit;
        self.set_dirty(slot, offset, dirty);
        self.pages += 1;
        (slot, new)
    }

    /// Removes a page; returns its group's slot, and whether the group was removed with it.
    pub fn remove(&mut self, lpn: Lpn) -> Option<(u32, bool)> {
        let (slot, offset) = self.find(lpn)?;
        let (word, bit) = self.bit(slot, offset);
        let at = self.record(slot);
        self.records[at] -= ONE_PAGE;
        self.records[word] &= !bit;
        self.records[word + 1] &= !bit;
        self.pages -= 1;
        let empty = self.count(slot) == 0;
        if empty {
            self.slots.clear(self.block(slot));
            self.free.push(slot);
        }
        Some((slot, empty))
    }

    /// Removes a whole group.
    #[inline(always)]
    pub fn remove_group(&mut self, slot: u32) {
        let (block, count, at) = (self.block(slot), self.count(slot), self.record(slot));
        self.records[at..][..self.words].fill(0);
        self.pages -= count;
        self.slots.clear(block);
        self.free.push(slot);
    }

    /// Appends the dirty pages of a group to those to write, and the clean ones to those to drop, in ascending order.
    #[inline(always)]
    pub fn name_all(&self, slot: u32, out: &mut Destage) {
        let mut first = self.block(slot) * self.pages_per_block;
        for words in self.bits(slot).chunks_exact(2) {
            let mut bits = words[0];
            while bits != 0 {
                let bit = bits.trailing_zeros();
                bits &= bits - 1;
                let list = if words[1] >> bit & 1 == 1 { &mut out.pages } else { &mut out.dropped };
                list.push(first + bit);
            }
            first += 64;
        }
    }

    /// The pages of a group in ascending order, each with whether it is newer than its copy on flash.
    pub fn pages_of(&self, slot: u32) -> impl Iterator<Item = (Lpn, bool)> {
        let first = self.block(slot) * self.pages_per_block;
        self.bits(slot).chunks_exact(2).zip((first..).step_by(64)).flat_map(|(words, first)| {
            let (mut bits, dirty) = (words[0], words[1]);
            std::iter::from_fn(move || {
                (bits != 0).then(|| {
                    let bit = bits.trailing_zeros();
                    bits &= bits - 1;
                    (Lpn(first + bit), dirty >> bit & 1 == 1)
                })
            })
        })
    }

    /// The slots in use.
    #[allow(clippy::cast_possible_truncation)] // slots are counted in 32 bits
    fn used_slots(&self) -> impl Iterator<Item = u32> {
        (0..(self.records.len() / self.words) as u32).filter(|slot| self.count(*slot) > 0)
    }

    /// Appends the pages newer than their copies on flash, in ascending order.
    pub fn dirty_pages(&self, out: &mut Vec<u32>) {
        let from = out.len();
        for slot in self.used_slots() {
            out.extend(self.pages_of(slot).filter(|(_, dirty)| *dirty).map(|(lpn, _)| lpn.0));
        }
        out[from..].sort_unstable();
    }

    /// Recounts pages and blocks and appends contradictions.
    pub fn audit(&self, violations: &mut Vec<Violation>) {
        let slots = || self.used_slots().map(|slot| (slot, self.count(slot)));
        if slots().map(|(_, count)| count).sum::<u32>() != self.pages || slots().count() != self.len() as usize {
            violations.push(Violation(format!(
                "the buffer counts {} pages of {} blocks, but finds {:?}",
                self.pages,
                self.len(),
                slots().collect::<Vec<_>>()
            )));
        }
        for (slot, count) in slots() {
            if self.pages_of(slot).count() != count as usize || self.slot(self.block(slot)) != Some(slot) {
                violations.push(Violation(format!(
                    "block {} counts {count} pages in slot {slot}, but holds {:?} in slot {:?}",
                    self.block(slot),
                    self.pages_of(slot).collect::<Vec<_>>(),
                    self.slot(self.block(slot))
                )));
            }
        }
    }
}

/// The validation error of RAM that holds less than a block, for managers that evict whole blocks.
pub(crate) fn needs_a_block(name: &str, metadata_bytes: u64, context: &RamContext) -> Vec<String> {
    let RamContext { pages, pages_per_block, page_bytes, .. } = *context;
    if pages >= pages_per_block {
        return Vec::new();
    }
    vec![format!(
        "ram.size: found room for {pages} pages, but ram.manager = {name:?} needs a block of {pages_per_block}; set \
         ram.size = \"{} B\" or more (\"{} B\" with ram.charge-metadata)",
        u64::from(pages_per_block) * page_bytes,
        u64::from(pages_per_block) * (page_bytes + metadata_bytes)
    )]
}
