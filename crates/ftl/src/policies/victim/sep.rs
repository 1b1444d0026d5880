//! The single-sided endurance penalty (SEP) of the container-marking report, section III.C, equations 1 and 2: a block
//! counts `v - beta * w` valid pages, so that young blocks with aged data are reclaimed although they are full.

use super::PlaneView;
use serde::{Deserialize, Serialize};

/// The rule with its constants.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Sep {
    /// Valid pages that a cycle weighs.
    beta: f64,
    /// A block with so many cycles more than the mean is young whatever it holds.
    threshold: f64,
}

impl Sep {
    /// With a weight in valid pages a cycle, and a threshold in cycles.
    pub fn new(beta: f64, threshold: u32) -> Self {
        Self { beta, threshold: f64::from(threshold) }
    }

    /// The mean of the cycles left, where the rule is in force: with a limit of cycles and a weight above 0.
    pub fn mean(self, view: PlaneView) -> Option<f64> {
        if self.beta > 0.0 { view.cycles_left_mean() } else { None }
    }

    /// The weighted number of valid pages of a block whose data are aged or not.
    pub fn weighted(self, block: u32, mean: f64, aged: bool, view: PlaneView) -> f64 {
        let above = view.cycles_left(block).map_or(0.0, |left| f64::from(left) - mean);
        let w = if above > self.threshold || (aged && above > 0.0) { above } else { 0.0 };
        f64::from(view.pages_valid(block)) - self.beta * w
    }
}
