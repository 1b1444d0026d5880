//! Delete I/O Submission Queue (NVM Express Base 2.1, section 5.2.4). Commands of it that are not answered are aborted.

use super::{Command, Outcome};
use crate::vfio::Change;

pub(super) const COMMAND: Command = Command {
    opcode: 0x00,
    name: "Delete I/O Submission Queue",
    while_sanitizing: true,
    run: |call| Ok(Outcome::Queues(Change::DeleteSubmission((call.sqe.dword(10) & 0xffff) as u16))),
    ..Command::BARE
};
