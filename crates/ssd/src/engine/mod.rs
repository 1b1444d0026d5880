//! Timing engines. The translation layer decides what happens; an engine decides when.
//!
//! - [`Parallel`]: channels and dies work side by side (`timing.model = "parallel"`).
//! - [`Serial`]: one operation at a time (`timing.model = "serial"`).
//!
//! Under `timing.model = "none"` no time passes, so there is no engine.
//!
//! Three seams, each with a default that costs nothing:
//!
//! - [`OpClass`]: on whose behalf an operation runs.
//! - [`DieOrder`]: which operation a die takes next. [`Fifo`] is the default.
//! - [`Observer`]: receives the start and end of each operation. `()` is the default.
//!
//! ```
//! use flashwright_block::Bytes;
//! use flashwright_config::{BusOrder, Times};
//! use flashwright_ftl::{Cause, FlashOp, OpKind};
//! use flashwright_nand::{Geometry, Ppn};
//! use flashwright_ssd::engine::{EndedOp, Fifo, OpClass, Parallel};
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
//! let mut engine = Parallel::new(&geometry, times, 0, Fifo, Vec::<EndedOp>::new());
//! let copies = FlashOp { ppn: Ppn(4), kind: OpKind::Program, cause: Cause::Gc, after: 0, copies: 2 };
//! let request = engine.issue(1000, 0, &[copies], &geometry);
//! // A copy reads (50 + 100) and programs (100 + 200).
//! assert_eq!(engine.next_completion(u64::MAX), Some((request, 1900)));
//! let ends: Vec<u64> = engine.observer.iter().map(|op| op.end.0).collect();
//! assert_eq!(ends, [1150, 1450, 1600, 1900]);
//! assert!(engine.observer.iter().all(|op| op.class == OpClass::Cleaning));
//! ```

mod class;
mod observer;
mod order;
mod parallel;
mod serial;

pub use class::OpClass;
pub use observer::{EndedOp, Observer};
pub use order::{ByClass, Candidate, Choice, DieOrder, Fifo};
pub use parallel::{Parallel, Ready};
pub use serial::{NO_REQUEST, Serial, Work};

use flashwright_block::Nanos;
use flashwright_config::{DieOrderName, DriveConfig};
use serde::{Deserialize, Serialize};

/// The order in which the dies of a simulated drive take operations, as `timing.die-order` says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum OrderOfDrive {
    Fifo(Fifo),
    ByClass(ByClass),
}

impl OrderOfDrive {
    pub fn new(config: &DriveConfig) -> Self {
        match config.timing.die_order {
            DieOrderName::Fifo => Self::Fifo(Fifo),
            DieOrderName::ByClass => {
                Self::ByClass(ByClass::new(config.timing.passed_max, config.layout().dies() as usize))
            }
        }
    }
}

impl DieOrder for OrderOfDrive {
    #[inline(always)]
    fn reorders(&self) -> bool {
        matches!(self, Self::ByClass(_))
    }
    #[inline]
    fn next(&mut self, die: usize, ready: &Ready<'_>) -> Choice {
        match self {
            Self::Fifo(order) => order.next(die, ready),
            Self::ByClass(order) => order.next(die, ready),
        }
    }
}

/// The observer of operations in a simulated drive.
pub(crate) type ObserverOfDrive = ();

/// How long each part of the flash was busy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BusyTimes {
    /// Time for which each die held an operation, channel by channel.
    pub dies: Vec<Nanos>,
    /// Time for which each channel was held.
    pub channels: Vec<Nanos>,
}
