//! A write buffer that evicts in the order of first writes (Kim 2011, 4.3: "flush in FIFO order once full").
//!
//! A rewrite changes the data but not the position. Reads are served from the buffer and change nothing. O(1) per page,
//! 25 bytes per held page, 4 per logical page.

use super::{Leaves, RamContext, RamManager, View};
use crate::{Destage, Pages};
use flashwright_ftl::{SlotLists, Violation};
use flashwright_nand::Lpn;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much a full buffer evicts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FlushOnFull {
    /// The oldest page.
    #[default]
    One,
    /// Everything, in ascending order, as the write-buffer probe sees on SSD-A of Kim 2011.
    All,
}

/// `[ram.fifo]`: settings of `ram.manager = "fifo"`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct FifoSettings {
    /// How much a full buffer evicts: `"one"` page or `"all"` pages.
    pub flush_on_full: FlushOnFull,
}

/// `ram.manager = "fifo"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fifo {
    pages: Pages,
    order: SlotLists,
    capacity: u32,
    flush_on_full: FlushOnFull,
}

/// The only list: all pages, by first write.
const ALL: u32 = 0;

impl RamManager for Fifo {
    const NAME: &'static str = "fifo";
    const ABOUT: &'static str = "a write buffer that evicts pages in the order of first writes (Kim 2011, 4.3)";
    const METADATA_BYTES: u64 = 12;
    type Settings = FifoSettings;

    fn new(settings: &Self::Settings, context: RamContext) -> Self {
        Self {
            pages: Pages::new(context.pages_held_max(), context.logical_pages),
            order: SlotLists::new(1, context.pages_held_max()),
            capacity: context.pages,
            flush_on_full: settings.flush_on_full,
        }
    }

    #[inline(always)]
    fn capacity(&self) -> u32 {
        self.capacity
    }
    #[inline(always)]
    fn pages(&self) -> u32 {
        self.pages.len()
    }
    #[inline(always)]
    fn is_dirty(&self, lpn: Lpn) -> Option<bool> {
        self.pages.slot(lpn).map(|_| true)
    }

    #[inline(always)]
    fn expect(&self, lpn: Lpn) {
        self.pages.expect(lpn);
    }
    #[inline(always)]
    fn overwrite(&mut self, lpn: Lpn) -> bool {
        self.pages.slot(lpn).is_some()
    }
    #[inline(always)]
    fn take_in(&mut self, lpn: Lpn, dirty: bool) {
        let slot = self.pages.insert(lpn, dirty);
        self.order.push(ALL, slot);
    }
    #[inline(always)]
    fn read(&mut self, lpn: Lpn) -> bool {
        self.pages.slot(lpn).is_some()
    }
    #[inline(always)]
    fn choose(&mut self, _: View, out: &mut Destage) {
        match self.flush_on_full {
            FlushOnFull::One => out.pages.extend(self.order.oldest(ALL).map(|slot| self.pages.lpn(slot).0)),
            FlushOnFull::All => self.pages.dirty_pages(&mut out.pages),
        }
    }
    #[inline(always)]
    fn leaves_alone(&self) -> Option<Leaves> {
        let oldest = if self.flush_on_full == FlushOnFull::One { self.order.oldest(ALL) } else { None };
        oldest.map(|slot| self.pages.leaves(slot))
    }
    #[inline(always)]
    fn left_alone(&mut self, slot: u32) {
        self.pages.remove_slot(slot);
        self.order.unlink(slot);
    }
    #[inline(always)]
    fn remove(&mut self, lpn: Lpn) -> bool {
        self.pages.remove(lpn).inspect(|slot| self.order.unlink(*slot)).is_some()
    }
    fn dirty_pages(&self, out: &mut Vec<u32>) {
        self.pages.dirty_pages(out);
    }
    #[inline(always)]
    fn leaves_after(&self, slot: Option<u32>) -> Option<(u32, Lpn)> {
        let next = slot.map_or_else(|| self.order.oldest(ALL), |slot| self.order.after(slot))?;
        Some((next, self.pages.lpn(next)))
    }

    fn audit(&self, violations: &mut Vec<Violation>) {
        if self.order.total() != self.pages.len() {
            violations.push(Violation(format!(
                "the write buffer holds {} pages, {} are in its order",
                self.pages.len(),
                self.order.total()
            )));
        }
    }
}
