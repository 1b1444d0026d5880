//! Bytes of the `.fwt` format: header, chunks, footer. The layout is described in `formats/flashwright.rs`.

use super::error::TraceError;
use super::input::Input;
use super::record::{About, Encode, Held, KnownDevice, Output};
use flashwright_block::{Nanos, Request, RequestKind};
use std::io::{self, Seek, SeekFrom, Write};

pub(crate) const MAGIC: [u8; 8] = *b"\x89FWT\r\n\x1a\n";
/// The version that is written.
const VERSION: u32 = 2;
/// The first version, in which some bytes are not covered by a checksum; it can still be read.
const FIRST_VERSION: u32 = 1;
const PROLOGUE_BYTES: usize = 28;
/// The prologue up to its checksum.
const PROLOGUE_CHECKED: usize = 24;
/// Offset of the request count in the prologue; its checksum follows.
const COUNT_AT: u64 = 16;
/// The count of a file that was never finished.
const UNFINISHED: u64 = u64::MAX;
const HEADER_MAX_BYTES: usize = 1 << 24;
/// Largest number of requests in a chunk.
const CHUNK: usize = 65_536;
/// Largest number of bytes of a request in the columns: varints of 64, 64, 32, 32 and 32 bits and the kind.
const ROW_MAX_BYTES: usize = 10 + 10 + 5 + 1 + 5 + 5;
/// The smallest: a byte in each.
pub(crate) const ROW_MIN_BYTES: usize = 6;
const LEVEL: i32 = 7;
const FUA: u8 = 4;

/// Bytes of the columns of so many requests, at most.
pub(crate) fn unpacked_most(count: usize) -> usize {
    count.saturating_mul(ROW_MAX_BYTES)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes were cut"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes were cut"))
}

/// CRC of bytes that follow those covered by the checksum `chain`.
fn chained(chain: u32, parts: &[&[u8]]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(chain);
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize()
}

/// How chunks are checked: independently in version 1, later chained with everything before them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Check {
    Alone,
    Chain(u32),
}

impl Check {
    /// Whether `crc` matches a chunk's head and content, or the footer; advances the chain.
    fn passes(&mut self, head: &[u8], packed: &[u8], crc: u32) -> bool {
        match self {
            Self::Alone => crc32fast::hash(if packed.is_empty() { head } else { packed }) == crc,
            Self::Chain(chain) => {
                *chain = chained(*chain, &[head, packed]);
                *chain == crc
            }
        }
    }
}

/// Reads prologue and header; also returns how to check the rest.
pub(crate) fn read_header(input: &mut Input) -> Result<(About, Check), TraceError> {
    let path = input.path().to_owned();
    let cut = || TraceError::Truncated { path: path.clone(), what: "the header" };
    let prologue = input.take(PROLOGUE_BYTES, "the header")?.ok_or_else(cut)?;
    if !prologue.starts_with(&MAGIC) {
        return Err(TraceError::record(&path, 0, "not a .fwt file, or damaged: its first eight bytes differ"));
    }
    let prologue: [u8; PROLOGUE_BYTES] = prologue.try_into().expect("so many were taken");
    let (version, length) = (u32_at(&prologue, 8), u32_at(&prologue, 12) as usize);
    let (requests, crc) = (u64_at(&prologue, 16), u32_at(&prologue, PROLOGUE_CHECKED));
    if length > HEADER_MAX_BYTES {
        return Err(TraceError::record(&path, 0, format!("a header of {length} B is not possible: damaged")));
    }
    let header = input.take(length, "the header")?.unwrap_or(b"");
    if header.len() != length {
        return Err(cut());
    }
    let alone = crc32fast::hash(header);
    let found = if version == FIRST_VERSION { alone } else { chained(alone, &[&prologue[..PROLOGUE_CHECKED]]) };
    if found != crc {
        return Err(TraceError::record(&path, 0, "the header's checksum does not match: damaged"));
    }
    if version != FIRST_VERSION && version != VERSION {
        let what =
            format!("found version {version}, expected {FIRST_VERSION} or {VERSION}: a newer Flashwright wrote it");
        return Err(TraceError::record(&path, 0, what));
    }
    if requests == UNFINISHED {
        return Err(TraceError::Truncated { path, what: "writing: it was never finished" });
    }
    let mut about = parse_header(&String::from_utf8_lossy(header));
    about.requests = Some(requests);
    Ok((about, if version == FIRST_VERSION { Check::Alone } else { Check::Chain(alone) }))
}

fn parse_header(text: &str) -> About {
    let mut about = About::default();
    let mut devices = Vec::new();
    for (key, value) in text.lines().filter_map(|line| line.split_once(": ")) {
        let value = unescaped(value);
        match key {
            "label" => about.label = value,
            "note" => about.note = value,
            "origin" => about.origin = value,
            "device" => devices.extend(parse_device(&value)),
            _ => {}
        }
    }
    about.devices = (!devices.is_empty()).then_some(devices);
    about
}

fn parse_device(value: &str) -> Option<KnownDevice> {
    let mut words = value.splitn(3, ' ');
    let requests = words.next()?.parse().ok()?;
    let span_sectors = words.next()?.parse().ok()?;
    Some(KnownDevice { name: words.next()?.to_owned(), span_sectors, requests })
}

fn header_text(about: &About) -> String {
    let mut text = String::new();
    for (key, value) in [("label", &about.label), ("note", &about.note), ("origin", &about.origin)] {
        text.push_str(&format!("{key}: {}\n", escaped(value)));
    }
    for device in about.devices.iter().flatten() {
        let KnownDevice { name, span_sectors, requests } = device;
        text.push_str(&format!("device: {requests} {span_sectors} {}\n", escaped(name)));
    }
    text
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r")
}

fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match (char, char == '\\') {
            (_, true) => out.push(match chars.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some(other) => other,
                None => '\\',
            }),
            (char, false) => out.push(char),
        }
    }
    out
}

/// Reads one chunk into `rows`, or the footer, which leaves `rows` empty.
pub(crate) fn read_chunk(
    input: &mut Input,
    check: &mut Check,
    chunk: u64,
    seen: u64,
    rows: &mut Vec<Request>,
) -> Result<(), TraceError> {
    let path = input.path().to_owned();
    let cut = || TraceError::Truncated { path: path.clone(), what: "a chunk" };
    let head: [u8; 16] = input.take(16, "a chunk")?.and_then(|head| head.try_into().ok()).ok_or_else(cut)?;
    let (count, packed_bytes) = (u32_at(&head, 0) as usize, u32_at(&head, 4) as usize);
    let (raw_bytes, crc) = (u32_at(&head, 8) as usize, u32_at(&head, 12));
    let wrong = |what: String| Err(TraceError::record(&path, chunk, what));
    if count == 0 {
        let total = u64_at(&head, 4);
        if !check.passes(&head[..12], &[], crc) {
            return wrong("the footer's checksum does not match: damaged".to_owned());
        }
        if total != seen {
            return wrong(format!("found {seen} requests, expected the {total} of the footer"));
        }
        return if input.take(1, "nothing")?.is_some() { wrong("data after the footer".to_owned()) } else { Ok(()) };
    }
    let raw_max = unpacked_most(count);
    if count > CHUNK || raw_bytes > raw_max || packed_bytes > raw_max + 1024 {
        return wrong(format!("sizes that no chunk has ({count} requests in {packed_bytes} B): damaged"));
    }
    let packed = input.take(packed_bytes, "a chunk")?.unwrap_or(b"");
    if packed.len() != packed_bytes {
        return Err(cut());
    }
    if !check.passes(&head[..12], packed, crc) {
        return wrong("the chunk's checksum does not match: damaged".to_owned());
    }
    let raw = match zstd::bulk::decompress(packed, raw_bytes) {
        Ok(raw) if raw.len() == raw_bytes => raw,
        Ok(raw) => return wrong(format!("unpacked to {} B, expected {raw_bytes} B", raw.len())),
        Err(error) => return wrong(format!("does not unpack: {error}")),
    };
    match unpack(&raw, count, rows) {
        Some(()) => Ok(()),
        None => wrong("columns that end too early or hold impossible numbers".to_owned()),
    }
}

/// Bytes of the columns, from the front.
struct Column<'a>(&'a [u8]);

impl Column<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn zigzag(&mut self) -> Option<i64> {
        let coded = self.varint()?;
        Some((coded >> 1) as i64 ^ -((coded & 1) as i64))
    }
}

/// The requests of columns; none if they are not those of so many.
pub(crate) fn unpack(raw: &[u8], count: usize, rows: &mut Vec<Request>) -> Option<()> {
    let mut column = Column(raw);
    rows.resize(count, Request::default());
    let mut arrival = 0u64;
    for row in rows.iter_mut() {
        arrival = arrival.checked_add(column.varint()?)?;
        row.arrival = Nanos(arrival);
    }
    for row in rows.iter_mut() {
        // First the distance from the previous end; the lengths follow.
        row.first_sector = column.zigzag()? as u64;
    }
    let mut end = 0u64;
    for row in rows.iter_mut() {
        row.sectors = u32::try_from(column.varint()?).ok()?;
        row.first_sector = end.wrapping_add(row.first_sector);
        end = row.first_sector.checked_add(u64::from(row.sectors)).filter(|end| *end <= u64::MAX / 512)?;
    }
    for row in rows.iter_mut() {
        let flags = column.byte()?;
        row.fua = flags & FUA != 0;
        row.kind = *RequestKind::ALL.get(usize::from(flags & 3 | flags >> 3 << 2))?;
    }
    let mut process = 0i64;
    for row in rows.iter_mut() {
        process = process.checked_add(column.zigzag()?)?;
        row.process = u32::try_from(process).ok()?;
    }
    let mut stream = 0i64;
    for row in rows.iter_mut() {
        stream = stream.checked_add(column.zigzag()?)?;
        row.stream = u16::try_from(stream).ok()?;
    }
    column.0.is_empty().then_some(())
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_zigzag(out: &mut Vec<u8>, value: i64) {
    put_varint(out, (value << 1 ^ value >> 63) as u64);
}

/// Requests in order of arrival as columns.
pub(crate) fn pack(rows: &[Request], raw: &mut Vec<u8>) {
    raw.clear();
    let mut arrival = 0;
    for row in rows {
        put_varint(raw, row.arrival.0 - arrival);
        arrival = row.arrival.0;
    }
    let mut end = 0u64;
    for row in rows {
        put_zigzag(raw, row.first_sector.wrapping_sub(end) as i64);
        end = row.end_sector();
    }
    rows.iter().for_each(|row| put_varint(raw, u64::from(row.sectors)));
    raw.extend(rows.iter().map(|row| row.kind as u8 & 3 | row.kind as u8 >> 2 << 3 | if row.fua { FUA } else { 0 }));
    let mut process = 0;
    for row in rows {
        put_zigzag(raw, i64::from(row.process) - process);
        process = i64::from(row.process);
    }
    let mut stream = 0;
    for row in rows {
        put_zigzag(raw, i64::from(row.stream) - stream);
        stream = i64::from(row.stream);
    }
}

/// Collects requests into chunks and writes them.
///
/// What a chunk needs is kept for the next one, so that a recording of days takes no more memory than one of minutes.
#[derive(Default)]
pub(crate) struct FwtWriter {
    rows: Vec<Request>,
    raw: Vec<u8>,
    packed: Vec<u8>,
    compressor: Option<zstd::bulk::Compressor<'static>>,
    written: u64,
    /// The prologue up to its checksum, and the checksum of the header.
    prologue: [u8; PROLOGUE_CHECKED],
    header: u32,
    /// The checksum of the header and all chunks written so far.
    chain: u32,
}

impl Encode for FwtWriter {
    fn begin(&mut self, about: &About, out: &mut Output) -> io::Result<()> {
        let text = header_text(about);
        let length = u32::try_from(text.len()).ok().filter(|length| *length as usize <= HEADER_MAX_BYTES);
        let length = length.ok_or_else(|| io::Error::other("label, note and devices are longer than 16 MiB"))?;
        self.prologue[..8].copy_from_slice(&MAGIC);
        self.prologue[8..12].copy_from_slice(&VERSION.to_le_bytes());
        self.prologue[12..16].copy_from_slice(&length.to_le_bytes());
        self.prologue[16..].copy_from_slice(&UNFINISHED.to_le_bytes());
        self.header = crc32fast::hash(text.as_bytes());
        self.rows.reserve_exact(CHUNK);
        self.chain = self.header;
        out.write_all(&self.prologue)?;
        out.write_all(&self.prologue_crc().to_le_bytes())?;
        out.write_all(text.as_bytes())
    }

    fn request(&mut self, request: &Request, out: &mut Output) -> io::Result<Held> {
        self.rows.push(*request);
        if self.rows.len() == CHUNK {
            self.chunk(out)?;
        }
        Ok(Held::Written)
    }

    fn finish(&mut self, out: &mut Output) -> io::Result<()> {
        if !self.rows.is_empty() {
            self.chunk(out)?;
        }
        let mut footer = [0; 12];
        footer[4..].copy_from_slice(&self.written.to_le_bytes());
        out.write_all(&footer)?;
        out.write_all(&chained(self.chain, &[&footer]).to_le_bytes())?;
        self.prologue[16..].copy_from_slice(&self.written.to_le_bytes());
        out.seek(SeekFrom::Start(COUNT_AT))?;
        out.write_all(&self.written.to_le_bytes())?;
        out.write_all(&self.prologue_crc().to_le_bytes())
    }
}

impl FwtWriter {
    fn prologue_crc(&self) -> u32 {
        chained(self.header, &[&self.prologue])
    }

    fn chunk(&mut self, out: &mut Output) -> io::Result<()> {
        pack(&self.rows, &mut self.raw);
        self.packed.clear();
        self.packed.reserve(zstd::zstd_safe::compress_bound(self.raw.len()));
        let compressor = match &mut self.compressor {
            Some(made) => made,
            none => none.insert(zstd::bulk::Compressor::new(LEVEL)?),
        };
        compressor.compress_to_buffer(&self.raw, &mut self.packed)?;
        let packed = &self.packed;
        let mut head = [0; 12];
        for (field, number) in head.chunks_exact_mut(4).zip([self.rows.len(), packed.len(), self.raw.len()]) {
            field.copy_from_slice(&u32::try_from(number).map_err(io::Error::other)?.to_le_bytes());
        }
        self.chain = chained(self.chain, &[&head, packed]);
        out.write_all(&head)?;
        out.write_all(&self.chain.to_le_bytes())?;
        out.write_all(packed)?;
        self.written += self.rows.len() as u64;
        self.rows.clear();
        Ok(())
    }
}
