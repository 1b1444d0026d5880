//! Which of its waiting commands a die takes next.
//!
//! An order is a file here and a line in each list of [`Order`]. It states a preference and nothing else: what it sees may all be
//! taken.

mod by_class;
mod fifo;
mod reads_first;

use super::command::Group;
use super::die::Waiting;
use by_class::ByClass;
use fifo::Fifo;
use flashwright_config::{DieOrderName, DriveConfig};
use reads_first::ReadsFirst;
use serde::{Deserialize, Serialize};

/// Chooses what a die takes next.
pub(super) trait DieOrder {
    /// The group whose oldest command the die takes; none if nothing waits.
    fn next(&self, die: usize, waiting: &Waiting) -> Option<Group>;

    /// The die takes the oldest command of `group`.
    fn taken(&mut self, _die: usize, _group: Group, _waiting: &Waiting) {}
}

/// The order of a drive.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Order {
    Fifo(Fifo),
    ByClass(ByClass),
    ReadsFirst(ReadsFirst),
}

impl Order {
    pub fn new(config: &DriveConfig, dies: usize) -> Self {
        match config.timing.die_order {
            DieOrderName::Fifo => Self::Fifo(Fifo),
            DieOrderName::ByClass => Self::ByClass(ByClass::new(config.timing.passed_max, dies)),
            DieOrderName::ReadsFirst => Self::ReadsFirst(ReadsFirst::new(config.timing.passed_max, dies)),
        }
    }

    #[inline(always)]
    pub fn next(&self, die: usize, waiting: &Waiting) -> Option<Group> {
        match self {
            Self::Fifo(order) => order.next(die, waiting),
            Self::ByClass(order) => order.next(die, waiting),
            Self::ReadsFirst(order) => order.next(die, waiting),
        }
    }

    #[inline(always)]
    pub fn taken(&mut self, die: usize, group: Group, waiting: &Waiting) {
        match self {
            Self::Fifo(order) => order.taken(die, group, waiting),
            Self::ByClass(order) => order.taken(die, group, waiting),
            Self::ReadsFirst(order) => order.taken(die, group, waiting),
        }
    }
}
