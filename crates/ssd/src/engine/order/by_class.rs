//! By class: reads before writes before cleaning, with a bound on starvation.

use super::{DieOrder, Group, Heads};
use serde::{Deserialize, Serialize};

/// A die takes what the host reads first, with the mapping that it needs, then what the host writes, then cleaning and wear
/// levelling; within a group the oldest. After `passed_max` commands have passed the oldest one, the oldest goes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::engine) struct ByClass {
    passed_max: u32,
    /// For each die, how many commands in a row were not the oldest.
    passed: Vec<u32>,
}

impl ByClass {
    /// For a drive with this many dies.
    pub fn new(passed_max: u32, dies: usize) -> Self {
        Self { passed_max, passed: vec![0; dies] }
    }
}

impl DieOrder for ByClass {
    #[inline(always)]
    fn next(&self, die: usize, heads: &Heads) -> Option<Group> {
        if self.passed[die] < self.passed_max { heads.first_group() } else { heads.oldest() }
    }

    #[inline(always)]
    fn taken(&mut self, die: usize, group: Group, heads: &Heads) {
        self.passed[die] = if heads.oldest() == Some(group) { 0 } else { self.passed[die] + 1 };
    }
}
