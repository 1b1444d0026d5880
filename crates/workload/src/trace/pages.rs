//! Pages that requests touch, and how often they were written, in memory that long requests don't grow.

use super::address::PageHasher;
use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasherDefault;

/// Requests over more regions than this, of 64 pages each, are kept as stretches: bitmaps take 32 B a region, which would be
/// 256 MiB for a request of 2 TiB.
const REGIONS_MAX: u64 = 1024;

/// Pages touched, and those written at least once, twice and so on, in bitmaps of 64 pages: `N` of them in all.
pub(crate) struct Pages<const N: usize> {
    /// Bit n is page n of the region.
    regions: HashMap<u64, [u64; N], BuildHasherDefault<PageHasher>>,
    /// What long requests touched beside: the first region of a stretch, the one past its end, and how often its pages were
    /// written, below `N`. They don't overlap.
    stretches: BTreeMap<u64, (u64, usize)>,
}

impl<const N: usize> Default for Pages<N> {
    fn default() -> Self {
        Self { regions: HashMap::default(), stretches: BTreeMap::new() }
    }
}

/// Adjacent regions of which the same pages are touched, or one region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub first: u64,
    pub regions: u64,
    /// Of each region.
    pub touched: u64,
}

impl<const N: usize> Pages<N> {
    /// A request reads or writes the pages from `first` to `last`.
    pub fn touch(&mut self, first: u64, last: u64, is_write: bool) {
        if last / 64 - first / 64 > REGIONS_MAX {
            self.stretch(first / 64 + 1, last / 64, usize::from(is_write));
            self.touch_each(is_write, [(first, first | 63), (last & !63, last)]);
        } else {
            self.touch_each(is_write, [(first, last)]);
        }
    }

    fn touch_each<const P: usize>(&mut self, is_write: bool, parts: [(u64, u64); P]) {
        let regions =
            parts.into_iter().flat_map(|(first, last)| (first / 64..=last / 64).map(move |at| (at, first, last)));
        for (region, first, last) in regions {
            let low = first.max(region * 64) % 64;
            let high = last.min(region * 64 + 63) % 64;
            let mask = (u64::MAX >> (63 - high)) & (u64::MAX << low);
            let marks = self.regions.entry(region).or_insert([0; N]);
            marks[0] |= mask;
            if is_write && N > 1 {
                (2..N).rev().for_each(|times| marks[times] |= marks[times - 1] & mask);
                marks[1] |= mask;
            }
        }
    }

    /// Touches all pages of the regions from `begin` up to `end`, which are written so many times more.
    fn stretch(&mut self, begin: u64, end: u64, writes: usize) {
        self.split(begin);
        self.split(end);
        let (mut at, mut gaps) = (begin, Vec::new());
        for (first, (past, times)) in self.stretches.range_mut(begin..end) {
            *times = (*times + writes).min(N - 1);
            gaps.push((at, *first));
            at = *past;
        }
        gaps.push((at, end));
        let times = writes.min(N - 1);
        self.stretches.extend(gaps.into_iter().filter(|(from, to)| from < to).map(|(from, to)| (from, (to, times))));
    }

    /// Has a stretch begin at a region if one goes through it.
    fn split(&mut self, at: u64) {
        if let Some((_, stretch)) = self.stretches.range_mut(..at).next_back()
            && stretch.0 > at
        {
            let rest = *stretch;
            stretch.0 = at;
            self.stretches.insert(at, rest);
        }
    }

    /// How often the stretch around a region was written, if there is one.
    fn stretched(&self, region: u64) -> Option<usize> {
        let (_, (end, times)) = self.stretches.range(..=region).next_back()?;
        (region < *end).then_some(*times)
    }

    /// Pages touched, and those written at least once, twice and so on.
    #[allow(clippy::iter_over_hash_type)] // a sum has no order
    pub fn counts(&self) -> [u64; N] {
        let mut sums = [0; N];
        for (begin, (end, times)) in &self.stretches {
            sums[..=*times].iter_mut().for_each(|sum| *sum += 64 * (end - begin));
        }
        for (number, marks) in &self.regions {
            let bits = marks.map(|bits| u64::from(bits.count_ones()));
            match self.stretched(*number) {
                None => sums.iter_mut().zip(bits).for_each(|(sum, count)| *sum += count),
                // Its pages have those of the stretch, and these more.
                Some(times) => (times + 1..N).for_each(|at| sums[at] += bits[at - times]),
            }
        }
        sums
    }

    /// What is touched, in order of address.
    pub fn parts(self) -> Vec<Part> {
        let alone = self.regions.iter().filter(|(number, _)| self.stretched(**number).is_none());
        let mut parts: Vec<Part> =
            alone.map(|(number, marks)| Part { first: *number, regions: 1, touched: marks[0] }).collect();
        parts.extend(self.stretches.iter().map(|(begin, (end, _))| Part {
            first: *begin,
            regions: end - begin,
            touched: u64::MAX,
        }));
        parts.sort_unstable_by_key(|part| part.first);
        parts.dedup_by(|next, part| {
            let joins = part.touched == u64::MAX && next.touched == u64::MAX && part.first + part.regions == next.first;
            part.regions += if joins { next.regions } else { 0 };
            joins
        });
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwright_block::{Seed, below};

    #[test]
    fn long_requests_touch_their_pages_as_short_ones_do() {
        const LONG: u64 = 70 * REGIONS_MAX;
        let mut rng = Seed(39).stream("long requests");
        for _ in 0..3 {
            let (mut pages, mut touched, mut naive) =
                (Pages::<4>::default(), Pages::<1>::default(), HashMap::<u64, usize>::new());
            for _ in 0..9 {
                let length =
                    1 + if below(&mut rng, 3) == 0 { below(&mut rng, 200) } else { LONG / 2 + below(&mut rng, LONG) };
                let (first, is_write) = (below(&mut rng, 2 * LONG), below(&mut rng, 2) == 0);
                pages.touch(first, first + length - 1, is_write);
                touched.touch(first, first + length - 1, is_write);
                (first..first + length).for_each(|page| *naive.entry(page).or_default() += usize::from(is_write));
            }
            let at_least = |writes| naive.values().filter(|count| **count >= writes).count() as u64;
            assert_eq!(pages.counts(), [0, 1, 2, 3].map(at_least));
            assert_eq!(touched.counts(), [at_least(0)]);
            assert!(pages.stretches.len() < 40 && !pages.stretches.is_empty());
            let mut listed: Vec<u64> = Vec::new();
            for part in touched.parts() {
                let regions = part.first..part.first + part.regions;
                let bits = regions.flat_map(|region| (0..64).map(move |bit| (region * 64 + bit, bit)));
                listed.extend(bits.filter(|(_, bit)| part.touched >> bit & 1 == 1).map(|(page, _)| page));
            }
            let mut expected: Vec<u64> = naive.into_keys().collect();
            expected.sort_unstable();
            assert!(listed == expected, "{} and {} pages", listed.len(), expected.len());
        }
    }

    #[test]
    fn a_read_of_two_tebibytes_takes_little_memory() {
        let mut pages = Pages::<4>::default();
        let each = (u64::from(u32::MAX) - 7) / 8;
        for at in 0..1000 {
            let first = at << 28;
            pages.touch(first, first + each - 1, false);
        }
        assert!(pages.regions.len() + pages.stretches.len() < 10_000);
        assert_eq!(pages.counts()[0], (999 << 28) + each);
    }
}
