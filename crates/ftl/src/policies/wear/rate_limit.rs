//! Rate limit and migration (Agrawal et al., USENIX ATC 2008, section 3.5; the DiskSim SSD extension).
//!
//! A victim whose remaining life is below a share X of the drive's mean is passed over with probability 1 - (remaining
//! / mean) / X, so that the more worn a block is, the less often it is erased. A block that falls below a lower share
//! takes the data of a cold block when it is erased, and then wears no further for a while.
//!
//! Our interpretation: the victim policy then chooses the next one, at most eight times per clean. A block that was
//! passed over counts as newly sealed, which puts it at the end of the queue for FIFO and after its equals for greedy.
//! The cold block is the least worn sealed one. The shares refer to the mean over all blocks of the drive, as in the
//! paper; the migration share is ours.
//!
//! Cost: passing over costs no flash operation but leads to worse victims; a migration costs the copies of one block
//! and an erase, at most once per clean. A decision takes O(1), passing over two changes of the victim policy's order.
//! State: none beyond the ledger.

use super::{BlockUse, Recycle, WearContext, WearPolicy, WearView};
use flashwright_block::{Rng, chance};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[wear.rate-limit]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct RateLimitSettings {
    /// Share of the mean remaining life below which a victim may be skipped (X).
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0), extend("x-expected" = "a share of the mean remaining life, {range}"))]
    pub skip_below: f64,
    /// Share of the mean remaining life below which a block takes cold data; 0 for never.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-expected" = "a share of the mean remaining life, {range}"))]
    pub migrate_below: f64,
}

impl Default for RateLimitSettings {
    fn default() -> Self {
        Self { skip_below: 0.8, migrate_below: 0.7 }
    }
}

/// `wear.policy = "rate-limit"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RateLimit {
    skip_below: f64,
    migrate_below: f64,
    /// The last erased block that should take cold data.
    worn: Option<u32>,
    rng: Rng,
}

impl WearPolicy for RateLimit {
    const NAME: &'static str = "rate-limit";
    const ABOUT: &'static str =
        "worn victims are skipped with a probability, even more worn blocks take cold data (Agrawal, ATC 2008)";
    const NEEDS_LIMIT: bool = true;
    const SMALL: &'static [&'static str] = &["skip-below=1.0", "migrate-below=1.0"];
    type Settings = RateLimitSettings;

    fn new(settings: &RateLimitSettings, context: WearContext) -> Self {
        Self { skip_below: settings.skip_below, migrate_below: settings.migrate_below, worn: None, rng: context.rng }
    }
    fn erased(&mut self, block: u32, view: WearView) {
        if view.life_left(block).is_some_and(|left| left < self.migrate_below) {
            self.worn = Some(block);
        }
    }
    fn recycle(&mut self, nth: u32, view: WearView) -> Option<Recycle> {
        if nth > 0 {
            return None;
        }
        let worn = self.worn.take().filter(|worn| view.blocks.used_as(*worn) == BlockUse::Free)?;
        let cold = view.blocks.least_worn_sealed()?;
        let younger = view.blocks.wear(cold) < view.blocks.wear(worn);
        younger.then_some(Recycle { block: cold, into: Some(worn) })
    }
    fn passes_over(&mut self, victim: u32, view: WearView) -> bool {
        let Some(left) = view.life_left(victim) else { return false };
        left < self.skip_below && chance(&mut self.rng, 1.0 - left / self.skip_below)
    }
}

#[cfg(test)]
mod tests {
    use crate::policies::wear::tests::Bench;
    use crate::policies::wear::{Recycle, WearName, WearPolicySettings};
    use flashwright_nand::WearLimit;

    /// Budgets of 100: 40 erases on each of nine blocks and 64 on the last leave 57.6 on average and 36 for the last.
    fn bench() -> Bench {
        let mut erases = [40; 10];
        erases[9] = 64;
        Bench::new(WearName::RateLimit, &WearPolicySettings::default(), &erases, WearLimit::Same(100))
    }

    #[test]
    fn a_worn_victim_is_passed_over_with_its_probability() {
        let mut bench = bench();
        let passed = (0..20_000).filter(|_| bench.passes_over(9)).count();
        // 1 - (36 / 57.6) / 0.8
        assert!((passed as f64 / 20_000.0 - 0.21875).abs() < 0.01, "{passed}");
        assert!(!(0..1_000).any(|_| bench.passes_over(0)), "a block like the others is not");
    }

    #[test]
    fn a_block_worn_still_more_takes_the_data_of_a_young_one() {
        let mut bench = bench();
        bench.erase(3);
        assert_eq!(bench.round(), [], "41 of 100 erases are not many");
        bench.erase(9);
        assert_eq!(bench.round(), [Recycle { block: 0, into: Some(9) }]);
        assert_eq!(bench.round(), [], "once");
    }
}
