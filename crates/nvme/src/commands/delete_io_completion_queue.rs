//! Delete I/O Completion Queue (NVM Express Base 2.1, section 5.2.3), once no submission queue uses it.

use super::{Command, Outcome};
use crate::vfio::Change;

pub(super) const COMMAND: Command = Command {
    opcode: 0x04,
    name: "Delete I/O Completion Queue",
    while_sanitizing: true,
    run: |call| Ok(Outcome::Queues(Change::DeleteCompletion((call.sqe.dword(10) & 0xffff) as u16))),
    ..Command::BARE
};
