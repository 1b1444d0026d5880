//! The configuration space of a function (PCI Express Base 4.0, section 7).
//!
//! ```text
//!   0x00  header: class 01 08 02h, by which drivers know a controller of NVMe
//!   0x40  power management   0x50  MSI-X   0x60  PCI Express: a reset of the function
//! ```

use super::msix::VECTORS;
use super::registers::{BAR_BYTES, PENDING_BITS, VECTOR_TABLE};
use crate::wire::put;

/// Bytes of the space: that of PCI Express.
pub const BYTES: usize = 4096;
/// The vendor: a number that the PCI-SIG has given to nobody. Drivers go by the class.
pub const VENDOR: u16 = 0xf1a5;
/// The device: the first of its kind.
pub const DEVICE: u16 = 0x0001;
/// Mass storage, non-volatile memory, NVM Express.
const CLASS: u32 = 0x0001_0802;

const POWER: usize = 0x40;
const MSIX: usize = 0x50;
const EXPRESS: usize = 0x60;
/// Device Control of PCI Express, whose bit 15 resets the function.
const DEVICE_CONTROL: usize = EXPRESS + 8;
const RESETS: u8 = 1 << 7;
/// 8 GT/s on four lanes, as Link Capabilities and Link Status spell it.
const LINK: u16 = 3 | 4 << 4;

/// The space: its bytes, and which bits of them a host may change.
#[derive(Debug)]
pub(crate) struct Space {
    bytes: Vec<u8>,
    writable: Vec<u8>,
}

impl Default for Space {
    fn default() -> Self {
        let (mut bytes, mut writable) = (vec![0; BYTES], vec![0; BYTES]);
        put(&mut bytes, 0x00, &VENDOR.to_le_bytes());
        put(&mut bytes, 0x02, &DEVICE.to_le_bytes());
        put(&mut writable, 0x04, &0x0546u16.to_le_bytes()); // memory, bus master, parity, SERR#, no pin
        put(&mut bytes, 0x06, &0x0010u16.to_le_bytes()); // there are capabilities
        put(&mut bytes, 0x08, &(CLASS << 8 | 1).to_le_bytes()); // revision 1
        put(&mut writable, 0x0c, &[0xff]); // cache line
        put(&mut bytes, 0x10, &[0x04]); // BAR 0: 64 bits
        put(&mut writable, 0x10, &(!(BAR_BYTES - 1)).to_le_bytes());
        put(&mut bytes, 0x2c, &VENDOR.to_le_bytes());
        put(&mut bytes, 0x2e, &DEVICE.to_le_bytes());
        let offset = |at: usize| u8::try_from(at).expect("capabilities are in the first 256 bytes");
        bytes[0x34] = offset(POWER);
        writable[0x3c] = 0xff; // interrupt line, for software; without a pin
        put(&mut bytes, POWER, &[0x01, offset(MSIX), 0x03, 0x00, 0x08]); // version 3; D3 keeps the state
        writable[POWER + 4] = 0x03;
        put(&mut bytes, MSIX, &[0x11, offset(EXPRESS)]);
        put(&mut bytes, MSIX + 2, &(VECTORS - 1).to_le_bytes());
        writable[MSIX + 3] = 0xc0; // enabled, and all masked
        let in_bar = |at: u64| u32::try_from(at).expect("the BAR is small").to_le_bytes();
        put(&mut bytes, MSIX + 4, &in_bar(VECTOR_TABLE));
        put(&mut bytes, MSIX + 8, &in_bar(PENDING_BITS));
        put(&mut bytes, EXPRESS, &[0x10, 0, 0x02, 0x00]); // version 2, an endpoint, the last capability
        put(&mut bytes, EXPRESS + 4, &(1u32 << 15 | 1 << 28).to_le_bytes()); // errors by role; can reset the function
        put(&mut writable, DEVICE_CONTROL, &0x7fffu16.to_le_bytes());
        put(&mut bytes, EXPRESS + 12, &u32::from(LINK).to_le_bytes());
        put(&mut writable, EXPRESS + 16, &0x00c3u16.to_le_bytes());
        put(&mut bytes, EXPRESS + 18, &LINK.to_le_bytes());
        Self { bytes, writable }
    }
}

impl Space {
    /// Bytes from an offset on; none if they are not all there.
    pub fn read(&self, offset: u64, count: usize) -> Option<&[u8]> {
        let begins = usize::try_from(offset).ok()?;
        self.bytes.get(begins..begins.checked_add(count)?)
    }

    /// Writes the bits that can be written. Returns whether the host resets the function, or none if the bytes are not all there.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) -> Option<bool> {
        let begins = usize::try_from(offset).ok()?;
        let range = begins..begins.checked_add(bytes.len())?;
        let places = self.bytes.get_mut(range.clone())?;
        for ((place, writable), byte) in places.iter_mut().zip(&self.writable[range.clone()]).zip(bytes) {
            *place = *place & !writable | byte & writable;
        }
        Some(range.contains(&(DEVICE_CONTROL + 1)) && bytes[DEVICE_CONTROL + 1 - begins] & RESETS != 0)
    }

    /// The function is reset.
    pub fn reset(&mut self) {
        *self = Self::default();
    }
}

/// Changes what Identify tells of a controller (CNS 01h) to what holds of a function: its vendor, and nothing of capsules.
pub(crate) fn of_function(data: &mut [u8]) {
    put(data, 0, &VENDOR.to_le_bytes());
    put(data, 2, &VENDOR.to_le_bytes());
    put(data, 536, &1u32.to_le_bytes()); // SGLS: no alignment
    put(data, 1792, &[0; 12]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{u16_at, u32_at, u64_at};

    #[test]
    fn a_driver_finds_the_class_the_size_of_the_bar_and_the_capabilities() {
        let mut space = Space::default();
        let dword = |space: &Space, at: u64| u32_at(space.read(at, 4).unwrap(), 0);
        assert_eq!(dword(&space, 8) >> 8, 0x01_08_02);
        assert_eq!(space.write(0x10, &[0xff; 8]), Some(false));
        assert_eq!(!(u64_at(space.read(0x10, 8).unwrap(), 0) & !0xf) + 1, BAR_BYTES);
        let (mut at, mut found) = (space.read(0x34, 1).unwrap()[0], Vec::new());
        while at != 0 {
            let head = space.read(u64::from(at), 2).unwrap();
            found.push(head[0]);
            at = head[1];
        }
        assert_eq!(found, [0x01, 0x11, 0x10]);
        assert_eq!(u16_at(space.read(MSIX as u64 + 2, 2).unwrap(), 0) & 0x7ff, VECTORS - 1);
        assert_eq!(space.write(0, &[0; 4]), Some(false));
        assert_eq!(dword(&space, 0) & 0xffff, u32::from(VENDOR), "what is read only stays");
        assert_eq!(space.write(DEVICE_CONTROL as u64, &[0, 0x80]), Some(true));
        assert_eq!(space.read(DEVICE_CONTROL as u64 + 1, 1), Some(&[0][..]));
        assert!(
            space.read(4093, 4).is_none() && space.write(4093, &[0; 4]).is_none() && space.read(u64::MAX, 1).is_none()
        );
    }
}
