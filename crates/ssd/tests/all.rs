//! The integration tests of this crate in one binary, which is built and linked once.

mod buffers;
mod common;
mod conformance;
mod controller;
mod data;
mod dftl;
mod drives;
mod engine;
mod foreign;
mod golden;
mod queue;
mod ram;
mod settings;
mod shared_ram;
mod unmapped;

flashwright_testing::every_file_is_declared!();
