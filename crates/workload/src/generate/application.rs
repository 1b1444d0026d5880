//! Shared by programs above a file system: the keys of the file system, and the source that plays a program.

use super::common::{Common, Plan};
use super::settings::{Given, KeyInfo, Settings, settings};
use super::value::{Count, Share, YesNo, choice};
use super::{Fault, Workload};
use flashwright_block::{Bytes, Nanos, RequestSource, SECTOR_BYTES, Seed};
use flashwright_fs::{Application, Misfit, System};

choice! {
    /// How a file's blocks are laid out.
    pub enum Layout {
        /// Direct and indirect blocks, chosen when the program writes.
        Ext3 = "ext3",
        /// Extents, chosen when pages are written back.
        Extents = "extents",
    }
}

choice! {
    /// The guarantee of the journal.
    pub enum Journal {
        /// Data are written before the transaction that refers to them.
        Ordered = "ordered",
        /// Only metadata is journaled.
        Writeback = "writeback",
        /// There is no journal.
        None = "none",
    }
}

choice! {
    /// The content of one write request.
    pub enum Unit {
        /// Consecutive blocks.
        Run = "run",
        /// One block.
        Block = "block",
    }
}

settings! {
    /// Keys of the file system and the machine, the same for every program on it.
    pub struct FileSystemKeys {
        "layout" layout: Layout = "ext3", "Layout of files: 12 direct blocks and an indirect one before each 1,024 more, or extents chosen at write-back.";
        "memory" memory: Bytes = "4GiB", "Memory of the machine, all of it for the page cache.";
        "request-unit" unit: Unit = "run", "Content of one write request: consecutive blocks (run), or one block, as ext3 passes them to a block layer that merges.";
        "request-max" request_max: Bytes = "512KiB", "The longest request.";
        "in-flight" in_flight: Option<Count> = "", "Largest number of outstanding write requests; default 128 with runs, 16384 with blocks.";
        "journal" journal: Journal = "ordered", "Whether data are written before the transaction that refers to them.";
        "commit-interval" commit: Nanos = "5s", "Age at which a transaction is committed.";
        "barrier" barrier: Option<YesNo> = "", "Whether commits flush the device's cache; default no with ext3, yes with extents.";
        "atime" atime: Option<YesNo> = "", "Whether a read changes the inode; default yes with ext3, no with extents.";
        "dirty-background" background: Share = "0.05", "Share of memory that may be dirty before write-back begins.";
        "dirty" dirty: Share = "0.1", "Share of memory that may be dirty or under write-back before writers wait.";
        "flush-interval" flush: Nanos = "5s", "Interval between two searches for old data.";
        "flush-age" age: Nanos = "30s", "Age at which data are written back.";
        "read-ahead" read_ahead: Bytes = "128KiB", "The longest read-ahead.";
        "processors" processors: Count = "4", "Processors of the machine.";
        "call-time" call: Nanos = "1us", "Processor time of a system call, without copying its data.";
        "page-time" page: Nanos = "2us", "Processor time of copying 4 KiB between program and cache.";
        "sync-at-end" sync: YesNo = "yes", "Whether dirty data are written when the program has ended.";
    }
}

impl FileSystemKeys {
    fn settings(&self) -> flashwright_fs::Settings {
        let yes = |value: Option<YesNo>| value.map(|value| value == YesNo::Yes);
        flashwright_fs::Settings {
            layout: match self.layout {
                Layout::Ext3 => flashwright_fs::Layout::Ext3,
                Layout::Extents => flashwright_fs::Layout::Extents,
            },
            memory: self.memory,
            request_unit: match self.unit {
                Unit::Run => flashwright_fs::RequestUnit::Run,
                Unit::Block => flashwright_fs::RequestUnit::Block,
            },
            request_max: self.request_max,
            in_flight: self.in_flight.map(|count| count.0),
            journal: match self.journal {
                Journal::Ordered => flashwright_fs::JournalMode::Ordered,
                Journal::Writeback => flashwright_fs::JournalMode::Writeback,
                Journal::None => flashwright_fs::JournalMode::None,
            },
            commit_every: self.commit,
            barrier: yes(self.barrier),
            atime: yes(self.atime),
            dirty_background: self.background.0,
            dirty_throttle: self.dirty.0,
            flush_every: self.flush,
            flush_age: self.age,
            read_ahead: self.read_ahead,
            processors: self.processors.0,
            call_time: self.call,
            page_time: self.page,
            sync_at_end: self.sync == YesNo::Yes,
            ..flashwright_fs::Settings::default()
        }
    }

    fn check(&self, faults: &mut Vec<Fault>) {
        if self.memory < Bytes(1 << 20) {
            faults.push(Fault::new("memory", self.memory, "at least 1MiB"));
        }
        if self.memory > Bytes(1 << 42) {
            faults.push(Fault::new("memory", self.memory, "at most 4TiB"));
        }
        if self.request_max < Bytes(4096) || self.request_max > Bytes(1 << 30) {
            faults.push(Fault::new("request-max", self.request_max, "4KiB to 1GiB"));
        }
        if self.background.0 > self.dirty.0 {
            let found = format!("{} and dirty={}", self.background.0, self.dirty.0);
            faults.push(Fault::new("dirty-background", found, "at most the share at which writers wait"));
        }
        if self.dirty.0 > 0.9 {
            faults.push(Fault::new("dirty", self.dirty.0, "a share up to 0.9: reads need room too"));
        }
        for (key, time) in [("flush-interval", self.flush), ("commit-interval", self.commit)] {
            if time < Nanos(1_000_000) {
                faults.push(Fault::new(key, time, "at least 1ms"));
            }
        }
        if self.processors.0 > 1024 {
            faults.push(Fault::new("processors", self.processors.0, "at most 1024"));
        }
    }
}

/// A program's own keys.
pub(crate) trait Program: Settings {
    /// The program.
    type Application: Application + Send + 'static;

    /// Validation errors that span keys.
    fn check(&self, faults: &mut Vec<Fault>);

    /// The program, if the device has room for its files.
    fn build(&self, seed: Seed, device_bytes: u64) -> Result<Self::Application, Misfit>;
}

/// A program's keys and the file system's.
#[derive(Clone, Debug, PartialEq)]
pub struct OnFiles<P> {
    program: P,
    system: FileSystemKeys,
}

impl<P: Program> Settings for OnFiles<P> {
    fn keys() -> Vec<KeyInfo> {
        P::keys().into_iter().chain(FileSystemKeys::keys()).collect()
    }
    fn read(given: &mut Given<'_>) -> Self {
        Self { program: P::read(given), system: FileSystemKeys::read(given) }
    }
    fn pairs(&self, out: &mut Vec<(&'static str, String)>) {
        self.program.pairs(out);
        self.system.pairs(out);
    }
}

impl<P: Program> Workload for OnFiles<P> {
    fn check(&self, _: &Common, faults: &mut Vec<Fault>) {
        self.program.check(faults);
        self.system.check(faults);
    }

    fn source(&self, plan: &Plan<'_>) -> Result<Box<dyn RequestSource + Send>, Fault> {
        if let Some(requests) = plan.requests {
            return Err(Fault::new("requests", requests, "none: this workload ends by itself"));
        }
        let fault = |misfit: Misfit| Fault::new(misfit.what, misfit.found, misfit.expected);
        let program = self.program.build(plan.seed, plan.space_sectors * SECTOR_BYTES).map_err(fault)?;
        let system = System::new(program, self.system.settings(), plan.space_sectors, plan.seed).map_err(fault)?;
        Ok(Box::new(system))
    }
}
