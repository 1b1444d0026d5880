//! The first synthetic workload of the DFTL paper: mostly random writes, used to sweep the arrival rate.
//!
//! The paper (Gupta, Kim and Urgaonkar, ASPLOS 2009, section 5) gives no numbers. Our interpretation: 4 KiB, 80 %
//! writes, 5 % of requests sequential, the others uniform. Only the shape of curves matters.

use super::common::{Common, Defaults, Plan};
use super::generator::Pattern;
use super::runs::Runs;
use super::settings::settings;
use super::value::{Count, Share};
use super::{Describe, Fault, Workload};
use flashwright_block::{Bytes, RequestKind, RequestSource, Rng, below};

settings! {
    /// Settings of `dftl-a`.
    pub struct DftlA {
        "sequential" sequential: Share = "0.05", "Share of requests that start where the last one ended.";
        "run" run: Count = "8", "Mean requests in a sequential run, 2 or more.";
    }
}

impl Describe for DftlA {
    const NAME: &'static str = "dftl-a";
    const SUMMARY: &'static str =
        "the DFTL paper's synthetic A: mostly random 4 KiB writes (80 % writes, 5 % sequential)";
}

impl Workload for DftlA {
    fn defaults(&self) -> Defaults {
        paper_defaults()
    }
    fn check(&self, _: &Common, faults: &mut Vec<Fault>) {
        check_runs(self.sequential, self.run, faults);
    }
    fn source(&self, plan: &Plan<'_>) -> Result<Box<dyn RequestSource + Send>, Fault> {
        run_source(self.sequential, self.run, plan)
    }
}

/// 4 KiB and 80 % writes.
pub(crate) fn paper_defaults() -> Defaults {
    Defaults { write: 0.8, size: Some(Bytes(4096)), open: false }
}

/// Shares that runs of this length cannot reach.
pub(crate) fn check_runs(sequential: Share, run: Count, faults: &mut Vec<Fault>) {
    if run.0 < 2 {
        faults.push(Fault::new("run", run.0, "2 requests or more"));
    } else if Runs::new(sequential.0, f64::from(run.0)).is_none() {
        let most = 1.0 - 1.0 / f64::from(run.0);
        faults.push(Fault::new("sequential", sequential.0, format!("at most {most:.4} with run={}", run.0)));
    }
}

/// Random places with sequential runs between them.
pub(crate) fn run_source(
    sequential: Share,
    run: Count,
    plan: &Plan<'_>,
) -> Result<Box<dyn RequestSource + Send>, Fault> {
    let runs = Runs::new(sequential.0, f64::from(run.0))
        .ok_or_else(|| Fault::new("sequential", sequential.0, "a smaller share or longer runs"))?;
    Ok(plan.run(RunsAndJumps {
        rng: plan.addresses(),
        runs,
        slot: 0,
        step: plan.slots_per_request(),
        slots: plan.slots,
        align_sectors: plan.align_sectors,
    }))
}

struct RunsAndJumps {
    rng: Rng,
    runs: Runs,
    /// Where the last request started.
    slot: u64,
    step: u64,
    slots: u64,
    align_sectors: u64,
}

impl Pattern for RunsAndJumps {
    #[inline]
    fn next(&mut self, _: RequestKind) -> u64 {
        let follows = self.runs.continues(&mut self.rng) && self.slot + self.step < self.slots;
        self.slot = if follows { self.slot + self.step } else { below(&mut self.rng, self.slots) };
        self.slot * self.align_sectors
    }
}
