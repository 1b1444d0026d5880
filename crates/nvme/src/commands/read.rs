//! Read (NVM Command Set 1.1, section 3.3.4).

use super::{Command, Op};

pub(super) const COMMAND: Command = Command {
    opcode: 0x02,
    name: "Read",
    run: |call| {
        let asked = call.range_with_data(call.namespace()?, false)?.asks(Op::Read, false);
        call.readable(asked)
    },
    ..Command::BARE
};
