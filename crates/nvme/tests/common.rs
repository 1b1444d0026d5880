//! What tests of the subsystem share: the drive behind it, and what commands bring.

use flashwright_block::{
    Bytes, IoError, Moved, Placed, Placement, Seed, Zone, ZoneError, ZoneRule, ZoneState, Zoned, Zoning, below,
};
use flashwright_nvme::subsystem::{About, Health, Media};
use flashwright_nvme::wire::{Sqe, put};

/// A drive of 64 MiB that does all that needs neither handles nor zones.
pub fn about() -> About {
    About {
        model: "Flashwright test".to_owned(),
        bytes: 64 << 20,
        unit_bytes: 512,
        page_bytes: 4096,
        untorn_bytes: Some(4096),
        trims_to_zeros: true,
        placement: None,
        zoning: None,
        is_read_only: false,
        address: ("127.0.0.1".to_owned(), "4420".to_owned()),
        is_v6: false,
    }
}

/// A command: opcode, namespace, dwords 10 to 13.
pub type Asked = (u8, u32, [u32; 4]);

/// The entry of a command, for so many bytes of data.
pub fn entry((opcode, nsid, dwords): Asked, data_bytes: u32) -> Sqe {
    let mut bytes = [0; 64];
    bytes[0] = opcode;
    put(&mut bytes, 4, &nsid.to_le_bytes());
    put(&mut bytes, 32, &data_bytes.to_le_bytes());
    dwords.iter().enumerate().for_each(|(at, dword)| put(&mut bytes, 40 + 4 * at, &dword.to_le_bytes()));
    Sqe(bytes)
}

/// A drive whose four handles have these bytes left in their units of group 0, and whole units in other groups; none while its power is off. It may
/// have zones, too, which have the states in turn.
#[derive(Default)]
pub struct Units {
    pub rooms: Option<[u64; 4]>,
    /// Groups beside the first, and the streams whose units were left.
    pub more_groups: u16,
    pub renewed: Vec<u16>,
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
        Placement { handles: 4, groups: 1 + self.more_groups, stays_isolated: true, unit: Bytes(UNIT) }
    }
    fn room(&mut self, stream: u16) -> Result<Bytes, IoError> {
        let rooms = self.rooms.ok_or(IoError::PowerOff)?;
        let (group, handle) = self.placement().group_bits().split(stream);
        assert!(group <= self.more_groups);
        Ok(Bytes(if group == 0 { rooms[usize::from(handle)] } else { UNIT - u64::from(group) * 4096 }))
    }
    fn renew(&mut self, stream: u16) -> Result<Option<Bytes>, IoError> {
        self.renewed.push(stream);
        let (group, handle) = self.placement().group_bits().split(stream);
        let rooms = self.rooms.as_mut().ok_or(IoError::PowerOff)?;
        if group > 0 {
            return Ok(Some(Bytes(UNIT - u64::from(group) * 4096)));
        }
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
