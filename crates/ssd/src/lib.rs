//! The simulated drive: what the flash does, laid out in time, behind the block-device seam.
//!
//! ```text
//!   Request ──► [Controller: link, firmware, buffers] ──► driver queue ──► Ssd: sectors to pages ──► scheme (flashwright-ftl) ──► flash
//!                  (depth)                                        │ operations
//!   Completion ◄────────────────────────────── engine: none, serial, or channels and dies
//! ```

mod budgets;
mod config;
mod controller;
mod data;
mod devices;
mod engine;
mod faults;
mod ssd;

pub use config::{
    Capacity, Config, GeometryConfig, HostConfig, PartialPages, QueueDepth, Rate, TimingConfig, TimingModel,
};
pub use controller::{
    BufferKind, Controller, ControllerConfig, ControllerFigures, Drain, Interface, Oversized, ReadBufferConfig,
    WriteBufferConfig,
};
pub use devices::{Device, bundled, bundled_devices};
pub use engine::BusyTimes;
pub use faults::{ConfigError, Fault};
pub use flashwright_ftl::Keeps;
pub use flashwright_ram::{
    BufferRules, ChooseLeaving, HeldGroups, MakeManager, ManagerName, RamContext, RamFigures, RamSettings,
};
pub use ssd::{Policies, Ssd, SsdError};
