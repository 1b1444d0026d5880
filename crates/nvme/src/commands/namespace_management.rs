//! Namespace Management (NVM Express Base 2.1, section 5.1.21): creates and deletes namespaces.

use super::{Call, Command, Outcome, effects};
use crate::namespace::{Wanted, is_valid};
use crate::wire::placement;
use crate::wire::{ALL_NAMESPACES, Status, u16_at, u64_at};

/// Bytes of what a namespace to be created is described with.
const BYTES: usize = 4096;
/// Dword 10, bits 3:0.
const CREATE: u32 = 0;
const DELETE: u32 = 1;

pub(super) const COMMAND: Command = Command {
    opcode: 0x0d,
    name: "Namespace Management",
    effects: effects::CONTENT | effects::NAMESPACE | effects::INVENTORY | effects::ALL_ALONE,
    optional: 1 << 3,
    needs_zeros: true,
    run: |call| match call.sqe.dword(10) & 0xf {
        CREATE => create(call),
        DELETE => delete(call),
        _ => Err(Status::INVALID_FIELD),
    },
    ..Command::BARE
};

fn create(call: &mut Call<'_>) -> Result<Outcome, Status> {
    let asked = call.data.get(..BYTES).ok_or(Status::SGL_LENGTH)?;
    if call.sqe.dword(11) >> 24 != 0 {
        return Err(Status::COMMAND_SET);
    }
    let (blocks, capacity, group) = (u64_at(asked, 0), u64_at(asked, 8), u16_at(asked, 102));
    let (format, metadata, protection) = (asked[26] & 0xf | asked[26] >> 1 & 0x30, asked[26] >> 4 & 1, asked[29]);
    if !call.subsystem.about.has_format(format) || metadata != 0 || protection != 0 {
        return Err(Status::INVALID_FORMAT);
    }
    // An endurance group of its own choice, or the one that there is; no NVM sets.
    if blocks == 0 || capacity > blocks || group > 1 || u16_at(asked, 100) != 0 {
        return Err(Status::INVALID_FIELD);
    }
    if capacity < blocks {
        return Err(Status::THIN_PROVISIONING);
    }
    call.check_writable()?;
    let handles = placement_list(asked)?;
    let id = call.subsystem.create(&Wanted { blocks, format, is_shared: asked[30] & 1 != 0 }, &handles)?;
    Ok(Outcome::Done(u64::from(id), Vec::new()))
}

/// The reclaim unit handles that a host wants: their number in bytes 393:392, the list from byte 512 on.
fn placement_list(asked: &[u8]) -> Result<Vec<u16>, Status> {
    let count = u16_at(asked, 392);
    if count > placement::IDENTIFIERS_MAX {
        return Err(Status::PLACEMENT_LIST);
    }
    Ok(placement::identifiers(&asked[512..]).take(count.into()).collect())
}

fn delete(call: &mut Call<'_>) -> Result<Outcome, Status> {
    let nsid = call.sqe.nsid();
    let namespaces: Vec<u32> = if nsid == ALL_NAMESPACES {
        call.subsystem.namespaces.iter().map(|namespace| namespace.id).collect()
    } else if is_valid(nsid) {
        vec![call.subsystem.namespaces.get(nsid).ok_or(Status::INVALID_FIELD)?.id]
    } else {
        return Err(Status::INVALID_NAMESPACE);
    };
    call.check_writable()?;
    let by = call.place.controller;
    namespaces.iter().try_for_each(|nsid| call.subsystem.change(*nsid, None, by))?;
    Ok(Outcome::nothing())
}
