//! By class: reads before writes before cleaning, with a bound on starvation.

use super::{Choice, DieOrder};
use crate::engine::{OpClass, Ready};
use serde::{Deserialize, Serialize};

/// A die takes what the host reads first, with the mapping that it needs, then what the host writes, then cleaning and wear
/// levelling; within a class the oldest. After `passed_max` operations have passed the oldest one, the oldest goes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ByClass {
    passed_max: u32,
    /// For each die, how many operations in a row were not the oldest.
    passed: Vec<u32>,
}

impl ByClass {
    /// For a drive with this many dies.
    #[must_use]
    pub fn new(passed_max: u32, dies: usize) -> Self {
        Self { passed_max, passed: vec![0; dies] }
    }
}

/// Groups of classes, the one that goes first first.
const GROUPS: [&[OpClass]; 2] = [&[OpClass::HostRead, OpClass::Mapping], &[OpClass::HostWrite]];

impl DieOrder for ByClass {
    fn next(&mut self, die: usize, ready: &Ready<'_>) -> Choice {
        let (oldest, passed) = (ready.oldest(), &mut self.passed[die]);
        let preferred = || GROUPS.iter().find_map(|group| ready.first(|op| group.contains(&op.class)));
        let choice = if *passed < self.passed_max { preferred().unwrap_or(oldest) } else { oldest };
        *passed = if choice == oldest { 0 } else { *passed + 1 };
        choice
    }
}
