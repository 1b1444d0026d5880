//! Distinct pages, as a trace goes on.

use crate::trace::Pages;

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
    /// Touched and written ones.
    pages: Pages<2>,
    accesses: u64,
    growth: Vec<Grown>,
}

impl Collector {
    /// Takes the pages from `first` to `last`.
    pub(crate) fn add(&mut self, first: u64, last: u64, is_write: bool) {
        let mut at = first;
        while at <= last {
            // As far as the next point of the growth.
            let left = (self.accesses + 1).next_power_of_two() - self.accesses;
            let to = last.min(at + left - 1);
            self.pages.touch(at, to, is_write);
            self.accesses += to - at + 1;
            if self.accesses.is_power_of_two() {
                self.growth.push(self.now());
            }
            at = to + 1;
        }
    }

    fn now(&self) -> Grown {
        let [pages, pages_written] = self.pages.counts();
        Grown { accesses: self.accesses, pages, pages_written }
    }

    pub(crate) fn finish(mut self) -> Footprint {
        let now = self.now();
        if self.growth.last().is_some_and(|last| *last != now) {
            self.growth.push(now);
        }
        Footprint { pages: now.pages, pages_written: now.pages_written, growth: self.growth }
    }
}
