//! Division by a run-time constant, at the cost of a multiplication.

use serde::{Deserialize, Serialize};

/// Divides 32-bit numbers by a fixed divisor (Lemire, Kaser and Kurz 2019: exact for every 32-bit numerator when
/// the reciprocal keeps 64 bits).
///
/// ```
/// # use flashwright_nand::Divisor;
/// assert_eq!(Divisor::new(768).of(7_681), 10);
/// assert_eq!(Divisor::new(1).of(u32::MAX), u32::MAX);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Divisor {
    divisor: u32,
    /// ceil(2^64 / divisor), 0 standing for 2^64 when the divisor is 1.
    reciprocal: u64,
}

impl Divisor {
    /// # Panics
    /// If `divisor` is 0.
    #[must_use]
    pub fn new(divisor: u32) -> Self {
        assert!(divisor > 0, "division by zero");
        Self { divisor, reciprocal: (u64::MAX / u64::from(divisor)).wrapping_add(1) }
    }

    /// `numerator / divisor`.
    #[inline(always)]
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // the quotient is no larger than the numerator
    pub fn of(self, numerator: u32) -> u32 {
        if self.reciprocal == 0 {
            return numerator;
        }
        ((u128::from(self.reciprocal) * u128::from(numerator)) >> 64) as u32
    }

    /// `numerator % divisor`.
    #[inline(always)]
    #[must_use]
    pub fn remainder(self, numerator: u32) -> u32 {
        numerator - self.of(numerator) * self.divisor
    }

    /// The divisor itself.
    #[inline(always)]
    #[must_use]
    pub fn get(self) -> u32 {
        self.divisor
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_the_machine(numerator: u32, divisor in 1u32..) {
            let d = Divisor::new(divisor);
            prop_assert_eq!(d.of(numerator), numerator / divisor);
            prop_assert_eq!(d.remainder(numerator), numerator % divisor);
        }
        #[test]
        fn holds_at_the_edges(divisor in 1u32..70_000, multiple in 0u32..60_000) {
            let d = Divisor::new(divisor);
            for numerator in [multiple.wrapping_mul(divisor), multiple.wrapping_mul(divisor).wrapping_sub(1), u32::MAX] {
                prop_assert_eq!(d.of(numerator), numerator / divisor);
            }
        }
    }
}
