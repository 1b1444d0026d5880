//! The content of a read buffer, and its read-ahead. The controller handles time.

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
            used: 0,
            next_id: 0,
            last_end: u64::MAX,
            ahead: 0,
        }
    }

    #[inline]
    pub fn find(&self, extent: Extent) -> Found {
        if extent.sectors() < self.least {
            return Found::No;
        }
        let (mut at, mut found) = (extent.first, Found::All);
        while at < extent.end {
            let holds = |kept: &&Kept| kept.extent.first <= at && at < kept.extent.end;
            match self.kept.iter().find(holds) {
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
            self.kept.clear();
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
        }
        self.used += extent.sectors();
        self.kept.push_back(Kept { id: self.next_id, extent, ready: false, ahead });
        self.next_id += 1;
        self.next_id - 1
    }

    /// What to read ahead after this read, if anything.
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
        // The entry is among the newest.
        if let Some(kept) = self.kept.iter_mut().rfind(|kept| kept.id == id) {
            kept.ready = true;
        }
    }

    /// The data that `expect` or `read_ahead` made room for will not come.
    pub fn forget(&mut self, id: u64) {
        if let Some(at) = self.kept.iter().rposition(|kept| kept.id == id) {
            let gone = self.kept.remove(at).expect("it was found there");
            self.used -= gone.extent.sectors();
        }
    }

    /// Whether the entry with this number is here or expected.
    pub fn holds(&self, id: u64) -> bool {
        self.kept.iter().any(|kept| kept.id == id)
    }

    /// Where the data of a read are that the buffer serves: the sectors by number.
    pub fn parts(&self, extent: Extent) -> Vec<(u64, Extent)> {
        extent.found_in(|at| {
            let holds = |kept: &&Kept| kept.extent.first <= at && at < kept.extent.end;
            self.kept.iter().find(holds).map(|kept| (kept.id, kept.extent))
        })
    }

    /// Drops sectors that change.
    #[inline]
    pub fn invalidate(&mut self, extent: Extent) {
        if !self.kept.iter().any(|kept| kept.extent.overlaps(extent)) {
            return;
        }
        let used = &mut self.used;
        self.kept.retain(|kept| {
            let goes = kept.extent.overlaps(extent);
            *used -= if goes { kept.extent.sectors() } else { 0 };
            !goes
        });
    }
}
