//! Keep Alive (NVM Express Base 2.1, section 5.1.14). The transport counts every command as a sign of life.

use super::{Command, Outcome};

pub(super) const COMMAND: Command = Command {
    opcode: 0x18,
    name: "Keep Alive",
    in_discovery: true,
    while_sanitizing: true,
    run: |_| Ok(Outcome::nothing()),
    ..Command::BARE
};
