//! What every sector should hold: a twin of the controller that keeps a map of each place that data can be in, as
//! numbers of writes, and compares what a read is given with the last write before it.

use super::Owner;
use super::write_buffer::Extent;
use flashwright_block::{Request, RequestKind};
use std::collections::{BTreeMap, HashMap};

/// What a sector holds: the tag of the write, or nothing that can be told after a trim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Written(u64),
    Trimmed,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Twin {
    pub on: bool,
    /// Every write and trim of a sector, by tag.
    asked: BTreeMap<u64, BTreeMap<u64, Version>>,
    flash: HashMap<u64, u64>,
    ram: HashMap<(u64, u64), u64>,
    read_buffer: HashMap<u64, Option<u64>>,
    pub reads_checked: u64,
}

impl Twin {
    pub fn submitted(&mut self, tag: u64, request: &Request) {
        let version = match request.kind {
            RequestKind::Write => Version::Written(tag),
            RequestKind::Trim => Version::Trimmed,
            _ => return,
        };
        for sector in sectors(Extent::of(request), self.on) {
            self.asked.entry(sector).or_default().insert(tag, version);
        }
    }

    pub fn placed(&mut self, entry: u64, extent: Extent, tag: u64) {
        for sector in sectors(extent, self.on) {
            self.ram.insert((entry, sector), tag);
        }
    }

    pub fn cut(&mut self, entry: u64, extent: Extent) {
        for sector in sectors(extent, self.on) {
            assert!(self.ram.remove(&(entry, sector)).is_some(), "entry {entry} gives up {sector}, which it has not");
        }
    }

    pub fn landed(&mut self, entry: u64) {
        if self.on {
            self.ram.retain(|(id, _), _| *id != entry);
        }
    }

    /// The device below gets a request; `command` answers the tag of a command and whether its data are to be kept.
    pub fn sent(&mut self, request: &Request, owner: Owner, command: impl Fn(u32) -> (u64, bool)) {
        for sector in sectors(Extent::of(request), self.on) {
            match (request.kind, owner) {
                (RequestKind::Write, Owner::Entry(id)) => {
                    let version = self.ram.get(&(id, sector)).expect("an entry holds what it sends");
                    let before = self.flash.insert(sector, *version);
                    assert!(before.is_none_or(|before| before < *version), "sector {sector} goes back in time");
                }
                (RequestKind::Write, Owner::Command(slot)) => {
                    self.flash.insert(sector, command(slot).0);
                }
                (RequestKind::Read, Owner::Command(slot)) => {
                    let (tag, kept) = command(slot);
                    self.check(tag, sector, self.flash.get(&sector).copied(), "flash");
                    if kept {
                        self.read_buffer.insert(sector, self.flash.get(&sector).copied());
                    }
                }
                (RequestKind::Read, Owner::Ahead(_)) => {
                    self.read_buffer.insert(sector, self.flash.get(&sector).copied());
                }
                _ => {}
            }
        }
    }

    pub fn served_from_ram(&mut self, tag: u64, extent: Extent) {
        for sector in sectors(extent, self.on) {
            let newest = self.ram.iter().filter(|((_, at), _)| *at == sector).map(|(_, version)| *version).max();
            assert!(newest.is_some(), "the write buffer serves sector {sector}, which it has not");
            self.check(tag, sector, newest, "the write buffer");
        }
    }

    pub fn served_from_read_buffer(&mut self, tag: u64, extent: Extent) {
        for sector in sectors(extent, self.on) {
            let found = *self.read_buffer.get(&sector).expect("the read buffer serves what was read into it");
            self.check(tag, sector, found, "the read buffer");
        }
    }

    fn check(&mut self, tag: u64, sector: u64, found: Option<u64>, place: &str) {
        self.reads_checked += 1;
        let last = self.asked.get(&sector).and_then(|all| all.range(..tag).next_back());
        let expected = match last {
            None => None,
            Some((_, Version::Trimmed)) => return,
            Some((_, Version::Written(tag))) => Some(*tag),
        };
        assert_eq!(found, expected, "read {tag} of sector {sector} from {place}");
    }

    /// What flash holds at the end: the last write of every sector that was not trimmed after it.
    pub fn check_flash(&self) {
        for (sector, all) in &self.asked {
            if let Some((_, Version::Written(tag))) = all.last_key_value() {
                assert_eq!(self.flash.get(sector), Some(tag), "sector {sector} after a flush");
            }
        }
        assert!(self.ram.is_empty(), "a flush leaves nothing behind");
    }
}

/// The sectors of an extent, or none while nothing is followed.
fn sectors(extent: Extent, on: bool) -> std::ops::Range<u64> {
    if on { extent.first..extent.end } else { 0..0 }
}
