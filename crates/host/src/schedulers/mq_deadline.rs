//! mq-deadline: the deadline scheduler of multi-queue kernels.
//!
//! It differs from deadline in how a batch continues: each direction remembers where it stopped, across batches of the
//! other direction, and searches again for the next request from there. Deadline forgets the position when the
//! direction changes, and misses requests that were added right behind the last one.
//!
//! Left out: priorities (requests carry none), zones, and the depth of asynchronous requests, which since Linux 6.10 is
//! the whole queue unless a user lowers it.

use super::{Choice, Grew, Merges, Scheduler, SchedulerContext};
use crate::directions::{Directions, READ};
use crate::pool::{Id, Pool};
use flashwright_block::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[host.mq-deadline]`; the defaults are the kernel's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct MqDeadlineSettings {
    /// How long a read may wait before it goes first.
    pub read_expire: Nanos,
    /// How long a write may wait before it goes first.
    pub write_expire: Nanos,
    /// Batches of reads that may go before waiting writes.
    pub writes_starved: u32,
    /// Requests per batch.
    #[schemars(range(min = 1), extend("x-expected" = "at least {min}"))]
    pub fifo_batch: u32,
    /// Whether queued requests also grow at their starts.
    pub front_merges: bool,
}

impl Default for MqDeadlineSettings {
    fn default() -> Self {
        Self {
            read_expire: Nanos(500_000_000),
            write_expire: Nanos(5_000_000_000),
            writes_starved: 2,
            fifo_batch: 16,
            front_merges: true,
        }
    }
}

/// The queued requests; see [`Directions`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MqDeadline {
    settings: MqDeadlineSettings,
    waiting: Directions,
    /// First sector of the last request sent, by direction.
    reached: [u64; 2],
    /// Direction of the batch.
    direction: usize,
    batched: u32,
    expired: u32,
}

impl MqDeadline {
    /// The request that comes next, and whether it begins a batch.
    fn choose(&mut self, now: Nanos) -> Option<Id> {
        let next = self.waiting.sorted(self.direction).at_or_after(self.reached[self.direction]);
        if next.is_some() && self.batched < self.settings.fifo_batch {
            return next;
        }
        self.direction = self.waiting.turn(self.settings.writes_starved);
        let oldest = self.waiting.oldest(self.direction)?;
        self.batched = 0;
        if self.waiting.expired(oldest, now) {
            self.expired += 1;
            return Some(oldest);
        }
        Some(self.waiting.sorted(self.direction).at_or_after(self.reached[self.direction]).unwrap_or(oldest))
    }
}

impl Scheduler for MqDeadline {
    const NAME: &'static str = "mq-deadline";
    const ABOUT: &'static str =
        "deadline that remembers the positions of reads and writes across batches (Linux 6, mq-deadline)";
    /// Multi-queue kernels plug by task, and traces do not record which requests a task submits together.
    const PLUGS: bool = false;
    type Settings = MqDeadlineSettings;

    fn merges(settings: &MqDeadlineSettings) -> Merges {
        if settings.front_merges { Merges::Both } else { Merges::Back }
    }

    fn new(settings: &MqDeadlineSettings, _: SchedulerContext) -> Self {
        Self {
            settings: settings.clone(),
            waiting: Directions::new(settings.read_expire, settings.write_expire),
            reached: [0; 2],
            direction: READ,
            batched: 0,
            expired: 0,
        }
    }

    fn add(&mut self, id: Id, pool: &mut Pool, now: Nanos) {
        self.waiting.add(id, pool, now);
    }

    fn grown(&mut self, id: Id, grew: Grew, pool: &mut Pool, _: Nanos) {
        self.waiting.grown(id, grew, pool);
    }

    fn swallowed(&mut self, id: Id, into: Id, pool: &Pool) {
        self.waiting.swallowed(id, into, pool);
    }

    fn dispatch(&mut self, now: Nanos, _: u32, pool: &mut Pool) -> Choice {
        let Some(id) = self.choose(now) else { return Choice::Nothing };
        self.waiting.take(id, pool);
        self.batched += 1;
        self.reached[self.direction] = pool.get(id).first_sector;
        Choice::Send(id)
    }

    fn figures(&self) -> Vec<(String, f64)> {
        vec![("batches_begun_by_expired_requests".to_owned(), f64::from(self.expired))]
    }
}
