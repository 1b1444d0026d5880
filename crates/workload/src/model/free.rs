//! Regions of a drive that no request has used: any of them, or a certain one, in constant time.

use flashwright_block::{Rng, below};

/// Regions of the drive that are not in use yet.
pub(super) struct Free {
    list: Vec<u32>,
    /// Place of each region in the list.
    places: Vec<u32>,
}

impl Free {
    pub(super) fn new(regions: u32) -> Self {
        Free { list: (0..regions).collect(), places: (0..regions).collect() }
    }

    pub(super) fn has(&self, region: u32) -> bool {
        self.places.get(region as usize).is_some_and(|place| self.list.get(*place as usize) == Some(&region))
    }

    pub(super) fn take(&mut self, region: u32) {
        if !self.has(region) {
            return;
        }
        let place = self.places[region as usize];
        let last = self.list.pop().expect("a region that is in the list");
        if last != region {
            self.list[place as usize] = last;
            self.places[last as usize] = place;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Any of them; there must be one.
    pub(super) fn any(&self, rng: &mut Rng) -> u32 {
        self.list[below(rng, self.list.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwright_block::Seed;

    #[test]
    fn each_region_is_taken_once() {
        let (mut free, mut rng) = (Free::new(50), Seed(1).stream("test"));
        let mut taken = [false; 50];
        for _ in 0..50 {
            let region = free.any(&mut rng);
            assert!(free.has(region) && !std::mem::replace(&mut taken[region as usize], true));
            free.take(region);
            free.take(region);
            assert!(!free.has(region));
        }
        assert!(free.is_empty() && !free.has(99));
    }
}
