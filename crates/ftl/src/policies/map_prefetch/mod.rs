//! Prefetch policies of the cached mapping table: which entries are loaded beside one that was missed. A policy is one
//! file here and one line in the list below.
//!
//! They lie on the translation page that is read for the missing entry, so they cost no read. They cost room: entries leave
//! for them, which may have to be written ([`PrefetchEvicts`]).

use super::map_cache::MapCacheContext;
use crate::registry::{PolicySettings, policies};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod foreign;
pub use foreign::{ForeignMapPrefetch, MakeMapPrefetch, PrefetchEntries};

/// A lookup that missed.
#[derive(Clone, Copy)]
pub struct Miss<'a> {
    /// The logical page whose entry is missing.
    pub lpn: u32,
    /// Pages of the request after it.
    pub rest: u32,
    /// Entries of its translation page before it.
    pub before: u32,
    /// Entries of its translation page after it.
    pub after: u32,
    is_cached: &'a dyn Fn(u32) -> bool,
}

impl<'a> Miss<'a> {
    pub(crate) fn new(lpn: u32, rest: u32, (before, after): (u32, u32), is_cached: &'a dyn Fn(u32) -> bool) -> Self {
        Self { lpn, rest, before, after, is_cached }
    }

    /// Whether the entry of a logical page is cached.
    #[must_use]
    pub fn is_cached(&self, lpn: u32) -> bool {
        (self.is_cached)(lpn)
    }

    /// Cached entries of the same translation page that directly precede it, without a gap.
    #[must_use]
    pub fn cached_before(&self) -> u32 {
        let first = self.lpn - self.before;
        let row = (first..self.lpn).rev().take_while(|lpn| self.is_cached(*lpn));
        u32::try_from(row.count()).expect("entries of a page are counted in 32 bits")
    }
}

/// Entries of a translation page on either side of a missing one. Those that are cached already stay as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Around {
    /// How many of those that precede it.
    pub before: u32,
    /// How many of those that follow it.
    pub after: u32,
}

/// Which entries may leave for prefetched ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PrefetchEvicts {
    /// Whatever the replacement policy names.
    #[default]
    Any,
    /// All that leave at a miss are of one translation page, and at most one write is needed for them (TPFTL's rule). Where the
    /// replacement policy names an entry of another page next, fewer entries are prefetched: seldom if it keeps those of a page
    /// together, soon if it does not.
    OnePage,
}

/// Chooses the entries that are loaded beside a missing one.
pub trait MapPrefetchPolicy: Sized {
    /// The name that users choose it by.
    const NAME: &'static str;
    /// One-line description, with its source.
    const ABOUT: &'static str;
    /// Its settings.
    type Settings: PolicySettings;

    /// Builds it for an empty cache.
    fn new(settings: &Self::Settings, context: MapCacheContext) -> Self;
    /// Which entries to load; no more than the translation page has on either side.
    fn prefetch(&mut self, miss: &Miss) -> Around;
    /// A translation page has its first entry in the cache.
    fn page_came(&mut self) {}
    /// The last entry of a translation page left the cache.
    fn page_left(&mut self) {}
}

macro_rules! map_prefetches {
    ($($module:ident :: $policy:ident),+ $(,)?) => {
        policies! {
            key: "ftl.dftl.prefetch", trait: MapPrefetchPolicy, names: MapPrefetchName, settings: MapPrefetchSettings,
            running: MapPrefetch, context: MapCacheContext, foreign: ForeignMapPrefetch;
            $($module::$policy),+
        }

        impl MapPrefetch {
            /// See [`MapPrefetchPolicy::prefetch`].
            pub fn prefetch(&mut self, miss: &Miss) -> Around {
                match self {
                    $(MapPrefetch::$policy(policy) => policy.prefetch(miss),)+
                    MapPrefetch::Foreign(policy) => policy.prefetch(miss),
                }
            }
            /// See [`MapPrefetchPolicy::page_came`].
            pub fn page_came(&mut self, page: u32) {
                match self {
                    $(MapPrefetch::$policy(policy) => policy.page_came(),)+
                    MapPrefetch::Foreign(policy) => policy.page_came(page),
                }
            }
            /// See [`MapPrefetchPolicy::page_left`].
            pub fn page_left(&mut self, page: u32) {
                match self {
                    $(MapPrefetch::$policy(policy) => policy.page_left(),)+
                    MapPrefetch::Foreign(policy) => policy.page_left(page),
                }
            }
        }
    };
}

map_prefetches! { request::Request, selective::Selective }
