//! The single-sided endurance penalty (SEP) of the container-marking report, section III.C, equations 1 and 2: a block
//! counts `v - beta * w` valid pages, so that young blocks with aged data are reclaimed although their pages are valid.

use super::PlaneView;
use serde::{Deserialize, Serialize};

/// The rule with its constants.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Sep {
    /// Weight of a cycle in valid pages.
    beta: f64,
    /// A block with this many more remaining cycles than the mean is young, whatever it holds.
    threshold: f64,
}

impl Sep {
    /// A rule with a weight in valid pages per cycle, and a threshold in cycles.
    pub fn new(beta: f64, threshold: u32) -> Self {
        Self { beta, threshold: f64::from(threshold) }
    }

    /// The mean of the remaining cycles if the rule applies, which needs a limit of cycles and a weight above 0.
    pub fn mean(self, view: PlaneView) -> Option<f64> {
        if self.beta > 0.0 { view.cycles_left_mean() } else { None }
    }

    /// The weighted number of valid pages of a block, given whether its data are aged.
    pub fn weighted(self, block: u32, mean: f64, aged: bool, view: PlaneView) -> f64 {
        let above = view.cycles_left(block).map_or(0.0, |left| f64::from(left) - mean);
        let w = if above > self.threshold || (aged && above > 0.0) { above } else { 0.0 };
        f64::from(view.pages_valid(block)) - self.beta * w
    }
}
