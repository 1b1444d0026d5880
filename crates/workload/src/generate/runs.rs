//! Sequential runs among random requests.
//!
//! A request either continues the last one or starts elsewhere; one that starts is the head of a run with probability
//! `q`, and runs have geometric lengths of mean `L` (head included). A head has `L - 1` continuing requests, so the
//! share of those is `s = q (L - 1) / (1 + q (L - 1))`; `s` and `L` give `q`.

use flashwright_block::{Rng, chance};

pub(crate) struct Runs {
    /// Probability that a request that starts elsewhere is the head of a run.
    head: f64,
    /// Probability that a run continues after a continuing request.
    go_on: f64,
    in_run: bool,
}

impl Runs {
    /// Runs of mean length `mean`, 2 or more, such that `share` of all requests continue one. None if runs that short
    /// cannot reach that share.
    pub(crate) fn new(share: f64, mean: f64) -> Option<Self> {
        if share <= 0.0 {
            return Some(Runs { head: 0.0, go_on: 0.0, in_run: false });
        }
        let head = share / ((1.0 - share) * (mean - 1.0));
        // A head is followed by at least one more, so the part behind it has mean length L - 1.
        (head <= 1.0 + 1e-9).then(|| Runs { head, go_on: 1.0 - 1.0 / (mean - 1.0), in_run: false })
    }

    /// Whether the next request continues the last one.
    #[inline]
    pub(crate) fn continues(&mut self, rng: &mut Rng) -> bool {
        let continues = self.in_run;
        let again = if continues { self.go_on } else { self.head };
        self.in_run = again > 0.0 && chance(rng, again);
        continues
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwright_block::Seed;

    /// Share and mean length come out within 2 % over 400,000 requests (a run of mean 64 has about 5,000 samples).
    #[test]
    fn share_and_length_are_as_asked() {
        for (share, mean) in [(0.0, 2.0), (0.05, 2.0), (0.14, 8.0), (0.8, 64.0), (0.5, 2.0)] {
            let (mut runs, mut rng) = (Runs::new(share, mean).unwrap(), Seed(9).stream("test"));
            let flags: Vec<bool> = (0..400_000).map(|_| runs.continues(&mut rng)).collect();
            let continuing = flags.iter().filter(|flag| **flag).count() as f64;
            let found = continuing / flags.len() as f64;
            assert!((found - share).abs() <= 0.02 * share.max(0.05) * 2.0, "share {share}: {found}");
            let heads = flags.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
            assert!(share == 0.0 || (continuing / heads + 1.0 - mean).abs() < 0.04 * mean, "mean {mean}");
        }
        assert!(Runs::new(0.8, 2.0).is_none());
    }
}
