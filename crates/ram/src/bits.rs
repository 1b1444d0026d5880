//! A set of numbers, one bit each.

use serde::{Deserialize, Serialize};

/// A set of numbers below a bound that is fixed when it is made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    /// The empty set of numbers below `bound`.
    pub fn new(bound: usize) -> Self {
        Self(vec![0; bound.div_ceil(64)])
    }
    /// Whether it can hold all numbers below this one.
    pub fn reaches(&self, bound: usize) -> bool {
        self.0.len() >= bound.div_ceil(64)
    }
    #[inline(always)]
    pub fn has(&self, number: u32) -> bool {
        self.0[number as usize / 64] >> (number % 64) & 1 == 1
    }
    /// Puts a number in or takes it out.
    #[inline(always)]
    pub fn put(&mut self, number: u32, inside: bool) {
        let (word, at) = (&mut self.0[number as usize / 64], number % 64);
        *word = *word & !(1 << at) | u64::from(inside) << at;
    }
    /// The largest number in it.
    #[inline(always)]
    pub fn last(&self) -> Option<u32> {
        let at = self.0.iter().rposition(|word| *word != 0)?;
        u32::try_from(at * 64).ok().map(|first| first + 63 - self.0[at].leading_zeros())
    }
}
