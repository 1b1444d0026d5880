//! Clean-first LRU (Park et al., CFLRU, CASES 2006): a page cache that prefers to evict clean pages.
//!
//! The least recently used pages form a window. The least recently used clean page in it is evicted; if the window has
//! no clean page, the least recently used page of all is written and evicted. The paper also adapts the window to the
//! costs of reads and writes; that rule is not implemented.
//!
//! The border of the window moves by one page with each use, and the clean pages inside have a separate list: O(1) per
//! page, 38 bytes per held page, 4 per logical page.

use super::{Leaves, RamContext, RamManager, View};
use crate::{Destage, Pages};
use flashwright_ftl::{SlotLists, Violation};
use flashwright_nand::Lpn;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[ram.cflru]`: settings of `ram.manager = "cflru"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct CflruSettings {
    /// Size of the window as a share of the pages that the RAM holds, 0 to 1; at least one page, which is plain LRU.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-expected" = "a share from {range}, such as ram.cflru.window = 0.25"))]
    pub window: f64,
}

impl Default for CflruSettings {
    fn default() -> Self {
        Self { window: 0.25 }
    }
}

/// `ram.manager = "cflru"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cflru {
    pages: Pages,
    /// All pages by last use, split at the border of the window.
    order: SlotLists,
    /// Clean pages of the window by last use. Pages that a flush cleaned inside the window are not here: then all older
    /// ones are clean too, so checking the oldest page of the window is enough.
    clean: SlotLists,
    /// By slot: whether it is on `clean`.
    listed: Vec<bool>,
    capacity: u32,
    window: u32,
}

/// The list of pages outside the window.
const RECENT: u32 = 0;
/// The list of pages inside the window.
const WINDOW: u32 = 1;
/// The only list of `clean`.
const CLEAN: u32 = 0;

impl Cflru {
    /// Takes a slot out of the window's lists and the order.
    #[inline(always)]
    fn unlink(&mut self, slot: u32) {
        self.order.unlink(slot);
        if std::mem::take(&mut self.listed[slot as usize]) {
            self.clean.unlink(slot);
        }
    }

    /// Moves the border until the window is full again.
    #[inline(always)]
    fn refill(&mut self) {
        while self.order.len(WINDOW) < self.window {
            let Some(slot) = self.order.oldest(RECENT) else { return };
            self.order.move_to(WINDOW, slot);
            if !self.pages.is_dirty(slot) {
                self.clean.push(CLEAN, slot);
                self.listed[slot as usize] = true;
            }
        }
    }

    /// A page held was used.
    #[inline(always)]
    fn used(&mut self, slot: u32) {
        self.unlink(slot);
        self.order.push(RECENT, slot);
        self.refill();
    }

    /// The page that leaves next.
    #[inline(always)]
    fn victim(&self) -> Option<u32> {
        let oldest = self.order.oldest(WINDOW)?;
        if self.pages.is_dirty(oldest) { self.clean.oldest(CLEAN).or(Some(oldest)) } else { Some(oldest) }
    }
}

impl RamManager for Cflru {
    const NAME: &'static str = "cflru";
    const ABOUT: &'static str =
        "a cache of pages read and written; evicts clean pages among the least recently used first (Park 2006)";
    const METADATA_BYTES: u64 = 12;
    type Settings = CflruSettings;

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a share of the pages, which are 32 bits
    fn new(settings: &Self::Settings, context: RamContext) -> Self {
        Self {
            pages: Pages::new(context.pages_held_max(), context.logical_pages),
            order: SlotLists::new(2, context.pages_held_max()),
            clean: SlotLists::new(1, context.pages_held_max()),
            listed: Vec::with_capacity(context.pages_held_max() as usize),
            capacity: context.pages,
            window: ((f64::from(context.pages) * settings.window).round() as u32).max(1),
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
        self.pages.len()
    }
    #[inline(always)]
    fn is_dirty(&self, lpn: Lpn) -> Option<bool> {
        self.pages.slot(lpn).map(|slot| self.pages.is_dirty(slot))
    }

    #[inline(always)]
    fn expect(&self, lpn: Lpn) {
        self.pages.expect(lpn);
    }
    #[inline(always)]
    fn overwrite(&mut self, lpn: Lpn) -> bool {
        let Some(slot) = self.pages.slot(lpn) else { return false };
        self.pages.set_dirty(slot, true);
        self.used(slot);
        true
    }
    #[inline(always)]
    fn take_in(&mut self, lpn: Lpn, dirty: bool) {
        let slot = self.pages.insert(lpn, dirty);
        if slot as usize == self.listed.len() {
            self.listed.push(false);
        }
        self.order.push(RECENT, slot);
        self.refill();
    }
    #[inline(always)]
    fn read(&mut self, lpn: Lpn) -> bool {
        let Some(slot) = self.pages.slot(lpn) else { return false };
        self.used(slot);
        true
    }
    #[inline(always)]
    fn choose(&mut self, _: View, out: &mut Destage) {
        if let Some(slot) = self.victim() {
            let list = if self.pages.is_dirty(slot) { &mut out.pages } else { &mut out.dropped };
            list.push(self.pages.lpn(slot).0);
        }
    }
    #[inline(always)]
    fn leaves_alone(&self) -> Option<Leaves> {
        self.victim().map(|slot| self.pages.leaves(slot))
    }
    #[inline(always)]
    fn left_alone(&mut self, slot: u32) {
        self.pages.remove_slot(slot);
        self.unlink(slot);
        self.refill();
    }
    #[inline(always)]
    fn remove(&mut self, lpn: Lpn) -> bool {
        let Some(slot) = self.pages.remove(lpn) else { return false };
        self.unlink(slot);
        self.refill();
        true
    }
    fn dirty_pages(&self, out: &mut Vec<u32>) {
        self.pages.dirty_pages(out);
    }
    fn cleaned(&mut self, lpn: Lpn) {
        if let Some(slot) = self.pages.slot(lpn) {
            self.pages.set_dirty(slot, false);
        }
    }
    #[inline(always)]
    fn leaves_after(&self, slot: Option<u32>) -> Option<(u32, Lpn)> {
        let next = slot.map_or_else(|| self.order.oldest(WINDOW), |slot| self.order.after(slot))?;
        Some((next, self.pages.lpn(next)))
    }

    fn audit(&self, violations: &mut Vec<Violation>) {
        let mut wrong = |what: String| violations.push(Violation(format!("the clean-first cache {what}")));
        let (held, window) = (self.pages.len(), self.order.oldest_first(WINDOW));
        if self.order.total() != held {
            wrong(format!("holds {held} pages, {} are in its order", self.order.total()));
        }
        if window.len() as u32 != self.window.min(held) {
            wrong(format!("has {} pages in its window of {}, and holds {held}", window.len(), self.window));
        }
        let clean: Vec<u32> = window.iter().copied().filter(|slot| !self.pages.is_dirty(*slot)).collect();
        if self.victim() != clean.first().or(window.first()).copied() {
            wrong(format!("would let go slot {:?}, the window's clean slots are {clean:?}", self.victim()));
        }
        let listed: Vec<u32> = clean.into_iter().filter(|slot| self.listed[*slot as usize]).collect();
        if self.clean.oldest_first(CLEAN) != listed {
            wrong(format!("lists {:?} as clean, expected {listed:?}", self.clean.oldest_first(CLEAN)));
        }
    }
}
