//! What schedulers of Linux 2.6 remember of a process: how long it thinks between reads, and how far it seeks.

use flashwright_block::Nanos;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Processes below this number, which are nearly all, are found in a table.
const SMALL: u32 = 1 << 16;
const NONE: u32 = u32::MAX;

/// A scheduler's state of each process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ProcessIndex {
    small: Vec<u32>,
    other: FxHashMap<u32, u32>,
}

impl ProcessIndex {
    /// The index of a process, if it has one.
    #[inline]
    pub fn get(&self, process: u32) -> usize {
        let at = if process < SMALL { self.small[process as usize] } else { self.other[&process] };
        at as usize
    }

    /// The index of a process; a new process gets `fresh`.
    #[inline]
    pub fn get_or(&mut self, process: u32, fresh: usize) -> usize {
        match self.small.get(process as usize) {
            Some(at) if *at != NONE => *at as usize,
            _ => self.find_or(process, fresh),
        }
    }

    #[inline(never)]
    fn find_or(&mut self, process: u32, fresh: usize) -> usize {
        let place = if process < SMALL {
            if self.small.len() <= process as usize {
                self.small.resize(process as usize + 1, NONE);
            }
            &mut self.small[process as usize]
        } else {
            self.other.entry(process).or_insert(NONE)
        };
        if *place == NONE {
            *place = u32::try_from(fresh).expect("fewer than 2^32 processes");
        }
        *place as usize
    }
}

/// A mean in which each earlier sample weighs 7/8 of the next, in fixed point with 1 as 256.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DecayingMean {
    samples: u64,
    total: u64,
    /// The mean; 0 without samples.
    pub mean: u64,
}

/// Where the weights of samples end: 7/8 of it and 256/8 more are the same, rounded down.
const SAMPLES_MAX: u64 = 249;

impl DecayingMean {
    /// Whether there is a sample.
    pub fn is_known(&self) -> bool {
        self.samples > 0
    }

    /// Whether there are enough samples for CFQ: three.
    pub fn is_sure(&self) -> bool {
        self.samples > 80
    }

    /// Adds a sample.
    #[inline]
    pub fn add(&mut self, sample: u64) {
        self.samples = (7 * self.samples + 256) / 8;
        self.total = (7 * self.total + 256 * sample) / 8;
        let rounded = self.total + self.samples / 2;
        // After some samples their number stays, and a division by a constant is a multiplication.
        self.mean = if self.samples == SAMPLES_MAX { rounded / SAMPLES_MAX } else { rounded / self.samples };
    }
}

/// Think times and seeks of one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Habits {
    /// Time from the end of a read to the next, in nanoseconds.
    pub think: DecayingMean,
    /// Distance from the end of a read to the start of the next, in sectors.
    pub seek: DecayingMean,
    /// The end address of the last read, if there was one.
    pub last_end: Option<u64>,
    /// The completion time of the last read, if there was one.
    pub last_done: Option<Nanos>,
}

impl Habits {
    /// The distance of a read from the one before.
    pub fn distance(&self, first_sector: u64) -> Option<u64> {
        self.last_end.map(|end| end.abs_diff(first_sector))
    }

    /// Records a distance. A distance much longer than the mean is capped, more strictly once there are a few samples.
    pub fn sought(&mut self, distance: u64) {
        let slack = if self.seek.samples <= 60 { 2 << 20 } else { 2 << 16 };
        self.seek.add(distance.min(self.seek.mean * 4 + slack));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_keep_their_places() {
        let mut index = ProcessIndex::default();
        let places = [7, SMALL + 7, 7, 0, SMALL + 7].map(|process| index.get_or(process, process as usize * 10));
        assert_eq!(places, [70, (SMALL as usize + 7) * 10, 70, 0, (SMALL as usize + 7) * 10]);
        assert_eq!((index.get(7), index.get(0)), (70, 0));
    }

    #[test]
    fn means_decay_by_an_eighth() {
        let mut mean = DecayingMean::default();
        mean.add(800);
        // 32 of 256 samples, 25,600 in total.
        assert_eq!((mean.mean, mean.is_known(), mean.is_sure()), (800, true, false));
        mean.add(0);
        // 60 samples, 22,400 in total: 373.3, with half a sample count added before the division 373.8.
        assert_eq!(mean.mean, 373);
        mean.add(0);
        // 84 samples, 19,600 in total: 233.3.
        assert_eq!((mean.mean, mean.is_sure()), (233, true));
    }

    #[test]
    fn a_stray_seek_counts_as_less() {
        let mut habits = Habits { last_end: Some(100), ..Habits::default() };
        assert_eq!((habits.distance(40), habits.distance(160)), (Some(60), Some(60)));
        habits.sought(u64::MAX / 1024);
        assert_eq!(habits.seek.mean, 2 << 20);
    }
}
