//! Places by popularity: a law draws a rank, a permutation says where the place of that rank lies.

use super::common::Plan;
use super::generator::Pattern;
use super::permutation::Permutation;
use super::value::{Placement, Streams};
use flashwright_block::{Popularity, RequestKind, RequestSource, Rng, below, unit_interval};
use libm::{exp, expm1, log, log1p, pow};
use std::fmt::Debug;
use std::sync::Arc;

/// Draws ranks, 0 the most popular.
pub(crate) trait Law: Clone + Debug + Send + Sync + 'static {
    fn rank(&self, rng: &mut Rng) -> u64;
}

/// Units of the space that a law ranks.
#[derive(Clone, Debug)]
pub(crate) struct Units {
    /// How many.
    pub(crate) count: u64,
    /// Sectors of each.
    pub(crate) sectors: u64,
    /// Places of a request within one.
    pub(crate) slots: u64,
}

impl Units {
    /// The places where a request can start, one by one.
    pub(crate) fn places(plan: &Plan<'_>) -> Self {
        Self { count: plan.slots, sectors: plan.align_sectors, slots: 1 }
    }

    /// Requests at units that `law` draws; `hottest` ones are of stream 2, where requests name streams.
    pub(crate) fn source(
        self,
        plan: &Plan<'_>,
        law: impl Law,
        placement: Placement,
        streams: Streams,
        hottest: u64,
    ) -> Box<dyn RequestSource + Send> {
        let scatter = (placement == Placement::Scattered).then(|| Permutation::new(self.count, &mut plan.layout()));
        let hottest = (streams == Streams::Class).then_some(hottest);
        plan.run(Ranks {
            rng: plan.addresses(),
            by: ByRank { law, scatter, units: self, align: plan.align_sectors },
            hottest,
            stream: 0,
        })
    }
}

/// Where the units lie that a law draws.
#[derive(Clone, Debug)]
pub(crate) struct ByRank<L> {
    pub(crate) law: L,
    pub(crate) scatter: Option<Permutation>,
    pub(crate) units: Units,
    pub(crate) align: u64,
}

impl<L: Law> Popularity for ByRank<L> {
    fn places(&self) -> u64 {
        self.units.count * self.units.slots
    }
    fn sectors(&self) -> u64 {
        self.align
    }
    fn draw(&self, rng: &mut Rng) -> u64 {
        let unit = self.law.rank(rng);
        unit * self.units.slots + if self.units.slots > 1 { below(rng, self.units.slots) } else { 0 }
    }
    fn place(&self, rank: u64) -> u64 {
        let (unit, within) = (rank / self.units.slots, rank % self.units.slots);
        self.scatter.as_ref().map_or(unit, |scatter| scatter.at(unit)) * self.units.slots + within
    }
}

struct Ranks<L> {
    rng: Rng,
    by: ByRank<L>,
    /// Units of the hottest part, if requests name streams, and the stream of the last one.
    hottest: Option<u64>,
    stream: u16,
}

impl<L: Law> Pattern for Ranks<L> {
    #[inline]
    fn next(&mut self, _: RequestKind) -> u64 {
        let ByRank { law, scatter, units, align } = &self.by;
        let rank = law.rank(&mut self.rng);
        if let Some(hottest) = self.hottest {
            self.stream = 1 + u16::from(rank < hottest);
        }
        let unit = scatter.as_ref().map_or(rank, |scatter| scatter.at(rank));
        let within = if units.slots > 1 { below(&mut self.rng, units.slots) * align } else { 0 };
        unit * units.sectors + within
    }
    fn popularity(&self) -> Option<Arc<dyn Popularity>> {
        Some(Arc::new(self.by.clone()))
    }
    #[inline]
    fn stream(&self) -> u16 {
        self.stream
    }
}

/// Zipf's law: rank `k`, from 1, has weight `k^-theta`.
///
/// Rejection-inversion, W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates from monotone discrete
/// distributions", ACM TOMACS 6(3), 1996: a point under the hat `x^-theta` between 1/2 and n + 1/2 is drawn by inversion,
/// rounded to a whole number, and kept if it lies under the weight of that number, or so near to it that this is sure. Constant
/// time and no table at any n; more than nine draws in ten are kept.
#[derive(Clone, Debug)]
pub(crate) struct Zipfian {
    n: u64,
    theta: f64,
    /// Integrals of the hat up to 3/2, less the weight of the first rank, and up to n + 1/2.
    low: f64,
    high: f64,
    /// A number that lies no farther above the point that was drawn is kept without a look at its weight.
    sure: f64,
}

impl Zipfian {
    #[allow(clippy::cast_precision_loss)] // fewer than 2^53 sectors
    pub(crate) fn new(n: u64, theta: f64) -> Self {
        let mut law = Self { n, theta, low: 0.0, high: 0.0, sure: 0.0 };
        law.low = law.integral(1.5) - 1.0;
        law.high = law.integral(n as f64 + 0.5);
        law.sure = 2.0 - law.inverse(law.integral(2.5) - pow(2.0, -theta));
        law
    }

    /// `(x^(1 - theta) - 1) / (1 - theta)`, and `ln x` at 1.
    fn integral(&self, x: f64) -> f64 {
        let ln = log(x);
        let t = (1.0 - self.theta) * ln;
        ln * if t.abs() > 1e-8 { expm1(t) / t } else { 1.0 + t / 2.0 }
    }

    /// Where the integral has a value.
    fn inverse(&self, value: f64) -> f64 {
        // Rounding may carry it past the end of the range of the logarithm.
        let t = (value * (1.0 - self.theta)).max(-1.0);
        exp(value * if t.abs() > 1e-8 { log1p(t) / t } else { 1.0 - t / 2.0 })
    }
}

impl Law for Zipfian {
    #[inline]
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn rank(&self, rng: &mut Rng) -> u64 {
        loop {
            let drawn = self.high + unit_interval(rng) * (self.low - self.high);
            let x = self.inverse(drawn);
            let k = ((x + 0.5) as u64).clamp(1, self.n);
            let whole = k as f64;
            if whole - x <= self.sure || drawn >= self.integral(whole + 0.5) - pow(whole, -self.theta) {
                return k - 1;
            }
        }
    }
}

/// fio's `pareto:h`, and sysbench's: the hottest share `s` of the space gets `s^(ln(1 - h) / ln h)` of the accesses, so a share
/// `h` gets `1 - h`, of that a share `h` again, and so on.
#[derive(Clone, Debug)]
pub(crate) struct SelfSimilar {
    n: u64,
    power: f64,
}

impl SelfSimilar {
    pub(crate) fn new(n: u64, h: f64) -> Self {
        Self { n, power: log(h) / log1p(-h) }
    }

    /// The share of accesses to the hottest share of the space.
    pub(crate) fn share(&self, space: f64) -> f64 {
        pow(space, 1.0 / self.power)
    }
}

impl Law for SelfSimilar {
    #[inline]
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn rank(&self, rng: &mut Rng) -> u64 {
        ((self.n as f64 * pow(unit_interval(rng), self.power)) as u64).min(self.n - 1)
    }
}

#[cfg(test)]
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
mod tests {
    use super::*;
    use crate::generate::zipf::power_sum;
    use flashwright_block::Seed;

    fn counts(law: &impl Law, n: usize, draws: u64) -> Vec<u64> {
        let mut rng = Seed(11).stream("test");
        let mut found = vec![0; n];
        (0..draws).for_each(|_| found[law.rank(&mut rng) as usize] += 1);
        found
    }

    /// Pearson's statistic of 200,000 draws over 10 ranks against the exact weights: 27.9 is passed once in a thousand times.
    #[test]
    fn ranks_follow_zipfs_law() {
        for theta in [0.0, 0.5, 0.99, 1.0, 1.0 + 1e-9, 1.2, 2.0, 3.5] {
            let total = power_sum(10, theta);
            let expected: Vec<f64> = (1..=10).map(|k| 2e5 * pow(f64::from(k), -theta) / total).collect();
            let found = counts(&Zipfian::new(10, theta), 10, 200_000);
            let chi: f64 = found.iter().zip(&expected).map(|(f, e)| (*f as f64 - e).powi(2) / e).sum();
            assert!(chi < 27.9, "theta {theta}: {chi} {found:?}");
        }
    }

    /// The first ranks of many: their counts lie within 4.5 standard deviations of theory.
    #[test]
    fn the_first_ranks_of_many_have_their_probability() {
        const DRAWS: u64 = 400_000;
        for n in [1_000_000, 1 << 33] {
            for theta in [0.5, 0.99, 1.0, 1.2] {
                let law = Zipfian::new(n, theta);
                let mut rng = Seed(5).stream("test");
                let (mut first, mut fifth) = ([0u64; 4], 0);
                for _ in 0..DRAWS {
                    let rank = law.rank(&mut rng);
                    assert!(rank < n);
                    if rank < 4 {
                        first[rank as usize] += 1;
                    }
                    fifth += u64::from(rank < n / 5);
                }
                let total = power_sum(n, theta);
                let near = |found: u64, p: f64| {
                    let mean = p * DRAWS as f64;
                    (found as f64 - mean).abs() < 4.5 * (mean * (1.0 - p)).sqrt().max(1.0)
                };
                for (k, found) in (1..).zip(first) {
                    assert!(near(found, pow(f64::from(k), -theta) / total), "n {n} theta {theta} rank {k}: {found}");
                }
                assert!(near(fifth, power_sum(n / 5, theta) / total), "n {n} theta {theta}: {fifth}");
            }
        }
    }

    #[test]
    fn one_place_is_always_drawn() {
        assert!([0.0, 1.0, 2.0].iter().all(|theta| counts(&Zipfian::new(1, *theta), 1, 100) == [100]));
    }

    /// 20 % of the space get 80 % of the accesses, and 4 % get 64 %: one sigma of 100,000 draws is 150.
    #[test]
    fn the_share_of_a_share_is_the_same() {
        let law = SelfSimilar::new(10_000, 0.2);
        assert!((law.share(0.2) - 0.8).abs() < 1e-12 && (law.share(0.04) - 0.64).abs() < 1e-12);
        let found = counts(&law, 10_000, 100_000);
        for (places, share) in [(2000, 80_000u64), (400, 64_000)] {
            let hits: u64 = found[..places].iter().sum();
            assert!(hits.abs_diff(share) < 700, "{places}: {hits}");
        }
    }
}
