//! What the tests of all crates share: what becomes of a test that lacks something, and a check that no file of tests is
//! forgotten.
//!
//! Nothing is skipped in silence. Rust's test runner has no word for a test that was skipped, and hides what a test that
//! passes prints, so [`skip`] writes past it to standard error. Where `CI=true`, a program that can be installed must be
//! there: its absence fails the test. `tests/python/needs.py` holds the tests in Python to the same rule.

use std::io::Write as _;
use std::path::Path;

/// What a test lacks.
#[derive(Clone, Copy, Debug)]
pub enum Lacks<'a> {
    /// A program that `tools/test-tools.sh` installs.
    Program(&'a str),
    /// Something that this kernel, file system or user is refused: loop devices, rings, mounts.
    Kernel(&'a str),
    /// A file that is not part of this repository.
    File(&'a Path),
}

/// Says on standard error that the calling test is skipped and why; the test returns then.
///
/// # Panics
/// Where `CI=true` and the test lacks a program.
pub fn skip(lacks: Lacks<'_>) {
    let why = match lacks {
        Lacks::Program(name) => format!("{name} is not installed (tools/test-tools.sh installs it)"),
        Lacks::Kernel(what) => what.to_owned(),
        Lacks::File(path) => format!("{} is absent", path.display()),
    };
    let in_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    assert!(!(in_ci && matches!(lacks, Lacks::Program(_))), "CI=true skips no such test: {why}");
    let thread = std::thread::current();
    // A test that is told nothing is the worse: an error of standard error itself is let be.
    let _ = writeln!(std::io::stderr(), "skipped: {}: {why}", thread.name().unwrap_or("a test"));
}

/// Whether there is such a program on the path; if not, the test is skipped.
///
/// # Panics
/// Where `CI=true` and there is none.
#[must_use]
pub fn need(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    if !found {
        skip(Lacks::Program(program));
    }
    found
}

/// A test that every file beside the one that calls it is declared there: one that is not would never be compiled.
///
/// It belongs into `tests/all.rs` of a crate.
#[macro_export]
macro_rules! every_file_is_declared {
    () => {
        #[test]
        fn every_file_is_declared() {
            $crate::assert_declared(concat!(env!("CARGO_MANIFEST_DIR"), "/tests"), include_str!("all.rs"));
        }
    };
}

/// Holds the files of a folder against the text of its `all.rs`.
///
/// # Panics
/// If one is not declared there, or the folder can't be read.
pub fn assert_declared(folder: &str, text: &str) {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder}: {error}"));
    for entry in entries {
        let path = entry.unwrap_or_else(|error| panic!("{folder}: {error}")).path();
        let is_module = path.extension().is_some_and(|end| end == "rs") || path.join("mod.rs").is_file();
        let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        assert!(
            !is_module || name == "all" || text.lines().any(|line| line == format!("mod {name};")),
            "{}: declare it in all.rs with `mod {name};`, or its tests never run",
            path.display()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_found_and_what_is_not_is_told() {
        assert!(need("sh"));
        if std::env::var("CI").is_ok_and(|value| value == "true") {
            assert!(std::panic::catch_unwind(|| need("no-such-program-at-all")).is_err());
        } else {
            assert!(!need("no-such-program-at-all"));
        }
        skip(Lacks::Kernel("only to show how it reads"));
    }

    #[test]
    fn a_file_that_is_not_declared_is_told() {
        let folder = std::env::temp_dir().join(format!("flashwright-declared-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        for name in ["all.rs", "one.rs", "notes.txt"] {
            std::fs::write(folder.join(name), "").expect("a file");
        }
        let path = folder.display().to_string();
        assert_declared(&path, "mod one;\n");
        let forgotten = std::panic::catch_unwind(|| assert_declared(&path, "// mod one;\n"));
        std::fs::remove_dir_all(&folder).expect("it was made above");
        assert!(forgotten.is_err());
    }
}
