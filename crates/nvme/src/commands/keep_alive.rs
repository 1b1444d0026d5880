//! Keep Alive (NVM Express Base 2.1, section 5.1.14). The transport counts every command as a sign of life.

use super::{Command, Outcome};

pub(super) const COMMAND: Command = Command {
    opcode: 0x18,
    name: "Keep Alive",
    effects: 0,
    optional: 0,
    in_discovery: true,
    run: |_| Ok(Outcome::nothing()),
};
