//! Get Log Page (NVM Express Base 2.1, section 5.1.12).

use super::{Call, Command, effects_log};
use crate::namespace::{NAMESPACES_MAX, Namespace, bit};
use crate::subsystem::FIRMWARE;
use crate::wire::{ALL_NAMESPACES, Status, identify, lba_status, log, placement, zones};

/// The pages that there are, and that of discovery.
const PAGES: [u8; 9] = [0x00, 0x01, 0x02, 0x03, log::CHANGED_NAMESPACES, 0x05, 0x09, log::SANITIZE, 0xc0];
const DISCOVERY: u8 = 0x70;
/// Those of drives that place data by handle.
const PLACEMENT: [u8; 4] = [placement::CONFIGURATIONS, placement::USAGE, placement::STATISTICS, placement::EVENTS];

pub(super) const COMMAND: Command = Command {
    opcode: 0x02,
    name: "Get Log Page",
    in_discovery: true,
    while_sanitizing: true,
    run: |call| {
        let sqe = call.sqe;
        let page = (sqe.dword(10) & 0xff) as u8;
        let retains_event = sqe.dword(10) & 1 << 15 != 0;
        let dwords = u64::from(sqe.dword(10) >> 16) | u64::from(sqe.dword(11) & 0xffff) << 16;
        let offset = u64::from(sqe.dword(12)) | u64::from(sqe.dword(13)) << 32;
        let group = sqe.dword(11) >> 16;
        let controller = call.controller()?;
        let (is_discovery, errors) = (controller.is_discovery, controller.errors_total);
        let (places_data, has_zones) = (call.subsystem.placement.is_some(), call.subsystem.about.zoning.is_some());
        let set = (sqe.dword(14) >> 24) as u8;
        if page == DISCOVERY && !is_discovery || page != DISCOVERY && is_discovery {
            return Err(Status::INVALID_LOG_PAGE);
        }
        let data = match page {
            0x00 => {
                let mut data = vec![0; 1024];
                PAGES.iter().for_each(|page| data[4 * usize::from(*page)] = 1);
                PLACEMENT.iter().for_each(|page| data[4 * usize::from(*page)] = places_data.into());
                data[4 * usize::from(zones::CHANGED)] = has_zones.into();
                data[4 * usize::from(lba_status::PAGE)] = (!has_zones).into();
                data
            }
            0x01 => call.controller()?.error_log().flat_map(log::ErrorEntry::bytes).collect(),
            // Of the drive; a namespace has none of its own.
            0x02 if sqe.nsid() != ALL_NAMESPACES && sqe.nsid() != 0 => return Err(Status::INVALID_FIELD),
            0x02 => log::smart(&call.media.health(), errors),
            0x03 => log::firmware_slots(FIRMWARE),
            log::CHANGED_NAMESPACES => identify::list(call.controller()?.changed(), 0),
            0x05 if set != 0 && !(has_zones && set == zones::COMMAND_SET) => return Err(Status::INVALID_FIELD),
            0x05 => {
                let subsystem = &*call.subsystem;
                let controller = subsystem.controller(call.place.controller).ok_or(Status::SEQUENCE)?;
                effects_log(controller, &subsystem.about, set)
            }
            0x09 if group != 1 => return Err(Status::INVALID_FIELD),
            0x09 => log::endurance_group(&call.media.health(), errors),
            log::SANITIZE => {
                let (health, subsystem) = (call.media.health(), &*call.subsystem);
                subsystem.sanitize.log(subsystem.progress(), health.bytes_written, health.bytes_used)
            }
            lba_status::PAGE if !has_zones => uncorrectable(call)?,
            zones::CHANGED if has_zones => changed_zones(call)?,
            page if PLACEMENT.contains(&page) && places_data => of_placement(call, page, group)?,
            0xc0 => log::ocp(&call.media.health()),
            DISCOVERY => {
                let (host, port) = &call.subsystem.about.address;
                log::discovery(&call.subsystem.nqn, host, port, call.subsystem.about.is_v6)
            }
            _ => return Err(Status::INVALID_LOG_PAGE),
        };
        // The error log has room for more than there is.
        let whole = if page == 0x01 { 64 * (usize::from(identify::ELPE) + 1) } else { data.len() };
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        if !offset.is_multiple_of(4) || offset > whole {
            return Err(Status::INVALID_FIELD);
        }
        let asked = usize::try_from((dwords + 1) * 4).unwrap_or(usize::MAX);
        if asked > super::TRANSFER_MAX {
            return Err(Status::INVALID_FIELD);
        }
        if asked > sqe.sgl().length as usize {
            return Err(Status::SGL_LENGTH);
        }
        if page == lba_status::PAGE {
            let now_ns = call.media.health().power_on_ns;
            call.controller()?.lba_status.read(retains_event.then(|| data.clone()), now_ns);
        }
        if !retains_event {
            call.controller()?.read_page(page);
        }
        let mut found = data.get(offset..).unwrap_or_default().to_vec();
        found.resize(asked, 0); // what lies behind the page is zeros
        Ok(call.reply(found))
    },
    ..Command::BARE
};

/// The zones of a namespace that the drive has changed by itself.
fn changed_zones(call: &mut Call<'_>) -> Result<Vec<u8>, Status> {
    let (zoning, shift) = (call.zoning()?, call.namespace()?.shift());
    call.subsystem.note_zones(call.media);
    let start = |zone: &u32| (u64::from(*zone) * zoning.size.0) >> shift;
    Ok(zones::changed(&call.controller()?.changed_zones.iter().map(start).collect::<Vec<_>>()))
}

/// Blocks that are marked as uncorrectable, in the namespaces that the controller has; as they were when its host began to read.
fn uncorrectable(call: &mut Call<'_>) -> Result<Vec<u8>, Status> {
    if let Some(page) = &call.controller()?.lba_status.page {
        return Ok(page.clone());
    }
    let (subsystem, attached) = (&*call.subsystem, call.attached);
    let of =
        |namespace: &Namespace| (namespace.id, subsystem.uncorrectable.of_namespace(namespace, 0, namespace.bytes));
    let all = subsystem.namespaces.iter().filter(|namespace| attached & bit(namespace.id) != 0).map(of);
    let marked: Vec<_> = all.filter(|(_, marked)| !marked.is_empty()).collect();
    Ok(lba_status::page(subsystem.uncorrectable.generation(), &marked))
}

/// A page of placement, of an endurance group. Only the configurations are told while it is off.
fn of_placement(call: &mut Call<'_>, page: u8, group: u32) -> Result<Vec<u8>, Status> {
    /// Dword 10, bit 8: events of hosts, not of the controller.
    const OF_HOSTS: u32 = 1 << 8;
    if group != 1 {
        return Err(Status::INVALID_FIELD);
    }
    if page == placement::CONFIGURATIONS {
        let offered = call.subsystem.about.placement.ok_or(Status::INVALID_LOG_PAGE)?;
        return Ok(placement::configurations(&offered, NAMESPACES_MAX));
    }
    call.subsystem.note_moves(call.media);
    let subsystem = &*call.subsystem;
    let found = subsystem.placement_on()?;
    let controller = subsystem.controller(call.place.controller).ok_or(Status::SEQUENCE)?;
    Ok(match page {
        placement::USAGE => placement::usage(&found.users(&subsystem.namespaces)),
        placement::STATISTICS => placement::statistics(found.statistics(&call.media.health())),
        _ => {
            let of_hosts = call.sqe.dword(10) & OF_HOSTS != 0;
            placement::events(found.events(of_hosts).map(|event| event.bytes(controller.timestamp_of(event.at_ns))))
        }
    })
}
