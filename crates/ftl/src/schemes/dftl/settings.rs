//! Settings of the demand-based scheme, and the sizes derived from them.

use crate::policies::map_cache::{MapCacheName, MapCacheSettings};
use crate::policies::map_prefetch::{MapPrefetchName, MapPrefetchSettings, PrefetchEvicts};
use crate::settings::{NamedOrNone, named_or_none};
use flashwright_block::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes of RAM that an entry of the cached mapping table takes: a logical and a physical page number.
pub(super) const CACHED_ENTRY_BYTES: u64 = 8;
/// Bytes of an entry in FAST's tables, which the paper derives the cache size from.
const FAST_ENTRY_BYTES: u64 = 4;

/// Whether an eviction and the load that it makes room for may share a read of one translation page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SamePageRead {
    /// The page is read twice: the published worst case of two reads and a write.
    #[default]
    Separate,
    /// One read serves both where the victim's entry and the wanted one lie on the same page.
    Shared,
}

/// The setting that fixed the size of the cached mapping table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum SizeKey {
    Entries,
    Ram,
}

/// `[ftl.dftl]`: settings of `ftl.scheme = "dftl"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct DftlSettings {
    /// Entries of the cached mapping table; 0 leaves the size to `ram`.
    pub cmt_entries: u32,
    /// RAM of the cached mapping table at 8 B per entry. `"0 B"` takes the RAM that FAST would need for its tables over
    /// the logical space (Gupta 2009, 5.1): 4 B per block, and 4 B per page of its log blocks. The directory is not
    /// deducted.
    pub ram: Bytes,
    /// Log blocks that FAST would have, as a share of the logical blocks, 0 to 1; used to compute the size from FAST's
    /// need.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-expected" = "a share of the logical blocks, {range}"))]
    pub log_share: f64,
    /// Whether evicting a dirty entry writes all dirty entries of its translation page, which become clean (Gupta 2009,
    /// 3.2), or only that entry (the C FlashSim).
    pub batch_on_evict: bool,
    /// Whether an eviction and the load after it may share a read.
    pub same_page_read: SamePageRead,
    /// Which entry is evicted.
    pub replacement: MapCacheName,
    /// Settings of the replacement policies, each in a table named after it.
    #[serde(flatten)]
    pub replacements: MapCacheSettings,
    /// Which entries of the same translation page are loaded with one that is not in the cache: they cost no read, but room. With
    /// `"none"` each entry is loaded when it is asked for.
    #[serde(with = "named_or_none")]
    #[schemars(with = "NamedOrNone<MapPrefetchName>")]
    pub prefetch: Option<MapPrefetchName>,
    /// Which entries may leave for prefetched ones.
    pub prefetch_evicts: PrefetchEvicts,
    /// Settings of the prefetch policies, each in a table named after it.
    #[serde(flatten)]
    pub prefetches: MapPrefetchSettings,
}

impl Default for DftlSettings {
    fn default() -> Self {
        Self {
            cmt_entries: 0,
            ram: Bytes(0),
            log_share: 0.03,
            batch_on_evict: true,
            same_page_read: SamePageRead::Separate,
            replacement: MapCacheName::SegmentedLru,
            replacements: MapCacheSettings::default(),
            prefetch: None,
            prefetch_evicts: PrefetchEvicts::default(),
            prefetches: MapPrefetchSettings::default(),
        }
    }
}

impl DftlSettings {
    /// Entries of the cached mapping table: as set, from the RAM, or from FAST's need; never more than logical pages.
    pub(super) fn entries(&self, logical_pages: u32, pages_per_block: u32) -> u32 {
        let entries = match (self.cmt_entries, self.ram) {
            (0, Bytes(0)) => self.fast_bytes(logical_pages, pages_per_block) / CACHED_ENTRY_BYTES,
            (0, Bytes(bytes)) => bytes / CACHED_ENTRY_BYTES,
            (entries, _) => u64::from(entries),
        };
        u32::try_from(entries).unwrap_or(u32::MAX).clamp(1, logical_pages)
    }

    /// The setting that fixes the size, if one is set.
    pub(super) fn size_key(&self) -> Option<SizeKey> {
        match (self.cmt_entries, self.ram) {
            (0, Bytes(0)) => None,
            (0, _) => Some(SizeKey::Ram),
            _ => Some(SizeKey::Entries),
        }
    }

    /// RAM that FAST needs for its tables over the logical space: the block map and the page map of the log blocks.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a share from 0 to 1 of a 32-bit number
    fn fast_bytes(&self, logical_pages: u32, pages_per_block: u32) -> u64 {
        let blocks = logical_pages.div_ceil(pages_per_block);
        let logs = (f64::from(blocks) * self.log_share).ceil() as u64;
        (u64::from(blocks) + logs * u64::from(pages_per_block)) * FAST_ENTRY_BYTES
    }

    /// One line for each problem, with the key and what to change.
    pub(super) fn problems(&self, logical_pages: u32) -> Vec<String> {
        let mut problems = Vec::new();
        if self.cmt_entries > 0 && self.ram.0 > 0 {
            problems.push(format!(
                "ftl.dftl.ram: found {} beside ftl.dftl.cmt-entries = {}; set one of them and leave the other at 0",
                self.ram, self.cmt_entries
            ));
        }
        if self.ram.0 > 0 && self.ram.0 < CACHED_ENTRY_BYTES {
            problems.push(format!(
                "ftl.dftl.ram: found {}, expected at least {CACHED_ENTRY_BYTES} B, which hold one entry",
                self.ram
            ));
        }
        if self.cmt_entries > logical_pages {
            problems.push(format!(
                "ftl.dftl.cmt-entries: found {}, expected at most {logical_pages}, one for each logical page",
                self.cmt_entries
            ));
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 6,400 logical pages in blocks of 64: 100 blocks, 3 log blocks; 4 * (100 + 192) = 1,168 B hold 146 entries.
    #[test]
    fn the_size_follows_fasts_need() {
        assert_eq!(DftlSettings::default().entries(6400, 64), 146);
        let ram = DftlSettings { ram: Bytes(64 << 10), ..DftlSettings::default() };
        assert_eq!((ram.entries(100_000, 64), ram.entries(100, 64)), (8192, 100));
        let entries = DftlSettings { cmt_entries: 3, ..DftlSettings::default() };
        assert_eq!(entries.entries(6400, 64), 3);
    }
}
