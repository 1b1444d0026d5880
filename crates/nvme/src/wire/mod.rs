//! The bytes of NVMe: queue entries, statuses, and little-endian fields.
//!
//! After NVM Express Base 2.1: submission queue entry (figure 91), completion queue entry (figures 98 to 100), status codes
//! (figures 101 to 105). Of zones, after Zoned Namespace Command Set 1.2.

pub mod identify;
pub mod lba_status;
pub mod log;
pub mod pdu;
pub mod placement;
pub mod zones;

use flashwright_block::IoError;

/// Bytes of a submission queue entry.
pub const SQE_BYTES: usize = 64;
/// Bytes of a completion queue entry.
pub const CQE_BYTES: usize = 16;
/// A page of the host's memory, the unit of the largest transfer.
pub const HOST_PAGE: usize = 4096;
/// The namespace identifier that stands for all namespaces.
pub const ALL_NAMESPACES: u32 = u32::MAX;

/// Two bytes as a number.
///
/// # Panics
/// If there are no two from `at` on; likewise [`u32_at`] and [`u64_at`].
#[must_use]
pub fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes were cut"))
}

/// Four bytes as a number.
#[must_use]
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes were cut"))
}

/// Eight bytes as a number.
#[must_use]
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes were cut"))
}

/// Puts bytes at a place.
pub fn put(into: &mut [u8], at: usize, bytes: &[u8]) {
    into[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Puts text at a place, cut or filled with spaces to `length`: how identify spells names.
pub fn put_text(into: &mut [u8], at: usize, length: usize, text: &str) {
    into[at..at + length].fill(b' ');
    let printable = text.bytes().map(|byte| if byte.is_ascii_graphic() || byte == b' ' { byte } else { b'?' });
    into[at..at + length].iter_mut().zip(printable).for_each(|(place, byte)| *place = byte);
}

/// A submission queue entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sqe(pub [u8; SQE_BYTES]);

impl Sqe {
    /// What the command does.
    #[must_use]
    pub fn opcode(&self) -> u8 {
        self.0[0]
    }

    /// Bits 9:8 of the first dword: whether it is fused with another.
    #[must_use]
    pub fn fuse(&self) -> u8 {
        self.0[1] & 3
    }

    /// Bits 15:14 of the first dword: PRPs (0) or SGLs.
    #[must_use]
    pub fn psdt(&self) -> u8 {
        self.0[1] >> 6
    }

    /// The identifier that its completion repeats.
    #[must_use]
    pub fn cid(&self) -> u16 {
        u16_at(&self.0, 2)
    }

    /// The namespace identifier.
    #[must_use]
    pub fn nsid(&self) -> u32 {
        u32_at(&self.0, 4)
    }

    /// A command dword, 10 to 15.
    #[must_use]
    pub fn dword(&self, number: usize) -> u32 {
        u32_at(&self.0, 4 * number)
    }

    /// Command dwords 10 and 11: the first logical block.
    #[must_use]
    pub fn first_block(&self) -> u64 {
        u64_at(&self.0, 40)
    }

    /// Bits 15:0 of command dword 12, which count from 0: the number of logical blocks.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        u64::from(self.dword(12) & 0xffff) + 1
    }

    /// The first SGL descriptor.
    #[must_use]
    pub fn sgl(&self) -> Sgl {
        Sgl { address: u64_at(&self.0, 24), length: u32_at(&self.0, 32), kind: self.0[39] }
    }
}

/// An SGL descriptor: where the data of a command are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sgl {
    /// An address, or an offset in the capsule.
    pub address: u64,
    /// Bytes.
    pub length: u32,
    /// Type in bits 7:4, subtype in bits 3:0.
    pub kind: u8,
}

impl Sgl {
    /// Data that are in the capsule, at an offset.
    pub const IN_CAPSULE: u8 = 0x01;
    /// Data that the transport moves.
    pub const TRANSPORT: u8 = 0x5a;
}

/// A completion queue entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cqe {
    /// Dwords 0 and 1.
    pub result: u64,
    /// The head of the submission queue.
    pub sq_head: u16,
    /// The queue.
    pub queue: u16,
    /// The command.
    pub cid: u16,
    /// How it ended.
    pub status: Status,
}

impl Cqe {
    /// Its bytes, with phase 0.
    #[must_use]
    pub fn bytes(&self) -> [u8; CQE_BYTES] {
        let mut out = [0; CQE_BYTES];
        put(&mut out, 0, &self.result.to_le_bytes());
        put(&mut out, 8, &self.sq_head.to_le_bytes());
        put(&mut out, 10, &self.queue.to_le_bytes());
        put(&mut out, 12, &self.cid.to_le_bytes());
        put(&mut out, 14, &(self.status.0 << 1).to_le_bytes());
        out
    }

    /// Reads one.
    #[must_use]
    pub fn parse(bytes: &[u8; CQE_BYTES]) -> Self {
        Self {
            result: u64_at(bytes, 0),
            sq_head: u16_at(bytes, 8),
            queue: u16_at(bytes, 10),
            cid: u16_at(bytes, 12),
            status: Status(u16_at(bytes, 14) >> 1),
        }
    }
}

/// How a command ended: status code in bits 7:0, its type in bits 10:8, More in bit 13, Do Not Retry in bit 14.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Status(pub u16);

impl Status {
    const DO_NOT_RETRY: u16 = 1 << 14;

    /// One that a retry does not change.
    #[must_use]
    pub const fn of(kind: u8, code: u8) -> Self {
        Self((kind as u16) << 8 | code as u16 | Self::DO_NOT_RETRY)
    }

    /// One after which the host may try again.
    #[must_use]
    pub const fn passing(kind: u8, code: u8) -> Self {
        Self((kind as u16) << 8 | code as u16)
    }

    /// Type and code.
    #[must_use]
    pub fn parts(self) -> (u8, u8) {
        ((self.0 >> 8 & 7) as u8, (self.0 & 0xff) as u8)
    }

    /// Whether the command succeeded.
    #[must_use]
    pub fn is_ok(self) -> bool {
        self.parts() == (0, 0)
    }
}

#[allow(missing_docs)] // as the specification names them
impl Status {
    pub const SUCCESS: Self = Self(0);
    pub const INVALID_OPCODE: Self = Self::of(0, 0x01);
    pub const INVALID_FIELD: Self = Self::of(0, 0x02);
    pub const CID_CONFLICT: Self = Self::of(0, 0x03);
    pub const POWER_LOSS: Self = Self::passing(0, 0x05);
    pub const INTERNAL: Self = Self::of(0, 0x06);
    pub const ABORTED: Self = Self::of(0, 0x07);
    pub const INVALID_NAMESPACE: Self = Self::of(0, 0x0b);
    pub const SEQUENCE: Self = Self::of(0, 0x0c);
    pub const SGL_LENGTH: Self = Self::of(0, 0x0f);
    pub const SGL_TYPE: Self = Self::of(0, 0x11);
    pub const SGL_OFFSET: Self = Self::of(0, 0x16);
    pub const SANITIZING: Self = Self::passing(0, 0x1d);
    pub const WRITE_PROTECTED: Self = Self::of(0, 0x20);
    pub const TRANSPORT_ERROR: Self = Self::passing(0, 0x22);
    pub const PLACEMENT_OFF: Self = Self::of(0, 0x29);
    pub const PLACEMENT_LIST: Self = Self::of(0, 0x2a);
    pub const LBA_OUT_OF_RANGE: Self = Self::of(0, 0x80);
    pub const TOO_MANY_ABORTS: Self = Self::of(1, 0x03);
    pub const TOO_MANY_EVENT_REQUESTS: Self = Self::of(1, 0x05);
    pub const INVALID_LOG_PAGE: Self = Self::of(1, 0x09);
    pub const INVALID_FORMAT: Self = Self::of(1, 0x0a);
    pub const NOT_SAVEABLE: Self = Self::of(1, 0x0d);
    pub const NOT_CHANGEABLE: Self = Self::of(1, 0x0e);
    pub const NOT_OF_NAMESPACE: Self = Self::of(1, 0x0f);
    pub const INSUFFICIENT_CAPACITY: Self = Self::of(1, 0x15);
    pub const NO_IDENTIFIER: Self = Self::of(1, 0x16);
    pub const ALREADY_ATTACHED: Self = Self::of(1, 0x18);
    pub const PRIVATE: Self = Self::of(1, 0x19);
    pub const NOT_ATTACHED: Self = Self::of(1, 0x1a);
    pub const THIN_PROVISIONING: Self = Self::of(1, 0x1b);
    pub const CONTROLLER_LIST: Self = Self::of(1, 0x1c);
    pub const COMMAND_SET: Self = Self::of(1, 0x29);
    pub const SIZE_LIMIT: Self = Self::of(1, 0x83);
    pub const INCOMPATIBLE: Self = Self::of(1, 0x85);
    pub const OVERLAPPING: Self = Self::of(1, 0x87);
    pub const CONNECT_FORMAT: Self = Self::of(1, 0x80);
    pub const CONNECT_BUSY: Self = Self::passing(1, 0x81);
    pub const CONNECT_PARAMETERS: Self = Self::of(1, 0x82);
    pub const CONNECT_HOST: Self = Self::of(1, 0x84);
    pub const ZONE_BOUNDARY: Self = Self::of(1, 0xb8);
    pub const ZONE_FULL: Self = Self::of(1, 0xb9);
    pub const ZONE_READ_ONLY: Self = Self::of(1, 0xba);
    pub const ZONE_OFFLINE: Self = Self::of(1, 0xbb);
    pub const ZONE_INVALID_WRITE: Self = Self::of(1, 0xbc);
    pub const TOO_MANY_ACTIVE_ZONES: Self = Self::of(1, 0xbd);
    pub const TOO_MANY_OPEN_ZONES: Self = Self::of(1, 0xbe);
    pub const ZONE_TRANSITION: Self = Self::of(1, 0xbf);
    pub const WRITE_FAULT: Self = Self::of(2, 0x80);
    pub const UNRECOVERED_READ: Self = Self::of(2, 0x81);
    pub const COMPARE_FAILED: Self = Self::of(2, 0x85);
    pub const UNWRITTEN: Self = Self::of(2, 0x87);
}

impl std::fmt::Debug for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (kind, code) = self.parts();
        write!(f, "{kind:x}/{code:02x}")
    }
}

/// How a failure of the drive is told: `writes` says whether the command stores.
#[must_use]
pub fn status_of(error: &IoError, writes: bool) -> Status {
    match error {
        IoError::OutOfRange { .. } => Status::LBA_OUT_OF_RANGE,
        IoError::Misaligned { .. } => Status::INVALID_FIELD,
        IoError::ReadOnly { .. } => Status::WRITE_PROTECTED,
        IoError::WornOut { .. } => Status::WRITE_FAULT,
        IoError::PowerOff => Status::POWER_LOSS,
        IoError::Zone(error) => zones::status_of(error.rule),
        IoError::Device(_) if writes => Status::WRITE_FAULT,
        IoError::Device(_) => Status::UNRECOVERED_READ,
        _ => Status::INTERNAL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_completion_reads_back_and_a_status_has_its_bits() {
        let cqe = Cqe { result: 7 << 32 | 9, sq_head: 3, queue: 1, cid: 0xbeef, status: Status::LBA_OUT_OF_RANGE };
        assert_eq!(Cqe::parse(&cqe.bytes()), cqe);
        assert_eq!(cqe.bytes()[14..], (0x80u16 << 1 | 1 << 15).to_le_bytes());
        assert_eq!(Status::COMPARE_FAILED.parts(), (2, 0x85));
        assert!(Status::SUCCESS.is_ok() && !Status::passing(2, 0).is_ok());
    }
}
