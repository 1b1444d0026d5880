//! Zone Append (Zoned Namespace Command Set 1.2, section 3.4.1): a write to wherever the write pointer of a zone is, which its
//! completion tells.

use super::{Command, Op, effects};
use crate::wire::Status;

pub(super) const COMMAND: Command = Command {
    opcode: 0x7d,
    name: "Zone Append",
    effects: effects::CONTENT,
    of_zones: true,
    run: |call| {
        let (zoning, first) = (call.zoning()?, call.sqe.first_block());
        call.placing()?;
        call.check_writable()?;
        let asked = call.range_with_data(call.namespace()?, true)?.asks(Op::Append, call.is_durable());
        let (_, begins_there) = call.zone_of(&zoning, first)?;
        if begins_there { Ok(asked) } else { Err(Status::INVALID_FIELD) }
    },
    ..Command::BARE
};
