//! From the operations of a request to commands.

use super::Chips;
use super::command::{Command, Group, Kind, NONE, is_copy_of_cleaning};
use super::die::InBlock;
use super::places::Place;
use super::replacing::Replacement;
use flashwright_ftl::{Flash, FlashOp, OpKind};
use flashwright_nand::{BlockId, Geometry, Ppn};

/// A program that supersedes a page: until it has ended, the old page is the only one on flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Superseded {
    /// The position of the program in the list of operations.
    pub at: u32,
    /// The block of the page that it supersedes.
    pub block: BlockId,
}

/// Who waits for the commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaits {
    /// A request: if RAM takes what it writes, it waits only for what it reads and for room.
    Request,
    /// Work that no request waits for: it is over when all its commands are.
    Work,
}

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
    slot: u32,
    host_pages: u32,
    is_slc: bool,
    page_of_cell: u32,
}

impl Chips {
    /// Issues the operations of a request at `now` and names the slot under which it will complete, `least` later at the
    /// earliest. All times are in nanoseconds. Copies must be logged one by one.
    pub fn issue(&mut self, now: u64, least: u64, ops: &[FlashOp], awaits: Awaits, flash: &Flash) -> u32 {
        self.issue_superseding(now, least, ops, &[], awaits, flash)
    }

    /// As [`Self::issue`]; `superseded` names the blocks in which the programs made pages invalid, by position. Where RAM does not
    /// keep written data through a power cut, an erase of such a block waits for the programs issued before it. Pages
    /// that cleaning copies are found in `ops` itself.
    pub fn issue_superseding(
        &mut self,
        now: u64,
        least: u64,
        ops: &[FlashOp],
        mut superseded: &[Superseded],
        awaits: Awaits,
        flash: &Flash,
    ) -> u32 {
        let geometry = flash.geometry();
        let slot = self.new_slot(now + least);
        let mut of_ops = std::mem::take(&mut self.of_ops);
        of_ops.clear();
        let waits_for_reads_only = awaits == Awaits::Request && self.ram.is_there();
        let (mut host_pages, mut joined) = (0, None);
        for (at, op) in ops.iter().enumerate() {
            debug_assert!(op.copies == 0, "copies are logged one by one");
            let block = geometry.block_of(op.ppn);
            let is_slc = flash.is_slc(block);
            let group = Group::of(op);
            let place = self.places.of(op.ppn, is_slc, geometry);
            let waits_for =
                at.checked_sub(op.after as usize).filter(|_| op.after > 0).map_or(NONE, |earlier| of_ops[earlier]);
            let awaited_by = if waits_for_reads_only && group != Group::Reads { NONE } else { slot };
            let id = match op.kind {
                OpKind::Read | OpKind::OobRead => {
                    let copied = self.times.copyback && self.copies_back(op, ops.get(at + 1), geometry);
                    if copied {
                        NONE // its program does both
                    } else {
                        self.read(op, group, place, is_slc, waits_for, awaited_by, &mut joined, now)
                    }
                }
                OpKind::Program => {
                    host_pages += u32::from(group == Group::Writes);
                    let read = at.checked_sub(1).map(|before| &ops[before]);
                    let source = read.filter(|read| self.times.copyback && self.copies_back(read, Some(op), geometry));
                    let from = source.map(|read| self.places.of(read.ppn, is_slc, geometry));
                    let awaited_by = if waits_for_reads_only { NONE } else { slot };
                    let id = self.program(group, place, is_slc, waits_for, awaited_by, from, now);
                    if let Some(read) = read.filter(|read| is_copy_of_cleaning(read, Some(op))) {
                        self.replaces(geometry.block_of(read.ppn), id, place.unit_first);
                    }
                    while let [Superseded { at: of, block }, rest @ ..] = superseded
                        && *of as usize <= at
                    {
                        if *of as usize == at && !self.ram.is_there() {
                            self.replaces(*block, id, place.unit_first);
                        }
                        superseded = rest;
                    }
                    // What is in RAM need not be awaited.
                    if self.ram.is_there() { NONE } else { id }
                }
                OpKind::Erase => self.erase(group, place, waits_for, awaited_by, flash, now),
            };
            of_ops.push(id);
        }
        self.of_ops = of_ops;
        if host_pages > 0 && self.ram.is_there() && !self.ram.takes(slot, host_pages) {
            self.slots[slot as usize].left += 1;
        }
        if self.slots[slot as usize].left == 0 {
            self.complete(slot);
        }
        slot
    }

    /// Whether a read and the program after it are a copy within a plane.
    fn copies_back(&self, read: &FlashOp, program: Option<&FlashOp>, geometry: &Geometry) -> bool {
        let plane = |op: &FlashOp| geometry.plane_of(geometry.block_of(op.ppn));
        is_copy_of_cleaning(read, program) && program.is_some_and(|program| plane(read) == plane(program))
    }

    fn place_index(&self, block: u32, die_in_block: u32) -> u32 {
        block * self.places.dies_of_block() + die_in_block
    }

    fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// A new command, which waits for one more thing until [`Self::issued`].
    fn add(&mut self, command: Command) -> u32 {
        if command.slot != NONE {
            self.slots[command.slot as usize].left += 1;
        }
        self.dies[command.die as usize].issued += 1;
        self.commands.add(Command { unmet: 1, ..command })
    }

    /// All that a command waits for is known.
    fn issued(&mut self, id: u32, now: u64) {
        if self.commands.met(id) {
            self.ready(id, now);
        }
    }

    #[inline(always)]
    fn is_pending(&self, first: u32) -> bool {
        self.in_ram[first as usize / 64] >> (first % 64) & 1 == 1
    }

    #[inline(always)]
    fn begins_pending(&mut self, first: u32) {
        self.in_ram[first as usize / 64] |= 1 << (first % 64);
    }

    #[inline(always)]
    pub(super) fn ends_pending(&mut self, first: u32) {
        self.in_ram[first as usize / 64] &= !(1 << (first % 64));
    }

    #[allow(clippy::too_many_arguments)] // one caller
    fn read(
        &mut self,
        op: &FlashOp,
        group: Group,
        place: Place,
        is_slc: bool,
        waits_for: u32,
        slot: u32,
        joined: &mut Option<(u32, OpKind, Group, u32)>,
        now: u64,
    ) -> u32 {
        if self.ram.is_there() && self.is_pending(place.unit_first) {
            self.figures.ram_reads += 1;
            return NONE;
        }
        let (array, data) = match op.kind {
            OpKind::OobRead => (self.times.oob_read, self.times.spare),
            _ => (self.times.read_of(place.page_of_cell, is_slc), self.times.data),
        };
        self.figures.units_transferred += u64::from(op.kind == OpKind::Read);
        let (extra_ns, transfers, is_lost) = self.errors_of_read(&place, is_slc, array, now);
        let (array, data) = (array + extra_ns, data * (1 + transfers));
        // Each of them is a read of the array.
        self.figures.array_reads += transfers;
        self.figures.units_transferred += transfers;
        if let Some((together, kind, of, id)) = *joined
            && (together, kind, of) == (place.read_together, op.kind, group)
            && waits_for == NONE
        {
            self.commands[id].data += data;
            self.commands[id].array = self.commands[id].array.max(array);
            if is_lost {
                self.rebuild(id, &place, group, slot, now);
            }
            return id;
        }
        let reads_in = self.place_index(place.block, place.die_in_block);
        let sequence = self.next_sequence();
        let read = Command { kind: Kind::Read, group, die: place.die, sequence, array, data, slot, ..Command::NOTHING };
        let id = self.add(read);
        self.figures.array_reads += 1;
        self.waits_to_read(id, reads_in, place.unit_first);
        self.commands.after_end(waits_for, id);
        self.issued(id, now);
        if is_lost {
            self.rebuild(id, &place, group, slot, now);
        }
        *joined = Some((place.read_together, op.kind, group, id));
        id
    }

    /// What errors add to the read of a page: time of the array, transfers, and whether it is lost.
    #[inline(always)]
    fn errors_of_read(&mut self, place: &Place, is_slc: bool, array: u64, now: u64) -> (u64, u64, bool) {
        let Some(errors) = &mut self.errors else { return (0, 0, false) };
        let block = BlockId(place.block);
        let outcome = errors.read(block, place.page_of_cell, is_slc, now, array);
        if outcome.reclaim {
            self.to_rewrite.push(block);
        }
        (outcome.extra_ns, u64::from(outcome.transfers), outcome.uncorrectable)
    }

    /// A page can't be corrected: once its read has ended, the other dies of its parity group are read. Without parity it is lost,
    /// and only counted.
    #[cold]
    fn rebuild(&mut self, failed: u32, place: &Place, group: Group, slot: u32, now: u64) {
        for (die, die_in_block) in self.places.others_in_group(place) {
            let sequence = self.next_sequence();
            let (array, data) = (self.times.read_of(place.page_of_cell, false), self.times.data);
            let reads_in = self.place_index(place.block, die_in_block);
            let id =
                self.add(Command { kind: Kind::Read, group, die, sequence, array, data, slot, ..Command::NOTHING });
            self.reads_in(id, reads_in);
            self.commands.after_end(failed, id);
            self.figures.rebuilding_reads += 1;
            self.figures.array_reads += 1;
            self.figures.units_transferred += 1;
            self.issued(id, now);
        }
    }

    /// A command reads a page: it waits for an erase of the block that was issued before, and for the page's program.
    fn waits_to_read(&mut self, id: u32, reads_in: u32, unit_first: u32) {
        let InBlock { erase, program, .. } = self.reads_in(id, reads_in);
        self.commands.after_end(erase, id);
        if !self.is_pending(unit_first) {
            return;
        }
        let mut earlier = program;
        while earlier != NONE {
            if self.commands[earlier].first == unit_first {
                self.commands.after_end(earlier, id);
                return;
            }
            earlier = self.program_before(earlier);
        }
    }

    /// A command counts among the reads of a block on a die, until it starts; answers what is under way there.
    #[inline(always)]
    fn reads_in(&mut self, id: u32, reads_in: u32) -> InBlock {
        let state = &mut self.in_block[reads_in as usize];
        state.reads += 1;
        (self.commands[id].reads_in, self.commands[id].generation) = (reads_in, state.generation);
        *state
    }

    /// Programs a page, or adds it to those that its unit collects. Answers the command.
    #[allow(clippy::too_many_arguments)] // one caller
    fn program(
        &mut self,
        group: Group,
        place: Place,
        is_slc: bool,
        waits_for: u32,
        slot: u32,
        from: Option<Place>,
        now: u64,
    ) -> u32 {
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
                die: place.die,
                first,
                unmet: 1,
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
            self.commands[id].host_pages += 1;
            self.commands[id].group = self.commands[id].group.min(Group::Writes);
        }
        if place.in_unit + 1 == place.unit {
            self.collecting[place.block as usize] = NONE;
            self.dies[place.die as usize].issued += 1;
            let Command { group, host_pages, .. } = self.commands[id];
            let Place { block, die, die_in_block, row, page_of_cell, .. } = place;
            let (first, pages) = (place.unit_first, place.unit);
            let unit =
                Unit { block, die, die_in_block, row, first, pages, group, slot, host_pages, is_slc, page_of_cell };
            if let Some(from) = from {
                self.turn_into_copyback(id, &from, is_slc);
            }
            self.program_unit(id, &unit, now);
            if let Some(parity) = self.places.parity_after(&place) {
                let id = self.add(Command { kind: Kind::Program, group, die: parity.die, ..Command::NOTHING });
                let slot = NONE;
                let (die, die_in_block) = (parity.die, parity.die_in_block);
                let unit = Unit { die, die_in_block, first: NONE, slot, host_pages: 0, ..unit };
                self.program_unit(id, &unit, now);
            }
        }
        id
    }

    /// A command programs a page that replaces one of `block`.
    #[inline(always)]
    fn replaces(&mut self, block: BlockId, id: u32, unit_first: u32) {
        self.replacing.add(block, Replacement { unit_first, id, born: self.commands[id].born });
    }

    /// The program that puts the pages of a replacement on flash; [`NONE`] if that has ended, or has yet to be issued: then
    /// RAM holds them, which survives a power cut.
    fn program_of(&self, replacement: &Replacement, geometry: &Geometry) -> u32 {
        let Replacement { unit_first, id, born } = *replacement;
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
    fn program_before(&self, id: u32) -> u32 {
        let Command { before, sequence, .. } = self.commands[id];
        // What was issued later in the place of an ended command is not before it.
        if before != NONE && self.commands[before].sequence < sequence { before } else { NONE }
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
        let InBlock { second_first, second_host_pages, .. } = self.in_block[place as usize];
        // A row of parity has no first page of its own, so its row tells.
        if unit.row > 0 {
            let before = Unit { first: second_first, host_pages: second_host_pages, slot: NONE, ..*unit };
            self.second_pass(&before, place, now);
        }
        let state = &mut self.in_block[place as usize];
        (state.second_first, state.second_host_pages) = (unit.first, unit.host_pages);
        if self.places.is_last_row(unit.row, unit.is_slc) {
            (state.second_first, state.second_host_pages) = (NONE, 0);
            let last = Unit { slot: NONE, ..*unit };
            self.second_pass(&last, place, now);
        }
    }

    fn second_pass(&mut self, unit: &Unit, place: u32, now: u64) {
        let id = self.add(Command { kind: Kind::Program, group: unit.group, die: unit.die, ..Command::NOTHING });
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
        command.place_generation = generation;
        (command.host_pages, command.is_last) = (if is_last { unit.host_pages } else { 0 }, is_last);
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

    /// Erases a block on each of its dies; answers the last of the commands.
    fn erase(&mut self, group: Group, place: Place, waits_for: u32, slot: u32, flash: &Flash, now: u64) -> u32 {
        let geometry = flash.geometry();
        self.drop_collected(place.block, now);
        if let Some(errors) = &mut self.errors {
            errors.erased(BlockId(place.block), flash.nand().erases(BlockId(place.block)));
        }
        let first = geometry.first_page(BlockId(place.block));
        for page in (first.0..first.0 + geometry.pages_per_block()).step_by(place.unit as usize) {
            self.ends_pending(page);
        }
        self.awaited.clear();
        while let Some(replacement) = self.replacing.take(BlockId(place.block)) {
            let id = self.program_of(&replacement, geometry);
            if id != NONE {
                self.awaited.push(id);
            }
        }
        let mut last = NONE;
        for die_in_block in 0..self.places.dies_of_block() {
            let at = self.place_index(place.block, die_in_block);
            let die = self.places.die(die_in_block, first, geometry);
            let sequence = self.next_sequence();
            let array = self.times.erase;
            let id = self.add(Command {
                kind: Kind::Erase,
                group,
                die,
                sequence,
                array,
                slot,
                place: at,
                ..Command::NOTHING
            });
            let state = &mut self.in_block[at as usize];
            let (reads, before, program) = (state.reads, state.erase, state.program);
            self.commands[id].generation = state.generation;
            self.commands[id].before = before;
            self.commands[id].unmet += reads;
            let left_over = state.second_host_pages;
            (state.second_first, state.second_host_pages) = (NONE, 0);
            (state.reads, state.erase) = (0, id);
            state.generation = state.generation.wrapping_add(1);
            self.free_ram(left_over, now);
            for earlier in [before, program] {
                self.commands.after_start(earlier, id);
            }
            self.commands.after_end(waits_for, id);
            for replacement in &self.awaited {
                self.commands.after_end(*replacement, id);
            }
            self.figures.array_erases += 1;
            self.issued(id, now);
            last = id;
        }
        last
    }

    /// What a unit of a block has collected is erased before it was programmed.
    fn drop_collected(&mut self, block: u32, now: u64) {
        let id = std::mem::replace(&mut self.collecting[block as usize], NONE);
        if id == NONE {
            return;
        }
        self.commands[id].is_dropped = true;
        self.ends_pending(self.commands[id].first);
        self.issued(id, now);
    }
}
