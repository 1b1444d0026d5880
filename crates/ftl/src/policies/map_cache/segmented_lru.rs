//! Segmented LRU (Karedla, Love and Wherry, IEEE Computer 1994), the replacement that Gupta 2009 uses.
//!
//! ```text
//!   miss ──► probation ──► out          a hit in either segment moves the entry to the recent end of the protected
//!               │  ▲                    one; what overflows it goes back to the recent end of probation
//!           hit ▼  │ overflow
//!            protected
//! ```
//!
//! Every step takes O(1). State: 12 bytes per entry.

use super::{MapCacheContext, MapCachePolicy, SlotLists, share_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const PROBATION: u32 = 0;
const PROTECTED: u32 = 1;

/// Settings of `ftl.dftl.replacement = "segmented-lru"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct SegmentedLruSettings {
    /// Share of the entries that the protected segment may hold, 0 to 1, rounded down to whole entries.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-expected" = "a share of the entries, {range}"))]
    pub protected: f64,
}

impl Default for SegmentedLruSettings {
    fn default() -> Self {
        Self { protected: 0.8 }
    }
}

/// `ftl.dftl.replacement = "segmented-lru"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SegmentedLru {
    lists: SlotLists,
    protected: f64,
    protected_max: u32,
}

impl MapCachePolicy for SegmentedLru {
    const NAME: &'static str = "segmented-lru";
    const ABOUT: &'static str = "LRU with a segment that only hits enter (Karedla 1994; used by Gupta 2009)";
    type Settings = SegmentedLruSettings;

    fn new(settings: &SegmentedLruSettings, context: MapCacheContext) -> Self {
        Self {
            lists: SlotLists::new(2, context.entries),
            protected: settings.protected,
            protected_max: share_of(context.entries, settings.protected),
        }
    }
    #[inline(always)]
    fn inserted(&mut self, slot: u32) {
        self.lists.push(PROBATION, slot);
    }
    #[inline(always)]
    fn touched(&mut self, slot: u32) {
        self.lists.move_to(PROTECTED, slot);
        if self.lists.len(PROTECTED) > self.protected_max
            && let Some(oldest) = self.lists.oldest(PROTECTED)
        {
            self.lists.move_to(PROBATION, oldest);
        }
    }
    #[inline(always)]
    fn removed(&mut self, slot: u32) {
        self.lists.unlink(slot);
    }
    #[inline(always)]
    fn replaced(&mut self, slot: u32, _: impl FnOnce() -> u32) {
        self.lists.move_to(PROBATION, slot);
    }
    #[inline(always)]
    fn victim(&self) -> Option<u32> {
        self.lists.oldest(PROBATION).or_else(|| self.lists.oldest(PROTECTED))
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
        self.protected_max = share_of(entries, self.protected);
        while self.lists.len(PROTECTED) > self.protected_max
            && let Some(oldest) = self.lists.oldest(PROTECTED)
        {
            self.lists.move_to(PROBATION, oldest);
        }
    }
    fn entries(&self) -> u32 {
        self.lists.total()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Capacity 4, protected 2, accesses 1 2 3 1 2 3 4 5 6 (algorithms 2.8). After 1 2 3 all are on probation; 1 and 2
    /// are protected by their hits; 3's hit pushes 1 back: probation [1], protected [2, 3]. 4 joins probation; 5 needs
    /// room and evicts 1; 6 evicts 4.
    #[test]
    fn the_worked_example() {
        let mut policy = SegmentedLru::new(
            &SegmentedLruSettings { protected: 0.5 },
            MapCacheContext { entries: 4, entries_per_page: 8 },
        );
        let mut cached: Vec<u32> = Vec::new(); // page by slot
        let mut evicted = Vec::new();
        let mut access = |policy: &mut SegmentedLru, page: u32| {
            let slot = cached.iter().position(|known| *known == page).map(|at| u32::try_from(at).unwrap());
            match slot {
                Some(slot) => policy.touched(slot),
                None if cached.len() < 4 => {
                    policy.inserted(u32::try_from(cached.len()).unwrap());
                    cached.push(page);
                }
                None => {
                    let slot = policy.victim().unwrap();
                    policy.removed(slot);
                    evicted.push(std::mem::replace(&mut cached[slot as usize], page));
                    policy.inserted(slot);
                }
            }
        };
        [1, 2, 3, 1, 2, 3].into_iter().for_each(|page| access(&mut policy, page));
        // Slots 0, 1, 2 hold 1, 2, 3.
        assert_eq!(policy.lists.oldest_first(PROBATION), [0]);
        assert_eq!(policy.lists.oldest_first(PROTECTED), [1, 2]);
        [4, 5, 6].into_iter().for_each(|page| access(&mut policy, page));
        assert_eq!(evicted, [1, 4]);
        assert_eq!(policy.entries(), 4);
    }

    /// With one entry nothing can be protected: the hit entry overflows at once and is the next victim.
    #[test]
    fn one_entry_is_its_own_victim() {
        let mut policy =
            SegmentedLru::new(&SegmentedLruSettings::default(), MapCacheContext { entries: 1, entries_per_page: 8 });
        policy.inserted(0);
        policy.touched(0);
        assert_eq!((policy.victim(), policy.lists.len(PROTECTED)), (Some(0), 0));
    }

    /// With everything protected the victims come from the protected segment once probation is empty.
    #[test]
    fn an_empty_probation_gives_no_victim() {
        let mut policy = SegmentedLru::new(
            &SegmentedLruSettings { protected: 1.0 },
            MapCacheContext { entries: 2, entries_per_page: 8 },
        );
        (0..2).for_each(|slot| policy.inserted(slot));
        (0..2).for_each(|slot| policy.touched(slot));
        assert_eq!(policy.victim(), Some(0));
    }
}
