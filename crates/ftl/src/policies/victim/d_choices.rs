//! d choices: the block with the fewest valid pages of d drawn at random (Van Houdt, SIGMETRICS 2013; Li, Lee and Lui,
//! SIGMETRICS 2013).
//!
//! With replacement, as in the analysis, d = 1 is random cleaning; without it, d = all blocks is greedy. MQSim draws
//! log2 of a plane's blocks (its RGA), SimpleSSD 3; the default of 10 is ours. Ties go to the block sealed first. Pick:
//! O(d). State: 16 bytes per block.

use super::{PlaneView, VictimContext, VictimPolicy, blocks_problem};
use flashwright_block::{Rng, below};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of `gc.victim = "d-choices"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct DChoicesSettings {
    /// Number of blocks drawn (d): 1 to the number of blocks of a plane.
    pub d: u32,
    /// Whether a block may be drawn twice.
    pub with_replacement: bool,
}

impl Default for DChoicesSettings {
    fn default() -> Self {
        Self { d: 10, with_replacement: true }
    }
}

/// `gc.victim = "d-choices"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DChoices {
    /// The sealed blocks in no particular order, and the index of each.
    sealed: Vec<u32>,
    position: Vec<u32>,
    sealed_as: Vec<u64>,
    last_seal: u64,
    d: u32,
    with_replacement: bool,
    rng: Rng,
}

impl VictimPolicy for DChoices {
    const NAME: &'static str = "d-choices";
    const ABOUT: &'static str = "fewest valid pages of d sealed blocks drawn at random (Van Houdt, SIGMETRICS 2013)";
    type Settings = DChoicesSettings;

    fn new(settings: &DChoicesSettings, context: VictimContext) -> Self {
        Self {
            sealed: Vec::with_capacity(context.blocks as usize),
            position: vec![0; context.blocks as usize],
            sealed_as: vec![0; context.blocks as usize],
            last_seal: 0,
            d: settings.d,
            with_replacement: settings.with_replacement,
            rng: context.rng,
        }
    }
    fn problem(settings: &DChoicesSettings, context: &VictimContext) -> Option<String> {
        blocks_problem("d", settings.d, context)
    }
    fn sealed(&mut self, block: u32, _: PlaneView) {
        self.last_seal += 1;
        self.sealed_as[block as usize] = self.last_seal;
        self.position[block as usize] = self.candidates();
        self.sealed.push(block);
    }
    fn removed(&mut self, block: u32) {
        let at = self.position[block as usize];
        self.sealed.swap_remove(at as usize);
        if let Some(moved) = self.sealed.get(at as usize) {
            self.position[*moved as usize] = at;
        }
    }
    fn pick(&mut self, view: PlaneView) -> Option<u32> {
        let sealed = self.candidates();
        let draws = match sealed {
            0 => 0,
            _ if self.with_replacement => self.d,
            _ => self.d.min(sealed),
        };
        let mut best: Option<(u32, u64, u32)> = None;
        for drawn in 0..draws {
            // Without replacement the drawn blocks are moved to the front.
            let from = if self.with_replacement { 0 } else { drawn };
            let at = from + u32::try_from(below(&mut self.rng, u64::from(sealed - from))).expect("below 32 bits");
            let block = self.sealed[at as usize];
            if !self.with_replacement {
                let front = self.sealed[drawn as usize];
                self.sealed.swap(at as usize, drawn as usize);
                (self.position[front as usize], self.position[block as usize]) = (at, drawn);
            }
            let found = (view.pages_valid(block), self.sealed_as[block as usize], block);
            best = Some(best.map_or(found, |best| best.min(found)));
        }
        best.map(|(_, _, block)| block)
    }
    fn candidates(&self) -> u32 {
        u32::try_from(self.sealed.len()).expect("block ids are 32 bits")
    }
    #[cfg(test)]
    fn search(settings: &DChoicesSettings, history: &mut super::tests::History, view: PlaneView) -> Option<u32> {
        // Fewer draws than blocks are a random choice.
        let draws_all = !settings.with_replacement && settings.d as usize >= history.sealed.len();
        if draws_all { history.fewest(view, |_| true) } else { None }
    }
}
