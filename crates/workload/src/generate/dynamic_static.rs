//! Dynamic and static pages: after the space was filled once, only the dynamic ones are written again, uniformly.
//!
//! A seeded permutation separates them without a table: the first `(1 - static) * n` images are dynamic. Reads go
//! everywhere, writes and trims to dynamic pages; a request of any kind draws one number.

use super::common::{Common, Plan};
use super::generator::Pattern;
use super::hot_cold::share_of;
use super::permutation::Permutation;
use super::settings::settings;
use super::value::{Share, Streams};
use super::{Describe, Fault, Workload};
use flashwright_block::{RequestKind, RequestSource, Rng, below};

settings! {
    /// Settings of `dynamic-static`.
    pub struct DynamicStatic {
        "static" static_share: Share = "0.7", "Share of the space that is never written, below 1.";
        "streams" streams: Streams = "none", "Streams that requests name: none, or the class (always 2, since only hot pages are written).";
    }
}

impl Describe for DynamicStatic {
    const NAME: &'static str = "dynamic-static";
    const SUMMARY: &'static str =
        "a random part of the space is written uniformly, the rest never; reads go everywhere";
}

impl Workload for DynamicStatic {
    fn check(&self, _: &Common, faults: &mut Vec<Fault>) {
        if self.static_share.0 >= 1.0 {
            faults.push(Fault::new("static", self.static_share.0, "a share from 0 and below 1"));
        }
    }

    fn source(&self, plan: &Plan<'_>) -> Result<Box<dyn RequestSource + Send>, Fault> {
        let dynamic = match plan.slots {
            slots if slots < 2 || self.static_share.0 <= 0.0 => slots,
            slots => share_of(slots, 1.0 - self.static_share.0),
        };
        Ok(plan.run(Dynamic {
            rng: plan.addresses(),
            permutation: Permutation::new(plan.slots, &mut plan.layout()),
            dynamic,
            slots: plan.slots,
            align_sectors: plan.align_sectors,
            stream: if self.streams == Streams::Class { 2 } else { 0 },
        }))
    }
}

struct Dynamic {
    rng: Rng,
    permutation: Permutation,
    dynamic: u64,
    slots: u64,
    align_sectors: u64,
    stream: u16,
}

impl Pattern for Dynamic {
    #[inline]
    fn next(&mut self, kind: RequestKind) -> u64 {
        let bound = if kind == RequestKind::Read { self.slots } else { self.dynamic };
        self.permutation.at(below(&mut self.rng, bound)) * self.align_sectors
    }
    #[inline]
    fn stream(&self) -> u16 {
        self.stream
    }
}
