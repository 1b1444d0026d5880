//! Age threshold: the block with the fewest valid pages among those sealed long enough ago; among all if there is none
//! (Menon and Stockmeyer, 1998, for log-structured arrays: young blocks are still losing pages).
//!
//! Age is counted in host page writes since the seal. We chose a tenth of the logical pages as the threshold, because
//! the paper was not available. Blocks reach the age in the order of their seals and then move from one greedy order to
//! another. So a pick costs as much as greedy's, plus O(1) for each block that has reached the age since the last pick.
//! State: twice greedy's, 17 bytes per block.

use super::{Greedy, PlaneView, VictimContext, VictimPolicy};
use crate::registry::NoSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Settings of `gc.victim = "age-threshold"`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct AgeThresholdSettings {
    /// Host page writes that must pass after a block is sealed before it can be chosen; 0 for a tenth of the logical
    /// pages.
    pub age: u64,
}

/// `gc.victim = "age-threshold"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AgeThreshold {
    ripe: Greedy,
    young: Greedy,
    is_ripe: Vec<bool>,
    /// The number under which a block was sealed, from 1; 0 for one that is not sealed.
    sealed_as: Vec<u64>,
    last_seal: u64,
    /// Blocks that are too young, by the host writes at their seal, with their seal numbers; those whose number has
    /// changed are skipped.
    ripening: VecDeque<(u64, u64, u32)>,
    age: u64,
}

impl VictimPolicy for AgeThreshold {
    const NAME: &'static str = "age-threshold";
    const ABOUT: &'static str = "fewest valid pages of the blocks older than a threshold (Menon and Stockmeyer 1998)";
    type Settings = AgeThresholdSettings;

    fn new(settings: &AgeThresholdSettings, context: VictimContext) -> Self {
        Self {
            is_ripe: vec![false; context.blocks as usize],
            sealed_as: vec![0; context.blocks as usize],
            last_seal: 0,
            ripening: VecDeque::new(),
            age: if settings.age == 0 { u64::from(context.logical_pages) / 10 } else { settings.age },
            ripe: Greedy::new(&NoSettings {}, context.clone()),
            young: Greedy::new(&NoSettings {}, context),
        }
    }

    fn sealed(&mut self, block: u32, view: PlaneView) {
        self.last_seal += 1;
        self.sealed_as[block as usize] = self.last_seal;
        self.is_ripe[block as usize] = false;
        self.young.sealed(block, view);
        self.ripening.push_back((view.now(), self.last_seal, block));
        if self.ripening.len() > 2 * self.sealed_as.len() {
            self.ripening.retain(|(_, seal, block)| self.sealed_as[*block as usize] == *seal);
        }
    }

    #[inline(always)]
    fn invalidated(&mut self, block: u32, pages_valid: u32, view: PlaneView) {
        self.ripe.invalidated(block, pages_valid, view);
        self.young.invalidated(block, pages_valid, view);
    }

    fn removed(&mut self, block: u32) {
        self.sealed_as[block as usize] = 0;
        if self.is_ripe[block as usize] {
            self.ripe.removed(block);
        } else {
            self.young.removed(block);
        }
    }

    fn pick(&mut self, view: PlaneView) -> Option<u32> {
        while let Some((time, seal, block)) = self.ripening.front().copied()
            && view.now() - time > self.age
        {
            self.ripening.pop_front();
            if self.sealed_as[block as usize] == seal {
                self.young.removed(block);
                self.ripe.sealed(block, view);
                self.is_ripe[block as usize] = true;
            }
        }
        self.ripe.pick(view).or_else(|| self.young.pick(view))
    }

    #[inline]
    fn likely_next(&self) -> Option<u32> {
        self.ripe.likely_next()
    }

    fn candidates(&self) -> u32 {
        self.ripe.candidates() + self.young.candidates()
    }

    #[cfg(test)]
    fn search(settings: &AgeThresholdSettings, history: &mut super::tests::History, view: PlaneView) -> Option<u32> {
        let ripe = history.fewest(view, |sealed| view.now() - sealed.time > settings.age);
        ripe.or_else(|| history.fewest(view, |_| true))
    }
}
