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

    #[inline]
    pub fn add(&mut self, claim: Claim) {
        self.all.push(claim);
        if Regions::counts_each(claim.extent) {
            self.regions[usize::from(claim.writes)].add(claim.extent);
        } else {
            self.long += 1;
        }
    }

    /// The command of this order has taken effect. Returns whether it had a claim.
    #[inline]
    pub fn settle(&mut self, order: u64) -> bool {
        let Some(at) = self.all.iter().position(|claim| claim.order == order) else { return false };
        let claim = self.all.swap_remove(at);
        if Regions::counts_each(claim.extent) {
            self.regions[usize::from(claim.writes)].take(claim.extent);
        } else {
            self.long -= 1;
        }
        true
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
