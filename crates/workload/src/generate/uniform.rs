//! Every place equally likely: each time anew, or once a pass in a new random order.
//!
//! fio's random writes are of the second kind unless `norandommap` is set: it keeps a map of what it has written, and every block of a
//! file comes once before any comes again. A drive then has slightly less to clean than under draws that are independent.

use super::common::Plan;
use super::generator::Pattern;
use super::permutation::Permutation;
use super::settings::settings;
use super::value::choice;
use super::{Describe, Fault, Workload};
use flashwright_block::{Popularity, RequestKind, RequestSource, Rng, below};
use std::sync::Arc;

choice! {
    /// Whether places come again before all others have come.
    pub enum Places {
        /// They may: each is drawn by itself.
        Drawn = "drawn",
        /// They don't: a pass is a random order of all.
        Passes = "passes",
    }
}

settings! {
    /// Settings of `uniform`.
    pub struct Uniform {
        "places" places: Places = "drawn", "Each place drawn by itself (drawn), or all in a new random order each pass, as fio without norandommap (passes).";
    }
}

impl Describe for Uniform {
    const NAME: &'static str = "uniform";
    const SUMMARY: &'static str = "every aligned place of the space with the same probability";
}

impl Workload for Uniform {
    fn source(&self, plan: &Plan<'_>) -> Result<Box<dyn RequestSource + Send>, Fault> {
        let (mut rng, slots, align_sectors) = (plan.addresses(), plan.slots, plan.align_sectors);
        Ok(match self.places {
            Places::Drawn => plan.run(Anywhere { rng, slots, align_sectors }),
            Places::Passes => {
                let order = Permutation::new(slots, &mut rng);
                plan.run(Passes { rng, order, slots, align_sectors, at: 0 })
            }
        })
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
    fn popularity(&self) -> Option<Arc<dyn Popularity>> {
        Some(Arc::new(EquallyPopular { places: self.slots, sectors: self.align_sectors }))
    }
}

/// Places that are written equally often.
#[derive(Debug)]
struct EquallyPopular {
    places: u64,
    sectors: u64,
}

impl Popularity for EquallyPopular {
    fn places(&self) -> u64 {
        self.places
    }
    fn sectors(&self) -> u64 {
        self.sectors
    }
    fn draw(&self, rng: &mut Rng) -> u64 {
        below(rng, self.places)
    }
    fn place(&self, rank: u64) -> u64 {
        rank
    }
}

struct Passes {
    rng: Rng,
    /// The order of this pass, and how much of it is over.
    order: Permutation,
    at: u64,
    slots: u64,
    align_sectors: u64,
}

impl Pattern for Passes {
    #[inline]
    fn next(&mut self, _: RequestKind) -> u64 {
        if self.at == self.slots {
            (self.order, self.at) = (Permutation::new(self.slots, &mut self.rng), 0);
        }
        self.at += 1;
        self.order.at(self.at - 1) * self.align_sectors
    }
}
