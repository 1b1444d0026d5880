//! Programs above a file system: a block device sees the requests that it would see below Postmark or Filebench.
//!
//! The model is deliberately simple: it decides which blocks are read and written when, and stores no bytes. It is an
//! [`Interactive`](flashwright_block::Interactive) workload: its threads wait for the device.
//!
//! ```text
//!   Application (Postmark, Filebench): calls of threads
//!        │ create, write, read, fsync, delete ...
//!   System: threads, processors, semaphores, clocks
//!        │ slices of calls
//!   FileSystem: inodes and blocks ── page cache ── journal ── write-back
//!        │ requests
//!   any BlockDevice
//! ```

mod bits;
mod cache;
mod file;
mod filebench;
mod fs;
mod journal;
mod postmark;
mod settings;
mod space;
mod system;

pub use file::Run;
pub use filebench::{Filebench, FilebenchSettings, Prepare, Profile};
pub use fs::{Counts, FileSystem};
pub use postmark::{Postmark, PostmarkSettings};
pub use settings::{BLOCK_BYTES, JournalMode, Layout, RequestUnit, Settings};
pub use system::{Application, Call, System};

/// A workload that does not fit the device: what, what was found, what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// What does not fit.
    pub what: &'static str,
    /// What was found.
    pub found: String,
    /// What was expected.
    pub expected: String,
}

impl std::fmt::Display for Misfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: found {}, expected {}", self.what, self.found, self.expected)
    }
}

impl std::error::Error for Misfit {}
