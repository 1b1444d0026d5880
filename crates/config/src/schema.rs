//! The settings of a drive as users write them.
//!
//! The only schema: kebab-case keys, values with units, defaults visible in `impl Default`. `read` parses it, `check`
//! validates it, and `ssd` derives from it what the code runs on.

use crate::chips::{ChipsConfig, Superblock};
use crate::controller::ControllerConfig;
use crate::energy::EnergyConfig;
use crate::values::{QueueDepth, Rate};
use flashwright_block::{Bytes, Nanos};
use flashwright_ftl::durable::RecoverySettings;
use flashwright_ftl::{FtlSettings, GcSettings, PlacementConfig, SlcSettings, VictimChoice, WearSettings};
use flashwright_host::StackSettings;
use flashwright_nand::{ErrorSettings, ProgramOrder};
use flashwright_ram::RamSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A drive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct Config {
    /// A short name for reports.
    pub name: String,
    /// What the drive models and where its constants come from.
    pub about: String,
    /// Geometry of the flash.
    pub geometry: GeometryConfig,
    /// The part of the flash that the host sees.
    pub capacity: Capacity,
    /// Durations and parallelism.
    pub timing: TimingConfig,
    /// Commands of the dies beyond a page at a time.
    pub chips: ChipsConfig,
    /// Energy and power.
    pub energy: EnergyConfig,
    /// The translation layer.
    pub ftl: FtlSettings,
    /// The RAM before the translation layer.
    pub ram: RamSettings,
    /// Cleaning.
    pub gc: GcSettings,
    /// Where the drive places pages.
    pub placement: PlacementConfig,
    /// The SLC cache.
    pub slc: SlcSettings,
    /// Endurance and wear levelling.
    pub wear: WearSettings,
    /// Raw bit errors of the cells.
    pub errors: ErrorSettings,
    /// What a loss of power leaves, and how the drive is mounted again.
    pub recovery: RecoverySettings,
    /// The host's side: queue and schedulers.
    pub host: HostConfig,
    /// The controller between the drive's interface and its flash.
    pub controller: ControllerConfig,
}

impl Config {
    /// The configuration with every choice filled in that it leaves to the translation layer, and with the queue depth
    /// that it leaves open. Results show this configuration; it gives the same run even if defaults change later.
    #[must_use]
    pub fn resolved(&self) -> Self {
        let mut config = self.clone();
        if config.gc.victim == VictimChoice::Default {
            config.gc.victim = config.ftl.scheme.victim().into();
        }
        config.host.queue_depth = QueueDepth::Requests(config.host.queue_depth.requests());
        config
    }
}

/// `[geometry]`: geometry of the flash.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct GeometryConfig {
    /// Channels (buses).
    #[schemars(range(min = 1, max = 64))]
    pub channels: u32,
    /// Dies on each channel.
    #[schemars(range(min = 1, max = 64))]
    pub dies_per_channel: u32,
    /// Dies that share a package (a way); divides `dies-per-channel`. Only `placement.order` depends on it.
    #[schemars(range(min = 1, max = 64))]
    pub dies_per_way: u32,
    /// Planes in each die.
    #[schemars(range(min = 1, max = 16))]
    pub planes_per_die: u32,
    /// Blocks in each plane.
    #[schemars(range(min = 4))]
    pub blocks_per_plane: u32,
    /// Pages in each block; no power of two is assumed.
    #[schemars(range(min = 2, max = 65_535))]
    pub pages_per_block: u32,
    /// Bytes of data in a page.
    #[schemars(extend("x-minimum" = "512 B", "x-maximum" = "16 MiB", "x-multiple-of" = "512 B", "x-expected" = "a multiple of 512 B from {min} to {max}"))]
    pub page_size: Bytes,
    /// Bytes of the spare area of a page.
    #[schemars(extend("x-maximum" = "16 MiB"))]
    pub spare_size: Bytes,
    /// The order in which the chip allows the pages of a block to be programmed.
    pub program_order: ProgramOrder,
    /// Channels whose chips work as one; divides `channels`. Together with `cluster-dies` it defines clustered pages
    /// and blocks.
    #[schemars(range(min = 1, max = 64))]
    pub cluster_channels: u32,
    /// Dies of a channel that work as one; divides `dies-per-channel`.
    #[schemars(range(min = 1, max = 64))]
    pub cluster_dies: u32,
    /// Which blocks the translation layer treats as one.
    pub superblock: Superblock,
    /// The piece of a page that has an entry of its own in the map; divides `page-size`. `"0 B"`: the whole page.
    #[schemars(extend("x-maximum" = "16 MiB", "x-multiple-of" = "512 B", "x-expected" = "a multiple of 512 B, at most {max}"))]
    pub mapping_unit: Bytes,
    /// Of so many dies, one holds parity over the others, in turn; divides the number of dies. 0: no parity. Needs
    /// `geometry.superblock = "drive"`.
    #[schemars(range(min = 0, max = 4_096))]
    pub parity_dies: u32,
    /// Pages that share a cell: 1 (all pages alike), 2, 3 or 4.
    #[schemars(range(min = 1, max = 4))]
    pub bits_per_cell: u32,
}

impl GeometryConfig {
    /// The same flash as the translation layer sees it: chips that work as one are one die with clustered pages (Kim
    /// 2011, section 4.1: pages of the same index on several chips are read and written together, and their blocks are
    /// erased together). Without clusters it is the geometry itself.
    ///
    /// ```
    /// # use flashwright_block::Bytes;
    /// # use flashwright_config::GeometryConfig;
    /// let chips = GeometryConfig {
    ///     channels: 2, dies_per_channel: 4, page_size: Bytes(2048), cluster_channels: 2, cluster_dies: 4,
    ///     ..GeometryConfig::default()
    /// };
    /// let seen = chips.clustered();
    /// assert_eq!((seen.channels, seen.dies_per_channel, seen.page_size), (1, 1, Bytes(16 << 10)));
    /// assert_eq!(seen.clustered(), seen);
    /// ```
    #[must_use]
    pub fn clustered(&self) -> Self {
        let chips = u64::from(self.cluster_channels) * u64::from(self.cluster_dies);
        let shared = gcd(self.dies_per_way, self.cluster_dies);
        Self {
            channels: self.channels / self.cluster_channels,
            dies_per_channel: self.dies_per_channel / self.cluster_dies,
            dies_per_way: self.dies_per_way / shared,
            page_size: Bytes(self.page_size.0 * chips),
            spare_size: Bytes(self.spare_size.0 * chips),
            cluster_channels: 1,
            cluster_dies: 1,
            ..self.clone()
        }
    }
}

/// The greatest common divisor of two numbers above 0.
fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl Default for GeometryConfig {
    fn default() -> Self {
        Self {
            channels: 4,
            dies_per_channel: 2,
            dies_per_way: 1,
            planes_per_die: 1,
            blocks_per_plane: 1024,
            pages_per_block: 128,
            page_size: Bytes(4096),
            spare_size: Bytes(128),
            program_order: ProgramOrder::Ascending,
            cluster_channels: 1,
            cluster_dies: 1,
            superblock: Superblock::Block,
            mapping_unit: Bytes(0),
            parity_dies: 0,
            bits_per_cell: 1,
        }
    }
}

/// `[capacity]`: the part of the flash that the host sees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct Capacity {
    /// Logical pages divided by physical pages.
    #[schemars(extend("exclusiveMinimum" = 0.0, "exclusiveMaximum" = 1.0, "x-expected" = "a number {range} (logical over physical size)"))]
    pub utilization: f64,
    /// The logical size; it overrides `utilization` unless it is `"0 B"`.
    pub logical: Bytes,
}

impl Default for Capacity {
    fn default() -> Self {
        Self { utilization: 0.9, logical: Bytes(0) }
    }
}

/// Which parts of the drive work in parallel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TimingModel {
    /// Only counts are simulated; no time passes.
    None,
    /// One flash operation at a time, as in FlashSim; requests wait in the driver.
    Serial,
    /// Channels and dies work in parallel.
    #[default]
    Parallel,
}

/// Which of its waiting operations a die takes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DieOrderName {
    /// In order of issue.
    #[default]
    Fifo,
    /// Reads of the host and of its mapping, then its writes, then cleaning and wear levelling.
    ByClass,
    /// Reads of the host and of its mapping; then everything else in order of issue, so that writes wait behind the cleaning that was issued
    /// before them.
    ReadsFirst,
}

/// What of the drive does no other work while it cleans (Yan et al., "Tiny-Tail Flash", FAST 2017).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CleaningBlocks {
    /// The dies that it works on: requests to others go on.
    #[default]
    Dies,
    /// The controller, as where one thread of firmware cleans too: while flash is cleaned, merged or wear-levelled, no request starts.
    /// Those that have started end.
    Controller,
}

/// Which waiting die gets a free bus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BusOrder {
    /// The die that has waited longest.
    #[default]
    FirstCome,
    /// A die that waits to send the command of a read or an erase, so that its array starts to work; then first come.
    CommandsFirst,
    /// A die that waits to transfer a page, so that it becomes free; then first come.
    DataFirst,
}

/// `[timing]`: durations and parallelism.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct TimingConfig {
    /// Which parts of the drive work in parallel.
    pub model: TimingModel,
    /// Array time of a page read.
    #[schemars(extend("x-maximum" = "10 s"))]
    pub read: Nanos,
    /// Array time of a page program, or of all pages that one command programs (`chips.programming`).
    #[schemars(extend("x-maximum" = "10 s"))]
    pub program: Nanos,
    /// Time of a block erase.
    #[schemars(extend("x-maximum" = "10 s"))]
    pub erase: Nanos,
    /// Array time of reading a spare area alone.
    #[schemars(extend("x-maximum" = "10 s"))]
    pub oob_read: Nanos,
    /// Bus cycles of a command, before its operation.
    #[schemars(extend("x-maximum" = "10 s"))]
    pub command: Nanos,
    /// Which of its waiting operations a die takes next; needs `timing.model = "parallel"`.
    pub die_order: DieOrderName,
    /// With a `timing.die-order` other than `"fifo"`: how many operations may pass the oldest one of a die before it goes.
    #[schemars(range(min = 1))]
    pub passed_max: u32,
    /// What does no other work while the drive cleans; `controller` needs `timing.model = "parallel"`.
    pub cleaning_blocks: CleaningBlocks,
    /// Which waiting die gets a free bus. Makes a difference only if commands take time.
    pub bus_order: BusOrder,
    /// Transfer rate of a channel, or `"none"` if transfers take no time or are included in the array times.
    pub bus_rate: Rate,
    /// Whether the spare area is transferred with the page.
    pub transfer_spare: bool,
    /// Whether an operation occupies its channel only during transfers (true) or for its whole duration (false).
    pub pipelined: bool,
    /// Time that the controller takes to answer a read of pages that hold no data. A read request that touches such a
    /// page lasts at least this long; if it also reads flash, the longer time counts. No die or channel is busy
    /// meanwhile.
    #[schemars(extend("x-maximum" = "10 s"))]
    pub unmapped_read: Nanos,
}

impl Default for TimingConfig {
    fn default() -> Self {
        Self {
            model: TimingModel::Parallel,
            read: Nanos(50_000),
            program: Nanos(600_000),
            erase: Nanos(3_000_000),
            oob_read: Nanos(50_000),
            command: Nanos(0),
            die_order: DieOrderName::Fifo,
            passed_max: 32,
            cleaning_blocks: CleaningBlocks::Dies,
            bus_order: BusOrder::FirstCome,
            bus_rate: Rate(Some(200_000_000)),
            transfer_spare: false,
            pipelined: true,
            unmapped_read: Nanos(0),
        }
    }
}

/// How a write to part of a page is handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PartialPages {
    /// Each touched page counts as fully written, as in the FlashSim family.
    #[default]
    Whole,
    /// A partly covered page that exists on flash is read before it is written.
    ReadModifyWrite,
}

/// `[host]`: the host's side: queue depth, schedulers and block layer between a workload and the drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct HostConfig {
    /// Requests that the drive accepts at once under `timing.model = "parallel"`; the others wait in the driver.
    /// `"auto"` is 32, or the depth of a closed loop if that is greater and there is no scheduler before the drive.
    pub queue_depth: QueueDepth,
    /// How a write to part of a page is handled.
    pub partial_pages: PartialPages,
    /// Scheduler and block layer.
    #[serde(flatten)]
    pub stack: StackSettings,
}

impl Default for HostConfig {
    fn default() -> Self {
        Self { queue_depth: QueueDepth::Auto, partial_pages: PartialPages::Whole, stack: StackSettings::default() }
    }
}
