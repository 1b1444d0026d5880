//! Timing engines. The translation layer decides what happens; an engine decides when.
//!
//! - [`Parallel`]: channels and dies work side by side (`timing.model = "parallel"`).
//! - [`Ordered`]: the same, for dies that choose what they do next (`timing.die-order`, suspension).
//! - [`Chips`]: the same, for chips with commands beyond a page at a time (`[chips]`, superblocks), for errors and loss of power.
//! - [`Serial`]: one operation at a time (`timing.model = "serial"`).
//!
//! Under `timing.model = "none"` no time passes, so there is no engine.
//!
//! [`OpClass`] tells on whose behalf an operation runs. An [`Observer`] receives the start and end of each operation; the default,
//! `()`, costs nothing.
//!
//! ```
//! use flashwright_block::Bytes;
//! use flashwright_config::{BusOrder, Times};
//! use flashwright_ftl::{Cause, FlashOp, OpKind};
//! use flashwright_nand::{Geometry, Ppn};
//! use flashwright_ssd::engine::{EndedOp, OpClass, Parallel};
//!
//! // One die: 50 ns to read, 200 ns to program, 700 ns to erase; 100 ns to transfer a page.
//! let geometry = Geometry::new(1, 1, 1, 4, 4, Bytes(4096));
//! let times = Times {
//!     command: 0,
//!     pipelined: true,
//!     bus_order: BusOrder::FirstCome,
//!     array: [50, 200, 700, 50],
//!     transfer: [100, 100, 0, 10],
//! };
//! let mut engine = Parallel::new(&geometry, times, 0, Vec::<EndedOp>::new());
//! let copies = FlashOp { ppn: Ppn(4), kind: OpKind::Program, cause: Cause::Gc, after: 0, copies: 2 };
//! let request = engine.issue(1000, 0, &[copies], &geometry);
//! // A copy reads (50 + 100) and programs (100 + 200).
//! assert_eq!(engine.next_completion(u64::MAX), Some((request, 1900)));
//! let ends: Vec<u64> = engine.observer.iter().map(|op| op.end.0).collect();
//! assert_eq!(ends, [1150, 1450, 1600, 1900]);
//! assert!(engine.observer.iter().all(|op| op.class == OpClass::Cleaning));
//! ```

mod chips;
mod class;
mod earliest;
mod erase_dependencies;
mod observer;
mod order;
mod ordered;
mod parallel;
mod serial;

pub(crate) use chips::errors_of;
pub use chips::{Awaits, ChipFigures, Chips, Superseded, Unfinished};
pub use class::OpClass;
pub use observer::{EndedOp, Observer};
pub use ordered::Ordered;
pub use parallel::Parallel;
pub use serial::{NO_REQUEST, Serial, Work};

use crate::power_loss::{Ended, Ends};
use flashwright_block::{Nanos, Seed};
use flashwright_config::{DieOrderName, DriveConfig};
use flashwright_ftl::{Flash, FlashOp, SlcCacheKind};
use flashwright_nand::{BlockId, ErrorCounts, Geometry, Ppn};
use serde::{Deserialize, Serialize};

/// Stands for no command, request or page.
const NONE: u32 = u32::MAX;

/// The observer of operations in a simulated drive.
pub(crate) type ObserverOfDrive = ();

/// The engine of a simulated drive whose channels and dies work side by side: the fast one where it will do.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(clippy::large_enum_variant)] // one per drive
pub(crate) enum ParallelOfDrive {
    Plain(Parallel<ObserverOfDrive>),
    Ordered(Box<Ordered>),
    Chips(Box<Chips<Ends>>),
}

impl ParallelOfDrive {
    pub fn new(config: &DriveConfig, geometry: &Geometry, latency: u64, seed: Seed, observer: ObserverOfDrive) -> Self {
        let has_slc = config.slc.cache != SlcCacheKind::None;
        let loses_power = config.recovery.can_mount();
        if config.commands_chips() || config.timing.die_order != DieOrderName::Fifo || has_slc || loses_power {
            if Ordered::suffices(config) {
                return Self::Ordered(Box::new(Ordered::new(config, latency)));
            }
            return Self::Chips(Box::new(Chips::new(config, latency, seed, Ends::new(loses_power))));
        }
        Self::Plain(Parallel::new(geometry, config.times(), latency, observer))
    }
    /// Whether it wants copies logged one by one.
    pub fn wants_copies_apart(&self) -> bool {
        !matches!(self, Self::Plain(_))
    }
    /// Issues operations of the log of `flash`. See [`Parallel::issue`], and [`Chips::issue`] for who awaits them.
    #[inline(always)]
    pub fn issue(&mut self, now: u64, least: u64, ops: &[FlashOp], awaits: Awaits, flash: &Flash) -> u32 {
        match self {
            Self::Plain(engine) => engine.issue(now, least, ops, flash.geometry()),
            Self::Ordered(engine) => engine.issue(now, least, ops, flash.geometry()),
            Self::Chips(engine) => engine.issue(now, least, ops, awaits, flash),
        }
    }
    /// See [`Parallel::serve_alone`].
    #[inline(always)]
    pub fn serve_alone(&mut self, now: u64, least: u64, ops: &[FlashOp], geometry: &Geometry) -> Option<u64> {
        match self {
            Self::Plain(engine) => engine.serve_alone(now, least, ops, geometry),
            Self::Ordered(_) | Self::Chips(_) => None,
        }
    }
    /// Issues operations of a drive that may lose power. See [`Chips::issue_superseding`].
    pub fn issue_superseding(
        &mut self,
        now: u64,
        least: u64,
        ops: &[FlashOp],
        superseded: &[Superseded],
        awaits: Awaits,
        flash: &Flash,
    ) -> u32 {
        match self {
            Self::Plain(_) | Self::Ordered(_) => unreachable!("a drive that may lose power has the engine of chips"),
            Self::Chips(engine) => engine.issue_superseding(now, least, ops, superseded, awaits, flash),
        }
    }
    /// Programs and erases that have ended since the last call.
    pub fn take_ends(&mut self) -> Vec<Ended> {
        match self {
            Self::Plain(_) | Self::Ordered(_) => Vec::new(),
            Self::Chips(engine) => engine.observer.take(),
        }
    }
    /// What a loss of power at `at`, up to which the engine has run, tears.
    pub fn unfinished(&self, at: u64) -> Vec<Unfinished> {
        match self {
            Self::Plain(_) | Self::Ordered(_) => Vec::new(),
            Self::Chips(engine) => engine.unfinished(at),
        }
    }
    /// Dies that a block lies on.
    pub fn dies_of_block(&self) -> u32 {
        match self {
            Self::Plain(_) | Self::Ordered(_) => 1,
            Self::Chips(engine) => engine.dies_of_block(),
        }
    }
    /// See [`Chips::close`].
    pub fn close(&mut self, now: u64, next: Ppn, geometry: &Geometry) {
        if let Self::Chips(engine) = self {
            engine.close(now, next, geometry);
        }
    }
    /// A trim of so many bytes comes: answers how long it takes at least, in nanoseconds.
    pub fn clear_map(&mut self, now: u64, bytes: u64) -> u64 {
        match self {
            Self::Plain(_) => 0,
            Self::Ordered(engine) => engine.clear_map(now, bytes),
            Self::Chips(engine) => engine.clear_map(now, bytes),
        }
    }
    /// See [`Parallel::next_completion`].
    #[inline(always)]
    pub fn next_completion(&mut self, until: u64) -> Option<(u32, u64)> {
        match self {
            Self::Plain(engine) => engine.next_completion(until),
            Self::Ordered(engine) => engine.next_completion(until),
            Self::Chips(engine) => engine.next_completion(until),
        }
    }
    /// The time of the next event: nothing completes before it.
    pub fn next_event(&self) -> u64 {
        match self {
            Self::Plain(engine) => engine.next_event(),
            Self::Ordered(engine) => engine.next_event(),
            Self::Chips(engine) => engine.next_event(),
        }
    }
    /// See [`Parallel::is_idle`].
    pub fn is_idle(&self, die: usize, at: u64) -> bool {
        match self {
            Self::Plain(engine) => engine.is_idle(die, at),
            Self::Ordered(engine) => engine.is_idle(die),
            Self::Chips(engine) => engine.is_idle(die),
        }
    }
    /// See [`Parallel::busy`].
    pub fn busy(&self) -> BusyTimes {
        match self {
            Self::Plain(engine) => engine.busy(),
            Self::Ordered(engine) => engine.busy(),
            Self::Chips(engine) => engine.busy(),
        }
    }
    /// Measuring begins at `now`: the figures of the chips are set to zero, and their data get their age.
    pub fn begin_measuring(&mut self, now: u64, flash: &Flash) {
        match self {
            Self::Plain(_) => {}
            Self::Ordered(engine) => engine.reset_figures(),
            Self::Chips(engine) => {
                engine.reset_figures();
                engine.age(now, flash);
            }
        }
    }
    /// What reads met, if errors are modelled.
    pub fn error_counts(&self) -> Option<ErrorCounts> {
        match self {
            Self::Plain(_) | Self::Ordered(_) => None,
            Self::Chips(engine) => engine.error_counts(),
        }
    }
    /// A block whose data should be written again, if there is one.
    pub fn next_to_rewrite(&mut self) -> Option<BlockId> {
        match self {
            Self::Plain(_) | Self::Ordered(_) => None,
            Self::Chips(engine) => engine.next_to_rewrite(),
        }
    }
    /// What the chips did, if the engine knows.
    pub fn chip_figures(&self) -> Option<ChipFigures> {
        match self {
            Self::Plain(_) => None,
            Self::Ordered(engine) => Some(engine.figures()),
            Self::Chips(engine) => Some(engine.figures()),
        }
    }
}

/// How long each part of the flash was busy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BusyTimes {
    /// Time for which each die held an operation, channel by channel.
    pub dies: Vec<Nanos>,
    /// Time for which each channel was held.
    pub channels: Vec<Nanos>,
}
