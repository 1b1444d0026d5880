//! Identify (NVM Express Base 2.1, section 5.1.13).

use super::{Command, optional};
use crate::subsystem::{FIRMWARE, IN_CAPSULE_BYTES, QUEUE_MAX};
use crate::wire::identify::{self, ControllerFacts};
use crate::wire::{ALL_NAMESPACES, Status};

/// The NVM command set.
const NVM: u8 = 0;

pub(super) const COMMAND: Command = Command {
    opcode: 0x06,
    name: "Identify",
    effects: 0,
    optional: 0,
    in_discovery: true,
    run: |call| {
        let (structure, set) = ((call.sqe.dword(10) & 0xff) as u8, (call.sqe.dword(11) >> 24) as u8);
        let (nsid, subsystem) = (call.sqe.nsid(), &*call.subsystem);
        let facts = || subsystem.namespace_facts((call.health)().bytes_used);
        let id = call.place.controller;
        let controller = subsystem.controller(id).ok_or(Status::SEQUENCE)?;
        let is_discovery = controller.is_discovery;
        let first_controller = (call.sqe.dword(10) >> 16) as u16;
        // Of a namespace: identifiers that no namespace has here are invalid.
        let of_namespace = |data: fn(&identify::NamespaceFacts) -> Vec<u8>| {
            let is_there = nsid == subsystem.namespace.id;
            if is_there { Ok(data(&facts())) } else { Err(Status::INVALID_NAMESPACE) }
        };
        let list = || {
            if nsid >= ALL_NAMESPACES - 1 {
                return Err(Status::INVALID_NAMESPACE);
            }
            Ok(identify::list([subsystem.namespace.id].into_iter(), nsid))
        };
        let in_set = |data: Vec<u8>| if set == NVM { Ok(data) } else { Err(Status::INVALID_FIELD) };
        let data = match structure {
            0x01 => {
                let facts = ControllerFacts {
                    serial: &subsystem.serial,
                    model: &subsystem.about.model,
                    firmware: FIRMWARE,
                    nqn: if is_discovery { crate::subsystem::DISCOVERY_NQN } else { &subsystem.nqn },
                    id,
                    is_discovery,
                    capacity: subsystem.about.bytes,
                    namespaces: u32::from(!is_discovery),
                    in_capsule: IN_CAPSULE_BYTES,
                    queue_max: QUEUE_MAX,
                    optional_commands: optional(1, controller),
                    optional_admin: optional(0, controller),
                };
                let mut data = facts.structure();
                if controller.is_function {
                    crate::vfio::config::of_function(&mut data);
                }
                data
            }
            _ if is_discovery => return Err(Status::INVALID_FIELD),
            0x00 | 0x11 => of_namespace(|facts| facts.structure())?,
            0x02 | 0x10 => list()?,
            0x03 => of_namespace(|facts| facts.descriptors())?,
            // Extended formats of the NVM command set: there is nothing to add.
            0x05 => {
                of_namespace(|_| vec![0; identify::BYTES])?;
                in_set(vec![0; identify::BYTES])?
            }
            0x06 => in_set(identify::nvm_controller(subsystem.block_shift()))?,
            0x07 | 0x1a => {
                let data = list()?;
                in_set(data)?
            }
            0x08 => of_namespace(|facts| facts.independent())?,
            0x12 => {
                of_namespace(|_| Vec::new())?;
                identify::controllers(subsystem.controllers(), first_controller)
            }
            0x13 => identify::controllers(subsystem.controllers(), first_controller),
            // Identifiers of endurance groups: one.
            0x19 => {
                let group = call.sqe.dword(11) & 0xffff;
                identify::controllers([1u16].into_iter(), u16::try_from(group + 1).unwrap_or(u16::MAX).max(1))
            }
            // Combinations of command sets: the first has NVM alone.
            0x1c => {
                let mut data = vec![0; identify::BYTES];
                data[0] = 1;
                data
            }
            _ => return Err(Status::INVALID_FIELD),
        };
        Ok(call.reply(data))
    },
};
