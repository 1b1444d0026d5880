//! Write (NVM Command Set 1.1, section 3.3.6).

use super::{Command, Op, effects};

pub(super) const COMMAND: Command = Command {
    opcode: 0x01,
    name: "Write",
    effects: effects::CONTENT,
    run: |call| {
        let namespace = call.namespace()?;
        let placing = call.placing()?;
        call.check_writable()?;
        let outcome = call.range_with_data(namespace, true)?.placed(placing).asks(Op::Write, call.is_durable());
        call.note_placing(placing);
        Ok(outcome)
    },
    ..Command::BARE
};
