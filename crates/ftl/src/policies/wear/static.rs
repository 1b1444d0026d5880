//! Static wear levelling with a block erasing table (SW leveler; Chang, Hsieh and Kuo, DAC 2007).
//!
//! A flag for each set of 2^k consecutive blocks of the plane records whether one of them was erased since the table
//! was cleared. If erases (`ecnt`) concentrate on few sets (`fcnt`), the sets without a flag are recycled one after the
//! other:
//!
//! ```text
//!   while fcnt > 0 and ecnt / fcnt >= T:
//!       all sets have flags? clear the table, go on from a random set, stop
//!       recycle the next set without a flag, cyclically; its flag is set
//! ```
//!
//! Written from general knowledge of the paper. Our interpretation: it runs after cleaning, not during it; open blocks
//! of a set are left alone; a set of only free blocks is erased, unless `skip-free` only sets its flag; a set in which
//! nothing can be erased gets its flag anyway, so that the loop ends.
//!
//! Cost: the copies and the erase of each recycled block. A decision takes O(1), and the search for a set without a
//! flag visits each set once between two clearings. State: a byte per set (a bit in a drive).

use super::{BlockUse, Recycle, WearContext, WearPolicy, WearView};
use flashwright_block::{Rng, below};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[wear.static]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct StaticSettings {
    /// Erases per flagged set from which on sets are recycled (T).
    #[schemars(range(min = 2), extend("x-expected" = "{min} erases a set or more"))]
    pub threshold: u32,
    /// A set has 2^k blocks (k).
    #[schemars(range(min = 0, max = 16))]
    pub set_bits: u32,
    /// Whether a set of only free blocks gets its flag without an erase.
    pub skip_free: bool,
}

impl Default for StaticSettings {
    fn default() -> Self {
        Self { threshold: 100, set_bits: 0, skip_free: false }
    }
}

/// The set that is being recycled.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Progress {
    next_block: u32,
    end: u32,
    /// Whether it has only free blocks, which are to be erased.
    erases_free: bool,
}

/// `wear.policy = "static"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Static {
    threshold: u64,
    set_bits: u32,
    skip_free: bool,
    blocks: u32,
    flags: Vec<bool>,
    erases: u64,
    flags_set: u64,
    /// The set where the search continues.
    index: u32,
    at: Option<Progress>,
    rng: Rng,
}

impl WearPolicy for Static {
    const NAME: &'static str = "static";
    const ABOUT: &'static str =
        "recycles sets of blocks that have not been erased for long, by a table of flags (SW leveler; Chang, DAC 2007)";
    const SMALL: &'static [&'static str] = &["threshold=2"];
    type Settings = StaticSettings;

    fn new(settings: &StaticSettings, context: WearContext) -> Self {
        Self {
            threshold: u64::from(settings.threshold),
            set_bits: settings.set_bits,
            skip_free: settings.skip_free,
            blocks: context.blocks,
            flags: vec![false; context.blocks.div_ceil(1 << settings.set_bits) as usize],
            erases: 0,
            flags_set: 0,
            index: 0,
            at: None,
            rng: context.rng,
        }
    }
    fn erased(&mut self, block: u32, _: WearView) {
        self.erases += 1;
        self.set_flag(block >> self.set_bits);
    }
    fn recycle(&mut self, _: u32, view: WearView) -> Option<Recycle> {
        loop {
            if let Some(next) = self.next_of_set(view) {
                return Some(Recycle { block: next, into: None });
            }
            if self.flags_set == 0 || self.erases < self.threshold * self.flags_set {
                return None;
            }
            let sets = self.flags.len() as u64;
            if self.flags_set == sets {
                (self.erases, self.flags_set) = (0, 0);
                self.flags.fill(false);
                self.index = u32::try_from(below(&mut self.rng, sets)).expect("sets are counted in 32 bits");
                return None;
            }
            while self.flags[self.index as usize] {
                self.advance();
            }
            let first = self.index << self.set_bits;
            let end = (first + (1 << self.set_bits)).min(self.blocks);
            let free_alone = (first..end).all(|block| view.blocks.used_as(block) == BlockUse::Free);
            self.at = Some(Progress { next_block: first, end, erases_free: free_alone && !self.skip_free });
        }
    }
}

impl Static {
    fn set_flag(&mut self, set: u32) {
        if !std::mem::replace(&mut self.flags[set as usize], true) {
            self.flags_set += 1;
        }
    }

    fn advance(&mut self) {
        self.index = if self.index as usize + 1 == self.flags.len() { 0 } else { self.index + 1 };
    }

    /// The next block of the current set; at its end the set gets its flag.
    fn next_of_set(&mut self, view: WearView) -> Option<u32> {
        let Progress { next_block, end, erases_free } = self.at?;
        for block in next_block..end {
            let wanted = match view.blocks.used_as(block) {
                BlockUse::Sealed => true,
                BlockUse::Free => erases_free && view.can_erase(block),
                BlockUse::Open | BlockUse::Gone => false,
            };
            if wanted {
                self.at = Some(Progress { next_block: block + 1, end, erases_free });
                return Some(block);
            }
        }
        self.at = None;
        self.set_flag(self.index);
        self.advance();
        None
    }
}

#[cfg(test)]
mod tests {
    use crate::policies::wear::tests::Bench;
    use crate::policies::wear::{Wear, WearName, WearPolicySettings};
    use flashwright_nand::WearLimit;

    fn bench(skip_free: bool) -> Bench {
        let mut settings = WearPolicySettings::default();
        settings.r#static.threshold = 4;
        settings.r#static.set_bits = 1;
        settings.r#static.skip_free = skip_free;
        Bench::new(WearName::Static, &settings, &[0; 8], WearLimit::Unlimited)
    }

    fn erase(bench: &mut Bench, block: u32) -> Vec<u32> {
        bench.erase(block);
        bench.leveler.sealed(block);
        bench.round().into_iter().map(|recycle| recycle.block).collect()
    }

    const NOTHING: [u32; 0] = [];

    fn counts(bench: &Bench) -> (u64, u64) {
        match &bench.leveler.policy {
            Wear::Static(policy) => (policy.erases, policy.flags_set),
            other => panic!("{other:?}"),
        }
    }

    /// The worked example: k = 1, 8 blocks, T = 4, erases of blocks 0 1 0 0 and then of 0 alone.
    #[test]
    fn sets_are_recycled_in_turn_and_the_table_is_cleared() {
        let mut bench = bench(false);
        assert_eq!([0, 1, 0].map(|block| erase(&mut bench, block).len()), [0; 3]);
        assert_eq!(erase(&mut bench, 0), [2, 3], "4 erases, 1 flag");
        assert_eq!(counts(&bench), (6, 2));
        assert_eq!(erase(&mut bench, 0), NOTHING);
        assert_eq!(erase(&mut bench, 0), [4, 5], "8 erases, 2 flags");
        assert_eq!(counts(&bench), (10, 3));
        assert_eq!(erase(&mut bench, 0), NOTHING);
        assert_eq!(erase(&mut bench, 0), [6, 7], "12 erases, 3 flags");
        assert_eq!(counts(&bench), (14, 4));
        assert_eq!(erase(&mut bench, 0), NOTHING);
        assert_eq!(erase(&mut bench, 0), NOTHING, "16 erases, all 4 flags: cleared");
        assert_eq!(counts(&bench), (0, 0));
    }

    #[test]
    fn a_set_of_free_blocks_is_erased_or_only_flagged() {
        for (skip_free, recycled, left) in [(false, vec![2, 3], (8, 2)), (true, vec![4, 5], (8, 3))] {
            let mut bench = bench(skip_free);
            bench.erase(2);
            bench.erase(3); // free, with a flag that the next lines clear
            if let Wear::Static(policy) = &mut bench.leveler.policy {
                (policy.erases, policy.flags_set, policy.index) = (0, 0, 0);
                policy.flags.fill(false);
            }
            assert_eq!([0, 0, 0].map(|block| erase(&mut bench, block).len()), [0; 3]);
            let mut found = erase(&mut bench, 0);
            if skip_free {
                // Two flags after set 1, so set 2 waits for 8 erases.
                assert_eq!((found.len(), counts(&bench)), (0, (4, 2)));
                assert_eq!([0, 0, 0].map(|block| erase(&mut bench, block).len()), [0; 3]);
                found = erase(&mut bench, 0);
                assert_eq!(counts(&bench), (10, 3));
            } else {
                assert_eq!(counts(&bench), (6, left.1));
            }
            assert_eq!(found, recycled);
        }
    }
}
