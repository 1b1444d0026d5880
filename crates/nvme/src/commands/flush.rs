//! Flush (NVM Express Base 2.1, section 7.2): of all that the drive has, whatever namespace it is of.

use super::{Command, Io, Outcome};

pub(super) const COMMAND: Command = Command {
    opcode: 0x00,
    name: "Flush",
    while_sanitizing: true,
    run: |call| {
        call.namespaces()?;
        Ok(Outcome::Io(Io::FLUSH))
    },
    ..Command::BARE
};
