//! Set Features (NVM Express Base 2.1, section 5.1.25), and the features that there are.

use super::{Call, Command, Outcome};
use crate::placement::DataPlacement;
use crate::subsystem::IO_QUEUES_MAX;
use crate::wire::{ALL_NAMESPACES, Status, lba_status, u64_at};

/// A feature.
pub(super) struct Feature {
    pub id: u8,
    pub default: u32,
    /// Bits of dword 11 that may be set.
    pub allowed: u32,
    pub can_change: bool,
    /// Whether each namespace has its own value.
    pub of_namespace: bool,
    /// Whether it is kept with the drive, in any case.
    pub is_kept: bool,
    /// Whether it needs a drive that places data by handle.
    needs_placement: bool,
    /// Whether it needs a drive with several command sets.
    needs_zones: bool,
    /// Whether it needs a drive that takes writes in any order.
    needs_any_order: bool,
}

impl Feature {
    /// The feature of an identifier.
    pub fn find(id: u8, call: &Call<'_>) -> Result<&'static Self, Status> {
        let is_there = |feature: &&Self| {
            (!feature.needs_placement || call.subsystem.placement.is_some())
                && (!feature.needs_zones || call.subsystem.about.zoning.is_some())
                && (!feature.needs_any_order || call.subsystem.about.zoning.is_none())
        };
        FEATURES.iter().find(|feature| feature.id == id).filter(is_there).ok_or(Status::INVALID_FIELD)
    }
}

/// The features that have more than a value.
pub(super) mod id {
    pub const POWER: u8 = 0x02;
    pub const RECOVERY: u8 = 0x05;
    pub const QUEUES: u8 = 0x07;
    pub const TIMESTAMP: u8 = 0x0e;
    pub const KEEP_ALIVE: u8 = 0x0f;
    pub const HOST_BEHAVIOR: u8 = 0x16;
    pub const PLACEMENT: u8 = 0x1d;
    pub const PLACEMENT_EVENTS: u8 = 0x1e;
    pub const HOST_IDENTIFIER: u8 = 0x81;
}

const fn feature(id: u8, default: u32, allowed: u32) -> Feature {
    Feature {
        id,
        default,
        allowed,
        can_change: true,
        of_namespace: id == id::RECOVERY,
        is_kept: false,
        needs_placement: false,
        needs_zones: false,
        needs_any_order: false,
    }
}

/// A feature of placement, with a value of its own making.
const fn of_placement(id: u8, of_namespace: bool) -> Feature {
    Feature { of_namespace, is_kept: true, needs_placement: true, ..feature(id, 0, u32::MAX) }
}

/// Dword 11 of "number of queues": completion queues in bits 31:16, submission queues in bits 15:0, both counted from 0.
const QUEUES: u32 = (IO_QUEUES_MAX as u32 - 1) << 16 | (IO_QUEUES_MAX as u32 - 1);

pub(super) const FEATURES: &[Feature] = &[
    feature(0x01, 0, u32::MAX), // arbitration
    feature(id::POWER, 0, 0x1f),
    feature(0x04, 343, 0x3f_ffff), // temperature threshold, kelvin
    feature(id::RECOVERY, 0, 0xffff | DULBE),
    feature(0x06, 1, 1), // volatile write cache
    feature(id::QUEUES, QUEUES, u32::MAX),
    feature(0x0a, 0, 1),        // write atomicity
    feature(0x0b, 0, u32::MAX), // events that are announced
    feature(id::TIMESTAMP, 0, 0),
    feature(id::KEEP_ALIVE, 0, u32::MAX), // milliseconds
    Feature { needs_any_order: true, ..feature(lba_status::INTERVAL, 0, 0xffff) }, // in units of 100 ms
    feature(id::HOST_BEHAVIOR, 0, 0),
    feature(0x17, 0, 1), // sanitize: how a wish that can't be met is answered
    Feature { needs_zones: true, ..feature(0x19, 0, 0) }, // which command sets: the one combination
    of_placement(id::PLACEMENT, false),
    of_placement(id::PLACEMENT_EVENTS, true),
    Feature { can_change: false, ..feature(id::HOST_IDENTIFIER, 0, 0) }, // Connect sets it
];

/// Dword 11 of "error recovery", bit 16: an error where a host reads what is not written (DULBE). The other bits are a time limit.
pub(super) const DULBE: u32 = 1 << 16;

/// Dword 10, bit 31: keep it over power cycles.
const SAVE: u32 = 1 << 31;

pub(super) const COMMAND: Command = Command {
    opcode: 0x09,
    name: "Set Features",
    in_discovery: true,
    while_sanitizing: true,
    run: |call| {
        let (id, value) = ((call.sqe.dword(10) & 0xff) as u8, call.sqe.dword(11));
        let feature = Feature::find(id, call)?;
        if call.sqe.dword(10) & SAVE != 0 && !feature.is_kept {
            return Err(Status::NOT_SAVEABLE);
        }
        if !feature.can_change {
            return Err(Status::NOT_CHANGEABLE);
        }
        let nsid = call.sqe.nsid();
        if !feature.of_namespace && nsid != 0 && nsid != ALL_NAMESPACES {
            return Err(Status::NOT_OF_NAMESPACE);
        }
        if value & !feature.allowed != 0 {
            return Err(Status::INVALID_FIELD);
        }
        let data = call.data;
        match id {
            id::PLACEMENT => return placement(call),
            id::PLACEMENT_EVENTS => return placement_events(call),
            id::POWER if value & 0x1f != 0 => return Err(Status::INVALID_FIELD), // there is one power state
            id::RECOVERY if value & DULBE != 0 && !call.subsystem.about.tells_unwritten() => {
                return Err(Status::INVALID_FIELD);
            }
            id::RECOVERY => {
                call.subsystem.has_dulbe |= value & DULBE != 0;
                for nsid in call.namespaces()? {
                    call.controller()?.features.insert((id, nsid), value);
                }
                return Ok(Outcome::nothing());
            }
            id::QUEUES => {
                let (submission, completion) = (value & 0xffff, value >> 16);
                if submission == 0xffff || completion == 0xffff {
                    return Err(Status::INVALID_FIELD);
                }
                let given = submission.min(completion).min(u32::from(IO_QUEUES_MAX) - 1);
                let given = given << 16 | given;
                call.controller()?.features.insert((id, 0), given);
                return Ok(Outcome::Done(u64::from(given), Vec::new()));
            }
            id::TIMESTAMP => {
                let set = u64_at(data.get(..8).ok_or(Status::SGL_LENGTH)?, 0) & 0xffff_ffff_ffff;
                let now_ns = call.media.health().power_on_ns;
                call.controller()?.timestamp = Some((set, now_ns));
            }
            id::KEEP_ALIVE => call.controller()?.keep_alive_ms = value,
            id::HOST_BEHAVIOR => {
                let behavior = data.get(..512).ok_or(Status::SGL_LENGTH)?;
                call.controller()?.host_behavior.copy_from_slice(behavior);
            }
            _ => {}
        }
        call.controller()?.features.insert((id, 0), value);
        Ok(Outcome::nothing())
    },
    ..Command::BARE
};

/// Switches placement on (dword 12, bit 0) or off, in the endurance group that dword 11 names, by the configuration in bits 15:8.
fn placement(call: &mut Call<'_>) -> Result<Outcome, Status> {
    let (group, asked) = (call.sqe.dword(11) & 0xffff, call.sqe.dword(12));
    if group != 1 || asked >> 8 & 0xff != 0 {
        return Err(Status::INVALID_FIELD);
    }
    call.subsystem.switch_placement(asked & 1 != 0, call.media)?;
    Ok(Outcome::nothing())
}

/// Has events of some types be noted (dword 12, bit 0) or not, of the placement identifier that dword 11 names.
fn placement_events(call: &mut Call<'_>) -> Result<Outcome, Status> {
    let (handle, count) = call.placement_handle()?;
    let types = call.data.get(..count).ok_or(Status::SGL_LENGTH)?;
    let bits = types.iter().map(|kind| DataPlacement::bit_of(*kind).ok_or(Status::INVALID_FIELD));
    let bits = bits.collect::<Result<Vec<u8>, Status>>()?.iter().fold(0, |all, bit| all | bit);
    let is_wanted = call.sqe.dword(12) & 1 != 0;
    call.subsystem.want_events(handle, bits, is_wanted, call.media);
    Ok(Outcome::nothing())
}
