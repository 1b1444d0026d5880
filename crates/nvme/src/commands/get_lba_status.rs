//! Get LBA Status (NVM Command Set 1.1, section 4.2.1): which blocks of a range may not be readable. Of this drive these are the ones that
//! hosts have marked with Write Uncorrectable, so that a scan finds no others than it knows.

use super::{Command, Range, TRANSFER_MAX};
use crate::wire::Status;
use crate::wire::lba_status::{SCAN, TRACKED, list};

pub(super) const COMMAND: Command = Command {
    opcode: 0x86,
    name: "Get LBA Status",
    optional: 1 << 9,
    needs_any_order: true,
    run: |call| {
        let (first, dwords) = (call.sqe.first_block(), u64::from(call.sqe.dword(12)) + 1);
        let (action, blocks) = ((call.sqe.dword(13) >> 24) as u8, u64::from(call.sqe.dword(13) & 0xffff));
        let namespace = call.namespace()?;
        if action != SCAN && action != TRACKED {
            return Err(Status::INVALID_FIELD);
        }
        // A length of 0 stands for all that follows.
        let rest = namespace.blocks().checked_sub(first).filter(|rest| *rest > 0).ok_or(Status::LBA_OUT_OF_RANGE)?;
        let range = Range::of(namespace, first, if blocks == 0 { rest } else { blocks })?;
        let bytes = usize::try_from(dwords * 4).unwrap_or(usize::MAX);
        if bytes > TRANSFER_MAX {
            return Err(Status::INVALID_FIELD);
        }
        if bytes > call.sqe.sgl().length as usize {
            return Err(Status::SGL_LENGTH);
        }
        let marked = call.subsystem.uncorrectable.of_namespace(namespace, range.first, range.bytes);
        Ok(call.reply(list(&marked, bytes)))
    },
    ..Command::BARE
};
