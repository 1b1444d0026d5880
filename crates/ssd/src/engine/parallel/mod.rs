//! Channels and dies work side by side (`timing.model = "parallel"`).
//!
//! A die serves its operations one at a time, each from its first phase to its last, in the order of issue; an operation that
//! depends on another die's waits at the head of its queue. The phases of an operation:
//!
//! ```text
//!   read      [bus: command]  die: t_R      bus: page out
//!   program   bus: command and page in      die: t_PROG
//!   erase     [bus: command]  die: t_BERS
//! ```
//!
//! Pipelined, the bus is held only in the phases named so; otherwise for the whole operation (container-marking
//! report, section III.D). A bus goes to the die that has been ready for it longest, ties to the earlier operation, unless
//! `timing.bus-order` prefers commands or data.
//!
//! A die's next wish for the bus is known as soon as its last one was granted, so the only events are bus grants
//! and completions. Four things make them cheap, and none changes a result:
//!
//! - A run of copies within a die is one entry of its queue.
//! - Channels meet only where a completion brings a new request. No entry of a queue can end before its remaining
//!   phases have passed, so up to the earliest such end ([`Parallel::horizon`]) a run may go on, whole copies at once, while no
//!   other die of its channel wants the bus.
//! - What a grant brings is read from a table of phases: interleaved dies would make every such decision a coin
//!   toss for the simulating machine.
//! - A request that finds nothing in flight, with all it does on one die, meets nobody ([`Parallel::serve_alone`]).
//!
//! An observer gives up whole copies at once, and requests served alone.

mod channels;
mod phases;
mod queue;
#[cfg(test)]
mod tests;

use super::earliest::Earliest;
use super::{BusyTimes, Observer, OpClass};
use channels::{Channel, Want};
use flashwright_block::Nanos;
use flashwright_config::Times;
use flashwright_ftl::{FlashOp, OpKind};
use flashwright_nand::Geometry;
use phases::{COPY, Cycle, Phase, Phases};
use queue::{Cells, Die, Done, KINDS, NEVER, NONE, Queued, SLOT_MAX, Slot, What, done_key};
use serde::{Deserialize, Serialize};

/// The engine. `W` hears when each operation ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Parallel<W = ()> {
    phases: Phases,
    /// Time between the last operation of a request and its end.
    latency: u64,
    dies_per_channel: usize,
    dies: Vec<Die>,
    channel_of: Vec<u32>,
    wants: Vec<Want>,
    channels: Vec<Channel>,
    /// By channel, the time of the next grant.
    grants: Earliest,
    slots: Vec<Slot>,
    slots_free: Vec<u32>,
    cells: Cells,
    done: Done,
    sequence: u64,
    /// By die, when the last part of a run ended that the observer heard of; empty unless someone listens.
    heard_until: Vec<u64>,
    /// What hears of ends.
    pub observer: W,
}

impl<W: Observer> Parallel<W> {
    /// An engine at rest. `latency` nanoseconds pass between the last operation of a request and its end.
    #[must_use]
    pub fn new(geometry: &Geometry, times: Times, latency: u64, observer: W) -> Self {
        let (channels, dies) = (geometry.channels() as usize, geometry.dies() as usize);
        Self {
            phases: Phases::new(&times),
            latency,
            dies_per_channel: geometry.dies_per_channel() as usize,
            dies: vec![Die { idle: true, blocked_on: NONE, ..Die::default() }; dies],
            channel_of: (0..geometry.dies()).map(|die| die / geometry.dies_per_channel()).collect(),
            wants: vec![Want::NOTHING; dies],
            channels: vec![Channel::FREE; channels],
            grants: Earliest::new(channels),
            slots: Vec::new(),
            slots_free: Vec::new(),
            cells: Cells::default(),
            done: Done::new(),
            sequence: 0,
            heard_until: if observer.listens() { vec![0; dies] } else { Vec::new() },
            observer,
        }
    }

    /// Issues the operations of one request at `now` and names the slot under which it will complete, `least` later at the
    /// earliest. All times are in nanoseconds.
    ///
    /// # Panics
    /// If more requests are in flight than slots can be told apart: some 16 million.
    pub fn issue(&mut self, now: u64, least: u64, ops: &[FlashOp], geometry: &Geometry) -> u32 {
        let fresh = Slot {
            left: u32::try_from(ops.len()).expect("a request's operations fit 32 bits"),
            end: now + least,
            sequence: self.sequence,
        };
        let slot = match self.slots_free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = fresh;
                slot
            }
            None => self.new_slot(fresh),
        };
        if ops.is_empty() {
            self.sequence += 1;
            self.complete(slot, now + least);
            return slot;
        }
        self.cells.make(ops, geometry);
        for (at, op) in ops.iter().enumerate() {
            let die = geometry.die_of(op.ppn).index();
            let kind = if op.copies > 0 { COPY } else { op.kind as u8 };
            let mut queued = Queued {
                sequence: self.sequence,
                slot,
                waits_for: NONE,
                sets: NONE,
                left: op.copies.max(1),
                // Only an observer looks at more.
                what: if self.observer.listens() { What::new(kind, OpClass::of(op), op.ppn) } else { What::only(kind) },
            };
            if !self.cells.none() {
                (queued.waits_for, queued.sets) = self.cells.of(at, ops, geometry);
            }
            self.sequence += 1;
            let state = &mut self.dies[die];
            if !state.idle {
                state.queue.push_back(queued);
                continue;
            }
            state.idle = false;
            state.current = queued;
            if self.start(die, now) {
                self.begin(die, now);
            }
            self.choose(self.channel_of[die] as usize);
        }
        slot
    }

    /// Serves a request whose operations lie on one die, while nothing is in flight: nobody is met, so its end is added up at
    /// once. The end, as [`Parallel::next_completion`] would tell it; none if something is in flight, or several dies take part.
    #[inline]
    pub fn serve_alone(&mut self, now: u64, least: u64, ops: &[FlashOp], geometry: &Geometry) -> Option<u64> {
        if self.slots_free.len() != self.slots.len() || self.observer.listens() {
            return None;
        }
        let Some(first) = ops.first() else {
            self.sequence += 1;
            return Some(now + least + self.latency);
        };
        let die = geometry.die_of(first.ppn);
        if ops[1..].iter().any(|op| geometry.die_of(op.ppn) != die) {
            return None;
        }
        let state = &mut self.dies[die.index()];
        let bus = &mut self.channels[self.channel_of[die.index()] as usize];
        let Cycle { time, held } = self.phases.copy;
        for op in ops {
            let start = state.free_at.max(now);
            let kind = if op.copies > 0 { COPY } else { op.kind as u8 };
            state.free_at = match self.phases.silent_erase {
                Some(time) if kind == OpKind::Erase as u8 => start + time,
                _ => {
                    let (mut phase, lead) = self.phases.first[usize::from(kind)];
                    let (ready, mut left) = (start + lead, op.copies.max(1));
                    let mut at = ready.max(bus.free_at);
                    if at == ready {
                        // All copies but the last.
                        let copies = u64::from(left - 1);
                        at += copies * time;
                        bus.busy += copies * held;
                        left = 1;
                    }
                    loop {
                        let Phase { held, after, completes, next, lead, .. } = *self.phases.of(phase);
                        bus.free_at = at + held;
                        bus.busy += held;
                        left -= completes;
                        if left == 0 {
                            break at + held + after;
                        }
                        (at, phase) = (at + held + after + lead, next);
                    }
                }
            };
            state.busy += state.free_at - start;
        }
        self.sequence += ops.len() as u64;
        Some(state.free_at.max(now + least) + self.latency)
    }

    #[cold]
    fn new_slot(&mut self, fresh: Slot) -> u32 {
        self.slots.push(fresh);
        let slot = u32::try_from(self.slots.len() - 1).expect("slots in flight fit 32 bits");
        assert!(slot <= SLOT_MAX, "at most {SLOT_MAX} requests are in flight");
        slot
    }

    /// The next completion not after `until`: slot and end. Grants on the way are made, in order of time but for runs.
    ///
    /// If buses have preferences, what they do at `until` itself waits for the next call: a request that is issued at
    /// `until` may go first.
    pub fn next_completion(&mut self, until: u64) -> Option<(u32, u64)> {
        loop {
            let first_done = self.done.first_at;
            let (channel, at) = self.grants.first();
            // At the same time a completion comes before a grant: what it brings may want the bus as well.
            if first_done <= at {
                if first_done > until || first_done == NEVER {
                    return None;
                }
                let slot = self.done.take();
                self.slots_free.push(slot);
                return Some((slot, first_done));
            }
            // With preferences, a request that is issued at `until` may have operations that go first.
            if at > until || at == until && self.has_preferences() {
                return None;
            }
            self.grant(channel, until, first_done);
        }
    }

    /// The time of the next completion or grant of a bus, before which nothing completes; the largest number if there is none.
    #[must_use]
    pub fn next_event(&self) -> u64 {
        self.done.first_at.min(self.grants.first().1)
    }

    /// Whether a bus may prefer a later operation to an earlier one.
    #[inline(always)]
    fn has_preferences(&self) -> bool {
        self.phases.preferred != 0
    }

    /// The earliest time at which an entry being served can end; until then channels know nothing of each other. What
    /// ends then may wake an entry that wants a bus at that very time.
    fn horizon(&self) -> u64 {
        let ends = |(want, channel): (&Want, &u32)| {
            let at = want.ready.max(self.channels[*channel as usize].free_at);
            at.saturating_add(self.phases.rest_of(want.phase, want.left))
        };
        self.wants.iter().zip(&self.channel_of).map(ends).min().unwrap_or(NEVER)
    }

    /// Takes the next entry of a die's queue and works out when it wants the bus; entries that need no bus are finished
    /// on the way.
    #[inline]
    fn begin(&mut self, die: usize, floor: u64) {
        loop {
            let state = &mut self.dies[die];
            let Some(entry) = state.queue.pop_front() else {
                state.idle = true;
                self.wants[die] = Want::NOTHING;
                return;
            };
            state.idle = false;
            state.current = entry;
            if !self.start(die, floor) {
                return;
            }
        }
    }

    /// Starts the current entry of a die; true if it is already over.
    #[inline(always)]
    fn start(&mut self, die: usize, floor: u64) -> bool {
        let state = &mut self.dies[die];
        let entry = state.current;
        let mut start = state.free_at.max(floor);
        if entry.waits_for != NONE {
            let end = self.cells.end(entry.waits_for);
            if end == NEVER {
                state.blocked_on = entry.waits_for;
                self.wants[die] = Want::NOTHING;
                return false;
            }
            start = start.max(end);
        }
        state.started = start;
        if entry.what.kind() == OpKind::Erase as u8
            && let Some(time) = self.phases.silent_erase
        {
            self.finish(die, start + time);
            return true;
        }
        let (phase, lead) = self.phases.first[usize::from(entry.what.kind())];
        self.wants[die] = Want { ready: start + lead, head: entry.sequence, left: entry.left, phase };
        false
    }

    /// Gives the bus of `channel` to the die that was chosen, for one phase, or for several copies of a run ([`Parallel::jump`]).
    #[inline(always)]
    fn grant(&mut self, channel: usize, until: u64, first_done: u64) {
        let bus = &mut self.channels[channel];
        let (die, at) = (bus.grant_die as usize, bus.grant_at);
        let want = &mut self.wants[die];
        // Most of the time something completes, or another die wants the bus, before a whole copy has passed.
        if want.left > 1
            && first_done.min(until).min(bus.rival_at) > at + self.phases.copy.time
            && at == want.ready
            && self.jump(channel, die, at, until.min(first_done - 1))
        {
            return self.choose(channel);
        }
        let (bus, want) = (&mut self.channels[channel], &mut self.wants[die]);
        let phase = self.phases.of(want.phase);
        let end = at + phase.held + phase.after;
        bus.free_at = at + phase.held;
        bus.busy += phase.held;
        want.left -= phase.completes;
        if want.left == 0 {
            self.finish(die, end);
            self.begin(die, 0);
        } else {
            if self.observer.listens()
                && let Some(kind) = Phases::ends_in_copy(want.phase)
            {
                let state = &self.dies[die];
                // A copy that has ended is no longer among those left.
                let copy = state.current.left - want.left + u32::from(kind == OpKind::Read);
                let sequence = self.slots[state.current.slot as usize].sequence;
                let start = std::mem::replace(&mut self.heard_until[die], end).max(state.started);
                self.observer.ended(state.current.ended(sequence, copy, kind, die, start, end));
            }
            want.phase = phase.next;
            want.ready = end + phase.lead;
        }
        self.choose(channel);
    }

    /// Lets the copies of a run pass at once, but for its last, that fit in before anything else can happen that concerns them: another
    /// die of the channel wants the bus, a request completes, or `until` has come. False if none does.
    #[inline(never)]
    fn jump(&mut self, channel: usize, die: usize, at: u64, until: u64) -> bool {
        let Cycle { time, held } = self.phases.copy;
        if self.observer.listens() || time == 0 {
            return false;
        }
        let until = if self.has_preferences() { until - 1 } else { until };
        let rival_at = self.channels[channel].rival_at;
        let alone_until = until.min(rival_at.saturating_sub(1)).min(self.horizon().saturating_sub(1));
        if alone_until < at + time {
            return false;
        }
        let (bus, want) = (&mut self.channels[channel], &mut self.wants[die]);
        let copies = ((alone_until - at) / time).min(u64::from(want.left - 1));
        want.ready += copies * time;
        bus.free_at = want.ready - self.phases.of(want.phase).gap;
        bus.busy += copies * held;
        want.left -= u32::try_from(copies).expect("no more than are left");
        true
    }

    /// The current entry of a die leaves it at `end`.
    #[inline(always)]
    fn finish(&mut self, die: usize, end: u64) {
        let state = &mut self.dies[die];
        let entry = state.current;
        state.busy += end - state.started;
        state.free_at = end;
        if self.observer.listens() {
            let (copy, kind, start) = match entry.what.kind() {
                COPY => (entry.left, OpKind::Program, self.heard_until[die]),
                kind => (0, KINDS[usize::from(kind)], self.dies[die].started),
            };
            let sequence = self.slots[entry.slot as usize].sequence;
            self.observer.ended(entry.ended(sequence, copy, kind, die, start, end));
        }
        if entry.waits_for != NONE {
            self.cells.release(entry.waits_for);
        }
        if entry.sets != NONE {
            self.cells.set(entry.sets, end);
            self.wake(entry.sets);
        }
        let slot = &mut self.slots[entry.slot as usize];
        slot.end = slot.end.max(end);
        slot.left -= 1;
        if slot.left == 0 {
            let end = slot.end;
            self.complete(entry.slot, end);
        }
    }

    /// Lets the dies go on that wait for `cell`.
    #[cold]
    fn wake(&mut self, cell: u32) {
        for die in 0..self.dies.len() {
            if self.dies[die].blocked_on == cell {
                self.dies[die].blocked_on = NONE;
                if self.start(die, 0) {
                    self.begin(die, 0);
                }
                self.choose(self.channel_of[die] as usize);
            }
        }
    }

    #[inline(always)]
    fn complete(&mut self, slot: u32, end: u64) {
        self.done.add(done_key(end + self.latency, self.slots[slot as usize].sequence, slot));
    }

    /// Chooses the die that gets the bus of `channel` next.
    #[inline(always)]
    fn choose(&mut self, channel: usize) {
        let first = channel * self.dies_per_channel;
        let wants = &self.wants[first..first + self.dies_per_channel];
        let first = first as u32; // dies are counted in 32 bits
        let bus = &mut self.channels[channel];
        match self.phases.preferred {
            0 => bus.choose(first, wants),
            preferred => bus.choose_preferred(first, wants, preferred),
        }
        self.grants.set(channel, bus.grant_at);
    }

    /// Whether nothing is queued or in progress on a die at `at`, which must not lie before the last completion.
    #[must_use]
    pub fn is_idle(&self, die: usize, at: u64) -> bool {
        self.dies[die].idle && self.dies[die].free_at <= at
    }

    /// How long dies and channels were busy, up to the last grant.
    #[must_use]
    pub fn busy(&self) -> BusyTimes {
        BusyTimes {
            dies: self.dies.iter().map(|die| Nanos(die.busy)).collect(),
            channels: self.channels.iter().map(|channel| Nanos(channel.busy)).collect(),
        }
    }
}
