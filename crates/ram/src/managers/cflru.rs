//! Clean-first LRU (Park et al., CFLRU, CASES 2006): a page cache that prefers to evict clean pages.
//!
//! The least recently used pages form a window. The least recently used clean page in it is evicted; if the window has
//! no clean page, the least recently used page of all is written and evicted. The paper also adapts the window to the
//! costs of reads and writes; that rule is not implemented.
//!
//! The border of the window moves on with each use, and a mark of the oldest clean page inside never moves back: O(1) per
//! page, up to 33 bytes per held page, 4 per logical page.

use super::{Leaves, RamContext, RamManager, View};
use crate::Destage;
use crate::queue::PageQueue;
use flashwright_ftl::Violation;
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
    /// All pages by last use.
    pages: PageQueue,
    /// The end of the window, and the oldest clean page in it or its end, as places counted without end. Pages that a flush cleans
    /// may lie before that one: then all older ones are clean too, so checking the oldest page of the window is enough.
    border: u32,
    clean: u32,
    /// Pages in the window.
    in_window: u32,
    capacity: u32,
    window: u32,
}

impl Cflru {
    /// Takes out the page at a place.
    #[inline(always)]
    fn leave(&mut self, place: u32) {
        let (front, _) = self.pages.order().ends();
        self.in_window -= u32::from(self.pages.order().since_front(place) < self.border.wrapping_sub(front));
        self.pages.remove(place);
        let (front, back) = self.pages.order().ends();
        let places = back.wrapping_sub(front);
        for end in [&mut self.border, &mut self.clean] {
            if end.wrapping_sub(front) > places {
                *end = front;
            }
        }
    }

    /// Moves the border until the window is full again, and the mark of the oldest clean page.
    #[inline(always)]
    fn refill(&mut self) {
        let (_, back) = self.pages.order().ends();
        while self.in_window < self.window && self.border != back {
            self.in_window += u32::from(self.pages.order().at(self.border).is_some());
            self.border = self.border.wrapping_add(1);
        }
        while self.clean != self.border && self.pages.leaves(self.clean).is_none_or(|page| page.dirty) {
            self.clean = self.clean.wrapping_add(1);
        }
    }

    /// Adds a page as the most recent one.
    #[inline(always)]
    fn push(&mut self, lpn: Lpn, dirty: bool) {
        if self.pages.order().is_full() {
            self.drop_gaps();
        }
        self.pages.push(lpn, dirty);
        self.refill();
    }
    #[cold]
    #[allow(clippy::cast_possible_truncation)] // pages are counted in 32 bits
    fn drop_gaps(&mut self) {
        let (order, (front, _)) = (self.pages.order(), self.pages.order().ends());
        let before_clean = |place: u32| order.since_front(place) < self.clean.wrapping_sub(front);
        let before_clean = order.each().filter(|(_, place)| before_clean(*place)).count() as u32;
        self.pages.drop_gaps();
        (self.border, self.clean) = (front.wrapping_add(self.in_window), front.wrapping_add(before_clean));
    }

    /// The page that leaves next.
    #[inline(always)]
    fn victim(&self) -> Option<Leaves> {
        let oldest = self.pages.oldest()?;
        if oldest.dirty && self.clean != self.border { self.pages.leaves(self.clean) } else { Some(oldest) }
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
            pages: PageQueue::new(context.pages_held_max(), context.logical_pages),
            border: 0,
            clean: 0,
            in_window: 0,
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
        self.pages.find(lpn).map(|place| self.pages.is_dirty(place))
    }

    #[inline(always)]
    fn expect(&self, lpn: Lpn) {
        self.pages.expect(lpn);
    }
    #[inline(always)]
    fn overwrite(&mut self, lpn: Lpn) -> bool {
        let Some(place) = self.pages.find(lpn) else { return false };
        self.leave(place);
        self.push(lpn, true);
        true
    }
    #[inline(always)]
    fn take_in(&mut self, lpn: Lpn, dirty: bool) {
        self.push(lpn, dirty);
    }
    #[inline(always)]
    fn read(&mut self, lpn: Lpn) -> bool {
        let Some(place) = self.pages.find(lpn) else { return false };
        let dirty = self.pages.is_dirty(place);
        self.leave(place);
        self.push(lpn, dirty);
        true
    }
    #[inline(always)]
    fn choose(&mut self, _: View, out: &mut Destage) {
        if let Some(Leaves { lpn, dirty, .. }) = self.victim() {
            let list = if dirty { &mut out.pages } else { &mut out.dropped };
            list.push(lpn.0);
        }
    }
    #[inline(always)]
    fn leaves_alone(&self) -> Option<Leaves> {
        self.victim()
    }
    #[inline(always)]
    fn left_alone(&mut self, slot: u32) {
        self.leave(slot);
        self.refill();
    }
    #[inline(always)]
    fn remove(&mut self, lpn: Lpn) -> bool {
        let Some(place) = self.pages.find(lpn) else { return false };
        self.left_alone(place);
        true
    }
    fn dirty_pages(&self, out: &mut Vec<u32>) {
        self.pages.dirty_pages(out);
    }
    fn cleaned(&mut self, lpn: Lpn) {
        self.pages.cleaned(lpn);
    }
    #[inline(always)]
    fn leaves_after(&self, slot: Option<u32>) -> Option<(u32, Lpn)> {
        self.pages.after(slot)
    }

    fn audit(&self, violations: &mut Vec<Violation>) {
        self.pages.audit(violations);
        let mut wrong = |what: String| violations.push(Violation(format!("the clean-first cache {what}")));
        let (held, order) = (self.pages.len(), self.pages.order());
        let width = self.border.wrapping_sub(order.ends().0);
        let window: Vec<u32> =
            order.each().map(|(_, place)| place).filter(|place| order.since_front(*place) < width).collect();
        if window.len() != self.window.min(held) as usize || window.len() != self.in_window as usize {
            wrong(format!(
                "has {} pages in its window of {}, counts {}, and holds {held}",
                window.len(),
                self.window,
                self.in_window
            ));
        }
        let clean = window.iter().find(|place| !self.pages.is_dirty(**place));
        let expected = clean.or(window.first()).copied();
        if self.victim().map(|page| page.slot) != expected {
            wrong(format!("would let {:?} go, a look at the window finds place {expected:?}", self.victim()));
        }
    }
}
