//! Verify (NVM Command Set 1.1, section 3.3.5): reads, and returns nothing.

use super::{Command, Op};

pub(super) const COMMAND: Command = Command {
    opcode: 0x0c,
    name: "Verify",
    optional: 1 << 7,
    run: |call| {
        let asked = call.range()?.asks(Op::Verify, false);
        call.readable(asked)
    },
    ..Command::BARE
};
