//! Abort (NVM Express Base 2.1, section 5.1.1). Requests for events are aborted, and I/O commands of which the drive has no part yet. What the
//! drive has is not taken back, which the answer says.
//!
//! A connection of NVMe/TCP knows only its own commands. So an Abort of a command in another queue is held until that queue's connection has looked
//! for it.

use super::{Command, Outcome};
use crate::vfio::Change;

/// Dword 0, bit 0: the command was not aborted.
const NOT_ABORTED: u64 = 1;

pub(super) const COMMAND: Command = Command {
    opcode: 0x08,
    name: "Abort",
    while_sanitizing: true,
    run: |call| {
        let (queue, cid) = ((call.sqe.dword(10) & 0xffff) as u16, (call.sqe.dword(10) >> 16) as u16);
        let by = call.sqe.cid();
        let controller = call.controller()?;
        if queue != 0 && controller.is_function {
            return Ok(Outcome::Queues(Change::Abort { queue, cid }));
        }
        if queue != 0 && controller.queues.contains_key(&queue) {
            return controller.hold_abort(queue, cid, by);
        }
        let is_aborted = queue == 0 && controller.abort_event_request(cid);
        Ok(Outcome::Done(if is_aborted { 0 } else { NOT_ABORTED }, Vec::new()))
    },
    ..Command::BARE
};
