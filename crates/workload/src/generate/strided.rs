//! Equal steps over the space, each pass one request further in, until every place had its turn.
//!
//! With places 0..10 and a step of 4: 0 4 8, 1 5 9, 2 6, 3 7, then from the start.

use super::common::{Common, Plan, sectors};
use super::generator::Pattern;
use super::settings::settings;
use super::{Describe, Fault, Workload};
use flashwright_block::{Bytes, RequestKind, RequestSource};

settings! {
    /// Settings of `strided`.
    pub struct Strided {
        "step" step: Bytes = "64KiB", "Distance from the start of one request to the start of the next; a multiple of align.";
    }
}

impl Describe for Strided {
    const NAME: &'static str = "strided";
    const SUMMARY: &'static str = "equal steps over the space, each pass shifted by one request until all is covered";
}

impl Workload for Strided {
    fn check(&self, common: &Common, faults: &mut Vec<Fault>) {
        if let Some(align) = common.align.or(common.size) {
            faults.extend(step_fault(self.step, align.0));
        }
    }

    fn source(&self, plan: &Plan<'_>) -> Result<Box<dyn RequestSource + Send>, Fault> {
        if let Some(fault) = step_fault(self.step, plan.align_sectors * flashwright_block::SECTOR_BYTES) {
            return Err(fault);
        }
        Ok(plan.run(Strides {
            next: 0,
            base: 0,
            step: sectors(self.step),
            shift: plan.slots_per_request() * plan.align_sectors,
            end: (plan.slots - 1) * plan.align_sectors + 1,
        }))
    }
}

fn step_fault(step: Bytes, align_bytes: u64) -> Option<Fault> {
    let allowed = || format!("a multiple of the alignment, {}", Bytes(align_bytes));
    (!step.0.is_multiple_of(align_bytes)).then(|| Fault::new("step", step, allowed()))
}

/// Sectors throughout.
struct Strides {
    next: u64,
    /// Where this pass started.
    base: u64,
    step: u64,
    /// From the start of one pass to the start of the next.
    shift: u64,
    /// One past the last place where a request fits.
    end: u64,
}

impl Pattern for Strides {
    #[inline]
    fn next(&mut self, _: RequestKind) -> u64 {
        let here = self.next;
        self.next += self.step;
        if self.next >= self.end {
            self.base += self.shift;
            if self.base >= self.step.min(self.end) {
                self.base = 0;
            }
            self.next = self.base;
        }
        here
    }
}
