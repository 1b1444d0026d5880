//! Dual-pool (Chang, SAC 2007): blocks belong to a hot or a cold pool; cold data are moved into the most worn hot block.
//!
//! EC is the number of erases of a block, EEC the number since it last changed pool. After cleaning, in this order:
//!
//! ```text
//!   dirty swap        max EC(hot) - min EC(cold) > TH     data of that cold block into the worn one, which is erased first;
//!                                                         both change pools, their EEC is 0
//!   cold-pool resize  max EEC(cold) - min EEC(hot) > TH   both change pools, no data move
//!   hot-pool resize   max EC(hot) - min EC(hot) > 2 TH    the least worn hot block joins the cold pool
//! ```
//!
//! Our interpretation: the lower half of the plane's blocks, by id, starts hot, the other half cold. The rules are
//! checked once after each cleaning, not after each erase within it, with at most one swap. Only a sealed block has
//! data to move, and an open one can't take any; the extremes of the swap leave out all others. Data that the worn
//! block still holds go to a free block first.
//!
//! Cost: a swap copies the valid pages of the cold block, and those of the worn one unless it is free, and takes one or
//! two erases. Four orders of blocks cost O(log blocks) for each erase and change; the few open and free blocks are
//! skipped. State: 5 bytes per block and 32 for its entries in the orders.

use super::{BlockUse, Ledger, Recycle, WearContext, WearPolicy, WearView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// `[wear.dual-pool]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct DualPoolSettings {
    /// Threshold (TH), in erases.
    #[schemars(range(min = 1), extend("x-expected" = "{min} erase or more"))]
    pub threshold: u32,
    /// Whether a resize resets EEC to 0, as a swap does.
    pub reset_on_resize: bool,
}

impl Default for DualPoolSettings {
    fn default() -> Self {
        Self { threshold: 16, reset_on_resize: false }
    }
}

/// A pool's blocks by EC and by EEC.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Pool {
    by_wear: BTreeSet<(u32, u32)>,
    by_recent: BTreeSet<(u32, u32)>,
}

const HOT: usize = 0;
const COLD: usize = 1;

/// `wear.policy = "dual-pool"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DualPool {
    threshold: u32,
    reset_on_resize: bool,
    pools: [Pool; 2],
    /// By block: its pool, EC and EEC; none once it is retired.
    kept: Vec<Option<(u8, u32, u32)>>,
    /// A swap whose worn block is being emptied: (cold, worn).
    pending: Option<(u32, u32)>,
    /// The block whose next erase belongs to its swap and is not counted in EEC.
    swapped: Option<u32>,
}

impl WearPolicy for DualPool {
    const NAME: &'static str = "dual-pool";
    const ABOUT: &'static str =
        "hot and cold pools of blocks; cold data move into the most worn hot block (Chang, SAC 2007)";
    const SMALL: &'static [&'static str] = &["threshold=1"];
    type Settings = DualPoolSettings;

    fn new(settings: &DualPoolSettings, context: WearContext) -> Self {
        let mut policy = Self {
            threshold: settings.threshold,
            reset_on_resize: settings.reset_on_resize,
            pools: [Pool::default(), Pool::default()],
            kept: vec![None; context.blocks as usize],
            pending: None,
            swapped: None,
        };
        for block in context.good {
            policy.keep(block, u8::from(block >= context.blocks / 2), 0, 0);
        }
        policy
    }
    fn erased(&mut self, block: u32, view: WearView) {
        let Some((pool, _, recent)) = self.forget(block) else { return };
        let recent = if self.swapped == Some(block) { 0 } else { recent + 1 };
        self.swapped = self.swapped.filter(|swapped| *swapped != block);
        self.keep(block, pool, view.blocks.wear(block), recent);
    }
    fn retired(&mut self, block: u32) {
        self.forget(block);
    }
    fn recycle(&mut self, nth: u32, view: WearView) -> Option<Recycle> {
        let blocks = view.blocks;
        if let Some((cold, worn)) = self.pending.take()
            && blocks.used_as(cold) == BlockUse::Sealed
            && blocks.used_as(worn) == BlockUse::Free
        {
            return Some(self.swap(cold, worn));
        }
        if nth == 0
            && let Some((cold, worn)) = self.dirty_swap(blocks)
        {
            if blocks.used_as(worn) == BlockUse::Free {
                return Some(self.swap(cold, worn));
            }
            self.pending = Some((cold, worn));
            return Some(Recycle { block: worn, into: None });
        }
        self.resize();
        None
    }
}

impl DualPool {
    fn keep(&mut self, block: u32, pool: u8, wear: u32, recent: u32) {
        let sets = &mut self.pools[usize::from(pool)];
        sets.by_wear.insert((wear, block));
        sets.by_recent.insert((recent, block));
        self.kept[block as usize] = Some((pool, wear, recent));
    }

    fn forget(&mut self, block: u32) -> Option<(u8, u32, u32)> {
        let kept = self.kept[block as usize].take();
        if let Some((pool, wear, recent)) = kept {
            let sets = &mut self.pools[usize::from(pool)];
            sets.by_wear.remove(&(wear, block));
            sets.by_recent.remove(&(recent, block));
        }
        kept
    }

    /// Puts a block in the other pool.
    fn change(&mut self, block: u32, reset: bool) {
        if let Some((pool, wear, recent)) = self.forget(block) {
            self.keep(block, 1 - pool, wear, if reset { 0 } else { recent });
        }
    }

    /// The cold and the worn block of the dirty swap that is due.
    fn dirty_swap(&self, blocks: &Ledger) -> Option<(u32, u32)> {
        let worn = self.pools[HOT].by_wear.iter().rev().find(|(_, block)| blocks.used_as(*block) != BlockUse::Open)?;
        let cold = self.pools[COLD].by_wear.iter().find(|(_, block)| blocks.used_as(*block) == BlockUse::Sealed)?;
        (worn.0.saturating_sub(cold.0) > self.threshold).then_some((cold.1, worn.1))
    }

    fn swap(&mut self, cold: u32, worn: u32) -> Recycle {
        self.change(cold, true);
        self.change(worn, true);
        self.swapped = Some(cold);
        Recycle { block: cold, into: Some(worn) }
    }

    /// The two resize rules, which move no data.
    fn resize(&mut self) {
        if let Some((most, cold)) = self.pools[COLD].by_recent.last().copied()
            && let Some((least, hot)) = self.pools[HOT].by_recent.first().copied()
            && most.saturating_sub(least) > self.threshold
        {
            self.change(cold, self.reset_on_resize);
            self.change(hot, self.reset_on_resize);
        }
        if let Some((most, _)) = self.pools[HOT].by_wear.last().copied()
            && let Some((least, block)) = self.pools[HOT].by_wear.first().copied()
            && most - least > self.threshold.saturating_mul(2)
        {
            self.change(block, self.reset_on_resize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::wear::tests::Bench;
    use crate::policies::wear::{Wear, WearName, WearPolicySettings};
    use flashwright_nand::WearLimit;

    fn bench(threshold: u32, erases: &[u32]) -> Bench {
        let mut settings = WearPolicySettings::default();
        settings.dual_pool.threshold = threshold;
        Bench::new(WearName::DualPool, &settings, erases, WearLimit::Unlimited)
    }

    fn policy(bench: &mut Bench) -> &mut DualPool {
        match &mut bench.leveler.policy {
            Wear::DualPool(policy) => policy,
            other => panic!("{other:?}"),
        }
    }

    fn set_recent(bench: &mut Bench, recents: [u32; 4]) {
        for (block, recent) in (0..).zip(recents) {
            let (pool, wear, _) = policy(bench).forget(block).unwrap();
            policy(bench).keep(block, pool, wear, recent);
        }
    }

    fn kept(bench: &mut Bench) -> Vec<(usize, u32, u32)> {
        policy(bench)
            .kept
            .iter()
            .map(|kept| kept.map(|(pool, ec, eec)| (usize::from(pool), ec, eec)).unwrap())
            .collect()
    }

    /// The worked example: TH = 50; hot A (EC 100, EEC 20), B (60, 5); cold C (10, 1), D (30, 2).
    #[test]
    fn only_the_dirty_swap_fires_in_the_example() {
        let mut bench = bench(50, &[100, 60, 10, 30]);
        set_recent(&mut bench, [20, 5, 1, 2]);
        let swap = [Recycle { block: 0, into: None }, Recycle { block: 2, into: Some(0) }];
        // The bench seals blocks that it erases, so A is emptied first, and then taken from the pool to take C's data.
        assert_eq!(policy_round(&mut bench), swap);
        assert_eq!(kept(&mut bench), [(COLD, 101, 0), (HOT, 60, 5), (HOT, 11, 0), (COLD, 30, 2)]);
        assert_eq!(policy_round(&mut bench), [], "60 - 30 is no more than 50");
        assert_eq!(kept(&mut bench), [(COLD, 101, 0), (HOT, 60, 5), (HOT, 11, 0), (COLD, 30, 2)]);
    }

    /// As [`Bench::round`], but a recycled block stays free.
    fn policy_round(bench: &mut Bench) -> Vec<Recycle> {
        let mut done = Vec::new();
        while let Some(next) = bench.next(done.len() as u32) {
            if let Some(into) = next.into {
                bench.leveler.opened(into);
                bench.leveler.sealed(into);
            }
            bench.erase(next.block);
            done.push(next);
        }
        done
    }

    #[test]
    fn a_free_worn_block_takes_the_data_at_once() {
        let mut bench = bench(50, &[99, 60, 10, 30]);
        bench.erase(0);
        assert_eq!(policy_round(&mut bench), [Recycle { block: 2, into: Some(0) }]);
    }

    #[test]
    fn pools_are_resized_without_moving_data() {
        // Cold C was erased more than TH times since it joined its pool, hot B hardly: they change pools.
        let mut cold = bench(50, &[60, 60, 60, 60]);
        set_recent(&mut cold, [20, 5, 56, 2]);
        assert_eq!(policy_round(&mut cold), []);
        assert_eq!(
            kept(&mut cold).iter().map(|kept| (kept.0, kept.2)).collect::<Vec<_>>(),
            [(HOT, 20), (COLD, 5), (HOT, 56), (COLD, 2)]
        );
        // The hot pool spans more than 2 TH: its least worn block becomes cold. The cold ones are worn, so there is no
        // swap.
        let mut hot = bench(50, &[120, 19, 100, 100]);
        set_recent(&mut hot, [0; 4]);
        assert_eq!(policy_round(&mut hot), []);
        assert_eq!(kept(&mut hot).iter().map(|kept| kept.0).collect::<Vec<_>>(), [HOT, COLD, COLD, COLD]);
    }
}
