//! Queues take turns (NVM Express Base 2.1, section 3.4.4.1): each with up to a burst of commands.
//!
//! A queue that has had its turn, or that was empty, comes after all that wait by then.

use super::QueueArbiter;
use crate::{Arbiter, Request, Waiting};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Settings of `controller.queues.arbiter = "round-robin"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RoundRobinSettings {
    /// Commands of a queue that are taken in a row (the arbitration burst of NVMe).
    #[schemars(range(min = 1, max = 64))]
    pub burst: u32,
}

impl Default for RoundRobinSettings {
    fn default() -> Self {
        Self { burst: 1 }
    }
}

/// `controller.queues.arbiter = "round-robin"`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RoundRobin {
    burst: u32,
    /// By number.
    queues: Vec<VecDeque<Waiting>>,
    /// Queues with commands; the first has the turn.
    turns: VecDeque<u16>,
    /// Commands that the first of `turns` has had of its burst.
    taken: u32,
    waiting: usize,
}

impl RoundRobin {
    /// Turns of `burst` commands, at least one.
    pub(super) fn of_burst(burst: u32) -> Self {
        Self { burst: burst.max(1), ..Self::default() }
    }
}

impl QueueArbiter for RoundRobin {
    const NAME: &'static str = "round-robin";
    const ABOUT: &'static str = "queues take turns, each with a burst of commands (NVMe 2.1, section 3.4.4.1)";
    type Settings = RoundRobinSettings;

    fn new(settings: &RoundRobinSettings, (): ()) -> Self {
        Self::of_burst(settings.burst)
    }
}

impl Arbiter for RoundRobin {
    fn push(&mut self, waiting: Waiting) {
        let number = waiting.request.queue;
        if self.queues.len() <= usize::from(number) {
            self.queues.resize_with(usize::from(number) + 1, VecDeque::new);
        }
        let queue = &mut self.queues[usize::from(number)];
        if queue.is_empty() {
            self.turns.push_back(number);
        }
        queue.push_back(waiting);
        self.waiting += 1;
    }

    fn pick(&mut self, may_go: impl Fn(&Request) -> bool) -> Option<Waiting> {
        let head = |number: u16| self.queues[usize::from(number)].front().is_some_and(|head| may_go(&head.request));
        let at = self.turns.iter().position(|number| head(*number))?;
        if at > 0 {
            // Whose first command may not go has lost its turn.
            self.turns.rotate_left(at);
            self.taken = 0;
        }
        let queue = &mut self.queues[usize::from(self.turns[0])];
        let picked = queue.pop_front();
        self.waiting -= 1;
        self.taken += 1;
        if queue.is_empty() {
            self.turns.pop_front();
            self.taken = 0;
        } else if self.taken == self.burst {
            self.turns.rotate_left(1);
            self.taken = 0;
        }
        picked
    }

    #[inline(always)]
    fn len(&self) -> usize {
        self.waiting
    }
}
