//! Schedules: when cleaning runs. A schedule is one file here and one variant in the list below.
//!
//! Cleaning is work in steps ([`crate::Ftl::clean`]): a page copied, a block erased. A schedule decides how many steps
//! may be made at a moment; the cleaner decides which. A plane that is short of room for a write is cleaned whatever
//! the schedule decides, because the write can't continue otherwise.

mod foreground;

pub use foreground::Foreground;
use serde::{Deserialize, Serialize};

/// The occasion on which a schedule is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// A page is about to be written.
    Write,
    /// The drive has nothing to do.
    Idle,
}

/// The state that a schedule bases its decision on.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The occasion.
    pub occasion: Occasion,
    /// Free blocks of the plane.
    pub free_blocks: usize,
    /// The plane opens a block for a write only while it has more free blocks than this.
    pub free_blocks_min: usize,
}

/// Decides how many steps of cleaning may be made.
pub trait SchedulePolicy {
    /// Steps that may be made in a plane now: pages copied, translation pages written and blocks erased. `u32::MAX` for
    /// a whole victim.
    fn steps(&mut self, moment: Moment) -> u32;
}

/// The schedule in use.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Schedule {
    /// See [`Foreground`].
    Foreground(Foreground),
}

impl Schedule {
    /// See [`SchedulePolicy::steps`].
    #[inline]
    pub fn steps(&mut self, moment: Moment) -> u32 {
        match self {
            Self::Foreground(policy) => policy.steps(moment),
        }
    }
}
