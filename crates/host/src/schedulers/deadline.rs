//! Deadline: in order of sectors, in batches of one direction, but none later than its deadline allows.

use super::{Choice, Grew, Scheduler, SchedulerContext};
use crate::lists::{List, Lists, SortTree};
use crate::pool::{Id, Pool};
use flashwright_block::{Nanos, RequestKind};
use serde::{Deserialize, Serialize};

/// When a batch goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BatchRule {
    /// While the batch is not full (2.6.38).
    #[default]
    Sorted,
    /// Only while the next request begins where the last one ended (2.6.24).
    Contiguous,
}

/// `[host.deadline]`; the defaults are the kernel's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct DeadlineSettings {
    /// How long a read may wait before it goes first.
    pub read_expire: Nanos,
    /// How long a write may wait.
    pub write_expire: Nanos,
    /// How often reads may go before writes that wait.
    pub writes_starved: u32,
    /// Requests of a batch.
    pub fifo_batch: u32,
    /// When a batch goes on.
    pub batch_rule: BatchRule,
}

impl Default for DeadlineSettings {
    fn default() -> Self {
        Self {
            read_expire: Nanos(500_000_000),
            write_expire: Nanos(5_000_000_000),
            writes_starved: 2,
            fifo_batch: 16,
            batch_rule: BatchRule::Sorted,
        }
    }
}

const READ: usize = 0;
const WRITE: usize = 1;

/// Two sort trees and two lists by age, for reads and for writes (trims count as writes, flushes as reads that are next).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Deadline {
    settings: DeadlineSettings,
    lists: Lists,
    fifo: [List; 2],
    sorted: [SortTree; 2],
    /// When each request has to go, by number.
    expiry: Vec<Nanos>,
    /// The request after the last one sent, of the direction of the batch.
    next: Option<(usize, Id)>,
    /// Where the last request ended.
    last_end: u64,
    batched: u32,
    starved: u32,
    expired: u32,
}

fn direction(kind: RequestKind) -> usize {
    match kind {
        RequestKind::Read | RequestKind::Flush => READ,
        RequestKind::Write | RequestKind::Trim => WRITE,
    }
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
        let waiting = [!self.fifo[READ].is_empty(), !self.fifo[WRITE].is_empty()];
        let mut direction = READ;
        if waiting[WRITE] {
            if waiting[READ] && self.starved < self.settings.writes_starved {
                self.starved += 1;
            } else {
                self.starved = 0;
                direction = WRITE;
            }
        }
        let oldest = self.fifo[direction].first()?;
        self.batched = 0;
        let expired = self.expiry[oldest.0 as usize] <= now;
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

    fn faults(settings: &DeadlineSettings, _: &SchedulerContext) -> Vec<(String, String)> {
        let zero = settings.fifo_batch == 0;
        zero.then(|| ("fifo-batch".to_owned(), "found 0, expected at least 1".to_owned())).into_iter().collect()
    }

    fn new(settings: &DeadlineSettings, _: SchedulerContext) -> Self {
        Self {
            settings: settings.clone(),
            lists: Lists::default(),
            fifo: [List::default(); 2],
            sorted: [SortTree::default(), SortTree::default()],
            expiry: Vec::new(),
            next: None,
            last_end: 0,
            batched: 0,
            starved: 0,
            expired: 0,
        }
    }

    fn add(&mut self, id: Id, pool: &mut Pool, now: Nanos) {
        let queued = pool.get(id);
        let direction = direction(queued.kind);
        let patience = if direction == READ { self.settings.read_expire } else { self.settings.write_expire };
        if self.expiry.len() <= id.0 as usize {
            self.expiry.resize(id.0 as usize + 1, Nanos(0));
        }
        self.expiry[id.0 as usize] = now + patience;
        self.lists.push(&mut self.fifo[direction], id);
        self.sorted[direction].insert(queued.first_sector, id);
    }

    fn grown(&mut self, id: Id, grew: Grew, pool: &mut Pool, _: Nanos) {
        if let Grew::Front { was } = grew {
            let queued = pool.get(id);
            let direction = direction(queued.kind);
            self.sorted[direction].remove(was, id);
            self.sorted[direction].insert(queued.first_sector, id);
        }
    }

    fn swallowed(&mut self, id: Id, into: Id, pool: &Pool) {
        let queued = pool.get(id);
        let direction = direction(queued.kind);
        if self.next == Some((direction, id)) {
            self.next = self.sorted[direction].after(queued.first_sector, id).map(|after| (direction, after));
        }
        self.sorted[direction].remove(queued.first_sector, id);
        // The joined request keeps the earlier deadline and the place that goes with it.
        if self.expiry[id.0 as usize] < self.expiry[into.0 as usize] {
            self.expiry[into.0 as usize] = self.expiry[id.0 as usize];
            self.lists.remove(&mut self.fifo[direction], into);
            self.lists.replace(&mut self.fifo[direction], id, into);
        } else {
            self.lists.remove(&mut self.fifo[direction], id);
        }
    }

    fn dispatch(&mut self, now: Nanos, _: u32, pool: &mut Pool) -> Choice {
        let Some((direction, id)) = self.choose(now, pool) else { return Choice::Nothing };
        let queued = pool.get(id);
        self.batched += 1;
        self.next = self.sorted[direction].after(queued.first_sector, id).map(|after| (direction, after));
        self.last_end = queued.end_sector;
        self.lists.remove(&mut self.fifo[direction], id);
        self.sorted[direction].remove(queued.first_sector, id);
        Choice::Send(id)
    }

    fn figures(&self) -> Vec<(String, f64)> {
        vec![("batches_begun_by_expired_requests".to_owned(), f64::from(self.expired))]
    }
}
