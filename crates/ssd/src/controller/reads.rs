//! How a controller finds the data of a read: write buffer, read buffer, flash.

use super::link::{Crossing, Way};
use super::read_buffer::Found;
use super::write_buffer::Extent;
use super::{Command, Controller, Owner};
use flashwright_block::{Arbiter, BlockDevice, RequestKind, SECTOR_BYTES};

impl<D: BlockDevice, A: Arbiter> Controller<D, A> {
    pub(super) fn retry_held(&mut self) {
        let mut at = 0;
        while at < self.held.len() {
            let slot = self.held[at];
            let command = self.commands[slot as usize];
            if self.unsettled.must_wait(command.order, command.extent(), false) || !self.serve(slot) {
                at += 1;
            } else {
                self.held.remove(at);
            }
        }
    }

    /// Finds the data of a read; returns false if they are being read ahead and the read has to wait.
    pub(super) fn serve(&mut self, slot: u32) -> bool {
        let command = self.commands[slot as usize];
        let extent = command.extent();
        let buffered = self.buffer.touches(extent);
        if buffered && self.buffer.covers(extent) {
            self.figures.write_buffer_read_hits += 1;
            if let Some(payloads) = &mut self.payloads {
                payloads.served_by_entries(command.tag, extent, &self.buffer.parts(extent));
            }
            self.answer_from_ram(slot);
            return true;
        }
        match self.read_buffer.find(extent) {
            Found::Coming => return false,
            Found::All => {
                self.figures.read_buffer_hits += 1;
                self.figures.prefetched_used_bytes += self.read_buffer.used_ahead(extent) * SECTOR_BYTES;
                if let Some(payloads) = &mut self.payloads {
                    payloads.served_by_kept(command.tag, extent, &self.read_buffer.parts(extent));
                }
                self.answer_from_ram(slot);
            }
            Found::No => {
                // The device below has to know the newest data of all sectors.
                if buffered {
                    self.flush_before(extent);
                }
                self.commands[slot as usize].fills = self.read_buffer.expect(extent);
                self.send_piece(slot);
            }
        }
        if let Some(ahead) = self.read_buffer.follows(extent, self.bounds.sectors)
            && !self.buffer.touches(ahead)
        {
            self.figures.prefetched_bytes += ahead.sectors() * SECTOR_BYTES;
            let id = self.read_buffer.read_ahead(ahead);
            self.push(self.request_for(RequestKind::Read, ahead, &command.request), Owner::Ahead(id));
        }
        true
    }

    pub(super) fn answer_from_ram(&mut self, slot: u32) {
        self.settle(slot);
        let command = &mut self.commands[slot as usize];
        command.sent = command.sectors();
        command.done = command.sent;
        self.wish_out(slot);
    }

    /// Data of a read have arrived: all data since the last transfer cross the link.
    pub(super) fn wish_out(&mut self, slot: u32) {
        let command = &mut self.commands[slot as usize];
        let sectors = command.done - command.asked;
        command.asked = command.done;
        self.link.wish(Crossing { slot, order: command.order, sectors, way: Way::Out }, self.now);
    }

    /// Submits the next piece of a read, or of a write that bypasses the buffer, to the device below.
    pub(super) fn send_piece(&mut self, slot: u32) {
        let command = self.commands[slot as usize];
        let first = command.request.first_sector + command.sent;
        let sectors = self.piece_of(first, command.sectors() - command.sent);
        let extent = Extent { first, end: first + sectors };
        if command.request.kind == RequestKind::Write {
            // Not before: data read ahead in the meantime are stale.
            self.read_buffer.invalidate(extent);
        }
        let state = &mut self.commands[slot as usize];
        state.sent += sectors;
        state.working = true;
        let mut request = self.request_for(command.request.kind, extent, &command.request);
        request.fua = command.request.fua;
        self.push(request, Owner::Command(slot));
        if command.sent + sectors == command.sectors() {
            self.settle(slot);
        }
    }

    /// A piece of a read is in RAM: starts the next piece and the transfer over the link.
    pub(super) fn read_goes_on(&mut self, slot: u32, command: &Command) {
        if command.sent < command.sectors() {
            self.send_piece(slot);
        } else if let Some(id) = command.fills {
            self.read_buffer.filled(id);
            if let Some(payloads) = &mut self.payloads {
                payloads.keep_read(command.tag, id, |id| self.read_buffer.holds(id));
            }
        }
        self.wish_out(slot);
    }
}
