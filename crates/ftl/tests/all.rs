//! The integration tests of this crate in one binary, which is built and linked once.

mod flash_log;
mod idle;
mod log_blocks;
mod own_blocks;
mod page_twin;
mod placement;
mod theory;

flashwright_testing::every_file_is_declared!();
