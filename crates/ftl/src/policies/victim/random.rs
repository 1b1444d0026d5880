//! Random: any sealed block with equal probability. The worst policy that still makes sense.
//!
//! `invalid-min` makes it MQSim's RANDOM_P (1: not a block without an invalid page) and RANDOM_PP (more: MQSim takes a
//! fraction of the over-provisioning). If no block has that many, it chooses any block with at least one, else any
//! block.
//!
//! Pick: O(1); O(1) for an invalidation. State: 8 bytes a block, and 1.

use super::{PlaneView, VictimContext, VictimPolicy};
use flashwright_block::{Rng, below};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const NONE: u32 = u32::MAX;

/// Settings of `gc.victim = "random"`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RandomSettings {
    /// Invalid pages that a victim must have: 0 to the number of pages of a block.
    pub invalid_min: u32,
}

/// `gc.victim = "random"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Random {
    /// Sealed blocks with at least `invalid_min` invalid pages, those with fewer, those with none.
    sealed: [Vec<u32>; 3],
    class: Vec<u8>,
    position: Vec<u32>,
    /// Blocks with this many valid pages or fewer are in the first class.
    valid_max: u32,
    pages_per_block: u32,
    rng: Rng,
}

impl Random {
    fn class_of(&self, pages_valid: u32) -> u8 {
        if pages_valid <= self.valid_max {
            0
        } else if pages_valid < self.pages_per_block {
            1
        } else {
            2
        }
    }
    fn enter(&mut self, block: u32, class: u8) {
        let list = &mut self.sealed[usize::from(class)];
        self.class[block as usize] = class;
        self.position[block as usize] = u32::try_from(list.len()).expect("block ids are 32 bits");
        list.push(block);
    }
}

impl VictimPolicy for Random {
    const NAME: &'static str = "random";
    const ABOUT: &'static str =
        "any sealed block with equal probability (d-choices with d = 1; Van Houdt, SIGMETRICS 2013)";
    type Settings = RandomSettings;

    fn new(settings: &RandomSettings, context: VictimContext) -> Self {
        Self {
            sealed: [Vec::with_capacity(context.blocks as usize), Vec::new(), Vec::new()],
            class: vec![0; context.blocks as usize],
            position: vec![NONE; context.blocks as usize],
            valid_max: context.pages_per_block - settings.invalid_min,
            pages_per_block: context.pages_per_block,
            rng: context.rng,
        }
    }
    fn problem(settings: &RandomSettings, context: &VictimContext) -> Option<String> {
        (settings.invalid_min > context.pages_per_block).then(|| {
            format!(
                "invalid-min: found {}, expected 0 to {}, the pages of a block",
                settings.invalid_min, context.pages_per_block
            )
        })
    }
    fn sealed(&mut self, block: u32, view: PlaneView) {
        self.enter(block, self.class_of(view.pages_valid(block)));
    }
    #[inline(always)]
    fn invalidated(&mut self, block: u32, pages_valid: u32, _: PlaneView) {
        // A block changes class with its first invalid page, and with the last that it needs.
        if (pages_valid == self.valid_max || pages_valid + 1 == self.pages_per_block)
            && self.position[block as usize] != NONE
        {
            let class = self.class_of(pages_valid);
            if class != self.class[block as usize] {
                self.removed(block);
                self.enter(block, class);
            }
        }
    }
    fn removed(&mut self, block: u32) {
        let at = std::mem::replace(&mut self.position[block as usize], NONE);
        let list = &mut self.sealed[usize::from(self.class[block as usize])];
        list.swap_remove(at as usize);
        if let Some(moved) = list.get(at as usize) {
            self.position[*moved as usize] = at;
        }
    }
    fn pick(&mut self, _: PlaneView) -> Option<u32> {
        let list = self.sealed.iter().find(|list| !list.is_empty())?;
        let drawn = below(&mut self.rng, list.len() as u64);
        list.get(usize::try_from(drawn).expect("an index of a list in memory")).copied()
    }
    fn candidates(&self) -> u32 {
        let sealed: usize = self.sealed.iter().map(Vec::len).sum();
        u32::try_from(sealed).expect("block ids are 32 bits")
    }
}

#[cfg(test)]
mod tests {
    use crate::policies::victim::tests::{problem, taken};
    use crate::{VictimName, VictimSettings};

    /// The required number of invalid pages applies while any block meets it; then any block with invalid pages is chosen;
    /// fully valid ones only if there is nothing else.
    #[test]
    fn random_with_rules_keeps_them() {
        for (invalid_min, expected) in [(1, "abcdef"), (25, "abce"), (40, "ae"), (44, "a")] {
            let mut s = VictimSettings::default();
            s.random.invalid_min = invalid_min;
            let order = taken(VictimName::Random, &s, false, [0, 1, 2, 3, 4, 5]);
            let mut first: Vec<char> = order.chars().take(expected.len()).collect();
            first.sort_unstable();
            assert_eq!(
                first.into_iter().collect::<String>(),
                expected,
                "at least {invalid_min} invalid pages: {order}"
            );
        }
    }

    #[test]
    fn more_invalid_pages_than_a_block_has_are_refused() {
        assert_eq!(
            problem(VictimName::Random, &|s| s.random.invalid_min = 65),
            "gc.random.invalid-min: found 65, expected 0 to 64, the pages of a block"
        );
    }
}
