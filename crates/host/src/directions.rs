//! The queues of deadline, mq-deadline and anticipatory: reads and writes apart, each in order of sectors and of age.

use crate::lists::{ById, List, Lists, SortTree};
use crate::pool::{Id, Pool};
use crate::schedulers::Grew;
use flashwright_block::{Nanos, RequestClass, RequestKind};
use serde::{Deserialize, Serialize};

/// Index of reads.
pub(crate) const READ: usize = 0;
/// Index of writes.
pub(crate) const WRITE: usize = 1;

/// Trims count as writes, flushes and the management of zones as reads that go next.
pub(crate) fn direction(kind: RequestKind) -> usize {
    match kind.class() {
        RequestClass::Read | RequestClass::Barrier | RequestClass::Manage => READ,
        RequestClass::Write | RequestClass::Discard => WRITE,
    }
}

/// Two sort trees and two lists by age.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Directions {
    lists: Lists,
    fifo: [List; 2],
    sorted: [SortTree; 2],
    /// The deadline of each request, by number.
    expiry: ById<Nanos>,
    /// How long a request may wait.
    patience: [Nanos; 2],
    /// How many batches of reads went first while writes waited.
    starved: u32,
}

impl Directions {
    pub fn new(read_expire: Nanos, write_expire: Nanos) -> Self {
        Self {
            lists: Lists::default(),
            fifo: [List::default(); 2],
            sorted: [SortTree::default(), SortTree::default()],
            expiry: ById::default(),
            patience: [read_expire, write_expire],
            starved: 0,
        }
    }

    /// The requests of a direction in order of sectors.
    pub fn sorted(&self, direction: usize) -> &SortTree {
        &self.sorted[direction]
    }

    /// The request of a direction that has waited longest.
    pub fn oldest(&self, direction: usize) -> Option<Id> {
        self.fifo[direction].first()
    }

    /// Whether a request has reached its deadline.
    pub fn expired(&self, id: Id, now: Nanos) -> bool {
        self.expiry.get(id) <= now
    }

    /// The direction of the next batch: reads, until they have gone first `writes_starved` times while writes waited.
    pub fn turn(&mut self, writes_starved: u32) -> usize {
        if self.fifo[WRITE].is_empty() {
            return READ;
        }
        if !self.fifo[READ].is_empty() && self.starved < writes_starved {
            self.starved += 1;
            return READ;
        }
        self.starved = 0;
        WRITE
    }

    /// A request joins.
    pub fn add(&mut self, id: Id, pool: &Pool, now: Nanos) {
        let queued = pool.get(id);
        let direction = direction(queued.kind);
        self.expiry.set(id, now + self.patience[direction]);
        self.lists.push(&mut self.fifo[direction], id);
        self.sorted[direction].insert(queued.first_sector, id);
    }

    /// A request has grown; one that grew at its front moves in the order of sectors.
    pub fn grown(&mut self, id: Id, grew: Grew, pool: &Pool) {
        if let Grew::Front { was } = grew {
            let queued = pool.get(id);
            let sorted = &mut self.sorted[direction(queued.kind)];
            sorted.remove(was, id);
            sorted.insert(queued.first_sector, id);
        }
    }

    /// A request becomes part of another, which keeps the earlier deadline and the place that goes with it.
    pub fn swallowed(&mut self, id: Id, into: Id, pool: &Pool) {
        let queued = pool.get(id);
        let direction = direction(queued.kind);
        self.sorted[direction].remove(queued.first_sector, id);
        if self.expiry.get(id) < self.expiry.get(into) {
            self.expiry.set(into, self.expiry.get(id));
            self.lists.remove(&mut self.fifo[direction], into);
            self.lists.replace(&mut self.fifo[direction], id, into);
        } else {
            self.lists.remove(&mut self.fifo[direction], id);
        }
    }

    /// A request leaves; returns the next one in order of sectors.
    pub fn take(&mut self, id: Id, pool: &Pool) -> Option<Id> {
        let queued = pool.get(id);
        let direction = direction(queued.kind);
        self.lists.remove(&mut self.fifo[direction], id);
        self.sorted[direction].remove(queued.first_sector, id)
    }
}

/// The request that a disk's head at `head` reaches soonest: the next one forward, or the last one behind if it is at
/// most `back_max` sectors away and its distance times `back_penalty` is shorter. Without either, the order restarts. A
/// tie goes forward (Linux 2.6, anticipatory and CFQ).
pub(crate) fn nearest(sorted: &SortTree, head: u64, back_max: u64, back_penalty: u64, pool: &Pool) -> Option<Id> {
    let (back, forward) = sorted.around(head);
    let back = back.map(|id| (id, head - pool.get(id).first_sector));
    match (forward, back.filter(|(_, distance)| *distance <= back_max)) {
        (Some(forward), Some((back, distance))) => {
            let ahead = pool.get(forward).first_sector - head;
            Some(if distance.saturating_mul(back_penalty) < ahead { back } else { forward })
        }
        (Some(forward), None) => Some(forward),
        (None, Some((back, _))) => Some(back),
        (None, None) => sorted.first(),
    }
}
