//! Which of its waiting commands a die takes next.
//!
//! An order is a file here and a line in each list of [`Order`]. It states a preference and nothing else: what it sees may all be
//! taken.

mod by_class;
mod fifo;
mod reads_first;

use super::OpClass;
use by_class::ByClass;
use fifo::Fifo;
use flashwright_config::{DieOrderName, DriveConfig};
use reads_first::ReadsFirst;
use serde::{Deserialize, Serialize};
use std::hint::select_unpredictable;

/// Which queue of its die a command waits in, the one that goes first first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Group {
    /// Reads that the host waits for.
    #[default]
    Reads = 0,
    /// Programs of host data, and of the map that a request waits for.
    Writes = 1,
    /// Cleaning and wear levelling.
    Rest = 2,
}

pub(super) const GROUPS: usize = 3;

impl Group {
    #[inline(always)]
    pub fn of_class(class: OpClass) -> Self {
        match class {
            OpClass::HostRead | OpClass::Mapping => Self::Reads,
            OpClass::HostWrite => Self::Writes,
            OpClass::Cleaning | OpClass::WearLevelling => Self::Rest,
        }
    }
}

/// Of each group, the sequence number of the oldest command that a die may take.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Heads([u64; GROUPS]);

impl Heads {
    /// Stands for a group without commands.
    pub const NOTHING: u64 = u64::MAX;
    pub const EMPTY: Self = Self([Self::NOTHING; GROUPS]);

    #[inline(always)]
    pub fn set(&mut self, group: Group, sequence: u64) {
        self.0[group as usize] = sequence;
    }

    /// Whether a group has a command.
    #[inline(always)]
    pub fn has(&self, group: Group) -> bool {
        self.0[group as usize] != Self::NOTHING
    }

    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        let [reads, writes, rest] = self.0;
        reads & writes & rest == Self::NOTHING
    }

    /// The group of the oldest command.
    #[inline(always)]
    pub fn oldest(&self) -> Option<Group> {
        let [reads, writes, rest] = self.0;
        let first = select_unpredictable(reads < writes, Group::Reads, Group::Writes);
        let oldest = select_unpredictable(rest < reads.min(writes), Group::Rest, first);
        self.has(oldest).then_some(oldest)
    }

    /// The first group with a command.
    #[inline(always)]
    pub fn first_group(&self) -> Option<Group> {
        // Without a branch: which groups have commands is a coin toss.
        let behind_reads = select_unpredictable(self.has(Group::Writes), Group::Writes, Group::Rest);
        let first = select_unpredictable(self.has(Group::Reads), Group::Reads, behind_reads);
        (!self.is_empty()).then_some(first)
    }
}

/// Chooses what a die takes next.
pub(super) trait DieOrder {
    /// The group whose oldest command the die takes; none if nothing waits.
    fn next(&self, die: usize, heads: &Heads) -> Option<Group>;

    /// The die takes the oldest command of `group`.
    fn taken(&mut self, _die: usize, _group: Group, _heads: &Heads) {}
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
    pub fn next(&self, die: usize, heads: &Heads) -> Option<Group> {
        match self {
            Self::Fifo(order) => order.next(die, heads),
            Self::ByClass(order) => order.next(die, heads),
            Self::ReadsFirst(order) => order.next(die, heads),
        }
    }

    #[inline(always)]
    pub fn taken(&mut self, die: usize, group: Group, heads: &Heads) {
        match self {
            Self::Fifo(order) => order.taken(die, group, heads),
            Self::ByClass(order) => order.taken(die, group, heads),
            Self::ReadsFirst(order) => order.taken(die, group, heads),
        }
    }
}
