//! Reuse of pages: how many other pages were touched since, by pair of directions; how much was written between two writes
//! of a page; and how unevenly accesses spread over pages.
//!
//! Exact up to [`EXACT_PAGES`] distinct pages. Beyond them, pages are sampled by their hash (SHARDS: Waldspurger, Park,
//! Garthwaite and Ahmad, FAST 2015): whenever more are followed, half of them are given up, and each of the
//! others counts twice as much. Distances among the sample are scaled likewise.

use super::distribution::{Bins, Distribution};
use super::fenwick::Fenwick;
use super::{READ, WRITE};
use crate::trace::PageHasher;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;

/// Pages that are followed at most.
const EXACT_PAGES: usize = 1 << 21;
/// Places of the tree at first.
const PLACES: usize = 1 << 12;
/// Points of the curve of popularity: shares of the pages, four an octave.
const SHARES_AN_OCTAVE: i32 = 4;

/// Reuse of pages of 4 KiB.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Reuse {
    /// The share of pages that was followed, 0 to 1: below 1 distances are estimates.
    pub sampled: f64,
    /// Distinct other pages touched since the last access of the page: reads of pages that were last read.
    pub reads_of_reads: Distribution,
    /// The same for reads of pages that were last written.
    pub reads_of_writes: Distribution,
    /// The same for writes of pages that were last read.
    pub writes_of_reads: Distribution,
    /// The same for writes of pages that were last written.
    pub writes_of_writes: Distribution,
    /// Reads of pages never touched before.
    pub reads_first: f64,
    /// Writes of pages never touched before.
    pub writes_first: f64,
    /// Pages written from one write of a page to the next, reads aside: how long data live.
    pub overwrites: Distribution,
}

/// Shares of accesses that go to the most accessed pages.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Popularity {
    /// Shares of the pages read or written, ascending to 1.
    pub share_of_pages: Vec<f64>,
    /// The share of page reads that go to this share of pages, the most read ones; empty without reads.
    pub share_of_reads: Vec<f64>,
    /// The same for writes.
    pub share_of_writes: Vec<f64>,
}

/// A page that is followed.
struct Known {
    place: u32,
    direction: u8,
    /// Pages written in total when it was last written, from 1; 0 for never.
    written: u64,
    accesses: [u32; 2],
}

pub(crate) struct Collector {
    pages_max: usize,
    pages: HashMap<u64, Known, BuildHasherDefault<PageHasher>>,
    order: Fenwick,
    next_place: usize,
    /// Pages whose hash has this many trailing zeros are followed.
    halvings: u32,
    written: u64,
    pairs: [[Bins; 2]; 2],
    first: [f64; 2],
    overwrites: Bins,
}

impl Default for Collector {
    fn default() -> Self {
        Self::at_most(EXACT_PAGES)
    }
}

impl Collector {
    /// One that follows at most `pages_max` pages.
    fn at_most(pages_max: usize) -> Self {
        Collector {
            pages_max,
            pages: HashMap::default(),
            order: Fenwick::new(PLACES),
            next_place: 0,
            halvings: 0,
            written: 0,
            pairs: Default::default(),
            first: [0.0; 2],
            overwrites: Bins::default(),
        }
    }

    pub(crate) fn add(&mut self, page: u64, direction: usize) {
        self.written += u64::from(direction == WRITE);
        if !sampled(page, self.halvings) {
            return;
        }
        if self.next_place == self.order.places() {
            self.compact();
        }
        let weight = weight(self.halvings);
        // Places fit into 32 bits: the tree has at most four times the pages followed.
        let place = u32::try_from(self.next_place).expect("the tree is small");
        match self.pages.entry(page) {
            std::collections::hash_map::Entry::Occupied(mut entry) => {
                let known = entry.get_mut();
                let others = self.order.after(known.place as usize);
                self.pairs[direction][known.direction as usize].add(u64::from(others) << self.halvings, weight);
                self.order.clear(known.place as usize);
                known.place = place;
                known.direction = u8::from(direction == WRITE);
                known.accesses[direction] = known.accesses[direction].saturating_add(1);
                if direction == WRITE {
                    if known.written > 0 {
                        self.overwrites.add(self.written - known.written, weight);
                    }
                    known.written = self.written;
                }
            }
            std::collections::hash_map::Entry::Vacant(entry) => {
                self.first[direction] += weight;
                let mut accesses = [0; 2];
                accesses[direction] = 1;
                let written = if direction == WRITE { self.written } else { 0 };
                entry.insert(Known { place, direction: u8::from(direction == WRITE), written, accesses });
            }
        }
        self.order.set(self.next_place);
        self.next_place += 1;
        if self.pages.len() > self.pages_max {
            self.halvings += 1;
            let halvings = self.halvings;
            self.pages.retain(|page, _| sampled(*page, halvings));
            self.compact();
        }
    }

    /// Moves the pages to the lowest places, in their order, with room for as many accesses again at least.
    #[allow(clippy::iter_over_hash_type)] // sorted below
    fn compact(&mut self) {
        let mut order: Vec<&mut Known> = self.pages.values_mut().collect();
        order.sort_unstable_by_key(|known| known.place);
        let count = order.len();
        for (place, known) in order.into_iter().enumerate() {
            known.place = u32::try_from(place).expect("the tree is small");
        }
        self.order = Fenwick::first_marked((2 * count).next_power_of_two().max(PLACES), count);
        self.next_place = count;
    }

    #[allow(clippy::iter_over_hash_type)] // sorted below
    pub(crate) fn finish(self) -> (Reuse, Popularity) {
        let popularity = Popularity::of(self.pages.values().map(|known| known.accesses));
        let [[reads_of_reads, reads_of_writes], [writes_of_reads, writes_of_writes]] =
            self.pairs.map(|row| row.map(Bins::finish));
        let reuse = Reuse {
            sampled: 1.0 / weight(self.halvings),
            reads_of_reads,
            reads_of_writes,
            writes_of_reads,
            writes_of_writes,
            reads_first: self.first[READ],
            writes_first: self.first[WRITE],
            overwrites: self.overwrites.finish(),
        };
        (reuse, popularity)
    }
}

/// What an access counts as after so many halvings.
fn weight(halvings: u32) -> f64 {
    // At most 2^43 pages can be touched.
    (1_u64 << halvings) as f64
}

/// Whether a page is followed: the last bits of its hash (the finaliser of SplitMix64).
pub(super) fn sampled(page: u64, halvings: u32) -> bool {
    let mut hash = page.wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (hash ^ (hash >> 31)).trailing_zeros() >= halvings
}

impl Popularity {
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // shares
    fn of(accesses: impl Iterator<Item = [u32; 2]>) -> Self {
        let (mut reads, mut writes): (Vec<u32>, Vec<u32>) = accesses.map(|[reads, writes]| (reads, writes)).unzip();
        if reads.is_empty() {
            return Self::default();
        }
        let pages = reads.len();
        let octaves = pages.ilog2() as i32 + 1;
        let shares = (0..=octaves * SHARES_AN_OCTAVE)
            .rev()
            .map(|step| libm::exp2(-f64::from(step) / f64::from(SHARES_AN_OCTAVE)))
            .filter(|share| share * pages as f64 >= 1.0)
            .collect::<Vec<_>>();
        let curve = |counts: &mut Vec<u32>| {
            counts.sort_unstable_by(|one, other| other.cmp(one));
            let all: u64 = counts.iter().map(|&count| u64::from(count)).sum();
            let (mut taken, mut sum) = (0, 0_u64);
            let mut found = Vec::new();
            for share in &shares {
                let upto = ((share * pages as f64).round() as usize).min(pages);
                sum += counts[taken..upto].iter().map(|&count| u64::from(count)).sum::<u64>();
                taken = upto;
                found.push(sum as f64 / all as f64);
            }
            if all == 0 { Vec::new() } else { found }
        };
        let (share_of_reads, share_of_writes) = (curve(&mut reads), curve(&mut writes));
        Popularity { share_of_pages: shares, share_of_reads, share_of_writes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampled_distances_are_near_the_exact_ones() {
        let (mut exact, mut bounded) = (Collector::default(), Collector::at_most(2000));
        let mut state = 1_u64;
        for _ in 0..300_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Three of four accesses to a tenth of 20,000 pages.
            let hot = state >> 62 != 0;
            let page = (state >> 20) % if hot { 2000 } else { 20_000 };
            let direction = usize::from((state >> 50) & 1 == 1);
            exact.add(page, direction);
            bounded.add(page, direction);
        }
        let ((exact, popular), (bounded, popular_bounded)) = (exact.finish(), bounded.finish());
        assert_eq!(exact.sampled, 1.0);
        assert!(bounded.sampled <= 1.0 / 8.0);
        for (exact, bounded) in [
            (&exact.reads_of_writes, &bounded.reads_of_writes),
            (&exact.writes_of_writes, &bounded.writes_of_writes),
            (&exact.overwrites, &bounded.overwrites),
        ] {
            let gap = crate::statistics::distance::largest_gap(exact, bounded);
            assert!(gap < 0.05, "{gap}");
            assert!((bounded.total() / exact.total() - 1.0).abs() < 0.1);
        }
        let hottest = |found: &Popularity| found.share_of_writes[found.share_of_writes.len() - 13];
        assert!((hottest(&popular) - hottest(&popular_bounded)).abs() < 0.05);
    }
}
