//! The integration tests of this crate in one binary, which is built and linked once.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers of tests count as library code

mod generate_all;
mod generate_application;
mod generate_patterns;
mod generate_spec;
mod generate_speed;
mod generate_stand_in;
mod generate_zones;
mod model;
mod model_sequence;
mod model_support;
mod statistics;
mod trace_address;
mod trace_convert;
mod trace_faults;
mod trace_formats;
mod trace_more;
mod trace_order;
mod trace_published;
mod trace_scale;
mod trace_support;

flashwright_testing::every_file_is_declared!();
