//! Between the host's queues and the controller: commands are fetched after a doorbell, completions are seen after an interrupt.
//!
//! ```text
//!  host ── doorbell ──► the drive's places, or its arbiter
//!   ▲
//!   └── interrupt ◄── completions of a queue: so many at once, or what there is after a time
//! ```
//!
//! Source: NVM Express Base 2.1, sections 3.3 (doorbells) and 5.2.26.1.5 (interrupt coalescing).

use super::{Controller, NEVER};
use flashwright_block::{Arbiter, BlockDevice, Completion, Nanos, Request, Tag, Waiting};
use flashwright_config::QueuesConfig;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Commands that the drive has not fetched.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Doorbells {
    /// With the time when the drive has each.
    rung: VecDeque<(u64, Waiting)>,
}

impl Doorbells {
    pub fn len(&self) -> usize {
        self.rung.len()
    }

    /// When the drive has the next one.
    fn next(&self) -> u64 {
        self.rung.front().map_or(NEVER, |(at, _)| *at)
    }

    /// All of them, which nobody fetches any more.
    pub fn drain(&mut self) -> impl Iterator<Item = Waiting> {
        std::mem::take(&mut self.rung).into_iter().map(|(_, waiting)| waiting)
    }
}

/// Completions of a queue that wait for an interrupt together.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Batch {
    /// When it is sent though there are few.
    due: u64,
    /// With the noise of each.
    tags: Vec<(u64, u64)>,
}

/// Completions that wait for interrupts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Interrupts {
    takes: u64,
    threshold: usize,
    /// 0 if none waits.
    time: u64,
    /// By queue.
    batches: Vec<Batch>,
}

impl Interrupts {
    pub fn new(config: &QueuesConfig) -> Self {
        let threshold = config.aggregation_threshold.max(1) as usize;
        let time = if threshold > 1 { config.aggregation_time.0 } else { 0 };
        Self { takes: config.interrupt.0, threshold, time, batches: Vec::new() }
    }

    /// When the host sees a completion that the drive has at `now`, and that noise delays. Among `ready`, those that waited for
    /// this one are seen at once.
    #[inline(always)]
    pub fn seen(&mut self, tag: Tag, queue: u16, now: u64, noise: u64, ready: &mut VecDeque<Completion>) -> u64 {
        let sent = if self.time == 0 { now } else { self.gather(tag, queue, now, noise, ready) };
        sent + self.takes + noise
    }

    /// When the interrupt for a completion is sent.
    #[cold]
    fn gather(&mut self, tag: Tag, queue: u16, now: u64, noise: u64, ready: &mut VecDeque<Completion>) -> u64 {
        let at = usize::from(queue);
        if self.batches.len() <= at {
            self.batches.resize_with(at + 1, Batch::default);
        }
        let batch = &mut self.batches[at];
        if batch.due <= now {
            batch.tags.clear();
        }
        if batch.tags.is_empty() {
            batch.due = now + self.time;
        }
        batch.tags.push((tag.0, noise));
        if batch.tags.len() < self.threshold {
            return batch.due;
        }
        batch.tags.pop();
        for (tag, noise) in batch.tags.drain(..) {
            let at = ready.iter().position(|waiting| waiting.tag == Tag(tag)).expect("the host has not seen it");
            let mut waiting = ready.remove(at).expect("it is there");
            waiting.end = Nanos(now + self.takes + noise);
            put(ready, waiting);
        }
        now
    }

    /// The drive lost its power: nothing waits.
    pub fn forget(&mut self) {
        self.batches.clear();
    }
}

/// Puts a completion behind those that the host sees no later.
#[inline(always)]
pub(super) fn put(ready: &mut VecDeque<Completion>, completion: Completion) {
    let later = ready.iter().rev().take_while(|other| other.end > completion.end).count();
    if later == 0 {
        return ready.push_back(completion); // without a search for the shorter way
    }
    ready.insert(ready.len() - later, completion);
}

impl<D: BlockDevice, A: Arbiter> Controller<D, A> {
    /// The host rings for a command.
    #[cold]
    pub(super) fn ring(&mut self, id: u64, request: Request) {
        self.doorbells.rung.push_back((self.now + self.config.queues.doorbell.0, Waiting { id, request }));
        self.fetched_at = self.doorbells.next();
    }

    /// The drive has fetched a command.
    #[cold]
    pub(super) fn fetch(&mut self) {
        let (_, Waiting { id, request }) = self.doorbells.rung.pop_front().expect("a doorbell was rung");
        self.fetched_at = self.doorbells.next();
        if self.queue.goes_at_once(&request) {
            self.take(id, request);
        } else {
            self.queue.push(id, request);
        }
    }
}
