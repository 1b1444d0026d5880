//! Sizes of requests, and the powers of two that they start at multiples of.

use super::distribution::{Counts, Distribution};
use flashwright_block::{Request, SECTOR_BYTES};

/// Alignments above this are not distinguished.
const ALIGNMENT_MAX: u64 = 1 << 20;

/// Sizes and alignment of the requests of one direction.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Sizes {
    /// Bytes of a request.
    pub bytes: Distribution,
    /// The largest power of two that a request's first byte is a multiple of: 512 B to 1 MiB.
    pub alignment: Distribution,
}

#[derive(Default)]
pub(crate) struct Collector {
    bytes: Counts,
    alignment: Counts,
}

impl Collector {
    pub(crate) fn add(&mut self, request: &Request) {
        self.bytes.add(u64::from(request.sectors) * SECTOR_BYTES);
        let zeros = request.first_sector.trailing_zeros();
        self.alignment.add(SECTOR_BYTES.checked_shl(zeros.min(20)).unwrap_or(ALIGNMENT_MAX).min(ALIGNMENT_MAX));
    }

    pub(crate) fn finish(self) -> Sizes {
        Sizes { bytes: self.bytes.finish(), alignment: self.alignment.finish() }
    }
}
