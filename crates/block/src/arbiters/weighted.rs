//! Weighted round robin with an urgent class (NVM Express Base 2.1, section 3.4.4.2).
//!
//! ```text
//!   urgent queues, in turn ──────────────────────────────► before all others
//!   high, medium and low queues, each class in turn ─────► in rounds: so many commands of each class as its weight
//! ```
//!
//! In a round the class of the highest priority that has commands and credits left goes first; the round ends when no class has
//! both. Queues of a class take turns of a burst each.

use super::{QueueArbiter, RoundRobin};
use crate::{Arbiter, Request, Waiting};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of `controller.queues.arbiter = "weighted"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct WeightedSettings {
    /// Commands of a queue that are taken in a row (the arbitration burst of NVMe).
    #[schemars(range(min = 1, max = 64))]
    pub burst: u32,
    /// Commands of queues of class high in a round.
    #[schemars(range(min = 1, max = 256))]
    pub high: u32,
    /// Commands of queues of class medium in a round.
    #[schemars(range(min = 1, max = 256))]
    pub medium: u32,
    /// Commands of queues of class low in a round.
    #[schemars(range(min = 1, max = 256))]
    pub low: u32,
}

impl Default for WeightedSettings {
    fn default() -> Self {
        Self { burst: 1, high: 4, medium: 2, low: 1 }
    }
}

/// `controller.queues.arbiter = "weighted"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Weighted {
    /// By [`crate::Priority`]: urgent, high, medium, low.
    classes: Box<[RoundRobin; 4]>,
    /// Of the classes after the urgent one.
    weights: [u32; 3],
    /// What is left of the weights in this round.
    credits: [u32; 3],
}

impl QueueArbiter for Weighted {
    const NAME: &'static str = "weighted";
    const ABOUT: &'static str =
        "weighted round robin of three classes, after an urgent one (NVMe 2.1, section 3.4.4.2)";
    type Settings = WeightedSettings;

    fn new(settings: &WeightedSettings, (): ()) -> Self {
        let weights = [settings.high, settings.medium, settings.low].map(|weight| weight.max(1));
        let classes = Box::new(std::array::from_fn(|_| RoundRobin::of_burst(settings.burst)));
        Self { classes, weights, credits: weights }
    }
}

impl Weighted {
    fn pick_in_round(&mut self, may_go: &impl Fn(&Request) -> bool) -> Option<Waiting> {
        for (class, credits) in self.classes[1..].iter_mut().zip(&mut self.credits) {
            if *credits > 0
                && let Some(picked) = class.pick(may_go)
            {
                *credits -= 1;
                return Some(picked);
            }
        }
        None
    }
}

impl Arbiter for Weighted {
    fn push(&mut self, waiting: Waiting) {
        self.classes[waiting.request.priority as usize].push(waiting);
    }

    fn pick(&mut self, may_go: impl Fn(&Request) -> bool) -> Option<Waiting> {
        if let Some(urgent) = self.classes[0].pick(&may_go) {
            return Some(urgent);
        }
        self.pick_in_round(&may_go).or_else(|| {
            // The next round, unless nothing may go: then this one is not over.
            let left = std::mem::replace(&mut self.credits, self.weights);
            let picked = self.pick_in_round(&may_go);
            if picked.is_none() {
                self.credits = left;
            }
            picked
        })
    }

    fn len(&self) -> usize {
        self.classes.iter().map(Arbiter::len).sum()
    }
}
