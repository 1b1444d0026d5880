//! The integration tests of this crate in one binary, which is built and linked once.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers of tests count as library code

mod by_room;
mod clean;
mod flash_log;
mod log_blocks;
mod own_blocks;
mod page_reference;
mod placement;
mod slc;
mod steps;
mod theory;
mod zones;

flashwright_testing::every_file_is_declared!();
