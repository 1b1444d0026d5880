//! The integration tests of this crate in one binary, which is built and linked once.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers of tests count as library code

mod golden;
mod programs;
mod recorded;
mod reference_model;
mod speed;
mod support;

flashwright_testing::every_file_is_declared!();
