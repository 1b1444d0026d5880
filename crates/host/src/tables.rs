//! The lookup tables of a filter: requests by their tag below, and by the sector where an adjacent request would begin.

use crate::pool::Id;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

const NONE: u32 = u32::MAX;

/// Largest distance between the oldest and the newest tag in flight that the row covers.
const ROW: usize = 4096;

/// Requests below by their tags. Simulated devices and filters number theirs consecutively, so most are in a row, where the
/// tag says the place; any other tag is found by hash.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct InFlight {
    /// The tag of the first of the row, and how many there are up to the last.
    first: u64,
    len: u64,
    /// The row, by the lowest bits of the tag; a power of two of places.
    row: Vec<u32>,
    other: FxHashMap<u64, u32>,
}

impl InFlight {
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // the upper bits are not needed
    fn place(&self, tag: u64) -> usize {
        tag as usize & self.row.len().wrapping_sub(1)
    }

    /// A request goes below under an unused tag.
    #[inline]
    pub fn insert(&mut self, tag: u64, id: Id) {
        if self.len == 0 {
            self.first = tag;
        }
        if tag.wrapping_sub(self.first) != self.len || (self.len == self.row.len() as u64 && !self.grow()) {
            self.other.insert(tag, id.0);
            return;
        }
        let place = self.place(tag);
        self.row[place] = id.0;
        self.len += 1;
    }

    /// Doubles the row; false if it is as long as it may be.
    #[cold]
    fn grow(&mut self) -> bool {
        if self.row.len() >= ROW {
            return false;
        }
        let old = std::mem::take(&mut self.row);
        self.row = vec![NONE; (2 * old.len()).max(64)];
        for at in 0..self.len {
            let tag = self.first.wrapping_add(at);
            let place = self.place(tag);
            #[allow(clippy::cast_possible_truncation)] // the upper bits are not needed
            let was = tag as usize & (old.len() - 1);
            self.row[place] = old[was];
        }
        true
    }

    /// The request of a tag has completed.
    #[inline]
    pub fn remove(&mut self, tag: u64) -> Option<Id> {
        let mut found = NONE;
        if tag.wrapping_sub(self.first) < self.len {
            let place = self.place(tag);
            found = std::mem::replace(&mut self.row[place], NONE);
        }
        if found == NONE {
            return self.other.remove(&tag).map(Id);
        }
        while self.len > 0 && self.row[self.place(self.first)] == NONE {
            self.first = self.first.wrapping_add(1);
            self.len -= 1;
        }
        Some(Id(found))
    }
}

/// Buckets for each request, so that few have two, which the processor would predict badly.
const SPARSE: usize = 16;

/// At most one request for each key. The chains of the buckets link entries by request number, so nothing is allocated
/// once the largest number of requests has been queued.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ByKey {
    /// First request of each bucket; their number is a power of two, at least half of `SPARSE` times that of entries.
    buckets: Vec<u32>,
    /// Key and next of the bucket, by number.
    entries: Vec<(u64, u32)>,
}

impl ByKey {
    #[inline]
    fn bucket(&self, key: u64) -> usize {
        // Fibonacci hashing: the upper bits of the product are the best mixed.
        let mixed = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> 32) as usize & (self.buckets.len() - 1)
    }

    /// The request with this key.
    #[inline]
    pub fn get(&self, key: u64) -> Option<Id> {
        let mut at = if self.buckets.is_empty() { NONE } else { self.buckets[self.bucket(key)] };
        while at != NONE {
            let (other, next) = self.entries[at as usize];
            if other == key {
                return Some(Id(at));
            }
            at = next;
        }
        None
    }

    /// Adds a request that is not in the table, replacing the one with the same key.
    #[inline(always)]
    pub fn insert(&mut self, key: u64, id: Id) {
        if self.entries.len() <= id.0 as usize {
            self.grow(id);
        }
        let bucket = self.bucket(key);
        if self.buckets[bucket] != NONE {
            self.take(bucket, key, None);
        }
        self.entries[id.0 as usize] = (key, self.buckets[bucket]);
        self.buckets[bucket] = id.0;
    }

    /// Removes a request if it has this key.
    #[inline]
    pub fn remove(&mut self, key: u64, id: Id) {
        let bucket = self.bucket(key);
        let (other, next) = self.entries[id.0 as usize];
        if self.buckets[bucket] == id.0 && other == key {
            self.buckets[bucket] = next;
        } else {
            self.take(bucket, key, Some(id));
        }
    }

    /// Removes the request of a bucket with this key; if a request is given, only if it is that one.
    #[cold]
    #[inline(never)]
    fn take(&mut self, bucket: usize, key: u64, only: Option<Id>) {
        let (mut before, mut at) = (NONE, self.buckets[bucket]);
        while at != NONE {
            let (other, next) = self.entries[at as usize];
            if other == key {
                if only.is_some_and(|only| only.0 != at) {
                    return;
                }
                match before {
                    NONE => self.buckets[bucket] = next,
                    before => self.entries[before as usize].1 = next,
                }
                return;
            }
            (before, at) = (at, next);
        }
    }

    #[cold]
    fn grow(&mut self, id: Id) {
        self.entries.resize(id.0 as usize + 1, (0, NONE));
        if self.buckets.len() >= SPARSE / 2 * self.entries.len() {
            return;
        }
        let wanted = self.entries.len().next_power_of_two().max(16) * SPARSE;
        let old = std::mem::replace(&mut self.buckets, vec![NONE; wanted]);
        for mut at in old {
            while at != NONE {
                let (key, next) = self.entries[at as usize];
                let bucket = self.bucket(key);
                self.entries[at as usize].1 = self.buckets[bucket];
                self.buckets[bucket] = at;
                at = next;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwright_block::{Seed, below, chance};

    #[test]
    fn tags_are_found_whatever_they_are() {
        let mut rng = Seed(1).stream("tables");
        for counted in [1.0, 0.9, 0.0] {
            let (mut below_now, mut known) = (InFlight::default(), FxHashMap::<u64, u32>::default());
            let mut tag = u64::MAX - 5_000; // numbers wrap around
            for id in 0..40_000_u32 {
                let counts = chance(&mut rng, counted);
                let fresh = if counts { tag } else { below(&mut rng, 1 << 40) };
                tag = tag.wrapping_add(u64::from(counts));
                known.entry(fresh).or_insert_with(|| {
                    below_now.insert(fresh, Id(id));
                    id
                });
                // The first request stays, so the row fills up.
                let gone = if counts { tag.wrapping_sub(1 + below(&mut rng, 40)) } else { fresh };
                if gone != u64::MAX - 5_000 {
                    assert_eq!(below_now.remove(gone), known.remove(&gone).map(Id));
                    assert_eq!(below_now.remove(gone), None);
                }
            }
            assert!(below_now.len <= ROW as u64);
            for (tag, id) in std::mem::take(&mut known).into_iter().collect::<std::collections::BTreeMap<_, _>>() {
                assert_eq!(below_now.remove(tag), Some(Id(id)));
            }
            assert!(below_now.len == 0 && below_now.other.is_empty());
        }
    }

    #[test]
    fn keys_are_found_as_a_map_finds_them() {
        let mut rng = Seed(2).stream("tables");
        let (mut table, mut map) = (ByKey::default(), FxHashMap::<u64, u32>::default());
        let mut keys = vec![None; 300];
        for step in 0..100_000 {
            // More and more numbers are used, so that the table grows with requests in it.
            let id = u32::try_from(below(&mut rng, 20 + step / 400)).expect("few");
            let key = below(&mut rng, 200) << 40;
            match keys[id as usize].take() {
                None => {
                    table.insert(key, Id(id));
                    map.insert(key, id);
                    keys[id as usize] = Some(key);
                }
                Some(old) => {
                    table.remove(old, Id(id));
                    if map.get(&old) == Some(&id) {
                        map.remove(&old);
                    }
                }
            }
            assert_eq!(table.get(key), map.get(&key).map(|id| Id(*id)));
        }
    }
}
