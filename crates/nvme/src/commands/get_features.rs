//! Get Features (NVM Express Base 2.1, section 5.1.11).

use super::set_features::{FEATURES, Feature, id};
use super::{Call, Command, Outcome};
use crate::wire::{ALL_NAMESPACES, Status};

/// Which value: the current one, the default, a saved one, or what can be done with it.
const CURRENT: u32 = 0;
const CAPABILITIES: u32 = 3;

pub(super) const COMMAND: Command = Command {
    opcode: 0x0a,
    name: "Get Features",
    in_discovery: true,
    while_sanitizing: true,
    run: |call| {
        let (id, select) = ((call.sqe.dword(10) & 0xff) as u8, call.sqe.dword(10) >> 8 & 7);
        let feature = FEATURES.iter().find(|feature| feature.id == id).ok_or(Status::INVALID_FIELD)?;
        if select == CAPABILITIES {
            let bits = u64::from(feature.of_namespace) << 1 | u64::from(feature.can_change) << 2;
            return Ok(Outcome::Done(bits, Vec::new()));
        }
        if select > CAPABILITIES {
            return Err(Status::INVALID_FIELD);
        }
        // Nothing is saved, so that what is saved is the default.
        let is_current = select == CURRENT;
        let found = value(call, feature, is_current)?;
        let data = data(call, id, is_current)?;
        if data.len() > call.sqe.sgl().length as usize {
            return Err(Status::SGL_LENGTH);
        }
        Ok(Outcome::Done(u64::from(found), data))
    },
    ..Command::BARE
};

fn value(call: &mut Call<'_>, feature: &Feature, is_current: bool) -> Result<u32, Status> {
    let nsid = call.sqe.nsid();
    let nsid = match feature.of_namespace {
        // All namespaces have a value, which may not be the same.
        true if nsid == ALL_NAMESPACES => return Err(Status::INVALID_NAMESPACE),
        true => call.namespace()?.id,
        false => 0,
    };
    let controller = call.controller()?;
    Ok(match feature.id {
        _ if !is_current => feature.default,
        id::KEEP_ALIVE => controller.keep_alive_ms,
        id => controller.features.get(&(id, nsid)).copied().unwrap_or(feature.default),
    })
}

/// What a feature has beside its value.
fn data(call: &mut Call<'_>, feature: u8, is_current: bool) -> Result<Vec<u8>, Status> {
    /// The origin of a timestamp that a host has set, in bits 3:1 of byte 6.
    const SET_BY_HOST: u8 = 1 << 1;
    let health = call.health;
    let controller = call.controller()?;
    Ok(match feature {
        id::TIMESTAMP => {
            let now_ns = health().power_on_ns;
            let (set_ms, at_ns) = controller.timestamp.filter(|_| is_current).unwrap_or((0, 0));
            let ms = if is_current { set_ms + now_ns.saturating_sub(at_ns) / 1_000_000 } else { 0 };
            let mut data = ms.to_le_bytes();
            data[6..].fill(0);
            if is_current && controller.timestamp.is_some() {
                data[6] = SET_BY_HOST;
            }
            data.to_vec()
        }
        id::HOST_BEHAVIOR if is_current => controller.host_behavior.clone(),
        id::HOST_BEHAVIOR => vec![0; controller.host_behavior.len()],
        id::HOST_IDENTIFIER => controller.host.0.to_vec(),
        _ => Vec::new(),
    })
}
