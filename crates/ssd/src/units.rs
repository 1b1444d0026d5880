//! A drive that places data by handle, as its interface asks it: what the reclaim unit of a handle in a group has room for, and another
//! unit.

use crate::clock::Clock;
use crate::ssd::Ssd;
use flashwright_block::{BlockDevice, Bytes, IoError, Moved, Placement, SECTOR_BYTES};
use flashwright_ftl::Unit;
use flashwright_ftl::policies::placement::{Isolation, MovedRun};

impl Ssd {
    /// What it offers to place data by, if every handle has one reclaim unit in each group: `placement.policy = "fdp"` on flash whose groups are
    /// one plane each to the translation layer (`geometry.superblock = "drive"`), with neither RAM nor an SLC cache before it, which keep no handles.
    #[must_use]
    pub fn placement(&mut self) -> Option<Placement> {
        let unit = self.unit_bytes();
        let fdp = self.translation.scheme.handles().filter(|_| self.translation.ram.is_none())?;
        Some(Placement {
            handles: fdp.handle_count().into(),
            groups: fdp.group_count(),
            stays_isolated: fdp.isolation() == Isolation::Persistent,
            unit,
        })
    }

    fn unit_bytes(&self) -> Bytes {
        let geometry = self.flash().geometry();
        Bytes(u64::from(geometry.pages_per_block()) * geometry.page_size().0)
    }

    /// See [`flashwright_block::Placed::room`].
    ///
    /// # Errors
    /// [`IoError::PowerOff`].
    pub fn unit_room(&mut self, stream: u16) -> Result<Bytes, IoError> {
        let of_pages = |pages: u32| Bytes(u64::from(pages) * self.translation.flash.geometry().page_size().0);
        if !self.is_on() {
            return Err(IoError::PowerOff);
        }
        Ok(self.translation.scheme.unit(stream).map_or(Bytes(0), |unit| match unit {
            Unit::Fresh => of_pages(self.translation.flash.geometry().pages_per_block()),
            Unit::Open(pages) => of_pages(pages),
        }))
    }

    /// See [`flashwright_block::Placed::renew`].
    ///
    /// # Errors
    /// [`IoError::PowerOff`].
    pub fn renew_unit(&mut self, stream: u16) -> Result<Option<Bytes>, IoError> {
        if !self.is_on() {
            return Err(IoError::PowerOff);
        }
        let Some((next, pages)) = self.translation.scheme.close_unit(stream, &mut self.translation.flash) else {
            return Ok(None);
        };
        let (now, geometry) = (self.now().0, self.translation.flash.geometry());
        if let Clock::Parallel(clock) = &mut self.clock {
            clock.engine.close(now, next, geometry);
        }
        Ok(Some(Bytes(u64::from(pages) * geometry.page_size().0)))
    }

    /// See [`flashwright_block::Placed::watch_moves`].
    pub fn watch_moves(&mut self, handles: u64) {
        if let Some(fdp) = self.translation.scheme.handles() {
            fdp.watch(handles);
        }
    }

    /// Appends the moves of watched handles since it was last asked.
    pub fn take_moved(&mut self, out: &mut Vec<Moved>) {
        let (at, per_page) = (self.now(), self.translation.flash.geometry().page_size().0 / SECTOR_BYTES);
        let Some(fdp) = self.translation.scheme.handles() else { return };
        let noted: Vec<MovedRun> = fdp.take_noted().collect();
        let flash = &self.translation.flash;
        out.extend(noted.into_iter().map(|run| Moved {
            at,
            handle: run.handle.into(),
            group: flash.group_of(flash.geometry().block_of(run.to)),
            first_sector: u64::from(run.first.0) * per_page,
            sectors: run.pages * per_page as u32,
        }));
    }
}
