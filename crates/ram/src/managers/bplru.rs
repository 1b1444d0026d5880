//! Block padding LRU (Kim and Ahn, BPLRU, USENIX FAST 2008): the least recently written block is evicted, padded to a
//! whole block with pages read from flash.
//!
//! A padded block reaches a log-block scheme as one run over the whole block, which ends in a switch merge: one erase.
//! Reads are served but do not change the order. A block written from its first page to its last counts as sequential
//! data that will not be rewritten soon, and moves to the LRU end (LRU compensation). Pages without data are left out
//! of the padding.
//!
//! O(1) per page.

use super::{Leaves, RamContext, RamManager, View};
use crate::groups::needs_a_block;
use crate::{Destage, Groups};
use flashwright_ftl::{SlotLists, Violation};
use flashwright_nand::Lpn;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When a block counts as written sequentially.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Compensation {
    /// Its pages were written in ascending order from first to last, with no write to another block in between. Table
    /// 2.3 of Hu 2012 requires this interpretation.
    #[default]
    Uninterrupted,
    /// Its pages were written in ascending order from first to last, regardless of writes to other blocks in between.
    PerBlock,
    /// Never.
    Off,
}

/// `[ram.bplru]`: settings of `ram.manager = "bplru"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct BplruSettings {
    /// When a block counts as written sequentially and is evicted next: `"uninterrupted"`, `"per-block"` or `"off"`.
    pub compensation: Compensation,
    /// Whether an evicted block is padded with its pages on flash.
    pub padding: bool,
}

impl Default for BplruSettings {
    fn default() -> Self {
        Self { compensation: Compensation::Uninterrupted, padding: true }
    }
}

/// `ram.manager = "bplru"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bplru {
    /// Noted of a group: the page of the block that would continue its run of writes from page 0; 0 if there is none.
    groups: Groups,
    order: SlotLists,
    capacity: u32,
    settings: BplruSettings,
    /// The block written last.
    last: Option<u32>,
    compensated: u64,
}

/// The only list: all blocks, by last write.
const ALL: u32 = 0;

impl Bplru {
    /// Records a write of a page of the group in a slot, which is on the list.
    #[inline(always)]
    fn written(&mut self, slot: u32, lpn: Lpn) {
        self.order.move_to(ALL, slot);
        let (block, offset) = self.groups.place(lpn);
        let interrupted =
            self.last.replace(block) != Some(block) && self.settings.compensation == Compensation::Uninterrupted;
        let next = self.groups.note(slot);
        let next = if offset == 0 || (u64::from(offset) == next && !interrupted) { offset + 1 } else { 0 };
        self.groups.set_note(slot, u64::from(next));
        if next == self.groups.pages_per_block()
            && self.groups.count(slot) == next
            && self.settings.compensation != Compensation::Off
        {
            self.order.unlink(slot);
            self.order.push_oldest(ALL, slot);
            self.compensated += 1;
        }
    }
}

impl RamManager for Bplru {
    const NAME: &'static str = "bplru";
    const ABOUT: &'static str =
        "a write buffer of blocks; evicts the least recently written one, padded to a whole block (Kim and Ahn 2008)";
    const METADATA_BYTES: u64 = 12;
    type Settings = BplruSettings;

    fn problems(_: &Self::Settings, context: &RamContext) -> Vec<String> {
        needs_a_block(Self::NAME, Self::METADATA_BYTES, context)
    }
    fn new(settings: &Self::Settings, context: RamContext) -> Self {
        Self {
            groups: Groups::new(context.pages_per_block, context.logical_pages),
            order: SlotLists::new(1, context.pages_held_max()),
            capacity: context.pages,
            settings: settings.clone(),
            last: None,
            compensated: 0,
        }
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
        self.groups.find(lpn).map(|_| true)
    }

    #[inline(always)]
    fn expect(&self, lpn: Lpn) {
        self.groups.expect(lpn);
    }
    #[inline(always)]
    fn overwrite(&mut self, lpn: Lpn) -> bool {
        let Some((slot, _)) = self.groups.find(lpn) else { return false };
        self.written(slot, lpn);
        true
    }
    #[inline(always)]
    fn take_in(&mut self, lpn: Lpn, dirty: bool) {
        let (slot, new) = self.groups.insert(lpn, dirty);
        if new {
            self.order.push(ALL, slot);
        }
        self.written(slot, lpn);
    }
    #[inline(always)]
    fn read(&mut self, lpn: Lpn) -> bool {
        self.groups.find(lpn).is_some()
    }
    #[inline(always)]
    fn choose(&mut self, _: View, out: &mut Destage) {
        let Some(slot) = self.order.oldest(ALL) else { return };
        self.groups.name_all(slot, out);
        out.pad_block = self.settings.padding.then(|| self.groups.block(slot));
    }
    fn remove(&mut self, lpn: Lpn) -> bool {
        let Some((slot, gone)) = self.groups.remove(lpn) else { return false };
        if gone {
            self.order.unlink(slot);
        }
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
        let oldest = if self.settings.padding { None } else { self.order.oldest(ALL) };
        oldest.and_then(|slot| self.groups.leaves(slot))
    }
    #[inline(always)]
    fn left_alone(&mut self, slot: u32) {
        self.groups.remove_group(slot);
        self.order.unlink(slot);
    }
    fn dirty_pages(&self, out: &mut Vec<u32>) {
        self.groups.dirty_pages(out);
    }
    #[inline(always)]
    fn leaves_after(&self, slot: Option<u32>) -> Option<(u32, Lpn)> {
        let next = slot.map_or_else(|| self.order.oldest(ALL), |slot| self.order.after(slot))?;
        let lpn = self.groups.first_page(next);
        self.groups.expect(lpn);
        Some((next, lpn))
    }
    fn figures(&self) -> Vec<(String, f64)> {
        vec![("compensated_blocks".to_owned(), self.compensated as f64)]
    }
    fn reset_figures(&mut self) {
        self.compensated = 0;
    }

    fn audit(&self, violations: &mut Vec<Violation>) {
        self.groups.audit(violations);
        if self.order.total() != self.groups.len() {
            violations.push(Violation(format!(
                "the write buffer holds {} blocks, {} are in its order",
                self.groups.len(),
                self.order.total()
            )));
        }
    }
}
