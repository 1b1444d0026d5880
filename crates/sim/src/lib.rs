//! A run: a workload played on a drive, measured, saved and resumed; and its replay on any block device.
//!
//! The player sees the drive only as a block device; all figures other than latencies come from the drive's counters.

mod conditioning;
pub mod crash;
mod energy;
mod image;
mod latency;
mod machine;
mod measure;
mod options;
mod player;
mod precondition;
mod proxied;
mod replay;
mod report;
mod settle;
mod simulation;
mod source;
mod tenants;
mod warnings;

pub use conditioning::{Conditioning, Search};
pub use image::ImageError;
pub use latency::{Latency, LatencySummary};
pub use measure::{Closeup, FlashWindow, RequestColumns, RequestWindow, Snapshot, Snapshots, Window, WindowRow};
pub use options::{OptionsError, RunOptions, SeedOption, schema_of_options};
pub use player::{Gate, Pace, PlayError, Player, Step};
pub use precondition::{Precondition, Preconditioning, is_steady};
pub use proxied::Proxied;
pub use replay::{Replay, ReplayProgress, ReplaySettings, ScanError, Scanned, Watch, scan};
pub use report::*;
pub use settle::{
    CONFIDENCE, DriveFacts, ERASES_PER_BLOCK_MIN, HALF_WIDTH_MAX, History, Settled, TOLERANCE, Totals, Verdict,
};
pub use simulation::{LiveRun, Phase, Preconditioned, RunError, RunProgress, RunSettings, Simulation, mounted_json};
pub use source::{OpenError, Source, SourceSpec, TraceSpec};
pub use tenants::{NamespaceSize, Tenant, TenantSpec, TenantsSpec};
pub use warnings::{Origin, Warning};
