//! The second synthetic workload of the DFTL paper: many sequential writes, used to sweep the arrival rate.
//!
//! As [`super::dftl_a`], but 80 % of requests continue the last one, in runs of 64 requests on average.

use super::common::{Common, Defaults, Plan};
use super::dftl_a::{check_runs, paper_defaults, run_source};
use super::settings::settings;
use super::value::{Count, Share};
use super::{Describe, Fault, Workload};
use flashwright_block::RequestSource;

settings! {
    /// Settings of `dftl-b`.
    pub struct DftlB {
        "sequential" sequential: Share = "0.8", "Share of requests that start where the last one ended.";
        "run" run: Count = "64", "Mean requests in a sequential run, 2 or more.";
    }
}

impl Describe for DftlB {
    const NAME: &'static str = "dftl-b";
    const SUMMARY: &'static str =
        "the DFTL paper's synthetic B: many sequential 4 KiB writes (80 % writes, runs of 64)";
}

impl Workload for DftlB {
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
