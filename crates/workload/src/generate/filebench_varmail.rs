//! The profile `varmail` of Filebench on a file system: small files created, appended to, synced, read and deleted.

use super::application::{OnFiles, Program};
use super::filebench::{self, Prepare};
use super::settings::settings;
use super::value::{Count, Length, Share, Whole, YesNo};
use super::{Describe, Fault};
use flashwright_block::{Nanos, Seed};
use flashwright_fs::{Filebench, FilebenchSettings, Misfit, Profile};

settings! {
    /// Settings of `filebench-varmail`; defaults are the profile's.
    pub struct VarmailKeys {
        "files" files: Count = "1000", "Files of the set.";
        "size" size: Length = "16KiB", "Mean size of a file; sizes are gamma distributed with shape 1.5.";
        "fixed" fixed: YesNo = "no", "Whether every file has the mean size.";
        "preallocated" preallocated: Share = "0.8", "Share of the files that exist at the start.";
        "per-directory" per_directory: Whole = "0", "Files per directory; 0 for all in the root.";
        "threads" threads: Count = "16", "Threads.";
        "io" unit: Length = "1MiB", "Size of a read or write call.";
        "append" append: Length = "16KiB", "Largest size of an append; sizes are uniform from 1 byte up.";
        "duration" duration: Nanos = "60s", "How long the program runs after its files are created.";
        "prepare" prepare: Prepare = "written", "How files are created: written before the measured part (written), or allocated without a request, as on a drive filled before (placed).";
    }
}

/// `filebench-varmail`.
pub type FilebenchVarmail = OnFiles<VarmailKeys>;

impl Describe for FilebenchVarmail {
    const NAME: &'static str = "filebench-varmail";
    const SUMMARY: &'static str =
        "Filebench's profile varmail on a file system: small files created, appended to, synced, read and deleted";
    const INTERACTIVE: bool = true;
}

impl Program for VarmailKeys {
    type Application = Filebench;

    fn check(&self, faults: &mut Vec<Fault>) {
        filebench::check(self.threads, self.files, faults);
    }

    fn build(&self, seed: Seed, device_bytes: u64) -> Result<Self::Application, Misfit> {
        let profile = Profile::Varmail;
        let settings = FilebenchSettings {
            files: self.files.0,
            size: self.size.0,
            fixed: self.fixed == YesNo::Yes,
            preallocated: self.preallocated.0,
            per_directory: filebench::per_directory(self.per_directory),
            threads: self.threads.0,
            unit: self.unit.0,
            append: self.append.0,
            duration: self.duration,
            prepare: self.prepare.into(),
            ..profile.settings()
        };
        filebench::build(profile, settings, seed, device_bytes)
    }
}
