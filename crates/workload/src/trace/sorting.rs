//! Sorts the records of a trace by time in bounded memory: runs in a temporary file, merged while they are read.
//!
//! ```text
//! Decode ─► run of 2^18 records, sorted ─► temporary file ─┐
//!           run ...                     ─► behind it ──────┼─► merge by (time, run) ─► records
//!           the last run stays in memory ──────────────────┘
//! ```
//!
//! Records of equal times keep the order of the file. A trace of one run never touches the disk. Memory is that of a run
//! and 16 KiB for each run before it: 64 MiB for a billion requests.

use super::devices::BATCH;
use super::error::TraceError;
use super::record::{Decode, DeviceTable, Record, Sink, Tally};
use flashwright_block::RequestKind;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Records of a run: 10 MiB.
const RUN: usize = 1 << 18;
/// Records of a run that are read at once.
const READ: usize = 512;
/// Bytes of a record in a temporary file.
const RECORD_BYTES: usize = 32;

/// The records of a trace in order of time.
pub(crate) struct Sorted {
    path: PathBuf,
    /// All runs but the last.
    file: Option<File>,
    runs: Vec<Run>,
    /// The first record left of each run.
    order: BinaryHeap<Reverse<(u64, usize)>>,
}

/// The rest of a run, from its current record on.
struct Run {
    current: Record,
    rest: Rest,
}

struct Rest {
    /// Read already.
    ready: std::vec::IntoIter<Record>,
    /// Where the rest stands in the file, in bytes.
    unread: Range<u64>,
}

impl Sorted {
    /// Reads and sorts all that `decoder` has.
    pub(crate) fn read(
        path: &Path,
        decoder: &mut dyn Decode,
        names: &mut DeviceTable,
        tally: &mut Tally,
    ) -> Result<Self, TraceError> {
        Self::read_runs(path, decoder, names, tally, RUN)
    }

    fn read_runs(
        path: &Path,
        decoder: &mut dyn Decode,
        names: &mut DeviceTable,
        tally: &mut Tally,
        run: usize,
    ) -> Result<Self, TraceError> {
        let (mut file, mut runs, mut end, mut records) = (None, Vec::new(), 0, Vec::new());
        loop {
            let before = records.len();
            decoder.fill(&mut Sink { records: &mut records, devices: names, tally }, BATCH)?;
            tally.sections.clear();
            let ended = records.len() == before;
            if ended || records.len() >= run {
                records.sort_by_key(|record: &Record| record.time);
            }
            if ended {
                break;
            }
            if records.len() >= run {
                let spilled = spill(&mut file, &records).map_err(|source| spilling(path, source))?;
                runs.push(end..end + spilled);
                end += spilled;
                records.clear();
            }
        }
        let mut sorted = Sorted { path: path.to_owned(), file, runs: Vec::new(), order: BinaryHeap::new() };
        for unread in runs {
            sorted.add(Rest { ready: Vec::new().into_iter(), unread })?;
        }
        sorted.add(Rest { ready: records.into_iter(), unread: 0..0 })?;
        Ok(sorted)
    }

    fn add(&mut self, mut rest: Rest) -> Result<(), TraceError> {
        if let Some(current) = rest.next(self.file.as_ref()).map_err(|source| spilling(&self.path, source))? {
            self.order.push(Reverse((current.time, self.runs.len())));
            self.runs.push(Run { current, rest });
        }
        Ok(())
    }

    /// Appends up to `at_most` records; none at the end.
    pub(crate) fn fill(&mut self, records: &mut Vec<Record>, at_most: usize) -> Result<(), TraceError> {
        for _ in 0..at_most {
            let Some(Reverse((_, at))) = self.order.pop() else { break };
            let run = &mut self.runs[at];
            records.push(run.current);
            if let Some(next) = run.rest.next(self.file.as_ref()).map_err(|source| spilling(&self.path, source))? {
                run.current = next;
                self.order.push(Reverse((next.time, at)));
            }
        }
        Ok(())
    }
}

impl Rest {
    #[inline]
    fn next(&mut self, file: Option<&File>) -> io::Result<Option<Record>> {
        if self.ready.len() == 0 && !self.unread.is_empty() {
            self.read(file.expect("a run that is not in memory is in the file"))?;
        }
        Ok(self.ready.next())
    }

    #[cold]
    fn read(&mut self, file: &File) -> io::Result<()> {
        let bytes = (self.unread.end - self.unread.start).min((READ * RECORD_BYTES) as u64);
        let mut raw = vec![0; usize::try_from(bytes).map_err(io::Error::other)?];
        file.read_exact_at(&mut raw, self.unread.start)?;
        self.unread.start += bytes;
        let records: Vec<Record> = raw.as_chunks().0.iter().map(unpacked).collect();
        self.ready = records.into_iter();
        Ok(())
    }
}

fn spilling(path: &Path, source: io::Error) -> TraceError {
    TraceError::io(path, "sort the trace in the folder for temporary files (TMPDIR)", source)
}

/// Appends records to the temporary file, which the first run makes; returns the number of bytes.
fn spill(file: &mut Option<File>, records: &[Record]) -> io::Result<u64> {
    let file = match file {
        Some(file) => file,
        None => file.insert(nameless()?),
    };
    let mut out = BufWriter::with_capacity(1 << 18, file);
    for record in records {
        out.write_all(&packed(record))?;
    }
    out.flush()?;
    Ok((records.len() * RECORD_BYTES) as u64)
}

/// A file for reading and writing without a name, so that it goes when it is closed, however the process ends.
fn nameless() -> io::Result<File> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!(".flashwright-{}-{next}.sorting", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

fn packed(record: &Record) -> [u8; RECORD_BYTES] {
    let mut bytes = [0; RECORD_BYTES];
    bytes[..8].copy_from_slice(&record.time.to_le_bytes());
    bytes[8..16].copy_from_slice(&record.first_sector.to_le_bytes());
    bytes[16..20].copy_from_slice(&record.device.to_le_bytes());
    bytes[20..24].copy_from_slice(&record.sectors.to_le_bytes());
    bytes[24..28].copy_from_slice(&record.process.to_le_bytes());
    bytes[28..30].copy_from_slice(&record.stream.to_le_bytes());
    bytes[30] = record.kind as u8;
    bytes[31] = u8::from(record.fua);
    bytes
}

fn unpacked(bytes: &[u8; RECORD_BYTES]) -> Record {
    let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes were cut"));
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes were cut"));
    Record {
        time: u64_at(0),
        first_sector: u64_at(8),
        device: u32_at(16),
        sectors: u32_at(20),
        process: u32_at(24),
        stream: u16::from_le_bytes([bytes[28], bytes[29]]),
        kind: RequestKind::ALL[usize::from(bytes[30])],
        fua: bytes[31] != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::input::Input;

    /// Gives records that it was made of.
    struct Made(Vec<Record>, Input);

    impl Decode for Made {
        fn fill(&mut self, out: &mut Sink<'_>, at_most: usize) -> Result<(), TraceError> {
            let count = at_most.min(self.0.len());
            self.0.drain(..count).for_each(|record| out.push(record));
            Ok(())
        }

        fn input(&self) -> &Input {
            &self.1
        }
    }

    #[test]
    fn many_runs_give_what_a_sort_in_memory_gives() {
        let records: Vec<Record> = (0..50_000_u64)
            .map(|at| Record {
                time: at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52,
                first_sector: at << 30,
                device: at as u32 % 7,
                sectors: 1 + at as u32 % 9,
                process: at as u32,
                stream: at as u16,
                kind: [RequestKind::Read, RequestKind::Write, RequestKind::Trim][at as usize % 3],
                fua: at % 5 == 0,
            })
            .collect();
        let mut expected = records.clone();
        expected.sort_by_key(|record| record.time);
        for run in [4096, 9000, 1 << 20] {
            let path = std::env::temp_dir().join(format!("flashwright-sorting-{}-{run}", std::process::id()));
            std::fs::write(&path, "x").expect("the folder for temporary files takes a byte");
            let input = Input::open(&path, None).expect("it was just written");
            std::fs::remove_file(&path).expect("it was just written");
            let mut made = Made(records.clone(), input);
            let (mut names, mut tally) = (DeviceTable::default(), Tally::default());
            let mut sorted = Sorted::read_runs(&path, &mut made, &mut names, &mut tally, run).expect("there is room");
            let mut found = Vec::new();
            loop {
                let before = found.len();
                sorted.fill(&mut found, 777).expect("the runs are readable");
                if found.len() == before {
                    break;
                }
            }
            assert_eq!(found, expected, "{run}");
        }
    }
}
