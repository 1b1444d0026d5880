//! Channels and dies work side by side (`timing.model = "parallel"`).
//!
//! A die serves its operations in the order in which they were issued, one at a time from its first phase to its last;
//! an operation that depends on another die's waits at the head of its queue. The phases of an operation:
//!
//! ```text
//!   read      [bus: command]  die: t_R      bus: page out
//!   program   bus: command and page in      die: t_PROG
//!   erase     [bus: command]  die: t_BERS
//! ```
//!
//! Pipelined, the bus is held only in the phases named so; otherwise for the whole operation (container-marking
//! report, section III.D). A bus goes to the die that has been ready for it longest, ties to the earlier operation.
//!
//! A die's next wish for the bus is known as soon as its last one was granted, so the only events are bus grants
//! and completions. Three things make them cheap, and none changes a result:
//!
//! - A run of copies within a die is one entry of its queue.
//! - Channels meet only where a completion brings a new request. No entry of a queue can end before its remaining
//!   phases have passed, so up to the earliest such end a channel may run ahead of the others
//!   ([`Parallel::horizon`]): a run goes on, whole copies at once, while no other die of its channel wants the bus.
//! - What a grant brings is read from a table of [`Phase`]s: interleaved dies would make every such decision a coin
//!   toss for the simulating machine.

use super::BusyTimes;
use flashwright_block::Nanos;
use flashwright_config::Times;
use flashwright_ftl::{FlashOp, OP_KINDS, OpKind};
use flashwright_nand::Geometry;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

const NEVER: u64 = u64::MAX;
const NONE: u32 = u32::MAX;

/// One use of the bus and what follows it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Phase {
    /// Time for which the bus is held.
    held: u64,
    /// Time from the bus's release to the end of the operation, or to the next wish for the bus.
    after: u64,
    /// The phase that follows if the entry goes on.
    next: u8,
    /// Time from there to that phase's wish for the bus.
    lead: u64,
    /// 1 if an operation, or one copy of a run, is done with it; else 0.
    completes: u32,
    /// Time from the grant to the end of the operation or copy, if the bus is free whenever it is wanted.
    rest: u64,
    /// Within a run: time from the release of the bus before this phase to the wish for it in this phase.
    gap: u64,
}

/// A copy alone: how long it takes, and for how long it holds the bus.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Cycle {
    time: u64,
    held: u64,
}

/// Phases by number: for each kind of entry the one of its command and the one of its transfer.
const ENTRY_KINDS: usize = OP_KINDS + 1;
const COPY: u8 = OP_KINDS as u8;
/// A copy takes the phases of a read (its own, since it goes on) and then this one.
const COPY_PROGRAM: u8 = 2 * ENTRY_KINDS as u8;

/// What grants bring, and how each kind of entry begins.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Phases {
    table: Vec<Phase>,
    /// By kind of entry: its first phase, and the time from its start to that phase's wish for the bus.
    first: [(u8, u64); ENTRY_KINDS],
    /// The time of an erase that needs no bus at all.
    silent_erase: Option<u64>,
    copy: Cycle,
}

impl Phases {
    fn new(times: &Times) -> Self {
        let mut table = vec![Phase::default(); usize::from(COPY_PROGRAM) + 1];
        let mut first = [(0, 0); ENTRY_KINDS];
        let silent = times.pipelined && times.command == 0;
        for kind in [OpKind::Read, OpKind::Program, OpKind::Erase, OpKind::OobRead] {
            let (array, transfer) = (times.array[kind as usize], times.transfer[kind as usize]);
            let (command, last) = (2 * kind as u8, 2 * kind as u8 + 1);
            let reads = matches!(kind, OpKind::Read | OpKind::OobRead);
            table[usize::from(command)] = Phase { held: times.command, after: array, next: last, ..Phase::default() };
            let (held, after) = match kind {
                _ if !times.pipelined => (times.alone(kind), 0),
                _ if reads => (transfer, 0),
                _ => (times.command + transfer, array),
            };
            table[usize::from(last)] = Phase { held, after, completes: 1, ..Phase::default() };
            first[kind as usize] = match () {
                () if reads && silent => (last, array),
                () if reads && times.pipelined => (command, 0),
                () => (last, 0),
            };
        }
        let (read_command, read_last) = (2 * OpKind::Read as usize, 2 * OpKind::Read as usize + 1);
        let (command, last) = (2 * COPY, 2 * COPY + 1);
        let (first_read, lead) = first[OpKind::Read as usize];
        first[usize::from(COPY)] = (first_read + command - read_command as u8, lead);
        table[usize::from(command)] = Phase { next: last, ..table[read_command] };
        table[usize::from(last)] = Phase { next: COPY_PROGRAM, completes: 0, ..table[read_last] };
        let (next, lead) = first[usize::from(COPY)];
        table[usize::from(COPY_PROGRAM)] = Phase { next, lead, ..table[2 * OpKind::Program as usize + 1] };
        let copy = Self::close_cycle(&mut table, usize::from(next));
        for at in 0..table.len() {
            table[at].rest = Self::rest(&table, at);
        }
        let silent_erase = silent.then_some(times.array[OpKind::Erase as usize]);
        Self { table, first, silent_erase, copy }
    }

    /// Goes once round the phases of a copy, noting the gap before each.
    fn close_cycle(table: &mut [Phase], first: usize) -> Cycle {
        let (mut at, mut cycle) = (first, Cycle::default());
        loop {
            let Phase { held, after, next, lead, .. } = table[at];
            cycle.time += held + after + lead;
            cycle.held += held;
            at = usize::from(next);
            table[at].gap = after + lead;
            if at == first {
                return cycle;
            }
        }
    }

    fn rest(table: &[Phase], first: usize) -> u64 {
        let (mut at, mut rest) = (first, 0);
        loop {
            let phase = table[at];
            rest += phase.held + phase.after;
            if phase.completes > 0 {
                return rest;
            }
            rest += phase.lead;
            at = usize::from(phase.next);
        }
    }
}

/// An entry in the queue of its die: an operation, or a run of copies.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Queued {
    /// Issue order over the whole drive: settles ties.
    sequence: u64,
    /// The request it belongs to.
    slot: u32,
    /// The cell that must be set before it starts, or [`NONE`].
    waits_for: u32,
    /// The cell that it sets when its end is known, or [`NONE`].
    sets: u32,
    /// Operations, or copies.
    left: u32,
    /// [`OpKind`] or [`COPY`].
    kind: u8,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Die {
    /// The entry being served; meaningless while `idle`.
    current: Queued,
    idle: bool,
    /// When the operations granted so far leave the die.
    free_at: u64,
    /// When the current entry took the die.
    started: u64,
    busy: u64,
    /// The cell that the current entry waits for, or [`NONE`].
    blocked_on: u32,
    queue: VecDeque<Queued>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Slot {
    left: u32,
    end: u64,
    /// Issue order: settles ties between completions.
    sequence: u64,
}

/// The end of an operation that others on other dies wait for.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Cell {
    end: u64,
    waiters: u32,
}

/// Bits of a slot in [`done_key`].
const SLOT_BITS: u32 = 24;
const SLOT_MAX: u32 = (1 << SLOT_BITS) - 1;

/// Orders completions by end, then by issue.
#[inline(always)]
fn done_key(end: u64, sequence: u64, slot: u32) -> u128 {
    debug_assert!(slot <= SLOT_MAX && sequence < 1 << (64 - SLOT_BITS));
    u128::from(end) << 64 | u128::from(sequence << SLOT_BITS | u64::from(slot))
}

/// What a die wants of its bus.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Want {
    /// Since when, or [`NEVER`].
    ready: u64,
    /// Sequence number of the entry that wants it.
    head: u64,
    /// Time from the grant to the end of that entry, if the bus is free whenever it is wanted.
    rest: u64,
    /// Operations or copies left of that entry.
    left: u32,
    /// The phase for which the bus is wanted.
    phase: u8,
}

impl Want {
    const NOTHING: Want = Want { ready: NEVER, head: NEVER, rest: 0, left: 0, phase: 0 };
}

/// A bus, and what its dies want of it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Channel {
    free_at: u64,
    busy: u64,
    /// The next grant: time and die.
    grant_at: u64,
    grant_die: u32,
    /// When the next die after that one wants the bus.
    rival_at: u64,
    /// The earliest time at which an entry being served can end.
    ends_at: u64,
}

/// The engine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Parallel {
    phases: Phases,
    /// Time between the last operation of a request and its end.
    latency: u64,
    dies_per_channel: usize,
    dies: Vec<Die>,
    channel_of: Vec<u32>,
    wants: Vec<Want>,
    channels: Vec<Channel>,
    slots: Vec<Slot>,
    slots_free: Vec<u32>,
    cells: Vec<Cell>,
    cells_free: Vec<u32>,
    /// Completions to come, the first last: see [`done_key`]. Only what was granted and has not ended is here, at most about
    /// one a die, so a sorted list beats a heap.
    done: Vec<u128>,
    sequence: u64,
    /// Cells of the request being issued, by position in its log, or [`NONE`]; empty if it has none.
    #[serde(skip)]
    cell_at: Vec<u32>,
}

impl Parallel {
    pub fn new(geometry: &Geometry, times: Times, latency: u64) -> Self {
        let (channels, dies) = (geometry.channels() as usize, geometry.dies() as usize);
        Self {
            phases: Phases::new(&times),
            latency,
            dies_per_channel: geometry.dies_per_channel() as usize,
            dies: vec![Die { idle: true, blocked_on: NONE, ..Die::default() }; dies],
            channel_of: (0..geometry.dies()).map(|die| die / geometry.dies_per_channel()).collect(),
            wants: vec![Want::NOTHING; dies],
            channels: vec![
                Channel {
                    free_at: 0,
                    busy: 0,
                    grant_at: NEVER,
                    grant_die: 0,
                    rival_at: NEVER,
                    ends_at: NEVER
                };
                channels
            ],
            slots: Vec::new(),
            slots_free: Vec::new(),
            cells: Vec::new(),
            cells_free: Vec::new(),
            done: Vec::new(),
            sequence: 0,
            cell_at: Vec::new(),
        }
    }

    /// Issues the operations of one request at `now` and names the slot under which it will complete, `least` later at the
    /// earliest.
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
            None => {
                self.slots.push(fresh);
                let slot = u32::try_from(self.slots.len() - 1).expect("slots in flight fit 32 bits");
                assert!(slot <= SLOT_MAX, "at most {SLOT_MAX} requests are in flight");
                slot
            }
        };
        if ops.is_empty() {
            self.sequence += 1;
            self.complete(slot, now + least);
            return slot;
        }
        self.make_cells(ops, geometry);
        for (at, op) in ops.iter().enumerate() {
            let die = geometry.die_of(op.ppn).index();
            let mut queued = Queued {
                sequence: self.sequence,
                slot,
                waits_for: NONE,
                sets: NONE,
                left: op.copies.max(1),
                kind: if op.copies > 0 { COPY } else { op.kind as u8 },
            };
            self.sequence += 1;
            if !self.cell_at.is_empty() {
                (queued.waits_for, queued.sets) = self.cells_of(at, ops, geometry);
            }
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

    /// Makes a cell for each operation that one on another die waits for. On the same die the queue's order suffices.
    #[inline]
    fn make_cells(&mut self, ops: &[FlashOp], geometry: &Geometry) {
        self.cell_at.clear();
        // What was issued before needs no cell: on the same die the order serves, on others nothing may wait for it.
        for (at, op) in ops.iter().enumerate().filter(|(at, op)| op.after > 0 && usize::from(op.after) <= *at) {
            let before = at - usize::from(op.after);
            if geometry.die_of(ops[before].ppn) == geometry.die_of(op.ppn) {
                continue;
            }
            if self.cell_at.is_empty() {
                self.cell_at.resize(ops.len(), NONE);
            }
            if self.cell_at[before] == NONE {
                let fresh = Cell { end: NEVER, waiters: 0 };
                let cell = self.cells_free.pop().unwrap_or_else(|| {
                    self.cells.push(fresh);
                    u32::try_from(self.cells.len() - 1).expect("cells in flight fit 32 bits")
                });
                self.cells[cell as usize] = fresh;
                self.cell_at[before] = cell;
            }
            self.cells[self.cell_at[before] as usize].waiters += 1;
        }
    }

    /// The cells that operation `at` waits for and sets. One that waits for an operation on its own die waits for no
    /// cell, even if that operation has one for other dies: it was not counted among the cell's waiters.
    fn cells_of(&self, at: usize, ops: &[FlashOp], geometry: &Geometry) -> (u32, u32) {
        let before = at.checked_sub(usize::from(ops[at].after)).unwrap_or(at);
        let same_die = geometry.die_of(ops[before].ppn) == geometry.die_of(ops[at].ppn);
        (if same_die { NONE } else { self.cell_at[before] }, self.cell_at[at])
    }

    /// The next completion not after `until`: slot and end. Grants on the way are made, in order of time but for runs.
    pub fn next_completion(&mut self, until: u64) -> Option<(u32, u64)> {
        loop {
            let first_done = self.done.last().map_or(NEVER, |key| (*key >> 64) as u64);
            let (channel, at) = self.next_grant();
            // At the same time a completion comes before a grant: what it brings may want the bus as well.
            if first_done <= at {
                if first_done > until || first_done == NEVER {
                    return None;
                }
                let key = self.done.pop().expect("looked at before");
                let slot = key as u32 & SLOT_MAX;
                self.slots_free.push(slot);
                return Some((slot, first_done));
            }
            if at > until {
                return None;
            }
            if self.wants[self.channels[channel].grant_die as usize].left == 1 {
                self.grant(channel, 0);
            } else {
                self.run_channels(until.min(first_done - 1).min(self.horizon().saturating_sub(1)).max(at));
            }
        }
    }

    /// Makes the grants of every channel up to and including `until`, one channel after the other.
    #[inline(always)]
    fn run_channels(&mut self, until: u64) {
        for channel in 0..self.channels.len() {
            while self.channels[channel].grant_at <= until {
                self.grant(channel, until);
            }
        }
    }

    /// The channel that grants next, and when.
    #[inline(always)]
    fn next_grant(&self) -> (usize, u64) {
        let (mut chosen, mut at) = (0, NEVER);
        for (channel, bus) in self.channels.iter().enumerate() {
            // Without a branch: which channel is first is a coin toss.
            chosen = if bus.grant_at < at { channel } else { chosen };
            at = at.min(bus.grant_at);
        }
        (chosen, at)
    }

    /// The earliest time at which an entry being served can end; until then channels know nothing of each other. What
    /// ends then may wake an entry that wants a bus at that very time.
    #[inline(always)]
    fn horizon(&self) -> u64 {
        self.channels.iter().fold(NEVER, |horizon, channel| horizon.min(channel.ends_at))
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
            let end = self.cells[entry.waits_for as usize].end;
            if end == NEVER {
                state.blocked_on = entry.waits_for;
                self.wants[die] = Want::NOTHING;
                return false;
            }
            start = start.max(end);
        }
        state.started = start;
        if entry.kind == OpKind::Erase as u8
            && let Some(time) = self.phases.silent_erase
        {
            self.finish(die, start + time);
            return true;
        }
        let (phase, lead) = self.phases.first[usize::from(entry.kind)];
        let rest = self.phases.table[usize::from(phase)].rest + u64::from(entry.left - 1) * self.phases.copy.time;
        self.wants[die] = Want { ready: start + lead, head: entry.sequence, rest, left: entry.left, phase };
        false
    }

    /// Gives the bus of `channel` to the die that was chosen. A run goes on until `until` as long as no other die of its
    /// channel wants the bus; of its copies, those that fit in pass at once.
    #[inline(always)]
    fn grant(&mut self, channel: usize, until: u64) {
        let bus = &mut self.channels[channel];
        let (die, at) = (bus.grant_die as usize, bus.grant_at);
        let want = &mut self.wants[die];
        let Cycle { time, held } = self.phases.copy;
        let alone_until = until.min(bus.rival_at.saturating_sub(1));
        if want.left > 1 && alone_until >= at + time && at == want.ready && time > 0 {
            let phase = &self.phases.table[usize::from(want.phase)];
            let copies = ((alone_until - at) / time).min(u64::from(want.left - 1));
            want.ready += copies * time;
            want.rest -= copies * time;
            bus.free_at = want.ready - phase.gap;
            bus.busy += copies * held;
            want.left -= u32::try_from(copies).expect("no more than are left");
            self.choose(channel);
            return;
        }
        let mut at = at;
        loop {
            let phase = &self.phases.table[usize::from(want.phase)];
            let end = at + phase.held + phase.after;
            bus.free_at = at + phase.held;
            bus.busy += phase.held;
            want.left -= phase.completes;
            if want.left == 0 {
                self.finish(die, end);
                self.begin(die, 0);
                break;
            }
            want.phase = phase.next;
            want.ready = end + phase.lead;
            want.rest -= phase.held + phase.after + phase.lead;
            if want.ready > alone_until {
                break;
            }
            at = want.ready;
        }
        self.choose(channel);
    }

    /// The current entry of a die leaves it at `end`.
    #[inline(always)]
    fn finish(&mut self, die: usize, end: u64) {
        let state = &mut self.dies[die];
        let entry = state.current;
        state.busy += end - state.started;
        state.free_at = end;
        if entry.waits_for != NONE {
            let cell = &mut self.cells[entry.waits_for as usize];
            assert!(cell.waiters > 0, "an operation waited for a cell that does not count it");
            cell.waiters -= 1;
            if cell.waiters == 0 {
                self.cells_free.push(entry.waits_for);
            }
        }
        if entry.sets != NONE {
            self.cells[entry.sets as usize].end = end;
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

    fn complete(&mut self, slot: u32, end: u64) {
        let key = done_key(end + self.latency, self.slots[slot as usize].sequence, slot);
        let mut at = self.done.len();
        while at > 0 && self.done[at - 1] < key {
            at -= 1;
        }
        self.done.insert(at, key);
    }

    /// Chooses the die that gets the bus of `channel` next: the one ready longest, ties to the earlier operation.
    #[inline(always)]
    fn choose(&mut self, channel: usize) {
        let first = channel * self.dies_per_channel;
        let bus = &mut self.channels[channel];
        let (mut ready, mut head, mut chosen, mut rival_at, mut ends_at) = (NEVER, NEVER, 0, NEVER, NEVER);
        for (at, want) in self.wants[first..first + self.dies_per_channel].iter().enumerate() {
            // Without a branch: which die is first is a coin toss.
            let better = (want.ready < ready) | ((want.ready == ready) & (want.head < head));
            rival_at = rival_at.min(want.ready.max(ready));
            ready = ready.min(want.ready);
            head = if better { want.head } else { head };
            chosen = if better { at } else { chosen };
            ends_at = ends_at.min(want.ready.max(bus.free_at).saturating_add(want.rest));
        }
        bus.grant_at = if ready == NEVER { NEVER } else { ready.max(bus.free_at) };
        bus.grant_die = u32::try_from(first + chosen).expect("dies are counted in 32 bits");
        (bus.rival_at, bus.ends_at) = (rival_at, ends_at);
    }

    /// Whether nothing is queued or under way on a die at `at`, which no event may lie after.
    pub fn is_idle(&self, die: usize, at: u64) -> bool {
        self.dies[die].idle && self.dies[die].free_at <= at
    }

    /// How long dies and channels were busy, up to the last grant.
    pub fn busy(&self) -> BusyTimes {
        BusyTimes {
            dies: self.dies.iter().map(|die| Nanos(die.busy)).collect(),
            channels: self.channels.iter().map(|channel| Nanos(channel.busy)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwright_block::Bytes;
    use flashwright_ftl::Cause;
    use flashwright_nand::Ppn;

    /// A read on die 0 for which a program on its own die and one on the other die wait, twice over:
    ///
    /// ```text
    ///   die 0  read 0-50, out 50-150 | in 150-250, program to 450
    ///   die 1                        |             in 250-350, program to 550
    /// ```
    #[test]
    fn waiters_on_the_same_die_and_on_another() {
        let geometry = Geometry::new(1, 2, 1, 4, 4, Bytes(4096));
        let times = Times { command: 0, pipelined: true, array: [50, 200, 700, 50], transfer: [100, 100, 0, 10] };
        let mut engine = Parallel::new(&geometry, times, 0);
        let op = |ppn, kind, after| FlashOp { ppn: Ppn(ppn), kind, cause: Cause::Host, after, copies: 0 };
        let ops = [op(0, OpKind::Read, 0), op(1, OpKind::Program, 1), op(16, OpKind::Program, 2)];
        for start in [0, 1000] {
            let slot = engine.issue(start, 0, &ops, &geometry);
            assert_eq!(engine.next_completion(NEVER), Some((slot, start + 550)));
        }
        assert_eq!(engine.cells_free.len(), engine.cells.len(), "every cell came back");
    }
}
