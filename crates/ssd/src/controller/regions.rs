//! Where in the address space a buffer has entries, by counts. Most requests touch none of them, and a lookup here costs one
//! count where a scan costs every entry.

use super::write_buffer::Extent;
use serde::{Deserialize, Serialize};

/// How many entries hold sectors of each region, where regions share counts: a stretch whose counts are all zero is in
/// no entry.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Regions {
    /// A power of two of them.
    counts: Vec<u32>,
}

/// A region has 2 to this power sectors: 4 KiB, since most requests are small.
const REGION_SHIFT: u32 = 3;
/// Counts for each region that fits into the buffer, so that few regions with entries share theirs with one without.
const COUNTS_PER_REGION: u64 = 16;
/// Counts of the largest buffers.
const COUNTS_MAX: u64 = 1 << 18;
/// A stretch of more regions is looked up among the entries at once.
const REGIONS_LOOKED_AT: u64 = 32;

impl Regions {
    pub fn new(buffer_sectors: u64) -> Self {
        let regions = (buffer_sectors >> REGION_SHIFT).clamp(1, COUNTS_MAX / COUNTS_PER_REGION);
        let counts = (regions * COUNTS_PER_REGION).next_power_of_two();
        Self { counts: vec![0; usize::try_from(counts).unwrap_or(1)] }
    }

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // the bits above the mask go anyway
    fn place(&self, region: u64) -> usize {
        // Each stretch of 1,024 regions is shifted by its own distance: data at like places of many stretches spread.
        region.wrapping_add((region >> 10).wrapping_mul(0x9e37_79b9)) as usize & (self.counts.len() - 1)
    }

    #[inline(always)]
    fn of(extent: Extent) -> std::ops::Range<u64> {
        extent.first >> REGION_SHIFT..(extent.end.saturating_sub(1) >> REGION_SHIFT) + 1
    }

    /// Whether an extent is short enough to look up each of its regions.
    #[inline(always)]
    pub fn counts_each(extent: Extent) -> bool {
        let regions = Self::of(extent);
        regions.end.saturating_sub(regions.start) <= REGIONS_LOOKED_AT
    }

    #[inline]
    pub fn add(&mut self, extent: Extent) {
        for region in Self::of(extent) {
            let at = self.place(region);
            self.counts[at] += 1;
        }
    }

    #[inline]
    pub fn take(&mut self, extent: Extent) {
        for region in Self::of(extent) {
            let at = self.place(region);
            self.counts[at] -= 1;
        }
    }

    /// Whether an entry may hold some of these sectors; if not, none does.
    #[inline(always)]
    pub fn may_hold(&self, extent: Extent) -> bool {
        !Self::counts_each(extent) || self.most(extent) > 0
    }

    /// At least as many as the entries that hold sectors of any one of these regions.
    #[inline(always)]
    pub fn most(&self, extent: Extent) -> u32 {
        Self::of(extent).fold(0, |most, region| most.max(self.counts[self.place(region)]))
    }
}
