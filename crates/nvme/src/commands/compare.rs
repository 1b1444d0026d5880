//! Compare (NVM Command Set 1.1, section 3.3.1).

use super::{Command, Op, Outcome};

pub(super) const COMMAND: Command = Command {
    opcode: 0x05,
    name: "Compare",
    optional: 1,
    run: |call| {
        let asked = Outcome::Compare(call.range_with_data(call.namespace()?, true)?.ios(Op::Read, false));
        call.readable(asked)
    },
    ..Command::BARE
};
