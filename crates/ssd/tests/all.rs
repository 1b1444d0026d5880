//! The integration tests of this crate in one binary, which is built and linked once.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers of tests count as library code

mod buffers;
mod common;
mod conformance;
mod controller;
mod controller_power;
mod data;
mod dftl;
mod drives;
mod engine;
mod foreign;
mod golden;
mod groups;
mod map_prefetch;
mod power;
mod queue;
mod ram;
mod schedules;
mod sets;
mod settings;
mod shared_ram;
mod slc;
mod soak;
mod units;
mod unmapped;
mod upcoming;
mod zones;

flashwright_testing::every_file_is_declared!();
