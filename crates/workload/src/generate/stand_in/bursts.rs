//! Arrivals with bursts.
//!
//! With probability `b` a request closely follows the last one (a uniform gap up to 1.5 ms) and has the same kind;
//! otherwise it comes after an exponential gap of mean `m`, with a newly drawn kind. Kinds keep their shares, since a
//! copied kind has the distribution of the one it copies. `b` and `m` follow from the mean gap and from the published
//! share of writes within 1.5 ms of the last write, `b + (1 - b) (1 - exp(-1.5 w / m))` for a share of writes `w`.

use crate::generate::generator::exponential;
use flashwright_block::{Rng, chance, unit_interval};
use libm::expm1;

/// The largest gap that counts as close, in milliseconds.
pub(crate) const CLOSE_MS: f64 = 1.5;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bursts {
    /// Share of requests in bursts.
    burst: f64,
    /// Mean gap of the others, milliseconds.
    far_ms: f64,
}

impl Bursts {
    /// Gaps of mean `gap_ms` with the share `close` of the writes close behind another; plain Poisson if there is no
    /// solution, because more than that come close by chance.
    pub(crate) fn new(gap_ms: f64, close: Option<f64>, write: f64) -> Self {
        let far = |burst: f64| (gap_ms - burst * CLOSE_MS / 2.0) / (1.0 - burst);
        let share = |burst: f64| burst + (1.0 - burst) * -expm1(-CLOSE_MS * write / far(burst));
        let Some(close) = close else { return Bursts { burst: 0.0, far_ms: gap_ms } };
        let (mut low, mut high) = (0.0, (gap_ms / CLOSE_MS).min(0.999));
        if share(low) >= close || share(high) < close {
            return Bursts { burst: 0.0, far_ms: gap_ms };
        }
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if share(middle) < close { low = middle } else { high = middle }
        }
        Bursts { burst: low, far_ms: far(low) }
    }

    /// The gap before the next request in milliseconds, and whether it belongs to a burst.
    #[inline]
    pub(crate) fn draw(&self, rng: &mut Rng) -> (f64, bool) {
        if self.burst > 0.0 && chance(rng, self.burst) {
            (unit_interval(rng) * CLOSE_MS, true)
        } else {
            (exponential(rng, self.far_ms), false)
        }
    }
}
