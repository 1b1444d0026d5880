//! Read (NVM Command Set 1.1, section 3.3.4).

use super::{Command, Io, Op, Outcome};

pub(super) const COMMAND: Command = Command {
    opcode: 0x02,
    name: "Read",
    effects: 0,
    optional: 0,
    in_discovery: false,
    run: |call| {
        call.check_namespace()?;
        let (offset, bytes) = call.range_with_data(false)?;
        Ok(Outcome::Io(Io { op: Op::Read, offset, bytes, is_durable: false }))
    },
};
