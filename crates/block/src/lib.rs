//! The words that every part of Flashwright speaks.
//!
//! Nothing here knows about flash. Above [`BlockDevice`] nobody knows whether time is virtual or real,
//! which is what lets one workload player, one scheduler and one probe run against a simulated drive and a
//! real one alike.
//!
//! ```text
//!  workloads  probes          Request ─┐            ┌─ Completion
//!        \     /                       ▼            │
//!     BlockDevice::submit ──────► a device ──────► BlockDevice::wait
//! ```

mod data;
mod device;
mod queue;
mod random;
pub mod registry;
mod request;
mod units;

pub use data::HoldsData;
pub use device::{Ahead, BlockDevice, Bounds, DeviceInfo, IoError, Tag};
pub use queue::{Arbiter, ByDirection, DriverQueue, Fifo, Places, Shared, Waiting};
pub use random::{Rng, Seed, below, chance, unit_interval};
pub use registry::{Listed, NoSettings};
pub use request::{
    Completion, Interactive, Next, Passes, Request, RequestKind, RequestSource, SECTOR_BYTES, SourceError,
};
pub use units::{Bytes, Nanos, UnitError};
