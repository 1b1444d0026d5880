//! How far two statistics are apart.
//!
//! Distributions by two measures: the largest gap between their cumulative shares (Kolmogorov-Smirnov), and the area between
//! them over a logarithmic axis (Wasserstein, of base 2 logarithms of the value plus one): by how many octaves
//! values have to be moved on average. Numbers by their ratio.

use super::{Distribution, Gathered, Statistics};
use flashwright_block::{Bytes, Nanos};

/// How far one statistic of two streams is apart.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Distance {
    /// The statistic.
    pub name: String,
    /// Its value, or the median of a distribution, in the first stream; none where it has none.
    pub first: Option<f64>,
    /// The same in the second.
    pub second: Option<f64>,
    /// The unit of both: `bytes`, `pages`, `requests`, `ns`, `share` or `number`.
    pub unit: &'static str,
    /// Of distributions: the largest gap between the cumulative shares, 0 to 1. Of numbers 0.
    pub largest_gap: f64,
    /// Of distributions: octaves by which values have to be moved on average. Of numbers: the base 2 logarithm of the
    /// larger over the smaller; none if one of them is 0 or absent.
    pub octaves: Option<f64>,
    /// Whether it is a distribution.
    pub is_distribution: bool,
}

/// All distances; what neither stream has is left out.
#[must_use]
pub fn distances(first: &Statistics, second: &Statistics) -> Vec<Distance> {
    let mut pair = Pair { first, second, found: Vec::new() };
    pair.volumes();
    pair.locality();
    pair.times();
    pair.distributions();
    pair.found
}

/// Two streams, and what was found of them.
struct Pair<'a> {
    first: &'a Statistics,
    second: &'a Statistics,
    found: Vec<Distance>,
}

impl Pair<'_> {
    fn put(&mut self, name: &str, unit: &'static str, first: Option<f64>, second: Option<f64>) {
        if first.is_none() && second.is_none() {
            return;
        }
        let octaves = first.zip(second).and_then(|(one, other)| match (one, other) {
            _ if one == other => Some(0.0),
            _ => (one > 0.0 && other > 0.0).then(|| libm::log2(one / other).abs()),
        });
        let name = name.to_owned();
        self.found.push(Distance { name, first, second, unit, largest_gap: 0.0, octaves, is_distribution: false });
    }

    fn number(&mut self, name: &str, unit: &'static str, of: impl Fn(&Statistics) -> Option<f64>) {
        self.put(name, unit, of(self.first), of(self.second));
    }

    fn distribution(&mut self, name: &str, unit: &'static str, of: impl Fn(&Statistics) -> Option<&Distribution>) {
        let empty = Distribution::default();
        let (one, other) = (of(self.first).unwrap_or(&empty), of(self.second).unwrap_or(&empty));
        if one.total() == 0.0 && other.total() == 0.0 {
            return;
        }
        self.found.push(Distance {
            name: name.to_owned(),
            first: one.quantile(0.5).map(whole),
            second: other.quantile(0.5).map(whole),
            unit,
            largest_gap: largest_gap(one, other),
            octaves: octaves(one, other),
            is_distribution: true,
        });
    }

    fn volumes(&mut self) {
        self.number("writes among requests", "share", |s| s.write_share);
        self.number("bytes a read", "bytes", |s| ratio(s.read_bytes, s.reads));
        self.number("bytes a write", "bytes", |s| ratio(s.written_bytes, s.writes));
        self.number("pages touched", "pages", |s| Some(whole(s.footprint.pages)));
        self.number("pages written", "pages", |s| Some(whole(s.footprint.pages_written)));
        self.number("accesses of a page", "number", |s| {
            ratio(s.footprint.growth.last().map_or(0, |last| last.accesses), s.footprint.pages)
        });
    }

    fn locality(&mut self) {
        self.number("sequential reads", "share", |s| s.read_runs.sequential_share);
        self.number("sequential writes", "share", |s| s.write_runs.sequential_share);
        self.number("reads of new pages", "share", |s| first_share(s, true));
        self.number("writes of new pages", "share", |s| first_share(s, false));
        for parts in [64, 8] {
            for (what, done, reads) in [("reads", "read", true), ("writes", "written", false)] {
                let name = format!("{what} of the most {done} 1/{parts} of pages");
                self.number(&name, "share", |s| popular(s, 1.0 / f64::from(parts), reads));
            }
        }
        let (one, other) = (&self.first.drift, &self.second.drift);
        if one.epoch_requests == other.epoch_requests {
            for (one, other) in [1, 4, 16].into_iter().filter_map(|lag| one.lags.get(lag).zip(other.lags.get(lag))) {
                let name = format!("accesses of chunks hot {} requests ago", one.requests);
                self.put(&name, "share", Some(one.share), Some(other.share));
            }
        }
        let blocks = |each: &Gathered| (each.window_pages, each.block_bytes);
        for (one, other) in common(&self.first.gathering.found, &self.second.gathering.found, blocks) {
            let name = format!("pages of a {} block in {} page writes", Bytes(one.block_bytes), one.window_pages);
            self.put(&name, "pages", Some(one.pages_per_block), Some(other.pages_per_block));
        }
    }

    fn times(&mut self) {
        self.number("reads per second", "number", |s| rate(s, s.reads));
        self.number("writes per second", "number", |s| rate(s, s.writes));
        self.number("same direction as before", "share", |s| s.arrivals.as_ref().map(|a| a.same_direction_share));
        let scales = |s: &Statistics| s.arrivals.as_ref().map_or_else(Vec::new, |arrivals| arrivals.scales.clone());
        for (one, other) in common(&scales(self.first), &scales(self.second), |scale| scale.window_ns) {
            let name = format!("dispersion over {}", Nanos(one.window_ns));
            self.put(&name, "number", Some(one.dispersion), Some(other.dispersion));
        }
    }

    fn distributions(&mut self) {
        self.distribution("read sizes", "bytes", |s| Some(&s.read_sizes.bytes));
        self.distribution("write sizes", "bytes", |s| Some(&s.write_sizes.bytes));
        self.distribution("read alignment", "bytes", |s| Some(&s.read_sizes.alignment));
        self.distribution("write alignment", "bytes", |s| Some(&s.write_sizes.alignment));
        self.distribution("runs of reads", "bytes", |s| Some(&s.read_runs.bytes));
        self.distribution("runs of writes", "bytes", |s| Some(&s.write_runs.bytes));
        self.distribution("reads of pages last read", "pages", |s| Some(&s.reuse.reads_of_reads));
        self.distribution("reads of pages last written", "pages", |s| Some(&s.reuse.reads_of_writes));
        self.distribution("writes of pages last read", "pages", |s| Some(&s.reuse.writes_of_reads));
        self.distribution("writes of pages last written", "pages", |s| Some(&s.reuse.writes_of_writes));
        self.distribution("page writes between overwrites", "pages", |s| Some(&s.reuse.overwrites));
        self.distribution("gaps before reads", "ns", |s| s.arrivals.as_ref().map(|a| &a.gaps_before_reads));
        self.distribution("gaps before writes", "ns", |s| s.arrivals.as_ref().map(|a| &a.gaps_before_writes));
    }
}

/// What both have, by a key.
fn common<T: Copy, K: PartialEq>(one: &[T], other: &[T], key: impl Fn(&T) -> K) -> Vec<(T, T)> {
    one.iter().filter_map(|each| other.iter().find(|its| key(its) == key(each)).map(|its| (*each, *its))).collect()
}

/// The share of reads or of writes that goes to a share of the pages which is a power of two.
fn popular(of: &Statistics, share: f64, reads: bool) -> Option<f64> {
    let found = &of.popularity;
    let at = found.share_of_pages.iter().position(|each| (each - share).abs() < 1e-9)?;
    if reads { &found.share_of_reads } else { &found.share_of_writes }.get(at).copied()
}

#[allow(clippy::cast_precision_loss)] // for people
fn whole(count: u64) -> f64 {
    count as f64
}

fn ratio(part: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| whole(part) / whole(all))
}

fn rate(of: &Statistics, requests: u64) -> Option<f64> {
    of.arrivals.as_ref().filter(|_| requests > 0).map(|arrivals| whole(requests) / (whole(arrivals.span_ns) / 1e9))
}

fn first_share(of: &Statistics, reads: bool) -> Option<f64> {
    let reuse = &of.reuse;
    let (new, again) = if reads {
        (reuse.reads_first, [&reuse.reads_of_reads, &reuse.reads_of_writes])
    } else {
        (reuse.writes_first, [&reuse.writes_of_reads, &reuse.writes_of_writes])
    };
    let all = new + again.iter().map(|each| each.total()).sum::<f64>();
    (all > 0.0).then(|| new / all)
}

/// The largest gap between the cumulative shares; 1 if one of the two is empty.
pub(crate) fn largest_gap(one: &Distribution, other: &Distribution) -> f64 {
    if one.total() == 0.0 || other.total() == 0.0 {
        return 1.0;
    }
    steps(one, other).iter().map(|&(_, gap)| gap.abs()).fold(0.0, f64::max)
}

/// The area between the cumulative shares over base 2 logarithms of the value plus one; none if one of the two is empty.
pub(crate) fn octaves(one: &Distribution, other: &Distribution) -> Option<f64> {
    if one.total() == 0.0 || other.total() == 0.0 {
        return None;
    }
    let steps = steps(one, other);
    let place = |value: u64| libm::log2(whole(value) + 1.0);
    Some(steps.windows(2).map(|pair| pair[0].1.abs() * (place(pair[1].0) - place(pair[0].0))).sum())
}

/// At each value of either, the share of the first at or below it less that of the second.
fn steps(one: &Distribution, other: &Distribution) -> Vec<(u64, f64)> {
    let mut jumps: Vec<(u64, f64)> = Vec::with_capacity(one.values.len() + other.values.len());
    for (of, sign) in [(one, 1.0), (other, -1.0)] {
        let total = of.total();
        jumps.extend(of.values.iter().zip(&of.weights).map(|(&value, weight)| (value, sign * weight / total)));
    }
    jumps.sort_by_key(|&(value, _)| value);
    let mut found: Vec<(u64, f64)> = Vec::with_capacity(jumps.len());
    let mut gap = 0.0;
    for (value, jump) in jumps {
        gap += jump;
        match found.last_mut() {
            Some(last) if last.0 == value => last.1 = gap,
            _ => found.push((value, gap)),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[u64], weights: &[f64]) -> Distribution {
        Distribution { values: values.to_vec(), weights: weights.to_vec() }
    }

    #[test]
    fn distances_worked_by_hand() {
        // Shares up to 1, 3 and 7: 0.5, 0.5, 1 against 0, 1, 1. Places log2(1 + value): 1, 2, 3.
        let (one, other) = (of(&[1, 7], &[2.0, 2.0]), of(&[3], &[5.0]));
        assert_eq!(largest_gap(&one, &other), 0.5);
        assert_eq!(octaves(&one, &other), Some(0.5 * 1.0 + 0.5 * 1.0));
        assert_eq!((largest_gap(&one, &one), octaves(&one, &one)), (0.0, Some(0.0)));
        let empty = Distribution::default();
        assert_eq!((largest_gap(&one, &empty), octaves(&one, &empty)), (1.0, None));
    }
}
