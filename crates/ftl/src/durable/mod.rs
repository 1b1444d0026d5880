//! What a drive needs to come back after a loss of power.
//!
//! The tables of a translation layer are in RAM, and RAM forgets. What is left is on the chips: the pages, and in their spare
//! areas whose they are and when they were written. [`Flash`](crate::Flash) describes the drive as decided: it is ahead of the
//! chips, which take their time. [`Medium`] is what the chips hold.
//!
//! ```text
//!   scheme ─► Flash ─► changes, in the order decided ─► the engine says when each is done ─► Medium
//!                                                                                              │ power fails
//!   scheme ◄─ mount ◄─ Scan: the newest copy of every page ◄─ spare areas, journal ◄───────────┘
//! ```
//!
//! - **Spare areas.** Every program gets the next *sequence number*. A copy keeps the *version* of its source, which is the sequence
//!   number under which its content was first programmed. So of two copies with different versions the higher is newer, and those
//!   with the same version are equal.
//! - **Trims** leave no page behind, so they have a journal in blocks set apart ([`Condition::System`]): a page of records at every
//!   flush, and before any erase, because an erased page can no longer outrank an older copy elsewhere. Once the journal has filled
//!   its blocks, one snapshot of all trimmed pages replaces it.
//! - **Checkpoints** say where every page was at some sequence number, so that a mount need not read the spare areas of what was
//!   there before. They lie in blocks set apart as well.
//! - **A [`Mirror`]** of the medium is told of each change, so that a file can outlive the process.
//! - **What was cut short** is torn: a page whose program did not end can't be read, and neither can a block whose erase did not end.
//!
//! [`Condition::System`]: flashwright_nand::Condition::System

mod adopt;
mod checkpoint;
mod consolidate;
mod journal;
mod medium;
mod mirror;
mod scan;
mod settings;
mod tracker;

pub use adopt::MountError;
pub(crate) use adopt::adopt_pages;
pub(crate) use checkpoint::{BlockThen, Checkpoints, Image};
pub(crate) use consolidate::consolidate;
pub(crate) use journal::Journal;
pub use journal::Record;
pub use medium::{Medium, MediumBlock, PageState, Programmed};
pub use mirror::Mirror;
pub use scan::{Found, Newest, Scan};
pub use settings::{MountBy, RecoverySettings};
pub(crate) use tracker::Tracker;
pub use tracker::{Change, Changed};

use flashwright_nand::Lpn;

/// The owner of a page of the journal or of a checkpoint, as its spare area names it.
pub(crate) const SYSTEM: Lpn = Lpn(u32::MAX - 2);

/// The spare area of a programmed page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpareArea {
    /// The logical page that it holds, or beyond the logical space a page of the scheme's own tables.
    pub owner: Lpn,
    /// The number of its program.
    pub sequence: u64,
    /// The number of the program that first wrote its content.
    pub version: u64,
}
