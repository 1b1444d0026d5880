//! A cache on flash with two engines, as CacheLib's: small objects in buckets that are found by their hash, which are written anywhere
//! in a small part, and large objects in regions, which are written in order as a ring over the rest.
//!
//! Small objects share a bucket of 4 KiB, which is written whole for each of them; regions are written in pieces. Sizes by default are
//! those of CacheLib's own benchmark configurations for flexible data placement (`navyBigHashBucketSize`, `deviceMaxWriteSize`).

use super::common::{Common, Defaults, Plan};
use super::settings::settings;
use super::value::{Share, Streams};
use super::writers::{Order, Writer, source};
use super::{Describe, Fault, Workload};
use flashwright_block::{Bytes, RequestSource};

settings! {
    /// Settings of `cachelib`.
    pub struct Cachelib {
        "small-space" small_space: Share = "0.04", "Share of the space for small objects, above 0 and below 1 (SOC).";
        "small-writes" small_writes: Share = "0.5", "Share of the bytes written that are buckets of small objects, above 0 and below 1.";
        "bucket" bucket: Bytes = "4KiB", "A bucket of small objects, which is written at once.";
        "streams" streams: Streams = "none", "Streams that requests name: none, or the class (1 small objects, 2 large ones).";
    }
}

impl Describe for Cachelib {
    const NAME: &'static str = "cachelib";
    const SUMMARY: &'static str =
        "a flash cache: small objects at random over a small part, large ones as a ring over the rest";
}

/// A piece of a region.
const PIECE: Bytes = Bytes(256 << 10);

impl Workload for Cachelib {
    fn defaults(&self) -> Defaults {
        Defaults { size: Some(PIECE), ..Defaults::default() }
    }

    fn check(&self, _: &Common, faults: &mut Vec<Fault>) {
        for (key, share) in [("small-space", self.small_space.0), ("small-writes", self.small_writes.0)] {
            if share <= 0.0 || share >= 1.0 {
                faults.push(Fault::new(key, share, "a share above 0 and below 1"));
            }
        }
    }

    fn source(&self, plan: &Plan<'_>) -> Result<Box<dyn RequestSource + Send>, Fault> {
        let piece = Bytes(u64::from(plan.size_sectors) * flashwright_block::SECTOR_BYTES);
        let small = Writer {
            part: (0.0, self.small_space.0),
            size: self.bucket,
            object: self.bucket,
            order: Order::Uniform,
            bytes: self.small_writes.0,
        };
        let large = Writer {
            part: (self.small_space.0, 1.0),
            size: piece,
            object: piece,
            order: Order::Ring,
            bytes: 1.0 - self.small_writes.0,
        };
        source(plan, vec![small, large], self.streams, |at| at as u16 + 1)
    }
}
