//! What the profiles of Filebench share.

use super::Fault;
use super::value::{Count, choice};

choice! {
    /// How the files come to be that are there at first.
    pub enum Prepare {
        /// Written before the measured part.
        Written = "written",
        /// Given blocks without a request.
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

/// Faults that any profile can have.
pub(crate) fn check(threads: Count, files: Count, faults: &mut Vec<Fault>) {
    if threads.0 > 10_000 {
        faults.push(Fault::new("threads", threads.0, "at most 10000"));
    }
    if files.0 > 10_000_000 {
        faults.push(Fault::new("files", files.0, "at most 10000000"));
    }
}
