//! Deadline: in order of sectors, in batches of one direction, but none later than its deadline allows.

use super::{Choice, Grew, Merges, Scheduler, SchedulerContext};
use crate::directions::{Directions, direction};
use crate::pool::{Id, Pool};
use flashwright_block::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When a batch continues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BatchRule {
    /// While the batch is not full (2.6.38).
    #[default]
    Sorted,
    /// Only while the next request begins where the last one ended (2.6.24).
    Contiguous,
}

/// `[host.deadline]`; the defaults are the kernel's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct DeadlineSettings {
    /// How long a read may wait before it goes first.
    pub read_expire: Nanos,
    /// How long a write may wait before it goes first.
    pub write_expire: Nanos,
    /// Batches of reads that may go before waiting writes.
    pub writes_starved: u32,
    /// Requests per batch.
    #[schemars(range(min = 1), extend("x-expected" = "at least {min}"))]
    pub fifo_batch: u32,
    /// When a batch continues.
    pub batch_rule: BatchRule,
    /// Whether queued requests also grow at their starts.
    pub front_merges: bool,
}

impl Default for DeadlineSettings {
    fn default() -> Self {
        Self {
            read_expire: Nanos(500_000_000),
            write_expire: Nanos(5_000_000_000),
            writes_starved: 2,
            fifo_batch: 16,
            batch_rule: BatchRule::Sorted,
            front_merges: true,
        }
    }
}

/// The queued requests; see [`Directions`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Deadline {
    settings: DeadlineSettings,
    waiting: Directions,
    /// The request after the last one sent, of the direction of the batch.
    next: Option<(usize, Id)>,
    /// End address of the last request.
    last_end: u64,
    batched: u32,
    expired: u32,
}

impl Deadline {
    /// The direction and the request that come next, and whether they begin a batch.
    fn choose(&mut self, now: Nanos, pool: &Pool) -> Option<(usize, Id)> {
        if let Some((direction, id)) = self.next
            && self.batched < self.settings.fifo_batch
            && (self.settings.batch_rule == BatchRule::Sorted || pool.get(id).first_sector == self.last_end)
        {
            return Some((direction, id));
        }
        let direction = self.waiting.turn(self.settings.writes_starved);
        let oldest = self.waiting.oldest(direction)?;
        self.batched = 0;
        let expired = self.waiting.expired(oldest, now);
        self.expired += u32::from(expired);
        match self.next {
            Some((same, next)) if same == direction && !expired => Some((direction, next)),
            _ => Some((direction, oldest)),
        }
    }
}

impl Scheduler for Deadline {
    const NAME: &'static str = "deadline";
    const ABOUT: &'static str =
        "in order of sectors by batches of reads or writes, the oldest first once it has waited too long (Linux 2.6)";
    type Settings = DeadlineSettings;

    fn merges(settings: &DeadlineSettings) -> Merges {
        if settings.front_merges { Merges::Both } else { Merges::Back }
    }

    fn new(settings: &DeadlineSettings, _: SchedulerContext) -> Self {
        Self {
            settings: settings.clone(),
            waiting: Directions::new(settings.read_expire, settings.write_expire),
            next: None,
            last_end: 0,
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
        let queued = pool.get(id);
        let direction = direction(queued.kind);
        if self.next == Some((direction, id)) {
            self.next = self.waiting.sorted(direction).after(queued.first_sector, id).map(|after| (direction, after));
        }
        self.waiting.swallowed(id, into, pool);
    }

    fn dispatch(&mut self, now: Nanos, _: u32, pool: &mut Pool) -> Choice {
        let Some((direction, id)) = self.choose(now, pool) else { return Choice::Nothing };
        self.next = self.waiting.take(id, pool).map(|after| (direction, after));
        self.batched += 1;
        self.last_end = pool.get(id).end_sector;
        Choice::Send(id)
    }

    fn figures(&self) -> Vec<(String, f64)> {
        vec![("batches_begun_by_expired_requests".to_owned(), f64::from(self.expired))]
    }
}
