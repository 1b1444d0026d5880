//! Directive Send (Base 2.1, section 5.1.8): nothing can be switched. The directives that there are, Identify and data placement, are
//! enabled where they are supported, which hosts can't change.

use super::Command;
use crate::wire::Status;

pub(super) const COMMAND: Command = Command {
    opcode: 0x19,
    name: "Directive Send",
    optional: 1 << 5,
    needs_placement: true,
    run: |call| {
        call.namespace()?;
        Err(Status::INVALID_FIELD)
    },
    ..Command::BARE
};
