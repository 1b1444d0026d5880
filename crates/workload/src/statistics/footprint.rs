//! Distinct pages, as a trace goes on.

use super::WRITE;
use crate::trace::PageHasher;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;

/// Pages of the trace and how their number grew.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Footprint {
    /// Distinct pages of 4 KiB read or written.
    pub pages: u64,
    /// Distinct pages written.
    pub pages_written: u64,
    /// The same after fewer accesses, at the powers of two and at the end.
    pub growth: Vec<Grown>,
}

/// A point of the growth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Grown {
    /// Pages read and written so far, each as often as it was.
    pub accesses: u64,
    /// Distinct ones among them.
    pub pages: u64,
    /// Distinct ones that were written.
    pub pages_written: u64,
}

#[derive(Default)]
pub(crate) struct Collector {
    /// 64 pages each: a bit for each that was touched, one for each written.
    regions: HashMap<u64, [u64; 2], BuildHasherDefault<PageHasher>>,
    now: Grown,
    growth: Vec<Grown>,
}

impl Collector {
    pub(crate) fn add(&mut self, page: u64, direction: usize) {
        let [touched, written] = self.regions.entry(page / 64).or_default();
        let bit = 1 << (page % 64);
        self.now.accesses += 1;
        self.now.pages += u64::from(*touched & bit == 0);
        *touched |= bit;
        if direction == WRITE {
            self.now.pages_written += u64::from(*written & bit == 0);
            *written |= bit;
        }
        if self.now.accesses.is_power_of_two() {
            self.growth.push(self.now);
        }
    }

    pub(crate) fn finish(mut self) -> Footprint {
        if self.growth.last().is_some_and(|last| *last != self.now) {
            self.growth.push(self.now);
        }
        Footprint { pages: self.now.pages, pages_written: self.now.pages_written, growth: self.growth }
    }
}
