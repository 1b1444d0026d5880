//! Ghost entries: numbers that recently left a cache, to find out which hits a larger cache would have had.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// The numbers that left most recently, and how often one of them was requested again. O(log n) per step; 8 bytes per
/// number on a drive, about 40 here.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Ghosts {
    /// Departures in order; one that was requested again, or left again later, is skipped.
    order: VecDeque<(u64, u32)>,
    /// By number: its last departure.
    left: BTreeMap<u32, u64>,
    capacity: usize,
    departures: u64,
    hits: u64,
}

impl Ghosts {
    /// Remembers up to this many numbers.
    #[must_use]
    pub fn new(capacity: u32) -> Self {
        Self { capacity: capacity as usize, ..Self::default() }
    }
    /// A number leaves the cache.
    pub fn push(&mut self, number: u32) {
        self.departures += 1;
        self.left.insert(number, self.departures);
        self.order.push_back((self.departures, number));
        while self.left.len() > self.capacity || self.order.len() > 2 * self.capacity {
            let Some((departure, number)) = self.order.pop_front() else { return };
            if self.left.get(&number) == Some(&departure) {
                self.left.remove(&number);
            }
        }
    }
    /// A number that is not in the cache is requested: returns whether it left recently, counts that, and forgets it.
    pub fn wanted(&mut self, number: u32) -> bool {
        let hit = self.left.remove(&number).is_some();
        self.hits += u64::from(hit);
        hit
    }
    /// Whether a number left recently.
    #[must_use]
    pub fn holds(&self, number: u32) -> bool {
        self.left.contains_key(&number)
    }
    /// A number is no longer in use: forgets it.
    pub fn forget(&mut self, number: u32) {
        self.left.remove(&number);
    }
    /// How often a number that had left recently was requested.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.hits
    }
    /// Numbers remembered.
    #[must_use]
    pub fn len(&self) -> u32 {
        u32::try_from(self.left.len()).expect("numbers have 32 bits")
    }
    /// Whether none is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Room for 2: of 1 2 3 the first is forgotten; 2 is requested once; 3 left again before 4 and 5 and is then the
    /// oldest.
    #[test]
    fn the_oldest_departures_are_forgotten() {
        let mut ghosts = Ghosts::new(2);
        [1, 2, 3].into_iter().for_each(|number| ghosts.push(number));
        assert_eq!([1, 2, 2].map(|number| ghosts.wanted(number)), [false, true, false]);
        ghosts.push(3);
        ghosts.push(4);
        assert_eq!(ghosts.len(), 2);
        ghosts.push(5);
        assert_eq!([3, 4, 5].map(|number| ghosts.wanted(number)), [false, true, true]);
        ghosts.push(6);
        ghosts.forget(6);
        assert!(!ghosts.wanted(6) && ghosts.is_empty());
        assert_eq!(ghosts.hits(), 3);
    }

    /// A number that leaves and is requested again and again takes no more memory.
    #[test]
    fn memory_is_bounded() {
        let mut ghosts = Ghosts::new(3);
        for _ in 0..1000 {
            ghosts.push(7);
            assert!(ghosts.wanted(7));
        }
        assert!(ghosts.order.len() <= 6);
    }
}
