//! The host's side of a drive: the block layer and its I/O schedulers.
//!
//! Each scheduler is a filter: a block device around a block device. It queues, merges, cuts and orders the host's
//! requests, and dispatches them when there is room below. Nothing here knows whether time is virtual, so the same code
//! runs before a simulated drive and before a real one.
//!
//! ```text
//!  host ─► Filter ─► Filter ─► … ─► drive          "pasa+pai": PASA on top, PAI below it
//!           │ Pool: queued requests, merging, cutting, order of overlapping ones
//!           └ Scheduler: which request goes next, and when
//! ```

use flashwright_block::registry;

mod cargo;
mod cut;
mod directions;
mod figures;
mod filter;
mod habits;
mod lists;
mod pool;
mod profile;
pub mod schedulers;
mod settings;
mod stack;
mod tables;

pub use cut::{CutRule, Unit, WithoutBuffer};
pub use figures::{DispatchedCounts, LayerFigures, Waits};
pub use filter::Filter;
pub use lists::{List, Lists, SortTree};
pub use pool::{Id, Pool, Queued};
pub use profile::{Finding, Profile};
pub use schedulers::{Choice, Grew, Merges, Scheduler, SchedulerContext, SchedulerName, SchedulerSettings, Splitting};
pub use settings::{BlockLayerSettings, Chain, StackSettings};
pub use stack::{Stack, StackError};
