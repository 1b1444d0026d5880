//! Reclaim units of handles, as the interface of a drive tells of them and changes them: the open blocks of `placement.policy = "fdp"`.
//!
//! A handle has one unit of each reclaim group at a time, so this needs groups of one plane: `geometry.superblock = "drive"`. In several planes
//! a handle has a block open in each.

use crate::plane::{Frontier, Plane};
use crate::planes::Planes;
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
    /// The planes and the policy of a drive that places by handle, with a plane for each group.
    fn by_handle(&mut self) -> Option<(&mut Planes, &mut Fdp)> {
        let (planes, placement) = match self {
            Self::Page(scheme) => scheme.planes_and_placement(),
            Self::Dftl(scheme) => scheme.planes_and_placement(),
            _ => return None,
        };
        let has_slc = planes.all[0].slc.is_some();
        match placement {
            Placement::Fdp(fdp) if planes.all.len() == usize::from(fdp.group_count()) && !has_slc => {
                Some((planes, fdp))
            }
            _ => None,
        }
    }

    /// The plane and the frontier of the group and the handle that a stream names.
    fn place_of(&mut self, stream: u16) -> Option<(&mut Plane, usize)> {
        let (planes, fdp) = self.by_handle()?;
        let (group, handle) = fdp.named().exactly(stream.into())?;
        let at = planes.order[usize::from(group)] as usize;
        Some((&mut planes.all[at], handle.into()))
    }

    /// The policy of a drive whose handles have one unit each in a group; none of any other drive.
    pub fn handles(&mut self) -> Option<&mut Fdp> {
        self.by_handle().map(|(_, fdp)| fdp)
    }

    /// The unit of the handle and the group that a stream names. None if there are none such, or none with a unit each.
    pub fn unit(&mut self, stream: u16) -> Option<Unit> {
        let (plane, handle) = self.place_of(stream)?;
        let room = plane.frontiers[handle].room();
        Some(if room == 0 { Unit::Fresh } else { Unit::Open(room) })
    }

    /// Closes the unit of the handle and the group that a stream names, so that its next page begins another. Returns the first page that it
    /// had room for, and how many; none if there was nothing in it, or if the group has no erased block to go on with.
    pub fn close_unit(&mut self, stream: u16, flash: &mut Flash) -> Option<(Ppn, u32)> {
        let (plane, handle) = self.place_of(stream)?;
        let frontier = &mut plane.frontiers[handle];
        let (next, room) = (Ppn(frontier.next), frontier.room());
        let block = flash.geometry().block_of(next);
        if room == 0 || next == flash.geometry().first_page(block) || plane.pool.is_empty() {
            return None;
        }
        *frontier = Frontier::default();
        plane.seal(handle, block, flash);
        Some((next, room))
    }
}
