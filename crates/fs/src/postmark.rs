//! Postmark: many small files created, read, appended to and deleted, as by a mail server.
//!
//! Source: Katcher, "PostMark: A New File System Benchmark", NetApp TR3022, 1997, in the semantics of version 1.51. Its
//! random numbers are our own, so a seed gives a different run than the program's, with the same statistics.

use crate::Misfit;
use crate::fs::FileSystem;
use crate::system::{Application, Call};
use flashwright_block::{Nanos, Rng, Seed, below};
use std::collections::VecDeque;

/// The settings of Postmark's `set`; defaults are the program's.
#[derive(Clone, Debug, PartialEq)]
pub struct PostmarkSettings {
    /// Files created at the start; 500.
    pub files: u32,
    /// Directories that they are spread over; 0 for all in the root.
    pub subdirectories: u32,
    /// Transactions; 500. Each is a read or an append, then a creation or a deletion.
    pub transactions: u32,
    /// The smallest file in bytes; 500.
    pub size_low: u64,
    /// The largest file in bytes; 9.77 kB (10,000).
    pub size_high: u64,
    /// Bytes of a read call; 512.
    pub read_block: u64,
    /// Bytes of a write call; 512.
    pub write_block: u64,
    /// Probability, in tenths, that a transaction reads rather than appends; 5. None for neither.
    pub bias_read: Option<u32>,
    /// Probability, in tenths, that a transaction creates rather than deletes; 5. None for neither.
    pub bias_create: Option<u32>,
}

impl Default for PostmarkSettings {
    fn default() -> Self {
        Self {
            files: 500,
            subdirectories: 0,
            transactions: 500,
            size_low: 500,
            size_high: 10_000,
            read_block: 512,
            write_block: 512,
            bias_read: Some(5),
            bias_create: Some(5),
        }
    }
}

/// The progress of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Directories(u32),
    Creation,
    Transactions(u32),
    Deletion,
    Done,
}

/// The counts of the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PostmarkCounts {
    /// Files made before the transactions, and in them.
    pub created: [u64; 2],
    /// Files read.
    pub read: u64,
    /// Files appended to.
    pub appended: u64,
    /// Files deleted in transactions, and after them.
    pub deleted: [u64; 2],
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Transactions done.
    pub transactions: u64,
}

/// The program.
#[derive(Clone, Debug)]
pub struct Postmark {
    settings: PostmarkSettings,
    rng: Rng,
    phase: Phase,
    /// Existing files, in no order, and the bytes of each by its number.
    live: Vec<u32>,
    sizes: Vec<u64>,
    /// Numbers for new files.
    free: Vec<u32>,
    calls: VecDeque<Call>,
    counts: PostmarkCounts,
    /// When the transactions began and ended.
    transactions_at: [Nanos; 2],
}

impl Postmark {
    /// The program with its own stream of the seed.
    #[must_use]
    pub fn new(settings: PostmarkSettings, seed: Seed) -> Self {
        // The program has a table of twice as many files as it makes at first.
        let most = settings.files.saturating_mul(2).max(1);
        Self {
            rng: seed.stream("postmark"),
            phase: Phase::Directories(0),
            live: Vec::new(),
            sizes: vec![0; most as usize],
            free: (0..most).rev().collect(),
            calls: VecDeque::new(),
            counts: PostmarkCounts::default(),
            transactions_at: [Nanos(0); 2],
            settings,
        }
    }

    /// The counts so far.
    #[must_use]
    pub fn counts(&self) -> PostmarkCounts {
        self.counts
    }

    /// Refuses a device too small for the files at their largest: as many as are made at first and those that
    /// transactions add by the bias, with a tenth to spare.
    ///
    /// # Errors
    /// One line with the required device size.
    pub fn check_room(&self, device_bytes: u64) -> Result<(), Misfit> {
        let bias = u64::from(self.settings.bias_create.unwrap_or(5)).saturating_sub(5);
        // Created less deleted, on average, and four standard deviations of a fair walk.
        let walk = 4 * u64::from(self.settings.transactions).isqrt();
        let grown = u64::from(self.settings.transactions) * bias / 5 + walk;
        let most = (u64::from(self.settings.files) + grown).min(self.sizes.len() as u64);
        let mean = u64::midpoint(self.settings.size_low, self.settings.size_high);
        crate::filebench::check_room(most, mean, device_bytes)
    }

    fn draw(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { below(&mut self.rng, bound) }
    }

    fn create(&mut self, when: usize) {
        let Some(file) = self.free.pop() else { return };
        let range = self.settings.size_high - self.settings.size_low;
        let bytes = self.settings.size_low + self.draw(range);
        let directory = match u64::from(self.settings.subdirectories) {
            // One directory is not used by the program, as it draws only among several.
            0 | 1 => 0,
            several => 1 + u32::try_from(self.draw(several)).expect("a directory's number fits"),
        };
        self.sizes[file as usize] = bytes;
        self.live.push(file);
        self.counts.created[when] += 1;
        self.counts.bytes_written += bytes;
        let unit = self.settings.write_block;
        self.calls.extend([
            Call::Create { file, directory },
            Call::Open(file),
            Call::Append { file, bytes, unit },
            Call::Close(file),
        ]);
    }

    fn pick(&mut self) -> Option<usize> {
        let files = self.live.len() as u64;
        (files > 0).then(|| usize::try_from(self.draw(files)).expect("an index into a list fits"))
    }

    fn delete(&mut self, at: usize, when: usize) {
        let file = self.live.swap_remove(at);
        self.free.push(file);
        self.counts.deleted[when] += 1;
        self.calls.push_back(Call::Delete(file));
    }

    fn read_or_append(&mut self, bias: u32) {
        let reads = self.draw(10) < u64::from(bias);
        let Some(at) = self.pick() else { return };
        let file = self.live[at];
        let size = self.sizes[file as usize];
        if reads {
            self.counts.read += 1;
            self.counts.bytes_read += size;
            let read = Call::Read { file, offset: 0, bytes: size, unit: self.settings.read_block };
            self.calls.extend([Call::Open(file), read, Call::Close(file)]);
        } else if size < self.settings.size_high {
            let bytes = self.draw(self.settings.size_high - size) + 1;
            self.sizes[file as usize] += bytes;
            self.counts.appended += 1;
            self.counts.bytes_written += bytes;
            let append = Call::Append { file, bytes, unit: self.settings.write_block };
            self.calls.extend([Call::Open(file), append, Call::Close(file)]);
        }
    }

    fn transaction(&mut self) {
        self.counts.transactions += 1;
        if let Some(bias) = self.settings.bias_read {
            self.read_or_append(bias);
        }
        if let Some(bias) = self.settings.bias_create {
            if self.draw(10) < u64::from(bias) {
                self.create(1);
            } else if let Some(at) = self.pick() {
                self.delete(at, 0);
            }
        }
    }
}

impl Application for Postmark {
    fn threads(&self) -> u32 {
        1
    }

    fn next(&mut self, _: u32, now: Nanos, _: &FileSystem) -> Call {
        loop {
            if let Some(call) = self.calls.pop_front() {
                return call;
            }
            self.phase = match self.phase {
                Phase::Directories(made) if made < self.settings.subdirectories => {
                    self.calls.push_back(Call::MakeDirectory);
                    Phase::Directories(made + 1)
                }
                Phase::Directories(_) => Phase::Creation,
                Phase::Creation if self.counts.created[0] < u64::from(self.settings.files) => {
                    self.create(0);
                    Phase::Creation
                }
                Phase::Creation => {
                    self.transactions_at[0] = now;
                    Phase::Transactions(0)
                }
                Phase::Transactions(done) if done < self.settings.transactions => {
                    self.transaction();
                    Phase::Transactions(done + 1)
                }
                Phase::Transactions(_) => {
                    self.transactions_at[1] = now;
                    Phase::Deletion
                }
                Phase::Deletion if !self.live.is_empty() => {
                    self.delete(self.live.len() - 1, 1);
                    Phase::Deletion
                }
                Phase::Deletion | Phase::Done => {
                    self.calls.push_back(Call::Exit);
                    Phase::Done
                }
            };
        }
    }

    #[allow(clippy::cast_precision_loss)] // counts far below 2^53
    fn figures(&self, elapsed: Nanos) -> Vec<(&'static str, f64)> {
        let counts = self.counts;
        let per_s = |count: u64, nanos: u64| if nanos == 0 { 0.0 } else { count as f64 * 1e9 / nanos as f64 };
        let [began, ended] = self.transactions_at.map(|time| time.0);
        let transactions_ns = ended.saturating_sub(began);
        vec![
            ("transactions", counts.transactions as f64),
            ("transactions_seconds", transactions_ns as f64 / 1e9),
            ("transactions_per_s", per_s(counts.transactions, transactions_ns)),
            ("files_created", (counts.created[0] + counts.created[1]) as f64),
            ("files_created_in_transactions", counts.created[1] as f64),
            ("files_read", counts.read as f64),
            ("files_appended", counts.appended as f64),
            ("files_deleted", (counts.deleted[0] + counts.deleted[1]) as f64),
            ("files_deleted_in_transactions", counts.deleted[0] as f64),
            ("bytes_read", counts.bytes_read as f64),
            ("bytes_written", counts.bytes_written as f64),
            ("read_bytes_per_s", per_s(counts.bytes_read, elapsed.0)),
            ("write_bytes_per_s", per_s(counts.bytes_written, elapsed.0)),
        ]
    }
}
