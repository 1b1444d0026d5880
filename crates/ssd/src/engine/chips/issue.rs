//! From the operations of a request to commands: the list, and its reads.

use super::Chips;
use super::command::{Command, Group, Kind, NONE, is_copy_of_cleaning};
use super::die::InBlock;
use super::places::Place;
use super::ram::Waiter;
use crate::engine::{Observer, OpClass};
use flashwright_ftl::{Flash, FlashOp, OpKind};
use flashwright_nand::{BlockId, Geometry};

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

impl<W: Observer> Chips<W> {
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
            let class = OpClass::of(op);
            let group = Group::of_class(class);
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
                        let takes_part = self.copies.is_there() || self.copy_firmware.is_there();
                        let copies = takes_part && is_copy_of_cleaning(op, ops.get(at + 1));
                        self.read(op, group, place, is_slc, waits_for, awaited_by, copies, &mut joined, now)
                    }
                }
                OpKind::Program => {
                    host_pages += u32::from(group == Group::Writes);
                    let read = at.checked_sub(1).map(|before| &ops[before]);
                    let source = read.filter(|read| self.times.copyback && self.copies_back(read, Some(op), geometry));
                    let from = source.map(|read| {
                        let is_slc = flash.is_slc(geometry.block_of(read.ppn));
                        (self.places.of(read.ppn, is_slc, geometry), is_slc)
                    });
                    let awaited_by = if waits_for_reads_only { NONE } else { slot };
                    let id = self.program(class, &place, waits_for, now);
                    self.reserve_shrinks(place.block, id);
                    if let Some(read) = read.filter(|read| is_copy_of_cleaning(read, Some(op))) {
                        self.replaces(geometry.block_of(read.ppn), id, place.unit_first);
                        if source.is_none() {
                            self.holds_copy(id, of_ops[at - 1], now);
                        }
                    }
                    while let [Superseded { at: of, block }, rest @ ..] = superseded
                        && *of as usize <= at
                    {
                        if *of as usize == at && !self.ram.is_there() {
                            self.replaces(*block, id, place.unit_first);
                        }
                        superseded = rest;
                    }
                    if place.in_unit + 1 == place.unit {
                        self.completes(id, &place, is_slc, awaited_by, from, now);
                    }
                    // What is in RAM need not be awaited.
                    if self.ram.is_there() { NONE } else { id }
                }
                OpKind::Erase => self.erase(class, place, waits_for, awaited_by, flash, now),
            };
            of_ops.push(id);
        }
        self.of_ops = of_ops;
        if host_pages > 0 && self.ram.waits(Waiter::Request(slot)) {
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

    pub(super) fn place_index(&self, block: u32, die_in_block: u32) -> u32 {
        block * self.places.dies_of_block() + die_in_block
    }

    pub(super) fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// A new command, which waits for one more thing until [`Self::issued`].
    #[inline(always)]
    pub(super) fn add(&mut self, command: Command) -> u32 {
        if command.slot != NONE {
            self.slots[command.slot as usize].left += 1;
        }
        self.dies[command.die as usize].issued += 1;
        self.commands.add(command)
    }

    /// All that a command waits for is known.
    pub(super) fn issued(&mut self, id: u32, now: u64) {
        if self.commands.met(id) {
            self.ready(id, now);
        }
    }

    #[inline(always)]
    pub(super) fn is_pending(&self, first: u32) -> bool {
        self.in_ram[first as usize / 64] >> (first % 64) & 1 == 1
    }

    #[inline(always)]
    pub(super) fn begins_pending(&mut self, first: u32) {
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
        copies: bool,
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
            && (!copies || self.copies.takes_with(Waiter::Command(id)))
        {
            if copies && !self.copies.keeps_waiting(Waiter::Command(id)) && self.copy_firmware.is_there() {
                self.commands[id].unmet += u32::from(self.prepare(id, 1, now));
            }
            self.commands[id].data += data;
            self.commands[id].array = self.commands[id].array.max(array);
            if is_lost {
                self.rebuild(id, &place, slot, now);
            }
            return id;
        }
        let reads_in = self.place_index(place.block, place.die_in_block);
        let sequence = self.next_sequence();
        let (class, is_oob) = (OpClass::of(op), op.kind == OpKind::OobRead);
        let read = Command {
            kind: Kind::Read,
            group,
            class,
            is_oob,
            die: place.die,
            sequence,
            array,
            data,
            slot,
            ..Command::NOTHING
        };
        let id = self.add(read);
        self.figures.array_reads += 1;
        self.waits_to_read(id, reads_in, place.unit_first);
        self.commands.after_end(waits_for, id);
        if copies {
            self.commands[id].unmet += u32::from(self.copy_comes(id, now));
        }
        self.issued(id, now);
        if is_lost {
            self.rebuild(id, &place, slot, now);
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
    fn rebuild(&mut self, failed: u32, place: &Place, slot: u32, now: u64) {
        let Command { kind, group, class, .. } = self.commands[failed];
        let of = Command { kind, group, class, ..Command::NOTHING };
        for (die, die_in_block) in self.places.others_in_group(place) {
            let sequence = self.next_sequence();
            let (array, data) = (self.times.read_of(place.page_of_cell, false), self.times.data);
            let reads_in = self.place_index(place.block, die_in_block);
            let id = self.add(Command { die, sequence, array, data, slot, ..of });
            self.reads_in(id, reads_in);
            self.commands.after_end(failed, id);
            self.figures.rebuilding_reads += 1;
            self.figures.array_reads += 1;
            self.figures.units_transferred += 1;
            self.issued(id, now);
        }
    }

    /// A command reads a page: it waits for an erase of the block that was issued before, and for the page's program.
    pub(super) fn waits_to_read(&mut self, id: u32, reads_in: u32, unit_first: u32) {
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
}
