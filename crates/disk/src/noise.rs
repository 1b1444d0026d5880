//! Written data: bytes that no drive can compress or deduplicate.

use flashwright_block::{Rng, SECTOR_BYTES, Seed};
use rand_core::RngCore as _;

/// A seeded stream of incompressible sectors.
///
/// A buffer is filled once; after that each write only stamps a unique number into every sector, 8 B in 512, which
/// keeps all sectors distinct at a sixtieth of the cost of new bytes.
pub struct Noise {
    rng: Rng,
    stamp: u64,
}

const SECTOR: usize = SECTOR_BYTES as usize;

impl Noise {
    /// A stream of its own for each seed.
    #[must_use]
    pub fn new(seed: Seed) -> Self {
        Self { rng: seed.stream("disk data"), stamp: seed.0 }
    }

    /// Makes `buffer` ready to be written; its first `noisy` bytes hold noise of an earlier write.
    pub fn prepare(&mut self, buffer: &mut [u8], noisy: usize) {
        if noisy < buffer.len() {
            // From the start of a sector, so that no sector mixes noise with data that were read.
            self.rng.fill_bytes(&mut buffer[noisy / SECTOR * SECTOR..]);
        }
        for sector in buffer.chunks_exact_mut(SECTOR) {
            // Steps of an odd constant (2^64 over the golden ratio) pass every number once.
            self.stamp = self.stamp.wrapping_add(0x9e37_79b9_7f4a_7c15);
            sector[..8].copy_from_slice(&self.stamp.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn sectors_never_repeat_and_hold_no_runs() {
        let mut noise = Noise::new(Seed(7));
        let mut buffer = vec![0u8; 16 * SECTOR];
        let mut seen = BTreeSet::new();
        for (bytes, noisy) in [(4 * SECTOR, 0), (16 * SECTOR, 4 * SECTOR), (16 * SECTOR, 16 * SECTOR), (SECTOR, 0)] {
            noise.prepare(&mut buffer[..bytes], noisy);
            for sector in buffer[..bytes].chunks_exact(SECTOR) {
                assert!(seen.insert(sector.to_vec()), "a sector came twice");
                let distinct: BTreeSet<u8> = sector.iter().copied().collect();
                // 512 draws of 256 values leave 256 (1 - 1/e^2) = 221 on average, with a deviation of 5.
                assert!((190..=250).contains(&distinct.len()), "{} distinct bytes", distinct.len());
            }
        }
    }

    #[test]
    fn one_seed_gives_one_stream() {
        let data = |seed| {
            let mut buffer = vec![0u8; 4096];
            Noise::new(Seed(seed)).prepare(&mut buffer, 0);
            buffer
        };
        assert_eq!(data(1), data(1));
        assert_ne!(data(1), data(2));
    }
}
