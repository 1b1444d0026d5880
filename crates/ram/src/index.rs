//! A map from a number to a slot, saved in order of the numbers so that equal tables are saved alike.

use flashwright_nand::prefetch;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Numbers with their slots: a table at most half full, in which a number lies at the place that its hash gives or in
/// the next free one. Taking out moves those behind up, so that no traces stay. 16 bytes a number.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    /// Number and slot; [`FREE`] in places not in use. A power of two of them.
    places: Vec<(u32, u32)>,
    len: u32,
}

/// No number: the drive has fewer pages.
const FREE: u32 = u32::MAX;

impl Default for Index {
    fn default() -> Self {
        Self::with_capacity(0)
    }
}

#[allow(clippy::cast_possible_truncation)] // the hash of a number is its upper bits
impl Index {
    /// An empty index with memory for so many numbers.
    pub fn with_capacity(numbers: u32) -> Self {
        Self { places: vec![(FREE, 0); (2 * numbers as usize).next_power_of_two().max(16)], len: 0 }
    }
    #[inline(always)]
    pub fn len(&self) -> u32 {
        self.len
    }
    /// Where a number would lie.
    #[inline(always)]
    fn home(&self, number: u32) -> usize {
        (u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & (self.places.len() - 1)
    }
    /// Warms the simulating machine's cache for a number.
    #[inline(always)]
    pub fn expect(&self, number: u32) {
        prefetch(&self.places, self.home(number));
    }
    /// The place of a number, or the free place where it would go.
    #[inline(always)]
    fn find(&self, number: u32) -> usize {
        let mut at = self.home(number);
        while self.places[at].0 != number && self.places[at].0 != FREE {
            at = (at + 1) & (self.places.len() - 1);
        }
        at
    }
    #[inline(always)]
    pub fn get(&self, number: u32) -> Option<u32> {
        let (found, slot) = self.places[self.find(number)];
        (found == number).then_some(slot)
    }
    /// Notes the slot of a number that has none.
    #[inline(always)]
    pub fn insert(&mut self, number: u32, slot: u32) {
        debug_assert!(number != FREE && self.get(number).is_none(), "{number} noted twice");
        if 2 * (self.len as usize + 1) > self.places.len() {
            self.grow();
        }
        let at = self.find(number);
        self.places[at] = (number, slot);
        self.len += 1;
    }
    #[cold]
    fn grow(&mut self) {
        let doubled = vec![(FREE, 0); 2 * self.places.len()];
        for place in std::mem::replace(&mut self.places, doubled) {
            if place.0 != FREE {
                let at = self.find(place.0);
                self.places[at] = place;
            }
        }
    }
    #[inline(always)]
    pub fn remove(&mut self, number: u32) -> Option<u32> {
        let mask = self.places.len() - 1;
        let mut hole = self.find(number);
        let (found, slot) = self.places[hole];
        if found != number {
            return None;
        }
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            if self.places[at].0 == FREE {
                break;
            }
            // One that lies at least as far from its home as from the hole may move there.
            let home = self.home(self.places[at].0);
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.places[hole] = self.places[at];
                hole = at;
            }
        }
        self.places[hole] = (FREE, 0);
        self.len -= 1;
        Some(slot)
    }
}

impl Serialize for Index {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut pairs: Vec<(u32, u32)> = self.places.iter().filter(|(number, _)| *number != FREE).copied().collect();
        pairs.sort_unstable();
        pairs.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Index {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut index = Self::default();
        for (number, slot) in Vec::<(u32, u32)>::deserialize(deserializer)? {
            index.insert(number, slot);
        }
        Ok(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Few homes and many numbers: long rows, rows round the end, growth.
        #[test]
        fn it_is_a_map(steps in prop::collection::vec((0..200u32, any::<bool>()), 1..600)) {
            let (mut index, mut map) = (Index::default(), BTreeMap::new());
            for (slot, (number, put)) in (0u32..).zip(steps) {
                if put && !map.contains_key(&number) {
                    index.insert(number, slot);
                    map.insert(number, slot);
                } else {
                    prop_assert_eq!(index.remove(number), map.remove(&number));
                }
                prop_assert_eq!(index.len() as usize, map.len());
                prop_assert!((0..200).all(|number| index.get(number) == map.get(&number).copied()));
            }
        }
    }
}
