//! How blocks differ: each has a factor of its own on the error rate, from a lognormal distribution with mean 1.

use serde::{Deserialize, Serialize};

/// Values of the normal distribution that the table holds, equally likely.
const QUANTILES: usize = 4096;

/// The factors of blocks. They take no memory for a block: its id and the seed choose an entry of a table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Variation {
    seed: u64,
    /// Ascending.
    factors: Vec<f32>,
}

impl Variation {
    #[allow(clippy::cast_possible_truncation)] // factors need no more than 24 bits
    pub fn new(sigma: f64, seed: u64) -> Self {
        let factor = |z: f64| (sigma * z - sigma * sigma / 2.0).exp() as f32;
        Self { seed, factors: normal_quantiles().into_iter().map(factor).collect() }
    }

    /// The factor of a block.
    #[inline]
    pub fn of(&self, block: u32) -> f64 {
        // SplitMix64's finalizer: neighbouring blocks draw independently.
        let mut mixed = (u64::from(block) ^ self.seed).wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        f64::from(self.factors[(mixed >> 52) as usize])
    }

    /// The factor that a share of the blocks does not exceed.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)] // an index
    pub fn quantile(&self, share: f64) -> f64 {
        let at = (share * QUANTILES as f64) as usize;
        f64::from(self.factors[at.min(QUANTILES - 1)])
    }
}

/// The values of the standard normal distribution in the middle of [`QUANTILES`] equally likely intervals, by summing up
/// its density.
#[allow(clippy::cast_precision_loss)] // small counts
fn normal_quantiles() -> Vec<f64> {
    const STEP: f64 = 1.0 / 4096.0;
    let density = |z: f64| (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt();
    let (mut z, mut below) = (-8.0, 0.0);
    let mut quantiles = Vec::with_capacity(QUANTILES);
    while quantiles.len() < QUANTILES {
        let slice = density(z + STEP / 2.0) * STEP;
        let wanted = (quantiles.len() as f64 + 0.5) / QUANTILES as f64;
        if below + slice >= wanted {
            quantiles.push(z + STEP * (wanted - below) / slice);
        } else {
            below += slice;
            z += STEP;
        }
    }
    quantiles
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_normal_distribution() {
        let quantiles = normal_quantiles();
        // From tables of the normal distribution.
        for (share, z) in [(0.5, 0.0), (0.841_345, 1.0), (0.975, 1.959_964), (0.99, 2.326_348), (0.022_750, -2.0)] {
            let found = quantiles[(share * QUANTILES as f64) as usize];
            assert!((found - z).abs() < 0.01, "{share}: {found}, not {z}");
        }
    }

    #[test]
    fn blocks_differ_by_sigma_around_a_mean_of_one() {
        let variation = Variation::new(0.3, 7);
        let all: Vec<f64> = (0..100_000).map(|block| variation.of(block)).collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let logs: Vec<f64> = all.iter().map(|factor| factor.ln()).collect();
        let centre = mean(&logs);
        let spread = mean(&logs.iter().map(|log| (log - centre).powi(2)).collect::<Vec<_>>()).sqrt();
        assert!((mean(&all) - 1.0).abs() < 0.005, "{}", mean(&all));
        assert!((spread - 0.3).abs() < 0.005, "{spread}");
        assert!(Variation::new(0.0, 7).of(5) == 1.0);
        assert!((0..100).any(|block| variation.of(block) != Variation::new(0.3, 8).of(block)));
    }
}
