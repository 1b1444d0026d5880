//! A drive with zones: what is checked before a request reaches the translation layer, and what it tells of its zones.

use crate::ssd::Ssd;
use flashwright_block::{Bytes, IoError, Request, RequestClass, SECTOR_BYTES, Zone, ZoneError, Zoned, Zoning};
use flashwright_ftl::schemes::Admitted;
use flashwright_ftl::{ZoneLayout, Zones};

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
        let Some(zoned) = self.translation.scheme.zoned_mut().filter(|_| first < logical_pages) else {
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

    /// How the pages divide into zones, if there are any.
    #[must_use]
    pub fn zone_layout(&self) -> Option<ZoneLayout> {
        self.translation.scheme.zoned().map(|zoned| zoned.table().layout())
    }
}

impl Ssd {
    /// Whether it has zones.
    #[must_use]
    pub fn has_zones(&self) -> bool {
        self.translation.scheme.zoned().is_some()
    }

    fn zones(&self) -> &Zones {
        self.translation.scheme.zoned().expect("a drive without zones is not zoned").table()
    }

    /// That the power is on, and there is such a zone.
    fn check_zone(&self, number: u32) -> Result<(), IoError> {
        let layout = self.zones().layout();
        if !self.is_on() {
            return Err(IoError::PowerOff);
        }
        if number < layout.count {
            return Ok(());
        }
        let sectors = u64::from(layout.size) * self.sectors_per_page();
        let first_sector = sectors * u64::from(number);
        let device_sectors = sectors * u64::from(layout.count);
        Err(IoError::OutOfRange { first_sector, end_sector: first_sector + sectors, device_sectors })
    }
}

impl Zoned for Ssd {
    fn zoning(&self) -> Zoning {
        let (zones, page) = (self.zones(), self.sectors_per_page() * SECTOR_BYTES);
        let (layout, limits) = (zones.layout(), zones.limits());
        let of_pages = |pages: u32| Bytes(u64::from(pages) * page);
        Zoning {
            zones: layout.count,
            size: of_pages(layout.size),
            capacity: of_pages(layout.capacity),
            grain: Bytes(page),
            max_open: limits.open,
            max_active: limits.active,
        }
    }
    fn zone(&self, number: u32) -> Result<Zone, IoError> {
        self.check_zone(number)?;
        let written = u64::from(self.zones().written(number)) * self.sectors_per_page();
        Ok(Zone { state: self.zones().state(number), written: Bytes(written * SECTOR_BYTES) })
    }
    fn retire(&mut self, number: u32) -> Result<(), IoError> {
        self.check_zone(number)?;
        let zoned = self.translation.scheme.zoned_mut().expect("it was checked");
        zoned.table_mut().retire(number).map_err(IoError::Zone)
    }
    fn take_failed(&mut self) -> Vec<u32> {
        self.translation.scheme.zoned_mut().map_or_else(Vec::new, |zoned| zoned.table_mut().take_failed())
    }
}
