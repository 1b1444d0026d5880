//! The entries of a write buffer and the room that they take. The controller handles time.
//!
//! Entries are in the order in which they leave. An entry on its way to the flash keeps its room until the flash has
//! it, and takes no more data. Counts of entries by region of the address space ([`Regions`]) tell where nothing is
//! buffered, which most lookups ask for; the others scan all entries.
//!
//! Invariants: entries that wait are disjoint in a cache; if a sector is in several entries, the newest one holds what
//! was written last, and every older one is stale, so that no read is served from it.

use super::regions::Regions;
use flashwright_block::{Request, SECTOR_BYTES};
use flashwright_config::{BufferKind, WriteBufferConfig};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Sectors `first..end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Extent {
    pub first: u64,
    pub end: u64,
}

impl Extent {
    pub fn of(request: &Request) -> Self {
        Self { first: request.first_sector, end: request.end_sector() }
    }
    #[inline(always)]
    pub fn sectors(self) -> u64 {
        self.end - self.first
    }
    #[inline(always)]
    pub fn overlaps(self, other: Self) -> bool {
        (self.first < other.end) & (other.first < self.end)
    }
    #[inline(always)]
    pub fn contains(self, other: Self) -> bool {
        self.first <= other.first && other.end <= self.end
    }
    /// Whether it shares sectors with one of many. All are compared, since where most are elsewhere a branch for each, which
    /// is a coin toss, costs more than the rest of them.
    #[inline(always)]
    pub fn any_overlaps(many: impl Iterator<Item = Self>, one: Self) -> bool {
        many.fold(false, |any, other| any | other.overlaps(one))
    }
    /// Its parts, each with its holder's number; `holder` returns the number and the extent for a sector.
    pub fn found_in(self, holder: impl Fn(u64) -> Option<(u64, Self)>) -> Vec<(u64, Self)> {
        let mut at = self.first;
        let next = || {
            let (id, held) = holder(at).filter(|_| at < self.end)?;
            let part = Self { first: at, end: held.end.min(self.end) };
            at = part.end;
            Some((id, part))
        };
        std::iter::from_fn(next).collect()
    }
    fn shared(self, other: Self) -> u64 {
        self.end.min(other.end).saturating_sub(self.first.max(other.first))
    }
}

/// Written data that are not on flash yet.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Entry {
    pub id: u64,
    pub extent: Extent,
    /// The last request that wrote it, for its stream and its process.
    pub stream: u16,
    pub process: u32,
    /// On its way to the flash.
    pub flying: bool,
    /// Something newer was written to a part of it.
    stale: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct WriteBuffer {
    /// Sectors.
    size: u64,
    kind: BufferKind,
    /// Largest number of sectors of a merged entry; 0 merges nothing.
    join_max: u64,
    entries: VecDeque<Entry>,
    /// Where the entries are.
    regions: Regions,
    used: u64,
    flying: u64,
    next_id: u64,
}

/// Where data went: for the counts, and for the tests that follow each sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    pub entry: u64,
    /// Sectors that needed no new room.
    pub hit: u64,
}

impl WriteBuffer {
    pub fn new(config: &WriteBufferConfig, command_limit: u64) -> Self {
        let limit = if command_limit == 0 { u64::MAX } else { command_limit / SECTOR_BYTES };
        Self {
            size: config.size.0 / SECTOR_BYTES,
            kind: config.kind,
            join_max: if config.combine { limit } else { 0 },
            entries: VecDeque::new(),
            regions: Regions::new(config.size.0 / SECTOR_BYTES),
            used: 0,
            flying: 0,
            next_id: 0,
        }
    }

    pub fn size(&self) -> u64 {
        self.size
    }
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
    pub fn used(&self) -> u64 {
        self.used
    }
    #[inline]
    pub fn entry(&self, at: usize) -> Entry {
        self.entries[at]
    }

    /// Sectors of new room that a write takes.
    #[inline]
    pub fn need(&self, extent: Extent) -> u64 {
        match self.kind {
            BufferKind::Fifo => {
                let hit = self.entries.back().is_some_and(|newest| !newest.flying && newest.extent.contains(extent));
                if hit { 0 } else { extent.sectors() }
            }
            BufferKind::Cache if !self.regions.may_hold(extent) => extent.sectors(),
            BufferKind::Cache => {
                let waiting = self.entries.iter().filter(|entry| !entry.flying);
                extent.sectors() - waiting.map(|entry| entry.extent.shared(extent)).sum::<u64>()
            }
        }
    }

    /// Whether there is room for this many sectors.
    #[inline]
    pub fn has_room(&self, need: u64) -> bool {
        self.used + need <= self.size
    }
    /// Whether there will be room once all entries on their way to the flash are written.
    #[inline]
    pub fn will_have_room(&self, need: u64) -> bool {
        self.used - self.flying + need <= self.size
    }

    /// Stores data that there is room for. `cut` is called for data that leave older entries without going to the
    /// flash.
    pub fn place(&mut self, extent: Extent, request: &Request, mut cut: impl FnMut(u64, Extent)) -> Placed {
        let need = self.need(extent);
        assert!(self.has_room(need), "data come when there is room");
        self.used += need;
        let hit = extent.sectors() - need;
        let mut at = if self.touches(extent) { 0 } else { self.entries.len() };
        while at < self.entries.len() {
            let newest = at + 1 == self.entries.len();
            let entry = &mut self.entries[at];
            if !entry.extent.overlaps(extent) {
                at += 1;
                continue;
            }
            let in_place = !entry.flying && (self.kind == BufferKind::Cache || newest);
            if in_place && entry.extent.contains(extent) {
                (entry.stream, entry.process) = (request.stream, request.process);
                let entry = self.entries.remove(at).expect("it was just looked at");
                self.entries.push_back(entry);
                return Placed { entry: entry.id, hit };
            }
            if self.kind == BufferKind::Fifo || entry.flying {
                entry.stale = true;
                at += 1;
                continue;
            }
            // The new data replace what they cover, at one end of the entry or all of it.
            let shared = Extent { first: entry.extent.first.max(extent.first), end: entry.extent.end.min(extent.end) };
            cut(entry.id, shared);
            self.regions.take(entry.extent);
            if extent.contains(entry.extent) {
                self.entries.remove(at);
                continue;
            }
            if entry.extent.first < extent.first {
                entry.extent.end = extent.first;
            } else {
                entry.extent.first = extent.end;
            }
            self.regions.add(entry.extent);
            at += 1;
        }
        Placed { entry: self.append(extent, request), hit }
    }

    fn append(&mut self, extent: Extent, request: &Request) -> u64 {
        let joins = |entry: &Entry| {
            !entry.flying
                && !entry.stale
                && (entry.extent.end == extent.first || extent.end == entry.extent.first)
                && entry.extent.sectors() + extent.sectors() <= self.join_max
        };
        let at = match self.kind {
            _ if self.join_max == 0 => None,
            BufferKind::Fifo => self.entries.len().checked_sub(1).filter(|at| joins(&self.entries[*at])),
            BufferKind::Cache => {
                let with_neighbours = Extent { first: extent.first.saturating_sub(1), end: extent.end + 1 };
                let joinable = self.touches(with_neighbours);
                joinable.then(|| self.entries.iter().rposition(joins)).flatten()
            }
        };
        let mut entry = Entry {
            id: self.next_id,
            extent,
            stream: request.stream,
            process: request.process,
            flying: false,
            stale: false,
        };
        match at {
            Some(at) => {
                let old = self.entries.remove(at).expect("its position was just found");
                self.regions.take(old.extent);
                let extent = Extent { first: old.extent.first.min(extent.first), end: old.extent.end.max(extent.end) };
                entry = Entry { id: old.id, extent, ..entry };
            }
            None => self.next_id += 1,
        }
        self.regions.add(entry.extent);
        self.entries.push_back(entry);
        entry.id
    }

    /// Whether all these sectors can be read from here.
    #[inline]
    pub fn covers(&self, extent: Extent) -> bool {
        let mut at = extent.first;
        while at < extent.end {
            let holds = |entry: &&Entry| !entry.stale && entry.extent.first <= at && at < entry.extent.end;
            match self.entries.iter().find(holds) {
                None => return false,
                Some(entry) => at = entry.extent.end,
            }
        }
        true
    }

    /// Where the data of a covered read are: the sectors by entry.
    pub fn parts(&self, extent: Extent) -> Vec<(u64, Extent)> {
        extent.found_in(|at| {
            let holds = |entry: &&Entry| !entry.stale && entry.extent.first <= at && at < entry.extent.end;
            self.entries.iter().find(holds).map(|entry| (entry.id, entry.extent))
        })
    }

    /// Whether any entry holds some of these sectors.
    #[inline]
    pub fn touches(&self, extent: Extent) -> bool {
        self.regions.may_hold(extent) && Extent::any_overlaps(self.entries.iter().map(|entry| entry.extent), extent)
    }

    /// The entry that has to leave next.
    #[inline]
    pub fn oldest(&self) -> Option<usize> {
        self.entries.iter().position(|entry| !entry.flying)
    }

    /// The next entry that has to leave before something else touches these sectors on flash. Entries of a FIFO leave
    /// in order; otherwise an older one could follow a newer one.
    pub fn before(&self, extent: Extent) -> Option<usize> {
        if !self.touches(extent) {
            return None;
        }
        let waits = |entry: &Entry| !entry.flying && entry.extent.overlaps(extent);
        match self.kind {
            BufferKind::Cache => self.entries.iter().position(waits),
            BufferKind::Fifo => self.entries.iter().rposition(waits).and(self.oldest()),
        }
    }

    /// An entry leaves for the flash.
    #[inline]
    pub fn fly(&mut self, at: usize) {
        self.entries[at].flying = true;
        self.flying += self.entries[at].extent.sectors();
    }

    /// An entry is on flash.
    pub fn landed(&mut self, id: u64) -> Extent {
        let at = self.entries.iter().position(|entry| entry.id == id).expect("an entry stays until flash holds it");
        let entry = self.entries.remove(at).expect("its position was just found");
        self.regions.take(entry.extent);
        self.flying -= entry.extent.sectors();
        self.used -= entry.extent.sectors();
        entry.extent
    }

    /// Drops data wholly in `extent` that have not left; returns the number of sectors.
    pub fn drop_within(&mut self, extent: Extent, mut cut: impl FnMut(u64, Extent)) -> u64 {
        let mut dropped = 0;
        self.entries.retain(|entry| {
            let goes = !entry.flying && extent.contains(entry.extent);
            if goes {
                dropped += entry.extent.sectors();
                self.regions.take(entry.extent);
                cut(entry.id, entry.extent);
            }
            !goes
        });
        self.used -= dropped;
        dropped
    }

    /// Newer data go to the flash without the buffer: nothing here may be read in their place.
    pub fn supersede(&mut self, extent: Extent) {
        if !self.touches(extent) {
            return;
        }
        for entry in self.entries.iter_mut().filter(|entry| entry.extent.overlaps(extent)) {
            entry.stale = true;
        }
    }
}
