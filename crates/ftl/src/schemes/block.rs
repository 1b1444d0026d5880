//! Block mapping: page i of a logical block is stored only in page i of its physical block, as in SmartMedia cards
//! (Gupta 2009, section 2: the coarse extreme; Hu 2012, section 1.2.1).
//!
//! ```text
//!   write(lbn, pages) ─► all their homes can be programmed? ── yes ─► program them
//!                               │ no
//!                        take an erased block; offset by offset: the new page, or a copy of the current one
//!                               └─► it becomes the data block, the old one is erased
//! ```
//!
//! Invariants: every valid page lies at its own offset in the block that its logical block maps to; every block is free,
//! data, retired or bad.

use super::{BuildScheme, SchemeContext};
use crate::durable::{MountError, Scan, consolidate};
use crate::merge::{ErasedBlocks, LogicalBlocks, Mover, NONE, audit_map, current_home, spare_problem};
use crate::{Cause, CleansInSteps, Flash, Ftl, LpnRun, OutOfSpace, SchemeFigures, ServesRam, Violation};
use flashwright_nand::{BlockId, Geometry, Lpn, Ppn, prefetch, table};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which pages one rewrite of a block covers: `ftl.block.coalesce`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Coalesce {
    /// All pages of a request that lie in one block.
    #[default]
    Request,
    /// A single page.
    Page,
}

/// `[ftl.block]`: block mapping.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct BlockMapSettings {
    /// Which pages one rewrite of a block covers.
    pub coalesce: Coalesce,
}

/// `ftl.scheme = "block"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BlockMap {
    logical: LogicalBlocks,
    /// The physical block of each logical one, or [`NONE`].
    data: Vec<u32>,
    erased: ErasedBlocks,
    coalesce: Coalesce,
    entry_bytes: u32,
    rewrites: u64,
    pages_copied: u64,
    #[serde(skip)]
    mover: Mover,
}

impl BuildScheme for BlockMap {
    const NAME: &'static str = "block";
    const ABOUT: &'static str =
        "block mapping: each page has a fixed place in its block (the coarse extreme of Gupta 2009)";
    type Settings = BlockMapSettings;

    fn problems(context: &SchemeContext, flash: &Flash) -> Vec<String> {
        spare_problem(context, flash, 1, "an erased block for a rewrite").into_iter().collect()
    }

    fn table_bytes(_: &BlockMapSettings, _: u32, _: &Geometry) -> u64 {
        0 // a word for each block
    }

    fn new(context: &SchemeContext, flash: &mut Flash) -> Self {
        let logical = LogicalBlocks::new(context.logical_pages, flash.geometry());
        Self {
            logical,
            data: table(NONE, logical.count() as usize),
            erased: ErasedBlocks::new(context, flash),
            coalesce: context.ftl.schemes.block.coalesce,
            entry_bytes: context.ftl.entry_bytes,
            rewrites: 0,
            pages_copied: 0,
            mover: Mover::default(),
        }
    }

    fn mount(context: &SchemeContext, scan: &mut Scan, flash: &mut Flash) -> Result<Self, MountError> {
        let mut scheme = Self::new(context, flash);
        scheme.data = consolidate(scheme.logical, &mut scheme.erased, scan, flash)?;
        Ok(scheme)
    }
}

impl Ftl for BlockMap {
    #[inline]
    fn write(&mut self, run: LpnRun, flash: &mut Flash) -> Result<(), OutOfSpace> {
        let (mut at, end) = (run.first.0, run.first.0 + run.pages);
        while at < end {
            let (lbn, offset) = self.logical.split(Lpn(at));
            let count = match self.coalesce {
                Coalesce::Request => (self.logical.per_block() - offset).min(end - at),
                Coalesce::Page => 1,
            };
            self.write_in_block(lbn, offset..offset + count, flash)?;
            at += count;
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

    #[inline]
    fn lookup(&self, lpn: Lpn, flash: &Flash) -> Option<Ppn> {
        let (lbn, offset) = self.logical.split(lpn);
        current_home(self.data[lbn as usize], offset, flash)
    }

    fn audit(&self, flash: &Flash, violations: &mut Vec<Violation>) {
        audit_map(self.logical, flash, |lpn| self.lookup(lpn, flash), violations);
        let data = self.data.iter().filter(|block| **block != NONE).map(|block| (BlockId(*block), "data"));
        self.erased.audit(flash, data, violations);
    }

    fn figures(&self) -> SchemeFigures {
        let per_rewrite = self.pages_copied as f64 / (self.rewrites as f64).max(1.0);
        SchemeFigures {
            ram_bytes: self.data.len() as u64 * u64::from(self.entry_bytes),
            extra: vec![
                ("block_rewrites".to_owned(), self.rewrites as f64),
                ("copied_per_rewrite_pages".to_owned(), per_rewrite),
            ],
            ..SchemeFigures::default()
        }
    }

    fn reset_figures(&mut self) {
        self.rewrites = 0;
        self.pages_copied = 0;
    }

    #[inline(always)]
    fn expect_far(&self, lpn: Lpn) {
        prefetch(&self.data, self.logical.block_of(lpn) as usize);
    }

    #[inline(always)]
    fn expect_near(&self, lpn: Lpn, flash: &Flash) {
        let (lbn, offset) = self.logical.split(lpn);
        if let Some(block) = self.data.get(lbn as usize).filter(|block| **block != NONE) {
            flash.expect_invalidation(flash.geometry().page_at(BlockId(*block), offset));
        }
    }
}

impl CleansInSteps for BlockMap {}

impl ServesRam for BlockMap {}

impl BlockMap {
    /// Writes the pages at `offsets` of a logical block.
    #[inline]
    fn write_in_block(&mut self, lbn: u32, offsets: std::ops::Range<u32>, flash: &mut Flash) -> Result<(), OutOfSpace> {
        let first_lpn = self.logical.first_page(lbn);
        let old = self.data[lbn as usize];
        let fits = |flash: &Flash| {
            let home = |offset| flash.geometry().page_at(BlockId(old), offset);
            offsets.clone().all(|offset| !flash.is_valid(home(offset)) && flash.nand().is_programmable(home(offset)))
        };
        if old != NONE && fits(flash) {
            for offset in offsets {
                flash.program(flash.geometry().page_at(BlockId(old), offset), Lpn(first_lpn + offset), Cause::Host);
            }
            return Ok(());
        }
        let target = self.erased.take().ok_or_else(|| self.erased.exhausted(flash))?;
        self.data[lbn as usize] = target.0;
        let newest = |offset, flash: &Flash| current_home(old, offset, flash);
        let copied = self.mover.move_home(flash, target, first_lpn, 0..self.logical.per_block(), offsets, newest);
        if old != NONE {
            self.rewrites += 1;
            self.pages_copied += u64::from(copied);
            self.erased.take_back(old, flash);
        }
        Ok(())
    }
}
