//! Flush (NVM Express Base 2.1, section 7.2): of all that the drive has, whatever namespace it is of.

use super::{Command, Io, Op, Outcome};

pub(super) const COMMAND: Command = Command {
    opcode: 0x00,
    name: "Flush",
    while_sanitizing: true,
    run: |call| {
        call.namespaces()?;
        Ok(Outcome::Io(Io { op: Op::Flush, namespace: 0, offset: 0, bytes: 0, is_durable: false }))
    },
    ..Command::BARE
};
