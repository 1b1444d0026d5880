//! Zone Management Send (Zoned Namespace Command Set 1.2, section 3.4.3): opens, closes, finishes and resets zones, and takes them out
//! of use. Zones have no descriptor extensions, and no random write area.

use super::{Call, Command, Io, Op, Outcome, effects};
use crate::wire::{Status, status_of};
use flashwright_block::{ZoneState, Zoning};

/// Dword 13, bits 7:0.
const CLOSE: u32 = 1;
const FINISH: u32 = 2;
const OPEN: u32 = 3;
const RESET: u32 = 4;
const OFFLINE: u32 = 5;
/// Dword 13, bit 8: all zones in the states from which the action leads to another.
const ALL: u32 = 1 << 8;

pub(super) const COMMAND: Command = Command {
    opcode: 0x79,
    name: "Zone Management Send",
    effects: effects::CONTENT,
    of_zones: true,
    run: |call| {
        let (zoning, serial) = (call.zoning()?, call.namespace()?.serial);
        let asked = call.sqe.dword(13);
        // None is what no request does.
        let op = match asked & 0xff {
            CLOSE => Some(Op::CloseZone),
            FINISH => Some(Op::FinishZone),
            OPEN => Some(Op::OpenZone),
            RESET => Some(Op::ResetZone),
            OFFLINE => None,
            _ => return Err(Status::INVALID_FIELD),
        };
        call.check_writable()?;
        let zones = if asked & ALL != 0 {
            those_that_change(call, &zoning, op)?
        } else {
            match call.zone_of(&zoning, call.sqe.first_block())? {
                (number, true) => vec![number],
                _ => return Err(Status::INVALID_FIELD),
            }
        };
        let Some(op) = op else {
            for number in zones {
                call.zoned()?.retire(number).map_err(|error| status_of(&error, true))?;
            }
            return Ok(Outcome::nothing());
        };
        let io = |number: u32| {
            let offset = u64::from(number) * zoning.size.0;
            Io { op, namespace: serial, offset, ..Io::FLUSH }
        };
        Ok(Outcome::Several(zones.into_iter().map(io).collect()))
    },
    ..Command::BARE
};

/// The zones that an action on all of them changes.
fn those_that_change(call: &mut Call<'_>, zoning: &Zoning, op: Option<Op>) -> Result<Vec<u32>, Status> {
    let (mut found, mut explicitly) = (Vec::new(), 0);
    for number in 0..zoning.zones {
        let state = call.zone(number)?.state;
        let changes = match op {
            Some(Op::OpenZone) => state == ZoneState::Closed,
            Some(Op::CloseZone) => state.is_open(),
            Some(Op::FinishZone) => state.is_active(),
            Some(_) => state.is_active() || state == ZoneState::Full,
            None => state == ZoneState::ReadOnly,
        };
        explicitly += usize::from(state == ZoneState::ExplicitlyOpen);
        found.extend(changes.then_some(number));
    }
    // All or none: implicitly open zones make room, explicitly open ones don't.
    let limit = zoning.max_open as usize;
    if op == Some(Op::OpenZone) && limit > 0 && explicitly + found.len() > limit {
        return Err(Status::TOO_MANY_OPEN_ZONES);
    }
    Ok(found)
}
