//! Reads first, the rest in order of issue, with a bound on starvation.

use super::{DieOrder, Group, Heads};
use serde::{Deserialize, Serialize};

/// A die takes what the host reads first, with the mapping that it needs, and everything else in order of issue, so that writes
/// wait behind the cleaning that was issued before them. After `passed_max` commands have passed the oldest one, the oldest goes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::engine) struct ReadsFirst {
    passed_max: u32,
    /// For each die, how many commands in a row were not the oldest.
    passed: Vec<u32>,
}

impl ReadsFirst {
    /// For a drive with this many dies.
    pub fn new(passed_max: u32, dies: usize) -> Self {
        Self { passed_max, passed: vec![0; dies] }
    }
}

impl DieOrder for ReadsFirst {
    #[inline(always)]
    fn next(&self, die: usize, heads: &Heads) -> Option<Group> {
        let reads = self.passed[die] < self.passed_max && heads.has(Group::Reads);
        if reads { Some(Group::Reads) } else { heads.oldest() }
    }

    #[inline(always)]
    fn taken(&mut self, die: usize, group: Group, heads: &Heads) {
        self.passed[die] = if heads.oldest() == Some(group) { 0 } else { self.passed[die] + 1 };
    }
}
