//! What happens: pages of requests, RAM, the translation layer and the flash, without a clock.

use flashwright_block::{Ahead, Effects, IoError, Request, RequestKind, SECTOR_BYTES};
use flashwright_config::{DriveConfig, PartialPages};
use flashwright_ftl::{Flash, Ftl, LpnRun, OpKind, OutOfSpace, Scheme, Violation};
use flashwright_nand::Lpn;
use flashwright_ram::Ram;
use serde::{Deserialize, Serialize};

/// The part of a drive that knows no time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Translation {
    pub flash: Flash,
    pub scheme: Scheme,
    pub ram: Option<Ram>,
    /// Pages that the host can address.
    pub logical_pages: u32,
    pub sectors_per_page: u64,
    /// The shift that divides by `sectors_per_page`, where it is a power of two.
    page_shift: Option<u32>,
    /// Whether a write reads the pages that it covers in part.
    reads_partial_pages: bool,
    /// Whether flushes and forced writes do nothing.
    ignores_flush: bool,
    /// Sectors of the writes that succeeded, preconditioning included.
    sectors_written: u64,
}

/// Counts of the flash before a request.
pub(crate) struct Mark {
    operations: u64,
    erases: u64,
    reads_unmapped: u64,
}

impl Translation {
    /// The drive's flash, translation layer and RAM, as its settings use them.
    pub fn new(config: &DriveConfig, flash: Flash, scheme: Scheme, ram: Option<Ram>) -> Self {
        let sectors_per_page = flash.geometry().page_size().0 / SECTOR_BYTES;
        let mut new = Self {
            flash,
            scheme,
            ram,
            logical_pages: config.logical_pages(),
            sectors_per_page,
            page_shift: sectors_per_page.is_power_of_two().then(|| sectors_per_page.trailing_zeros()),
            reads_partial_pages: false,
            ignores_flush: false,
            sectors_written: 0,
        };
        new.follow(config);
        new
    }

    /// Takes over what settings say of partial pages and flushes.
    pub fn follow(&mut self, config: &DriveConfig) {
        self.reads_partial_pages = config.host.partial_pages == PartialPages::ReadModifyWrite;
        self.ignores_flush = config.recovery.ignores_flush;
    }

    /// Takes over what another holds that was built from the same settings.
    pub fn take_state(&mut self, other: &Self) {
        self.flash = other.flash.clone();
        self.scheme = other.scheme.clone();
        self.ram = other.ram.clone();
        self.sectors_written = other.sectors_written;
    }

    /// Sectors that the host can address.
    pub fn sectors(&self) -> u64 {
        u64::from(self.logical_pages) * self.sectors_per_page
    }

    /// Bytes that writes brought since the drive was new, preconditioning included.
    #[inline(always)]
    pub fn bytes_written(&self) -> u64 {
        self.sectors_written * SECTOR_BYTES
    }

    /// The counts now, for [`Translation::since`].
    #[inline(always)]
    pub fn mark(&self) -> Mark {
        let counters = self.flash.counters();
        Mark {
            operations: counters.operations(),
            erases: counters.total(OpKind::Erase),
            reads_unmapped: counters.reads_unmapped,
        }
    }

    /// What was done since, and whether a page that holds no data was read.
    #[inline(always)]
    pub fn since(&self, mark: &Mark) -> (Effects, bool) {
        let counters = self.flash.counters();
        let effects = Effects {
            flash_ops: saturating_u32(counters.operations() - mark.operations),
            erases: saturating_u32(counters.total(OpKind::Erase) - mark.erases),
        };
        (effects, counters.reads_unmapped > mark.reads_unmapped)
    }

    /// First page and number of pages that a request touches; (0, 0) for one without sectors.
    #[inline(always)]
    pub fn pages_of(&self, request: &Request) -> (u32, u32) {
        if request.sectors == 0 {
            return (0, 0);
        }
        let run = self.run_of(request);
        (run.first.0, run.pages)
    }

    /// The pages that a request touches.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // the device's end was checked, and its pages are counted in 32 bits
    fn run_of(&self, request: &Request) -> LpnRun {
        let first = self.page_of(request.first_sector);
        let last = self.page_of(request.end_sector() - 1);
        LpnRun { first: Lpn(first as u32), pages: (last - first + 1) as u32, stream: u32::from(request.stream) }
    }

    /// The page that holds a sector.
    #[inline(always)]
    fn page_of(&self, sector: u64) -> u64 {
        match self.page_shift {
            Some(shift) => sector >> shift,
            None => sector / self.sectors_per_page,
        }
    }

    /// Whether a page begins with this sector.
    #[inline(always)]
    fn begins_page(&self, sector: u64) -> bool {
        match self.page_shift {
            Some(shift) => sector & ((1 << shift) - 1) == 0,
            None => sector.is_multiple_of(self.sectors_per_page),
        }
    }

    /// Carries out a request, whose operations then lie in the log of the flash. `PLAIN` if no page is read because a write covers
    /// it in part and there are no zones; with `RAM` there may be RAM, `PLAIN` or not.
    ///
    /// # Errors
    /// [`IoError::WornOut`] for want of room, and what zones refuse.
    #[inline(always)]
    pub fn carry_out<const PLAIN: bool, const RAM: bool>(&mut self, request: &Request) -> Result<(), Box<IoError>> {
        match request.kind {
            RequestKind::Flush => self.flush().map_err(worn_out),
            RequestKind::Append
            | RequestKind::ZoneOpen
            | RequestKind::ZoneClose
            | RequestKind::ZoneFinish
            | RequestKind::ZoneReset => self.manage_zone(request),
            _ if request.sectors == 0 => Ok(()),
            RequestKind::Write if PLAIN && !RAM => {
                let result = self.write_to_flash(self.run_of(request));
                self.note_sectors(u64::from(request.sectors), &result);
                result.map_err(worn_out)
            }
            RequestKind::Write => {
                if !PLAIN && self.reads_partial_pages {
                    self.read_partial_pages(request);
                }
                // Worked out anew: a run whose address was taken would be copied through memory, which stalls.
                let result = self.write_run(self.run_of(request), request.fua && !self.ignores_flush);
                self.note_sectors(u64::from(request.sectors), &result);
                result.map_err(worn_out)
            }
            RequestKind::Read => {
                let run = self.run_of(request);
                let delivered = self.flash.stamps().map(|stamps| stamps.delivered());
                match &mut self.ram {
                    Some(ram) if RAM => ram.read(run, &mut self.scheme, &mut self.flash),
                    _ => self.scheme.read(run, &mut self.flash),
                }
                if let (Some(before), Some(stamps)) = (delivered, self.flash.stamps_mut())
                    && stamps.delivered() != before + u64::from(run.pages)
                {
                    stamps.report(format!("a read of {} pages answered another number", run.pages));
                }
                Ok(())
            }
            RequestKind::Trim => {
                self.trim(request.first_sector, request.end_sector(), request.stream);
                Ok(())
            }
        }
    }

    /// Writes the pages of a request that covers no page in part.
    fn write_whole_pages(&mut self, request: &Request) -> Result<(), Box<IoError>> {
        let result = self.write_run(self.run_of(request), request.fua);
        self.note_sectors(u64::from(request.sectors), &result);
        result.map_err(worn_out)
    }

    #[inline(never)]
    fn flush(&mut self) -> Result<(), OutOfSpace> {
        if self.ignores_flush {
            return Ok(());
        }
        // Without RAM what was acknowledged is on flash.
        self.ram.as_mut().map_or(Ok(()), |ram| ram.flush(&mut self.scheme, &mut self.flash))
    }

    #[inline(never)]
    fn trim(&mut self, first_sector: u64, end_sector: u64, stream: u16) {
        if self.scheme.zoned().is_some() {
            return; // what is no longer needed leaves with its zone
        }
        // Only pages wholly covered lose their content.
        let first = first_sector.div_ceil(self.sectors_per_page);
        let end = end_sector / self.sectors_per_page;
        if let (Ok(first), Ok(pages)) = (u32::try_from(first), u32::try_from(end.saturating_sub(first)))
            && pages > 0
        {
            self.trim_run(LpnRun { first: Lpn(first), pages, stream: u32::from(stream) });
        }
    }

    fn trim_run(&mut self, run: LpnRun) {
        if let Some(ram) = &mut self.ram {
            ram.trim(run, &mut self.scheme, &mut self.flash);
        } else {
            run.iter().for_each(|lpn| self.flash.host_trims_page(lpn));
            self.scheme.trim(run, &mut self.flash);
        }
    }

    /// Counts the sectors of a write, if it succeeded.
    #[inline(always)]
    pub fn note_sectors(&mut self, sectors: u64, result: &Result<(), OutOfSpace>) {
        self.sectors_written += if result.is_ok() { sectors } else { 0 };
    }

    /// Writes whole pages. Where one can't be placed, what the pages hold then counts as their content.
    #[inline(always)]
    pub fn write_run(&mut self, run: LpnRun, forced: bool) -> Result<(), OutOfSpace> {
        if let Some(ram) = &mut self.ram {
            return ram.write(run, forced, &mut self.scheme, &mut self.flash);
        }
        self.write_to_flash(run)
    }

    #[inline(always)]
    fn write_to_flash(&mut self, run: LpnRun) -> Result<(), OutOfSpace> {
        self.flash.host_writes_run(run);
        let result = self.scheme.write(run, &mut self.flash);
        if result.is_err() {
            self.write_failed(run.apart());
        }
        result
    }

    #[cold]
    fn write_failed(&mut self, run: LpnRun) {
        for lpn in run.iter() {
            self.flash.host_write_failed(lpn, self.scheme.lookup(lpn, &self.flash));
        }
    }

    /// Reads the first and last page of a write that covers them only in part, if they hold data.
    #[inline(never)]
    fn read_partial_pages(&mut self, request: &Request) {
        let run = self.run_of(request);
        let starts_inside = !self.begins_page(request.first_sector);
        let ends_inside = !self.begins_page(request.end_sector());
        if !starts_inside && !ends_inside {
            return;
        }
        let last = Lpn(run.first.0 + run.pages - 1);
        let partial = [starts_inside.then_some(run.first), ends_inside.then_some(last)];
        for lpn in partial.into_iter().flatten().take(if run.pages == 1 { 1 } else { 2 }) {
            if self.ram.as_ref().is_some_and(|ram| ram.is_dirty(lpn).is_some()) {
                continue; // completed in RAM
            }
            if self.scheme.lookup(lpn, &self.flash).is_some() {
                self.scheme.read(LpnRun { first: lpn, pages: 1, stream: run.stream }, &mut self.flash);
                if self.ram.is_none() {
                    self.flash.host_program_waits(lpn);
                }
            }
        }
    }

    /// Requests will come whose first page is one of these: fetches what they will look at into the processor's cache.
    pub fn expect(&self, requests: &[Request], ahead: Ahead) {
        // Only the first page of each is looked at, so only that needs to exist.
        let sectors = self.sectors();
        #[allow(clippy::cast_possible_truncation)] // pages that exist are counted in 32 bits
        let pages = || {
            let exist = requests.iter().filter(|request| request.first_sector < sectors);
            exist.map(|request| (Lpn(self.page_of(request.first_sector) as u32), request.kind))
        };
        let Some(ram) = &self.ram else { return self.expect_on_flash(pages().map(|(lpn, _)| lpn), ahead) };
        if ahead == Ahead::Far {
            pages().for_each(|(lpn, _)| ram.expect(lpn));
        }
        // Of a RAM that keeps what is new, flash gets other pages than those written.
        let lets_go_new = ram.manager().lets_go_new();
        let of_flash = pages().filter(|(_, kind)| lets_go_new || *kind != RequestKind::Write);
        self.expect_on_flash(of_flash.map(|(lpn, _)| lpn), ahead);
    }

    fn expect_on_flash(&self, pages: impl Iterator<Item = Lpn>, ahead: Ahead) {
        match ahead {
            Ahead::Far => self.scheme.expect_all_far(pages),
            Ahead::Near => self.scheme.expect_all_near(pages, &self.flash),
        }
    }

    /// Carries out a request of a kind that only drives with zones take.
    #[cold]
    fn manage_zone(&mut self, request: &Request) -> Result<(), Box<IoError>> {
        let kind = request.kind;
        if self.scheme.zoned().is_none() {
            return Err(Box::new(IoError::NoZones { kind }));
        }
        if kind == RequestKind::Append {
            return if request.sectors == 0 { Ok(()) } else { self.write_whole_pages(request) };
        }
        let first = u32::try_from(request.first_sector / self.sectors_per_page).unwrap_or(u32::MAX);
        if let Some(zoned) = self.scheme.zoned_mut() {
            zoned.manage(kind, first, &mut self.flash);
        }
        Ok(())
    }

    /// See [`crate::Ssd::audit`].
    pub fn audit(&self) -> Vec<Violation> {
        let mut violations = Vec::new();
        self.flash.audit(&mut violations);
        self.scheme.audit(&self.flash, &mut violations);
        if let Some(ram) = &self.ram {
            ram.audit(&mut violations);
        }
        if let Some(stamps) = self.flash.stamps() {
            violations.extend_from_slice(stamps.violations().1);
            for lpn in (0..self.logical_pages).map(Lpn) {
                let in_ram = self.ram.as_ref().and_then(|ram| ram.is_dirty(lpn));
                if in_ram.is_some() && !stamps.is_newest_in_ram(lpn) {
                    violations.push(Violation(format!("RAM does not hold the newest data of lpn {}", lpn.0)));
                }
                if in_ram == Some(true) {
                    continue; // what flash holds is old
                }
                match self.scheme.lookup(lpn, &self.flash) {
                    None if stamps.is_written(lpn) => {
                        violations.push(Violation(format!("lpn {} was written but is not mapped", lpn.0)));
                    }
                    Some(ppn) if !stamps.is_newest(lpn, ppn) => {
                        violations
                            .push(Violation(format!("page {} does not hold the newest data of lpn {}", ppn.0, lpn.0)));
                    }
                    _ => {}
                }
            }
        }
        violations
    }
}

/// The translation layer found no room.
#[cold]
#[allow(clippy::needless_pass_by_value)] // for `map_err`
pub(crate) fn worn_out(error: OutOfSpace) -> Box<IoError> {
    Box::new(IoError::WornOut { reason: error.to_string() })
}

/// A count for a column of 32 bits.
#[inline(always)]
fn saturating_u32(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
