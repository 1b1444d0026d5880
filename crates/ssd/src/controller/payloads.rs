//! The bytes in a controller: those of commands, of write buffer entries, and of the read buffer. They follow the
//! buffers and decide nothing.

use super::write_buffer::Extent;
use flashwright_block::{Request, SECTOR_BYTES};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The bytes of consecutive sectors.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Stretch {
    first: u64,
    bytes: Vec<u8>,
}

impl Stretch {
    fn zeros(extent: Extent) -> Self {
        Self { first: extent.first, bytes: vec![0; length(extent.sectors())] }
    }
    fn end(&self) -> u64 {
        self.first + self.bytes.len() as u64 / SECTOR_BYTES
    }
    /// The position of these sectors' bytes.
    fn range(&self, extent: Extent) -> std::ops::Range<usize> {
        length(extent.first - self.first)..length(extent.end - self.first)
    }
    fn get(&self, extent: Extent) -> &[u8] {
        &self.bytes[self.range(extent)]
    }
    /// Overwrites sectors that it has, or appends data at one of its ends.
    fn put(&mut self, extent: Extent, data: &[u8]) {
        if extent.end == self.first {
            self.first = extent.first;
            self.bytes.splice(..0, data.iter().copied());
        } else if extent.first == self.end() {
            self.bytes.extend_from_slice(data);
        } else {
            let range = self.range(extent);
            self.bytes[range].copy_from_slice(data);
        }
    }
    /// Removes sectors at one of its ends.
    fn cut(&mut self, extent: Extent) {
        let range = self.range(extent);
        if range.start == 0 {
            self.first = extent.end;
        }
        self.bytes.drain(range);
    }
}

/// All bytes by owner. Commands are identified by their tags.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Payloads {
    /// Data of writes. A write without data writes zeros and is not here.
    writes: BTreeMap<u64, Stretch>,
    /// Data of reads so far.
    reads: BTreeMap<u64, Stretch>,
    /// Reads whose data the host will take.
    wanted: BTreeSet<u64>,
    /// By entry of the write buffer.
    entries: BTreeMap<u64, Stretch>,
    /// By number in the read buffer; data that it dropped are removed with the next insertion.
    kept: BTreeMap<u64, Stretch>,
}

impl Payloads {
    // --- the host ---

    pub fn submitted(&mut self, tag: u64, request: &Request, data: &[u8]) {
        if !data.is_empty() {
            self.writes.insert(tag, Stretch { first: request.first_sector, bytes: data.to_vec() });
        } else if request.data_bytes() > 0 {
            self.wanted.insert(tag);
        }
    }

    /// A command has completed. Its data stay if it is a successful read whose data the host wants.
    pub fn finished(&mut self, tag: u64, failed: bool) {
        self.writes.remove(&tag);
        if !self.wanted.remove(&tag) || failed {
            self.reads.remove(&tag);
        }
    }

    pub fn taken(&mut self, tag: u64) -> Option<Vec<u8>> {
        self.reads.remove(&tag).map(|stretch| stretch.bytes)
    }

    /// The buffers have lost what they held. Data of reads that have completed stay.
    pub fn forget_buffers(&mut self) {
        self.writes.clear();
        self.entries.clear();
        self.kept.clear();
    }

    // --- the write buffer ---

    /// A part of a write went into an entry.
    pub fn placed(&mut self, entry: u64, part: Extent, tag: u64) {
        let data = self.written(tag, part);
        match self.entries.get_mut(&entry) {
            Some(held) => held.put(part, &data),
            None => drop(self.entries.insert(entry, Stretch { first: part.first, bytes: data })),
        }
    }

    /// An entry gives up sectors.
    pub fn cut(&mut self, entry: u64, extent: Extent) {
        if let Some(held) = self.entries.get_mut(&entry) {
            held.cut(extent);
            if held.bytes.is_empty() {
                self.entries.remove(&entry);
            }
        }
    }

    /// An entry is on flash.
    pub fn landed(&mut self, entry: u64) {
        self.entries.remove(&entry);
    }

    /// The data that an entry sends to the flash.
    pub fn entry(&self, entry: u64, extent: Extent) -> Vec<u8> {
        self.entries[&entry].get(extent).to_vec()
    }

    /// The data of some sectors of a write.
    pub fn written(&self, tag: u64, part: Extent) -> Vec<u8> {
        self.writes.get(&tag).map_or_else(|| vec![0; length(part.sectors())], |held| held.get(part).to_vec())
    }

    // --- reads ---

    /// A part of a read arrived from the device below.
    pub fn came(&mut self, tag: u64, whole: Extent, part: Extent, data: &[u8]) {
        self.reads.entry(tag).or_insert_with(|| Stretch::zeros(whole)).put(part, data);
    }

    /// A read is answered from entries of the write buffer, with the sectors of each.
    pub fn served_by_entries(&mut self, tag: u64, whole: Extent, parts: &[(u64, Extent)]) {
        let mut given = Stretch::zeros(whole);
        for (entry, part) in parts {
            given.put(*part, self.entries[entry].get(*part));
        }
        self.reads.insert(tag, given);
    }

    /// A read is answered from the read buffer, with the sectors of each number. No data are returned if the read that
    /// should have brought them failed.
    pub fn served_by_kept(&mut self, tag: u64, whole: Extent, parts: &[(u64, Extent)]) {
        let mut given = Stretch::zeros(whole);
        for (id, part) in parts {
            let Some(held) = self.kept.get(id) else { return };
            given.put(*part, held.get(*part));
        }
        self.reads.insert(tag, given);
    }

    /// Whether there are no bytes other than those of the read buffer.
    #[cfg(test)]
    pub fn only_keeps(&self) -> bool {
        self.writes.is_empty() && self.reads.is_empty() && self.wanted.is_empty() && self.entries.is_empty()
    }

    // --- the read buffer ---

    /// Data of a read command are kept, too.
    pub fn keep_read(&mut self, tag: u64, id: u64, holds: impl Fn(u64) -> bool) {
        if let Some(given) = self.reads.get(&tag).cloned() {
            self.keep(id, given, holds);
        }
    }

    /// Read-ahead data have arrived.
    pub fn keep_ahead(&mut self, id: u64, extent: Extent, data: Vec<u8>, holds: impl Fn(u64) -> bool) {
        self.keep(id, Stretch { first: extent.first, bytes: data }, holds);
    }

    fn keep(&mut self, id: u64, stretch: Stretch, holds: impl Fn(u64) -> bool) {
        self.kept.insert(id, stretch);
        self.kept.retain(|id, _| holds(*id));
    }
}

fn length(sectors: u64) -> usize {
    usize::try_from(sectors * SECTOR_BYTES).expect("parts of requests fit the machine's memory")
}
