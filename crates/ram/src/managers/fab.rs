//! Flash-aware buffer (Jo et al., FAB, IEEE TCE 2006): a cache of blocks that evicts the fullest one.
//!
//! Pages are grouped by logical block. A read or a write of a page makes its group the most recently used. When room is
//! needed, the group with the most pages is evicted, among equals the least recently used: its dirty pages are written
//! in order, the clean ones dropped. There is no padding. A trim of a held page, or a write that bypasses the RAM,
//! counts as a use of its group.
//!
//! There is one list by last use for each count of pages, and one bit per list for not empty: O(1) per page, and one
//! word per 64 pages of a block to find a victim.

use super::{Leaves, RamContext, RamManager, View};
use crate::bits::Bits;
use crate::groups::needs_a_block;
use crate::{Destage, Groups};
use flashwright_ftl::{NoSettings, SlotLists, Violation};
use flashwright_nand::Lpn;
use serde::{Deserialize, Serialize};

/// `ram.manager = "fab"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fab {
    groups: Groups,
    /// Groups by last use, on the list of their count of pages.
    by_count: SlotLists,
    /// Lists that are not empty.
    filled: Bits,
    capacity: u32,
}

impl Fab {
    /// A group that had `before` pages was used; moves it to the list of its current count.
    #[inline(always)]
    fn used(&mut self, slot: u32, before: u32) {
        if before > 0 {
            self.by_count.unlink(slot);
            self.filled.put(before, self.by_count.len(before) > 0);
        }
        let now = self.groups.count(slot);
        if now > 0 {
            self.by_count.push(now, slot);
            self.filled.put(now, true);
        }
    }

    #[inline(always)]
    fn victim(&self) -> Option<u32> {
        self.by_count.oldest(self.filled.last()?)
    }
}

impl RamManager for Fab {
    const NAME: &'static str = "fab";
    const ABOUT: &'static str = "a cache of blocks; evicts the one with the most pages (Jo 2006)";
    const LETS_GO_NEW: bool = true;
    const METADATA_BYTES: u64 = 12;
    type Settings = NoSettings;

    fn problems(_: &Self::Settings, context: &RamContext) -> Vec<String> {
        needs_a_block(Self::NAME, Self::METADATA_BYTES, context)
    }
    fn new(_: &Self::Settings, context: RamContext) -> Self {
        Self {
            groups: Groups::new(context.pages_per_block, context.logical_pages),
            by_count: SlotLists::new(context.pages_per_block + 1, context.pages_held_max()),
            filled: Bits::new(context.pages_per_block as usize + 1),
            capacity: context.pages,
        }
    }

    #[inline(always)]
    fn keeps_reads(&self) -> bool {
        true
    }
    #[inline(always)]
    fn capacity(&self) -> u32 {
        self.capacity
    }
    #[inline(always)]
    fn pages(&self) -> u32 {
        self.groups.pages()
    }
    #[inline(always)]
    fn is_dirty(&self, lpn: Lpn) -> Option<bool> {
        self.groups.find(lpn).map(|(slot, offset)| self.groups.is_dirty(slot, offset))
    }

    #[inline(always)]
    fn expect(&self, lpn: Lpn) {
        self.groups.expect(lpn);
    }
    #[inline(always)]
    fn overwrite(&mut self, lpn: Lpn) -> bool {
        let Some((slot, offset)) = self.groups.find(lpn) else { return false };
        self.groups.set_dirty(slot, offset, true);
        self.used(slot, self.groups.count(slot));
        true
    }
    #[inline(always)]
    fn take_in(&mut self, lpn: Lpn, dirty: bool) {
        let (slot, _) = self.groups.insert(lpn, dirty);
        self.used(slot, self.groups.count(slot) - 1);
    }
    #[inline(always)]
    fn read(&mut self, lpn: Lpn) -> bool {
        let Some((slot, _)) = self.groups.find(lpn) else { return false };
        self.used(slot, self.groups.count(slot));
        true
    }
    #[inline(always)]
    fn choose(&mut self, _: View, out: &mut Destage) {
        let Some(slot) = self.victim() else { return };
        self.groups.name_all(slot, out);
    }
    fn remove(&mut self, lpn: Lpn) -> bool {
        let Some((slot, _)) = self.groups.remove(lpn) else { return false };
        self.used(slot, self.groups.count(slot) + 1);
        true
    }
    #[inline(always)]
    fn left(&mut self, out: &Destage) {
        if let Some(slot) = self.groups.slot_of_destage(out) {
            self.left_alone(slot);
        }
    }
    #[inline(always)]
    fn leaves_alone(&self) -> Option<Leaves> {
        self.victim().and_then(|slot| self.groups.leaves(slot))
    }
    #[inline(always)]
    fn left_alone(&mut self, slot: u32) {
        let before = self.groups.count(slot);
        self.groups.remove_group(slot);
        self.used(slot, before);
    }
    fn dirty_pages(&self, out: &mut Vec<u32>) {
        self.groups.dirty_pages(out);
    }
    fn cleaned(&mut self, lpn: Lpn) {
        if let Some((slot, offset)) = self.groups.find(lpn) {
            self.groups.set_dirty(slot, offset, false);
        }
    }
    #[inline(always)]
    fn leaves_after(&self, slot: Option<u32>) -> Option<(u32, Lpn)> {
        let next = slot.map_or_else(|| self.victim(), |slot| self.by_count.after(slot))?;
        let lpn = self.groups.first_page(next);
        self.groups.expect(lpn);
        Some((next, lpn))
    }

    fn audit(&self, violations: &mut Vec<Violation>) {
        self.groups.audit(violations);
        let mut groups = 0;
        for count in 0..=self.groups.pages_per_block() {
            let slots = self.by_count.oldest_first(count);
            groups += slots.len() as u32;
            if slots.iter().any(|slot| self.groups.count(*slot) != count) || self.filled.has(count) == slots.is_empty()
            {
                violations.push(Violation(format!("a block of other than {count} pages is listed with that count")));
            }
        }
        if groups != self.groups.len() {
            violations.push(Violation(format!("the buffer holds {} blocks, {groups} are listed", self.groups.len())));
        }
    }
}
