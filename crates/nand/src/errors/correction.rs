//! Whether the codewords of a page can be corrected.
//!
//! The wrong bits of a codeword of `n` bits at error rate `p` are binomial. A page fails if one of its codewords has more
//! than `t`, so a draw of the errors reduces to one comparison of a random number with the probability of failure. That
//! is computed exactly, for a grid of rates, when the drive is built; in between it is interpolated, which is good to 2 %.

use serde::{Deserialize, Serialize};

/// A probability of failure below this counts as 0: a drive that reads a page each microsecond meets it once in two
/// weeks of its time, and a run never.
pub(super) const NEVER: f64 = 1.0 / (1u64 << 40) as f64;

/// A decoder.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Correction {
    /// The error rate up to which no page fails.
    never: f64,
    /// The grid: its points are the rates whose lowest bits, so many, are 0. So neighbours lie a small, nearly constant
    /// ratio apart, and finding them takes no logarithm.
    low_bits: u32,
    /// The first point, without these bits.
    first: u64,
    /// The probability that a page fails at each point, from `never` to where nearly all do.
    fails: Vec<f64>,
}

impl Correction {
    /// A decoder of codewords with `bits` bits of which it corrects `correctable`, on pages of so many codewords.
    pub fn new(bits: u32, correctable: u32, codewords: u32) -> Self {
        let exact = |rate: f64| page_fails(bits, correctable, codewords, rate);
        let never = bisect(|rate| exact(rate) < NEVER).max(f64::MIN_POSITIVE);
        let always = bisect(|rate| exact(rate) < 1.0 - NEVER).max(never);
        // In its tail the probability grows like a power of the rate, as high as the errors corrected: by a quarter or
        // less from one point to the next.
        let points_per_octave = (4 * (correctable + 1)).next_power_of_two();
        let low_bits = 52 - points_per_octave.trailing_zeros();
        let first = never.to_bits() >> low_bits;
        let last = (always.to_bits() >> low_bits) + 1;
        let fails = (first..=last).map(|point| exact(f64::from_bits(point << low_bits).min(0.5))).collect();
        Self { never, low_bits, first, fails }
    }

    /// The error rate up to which no page fails.
    #[inline]
    pub fn never(&self) -> f64 {
        self.never
    }

    /// The probability that a page with this error rate cannot be corrected.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // a machine with 32 bits would need a grid of gigabytes
    pub fn fails(&self, rate: f64) -> f64 {
        if rate <= self.never {
            return 0.0;
        }
        let below = rate.to_bits() >> self.low_bits;
        let point = (below - self.first) as usize;
        if point + 1 >= self.fails.len() {
            return 1.0;
        }
        let at = |point: u64| f64::from_bits(point << self.low_bits);
        let share = (rate - at(below)) / (at(below + 1) - at(below));
        let (low, high) = (self.fails[point], self.fails[point + 1]);
        low + (high - low) * share
    }
}

/// The largest rate, up to 0.5, below which `holds` is true.
fn bisect(holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 0.5);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if holds(middle) { low = middle } else { high = middle }
    }
    low
}

/// The probability that one codeword of a page or more has more than `correctable` errors.
fn page_fails(bits: u32, correctable: u32, codewords: u32, rate: f64) -> f64 {
    // 1 - (1 - f)^c, exact for small f as well.
    -(f64::from(codewords) * (-codeword_fails(bits, correctable, rate)).ln_1p()).exp_m1()
}

/// The probability that of `bits` bits, wrong with probability `rate` each, more than `correctable` are wrong.
fn codeword_fails(bits: u32, correctable: u32, rate: f64) -> f64 {
    if rate <= 0.0 {
        return 0.0;
    }
    let (n, t) = (f64::from(bits), f64::from(correctable));
    let odds = rate / (1.0 - rate);
    let log_choose = log_factorial(n) - log_factorial(t) - log_factorial(n - t);
    let at_limit = (log_choose + t * rate.ln() + (n - t) * (-rate).ln_1p()).exp();
    // Sums run away from the mean, where terms only shrink.
    let (mut term, mut sum, mut errors) = (at_limit, 0.0, t);
    if n * rate <= t {
        while errors < n {
            term *= (n - errors) / (errors + 1.0) * odds;
            errors += 1.0;
            sum += term;
            if term <= sum * 1e-17 {
                break;
            }
        }
        sum.min(1.0)
    } else {
        while term > sum * 1e-17 {
            sum += term;
            if errors == 0.0 {
                break;
            }
            term *= errors / ((n - errors + 1.0) * odds);
            errors -= 1.0;
        }
        (1.0 - sum).clamp(0.0, 1.0)
    }
}

/// The logarithm of `n!`: Stirling's series, whose error is below 1e-10 from 16 on, and the product below.
fn log_factorial(n: f64) -> f64 {
    let (mut n, mut below) = (n, 0.0);
    while n < 16.0 {
        n += 1.0;
        below += n.ln();
    }
    let inverse = 1.0 / n;
    let series = inverse * (1.0 / 12.0 - inverse * inverse * (1.0 / 360.0 - inverse * inverse / 1260.0));
    n * n.ln() - n + (std::f64::consts::TAU * n).ln() / 2.0 + series - below
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn small_codewords_match_sums_done_by_hand() {
        // Of 4 bits at 1/2: 11 of 16 outcomes have 2 wrong bits or more, 5 have 3 or more.
        assert!((codeword_fails(4, 1, 0.5) - 11.0 / 16.0).abs() < 1e-12);
        assert!((codeword_fails(4, 2, 0.5) - 5.0 / 16.0).abs() < 1e-12);
        // Of 8 bits at 1/10: 1 - 0.9^8 - 8 * 0.1 * 0.9^7.
        let one = 1.0 - 0.9f64.powi(8) - 8.0 * 0.1 * 0.9f64.powi(7);
        assert!((codeword_fails(8, 1, 0.1) - one).abs() < 1e-12);
        // Two codewords: one of them fails.
        assert!((page_fails(8, 1, 2, 0.1) - (1.0 - (1.0 - one) * (1.0 - one))).abs() < 1e-12);
        assert!((log_factorial(5.0) - 120f64.ln()).abs() < 1e-9);
        assert!((log_factorial(20.0) - 2.432_902_008_176_64e18f64.ln()).abs() < 1e-9);
    }

    /// Sums over all terms, in logarithms: slow, and without the shortcuts.
    fn by_summing_all(bits: u32, correctable: u32, rate: f64) -> f64 {
        let mut log_choose = 0.0;
        let mut sum = 0.0;
        for errors in 0..=bits {
            if errors > 0 {
                log_choose += f64::from(bits - errors + 1).ln() - f64::from(errors).ln();
            }
            if errors > correctable {
                sum += (log_choose + f64::from(errors) * rate.ln() + f64::from(bits - errors) * (-rate).ln_1p()).exp();
            }
        }
        sum
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]
        #[test]
        fn the_grid_matches_the_whole_sum(bits in 512u32..10_000, share in 0.001f64..0.02, place in 0.0f64..1.0) {
            let correctable = ((f64::from(bits) * share) as u32).max(1);
            let correction = Correction::new(bits, correctable, 1);
            let last = f64::from_bits((correction.first + correction.fails.len() as u64 - 1) << correction.low_bits);
            let rate = correction.never() * 1.01 + place * (last - correction.never() * 1.01);
            let exact = by_summing_all(bits, correctable, rate);
            let found = correction.fails(rate);
            prop_assert!((found / exact - 1.0).abs() < 0.02, "{} {}", found, exact);
            prop_assert!(by_summing_all(bits, correctable, correction.never()) <= NEVER * 1.01);
        }

        #[test]
        fn more_errors_fail_more_often(rate in 0.0f64..0.02, more in 0.0f64..0.01) {
            let correction = Correction::new(8192, 72, 16);
            prop_assert!(correction.fails(rate) <= correction.fails(rate + more));
            prop_assert!((0.0..=1.0).contains(&correction.fails(rate)));
        }
    }
}
