//! A drive served to clients of our own.

#![allow(clippy::unwrap_used, missing_docs)] // helpers of tests count as library code

mod client;
mod damaged;
mod namespaces;
mod nvme;
mod nvmehost;
mod own_device;
mod placement;
mod proxied;
mod remote;
mod served;
mod vfio;
mod vfiohost;
mod zones;

flashwright_testing::every_file_is_declared!();
