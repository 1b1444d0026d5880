//! Write (NVM Command Set 1.1, section 3.3.6).

use super::{Command, Op, effects};
use crate::wire::Status;

pub(super) const COMMAND: Command = Command {
    opcode: 0x01,
    name: "Write",
    effects: effects::CONTENT,
    run: |call| {
        let namespace = call.namespace()?;
        if call.sqe.dword(12) >> 20 & 0xf != 0 {
            return Err(Status::INVALID_FIELD); // a directive, and none is enabled
        }
        call.check_writable()?;
        Ok(call.range_with_data(namespace, true)?.asks(Op::Write, call.is_durable()))
    },
    ..Command::BARE
};
