//! The decompressed byte stream of a trace file, in one large buffer that lines are slices of.
//!
//! ```text
//! file ─► (gzip | bzip2 | zstd | xz)? ─► buf: [ done | start .. end | free ]   lines and records are slices of it
//! ```

use super::error::TraceError;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const BUFFER_BYTES: usize = 1 << 20;
/// A "line" longer than this is not text.
const LINE_MAX_BYTES: usize = 8 << 20;
/// Bytes of the compressed file per read.
const COMPRESSED_BYTES: usize = 1 << 17;

const GZIP: &[u8] = &[0x1f, 0x8b];
/// A digit and the first bytes of a block or of the end follow.
const BZIP2: &[u8] = b"BZh";
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const XZ: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];
/// UTF-8's byte order mark, which some programs put before exported text.
const MARK: &[u8] = &[0xef, 0xbb, 0xbf];

/// The file, with a count of read bytes for progress.
struct Counted {
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

/// An open trace file.
pub(crate) struct Input {
    path: PathBuf,
    source: Box<dyn Read + Send>,
    /// Name of the compression, or `None` for plain files.
    compression: Option<&'static str>,
    buf: Vec<u8>,
    start: usize,
    end: usize,
    ended: bool,
    read_bytes: Arc<AtomicU64>,
    /// Size of the file; 0 for a pipe.
    file_bytes: u64,
    regular: bool,
}

impl Input {
    /// Opens a file, plain or compressed, as its first bytes show. A byte order mark is skipped.
    pub(crate) fn open(path: &Path) -> Result<Self, TraceError> {
        let fail = |source| TraceError::io(path, "open the trace", source);
        let mut file = File::open(path).map_err(fail)?;
        let metadata = file.metadata().map_err(fail)?;
        if metadata.is_dir() {
            return Err(TraceError::Directory { path: path.to_owned() });
        }
        let mut magic = Vec::with_capacity(XZ.len());
        (&mut file)
            .take(XZ.len() as u64)
            .read_to_end(&mut magic)
            .map_err(|source| TraceError::io(path, "read the trace", source))?;
        if magic.is_empty() {
            return Err(TraceError::Empty { path: path.to_owned() });
        }
        let read_bytes = Arc::new(AtomicU64::new(magic.len() as u64));
        let counted = Counted { file, read_bytes: Arc::clone(&read_bytes) };
        let (source, compression) = decompressed(magic, counted).map_err(fail)?;
        let mut input = Input {
            path: path.to_owned(),
            source,
            compression,
            buf: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            ended: false,
            read_bytes,
            file_bytes: metadata.len(),
            regular: metadata.is_file(),
        };
        if input.head(MARK.len())?.0 == MARK {
            input.start += MARK.len();
        }
        Ok(input)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file can be opened and read a second time.
    pub(crate) fn regular(&self) -> bool {
        self.regular
    }

    /// Share of the file that has been read, if its size is known.
    #[allow(clippy::cast_precision_loss)] // a share, for display
    pub(crate) fn progress(&self) -> Option<f64> {
        let unread = if self.compression.is_none() { (self.end - self.start) as u64 } else { 0 };
        let read = self.read_bytes.load(Ordering::Relaxed).saturating_sub(unread);
        (self.file_bytes > 0).then(|| (read as f64 / self.file_bytes as f64).min(1.0))
    }

    /// The first `at_most` bytes (fewer if the file is shorter) and whether they are the whole file. Consumes nothing.
    pub(crate) fn head(&mut self, at_most: usize) -> Result<(&[u8], bool), TraceError> {
        while self.end - self.start < at_most && !self.ended {
            self.refill("the trace")?;
        }
        let shown = at_most.min(self.end - self.start);
        let whole = self.ended && shown == self.end - self.start;
        Ok((&self.buf[self.start..self.start + shown], whole))
    }

    /// The next line without its end, or `None` at the end of the file.
    #[inline]
    pub(crate) fn line(&mut self) -> Result<Option<&[u8]>, TraceError> {
        let mut searched = 0;
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buf[self.start + searched..self.end]) {
                let (first, end) = (self.start, self.start + searched + at);
                self.start = end + 1;
                return Ok(Some(without_return(&self.buf[first..end])));
            }
            searched = self.end - self.start;
            if self.ended {
                return Ok(self.last_line());
            }
            if searched > LINE_MAX_BYTES {
                return Err(TraceError::record(&self.path, 1, "a line of more than 8 MiB; this is not a text trace"));
            }
            self.refill("a line")?;
        }
    }

    fn last_line(&mut self) -> Option<&[u8]> {
        let (first, end) = (self.start, self.end);
        self.start = end;
        (first < end).then(|| without_return(&self.buf[first..end]))
    }

    /// Exactly `count` bytes; `None` at the end of the file, an error if it ends in between.
    pub(crate) fn take(&mut self, count: usize, what: &'static str) -> Result<Option<&[u8]>, TraceError> {
        while self.end - self.start < count {
            if self.ended && self.start == self.end {
                return Ok(None);
            }
            if self.ended {
                return Err(TraceError::Truncated { path: self.path.clone(), what });
            }
            self.refill(what)?;
        }
        let first = self.start;
        self.start += count;
        Ok(Some(&self.buf[first..self.start]))
    }

    /// Reads more bytes after the existing ones, moving or growing the buffer if it is full.
    #[cold]
    fn refill(&mut self, what: &'static str) -> Result<(), TraceError> {
        self.buf.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end == self.buf.len() {
            self.buf.resize(self.buf.len() * 2, 0);
        }
        loop {
            match self.source.read(&mut self.buf[self.end..]) {
                Ok(count) => {
                    self.end += count;
                    self.ended = count == 0;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(error, what)),
            }
        }
    }

    fn failed(&self, source: io::Error, what: &'static str) -> TraceError {
        let path = self.path.clone();
        match self.compression {
            Some(_) if source.kind() == io::ErrorKind::UnexpectedEof => TraceError::Truncated { path, what },
            Some(compression) => TraceError::Damaged { path, compression, source: Arc::new(source) },
            None => TraceError::io(&path, "read the trace", source),
        }
    }
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Three letters alone could also begin a text.
fn is_bzip2(magic: &[u8]) -> bool {
    let rest = magic.strip_prefix(BZIP2).filter(|rest| rest.first().is_some_and(u8::is_ascii_digit));
    rest.is_some_and(|rest| matches!(rest.get(1..3), Some(&[0x31, 0x41] | &[0x17, 0x72])))
}

type Source = (Box<dyn Read + Send>, Option<&'static str>);

fn decompressed(magic: Vec<u8>, file: Counted) -> io::Result<Source> {
    let (gzip, zstd, xz) = (magic.starts_with(GZIP), magic.starts_with(ZSTD), magic.starts_with(XZ));
    let bzip2 = is_bzip2(&magic);
    let whole = io::Cursor::new(magic).chain(file);
    if !(gzip || bzip2 || zstd || xz) {
        return Ok((Box::new(whole), None));
    }
    let buffered = BufReader::with_capacity(COMPRESSED_BYTES, whole);
    Ok(if gzip {
        (Box::new(flate2::bufread::MultiGzDecoder::new(buffered)), Some("gzip"))
    } else if bzip2 {
        (Box::new(bzip2::bufread::MultiBzDecoder::new(buffered)), Some("bzip2"))
    } else if zstd {
        let mut decoder = zstd::stream::read::Decoder::with_buffer(buffered)?;
        decoder.window_log_max(31)?; // what `zstd --long=31` writes
        (Box::new(decoder), Some("zstd"))
    } else {
        (Box::new(liblzma::bufread::XzDecoder::new_multi_decoder(buffered)), Some("xz"))
    })
}
