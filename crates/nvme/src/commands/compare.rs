//! Compare (NVM Command Set 1.1, section 3.3.1).

use super::{Command, Op, Outcome};

pub(super) const COMMAND: Command = Command {
    opcode: 0x05,
    name: "Compare",
    optional: 1,
    run: |call| Ok(Outcome::Compare(call.range_with_data(call.namespace()?, true)?.ios(Op::Read, false))),
    ..Command::BARE
};
