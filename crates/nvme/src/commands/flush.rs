//! Flush (NVM Express Base 2.1, section 7.2).

use super::{Command, Io, Op, Outcome};

pub(super) const COMMAND: Command = Command {
    opcode: 0x00,
    name: "Flush",
    effects: 0,
    optional: 0,
    in_discovery: false,
    run: |call| {
        call.check_namespace_or_all()?;
        Ok(Outcome::Io(Io { op: Op::Flush, offset: 0, bytes: 0, is_durable: false }))
    },
};
