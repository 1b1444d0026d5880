//! The integration tests of this crate in one binary, which is built and linked once.

mod contract;
mod lifetime;
mod measured;
mod replay;
mod seeds;
mod settling;

flashwright_testing::every_file_is_declared!();
