//! Sessions of hosts that keep to no rule.

#![allow(clippy::unwrap_used, missing_docs)] // helpers of tests count as library code

mod aborts;
mod common;
mod hostile;
mod statuses;
mod uncorrectable;
mod vfio;
