//! A random sealed block is recycled after every N erases, or at each erase with probability 1/N (the rule known as
//! ban-random).
//!
//! Cost: the copies of one block and one erase for every `every` erases; write amplification rises by at most
//! 1/`every`. A decision takes O(1): with nearly all blocks sealed, one or two numbers are drawn. State: the generator.

use super::{BlockUse, Recycle, WearContext, WearPolicy, WearView};
use flashwright_block::{Rng, below};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[wear.random]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct RandomSettings {
    /// Erases of a plane from one recycling to the next (tau), including those of recyclings.
    #[schemars(range(min = 1), extend("x-expected" = "{min} erase or more"))]
    pub every: u32,
    /// Whether each erase causes a recycling with probability 1/`every`, instead of every `every`-th erase.
    pub probabilistic: bool,
}

impl Default for RandomSettings {
    fn default() -> Self {
        Self { every: 50, probabilistic: false }
    }
}

/// `wear.policy = "random"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Random {
    every: u32,
    probabilistic: bool,
    blocks: u32,
    erases: u32,
    due: bool,
    rng: Rng,
}

impl Random {
    fn draw(&mut self, bound: u32) -> u32 {
        u32::try_from(below(&mut self.rng, u64::from(bound))).expect("drawn below 32 bits")
    }
}

/// Draws before the nearest sealed block is taken instead.
const DRAWS_MAX: u32 = 64;

impl WearPolicy for Random {
    const NAME: &'static str = "random";
    const ABOUT: &'static str = "recycles a random block every N erases, or with a probability (ban-random)";
    const SMALL: &'static [&'static str] = &["every=2"];
    type Settings = RandomSettings;

    fn new(settings: &RandomSettings, context: WearContext) -> Self {
        Self {
            every: settings.every,
            probabilistic: settings.probabilistic,
            blocks: context.blocks,
            erases: 0,
            due: false,
            rng: context.rng,
        }
    }
    fn erased(&mut self, _: u32, _: WearView) {
        if self.probabilistic {
            self.due |= self.draw(self.every) == 0;
        } else {
            self.erases += 1;
            if self.erases >= self.every {
                (self.erases, self.due) = (0, true);
            }
        }
    }
    fn recycle(&mut self, nth: u32, view: WearView) -> Option<Recycle> {
        if nth > 0 || !std::mem::take(&mut self.due) {
            return None;
        }
        let sealed = |block: &u32| view.blocks.used_as(*block) == BlockUse::Sealed;
        let drawn = (0..DRAWS_MAX).map(|_| self.draw(self.blocks)).find(sealed);
        let block = drawn.or_else(|| {
            let from = self.draw(self.blocks);
            (from..self.blocks).chain(0..from).find(sealed)
        })?;
        Some(Recycle { block, into: None })
    }
}

#[cfg(test)]
mod tests {
    use crate::policies::wear::tests::Bench;
    use crate::policies::wear::{WearName, WearPolicySettings};
    use flashwright_nand::WearLimit;

    fn bench(every: u32, probabilistic: bool, blocks: usize) -> Bench {
        let mut settings = WearPolicySettings::default();
        settings.random.every = every;
        settings.random.probabilistic = probabilistic;
        Bench::new(WearName::Random, &settings, &vec![0; blocks], WearLimit::Unlimited)
    }

    #[test]
    fn every_so_many_erases_one_sealed_block_is_recycled() {
        let mut bench = bench(5, false, 6);
        let rounds: Vec<usize> = (0..9)
            .map(|_| {
                bench.erase(3);
                bench.round().len()
            })
            .collect();
        // The recycling's own erase counts, so the second is due after four more.
        assert_eq!(rounds, [0, 0, 0, 0, 1, 0, 0, 0, 1]);
    }

    #[test]
    fn all_sealed_blocks_have_their_turn_and_the_rate_is_kept() {
        let mut bench = bench(4, true, 12);
        let (mut seen, erases) = ([0u32; 12], 8_000);
        for _ in 0..erases {
            bench.erase(0); // stays free
            for recycle in bench.round() {
                seen[recycle.block as usize] += 1;
            }
        }
        assert_eq!(seen[0], 0, "a free block has nothing to move");
        let total: u32 = seen.iter().sum();
        // A round is due with 1/4, or with 1 - (3/4)^2 after one that recycled: r = (1 - r) 1/4 + r 7/16 = 0.308.
        let rate = f64::from(total) / f64::from(erases);
        assert!((0.28..0.335).contains(&rate), "{rate}");
        let expected = f64::from(total) / 11.0;
        assert!(seen[1..].iter().all(|count| (f64::from(*count) / expected - 1.0).abs() < 0.3), "{seen:?}");
    }
}
