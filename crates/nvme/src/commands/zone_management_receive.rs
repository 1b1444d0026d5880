//! Zone Management Receive (Zoned Namespace Command Set 1.2, section 3.4.2): a report of zones, from the one that holds a block on.

use super::{Command, TRANSFER_MAX};
use crate::wire::Status;
use crate::wire::zones::{self, DESCRIPTOR_BYTES};
use flashwright_block::ZoneState;

/// Dword 13, bits 7:0. An extended report needs descriptor extensions, which zones have none of.
const REPORT: u32 = 0;
/// Dword 13, bits 15:8: all zones, or those of a state, by these numbers from 1 on.
const STATES: [ZoneState; 7] = [
    ZoneState::Empty,
    ZoneState::ImplicitlyOpen,
    ZoneState::ExplicitlyOpen,
    ZoneState::Closed,
    ZoneState::Full,
    ZoneState::ReadOnly,
    ZoneState::Offline,
];
/// Dword 13, bit 16: only zones that fit are counted.
const PARTIAL: u32 = 1 << 16;

pub(super) const COMMAND: Command = Command {
    opcode: 0x7a,
    name: "Zone Management Receive",
    of_zones: true,
    run: |call| {
        let (zoning, shift, asked) = (call.zoning()?, call.namespace()?.shift(), call.sqe.dword(13));
        let wanted = match asked >> 8 & 0xff {
            0 => None,
            number => Some(*STATES.get(number as usize - 1).ok_or(Status::INVALID_FIELD)?),
        };
        let bytes = (u64::from(call.sqe.dword(12)) + 1) * 4;
        if asked & 0xff != REPORT || bytes < DESCRIPTOR_BYTES as u64 || bytes > TRANSFER_MAX as u64 {
            return Err(Status::INVALID_FIELD);
        }
        if bytes > u64::from(call.sqe.sgl().length) {
            return Err(Status::SGL_LENGTH);
        }
        let bytes = usize::try_from(bytes).expect("a MiB at most");
        let (first, _) = call.zone_of(&zoning, call.sqe.first_block())?;
        let (mut data, mut count) = (zones::report_head(0).to_vec(), 0u64);
        for number in first..zoning.zones {
            let zone = call.zone(number)?;
            if wanted.is_some_and(|wanted| wanted != zone.state) {
                continue;
            }
            let fits = data.len() + DESCRIPTOR_BYTES <= bytes;
            if fits {
                data.extend(zones::descriptor(&zoning, number, zone, shift));
            } else if asked & PARTIAL != 0 {
                break;
            }
            count += 1;
        }
        data[..DESCRIPTOR_BYTES].copy_from_slice(&zones::report_head(count));
        data.resize(bytes, 0);
        Ok(call.reply(data))
    },
    ..Command::BARE
};
