//! I/O Management Receive (Base 2.1, section 7.3): what the reclaim units of a namespace have room for.

use super::{Command, Outcome, TRANSFER_MAX};
use crate::wire::placement::{self, UnitStatus};
use crate::wire::{Status, status_of};

/// Dword 10, bits 7:0.
const NOTHING: u32 = 0;
const UNITS: u32 = 1;

pub(super) const COMMAND: Command = Command {
    opcode: 0x12,
    name: "I/O Management Receive",
    needs_placement: true,
    run: |call| {
        let (handles, shift) = call.namespace().map(|namespace| (namespace.handles.clone(), namespace.shift()))?;
        let asked = (u64::from(call.sqe.dword(11)) + 1) * 4;
        match call.sqe.dword(10) & 0xff {
            NOTHING => return Ok(Outcome::nothing()),
            UNITS => call.subsystem.placement_on()?,
            _ => return Err(Status::INVALID_FIELD),
        };
        if asked > TRANSFER_MAX as u64 {
            return Err(Status::INVALID_FIELD);
        }
        if asked > u64::from(call.sqe.sgl().length) {
            return Err(Status::SGL_LENGTH);
        }
        let offered = call.subsystem.placement_on()?.offered;
        let placed = call.media.placed().ok_or(Status::INTERNAL)?;
        let mut units = Vec::with_capacity(handles.len() * usize::from(offered.groups));
        for (place, handle) in (0..).zip(handles) {
            for group in 0..offered.groups {
                let [identifier, stream] =
                    [place, handle.into()].map(|number| offered.group_bits().join(group, number));
                let room = placed.room(stream).map_err(|error| status_of(&error, false))?;
                units.push(UnitStatus { identifier, handle: handle.into(), blocks: room.0 >> shift });
            }
        }
        let mut data = placement::units(&units);
        data.resize(usize::try_from(asked).expect("a MiB at most"), 0);
        Ok(call.reply(data))
    },
    ..Command::BARE
};
