//! CFQ: each process has a queue for its reads and gets the drive for a time slice; writes share one queue.
//!
//! ```text
//!  process 1 ─► reads by sector ─┐
//!  process 2 ─► reads by sector ─┼─► one at a time, for its slice ─► drive
//!  all       ─► writes by sector ┘   reads before writes; after its last read a process's queue is waited on for a while
//! ```
//!
//! The rules are those of Linux 2.6.24 or of 2.6.38 (which the dissertation's chapter 5 names). Traces without process
//! ids have one queue of reads and one of writes.
//!
//! Left out: priorities (all have the usual one, 4), groups of processes, queues of cooperating processes, and in
//! 2.6.38 the common tree of queues without idling, which take turns individually here. A queue continues from where it
//! stopped itself, whereas the kernel keeps an earlier choice relative to the drive's position. Requests are counted
//! against the quantum one by one, as since 2.6.29; 2.6.24 dispatches a whole quantum at once.

use super::{Choice, Grew, Scheduler, SchedulerContext};
use crate::directions::nearest;
use crate::habits::{Habits, ProcessIndex};
use crate::lists::{List, Lists, SortTree};
use crate::pool::{Id, Pool, Queued};
use flashwright_block::{Bytes, Nanos, RequestKind, SECTOR_BYTES};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Extra slice of priority 0 over priority 4, in fifths of a slice (cfq-iosched).
const BEST_OVER_USUAL: i64 = 4;
/// Writes per slice for each unit of `slice-async-rq` at priority 4 (cfq-iosched 2.6.38: two for each level from 4 on).
const WRITES_PER_RQ: u32 = 8;
/// A drive with more than this many requests at once counts as queueing (likewise).
const QUEUEING: u32 = 4;
/// Mean distance in sectors from which on a process counts as seeking, and the idle time for such a process
/// (cfq-iosched 2.6.24).
const SEEKY: u64 = 8 * 1024;
const SEEKY_IDLE: u64 = 2_000_000;
/// In 2.6.38 a read counts as a seek from this distance on, or, on a drive that does not rotate, below this length; a
/// process counts as seeking if more than this many of its last 32 reads do.
const SEEK_SECTORS: u64 = 8 * 100;
const SHORT_SECTORS: u64 = 2 * 32;
const SEEKS_OF_32: u32 = 4;
/// In 2.6.38 a read within this many sectors may take the turn of an idling queue.
const CLOSE: u64 = 8 * 1024;

/// Kernel version whose rules apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CfqVersion {
    /// Idles for each process, whatever the drive; four requests of a queue at once.
    #[serde(rename = "2.6.24")]
    Linux2624,
    /// Does not idle when idling does not help; shorter slices for many processes; eight requests of a queue at once.
    #[default]
    #[serde(rename = "2.6.38")]
    Linux2638,
}

/// `[host.cfq]`; the defaults are the kernel's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct CfqSettings {
    /// Kernel version whose rules apply.
    pub version: CfqVersion,
    /// Requests of one queue that may be below at once while others wait; by default 4 in 2.6.24 and 8 in 2.6.38.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), extend("x-expected" = "at least {min}"))]
    pub quantum: Option<u32>,
    /// How long a read may wait in its queue before it starts a slice.
    pub fifo_expire_sync: Nanos,
    /// How long a write may wait before it goes first.
    pub fifo_expire_async: Nanos,
    /// How far back a request may lie to be chosen next.
    pub back_seek_max: Bytes,
    /// Penalty factor of a backward seek.
    #[schemars(range(min = 1), extend("x-expected" = "at least {min}"))]
    pub back_seek_penalty: u32,
    /// Time slice of a process's reads.
    #[schemars(extend("x-minimum" = "1 ns"), extend("x-expected" = "a time above 0, such as \"100 ms\""))]
    pub slice_sync: Nanos,
    /// Time slice of writes.
    pub slice_async: Nanos,
    /// One eighth of the number of writes in a slice while reads wait (2.6.38 only).
    #[schemars(range(min = 1), extend("x-expected" = "at least {min}"))]
    pub slice_async_rq: u32,
    /// How long to wait for a process's next read; 0 for not at all.
    pub slice_idle: Nanos,
    /// Slices shrink so that every queue gets its turn within this time; 0 for full slices and no limit on writes after
    /// expired reads (2.6.38 only).
    pub target_latency: Nanos,
    /// Whether the drive rotates, so that waiting for a nearby request pays off even if the drive queues requests
    /// (2.6.38 only).
    pub rotational: bool,
}

impl Default for CfqSettings {
    fn default() -> Self {
        Self {
            version: CfqVersion::Linux2638,
            quantum: None,
            fifo_expire_sync: Nanos(125_000_000),
            fifo_expire_async: Nanos(250_000_000),
            back_seek_max: Bytes(16 << 20),
            back_seek_penalty: 2,
            slice_sync: Nanos(100_000_000),
            slice_async: Nanos(40_000_000),
            slice_async_rq: 2,
            slice_idle: Nanos(8_000_000),
            target_latency: Nanos(300_000_000),
            rotational: false,
        }
    }
}

/// The reads of one process, or all writes.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Turn {
    sync: bool,
    sorted: SortTree,
    fifo: List,
    /// Where its last request ended.
    head: u64,
    below: u32,
    /// Its key among waiting queues: the smallest is next, ties to the earliest.
    place: (i64, u64),
    /// Whether no request of this slice has completed, so that its time has not started.
    fresh: bool,
    slice_ends: Nanos,
    /// The rest of the last slice in nanoseconds; negative if it was exceeded.
    left: i64,
    /// Whether its oldest request was checked in this slice.
    aged: bool,
    /// Requests sent in this slice.
    sent: u32,
    /// Whether idling for it has paid off so far.
    idles: bool,
    habits: Habits,
    /// Which of the last 32 reads were seeks, the last in the lowest bit.
    seeks: u32,
}

impl Turn {
    fn new(sync: bool) -> Self {
        Self {
            sync,
            sorted: SortTree::default(),
            fifo: List::default(),
            head: 0,
            below: 0,
            place: (0, 0),
            fresh: true,
            slice_ends: Nanos(0),
            left: 0,
            aged: false,
            sent: 0,
            idles: sync,
            habits: Habits::default(),
            seeks: 0,
        }
    }

    fn is_used_up(&self, now: Nanos) -> bool {
        !self.fresh && now >= self.slice_ends
    }
}

/// Queue of all writes.
const WRITES: usize = 0;

/// Queues that take turns.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cfq {
    settings: CfqSettings,
    quantum: u32,
    lists: Lists,
    turns: Vec<Turn>,
    by_process: ProcessIndex,
    /// Queues with requests.
    waiting: Vec<usize>,
    /// Number of placements so far.
    placed: u64,
    /// The queue in turn.
    active: Option<usize>,
    /// Until when its next request is waited for.
    idle_until: Option<Nanos>,
    /// Flushes, which go at once.
    flushes: VecDeque<Id>,
    below: [u32; 2],
    /// Whether the drive ever had more than a few requests at once.
    queueing: bool,
    /// Where the last request ended.
    head: u64,
    /// When the last expired read completed.
    delayed_at: Option<Nanos>,
    slices: u64,
    idle_waits: u64,
    idle_waits_won: u64,
    preemptions: u64,
}

fn signed(nanos: u64) -> i64 {
    i64::try_from(nanos).unwrap_or(i64::MAX)
}

impl Cfq {
    fn is_2638(&self) -> bool {
        self.settings.version == CfqVersion::Linux2638
    }

    fn turn_of(&mut self, request: &Queued) -> usize {
        if !request.is_sync() {
            return WRITES;
        }
        let at = self.by_process.get_or(request.process, self.turns.len());
        if at == self.turns.len() {
            self.turns.push(Turn::new(true));
        }
        at
    }

    /// Queues that count as having requests. 2.6.38 counts the queue in turn even while it idles.
    fn busy(&self) -> usize {
        let waited_on = self.is_2638() && self.active.is_some_and(|at| self.turns[at].sorted.is_empty());
        self.waiting.len() + usize::from(waited_on)
    }

    /// Length of a slice in nanoseconds. If all slices together exceed the target, they shrink, but not below two idle
    /// times; the kernel uses a mean of recent numbers of queues, we use the current number.
    fn slice(&self, sync: bool) -> u64 {
        let CfqSettings { slice_sync, slice_async, slice_idle, target_latency, .. } = self.settings;
        let slice = if sync { slice_sync.0 } else { slice_async.0 };
        let round = slice_sync.0 * self.busy().max(1) as u64;
        if !self.is_2638() || target_latency.0 == 0 || round <= target_latency.0 {
            return slice;
        }
        let share = |of: u64, part: u64, whole: u64| match of.checked_mul(part) {
            Some(product) => product / whole,
            None => u64::try_from(u128::from(of) * u128::from(part) / u128::from(whole)).unwrap_or(u64::MAX),
        };
        let least = slice.min(share(2 * slice_idle.0, slice, slice_sync.0));
        share(slice, target_latency.0, round).max(least)
    }

    /// Places a queue for its next turn: the later, the more others wait and the shorter its slices are.
    fn place(&mut self, at: usize, now: Nanos) {
        let others = signed(self.waiting.len() as u64 - 1);
        let usual = signed(if self.turns[at].sync { self.settings.slice_sync.0 } else { self.settings.slice_async.0 });
        let best = signed(self.settings.slice_sync.0) / 5 * (5 + BEST_OVER_USUAL);
        // 2.6.24 adds the rest of the slice; 2.6.38 corrects this.
        let left = std::mem::take(&mut self.turns[at].left);
        let left = if self.is_2638() { -left } else { left };
        self.placed += 1;
        self.turns[at].place = (signed(now.0) + others * (best - usual) + left, self.placed);
    }

    /// Ends the turn, so that another queue is chosen; `cut_short` if it could have used the rest of its slice.
    fn expire(&mut self, now: Nanos, cut_short: bool) {
        let Some(at) = self.active.take() else { return };
        self.idle_until = None;
        if cut_short && !self.turns[at].fresh {
            self.turns[at].left = signed(self.turns[at].slice_ends.0) - signed(now.0);
        } else if cut_short && self.is_2638() {
            self.turns[at].left = signed(self.slice(self.turns[at].sync));
        }
        if !self.turns[at].sorted.is_empty() {
            self.place(at, now);
        }
    }

    /// Whether idling for a queue without requests is worthwhile.
    fn should_idle(&self, at: usize) -> bool {
        let in_vain = self.is_2638() && !self.settings.rotational && self.queueing;
        self.turns[at].idles && !in_vain
    }

    /// The queue in turn, which has requests, or when to ask again.
    fn select(&mut self, now: Nanos) -> Result<usize, Choice> {
        if let Some(at) = self.active {
            let turn = &self.turns[at];
            if !turn.is_used_up(now) {
                if !turn.sorted.is_empty() {
                    return Ok(at);
                }
                match self.idle_until {
                    Some(until) if now < until => return Err(Choice::Wait(until)),
                    None if turn.below > 0 && self.should_idle(at) => return Err(Choice::Nothing),
                    _ => {}
                }
            }
            self.expire(now, false);
        }
        let next = self.waiting.iter().min_by_key(|at| self.turns[**at].place).ok_or(Choice::Nothing)?;
        let at = *next;
        let turn = &mut self.turns[at];
        (turn.fresh, turn.aged, turn.sent) = (true, false, 0);
        self.active = Some(at);
        self.slices += 1;
        Ok(at)
    }

    /// Whether one more of this queue may be below.
    fn may_send(&self, at: usize, now: Nanos) -> bool {
        let turn = &self.turns[at];
        if !turn.sync && self.below[1] > 0 {
            return false;
        }
        let busy = self.busy();
        if !self.is_2638() {
            return turn.below < self.quantum || (busy <= 1 && turn.below < self.quantum.saturating_mul(4));
        }
        if self.should_idle(at) && self.below[0] > 0 {
            return false;
        }
        let mut most = (self.quantum / 2).max(1);
        if turn.below >= most {
            let writes = usize::from(self.active == Some(WRITES) || !self.turns[WRITES].sorted.is_empty());
            let alone = busy == 1 || (turn.sync && busy - writes == 1);
            let soon_over =
                turn.fresh || now.0 + self.settings.slice_idle.0 * u64::from(turn.below) > turn.slice_ends.0;
            if !alone && soon_over {
                return false;
            }
            most = if alone { u32::MAX } else { self.quantum };
        }
        if !turn.sync && self.settings.target_latency.0 > 0 {
            // The kernel starts as if the last one had been delayed one second earlier.
            let since = self.delayed_at.map_or(now.0 + 1_000_000_000, |at| now.0 - at.0);
            // As many below as slices since then, but at least one.
            let slices = u64::from(turn.below) + 1;
            if turn.below > 0 && slices.saturating_mul(self.settings.slice_sync.0) > since {
                return false;
            }
        }
        turn.below < most
    }

    /// A read updates the state of its process.
    fn observe(&mut self, at: usize, read: &Queued, now: Nanos) {
        let idle = self.settings.slice_idle.0;
        let is_2638 = self.is_2638();
        let turn = &mut self.turns[at];
        let habits = &mut turn.habits;
        habits.think.add(habits.last_done.map_or(0, |done| (now.0 - done.0).min(2 * idle)));
        let distance = habits.distance(read.first_sector).unwrap_or(0);
        habits.sought(distance);
        habits.last_end = Some(read.end_sector);
        let seeks = if self.settings.rotational { distance > SEEK_SECTORS } else { read.sectors() < SHORT_SECTORS };
        turn.seeks = (turn.seeks << 1) | u32::from(seeks);
        let seeky = match is_2638 {
            true => turn.seeks.count_ones() > SEEKS_OF_32,
            false => self.queueing && habits.seek.mean > SEEKY,
        };
        if idle == 0 || seeky {
            turn.idles = false;
        } else if habits.think.is_sure() {
            turn.idles = habits.think.mean <= idle;
        }
    }

    /// Whether a new request preempts the queue in turn.
    fn preempts(&self, at: usize, request: &Queued, now: Nanos) -> bool {
        let Some(turn) = self.active.map(|active| &self.turns[active]) else { return false };
        if turn.is_used_up(now) || (self.turns[at].sync && !turn.sync) {
            return true;
        }
        let distance = self.head.abs_diff(request.first_sector);
        let near = match self.settings.version {
            CfqVersion::Linux2638 => distance <= CLOSE,
            CfqVersion::Linux2624 => turn.habits.seek.is_sure() && distance <= turn.habits.seek.mean,
        };
        self.idle_until.is_some() && self.turns[at].sync && near
    }

    /// The queue in turn is empty, and one of its reads has completed.
    fn idle(&mut self, at: usize, now: Nanos) {
        let turn = &self.turns[at];
        let think = turn.habits.think;
        let mut idle = self.settings.slice_idle.0;
        if idle == 0 || !self.should_idle(at) {
            return;
        }
        if self.is_2638() {
            let left = turn.slice_ends.0.saturating_sub(now.0);
            if turn.below > 0 || (think.is_sure() && left < think.mean) {
                return;
            }
        } else if turn.habits.seek.is_sure() && turn.habits.seek.mean > SEEKY {
            // Not for the seek, but so that a process that seeks gets its share.
            idle = idle.min(SEEKY_IDLE);
        }
        self.idle_waits += u64::from(self.idle_until.is_none());
        self.idle_until = Some(now + Nanos(idle));
    }

    fn take(&mut self, at: usize, id: Id, pool: &Pool) {
        let queued = pool.get(id);
        let turn = &mut self.turns[at];
        turn.sorted.remove(queued.first_sector, id);
        self.lists.remove(&mut turn.fifo, id);
        if turn.sorted.is_empty() {
            self.waiting.retain(|waiting| *waiting != at);
        }
    }

    fn known_turn(&self, request: &Queued) -> usize {
        if request.is_sync() { self.by_process.get(request.process) } else { WRITES }
    }
}

impl Scheduler for Cfq {
    const NAME: &'static str = "cfq";
    const ABOUT: &'static str =
        "a time slice for each process's reads, and one for all writes (Linux 2.6.24 and 2.6.38, cfq-iosched)";
    type Settings = CfqSettings;

    fn problems(settings: &CfqSettings, _: &SchedulerContext) -> Vec<(String, String)> {
        let usual = CfqSettings::default();
        let mut problems = Vec::new();
        let mut add = |wrong: bool, key: &str, what: &str| {
            if wrong {
                problems.push((key.to_owned(), what.to_owned()));
            }
        };
        let old = settings.version == CfqVersion::Linux2624;
        let without = "2.6.24 has no such setting; leave it out or choose version = \"2.6.38\"";
        add(old && settings.rotational, "rotational", without);
        add(old && settings.target_latency != usual.target_latency, "target-latency", without);
        add(old && settings.slice_async_rq != usual.slice_async_rq, "slice-async-rq", without);
        problems
    }

    fn new(settings: &CfqSettings, _: SchedulerContext) -> Self {
        let quantum = match settings.version {
            CfqVersion::Linux2624 => 4,
            CfqVersion::Linux2638 => 8,
        };
        Self {
            settings: settings.clone(),
            quantum: settings.quantum.unwrap_or(quantum),
            lists: Lists::default(),
            turns: vec![Turn::new(false)],
            by_process: ProcessIndex::default(),
            waiting: Vec::new(),
            placed: 0,
            active: None,
            idle_until: None,
            flushes: VecDeque::new(),
            below: [0; 2],
            queueing: false,
            head: 0,
            delayed_at: None,
            slices: 0,
            idle_waits: 0,
            idle_waits_won: 0,
            preemptions: 0,
        }
    }

    fn add(&mut self, id: Id, pool: &mut Pool, now: Nanos) {
        let queued = pool.get(id);
        if queued.kind == RequestKind::Flush {
            self.flushes.push_back(id);
            return;
        }
        let at = self.turn_of(queued);
        let first = self.turns[at].sorted.is_empty();
        self.turns[at].sorted.insert(queued.first_sector, id);
        self.lists.push(&mut self.turns[at].fifo, id);
        if first {
            self.waiting.push(at);
            self.place(at, now);
        }
        if queued.is_sync() {
            self.observe(at, queued, now);
        }
        if self.active == Some(at) {
            self.idle_waits_won += u64::from(self.idle_until.take().is_some());
        } else if self.preempts(at, queued, now) {
            self.expire(now, true);
            self.turns[at].place.0 = i64::MIN;
            self.preemptions += 1;
        }
    }

    fn may_grow_by(&self, id: Id, other: &Queued, pool: &Pool) -> bool {
        // A queue's requests stay its own.
        !other.is_sync() || other.process == pool.get(id).process
    }

    fn grown(&mut self, id: Id, grew: Grew, pool: &mut Pool, _: Nanos) {
        if let Grew::Front { was } = grew {
            let queued = pool.get(id);
            let at = self.known_turn(queued);
            self.turns[at].sorted.remove(was, id);
            self.turns[at].sorted.insert(queued.first_sector, id);
        }
    }

    fn swallowed(&mut self, id: Id, into: Id, pool: &Pool) {
        let at = self.known_turn(pool.get(id));
        if pool.get(id).queued_at < pool.get(into).queued_at {
            let turn = &mut self.turns[at];
            turn.sorted.remove(pool.get(id).first_sector, id);
            self.lists.remove(&mut turn.fifo, into);
            self.lists.replace(&mut turn.fifo, id, into);
        } else {
            self.take(at, id, pool);
        }
    }

    fn dispatch(&mut self, now: Nanos, in_flight: u32, pool: &mut Pool) -> Choice {
        if let Some(flush) = self.flushes.pop_front() {
            return Choice::Send(flush);
        }
        let at = match self.select(now) {
            Ok(at) => at,
            Err(wait) => return wait,
        };
        if !self.may_send(at, now) {
            return Choice::Nothing;
        }
        self.idle_until = None;
        let CfqSettings { fifo_expire_sync, fifo_expire_async, back_seek_max, back_seek_penalty, .. } = self.settings;
        let turn = &mut self.turns[at];
        let patience = if turn.sync { fifo_expire_sync } else { fifo_expire_async };
        let expired = |id: &Id| now >= pool.get(*id).queued_at + patience;
        let oldest = turn.fifo.first().filter(|id| !turn.aged && expired(id));
        turn.aged = true;
        let back_max = back_seek_max.0 / SECTOR_BYTES;
        let next = oldest.or_else(|| nearest(&turn.sorted, turn.head, back_max, u64::from(back_seek_penalty), pool));
        let Some(id) = next else { return Choice::Nothing };
        self.take(at, id, pool);
        self.head = pool.get(id).end_sector;
        let turn = &mut self.turns[at];
        turn.head = self.head;
        turn.below += 1;
        turn.sent += 1;
        let (sync, sent) = (turn.sync, turn.sent);
        self.below[usize::from(sync)] += 1;
        self.queueing |= in_flight + 1 > QUEUEING;
        let enough = self.settings.slice_async_rq.saturating_mul(WRITES_PER_RQ);
        if self.is_2638() && !sync && sent >= enough && self.busy() > 1 {
            self.expire(now, false);
        }
        Choice::Send(id)
    }

    fn completed(&mut self, request: &Queued, _: Nanos, now: Nanos) {
        if request.kind == RequestKind::Flush {
            return;
        }
        let at = self.known_turn(request);
        let sync = self.turns[at].sync;
        self.turns[at].below -= 1;
        self.below[usize::from(sync)] -= 1;
        if sync {
            self.turns[at].habits.last_done = Some(now);
            if now >= request.queued_at + self.settings.fifo_expire_sync {
                self.delayed_at = Some(now);
            }
        }
        if self.active != Some(at) {
            return;
        }
        if self.turns[at].fresh {
            self.turns[at].fresh = false;
            self.turns[at].slice_ends = now + Nanos(self.slice(sync));
        }
        if self.turns[at].is_used_up(now) {
            self.expire(now, true);
        } else if sync && self.turns[at].sorted.is_empty() {
            self.idle(at, now);
        }
    }

    fn figures(&self) -> Vec<(String, f64)> {
        let count = |name: &str, count: u64| (name.to_owned(), count as f64);
        vec![
            count("slices", self.slices),
            count("idle_waits", self.idle_waits),
            count("idle_waits_won", self.idle_waits_won),
            count("preemptions", self.preemptions),
        ]
    }
}
