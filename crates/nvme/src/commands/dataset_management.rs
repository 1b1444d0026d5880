//! Dataset Management (NVM Command Set 1.1, section 3.3.3): ranges that are no longer needed. Other attributes are hints; on a drive with
//! zones this one is, too, since space comes back by resets.

use super::{Command, Op, Outcome, Range, effects, pieces};
use crate::wire::identify::{RANGE_BYTES_MAX, RANGES_MAX};
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
    run: |call| {
        let namespace = call.namespace()?;
        let count = (call.sqe.dword(10) & 0xff) as usize + 1;
        let ranges = call.data.get(..count * RANGE).ok_or(Status::SGL_LENGTH)?;
        if call.sqe.dword(11) & DEALLOCATE == 0 {
            return Ok(Outcome::nothing());
        }
        call.check_writable()?;
        let page = call.subsystem.about.page_bytes;
        let mut found = Vec::with_capacity(count);
        for (number, range) in ranges.chunks_exact(RANGE).enumerate() {
            let asked = Range::of(namespace, u64_at(range, 8), u64::from(u32_at(range, 4)))?;
            // What lies beyond a limit is checked, and stays.
            if number >= usize::from(RANGES_MAX) || call.subsystem.about.zoning.is_some() {
                continue;
            }
            // What is not a whole page of the flash stays as it is: a trim of a part of one leaves its content open.
            let (begins, ends) = (asked.first.next_multiple_of(page), asked.first + asked.bytes.min(RANGE_BYTES_MAX));
            let ends = ends - ends % page;
            let whole = namespace.locate(begins, ends.saturating_sub(begins));
            found.extend(whole.flat_map(|extent| pieces(Op::Deallocate, namespace.serial, extent, page)));
        }
        Ok(Outcome::Several(found))
    },
    ..Command::BARE
};
