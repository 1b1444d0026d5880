//! Targets of fuzzing in one binary, which is built and linked once.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers of tests count as library code

mod configs;
mod damage;
mod images;
mod recordings;
mod runs;
mod talk;
mod traces;

flashwright_testing::every_file_is_declared!();
