//! LRU: the least recently used entry, as in the C++ FlashSim.
//!
//! Every step takes O(1). State: 12 bytes per entry.

use super::{MapCacheContext, MapCachePolicy, SlotLists};
use crate::registry::NoSettings;
use serde::{Deserialize, Serialize};

/// `ftl.dftl.replacement = "lru"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Lru(SlotLists);

impl MapCachePolicy for Lru {
    const NAME: &'static str = "lru";
    const ABOUT: &'static str = "the least recently used entry (as in the C++ FlashSim)";
    type Settings = NoSettings;

    fn new(_: &NoSettings, context: MapCacheContext) -> Self {
        Self(SlotLists::new(1, context.entries))
    }
    #[inline(always)]
    fn inserted(&mut self, slot: u32) {
        self.0.push(0, slot);
    }
    #[inline(always)]
    fn touched(&mut self, slot: u32) {
        self.0.move_to(0, slot);
    }
    #[inline(always)]
    fn removed(&mut self, slot: u32) {
        self.0.unlink(slot);
    }
    #[inline(always)]
    fn victim(&self) -> Option<u32> {
        self.0.oldest(0)
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

    /// Slots 0, 1, 2 one after the other, then 0 again: from the oldest on 1, 2, 0.
    #[test]
    fn a_use_makes_recent() {
        let mut lru = Lru::new(&NoSettings {}, MapCacheContext { entries: 3, entries_per_page: 8 });
        (0..3).for_each(|slot| lru.inserted(slot));
        lru.touched(0);
        assert_eq!(lru.0.oldest_first(0), [1, 2, 0]);
        lru.removed(1);
        assert_eq!((lru.victim(), lru.entries()), (Some(2), 2));
    }
}
