//! What reads met.

use serde::{Deserialize, Serialize};

/// Counts of reads by what they met.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorCounts {
    /// All reads.
    pub reads: u64,
    /// Reads by their number of retries: entry 3 counts those with three. Entry 0 stays 0; see [`Self::at_once`].
    pub retried: Vec<u64>,
    /// Reads that took soft decoding.
    pub soft: u64,
    /// Reads whose data are lost.
    pub uncorrectable: u64,
    /// Blocks that a read asked to be rewritten.
    pub reclaims: u64,
}

impl ErrorCounts {
    pub(super) fn new(retries_max: u8) -> Self {
        Self { retried: vec![0; usize::from(retries_max) + 1], ..Self::default() }
    }

    /// Reads that needed no retry.
    #[must_use]
    pub fn at_once(&self) -> u64 {
        self.reads - self.retried.iter().sum::<u64>()
    }

    /// Retries of all reads.
    ///
    /// ```
    /// # use flashwright_nand::ErrorCounts;
    /// let counts = ErrorCounts { reads: 10, retried: vec![0, 2, 1], ..ErrorCounts::default() };
    /// assert_eq!((counts.retries(), counts.at_once()), (4, 7));
    /// ```
    #[must_use]
    pub fn retries(&self) -> u64 {
        (0..).zip(&self.retried).map(|(retries, reads): (u64, &u64)| retries * reads).sum()
    }

    /// The counts since `earlier` ones of the same drive.
    ///
    /// # Panics
    /// If a count of `earlier` is larger.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let less = |now: u64, then: u64| now.checked_sub(then).expect("earlier counts are no larger");
        let then = earlier.retried.iter().copied().chain(std::iter::repeat(0));
        Self {
            reads: less(self.reads, earlier.reads),
            retried: self.retried.iter().zip(then).map(|(&now, then)| less(now, then)).collect(),
            soft: less(self.soft, earlier.soft),
            uncorrectable: less(self.uncorrectable, earlier.uncorrectable),
            reclaims: less(self.reclaims, earlier.reclaims),
        }
    }
}
