//! Abort (NVM Express Base 2.1, section 5.1.1). Requests for events are aborted. A command that the drive has is not taken back, and
//! no other waits, which the answer says.

use super::{Command, Outcome};

/// Dword 0, bit 0: the command was not aborted.
const NOT_ABORTED: u64 = 1;

pub(super) const COMMAND: Command = Command {
    opcode: 0x08,
    name: "Abort",
    while_sanitizing: true,
    run: |call| {
        let (queue, cid) = (call.sqe.dword(10) & 0xffff, (call.sqe.dword(10) >> 16) as u16);
        let is_aborted = queue == 0 && call.controller()?.abort_event_request(cid);
        Ok(Outcome::Done(if is_aborted { 0 } else { NOT_ABORTED }, Vec::new()))
    },
    ..Command::BARE
};
