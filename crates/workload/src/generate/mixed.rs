//! Sequential writes with random reads between them: the dissertation's measurement of the cost of mixing (Hu, section
//! 5.1.3).

use super::common::Plan;
use super::generator::Pattern;
use super::settings::settings;
use super::{Describe, Fault, Workload};
use flashwright_block::{RequestKind, RequestSource, Rng, below};

settings! {
    /// Settings of `mixed`.
    pub struct Mixed {}
}

impl Describe for Mixed {
    const NAME: &'static str = "mixed";
    const SUMMARY: &'static str = "sequential writes through the space, with random reads between them";
}

impl Workload for Mixed {
    fn source(&self, plan: &Plan<'_>) -> Result<Box<dyn RequestSource + Send>, Fault> {
        let step = plan.slots_per_request() * plan.align_sectors;
        let last = (plan.slots - 1) * plan.align_sectors;
        let (rng, slots, align_sectors) = (plan.addresses(), plan.slots, plan.align_sectors);
        Ok(plan.run(Between { next: 0, step, last, rng, slots, align_sectors }))
    }
}

/// Sectors, but for `slots`.
struct Between {
    next: u64,
    step: u64,
    /// The last place where a request fits.
    last: u64,
    rng: Rng,
    slots: u64,
    align_sectors: u64,
}

impl Pattern for Between {
    #[inline]
    fn next(&mut self, kind: RequestKind) -> u64 {
        if kind == RequestKind::Read {
            return below(&mut self.rng, self.slots) * self.align_sectors;
        }
        let here = self.next;
        self.next = if here + self.step > self.last { 0 } else { here + self.step };
        here
    }
}
