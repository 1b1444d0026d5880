//! Every place equally likely.

use super::common::Plan;
use super::generator::Pattern;
use super::settings::settings;
use super::{Describe, Fault, Workload};
use flashwright_block::{RequestKind, RequestSource, Rng, below};

settings! {
    /// Settings of `uniform`.
    pub struct Uniform {}
}

impl Describe for Uniform {
    const NAME: &'static str = "uniform";
    const SUMMARY: &'static str = "every aligned place of the space with the same probability";
}

impl Workload for Uniform {
    fn source(&self, plan: &Plan<'_>) -> Result<Box<dyn RequestSource + Send>, Fault> {
        Ok(plan.run(Anywhere { rng: plan.addresses(), slots: plan.slots, align_sectors: plan.align_sectors }))
    }
}

struct Anywhere {
    rng: Rng,
    slots: u64,
    align_sectors: u64,
}

impl Pattern for Anywhere {
    #[inline]
    fn next(&mut self, _: RequestKind) -> u64 {
        below(&mut self.rng, self.slots) * self.align_sectors
    }
}
