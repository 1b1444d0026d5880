//! Format NVM (NVM Express Base 2.1, section 5.1.10): another size of logical blocks, and no data any more.

use super::{Command, Outcome, effects};
use crate::wire::Status;

pub(super) const COMMAND: Command = Command {
    opcode: 0x80,
    name: "Format NVM",
    effects: effects::CONTENT | effects::NAMESPACE | effects::ALONE,
    optional: 1 << 1,
    run: |call| {
        let namespaces = call.namespaces()?;
        let asked = call.sqe.dword(10);
        let format = (asked & 0xf | asked >> 8 & 0x30) as u8;
        let (metadata, protection, erase) = (asked >> 4 & 1, asked >> 5 & 7, asked >> 9 & 7);
        if !call.subsystem.about.has_format(format) || metadata != 0 || protection != 0 {
            return Err(Status::INVALID_FORMAT);
        }
        // Without a wish, with user data erased, or cryptographically: here all are one trim of everything.
        if erase > 2 {
            return Err(Status::INVALID_FIELD);
        }
        call.check_writable()?;
        let by = call.place.controller;
        namespaces.iter().try_for_each(|nsid| call.subsystem.change(*nsid, Some(format), by))?;
        Ok(Outcome::nothing())
    },
    ..Command::BARE
};
