//! What was served, data included: the file that crash tests play.
//!
//! After eight bytes that name the format comes one zstd frame with a checksum. In it are [`Event`]s in the encoding of postcard. The
//! first says what drive was served, and the last how many requests there are, so a file that was not completed is noticed.

use flashwright_block::{Beside, Bytes, Request, RequestKind, system_says};
use flashwright_ssd::memory_left;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

const MAGIC: [u8; 8] = *b"\x89FWR\r\n\x1a\x01";
/// Fast: much of the data does not compress.
const LEVEL: i32 = 1;

/// Why a recording can't be written or read.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {what}", path = .path.display())]
pub struct RecordingError {
    /// The file.
    pub path: PathBuf,
    /// What was found, or what the system says.
    pub what: String,
}

impl RecordingError {
    pub(super) fn new(path: &Path, what: impl ToString) -> Self {
        Self { path: path.to_owned(), what: what.to_string() }
    }
}

/// The drive that was served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// Its configuration, as TOML.
    pub config: String,
    /// Its seed.
    pub seed: u64,
    /// How it was preconditioned.
    pub precondition: String,
}

/// What happened, in order.
#[derive(Serialize, Deserialize)]
enum Event<'a> {
    Begins(About),
    /// The drive took a request, and the data of a write.
    Request(Request, &'a [u8]),
    /// A request completed, named by its number in the recording.
    Completed(u64),
    /// The client said that something is done.
    Mark(&'a str),
    Ends {
        requests: u64,
    },
}

/// A recording that is being written.
pub struct RecordingWriter {
    path: PathBuf,
    beside: Beside,
    out: zstd::Encoder<'static, BufWriter<File>>,
    requests: u64,
    buffer: Vec<u8>,
}

impl RecordingWriter {
    /// Begins a recording. Until it is finished, a file that is there stays as it is.
    ///
    /// # Errors
    /// [`RecordingError`] if the file can't be written.
    pub fn create(path: &Path, about: &About) -> Result<Self, RecordingError> {
        let failed = |error: std::io::Error| RecordingError::new(path, system_says(&error));
        // Its data are whatever clients stored.
        let (beside, file) = Beside::create(path).map(|(beside, file)| (beside.private(), file)).map_err(failed)?;
        let mut file = BufWriter::new(file);
        file.write_all(&MAGIC).map_err(failed)?;
        let mut out = zstd::Encoder::new(file, LEVEL).map_err(failed)?;
        out.include_checksum(true).map_err(failed)?;
        let mut begun = Self { path: path.to_owned(), beside, out, requests: 0, buffer: Vec::new() };
        begun.put(&Event::Begins(about.clone()))?;
        Ok(begun)
    }

    fn put(&mut self, event: &Event<'_>) -> Result<(), RecordingError> {
        self.buffer.clear();
        let bytes = postcard::to_extend(event, std::mem::take(&mut self.buffer));
        self.buffer = bytes.map_err(|error| RecordingError::new(&self.path, error))?;
        self.out.write_all(&self.buffer).map_err(|error| RecordingError::new(&self.path, system_says(&error)))
    }

    /// The drive took a request, with data if it is a write. Returns its number.
    ///
    /// # Errors
    /// [`RecordingError`] if the file can't be written.
    pub fn request(&mut self, request: &Request, data: &[u8]) -> Result<u64, RecordingError> {
        self.put(&Event::Request(*request, data))?;
        self.requests += 1;
        Ok(self.requests - 1)
    }

    /// A request completed.
    ///
    /// # Errors
    /// [`RecordingError`] if the file can't be written.
    pub fn completed(&mut self, number: u64) -> Result<(), RecordingError> {
        self.put(&Event::Completed(number))
    }

    /// The client said that something is done.
    ///
    /// # Errors
    /// [`RecordingError`] if the file can't be written.
    pub fn mark(&mut self, text: &str) -> Result<(), RecordingError> {
        self.put(&Event::Mark(text))
    }

    /// Requests so far.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Completes the file.
    ///
    /// # Errors
    /// [`RecordingError`] if it can't be written.
    pub fn finish(mut self) -> Result<(), RecordingError> {
        self.put(&Event::Ends { requests: self.requests })?;
        let Self { path, beside, out, .. } = self;
        let ended = out.finish().and_then(|file| {
            let file = file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
            beside.complete(&file)
        });
        ended.map_err(|error| RecordingError::new(&path, system_says(&error)))
    }
}

impl std::fmt::Debug for RecordingWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RecordingWriter({}, {} requests)", self.path.display(), self.requests)
    }
}

/// A step of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The drive takes a request, and the data of a write.
    Request(Request, Box<[u8]>),
    /// Nothing that follows happened before this request, named by its number, had completed.
    Completed(u64),
    /// The client says that something is done.
    Mark(String),
}

/// A recording, read whole.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The file.
    pub path: PathBuf,
    /// The drive that was served.
    pub about: About,
    /// What happened, in order.
    pub steps: Vec<Step>,
}

impl Recording {
    /// Reads a recording.
    ///
    /// # Errors
    /// [`RecordingError`] if there is none, or if it is damaged or was not completed.
    pub fn read(path: &Path) -> Result<Self, RecordingError> {
        let failed = |what: &dyn ToString| RecordingError::new(path, what.to_string());
        let mut file = BufReader::new(File::open(path).map_err(|error| failed(&system_says(&error)))?);
        let mut magic = [0; MAGIC.len()];
        if file.read_exact(&mut magic).is_err() || magic != MAGIC {
            return Err(failed(
                &"found another kind of file, expected a recording of `flashwright serve --record-data`",
            ));
        }
        let damaged =
            |what: &dyn std::fmt::Display| failed(&format!("the recording is damaged or was not completed: {what}"));
        let frame = zstd::Decoder::with_buffer(file).map_err(|error| failed(&error))?;
        let bytes = unpacked(frame, memory_left).map_err(|error| match error {
            Unpacked::Damaged(error) => damaged(&error),
            Unpacked::TooLarge(what) => failed(&what),
        })?;
        let (mut left, mut about, mut steps, mut requests) = (&bytes[..], None, Vec::new(), 0);
        loop {
            let (event, rest) = postcard::take_from_bytes(left).map_err(|error| damaged(&error))?;
            left = rest;
            match event {
                Event::Begins(begun) => about = Some(begun),
                Event::Request(request, data) => {
                    let brings = if request.kind == RequestKind::Write { request.sectors as usize * 512 } else { 0 };
                    if data.len() != brings {
                        return Err(damaged(&format!("request {requests} has {} B of data, not {brings}", data.len())));
                    }
                    requests += 1;
                    steps.push(Step::Request(request, data.into()));
                }
                Event::Completed(number) if number < requests => steps.push(Step::Completed(number)),
                Event::Completed(number) => {
                    return Err(damaged(&format!("request {number} completed before it began")));
                }
                Event::Mark(text) => steps.push(Step::Mark(text.to_owned())),
                Event::Ends { requests: stated } if stated == requests && left.is_empty() => break,
                Event::Ends { .. } => return Err(damaged(&"its end is not where it should be")),
            }
        }
        let about = about.ok_or_else(|| damaged(&"it names no drive"))?;
        Ok(Self { path: path.to_owned(), about, steps })
    }

    /// How many requests it has.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.steps.iter().filter(|step| matches!(step, Step::Request(..))).count() as u64
    }

    /// What the client said, in order.
    pub fn marks(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().filter_map(|step| if let Step::Mark(text) = step { Some(text.as_str()) } else { None })
    }
}

/// What is unpacked between two looks at the memory that is left.
const PIECE_BYTES: usize = 16 << 20;

/// Why a recording can't be unpacked.
#[derive(Debug)]
enum Unpacked {
    Damaged(std::io::Error),
    TooLarge(String),
}

/// Unpacks a recording as far as it fits the memory that is `left`: a file of some KiB may hold gigabytes of zeros.
fn unpacked(mut from: impl Read, left: impl Fn() -> Option<u64>) -> Result<Vec<u8>, Unpacked> {
    let mut bytes = Vec::new();
    loop {
        // The buffer may be moved as it grows, and then the steps are made from it: as much again.
        let (needed, left) = ((bytes.len() + PIECE_BYTES) as u64 * 2, left().unwrap_or(u64::MAX));
        if needed > left || bytes.try_reserve(PIECE_BYTES).is_err() {
            return Err(Unpacked::TooLarge(format!(
                "found more than {} of data, which take at least {} of memory more, expected no more than the {} that is left",
                Bytes(bytes.len() as u64).rounded(),
                Bytes(needed).rounded(),
                Bytes(left).rounded()
            )));
        }
        let piece = from.by_ref().take(PIECE_BYTES as u64).read_to_end(&mut bytes).map_err(Unpacked::Damaged)?;
        if piece == 0 {
            return Ok(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwright_block::Nanos;

    #[test]
    fn what_does_not_fit_the_memory_is_told_before_it_is_taken() {
        let unpack = |bytes: u64, left| unpacked(std::io::repeat(0).take(bytes), || left);
        assert_eq!(unpack(40 << 20, None).unwrap().len(), 40 << 20);
        assert_eq!(unpack(40 << 20, Some(200 << 20)).unwrap().len(), 40 << 20);
        let Err(Unpacked::TooLarge(what)) = unpack(u64::MAX, Some(100 << 20)) else { panic!("it has no end") };
        assert_eq!(
            what,
            "found more than 48.0 MiB of data, which take at least 128.0 MiB of memory more, expected no more than the \
             100.0 MiB that is left"
        );
    }

    fn written(name: &str) -> (PathBuf, About) {
        let path = std::env::temp_dir().join(format!("flashwright-{}-{name}.fwr", std::process::id()));
        let about = About { config: "[geometry]".to_owned(), seed: 7, precondition: "empty".to_owned() };
        let mut writer = RecordingWriter::create(&path, &about).unwrap();
        let write = Request { sectors: 1, kind: RequestKind::Write, arrival: Nanos(5), ..Request::default() };
        let number = writer.request(&write, &[9; 512]).unwrap();
        writer.completed(number).unwrap();
        writer.mark("first").unwrap();
        writer.request(&Request { kind: RequestKind::Flush, ..Request::default() }, &[]).unwrap();
        writer.finish().unwrap();
        (path, about)
    }

    #[test]
    fn what_is_written_is_read() {
        let (path, about) = written("whole");
        let read = Recording::read(&path).unwrap();
        assert_eq!((read.about.clone(), read.requests()), (about, 2));
        assert_eq!(read.marks().collect::<Vec<_>>(), ["first"]);
        assert!(matches!(&read.steps[0], Step::Request(request, data) if request.sectors == 1 && data[..] == [9; 512]));
        assert_eq!(read.steps[1], Step::Completed(0));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn any_damage_is_noticed() {
        let (path, _) = written("damaged");
        let whole = std::fs::read(&path).unwrap();
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert!(Recording::read(&path).is_err(), "cut to {length} bytes");
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            std::fs::write(&path, damaged).unwrap();
            if let Ok(read) = Recording::read(&path) {
                // Bits that zstd does not use.
                assert_eq!(read.steps, {
                    std::fs::write(&path, &whole).unwrap();
                    Recording::read(&path).unwrap().steps
                });
            }
        }
        std::fs::remove_file(path).unwrap();
    }
}
