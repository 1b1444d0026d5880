//! The unpacked byte stream of a trace file, in one large buffer that lines are slices of.
//!
//! ```text
//! file ─► packed ─► buf: [ done | start .. end | free ]   lines and records are slices of it
//! ```

use super::error::TraceError;
use super::packed;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const BUFFER_BYTES: usize = 1 << 20;
/// A "line" longer than this is not text.
const LINE_MAX_BYTES: usize = 8 << 20;
/// UTF-8's byte order mark, which some programs put before exported text.
const MARK: &[u8] = &[0xef, 0xbb, 0xbf];

/// An open trace file.
pub(crate) struct Input {
    path: PathBuf,
    source: packed::Stream,
    /// Name of what the bytes are taken from, or `None` for plain files.
    packing: Option<&'static str>,
    member: Option<String>,
    notes: Vec<String>,
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
    /// Opens a file, plain, compressed or the named member of an archive; without a name, the only trace in it. A byte
    /// order mark is skipped.
    pub(crate) fn open(path: &Path, member: Option<&str>) -> Result<Self, TraceError> {
        let fail = |source| TraceError::io(path, "open the trace", source);
        let file = File::open(path).map_err(fail)?;
        let metadata = file.metadata().map_err(fail)?;
        if metadata.is_dir() {
            return Err(TraceError::Directory { path: path.to_owned() });
        }
        let read_bytes = Arc::new(AtomicU64::new(0));
        let unpacked = packed::open(path, file, metadata.is_file(), member, &read_bytes)?;
        let mut input = Input {
            path: path.to_owned(),
            source: unpacked.stream,
            packing: unpacked.packing,
            member: unpacked.member,
            notes: unpacked.notes,
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

    /// The member of an archive that is read; with it, the same one is opened again.
    pub(crate) fn member(&self) -> Option<&str> {
        self.member.as_deref()
    }

    /// What the choice of the member leaves out, in words.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
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
        let unread = if self.packing.is_none() { (self.end - self.start) as u64 } else { 0 };
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
        match self.packing {
            Some(_) if source.kind() == io::ErrorKind::UnexpectedEof => TraceError::Truncated { path, what },
            Some(compression) => TraceError::Damaged { path, compression, source: Arc::new(source) },
            None => TraceError::io(&path, "read the trace", source),
        }
    }
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}
