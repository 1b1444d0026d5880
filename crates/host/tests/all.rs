//! The integration tests of this crate in one binary, which is built and linked once.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers of tests count as library code

mod cfq;
mod common;
mod cutting;
mod data;
mod golden;
mod kyber;
mod parameters;
mod properties;

flashwright_testing::every_file_is_declared!();
