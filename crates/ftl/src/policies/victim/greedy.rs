//! Greedy: the sealed block with the fewest valid pages; the one sealed first among equals.
//!
//! Optimal under uniform random writes (Hu and Haas, IBM RZ 3771, cited by the container-marking report).
//! Pick: O(1) amortised. An invalidation: two bits of one cache line. State: 0.25 bytes a page.

use super::{SealOrderIndex, UnitView, VictimContext, VictimPolicy};
use crate::registry::NoSettings;
use serde::{Deserialize, Serialize};

/// `gc.victim = "greedy"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Greedy {
    sealed: SealOrderIndex,
}

impl VictimPolicy for Greedy {
    const NAME: &'static str = "greedy";
    const ABOUT: &'static str = "fewest valid pages, ties to the block sealed first (Hu and Haas, RZ 3771)";
    const PICKS_FEWEST: bool = true;
    type Settings = NoSettings;

    fn new(_: &NoSettings, context: VictimContext) -> Self {
        Self { sealed: SealOrderIndex::new(context.blocks, context.pages_per_block) }
    }
    #[inline]
    fn sealed(&mut self, block: u32, view: UnitView) {
        self.sealed.insert(block, view.pages_valid(block));
    }
    #[inline(always)]
    fn invalidated(&mut self, block: u32, pages_valid: u32, _: UnitView) {
        self.sealed.decrease(block, pages_valid);
    }
    fn removed(&mut self, block: u32) {
        self.sealed.remove(block);
    }
    fn pick(&mut self, _: UnitView) -> Option<u32> {
        self.sealed.first()
    }
    fn candidates(&self) -> u32 {
        self.sealed.len()
    }
}
