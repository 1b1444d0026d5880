//! LFU: the entry with the fewest uses since it was loaded, the least recent among equals. Gupta 2009, section 3.2, names
//! it as an alternative.
//!
//! Uses are counted up to 255; entries used more often are ordered by recency alone. A hit takes O(1); the victim is
//! found by searching one list per count, nearly always the first. State: 12 bytes per entry.

use super::{MapCacheContext, MapCachePolicy, SlotLists};
use crate::registry::NoSettings;
use serde::{Deserialize, Serialize};

/// The number of distinct counts. List `n` holds the entries used `n + 1` times.
const COUNTS: u32 = 255;

/// `ftl.dftl.replacement = "lfu"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Lfu(SlotLists);

impl MapCachePolicy for Lfu {
    const NAME: &'static str = "lfu";
    const ABOUT: &'static str = "the entry used least often since it was loaded (named in Gupta 2009, section 3.2)";
    type Settings = NoSettings;

    fn new(_: &NoSettings, context: MapCacheContext) -> Self {
        Self(SlotLists::new(COUNTS, context.entries))
    }
    #[inline(always)]
    fn inserted(&mut self, slot: u32) {
        self.0.push(0, slot);
    }
    #[inline(always)]
    fn touched(&mut self, slot: u32) {
        self.0.move_to((self.0.list_of(slot) + 1).min(COUNTS - 1), slot);
    }
    #[inline(always)]
    fn removed(&mut self, slot: u32) {
        self.0.unlink(slot);
    }
    #[inline(always)]
    fn victim(&self) -> Option<u32> {
        (0..COUNTS).find_map(|count| self.0.oldest(count))
    }
    #[inline(always)]
    fn likely_after(&self, slot: u32) -> Option<u32> {
        self.0.after(slot)
    }
    #[inline(always)]
    fn expect(&self, slot: u32) {
        self.0.expect(slot);
    }
    fn entries(&self) -> u32 {
        self.0.total()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses: slot 0 three, slot 1 two, slot 2 two (later than slot 1), slot 3 one.
    #[test]
    fn fewest_uses_go_first_then_the_oldest() {
        let mut lfu = Lfu::new(&NoSettings {}, MapCacheContext { entries: 4, entries_per_page: 8 });
        (0..4).for_each(|slot| lfu.inserted(slot));
        [0, 1, 2, 0].into_iter().for_each(|slot| lfu.touched(slot));
        let order: Vec<u32> = std::iter::from_fn(|| lfu.victim().inspect(|slot| lfu.removed(*slot))).collect();
        assert_eq!(order, [3, 1, 2, 0]);
    }
}
