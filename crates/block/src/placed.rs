//! Devices whose host says by handle which data belong together: flexible data placement (NVM Express Base 2.1, section 8.1.10).
//!
//! ```text
//!   Request::stream ─► group and handle ─► its reclaim unit, which fills up and is followed by another
//! ```

use crate::{Bytes, IoError, Nanos};
use serde::{Deserialize, Serialize};

/// How a placement identifier, and so [`crate::Request::stream`], names a reclaim group and a handle: the highest bits are the group, as
/// few as number all groups, and the others the handle. With one group the handle is all of it.
///
/// ```
/// # use flashwright_block::GroupBits;
/// assert_eq!(GroupBits::of(1).split(300), (0, 300));
/// let of_three = GroupBits::of(3);
/// assert_eq!((of_three.count(), of_three.join(2, 5), of_three.split(0x8005)), (2, 0x8005, (2, 5)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupBits(u8);

impl GroupBits {
    /// Those of so many groups, at least 1.
    #[inline]
    #[must_use]
    pub fn of(groups: u16) -> Self {
        let last = groups.saturating_sub(1);
        Self((u16::BITS - last.leading_zeros()) as u8)
    }

    /// How many there are (RGIF).
    #[inline]
    #[must_use]
    pub fn count(self) -> u8 {
        self.0
    }

    /// The identifier of a handle of a group, which are few enough.
    #[inline]
    #[must_use]
    pub fn join(self, group: u16, handle: u16) -> u16 {
        (u32::from(group) << (u16::BITS - u32::from(self.0))) as u16 | handle
    }

    /// The group and the handle that an identifier names; there need not be such.
    #[inline]
    #[must_use]
    pub fn split(self, identifier: u16) -> (u16, u16) {
        let below = u16::BITS - u32::from(self.0);
        let group = u32::from(identifier) >> below;
        (group as u16, (u32::from(identifier) - (group << below)) as u16)
    }
}

/// What a device offers to place data by. It stays the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Handles, which every group has.
    pub handles: u16,
    /// Reclaim groups, at least 1: parts of the device, with units of their own.
    pub groups: u16,
    /// Whether pages that the device moves stay in units of their handle; otherwise those of all handles share units.
    pub stays_isolated: bool,
    /// A reclaim unit.
    pub unit: Bytes,
}

impl Placement {
    /// How [`crate::Request::stream`] names a group and a handle.
    #[inline]
    #[must_use]
    pub fn group_bits(&self) -> GroupBits {
        GroupBits::of(self.groups)
    }
}

/// Data that the device moved to another reclaim unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// When, on the device's clock; the moment is that of the request whose completion was seen next.
    pub at: Nanos,
    /// The handle that the host had written them with.
    pub handle: u16,
    /// The group, which they do not leave.
    pub group: u16,
    /// The first sector of the first page.
    pub first_sector: u64,
    /// Sectors of all pages; they need not follow each other.
    pub sectors: u32,
}

/// A device that places data by handle.
pub trait Placed {
    /// What it offers.
    fn placement(&mut self) -> Placement;

    /// What can still be written to the reclaim unit that a handle of a group writes to, both as [`crate::Request::stream`] names them: a whole
    /// unit if the next write begins one.
    ///
    /// # Errors
    /// [`IoError`] if the device has no power.
    fn room(&mut self, stream: u16) -> Result<Bytes, IoError>;

    /// Has the next write with a handle of a group begin another unit. Returns the room of the unit that is left; none if nothing was written
    /// to it, or if there is no erased unit to go on with: it stays.
    ///
    /// # Errors
    /// [`IoError`] if the device has no power.
    fn renew(&mut self, stream: u16) -> Result<Option<Bytes>, IoError>;

    /// Chooses the handles, a bit for each, of which [`Placed::take_moved`] tells. At first it is none.
    fn watch_moves(&mut self, handles: u64);

    /// Takes what was moved since it was last asked: the latest 63, in order.
    fn take_moved(&mut self) -> Vec<Moved>;
}

/// Moves that are kept until somebody takes them.
pub const MOVES_MAX: usize = 63;
