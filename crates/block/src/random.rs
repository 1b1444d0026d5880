//! Seeded randomness: the seed determines the whole run.
//!
//! Every part that draws numbers gets its own stream, derived from the run's seed and the part's name, so that an
//! additional draw in one part never changes the numbers of another.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The generator in use everywhere: xoshiro256++, small, fast and long enough for any run.
pub type Rng = Xoshiro256PlusPlus;

/// The seed of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Seed(pub u64);

impl Seed {
    /// The stream of the part called `name`.
    ///
    /// ```
    /// # use flashwright_block::{Seed, below};
    /// let mut a = Seed(7).stream("victim");
    /// let mut b = Seed(7).stream("victim");
    /// assert_eq!(below(&mut a, 1000), below(&mut b, 1000));
    /// ```
    #[must_use]
    pub fn stream(self, name: &str) -> Rng {
        // FNV-1a over the name, mixed with the seed; seed_from_u64 spreads it with SplitMix64.
        let hash =
            name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, byte| (h ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        Rng::seed_from_u64(hash ^ self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }
}

/// A number drawn uniformly from `0..bound` (multiply-shift; the bias is below `bound / 2^64`).
#[inline]
#[must_use]
#[allow(clippy::cast_possible_truncation)] // the high half of a 128-bit product fits 64 bits
pub fn below(rng: &mut Rng, bound: u64) -> u64 {
    ((u128::from(rng.next_u64()) * u128::from(bound)) >> 64) as u64
}

/// A number drawn uniformly from `[0, 1)`, with 53 random bits.
#[inline]
#[must_use]
#[allow(clippy::cast_precision_loss)] // 53 bits fit a double exactly
pub fn unit_interval(rng: &mut Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// True with probability `p`.
#[inline]
#[must_use]
pub fn chance(rng: &mut Rng, p: f64) -> bool {
    unit_interval(rng) < p
}

#[cfg(test)]
mod tests {
    use super::*;

    /// xoshiro256++ started from SplitMix64(1) as published by its authors (prng.di.unimi.it): if a new
    /// release of the generator crate changes the stream, every seeded result changes with it, and this fails first.
    #[test]
    fn the_stream_never_changes() {
        let mut state = 1u64;
        let mut splitmix = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        let mut s = [splitmix(), splitmix(), splitmix(), splitmix()];
        let mut rng = Rng::seed_from_u64(1);
        for _ in 0..100 {
            let expected = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
            let t = s[1] << 17;
            s[2] ^= s[0];
            s[3] ^= s[1];
            s[1] ^= s[2];
            s[0] ^= s[3];
            s[2] ^= t;
            s[3] = s[3].rotate_left(45);
            assert_eq!(rng.next_u64(), expected);
        }
    }

    #[test]
    fn draws_stay_in_range_and_streams_differ() {
        let (mut a, mut b) = (Seed(1).stream("a"), Seed(1).stream("b"));
        assert_ne!(a.next_u64(), b.next_u64());
        assert!((0..10_000).all(|_| below(&mut a, 7) < 7 && (0.0..1.0).contains(&unit_interval(&mut b))));
    }
}
