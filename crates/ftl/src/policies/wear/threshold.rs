//! A threshold on the gap of wear: where the most worn block is too far ahead, the data of the least worn sealed block go
//! into the most worn free block.
//!
//! Once after each cleaning, so a recycling costs at most one block's copies and one erase a clean. The gap is taken to
//! the least worn *sealed* block, since only that can be recycled; and nothing moves into a block that is no more worn.
//! Cost of asking: O(1). State: none beside the ledger.

use super::{Recycle, WearContext, WearPolicy, WearView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[wear.threshold]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct ThresholdSettings {
    /// Erases by which the most worn block may be ahead of the least worn.
    #[schemars(range(min = 1), extend("x-expected" = "{min} erase or more"))]
    pub gap: u32,
}

impl Default for ThresholdSettings {
    fn default() -> Self {
        Self { gap: 32 }
    }
}

/// `wear.policy = "threshold"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Threshold {
    gap: u32,
}

impl WearPolicy for Threshold {
    const NAME: &'static str = "threshold";
    const ABOUT: &'static str =
        "gap of erases above a threshold: data of the least worn block into the most worn free one (ec-gap)";
    type Settings = ThresholdSettings;

    fn new(settings: &ThresholdSettings, _: WearContext) -> Self {
        Self { gap: settings.gap }
    }
    fn erased(&mut self, _: u32, _: WearView) {}
    fn recycle(&mut self, nth: u32, view: WearView) -> Option<Recycle> {
        let blocks = view.blocks;
        let (block, into) = (blocks.least_worn_sealed()?, blocks.most_worn_free()?);
        let too_far = blocks.wear_max()? - blocks.wear(block) > self.gap;
        (nth == 0 && too_far && blocks.wear(into) > blocks.wear(block)).then_some(Recycle { block, into: Some(into) })
    }
}

#[cfg(test)]
mod tests {
    use crate::policies::wear::tests::Bench;
    use crate::policies::wear::{Recycle, WearName, WearPolicySettings};
    use flashwright_nand::WearLimit;

    #[test]
    fn one_block_moves_once_the_gap_is_passed() {
        let mut settings = WearPolicySettings::default();
        settings.threshold.gap = 5;
        let mut bench = Bench::new(WearName::Threshold, &settings, &[2, 6, 3, 4], WearLimit::Unlimited);
        bench.erase(1); // 2 7 3 4: a gap of 5
        assert_eq!(bench.round(), []);
        bench.erase(1);
        assert_eq!(bench.round(), [Recycle { block: 0, into: Some(1) }]);
        assert_eq!(bench.round(), [], "no block is free");
        // 3 8 3 4 now; 2 is the young one of the free ones, 3 the worn one.
        bench.erase(2);
        bench.erase(3);
        assert_eq!(bench.round(), [], "3, 8: a gap of 5");
        bench.erase(3);
        bench.leveler.sealed(1);
        bench.erase(1);
        assert_eq!(bench.round(), [Recycle { block: 0, into: Some(1) }]);
    }
}
