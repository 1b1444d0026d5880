//! The bytes of the NBD protocol: constants and codecs, no I/O.
//!
//! After the protocol's public description (`doc/proto.md` of the project NetworkBlockDevice/nbd): fixed newstyle
//! negotiation, simple and structured replies. All numbers are big-endian.

use flashwright_block::RequestKind;

/// First eight bytes of a server: `NBDMAGIC`.
pub const MAGIC: u64 = 0x4e42_444d_4147_4943;
/// Second eight bytes of a server, and the first of every option of a client: `IHAVEOPT`.
pub const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// First bytes of the reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// First bytes of a request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// First bytes of a simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// First bytes of a chunk of a structured reply.
pub const CHUNK_MAGIC: u32 = 0x668e_33ef;

/// Handshake flags of server and client: fixed newstyle, and no zeros after the export's size.
pub const FIXED_NEWSTYLE: u16 = 1;
/// See [`FIXED_NEWSTYLE`].
pub const NO_ZEROES: u16 = 2;

/// Options that a client may send.
pub mod option {
    #![allow(missing_docs)] // as the protocol names them
    pub const EXPORT_NAME: u32 = 1;
    pub const ABORT: u32 = 2;
    pub const LIST: u32 = 3;
    pub const STARTTLS: u32 = 5;
    pub const INFO: u32 = 6;
    pub const GO: u32 = 7;
    pub const STRUCTURED_REPLY: u32 = 8;
    pub const LIST_META_CONTEXT: u32 = 9;
    pub const SET_META_CONTEXT: u32 = 10;
}

/// Types of replies to options.
pub mod reply {
    #![allow(missing_docs)] // as the protocol names them
    pub const ACK: u32 = 1;
    pub const SERVER: u32 = 2;
    pub const INFO: u32 = 3;
    pub const META_CONTEXT: u32 = 4;
    pub const ERR_UNSUP: u32 = 1 << 31 | 1;
    pub const ERR_INVALID: u32 = 1 << 31 | 3;
    pub const ERR_UNKNOWN: u32 = 1 << 31 | 6;
    pub const ERR_TOO_BIG: u32 = 1 << 31 | 9;
}

/// Types of information about an export.
pub mod info {
    #![allow(missing_docs)] // as the protocol names them
    pub const EXPORT: u16 = 0;
    pub const NAME: u16 = 1;
    pub const DESCRIPTION: u16 = 2;
    pub const BLOCK_SIZE: u16 = 3;
}

/// Transmission flags of an export.
pub mod export {
    #![allow(missing_docs)] // as the protocol names them
    pub const HAS_FLAGS: u16 = 1;
    pub const READ_ONLY: u16 = 1 << 1;
    pub const SEND_FLUSH: u16 = 1 << 2;
    pub const SEND_FUA: u16 = 1 << 3;
    pub const SEND_TRIM: u16 = 1 << 5;
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    pub const SEND_DF: u16 = 1 << 7;
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    pub const SEND_CACHE: u16 = 1 << 10;
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// Flags of a request.
pub mod flag {
    #![allow(missing_docs)] // as the protocol names them
    pub const FUA: u16 = 1;
    pub const NO_HOLE: u16 = 1 << 1;
    pub const DF: u16 = 1 << 2;
    pub const REQ_ONE: u16 = 1 << 3;
    pub const FAST_ZERO: u16 = 1 << 4;
}

/// Types of chunks of a structured reply.
pub mod chunk {
    #![allow(missing_docs)] // as the protocol names them
    pub const NONE: u16 = 0;
    pub const OFFSET_DATA: u16 = 1;
    pub const BLOCK_STATUS: u16 = 5;
    pub const ERROR: u16 = 1 << 15 | 1;
    /// Flag of the last chunk of a reply.
    pub const DONE: u16 = 1;
}

/// The context of what is mapped, and the number that this server gives it.
pub const ALLOCATION: &str = "base:allocation";
/// See [`ALLOCATION`].
pub const ALLOCATION_ID: u32 = 1;
/// The status of a stretch that is not mapped: a hole that reads as zeros.
pub const HOLE_OF_ZEROS: u32 = 3;

/// Largest number of bytes that a request may carry, or ask for.
pub const PAYLOAD_MAX: u32 = 32 << 20;
/// Bytes of a request before its data.
pub const REQUEST_BYTES: usize = 28;
/// Bytes of an option before its data.
pub const OPTION_BYTES: usize = 16;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Return what was last written.
    Read,
    /// Store the data that follow.
    Write,
    /// End the connection.
    Disconnect,
    /// Make everything acknowledged durable.
    Flush,
    /// The content is no longer needed.
    Trim,
    /// Fetch ahead of a read.
    Cache,
    /// Store zeros.
    WriteZeroes,
    /// What is mapped.
    BlockStatus,
    /// What only a drive with zones takes, which no client of this protocol asks for.
    OfZones(RequestKind),
}

/// Why a command failed, as the protocol counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Errno {
    /// The export is read-only.
    NotPermitted = 1,
    /// The drive failed it.
    Io = 5,
    /// The request makes no sense.
    Invalid = 22,
    /// A write past the end.
    NoSpace = 28,
    /// Longer than the server takes.
    Overflow = 75,
    /// Zeros can't be written fast here.
    NotSupported = 95,
    /// The server is about to end.
    Shutdown = 108,
}

/// The head of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its flags; see [`flag`].
    pub flags: u16,
    /// Its type; none if this server knows none of that number.
    pub kind: Option<Kind>,
    /// What its reply repeats.
    pub cookie: u64,
    /// The first byte.
    pub offset: u64,
    /// The number of bytes.
    pub length: u32,
}

impl Head {
    /// Reads a head; none if it does not begin as requests do.
    #[must_use]
    pub fn parse(bytes: &[u8; REQUEST_BYTES]) -> Option<Self> {
        let kinds = [
            Kind::Read,
            Kind::Write,
            Kind::Disconnect,
            Kind::Flush,
            Kind::Trim,
            Kind::Cache,
            Kind::WriteZeroes,
            Kind::BlockStatus,
        ];
        (u32_at(bytes, 0) == REQUEST_MAGIC).then(|| Self {
            flags: u16_at(bytes, 4),
            kind: kinds.get(usize::from(u16_at(bytes, 6))).copied(),
            cookie: u64_at(bytes, 8),
            offset: u64_at(bytes, 16),
            length: u32_at(bytes, 24),
        })
    }

    /// Appends the bytes of a request of type `kind`: what a client sends.
    pub fn put(out: &mut Vec<u8>, flags: u16, kind: u16, cookie: u64, offset: u64, length: u32) {
        out.extend_from_slice(&REQUEST_MAGIC.to_be_bytes());
        out.extend_from_slice(&flags.to_be_bytes());
        out.extend_from_slice(&kind.to_be_bytes());
        out.extend_from_slice(&cookie.to_be_bytes());
        out.extend_from_slice(&offset.to_be_bytes());
        out.extend_from_slice(&length.to_be_bytes());
    }
}

/// Two bytes as a number.
///
/// # Panics
/// If there are no two from `at` on; likewise [`u32_at`] and [`u64_at`].
#[must_use]
pub fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(bytes[at..at + 2].try_into().expect("two bytes were cut"))
}

/// Four bytes as a number.
#[must_use]
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes were cut"))
}

/// Eight bytes as a number.
#[must_use]
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes were cut"))
}

/// Appends the reply to an option.
pub fn put_option_reply(out: &mut Vec<u8>, option: u32, kind: u32, parts: &[&[u8]]) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    out.extend_from_slice(&OPTION_REPLY_MAGIC.to_be_bytes());
    out.extend_from_slice(&option.to_be_bytes());
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&u32::try_from(length).expect("replies to options are short").to_be_bytes());
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

/// How replies are written on a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// As chunks with a type, instead of a bare number.
    pub structured: bool,
}

impl Style {
    /// Appends the reply to a command that succeeded and returns no data.
    pub fn put_done(self, out: &mut Vec<u8>, cookie: u64) {
        if self.structured {
            put_chunk(out, chunk::NONE, cookie, 0);
        } else {
            put_simple(out, 0, cookie);
        }
    }

    /// Appends the reply to a read and returns where its `length` bytes are to be put.
    pub fn put_read(self, out: &mut Vec<u8>, cookie: u64, offset: u64, length: u32) -> &mut [u8] {
        if self.structured {
            put_chunk(out, chunk::OFFSET_DATA, cookie, length + 8);
            out.extend_from_slice(&offset.to_be_bytes());
        } else {
            put_simple(out, 0, cookie);
        }
        let at = out.len();
        out.resize(at + length as usize, 0);
        &mut out[at..]
    }

    /// Appends the reply to a command that failed; `why` reaches only clients that take structured replies.
    pub fn put_error(self, out: &mut Vec<u8>, cookie: u64, errno: Errno, why: &str) {
        if !self.structured {
            return put_simple(out, errno as u32, cookie);
        }
        // The protocol allows 4096 bytes of text, which must end between characters.
        let mut length = why.len().min(4000);
        while !why.is_char_boundary(length) {
            length -= 1;
        }
        put_chunk(out, chunk::ERROR, cookie, 6 + u32::try_from(length).expect("it was cut"));
        out.extend_from_slice(&(errno as u32).to_be_bytes());
        out.extend_from_slice(&u16::try_from(length).expect("it was cut").to_be_bytes());
        out.extend_from_slice(&why.as_bytes()[..length]);
    }
}

/// Appends the reply to a question for the block status: lengths in bytes, and the flags of each stretch.
pub fn put_block_status(out: &mut Vec<u8>, cookie: u64, stretches: &[(u32, u32)]) {
    let length = 4 + 8 * u32::try_from(stretches.len()).expect("stretches are few");
    put_chunk(out, chunk::BLOCK_STATUS, cookie, length);
    out.extend_from_slice(&ALLOCATION_ID.to_be_bytes());
    for (bytes, flags) in stretches {
        out.extend_from_slice(&bytes.to_be_bytes());
        out.extend_from_slice(&flags.to_be_bytes());
    }
}

fn put_simple(out: &mut Vec<u8>, error: u32, cookie: u64) {
    out.extend_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
    out.extend_from_slice(&error.to_be_bytes());
    out.extend_from_slice(&cookie.to_be_bytes());
}

/// The head of the only chunk of a reply.
fn put_chunk(out: &mut Vec<u8>, kind: u16, cookie: u64, length: u32) {
    out.extend_from_slice(&CHUNK_MAGIC.to_be_bytes());
    out.extend_from_slice(&chunk::DONE.to_be_bytes());
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&cookie.to_be_bytes());
    out.extend_from_slice(&length.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_reads_back() {
        let mut bytes = Vec::new();
        Head::put(&mut bytes, flag::FUA, 1, 77, 4096, 512);
        let head = Head::parse(bytes.as_slice().try_into().unwrap()).unwrap();
        assert_eq!(head, Head { flags: 1, kind: Some(Kind::Write), cookie: 77, offset: 4096, length: 512 });
        bytes[7] = 200;
        assert_eq!(Head::parse(bytes.as_slice().try_into().unwrap()).unwrap().kind, None);
        bytes[0] = 0;
        assert_eq!(Head::parse(bytes.as_slice().try_into().unwrap()), None);
    }

    #[test]
    fn replies_have_the_bytes_of_the_protocol() {
        let (simple, structured) = (Style::default(), Style { structured: true });
        let mut out = Vec::new();
        simple.put_error(&mut out, 0x0102, Errno::NoSpace, "not sent");
        assert_eq!(out, [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 28, 0, 0, 0, 0, 0, 0, 1, 2]);
        out.clear();
        structured.put_error(&mut out, 5, Errno::Io, "ü");
        assert_eq!(out[..8], [0x66, 0x8e, 0x33, 0xef, 0, 1, 0x80, 1]);
        assert_eq!(out[16..], [0, 0, 0, 8, 0, 0, 0, 5, 0, 2, 0xc3, 0xbc]);
        out.clear();
        structured.put_read(&mut out, 5, 512, 2).copy_from_slice(&[8, 9]);
        assert_eq!(out[4..8], [0, 1, 0, 1]);
        assert_eq!(out[16..], [0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 2, 0, 8, 9]);
        out.clear();
        put_block_status(&mut out, 5, &[(4096, HOLE_OF_ZEROS)]);
        assert_eq!(out[16..], [0, 0, 0, 12, 0, 0, 0, 1, 0, 0, 16, 0, 0, 0, 0, 3]);
    }

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let mut out = Vec::new();
        Style { structured: true }.put_error(&mut out, 1, Errno::Io, &"ü".repeat(3000));
        assert!(std::str::from_utf8(&out[26..]).is_ok());
        assert_eq!(u16_at(&out, 24) as usize, out.len() - 26);
    }
}
