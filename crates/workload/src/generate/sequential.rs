//! From the start of the space to its end, and again.

use super::common::Plan;
use super::generator::Pattern;
use super::settings::settings;
use super::{Describe, Fault, Workload};
use flashwright_block::{RequestKind, RequestSource};

settings! {
    /// Settings of `sequential`.
    pub struct Sequential {}
}

impl Describe for Sequential {
    const NAME: &'static str = "sequential";
    const SUMMARY: &'static str = "each request starts where the last one ended; wraps at the end of the space";
}

impl Workload for Sequential {
    fn source(&self, plan: &Plan<'_>) -> Result<Box<dyn RequestSource + Send>, Fault> {
        let step = plan.slots_per_request() * plan.align_sectors;
        Ok(plan.run(Walk { next: 0, step, last: (plan.slots - 1) * plan.align_sectors }))
    }
}

/// Sectors throughout.
struct Walk {
    next: u64,
    step: u64,
    /// The last place where a request fits.
    last: u64,
}

impl Pattern for Walk {
    #[inline]
    fn next(&mut self, _: RequestKind) -> u64 {
        let here = self.next;
        self.next = if here + self.step > self.last { 0 } else { here + self.step };
        here
    }
}
