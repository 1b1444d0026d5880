//! Programs: pages that units collect, word lines in two passes, and parity.

use super::Chips;
use super::command::{Command, Group, Kind, NONE};
use super::die::InBlock;
use super::places::Place;
use super::ram::{InRam, Waiter};
use crate::engine::erase_dependencies::EraseDependency;
use crate::engine::{Observer, OpClass};
use flashwright_nand::{BlockId, Geometry, Ppn};

/// A program to be issued.
struct Unit {
    block: u32,
    die: u32,
    die_in_block: u32,
    row: u32,
    /// The first page, or [`NONE`] for parity.
    first: u32,
    /// Mapping units.
    pages: u32,
    group: Group,
    class: OpClass,
    slot: u32,
    /// Its pages that take room in RAM.
    held: InRam,
    is_slc: bool,
    page_of_cell: u32,
}

impl<W: Observer> Chips<W> {
    /// Adds a page to those that its unit collects. Answers the command, which is issued by [`Self::completes`].
    pub(super) fn program(&mut self, class: OpClass, place: &Place, waits_for: u32, now: u64) -> u32 {
        let group = Group::of_class(class);
        let mut id = self.collecting[place.block as usize];
        if id != NONE && self.commands[id].first != place.unit_first {
            // The rest of that unit was programmed without time passing.
            self.drop_collected(place.block, now);
            id = NONE;
        }
        if id == NONE {
            let first = place.unit_first;
            // It is work for its die only once the unit is full.
            id = self.commands.add(Command {
                kind: Kind::Program,
                group,
                class,
                die: place.die,
                first,
                ..Command::NOTHING
            });
            self.begins_pending(first);
            if place.row == 0
                && let Some(errors) = &mut self.errors
            {
                errors.programmed(BlockId(place.block), now);
            }
            self.collecting[place.block as usize] = id;
        }
        self.commands.after_end(waits_for, id);
        if group == Group::Writes {
            if self.ram.is_there() {
                self.commands[id].held.host += 1;
                self.commands[id].unmet += u32::from(self.ram.takes(Waiter::Command(id)));
            }
            let command = &mut self.commands[id];
            if group < command.group {
                (command.group, command.class) = (group, class);
            }
        }
        id
    }

    /// A page was the last of its unit: the unit's program is issued.
    pub(super) fn completes(
        &mut self,
        id: u32,
        place: &Place,
        is_slc: bool,
        slot: u32,
        from: Option<(Place, bool)>,
        now: u64,
    ) {
        self.collecting[place.block as usize] = NONE;
        self.dies[place.die as usize].issued += 1;
        let Command { group, class, held, .. } = self.commands[id];
        let Place { block, die, die_in_block, row, page_of_cell, .. } = *place;
        let (first, pages) = (place.unit_first, place.unit);
        let unit = Unit { block, die, die_in_block, row, first, pages, group, class, slot, held, is_slc, page_of_cell };
        if let Some((from, is_slc)) = from {
            self.turn_into_copyback(id, &from, is_slc);
        }
        self.program_unit(id, &unit, now);
        if let Some(parity) = self.places.parity_after(place) {
            let id = self.add(Command { kind: Kind::Program, group, class, die: parity.die, ..Command::NOTHING });
            // Parity of pages that are not there yet can't be computed.
            let rooms = [(held.host, &mut self.ram), (held.copies, &mut self.copies)];
            for (_, room) in rooms.into_iter().filter(|(pages, _)| *pages > 0) {
                self.commands[id].unmet += u32::from(room.waits(Waiter::Command(id)));
            }
            let slot = NONE;
            let (die, die_in_block) = (parity.die, parity.die_in_block);
            let unit = Unit { die, die_in_block, first: NONE, slot, held: InRam::default(), ..unit };
            self.program_unit(id, &unit, now);
        }
    }

    /// A page that cleaning copies has room in RAM from the time of its read, or, if `read` names none because RAM has it, from
    /// now on.
    #[inline(always)]
    pub(super) fn holds_copy(&mut self, id: u32, read: u32, now: u64) {
        self.commands[id].held.copies += u32::from(self.copies.is_there());
        if read == NONE {
            self.commands[id].unmet += u32::from(self.copy_comes(id, now));
        }
    }

    /// A page that cleaning moves takes room, and is prepared once it has it; answers whether `id` waits for one thing more.
    #[inline(always)]
    pub(super) fn copy_comes(&mut self, id: u32, now: u64) -> bool {
        if self.copies.takes(Waiter::Command(id)) {
            return true;
        }
        let waits_for_room = self.copies.keeps_waiting(Waiter::Command(id));
        !waits_for_room && self.copy_firmware.is_there() && self.prepare(id, 1, now)
    }

    /// A command programs a page that replaces one of `block`.
    #[inline(always)]
    pub(super) fn replaces(&mut self, block: BlockId, id: u32, unit_first: u32) {
        self.erase_dependencies.add(block, EraseDependency { unit_first, id, born: self.commands[id].born });
    }

    /// The program that puts the pages of a replacement on flash; [`NONE`] if that has ended, or has yet to be issued: then
    /// RAM holds them, which survives a power cut.
    pub(super) fn program_of(&self, replacement: &EraseDependency, geometry: &Geometry) -> u32 {
        let EraseDependency { unit_first, id, born } = *replacement;
        let command = &self.commands[id];
        if command.born == born && command.is_last {
            return id;
        }
        if !self.places.two_pass(false) || !self.is_pending(unit_first) {
            return NONE;
        }
        let place = self.places.of(Ppn(unit_first), false, geometry);
        let mut second = self.in_block[self.place_index(place.block, place.die_in_block) as usize].program;
        while second != NONE {
            let Command { first, is_last, .. } = self.commands[second];
            if first == unit_first {
                return if is_last { second } else { NONE };
            }
            second = self.program_before(second);
        }
        NONE
    }

    /// The program of the same block and die before another, if it has not ended.
    pub(super) fn program_before(&self, id: u32) -> u32 {
        let Command { before, sequence, .. } = self.commands[id];
        // What was issued later in the place of an ended command is not before it.
        if before != NONE && self.commands[before].sequence < sequence { before } else { NONE }
    }

    /// A block takes no further page, though it has room from `next` on: what its unit has collected is programmed, the rest of the
    /// unit padded, and word lines that wait for the next row have their second pass.
    pub fn close(&mut self, now: u64, next: Ppn, geometry: &Geometry) {
        let block = geometry.block_of(next);
        let pages_from = |first: u32, unit: u32| unit.min(next.0 - first);
        let id = self.collecting[block.index()];
        if id != NONE {
            let first = self.commands[id].first;
            let unit = self.places.of(Ppn(first), false, geometry).unit;
            let last = self.places.of(Ppn(first + unit - 1), false, geometry);
            let last = Place { unit: pages_from(first, unit), ..last };
            self.completes(id, &last, false, NONE, None, now);
        }
        for die_in_block in 0..self.places.dies_of_block() {
            let place = self.place_index(block.0, die_in_block);
            let state = &mut self.in_block[place as usize];
            let InBlock { second_first: first, second_held: held, second_die: die, .. } = *state;
            if first == NONE {
                continue;
            }
            (state.second_first, state.second_held) = (NONE, InRam::default());
            let Place { block, row, page_of_cell, unit, .. } = self.places.of(Ppn(first), false, geometry);
            let (group, class, pages) = (Group::Writes, OpClass::HostWrite, pages_from(first, unit));
            let (slot, is_slc) = (NONE, false);
            let last =
                Unit { block, die, die_in_block, row, first, pages, group, class, slot, held, is_slc, page_of_cell };
            self.second_pass(&last, place, now);
        }
    }

    fn turn_into_copyback(&mut self, id: u32, from: &Place, is_slc: bool) {
        let read = self.times.read_of(from.page_of_cell, is_slc);
        let reads_in = self.place_index(from.block, from.die_in_block);
        self.waits_to_read(id, reads_in, from.unit_first);
        let command = &mut self.commands[id];
        (command.kind, command.array) = (Kind::Copyback, read);
        self.figures.copybacks += 1;
    }

    /// A unit is complete: its program, or its first pass and the second pass of the row before.
    fn program_unit(&mut self, id: u32, unit: &Unit, now: u64) {
        let place = self.place_index(unit.block, unit.die_in_block);
        if !self.places.two_pass(unit.is_slc) {
            self.issue_program(id, unit, place, self.times.program_of(unit.page_of_cell, unit.is_slc), true, now);
            return;
        }
        self.issue_program(id, unit, place, self.times.first_pass, false, now);
        let InBlock { second_first, second_held, .. } = self.in_block[place as usize];
        // A row of parity has no first page of its own, so its row tells.
        if unit.row > 0 {
            let before = Unit { first: second_first, held: second_held, slot: NONE, ..*unit };
            self.second_pass(&before, place, now);
        }
        let state = &mut self.in_block[place as usize];
        (state.second_first, state.second_die, state.second_held) = (unit.first, unit.die, unit.held);
        if self.places.is_last_row(unit.row, unit.is_slc) {
            (state.second_first, state.second_held) = (NONE, InRam::default());
            let last = Unit { slot: NONE, ..*unit };
            self.second_pass(&last, place, now);
        }
    }

    fn second_pass(&mut self, unit: &Unit, place: u32, now: u64) {
        let id = self.add(Command {
            kind: Kind::Program,
            group: unit.group,
            class: unit.class,
            die: unit.die,
            ..Command::NOTHING
        });
        self.issue_program(id, unit, place, self.times.program_of(0, false), true, now);
    }

    fn issue_program(&mut self, id: u32, unit: &Unit, place: u32, array: u64, is_last: bool, now: u64) {
        let sequence = self.next_sequence();
        let data = u64::from(unit.pages) * self.times.data;
        let state = &mut self.in_block[place as usize];
        let InBlock { program: before, erase, generation, .. } = *state;
        state.program = id;
        let command = &mut self.commands[id];
        let copies = command.kind == Kind::Copyback;
        command.sequence = sequence;
        command.array += array;
        command.data = if copies { 0 } else { data };
        (command.place, command.before, command.first) = (place, before, unit.first);
        (command.pages, command.two_pass) = (unit.pages, self.places.two_pass(unit.is_slc));
        command.place_generation = generation;
        (command.held, command.is_last) = (if is_last { unit.held } else { InRam::default() }, is_last);
        if unit.slot != NONE {
            command.slot = unit.slot;
            self.slots[unit.slot as usize].left += 1;
        }
        self.figures.units_transferred += if copies { 0 } else { u64::from(unit.pages) };
        match unit.first {
            NONE => self.figures.parity_programs += 1,
            _ => self.figures.array_programs += u64::from(!copies),
        }
        self.commands.after_end(erase, id);
        if self.times.cache_program {
            self.commands.after_start(before, id);
        } else {
            self.commands.after_end(before, id);
        }
        self.issued(id, now);
    }
}
