//! Separate frontiers where a plane has room for two open blocks, else one.
//!
//! An open block is spare space that cannot be cleaned. On planes of hundreds of blocks that is nothing, and separate frontiers write
//! less ([`super::gc_separate`]). On the small planes of models that are scaled down it would be most of the spare space, so that figures
//! would be those of the scale, not of the drive.

use super::{HostWrite, PlacementContext, PlacementPolicy, Relocation};
use crate::registry::NoSettings;
use serde::{Deserialize, Serialize};

/// The least spare blocks of a plane with which it opens two: twice those that cleaning then keeps, two open and two free
/// (`gc.free-blocks-min`), so that at least half of the spare space stays.
const SPARE_BLOCKS_MIN: u64 = 8;

/// `placement.policy = "auto"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Auto {
    /// The stream of moved pages: 1 where they have a frontier of their own, else 0.
    moves_to: u8,
}

impl PlacementPolicy for Auto {
    const NAME: &'static str = "auto";
    const ABOUT: &'static str = "gc-separate where a plane has at least 8 spare blocks, else single: on smaller planes a second open block \
         would take most of the spare space (ours)";
    type Settings = NoSettings;

    fn new(_: &NoSettings, context: PlacementContext) -> Self {
        let spare = u64::from(context.physical_pages.saturating_sub(context.logical_pages));
        let row = u64::from(context.pages_per_block) * u64::from(context.planes);
        Self { moves_to: u8::from(spare >= SPARE_BLOCKS_MIN * row) }
    }
    fn streams(&self) -> u8 {
        1 + self.moves_to
    }
    #[inline(always)]
    fn moves_to(&self) -> Option<u8> {
        Some(self.moves_to)
    }
    #[inline(always)]
    fn host(&mut self, _: HostWrite) -> u8 {
        0
    }
    #[inline(always)]
    fn relocation(&mut self, _: Relocation) -> u8 {
        self.moves_to
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwright_block::Seed;

    fn of(logical_pages: u32) -> Auto {
        let rng = Seed(1).stream("test");
        // Two planes of 100 blocks of 10 pages.
        Auto::new(
            &NoSettings {},
            PlacementContext { logical_pages, physical_pages: 2000, pages_per_block: 10, blocks: 200, planes: 2, rng },
        )
    }

    #[test]
    fn two_blocks_are_open_where_half_of_the_spare_space_stays() {
        let (roomy, tight) = (of(2000 - 160), of(2000 - 159));
        assert_eq!((roomy.streams(), roomy.moves_to()), (2, Some(1)));
        assert_eq!((tight.streams(), tight.moves_to()), (1, Some(0)));
    }
}
