//! The messages of vfio-user: a header, a body in fields of the machine's order, and descriptors beside them.

use crate::wire::{put, u16_at, u32_at};

/// Bytes of a header.
pub const HEADER_BYTES: usize = 16;
/// Bytes that a message may move from or to a region.
pub(crate) const TRANSFER_MAX: usize = 64 << 10;
/// Bytes of a message: the longest write, and its fields.
pub const MESSAGE_MAX: usize = TRANSFER_MAX + 64;
/// Descriptors that come with a message.
pub const MESSAGE_FDS_MAX: usize = 16;

/// Commands, by their numbers.
pub mod command {
    #![allow(missing_docs)] // as the protocol names them
    pub const VERSION: u16 = 1;
    pub const DMA_MAP: u16 = 2;
    pub const DMA_UNMAP: u16 = 3;
    pub const DEVICE_GET_INFO: u16 = 4;
    pub const DEVICE_GET_REGION_INFO: u16 = 5;
    pub const DEVICE_GET_IRQ_INFO: u16 = 7;
    pub const DEVICE_SET_IRQS: u16 = 8;
    pub const REGION_READ: u16 = 9;
    pub const REGION_WRITE: u16 = 10;
    pub const DEVICE_RESET: u16 = 13;
}

/// Flags of a header.
pub mod flag {
    /// It answers a message; without it, it is a command.
    pub const REPLY: u32 = 1;
    /// The field of which [`REPLY`] is a value.
    pub const TYPE: u32 = 0xf;
    /// No answer is wanted.
    pub const NO_REPLY: u32 = 1 << 4;
    /// The command failed: the header tells why.
    pub const ERROR: u32 = 1 << 5;
}

/// Why a command failed, as Linux counts errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub u32);

impl Errno {
    /// `EBADF`: a descriptor is none that can be used so.
    pub const DESCRIPTOR: Self = Self(9);
    /// `EEXIST`: there is a map already.
    pub const EXISTS: Self = Self(17);
    /// `EINVAL`.
    pub const INVALID: Self = Self(22);
    /// `ENOSPC`: there are too many.
    pub const NO_SPACE: Self = Self(28);
    /// `ENOTSUP`.
    pub const NOT_SUPPORTED: Self = Self(95);
}

/// A whole message.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// What its answer repeats.
    pub id: u16,
    /// What it asks.
    pub command: u16,
    /// See [`flag`].
    pub flags: u32,
    /// What follows the header.
    pub body: &'a [u8],
}

impl<'a> Message<'a> {
    /// The length that a header tells; none if no message has it.
    pub(crate) fn length(header: &[u8; HEADER_BYTES]) -> Option<usize> {
        let length = u32_at(header, 4) as usize;
        (HEADER_BYTES..=MESSAGE_MAX).contains(&length).then_some(length)
    }

    pub(crate) fn parse(bytes: &'a [u8]) -> Self {
        Self { id: u16_at(bytes, 0), command: u16_at(bytes, 2), flags: u32_at(bytes, 8), body: &bytes[HEADER_BYTES..] }
    }

    /// Appends its bytes, for a client.
    pub fn put(&self, out: &mut Vec<u8>) {
        let length = u32::try_from(HEADER_BYTES + self.body.len()).expect("messages are short");
        out.extend(self.id.to_le_bytes());
        out.extend(self.command.to_le_bytes());
        out.extend(length.to_le_bytes());
        out.extend(self.flags.to_le_bytes());
        out.extend([0; 4]);
        out.extend_from_slice(self.body);
    }

    /// The answer, if one is wanted.
    pub(crate) fn answer(&self, out: &mut Vec<u8>, answer: Result<Vec<u8>, Errno>) {
        if self.flags & flag::NO_REPLY != 0 {
            return;
        }
        let begins = out.len();
        let (flags, body, error) = match &answer {
            Ok(body) => (flag::REPLY, body.as_slice(), 0),
            Err(errno) => (flag::REPLY | flag::ERROR, &[][..], errno.0),
        };
        Message { flags, body, ..*self }.put(out);
        put(&mut out[begins..], 12, &error.to_le_bytes());
    }
}

/// The body of the answer to [`command::VERSION`]: version 0.0, and what the server takes.
pub(crate) fn version() -> Vec<u8> {
    let text = format!(
        "{{\"capabilities\":{{\"max_msg_fds\":{MESSAGE_FDS_MAX},\"max_data_xfer_size\":{TRANSFER_MAX},\"pgsizes\":{}}}}}\0",
        crate::wire::HOST_PAGE
    );
    [&[0; 4], text.as_bytes()].concat()
}
