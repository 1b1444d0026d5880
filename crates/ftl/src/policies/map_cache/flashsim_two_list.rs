//! The two lists of the C FlashSim (Penn State), from which the figures of Gupta 2009 come.
//!
//! New entries start in the larger list; its oldest drops to the second list, and victims are the oldest of the second.
//! A hit in either list makes the entry the most recent of the larger one. FlashSim's sizes are 6,552 and 1,640 entries.
//!
//! Every step takes O(1). State: 12 bytes per entry.

use super::{MapCacheContext, MapCachePolicy, SlotLists, share_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const LARGER: u32 = 0;
const SECOND: u32 = 1;

/// Settings of `ftl.dftl.replacement = "flashsim-two-list"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct FlashsimTwoListSettings {
    /// Share of the entries on the larger list, 0 to 1, rounded down to whole entries, at least one.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-expected" = "a share of the entries, {range}"))]
    pub larger: f64,
}

impl Default for FlashsimTwoListSettings {
    fn default() -> Self {
        Self { larger: 6552.0 / 8192.0 }
    }
}

/// `ftl.dftl.replacement = "flashsim-two-list"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FlashsimTwoList {
    lists: SlotLists,
    larger: f64,
    larger_max: u32,
}

impl FlashsimTwoList {
    #[inline(always)]
    fn overflow(&mut self) {
        if self.lists.len(LARGER) > self.larger_max
            && let Some(oldest) = self.lists.oldest(LARGER)
        {
            self.lists.move_to(SECOND, oldest);
        }
    }
}

impl MapCachePolicy for FlashsimTwoList {
    const NAME: &'static str = "flashsim-two-list";
    const ABOUT: &'static str =
        "new entries in a large list, its oldest in a small one, victims from there (C FlashSim)";
    type Settings = FlashsimTwoListSettings;

    fn new(settings: &FlashsimTwoListSettings, context: MapCacheContext) -> Self {
        Self {
            lists: SlotLists::new(2, context.entries),
            larger: settings.larger,
            larger_max: share_of(context.entries, settings.larger).max(1),
        }
    }
    #[inline(always)]
    fn inserted(&mut self, slot: u32) {
        self.lists.push(LARGER, slot);
        self.overflow();
    }
    #[inline(always)]
    fn touched(&mut self, slot: u32) {
        self.lists.move_to(LARGER, slot);
        self.overflow();
    }
    #[inline(always)]
    fn removed(&mut self, slot: u32) {
        self.lists.unlink(slot);
    }
    #[inline(always)]
    fn victim(&self) -> Option<u32> {
        self.lists.oldest(SECOND).or_else(|| self.lists.oldest(LARGER))
    }
    #[inline(always)]
    fn likely_after(&self, slot: u32) -> Option<u32> {
        self.lists.after(slot)
    }
    #[inline(always)]
    fn expect(&self, slot: u32) {
        self.lists.expect(slot);
    }
    fn resized(&mut self, entries: u32) {
        self.larger_max = share_of(entries, self.larger).max(1);
        while self.lists.len(LARGER) > self.larger_max {
            self.overflow();
        }
    }
    fn entries(&self) -> u32 {
        self.lists.total()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 5 entries, 3 of them on the larger list. 0 1 2 fill it; 3 moves 0 to the second list, 4 moves 1: larger [2, 3,
    /// 4], second [0, 1]. A hit on 0 brings it back and moves 2: larger [3, 4, 0], second [1, 2]; the victim is 1.
    #[test]
    fn hits_come_back_to_the_larger_list() {
        let settings = FlashsimTwoListSettings { larger: 0.6 };
        let mut policy = FlashsimTwoList::new(&settings, MapCacheContext { entries: 5, entries_per_page: 8 });
        (0..5).for_each(|slot| policy.inserted(slot));
        assert_eq!(policy.lists.oldest_first(LARGER), [2, 3, 4]);
        assert_eq!(policy.lists.oldest_first(SECOND), [0, 1]);
        policy.touched(0);
        assert_eq!(policy.lists.oldest_first(LARGER), [3, 4, 0]);
        assert_eq!((policy.lists.oldest_first(SECOND), policy.victim()), (vec![1, 2], Some(1)));
    }
}
