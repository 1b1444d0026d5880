//! Write Zeroes (NVM Command Set 1.1, section 3.3.8).

use super::{Command, Op, effects};
use crate::wire::identify::ZEROES_MAX;
use crate::wire::{HOST_PAGE, Status};

/// Dword 12, bit 25: the blocks may be deallocated.
const DEALLOCATE: u32 = 1 << 25;

pub(super) const COMMAND: Command = Command {
    opcode: 0x08,
    name: "Write Zeroes",
    effects: effects::CONTENT,
    optional: 1 << 3,
    run: |call| {
        let placing = call.placing()?;
        call.check_writable()?;
        let may_deallocate = call.sqe.dword(12) & DEALLOCATE != 0 && call.subsystem.about.trims_to_zeros;
        let zeroes = Op::WriteZeroes(may_deallocate);
        let is_zoned = call.subsystem.about.zoning.is_some();
        if is_zoned && call.sqe.blocks() << call.namespace()?.shift() > (HOST_PAGE << ZEROES_MAX) as u64 {
            return Err(Status::INVALID_FIELD);
        }
        let outcome = call.range()?.placed(placing).asks(zeroes, call.is_durable());
        call.note_placing(placing);
        Ok(outcome)
    },
    ..Command::BARE
};
