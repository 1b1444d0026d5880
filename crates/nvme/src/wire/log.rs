//! The structures of log pages (Base 2.1, section 5.1.12; OCP Datacenter NVMe SSD 2.0, log page C0h).

use super::{Status, put, put_text};
use crate::subsystem::Health;

/// The page that lists namespaces that have changed: 1,024 identifiers at most, as identify lists them.
pub const CHANGED_NAMESPACES: u8 = 0x04;
/// The page that tells of the most recent sanitize operation.
pub const SANITIZE: u8 = 0x81;
/// The unit of SMART, which is rounded up: 1,000 sectors.
const DATA_UNIT: u64 = 512_000;
/// The unit of an endurance group.
const GIGABYTE: u64 = 1_000_000_000;
/// The temperature of a drive whose heat is not modelled: 40 °C, in kelvin.
const TEMPERATURE_K: u16 = 313;
/// NVMe/TCP, as TRTYPE counts transports.
pub const TCP: u8 = 3;
/// PCIe, which TRTYPE does not name.
pub const PCIE: u8 = 0;
/// Spare blocks left, below which a drive warns, in percent.
const SPARE_THRESHOLD: u8 = 10;
const OCP_GUID: [u8; 16] =
    [0xc5, 0xaf, 0x10, 0x28, 0xea, 0xbf, 0xf2, 0xa4, 0x9c, 0x4f, 0x6f, 0x7c, 0xc9, 0x14, 0xd5, 0xaf];

fn put_wide(into: &mut [u8], at: usize, value: u64) {
    put(into, at, &u128::from(value).to_le_bytes());
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // clamped
fn percent(share: f64, most: f64) -> u8 {
    (share * 100.0).round().clamp(0.0, most) as u8
}

/// Bits of the critical warning: spare blocks low, and read only.
#[must_use]
pub fn critical_warning(health: &Health) -> u8 {
    let is_low = percent(health.spare, 100.0) < SPARE_THRESHOLD;
    u8::from(is_low) | u8::from(health.is_worn_out) << 3
}

/// Log page 02h (figure 207), with the number of entries that the error log has had.
#[must_use]
pub fn smart(health: &Health, errors: u64) -> Vec<u8> {
    let mut out = vec![0; 512];
    out[0] = critical_warning(health);
    put(&mut out, 1, &TEMPERATURE_K.to_le_bytes());
    out[3] = percent(health.spare, 100.0);
    out[4] = SPARE_THRESHOLD;
    out[5] = percent(health.used, 255.0);
    put_wide(&mut out, 32, health.bytes_read.div_ceil(DATA_UNIT));
    put_wide(&mut out, 48, health.bytes_written.div_ceil(DATA_UNIT));
    put_wide(&mut out, 64, health.reads);
    put_wide(&mut out, 80, health.writes);
    put_wide(&mut out, 112, health.power_cycles);
    put_wide(&mut out, 128, health.power_on_ns / 3_600_000_000_000);
    put_wide(&mut out, 144, health.unsafe_shutdowns);
    put_wide(&mut out, 160, health.media_errors);
    put_wide(&mut out, 176, errors);
    out
}

/// Log page 09h (figure 217).
#[must_use]
pub fn endurance_group(health: &Health, errors: u64) -> Vec<u8> {
    let mut out = vec![0; 512];
    out[0] = u8::from(critical_warning(health) & 1 != 0) | u8::from(health.is_worn_out) << 3;
    out[3] = percent(health.spare, 100.0);
    out[4] = SPARE_THRESHOLD;
    out[5] = percent(health.used, 255.0);
    put_wide(&mut out, 32, health.media_bytes_rated / GIGABYTE);
    put_wide(&mut out, 48, health.bytes_read.div_ceil(GIGABYTE));
    put_wide(&mut out, 64, health.bytes_written.div_ceil(GIGABYTE));
    put_wide(&mut out, 80, health.media_bytes_written.div_ceil(GIGABYTE));
    put_wide(&mut out, 96, health.reads);
    put_wide(&mut out, 112, health.writes);
    put_wide(&mut out, 128, health.media_errors);
    put_wide(&mut out, 144, errors);
    put_wide(&mut out, 160, health.capacity);
    out
}

/// Log page C0h of the Open Compute Project.
#[must_use]
pub fn ocp(health: &Health) -> Vec<u8> {
    let mut out = vec![0; 512];
    put_wide(&mut out, 0, health.media_bytes_written);
    put_wide(&mut out, 16, health.media_bytes_read);
    put(&mut out, 32, &u64::from(health.blocks_bad).to_le_bytes()[..6]);
    put(&mut out, 38, &u16::from(percent(health.spare, 100.0)).to_le_bytes());
    put(&mut out, 88, &health.erases_max.to_le_bytes());
    put(&mut out, 92, &health.erases_min.to_le_bytes());
    out[120] = percent(health.blocks_free, 100.0);
    put(&mut out, 128, &100u16.to_le_bytes()); // health of the power-loss protection
    put_wide(&mut out, 176, health.media_bytes_rated);
    put(&mut out, 494, &3u16.to_le_bytes()); // version of the page
    put(&mut out, 496, &OCP_GUID);
    out
}

/// Log page 03h (figure 208): one slot.
#[must_use]
pub fn firmware_slots(firmware: &str) -> Vec<u8> {
    let mut out = vec![0; 512];
    out[0] = 1;
    put_text(&mut out, 8, 8, firmware);
    out
}

/// An entry of the error log (figure 206).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorEntry {
    /// Counted from 1 since the controller was made.
    pub number: u64,
    /// The queue.
    pub queue: u16,
    /// The command.
    pub cid: u16,
    /// How it ended.
    pub status: Status,
    /// Its namespace.
    pub nsid: u32,
    /// The first logical block of the command.
    pub block: u64,
    /// The transport by which it came: TRTYPE.
    pub transport: u8,
}

impl ErrorEntry {
    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> [u8; 64] {
        let mut out = [0; 64];
        put(&mut out, 0, &self.number.to_le_bytes());
        put(&mut out, 8, &self.queue.to_le_bytes());
        put(&mut out, 10, &self.cid.to_le_bytes());
        put(&mut out, 12, &(self.status.0 << 1).to_le_bytes());
        put(&mut out, 14, &u16::MAX.to_le_bytes()); // no parameter is named
        put(&mut out, 16, &self.block.to_le_bytes());
        put(&mut out, 24, &self.nsid.to_le_bytes());
        out[29] = self.transport;
        out
    }
}

/// An entry of the discovery log (figure 295), and its header.
#[must_use]
pub fn discovery(nqn: &str, host: &str, port: &str, is_v6: bool) -> Vec<u8> {
    let mut out = vec![0; 2048];
    put(&mut out, 0, &1u64.to_le_bytes()); // GENCTR
    put(&mut out, 8, &1u64.to_le_bytes()); // NUMREC
    let entry = &mut out[1024..];
    entry[0] = TCP; // TRTYPE
    entry[1] = if is_v6 { 2 } else { 1 };
    entry[2] = 2; // SUBTYPE: an NVM subsystem
    entry[3] = 1 << 2; // TREQ: flow control of submission queues may be off; nothing is said of secure channels
    put(entry, 4, &1u16.to_le_bytes()); // PORTID
    put(entry, 6, &u16::MAX.to_le_bytes()); // CNTLID: any
    put(entry, 8, &32u16.to_le_bytes()); // ASQSZ
    put_text(entry, 32, 32, port);
    put(entry, 256, &nqn.as_bytes()[..nqn.len().min(255)]);
    put_text(entry, 512, 256, host);
    out
}
