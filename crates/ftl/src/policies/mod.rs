//! Policies only choose: they read tables and return an id. The scheme moves pages, the flash counts operations.

pub mod foreign;
pub mod map_cache;
pub mod map_prefetch;
pub mod placement;
pub mod schedule;
pub mod victim;
pub mod wear;
