//! Replacement blocks, as in NFTL: behind each data block a chain of up to K blocks that take its overwrites (Ban's
//! patents; the fold rules of Linux's `nftlcore.c`; the 1:K scheme of Gupta 2009, section 4 and Table 2). NFTL calls
//! the blocks of a chain units.
//!
//! ```text
//!   chain of a logical block:   primary ─► replacement ─► replacement      (1 + K units at most)
//!         offset 0               old          old           newest
//!         offset 1               old          newest        erased
//!         offset 2               newest       erased        erased
//! ```
//!
//! There is no page map in RAM. To find a page, the scheme reads spare areas along the chain, at the page's offset, up
//! to the first page that can still be programmed; the last programmed page before it holds the newest copy. A write
//! goes to the first unit that can take it, else to a new unit; a chain that may not grow is folded into one unit
//! first. If the chip demands ascending order, an offset that was skipped stays a gap, which the walk steps over; the
//! position up to which a unit is programmed is known without a read.
//!
//! Invariants: every page of a unit lies at its own offset; the newest copy of an offset is in the last unit of the
//! chain that has it programmed; a chain has no more than 1 + K units. In addition to the units in use,
//! `reserve-blocks` blocks stay erased for folds.

use super::{BuildScheme, SchemeContext};
use crate::durable::{MountError, Scan, consolidate};
use crate::merge::{ErasedBlocks, LogicalBlocks, Mover, NONE, Queues, audit_map, spare_problem};
use crate::{Cause, CleansInSteps, Flash, Ftl, LpnRun, OutOfSpace, SchemeFigures, ServesRam, Violation};
use flashwright_nand::{BlockId, Geometry, Lpn, Ppn, prefetch, table};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[ftl.replacement]`: replacement blocks behind each data block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ReplacementSettings {
    /// Replacement blocks that a data block may have (K); 0 means no limit, as in `nftlcore.c`.
    pub replacement_blocks_max: u32,
    /// Erased blocks reserved for folds; `nftlcore.c` keeps 2.
    #[schemars(range(min = 1), extend("x-expected" = "{range}: a fold needs an erased block"))]
    pub reserve_blocks: u32,
}

impl Default for ReplacementSettings {
    fn default() -> Self {
        Self { replacement_blocks_max: 2, reserve_blocks: 1 }
    }
}

/// `ftl.scheme = "replacement"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Replacement {
    logical: LogicalBlocks,
    /// The primary unit of each logical block, or [`NONE`].
    primary: Vec<u32>,
    /// The unit that follows a block in its chain, or [`NONE`].
    follower: Vec<u32>,
    /// Units of each chain.
    length: Vec<u32>,
    /// Chains of two or more units, in one queue per length.
    long: Queues,
    /// The largest length that a chain may have now.
    longest: u32,
    length_max: u32,
    reserve: usize,
    erased: ErasedBlocks,
    entry_bytes: u32,
    figures: Figures,
    #[serde(skip)]
    mover: Mover,
    /// The newest copies of the current chain, by offset; [`NONE`] if there is none.
    #[serde(skip)]
    newest: Vec<u32>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Figures {
    folds_in_place: u64,
    folds_out_of_place: u64,
    /// Host pages that were looked up, and spare areas read for these lookups.
    accesses: u64,
    access_oob_reads: u64,
}

/// The result of a walk along a chain at an offset.
struct Walk {
    /// The page of the last unit that has it programmed.
    newest: Option<Ppn>,
    /// The first page that can be programmed.
    room: Option<Ppn>,
}

impl BuildScheme for Replacement {
    const NAME: &'static str = "replacement";
    const ABOUT: &'static str = "replacement blocks behind each data block, folded when the chain is full (NFTL, 1:K)";
    type Settings = ReplacementSettings;

    fn problems(context: &SchemeContext, flash: &Flash) -> Vec<String> {
        let reserve = context.ftl.schemes.replacement.reserve_blocks;
        let why = format!("ftl.replacement.reserve-blocks = {reserve} for folds, and one replacement");
        spare_problem(context, flash, u64::from(reserve) + 1, &why).into_iter().collect()
    }

    fn table_bytes(_: &ReplacementSettings, _: u32, _: &Geometry) -> u64 {
        0 // some words for each block
    }

    fn new(context: &SchemeContext, flash: &mut Flash) -> Self {
        let ReplacementSettings { replacement_blocks_max, reserve_blocks } = context.ftl.schemes.replacement;
        let logical = LogicalBlocks::new(context.logical_pages, flash.geometry());
        Self {
            logical,
            primary: table(NONE, logical.count() as usize),
            follower: table(NONE, flash.geometry().blocks() as usize),
            length: table(0, logical.count() as usize),
            long: Queues::new(logical.count(), 3),
            longest: 1,
            length_max: match replacement_blocks_max {
                0 => u32::MAX,
                replacements => replacements.saturating_add(1),
            },
            reserve: reserve_blocks as usize,
            erased: ErasedBlocks::new(context, flash),
            entry_bytes: context.ftl.entry_bytes,
            figures: Figures::default(),
            mover: Mover::default(),
            newest: Vec::new(),
        }
    }

    /// Every chain is folded into its primary unit.
    fn mount(context: &SchemeContext, scan: &mut Scan, flash: &mut Flash) -> Result<Self, MountError> {
        let mut scheme = Self::new(context, flash);
        let data = consolidate(scheme.logical, &mut scheme.erased, scan, flash)?;
        for (lbn, unit) in (0..).zip(data).filter(|(_, unit)| *unit != NONE) {
            scheme.append(lbn, BlockId(unit));
        }
        Ok(scheme)
    }
}

impl Ftl for Replacement {
    fn read(&mut self, run: LpnRun, flash: &mut Flash) {
        for lpn in run.iter() {
            let (lbn, offset) = self.logical.split(lpn);
            match self.walk(lbn, offset, flash).newest {
                Some(ppn) if flash.is_valid(ppn) => flash.read(ppn, lpn),
                _ => flash.read_unmapped(lpn),
            }
        }
    }

    fn write(&mut self, run: LpnRun, flash: &mut Flash) -> Result<(), OutOfSpace> {
        for lpn in run.iter() {
            self.write_page(lpn, flash)?;
        }
        Ok(())
    }

    fn trim(&mut self, run: LpnRun, flash: &mut Flash) {
        for lpn in run.iter() {
            if let Some(ppn) = self.lookup(lpn, flash) {
                flash.invalidate(ppn);
            }
        }
    }

    fn lookup(&self, lpn: Lpn, flash: &Flash) -> Option<Ppn> {
        let (lbn, offset) = self.logical.split(lpn);
        let page = |unit| flash.geometry().page_at(unit, offset);
        self.chain(lbn)
            .map(page)
            .filter(|page| flash.nand().spare(*page).is_some())
            .last()
            .filter(|page| flash.is_valid(*page))
    }

    fn audit(&self, flash: &Flash, violations: &mut Vec<Violation>) {
        audit_map(self.logical, flash, |lpn| self.lookup(lpn, flash), violations);
        let units = (0..self.logical.count()).flat_map(|lbn| self.chain(lbn)).map(|unit| (unit, "a unit of a chain"));
        self.erased.audit(flash, units, violations);
        for lbn in 0..self.logical.count() {
            let (counted, length) = (self.chain(lbn).count() as u32, self.length[lbn as usize]);
            if counted != length || length > self.length_max || length > self.longest.max(1) {
                violations.push(Violation(format!(
                    "the chain of block {lbn} has {counted} units, counts {length}, may have {}",
                    self.length_max.min(self.longest)
                )));
            }
        }
        let queued: usize = (2..=self.longest as usize).map(|length| self.long.iter(length).count()).sum();
        let long = self.length.iter().filter(|length| **length > 1).count();
        if queued != long {
            violations.push(Violation(format!("{queued} chains are queued for folding, {long} have replacements")));
        }
    }

    fn figures(&self) -> SchemeFigures {
        let Figures { folds_in_place, folds_out_of_place, accesses, access_oob_reads } = self.figures;
        let chains = self.length.iter().filter(|length| **length > 0).count();
        let units: u64 = self.length.iter().map(|length| u64::from(*length)).sum();
        SchemeFigures {
            ram_bytes: self.primary.len() as u64 * u64::from(self.entry_bytes),
            extra: vec![
                ("chain_length_mean_blocks".to_owned(), units as f64 / (chains as f64).max(1.0)),
                ("per_access_oob_reads".to_owned(), access_oob_reads as f64 / (accesses as f64).max(1.0)),
                ("in_place_folds".to_owned(), folds_in_place as f64),
                ("out_of_place_folds".to_owned(), folds_out_of_place as f64),
            ],
            ..SchemeFigures::default()
        }
    }

    fn reset_figures(&mut self) {
        self.figures = Figures::default();
    }

    #[inline(always)]
    fn expect_far(&self, lpn: Lpn) {
        prefetch(&self.primary, self.logical.block_of(lpn) as usize);
    }
}

impl CleansInSteps for Replacement {}

impl ServesRam for Replacement {}

impl Replacement {
    fn chain(&self, lbn: u32) -> impl Iterator<Item = BlockId> {
        let unit = |unit: u32| (unit != NONE).then_some(BlockId(unit));
        std::iter::successors(unit(self.primary[lbn as usize]), move |before| unit(self.follower[before.index()]))
    }

    /// Reads spare areas along the chain at an offset.
    fn walk(&mut self, lbn: u32, offset: u32, flash: &mut Flash) -> Walk {
        self.figures.accesses += 1;
        let mut walk = Walk { newest: None, room: None };
        let mut unit = self.primary[lbn as usize];
        while unit != NONE {
            let page = flash.geometry().page_at(BlockId(unit), offset);
            self.figures.access_oob_reads += 1;
            if flash.read_oob(page, Cause::Host).is_some() {
                walk.newest = Some(page);
            } else if flash.nand().is_programmable(page) {
                walk.room = Some(page);
                break;
            }
            unit = self.follower[unit as usize];
        }
        walk
    }

    fn write_page(&mut self, lpn: Lpn, flash: &mut Flash) -> Result<(), OutOfSpace> {
        let (lbn, offset) = self.logical.split(lpn);
        let Walk { newest: mut old, mut room } = self.walk(lbn, offset, flash);
        let page = loop {
            if let Some(page) = room {
                break page;
            }
            let length = self.length[lbn as usize];
            if length < self.length_max
                && let Some(unit) = self.erased.take_leaving(self.reserve)
            {
                self.append(lbn, unit);
                break flash.geometry().page_at(unit, offset);
            }
            let folded = if length == self.length_max { Some(lbn) } else { self.longest_chain() };
            let folded = folded.ok_or_else(|| self.erased.exhausted(flash))?;
            self.fold(folded, flash)?;
            if folded == lbn {
                // The scan has shown what the remaining unit, if any, holds at this offset.
                let unit = self.chain(lbn).next();
                let page = unit.map(|unit| flash.geometry().page_at(unit, offset));
                room = page.filter(|page| flash.nand().is_programmable(*page));
                old = page.filter(|page| flash.nand().spare(*page).is_some());
            }
        };
        flash.program(page, lpn, Cause::Host);
        if let Some(old) = old.filter(|old| flash.is_valid(*old)) {
            flash.invalidate(old);
        }
        Ok(())
    }

    /// The chain with the most units, at least two; among equals the one that has had this length for longest.
    fn longest_chain(&mut self) -> Option<u32> {
        while self.longest > 1 {
            if let Some(lbn) = self.long.first(self.longest as usize) {
                return Some(lbn);
            }
            self.longest -= 1;
        }
        None
    }

    fn append(&mut self, lbn: u32, unit: BlockId) {
        match self.chain(lbn).last() {
            Some(last) => self.follower[last.index()] = unit.0,
            None => self.primary[lbn as usize] = unit.0,
        }
        self.set_length(lbn, self.length[lbn as usize] + 1);
    }

    fn set_length(&mut self, lbn: u32, length: u32) {
        let before = std::mem::replace(&mut self.length[lbn as usize], length);
        if before > 1 {
            self.long.remove(before as usize, lbn);
        }
        if length > 1 {
            self.long.push(length as usize, lbn);
            self.longest = self.longest.max(length);
        }
    }

    /// Folds a chain: copies its current pages into its last unit if they can be programmed there, else into an erased
    /// block, and releases the other units.
    fn fold(&mut self, lbn: u32, flash: &mut Flash) -> Result<(), OutOfSpace> {
        let per_block = self.logical.per_block();
        let last = self.chain(lbn).last().expect("a chain that is folded has units");
        let mut newest = std::mem::take(&mut self.newest);
        newest.clear();
        newest.resize(per_block as usize, NONE);
        for page in self.chain(lbn).flat_map(|unit| flash.valid_pages(unit)) {
            newest[flash.geometry().page_in_block(page) as usize] = page.0;
        }
        self.newest = newest;
        let in_last = |page: u32| flash.geometry().block_of(Ppn(page)) == last;
        let empty = self.newest.iter().all(|page| *page == NONE);
        let in_place = (0u32..).zip(&self.newest).all(|(offset, page)| {
            *page == NONE || in_last(*page) || flash.nand().is_programmable(flash.geometry().page_at(last, offset))
        });
        let target = match () {
            () if empty => None,
            () if in_place => Some(last),
            () => Some(self.erased.take().ok_or_else(|| self.erased.exhausted(flash))?),
        };
        let mut unit = self.primary[lbn as usize];
        while unit != NONE {
            flash.read_spares(BlockId(unit), Cause::Merge);
            unit = self.follower[unit as usize];
        }
        if let Some(target) = target {
            let newest = &self.newest;
            let (first, end) =
                (flash.geometry().first_page(target).0, flash.geometry().first_page(target).0 + per_block);
            let source = |offset: u32, _: &Flash| match newest[offset as usize] {
                NONE => None,
                page if (first..end).contains(&page) => None,
                page => Some(Ppn(page)),
            };
            self.mover.move_home(flash, target, self.logical.first_page(lbn), 0..per_block, 0..0, source);
        }
        let mut unit = std::mem::replace(&mut self.primary[lbn as usize], target.map_or(NONE, |target| target.0));
        while unit != NONE {
            let follower = std::mem::replace(&mut self.follower[unit as usize], NONE);
            if Some(BlockId(unit)) != target {
                self.erased.take_back(unit, flash);
            }
            unit = follower;
        }
        self.set_length(lbn, u32::from(target.is_some()));
        if in_place && !empty {
            self.figures.folds_in_place += 1;
        } else {
            self.figures.folds_out_of_place += 1;
        }
        Ok(())
    }
}
