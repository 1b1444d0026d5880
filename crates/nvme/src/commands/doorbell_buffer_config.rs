//! Doorbell Buffer Config (NVM Express Base 2.1, section 5.2.5): doorbells in the host's memory, which it writes instead of the
//! registers as long as the controller looks at them by itself.

use super::{Command, Outcome};
use crate::vfio::Change;
use crate::wire::{HOST_PAGE, Status, u64_at};

pub(super) const COMMAND: Command = Command {
    opcode: 0x7c,
    name: "Doorbell Buffer Config",
    optional: 1 << 8,
    while_sanitizing: true,
    run: |call| {
        let (doorbells, events) = (u64_at(&call.sqe.0, 24), u64_at(&call.sqe.0, 32));
        if [doorbells, events].iter().any(|page| !page.is_multiple_of(HOST_PAGE as u64)) {
            return Err(Status::INVALID_FIELD);
        }
        Ok(Outcome::Queues(Change::Shadow { doorbells, events }))
    },
    ..Command::BARE
};
