//! What tests of the subsystem share: the drive behind it, and what commands bring.

use flashwright_block::{
    Bytes, IoError, Moved, Placed, Placement, Seed, Zone, ZoneError, ZoneRule, ZoneState, Zoned, Zoning, below,
};
use flashwright_nvme::subsystem::{Health, Media};
use flashwright_nvme::wire::put;

/// A drive whose handles have these bytes left in their units; none while its power is off. It may have zones, too, which have
/// the states in turn.
#[derive(Default)]
pub struct Units {
    pub rooms: Option<[u64; 4]>,
    pub watched: u64,
    pub moved: Vec<Moved>,
    pub has_zones: bool,
    pub failed: Vec<u32>,
    /// Bytes that are not written.
    pub unwritten: std::ops::Range<u64>,
}

/// Bytes of a reclaim unit.
pub const UNIT: u64 = 1 << 20;

impl Media for Units {
    fn health(&self) -> Health {
        Health::default()
    }
    fn is_written(&self, first_byte: u64, bytes: u32) -> bool {
        first_byte >= self.unwritten.end || first_byte + u64::from(bytes) <= self.unwritten.start
    }
    fn placed(&mut self) -> Option<&mut dyn Placed> {
        Some(self)
    }
    fn zoned(&mut self) -> Option<&mut dyn Zoned> {
        if self.has_zones { Some(self) } else { None }
    }
}

impl Placed for Units {
    fn placement(&mut self) -> Placement {
        Placement { handles: 4, stays_isolated: true, unit: Bytes(UNIT) }
    }
    fn room(&mut self, handle: u16) -> Result<Bytes, IoError> {
        self.rooms.map(|rooms| Bytes(rooms[usize::from(handle)])).ok_or(IoError::PowerOff)
    }
    fn renew(&mut self, handle: u16) -> Result<Option<Bytes>, IoError> {
        let rooms = self.rooms.as_mut().ok_or(IoError::PowerOff)?;
        let left = std::mem::replace(&mut rooms[usize::from(handle)], UNIT);
        Ok((left < UNIT).then_some(Bytes(left)))
    }
    fn watch_moves(&mut self, handles: u64) {
        self.watched = handles;
    }
    fn take_moved(&mut self) -> Vec<Moved> {
        std::mem::take(&mut self.moved)
    }
}

/// 16 zones of 4 MiB, of which 3 MiB are written in pages of 4 KiB.
pub const ZONING: Zoning = Zoning {
    zones: 16,
    size: Bytes(4 << 20),
    capacity: Bytes(3 << 20),
    grain: Bytes(4096),
    max_open: 5,
    max_active: 8,
};

impl Zoned for Units {
    fn zoning(&self) -> Zoning {
        ZONING
    }
    fn zone(&self, number: u32) -> Result<Zone, IoError> {
        self.rooms.ok_or(IoError::PowerOff)?;
        let state = ZoneState::ALL[number as usize % ZoneState::ALL.len()];
        Ok(Zone { state, written: Bytes(4096 * u64::from(number)) })
    }
    fn retire(&mut self, number: u32) -> Result<(), IoError> {
        match self.zone(number)?.state {
            ZoneState::ReadOnly | ZoneState::Offline => Ok(()),
            _ => Err(ZoneError { rule: ZoneRule::Transition, zone: number, pointer: 0 }.into()),
        }
    }
    fn take_failed(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.failed)
    }
}

/// What a namespace is created with.
pub fn wanted(mib: u64, format: u8, shared: u8) -> Vec<u8> {
    let mut data = vec![0; 4096];
    let blocks = mib << if format == 0 { 11 } else { 8 };
    [0, 8].into_iter().for_each(|at| put(&mut data, at, &blocks.to_le_bytes()));
    (data[26], data[30]) = (format, shared);
    data
}

/// A list of controllers.
pub fn list(ids: &[u16]) -> Vec<u8> {
    let mut data = vec![0; 4096];
    put(&mut data, 0, &u16::try_from(ids.len()).unwrap().to_le_bytes());
    ids.iter().enumerate().for_each(|(at, id)| put(&mut data, 2 + 2 * at, &id.to_le_bytes()));
    data
}

/// Draws that are the same for a seed.
pub fn draws(seed: u64) -> impl FnMut() -> u64 {
    let mut rng = Seed(seed).stream("hosts");
    move || below(&mut rng, u64::MAX)
}
