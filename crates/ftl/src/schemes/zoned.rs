//! Zones: the host writes each from its start, resets it as a whole, and the drive never moves a page.
//!
//! ```text
//!   zone:   page 0  1  2  3 | 4  5  6  7 | ..      one erase block of each plane, and as many rows of these as the zone needs
//!   plane        0  1  2  3   0  1  2  3
//! ```
//!
//! A block is taken when its first page is written: the least worn of its plane, as `wear.free-block` says, which is all the wear
//! levelling that there is. A finish programs what is left of the zone. A reset forgets what the zone holds, at once, and erases its
//! blocks behind the request. So a page is programmed for the host or as padding, and for nothing else. Trims are hints, which a zoned
//! drive does not take: space comes back by resets.
//!
//! After a loss of power, the write pointer of a zone is behind the last page that was begun there. Pages that were skipped or torn
//! before it are padded, and read as unwritten. All zones with pages are then closed or full. A zone that was finished empty holds
//! nothing that would tell, and is empty again.
//!
//! Invariants: page i of a zone lies at one place of its blocks; of a zone's blocks exactly the pages before its write pointer are
//! programmed, of a finished one all up to its capacity; every block is free, of a zone, retired or bad.

use super::{BuildScheme, SchemeContext};
use crate::durable::{Found, MountError, Scan};
use crate::merge::{ErasedBlocks, LogicalBlocks, NONE, audit_map, good_blocks};
use crate::zones::{ZoneAction, ZoneLayout, ZoneLimits, Zones};
use crate::{Cause, CleansInSteps, Flash, Ftl, LpnRun, OutOfSpace, SchemeFigures, ServesRam, Violation, ZoneFigures};
use flashwright_block::{Bytes, RequestKind, ZoneError, ZoneState};
use flashwright_nand::{BlockId, Condition, Geometry, Lpn, Ppn, table};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[ftl.zoned]`: zones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ZonedSettings {
    /// Bytes of a zone that can be written; `"0 B"` for an erase block of each of its planes.
    pub zone_capacity: Bytes,
    /// Addresses of a zone, from its first byte to that of the next zone; `"0 B"` for the smallest power of two that holds its
    /// capacity, which Linux expects.
    pub zone_size: Bytes,
    /// Planes over which the pages of a zone take turns; 0 for all.
    pub zone_planes: u32,
    /// Zones that may be open at once; 0 for any number.
    pub max_open_zones: u32,
    /// Zones that may be open or closed at once; 0 for any number.
    pub max_active_zones: u32,
}

/// Addresses that fit 32 bits beside the owners of padding and what spare areas have no owner for.
const ADDRESSES_MAX: u64 = u32::MAX as u64 - (1 << 20);

impl ZonedSettings {
    /// Planes over which a zone lies.
    fn planes(&self, geometry: &Geometry) -> u32 {
        if self.zone_planes == 0 { geometry.planes() } else { self.zone_planes }
    }

    /// Capacity and size of a zone in pages.
    fn pages(&self, geometry: &Geometry) -> (u64, u64) {
        let page = geometry.page_size().0;
        let capacity = match self.zone_capacity.0 {
            0 => u64::from(self.planes(geometry)) * u64::from(geometry.pages_per_block()),
            bytes => bytes / page,
        };
        let size = if self.zone_size.0 == 0 { capacity.next_power_of_two() } else { self.zone_size.0 / page };
        (capacity, size)
    }

    /// The zones of a drive with so many addresses.
    fn layout(&self, addresses: u32, geometry: &Geometry) -> ZoneLayout {
        let (capacity, size) = self.pages(geometry);
        let pages = |pages: u64| u32::try_from(pages).unwrap_or(u32::MAX).max(1);
        ZoneLayout { count: addresses / pages(size), size: pages(size), capacity: pages(capacity) }
    }

    /// What is wrong with sizes.
    fn size_problems(&self, addresses: u32, geometry: &Geometry) -> Vec<String> {
        let mut problems = Vec::new();
        let (page, addresses) = (geometry.page_size(), u64::from(addresses));
        let (capacity, size) = self.pages(geometry);
        for (key, bytes) in [("capacity", self.zone_capacity), ("size", self.zone_size)] {
            if !bytes.0.is_multiple_of(page.0) {
                problems.push(format!("ftl.zoned.zone-{key}: found {bytes}, expected whole pages of {page}"));
            }
        }
        let bytes = |pages: u64| Bytes(pages.saturating_mul(page.0));
        if !problems.is_empty() {
            return problems;
        }
        if capacity == 0 {
            problems.push(format!(
                "ftl.zoned.zone-capacity: found {}, expected a page of {page} or more, or 0 B for an erase block of each plane",
                self.zone_capacity
            ));
        } else if size < capacity {
            problems.push(format!(
                "ftl.zoned.zone-size: found {}, expected at least the capacity of a zone, {}",
                bytes(size),
                bytes(capacity)
            ));
        } else if capacity > addresses {
            problems.push(format!(
                "ftl.zoned.zone-capacity: found {}, expected at most what the drive has room for, {}",
                bytes(capacity),
                bytes(addresses)
            ));
        } else if addresses == ADDRESSES_MAX {
            problems.push(format!(
                "ftl.zoned.zone-size: found {}, expected less: all zones together may have addresses for {}",
                bytes(size),
                bytes(ADDRESSES_MAX)
            ));
        }
        problems
    }

    /// What is wrong with planes and limits.
    fn count_problems(&self, geometry: &Geometry) -> Vec<String> {
        let mut problems = Vec::new();
        let (planes, open, active) = (geometry.planes(), self.max_open_zones, self.max_active_zones);
        if self.zone_planes > planes {
            let found = self.zone_planes;
            problems
                .push(format!("ftl.zoned.zone-planes: found {found}, expected at most the drive's planes, {planes}"));
        }
        if active > 0 && (open > active) {
            problems.push(format!(
                "ftl.zoned.max-open-zones: found {open}, expected at most ftl.zoned.max-active-zones = {active}: an open zone is active"
            ));
        }
        problems
    }
}

/// How the pages of a zone lie on its blocks.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Stripe {
    /// Blocks of a zone.
    blocks: u32,
    /// Blocks over which its pages take turns.
    width: u32,
    pages_per_block: u32,
    /// Planes of the drive.
    planes: u32,
}

impl Stripe {
    fn new(settings: &ZonedSettings, layout: ZoneLayout, geometry: &Geometry) -> Self {
        let blocks = layout.capacity.div_ceil(geometry.pages_per_block());
        let width = settings.planes(geometry).min(blocks);
        Self { blocks, width, pages_per_block: geometry.pages_per_block(), planes: geometry.planes() }
    }

    /// Blocks in a row that begins with this one; the last row may be narrower.
    #[inline]
    fn row_width(self, first: u32) -> u32 {
        self.width.min(self.blocks - first)
    }

    /// The block of a zone's page, counted in the zone, and the page there.
    #[inline]
    fn place(self, at: u32) -> (u32, u32) {
        let row_pages = self.width * self.pages_per_block;
        let (first, rest) = (at / row_pages * self.width, at % row_pages);
        let width = self.row_width(first);
        (first + rest % width, rest / width)
    }

    /// The page of a zone that lies on a page of one of its blocks.
    fn page_at(self, slot: u32, page: u32) -> u32 {
        let first = slot / self.width * self.width;
        first * self.pages_per_block + page * self.row_width(first) + (slot - first)
    }

    /// The plane that a block of a zone is taken from, by its turn. Zones begin with different planes.
    fn turn(self, zone: u32, slot: u32) -> u32 {
        let start = if self.width == self.planes { zone } else { zone.wrapping_mul(self.width) };
        (start % self.planes + slot % self.width) % self.planes
    }
}

/// `ftl.scheme = "zoned"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Zoned {
    table: Zones,
    stripe: Stripe,
    /// By zone and block of it: the erase block, or [`NONE`].
    blocks: Vec<u32>,
    erased: ErasedBlocks,
    logical_pages: u32,
    entry_bytes: u32,
    figures: ZoneFigures,
}

impl BuildScheme for Zoned {
    const NAME: &'static str = "zoned";
    const ABOUT: &'static str =
        "zones (NVMe ZNS): the host writes each in order and resets it whole; no page is ever moved";
    const FILLS_IN_ORDER: bool = true;
    const WRITES_IN_ORDER: bool = true;
    type Settings = ZonedSettings;

    fn problems(context: &SchemeContext, flash: &Flash) -> Vec<String> {
        let (settings, geometry) = (&context.ftl.schemes.zoned, flash.geometry());
        let mut problems = settings.count_problems(geometry);
        if problems.is_empty() {
            problems = settings.size_problems(context.logical_pages, geometry);
        }
        if problems.is_empty() {
            let layout = settings.layout(context.logical_pages, geometry);
            let blocks = Stripe::new(settings, layout, geometry).blocks;
            let (needed, good) = (u64::from(layout.count) * u64::from(blocks), good_blocks(flash));
            if needed > good {
                problems.push(format!(
                    "capacity: {} zones of {blocks} erase blocks take {needed}, but the drive has {good} good ones; lower \
                     capacity.utilization, or let ftl.zoned.zone-capacity fill its erase blocks",
                    layout.count
                ));
            }
        }
        problems
    }

    fn addresses(settings: &ZonedSettings, room: u32, geometry: &Geometry) -> u32 {
        let (capacity, size) = settings.pages(geometry);
        let count = u64::from(room).checked_div(capacity).unwrap_or(0);
        let addresses = size.saturating_mul(count).min(ADDRESSES_MAX);
        if addresses == 0 { room } else { u32::try_from(addresses).unwrap_or(u32::MAX) }
    }

    fn table_bytes(_: &ZonedSettings, _: u32, geometry: &Geometry) -> u64 {
        u64::from(geometry.blocks()) * 8 // of each block the zone that has it, and where
    }

    fn side_by_side(context: &SchemeContext, flash: &Flash) -> u32 {
        let settings = &context.ftl.schemes.zoned;
        match settings.max_open_zones {
            0 => settings.layout(context.logical_pages, flash.geometry()).count,
            open => open,
        }
    }

    fn new(context: &SchemeContext, flash: &mut Flash) -> Self {
        let (settings, geometry) = (&context.ftl.schemes.zoned, flash.geometry());
        let layout = settings.layout(context.logical_pages, geometry);
        let limits = ZoneLimits { open: settings.max_open_zones, active: settings.max_active_zones };
        let stripe = Stripe::new(settings, layout, geometry);
        Self {
            table: Zones::new(layout, limits),
            stripe,
            blocks: table(NONE, layout.count as usize * stripe.blocks as usize),
            erased: ErasedBlocks::new(context, flash),
            logical_pages: context.logical_pages,
            entry_bytes: context.ftl.entry_bytes,
            figures: ZoneFigures::default(),
        }
    }

    fn owners(context: &SchemeContext, flash: &Flash) -> u32 {
        let settings = &context.ftl.schemes.zoned;
        context.logical_pages + settings.layout(context.logical_pages, flash.geometry()).count
    }

    fn mount(context: &SchemeContext, scan: &mut Scan, flash: &mut Flash) -> Result<Self, MountError> {
        let mut scheme = Self::new(context, flash);
        let layout = scheme.table.layout();
        // By zone: the first program since its last reset, and the last page of the host.
        let mut born = vec![u64::MAX; layout.count as usize];
        let mut ends = vec![0; layout.count as usize];
        for (owner, newest) in scan.all().filter(|(owner, _)| *owner < scheme.logical_pages) {
            let (zone, at) = layout.split(owner);
            flash.adopt(newest.ppn, Lpn(owner));
            born[zone as usize] = born[zone as usize].min(newest.sequence);
            ends[zone as usize] = ends[zone as usize].max(at + 1);
        }
        let mut of_padding = Vec::new();
        for Found { block, opened } in scan.blocks.iter().copied() {
            if flash.nand().condition(block) != Condition::Good {
                continue;
            }
            match scheme.owner_of(block, flash) {
                Some((zone, slot)) if flash.pages_valid(block) > 0 => *scheme.block_mut(zone, slot) = block.0,
                Some((zone, _)) if opened >= born[zone as usize] => of_padding.push((zone, block)),
                _ => scheme.erased.release(block, Cause::Host, flash),
            }
        }
        // Blocks are taken in order, so those with padding alone come where a block is missing, in the order in which they were opened.
        for (zone, block) in of_padding {
            let slot = (0..scheme.stripe.blocks).find(|slot| scheme.block(zone, *slot) == NONE);
            match slot {
                Some(slot) => *scheme.block_mut(zone, slot) = block.0,
                None => scheme.erased.release(block, Cause::Host, flash),
            }
        }
        for zone in (0..layout.count).filter(|zone| ends[*zone as usize] > 0) {
            let begun = scheme.begun(zone, flash);
            for at in 0..begun {
                let ppn = scheme.take_place(zone, at, flash).ok_or_else(|| scheme.erased.exhausted(flash))?;
                if flash.nand().is_programmable(ppn) {
                    scheme.pad(zone, ppn, flash);
                }
            }
            let is_full = begun == layout.capacity;
            scheme.table.found(zone, if is_full { ends[zone as usize] } else { begun }, is_full);
        }
        Ok(scheme)
    }
}

impl Ftl for Zoned {
    /// # Panics
    /// If the run does not begin at the write pointer of a zone that takes it.
    fn write(&mut self, run: LpnRun, flash: &mut Flash) -> Result<(), OutOfSpace> {
        let (zone, at) = self.table.layout().split(run.first.0);
        assert!(at == self.table.written(zone), "a write to zone {zone} off its write pointer was not refused");
        for nth in 0..run.pages {
            let Some(ppn) = self.take_place(zone, at + nth, flash) else {
                if nth > 0 {
                    self.table.wrote(zone, nth);
                }
                self.table.fail(zone);
                return Err(self.erased.exhausted(flash));
            };
            flash.program(ppn, Lpn(run.first.0 + nth), Cause::Host);
        }
        self.table.wrote(zone, run.pages);
        Ok(())
    }

    /// A hint that zones do not take.
    fn trim(&mut self, _: LpnRun, _: &mut Flash) {}

    #[inline]
    fn lookup(&self, lpn: Lpn, flash: &Flash) -> Option<Ppn> {
        let (zone, at) = self.table.layout().split(lpn.0);
        if at >= self.table.written(zone) {
            return None;
        }
        let ppn = self.place(zone, at, flash)?;
        flash.is_valid(ppn).then_some(ppn)
    }

    fn audit(&self, flash: &Flash, violations: &mut Vec<Violation>) {
        let logical = LogicalBlocks::new(self.logical_pages, flash.geometry());
        audit_map(logical, flash, |lpn| self.lookup(lpn, flash), violations);
        let in_use = self.blocks.iter().filter(|block| **block != NONE).map(|block| (BlockId(*block), "of a zone"));
        self.erased.audit(flash, in_use, violations);
        for zone in 0..self.table.layout().count {
            if self.table.state(zone) == ZoneState::Full {
                continue; // a finish programs what it has blocks for
            }
            let (begun, written) = (self.begun(zone, flash), self.table.written(zone));
            if begun != written {
                violations.push(Violation(format!(
                    "zone {zone} has {begun} pages programmed, its write pointer is at {written}"
                )));
            }
        }
    }

    fn figures(&self) -> SchemeFigures {
        let by_state = ZoneState::ALL.map(|state| self.table.count(state) as u64);
        SchemeFigures {
            ram_bytes: self.blocks.len() as u64 * u64::from(self.entry_bytes),
            zones: Some(ZoneFigures { by_state, ..self.figures.clone() }),
            ..SchemeFigures::default()
        }
    }

    fn reset_figures(&mut self) {
        self.figures = ZoneFigures::default();
    }
}

impl CleansInSteps for Zoned {}

impl ServesRam for Zoned {}

/// What a request does to zones, once it was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admitted {
    /// It touches pages from this one on.
    Pages(u32),
    /// It changes the state of a zone, and clears so many pages from its start.
    Clears(u32),
}

impl Zoned {
    /// The table of zones.
    #[must_use]
    pub fn table(&self) -> &Zones {
        &self.table
    }

    /// The same, to change what needs no flash.
    pub fn table_mut(&mut self) -> &mut Zones {
        &mut self.table
    }

    /// Checks a request of a kind that writes or manages zones, and counts a refusal.
    ///
    /// # Errors
    /// [`ZoneError`] if it breaks a rule; its write pointer is a page.
    pub fn admit(&mut self, kind: RequestKind, first: u32, pages: u32) -> Result<Admitted, ZoneError> {
        let admitted = match action_of(kind) {
            Some(action) => self
                .table
                .check_action(action, first)
                .map(|zone| Admitted::Clears(if action == ZoneAction::Reset { self.table.written(zone) } else { 0 })),
            None if kind == RequestKind::Append => self.table.check_append(first, pages).map(Admitted::Pages),
            None => self.table.check_write(first, pages).map(|_| Admitted::Pages(first)),
        };
        if let Err(error) = &admitted {
            self.figures.refusals[error.rule as usize] += 1;
        }
        admitted
    }

    /// Opens, closes, finishes or resets the zone that begins at a page, as was checked.
    pub fn manage(&mut self, kind: RequestKind, first: u32, flash: &mut Flash) {
        let Some(action) = action_of(kind) else { return };
        let (zone, _) = self.table.layout().split(first);
        let (is_empty, before) = (self.table.written(zone) == 0, self.table.state(zone));
        let pages = self.table.act(action, zone);
        match action {
            ZoneAction::Open | ZoneAction::Close => {}
            ZoneAction::Finish => {
                self.figures.finishes += u64::from(before != ZoneState::Full);
                // Without a page there is no block that would have to be closed.
                for at in pages.filter(|_| !is_empty) {
                    let Some(ppn) = self.take_place(zone, at, flash) else { break };
                    self.pad(zone, ppn, flash);
                }
            }
            ZoneAction::Reset => {
                self.figures.resets += u64::from(before != ZoneState::Empty);
                self.clear(zone, pages.end, flash);
            }
        }
    }

    /// Forgets what a zone holds, and erases its blocks behind the request.
    fn clear(&mut self, zone: u32, pages: u32, flash: &mut Flash) {
        let start = self.table.layout().start(zone);
        (start..start + pages).for_each(|lpn| flash.host_trims_page(Lpn(lpn)));
        flash.flush_journal();
        flash.rest_in_background();
        for slot in 0..self.stripe.blocks {
            let block = std::mem::replace(self.block_mut(zone, slot), NONE);
            if block != NONE {
                flash.invalidate_block(BlockId(block));
                self.erased.release(BlockId(block), Cause::Host, flash);
            }
        }
    }

    /// Programs a page of a zone with nothing. Its spare area names the zone.
    fn pad(&self, zone: u32, ppn: Ppn, flash: &mut Flash) {
        flash.program(ppn, Lpn(self.logical_pages + zone), Cause::Padding);
        flash.invalidate(ppn);
    }

    fn block(&self, zone: u32, slot: u32) -> u32 {
        self.blocks[(zone * self.stripe.blocks + slot) as usize]
    }

    fn block_mut(&mut self, zone: u32, slot: u32) -> &mut u32 {
        &mut self.blocks[(zone * self.stripe.blocks + slot) as usize]
    }

    /// Where a page of a zone lies, if it has a block there.
    #[inline]
    fn place(&self, zone: u32, at: u32, flash: &Flash) -> Option<Ppn> {
        let (slot, page) = self.stripe.place(at);
        let block = self.block(zone, slot);
        (block != NONE).then(|| flash.geometry().page_at(BlockId(block), page))
    }

    /// As [`Zoned::place`], with a block taken for it if there is none yet; none if there is none to take.
    #[inline]
    fn take_place(&mut self, zone: u32, at: u32, flash: &Flash) -> Option<Ppn> {
        let (slot, page) = self.stripe.place(at);
        let mut block = self.block(zone, slot);
        if block == NONE {
            block = self.erased.take_from(self.stripe.turn(zone, slot))?.0;
            *self.block_mut(zone, slot) = block;
        }
        Some(flash.geometry().page_at(BlockId(block), page))
    }

    /// Pages of a zone up to the last one that was programmed, from its start.
    fn begun(&self, zone: u32, flash: &Flash) -> u32 {
        let end = |slot: u32| {
            let block = self.block(zone, slot);
            let pages = if block == NONE { 0 } else { flash.nand().next_page(BlockId(block)) };
            pages.checked_sub(1).map_or(0, |last| self.stripe.page_at(slot, last) + 1)
        };
        (0..self.stripe.blocks).map(end).max().unwrap_or(0)
    }

    /// The zone of a block that was found, and which of the zone's it is; where it holds padding alone, the latter means nothing.
    fn owner_of(&self, block: BlockId, flash: &Flash) -> Option<(u32, u32)> {
        let pages = (0..flash.nand().next_page(block)).map(|page| flash.geometry().page_at(block, page));
        let owners = pages.filter_map(|ppn| flash.spare_area(ppn)).map(|spare| spare.owner.0);
        let mut padded = None;
        for owner in owners {
            if owner < self.logical_pages {
                let (zone, at) = self.table.layout().split(owner);
                return Some((zone, self.stripe.place(at).0));
            }
            padded = padded.or(owner.checked_sub(self.logical_pages).map(|zone| (zone, 0)));
        }
        padded.filter(|(zone, _)| *zone < self.table.layout().count)
    }
}

/// What a kind of request does with a zone as a whole.
fn action_of(kind: RequestKind) -> Option<ZoneAction> {
    match kind {
        RequestKind::ZoneOpen => Some(ZoneAction::Open),
        RequestKind::ZoneClose => Some(ZoneAction::Close),
        RequestKind::ZoneFinish => Some(ZoneAction::Finish),
        RequestKind::ZoneReset => Some(ZoneAction::Reset),
        _ => None,
    }
}
