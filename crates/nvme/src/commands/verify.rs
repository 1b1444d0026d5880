//! Verify (NVM Command Set 1.1, section 3.3.5): reads, and returns nothing.

use super::{Command, Io, Op, Outcome};

pub(super) const COMMAND: Command = Command {
    opcode: 0x0c,
    name: "Verify",
    effects: 0,
    optional: 1 << 7,
    in_discovery: false,
    run: |call| {
        call.check_namespace()?;
        let (offset, bytes) = call.range()?;
        Ok(Outcome::Io(Io { op: Op::Verify, offset, bytes, is_durable: false }))
    },
};
