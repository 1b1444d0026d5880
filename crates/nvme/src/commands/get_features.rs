//! Get Features (NVM Express Base 2.1, section 5.1.11).

use super::set_features::{FEATURES, Feature};
use super::{Call, Command, Outcome};
use crate::wire::Status;

/// Which value: the current one, the default, a saved one, or what can be done with it.
const CAPABILITIES: u32 = 3;
const DEFAULT: u32 = 1;

fn value(call: &mut Call<'_>, feature: &Feature, default: bool) -> Result<u32, Status> {
    let controller = call.controller()?;
    Ok(match feature.id {
        0x0f if !default => controller.keep_alive_ms,
        _ if default => feature.default,
        id => controller.features.get(&id).copied().unwrap_or(feature.default),
    })
}

pub(super) const COMMAND: Command = Command {
    opcode: 0x0a,
    name: "Get Features",
    effects: 0,
    optional: 0,
    in_discovery: true,
    run: |call| {
        let (id, select) = ((call.sqe.dword(10) & 0xff) as u8, call.sqe.dword(10) >> 8 & 7);
        let feature = FEATURES.iter().find(|feature| feature.id == id).ok_or(Status::INVALID_FIELD)?;
        if select == CAPABILITIES {
            return Ok(Outcome::Done(u64::from(feature.can_change) << 2, Vec::new()));
        }
        if select > CAPABILITIES {
            return Err(Status::INVALID_FIELD);
        }
        // Nothing is saved, so that what is saved is the default.
        let found = value(call, feature, select >= DEFAULT)?;
        let data = match id {
            0x16 => call.controller()?.host_behavior.clone(),
            0x81 => call.controller()?.host.0.to_vec(),
            _ => Vec::new(),
        };
        if data.len() > call.sqe.sgl().length as usize {
            return Err(Status::SGL_LENGTH);
        }
        Ok(Outcome::Done(u64::from(found), data))
    },
};
