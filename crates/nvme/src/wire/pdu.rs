//! The PDUs of NVMe/TCP (NVMe over TCP 1.1, section 3.6).
//!
//! ```text
//!   type · flags · HLEN · PDO · PLEN │ header … HLEN │ header digest │ padding … PDO │ data │ data digest … PLEN
//! ```

use super::{put, u16_at, u32_at};

/// Bytes of the header that all PDUs begin with.
pub const COMMON_BYTES: usize = 8;
/// Bytes of a digest.
pub const DIGEST_BYTES: usize = 4;
/// Header bytes of the PDUs that carry or ask for data, and of completions and of requests to terminate.
pub const SHORT_BYTES: usize = 24;
/// Header bytes of a command.
pub const COMMAND_BYTES: usize = COMMON_BYTES + super::SQE_BYTES;
/// Bytes of the PDUs that begin a connection.
pub const CONNECTION_BYTES: usize = 128;

/// What a PDU is.
pub mod kind {
    #![allow(missing_docs)] // as the specification names them
    pub const IC_REQ: u8 = 0x00;
    pub const IC_RESP: u8 = 0x01;
    pub const H2C_TERM: u8 = 0x02;
    pub const C2H_TERM: u8 = 0x03;
    pub const COMMAND: u8 = 0x04;
    pub const RESPONSE: u8 = 0x05;
    pub const H2C_DATA: u8 = 0x06;
    pub const C2H_DATA: u8 = 0x07;
    pub const R2T: u8 = 0x09;
}

/// Flags of a PDU.
pub mod flag {
    #![allow(missing_docs)] // as the specification names them
    pub const HEADER_DIGEST: u8 = 1;
    pub const DATA_DIGEST: u8 = 1 << 1;
    pub const LAST: u8 = 1 << 2;
    pub const SUCCESS: u8 = 1 << 3;
}

/// Why a connection is terminated (FES).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
#[allow(missing_docs)] // as the specification names them
pub enum Fatal {
    InvalidHeader = 1,
    Sequence = 2,
    HeaderDigest = 3,
    OutOfRange = 4,
    LimitExceeded = 5,
    Unsupported = 6,
}

/// The header that all PDUs begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Common {
    /// See [`kind`].
    pub kind: u8,
    /// See [`flag`].
    pub flags: u8,
    /// Bytes of the header.
    pub header: u8,
    /// Where the data begin; 0 without data.
    pub data_at: u8,
    /// Bytes of all.
    pub length: u32,
}

impl Common {
    /// Reads one.
    #[must_use]
    pub fn parse(bytes: &[u8; COMMON_BYTES]) -> Self {
        Self { kind: bytes[0], flags: bytes[1], header: bytes[2], data_at: bytes[3], length: u32_at(bytes, 4) }
    }
}

/// Where the data of a PDU lie: command, tag, offset, length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The command.
    pub cid: u16,
    /// The transfer tag, of the controller.
    pub tag: u16,
    /// The first byte, of the command's data.
    pub offset: u32,
    /// Bytes.
    pub length: u32,
}

impl Span {
    /// Reads the header of a PDU with data, or of an R2T.
    #[must_use]
    pub fn parse(header: &[u8]) -> Self {
        Self { cid: u16_at(header, 8), tag: u16_at(header, 10), offset: u32_at(header, 12), length: u32_at(header, 16) }
    }

    fn put(self, header: &mut [u8]) {
        put(header, 8, &self.cid.to_le_bytes());
        put(header, 10, &self.tag.to_le_bytes());
        put(header, 12, &self.offset.to_le_bytes());
        put(header, 16, &self.length.to_le_bytes());
    }
}

/// What both sides agreed on when the connection began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Format {
    /// Whether headers have a digest.
    pub header_digest: bool,
    /// Whether data have one.
    pub data_digest: bool,
    /// Data that this side sends begin at a multiple of so many bytes; 0 for 4.
    pub alignment: usize,
}

impl Format {
    /// Bytes between the beginning of a PDU and its data.
    #[must_use]
    pub fn data_at(&self, header: usize) -> usize {
        let end = header + if self.header_digest { DIGEST_BYTES } else { 0 };
        end.next_multiple_of(self.alignment.max(4))
    }

    /// Appends a PDU without data.
    pub fn put_header(&self, out: &mut Vec<u8>, kind: u8, flags: u8, fill: impl FnOnce(&mut [u8]), header: usize) {
        let length = header + if self.header_digest { DIGEST_BYTES } else { 0 };
        self.put_any(out, (kind, flags), (header, 0, length), fill);
    }

    /// Appends the header of a PDU with `length` bytes of data; the data, and then [`Format::put_data_digest`], follow.
    pub fn put_data_header(&self, out: &mut Vec<u8>, kind: u8, flags: u8, span: Span) {
        let data_at = self.data_at(SHORT_BYTES);
        let digest = if self.data_digest { DIGEST_BYTES } else { 0 };
        let flags = flags | if self.data_digest { flag::DATA_DIGEST } else { 0 };
        let length = data_at + span.length as usize + digest;
        let begins = out.len();
        self.put_any(out, (kind, flags), (SHORT_BYTES, data_at, length), |header| span.put(header));
        out.resize(begins + data_at, 0);
    }

    /// Appends the digest of the data that begin at `from`, if data have one.
    pub fn put_data_digest(&self, out: &mut Vec<u8>, from: usize) {
        if self.data_digest {
            let digest = crc32c::crc32c(&out[from..]);
            out.extend_from_slice(&digest.to_le_bytes());
        }
    }

    /// Appends a command with data in its capsule: what a host sends.
    pub fn put_command(&self, out: &mut Vec<u8>, sqe: &super::Sqe, data: &[u8]) {
        let begins = out.len();
        let digest = if self.data_digest && !data.is_empty() { DIGEST_BYTES } else { 0 };
        let data_at = if data.is_empty() { 0 } else { self.data_at(COMMAND_BYTES) };
        let header_end = COMMAND_BYTES + if self.header_digest { DIGEST_BYTES } else { 0 };
        let length = if data.is_empty() { header_end } else { data_at + data.len() + digest };
        let flags = if digest > 0 { flag::DATA_DIGEST } else { 0 };
        self.put_any(out, (kind::COMMAND, flags), (COMMAND_BYTES, data_at, length), |header| put(header, 8, &sqe.0));
        if !data.is_empty() {
            out.resize(begins + data_at, 0);
            out.extend_from_slice(data);
            self.put_data_digest(out, begins + data_at);
        }
    }

    fn put_any(
        &self,
        out: &mut Vec<u8>,
        (kind, flags): (u8, u8),
        (header, data_at, length): (usize, usize, usize),
        fill: impl FnOnce(&mut [u8]),
    ) {
        let begins = out.len();
        out.resize(begins + header, 0);
        let bytes = &mut out[begins..];
        bytes[0] = kind;
        bytes[1] = flags | if self.header_digest { flag::HEADER_DIGEST } else { 0 };
        bytes[2] = u8::try_from(header).expect("headers are short");
        bytes[3] = u8::try_from(data_at).expect("alignments are at most 128 bytes");
        put(bytes, 4, &u32::try_from(length).expect("PDUs are short").to_le_bytes());
        fill(bytes);
        if self.header_digest {
            let digest = crc32c::crc32c(&out[begins..]);
            out.extend_from_slice(&digest.to_le_bytes());
        }
    }
}

/// Appends an R2T: the controller wants the data of a command.
pub fn put_r2t(out: &mut Vec<u8>, format: &Format, span: Span) {
    format.put_header(out, kind::R2T, 0, |header| span.put(header), SHORT_BYTES);
}

/// Appends the PDU that begins a connection, or its answer: alignment of data, digests, and the last number, which is MAXR2T of
/// a host and MAXH2CDATA of a controller. It has no digests.
pub fn put_connection(out: &mut Vec<u8>, kind: u8, alignment: u8, digests: u8, most: u32) {
    let fill = |header: &mut [u8]| {
        header[10] = alignment;
        header[11] = digests;
        put(header, 12, &most.to_le_bytes());
    };
    Format::default().put_header(out, kind, 0, fill, CONNECTION_BYTES);
}

/// Appends a request to terminate the connection: why, which field, and the header that was at fault. It has no digests.
pub fn put_termination(out: &mut Vec<u8>, fatal: Fatal, field: u32, header: &[u8]) {
    let header = &header[..header.len().min(128)];
    let length = SHORT_BYTES + header.len();
    let fill = |bytes: &mut [u8]| {
        put(bytes, 8, &(fatal as u16).to_le_bytes());
        put(bytes, 10, &field.to_le_bytes());
    };
    Format::default().put_any(out, (kind::C2H_TERM, 0), (SHORT_BYTES, 0, length), fill);
    out.extend_from_slice(header);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_begin_where_the_other_side_wants_them() {
        let format = Format { header_digest: true, data_digest: true, alignment: 64 };
        let mut out = vec![9; 3];
        format.put_data_header(&mut out, kind::C2H_DATA, flag::LAST, Span { cid: 5, tag: 0, offset: 0, length: 512 });
        let begins = out.len();
        out.resize(begins + 512, 7);
        format.put_data_digest(&mut out, begins);
        let common = Common::parse(out[3..11].try_into().unwrap());
        assert_eq!(common, Common { kind: 7, flags: 7, header: 24, data_at: 64, length: 64 + 512 + 4 });
        assert_eq!(out.len(), 3 + 64 + 512 + 4);
        assert_eq!(u32_at(&out, 3 + 24), crc32c::crc32c(&out[3..27]));
        assert_eq!(u32_at(&out, 3 + 576), crc32c::crc32c(&[7; 512]));
    }
}
