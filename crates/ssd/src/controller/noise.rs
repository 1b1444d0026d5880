//! Unmodelled delays: refresh, retries, the host's bus and other work of the firmware.

use flashwright_block::{Rng, Seed, unit_interval};
use serde::{Deserialize, Serialize};

/// Draws the delay until the host sees a completion.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Noise {
    share: f64,
    rng: Rng,
}

impl Noise {
    pub fn new(share: f64, seed: Seed) -> Self {
        Self { share, rng: seed.stream("controller noise") }
    }

    /// The delay added to a command that took `took` nanoseconds.
    #[inline]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    pub fn on(&mut self, took: u64) -> u64 {
        if self.share == 0.0 {
            return 0;
        }
        // The sum of twelve uniform numbers has deviation 1 and mean 6, and is close enough to normal.
        let sum: f64 = (0..12).map(|_| unit_interval(&mut self.rng)).sum();
        let deviations = (sum - 4.0).clamp(0.0, 4.0);
        (took as f64 * self.share * deviations).round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean 2 and deviation 1, in shares of the time. Cutting at two deviations takes about 4 % of the spread.
    #[test]
    fn it_is_as_large_as_it_says() {
        let mut noise = Noise::new(0.1, Seed(1));
        let drawn: Vec<f64> = (0..20_000).map(|_| noise.on(1_000_000) as f64 / 1e5).collect();
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let deviation = (drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / drawn.len() as f64).sqrt();
        assert!((mean - 2.0).abs() < 0.03, "mean {mean}");
        assert!((0.9..1.0).contains(&deviation), "deviation {deviation}");
        assert!(drawn.iter().all(|x| (0.0..=4.0).contains(x)));
        assert_eq!(Noise::new(0.0, Seed(1)).on(1_000_000), 0);
    }
}
