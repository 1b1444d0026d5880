//! Compare (NVM Command Set 1.1, section 3.3.1).

use super::{Command, Io, Op, Outcome};

pub(super) const COMMAND: Command = Command {
    opcode: 0x05,
    name: "Compare",
    effects: 0,
    optional: 1,
    in_discovery: false,
    run: |call| {
        call.check_namespace()?;
        let (offset, bytes) = call.range_with_data(true)?;
        Ok(Outcome::Compare(Io { op: Op::Read, offset, bytes, is_durable: false }))
    },
};
