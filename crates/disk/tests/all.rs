//! The integration tests of this crate in one binary, which is built and linked once.

mod files;
mod loops;

flashwright_testing::every_file_is_declared!();
