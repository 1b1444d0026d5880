//! Create I/O Submission Queue (NVM Express Base 2.1, section 5.2.2): of a function on PCIe. Its priority has no effect, since
//! queues take turns.

use super::{Command, Outcome};
use crate::vfio::registers::{self, config};
use crate::vfio::{Change, queue_fields};

pub(super) const COMMAND: Command = Command {
    opcode: 0x01,
    name: "Create I/O Submission Queue",
    while_sanitizing: true,
    run: |call| {
        let sqe = call.sqe;
        let controller = call.controller()?;
        let entry = config::submission_entry(controller.config);
        let (queue, size, address) = queue_fields(sqe, controller.io_queues(), entry, registers::SQE_SHIFT)?;
        let completion = (sqe.dword(11) >> 16) as u16;
        Ok(Outcome::Queues(Change::CreateSubmission { queue, size, address, completion }))
    },
    ..Command::BARE
};
