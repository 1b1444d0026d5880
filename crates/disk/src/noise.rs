//! Written data: bytes that no drive can compress or deduplicate, and others where that is asked.

use flashwright_block::{Contents, Rng, SECTOR_BYTES, Seed};
use rand_core::RngCore as _;

/// A seeded stream of incompressible sectors, or of sectors that shrink or repeat.
///
/// A buffer is filled once; after that each write only stamps a unique number into every sector, 8 B in 512, which
/// keeps all sectors distinct at a sixtieth of the cost of new bytes.
pub struct Noise {
    rng: Rng,
    seed: Seed,
    stamp: u64,
    contents: Contents,
    /// What repeats, once it was asked for.
    repeated: Vec<u8>,
}

/// What a buffer holds of an earlier write: so many bytes, of that kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prepared {
    contents: Contents,
    bytes: usize,
}

const SECTOR: usize = SECTOR_BYTES as usize;
const STAMP: usize = size_of::<u64>();

impl Noise {
    /// A stream of its own for each seed.
    #[must_use]
    pub fn new(seed: Seed) -> Self {
        let (rng, contents) = (seed.stream("disk data"), Contents::Noise);
        Self { rng, seed, stamp: seed.0, contents, repeated: Vec::new() }
    }

    /// What later buffers are made of.
    pub fn carries(&mut self, contents: Contents) {
        self.contents = contents;
        if contents == Contents::Repeated && self.repeated.is_empty() {
            self.repeated = vec![0; usize::try_from(Contents::REPEATED_BYTES).expect("a MiB")];
            self.seed.stream("repeated disk data").fill_bytes(&mut self.repeated);
        }
    }

    /// Makes `buffer` ready to be written at a byte of the device; what it holds of an earlier write is known. Returns what
    /// it holds then.
    pub fn prepare(&mut self, buffer: &mut [u8], offset: u64, before: Prepared) -> Prepared {
        let contents = self.contents;
        let kept = if before.contents == contents { before.bytes } else { 0 };
        if contents == Contents::Repeated {
            self.repeat(buffer, offset);
            return Prepared { contents, bytes: 0 };
        }
        let noise = if let Contents::Shrinking { noise } = contents { usize::from(noise).min(SECTOR) } else { SECTOR };
        if kept < buffer.len() {
            // From the start of a sector, so that no sector mixes noise with data that were read.
            let fresh = &mut buffer[kept / SECTOR * SECTOR..];
            if noise == SECTOR {
                self.rng.fill_bytes(fresh);
            } else {
                for sector in fresh.chunks_mut(SECTOR) {
                    let end = noise.min(sector.len());
                    self.rng.fill_bytes(&mut sector[..end]);
                    sector[end..].fill(0);
                }
            }
        }
        let stamped = noise.min(STAMP);
        for sector in buffer.chunks_exact_mut(SECTOR) {
            // Steps of an odd constant (2^64 over the golden ratio) pass every number once.
            self.stamp = self.stamp.wrapping_add(0x9e37_79b9_7f4a_7c15);
            sector[..stamped].copy_from_slice(&self.stamp.to_le_bytes()[..stamped]);
        }
        Prepared { contents, bytes: kept.max(buffer.len()) }
    }

    fn repeat(&self, buffer: &mut [u8], offset: u64) {
        let mut at = usize::try_from(offset % Contents::REPEATED_BYTES).expect("below a MiB");
        let mut rest = buffer;
        while !rest.is_empty() {
            let length = rest.len().min(self.repeated.len() - at);
            let (part, after) = rest.split_at_mut(length);
            part.copy_from_slice(&self.repeated[at..at + length]);
            (rest, at) = (after, 0);
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
        let mut held = Prepared::default();
        for bytes in [4 * SECTOR, 16 * SECTOR, 16 * SECTOR, SECTOR] {
            held = noise.prepare(&mut buffer[..bytes], 0, held);
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
            Noise::new(Seed(seed)).prepare(&mut buffer, 0, Prepared::default());
            buffer
        };
        assert_eq!(data(1), data(1));
        assert_ne!(data(1), data(2));
    }

    #[test]
    fn data_that_shrink_are_zeros_but_for_a_share_and_do_not_repeat() {
        let mut noise = Noise::new(Seed(3));
        let mut buffer = vec![0u8; 8 * SECTOR];
        // Noise of before must not shine through.
        let mut held = noise.prepare(&mut buffer, 0, Prepared::default());
        let mut seen = BTreeSet::new();
        noise.carries(Contents::Shrinking { noise: 128 });
        for bytes in [2 * SECTOR, 8 * SECTOR, 8 * SECTOR] {
            held = noise.prepare(&mut buffer[..bytes], 0, held);
            for sector in buffer[..bytes].chunks_exact(SECTOR) {
                assert!(sector[128..].iter().all(|byte| *byte == 0));
                assert!(sector[..128].iter().filter(|byte| **byte == 0).count() < 8);
                assert!(seen.insert(sector.to_vec()), "a sector came twice");
            }
        }
        noise.carries(Contents::Shrinking { noise: 0 });
        noise.prepare(&mut buffer, 0, held);
        assert!(buffer.iter().all(|byte| *byte == 0));
    }

    #[test]
    fn what_repeats_depends_on_the_seed_alone() {
        let data = |seed| {
            let mut noise = Noise::new(Seed(seed));
            noise.carries(Contents::Repeated);
            let mut buffer = vec![0u8; 4096];
            noise.prepare(&mut buffer, 0, Prepared::default());
            buffer
        };
        assert_eq!(data(1), data(1));
        assert_ne!(data(1), data(2));
    }

    #[test]
    fn repeated_data_go_by_the_address_alone_and_do_not_shrink() {
        let mut noise = Noise::new(Seed(3));
        noise.carries(Contents::Repeated);
        let block = |noise: &mut Noise, offset| {
            let mut buffer = vec![0u8; 4096];
            noise.prepare(&mut buffer, offset, Prepared::default());
            buffer
        };
        let first = block(&mut noise, 8192);
        assert_eq!(first, block(&mut noise, 8192 + 5 * Contents::REPEATED_BYTES));
        assert_ne!(first, block(&mut noise, 4096));
        // A write over the end of what repeats.
        let mut across = vec![0u8; 8192];
        noise.prepare(&mut across, Contents::REPEATED_BYTES - 4096, Prepared::default());
        assert_eq!(across[4096..], block(&mut noise, 0));
        // All blocks within it differ.
        let blocks: BTreeSet<Vec<u8>> = (0..256).map(|at| block(&mut noise, at * 4096)).collect();
        assert_eq!(blocks.len(), 256);
        // And noise after it is noise again.
        noise.carries(Contents::Noise);
        assert_ne!(block(&mut noise, 8192), first);
    }
}
