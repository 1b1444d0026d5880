//! Get Features (NVM Express Base 2.1, section 5.1.11).

use super::set_features::{Feature, id};
use super::{Call, Command, Outcome};
use crate::wire::placement::event;
use crate::wire::{ALL_NAMESPACES, Status};

/// Which value: the current one, the default, a saved one, or what can be done with it.
const CURRENT: u32 = 0;
const SAVED: u32 = 2;
const CAPABILITIES: u32 = 3;

pub(super) const COMMAND: Command = Command {
    opcode: 0x0a,
    name: "Get Features",
    in_discovery: true,
    while_sanitizing: true,
    run: |call| {
        let (id, select) = ((call.sqe.dword(10) & 0xff) as u8, call.sqe.dword(10) >> 8 & 7);
        let feature = Feature::find(id, call)?;
        if select == CAPABILITIES {
            let bits =
                u64::from(feature.is_kept) | u64::from(feature.of_namespace) << 1 | u64::from(feature.can_change) << 2;
            return Ok(Outcome::Done(bits, Vec::new()));
        }
        if select > CAPABILITIES {
            return Err(Status::INVALID_FIELD);
        }
        // What is kept is current; of others nothing is saved, so that what is saved is the default.
        let is_current = select == CURRENT || select == SAVED && feature.is_kept;
        match id {
            id::PLACEMENT => return placement(call, is_current),
            id::PLACEMENT_EVENTS => return placement_events(call, is_current),
            _ => {}
        }
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

/// Whether data are placed in the endurance group that dword 11 names, and by which configuration: there is one of each.
fn placement(call: &Call<'_>, is_current: bool) -> Result<Outcome, Status> {
    if call.sqe.dword(11) & 0xffff != 1 {
        return Err(Status::INVALID_FIELD);
    }
    let is_on = !is_current || call.subsystem.placement_on().is_ok();
    Ok(Outcome::Done(u64::from(is_on), Vec::new()))
}

/// The types of events that there are of the placement identifier in dword 11, and whether they are noted: at most as many as that
/// asks for.
fn placement_events(call: &Call<'_>, is_current: bool) -> Result<Outcome, Status> {
    let (handle, most) = call.placement_handle()?;
    let placement = call.subsystem.placement_on()?;
    let entry = |kind: &u8| [*kind, u8::from(is_current && placement.wants(handle, *kind))];
    let data: Vec<u8> = event::ALL.iter().take(most).flat_map(entry).collect();
    if data.len() > call.sqe.sgl().length as usize {
        return Err(Status::SGL_LENGTH);
    }
    Ok(Outcome::Done(event::ALL.len() as u64, data))
}

/// What a feature has beside its value.
fn data(call: &mut Call<'_>, feature: u8, is_current: bool) -> Result<Vec<u8>, Status> {
    Ok(match feature {
        id::TIMESTAMP if is_current => {
            let now_ns = call.media.health().power_on_ns;
            call.controller()?.timestamp_of(now_ns).to_vec()
        }
        id::TIMESTAMP => vec![0; 8],
        id::HOST_BEHAVIOR if is_current => call.controller()?.host_behavior.clone(),
        id::HOST_BEHAVIOR => vec![0; call.controller()?.host_behavior.len()],
        id::HOST_IDENTIFIER => call.controller()?.host.0.to_vec(),
        _ => Vec::new(),
    })
}
