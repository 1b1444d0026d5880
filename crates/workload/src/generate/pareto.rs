//! A self-similar law over the places of requests, as fio's `random_distribution=pareto:h` and sysbench's `pareto` have it.

use super::common::{Common, Plan};
use super::ranks::{SelfSimilar, Units};
use super::settings::settings;
use super::value::{Placement, Share, Streams};
use super::{Describe, Fault, Workload};
use flashwright_block::RequestSource;

settings! {
    /// Settings of `pareto`.
    pub struct Pareto {
        "h" h: Share = "0.2", "This share of the space gets all accesses but such a share, and so on within it; above 0 and below 1.";
        "placement" placement: Placement = "scattered", "Places in random order (scattered) or hottest first (identity).";
    }
}

impl Describe for Pareto {
    const NAME: &'static str = "pareto";
    const SUMMARY: &'static str =
        "self-similar popularity, as fio's and sysbench's pareto: a share h gets 1 - h of the accesses";
    const BARE: Option<&'static str> = Some("h");
}

impl Workload for Pareto {
    fn check(&self, _: &Common, faults: &mut Vec<Fault>) {
        if self.h.0 <= 0.0 || self.h.0 >= 1.0 {
            faults.push(Fault::new("h", self.h.0, "a share above 0 and below 1"));
        }
    }

    fn source(&self, plan: &Plan<'_>) -> Result<Box<dyn RequestSource + Send>, Fault> {
        let units = Units::places(plan);
        let law = SelfSimilar::new(units.count, self.h.0);
        Ok(units.source(plan, law, self.placement, Streams::None, 0))
    }

    fn notes(&self, plan: &Plan<'_>) -> Vec<String> {
        let share = SelfSimilar::new(plan.slots, self.h.0).share(0.2);
        vec![format!(
            "Pareto with h {}: the hottest 20 % of the places get {:.1} % of the accesses",
            self.h.0,
            share * 100.0
        )]
    }
}
