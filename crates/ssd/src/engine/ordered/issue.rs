//! From the operations of a request to commands and runs of copies.

use super::Ordered;
use super::command::{Command, Kind};
use crate::engine::erase_dependencies::EraseDependency;
use crate::engine::order::Group;
use crate::engine::{NONE, OpClass};
use flashwright_ftl::{Cause, FlashOp, OpKind};
use flashwright_nand::{BlockId, Geometry, Ppn};

/// The read that another read of the same page joins.
struct Joinable {
    op: FlashOp,
    id: u32,
}

impl Ordered {
    /// Issues the operations of a request at `now` and names the slot under which it will complete, `least` later at the
    /// earliest. All times are in nanoseconds. Copies must be logged one by one.
    pub fn issue(&mut self, now: u64, least: u64, ops: &[FlashOp], geometry: &Geometry) -> u32 {
        let slot = self.new_slot(now + least);
        self.of_ops.clear();
        let (mut at, mut joinable) = (0, None);
        while at < ops.len() {
            let op = &ops[at];
            debug_assert!(op.copies == 0, "copies are logged one by one");
            let copies = self.copies_at(&ops[at..], joinable.as_ref(), geometry);
            if copies > 0 {
                let id = self.copy(&ops[at..], copies, slot, now, geometry);
                at += 2 * copies as usize;
                self.of_ops.resize(at, id);
                joinable = None; // no later read has that page
                continue;
            }
            let (waits_for, part) = self.waits_for(at, op);
            let id = match op.kind {
                OpKind::Read | OpKind::OobRead => match &joinable {
                    Some(Joinable { op: other, id }) if joins(op, other) && waits_for == NONE => {
                        self.figures.units_transferred += u64::from(op.kind == OpKind::Read);
                        self.commands[*id].transfers += 1;
                        *id
                    }
                    _ => {
                        let id = self.read(op, (waits_for, part), slot, now, geometry);
                        joinable = Some(Joinable { op: *op, id });
                        id
                    }
                },
                OpKind::Program => {
                    let id = self.program(op, (waits_for, part), slot, now, geometry);
                    if let Some(read) = at.checked_sub(1).map(|before| &ops[before]).filter(|read| is_copy(read, op)) {
                        self.replaces(geometry.block_of(read.ppn), id, op.ppn.0);
                    }
                    id
                }
                OpKind::Erase => self.erase(op, (waits_for, part), slot, now, geometry),
            };
            self.of_ops.push(id);
            at += 1;
        }
        if self.slots[slot as usize].left == 0 {
            self.complete(slot);
        }
        slot
    }

    /// The command whose end an operation awaits, and its part, if it is one of the same request.
    #[inline(always)]
    fn waits_for(&self, at: usize, op: &FlashOp) -> (u32, u32) {
        if op.after == 0 { (NONE, 0) } else { self.awaited(at, op) }
    }

    fn awaited(&self, at: usize, op: &FlashOp) -> (u32, u32) {
        let Some(earlier) = at.checked_sub(op.after as usize) else { return (NONE, 0) };
        let id = self.of_ops[earlier];
        if self.commands[id].copies == 0 {
            return (id, 0);
        }
        // Each part of a run has its place in the list.
        let part = self.of_ops[..earlier].iter().rev().take_while(|other| **other == id).count();
        (id, u32::try_from(part).expect("a block's pages fit 32 bits"))
    }

    /// How many copies at the head of a list make a run: from one block to consecutive pages of another on the same die, where no read waits
    /// for anything but its die.
    #[inline(always)]
    fn copies_at(&self, ops: &[FlashOp], joinable: Option<&Joinable>, geometry: &Geometry) -> u32 {
        match ops {
            [read, program, ..] if is_copy(read, program) => self.count_copies(ops, joinable, geometry),
            _ => 0,
        }
    }

    fn count_copies(&self, ops: &[FlashOp], joinable: Option<&Joinable>, geometry: &Geometry) -> u32 {
        let (first, to) = (&ops[0], &ops[1]);
        let (from_block, to_block) = (geometry.block_of(first.ppn), geometry.block_of(to.ppn));
        let joins_earlier = joinable.is_some_and(|earlier| joins(first, &earlier.op));
        if !self.reads_take_one_time
            || joins_earlier
            || from_block == to_block
            || geometry.die_of(first.ppn) != geometry.die_of(to.ppn)
            || self.in_block[from_block.index()].erase != NONE
        {
            return 0;
        }
        let (from, end) =
            (geometry.first_page(from_block).0, geometry.first_page(to_block).0 + geometry.pages_per_block());
        let (mut count, mut before) = (0, Ppn(NONE));
        for pair in ops.chunks_exact(2) {
            let (read, program) = (&pair[0], &pair[1]);
            let follows = is_copy(read, program)
                && read.after == 0
                && read.cause == first.cause
                && read.ppn != before
                && read.ppn.0.wrapping_sub(from) < geometry.pages_per_block()
                && program.ppn.0 == to.ppn.0 + count
                && program.ppn.0 < end
                && !self.is_pending(read.ppn.0);
            if !follows {
                break;
            }
            before = read.ppn;
            count += 1;
        }
        // A read that joins the last one needs a command to join.
        let next_read = ops[2 * count as usize..].iter().find(|op| matches!(op.kind, OpKind::Read | OpKind::OobRead));
        let is_joined = |next: &FlashOp| count > 0 && joins(next, &ops[2 * count as usize - 2]);
        count - u32::from(next_read.is_some_and(is_joined))
    }

    /// Issues a run of copies.
    fn copy(&mut self, ops: &[FlashOp], copies: u32, slot: u32, now: u64, geometry: &Geometry) -> u32 {
        let (from, to) = (geometry.block_of(ops[0].ppn), ops[1].ppn);
        let sequence = self.sequence + 1;
        self.sequence += 2 * u64::from(copies);
        let run = Command {
            sequence,
            kind: Kind::Copies,
            group: Group::Rest,
            copies,
            from: from.0,
            page: to.0,
            ..Command::NOTHING
        };
        let (pages, figures) = (u64::from(copies), &mut self.figures);
        figures.units_transferred += 2 * pages;
        figures.array_reads += pages;
        figures.array_programs += pages;
        let id = self.add(run, geometry.die_of(to).0, slot);
        self.reads_in(id, copies);
        self.programs_in(id, geometry.block_of(to).0);
        for page in to.0..to.0 + copies {
            self.begins_pending(page);
        }
        self.replaces(from, id, to.0);
        self.commands.met(id);
        // Its reads wait for nothing.
        self.queue(id, now);
        id
    }

    fn read(&mut self, op: &FlashOp, awaited: (u32, u32), slot: u32, now: u64, geometry: &Geometry) -> u32 {
        let block = geometry.block_of(op.ppn);
        self.sequence += 1;
        let is_page = op.kind == OpKind::Read;
        let read = Command {
            sequence: self.sequence,
            kind: if is_page { Kind::Read } else { Kind::OobRead },
            group: Group::of_class(OpClass::of(op)),
            from: block.0,
            page: op.ppn.0,
            ..Command::NOTHING
        };
        self.figures.units_transferred += u64::from(is_page);
        self.figures.array_reads += 1;
        let id = self.add(read, geometry.die_of(op.ppn).0, slot);
        self.reads_in(id, 1);
        let erase = self.in_block[block.index()].erase;
        self.commands.after_end(erase, id);
        if self.is_pending(op.ppn.0) {
            self.waits_for_page(id, op.ppn.0, block);
        }
        self.commands.after_part(awaited.0, awaited.1, id);
        self.issued(id, now);
        id
    }

    /// A command reads a page whose program has not ended.
    fn waits_for_page(&mut self, id: u32, page: u32, block: BlockId) {
        let mut earlier = self.in_block[block.index()].program;
        while earlier != NONE {
            let Command { page: first, copies, before, sequence, .. } = self.commands[earlier];
            let at = page.wrapping_sub(first);
            if at < copies.max(1) {
                let part = if copies == 0 { 0 } else { 2 * at + 1 };
                self.commands.after_part(earlier, part, id);
                return;
            }
            // What was issued later in the place of an ended command is not before it.
            earlier = if before != NONE && self.commands[before].sequence < sequence { before } else { NONE };
        }
    }

    fn program(&mut self, op: &FlashOp, awaited: (u32, u32), slot: u32, now: u64, geometry: &Geometry) -> u32 {
        self.sequence += 1;
        let program = Command {
            sequence: self.sequence,
            kind: Kind::Program,
            group: Group::of_class(OpClass::of(op)),
            page: op.ppn.0,
            ..Command::NOTHING
        };
        self.figures.units_transferred += 1;
        self.figures.array_programs += 1;
        let id = self.add(program, geometry.die_of(op.ppn).0, slot);
        self.begins_pending(op.ppn.0);
        self.programs_in(id, geometry.block_of(op.ppn).0);
        self.commands.after_part(awaited.0, awaited.1, id);
        self.issued(id, now);
        id
    }

    fn erase(&mut self, op: &FlashOp, awaited: (u32, u32), slot: u32, now: u64, geometry: &Geometry) -> u32 {
        let block = geometry.block_of(op.ppn);
        self.sequence += 1;
        let state = &mut self.in_block[block.index()];
        let (reads, before, program, generation) = (state.reads, state.erase, state.program, state.generation);
        let erase = Command {
            sequence: self.sequence,
            kind: Kind::Erase,
            group: Group::of_class(OpClass::of(op)),
            block: block.0,
            page: op.ppn.0,
            before,
            generation,
            unmet: 1 + reads,
            ..Command::NOTHING
        };
        self.figures.array_erases += 1;
        let id = self.add(erase, geometry.die_of(op.ppn).0, slot);
        self.forget_pending(block, geometry);
        while let Some(EraseDependency { id: copy, born, .. }) = self.erase_dependencies.take(block) {
            if self.commands[copy].born == born {
                self.commands.after_end(copy, id);
            }
        }
        let state = &mut self.in_block[block.index()];
        (state.reads, state.erase, state.generation) = (0, id, generation.wrapping_add(1));
        for earlier in [before, program] {
            self.commands.after_start(earlier, id);
        }
        self.commands.after_part(awaited.0, awaited.1, id);
        self.issued(id, now);
        id
    }

    /// A new command, which waits for one more thing until [`Self::issued`].
    #[inline(always)]
    fn add(&mut self, command: Command, die: u32, slot: u32) -> u32 {
        self.slots[slot as usize].left += 1;
        self.dies[die as usize].issued += 1;
        self.commands.add(Command { die, slot, ..command })
    }

    /// All that a command waits for is known.
    #[inline(always)]
    fn issued(&mut self, id: u32, now: u64) {
        if self.commands.met(id) {
            self.queue(id, now);
        }
    }

    /// Pages of a block will be read by a command.
    #[inline(always)]
    fn reads_in(&mut self, id: u32, pages: u32) {
        let command = &mut self.commands[id];
        let state = &mut self.in_block[command.from as usize];
        state.reads += pages;
        command.generation = state.generation;
    }

    /// A block is programmed by a command, after the one before it and the block's erase.
    #[inline(always)]
    fn programs_in(&mut self, id: u32, block: u32) {
        let state = &mut self.in_block[block as usize];
        let (before, erase) = (state.program, state.erase);
        state.program = id;
        let command = &mut self.commands[id];
        (command.block, command.before, command.block_generation) = (block, before, state.generation);
        self.commands.after_end(erase, id);
        self.commands.after_end(before, id);
    }

    #[inline(always)]
    fn replaces(&mut self, block: BlockId, id: u32, unit_first: u32) {
        self.erase_dependencies.add(block, EraseDependency { unit_first, id, born: self.commands[id].born });
    }

    #[inline(always)]
    fn is_pending(&self, page: u32) -> bool {
        self.pending[page as usize / 64] >> (page % 64) & 1 == 1
    }

    #[inline(always)]
    fn begins_pending(&mut self, page: u32) {
        self.pending[page as usize / 64] |= 1 << (page % 64);
    }

    /// The program of a page has ended, if `ends`.
    #[inline(always)]
    pub(super) fn ends_pending(&mut self, page: u32, ends: bool) {
        self.pending[page as usize / 64] &= !(u64::from(ends) << (page % 64));
    }

    /// No page of a block is under way any more.
    fn forget_pending(&mut self, block: BlockId, geometry: &Geometry) {
        let first = geometry.first_page(block).0;
        for page in first..first + geometry.pages_per_block() {
            self.ends_pending(page, true);
        }
    }
}

/// Whether a read joins an earlier one, where nothing else was read in between.
#[inline(always)]
fn joins(read: &FlashOp, earlier: &FlashOp) -> bool {
    (read.ppn, read.kind) == (earlier.ppn, earlier.kind)
        && Group::of_class(OpClass::of(read)) == Group::of_class(OpClass::of(earlier))
}

/// Whether a read and the operation after it copy a page in cleaning, a merge or wear levelling.
#[inline(always)]
fn is_copy(read: &FlashOp, program: &FlashOp) -> bool {
    (read.kind, program.kind, program.after) == (OpKind::Read, OpKind::Program, 1)
        && read.cause == program.cause
        && matches!(read.cause, Cause::Gc | Cause::Merge | Cause::Wear)
}
