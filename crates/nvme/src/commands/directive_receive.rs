//! Directive Receive (Base 2.1, sections 5.1.7 and 8.1.8): which directives a namespace has. Data placement has no operations of its
//! own.

use super::{Command, TRANSFER_MAX};
use crate::wire::{Status, placement};

/// Dword 11, bits 15:0: the directive Identify, and its operation Return Parameters.
const RETURN_PARAMETERS: u32 = 1;
/// Bytes of the parameters.
const BYTES: usize = 4096;
/// The directive Identify, which is always enabled.
const IDENTIFY: u8 = 1;

pub(super) const COMMAND: Command = Command {
    opcode: 0x1a,
    name: "Directive Receive",
    optional: 1 << 5,
    needs_placement: true,
    run: |call| {
        let is_enabled = !call.namespace()?.handles.is_empty();
        let asked = (u64::from(call.sqe.dword(10)) + 1) * 4;
        if call.sqe.dword(11) & 0xffff != RETURN_PARAMETERS || asked > TRANSFER_MAX as u64 {
            return Err(Status::INVALID_FIELD);
        }
        let of_placement = 1 << placement::DIRECTIVE;
        let mut data = vec![0; BYTES];
        data[0] = IDENTIFY | of_placement; // supported
        data[32] = IDENTIFY | if is_enabled { of_placement } else { 0 };
        data[64] = if is_enabled { of_placement } else { 0 }; // it persists across resets of the controller
        data.truncate(usize::try_from(asked).unwrap_or(BYTES));
        Ok(call.reply(data))
    },
    ..Command::BARE
};
