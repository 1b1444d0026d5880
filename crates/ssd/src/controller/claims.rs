//! Commands that have not taken effect yet: later ones that share sectors with them wait.
//!
//! Each decision of the firmware asks whether one is in the way, and hardly ever one is. Counts by region ([`Regions`]) answer
//! that for short commands; only where they say that there may be one, every claim is compared.

use super::regions::Regions;
use super::write_buffer::Extent;
use serde::{Deserialize, Serialize};

/// The claim of a command.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Claim {
    /// The number of the command among those that the drive took.
    pub order: u64,
    /// Its slot, which knows the place of the claim.
    pub slot: u32,
    pub extent: Extent,
    pub writes: bool,
}

/// Sectors of commands, as so many bytes of a buffer would be counted: enough for some hundreds of commands of 4 KiB.
const COUNTED_SECTORS: u64 = 1 << 11;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Claims {
    all: Vec<Claim>,
    /// Short claims: of reads, and of commands that change something.
    regions: [Regions; 2],
    /// Longer ones.
    long: u32,
}

impl Claims {
    pub fn new() -> Self {
        let regions = || Regions::new(COUNTED_SECTORS);
        Self { all: Vec::new(), regions: [regions(), regions()], long: 0 }
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Adds a claim; returns its place.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // no more than commands, which are counted in 32 bits
    pub fn add(&mut self, claim: Claim) -> u32 {
        self.all.push(claim);
        if Regions::counts_each(claim.extent) {
            self.regions[usize::from(claim.writes)].add(claim.extent);
        } else {
            self.long += 1;
        }
        self.all.len() as u32 - 1
    }

    /// The command whose claim is at this place has taken effect. Returns the slot of the one whose claim is there now, if any.
    #[inline]
    pub fn settle(&mut self, place: u32) -> Option<u32> {
        let claim = self.all.swap_remove(place as usize);
        if Regions::counts_each(claim.extent) {
            self.regions[usize::from(claim.writes)].take(claim.extent);
        } else {
            self.long -= 1;
        }
        self.all.get(place as usize).map(|moved| moved.slot)
    }

    /// Whether an earlier command shares sectors with this one, which has its own claim, in a way that matters.
    #[inline]
    pub fn must_wait(&self, order: u64, extent: Extent, writes: bool) -> bool {
        let [reads, changes] = &self.regions;
        // A write finds its own claim as well.
        let free = self.long == 0
            && Regions::counts_each(extent)
            && (changes.most(extent) <= u32::from(writes))
            && (!writes || reads.most(extent) == 0);
        !free && self.is_behind(order, extent, writes)
    }

    #[cold]
    fn is_behind(&self, order: u64, extent: Extent, writes: bool) -> bool {
        self.all.iter().any(|claim| claim.order < order && (claim.writes | writes) && claim.extent.overlaps(extent))
    }
}
