//! What happens at an event: stages end, dies decide, buses are granted.

use super::Chips;
use super::bus::Wish;
use super::command::{Command, Group, Kind, NONE};
use super::die::{Active, Stage};
use super::events::Event;
use super::ram::{InRam, Waiter};
use crate::engine::Observer;

impl<W: Observer> Chips<W> {
    /// A command waits for nothing but its die.
    pub(super) fn ready(&mut self, id: u32, now: u64) {
        let Command { group, sequence, die, is_dropped, .. } = self.commands[id];
        if is_dropped {
            self.drop_command(id, now);
            return;
        }
        self.dies[die as usize].waiting.push(group, sequence, id);
        self.due.decide(die as usize, now);
    }

    /// A unit was erased before it was full: its pages leave the RAM.
    #[cold]
    fn drop_command(&mut self, id: u32, now: u64) {
        let held = self.commands[id].held;
        self.commands.remove(id);
        self.free_ram(held, now);
    }

    /// Pages leave the RAM: what waits for room may get it.
    #[inline(always)]
    pub(super) fn free_ram(&mut self, held: InRam, now: u64) {
        if held != InRam::NOTHING {
            self.free_pages(held, now);
        }
    }

    fn free_pages(&mut self, held: InRam, now: u64) {
        self.ram.frees(held.host);
        self.copies.frees(held.copies);
        while let Some((waiter, _)) = self.ram.admits() {
            match waiter {
                Waiter::Request(slot) => self.request_got(slot, now),
                Waiter::Command(id) => self.got(id, now),
            }
        }
        while let Some((Waiter::Command(id), pages)) = self.copies.admits() {
            if pages == 0 || !self.copy_firmware.is_there() {
                self.got(id, now);
            } else if !self.prepare(id, pages, now) {
                self.commands[id].unmet -= 1; // it waits for other pages there
            }
        }
    }

    /// One thing that a command waited for has come.
    #[inline(always)]
    fn got(&mut self, id: u32, now: u64) {
        if self.commands.met(id) {
            self.ready(id, now);
        }
    }

    /// Has the firmware prepare pages that cleaning moves; answers whether their command waits for one thing more.
    #[cold]
    pub(super) fn prepare(&mut self, id: u32, pages: u32, now: u64) -> bool {
        let (waits, look_at) = self.copy_firmware.prepares(id, pages, now);
        if let Some(at) = look_at {
            self.events.push(Event::prepared(at));
        }
        waits
    }

    /// Commands whose pages are prepared go on.
    #[cold]
    pub(super) fn go_on_prepared(&mut self, now: u64) {
        loop {
            match self.copy_firmware.prepared(now) {
                Ok(id) => self.got(id, now),
                Err(None) => return,
                Err(Some(at)) => return self.events.push(Event::prepared(at)),
            }
        }
    }

    /// Makes a die decide at `at`, which is not before `now`.
    #[inline(always)]
    fn decide_by(&mut self, die: usize, at: u64, now: u64) {
        if at == now {
            self.due.decide(die, now);
        } else {
            self.decide_later(die, at);
        }
    }

    #[cold]
    fn decide_later(&mut self, die: usize, at: u64) {
        let state = &mut self.dies[die];
        if at < state.decides_at {
            state.decides_at = at;
            self.events.push(Event::looks_again(at, die));
        }
    }

    #[cold]
    pub(super) fn look_again(&mut self, die: usize, now: u64) {
        if self.dies[die].decides_at == now {
            self.dies[die].decides_at = u64::MAX;
            self.due.decide(die, now);
        }
    }

    pub(super) fn decide(&mut self, die: usize, now: u64) {
        let state = &mut self.dies[die];
        let until = state.suspends_until.max(self.held_until);
        if now < until {
            self.decide_later(die, until);
            return;
        }
        match state.main {
            None if state.suspended.is_some() => self.goes_on_suspended(die, now),
            None => {
                if let Some(group) = self.choice(die)
                    && self.has_power(die, group)
                {
                    let id = self.take(die, group);
                    self.start(id, false, now);
                }
            }
            Some(main) => {
                let suspends = main.stage == Stage::Array && self.suspends(die, main, now);
                if !suspends && self.dies[die].behind.is_none() {
                    self.overlap(die, main, now);
                }
            }
        }
    }

    /// The group whose oldest command the die takes next.
    #[inline(always)]
    fn choice(&self, die: usize) -> Option<Group> {
        self.order.next(die, self.dies[die].waiting.heads())
    }

    /// Whether the oldest command of a group may draw its power; else the die tries again when another command has ended.
    #[inline(always)]
    fn has_power(&mut self, die: usize, group: Group) -> bool {
        !self.power.is_limited() || self.takes_power(die, group)
    }

    #[cold]
    fn takes_power(&mut self, die: usize, group: Group) -> bool {
        let id = self.dies[die].waiting.first(group).expect("the group was chosen because it has a command");
        let Command { kind, array, .. } = self.commands[id];
        let power = self.power.of(kind, array);
        let has = power == 0 || self.power.take(power, die);
        if has {
            self.commands[id].power = power;
        } else if self.commands[id].power == 0 {
            self.commands[id].power = u64::MAX; // counted
            self.figures.power_waits += 1;
        }
        has
    }

    #[inline(always)]
    fn take(&mut self, die: usize, group: Group) -> u32 {
        let state = &mut self.dies[die];
        self.order.taken(die, group, state.waiting.heads());
        state.waiting.pop(group).expect("the group was chosen because it has a command")
    }

    /// The oldest read that the host waits for.
    fn waiting_read(&self, die: usize) -> Option<u32> {
        self.dies[die].waiting.first(Group::Reads).filter(|id| self.commands[*id].kind == Kind::Read)
    }

    /// During a suspension: the next read, or the suspended command goes on.
    fn goes_on_suspended(&mut self, die: usize, now: u64) {
        if self.dies[die].served < self.passed_max && self.waiting_read(die).is_some() {
            self.dies[die].served += 1;
            let id = self.dies[die].waiting.pop(Group::Reads).expect("it was just looked at");
            self.start(id, false, now);
            return;
        }
        let id = self.dies[die].suspended.take().expect("the die is in a suspension");
        let Command { array, epoch, .. } = self.commands[id];
        let runs_from = now + self.times.resume;
        let ends = runs_from + array;
        self.dies[die].main = Some(Active { id, stage: Stage::Array, runs_from, ends });
        self.events.push(Event::ended(ends, epoch, id));
        self.due.decide(die, now);
    }

    /// Suspends the command in the array if a read of the host waits and the rules allow it; returns whether it did.
    fn suspends(&mut self, die: usize, main: Active, now: u64) -> bool {
        let may = match self.commands[main.id].kind {
            Kind::Program => self.times.suspends_programs,
            Kind::Erase => self.times.suspends_erases,
            Kind::Read | Kind::Copyback => false,
        };
        let spent = self.commands[main.id].suspensions >= self.times.suspensions_max;
        if !may || spent || self.dies[die].behind.is_some() || self.waiting_read(die).is_none() {
            return false;
        }
        let earliest = main.runs_from + self.times.run_least;
        if main.ends <= now.max(earliest) + self.times.suspend {
            return false; // its end comes sooner
        }
        if now < earliest {
            self.decide_later(die, earliest);
            return false;
        }
        let command = &mut self.commands[main.id];
        command.array = main.ends - now;
        command.suspensions += 1;
        command.epoch = command.epoch.wrapping_add(1);
        match command.kind {
            Kind::Erase => self.figures.erases_suspended += 1,
            _ => self.figures.programs_suspended += 1,
        }
        let state = &mut self.dies[die];
        (state.main, state.suspended, state.served) = (None, Some(main.id), 0);
        state.suspends_until = now + self.times.suspend;
        self.decide_by(die, now + self.times.suspend, now);
        true
    }

    /// Starts the next command beside the one that holds the die, where the chip can do both.
    fn overlap(&mut self, die: usize, main: Active, now: u64) {
        let kind = self.commands[main.id].kind;
        let wanted = match (main.stage, kind) {
            (Stage::Array, Kind::Program) if self.times.cache_program => Kind::Program,
            (Stage::DataOut, Kind::Read) if self.times.cache_read => Kind::Read,
            _ => return,
        };
        let in_suspension = self.dies[die].suspended.is_some();
        let group = if in_suspension { Some(Group::Reads) } else { self.choice(die) };
        let next = group.and_then(|group| self.dies[die].waiting.first(group).map(|id| (group, id)));
        let Some((group, id)) = next.filter(|(_, id)| self.commands[*id].kind == wanted) else { return };
        if in_suspension {
            if self.dies[die].served >= self.passed_max {
                return;
            }
            self.dies[die].served += 1;
        }
        if !self.has_power(die, group) {
            return;
        }
        self.take(die, group);
        match wanted {
            Kind::Program => self.figures.cached_programs += 1,
            _ => self.figures.cached_reads += 1,
        }
        self.start(id, true, now);
    }

    /// A command leaves its queue.
    fn start(&mut self, id: u32, behind: bool, now: u64) {
        let Command { kind, die, reads_in, generation, on_start, data, .. } = self.commands[id];
        let die = die as usize;
        let stage = if kind == Kind::Program { Stage::DataIn } else { Stage::Command };
        let active = Active::new(id, stage);
        let state = &mut self.dies[die];
        if behind {
            state.behind = Some(active);
        } else {
            state.main = Some(active);
        }
        state.busy_since = state.busy_since.min(now);
        if reads_in != NONE {
            self.read_starts(reads_in, generation, now);
        }
        self.commands[id].is_started = true;
        self.commands[id].on_start = NONE;
        self.let_go(on_start, now);
        if !self.times.pipelined {
            let held = self.times.command + data + self.commands[id].array;
            self.active(die, id).0.stage = Stage::DataOut;
            self.wish(id, false, held, now);
            return;
        }
        match (kind, self.times.command) {
            (Kind::Program, command) => self.wish(id, false, command + data, now),
            // A command that takes no time needs no bus.
            (_, 0) => self.begin_array(id, now),
            (_, command) => self.wish(id, true, command, now),
        }
    }

    /// A read starts: an erase that waits for it waits for one thing less.
    fn read_starts(&mut self, reads_in: u32, generation: u32, now: u64) {
        let state = &mut self.in_block[reads_in as usize];
        if state.generation == generation {
            state.reads -= 1;
            return;
        }
        let mut erase = state.erase;
        while self.commands[erase].generation != generation {
            erase = self.commands[erase].before; // issued later than the read, so it can't have started
        }
        if self.commands.met(erase) {
            self.ready(erase, now);
        }
    }

    /// What waited for a command has it now.
    #[inline(always)]
    fn let_go(&mut self, edge: u32, now: u64) {
        if edge != NONE {
            self.let_all_go(edge, now);
        }
    }

    fn let_all_go(&mut self, mut edge: u32, now: u64) {
        while edge != NONE {
            let (next, met) = self.commands.follow(edge);
            if let Some(id) = met {
                self.ready(id, now);
            }
            edge = next;
        }
    }

    #[inline(always)]
    fn wish(&mut self, id: u32, is_command: bool, held: u64, now: u64) {
        let Command { die, sequence, .. } = self.commands[id];
        let channel = self.places.channel_of(die) as usize;
        let bus = &mut self.buses[channel];
        bus.wishes.push(Wish { since: now, sequence, id, is_command, held });
        if bus.free_at <= now {
            self.due.grant(channel, now);
        } else if !bus.wakes {
            bus.wakes = true;
            self.events.push(Event::bus_free(bus.free_at, channel));
        }
    }

    /// A bus is free from now on.
    #[inline(always)]
    pub(super) fn bus_freed(&mut self, channel: usize, now: u64) {
        let bus = &mut self.buses[channel];
        bus.wakes = false;
        if !bus.wishes.is_empty() {
            self.due.grant(channel, now);
        }
    }

    pub(super) fn grant(&mut self, channel: usize, now: u64) {
        let bus = &mut self.buses[channel];
        if bus.free_at > now {
            return; // it was just given to another
        }
        let Some(wish) = bus.take(self.times.bus_order) else { return };
        let free_at = now + wish.held;
        bus.free_at = free_at;
        bus.busy += wish.held;
        let Command { kind, die, array, epoch, .. } = self.commands[wish.id];
        if !self.times.pipelined {
            self.holds_for_all(wish.id, now);
        }
        let loads_apart = self.times.cache_program;
        let (active, _) = self.active(die as usize, wish.id);
        let array_follows = match active.stage {
            Stage::Command => true,
            Stage::DataIn => !loads_apart,
            _ => false,
        };
        if !array_follows {
            self.buses[channel].wakes = true;
            self.events.push(Event::ended(free_at, epoch, wish.id));
            return;
        }
        // Nothing can come between the transfer and the array, so one event stands for both.
        (active.stage, active.runs_from, active.ends) = (Stage::Array, free_at, free_at + array);
        self.events.push(Event::ended(free_at + array, epoch, wish.id));
        let bus = &mut self.buses[channel];
        bus.wakes = !bus.wishes.is_empty();
        if bus.wakes {
            self.events.push(Event::bus_free(free_at, channel));
        }
        if kind != Kind::Read && self.times.suspends_erases && self.waiting_read(die as usize).is_some() {
            self.decide_by(die as usize, free_at + self.times.run_least, now);
        }
    }

    /// Without pipelining a command holds the bus for all of its time: this says when its array works.
    #[cold]
    fn holds_for_all(&mut self, id: u32, now: u64) {
        let Command { kind, die, array, data, .. } = self.commands[id];
        let (before, command) = (if kind == Kind::Read { 0 } else { data }, self.times.command);
        let (active, _) = self.active(die as usize, id);
        active.runs_from = now + command + before;
        active.ends = active.runs_from + array;
    }

    /// The command in a die, and whether it overlaps another.
    fn active(&mut self, die: usize, id: u32) -> (&mut Active, bool) {
        let state = &mut self.dies[die];
        match (&mut state.main, &mut state.behind) {
            (Some(main), _) if main.id == id => (main, false),
            (_, Some(behind)) if behind.id == id => (behind, true),
            _ => unreachable!("events are of commands in the die"),
        }
    }

    pub(super) fn stage_over(&mut self, event: Event, now: u64) {
        let id = event.id();
        let Command { die, epoch, kind, .. } = self.commands[id];
        if epoch != event.epoch() {
            return; // it was suspended
        }
        let (active, is_behind) = self.active(die as usize, id);
        let stage = active.stage;
        if stage == Stage::DataIn && is_behind {
            active.stage = Stage::Loaded;
        }
        if stage != Stage::Array {
            self.bus_freed(self.places.channel_of(die) as usize, now);
        }
        match stage {
            Stage::DataIn if is_behind => {}
            Stage::DataIn => self.begin_array(id, now),
            Stage::Array if kind == Kind::Read => {
                if is_behind {
                    self.active(die as usize, id).0.stage = Stage::Sensed;
                } else {
                    self.put_out(id, now);
                }
            }
            Stage::Array | Stage::DataOut => self.leave(die as usize, id, now),
            Stage::Command => unreachable!("its event is that of its array"),
            Stage::Loaded | Stage::Sensed => unreachable!("these wait for another command"),
        }
    }

    fn begin_array(&mut self, id: u32, now: u64) {
        let Command { die, array, epoch, kind, .. } = self.commands[id];
        let (active, _) = self.active(die as usize, id);
        (active.stage, active.runs_from, active.ends) = (Stage::Array, now, now + array);
        self.events.push(Event::ended(now + array, epoch, id));
        if kind != Kind::Read && (self.times.suspends_erases || self.times.cache_program) {
            self.due.decide(die as usize, now);
        }
    }

    /// The page is in the register and goes out.
    fn put_out(&mut self, id: u32, now: u64) {
        let Command { die, data, .. } = self.commands[id];
        self.active(die as usize, id).0.stage = Stage::DataOut;
        self.wish(id, false, data, now);
        if self.times.cache_read {
            self.due.decide(die as usize, now);
        }
    }

    /// The command that holds the die ends.
    fn leave(&mut self, die: usize, id: u32, now: u64) {
        let state = &mut self.dies[die];
        let array_from = state.main.map_or(0, |main| main.runs_from);
        state.main = state.behind.take();
        match state.main {
            None if state.suspended.is_none() => {
                state.busy += now - state.busy_since;
                state.busy_since = u64::MAX;
            }
            None => {}
            Some(next) => match next.stage {
                Stage::Loaded => self.begin_array(next.id, now),
                Stage::Sensed => self.put_out(next.id, now),
                _ => {}
            },
        }
        self.tell(id, array_from, now);
        self.ended(id, now);
        self.due.decide(die, now);
    }

    fn ended(&mut self, id: u32, now: u64) {
        let Command {
            kind, die, place, first, is_last, place_generation, held, slot, on_end, first_on_end, power, ..
        } = self.commands[id];
        if power > 0 {
            for die in self.power.give_back(power) {
                self.due.decide(die as usize, now);
            }
        }
        if matches!(kind, Kind::Program | Kind::Copyback) {
            let state = &mut self.in_block[place as usize];
            if state.program == id {
                state.program = NONE;
            }
            // A block that was erased since may collect another unit there.
            if is_last && first != NONE && state.generation == place_generation {
                self.ends_pending(first);
            }
        }
        if kind == Kind::Erase {
            let state = &mut self.in_block[place as usize];
            state.erase = if state.erase == id { NONE } else { state.erase };
        }
        if first_on_end != NONE {
            (self.commands[id].on_end, self.commands[id].first_on_end) = (NONE, NONE);
            self.got(first_on_end, now);
            self.let_go(on_end, now);
        }
        self.free_ram(held, now);
        if slot != NONE {
            self.request_got(slot, now);
        }
        self.dies[die as usize].issued -= 1;
        self.commands.remove(id);
    }
}
