//! Executes writes, trims and flushes, one after the other up to the point where they take effect.

use super::link::{Crossing, Way};
use super::payloads::Payloads;
use super::write_buffer::Extent;
use super::{Command, Controller, Oversized, Owner, Stage};
use flashwright_block::{Arbiter, BlockDevice, Request, RequestClass, RequestKind, SECTOR_BYTES};

impl<D: BlockDevice, A: Arbiter> Controller<D, A> {
    pub(super) fn run_writers(&mut self) {
        while let Some(slot) = self.writers.front().copied()
            && self.advance(slot)
        {
            self.writers.pop_front();
            if self.commands[slot as usize].stage == Stage::Syncing {
                self.finish(slot);
            }
        }
    }

    /// Advances the first writer as far as possible; returns true if the next may follow. A completed command is then
    /// at [`Stage::Syncing`]; others complete with the device below.
    pub(super) fn advance(&mut self, slot: u32) -> bool {
        let command = self.commands[slot as usize];
        let extent = command.extent();
        match command.stage {
            Stage::Start => {
                if command.request.kind != RequestKind::Flush && self.unsettled.must_wait(command.order, extent, true) {
                    return false;
                }
                if self.forces_all(&command) && !(self.buffer.is_empty() && self.inside.writes == 0) {
                    self.drain();
                    return false;
                }
                match command.request.kind {
                    RequestKind::Flush if self.ignores_flush => {
                        self.sync(slot);
                        false
                    }
                    RequestKind::Flush => {
                        self.commands[slot as usize].stage = Stage::Barrier;
                        self.advance(slot)
                    }
                    RequestKind::Trim => {
                        self.trim(slot, extent);
                        true
                    }
                    kind if kind.class() == RequestClass::Manage => {
                        self.push(command.request, Owner::Command(slot));
                        true
                    }
                    _ if self.is_buffered(extent) => {
                        self.commands[slot as usize].stage = Stage::Room;
                        self.advance(slot)
                    }
                    _ => {
                        self.figures.write_through_bytes += extent.sectors() * SECTOR_BYTES;
                        self.flush_before(extent);
                        self.buffer.supersede(extent);
                        self.commands[slot as usize].stage = Stage::Crossing;
                        self.wish_in(slot);
                        false
                    }
                }
            }
            Stage::Room => {
                if !self.buffer.has_room(self.buffer.need(self.part_of(&command))) {
                    self.drain();
                    return false;
                }
                self.commands[slot as usize].stage = Stage::Crossing;
                self.wish_in(slot);
                false
            }
            Stage::Here => {
                let part = self.part_of(&command);
                if !self.buffer.has_room(self.buffer.need(part)) {
                    self.drain();
                    return false;
                }
                self.place(slot, part);
                self.advance_placed(slot)
            }
            Stage::Barrier => {
                self.drain();
                if self.buffer.is_empty() && self.inside.writes == 0 {
                    self.sync(slot);
                }
                false
            }
            // Waits for the link or the device below.
            Stage::Crossing | Stage::Syncing => false,
        }
    }

    /// The device below makes durable what it has.
    fn sync(&mut self, slot: u32) {
        let command = &mut self.commands[slot as usize];
        command.stage = Stage::Syncing;
        let request = Request { kind: RequestKind::Flush, first_sector: 0, sectors: 0, fua: false, ..command.request };
        self.push(request, Owner::Command(slot));
    }

    /// Whether a write bypasses the write buffer and must be durable, so that all buffered data have to go first.
    pub(super) fn forces_all(&self, command: &Command) -> bool {
        let request = &command.request;
        let forced = request.fua && request.kind == RequestKind::Write && self.buffer.size() > 0;
        forced && !self.ignores_flush && command.stage == Stage::Start && !self.is_buffered(command.extent())
    }

    /// Whether a write goes into the write buffer.
    pub(super) fn is_buffered(&self, extent: Extent) -> bool {
        let size = self.buffer.size();
        size > 0 && (extent.sectors() <= size || self.config.write_buffer.oversized == Oversized::Stream)
    }

    /// The next part of a buffered write: up to the end of its entry, or as much as the buffer takes of a larger write.
    pub(super) fn part_of(&self, command: &Command) -> Extent {
        let first = command.request.first_sector + command.crossed;
        let left = command.sectors() - command.crossed;
        let size = self.buffer.size();
        let entry = self.config.write_buffer.entry.0 / SECTOR_BYTES;
        let sectors = match () {
            () if command.sectors() > size => self.piece_of(first, left).min(size),
            () if entry > 0 => left.min(entry - first % entry),
            () => left,
        };
        Extent { first, end: first + sectors }
    }

    /// Queues the next data of a write for the link.
    pub(super) fn wish_in(&mut self, slot: u32) {
        let command = self.commands[slot as usize];
        let sectors = if self.is_buffered(command.extent()) {
            self.part_of(&command).sectors()
        } else {
            self.piece_of(command.request.first_sector + command.crossed, command.sectors() - command.crossed)
        };
        self.link.wish(Crossing { slot, order: command.order, sectors, way: Way::In }, self.now);
    }

    pub(super) fn place(&mut self, slot: u32, part: Extent) {
        let Command { request, tag, .. } = self.commands[slot as usize];
        let payloads = &mut self.payloads;
        let placed = self.buffer.place(part, &request, |id, extent| cut(payloads, id, extent));
        if let Some(payloads) = payloads {
            payloads.placed(placed.entry, part, tag);
        }
        self.read_buffer.invalidate(part);
        self.figures.write_buffer_bytes += part.sectors() * SECTOR_BYTES;
        self.figures.write_buffer_hit_bytes += placed.hit * SECTOR_BYTES;
        self.figures.write_buffer_hits += u64::from(placed.hit == part.sectors());
        self.commands[slot as usize].crossed += part.sectors();
    }

    /// A part of a write is in the buffer: continues with the next part, durability, or completion.
    pub(super) fn advance_placed(&mut self, slot: u32) -> bool {
        let command = &mut self.commands[slot as usize];
        let (over, forced) = (command.crossed == command.sectors(), command.request.fua && !self.ignores_flush);
        command.stage = match () {
            () if !over => Stage::Room,
            () if forced => Stage::Barrier,
            () => Stage::Syncing,
        };
        if over {
            self.settle(slot);
        }
        if over && !forced { true } else { self.advance(slot) }
    }

    pub(super) fn trim(&mut self, slot: u32, extent: Extent) {
        let payloads = &mut self.payloads;
        let dropped = self.buffer.drop_within(extent, |id, extent| cut(payloads, id, extent));
        self.figures.dropped_bytes += dropped * SECTOR_BYTES;
        self.flush_before(extent);
        self.buffer.supersede(extent);
        self.read_buffer.invalidate(extent);
        let command = &mut self.commands[slot as usize];
        command.sent = command.sectors();
        let request = command.request;
        self.push(request, Owner::Command(slot));
        self.settle(slot);
    }

    /// Data of a command have crossed the link.
    pub(super) fn crossed(&mut self, crossing: Crossing) {
        let slot = crossing.slot;
        let command = &mut self.commands[slot as usize];
        if crossing.way == Way::Out {
            command.crossed += crossing.sectors;
            if command.crossed == command.sectors() {
                self.finish(slot);
            }
            return;
        }
        if self.is_buffered(self.commands[slot as usize].extent()) {
            self.commands[slot as usize].stage = Stage::Here;
            self.run_writers();
            return;
        }
        let command = &mut self.commands[slot as usize];
        command.crossed += crossing.sectors;
        let (over, working) = (command.crossed == command.sectors(), command.working);
        if !working {
            self.send_piece(slot);
        }
        if over {
            // The rest of it needs neither link nor order.
            self.writers.pop_front();
            self.run_writers();
        } else {
            self.wish_in(slot);
        }
    }
}

/// An entry of the write buffer loses sectors and their bytes.
#[inline]
fn cut(payloads: &mut Option<Box<Payloads>>, entry: u64, extent: Extent) {
    if let Some(payloads) = payloads {
        payloads.cut(entry, extent);
    }
}
