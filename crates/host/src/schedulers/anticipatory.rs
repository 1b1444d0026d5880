//! Anticipatory: batches of reads and of writes by time, and after a read a wait for the next one of the same process.
//!
//! ```text
//!  read done ─► the next in order is another's ─► wait at most 1/150 s ─► the process reads again, or someone reads
//!               and far away                                              nearby: that goes (won)
//!                                                                       └► time is up: the other's goes (lost)
//! ```
//!
//! The rules are those of Linux 2.6.24, with a tick of a millisecond; it left the kernel in 2.6.33. Traces without
//! process ids have one process, whose next request is always queued already when there is a choice, so nothing is
//! anticipated and only the batches by time remain.
//!
//! Left out: the exit of processes, which traces do not record. We correct one defect: in the kernel, a batch of writes
//! that had to wait until earlier reads drained may start after its own end time, so that with several requests below
//! reads can starve writes forever. Here its time starts when the reads have drained.

use super::{Choice, Grew, Scheduler, SchedulerContext};
use crate::directions::{Directions, READ, WRITE, direction, nearest};
use crate::habits::{Habits, ProcessIndex};
use crate::lists::ById;
use crate::pool::{Id, Pool, Queued};
use flashwright_block::{Nanos, RequestKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The kernel's tick, at 1,000 ticks per second as on servers.
const TICK: u64 = 1_000_000;
/// Longest think time that counts (as-iosched 2.6.24: 20 ms).
const THINK_MAX: u64 = 20_000_000;
/// How far back a request may lie to be chosen, and the penalty factor of a backward seek (likewise).
const BACK_MAX: u64 = 1 << 20;
const BACK_PENALTY: u64 = 2;
/// Distance in sectors from the last read within which another process's read is taken, doubled each tick of waiting,
/// and the largest number of doublings (likewise).
const CLOSE: u64 = 8_192;
const CLOSE_TICKS: u64 = 20;

/// `[host.anticipatory]`; the defaults are the kernel's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct AnticipatorySettings {
    /// How long a read may wait before it goes first in a batch of reads.
    pub read_expire: Nanos,
    /// How long a write may wait before it goes first in a batch of writes.
    pub write_expire: Nanos,
    /// How long a batch of reads lasts while writes wait.
    pub read_batch_expire: Nanos,
    /// How long a batch of writes should last while reads wait. The number of writes in a batch adapts to the time that
    /// batches take; it starts at one for each 10 ms of this time, at least two.
    pub write_batch_expire: Nanos,
    /// How long to wait for a process's next read; 0 for not at all.
    pub antic_expire: Nanos,
}

impl Default for AnticipatorySettings {
    fn default() -> Self {
        Self {
            read_expire: Nanos(125_000_000),
            write_expire: Nanos(250_000_000),
            read_batch_expire: Nanos(500_000_000),
            write_batch_expire: Nanos(125_000_000),
            antic_expire: Nanos(6_666_667),
        }
    }
}

/// The state of anticipation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Waiting {
    /// Not started.
    Off,
    /// Waiting for the end of the last read.
    ForEnd,
    /// Waiting for the next request.
    ForNext,
    /// Finished; the next request goes, whichever it is.
    Over,
}

/// Why anticipation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// It does not end.
    Wait,
    /// This is the anticipated request, or one as good.
    Found,
    /// Waiting is not worthwhile.
    Hopeless,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Process {
    habits: Habits,
    /// Requests in the queue.
    queued: u32,
}

/// The queued requests; see [`Directions`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Anticipatory {
    settings: AnticipatorySettings,
    requests: Directions,
    /// Flushes, which go at once.
    flushes: VecDeque<Id>,
    processes: Vec<Process>,
    by_process: ProcessIndex,
    /// Index of the process of each queued request, by number.
    owner: ById<usize>,
    /// Means over the first think times and distances of all processes, times 256.
    first_think: u64,
    first_seek: u64,
    /// Where the last request of each direction ended.
    head: [u64; 2],
    /// When the oldest request of each direction was last checked.
    checked: [Nanos; 2],
    /// Direction of the batch, when it ends, and whether its first request waits for the last batch to drain.
    batch: usize,
    batch_ends: Nanos,
    draining: bool,
    /// Whether the batch of reads begins with the end of its first one.
    unserved: bool,
    /// Writes per batch, how many are left in this one, and whether it ran out of them or had no competing reads.
    writes: u32,
    writes_left: u32,
    writes_idled: bool,
    waiting: Waiting,
    /// The process of the last read, if no write came after it; whether and when one of its requests has completed
    /// since.
    expected: Option<usize>,
    ended: bool,
    ended_at: Nanos,
    anticipations: u64,
    won: u64,
    lost: u64,
}

impl Anticipatory {
    fn process(&mut self, process: u32) -> usize {
        let at = self.by_process.get_or(process, self.processes.len());
        if at == self.processes.len() {
            self.processes.push(Process::default());
        }
        at
    }

    /// A process, or another in its place, reads.
    fn observe(&mut self, process: usize, read: &Queued, now: Nanos) {
        let Process { habits, queued } = &mut self.processes[process];
        if let Some(distance) = habits.distance(read.first_sector) {
            let think = match habits.last_done {
                Some(done) if *queued == 0 => (now.0 - done.0).min(THINK_MAX),
                _ => 0,
            };
            if !habits.think.is_known() {
                self.first_think = (7 * self.first_think + 256 * think) / 8;
                self.first_seek = (7 * self.first_seek + 256 * distance) / 8;
            }
            habits.think.add(think);
            habits.sought(distance);
        }
        habits.last_end = Some(read.end_sector);
    }

    /// Whether another process's read is near enough to be as good as the anticipated one.
    fn is_close(&self, expected: &Process, read: &Queued, now: Nanos) -> bool {
        let head = self.head[self.batch];
        let ticks = if self.waiting == Waiting::Off || !self.ended { 0 } else { (now.0 - self.ended_at.0) / TICK };
        if ticks > CLOSE_TICKS || ticks > self.settings.antic_expire.0 / TICK {
            return true;
        }
        let reach = CLOSE << ticks;
        if head <= read.first_sector + reach / 2 && read.first_sector <= head + reach {
            return true;
        }
        let usual = if expected.habits.seek.is_known() { expected.habits.seek.mean } else { self.first_seek / 256 };
        usual > head.abs_diff(read.first_sector)
    }

    /// Decides from a request, or the lack of one, whether to stop waiting for the process of the last read.
    fn judge(&mut self, candidate: Option<Id>, now: Nanos, pool: &Pool) -> Verdict {
        let Some(expected) = self.expected else { return Verdict::Hopeless };
        if candidate.is_some_and(|id| self.owner.get(id) == expected) {
            return Verdict::Found;
        }
        let process = &self.processes[expected];
        if (self.ended && now >= self.ended_at + self.settings.antic_expire) || process.queued > 0 {
            return Verdict::Hopeless;
        }
        let think = if process.habits.think.is_known() { process.habits.think.mean } else { self.first_think / 256 };
        if let Some(id) = candidate {
            let read = pool.get(id);
            if read.is_sync() && self.is_close(process, read, now) {
                // Processes that work together in one place count as one.
                self.observe(expected, read, now);
                return Verdict::Found;
            }
        }
        if think > self.settings.antic_expire.0 { Verdict::Hopeless } else { Verdict::Wait }
    }

    /// Whether the oldest request of a direction has expired; checked at most once per expiry time, so that many
    /// expired requests do not destroy the order.
    fn expired(&mut self, direction: usize, now: Nanos) -> bool {
        let patience = [self.settings.read_expire, self.settings.write_expire][direction];
        if now.0 - self.checked[direction].0 < patience.0 {
            return false;
        }
        self.checked[direction] = now;
        self.requests.oldest(direction).is_some_and(|oldest| self.requests.expired(oldest, now))
    }

    fn batch_is_over(&self, now: Nanos) -> bool {
        !self.unserved && (now > self.batch_ends || (self.batch == WRITE && self.writes_left == 0))
    }

    /// The first read after a batch of writes has completed: adapts the number of writes in a batch.
    fn learn(&mut self, now: Nanos) {
        let wanted = self.settings.write_batch_expire.0;
        let took = (now.0 + wanted).saturating_sub(self.batch_ends.0);
        if took > wanted && !self.writes_idled {
            self.writes = if took > 3 * wanted { self.writes / 2 } else { self.writes - 1 };
        } else if took < wanted && self.writes_left == 0 {
            self.writes = if wanted > 3 * took { self.writes.saturating_mul(2) } else { self.writes + 1 };
        }
        self.writes = self.writes.max(1);
    }

    /// The next request if one may go, else when to ask again.
    fn choose(&mut self, now: Nanos, in_flight: u32, pool: &Pool) -> Choice {
        let (reads, writes) = (self.requests.oldest(READ).is_some(), self.requests.oldest(WRITE).is_some());
        if self.batch == WRITE && !reads && (self.writes_left == 0 || !writes) {
            self.writes_idled = true;
        }
        match self.waiting {
            _ if !(reads || writes) => return Choice::Nothing,
            Waiting::ForEnd => return Choice::Nothing,
            Waiting::ForNext => {
                let until = self.ended_at + self.settings.antic_expire;
                if now < until {
                    return Choice::Wait(until);
                }
                self.waiting = Waiting::Over;
                self.lost += 1;
            }
            Waiting::Off | Waiting::Over => {}
        }
        if self.draining {
            return self.begin(now, in_flight);
        }
        if !(reads && writes && self.batch_is_over(now)) {
            let next = nearest(self.requests.sorted(self.batch), self.head[self.batch], BACK_MAX, BACK_PENALTY, pool);
            if self.batch == READ && self.settings.antic_expire.0 > 0 {
                if self.expired(READ, now) {
                    return self.requests.oldest(READ).map_or(Choice::Nothing, Choice::Send);
                }
                if self.waiting == Waiting::Off && self.judge(next, now, pool) == Verdict::Wait {
                    self.anticipations += 1;
                    if self.ended {
                        self.waiting = Waiting::ForNext;
                        return Choice::Wait(self.ended_at + self.settings.antic_expire);
                    }
                    self.waiting = Waiting::ForEnd;
                    return Choice::Nothing;
                }
            }
            if let Some(next) = next {
                if reads && !writes {
                    self.batch_ends = now + self.settings.read_batch_expire;
                }
                let expired = self.expired(self.batch, now);
                return Choice::Send(self.requests.oldest(self.batch).filter(|_| expired).unwrap_or(next));
            }
        }
        let was = self.batch;
        self.batch = if writes && (was == READ || !reads) { WRITE } else { READ };
        self.checked[self.batch] = now;
        if self.batch == WRITE {
            self.unserved = false;
            self.writes_left = self.writes;
            self.writes_idled = false;
        }
        self.draining = was != self.batch;
        self.begin(now, in_flight)
    }

    /// The oldest request starts the batch, once the requests of the last batch below have completed.
    fn begin(&mut self, now: Nanos, in_flight: u32) -> Choice {
        if self.draining {
            if in_flight > 0 {
                return Choice::Nothing;
            }
            self.draining = false;
            match self.batch {
                WRITE => self.batch_ends = now + self.settings.write_batch_expire,
                _ => self.unserved = true,
            }
        }
        self.requests.oldest(self.batch).map_or(Choice::Nothing, Choice::Send)
    }
}

impl Scheduler for Anticipatory {
    const NAME: &'static str = "anticipatory";
    const ABOUT: &'static str =
        "batches of reads and writes by time, with a wait for the next read of a process (Linux 2.6.24, as-iosched)";
    type Settings = AnticipatorySettings;

    fn new(settings: &AnticipatorySettings, _: SchedulerContext) -> Self {
        let writes = settings.write_batch_expire.0 / TICK / 10;
        Self {
            settings: settings.clone(),
            requests: Directions::new(settings.read_expire, settings.write_expire),
            flushes: VecDeque::new(),
            processes: Vec::new(),
            by_process: ProcessIndex::default(),
            owner: ById::default(),
            first_think: 0,
            first_seek: 0,
            head: [0; 2],
            checked: [Nanos(0); 2],
            batch: READ,
            batch_ends: settings.read_batch_expire,
            draining: false,
            unserved: false,
            writes: u32::try_from(writes).unwrap_or(u32::MAX).max(2),
            writes_left: 0,
            writes_idled: false,
            waiting: Waiting::Off,
            expected: None,
            ended: false,
            ended_at: Nanos(0),
            anticipations: 0,
            won: 0,
            lost: 0,
        }
    }

    fn add(&mut self, id: Id, pool: &mut Pool, now: Nanos) {
        let queued = pool.get(id);
        if queued.kind == RequestKind::Flush {
            self.flushes.push_back(id);
            return;
        }
        let process = self.process(queued.process);
        if queued.is_sync() {
            self.observe(process, queued, now);
        }
        self.processes[process].queued += 1;
        self.owner.set(id, process);
        self.requests.add(id, pool, now);
        if matches!(self.waiting, Waiting::ForEnd | Waiting::ForNext) {
            match self.judge(Some(id), now, pool) {
                Verdict::Wait => return,
                Verdict::Found => self.won += 1,
                Verdict::Hopeless => self.lost += 1,
            }
            self.waiting = Waiting::Over;
        }
    }

    fn grown(&mut self, id: Id, grew: Grew, pool: &mut Pool, _: Nanos) {
        self.requests.grown(id, grew, pool);
    }

    fn swallowed(&mut self, id: Id, into: Id, pool: &Pool) {
        self.processes[self.owner.get(id)].queued -= 1;
        self.requests.swallowed(id, into, pool);
    }

    fn dispatch(&mut self, now: Nanos, in_flight: u32, pool: &mut Pool) -> Choice {
        if let Some(flush) = self.flushes.pop_front() {
            return Choice::Send(flush);
        }
        let choice = self.choose(now, in_flight, pool);
        if let Choice::Send(id) = choice {
            self.requests.take(id, pool);
            let queued = pool.get(id);
            let direction = direction(queued.kind);
            self.waiting = Waiting::Off;
            self.head[direction] = queued.end_sector;
            self.processes[self.owner.get(id)].queued -= 1;
            // The process that the completion of the request will name.
            self.expected = (direction == READ).then(|| self.process(queued.process));
            self.ended = false;
            if direction == WRITE {
                self.writes_left = self.writes_left.saturating_sub(1);
            }
        }
        choice
    }

    fn completed(&mut self, request: &Queued, _: Nanos, now: Nanos) {
        if request.kind == RequestKind::Flush {
            return;
        }
        if self.unserved && direction(request.kind) == self.batch {
            self.learn(now);
            self.batch_ends = now + self.settings.read_batch_expire;
            self.unserved = false;
        }
        let process = self.process(request.process);
        if self.expected == Some(process) {
            self.ended_at = now;
            self.ended = true;
            if self.waiting == Waiting::ForEnd {
                self.waiting = Waiting::ForNext;
            }
        }
        if request.is_sync() {
            self.processes[process].habits.last_done = Some(now);
        }
    }

    fn figures(&self) -> Vec<(String, f64)> {
        let count = |name: &str, count: u64| (name.to_owned(), count as f64);
        vec![
            count("anticipations", self.anticipations),
            count("anticipations_won", self.won),
            count("anticipations_lost", self.lost),
        ]
    }
}
