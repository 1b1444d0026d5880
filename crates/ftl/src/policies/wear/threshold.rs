//! A threshold on the gap of wear: if the most worn block is too far ahead, the data of the least worn sealed block go
//! into the most worn free block.
//!
//! It runs once after each cleaning, so it costs at most one block's copies and one erase per clean. The gap is
//! measured to the least worn *sealed* block, because only that can be recycled; and nothing moves into a block that is
//! not more worn. A decision takes O(1). State: none beyond the ledger.

use super::{Recycle, WearContext, WearPolicy, WearView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[wear.threshold]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct ThresholdSettings {
    /// Number of erases by which the most worn block may exceed the least worn.
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
        "above a gap in erases, moves data of the least worn block into the most worn free one (ec-gap)";
    const SMALL: &'static [&'static str] = &["gap=1"];
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
        // 3 8 3 4 now; of the free blocks, 2 is the least worn and 3 the most worn.
        bench.erase(2);
        bench.erase(3);
        assert_eq!(bench.round(), [], "3, 8: a gap of 5");
        bench.erase(3);
        bench.leveler.sealed(1);
        bench.erase(1);
        assert_eq!(bench.round(), [Recycle { block: 0, into: Some(1) }]);
    }
}
