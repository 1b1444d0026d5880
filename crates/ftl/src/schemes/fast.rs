//! FAST: one log block for a sequential stream, the others shared by pages of any data block (Lee et al., ACM TECS 6(3),
//! 2007, as Gupta 2009, section 2 and Figure 3, reports it).
//!
//! ```text
//!   rule  a page of a logical block, at an offset               action
//!   0     home can be programmed, no newer copy                 program it
//!   1     offset 0                                              retire the sequential log, take a new one for the block
//!   2     its sequential log, next offset                       append
//!   3     its sequential log, beyond the next offset            partial merge of that log with the new page in it
//!   4     its sequential log, before the next offset            full merge of its owner with the new page in it
//!   5     else                                                  append to the newest random log
//! ```
//!
//! Random logs are reclaimed in the order of their first use: every logical block with a current page in the victim is
//! merged as a whole, with its pages from wherever they are; only then is the victim erased.
//!
//! Invariants: the sequential log holds page i only at position i, up to its next offset; of a block that owns it, no
//! other copy below that offset is current; the map of the random logs holds exactly their valid pages, so never two
//! entries for a page. One erased block beyond the logs stays free for full merges.

use super::{BuildScheme, SchemeContext};
use crate::durable::{MountError, Scan, consolidate};
use crate::merge::{
    ErasedBlocks, LogMap, LogicalBlocks, MERGE_RESERVE, Mover, NONE, audit_map, current_home, log_blocks, log_problems,
    spare_problem,
};
use crate::{Cause, CleansInSteps, Flash, Ftl, LpnRun, Merges, OutOfSpace, SchemeFigures, ServesRam, Violation};
use flashwright_nand::{BlockId, Geometry, Lpn, Ppn, prefetch, table};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// How an out-of-order write to the owner of the sequential log is handled: `ftl.fast.out-of-order`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OutOfOrder {
    /// The merge that it causes includes the new page (rules 3 and 4).
    #[default]
    Fold,
    /// The sequential log is retired first; the page then goes to a random log.
    MergeThenLog,
}

/// `[ftl.fast]`: log blocks that all data blocks share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct FastSettings {
    /// Log blocks, the sequential one included, as a share of all blocks, rounded down, at least two: 0.03 in Gupta 2009,
    /// 0.01 in Hu 2012.
    #[schemars(extend("exclusiveMinimum" = 0.0, "exclusiveMaximum" = 1.0), extend("x-expected" = "a share of all blocks {range}, such as 0.03"))]
    pub log_fraction: f64,
    /// Number of log blocks; it overrides `log-fraction` unless it is 0.
    pub log_blocks: u32,
    /// Whether a page goes to its home in the data block if that can still be programmed; otherwise every page goes to
    /// a log.
    pub home_first: bool,
    /// How an out-of-order write to the owner of the sequential log is handled.
    pub out_of_order: OutOfOrder,
    /// Whether a write to offset 0 opens a sequential log only for a block without pages in random logs.
    pub sw_needs_clean_rw: bool,
}

impl Default for FastSettings {
    fn default() -> Self {
        Self {
            log_fraction: 0.03,
            log_blocks: 0,
            home_first: true,
            out_of_order: OutOfOrder::Fold,
            sw_needs_clean_rw: false,
        }
    }
}

/// `ftl.scheme = "fast"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fast {
    logical: LogicalBlocks,
    /// The data block of each logical block, or [`NONE`].
    data: Vec<u32>,
    /// Current pages of each logical block in random logs.
    in_random: Vec<u16>,
    sequential: Option<SequentialLog>,
    /// Random logs by first use; the last one takes pages while it has room.
    random: VecDeque<BlockId>,
    map: LogMap,
    log_blocks: u32,
    erased: ErasedBlocks,
    settings: FastSettings,
    entry_bytes: u32,
    figures: Figures,
    #[serde(skip)]
    mover: Mover,
    /// Pages that a merge took out of random logs, until they are marked as invalid.
    #[serde(skip)]
    leaving: Vec<Ppn>,
    /// Pages of the current victim.
    #[serde(skip)]
    victim_pages: Vec<Ppn>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct SequentialLog {
    owner: u32,
    block: BlockId,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Figures {
    merges: Merges,
    reclaims: u64,
    /// Current pages in random logs when they were reclaimed.
    reclaimed_pages_valid: u64,
    /// Reclaimed random logs without a current page.
    reclaimed_dead: u64,
}

impl BuildScheme for Fast {
    const NAME: &'static str = "fast";
    const ABOUT: &'static str = "FAST: a sequential log block, and random ones that all data blocks share (Lee 2007)";
    type Settings = FastSettings;

    fn problems(context: &SchemeContext, flash: &Flash) -> Vec<String> {
        let FastSettings { log_fraction, log_blocks: given, .. } = context.ftl.schemes.fast;
        let mut problems = log_problems(Self::NAME, given, 2);
        let logs = log_blocks(given, log_fraction, 2, flash.geometry().blocks());
        let why = format!("{logs} log blocks by ftl.fast.log-fraction or log-blocks, and one for full merges");
        problems.extend(spare_problem(context, flash, u64::from(logs) + MERGE_RESERVE as u64, &why));
        problems
    }

    fn table_bytes(settings: &FastSettings, _: u32, geometry: &Geometry) -> u64 {
        let logs = log_blocks(settings.log_blocks, settings.log_fraction, 2, geometry.blocks());
        LogMap::bytes(logs.saturating_mul(geometry.pages_per_block()))
    }

    fn new(context: &SchemeContext, flash: &mut Flash) -> Self {
        let settings = context.ftl.schemes.fast.clone();
        let logical = LogicalBlocks::new(context.logical_pages, flash.geometry());
        let log_blocks = log_blocks(settings.log_blocks, settings.log_fraction, 2, flash.geometry().blocks());
        Self {
            logical,
            data: table(NONE, logical.count() as usize),
            in_random: table(0, logical.count() as usize),
            sequential: None,
            random: VecDeque::new(),
            map: LogMap::new((log_blocks - 1) * logical.per_block()),
            log_blocks,
            erased: ErasedBlocks::new(context, flash),
            settings,
            entry_bytes: context.ftl.entry_bytes,
            figures: Figures::default(),
            mover: Mover::default(),
            leaving: Vec::new(),
            victim_pages: Vec::new(),
        }
    }

    fn mount(context: &SchemeContext, scan: &mut Scan, flash: &mut Flash) -> Result<Self, MountError> {
        let mut scheme = Self::new(context, flash);
        scheme.data = consolidate(scheme.logical, &mut scheme.erased, scan, flash)?;
        Ok(scheme)
    }
}

impl Ftl for Fast {
    #[inline]
    fn write(&mut self, run: LpnRun, flash: &mut Flash) -> Result<(), OutOfSpace> {
        for lpn in run.iter() {
            self.write_page(lpn, flash)?;
        }
        Ok(())
    }

    fn trim(&mut self, run: LpnRun, flash: &mut Flash) {
        for lpn in run.iter() {
            let (lbn, offset) = self.logical.split(lpn);
            self.drop_copy(lpn, lbn, offset, flash);
        }
    }

    /// At most one copy of a page is valid, so the order of the checks does not matter: home first, where most pages
    /// are.
    #[inline]
    fn lookup(&self, lpn: Lpn, flash: &Flash) -> Option<Ppn> {
        let (lbn, offset) = self.logical.split(lpn);
        current_home(self.data[lbn as usize], offset, flash)
            .or_else(|| self.in_sequential(lbn, offset, flash))
            .or_else(|| if self.in_random[lbn as usize] > 0 { self.map.get(lpn) } else { None })
    }

    fn audit(&self, flash: &Flash, violations: &mut Vec<Violation>) {
        audit_map(self.logical, flash, |lpn| self.lookup(lpn, flash), violations);
        let data = self.data.iter().filter(|block| **block != NONE).map(|block| (BlockId(*block), "data"));
        let sequential = self.sequential.iter().map(|log| (log.block, "the sequential log"));
        let random = self.random.iter().map(|block| (*block, "a random log"));
        self.erased.audit(flash, data.chain(sequential).chain(random), violations);
        self.audit_random(flash, violations);
        if let Some(SequentialLog { owner, block }) = self.sequential {
            let first_lpn = self.logical.first_page(owner);
            for position in 0..flash.nand().next_page(block) {
                let spare = flash.nand().spare(flash.geometry().page_at(block, position));
                let home = current_home(self.data[owner as usize], position, flash);
                if spare != Some(Lpn(first_lpn + position))
                    || home.is_some()
                    || self.map.get(Lpn(first_lpn + position)).is_some()
                {
                    violations.push(Violation(format!(
                        "the sequential log of block {owner} names {spare:?} at {position}, or is not the newest there"
                    )));
                }
            }
        }
    }

    fn figures(&self) -> SchemeFigures {
        let Figures { merges, reclaims, reclaimed_pages_valid, reclaimed_dead } = &self.figures;
        let log_pages = u64::from(self.log_blocks) * u64::from(self.logical.per_block());
        // The map of blocks, the page map of the logs, owner and cursor of the sequential log.
        let entries = self.data.len() as u64 + log_pages + 2;
        SchemeFigures {
            merges: Some(merges.clone()),
            ram_bytes: entries * u64::from(self.entry_bytes),
            extra: vec![
                ("log_reclaims".to_owned(), *reclaims as f64),
                ("dead_log_reclaims".to_owned(), *reclaimed_dead as f64),
                ("valid_at_reclaim_pages".to_owned(), *reclaimed_pages_valid as f64 / (*reclaims as f64).max(1.0)),
                ("log_blocks".to_owned(), f64::from(self.log_blocks)),
            ],
            ..SchemeFigures::default()
        }
    }

    fn reset_figures(&mut self) {
        self.figures = Figures::default();
    }

    #[inline(always)]
    fn expect_far(&self, lpn: Lpn) {
        let lbn = self.logical.block_of(lpn) as usize;
        prefetch(&self.data, lbn);
        prefetch(&self.in_random, lbn);
    }

    #[inline(always)]
    fn expect_near(&self, lpn: Lpn, flash: &Flash) {
        self.logical.expect_home(lpn, &self.data, flash);
        self.map.expect(lpn);
    }
}

impl CleansInSteps for Fast {}

impl ServesRam for Fast {}

impl Fast {
    #[inline]
    fn write_page(&mut self, lpn: Lpn, flash: &mut Flash) -> Result<(), OutOfSpace> {
        let (lbn, offset) = self.logical.split(lpn);
        if self.settings.home_first
            && let Some(home) = self.programmable_home(lpn, lbn, offset, flash)?
        {
            flash.program(home, lpn, Cause::Host);
            return Ok(());
        }
        let opens = offset == 0 && !(self.settings.sw_needs_clean_rw && self.in_random[lbn as usize] > 0);
        if opens {
            return self.open_sequential(lpn, lbn, flash);
        }
        if let Some(SequentialLog { owner, block }) = self.sequential
            && owner == lbn
        {
            let next = flash.nand().next_page(block);
            if offset == next {
                self.drop_copy(lpn, lbn, offset, flash);
                flash.program(flash.geometry().page_at(block, offset), lpn, Cause::Host);
                return Ok(());
            }
            match self.settings.out_of_order {
                OutOfOrder::Fold if offset > next => {
                    self.merge_sequential(offset..offset + 1, flash);
                    return Ok(());
                }
                OutOfOrder::Fold => return self.merge_full(lbn, offset..offset + 1, flash),
                OutOfOrder::MergeThenLog => self.merge_sequential(0..0, flash),
            }
        }
        self.append_random(lpn, lbn, offset, flash)
    }

    /// Rule 0: the home of a page that has no newer copy, if it can be programmed. Assigns a data block to a block
    /// without one.
    #[inline]
    fn programmable_home(
        &mut self,
        lpn: Lpn,
        lbn: u32,
        offset: u32,
        flash: &mut Flash,
    ) -> Result<Option<Ppn>, OutOfSpace> {
        if self.lookup(lpn, flash).is_some() {
            return Ok(None);
        }
        // The sequential log has passed this offset, so it will become the data block.
        if let Some(SequentialLog { owner, block }) = self.sequential
            && owner == lbn
            && offset < flash.nand().next_page(block)
        {
            return Ok(None);
        }
        let mut data = self.data[lbn as usize];
        if data == NONE {
            if self.in_random[lbn as usize] > 0 || self.sequential.is_some_and(|log| log.owner == lbn) {
                return Ok(None);
            }
            data = self.take_block(flash)?.0;
            self.data[lbn as usize] = data;
        }
        let home = flash.geometry().page_at(BlockId(data), offset);
        Ok(flash.nand().is_programmable(home).then_some(home))
    }

    /// Rule 1: a new sequential log that starts with this page.
    fn open_sequential(&mut self, lpn: Lpn, lbn: u32, flash: &mut Flash) -> Result<(), OutOfSpace> {
        if self.sequential.is_some() {
            self.merge_sequential(0..0, flash);
        }
        let block = self.take_block(flash)?;
        self.drop_copy(lpn, lbn, 0, flash);
        flash.program(flash.geometry().page_at(block, 0), lpn, Cause::Host);
        self.sequential = Some(SequentialLog { owner: lbn, block });
        Ok(())
    }

    /// Rule 5: the page goes to the newest random log.
    #[inline]
    fn append_random(&mut self, lpn: Lpn, lbn: u32, offset: u32, flash: &mut Flash) -> Result<(), OutOfSpace> {
        let per_block = self.logical.per_block();
        let log = match self.random.back() {
            Some(log) if flash.nand().next_page(*log) < per_block => *log,
            _ => self.open_random(flash)?,
        };
        let ppn = flash.geometry().page_at(log, flash.nand().next_page(log));
        flash.program(ppn, lpn, Cause::Host);
        if let Some(home) = current_home(self.data[lbn as usize], offset, flash) {
            flash.invalidate(home);
        } else if let Some(page) = self.in_sequential(lbn, offset, flash) {
            flash.invalidate(page);
        }
        match self.map.insert(lpn, ppn) {
            Some(old) => {
                flash.invalidate(old);
            }
            None => self.in_random[lbn as usize] += 1,
        }
        Ok(())
    }

    /// Opens a random log; if all are in use, reclaims the oldest first.
    fn open_random(&mut self, flash: &mut Flash) -> Result<BlockId, OutOfSpace> {
        if self.random.len() + 1 >= self.log_blocks as usize {
            self.reclaim(flash)?;
        }
        let log = self.take_block(flash)?;
        self.random.push_back(log);
        Ok(log)
    }

    /// An erased block beyond the reserve, after reclaiming logs if necessary.
    fn take_block(&mut self, flash: &mut Flash) -> Result<BlockId, OutOfSpace> {
        loop {
            if let Some(block) = self.erased.take_leaving(MERGE_RESERVE) {
                return Ok(block);
            }
            if self.sequential.is_some() {
                self.merge_sequential(0..0, flash);
            } else if self.random.is_empty() {
                return Err(self.erased.exhausted(flash));
            } else {
                self.reclaim(flash)?;
            }
        }
    }

    /// Reclaims the oldest random log: merges every logical block that has a current page in it.
    fn reclaim(&mut self, flash: &mut Flash) -> Result<(), OutOfSpace> {
        let Some(victim) = self.random.front().copied() else { return Ok(()) };
        let mut pages = std::mem::take(&mut self.victim_pages);
        pages.clear();
        pages.extend(flash.valid_pages(victim));
        let mut data_blocks = 0;
        let mut merged = Ok(());
        for page in &pages {
            if !flash.is_valid(*page) {
                continue; // was moved with an earlier page of its block
            }
            let lbn = self.logical.block_of(flash.nand().spare(*page).expect("a valid page names its owner"));
            match self.sequential {
                Some(log) if log.owner == lbn => self.merge_sequential(0..0, flash),
                _ => merged = self.merge_full(lbn, 0..0, flash),
            }
            if merged.is_err() {
                break;
            }
            data_blocks += 1;
        }
        let valid = pages.len() as u64;
        self.victim_pages = pages;
        merged?;
        self.random.pop_front();
        self.erased.release(victim, Cause::Merge, flash);
        self.figures.reclaims += 1;
        self.figures.reclaimed_pages_valid += valid;
        self.figures.reclaimed_dead += u64::from(valid == 0);
        self.figures.merges.count_reclaim(data_blocks);
        Ok(())
    }

    /// Retires the sequential log: missing pages are copied into it, or written if the host provides them (rule 3), and
    /// it becomes the data block.
    fn merge_sequential(&mut self, host: std::ops::Range<u32>, flash: &mut Flash) {
        let Some(SequentialLog { owner, block }) = self.sequential.take() else { return };
        let (next, per_block) = (flash.nand().next_page(block), self.logical.per_block());
        self.gather_and_move(owner, block, next..per_block, host, None, flash);
        let old = std::mem::replace(&mut self.data[owner as usize], block.0);
        self.erased.take_back(old, flash);
        let kind = if next == per_block { &mut self.figures.merges.switch } else { &mut self.figures.merges.partial };
        *kind += 1;
    }

    /// Merges all pages of a logical block into an erased one, including the host's new page (rule 4). Its sequential
    /// log, if any, is released too.
    fn merge_full(&mut self, lbn: u32, host: std::ops::Range<u32>, flash: &mut Flash) -> Result<(), OutOfSpace> {
        let target = self.erased.take().ok_or_else(|| self.erased.exhausted(flash))?;
        let sequential = self.sequential.take_if(|log| log.owner == lbn).map(|log| log.block);
        self.gather_and_move(lbn, target, 0..self.logical.per_block(), host, sequential, flash);
        let old = std::mem::replace(&mut self.data[lbn as usize], target.0);
        self.erased.take_back(old, flash);
        if let Some(log) = sequential {
            self.erased.take_back(log.0, flash);
            self.figures.merges.count_reclaim(1);
        }
        self.figures.merges.full += 1;
        Ok(())
    }

    /// Moves the current pages of a logical block at `offsets` home to `target`; those of random logs leave these.
    fn gather_and_move(
        &mut self,
        lbn: u32,
        target: BlockId,
        offsets: std::ops::Range<u32>,
        host: std::ops::Range<u32>,
        sequential: Option<BlockId>,
        flash: &mut Flash,
    ) {
        let (data, first_lpn) = (self.data[lbn as usize], self.logical.first_page(lbn));
        let Self { mover, map, in_random, leaving, .. } = self;
        let in_random = &mut in_random[lbn as usize];
        if let Some(old) = host.clone().next().filter(|_| *in_random > 0).and_then(|at| map.remove(Lpn(first_lpn + at)))
        {
            *in_random -= 1;
            leaving.push(old);
        }
        mover.move_home(flash, target, first_lpn, offsets, host, |offset, flash| {
            let sequential = sequential.map(|log| flash.geometry().page_at(log, offset));
            current_home(data, offset, flash).or_else(|| sequential.filter(|page| flash.is_valid(*page))).or_else(
                || {
                    let page = if *in_random > 0 { map.remove(Lpn(first_lpn + offset)) } else { None };
                    page.inspect(|page| {
                        *in_random -= 1;
                        leaving.push(*page);
                    })
                },
            )
        });
        for page in leaving.drain(..) {
            flash.invalidate(page);
        }
    }

    /// The copy of a page in the sequential log.
    #[inline(always)]
    fn in_sequential(&self, lbn: u32, offset: u32, flash: &Flash) -> Option<Ppn> {
        let log = self.sequential.filter(|log| log.owner == lbn)?;
        let page = flash.geometry().page_at(log.block, offset);
        flash.is_valid(page).then_some(page)
    }

    /// Marks the current copy of a page as invalid, if there is one.
    #[inline]
    fn drop_copy(&mut self, lpn: Lpn, lbn: u32, offset: u32, flash: &mut Flash) {
        if let Some(page) =
            current_home(self.data[lbn as usize], offset, flash).or_else(|| self.in_sequential(lbn, offset, flash))
        {
            flash.invalidate(page);
        } else if self.in_random[lbn as usize] > 0
            && let Some(page) = self.map.remove(lpn)
        {
            self.in_random[lbn as usize] -= 1;
            flash.invalidate(page);
        }
    }

    fn audit_random(&self, flash: &Flash, violations: &mut Vec<Violation>) {
        let covers = |block| self.random.contains(&block);
        self.map.audit(self.random.iter().copied(), &self.in_random, covers, flash, violations);
        if self.random.len() + 1 > self.log_blocks as usize {
            violations.push(Violation(format!("{} random logs of {} in all", self.random.len(), self.log_blocks)));
        }
        let full = |block: &BlockId| flash.nand().next_page(*block) == self.logical.per_block();
        if self.random.iter().rev().skip(1).any(|block| !full(block)) {
            violations.push(Violation("a random log that is not the newest has room".to_owned()));
        }
    }
}
