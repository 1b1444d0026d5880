//! One scheduler before a device: a block device itself.

use crate::cargo::Cargo;
use crate::directions::{READ, direction};
use crate::figures::{LayerFigures, Yardstick};
use crate::pool::{Id, Pool, Queued};
use crate::schedulers::{Choice, Grew, Merges, Running};
use crate::tables::InFlight;
use flashwright_block::{
    Ahead, BlockDevice, Bounds, ByDirection, Completion, DeviceInfo, DriverQueue, Fifo, HoldsData, IoError, Nanos,
    Request, RequestKind, Tag,
};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

const NEVER: Nanos = Nanos(u64::MAX);

/// How a filter queues and merges; [`crate::Stack`] derives it from the settings.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Rules {
    pub merges: Merges,
    pub max_sectors: u64,
    pub queue_requests: u32,
    /// Number of requests that ends a plug; 0 or 1 for no plugging.
    pub plug_requests: u32,
    pub plug_delay: Nanos,
    pub depth: u32,
    /// Whether the device below keeps the order of overlapping requests itself, as filters do.
    pub ordered_below: bool,
}

/// A request of the host that overlaps an earlier one and waits for it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Held {
    host: u32,
    blocker: u32,
}

/// A scheduler with its queue, before a device.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Filter<D> {
    inner: D,
    scheduler: Running,
    rules: Rules,
    yardstick: Yardstick,
    pool: Pool,
    bounds: Bounds,
    /// Requests submitted to this filter, which is also the tag of the next one.
    tag: u64,
    /// Free places for requests that are queued or below, for reads and for others; and host requests that found none.
    places: DriverQueue<Fifo, ByDirection>,
    /// Queued requests that are not yet dispatched.
    queued: u32,
    in_flight: u32,
    below: InFlight,
    held: Vec<Held>,
    /// Requests that no longer block those that wait for them; empty between calls.
    freed: Vec<u32>,
    /// When the plug ends, if the queue is plugged.
    plugged_until: Option<Nanos>,
    /// Whether the host waits for a plugged request: a read, a flush, a forced write.
    plugged_sync: bool,
    /// When to ask the scheduler again.
    ask_at: Nanos,
    ready: VecDeque<Completion>,
    figures: LayerFigures,
    /// The bytes of requests, for a device that keeps data. Runs that are saved have none.
    #[serde(skip)]
    cargo: Cargo,
}

impl<D: BlockDevice> Filter<D> {
    pub(crate) fn new(inner: D, scheduler: Running, name: &str, rules: Rules, yardstick: Yardstick) -> Self {
        Self {
            bounds: inner.info().bounds(),
            inner,
            scheduler,
            rules,
            yardstick,
            pool: Pool::new(rules.merges == Merges::Both),
            tag: 0,
            places: DriverQueue::new(rules.queue_requests),
            queued: 0,
            in_flight: 0,
            below: InFlight::default(),
            held: Vec::new(),
            freed: Vec::new(),
            plugged_until: None,
            plugged_sync: false,
            ask_at: NEVER,
            ready: VecDeque::new(),
            figures: LayerFigures::new(name.to_owned(), &yardstick),
            cargo: Cargo::default(),
        }
    }

    /// The device below.
    #[must_use]
    pub fn device(&self) -> &D {
        &self.inner
    }

    /// The device below, for preconditioning.
    pub fn device_mut(&mut self) -> &mut D {
        &mut self.inner
    }

    /// The counts since the start or the last [`Filter::reset_figures`].
    #[must_use]
    pub fn figures(&self) -> LayerFigures {
        LayerFigures { extra: self.scheduler.figures(), ..self.figures.clone() }
    }

    /// Resets the counts to zero, for the end of a warm-up. The scheduler's own counts continue.
    pub fn reset_figures(&mut self) {
        self.figures = LayerFigures::new(std::mem::take(&mut self.figures.scheduler), &self.yardstick);
    }

    /// Takes a request, with its data if they are to be kept.
    #[inline]
    fn accept(&mut self, request: Request, data: Option<&[u8]>) -> Result<Tag, IoError> {
        self.bounds.check(&request)?;
        let mut now = self.inner.now();
        if request.arrival > now {
            let mut below = Completion::default();
            loop {
                self.host_waits(request.arrival);
                self.pump();
                let timer = self.timer();
                if self.inner.wait(request.arrival.min(timer), &mut below)? {
                    self.landed(&below);
                } else if timer >= request.arrival {
                    break;
                }
            }
            now = self.inner.now().max(request.arrival);
        }
        // A request that is submitted late, which happens only in real time, keeps its arrival time: its response time
        // includes the delay.
        let tag = self.tag;
        self.tag += 1;
        self.figures.requests += 1;
        let host = self.pool.arrives(request, tag);
        if let Some(data) = data {
            self.cargo.load(host, &request, data);
        }
        if self.places.goes_at_once(&request) {
            self.admit(host, now);
        } else {
            self.figures.held_for_room += 1;
            self.places.push(u64::from(host), request);
        }
        self.pump();
        Ok(Tag(tag))
    }

    /// A request of the host joins the queue, or waits for an earlier one.
    fn admit(&mut self, host: u32, now: Nanos) {
        match self.pool.admit(host) {
            Some(blocker) => {
                self.figures.held_for_order += 1;
                self.held.push(Held { host, blocker });
                self.hurry(blocker, now);
            }
            None => self.enqueue(host, now),
        }
    }

    /// Another request waits for this host request: asks the scheduler to hurry.
    fn hurry(&mut self, host: u32, now: Nanos) {
        let request = *self.pool.request_of(host);
        self.scheduler.hurry(&request, &mut self.pool, now);
        self.ask_at = Nanos(0);
    }

    fn enqueue(&mut self, host: u32, now: Nanos) {
        let id = self.pool.queue(host, now);
        if self.rules.merges != Merges::None && self.merge(id, now) {
            return;
        }
        let Queued { kind, fua, .. } = *self.pool.get(id);
        if self.queued == 0 && self.rules.plug_requests > 1 {
            self.plugged_until = Some(now + self.rules.plug_delay);
            self.plugged_sync = false;
        }
        self.plugged_sync |= fua || direction(kind) == READ;
        self.queued += 1;
        self.places.take(kind, 1);
        self.pool.reopen(id);
        let before = self.pool.queued_count();
        self.scheduler.add(id, &mut self.pool, now);
        self.cut(before, kind);
        if self.queued >= self.rules.plug_requests {
            self.plugged_until = None;
        }
        self.ask_at = Nanos(0);
    }

    /// Counts the pieces that the scheduler cut since there were `before` queued requests.
    fn cut(&mut self, before: usize, kind: RequestKind) {
        let pieces = u32::try_from(self.pool.queued_count() - before).expect("few pieces");
        self.queued += pieces;
        self.places.take(kind, pieces);
    }

    /// Merges a new request with an adjacent queued one that may grow.
    fn merge(&mut self, id: Id, now: Nanos) -> bool {
        let new = self.pool.get(id);
        if new.fua || !new.kind.moves_data() {
            return false;
        }
        let fits = |pool: &Pool, other: Id| pool.get(other).sectors() + new.sectors() <= self.rules.max_sectors;
        if let Some(front) = self.pool.ending_at(new.first_sector, new.kind)
            && fits(&self.pool, front)
            && self.scheduler.may_grow_by(front, new, &self.pool)
        {
            self.pool.join(front, id, front);
            self.figures.back_merges += 1;
            self.grown(front, Grew::Back, now);
            return true;
        }
        if self.rules.merges == Merges::Both
            && let Some(back) = self.pool.starting_at(new.end_sector, new.kind)
            && fits(&self.pool, back)
            && self.scheduler.may_grow_by(back, new, &self.pool)
        {
            let was = self.pool.get(back).first_sector;
            self.pool.join(id, back, back);
            self.figures.front_merges += 1;
            self.grown(back, Grew::Front { was }, now);
            return true;
        }
        false
    }

    /// A queued request has grown: it may now be adjacent to another.
    fn grown(&mut self, id: Id, grew: Grew, now: Nanos) {
        let kind = self.pool.get(id).kind;
        // A front merge moves the request in the scheduler's order, so the scheduler is notified first.
        let before = self.pool.queued_count();
        self.scheduler.grown(id, grew, &mut self.pool, now);
        self.cut(before, kind);
        self.ask_at = Nanos(0);
        if self.pool.queued_count() != before || self.rules.merges != Merges::Both {
            return; // cut again, or not checked for neighbours
        }
        let Queued { first_sector, end_sector, .. } = *self.pool.get(id);
        let (front, back) = match grew {
            Grew::Back => (Some(id), self.pool.starting_at(end_sector, kind)),
            Grew::Front { .. } => (self.pool.ending_at(first_sector, kind), Some(id)),
        };
        let (Some(front), Some(back)) = (front, back) else { return };
        let sectors = self.pool.get(front).sectors() + self.pool.get(back).sectors();
        if sectors > self.rules.max_sectors
            || !self.scheduler.may_grow_by(front, self.pool.get(back), &self.pool)
            || !self.scheduler.may_grow_by(back, self.pool.get(front), &self.pool)
        {
            return;
        }
        // The later one is removed, as in the kernel.
        self.scheduler.swallowed(back, front, &self.pool);
        self.pool.join(front, back, front);
        self.figures.joined += 1;
        self.queued -= 1;
        self.places.release(kind, 1);
        let before = self.pool.queued_count();
        self.scheduler.grown(front, Grew::Back, &mut self.pool, now);
        self.cut(before, kind);
    }

    /// Dispatches the requests that may go now.
    #[inline(always)]
    fn pump(&mut self) {
        let is_full = self.in_flight >= self.rules.depth && self.plugged_until.is_none();
        if self.queued > 0 && !is_full {
            self.dispatch();
        }
    }

    fn dispatch(&mut self) {
        let now = self.inner.now();
        if self.plugged_until.is_some_and(|until| now < until) {
            return;
        }
        self.plugged_until = None;
        while self.in_flight < self.rules.depth && self.queued > 0 && self.ask_at <= now {
            let before = self.pool.queued_count();
            let choice = self.scheduler.dispatch(now, self.in_flight, &mut self.pool);
            match choice {
                Choice::Send(id) => {
                    let kind = self.pool.get(id).kind;
                    self.cut(before, kind);
                    self.hand_on(id, now);
                }
                Choice::Wait(until) => self.ask_at = until.max(Nanos(now.0 + 1)),
                Choice::Nothing => self.ask_at = NEVER,
            }
        }
    }

    fn hand_on(&mut self, id: Id, now: Nanos) {
        self.pool.hand_on(id, now);
        let queued = self.pool.get(id);
        self.figures.handed_on(queued, now, &self.yardstick);
        self.queued -= 1;
        let request = Request {
            arrival: now,
            first_sector: queued.first_sector,
            sectors: u32::try_from(queued.sectors()).expect("merging stops before that"),
            process: queued.process,
            stream: queued.stream,
            kind: queued.kind,
            fua: queued.fua,
            // What a scheduler hands on comes through the one queue that it has at the drive.
            ..Request::default()
        };
        let submitted = if self.cargo.is_empty() {
            self.inner.submit(request)
        } else {
            self.cargo.hand_on(&mut self.inner, &self.pool, id, request)
        };
        match submitted {
            Ok(tag) => {
                self.in_flight += 1;
                self.below.insert(tag.0, id);
                if self.rules.ordered_below {
                    self.follow(id, now);
                }
            }
            Err(error) => {
                // Its host requests were already accepted, so they fail with it.
                self.scheduler.completed(queued, now, now);
                let result = Err(Box::new(error));
                let failed = Completion { request, start: now, end: now, result, ..Completion::default() };
                self.leaves(id, &failed);
            }
        }
    }

    /// Requests that waited for one that is below now may follow it.
    fn follow(&mut self, id: Id, now: Nanos) {
        let Self { pool, freed, .. } = self;
        pool.handed_on(id, |host| freed.push(host));
        self.release(now);
    }

    /// A dispatched request has completed.
    fn leaves(&mut self, id: Id, below: &Completion) {
        self.places.release(below.request.kind, 1);
        let Self { inner, pool, ready, freed, cargo, .. } = self;
        if !cargo.is_empty() {
            cargo.landed(inner, pool, id, below);
        }
        pool.completed(id, below, |completion, host, waited_for| {
            if !cargo.is_empty() {
                cargo.completed(host, &completion);
            }
            ready.push_back(completion);
            if waited_for {
                freed.push(host);
            }
        });
        self.release(below.end);
        self.let_in(below.end);
    }

    /// Requests that waited for those in `freed` may go, or have to wait for another one.
    #[inline(always)]
    fn release(&mut self, now: Nanos) {
        if !self.freed.is_empty() {
            self.release_held(now);
        }
    }

    fn release_held(&mut self, now: Nanos) {
        let mut at = 0;
        while at < self.held.len() {
            let Held { host, blocker } = self.held[at];
            if !self.freed.contains(&blocker) {
                at += 1;
                continue;
            }
            match self.pool.conflict(host) {
                Some(other) => {
                    self.held[at].blocker = other;
                    self.hurry(other, now);
                    at += 1;
                }
                None => {
                    self.held.remove(at);
                    self.enqueue(host, now);
                    if self.pool.is_waited_for(host) {
                        self.hurry(host, now);
                    }
                }
            }
        }
        self.freed.clear();
    }

    /// Admits requests that found the queue full, while there is room.
    #[inline(always)]
    fn let_in(&mut self, now: Nanos) {
        while let Some(waiting) = self.places.pick() {
            self.admit(u32::try_from(waiting.id).expect("a place in the pool"), now);
        }
    }

    /// The time of this filter's next own event.
    fn timer(&self) -> Nanos {
        if self.queued == 0 || self.in_flight >= self.rules.depth {
            return NEVER;
        }
        self.plugged_until.unwrap_or(self.ask_at)
    }

    /// The host has submitted all that it has and waits: a plug ends.
    pub fn host_has_no_more(&mut self) {
        self.plugged_until = None;
    }

    /// The time of this filter's next own event, whatever the device below does; the largest number if there is none. A
    /// completion that waits to be fetched is one.
    #[must_use]
    pub fn next_event(&self) -> Nanos {
        self.ready.front().map_or(NEVER, |ended| ended.end).min(self.timer())
    }

    /// The host lets time pass: the plug ends if the host waits for a plugged request, or can do nothing else.
    fn host_waits(&mut self, until: Nanos) {
        if until == NEVER || (self.plugged_sync && until > self.inner.now()) {
            self.plugged_until = None;
        }
    }

    /// Lets time pass until something is ready, or until `until`.
    fn run(&mut self, until: Nanos) -> Result<(), IoError> {
        let mut below = Completion::default();
        loop {
            self.host_waits(until);
            self.pump();
            if !self.ready.is_empty() {
                return Ok(());
            }
            let timer = self.timer();
            if self.inner.wait(until.min(timer), &mut below)? {
                self.landed(&below);
                continue;
            }
            if timer > until || timer == NEVER {
                return Ok(());
            }
            // A clock that stands still while nothing is below would never reach the timer.
            debug_assert!(self.inner.now() >= timer);
        }
    }

    fn landed(&mut self, below: &Completion) {
        let Some(id) = self.below.remove(below.tag.0) else {
            debug_assert!(false, "the device completed {:?}, which was never submitted", below.tag);
            return;
        };
        self.in_flight -= 1;
        self.scheduler.completed(self.pool.get(id), below.start, below.end);
        self.ask_at = Nanos(0);
        self.leaves(id, below);
    }
}

impl<D: BlockDevice> BlockDevice for Filter<D> {
    fn info(&self) -> DeviceInfo {
        DeviceInfo { queue_depth: self.places.depth(), ..self.inner.info() }
    }

    #[inline]
    fn now(&self) -> Nanos {
        self.inner.now()
    }

    fn submit(&mut self, request: Request) -> Result<Tag, IoError> {
        self.accept(request, None)
    }

    fn wait(&mut self, until: Nanos, completion: &mut Completion) -> Result<bool, IoError> {
        if self.ready.is_empty() {
            self.run(until)?;
        }
        if self.ready.front().is_some_and(|next| next.end <= until)
            && let Some(next) = self.ready.pop_front()
        {
            *completion = next;
            return Ok(true);
        }
        Ok(false)
    }

    #[inline]
    fn expect(&self, requests: &[Request], ahead: Ahead) {
        self.inner.expect(requests, ahead);
    }

    fn holds_data(&mut self) -> Option<&mut dyn HoldsData> {
        if self.inner.holds_data().is_some() { Some(self) } else { None }
    }
}

/// Data follow their request by tag; the filter merges and cuts them with it.
impl<D: BlockDevice> HoldsData for Filter<D> {
    fn submit_with(&mut self, request: Request, data: &[u8]) -> Result<Tag, IoError> {
        request.check_data(data);
        if self.inner.holds_data().is_none() {
            return Err(IoError::KeepsNoData);
        }
        self.accept(request, Some(data))
    }

    fn take_data(&mut self, tag: Tag, data: &mut [u8]) -> bool {
        self.cargo.take(tag, data)
    }
}
