//! A drive with zones: what is checked before a request reaches the translation layer.

use crate::ssd::Ssd;
use flashwright_block::{Bytes, IoError, Request, RequestClass, RequestKind, SECTOR_BYTES, ZoneError};
use flashwright_ftl::ZoneLayout;
use flashwright_ftl::schemes::Admitted;

impl Ssd {
    /// Checks a request by the rules of zones. An append then begins where it goes, and a reset has the sectors that it clears.
    ///
    /// # Errors
    /// [`IoError::Zone`] if it breaks a rule, [`IoError::Misaligned`] for a write of less than whole pages, and
    /// [`IoError::OutOfRange`] for a zone behind the last.
    #[inline(never)]
    pub(crate) fn admit_to_zone(&mut self, request: &mut Request) -> Result<(), Box<IoError>> {
        let (per_page, logical_pages) = (self.sectors_per_page(), self.logical_pages());
        let class = request.kind.class();
        let is_write = class == RequestClass::Write;
        if !is_write && class != RequestClass::Manage || is_write && request.sectors == 0 {
            return Ok(());
        }
        let (first_sector, end_sector) = (request.first_sector, request.end_sector());
        if !first_sector.is_multiple_of(per_page) || is_write && !end_sector.is_multiple_of(per_page) {
            let block = Bytes(per_page * SECTOR_BYTES);
            return Err(Box::new(IoError::Misaligned { first_sector, end_sector, block }));
        }
        let page = |sector: u64| u32::try_from(sector / per_page).unwrap_or(u32::MAX);
        let (first, pages) = (page(first_sector), if is_write { page(u64::from(request.sectors)) } else { 0 });
        let Some(zoned) = self.scheme.zoned_mut().filter(|_| first < logical_pages) else {
            let device_sectors = u64::from(logical_pages) * per_page;
            return Err(Box::new(IoError::OutOfRange { first_sector, end_sector, device_sectors }));
        };
        let admitted = zoned
            .admit(request.kind, first, pages)
            .map_err(|error| Box::new(IoError::Zone(ZoneError { pointer: error.pointer * per_page, ..error })))?;
        match admitted {
            Admitted::Pages(first) => request.first_sector = u64::from(first) * per_page,
            Admitted::Clears(pages) => {
                request.sectors = u32::try_from(u64::from(pages) * per_page).unwrap_or(u32::MAX);
            }
        }
        Ok(())
    }

    /// Hands a request of a kind that only drives with zones take to the translation layer.
    #[cold]
    pub(crate) fn translate_for_zones(&mut self, request: &Request) -> Result<(), Box<IoError>> {
        let kind = request.kind;
        if self.scheme.zoned().is_none() {
            return Err(Box::new(IoError::NoZones { kind }));
        }
        if request.kind == RequestKind::Append {
            return if request.sectors == 0 { Ok(()) } else { self.write_whole_pages(request) };
        }
        let first = u32::try_from(request.first_sector / self.sectors_per_page()).unwrap_or(u32::MAX);
        let Self { scheme, flash, .. } = self;
        if let Some(zoned) = scheme.zoned_mut() {
            zoned.manage(kind, first, flash);
        }
        Ok(())
    }

    /// How the pages divide into zones, if there are any.
    #[must_use]
    pub fn zone_layout(&self) -> Option<ZoneLayout> {
        self.scheme.zoned().map(|zoned| zoned.table().layout())
    }
}
