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
//! A die's next wish for the bus is known as soon as its last operation was granted, so the only events are bus grants
//! and completions: about one event an operation. Grants are made in order of time over all channels, because a
//! completion may bring a new request that wants a bus before a later grant.

use super::BusyTimes;
use flashwright_block::Nanos;
use flashwright_ftl::{FlashOp, OpKind};
use flashwright_nand::Geometry;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

const NEVER: u64 = u64::MAX;
const NONE: u32 = u32::MAX;

/// Durations in nanoseconds, transfers worked out.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Times {
    pub command: u64,
    pub pipelined: bool,
    /// Array times, by [`OpKind`].
    pub array: [u64; 4],
    /// Transfers on the bus, by [`OpKind`].
    pub transfer: [u64; 4],
}

impl Times {
    /// An operation alone on an idle drive.
    #[inline(always)]
    pub fn alone(&self, kind: OpKind) -> u64 {
        self.command + self.array[kind as usize] + self.transfer[kind as usize]
    }
}

/// An operation in the queue of its die.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Queued {
    /// Issue order over the whole drive: settles ties.
    sequence: u64,
    /// The request it belongs to.
    slot: u32,
    /// The cell that must be set before it starts, or [`NONE`].
    waits_for: u32,
    /// The cell that it sets when its end is known, or [`NONE`].
    sets: u32,
    kind: OpKind,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Die {
    queue: VecDeque<Queued>,
    /// When the operations granted so far leave the die.
    free_at: u64,
    /// Whether the head of the queue has had its command and waits for its transfer.
    commanded: bool,
    /// The cell that the head waits for, or [`NONE`].
    blocked_on: u32,
    busy: u64,
    /// When the head operation took the die.
    head_start: u64,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Slot {
    left: u32,
    end: u64,
}

/// The end of an operation that others on other dies wait for.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Cell {
    end: u64,
    waiters: u32,
}

/// The engine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Parallel {
    times: Times,
    dies_per_channel: usize,
    dies: Vec<Die>,
    /// When the head of each die's queue wants the bus, and its sequence number.
    ready: Vec<u64>,
    head: Vec<u64>,
    bus_free: Vec<u64>,
    bus_busy: Vec<u64>,
    /// The next grant of each channel: time and die.
    grant_at: Vec<u64>,
    grant_die: Vec<u32>,
    slots: Vec<Slot>,
    slots_free: Vec<u32>,
    cells: Vec<Cell>,
    cells_free: Vec<u32>,
    done: BinaryHeap<Reverse<(u64, u64, u32)>>,
    sequence: u64,
    /// Cells of the request being issued, by position in its log.
    #[serde(skip)]
    cell_of: Vec<(u32, u32)>,
}

impl Parallel {
    pub fn new(geometry: &Geometry, times: Times) -> Self {
        let (channels, dies) = (geometry.channels() as usize, geometry.dies() as usize);
        Self {
            times,
            dies_per_channel: geometry.dies_per_channel() as usize,
            dies: vec![Die { blocked_on: NONE, ..Die::default() }; dies],
            ready: vec![NEVER; dies],
            head: vec![NEVER; dies],
            bus_free: vec![0; channels],
            bus_busy: vec![0; channels],
            grant_at: vec![NEVER; channels],
            grant_die: vec![0; channels],
            slots: Vec::new(),
            slots_free: Vec::new(),
            cells: Vec::new(),
            cells_free: Vec::new(),
            done: BinaryHeap::new(),
            sequence: 0,
            cell_of: Vec::new(),
        }
    }

    /// Issues the operations of one request at `now` and names the slot under which it will complete.
    pub fn issue(&mut self, now: u64, ops: &[FlashOp], geometry: &Geometry) -> u32 {
        let fresh = Slot { left: u32::try_from(ops.len()).expect("a request's operations fit 32 bits"), end: now };
        let slot = match self.slots_free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = fresh;
                slot
            }
            None => {
                self.slots.push(fresh);
                u32::try_from(self.slots.len() - 1).expect("slots in flight fit 32 bits")
            }
        };
        if ops.is_empty() {
            self.complete(slot, now);
            return slot;
        }
        self.make_cells(ops, geometry);
        let mut cell = 0;
        for (at, op) in ops.iter().enumerate() {
            let die = geometry.die_of(op.ppn).index();
            let mut queued = Queued { sequence: self.sequence, slot, waits_for: NONE, sets: NONE, kind: op.kind };
            self.sequence += 1;
            if !self.cell_of.is_empty() {
                (queued.waits_for, queued.sets) = self.cells_at(at, ops, geometry, &mut cell);
            }
            self.dies[die].queue.push_back(queued);
            if self.dies[die].queue.len() == 1 {
                self.prepare(die, now);
                self.choose(die / self.dies_per_channel);
            }
        }
        slot
    }

    /// Makes a cell for each operation that one on another die waits for. On the same die the queue's order suffices.
    #[inline]
    fn make_cells(&mut self, ops: &[FlashOp], geometry: &Geometry) {
        self.cell_of.clear();
        for (at, op) in ops.iter().enumerate().filter(|(_, op)| op.after > 0) {
            let before = at - usize::from(op.after);
            if geometry.die_of(ops[before].ppn) == geometry.die_of(op.ppn) {
                continue;
            }
            let position = u32::try_from(before).expect("a request's operations fit 32 bits");
            match self.cell_of.iter().find(|(known, _)| *known == position) {
                Some((_, cell)) => self.cells[*cell as usize].waiters += 1,
                None => {
                    let fresh = Cell { end: NEVER, waiters: 1 };
                    let cell = self.cells_free.pop().unwrap_or_else(|| {
                        self.cells.push(fresh);
                        u32::try_from(self.cells.len() - 1).expect("cells in flight fit 32 bits")
                    });
                    self.cells[cell as usize] = fresh;
                    self.cell_of.push((position, cell));
                }
            }
        }
        self.cell_of.sort_unstable();
    }

    /// The cells that operation `at` waits for and sets. One that waits for an operation on its own die waits for no
    /// cell, even if that operation has one for other dies: it was not counted among the cell's waiters.
    fn cells_at(&self, at: usize, ops: &[FlashOp], geometry: &Geometry, next: &mut usize) -> (u32, u32) {
        let find = |position: usize| {
            self.cell_of
                .binary_search_by_key(&position, |(known, _)| *known as usize)
                .map_or(NONE, |found| self.cell_of[found].1)
        };
        let before = at - usize::from(ops[at].after);
        let same_die = geometry.die_of(ops[before].ppn) == geometry.die_of(ops[at].ppn);
        let waits_for = if same_die { NONE } else { find(before) };
        let sets = match self.cell_of.get(*next) {
            Some((position, cell)) if *position as usize == at => {
                *next += 1;
                *cell
            }
            _ => NONE,
        };
        (waits_for, sets)
    }

    /// The next completion not after `until`: slot and end. Grants on the way are made.
    pub fn next_completion(&mut self, until: u64) -> Option<(u32, u64)> {
        loop {
            let (channel, grant) = self.next_grant();
            if let Some(Reverse((end, _, slot))) = self.done.peek().copied()
                && end <= grant
            {
                if end > until {
                    return None;
                }
                self.done.pop();
                self.slots_free.push(slot);
                return Some((slot, end));
            }
            if grant == NEVER || grant > until {
                return None;
            }
            self.grant(channel, grant);
        }
    }

    #[inline(always)]
    fn next_grant(&self) -> (usize, u64) {
        let (mut best, mut at) = (0, NEVER);
        for (channel, grant) in self.grant_at.iter().enumerate() {
            if *grant < at {
                (best, at) = (channel, *grant);
            }
        }
        (best, at)
    }

    /// Works out when the head of a die's queue wants the bus; operations that need no bus are finished on the way.
    #[inline]
    fn prepare(&mut self, die: usize, floor: u64) {
        loop {
            let state = &mut self.dies[die];
            let Some(op) = state.queue.front().copied() else {
                (self.ready[die], self.head[die]) = (NEVER, NEVER);
                return;
            };
            let mut start = state.free_at.max(floor);
            if op.waits_for != NONE {
                let cell = self.cells[op.waits_for as usize];
                if cell.end == NEVER {
                    state.blocked_on = op.waits_for;
                    (self.ready[die], self.head[die]) = (NEVER, NEVER);
                    return;
                }
                start = start.max(cell.end);
            }
            state.head_start = start;
            state.commanded = false;
            let silent_command = self.times.pipelined && self.times.command == 0;
            match op.kind {
                OpKind::Erase if silent_command => {
                    self.finish(die, op, start + self.times.array[OpKind::Erase as usize]);
                }
                OpKind::Read | OpKind::OobRead if silent_command => {
                    state.commanded = true;
                    self.ready[die] = start + self.times.array[op.kind as usize];
                    self.head[die] = op.sequence;
                    return;
                }
                _ => {
                    (self.ready[die], self.head[die]) = (start, op.sequence);
                    return;
                }
            }
        }
    }

    /// Gives the bus of `channel` to the die that was chosen, at `at`.
    #[inline]
    fn grant(&mut self, channel: usize, at: u64) {
        let die = self.grant_die[channel] as usize;
        let op = *self.dies[die].queue.front().expect("a die that wants the bus has an operation");
        let kind = op.kind as usize;
        let Times { command, pipelined, .. } = self.times;
        let (array, transfer) = (self.times.array[kind], self.times.transfer[kind]);
        let (held, end) = match op.kind {
            _ if !pipelined => (command + array + transfer, Some(at + command + array + transfer)),
            OpKind::Program => (command + transfer, Some(at + command + transfer + array)),
            OpKind::Erase => (command, Some(at + command + array)),
            OpKind::Read | OpKind::OobRead if self.dies[die].commanded => (transfer, Some(at + transfer)),
            OpKind::Read | OpKind::OobRead => (command, None),
        };
        self.bus_free[channel] = at + held;
        self.bus_busy[channel] += held;
        match end {
            Some(end) => {
                self.finish(die, op, end);
                self.prepare(die, 0);
            }
            None => {
                self.dies[die].commanded = true;
                self.ready[die] = at + command + array;
            }
        }
        self.choose(channel);
    }

    /// The head operation of a die leaves it at `end`.
    #[inline(always)]
    fn finish(&mut self, die: usize, op: Queued, end: u64) {
        let state = &mut self.dies[die];
        state.queue.pop_front();
        state.busy += end - state.head_start;
        state.free_at = end;
        if op.waits_for != NONE {
            let cell = &mut self.cells[op.waits_for as usize];
            assert!(cell.waiters > 0, "an operation waited for a cell that does not count it");
            cell.waiters -= 1;
            if cell.waiters == 0 {
                self.cells_free.push(op.waits_for);
            }
        }
        if op.sets != NONE {
            self.cells[op.sets as usize].end = end;
            self.wake(op.sets);
        }
        let slot = &mut self.slots[op.slot as usize];
        slot.end = slot.end.max(end);
        slot.left -= 1;
        if slot.left == 0 {
            let end = slot.end;
            self.complete(op.slot, end);
        }
    }

    /// Lets the dies go on that wait for `cell`.
    #[cold]
    fn wake(&mut self, cell: u32) {
        for die in 0..self.dies.len() {
            if self.dies[die].blocked_on == cell {
                self.dies[die].blocked_on = NONE;
                self.prepare(die, 0);
                self.choose(die / self.dies_per_channel);
            }
        }
    }

    fn complete(&mut self, slot: u32, end: u64) {
        self.done.push(Reverse((end, self.sequence, slot)));
        self.sequence += 1;
    }

    /// Chooses the die that gets the bus of `channel` next: the one ready longest, ties to the earlier operation.
    #[inline(always)]
    fn choose(&mut self, channel: usize) {
        let first = channel * self.dies_per_channel;
        let (mut die, mut ready, mut head) = (first, NEVER, NEVER);
        for candidate in first..first + self.dies_per_channel {
            let (r, h) = (self.ready[candidate], self.head[candidate]);
            if r < ready || (r == ready && h < head) {
                (die, ready, head) = (candidate, r, h);
            }
        }
        self.grant_at[channel] = if ready == NEVER { NEVER } else { ready.max(self.bus_free[channel]) };
        self.grant_die[channel] = u32::try_from(die).expect("dies are counted in 32 bits");
    }

    /// How long dies and channels were busy, up to the last grant.
    pub fn busy(&self) -> BusyTimes {
        BusyTimes {
            dies: self.dies.iter().map(|die| Nanos(die.busy)).collect(),
            channels: self.bus_busy.iter().copied().map(Nanos).collect(),
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
        let mut engine = Parallel::new(&geometry, times);
        let op = |ppn, kind, after| FlashOp { ppn: Ppn(ppn), kind, cause: Cause::Host, after };
        let ops = [op(0, OpKind::Read, 0), op(1, OpKind::Program, 1), op(16, OpKind::Program, 2)];
        for start in [0, 1000] {
            let slot = engine.issue(start, &ops, &geometry);
            assert_eq!(engine.next_completion(NEVER), Some((slot, start + 550)));
        }
        assert_eq!(engine.cells_free.len(), engine.cells.len(), "every cell came back");
    }
}
