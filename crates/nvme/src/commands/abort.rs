//! Abort (NVM Express Base 2.1, section 5.1.1). A command that the drive has is not taken back, which the answer says.

use super::{Command, Outcome};

/// Dword 0, bit 0: the command was not aborted.
const NOT_ABORTED: u64 = 1;

pub(super) const COMMAND: Command = Command {
    opcode: 0x08,
    name: "Abort",
    effects: 0,
    optional: 0,
    in_discovery: false,
    run: |_| Ok(Outcome::Done(NOT_ABORTED, Vec::new())),
};
