//! Where requests come from: traces of real machines and generators with a seed.
//!
//! Everything here is a [`flashwright_block::RequestSource`]: a stream of requests in constant memory.

pub mod generate;
pub mod trace;
