//! Shared by the profiles of Filebench.

use super::Fault;
use super::value::{Count, Whole, choice};
use flashwright_block::Seed;
use flashwright_fs::{Filebench, FilebenchSettings, Misfit, Profile};

choice! {
    /// How the initial files are created.
    pub enum Prepare {
        /// Written before the measured part.
        Written = "written",
        /// Allocated without a request.
        Placed = "placed",
    }
}

impl From<Prepare> for flashwright_fs::Prepare {
    fn from(prepare: Prepare) -> Self {
        match prepare {
            Prepare::Written => Self::Written,
            Prepare::Placed => Self::Placed,
        }
    }
}

/// The program of a profile, if the device has room for its files.
pub(crate) fn build(
    profile: Profile,
    settings: FilebenchSettings,
    seed: Seed,
    device_bytes: u64,
) -> Result<Filebench, Misfit> {
    let program = Filebench::new(profile, settings, seed);
    program.check_room(device_bytes)?;
    Ok(program)
}

/// Files per directory, in the program's numbers.
pub(crate) fn per_directory(files: Whole) -> u32 {
    u32::try_from(files.0).unwrap_or(u32::MAX)
}

/// Validation errors that any profile can have.
pub(crate) fn check(threads: Count, files: Count, faults: &mut Vec<Fault>) {
    if threads.0 > 10_000 {
        faults.push(Fault::new("threads", threads.0, "at most 10000"));
    }
    if files.0 > 10_000_000 {
        faults.push(Fault::new("files", files.0, "at most 10000000"));
    }
}
