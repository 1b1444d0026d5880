//! The profile `oltp` of Filebench on a file system: random reads, synchronous random writes and a log, paced by semaphores.

use super::application::{OnFiles, Program};
use super::filebench::{self, Prepare};
use super::settings::settings;
use super::value::{Count, Length, Whole};
use super::{Describe, Fault};
use flashwright_block::{Bytes, Nanos, Seed};
use flashwright_fs::{Filebench, FilebenchSettings, Misfit, Profile};

settings! {
    /// Settings of `filebench-oltp`; defaults are the profile's.
    pub struct OltpKeys {
        "files" files: Count = "10", "Data files.";
        "size" size: Length = "10MiB", "Size of a data file, and of the log.";
        "per-directory" per_directory: Whole = "1024", "Files per directory; 0 for all in the root.";
        "threads" threads: Count = "200", "Threads that read.";
        "writers" writers: Count = "10", "Threads that write data; one more writes the log.";
        "io" unit: Length = "2KiB", "Size of a read or write call.";
        "append" append: Length = "256KiB", "Size of a write to the log, up to 1 MiB.";
        "think" think: Nanos = "200us", "Processor time of a reader between two reads.";
        "duration" duration: Nanos = "60s", "How long the program runs after its files are created.";
        "prepare" prepare: Prepare = "written", "How files are created: written before the measured part (written), or allocated without a request, as on a drive filled before (placed).";
    }
}

/// `filebench-oltp`.
pub type FilebenchOltp = OnFiles<OltpKeys>;

impl Describe for FilebenchOltp {
    const NAME: &'static str = "filebench-oltp";
    const SUMMARY: &'static str = "Filebench's profile oltp on a file system: random reads, synchronous random writes and a log, paced by semaphores";
    const INTERACTIVE: bool = true;
}

impl Program for OltpKeys {
    type Application = Filebench;

    fn check(&self, faults: &mut Vec<Fault>) {
        filebench::check(self.threads, self.files, faults);
        if self.append.0 > 1 << 20 {
            faults.push(Fault::new(
                "append",
                Bytes(self.append.0),
                "at most 1MiB, the part of the log that is overwritten",
            ));
        }
        if self.size.0 < self.unit.0 {
            faults.push(Fault::new("size", Bytes(self.size.0), format!("at least one call, {}", Bytes(self.unit.0))));
        }
        if self.writers.0 > 10_000 {
            faults.push(Fault::new("writers", self.writers.0, "at most 10000"));
        }
    }

    fn build(&self, seed: Seed, device_bytes: u64) -> Result<Self::Application, Misfit> {
        let profile = Profile::Oltp;
        let settings = FilebenchSettings {
            files: self.files.0,
            size: self.size.0,
            per_directory: filebench::per_directory(self.per_directory),
            threads: self.threads.0,
            writers: self.writers.0,
            unit: self.unit.0,
            append: self.append.0,
            think: self.think,
            duration: self.duration,
            prepare: self.prepare.into(),
            ..profile.settings()
        };
        filebench::build(profile, settings, seed, device_bytes)
    }
}
