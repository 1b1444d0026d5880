//! The simulated drive: flash operations laid out in time, behind the block-device interface. Its settings are in
//! `flashwright-config`.
//!
//! ```text
//!   Request ──► [Controller: link, firmware, buffers] ──► driver queue ──► Ssd: sectors to pages ──► scheme (flashwright-ftl) ──► flash
//!                  (depth)                                        │ operations
//!   Completion ◄────────────────────────────── engine: none, serial, or channels and dies
//! ```

mod budgets;
mod chip_rules;
mod cleaning;
mod cleaning_blocks;
mod clock;
mod controller;
mod data;
pub mod engine;
mod laid_out;
mod memory;
mod power_loss;
mod ssd;
mod translation;
mod units;
mod zones;

pub use controller::{ControlledDrive, Controller, ControllerFigures};
pub use engine::{BusyTimes, ChipFigures};
pub use flashwright_config::{
    BlockLayout, BufferKind, BusOrder, Capacity, ChipsConfig, CleaningBlocks, Config, ConfigError, ControllerConfig,
    Device, DieOrderName, Drain, DriveConfig, EnergyConfig, GeometryConfig, HostConfig, Interface, Oversized,
    PageTimes, PartialPages, Programming, QueueDepth, Rate, ReadBufferConfig, SettingError, Superblock, Suspends,
    TimingConfig, TimingModel, WriteBufferConfig, bundled, bundled_devices, keys,
};
pub use flashwright_ftl::Keeps;
pub use flashwright_ftl::durable::{Medium, MountBy, MountError, RecoverySettings};
pub use flashwright_ram::{
    BufferRules, ChooseLeaving, HeldGroups, MakeManager, ManagerName, RamContext, RamFigures, RamSettings,
};
pub use memory::{memory_left, memory_needed};
pub use power_loss::{Mounted, RestartError};
pub use ssd::{Policies, Ssd, SsdError};
