//! First in, first out, whichever the queue: as if there were one.

use super::QueueArbiter;
use crate::{Arbiter, NoSettings, Request, Waiting};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// First in, first out: a request that may not go blocks all behind it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Fifo(VecDeque<Waiting>);

impl QueueArbiter for Fifo {
    const NAME: &'static str = "fifo";
    const ABOUT: &'static str = "the command that has waited longest, whichever its queue";
    type Settings = NoSettings;

    fn new(_: &NoSettings, (): ()) -> Self {
        Self::default()
    }
}

impl Arbiter for Fifo {
    #[inline(always)]
    fn push(&mut self, waiting: Waiting) {
        self.0.push_back(waiting);
    }
    #[inline(always)]
    fn pick(&mut self, may_go: impl Fn(&Request) -> bool) -> Option<Waiting> {
        if self.0.front().is_some_and(|first| may_go(&first.request)) { self.0.pop_front() } else { None }
    }
    #[inline(always)]
    fn len(&self) -> usize {
        self.0.len()
    }
}
