//! The settings of a drive as users write them, and their validation.
//!
//! ```text
//!   TOML, KEY=VALUE ──read──► Config (as written) ──check, once──► DriveConfig (valid, with what follows from it) ──► Ssd
//!                               ▲                    ▲
//!                               └── keys: meaning, default, range, from the doc comments and attributes of the settings
//! ```

mod check;
mod chips;
mod controller;
mod devices;
mod energy;
pub mod keys;
mod problems;
mod read;
mod schema;
mod times;
mod values;

pub use check::DriveConfig;
pub use chips::{BlockLayout, ChipsConfig, PageTimes, Programming, Superblock, Suspends};
pub use controller::{
    BufferKind, ControllerConfig, Drain, Interface, Oversized, QueuesConfig, ReadBufferConfig, WriteBufferConfig,
    controller_as_toml,
};
pub use devices::{Device, bundled, bundled_devices};
pub use energy::EnergyConfig;
pub use problems::{ConfigError, SettingError};
pub use schema::{
    BusOrder, Capacity, CleaningBlocks, Config, DieOrderName, GeometryConfig, HostConfig, PartialPages, TimingConfig,
    TimingModel,
};
pub use times::{BITS_MAX, ChipTimes, FlashTimes, Times};
pub use values::{QueueDepth, Rate};
