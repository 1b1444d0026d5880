//! Dataset Management (NVM Command Set 1.1, section 3.3.3): ranges that are no longer needed. Other attributes are hints.

use super::{Command, Op, Outcome, effects};
use crate::wire::identify::RANGE_BYTES_MAX;
use crate::wire::{Status, u32_at, u64_at};

/// Bytes of a range: attributes, number of blocks, first block.
const RANGE: usize = 16;
/// Dword 11, bit 2: the ranges are deallocated.
const DEALLOCATE: u32 = 1 << 2;

pub(super) const COMMAND: Command = Command {
    opcode: 0x09,
    name: "Dataset Management",
    effects: effects::CONTENT,
    optional: 1 << 2,
    in_discovery: false,
    run: |call| {
        call.check_namespace()?;
        let count = (call.sqe.dword(10) & 0xff) as usize + 1;
        let ranges = call.data.get(..count * RANGE).ok_or(Status::SGL_LENGTH)?;
        if call.sqe.dword(11) & DEALLOCATE == 0 {
            return Ok(Outcome::nothing());
        }
        call.check_writable()?;
        let shift = call.subsystem.block_shift();
        let all = call.subsystem.namespace.bytes >> shift;
        let mut found = Vec::with_capacity(count);
        for range in ranges.chunks_exact(RANGE) {
            let (blocks, first) = (u64::from(u32_at(range, 4)), u64_at(range, 8));
            if first.checked_add(blocks).is_none_or(|end| end > all) {
                return Err(Status::LBA_OUT_OF_RANGE);
            }
            if blocks << shift > RANGE_BYTES_MAX {
                return Err(Status::SIZE_LIMIT);
            }
            // What is not a whole page of the flash stays as it is: a trim of a part of one leaves its content open.
            let page = call.subsystem.about.page_bytes;
            let (begins, ends) = ((first << shift).next_multiple_of(page), (first + blocks) << shift);
            let ends = ends - ends % page;
            found.extend(call.pieces(Op::Deallocate, begins, ends.saturating_sub(begins)));
        }
        Ok(Outcome::Several(found))
    },
};
