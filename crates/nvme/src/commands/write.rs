//! Write (NVM Command Set 1.1, section 3.3.6).

use super::{Command, Io, Op, Outcome, effects};
use crate::wire::Status;

pub(super) const COMMAND: Command = Command {
    opcode: 0x01,
    name: "Write",
    effects: effects::CONTENT,
    optional: 0,
    in_discovery: false,
    run: |call| {
        call.check_namespace()?;
        if call.sqe.dword(12) >> 20 & 0xf != 0 {
            return Err(Status::INVALID_FIELD); // a directive, and none is enabled
        }
        call.check_writable()?;
        let (offset, bytes) = call.range_with_data(true)?;
        Ok(Outcome::Io(Io { op: Op::Write, offset, bytes, is_durable: call.is_durable() }))
    },
};
