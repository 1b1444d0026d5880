//! The integration tests of this crate in one binary, which is built and linked once.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers of tests count as library code

mod contract;
mod groups;
mod laid_out;
mod lifetime;
mod measured;
mod replay;
mod scaled;
mod seeds;
mod settling;
mod sharing;
mod tenants;
mod torn;

flashwright_testing::every_file_is_declared!();
