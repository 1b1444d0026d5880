//! Division by a run-time constant, at the cost of a multiplication.

use serde::{Deserialize, Serialize};

/// Divides 32-bit numbers by a fixed divisor `d`: the upper half of `m * (n + 1)`, where `m` is `(2^64 - 1) / d`, rounded down.
/// That is exact for every 32-bit `n`: `m * d` is less than `2^64` by at least 1 and at most `d`, so the result is that of rounding
/// down something that is less than `(n + 1) / d`, and by at most `1 / d`.
///
/// ```
/// # use flashwright_nand::Divisor;
/// assert_eq!(Divisor::new(768).of(7_681), 10);
/// assert_eq!(Divisor::new(1).of(u32::MAX), u32::MAX);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Divisor {
    divisor: u32,
    /// floor((2^64 - 1) / divisor).
    multiplier: u64,
}

impl Divisor {
    /// # Panics
    /// If `divisor` is 0.
    #[must_use]
    pub fn new(divisor: u32) -> Self {
        assert!(divisor > 0, "division by zero");
        Self { divisor, multiplier: u64::MAX / u64::from(divisor) }
    }

    /// `numerator / divisor`.
    #[inline(always)]
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // the quotient is no larger than the numerator
    pub fn of(self, numerator: u32) -> u32 {
        ((u128::from(self.multiplier) * u128::from(u64::from(numerator) + 1)) >> 64) as u32
    }

    /// `numerator / divisor` and `numerator % divisor`.
    #[inline(always)]
    #[must_use]
    pub fn split(self, numerator: u32) -> (u32, u32) {
        let quotient = self.of(numerator);
        (quotient, numerator - quotient * self.divisor)
    }

    /// `numerator % divisor`.
    #[inline(always)]
    #[must_use]
    pub fn remainder(self, numerator: u32) -> u32 {
        self.split(numerator).1
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
        fn holds_at_the_edges(divisor in prop_oneof![1u32..70_000, u32::MAX - 9..=u32::MAX], multiple in 0u32..60_000) {
            let d = Divisor::new(divisor);
            for numerator in [multiple.wrapping_mul(divisor), multiple.wrapping_mul(divisor).wrapping_sub(1), 0, u32::MAX] {
                prop_assert_eq!(d.of(numerator), numerator / divisor);
            }
        }
    }
}
