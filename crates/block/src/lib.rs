//! The basic types of Flashwright.
//!
//! Nothing here knows about flash. No code above [`BlockDevice`] knows whether time is virtual or real, so the same
//! workload player, schedulers and probes run on simulated and real drives.
//!
//! ```text
//!  workloads  probes          Request ─┐            ┌─ Completion
//!        \     /                       ▼            │
//!     BlockDevice::submit ──────► a device ──────► BlockDevice::wait
//! ```

mod arbiters;
mod beside;
mod data;
mod device;
mod placed;
mod queue;
mod random;
pub mod registry;
mod request;
mod reserve;
mod system;
mod units;
mod zone;

pub use arbiters::{AnyArbiter, ArbiterName, ArbiterSettings, Fifo, QueueArbiter, RoundRobin, Weighted};
pub use beside::Beside;
pub use data::{Contents, HoldsData};
pub use device::{Ahead, BlockDevice, Bounds, DeviceInfo, IoError, Tag};
pub use placed::{GroupBits, MOVES_MAX, Moved, Placed, Placement};
pub use queue::{Arbiter, ByDirection, DriverQueue, Places, Shared, Waiting};
pub use random::{Rng, Seed, below, chance, unit_interval};
pub use registry::{Listed, NoSettings};
pub use request::{
    Completion, Effects, Interactive, Next, Passes, Popularity, Priority, Request, RequestClass, RequestKind,
    RequestSource, SECTOR_BYTES, SourceError,
};
pub use reserve::{LEAST_RESERVE_BYTES, MemoryEnded, WithReserve, check_memory, room_for};
pub use system::system_says;
pub use units::{Bytes, Nanos, TIME_MAX, UnitError, grouped, read_share};
pub use zone::{Zone, ZoneError, ZoneRule, ZoneState, Zoned, Zoning};
