//! The structures of flexible data placement (Base 2.1, sections 5.1.12.1.28 to 5.1.12.1.31 and 7.3).

use super::{put, u16_at};
use flashwright_block::Placement;

/// The log page of the configurations that can be chosen.
pub const CONFIGURATIONS: u8 = 0x20;
/// The log page that tells which handles are used, and by whom.
pub const USAGE: u8 = 0x21;
/// The log page of counts.
pub const STATISTICS: u8 = 0x22;
/// The log page of events.
pub const EVENTS: u8 = 0x23;
/// Placement identifiers that a command may name at once, as the list of a namespace may have them.
pub const IDENTIFIERS_MAX: u16 = 128;
/// The type of directive that names where data are placed.
pub const DIRECTIVE: u8 = 2;
/// Events that the log page holds of each kind.
pub const EVENTS_MAX: usize = 63;

/// Bits of a configuration's attributes: it is valid. The four lowest say how many bits of an identifier are the reclaim group (RGIF).
const VALID: u8 = 1 << 7;
/// How a handle keeps what the drive moves.
const INITIALLY_ISOLATED: u8 = 1;
const PERSISTENTLY_ISOLATED: u8 = 2;

/// Log page 20h: the one configuration.
#[must_use]
pub fn configurations(placement: &Placement, namespaces: u32) -> Vec<u8> {
    const HEADER: usize = 16;
    const FIXED: usize = 64;
    const HANDLE: usize = 4;
    let length = (FIXED + HANDLE * usize::from(placement.handles)).next_multiple_of(8);
    let mut out = vec![0; HEADER + length];
    let size = u32::try_from(out.len()).expect("handles are few").to_le_bytes();
    put(&mut out, 4, &size); // NUMFDPC counts from 0
    let descriptor = &mut out[HEADER..];
    put(descriptor, 0, &u16::try_from(length).expect("handles are few").to_le_bytes());
    descriptor[2] = VALID | placement.group_bits().count();
    put(descriptor, 4, &u32::from(placement.groups).to_le_bytes()); // NRG
    put(descriptor, 8, &placement.handles.to_le_bytes()); // NRUH
    put(descriptor, 10, &(IDENTIFIERS_MAX - 1).to_le_bytes()); // MAXPIDS
    put(descriptor, 12, &namespaces.to_le_bytes()); // NNSS
    put(descriptor, 16, &placement.unit.0.to_le_bytes()); // RUNS; no time limits an open unit (ERUTL)
    let kind = if placement.stays_isolated { PERSISTENTLY_ISOLATED } else { INITIALLY_ISOLATED };
    (0..usize::from(placement.handles)).for_each(|handle| descriptor[FIXED + HANDLE * handle] = kind);
    out
}

/// Who uses a handle (RUHA).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// No namespace.
    None = 0,
    /// Namespaces of which the host named it.
    Host = 1,
    /// Namespaces to which the controller gave it.
    Controller = 2,
}

/// Log page 21h.
#[must_use]
pub fn usage(users: &[User]) -> Vec<u8> {
    let mut out = vec![0; 8 + 8 * users.len()];
    put(&mut out, 0, &u16::try_from(users.len()).expect("handles are few").to_le_bytes());
    users.iter().enumerate().for_each(|(handle, user)| out[8 + 8 * handle] = *user as u8);
    out
}

/// Log page 22h: bytes that hosts wrote, that the flash was written with, and that were erased.
#[must_use]
pub fn statistics(counts: [u64; 3]) -> Vec<u8> {
    let mut out = vec![0; 64];
    counts.iter().enumerate().for_each(|(at, count)| put(&mut out, 16 * at, &u128::from(*count).to_le_bytes()));
    out
}

/// The reclaim unit of a handle of a namespace in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitStatus {
    /// The placement identifier.
    pub identifier: u16,
    /// The reclaim unit handle.
    pub handle: u16,
    /// Logical blocks that still fit (RUAMW).
    pub blocks: u64,
}

/// What I/O Management Receive returns of the units of a namespace.
#[must_use]
pub fn units(all: &[UnitStatus]) -> Vec<u8> {
    let mut out = vec![0; 16 + 32 * all.len()];
    put(&mut out, 14, &u16::try_from(all.len()).expect("handles are few").to_le_bytes());
    for (entry, unit) in out[16..].chunks_exact_mut(32).zip(all) {
        put(entry, 0, &unit.identifier.to_le_bytes());
        put(entry, 2, &unit.handle.to_le_bytes());
        put(entry, 8, &unit.blocks.to_le_bytes());
    }
    out
}

/// The placement identifiers that I/O Management Send brings.
pub fn identifiers(list: &[u8]) -> impl Iterator<Item = u16> {
    list.chunks_exact(2).map(|id| u16_at(id, 0))
}

/// Types of events.
pub mod event {
    /// A host left a unit that had room.
    pub const NOT_FULL: u8 = 0x00;
    /// A host named no placement identifier that there is.
    pub const INVALID_IDENTIFIER: u8 = 0x03;
    /// The drive moved data.
    pub const MOVED: u8 = 0x80;
    /// All of them. Those below 80h are of hosts, the others of the controller.
    pub const ALL: [u8; 3] = [NOT_FULL, INVALID_IDENTIFIER, MOVED];
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// See [`event`].
    pub kind: u8,
    /// When, on the drive's clock, nanoseconds.
    pub at_ns: u64,
    /// The placement identifier, if it is known.
    pub identifier: Option<u16>,
    /// The namespace, if it is known.
    pub nsid: Option<u32>,
    /// The reclaim group.
    pub group: u16,
    /// The reclaim unit handle.
    pub handle: u16,
    /// What was moved: the first logical block, if it is known, and how many.
    pub moved: Option<(Option<u64>, u16)>,
}

impl Event {
    /// Its bytes, with the time as the host of a controller has set it.
    #[must_use]
    pub fn bytes(&self, time: [u8; 8]) -> [u8; 64] {
        const IDENTIFIER_VALID: u8 = 1;
        const NAMESPACE_VALID: u8 = 1 << 1;
        const LOCATION_VALID: u8 = 1 << 2;
        let mut out = [0; 64];
        out[0] = self.kind;
        out[1] = LOCATION_VALID;
        if let Some(identifier) = self.identifier {
            out[1] |= IDENTIFIER_VALID;
            put(&mut out, 2, &identifier.to_le_bytes());
        }
        put(&mut out, 4, &time);
        if let Some(nsid) = self.nsid {
            out[1] |= NAMESPACE_VALID;
            put(&mut out, 12, &nsid.to_le_bytes());
        }
        if let Some((first, blocks)) = self.moved {
            out[16] = u8::from(first.is_some()); // LBAV
            put(&mut out, 18, &blocks.to_le_bytes());
            put(&mut out, 20, &first.unwrap_or(0).to_le_bytes());
        }
        put(&mut out, 32, &self.group.to_le_bytes());
        put(&mut out, 34, &self.handle.to_le_bytes());
        out
    }
}

/// Log page 23h.
#[must_use]
pub fn events(all: impl Iterator<Item = [u8; 64]>) -> Vec<u8> {
    let mut out = vec![0; 64];
    all.for_each(|event| out.extend(event));
    let count = u32::try_from(out.len() / 64 - 1).expect("events are few");
    put(&mut out, 0, &count.to_le_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{u32_at, u64_at};
    use flashwright_block::Bytes;

    #[test]
    fn structures_have_their_fields_where_hosts_look() {
        let placement = Placement { handles: 3, groups: 1, stays_isolated: false, unit: Bytes(6 << 20) };
        let page = configurations(&placement, 64);
        // A header of 16 bytes, and a descriptor of 64 and 3 handles of 4 bytes, in whole 8 bytes.
        assert_eq!((page.len(), u16_at(&page, 0), u32_at(&page, 4), u16_at(&page, 16)), (96, 0, 96, 80));
        assert_eq!((page[18], u32_at(&page, 20), u16_at(&page, 24), u16_at(&page, 26)), (0x80, 1, 3, 127));
        assert_eq!((u32_at(&page, 28), u64_at(&page, 32), u32_at(&page, 40)), (64, 6 << 20, 0));
        assert_eq!([80, 84, 88, 92].map(|at| page[at]), [1, 1, 1, 0]);
        assert_eq!(configurations(&Placement { stays_isolated: true, ..placement }, 64)[80], 2);
        // RGIF and NRG; the rest stays.
        for (groups, bits) in [(2, 1), (3, 2), (4, 2), (256, 8)] {
            let several = configurations(&Placement { groups, ..placement }, 64);
            let mut expected = page.clone();
            expected[18] = 0x80 | bits;
            expected[20..24].copy_from_slice(&u32::from(groups).to_le_bytes());
            assert_eq!(several, expected, "{groups}");
        }
        let page = usage(&[User::Host, User::None, User::Controller]);
        assert_eq!((u16_at(&page, 0), page[8], page[16], page[24], page.len()), (3, 1, 0, 2, 32));
        let event = Event {
            kind: 0x80,
            at_ns: 0,
            identifier: None,
            nsid: Some(7),
            group: 0x102,
            handle: 5,
            moved: Some((Some(9), 4)),
        };
        let bytes = event.bytes([1; 8]);
        assert_eq!((bytes[0], bytes[1], u32_at(&bytes, 12), bytes[34]), (0x80, 0b110, 7, 5));
        assert_eq!(u16_at(&bytes, 32), 0x102);
        assert_eq!((bytes[16], u16_at(&bytes, 18), u64_at(&bytes, 20)), (1, 4, 9));
        assert_eq!((events([bytes].into_iter()).len(), u32_at(&events([bytes; 2].into_iter()), 0)), (128, 2));
    }
}
