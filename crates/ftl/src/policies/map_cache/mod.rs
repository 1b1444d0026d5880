//! Replacement policies of the cached mapping table: which entry is evicted. A policy is one file here and one line in
//! the list below.
//!
//! A cache numbers its slots; an entry keeps its slot while it is cached. Policies know slots, not pages.

use crate::registry::{PolicySettings, policies};

mod foreign;
mod lists;
mod scored;
pub use foreign::{ForeignMapCache, MakeMapCache, ReplaceEntries, Replacing};
pub use lists::SlotLists;
pub use scored::{CachedEntries, ScoreEntries};

/// The parameters of the cache that a policy is built for.
#[derive(Clone, Copy, Debug)]
pub struct MapCacheContext {
    /// Entries that the cache holds.
    pub entries: u32,
    /// Entries per translation page.
    pub entries_per_page: u32,
}

/// Chooses the entry to evict.
pub trait MapCachePolicy: Sized {
    /// The name that users choose it by.
    const NAME: &'static str;
    /// One-line description, with its source.
    const ABOUT: &'static str;
    /// Its settings.
    type Settings: PolicySettings;

    /// Builds it for an empty cache.
    fn new(settings: &Self::Settings, context: MapCacheContext) -> Self;
    /// An entry was loaded into a slot.
    fn inserted(&mut self, slot: u32);
    /// An entry was loaded into a slot; `page` returns its translation page.
    #[inline(always)]
    fn loaded(&mut self, slot: u32, page: impl FnOnce() -> u32) {
        let _ = page;
        self.inserted(slot);
    }
    /// The entry of a slot was looked up and found.
    fn touched(&mut self, slot: u32);
    /// The entry of a slot became dirty.
    #[inline(always)]
    fn dirtied(&mut self, slot: u32) {
        let _ = slot;
    }
    /// The entry of a slot was written to its translation page. Called only with [`MapCachePolicy::GROUPS`], in the
    /// order in which the entries of the page became dirty.
    #[inline(always)]
    fn cleaned(&mut self, slot: u32) {
        let _ = slot;
    }
    /// Whether it tracks which entries are dirty and which translation page they belong to.
    const GROUPS: bool = false;
    /// Whether all entries of a translation page leave when one of them has to be written.
    #[inline]
    fn leaves_whole(&self) -> bool {
        false
    }
    /// Whether there is an entry that could leave without a write, if the policy tracks this.
    #[inline]
    fn has_clean(&self) -> Option<bool> {
        None
    }
    /// The translation page with the most cached entries, if the policy tracks this.
    #[inline]
    fn largest_group(&self) -> Option<u32> {
        None
    }
    /// The slots of the dirty entries of a translation page, the one that became dirty last first; called only with
    /// [`MapCachePolicy::GROUPS`].
    fn group(&self, page: u32) -> Vec<u32> {
        let _ = page;
        Vec::new()
    }
    /// The cache size changed; entries that no longer fit are removed right after.
    fn resized(&mut self, entries: u32) {
        let _ = entries;
    }
    /// The entry of a slot left the cache.
    fn removed(&mut self, slot: u32);
    /// The clean entry of a slot left, and another was loaded into it; `page` returns the translation page of that one.
    #[inline(always)]
    fn replaced(&mut self, slot: u32, page: impl FnOnce() -> u32) {
        self.removed(slot);
        self.loaded(slot, page);
    }
    /// The slot whose entry leaves next; none if the cache is empty.
    fn victim(&self) -> Option<u32>;
    /// The slot that will probably leave after it, if that is known at no cost; only a hint.
    #[inline]
    fn likely_after(&self, slot: u32) -> Option<u32> {
        let _ = slot;
        None
    }
    /// Warms the CPU cache for a use of a slot.
    #[inline]
    fn expect(&self, slot: u32) {
        let _ = slot;
    }
    /// The number of slots it knows; the audit compares this with the number of cached entries.
    fn entries(&self) -> u32;
}

macro_rules! map_caches {
    ($($module:ident :: $policy:ident),+ $(,)?) => {
        policies! {
            key: "ftl.dftl.replacement", trait: MapCachePolicy, names: MapCacheName, settings: MapCacheSettings,
            running: MapCache, context: MapCacheContext, foreign: ForeignMapCache;
            $($module::$policy),+
        }

        impl MapCache {
            /// See [`MapCachePolicy::loaded`].
            #[inline(always)]
            pub fn loaded(&mut self, slot: u32, page: impl FnOnce() -> u32) {
                match self {
                    $(MapCache::$policy(policy) => policy.loaded(slot, page),)+
                    MapCache::Foreign(policy) => policy.loaded(slot, page()),
                }
            }
            /// As [`MapCachePolicy::replaced`]; answers the slot that leaves next, and the one that probably leaves after it.
            #[inline(always)]
            pub fn replaced(&mut self, slot: u32, page: impl FnOnce() -> u32) -> Option<(u32, Option<u32>)> {
                match self {
                    $(MapCache::$policy(policy) => {
                        policy.replaced(slot, page);
                        policy.victim().map(|next| (next, policy.likely_after(next)))
                    })+
                    MapCache::Foreign(policy) => {
                        policy.removed(slot);
                        policy.loaded(slot, page());
                        None
                    }
                }
            }
            /// See [`MapCachePolicy::dirtied`].
            #[inline(always)]
            pub fn dirtied(&mut self, slot: u32) {
                match self {
                    $(MapCache::$policy(policy) => policy.dirtied(slot),)+
                    MapCache::Foreign(_) => {}
                }
            }
            /// See [`MapCachePolicy::cleaned`].
            #[inline(always)]
            pub fn cleaned(&mut self, slot: u32) {
                match self {
                    $(MapCache::$policy(policy) => policy.cleaned(slot),)+
                    MapCache::Foreign(_) => {}
                }
            }
            /// See [`MapCachePolicy::group`].
            #[must_use]
            pub fn group(&self, page: u32) -> Vec<u32> {
                match self {
                    $(MapCache::$policy(policy) => policy.group(page),)+
                    MapCache::Foreign(_) => Vec::new(),
                }
            }
            /// See [`MapCachePolicy::GROUPS`].
            #[inline(always)]
            #[must_use]
            pub fn groups(&self) -> bool {
                match self {
                    $(MapCache::$policy(_) => $policy::GROUPS,)+
                    MapCache::Foreign(_) => false,
                }
            }
            /// See [`MapCachePolicy::leaves_whole`].
            #[must_use]
            pub fn leaves_whole(&self) -> bool {
                match self {
                    $(MapCache::$policy(policy) => policy.leaves_whole(),)+
                    MapCache::Foreign(_) => false,
                }
            }
            /// See [`MapCachePolicy::has_clean`].
            #[must_use]
            pub fn has_clean(&self) -> Option<bool> {
                match self {
                    $(MapCache::$policy(policy) => policy.has_clean(),)+
                    MapCache::Foreign(_) => None,
                }
            }
            /// See [`MapCachePolicy::largest_group`].
            #[must_use]
            pub fn largest_group(&self) -> Option<u32> {
                match self {
                    $(MapCache::$policy(policy) => policy.largest_group(),)+
                    MapCache::Foreign(_) => None,
                }
            }
            /// See [`MapCachePolicy::resized`].
            pub fn resized(&mut self, entries: u32) {
                match self {
                    $(MapCache::$policy(policy) => policy.resized(entries),)+
                    MapCache::Foreign(_) => {}
                }
            }
            /// See [`MapCachePolicy::touched`].
            #[inline(always)]
            pub fn touched(&mut self, slot: u32) {
                match self {
                    $(MapCache::$policy(policy) => policy.touched(slot),)+
                    MapCache::Foreign(policy) => policy.touched(slot),
                }
            }
            /// See [`MapCachePolicy::removed`].
            #[inline(always)]
            pub fn removed(&mut self, slot: u32) {
                match self {
                    $(MapCache::$policy(policy) => policy.removed(slot),)+
                    MapCache::Foreign(policy) => policy.removed(slot),
                }
            }
            /// See [`MapCachePolicy::victim`]; `is_dirty` tells a policy from outside which entries have to be written first.
            #[inline(always)]
            pub fn victim(&mut self, is_dirty: impl Fn(u32) -> bool) -> Option<u32> {
                match self {
                    $(MapCache::$policy(policy) => policy.victim(),)+
                    MapCache::Foreign(policy) => policy.victim(is_dirty),
                }
            }
            /// As [`MapCachePolicy::victim`], if it is known at no cost; only a hint.
            #[inline(always)]
            #[must_use]
            pub fn likely_next(&self) -> Option<u32> {
                match self {
                    $(MapCache::$policy(policy) => policy.victim(),)+
                    MapCache::Foreign(_) => None,
                }
            }
            /// See [`MapCachePolicy::likely_after`].
            #[inline(always)]
            #[must_use]
            pub fn likely_after(&self, slot: u32) -> Option<u32> {
                match self {
                    $(MapCache::$policy(policy) => policy.likely_after(slot),)+
                    MapCache::Foreign(_) => None,
                }
            }
            /// See [`MapCachePolicy::expect`].
            #[inline(always)]
            pub fn expect(&self, slot: u32) {
                match self {
                    $(MapCache::$policy(policy) => policy.expect(slot),)+
                    MapCache::Foreign(_) => {}
                }
            }
            /// See [`MapCachePolicy::entries`].
            #[must_use]
            pub fn entries(&self) -> u32 {
                match self {
                    $(MapCache::$policy(policy) => policy.entries(),)+
                    MapCache::Foreign(policy) => policy.entries(),
                }
            }
        }
    };
}

map_caches! { segmented_lru::SegmentedLru, lru::Lru, lfu::Lfu, flashsim_two_list::FlashsimTwoList, grouped::Grouped }

/// `share` of `entries`, rounded down.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a share from 0 to 1
fn share_of(entries: u32, share: f64) -> u32 {
    (f64::from(entries) * share) as u32
}
