//! Reclaim units of handles, as the interface of a drive tells of them and changes them: the open blocks of `placement.policy = "fdp"`.
//!
//! A handle has one unit at a time, so this needs a drive of one plane: `geometry.superblock = "drive"`. In several planes a handle
//! has a block open in each.

use crate::plane::{Frontier, Plane};
use crate::policies::placement::{Fdp, Placement};
use crate::{Flash, Scheme};
use flashwright_nand::Ppn;

/// The open unit of a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// The next write begins one.
    Fresh,
    /// Pages that still fit.
    Open(u32),
}

impl Scheme {
    /// The plane and the policy of a drive that places by handle.
    fn by_handle(&mut self) -> Option<(&mut Plane, &mut Fdp)> {
        let (planes, placement) = match self {
            Self::Page(scheme) => scheme.planes_and_placement(),
            Self::Dftl(scheme) => scheme.planes_and_placement(),
            _ => return None,
        };
        match (&mut planes.all[..], placement) {
            ([plane], Placement::Fdp(fdp)) if plane.slc.is_none() => Some((plane, fdp)),
            _ => None,
        }
    }

    /// The policy of a drive whose handles have one unit each; none of any other drive.
    pub fn handles(&mut self) -> Option<&mut Fdp> {
        self.by_handle().map(|(_, fdp)| fdp)
    }

    /// The unit of a handle. None if there are no handles with a unit each.
    pub fn unit(&mut self, handle: u8) -> Option<Unit> {
        let (plane, _) = self.by_handle()?;
        let room = plane.frontiers.get(usize::from(handle))?.room();
        Some(if room == 0 { Unit::Fresh } else { Unit::Open(room) })
    }

    /// Closes the unit of a handle, so that its next page begins another. Returns the first page that it had room for, and how many; none
    /// if there was nothing in it, or if the drive has no erased block to go on with.
    pub fn close_unit(&mut self, handle: u8, flash: &mut Flash) -> Option<(Ppn, u32)> {
        let (plane, _) = self.by_handle()?;
        let frontier = plane.frontiers.get_mut(usize::from(handle))?;
        let (next, room) = (Ppn(frontier.next), frontier.room());
        let block = flash.geometry().block_of(next);
        if room == 0 || next == flash.geometry().first_page(block) || plane.pool.is_empty() {
            return None;
        }
        *frontier = Frontier::default();
        plane.seal(usize::from(handle), block, flash);
        Some((next, room))
    }
}
