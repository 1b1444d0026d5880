//! Random: any sealed block, each with the same chance. The worst bound that still makes sense.
//!
//! Pick: O(1). State: 8 bytes a block.

use super::{UnitView, VictimContext, VictimPolicy};
use crate::registry::NoSettings;
use flashwright_block::{Rng, below};
use serde::{Deserialize, Serialize};

const NONE: u32 = u32::MAX;

/// `gc.victim = "random"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Random {
    sealed: Vec<u32>,
    position: Vec<u32>,
    rng: Rng,
}

impl VictimPolicy for Random {
    const NAME: &'static str = "random";
    const ABOUT: &'static str = "any sealed block with the same chance (d-choices with d = 1; Van Houdt, SIGMETRICS 2013)";
    type Settings = NoSettings;

    fn new(_: &NoSettings, context: VictimContext) -> Self {
        Self {
            sealed: Vec::with_capacity(context.blocks as usize),
            position: vec![NONE; context.blocks as usize],
            rng: context.rng,
        }
    }
    fn sealed(&mut self, block: u32, _: UnitView) {
        self.position[block as usize] = self.candidates();
        self.sealed.push(block);
    }
    fn removed(&mut self, block: u32) {
        let at = std::mem::replace(&mut self.position[block as usize], NONE);
        self.sealed.swap_remove(at as usize);
        if let Some(moved) = self.sealed.get(at as usize) {
            self.position[*moved as usize] = at;
        }
    }
    fn pick(&mut self, _: UnitView) -> Option<u32> {
        let drawn = below(&mut self.rng, self.sealed.len() as u64);
        self.sealed.get(usize::try_from(drawn).expect("an index of a list in memory")).copied()
    }
    fn candidates(&self) -> u32 {
        u32::try_from(self.sealed.len()).expect("block ids are 32 bits")
    }
}
