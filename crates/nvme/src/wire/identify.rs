//! The structures that Identify returns (Base 2.1, section 5.1.13; NVM Command Set 1.1, section 4.1.5).

use super::{HOST_PAGE, lba_status, put, put_text, zones};
use flashwright_block::Zoning;

/// Bytes of every structure.
pub const BYTES: usize = 4096;
/// The specification that the controllers keep to: 2.1.0.
pub const VERSION: u32 = 2 << 16 | 1 << 8;
/// The largest transfer, as a power of two of [`super::HOST_PAGE`]: 1 MiB.
pub const MDTS: u8 = 8;
/// Commands of a host to announce events that may be outstanding, counted from 0.
pub const AERL: u8 = 3;
/// Aborts that a host may have at once, counted from 0.
pub const ACL: u8 = 3;
/// The granularity of the keep-alive time, in units of 100 ms.
pub const KAS: u16 = 1;
/// Entries of the error log, counted from 0.
pub const ELPE: u8 = 63;
/// The largest range of a Dataset Management command, in bytes.
pub const RANGE_BYTES_MAX: u64 = 1 << 30;
/// Ranges of a Dataset Management command that are looked at: a limit tells fewer than the 256 that fit.
pub const RANGES_MAX: u8 = 255;
/// The longest Write Zeroes on a zoned namespace, as a power of two of [`super::HOST_PAGE`]: 32 MiB, which reach the drive as one write.
pub const ZEROES_MAX: u8 = 13;
/// Source ranges of a Copy command, which fill a page of the host's memory.
pub const COPY_RANGES_MAX: u8 = 128;

/// What a controller says of itself.
#[derive(Clone, Debug)]
pub struct ControllerFacts<'a> {
    /// See [`Self::put`].
    pub serial: &'a str,
    /// The model.
    pub model: &'a str,
    /// The firmware.
    pub firmware: &'a str,
    /// The qualified name of the subsystem.
    pub nqn: &'a str,
    /// Its identifier.
    pub id: u16,
    /// Whether it only tells where others are.
    pub is_discovery: bool,
    /// Bytes of the NVM, and those of no namespace.
    pub capacity: u64,
    /// See [`Self::capacity`].
    pub unallocated: u64,
    /// The largest namespace identifier.
    pub namespaces: u32,
    /// Bytes of data that a capsule takes.
    pub in_capsule: usize,
    /// Commands of a queue.
    pub queue_max: u16,
    /// What the list of commands makes of ONCS.
    pub optional_commands: u16,
    /// What the list of commands makes of OACS.
    pub optional_admin: u16,
    /// SANICAP.
    pub sanitize: u32,
    /// Whether the drive places data by handle.
    pub places_data: bool,
    /// Whether it has zones.
    pub has_zones: bool,
}

impl ControllerFacts<'_> {
    /// CNS 01h (figure 313).
    #[must_use]
    pub fn structure(&self) -> Vec<u8> {
        let mut out = vec![0; BYTES];
        put_text(&mut out, 4, 20, self.serial);
        put_text(&mut out, 24, 40, self.model);
        put_text(&mut out, 64, 8, self.firmware);
        out[77] = MDTS;
        put(&mut out, 78, &self.id.to_le_bytes());
        put(&mut out, 80, &VERSION.to_le_bytes());
        let notices = match self.has_zones {
            true => zones::CHANGED_NOTICES,
            false if self.is_discovery => 0,
            false => lba_status::NOTICES,
        };
        // OAES: changed namespaces, and changed zones or blocks that may not be readable.
        put(&mut out, 92, &(1 << 8 | notices).to_le_bytes());
        // CTRATT: host identifiers of 128 bits; endurance groups; keep-alive that any command renews; namespace granularity; data
        // placement.
        let attributes = 1u32 | 1 << 4 | 1 << 6 | 1 << 7 | u32::from(self.places_data) << 19;
        put(&mut out, 96, &attributes.to_le_bytes());
        out[111] = if self.is_discovery { 2 } else { 1 };
        put(&mut out, 256, &self.optional_admin.to_le_bytes());
        out[258] = ACL;
        out[259] = AERL;
        out[260] = 1 << 1 | 1; // FRMW: one slot, read only
        out[261] = 1 << 1 | 1 << 2; // LPA: effects, and offsets of log pages
        out[262] = ELPE;
        put(&mut out, 266, &343u16.to_le_bytes()); // WCTEMP, kelvin
        put(&mut out, 268, &353u16.to_le_bytes()); // CCTEMP, kelvin
        put(&mut out, 280, &u128::from(self.capacity).to_le_bytes());
        put(&mut out, 296, &u128::from(self.unallocated).to_le_bytes());
        put(&mut out, 320, &KAS.to_le_bytes());
        put(&mut out, 328, &self.sanitize.to_le_bytes());
        put(&mut out, 340, &1u16.to_le_bytes()); // ENDGIDMAX
        out[512] = 0x66; // SQES
        out[513] = 0x44; // CQES
        put(&mut out, 514, &self.queue_max.to_le_bytes());
        put(&mut out, 516, &self.namespaces.to_le_bytes());
        // ONCS: beside commands, which value of a feature is got may be selected, and there is a timestamp.
        put(&mut out, 520, &(self.optional_commands | 1 << 4 | 1 << 6).to_le_bytes());
        out[524] = 0; // FNA: formatting concerns one namespace
        out[525] = 1 | 3 << 1; // VWC: there is one, and a flush may name all namespaces
        // AWUN, AWUPF (526, 528) stay 0: one block, whatever its size; namespaces tell more.
        put(&mut out, 534, &(1u16 | 1 << 2).to_le_bytes()); // OCFS: formats 0h and 2h of Copy
        put(&mut out, 536, &(1u32 | 1 << 20).to_le_bytes()); // SGLS: no alignment; offsets in a capsule
        put(&mut out, 540, &self.namespaces.to_le_bytes());
        let nqn = self.nqn.as_bytes();
        put(&mut out, 768, &nqn[..nqn.len().min(255)]);
        let units = |bytes: usize| u32::try_from(bytes / 16).expect("capsules are short").to_le_bytes();
        put(&mut out, 1792, &units(super::SQE_BYTES + self.in_capsule));
        put(&mut out, 1796, &units(super::CQE_BYTES));
        out[1803] = 1; // MSDBD
        put(&mut out, 2048, &2500u16.to_le_bytes()); // power state 0: at most 25 W
        out
    }
}

/// What a namespace says of itself, in logical blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamespaceFacts {
    /// Blocks that can be addressed.
    pub blocks: u64,
    /// Blocks that hold data.
    pub used: u64,
    /// Bytes of the drive that it takes.
    pub capacity: u64,
    /// Its formats: powers of two of bytes.
    pub formats: &'static [u8],
    /// Which of them it has.
    pub format: u8,
    /// Bytes of a page of the flash, what the host should write and trim in.
    pub page_bytes: u64,
    /// How long a write may be that no loss of power tears, if it crosses no multiple of that; none if any may.
    pub untorn_bytes: Option<u64>,
    /// Whether a read of what was trimmed gives zeros.
    pub trims_to_zeros: bool,
    /// Whether a read of what is not written can be an error.
    pub tells_unwritten: bool,
    /// Whether several controllers may have it.
    pub is_shared: bool,
    /// Never the same for two namespaces.
    pub nguid: [u8; 16],
    /// Its zones, if it has any.
    pub zoning: Option<Zoning>,
}

impl NamespaceFacts {
    /// CNS 00h (NVM Command Set, figure 114).
    #[must_use]
    pub fn structure(&self) -> Vec<u8> {
        let mut out = vec![0; BYTES];
        put(&mut out, 0, &self.blocks.to_le_bytes());
        let shift = self.formats[usize::from(self.format)];
        let writable = self.zoning.map_or(self.blocks, |zoning| zoning.writable().0 >> shift);
        put(&mut out, 8, &writable.to_le_bytes());
        put(&mut out, 16, &self.used.to_le_bytes());
        let preferred = u16::try_from((self.page_bytes >> shift).max(1) - 1).unwrap_or(0);
        let is_whole = self.page_bytes.is_multiple_of(1 << shift);
        // NSFEAT: untorn writes of its own; an error for what is not written, if a host wishes; preferred sizes.
        out[24] = 1 << 1 | u8::from(self.tells_unwritten) << 2 | if is_whole { 1 << 4 } else { 0 };
        out[26] = self.format;
        out[30] = u8::from(self.is_shared); // NMIC
        // DLFEAT: deallocated blocks read as zeros, and Write Zeroes may deallocate.
        // What a zone has not been written reads as zeros, too.
        out[33] = if self.trims_to_zeros { 1 | 1 << 3 } else { u8::from(self.zoning.is_some()) };
        // What a loss of power leaves whole (NAWUPF), commands that meet do too (NAWUN), within the same boundaries (NABSN, NABSPF).
        // All count from 0, and 0 stands for the one block of the controller, or for no boundary.
        let untorn = self.untorn_bytes.map_or(HOST_PAGE << MDTS, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        let untorn = u16::try_from((untorn >> shift).saturating_sub(1)).unwrap_or(u16::MAX);
        [34, 36].iter().for_each(|at| put(&mut out, *at, &untorn.to_le_bytes()));
        if self.untorn_bytes.is_some() {
            [40, 44].iter().for_each(|at| put(&mut out, *at, &untorn.to_le_bytes()));
        }
        put(&mut out, 48, &u128::from(self.capacity).to_le_bytes());
        if is_whole {
            [64, 66, 68, 70, 72].iter().for_each(|at| put(&mut out, *at, &preferred.to_le_bytes()));
        }
        // MSSRL, MCL, MSRC: what a Copy may move is what a transfer may.
        let copied = (HOST_PAGE << MDTS) >> shift;
        put(&mut out, 74, &u16::try_from(copied).unwrap_or(u16::MAX).to_le_bytes());
        put(&mut out, 76, &u32::try_from(copied).unwrap_or(u32::MAX).to_le_bytes());
        out[80] = COPY_RANGES_MAX - 1;
        put(&mut out, 102, &1u16.to_le_bytes()); // ENDGID
        put(&mut out, 104, &self.nguid);
        put_formats(&mut out, self.formats);
        out
    }

    /// CNS 08h (Base, figure 320).
    #[must_use]
    pub fn independent(&self) -> Vec<u8> {
        let mut out = vec![0; BYTES];
        out[1] = u8::from(self.is_shared); // NMIC
        put(&mut out, 12, &1u16.to_le_bytes()); // ENDGID
        out[14] = 1; // NSTAT: ready
        out
    }

    /// CNS 03h (Base, figure 316): identifiers, and the command set that it belongs to.
    #[must_use]
    pub fn descriptors(&self) -> Vec<u8> {
        let mut out = vec![0; BYTES];
        put(&mut out, 0, &[2, 16, 0, 0]); // NGUID
        put(&mut out, 4, &self.nguid);
        put(&mut out, 20, &[3, 16, 0, 0]); // UUID
        put(&mut out, 24, &self.nguid);
        let set = if self.zoning.is_some() { zones::COMMAND_SET } else { 0 };
        put(&mut out, 40, &[4, 1, 0, 0, set]); // CSI
        out
    }
}

/// The formats in CNS 00h.
fn put_formats(out: &mut [u8], formats: &[u8]) {
    out[25] = u8::try_from(formats.len() - 1).expect("formats are few");
    for (at, shift) in formats.iter().enumerate() {
        out[128 + 4 * at + 2] = *shift;
        out[128 + 4 * at + 3] = if *shift == 9 { 1 } else { 0 }; // RP: blocks of 4 KiB are the best
    }
}

/// CNS 00h for no namespace: what all have in common.
#[must_use]
pub fn common_namespace(formats: &[u8]) -> Vec<u8> {
    let mut out = vec![0; BYTES];
    put_formats(&mut out, formats);
    out
}

/// CNS 16h: in what sizes namespaces should be created, in bytes.
#[must_use]
pub fn granularity(bytes: u64) -> Vec<u8> {
    let mut out = vec![0; BYTES];
    put(&mut out, 32, &bytes.to_le_bytes());
    put(&mut out, 40, &bytes.to_le_bytes());
    out
}

/// CNS 06h of the NVM command set (figure 119): limits of what moves no data.
#[must_use]
pub fn nvm_controller(has_zones: bool) -> Vec<u8> {
    let mut out = vec![0; BYTES];
    out[1] = if has_zones { ZEROES_MAX } else { 0 }; // WZSL
    // Namespaces may have blocks of different sizes; that of the largest blocks is a limit for all.
    let blocks = u32::try_from(RANGE_BYTES_MAX >> 12).expect("a GiB has few blocks");
    out[3] = RANGES_MAX; // DMRL
    put(&mut out, 4, &blocks.to_le_bytes()); // DMRSL
    put(&mut out, 8, &u64::MAX.to_le_bytes()); // DMSL
    out
}

/// A list of identifiers of namespaces above `above`.
#[must_use]
pub fn list(ids: impl Iterator<Item = u32>, above: u32) -> Vec<u8> {
    let mut out = vec![0; BYTES];
    let found = ids.filter(|id| *id > above).take(BYTES / 4);
    found.enumerate().for_each(|(at, id)| put(&mut out, 4 * at, &id.to_le_bytes()));
    out
}

/// A list of identifiers of controllers from `first` on, which begins with their number.
#[must_use]
pub fn controllers(ids: impl Iterator<Item = u16>, first: u16) -> Vec<u8> {
    let mut out = vec![0; BYTES];
    let mut count = 0u16;
    for id in ids.filter(|id| *id >= first).take(BYTES / 2 - 1) {
        count += 1;
        put(&mut out, 2 * usize::from(count), &id.to_le_bytes());
    }
    put(&mut out, 0, &count.to_le_bytes());
    out
}
