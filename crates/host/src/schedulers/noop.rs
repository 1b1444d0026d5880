//! First in, first out.

use super::{Choice, Merges, Scheduler, SchedulerContext};
use crate::lists::{List, Lists};
use crate::pool::{Id, Pool};
use flashwright_block::{Nanos, NoSettings};
use serde::{Deserialize, Serialize};

/// Requests leave in the order in which they came; they grow at their ends only.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Noop {
    lists: Lists,
    queue: List,
}

impl Scheduler for Noop {
    const NAME: &'static str = "noop";
    const ABOUT: &'static str = "first in, first out, with back merges (Linux 2.6, noop-iosched)";
    const MERGES: Merges = Merges::Back;
    type Settings = NoSettings;

    fn new(_: &NoSettings, _: SchedulerContext) -> Self {
        Self { lists: Lists::default(), queue: List::default() }
    }

    #[inline]
    fn add(&mut self, id: Id, _: &mut Pool, _: Nanos) {
        self.lists.push(&mut self.queue, id);
    }

    fn swallowed(&mut self, id: Id, _: Id, _: &Pool) {
        self.lists.remove(&mut self.queue, id);
    }

    #[inline]
    fn dispatch(&mut self, _: Nanos, _: u32, _: &mut Pool) -> Choice {
        self.lists.pop(&mut self.queue).map_or(Choice::Nothing, Choice::Send)
    }
}
