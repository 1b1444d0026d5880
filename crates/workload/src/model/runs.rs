//! Sequential runs: requests that start where one of the last requests of their direction ended.

use flashwright_block::{Rng, unit_interval};

/// Ends of requests that are remembered for a direction.
const ENDS: usize = 16;
/// Classes of the length of a run so far, in requests.
pub(super) const LENGTHS: usize = 8;
/// Classes of how many other ends were set since.
pub(super) const RANKS: usize = 5;

/// The end of a request.
#[derive(Clone, Copy, Default)]
pub(super) struct End {
    pub(super) sector: u64,
    pub(super) size: u8,
    /// Requests of the run so far.
    length: u32,
}

fn length_class(length: u32) -> usize {
    match length {
        0..=1 => 0,
        2 => 1,
        3..=4 => 2,
        5..=8 => 3,
        9..=16 => 4,
        17..=64 => 5,
        65..=256 => 6,
        _ => 7,
    }
}

fn rank_class(rank: usize) -> usize {
    match rank {
        0 => 0,
        1 => 1,
        2..=3 => 2,
        4..=7 => 3,
        _ => 4,
    }
}

/// The last ends of one direction, latest first.
#[derive(Clone, Default)]
pub(super) struct Ends {
    ends: [End; ENDS],
    len: usize,
}

impl Ends {
    /// Where a run ended that a request at `sector` continues.
    pub(super) fn find(&self, sector: u64) -> Option<usize> {
        self.ends[..self.len].iter().position(|end| end.sector == sector)
    }

    pub(super) fn at(&self, rank: usize) -> &End {
        &self.ends[rank]
    }

    /// Notes a request that ends at `sector`, of size number `size`, continuing the run at `rank`.
    #[inline]
    pub(super) fn note(&mut self, rank: Option<usize>, sector: u64, size: u8) {
        let (length, last) = match rank {
            Some(rank) => (self.ends[rank].length.saturating_add(1), rank),
            None => {
                self.len = (self.len + 1).min(ENDS);
                (1, self.len - 1)
            }
        };
        self.ends.copy_within(0..last, 1);
        self.ends[0] = End { sector, size, length };
    }

    /// Forgets the run at `rank`.
    pub(super) fn drop(&mut self, rank: usize) {
        self.ends.copy_within(rank + 1..self.len, rank);
        self.len -= 1;
    }
}

/// How often runs went on.
#[derive(Clone, Default)]
pub(super) struct RunCounts {
    asked: [[u64; RANKS]; LENGTHS],
    went_on: [[u64; RANKS]; LENGTHS],
}

impl RunCounts {
    /// Notes that of the runs in `ends` the one at `rank` went on, or none.
    pub(super) fn add(&mut self, ends: &Ends, rank: Option<usize>) {
        let asked = rank.map_or(ends.len, |rank| rank + 1);
        for (at, end) in ends.ends[..asked].iter().enumerate() {
            self.asked[length_class(end.length)][rank_class(at)] += 1;
        }
        if let Some(rank) = rank {
            self.went_on[length_class(ends.ends[rank].length)][rank_class(rank)] += 1;
        }
    }

    /// Shares by class; a class with few runs takes those of the next shorter length of the same rank.
    pub(super) fn shares(&self) -> Vec<Vec<f64>> {
        let mut rows: Vec<Vec<f64>> = Vec::new();
        for length in 0..LENGTHS {
            let row = (0..RANKS).map(|rank| {
                let shorter = rows.last().map_or(0.0, |row: &Vec<f64>| row[rank]);
                let weight = if length == 0 { 0.0 } else { 8.0 };
                let asked = self.asked[length][rank] as f64 + weight;
                if asked == 0.0 { 0.0 } else { (self.went_on[length][rank] as f64 + weight * shorter) / asked }
            });
            let row = row.collect();
            rows.push(row);
        }
        rows
    }
}

/// Draws which run goes on.
pub(super) struct Runs {
    /// Probability that a run does not go on.
    ends: [[f64; RANKS]; LENGTHS],
    any: bool,
}

impl Runs {
    pub(super) fn new(shares: &[Vec<f64>]) -> Self {
        let mut ends = [[1.0; RANKS]; LENGTHS];
        for (row, shares) in ends.iter_mut().zip(shares) {
            row.iter_mut().zip(shares).for_each(|(end, share)| *end = 1.0 - share);
        }
        let any = ends.iter().flatten().any(|end| *end < 1.0);
        Runs { ends, any }
    }

    /// The run in `ends` that goes on.
    #[inline]
    pub(super) fn draw(&self, ends: &Ends, rng: &mut Rng) -> Option<usize> {
        if !self.any {
            return None;
        }
        let (draw, mut none) = (unit_interval(rng), 1.0);
        for (rank, end) in ends.ends[..ends.len].iter().enumerate() {
            none *= self.ends[length_class(end.length)][rank_class(rank)];
            if draw >= none {
                return Some(rank);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwright_block::Seed;

    /// Two runs that alternate and end one time in ten; drawn from their counts, as many requests continue a run.
    #[test]
    fn runs_come_back_as_long() {
        let mut rng = Seed(6).stream("test");
        let (mut counts, mut ends, mut next, mut went_on) = (RunCounts::default(), Ends::default(), [0, 1 << 40], 0);
        for i in 0..20_000u64 {
            let start = &mut next[i as usize % 2];
            if unit_interval(&mut rng) < 0.1 {
                *start += 1000;
            }
            let rank = ends.find(*start);
            counts.add(&ends, rank);
            ends.note(rank, *start + 8, 0);
            *start += 8;
            went_on += i64::from(rank.is_some());
        }
        let (runs, mut ends, mut drawn) = (Runs::new(&counts.shares()), Ends::default(), 0);
        for i in 0..20_000 {
            let rank = runs.draw(&ends, &mut rng);
            ends.note(rank, i, 0);
            drawn += i64::from(rank.is_some());
        }
        assert!((went_on - 18_000).abs() < 300 && (drawn - went_on).abs() < 600, "{went_on} {drawn}");
    }
}
