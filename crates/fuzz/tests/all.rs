//! Targets of fuzzing in one binary, which is built and linked once.

mod configs;
mod damage;
mod runs;
mod traces;

flashwright_testing::every_file_is_declared!();
