//! The content of a read buffer, and its read-ahead. The controller handles time.
//!
//! Entries are in the order in which they came, and disjoint, since what comes in first drops what it overlaps. Counts by region
//! of the address space ([`Regions`]) tell where none is; other lookups begin at the newest entry, where runs of reads find
//! theirs.

use super::regions::Regions;
use super::write_buffer::Extent;
use flashwright_block::SECTOR_BYTES;
use flashwright_config::ReadBufferConfig;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Kept {
    id: u64,
    extent: Extent,
    /// Whether its data have arrived.
    ready: bool,
    /// For read-ahead data: how far they have been used.
    ahead: Option<u64>,
}

/// The result of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    All,
    /// All sectors are here or being read ahead.
    Coming,
    No,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ReadBuffer {
    /// Sectors.
    size: u64,
    least: u64,
    prefetch: u64,
    kept: VecDeque<Kept>,
    /// Where the entries are.
    regions: Regions,
    used: u64,
    next_id: u64,
    /// Where the last read ended, and how far was read ahead.
    last_end: u64,
    ahead: u64,
}

impl ReadBuffer {
    pub fn new(config: &ReadBufferConfig) -> Self {
        Self {
            size: config.size.0 / SECTOR_BYTES,
            least: config.least.0 / SECTOR_BYTES,
            prefetch: config.prefetch.0 / SECTOR_BYTES,
            kept: VecDeque::new(),
            regions: Regions::new(config.size.0 / SECTOR_BYTES),
            used: 0,
            next_id: 0,
            last_end: u64::MAX,
            ahead: 0,
        }
    }

    #[inline]
    pub fn find(&self, extent: Extent) -> Found {
        if extent.sectors() < self.least || !self.touches(extent) {
            return Found::No;
        }
        let (mut at, mut found) = (extent.first, Found::All);
        while at < extent.end {
            match self.holder(at) {
                None => return Found::No,
                // Waiting is worthwhile only for read-ahead data: another reader's data may be delayed.
                Some(kept) if !kept.ready && kept.ahead.is_none() => return Found::No,
                Some(kept) => {
                    found = if kept.ready { found } else { Found::Coming };
                    at = kept.extent.end;
                }
            }
        }
        found
    }

    /// Whether any entry holds some of these sectors.
    #[inline(always)]
    fn touches(&self, extent: Extent) -> bool {
        self.regions.may_hold(extent) && Extent::any_overlaps(self.kept.iter().map(|kept| kept.extent), extent)
    }

    /// Where the entry with this number is.
    #[inline]
    fn at(&self, id: u64) -> Option<usize> {
        // If none in between was dropped, its number says where it is.
        let back = usize::try_from(self.next_id - id).ok()?;
        let likely = self.kept.len().checked_sub(back).filter(|at| self.kept[*at].id == id);
        likely.or_else(|| self.kept.iter().rposition(|kept| kept.id == id))
    }

    /// The entry that holds a sector.
    #[inline]
    fn holder(&self, sector: u64) -> Option<&Kept> {
        self.kept.iter().rfind(|kept| kept.extent.first <= sector && sector < kept.extent.end)
    }

    /// A read was served from here; returns its sectors that had been read ahead and are used for the first time.
    pub fn used_ahead(&mut self, extent: Extent) -> u64 {
        let mut used = 0;
        for kept in self.kept.iter_mut().filter(|kept| kept.extent.overlaps(extent)) {
            if let Some(until) = &mut kept.ahead {
                let end = extent.end.min(kept.extent.end);
                used += end.saturating_sub(extent.first.max(*until));
                *until = end.max(*until);
            }
        }
        used
    }

    /// Makes room for a read that goes to the flash. None if it bypasses the buffer.
    pub fn expect(&mut self, extent: Extent) -> Option<u64> {
        if extent.sectors() > self.size {
            for gone in self.kept.drain(..) {
                self.regions.take(gone.extent);
            }
            self.used = 0;
            return None;
        }
        (extent.sectors() >= self.least).then(|| self.keep(extent, None))
    }

    fn keep(&mut self, extent: Extent, ahead: Option<u64>) -> u64 {
        self.invalidate(extent);
        while self.used + extent.sectors() > self.size {
            let oldest = self.kept.pop_front().expect("what fits the buffer finds room");
            self.used -= oldest.extent.sectors();
            self.regions.take(oldest.extent);
        }
        self.used += extent.sectors();
        self.regions.add(extent);
        self.kept.push_back(Kept { id: self.next_id, extent, ready: false, ahead });
        self.next_id += 1;
        self.next_id - 1
    }

    /// What to read ahead after this read, if anything.
    #[inline]
    pub fn follows(&mut self, extent: Extent, device_sectors: u64) -> Option<Extent> {
        if self.prefetch == 0 {
            return None;
        }
        let goes_on = extent.first == self.last_end;
        self.last_end = extent.end;
        if !goes_on {
            self.ahead = extent.end;
            return None;
        }
        self.ahead = self.ahead.max(extent.end);
        let end = (self.ahead + self.prefetch).min(device_sectors);
        if self.ahead - extent.end > self.prefetch / 2 || self.ahead >= end {
            return None;
        }
        Some(Extent { first: self.ahead, end })
    }

    /// Takes room for read-ahead data.
    pub fn read_ahead(&mut self, extent: Extent) -> u64 {
        self.ahead = extent.end;
        self.keep(extent, Some(extent.first))
    }

    /// The data that `expect` or `read_ahead` made room for have arrived, unless a write or a later read took their
    /// place.
    pub fn filled(&mut self, id: u64) {
        if let Some(at) = self.at(id) {
            self.kept[at].ready = true;
        }
    }

    /// The data that `expect` or `read_ahead` made room for will not come.
    pub fn forget(&mut self, id: u64) {
        if let Some(at) = self.at(id) {
            let gone = self.kept.remove(at).expect("it was found there");
            self.used -= gone.extent.sectors();
            self.regions.take(gone.extent);
        }
    }

    /// Whether the entry with this number is here or expected.
    pub fn holds(&self, id: u64) -> bool {
        self.at(id).is_some()
    }

    /// Where the data of a read are that the buffer serves: the sectors by number.
    pub fn parts(&self, extent: Extent) -> Vec<(u64, Extent)> {
        extent.found_in(|at| self.holder(at).map(|kept| (kept.id, kept.extent)))
    }

    /// Drops sectors that change.
    #[inline]
    pub fn invalidate(&mut self, extent: Extent) {
        if !self.touches(extent) {
            return;
        }
        let Self { kept, regions, used, .. } = self;
        kept.retain(|kept| {
            let goes = kept.extent.overlaps(extent);
            if goes {
                *used -= kept.extent.sectors();
                regions.take(kept.extent);
            }
            !goes
        });
    }
}
