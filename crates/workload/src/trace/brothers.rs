//! The files of one recording that stand beside each other: `blktrace` writes one for each CPU.

use std::path::{Path, PathBuf};

/// Between the name of a recording and the number of a CPU.
const MIDDLES: [&str; 2] = [".blktrace.", ".blkparse."];
/// CPUs whose files are looked for.
const CPUS_MAX: u32 = 1024;

/// The other files of a recording.
pub(crate) struct Brothers {
    /// The CPU of the file that was named.
    pub(crate) cpu: u32,
    /// The file of CPU 0.
    pub(crate) first: PathBuf,
    /// Those of other CPUs that are there and not empty, by number; at least one.
    pub(crate) others: Vec<PathBuf>,
}

impl Brothers {
    /// The files beside `path`, if its name is that of one CPU's and there are others.
    pub(crate) fn of(path: &Path) -> Option<Brothers> {
        let name = path.file_name()?.to_str()?;
        let (base, middle, after) = MIDDLES.iter().find_map(|middle| {
            let (base, after) = name.rsplit_once(middle)?;
            Some((base, middle, after))
        })?;
        // What follows the number is the ending of a compressed file.
        let (number, ending) = after.split_at(after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len()));
        let cpu = number.parse().ok()?;
        let of = |cpu: u32| path.with_file_name(format!("{base}{middle}{cpu}{ending}"));
        let is_there = |path: &PathBuf| path.metadata().is_ok_and(|found| found.is_file() && found.len() > 0);
        let others: Vec<PathBuf> = (0..CPUS_MAX).filter(|other| *other != cpu).map(of).filter(is_there).collect();
        (!others.is_empty()).then(|| Brothers { cpu, first: of(0), others })
    }

    /// The names of the others: one, or the first and the last.
    pub(crate) fn names(&self) -> String {
        match self.others.as_slice() {
            [] => String::new(),
            [only] => shown(only),
            [first, .., last] => format!("{} to {}", shown(first), shown(last)),
        }
    }
}

/// The name of a file without its folder.
pub(crate) fn shown(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
