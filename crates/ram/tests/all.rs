//! The integration tests of this crate in one binary, which is built and linked once.

mod ap;
mod common;
mod gc_arm;

flashwright_testing::every_file_is_declared!();
