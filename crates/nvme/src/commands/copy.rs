//! Copy (NVM Command Set 1.1, section 3.3.2): blocks of several ranges go to one range, without crossing to the host.
//!
//! The drive reads and writes them as it does for a host, so that its write amplification counts them. Everything is read before
//! anything is written. Descriptor formats 0h, and 2h of hosts that have enabled it, which names the namespace of each source; 1h and
//! 3h are of namespaces with larger protection information.

use super::{Command, Copying, Op, Outcome, Range, TRANSFER_MAX, effects};
use crate::wire::identify::COPY_RANGES_MAX;
use crate::wire::{Status, u16_at, u32_at, u64_at};

/// Bytes of a source range: its namespace in format 2h, the first block in bytes 15:8, the number of blocks from 0 in bytes 17:16.
const RANGE: usize = 32;
/// Whether a host has enabled format 2h: byte 4 of its behavior, bit 2.
const FORMAT_2: u8 = 1 << 2;

pub(super) const COMMAND: Command = Command {
    opcode: 0x19,
    name: "Copy",
    effects: effects::CONTENT,
    optional: 1 << 8,
    run: |call| {
        let namespace = call.namespace()?;
        let controller = call.subsystem.controller(call.place.controller).ok_or(Status::SEQUENCE)?;
        let dword = call.sqe.dword(12);
        let (count, format) = ((dword & 0xff) as usize + 1, dword >> 8 & 0xf);
        let names_namespaces = match format {
            0 => false,
            2 if controller.host_behavior[4] & FORMAT_2 != 0 => true,
            _ => return Err(Status::INVALID_FIELD),
        };
        let placing = call.placing()?;
        if count > usize::from(COPY_RANGES_MAX) {
            return Err(Status::SIZE_LIMIT);
        }
        let ranges = call.data.get(..count * RANGE).ok_or(Status::SGL_LENGTH)?;
        let blocks_of = |range: &[u8]| u64::from(u16_at(range, 16)) + 1;
        let most = TRANSFER_MAX as u64 >> namespace.shift();
        // One limit for each range and for all of them together.
        let blocks: u64 = ranges.chunks_exact(RANGE).map(blocks_of).sum();
        if blocks > most {
            return Err(Status::SIZE_LIMIT);
        }
        call.check_writable()?;
        let destination = Range::of(namespace, call.sqe.first_block(), blocks)?;
        let mut reads = Vec::with_capacity(count);
        for range in ranges.chunks_exact(RANGE) {
            let source = if names_namespaces { call.namespace_of(u32_at(range, 0))? } else { namespace };
            if source.format != namespace.format {
                return Err(Status::INCOMPATIBLE);
            }
            let source = Range::of(source, u64_at(range, 8), blocks_of(range))?;
            let begins_before = source.first < destination.first + destination.bytes;
            let is_same = source.namespace.id == namespace.id;
            if is_same && begins_before && destination.first < source.first + source.bytes {
                return Err(Status::OVERLAPPING);
            }
            reads.extend(source.ios(Op::Read, false));
        }
        let writes = destination.placed(placing).ios(Op::Write, call.is_durable());
        call.note_placing(placing);
        call.readable(Outcome::Copy(Box::new(Copying { reads, writes })))
    },
    ..Command::BARE
};
