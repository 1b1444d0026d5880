//! What happens at an event: commands end, dies decide, buses are granted.

use super::command::{Command, Kind};
use super::{Begin, Die, Lane, NEVER, Ordered, Stage};
use crate::engine::NONE;
use crate::engine::order::{Group, Heads};
use flashwright_config::BusOrder;
use std::hint::select_unpredictable;
use std::ops::Range;

impl Ordered {
    /// A command waits for nothing but its die; of a run, a part.
    pub(super) fn queue(&mut self, id: u32, now: u64) {
        let Command { group, sequence, die, .. } = self.commands[id];
        self.commands[id].is_queued = true;
        self.insert(die as usize, group, sequence, id);
        // A die that has a command can only suspend it.
        if self.dies[die as usize].main == NONE || self.may_look {
            self.decide_at(die as usize, now);
        }
    }

    /// A die decides, once all that comes before at this time has happened.
    #[inline(always)]
    pub(super) fn decide_at(&mut self, die: usize, now: u64) {
        let Die { channel, bit, .. } = self.dies[die];
        self.channels[channel as usize].due |= bit;
        let key = self.keys.of(channel as usize).min(2 * now + 1);
        self.keys.set(channel as usize, key);
    }

    /// Puts a command in the queue of its die, by age.
    #[inline(always)]
    fn insert(&mut self, die: usize, group: Group, sequence: u64, id: u32) {
        let state = &mut self.dies[die];
        let (first, last) = (state.first[group as usize], state.last[group as usize]);
        if first == NONE {
            self.commands[id].next = NONE;
            (state.first[group as usize], state.last[group as usize]) = (id, id);
            state.heads.set(group, sequence);
        } else if self.commands[last].sequence < sequence {
            self.commands[id].next = NONE;
            self.commands[last].next = id;
            state.last[group as usize] = id;
        } else if sequence < self.commands[first].sequence {
            self.commands[id].next = first;
            state.first[group as usize] = id;
            state.heads.set(group, sequence);
        } else {
            let mut before = first;
            while self.commands[self.commands[before].next].sequence < sequence {
                before = self.commands[before].next;
            }
            self.commands[id].next = self.commands[before].next;
            self.commands[before].next = id;
        }
    }

    /// The oldest command of a group leaves the queue.
    #[inline(always)]
    fn pop(&mut self, die: usize, group: Group) {
        let state = &mut self.dies[die];
        let command = &mut self.commands[state.first[group as usize]];
        command.is_queued = false;
        let next = command.next;
        state.first[group as usize] = next;
        let sequence = if next == NONE { Heads::NOTHING } else { self.commands[next].sequence };
        self.dies[die].heads.set(group, sequence);
    }

    /// The dies of a channel decide, then its bus is granted.
    #[inline(always)]
    pub(super) fn act<const LOOKS: bool>(&mut self, channel: usize, now: u64) {
        let first = channel * self.dies_per_channel;
        if LOOKS {
            self.look_again(channel, now);
        }
        while self.channels[channel].due != 0 {
            let due = &mut self.channels[channel].due;
            let die = first + due.trailing_zeros() as usize;
            *due &= *due - 1;
            if LOOKS {
                self.decide_suspending(die, now);
            } else if self.dies[die].main == NONE {
                self.take_next(die, now);
            }
        }
        if self.channels[channel].free_at <= now {
            self.grant(channel, now);
        }
        self.plan::<LOOKS>(channel, now);
    }

    /// A free die takes what its order prefers.
    #[inline(always)]
    pub(super) fn take_next(&mut self, die: usize, now: u64) {
        let state = &self.dies[die];
        let Some(group) = self.order.next(die, &state.heads) else { return };
        self.order.taken(die, group, &state.heads);
        self.start_first(die, group, now);
    }

    /// The oldest command of a group, of a run its next part, begins.
    #[inline(always)]
    pub(super) fn start_first(&mut self, die: usize, group: Group, now: u64) {
        let id = self.dies[die].first[group as usize];
        let command = &mut self.commands[id];
        let (mut kind, mut part, mut page) = (command.kind, 0, command.page);
        if kind == Kind::Copies {
            // Without a branch: runs read and program in turn, and many dies have one.
            let programs = (command.programs < command.reads) & (command.unmet == 0);
            kind = select_unpredictable(programs, Kind::Program, Kind::Read);
            part = select_unpredictable(programs, 2 * command.programs + 1, 2 * command.reads);
            page += select_unpredictable(programs, command.programs, 0);
            command.suspensions = select_unpredictable(programs, 0, command.suspensions);
            command.programs += u32::from(programs);
            command.reads += u32::from(!programs);
        }
        let command = &self.commands[id];
        let Command { sequence, transfers, .. } = *command;
        let starts_last = part == command.last_part();
        if command.copies == 0 || !command.may_go_on() {
            self.pop(die, group);
        }
        if matches!(kind, Kind::Read | Kind::OobRead) {
            self.read_starts(id, now);
        } else if starts_last {
            self.commands[id].is_started = true;
            if self.commands[id].on_start != NONE {
                self.let_go_at_start(id, now);
            }
        }
        let of_cell = if self.all_take_one_time { 0 } else { self.pages_per_block.remainder(page) % self.bits };
        let begin = &self.begins[kind as usize][of_cell as usize];
        let state = &mut self.dies[die];
        (state.main, state.part) = (id, part);
        (state.stage, state.array) = (begin.stage, begin.array);
        state.busy_since = state.busy_since.min(now);
        let held = begin.held + begin.per_page * u64::from(transfers - 1);
        let Begin { lead, is_command, .. } = *begin;
        self.lanes[die] = Lane { ends: NEVER, since: now + lead, held, sequence, is_command };
        if begin.stage == Stage::Array {
            self.erase_begins(die, now);
        }
    }

    /// The array erases at once, without the bus.
    #[cold]
    fn erase_begins(&mut self, die: usize, now: u64) {
        self.lanes[die].since = NEVER;
        self.works(die, now, self.dies[die].array);
        if self.times.suspends_erases {
            self.decide_at(die, now);
        }
    }

    /// The array of a program or an erase works from a time on.
    #[inline(always)]
    pub(super) fn works(&mut self, die: usize, from: u64, array: u64) {
        let state = &mut self.dies[die];
        (state.stage, state.runs_from, state.ends) = (Stage::Array, from, from + array);
        self.lanes[die].ends = from + array;
    }

    /// A read starts: an erase that waits for it waits for one thing less.
    #[inline(always)]
    fn read_starts(&mut self, id: u32, now: u64) {
        let Command { from, generation, .. } = self.commands[id];
        let state = &mut self.in_block[from as usize];
        if state.generation == generation {
            state.reads -= 1;
        } else {
            self.read_before_erase_starts(from, generation, now);
        }
    }

    fn read_before_erase_starts(&mut self, from: u32, generation: u32, now: u64) {
        let mut erase = self.in_block[from as usize].erase;
        while self.commands[erase].generation != generation {
            erase = self.commands[erase].before; // issued later than the read, so it can't have started
        }
        self.got(erase, now);
    }

    /// One thing that a command waited for has come.
    #[inline(always)]
    fn got(&mut self, id: u32, now: u64) {
        if self.commands.met(id) && !self.commands[id].is_queued {
            self.may_go(id, now);
        }
    }

    fn may_go(&mut self, id: u32, now: u64) {
        let command = &self.commands[id];
        if command.copies == 0 || command.programs < command.copies {
            self.queue(id, now);
        }
    }

    #[cold]
    fn let_go_at_start(&mut self, id: u32, now: u64) {
        let mut edge = std::mem::replace(&mut self.commands[id].on_start, NONE);
        while edge != NONE {
            let (waiting, _, next) = self.commands.cut(edge);
            self.got(waiting, now);
            edge = next;
        }
    }

    /// What waited for the end of a part has it now.
    fn let_go_at_end(&mut self, id: u32, part: u32, now: u64) {
        let mut edge = std::mem::replace(&mut self.commands[id].on_end, NONE);
        self.commands[id].awaited = NONE;
        while edge != NONE {
            let (waiting, of, next) = self.commands.cut(edge);
            if of == part {
                self.got(waiting, now);
            } else {
                self.commands.mend(id, of, waiting);
            }
            edge = next;
        }
    }

    /// Works out what happens in a channel next: a command ends, its bus is granted, a die decides.
    #[inline(always)]
    pub(super) fn plan<const LOOKS: bool>(&mut self, channel: usize, now: u64) {
        let first = channel * self.dies_per_channel;
        let (mut ends_at, mut since) = (NEVER, NEVER);
        for die in first..first + self.dies_per_channel {
            let lane = &self.lanes[die];
            ends_at = ends_at.min(lane.ends);
            since = since.min(lane.since);
        }
        let bus = &self.channels[channel];
        let mut acts_at = since.max(bus.free_at);
        if bus.due != 0 {
            acts_at = now;
        }
        if LOOKS {
            acts_at = acts_at.min(self.looks_at(channel));
        }
        // Twice the time; what stands for never remains what it is.
        self.keys.set(channel, ends_at.rotate_left(1).min(acts_at << 1 | 1));
    }

    /// Gives a bus that is free to the die that has waited longest, ties to the earlier operation, unless commands or data are
    /// preferred.
    #[inline(always)]
    fn grant(&mut self, channel: usize, now: u64) {
        let first = channel * self.dies_per_channel;
        let dies = first..first + self.dies_per_channel;
        let chosen = if self.times.bus_order == BusOrder::FirstCome {
            self.oldest(dies, now, |_| true)
        } else {
            self.oldest_preferred(dies, now)
        };
        let Some(die) = chosen else { return };
        let (lane, bus) = (&mut self.lanes[die], &mut self.channels[channel]);
        let free_at = now + lane.held;
        (bus.free_at, bus.busy) = (free_at, bus.busy + lane.held);
        lane.since = NEVER;
        let Die { stage, array, main, .. } = self.dies[die];
        if stage == Stage::Last {
            lane.ends = free_at;
        } else if stage == Stage::Load {
            self.works(die, free_at, array);
            if self.times.suspends_erases && self.waiting_read(die) {
                self.decide_later(die, free_at + self.times.run_least);
            }
        } else {
            debug_assert_eq!(stage, Stage::ReadCommand, "an array needs no bus");
            let command = &self.commands[main];
            let data = if command.kind == Kind::OobRead { self.times.spare } else { self.times.data };
            (lane.since, lane.held, lane.is_command) = (free_at + array, data * u64::from(command.transfers), false);
            self.dies[die].stage = Stage::Last;
        }
    }

    /// The one of some dies that has waited longest for the bus, ties to the earlier operation, among those that `may` have it.
    #[inline(always)]
    fn oldest(&self, dies: Range<usize>, now: u64, may: impl Fn(&Lane) -> bool) -> Option<usize> {
        let (mut chosen, mut since, mut sequence) = (0, NEVER, NEVER);
        for die in dies {
            // Without a branch: which die is first is a coin toss.
            let lane = &self.lanes[die];
            let earlier = (lane.since < since) | ((lane.since == since) & (lane.sequence < sequence));
            let better = may(lane) & earlier;
            chosen = select_unpredictable(better, die, chosen);
            since = select_unpredictable(better, lane.since, since);
            sequence = select_unpredictable(better, lane.sequence, sequence);
        }
        (since <= now).then_some(chosen)
    }

    /// The same where commands or data come first.
    #[inline(never)]
    fn oldest_preferred(&self, dies: Range<usize>, now: u64) -> Option<usize> {
        let commands = self.times.bus_order == BusOrder::CommandsFirst;
        let preferred = self.oldest(dies.clone(), now, |lane| lane.is_command == commands);
        preferred.or_else(|| self.oldest(dies, now, |_| true))
    }

    /// The command of one of a channel's dies ends; answers whether another one ends at the same time. To be followed by
    /// [`Self::plan`].
    #[inline(always)]
    pub(super) fn command_ends(&mut self, channel: usize, now: u64) -> bool {
        let first = channel * self.dies_per_channel;
        let (mut die, mut count) = (first, 0);
        for other in first..first + self.dies_per_channel {
            let ends = self.lanes[other].ends == now;
            die = select_unpredictable(ends, other, die);
            count += u32::from(ends);
        }
        debug_assert!(count > 0, "a command ends now");
        self.lanes[die].ends = NEVER;
        let state = &mut self.dies[die];
        let (id, part) = (std::mem::replace(&mut state.main, NONE), state.part);
        if state.suspended == NONE {
            state.busy += now - state.busy_since;
            state.busy_since = NEVER;
        }
        self.ended(id, part, now);
        let state = &self.dies[die];
        if !state.heads.is_empty() || state.suspended != NONE {
            self.channels[channel].due |= state.bit;
        }
        count > 1
    }

    #[inline(always)]
    fn ended(&mut self, id: u32, part: u32, now: u64) {
        let Command { kind, block, copies, page, block_generation, awaited, .. } = self.commands[id];
        let is_last = part + 1 >= 2 * copies;
        if kind == Kind::Program || kind == Kind::Copies {
            // Without a branch: the parts of runs read and program in turn.
            let programs = (kind == Kind::Program) | (part % 2 == 1);
            let state = &mut self.in_block[block as usize];
            let is_latest = programs & is_last & (state.program == id);
            state.program = select_unpredictable(is_latest, NONE, state.program);
            // A block that was erased since may be programmed there again.
            let ends = programs & (state.generation == block_generation);
            self.ends_pending(page + part / 2, ends);
        } else if kind == Kind::Erase {
            let state = &mut self.in_block[block as usize];
            state.erase = if state.erase == id { NONE } else { state.erase };
        }
        if part >= awaited {
            self.let_go_at_end(id, part, now);
        }
        if is_last {
            let Command { die, slot, .. } = self.commands[id];
            self.request_got(slot, now);
            self.dies[die as usize].issued -= 1;
            self.commands.remove(id);
        }
    }
}
