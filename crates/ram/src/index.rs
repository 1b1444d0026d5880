//! A map from pages or blocks to slots; only its entries are saved.

use flashwright_nand::{prefetch, table};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The slot of each number: 4 bytes per number, and no search. A hash map of the numbers in use is smaller, but its
/// branches are unpredictable, and three lookups per page cost more than the write that they avoid.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    /// By number; [`NONE`] for one without a slot.
    slots: Vec<u32>,
    len: u32,
}

const NONE: u32 = u32::MAX;

impl Index {
    /// An empty index of the numbers below `numbers`.
    pub fn new(numbers: u32) -> Self {
        Self { slots: table(NONE, numbers as usize), len: 0 }
    }
    #[inline(always)]
    pub fn len(&self) -> u32 {
        self.len
    }
    /// Warms the CPU cache for a number.
    #[inline(always)]
    pub fn expect(&self, number: u32) {
        prefetch(&self.slots, number as usize);
    }
    #[inline(always)]
    pub fn get(&self, number: u32) -> Option<u32> {
        let slot = self.slots[number as usize];
        (slot != NONE).then_some(slot)
    }
    /// As [`Index::get`] for any number.
    pub fn find(&self, number: u32) -> Option<u32> {
        self.slots.get(number as usize).copied().filter(|slot| *slot != NONE)
    }
    /// Sets the slot of a number that has none.
    #[inline(always)]
    pub fn insert(&mut self, number: u32, slot: u32) {
        debug_assert!(self.get(number).is_none(), "{number} noted twice");
        self.slots[number as usize] = slot;
        self.len += 1;
    }
    /// Takes the slot from a number that has one.
    #[inline(always)]
    pub fn clear(&mut self, number: u32) {
        debug_assert!(self.get(number).is_some(), "{number} is not noted");
        self.slots[number as usize] = NONE;
        self.len -= 1;
    }
    #[inline(always)]
    pub fn remove(&mut self, number: u32) -> Option<u32> {
        let slot = self.get(number)?;
        self.slots[number as usize] = NONE;
        self.len -= 1;
        Some(slot)
    }
}

impl Serialize for Index {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let held = (0u32..).zip(&self.slots).filter(|(_, slot)| **slot != NONE);
        let pairs: Vec<(u32, u32)> = held.map(|(number, slot)| (number, *slot)).collect();
        (self.slots.len(), pairs).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Index {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (numbers, pairs) = <(u32, Vec<(u32, u32)>)>::deserialize(deserializer)?;
        Vec::<u32>::new().try_reserve_exact(numbers as usize).map_err(|_| {
            serde::de::Error::custom(format!("an index of {numbers} numbers, which memory does not hold"))
        })?;
        let mut index = Self::new(numbers);
        for (number, slot) in pairs {
            if number >= numbers {
                return Err(serde::de::Error::custom(format!("number {number} in an index of {numbers}")));
            }
            if slot == NONE || index.get(number).is_some() {
                return Err(serde::de::Error::custom(format!("number {number} without a slot of its own in an index")));
            }
            index.insert(number, slot);
        }
        Ok(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_that_no_index_wrote_is_refused() {
        let read = |text: &str| serde_json::from_str::<Index>(text).map(|index| index.len());
        assert_eq!(read("[4, [[0, 7], [3, 8]]]").expect("as it is written"), 2);
        for text in ["[4, [[0, 7], [0, 8]]]", "[4, [[4, 7]]]", "[4, [[1, 4294967295]]]"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
