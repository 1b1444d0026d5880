//! Equal steps over the space; each pass is shifted by one request, until every place is covered.
//!
//! With places 0..10 and a step of 4: 0 4 8, 1 5 9, 2 6, 3 7, then from the start.

use super::common::{Common, Plan, sectors};
use super::generator::Pattern;
use super::settings::settings;
use super::{Describe, Fault, Workload};
use flashwright_block::{Bytes, RequestKind, RequestSource, SECTOR_BYTES};

settings! {
    /// Settings of `strided`.
    pub struct Strided {
        "step" step: Option<Bytes> = "", "From the start of one request to that of the next, a multiple of align; default 16 times align.";
    }
}

impl Describe for Strided {
    const NAME: &'static str = "strided";
    const SUMMARY: &'static str = "equal steps over the space, each pass shifted by one request until all is covered";
}

impl Workload for Strided {
    fn check(&self, common: &Common, faults: &mut Vec<Fault>) {
        if let (Some(step), Some(align)) = (self.step, common.align.or(common.size)) {
            faults.extend(step_fault(step, align));
        }
    }

    fn source(&self, plan: &Plan<'_>) -> Result<Box<dyn RequestSource + Send>, Fault> {
        let align = Bytes(plan.align_sectors * SECTOR_BYTES);
        let step = self.step.unwrap_or(Bytes(align.0 * 16));
        if let Some(fault) = step_fault(step, align) {
            return Err(fault);
        }
        Ok(plan.run(Strides {
            next: 0,
            base: 0,
            step: sectors(step),
            shift: plan.slots_per_request() * plan.align_sectors,
            end: (plan.slots - 1) * plan.align_sectors + 1,
        }))
    }
}

fn step_fault(step: Bytes, align: Bytes) -> Option<Fault> {
    let allowed = || format!("a multiple of the alignment, {align}");
    (!step.0.is_multiple_of(align.0)).then(|| Fault::new("step", step, allowed()))
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
