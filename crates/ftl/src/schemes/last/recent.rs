//! The pages most recently written at random: a write to one of them is hot.

use super::ORDER;
use crate::Violation;
use crate::merge::{LogMap, Queues};
use flashwright_nand::{Lpn, Ppn};
use serde::{Deserialize, Serialize};

/// The pages most recently written at random, each once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Recent {
    /// From logical page to place.
    places: LogMap,
    lpns: Vec<u32>,
    /// Places, the least recent first.
    order: Queues,
    limit: u32,
}

impl Recent {
    pub fn new(limit: u32) -> Self {
        Self { places: LogMap::new(limit), lpns: Vec::new(), order: Queues::new(limit, 1), limit }
    }

    /// Records a write and returns whether the page was among them.
    #[inline]
    pub fn note(&mut self, lpn: Lpn) -> bool {
        if self.limit == 0 {
            return false;
        }
        if let Some(Ppn(place)) = self.places.get(lpn) {
            self.order.touch(ORDER, place);
            return true;
        }
        let place = match self.order.first(ORDER) {
            Some(oldest) if self.places.len() == self.limit as usize => {
                self.order.remove(ORDER, oldest);
                self.places.remove(Lpn(self.lpns[oldest as usize]));
                self.lpns[oldest as usize] = lpn.0;
                oldest
            }
            _ => {
                self.lpns.push(lpn.0);
                u32::try_from(self.lpns.len() - 1).expect("no more than the limit")
            }
        };
        self.places.insert(lpn, Ppn(place));
        self.order.push(ORDER, place);
        false
    }

    pub fn audit(&self, violations: &mut Vec<Violation>) {
        let known = |place: u32| self.places.get(Lpn(self.lpns[place as usize])) == Some(Ppn(place));
        if self.lpns.len() > self.limit as usize
            || self.places.len() != self.lpns.len()
            || self.order.iter(ORDER).filter(|place| known(*place)).count() != self.lpns.len()
        {
            violations.push(Violation(format!("{} recent pages of {} are not in order", self.lpns.len(), self.limit)));
        }
    }
}
