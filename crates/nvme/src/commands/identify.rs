//! Identify (NVM Express Base 2.1, section 5.1.13).

use super::{Call, Command, optional};
use crate::namespace::{FORMATS, NAMESPACES_MAX, Namespace, is_valid};
use crate::sanitize;
use crate::subsystem::{Controller, DISCOVERY_NQN, FIRMWARE, IN_CAPSULE_BYTES, QUEUE_MAX, Subsystem};
use crate::wire::identify::{self, ControllerFacts, NamespaceFacts};
use crate::wire::{ALL_NAMESPACES, Status, zones};

/// The NVM command set.
const NVM: u8 = 0;
/// That of zoned namespaces.
const ZONED: u8 = zones::COMMAND_SET;

pub(super) const COMMAND: Command = Command {
    opcode: 0x06,
    name: "Identify",
    in_discovery: true,
    while_sanitizing: true,
    run: |call| {
        let (structure, set) = ((call.sqe.dword(10) & 0xff) as u8, (call.sqe.dword(11) >> 24) as u8);
        let (nsid, subsystem) = (call.sqe.nsid(), &*call.subsystem);
        let first_controller = (call.sqe.dword(10) >> 16) as u16;
        let asked = subsystem.controller(call.place.controller).ok_or(Status::SEQUENCE)?;
        if structure == 0x01 {
            return Ok(call.reply(controller(subsystem, asked)));
        }
        if asked.is_discovery {
            return Err(Status::INVALID_FIELD);
        }
        let zoning = subsystem.about.zoning;
        let is_there = set == NVM || set == ZONED && zoning.is_some();
        if matches!(structure, 0x05..=0x07 | 0x1a | 0x1b) && !is_there {
            return Err(Status::INVALID_FIELD);
        }
        let data = match structure {
            // What all namespaces have in common, where hosts may create some.
            0x00 if nsid == ALL_NAMESPACES && subsystem.is_managed() => identify::common_namespace(&FORMATS),
            0x00 => of_active(call, |facts| facts.structure())?,
            // A drive with zones has no namespace without.
            0x07 | 0x1a if zoning.is_some() && set == NVM => list(call, |_| false)?,
            0x02 | 0x07 => list(call, |namespace| call.namespace_of(namespace.id).is_ok())?,
            // It has no zeros for a namespace that is not there.
            0x03 if !is_valid(nsid) => return Err(Status::INVALID_NAMESPACE),
            0x03 => facts(call, call.namespace()?).descriptors(),
            0x05 if set == ZONED => of_active(call, of_zones)?,
            0x1b if set == ZONED => of_allocated(call, of_zones)?,
            // Extended formats of the NVM command set: there is nothing to add.
            0x05 => of_active(call, |_| vec![0; identify::BYTES])?,
            0x1b => of_allocated(call, |_| vec![0; identify::BYTES])?,
            0x06 if set == ZONED => zones::controller(),
            0x06 => identify::nvm_controller(zoning.is_some()),
            0x08 => of_active(call, |facts| facts.independent())?,
            0x1f => of_allocated(call, |facts| facts.independent())?,
            0x10 | 0x1a => list(call, |_| true)?,
            0x11 => of_allocated(call, |facts| facts.structure())?,
            0x12 if nsid == ALL_NAMESPACES => return Err(Status::INVALID_FIELD),
            0x12 if !is_valid(nsid) => return Err(Status::INVALID_NAMESPACE),
            0x12 => identify::controllers(subsystem.controllers_with(nsid), first_controller),
            0x13 => identify::controllers(subsystem.controllers(), first_controller),
            0x16 => identify::granularity(subsystem.namespaces.granule()),
            // Identifiers of endurance groups: one.
            0x19 => {
                let group = call.sqe.dword(11) & 0xffff;
                identify::controllers([1u16].into_iter(), u16::try_from(group + 1).unwrap_or(u16::MAX).max(1))
            }
            // Combinations of command sets: there is one.
            0x1c => {
                let mut data = vec![0; identify::BYTES];
                data[0] = 1 << NVM | u8::from(zoning.is_some()) << ZONED;
                data
            }
            _ => return Err(Status::INVALID_FIELD),
        };
        Ok(call.reply(data))
    },
    ..Command::BARE
};

fn controller(subsystem: &Subsystem, controller: &Controller) -> Vec<u8> {
    let (about, is_discovery) = (&subsystem.about, controller.is_discovery);
    let facts = ControllerFacts {
        serial: &subsystem.serial,
        model: &about.model,
        firmware: FIRMWARE,
        nqn: if is_discovery { DISCOVERY_NQN } else { &subsystem.nqn },
        id: controller.id,
        is_discovery,
        capacity: about.capacity(),
        unallocated: subsystem.namespaces.unallocated(),
        namespaces: if is_discovery { 0 } else { NAMESPACES_MAX },
        in_capsule: IN_CAPSULE_BYTES,
        queue_max: QUEUE_MAX,
        optional_commands: optional(1, controller, about),
        optional_admin: optional(0, controller, about),
        places_data: subsystem.placement.is_some(),
        has_zones: controller.has_zones,
        sanitize: if subsystem.is_managed() { sanitize::CAPABILITIES } else { 0 },
    };
    let mut data = facts.structure();
    if controller.is_function {
        crate::vfio::config::of_function(&mut data);
    }
    data
}

/// CNS 05h of zoned namespaces.
fn of_zones(facts: &NamespaceFacts) -> Vec<u8> {
    facts.zoning.map_or_else(|| vec![0; identify::BYTES], |zoning| zones::namespace(&zoning, facts.formats))
}

fn facts(call: &Call<'_>, namespace: &Namespace) -> NamespaceFacts {
    call.subsystem.namespace_facts(namespace, call.media.health().bytes_used)
}

/// A structure of a namespace that the controller has; zeros if it does not have it.
fn of_active(call: &Call<'_>, structure: fn(&NamespaceFacts) -> Vec<u8>) -> Result<Vec<u8>, Status> {
    match call.namespace() {
        Ok(namespace) => Ok(structure(&facts(call, namespace))),
        Err(Status::INVALID_FIELD) => Ok(vec![0; identify::BYTES]),
        Err(status) => Err(status),
    }
}

/// A structure of a namespace, whoever has it; zeros if there is none.
fn of_allocated(call: &Call<'_>, structure: fn(&NamespaceFacts) -> Vec<u8>) -> Result<Vec<u8>, Status> {
    if !is_valid(call.sqe.nsid()) {
        return Err(Status::INVALID_NAMESPACE);
    }
    let found = call.subsystem.namespaces.get(call.sqe.nsid());
    Ok(found.map_or_else(|| vec![0; identify::BYTES], |namespace| structure(&facts(call, namespace))))
}

/// Identifiers of namespaces above the one that the command names.
fn list(call: &Call<'_>, of: impl Fn(&Namespace) -> bool) -> Result<Vec<u8>, Status> {
    let above = call.sqe.nsid();
    if above >= ALL_NAMESPACES - 1 {
        return Err(Status::INVALID_NAMESPACE);
    }
    let all = call.subsystem.namespaces.iter().filter(|namespace| of(namespace));
    Ok(identify::list(all.map(|namespace| namespace.id), above))
}
