//! Wear levelling policies: which block's data are moved so that all blocks wear evenly. A policy is one file here and
//! one line in the list below.
//!
//! One instance serves one plane, as for victim policies, and identifies its blocks by their number within the plane.
//! It is notified of every erase. Once cleaning has made room for a write, it is asked what to *recycle*: the scheme
//! moves the block's valid pages to a free block of their own, erases it, and counts both under cause wear. It may also
//! *pass over* (skip) a victim.
//!
//! **Cost.** The [`Ledger`] keeps the states of blocks and orders them by wear: O(log blocks) for each opening, seal
//! and erase, and O(1) to read the ends of an order; nothing scans the whole drive. It takes 5 bytes per block, and
//! some 12 for its entry in an order. A drive without a policy has no ledger.
//!
//! **Progress.** A recycling takes one free block and returns one, and sealed blocks hold as many valid pages as
//! before. So cleaning can gain as much as before: invalid pages have become unprogrammed ones. A recycling runs only
//! after there is room for the current write and while the pool has a block; a scheme that needs more (DFTL's
//! translation pages) requires more free blocks. A round has at most as many recyclings as the plane has blocks, and
//! follows only after a clean that a host write needed. So wear levelling can neither use up space nor run forever.
//! Passing over a victim never replaces it by a fully valid one.
//!
//! A block whose erase budget is used up when it takes recycled data retires with them, as with any other data.

use crate::policies::victim::PlaneView;
use crate::registry::{PolicySettings, policies};
use flashwright_block::Rng;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

mod foreign;

/// The parameters of the plane that a policy is built for.
#[derive(Clone, Debug)]
pub struct WearContext {
    /// Blocks of the plane, bad ones included.
    pub blocks: u32,
    /// Blocks that are not bad from the factory.
    pub good: Vec<u32>,
    /// Its own random stream.
    pub rng: Rng,
}

/// A recycling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recycle {
    /// The block to recycle: a sealed block, or a free one, which is only erased.
    pub block: u32,
    /// The free block that takes the valid pages; none for the next one from the pool.
    pub into: Option<u32>,
}

/// The use of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BlockUse {
    /// Erased, in the pool.
    Free,
    /// A frontier, or being cleaned.
    Open,
    /// Full, a candidate for cleaning.
    Sealed,
    /// Retired or bad.
    Gone,
}

/// The blocks of a plane by use and wear. Wear is [`flashwright_nand::Nand::wear_rank`]: the erases, or, if budgets
/// differ, how many fewer erases are left than the largest budget.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ledger {
    uses: Vec<BlockUse>,
    wear: Vec<u32>,
    /// Number of blocks in use, by wear; few keys if wear is even.
    live: BTreeMap<u32, u32>,
    /// (wear, block).
    sealed: BTreeSet<(u32, u32)>,
    /// (complement of wear, block).
    free: BTreeSet<(u32, u32)>,
}

impl Ledger {
    fn new(blocks: u32) -> Self {
        Self {
            uses: vec![BlockUse::Gone; blocks as usize],
            wear: vec![0; blocks as usize],
            live: BTreeMap::new(),
            sealed: BTreeSet::new(),
            free: BTreeSet::new(),
        }
    }

    /// The use of a block.
    #[inline]
    #[must_use]
    pub fn used_as(&self, block: u32) -> BlockUse {
        self.uses[block as usize]
    }
    /// The wear of a block.
    #[inline]
    #[must_use]
    pub fn wear(&self, block: u32) -> u32 {
        self.wear[block as usize]
    }
    /// The wear of the most worn block in use.
    #[must_use]
    pub fn wear_max(&self) -> Option<u32> {
        self.live.last_key_value().map(|(wear, _)| *wear)
    }
    /// The least worn sealed block, ties to the lowest id.
    #[must_use]
    pub fn least_worn_sealed(&self) -> Option<u32> {
        self.sealed.first().map(|(_, block)| *block)
    }
    /// The most worn free block, ties to the lowest id.
    #[must_use]
    pub fn most_worn_free(&self) -> Option<u32> {
        self.free.first().map(|(_, block)| *block)
    }

    fn set(&mut self, block: u32, used_as: BlockUse) {
        let (wear, old) = (self.wear(block), self.used_as(block));
        match old {
            BlockUse::Free => _ = self.free.remove(&(u32::MAX - wear, block)),
            BlockUse::Sealed => _ = self.sealed.remove(&(wear, block)),
            BlockUse::Open | BlockUse::Gone => {}
        }
        self.uses[block as usize] = used_as;
        match used_as {
            BlockUse::Free => _ = self.free.insert((u32::MAX - wear, block)),
            BlockUse::Sealed => _ = self.sealed.insert((wear, block)),
            BlockUse::Open => {}
            BlockUse::Gone => self.forget(wear),
        }
        if old == BlockUse::Gone {
            *self.live.entry(wear).or_insert(0) += 1;
        }
    }

    /// Removes one block from the count of this wear.
    fn forget(&mut self, wear: u32) {
        let count = self.live.get_mut(&wear).expect("the wear of a block in use");
        *count -= 1;
        if *count == 0 {
            self.live.remove(&wear);
        }
    }

    /// The wear of a block that is neither free nor sealed.
    fn set_wear(&mut self, block: u32, wear: u32) {
        self.forget(self.wear(block));
        self.wear[block as usize] = wear;
        *self.live.entry(wear).or_insert(0) += 1;
    }
}

/// The blocks of one plane with their wear, read-only.
#[derive(Clone, Copy)]
pub struct WearView<'a> {
    /// Their uses and orders.
    pub blocks: &'a Ledger,
    plane: PlaneView<'a>,
}

impl WearView<'_> {
    /// Remaining erases of a block divided by the mean of the drive's blocks; none without a limit.
    #[must_use]
    pub fn life_left(&self, block: u32) -> Option<f64> {
        let mean = self.plane.cycles_left_mean()?;
        self.plane.cycles_left(block).map(|left| if mean > 0.0 { f64::from(left) / mean } else { 1.0 })
    }
    /// Whether a block may be erased once more.
    #[must_use]
    pub fn can_erase(&self, block: u32) -> bool {
        self.plane.cycles_left(block) != Some(0)
    }
}

/// Chooses the blocks whose data are moved.
pub trait WearPolicy: Sized {
    /// The name that users choose it by.
    const NAME: &'static str;
    /// One-line description, with its source.
    const ABOUT: &'static str;
    /// Whether it needs `wear.pe-cycles-max`.
    const NEEDS_LIMIT: bool = false;
    /// Settings for drives of a few blocks, where the defaults are for larger ones; tests of all policies use them.
    const SMALL: &'static [&'static str] = &[];
    /// Its settings.
    type Settings: PolicySettings;

    /// Builds it for one plane of erased blocks.
    fn new(settings: &Self::Settings, context: WearContext) -> Self;
    /// A block was erased, for whatever cause, and is free.
    fn erased(&mut self, block: u32, view: WearView);
    /// A block was retired.
    fn retired(&mut self, block: u32) {
        let _ = block;
    }
    /// The next recycling; called after cleaning until it returns none. `nth` counts the recyclings since the clean.
    fn recycle(&mut self, nth: u32, view: WearView) -> Option<Recycle>;
    /// Whether to pass over the victim that the victim policy chose.
    fn passes_over(&mut self, victim: u32, view: WearView) -> bool {
        let _ = (victim, view);
        false
    }
}

macro_rules! wears {
    ($($module:ident :: $policy:ident),+ $(,)?) => {
        policies! {
            key: "wear.policy", trait: WearPolicy, names: WearName, settings: WearPolicySettings, running: Wear,
            context: WearContext, foreign: ForeignWear;
            $($module::$policy),+
        }

        impl WearName {
            /// See [`WearPolicy::SMALL`].
            #[must_use]
            pub fn small(self) -> &'static [&'static str] {
                match self { $(WearName::$policy => $policy::SMALL,)+ }
            }
            /// See [`WearPolicy::NEEDS_LIMIT`].
            #[must_use]
            pub fn needs_limit(self) -> bool {
                match self { $(WearName::$policy => $policy::NEEDS_LIMIT,)+ }
            }
        }

        impl Wear {
            /// See [`WearPolicy::erased`].
            pub fn erased(&mut self, block: u32, view: WearView) {
                match self {
                    $(Wear::$policy(policy) => policy.erased(block, view),)+
                    Wear::Foreign(_) => {}
                }
            }
            /// See [`WearPolicy::retired`].
            pub fn retired(&mut self, block: u32) {
                match self {
                    $(Wear::$policy(policy) => policy.retired(block),)+
                    Wear::Foreign(_) => {}
                }
            }
            /// See [`WearPolicy::recycle`].
            pub fn recycle(&mut self, nth: u32, view: WearView) -> Option<Recycle> {
                match self {
                    $(Wear::$policy(policy) => policy.recycle(nth, view),)+
                    Wear::Foreign(policy) => policy.recycle(nth, view),
                }
            }
            /// See [`WearPolicy::passes_over`].
            pub fn passes_over(&mut self, victim: u32, view: WearView) -> bool {
                match self {
                    $(Wear::$policy(policy) => policy.passes_over(victim, view),)+
                    Wear::Foreign(_) => false,
                }
            }
        }
    };
}

wears! {
    threshold::Threshold, dual_pool::DualPool, r#static::Static, random::Random, rate_limit::RateLimit,
}

pub use dual_pool::DualPoolSettings;
pub use foreign::{ForeignWear, LevelWear, MakeWear, WornBlocks};
pub use random::RandomSettings;
pub use rate_limit::RateLimitSettings;
pub use r#static::StaticSettings;
pub use threshold::ThresholdSettings;

/// A plane's wear policy with its ledger.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Leveler {
    policy: Wear,
    ledger: Ledger,
}

impl Leveler {
    /// For a plane whose blocks `good` are free and have the wear `wear`.
    pub fn new(context: WearContext, wear: impl Fn(u32) -> u32, policy: impl FnOnce(WearContext) -> Wear) -> Self {
        let mut ledger = Ledger::new(context.blocks);
        for block in context.good.iter().copied() {
            ledger.wear[block as usize] = wear(block);
            ledger.set(block, BlockUse::Free);
        }
        Self { policy: policy(context), ledger }
    }

    /// The uses of the blocks.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }
    /// Number of blocks with a use, recounted for audits.
    pub fn count(&self, used_as: BlockUse) -> usize {
        self.ledger.uses.iter().filter(|known| **known == used_as).count()
    }
    /// A block left the pool, or the candidates for cleaning.
    pub fn opened(&mut self, block: u32) {
        self.ledger.set(block, BlockUse::Open);
    }
    /// A block that was opened took no page: it is free again.
    pub fn unused(&mut self, block: u32) {
        self.ledger.set(block, BlockUse::Free);
    }
    pub fn sealed(&mut self, block: u32) {
        self.ledger.set(block, BlockUse::Sealed);
    }
    pub fn retired(&mut self, block: u32) {
        self.ledger.set(block, BlockUse::Gone);
        self.policy.retired(block);
    }
    pub fn erased(&mut self, block: u32, wear: u32, plane: PlaneView) {
        self.ledger.set_wear(block, wear);
        self.ledger.set(block, BlockUse::Free);
        self.policy.erased(block, WearView { blocks: &self.ledger, plane });
    }
    pub fn recycle(&mut self, nth: u32, plane: PlaneView) -> Option<Recycle> {
        self.policy.recycle(nth, WearView { blocks: &self.ledger, plane })
    }
    pub fn passes_over(&mut self, victim: u32, plane: PlaneView) -> bool {
        self.policy.passes_over(victim, WearView { blocks: &self.ledger, plane })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cause, Flash};
    use flashwright_block::{Bytes, Seed};
    use flashwright_nand::{BlockId, Geometry, Nand, ProgramOrder, WearLimit};

    /// A plane for tests of policies; page contents play no role.
    pub struct Bench {
        pub leveler: Leveler,
        flash: Flash,
    }

    impl Bench {
        /// All blocks sealed, each with the given number of erases.
        pub fn new(name: WearName, settings: &WearPolicySettings, erases: &[u32], limit: WearLimit) -> Self {
            let blocks = u32::try_from(erases.len()).unwrap();
            let nand = Nand::new(Geometry::new(1, 1, 1, blocks, 4, Bytes(4096)), ProgramOrder::Ascending, limit, &[]);
            let flash = Flash::new(nand, 1, false, false);
            let context = WearContext { blocks, good: (0..blocks).collect(), rng: Seed(1).stream("test") };
            let mut bench =
                Self { leveler: Leveler::new(context, |_| 0, |context| name.build(settings, context)), flash };
            for (block, count) in (0..).zip(erases) {
                (0..*count).for_each(|_| bench.erase(block));
                bench.leveler.sealed(block);
            }
            bench
        }

        /// Erases a block, which is then free.
        pub fn erase(&mut self, block: u32) {
            self.leveler.opened(block);
            self.flash.erase(BlockId(block), Cause::Gc);
            let wear = self.flash.nand().wear_rank(BlockId(block));
            self.leveler.erased(block, wear, PlaneView::new(&self.flash, BlockId(0)));
        }

        /// The recyclings that the policy wants after a clean; each is carried out.
        pub fn round(&mut self) -> Vec<Recycle> {
            let mut done = Vec::new();
            while let Some(next) = self.next(done.len() as u32) {
                if let Some(into) = next.into {
                    assert_eq!(self.leveler.ledger().used_as(into), BlockUse::Free);
                    self.leveler.opened(into);
                    self.leveler.sealed(into);
                }
                self.erase(next.block);
                self.leveler.sealed(next.block);
                done.push(next);
            }
            done
        }

        /// The next recycling that the policy wants; nothing is carried out.
        pub fn next(&mut self, nth: u32) -> Option<Recycle> {
            self.leveler.recycle(nth, PlaneView::new(&self.flash, BlockId(0)))
        }

        pub fn passes_over(&mut self, victim: u32) -> bool {
            self.leveler.passes_over(victim, PlaneView::new(&self.flash, BlockId(0)))
        }
    }

    #[test]
    fn the_ledger_keeps_its_orders() {
        let settings = WearPolicySettings::default();
        let mut bench = Bench::new(WearName::Threshold, &settings, &[3, 1, 4, 1], WearLimit::Unlimited);
        let ends = |bench: &Bench| {
            let ledger = bench.leveler.ledger();
            (ledger.wear_max(), ledger.least_worn_sealed(), ledger.most_worn_free())
        };
        assert_eq!(ends(&bench), (Some(4), Some(1), None));
        bench.erase(1);
        bench.erase(0);
        assert_eq!(ends(&bench), (Some(4), Some(3), Some(0)));
        bench.leveler.opened(3);
        bench.leveler.retired(3);
        bench.leveler.opened(2);
        bench.leveler.retired(2);
        assert_eq!(ends(&bench), (Some(4), None, Some(0)));
        bench.leveler.opened(0);
        bench.leveler.retired(0);
        assert_eq!(ends(&bench), (Some(2), None, Some(1)));
    }
}
