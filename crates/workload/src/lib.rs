//! Sources of requests: traces of real machines and seeded generators.
//!
//! Everything here is a [`flashwright_block::RequestSource`]: a stream of requests in constant memory.

pub mod generate;
pub mod model;
pub mod statistics;
pub mod trace;
