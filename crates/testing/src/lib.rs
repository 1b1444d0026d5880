//! Shared by the tests of all crates: the handling of tests whose requirements are missing, a check that no test
//! file is forgotten, and how long fuzzing goes on.
//!
//! No test is skipped silently. Rust's test runner has no status for a skipped test and hides the output of passing
//! tests, so [`skip`] writes to standard error directly. With `CI=true`, programs that can be installed must be
//! present: a missing one fails the test. `tests/python/needs.py` applies the same rule to the tests in Python.

mod rounds;

pub use rounds::Rounds;

use std::io::Write as _;
use std::path::Path;

/// A missing requirement of a test.
#[derive(Clone, Copy, Debug)]
pub enum Lacks<'a> {
    /// A program that `tools/test-tools.sh` installs.
    Program(&'a str),
    /// Something that this kernel, file system or user does not allow: loop devices, rings, mounts.
    Kernel(&'a str),
    /// A file that is not part of this repository.
    File(&'a Path),
}

/// Reports on standard error that the calling test is skipped and why; the test then returns.
///
/// # Panics
/// With `CI=true`, if the test lacks a program.
pub fn skip(lacks: Lacks<'_>) {
    let why = match lacks {
        Lacks::Program(name) => format!("{name} is not installed (tools/test-tools.sh installs it)"),
        Lacks::Kernel(what) => what.to_owned(),
        Lacks::File(path) => format!("{} is absent", path.display()),
    };
    let in_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    assert!(!(in_ci && matches!(lacks, Lacks::Program(_))), "with CI=true this test must not be skipped: {why}");
    let thread = std::thread::current();
    // An error of standard error itself is ignored.
    let _ = writeln!(std::io::stderr(), "skipped: {}: {why}", thread.name().unwrap_or("a test"));
}

/// Whether this program is on the path; if not, the test is skipped.
///
/// # Panics
/// With `CI=true`, if there is none.
#[must_use]
pub fn need(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    if !found {
        skip(Lacks::Program(program));
    }
    found
}

/// Checks that every file next to the calling one is declared there: other files would never be compiled.
///
/// It belongs in `tests/all.rs` of a crate.
#[macro_export]
macro_rules! every_file_is_declared {
    () => {
        #[test]
        fn every_file_is_declared() {
            $crate::assert_declared(concat!(env!("CARGO_MANIFEST_DIR"), "/tests"), include_str!("all.rs"));
        }
    };
}

/// Compares the files of a folder with the text of its `all.rs`.
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
