//! Policies only choose: they look at tables and return an id. The scheme moves, the flash counts.

pub mod foreign;
pub mod map_cache;
pub mod placement;
pub mod schedule;
pub mod victim;
pub mod wear;
