//! The structures of zoned namespaces (Zoned Namespace Command Set 1.2, sections 3.4, 4.1.4 and 4.1.5).

use super::{Status, identify, put};
use flashwright_block::{Zone, ZoneRule, ZoneState, Zoning};

/// The identifier of the command set.
pub const COMMAND_SET: u8 = 2;
/// The log page of zones that the controller has changed by itself.
pub const CHANGED: u8 = 0xbf;
/// The bit of the feature for events, and of OAES, that such changes are announced with.
pub const CHANGED_NOTICES: u32 = 1 << 27;
/// Zones that the page lists at most.
pub const CHANGED_MAX: usize = 511;
/// Bytes of the head of a report, and of each zone in it.
pub const DESCRIPTOR_BYTES: usize = 64;

/// How a rule of zones is told.
#[must_use]
pub fn status_of(rule: ZoneRule) -> Status {
    match rule {
        ZoneRule::Offline => Status::ZONE_OFFLINE,
        ZoneRule::ReadOnly => Status::ZONE_READ_ONLY,
        ZoneRule::Full => Status::ZONE_FULL,
        ZoneRule::NotAtPointer => Status::ZONE_INVALID_WRITE,
        ZoneRule::Boundary => Status::ZONE_BOUNDARY,
        ZoneRule::NotAtStart => Status::INVALID_FIELD,
        ZoneRule::TooManyActive => Status::TOO_MANY_ACTIVE_ZONES,
        ZoneRule::TooManyOpen => Status::TOO_MANY_OPEN_ZONES,
        ZoneRule::Transition => Status::ZONE_TRANSITION,
    }
}

/// CNS 05h: the zones of a namespace, for each format of its blocks.
#[must_use]
pub fn namespace(zoning: &Zoning, formats: &[u8]) -> Vec<u8> {
    /// Reads may cross zones (RAZB).
    const READS_CROSS: u16 = 1;
    const FORMATS_AT: usize = 2816;
    let mut out = vec![0; identify::BYTES];
    put(&mut out, 2, &READS_CROSS.to_le_bytes());
    // MAR and MOR count from 0; any number is none of them.
    for (at, limit) in [(4, zoning.max_active), (8, zoning.max_open)] {
        put(&mut out, at, &limit.wrapping_sub(1).to_le_bytes());
    }
    for (at, shift) in formats.iter().enumerate() {
        put(&mut out, FORMATS_AT + 16 * at, &(zoning.size.0 >> shift).to_le_bytes()); // no extensions (ZDES)
    }
    out
}

/// CNS 06h: an append may be as long as any transfer (ZASL is 0).
#[must_use]
pub fn controller() -> Vec<u8> {
    vec![0; identify::BYTES]
}

/// The head of a report.
#[must_use]
pub fn report_head(zones: u64) -> [u8; DESCRIPTOR_BYTES] {
    let mut out = [0; DESCRIPTOR_BYTES];
    put(&mut out, 0, &zones.to_le_bytes());
    out
}

/// A zone in a report, with blocks of `shift` as a power of two of bytes. Its number is that in the namespace.
#[must_use]
pub fn descriptor(zoning: &Zoning, number: u32, zone: Zone, shift: u8) -> [u8; DESCRIPTOR_BYTES] {
    /// It is written in order, always.
    const SEQUENTIAL: u8 = 2;
    let mut out = [0; DESCRIPTOR_BYTES];
    let start = zoning.size.0 * u64::from(number);
    let has_pointer = zone.state == ZoneState::Empty || zone.state.is_active();
    let pointer = if has_pointer { (start + zone.written.0) >> shift } else { u64::MAX };
    out[0] = SEQUENTIAL;
    out[1] = (zone.state as u8) << 4;
    put(&mut out, 8, &(zoning.capacity.0 >> shift).to_le_bytes());
    put(&mut out, 16, &(start >> shift).to_le_bytes());
    put(&mut out, 24, &pointer.to_le_bytes());
    out
}

/// Log page BFh, of the first blocks of zones. It says that there are too many, and lists none then.
#[must_use]
pub fn changed(starts: &[u64]) -> Vec<u8> {
    let mut out = vec![0; 8 * (CHANGED_MAX + 1)];
    let is_whole = starts.len() <= CHANGED_MAX;
    let count = if is_whole { u16::try_from(starts.len()).expect("they are few") } else { u16::MAX };
    put(&mut out, 0, &count.to_le_bytes());
    let listed = starts.iter().filter(|_| is_whole).enumerate();
    listed.for_each(|(at, start)| put(&mut out, 8 + 8 * at, &start.to_le_bytes()));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{u16_at, u32_at, u64_at};
    use flashwright_block::Bytes;

    #[test]
    fn structures_have_their_fields_where_hosts_look() {
        let zoning = Zoning {
            zones: 5,
            size: Bytes(4 << 20),
            capacity: Bytes(3 << 20),
            grain: Bytes(4096),
            max_open: 3,
            max_active: 0,
        };
        let page = namespace(&zoning, &[9, 12]);
        assert_eq!((u16_at(&page, 0), u16_at(&page, 2), u32_at(&page, 4), u32_at(&page, 8)), (0, 1, u32::MAX, 2));
        assert_eq!((u64_at(&page, 2816), page[2824], u64_at(&page, 2832)), (8192, 0, 1024));
        let zone = |state| Zone { state, written: Bytes(8192) };
        let found = descriptor(&zoning, 2, zone(ZoneState::Closed), 12);
        assert_eq!((found[0], found[1]), (2, 0x40));
        assert_eq!([8, 16, 24].map(|at| u64_at(&found, at)), [768, 2048, 2050]);
        for (state, number) in [(ZoneState::Full, 0xe0), (ZoneState::ReadOnly, 0xd0), (ZoneState::Offline, 0xf0)] {
            let found = descriptor(&zoning, 2, zone(state), 12);
            assert_eq!((found[1], u64_at(&found, 24)), (number, u64::MAX));
        }
        assert_eq!(u64_at(&report_head(7), 0), 7);
        let listed = changed(&[1024, 9]);
        assert_eq!((listed.len(), u16_at(&listed, 0), u64_at(&listed, 8), u64_at(&listed, 16)), (4096, 2, 1024, 9));
        assert_eq!(changed(&[9; 512])[..16], [0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(u64_at(&changed(&[9; 511]), 4088), 9);
    }
}
