//! The integration tests of this crate in one binary, which is built and linked once.

mod lifetime;
mod replay;
mod settling;

flashwright_testing::every_file_is_declared!();
