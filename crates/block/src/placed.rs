//! Devices whose host says by handle which data belong together: flexible data placement (NVM Express Base 2.1, section 8.1.10).
//!
//! ```text
//!   Request::stream ─► handle ─► its reclaim unit, which fills up and is followed by another
//! ```

use crate::{Bytes, IoError, Nanos};

/// What a device offers to place data by. It stays the same. There is one reclaim group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Handles: [`crate::Request::stream`] below this number names one.
    pub handles: u16,
    /// Whether pages that the device moves stay in units of their handle; otherwise those of all handles share units.
    pub stays_isolated: bool,
    /// A reclaim unit.
    pub unit: Bytes,
}

/// Data that the device moved to another reclaim unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// When, on the device's clock; the moment is that of the request whose completion was seen next.
    pub at: Nanos,
    /// The handle that the host had written them with.
    pub handle: u16,
    /// The first sector of the first page.
    pub first_sector: u64,
    /// Sectors of all pages; they need not follow each other.
    pub sectors: u32,
}

/// A device that places data by handle.
pub trait Placed {
    /// What it offers.
    fn placement(&mut self) -> Placement;

    /// What can still be written to the reclaim unit that a handle writes to: a whole unit if the next write begins one.
    ///
    /// # Errors
    /// [`IoError`] if the device has no power.
    fn room(&mut self, handle: u16) -> Result<Bytes, IoError>;

    /// Has the next write with a handle begin another unit. Returns the room of the unit that is left; none if nothing was written
    /// to it, or if there is no erased unit to go on with: it stays.
    ///
    /// # Errors
    /// [`IoError`] if the device has no power.
    fn renew(&mut self, handle: u16) -> Result<Option<Bytes>, IoError>;

    /// Chooses the handles, a bit for each, of which [`Placed::take_moved`] tells. At first it is none.
    fn watch_moves(&mut self, handles: u64);

    /// Takes what was moved since it was last asked: the latest 63, in order.
    fn take_moved(&mut self) -> Vec<Moved>;
}

/// Moves that are kept until somebody takes them.
pub const MOVES_MAX: usize = 63;
