//! Two classes of places: few that get most requests, and the rest; uniform within each.

use super::common::{Common, Plan};
use super::generator::Pattern;
use super::permutation::Permutation;
use super::ranks::{ByRank, Law, Units};
use super::settings::settings;
use super::value::{Placement, Share, Streams};
use super::{Describe, Fault, Workload};
use flashwright_block::{Popularity, RequestKind, RequestSource, Rng, below, chance};
use std::sync::Arc;

settings! {
    /// Settings of `hot-cold`.
    pub struct HotCold {
        "hot-space" hot_space: Share = "0.2", "Share of the space that is hot, above 0 and below 1.";
        "hot-access" hot_access: Share = "0.8", "Share of requests that go to the hot part.";
        "placement" placement: Placement = "identity", "Hot part at the front (identity) or spread by a seeded permutation (scattered).";
        "streams" streams: Streams = "none", "Streams that requests name: none, or the class (1 cold, 2 hot).";
    }
}

impl Describe for HotCold {
    const NAME: &'static str = "hot-cold";
    const SUMMARY: &'static str = "a small part of the space gets most requests; uniform within it and outside";
}

impl Workload for HotCold {
    fn check(&self, _: &Common, faults: &mut Vec<Fault>) {
        if self.hot_space.0 <= 0.0 || self.hot_space.0 >= 1.0 {
            faults.push(Fault::new("hot-space", self.hot_space.0, "a share above 0 and below 1"));
        }
    }

    fn source(&self, plan: &Plan<'_>) -> Result<Box<dyn RequestSource + Send>, Fault> {
        if plan.slots < 2 {
            let found = format!("requests of {} sectors on {} in use", plan.size_sectors, plan.space_sectors);
            return Err(Fault::new("size", found, "room for two requests or more"));
        }
        let hot = share_of(plan.slots, self.hot_space.0);
        let places = TwoParts {
            rng: plan.addresses(),
            law: HotFirst { hot_access: self.hot_access.0, hot, slots: plan.slots },
            align_sectors: plan.align_sectors,
            named: self.streams == Streams::Class,
            stream: 0,
        };
        Ok(match self.placement {
            Placement::Identity => plan.run(places),
            Placement::Scattered => {
                let permutation = Permutation::new(plan.slots, &mut plan.layout());
                plan.run(Scattered { places, permutation })
            }
        })
    }
}

/// `share` of `total` slots, rounded, with at least one slot in the part and one outside; `total` at least 2.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub(crate) fn share_of(total: u64, share: f64) -> u64 {
    ((total as f64 * share).round() as u64).clamp(1, total - 1)
}

struct TwoParts {
    rng: Rng,
    law: HotFirst,
    align_sectors: u64,
    /// Whether requests name their class, and that of the last one.
    named: bool,
    stream: u16,
}

impl TwoParts {
    #[inline]
    fn slot(&mut self) -> u64 {
        let slot = self.law.rank(&mut self.rng);
        self.stream = if self.named { 1 + u16::from(slot < self.law.hot) } else { 0 };
        slot
    }

    fn ranked(&self, order: Option<Permutation>) -> Option<Arc<dyn Popularity>> {
        let units = Units { count: self.law.slots, sectors: self.align_sectors, slots: 1 };
        Some(Arc::new(ByRank { law: self.law.clone(), scatter: order, units, align: self.align_sectors }))
    }
}

/// Two classes of slots, the hot ones first.
#[derive(Clone, Debug)]
struct HotFirst {
    hot_access: f64,
    hot: u64,
    slots: u64,
}

impl Law for HotFirst {
    #[inline]
    fn rank(&self, rng: &mut Rng) -> u64 {
        let hot = chance(rng, self.hot_access);
        if hot { below(rng, self.hot) } else { self.hot + below(rng, self.slots - self.hot) }
    }
}

impl Pattern for TwoParts {
    #[inline]
    fn next(&mut self, _: RequestKind) -> u64 {
        self.slot() * self.align_sectors
    }
    fn popularity(&self) -> Option<Arc<dyn Popularity>> {
        self.ranked(None)
    }
    #[inline]
    fn stream(&self) -> u16 {
        self.stream
    }
}

struct Scattered {
    places: TwoParts,
    permutation: Permutation,
}

impl Pattern for Scattered {
    #[inline]
    fn next(&mut self, _: RequestKind) -> u64 {
        self.permutation.at(self.places.slot()) * self.places.align_sectors
    }
    fn popularity(&self) -> Option<Arc<dyn Popularity>> {
        self.places.ranked(Some(self.permutation.clone()))
    }
    #[inline]
    fn stream(&self) -> u16 {
        self.places.stream
    }
}
