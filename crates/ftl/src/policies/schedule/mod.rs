//! When cleaning works. A schedule is one file here and one variant in the list below.
//!
//! Cleaning is work in steps ([`crate::Ftl::clean`]): a page copied, a block erased. A schedule says how many steps may
//! be made at a moment; what they are is the cleaner's business. A plane that is short of room for a write is cleaned
//! whatever the schedule says, since the write can't go on before.

mod foreground;

pub use foreground::Foreground;
use serde::{Deserialize, Serialize};

/// What happens when a schedule is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// A page is about to be written.
    Write,
    /// The drive has nothing to do.
    Idle,
}

/// What a schedule goes by.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// What happens.
    pub occasion: Occasion,
    /// Free blocks of the plane.
    pub free_blocks: usize,
    /// While the plane has no more free blocks than this, it opens none for a write.
    pub free_blocks_min: usize,
}

/// Says how many steps of cleaning may be made.
pub trait SchedulePolicy {
    /// Steps that may be made in a plane now: pages copied, translation pages written and blocks erased. `u32::MAX` for
    /// a victim as a whole.
    fn steps(&mut self, moment: Moment) -> u32;
}

/// The schedule at work.
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
