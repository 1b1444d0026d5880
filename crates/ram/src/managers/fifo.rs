//! A write buffer that evicts in the order of first writes (Kim 2011, 4.3: "flush in FIFO order once full").
//!
//! A rewrite changes the data but not the position. Reads are served from the buffer and change nothing. O(1) per page,
//! up to 33 bytes per held page, 4 per logical page.

use super::{Leaves, RamContext, RamManager, View};
use crate::Destage;
use crate::queue::PageQueue;
use flashwright_ftl::Violation;
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
    /// All pages by first write.
    pages: PageQueue,
    capacity: u32,
    flush_on_full: FlushOnFull,
}

impl RamManager for Fifo {
    const NAME: &'static str = "fifo";
    const ABOUT: &'static str = "a write buffer that evicts pages in the order of first writes (Kim 2011, 4.3)";
    const METADATA_BYTES: u64 = 12;
    type Settings = FifoSettings;

    fn new(settings: &Self::Settings, context: RamContext) -> Self {
        Self {
            pages: PageQueue::new(context.pages_held_max(), context.logical_pages),
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
        self.pages.find(lpn).map(|_| true)
    }

    #[inline(always)]
    fn expect(&self, lpn: Lpn) {
        self.pages.expect(lpn);
    }
    #[inline(always)]
    fn overwrite(&mut self, lpn: Lpn) -> bool {
        self.pages.find(lpn).is_some()
    }
    #[inline(always)]
    fn take_in(&mut self, lpn: Lpn, dirty: bool) {
        self.pages.push(lpn, dirty);
    }
    #[inline(always)]
    fn read(&mut self, lpn: Lpn) -> bool {
        self.pages.find(lpn).is_some()
    }
    #[inline(always)]
    fn choose(&mut self, _: View, out: &mut Destage) {
        match self.flush_on_full {
            FlushOnFull::One => out.pages.extend(self.pages.oldest().map(|leaves| leaves.lpn.0)),
            FlushOnFull::All => self.pages.dirty_pages(&mut out.pages),
        }
    }
    #[inline(always)]
    fn leaves_alone(&self) -> Option<Leaves> {
        if self.flush_on_full == FlushOnFull::One { self.pages.oldest() } else { None }
    }
    #[inline(always)]
    fn left_alone(&mut self, slot: u32) {
        self.pages.remove(slot);
    }
    #[inline(always)]
    fn remove(&mut self, lpn: Lpn) -> bool {
        self.pages.find(lpn).inspect(|place| self.pages.remove(*place)).is_some()
    }
    fn dirty_pages(&self, out: &mut Vec<u32>) {
        self.pages.dirty_pages(out);
    }
    #[inline(always)]
    fn leaves_after(&self, slot: Option<u32>) -> Option<(u32, Lpn)> {
        self.pages.after(slot)
    }

    fn audit(&self, violations: &mut Vec<Violation>) {
        self.pages.audit(violations);
    }
}
