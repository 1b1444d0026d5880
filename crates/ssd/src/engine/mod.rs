//! When things happen. The translation layer decides what; an engine lays the operations out in time.

mod parallel;

pub(crate) use parallel::Parallel;

use flashwright_block::Nanos;
use serde::{Deserialize, Serialize};

/// How long each part of the flash was busy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BusyTimes {
    /// Time for which each die held an operation, channel by channel.
    pub dies: Vec<Nanos>,
    /// Time for which each channel was held.
    pub channels: Vec<Nanos>,
}
