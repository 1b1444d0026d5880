//! Namespace Attachment (NVM Express Base 2.1, section 5.1.20): which controllers have a namespace.
//!
//! Controllers come and go with their hosts' connections. One that comes has what controllers had: a namespace that was attached
//! to any, until it is detached from the last.

use super::{Command, Outcome, effects};
use crate::namespace::{controllers_of_list, is_valid};
use crate::wire::Status;

/// Bytes of a list of controllers.
const BYTES: usize = 4096;
/// Dword 10, bits 3:0.
const ATTACH: u32 = 0;
const DETACH: u32 = 1;

pub(super) const COMMAND: Command = Command {
    opcode: 0x15,
    name: "Namespace Attachment",
    effects: effects::NAMESPACE | effects::INVENTORY | effects::ALL_ALONE,
    optional: 1 << 3,
    needs_zeros: true,
    run: |call| {
        let (nsid, by) = (call.sqe.nsid(), call.place.controller);
        if !is_valid(nsid) {
            return Err(Status::INVALID_NAMESPACE);
        }
        call.subsystem.namespaces.get(nsid).ok_or(Status::INVALID_FIELD)?;
        let select = call.sqe.dword(10) & 0xf;
        if select != ATTACH && select != DETACH {
            return Err(Status::INVALID_FIELD);
        }
        let ids = controllers_of_list(call.data.get(..BYTES).ok_or(Status::SGL_LENGTH)?)?;
        call.subsystem.attach(nsid, &ids, select == ATTACH, by)?;
        Ok(Outcome::nothing())
    },
    ..Command::BARE
};
