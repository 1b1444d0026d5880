//! Set Features (NVM Express Base 2.1, section 5.1.25), and the features that there are.

use super::{Command, Outcome};
use crate::subsystem::IO_QUEUES_MAX;
use crate::wire::Status;

/// A feature.
pub(super) struct Feature {
    pub id: u8,
    pub default: u32,
    /// Bits of dword 11 that may be set.
    pub allowed: u32,
    pub can_change: bool,
}

const fn feature(id: u8, default: u32, allowed: u32) -> Feature {
    Feature { id, default, allowed, can_change: allowed != 0 }
}

/// Dword 11 of "number of queues": completion queues in bits 31:16, submission queues in bits 15:0, both counted from 0.
const QUEUES: u32 = (IO_QUEUES_MAX as u32 - 1) << 16 | (IO_QUEUES_MAX as u32 - 1);

pub(super) const FEATURES: &[Feature] = &[
    feature(0x01, 0, u32::MAX),    // arbitration
    feature(0x02, 0, 0x1f),        // power management
    feature(0x04, 343, 0x3f_ffff), // temperature threshold, kelvin
    feature(0x05, 0, 0xffff),      // error recovery
    feature(0x06, 1, 1),           // volatile write cache
    feature(0x07, QUEUES, u32::MAX),
    feature(0x0a, 0, 1),        // write atomicity
    feature(0x0b, 0, u32::MAX), // events that are announced
    feature(0x0f, 0, u32::MAX), // keep alive, milliseconds
    feature(0x16, 0, u32::MAX), // host behavior
    feature(0x81, 0, 0),        // host identifier, which Connect sets
];

/// Dword 10, bit 31: keep it over power cycles.
const SAVE: u32 = 1 << 31;

pub(super) const COMMAND: Command = Command {
    opcode: 0x09,
    name: "Set Features",
    effects: 0,
    optional: 0,
    in_discovery: true,
    run: |call| {
        let (id, value) = ((call.sqe.dword(10) & 0xff) as u8, call.sqe.dword(11));
        let feature = FEATURES.iter().find(|feature| feature.id == id).ok_or(Status::INVALID_FIELD)?;
        if call.sqe.dword(10) & SAVE != 0 {
            return Err(Status::NOT_SAVEABLE);
        }
        if !feature.can_change {
            return Err(Status::NOT_CHANGEABLE);
        }
        if value & !feature.allowed != 0 {
            return Err(Status::INVALID_FIELD);
        }
        let data = call.data;
        match id {
            0x02 if value & 0x1f != 0 => return Err(Status::INVALID_FIELD), // there is one power state
            0x07 => {
                let (submission, completion) = (value & 0xffff, value >> 16);
                if submission == 0xffff || completion == 0xffff {
                    return Err(Status::INVALID_FIELD);
                }
                let given = submission.min(completion).min(u32::from(IO_QUEUES_MAX) - 1);
                let given = given << 16 | given;
                call.controller()?.features.insert(id, given);
                return Ok(Outcome::Done(u64::from(given), Vec::new()));
            }
            0x0f => call.controller()?.keep_alive_ms = value,
            0x16 => {
                let behavior = data.get(..512).ok_or(Status::SGL_LENGTH)?;
                call.controller()?.host_behavior.copy_from_slice(behavior);
            }
            _ => {}
        }
        call.controller()?.features.insert(id, value);
        Ok(Outcome::nothing())
    },
};
