//! Create I/O Completion Queue (NVM Express Base 2.1, section 5.2.1): of a function on PCIe.

use super::{Command, Outcome};
use crate::vfio::registers::{self, config};
use crate::vfio::{Change, VECTORS, queue_fields};
use crate::wire::Status;

/// Dword 11, bit 1: its completions raise a vector.
const INTERRUPTS: u32 = 1 << 1;

pub(super) const COMMAND: Command = Command {
    opcode: 0x05,
    name: "Create I/O Completion Queue",
    while_sanitizing: true,
    run: |call| {
        let sqe = call.sqe;
        let controller = call.controller()?;
        let entry = config::completion_entry(controller.config);
        let (queue, size, address) = queue_fields(sqe, controller.io_queues(), entry, registers::CQE_SHIFT)?;
        let vector = (sqe.dword(11) >> 16) as u16;
        let raises = sqe.dword(11) & INTERRUPTS != 0;
        if raises && vector >= VECTORS {
            return Err(Status::INVALID_VECTOR);
        }
        Ok(Outcome::Queues(Change::CreateCompletion { queue, size, address, vector: raises.then_some(vector) }))
    },
    ..Command::BARE
};
