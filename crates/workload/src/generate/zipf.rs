//! Zipf's law, specified by its exponent theta over the places of requests, as YCSB and fio do, or over chunks of the space
//! as "X % of accesses go to the hottest Y % of the space".
//!
//! With an exponent there is no table (`ranks.rs`). Without one, chunk `i` (from 1, hottest first) has weight `i^-alpha`; within a chunk every place is equally likely. X and Y fix
//! alpha: `share(alpha) = sum over i <= Y n of i^-alpha / sum over i <= n of i^-alpha` rises with alpha, and bisection
//! finds it. An alias table, 8 bytes per chunk, makes draws constant time.

use super::alias::AliasTable;
use super::common::{Common, Plan, sectors};
use super::generator::Pattern;
use super::ranks::{Units, Zipfian};
use super::settings::settings;
use super::value::{Exponent, Placement, Share, Streams};
use super::{Describe, Fault, Workload};
use flashwright_block::{Bytes, Popularity, RequestKind, RequestSource, Rng, SECTOR_BYTES, below};
use libm::{expm1, log, pow};
use std::sync::Arc;

settings! {
    /// Settings of `zipf`.
    pub struct Zipf {
        "theta" theta: Option<Exponent> = "", "The exponent, as of YCSB and fio: the place of rank k gets 1/k^theta of the requests of the first.";
        "accesses" accesses: Option<Share> = "", "Without theta: share of requests that go to the hottest part; at least space, below 1; default 0.95.";
        "space" space: Share = "0.2", "The hottest part, as a share of the space; above 0 and below 1.";
        "chunk" chunk: Option<Bytes> = "", "Popularity is constant within chunks of this size; default 256KiB, with theta one place of a request.";
        "placement" placement: Placement = "scattered", "Chunks in random order (scattered) or hottest first (identity).";
        "streams" streams: Streams = "none", "Streams that requests name: none, or the class (1, or 2 for the hottest part).";
    }
}

impl Describe for Zipf {
    const NAME: &'static str = "zipf";
    /// As fio writes it: `zipf:1.2`.
    const BARE: Option<&'static str> = Some("theta");
    const SUMMARY: &'static str =
        "Zipf's law, by its exponent or by the share of accesses on the hottest share of the space";
}

/// Share of accesses to the hottest part, and size of chunks, where neither they nor an exponent are given.
const ACCESSES: f64 = 0.95;
const CHUNK: Bytes = Bytes(256 << 10);

/// Above this the skew no longer changes: all accesses go to the first chunks.
const ALPHA_MAX: f64 = 6.0;

impl Workload for Zipf {
    fn check(&self, common: &Common, faults: &mut Vec<Fault>) {
        if self.space.0 <= 0.0 || self.space.0 >= 1.0 {
            faults.push(Fault::new("space", self.space.0, "a share above 0 and below 1"));
        }
        let accesses = self.accesses.map_or(ACCESSES, |share| share.0);
        if let (Some(theta), Some(_)) = (self.theta, self.accesses) {
            let found = format!("theta={} and accesses={accesses} together", theta.0);
            faults.push(Fault::new("theta", found, "one of the two: either gives the other"));
        } else if accesses >= 1.0 || accesses < self.space.0 && self.theta.is_none() {
            let allowed = format!("a share from {} (that of the space) and below 1", self.space.0);
            faults.push(Fault::new("accesses", accesses, allowed));
        }
        let chunk = self.chunk.or(self.theta.is_none().then_some(CHUNK));
        if let (Some(size), Some(chunk)) = (common.size, chunk)
            && size > chunk
        {
            faults.push(Fault::new("chunk", chunk, format!("the request size or more, {size}")));
        }
    }

    fn source(&self, plan: &Plan<'_>) -> Result<Box<dyn RequestSource + Send>, Fault> {
        let units = self.units(plan)?;
        let hottest = hottest_of(self.space.0, units.count);
        if let Some(theta) = self.theta {
            let law = Zipfian::new(units.count, theta.0);
            return Ok(units.source(plan, law, self.placement, self.streams, hottest));
        }
        let (chunk, chunks) = (units.sectors, units.count);
        let alpha = self.alpha(chunks)?;
        let mut weights = weights(chunks, alpha).ok_or_else(|| {
            let least = Bytes(plan.space_sectors.div_ceil(CHUNKS_MAX) * SECTOR_BYTES);
            Fault::new("chunk", self.chunk.unwrap_or(CHUNK), format!("chunks of at least {least} on this drive"))
        })?;
        let coldest_hot = weights[usize::try_from(hottest).unwrap_or(usize::MAX).min(weights.len()) - 1];
        if self.placement == Placement::Scattered {
            shuffle(&mut weights, &mut plan.layout());
        }
        Ok(plan.run(Chunks {
            rng: plan.addresses(),
            streams: match self.streams {
                Streams::None => Vec::new(),
                Streams::Class => weights.iter().map(|weight| 1 + u16::from(*weight >= coldest_hot)).collect(),
            },
            stream: 0,
            table: AliasTable::new(&weights),
            chunk_sectors: chunk,
            slots: units.slots,
            align_sectors: plan.align_sectors,
        }))
    }

    #[allow(clippy::cast_precision_loss)]
    fn notes(&self, plan: &Plan<'_>) -> Vec<String> {
        let Ok(units) = self.units(plan) else { return Vec::new() };
        let Ok(theta) = self.theta.map_or_else(|| self.alpha(units.count), |theta| Ok(theta.0)) else {
            return Vec::new();
        };
        let hottest = hottest_of(self.space.0, units.count);
        let share = power_sum(hottest, theta) / power_sum(units.count, theta);
        let what = if units.slots > 1 || self.theta.is_none() { "chunks" } else { "places" };
        vec![format!(
            "Zipf with exponent {theta:.4} over {} {what} of {}: the hottest {:.3} % of them get {:.1} % of the accesses",
            units.count,
            Bytes(units.sectors * SECTOR_BYTES),
            hottest as f64 / units.count as f64 * 100.0,
            share * 100.0,
        )]
    }
}

impl Zipf {
    /// What is ranked by popularity.
    fn units(&self, plan: &Plan<'_>) -> Result<Units, Fault> {
        let Some(size) = self.chunk.or(self.theta.is_none().then_some(CHUNK)) else { return Ok(Units::places(plan)) };
        let chunk = sectors(size).min(plan.space_sectors) / plan.align_sectors * plan.align_sectors;
        if chunk < u64::from(plan.size_sectors) {
            return Err(Fault::new("chunk", size, "at least the request size and alignment"));
        }
        let slots = (chunk - u64::from(plan.size_sectors)) / plan.align_sectors + 1;
        Ok(Units { count: plan.space_sectors / chunk, sectors: chunk, slots })
    }

    /// The exponent that gives the hottest part its share.
    fn alpha(&self, chunks: u64) -> Result<f64, Fault> {
        let accesses = self.accesses.map_or(ACCESSES, |share| share.0);
        solve_alpha(accesses, self.space.0, chunks).ok_or_else(|| {
            Fault::new("accesses", accesses, format!("a share that {chunks} chunks can have on their hottest part"))
        })
    }
}

struct Chunks {
    rng: Rng,
    /// The placement stream of each chunk; empty if requests name none. Then that of the last request.
    streams: Vec<u16>,
    stream: u16,
    /// Draws the chunk: the permutation is in the order of its weights.
    table: AliasTable,
    chunk_sectors: u64,
    /// Places within a chunk.
    slots: u64,
    align_sectors: u64,
}

impl Pattern for Chunks {
    #[inline]
    fn next(&mut self, _: RequestKind) -> u64 {
        let chunk = self.table.draw(&mut self.rng);
        self.stream = self.streams.get(chunk).copied().unwrap_or(0);
        chunk as u64 * self.chunk_sectors + below(&mut self.rng, self.slots) * self.align_sectors
    }
    fn popularity(&self) -> Option<Arc<dyn Popularity>> {
        let weights = self.table.probabilities();
        let mut order: Vec<u32> = (0..).take(weights.len()).collect();
        order.sort_by(|a, b| weights[*b as usize].total_cmp(&weights[*a as usize]));
        let mut rank_of = vec![0; order.len()];
        (0..).zip(&order).for_each(|(rank, chunk)| rank_of[*chunk as usize] = rank);
        let (slots, sectors) = (self.slots, self.align_sectors);
        Some(Arc::new(ChunksByRank { table: self.table.clone(), order, rank_of, slots, sectors }))
    }
    #[inline]
    fn stream(&self) -> u16 {
        self.stream
    }
}

/// The places of chunks, those of the most popular chunk first.
#[derive(Debug)]
struct ChunksByRank {
    table: AliasTable,
    /// The chunk of each rank, and the rank of each chunk.
    order: Vec<u32>,
    rank_of: Vec<u32>,
    slots: u64,
    sectors: u64,
}

impl Popularity for ChunksByRank {
    fn places(&self) -> u64 {
        self.order.len() as u64 * self.slots
    }
    fn sectors(&self) -> u64 {
        self.sectors
    }
    fn draw(&self, rng: &mut Rng) -> u64 {
        let chunk = self.table.draw(rng);
        u64::from(self.rank_of[chunk]) * self.slots + below(rng, self.slots)
    }
    #[allow(clippy::cast_possible_truncation)] // a rank of a chunk
    fn place(&self, rank: u64) -> u64 {
        u64::from(self.order[(rank / self.slots) as usize]) * self.slots + rank % self.slots
    }
}

/// The longest table, 1 GiB: enough for 32 TiB in chunks of 256 KiB.
const CHUNKS_MAX: u64 = 1 << 27;

/// Weights `i^-alpha` of `n` chunks, hottest first; none when `n` is above [`CHUNKS_MAX`].
#[allow(clippy::cast_precision_loss)]
pub(crate) fn weights(n: u64, alpha: f64) -> Option<Vec<f64>> {
    (n <= CHUNKS_MAX).then(|| (1..=n).map(|i| pow(i as f64, -alpha)).collect())
}

/// Fisher and Yates.
pub(crate) fn shuffle<T>(items: &mut [T], rng: &mut Rng) {
    for i in (1..items.len()).rev() {
        let j = below(rng, i as u64 + 1);
        items.swap(i, usize::try_from(j).expect("an index into a slice fits"));
    }
}

/// The chunks of the hottest part: `space` of `n`, rounded, at least one.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn hottest_of(space: f64, n: u64) -> u64 {
    ((space * n as f64).round() as u64).max(1)
}

/// The alpha at which the hottest `space` (rounded, at least one) of `n` chunks get `accesses`, to 1e-6; none
/// when no alpha up to [`ALPHA_MAX`] reaches that.
#[allow(clippy::cast_precision_loss)]
pub(crate) fn solve_alpha(accesses: f64, space: f64, n: u64) -> Option<f64> {
    let hottest = hottest_of(space, n);
    let share = |alpha| power_sum(hottest, alpha) / power_sum(n, alpha);
    if hottest >= n || share(0.0) >= accesses {
        return Some(0.0); // one chunk, or a part that rounds up to more than it should: no skew needed
    }
    let (mut low, mut high) = (0.0, ALPHA_MAX);
    if share(high) < accesses {
        return None;
    }
    while high - low > 1e-9 {
        let middle = (low + high) / 2.0;
        if share(middle) < accesses { low = middle } else { high = middle }
    }
    Some((low + high) / 2.0)
}

/// `sum over i = 1..=n of i^-alpha`: the first terms one by one, the rest by the Euler-Maclaurin formula, so that a
/// drive of millions of chunks costs no more than a small one. Relative error below 1e-12 for alpha up to 6.
#[allow(clippy::cast_precision_loss)]
pub(crate) fn power_sum(n: u64, alpha: f64) -> f64 {
    const HEAD: u64 = 200;
    let term = |i: u64| pow(i as f64, -alpha);
    let head: f64 = (1..=n.min(HEAD)).map(term).sum();
    if n <= HEAD {
        return head;
    }
    let (a, b) = (HEAD as f64, n as f64);
    // (b^(1-alpha) - a^(1-alpha)) / (1-alpha), by expm1 so that alpha near 1 keeps its digits.
    let x = (1.0 - alpha) * log(b / a);
    let ratio = if x.abs() < 1e-12 { 1.0 } else { expm1(x) / x };
    let integral = pow(a, 1.0 - alpha) * log(b / a) * ratio;
    // f' and f''' of x^-alpha at both ends; the sum starts behind a, so f(a) is half taken off.
    let first = |x: f64| -alpha * pow(x, -alpha - 1.0);
    let third = |x: f64| -alpha * (alpha + 1.0) * (alpha + 2.0) * pow(x, -alpha - 3.0);
    head + integral + (term(n) - term(HEAD)) / 2.0 + (first(b) - first(a)) / 12.0 - (third(b) - third(a)) / 720.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Published solutions for a drive of 8 GiB at five utilisations, and for 1,000 chunks.
    #[test]
    fn alphas_are_the_published_ones() {
        let chunks = [16_384, 19_660, 22_937, 26_214, 29_491, 1000];
        let table = [
            (0.80, [0.9398, 0.9365, 0.9339, 0.9317, 0.9299, 1.0239]),
            (0.95, [1.2188, 1.2116, 1.2057, 1.2008, 1.1966, 1.3920]),
        ];
        for (accesses, alphas) in table {
            for (n, expected) in chunks.iter().zip(alphas) {
                let found = solve_alpha(accesses, 0.2, *n).unwrap();
                assert!((found - expected).abs() <= 0.5e-4 + 1e-6, "{accesses}/20 of {n}: {found}, not {expected}");
            }
        }
    }

    #[test]
    fn the_fast_sum_is_the_plain_one() {
        for alpha in [0.0, 0.3, 0.9, 1.0, 1.0 + 1e-9, 1.2, 2.0, 6.0] {
            for n in [1, 2, 199, 200, 201, 1000, 100_000] {
                let plain: f64 = (1..=n).rev().map(|i| pow(i as f64, -alpha)).sum();
                let fast = power_sum(n, alpha);
                assert!((fast / plain - 1.0).abs() < 1e-11, "alpha {alpha} n {n}: {fast} {plain}");
            }
        }
    }

    #[test]
    fn what_cannot_be_solved_says_so() {
        assert_eq!(solve_alpha(0.95, 0.2, 1), Some(0.0));
        assert_eq!(solve_alpha(0.5, 0.5, 1000), Some(0.0));
        assert_eq!(solve_alpha(0.999_999, 1e-4, 1000), None);
    }
}
