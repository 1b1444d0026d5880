//! I/O Management Send (Base 2.1, section 7.4): handles go on with other reclaim units.

use super::{Command, Outcome};
use crate::wire::placement::{self, IDENTIFIERS_MAX, event};
use crate::wire::{Status, status_of};

/// Dword 10, bits 7:0.
const NOTHING: u32 = 0;
const UPDATE: u32 = 1;

pub(super) const COMMAND: Command = Command {
    opcode: 0x1d,
    name: "I/O Management Send",
    needs_placement: true,
    run: |call| {
        let handles = call.namespace()?.handles.clone();
        match call.sqe.dword(10) & 0xff {
            NOTHING => return Ok(Outcome::nothing()),
            UPDATE => call.subsystem.placement_on()?,
            _ => return Err(Status::INVALID_FIELD),
        };
        let count = (call.sqe.dword(10) >> 16) as usize + 1;
        if count > usize::from(IDENTIFIERS_MAX) {
            return Err(Status::INVALID_FIELD);
        }
        let list = call.data.get(..2 * count).ok_or(Status::SGL_LENGTH)?;
        // All or none.
        let found: Option<Vec<_>> = placement::identifiers(list)
            .map(|identifier| Some((identifier, call.subsystem.placed_by(&handles, identifier)?)))
            .collect();
        for (identifier, (stream, group, handle)) in found.ok_or(Status::INVALID_FIELD)? {
            let placed = call.media.placed().ok_or(Status::INTERNAL)?;
            let left = placed.renew(stream).map_err(|error| status_of(&error, true))?;
            if left.is_some() {
                call.note_placement_event(event::NOT_FULL, identifier, (group, handle));
            }
        }
        Ok(Outcome::nothing())
    },
    ..Command::BARE
};
