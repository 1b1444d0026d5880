//! A map from a number to a slot, saved in order of the numbers so that equal tables are saved alike.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Numbers with their slots.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index(HashMap<u32, u32, FxBuildHasher>);

impl Index {
    /// An empty index with memory for so many numbers.
    pub fn with_capacity(numbers: u32) -> Self {
        Self(HashMap::with_capacity_and_hasher(numbers as usize, FxBuildHasher))
    }
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // slots are counted in 32 bits
    pub fn len(&self) -> u32 {
        self.0.len() as u32
    }
    #[inline(always)]
    pub fn get(&self, number: u32) -> Option<u32> {
        self.0.get(&number).copied()
    }
    /// Notes the slot of a number; answers the one that it had.
    #[inline(always)]
    pub fn insert(&mut self, number: u32, slot: u32) -> Option<u32> {
        self.0.insert(number, slot)
    }
    #[inline(always)]
    pub fn remove(&mut self, number: u32) -> Option<u32> {
        self.0.remove(&number)
    }
}

impl Serialize for Index {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[allow(clippy::iter_over_hash_type)] // sorted right after
        let mut pairs: Vec<(u32, u32)> = self.0.iter().map(|(number, slot)| (*number, *slot)).collect();
        pairs.sort_unstable();
        pairs.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Index {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Vec::<(u32, u32)>::deserialize(deserializer)?.into_iter().collect()))
    }
}
