//! The profile `webserver` of Filebench on a file system: files read whole by many threads, and a log that grows.

use super::application::{OnFiles, Program};
use super::filebench::{self, Prepare};
use super::settings::settings;
use super::value::{Count, Length, Whole, YesNo};
use super::{Describe, Fault};
use flashwright_block::{Nanos, Seed};
use flashwright_fs::{Filebench, FilebenchSettings, Misfit, Profile};

settings! {
    /// Settings of `filebench-webserver`; defaults are the profile's.
    pub struct WebserverKeys {
        "files" files: Count = "1000", "Files of the set.";
        "size" size: Length = "16KiB", "Mean size of a file; sizes are gamma distributed with shape 1.5.";
        "fixed" fixed: YesNo = "no", "Whether every file has the mean size.";
        "per-directory" per_directory: Whole = "20", "Files per directory; 0 for all in the root.";
        "threads" threads: Count = "100", "Threads.";
        "io" unit: Length = "1MiB", "Size of a read or write call.";
        "append" append: Length = "16KiB", "Largest size of an append; sizes are uniform from 1 byte up.";
        "log-max" log_max: Length = "256MiB", "Size of the log beyond which it is overwritten from its start.";
        "duration" duration: Nanos = "60s", "How long the program runs after its files are created.";
        "prepare" prepare: Prepare = "written", "How files are created: written before the measured part (written), or allocated without a request, as on a drive filled before (placed).";
    }
}

/// `filebench-webserver`.
pub type FilebenchWebserver = OnFiles<WebserverKeys>;

impl Describe for FilebenchWebserver {
    const NAME: &'static str = "filebench-webserver";
    const SUMMARY: &'static str =
        "Filebench's profile webserver on a file system: files read whole by many threads, and a log that grows";
    const INTERACTIVE: bool = true;
}

impl Program for WebserverKeys {
    type Application = Filebench;

    fn check(&self, faults: &mut Vec<Fault>) {
        filebench::check(self.threads, self.files, faults);
    }

    fn build(&self, seed: Seed, device_bytes: u64) -> Result<Self::Application, Misfit> {
        let profile = Profile::Webserver;
        let settings = FilebenchSettings {
            files: self.files.0,
            size: self.size.0,
            fixed: self.fixed == YesNo::Yes,
            per_directory: filebench::per_directory(self.per_directory),
            threads: self.threads.0,
            unit: self.unit.0,
            append: self.append.0,
            log_max: self.log_max.0,
            duration: self.duration,
            prepare: self.prepare.into(),
            ..profile.settings()
        };
        filebench::build(profile, settings, seed, device_bytes)
    }
}
