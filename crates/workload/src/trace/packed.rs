//! What a trace file is packed in: compressed streams, and archives of which one member is read.
//!
//! ```text
//! file ─► (gzip | bzip2 | zstd | xz | lz4)? ─► tar? ─► member ─► (gzip | ...)? ─► (UTF-16)? ─► bytes of the trace
//!     └─► zip ─► member ─────────────────────────────┘
//! ```
//!
//! An archive is listed first, to its end, so nothing in it goes unnoticed: one member is read, and of several the one
//! that is a trace. If several are, the user chooses. A member is then read by its place, as a stream. What other
//! programs pack (7z, rar, Parquet, ...) is named, with the command that unpacks it.

use super::detect;
use super::error::TraceError;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of the compressed file per read.
const COMPRESSED_BYTES: usize = 1 << 17;
/// A block of a tar archive; its header is one.
const TAR_BLOCK_BYTES: usize = 512;
/// Names of members that a message lists, at most.
const NAMES_SHOWN: usize = 8;

const GZIP: &[u8] = &[0x1f, 0x8b];
/// A digit and the first bytes of a block or of the end follow.
const BZIP2: &[u8] = b"BZh";
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const XZ: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];
const LZ4: &[u8] = &[0x04, 0x22, 0x4d, 0x18];
/// The format of `lz4 -l` and of Linux images.
const LZ4_LEGACY: &[u8] = &[0x02, 0x21, 0x4c, 0x18];
/// A local file, or the end of an empty archive.
const ZIP: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];

/// What is recognised but not read: its first bytes, its name, and how to get at the trace in it; `{}` is the file.
const FOREIGN: &[(&[u8], &str, &str)] = &[
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it with `7z x {}`"),
    (b"Rar!\x1a\x07", "a RAR archive", "unpack it with `unrar x {}`"),
    (b"\x1f\x9d", "compressed by compress", "unpack it with `gzip -d {}`"),
    (b"LZIP", "compressed by lzip", "unpack it with `lzip -d {}`"),
    (b"\x89LZO\0\r\n\x1a\n", "compressed by lzop", "unpack it with `lzop -d {}`"),
    (b"\xff\x06\0\0sNaPpY", "compressed by Snappy", "unpack it with `snzip -d {}`"),
    (
        b"PERFILE2",
        "a recording of perf",
        "print its requests with `perf script -i {}` and describe them with --columns",
    ),
    (
        b"SQLite format 3\0",
        "an SQLite database",
        "export its table with `sqlite3 -csv -header {} 'SELECT ...'` and describe it with --columns",
    ),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", "export its table as CSV or Parquet and describe it with --columns"),
    (
        b"PAR1",
        "a Parquet table",
        "flashwright reads it through Python: give its path to a command, or export it as CSV",
    ),
];

/// A stream of bytes.
pub(crate) type Stream = Box<dyn Read + Send>;

/// A trace file, unpacked.
pub(crate) struct Unpacked {
    pub(crate) stream: Stream,
    /// Name of what the bytes were taken from, or `None` for plain files.
    pub(crate) packing: Option<&'static str>,
    /// The member of an archive that is read.
    pub(crate) member: Option<String>,
    /// What the choice of the member leaves out, in words.
    pub(crate) notes: Vec<String>,
}

/// Reads from a file, with a count of bytes for progress.
pub(crate) struct Counted {
    file: File,
    read_bytes: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buf)?;
        self.read_bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Unpacks the file at `path`, as its first bytes show; `read_bytes` counts what is read of it.
///
/// # Errors
/// [`TraceError::Archive`] if a member must be chosen, and those of reading.
pub(crate) fn open(
    path: &Path,
    file: File,
    regular: bool,
    member: Option<&str>,
    read_bytes: &Arc<AtomicU64>,
) -> Result<Unpacked, TraceError> {
    let fail = |source| TraceError::io(path, "read the trace", source);
    let counted = Counted { file, read_bytes: Arc::clone(read_bytes) };
    let (head, whole) = peek(Box::new(counted), TAR_BLOCK_BYTES).map_err(fail)?;
    if head.is_empty() {
        return Err(TraceError::Empty { path: path.to_owned() });
    }
    refuse_foreign(path, &head)?;
    let archive = |kind: Kind| {
        if !regular {
            let what = format!("{}, which cannot be read from a pipe; save it to a file first", kind.name());
            return Err(TraceError::Archive { path: path.to_owned(), what });
        }
        open_member(path, kind, member, read_bytes)
    };
    if ZIP.iter().any(|magic| head.starts_with(magic)) {
        return archive(Kind::Zip);
    }
    let (stream, packing) = decompressed(&head, whole).map_err(fail)?;
    let (head, stream) = peek(stream, TAR_BLOCK_BYTES).map_err(|source| damaged(path, packing, source))?;
    if is_tar(&head) {
        return archive(Kind::Tar);
    }
    if packing.is_some() {
        refuse_foreign(path, &head)?;
    }
    if let Some(member) = member {
        let what = format!("found {member:?}, expected only with an archive (tar or zip)");
        return Err(TraceError::Archive { path: path.to_owned(), what: format!("trace option member: {what}") });
    }
    Ok(Unpacked { stream: as_utf8(&head, stream), packing, member: None, notes: Vec::new() })
}

fn damaged(path: &Path, packing: Option<&'static str>, source: io::Error) -> TraceError {
    let path = path.to_owned();
    match packing {
        Some(_) if source.kind() == io::ErrorKind::UnexpectedEof => {
            TraceError::Truncated { path, what: "its compressed stream" }
        }
        Some(compression) => TraceError::Damaged { path, compression, source: Arc::new(source) },
        None => TraceError::io(&path, "read the trace", source),
    }
}

fn refuse_foreign(path: &Path, head: &[u8]) -> Result<(), TraceError> {
    let Some((_, name, command)) = FOREIGN.iter().find(|(magic, ..)| head.starts_with(magic)) else { return Ok(()) };
    let what = format!("{name}; {}", command.replace("{}", &path.display().to_string()));
    Err(TraceError::Archive { path: path.to_owned(), what })
}

/// The first `count` bytes of a stream (fewer if it is shorter), and the whole stream.
fn peek(mut stream: Stream, count: usize) -> io::Result<(Vec<u8>, Stream)> {
    let mut head = Vec::with_capacity(count);
    (&mut stream).take(count as u64).read_to_end(&mut head)?;
    Ok((head.clone(), Box::new(Cursor::new(head).chain(stream))))
}

/// Three letters alone could also begin a text.
fn is_bzip2(head: &[u8]) -> bool {
    let rest = head.strip_prefix(BZIP2).filter(|rest| rest.first().is_some_and(u8::is_ascii_digit));
    rest.is_some_and(|rest| matches!(rest.get(1..3), Some(&[0x31, 0x41] | &[0x17, 0x72])))
}

/// The stream without its compression, and the name of that.
fn decompressed(head: &[u8], stream: Stream) -> io::Result<(Stream, Option<&'static str>)> {
    let is = |magic: &[u8]| head.starts_with(magic);
    let buffered = |stream| BufReader::with_capacity(COMPRESSED_BYTES, stream);
    Ok(match () {
        () if is(GZIP) => (Box::new(flate2::bufread::MultiGzDecoder::new(buffered(stream))), Some("gzip")),
        () if is_bzip2(head) => (Box::new(bzip2::bufread::MultiBzDecoder::new(buffered(stream))), Some("bzip2")),
        () if is(ZSTD) => (zstd_decoder(buffered(stream))?, Some("zstd")),
        () if is(XZ) => (Box::new(liblzma::bufread::XzDecoder::new_multi_decoder(buffered(stream))), Some("xz")),
        () if is(LZ4) || is(LZ4_LEGACY) => (Box::new(Lz4Frames::new(buffered(stream))), Some("lz4")),
        () => (stream, None),
    })
}

fn zstd_decoder(stream: BufReader<Stream>) -> io::Result<Stream> {
    let mut decoder = zstd::stream::read::Decoder::with_buffer(stream)?;
    decoder.window_log_max(31)?; // what `zstd --long=31` writes
    Ok(Box::new(decoder))
}

/// All frames of an lz4 stream; the decoder stops at the end of each.
struct Lz4Frames {
    decoder: lz4_flex::frame::FrameDecoder<BufReader<Stream>>,
}

impl Lz4Frames {
    fn new(stream: BufReader<Stream>) -> Self {
        Lz4Frames { decoder: lz4_flex::frame::FrameDecoder::new(stream) }
    }
}

impl Read for Lz4Frames {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        use std::io::BufRead as _;
        loop {
            let count = self.decoder.read(buf)?;
            if count > 0 || buf.is_empty() || self.decoder.get_mut().fill_buf()?.is_empty() {
                return Ok(count);
            }
        }
    }
}

/// Whether a block is the header of a tar archive: its checksum is that of its bytes, with blanks in its own place.
fn is_tar(head: &[u8]) -> bool {
    const SUM: std::ops::Range<usize> = 148..156;
    if head.len() < TAR_BLOCK_BYTES || head[0] == 0 {
        return false;
    }
    let digits = head[SUM].iter().skip_while(|byte| **byte == b' ').take_while(|byte| (b'0'..=b'7').contains(byte));
    let said = digits.fold(0u32, |sum, digit| sum * 8 + u32::from(digit - b'0'));
    let bytes = head.iter().enumerate();
    let sum: u32 = bytes.map(|(at, byte)| u32::from(if SUM.contains(&at) { b' ' } else { *byte })).sum();
    said == sum
}

/// UTF-16 with a byte order mark, as Windows' shells redirect output, becomes UTF-8; other streams stay.
fn as_utf8(head: &[u8], stream: Stream) -> Stream {
    match head {
        [0xff, 0xfe, ..] => Box::new(Utf16 { stream, order: u16::from_le_bytes, rest: Vec::new(), ready: Vec::new() }),
        [0xfe, 0xff, ..] => Box::new(Utf16 { stream, order: u16::from_be_bytes, rest: Vec::new(), ready: Vec::new() }),
        _ => stream,
    }
}

struct Utf16 {
    stream: Stream,
    order: fn([u8; 2]) -> u16,
    /// Bytes that do not make a character yet.
    rest: Vec<u8>,
    /// UTF-8 that was not asked for yet.
    ready: Vec<u8>,
}

impl Read for Utf16 {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while self.ready.is_empty() && !buf.is_empty() {
            let mut chunk = vec![0; COMPRESSED_BYTES];
            let count = self.stream.read(&mut chunk)?;
            if count == 0 {
                return Ok(0);
            }
            self.rest.extend(&chunk[..count]);
            let units: Vec<u16> = self.rest.chunks_exact(2).map(|pair| (self.order)([pair[0], pair[1]])).collect();
            // A surrogate whose second half is still to come waits for it.
            let half = units.last().is_some_and(|unit| (0xd800..0xdc00).contains(unit));
            let taken = units.len() - usize::from(half);
            self.rest.drain(..2 * taken);
            self.ready.extend(String::from_utf16_lossy(&units[..taken]).into_bytes());
        }
        let count = buf.len().min(self.ready.len());
        buf[..count].copy_from_slice(&self.ready[..count]);
        self.ready.drain(..count);
        Ok(count)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tar,
    Zip,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Tar => "a tar archive",
            Kind::Zip => "a zip archive",
        }
    }

    fn packing(self) -> &'static str {
        match self {
            Kind::Tar => "tar",
            Kind::Zip => "zip",
        }
    }

    fn unpack(self, path: &Path) -> String {
        let path = path.display();
        match self {
            Kind::Tar => format!("`tar -xf {path}`"),
            Kind::Zip => format!("`unzip {path}`"),
        }
    }
}

/// A file in an archive.
struct Member {
    name: String,
    /// Whether its content is in a known format.
    trace: bool,
    place: Place,
}

/// Where the bytes of a member are.
#[derive(Clone, Copy)]
enum Place {
    /// Of the archive's uncompressed stream.
    Tar { at: u64, bytes: u64 },
    /// Of the file.
    Zip { at: u64, packed_bytes: u64, bytes: u64, method: zip::CompressionMethod, crc: u32 },
    /// It is there, but not as bytes that can be read; the reason.
    Unreadable(&'static str),
}

fn open_member(
    path: &Path,
    kind: Kind,
    wanted: Option<&str>,
    read_bytes: &Arc<AtomicU64>,
) -> Result<Unpacked, TraceError> {
    let members = match kind {
        Kind::Tar => tar_members(path),
        Kind::Zip => zip_members(path),
    };
    let members = members.map_err(|source| damaged(path, Some(kind.packing()), source))?;
    let (chosen, notes) = choose(&members, wanted).map_err(|what| {
        let what = format!("{} {what}, or unpack it with {}", kind.name(), kind.unpack(path));
        TraceError::Archive { path: path.to_owned(), what }
    })?;
    let refuse = |why: &str| {
        let what =
            format!("{} whose member {:?} {why}; unpack it with {}", kind.name(), chosen.name, kind.unpack(path));
        TraceError::Archive { path: path.to_owned(), what }
    };
    let file = File::open(path).map_err(|source| TraceError::io(path, "open the trace", source))?;
    let opened = match chosen.place {
        Place::Unreadable(why) => return Err(refuse(why)),
        Place::Tar { at, bytes } => tar_member(file, at, bytes, read_bytes),
        Place::Zip { .. } => zip_member(file, chosen.place, read_bytes),
    };
    let fail = |source| damaged(path, Some(kind.packing()), source);
    let Some(stream) = opened.map_err(fail)? else {
        return Err(refuse("is compressed in a way that is not read here"));
    };
    let (head, stream) = peek(stream, TAR_BLOCK_BYTES).map_err(fail)?;
    let (stream, _) = decompressed(&head, stream).map_err(fail)?;
    let (head, stream) = peek(stream, TAR_BLOCK_BYTES).map_err(fail)?;
    if is_tar(&head) || ZIP.iter().any(|magic| head.starts_with(magic)) {
        return Err(refuse("is an archive itself"));
    }
    let member = Some(chosen.name.clone());
    Ok(Unpacked { stream: as_utf8(&head, stream), packing: Some(kind.packing()), member, notes })
}

/// The member to read, with notes on the others; else what to say after the archive's name.
fn choose<'a>(members: &'a [Member], wanted: Option<&str>) -> Result<(&'a Member, Vec<String>), String> {
    if let Some(wanted) = wanted {
        // Of members of the same name the last counts, as for tar.
        return match members.iter().rev().find(|member| member.name == wanted) {
            Some(member) => Ok((member, Vec::new())),
            None => Err(format!(
                "without a member {wanted:?}; it has {}: choose one of these with --member",
                names(members.iter())
            )),
        };
    }
    let traces: Vec<_> = members.iter().filter(|member| member.trace).collect();
    match (members, traces.as_slice()) {
        ([], _) => Err("without any file: choose another archive".to_owned()),
        ([only], _) => Ok((only, Vec::new())),
        (_, [only]) => {
            let others = members.iter().filter(|member| !member.trace);
            let note = format!("read {}; not traces, and left out: {}", only.name, names(others));
            Ok((only, vec![note]))
        }
        (_, []) => Err(format!(
            "of {} files, none in a known format: {}; choose one with --member",
            members.len(),
            names(members.iter())
        )),
        (_, several) => Err(format!(
            "of {} traces: {}; choose one with --member, such as --member {}",
            several.len(),
            names(several.iter().copied()),
            several[0].name
        )),
    }
}

fn names<'a>(members: impl Iterator<Item = &'a Member>) -> String {
    let all: Vec<_> = members.map(|member| member.name.as_str()).collect();
    let shown = all[..all.len().min(NAMES_SHOWN)].join(", ");
    if all.len() > NAMES_SHOWN { format!("{shown} and {} more", all.len() - NAMES_SHOWN) } else { shown }
}

/// What macOS adds to archives.
fn is_clutter(name: &str) -> bool {
    let last = name.rsplit('/').next().unwrap_or(name);
    last.starts_with("._") || last == ".DS_Store" || name.starts_with("__MACOSX/")
}

/// Whether the beginning of a member is in a known format.
fn is_trace(stream: impl Read) -> bool {
    let mut packed = Vec::new();
    // A member that cannot be read is none; opening it says why.
    if stream.take(detect::HEAD_BYTES as u64).read_to_end(&mut packed).is_err() {
        return false;
    }
    let whole = packed.len() < detect::HEAD_BYTES;
    let (head, stream): (Vec<u8>, Stream) = (packed.clone(), Box::new(Cursor::new(packed)));
    let Ok((stream, packing)) = decompressed(&head, stream) else { return false };
    let mut bytes = Vec::new();
    let read = as_utf8(&head, stream).take(detect::HEAD_BYTES as u64).read_to_end(&mut bytes);
    // A compressed member is cut in the middle of its stream, which is no fault here.
    let whole = whole && read.is_ok() && bytes.len() < detect::HEAD_BYTES;
    (read.is_ok() || packing.is_some()) && detect::fits(&bytes, whole)
}

fn tar_members(path: &Path) -> io::Result<Vec<Member>> {
    let (head, whole) = peek(Box::new(File::open(path)?), TAR_BLOCK_BYTES)?;
    let (stream, packing) = decompressed(&head, whole)?;
    if packing.is_none() {
        // Members are skipped by seeking.
        return listed(tar::Archive::new(File::open(path)?).entries_with_seek()?);
    }
    listed(tar::Archive::new(stream).entries()?)
}

fn listed<R: Read>(entries: tar::Entries<'_, R>) -> io::Result<Vec<Member>> {
    let mut members = Vec::new();
    for entry in entries {
        let mut entry = entry?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let kind = entry.header().entry_type();
        let place = match () {
            () if kind.is_gnu_sparse() => Place::Unreadable("has holes"),
            () if kind.is_file() || kind.is_contiguous() => {
                Place::Tar { at: entry.raw_file_position(), bytes: entry.size() }
            }
            () => continue,
        };
        if !is_clutter(&name) && entry.size() > 0 {
            members.push(Member { name, trace: is_trace(&mut entry), place });
        }
    }
    Ok(members)
}

fn tar_member(file: File, at: u64, bytes: u64, read_bytes: &Arc<AtomicU64>) -> io::Result<Option<Stream>> {
    let counted = Counted { file, read_bytes: Arc::clone(read_bytes) };
    let (head, whole) = peek(Box::new(counted), TAR_BLOCK_BYTES)?;
    let (mut stream, _) = decompressed(&head, whole)?;
    if io::copy(&mut (&mut stream).take(at), &mut io::sink())? < at {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(Box::new(Checked { stream, left: bytes, sum: crc32fast::Hasher::new(), crc: None })))
}

fn zip_members(path: &Path) -> io::Result<Vec<Member>> {
    let mut archive = zip::ZipArchive::new(BufReader::new(File::open(path)?))?;
    let mut members = Vec::new();
    for at in 0..archive.len() {
        let entry = archive.by_index_raw(at)?;
        let name = entry.name().to_owned();
        if !entry.is_file() || entry.size() == 0 || is_clutter(&name) {
            continue;
        }
        let place = match entry.data_start() {
            _ if entry.encrypted() => Place::Unreadable("is encrypted"),
            None => Place::Unreadable("has no place"),
            Some(at) => Place::Zip {
                at,
                packed_bytes: entry.compressed_size(),
                bytes: entry.size(),
                method: entry.compression(),
                crc: entry.crc32(),
            },
        };
        members.push(Member { name, trace: false, place });
    }
    for member in &mut members {
        let unread = Arc::new(AtomicU64::new(0));
        let stream = zip_member(File::open(path)?, member.place, &unread)?;
        member.trace = stream.is_some_and(is_trace);
    }
    Ok(members)
}

/// None if its compression is not read here.
fn zip_member(mut file: File, place: Place, read_bytes: &Arc<AtomicU64>) -> io::Result<Option<Stream>> {
    use zip::CompressionMethod as Method;
    let Place::Zip { at, packed_bytes, bytes, method, crc } = place else { return Ok(None) };
    file.seek(SeekFrom::Start(at))?;
    let counted = Counted { file, read_bytes: Arc::clone(read_bytes) };
    let packed = BufReader::with_capacity(COMPRESSED_BYTES, Box::new(counted.take(packed_bytes)) as Stream);
    let stream: Stream = match method {
        Method::STORE => Box::new(packed),
        Method::DEFLATE => Box::new(flate2::bufread::DeflateDecoder::new(packed)),
        Method::BZIP2 => Box::new(bzip2::bufread::MultiBzDecoder::new(packed)),
        Method::ZSTD => zstd_decoder(packed)?,
        Method::XZ => Box::new(liblzma::bufread::XzDecoder::new_multi_decoder(packed)),
        _ => return Ok(None),
    };
    Ok(Some(Box::new(Checked { stream, left: bytes, sum: crc32fast::Hasher::new(), crc: Some(crc) })))
}

/// The bytes of one member: exactly as many as the archive says, with its checksum if there is one.
struct Checked {
    stream: Stream,
    left: u64,
    sum: crc32fast::Hasher,
    crc: Option<u32>,
}

impl Read for Checked {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buf.len());
        if most == 0 {
            return Ok(0);
        }
        let count = self.stream.read(&mut buf[..most])?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= count as u64;
        if let Some(crc) = self.crc {
            self.sum.update(&buf[..count]);
            if self.left == 0 && self.sum.clone().finalize() != crc {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "the checksum of the member differs"));
            }
        }
        Ok(count)
    }
}
