//! BAST: each of M log blocks takes the updates of one data block (Kim et al., IEEE Trans. Consumer Electronics 48(2),
//! 2002, as Gupta 2009, section 2, and Hu 2012, section 1.2.1, report it).
//!
//! ```text
//!   write(page) ─► has its block a log? ─ no ─► home can be programmed? ─ yes ─► program it
//!                        │ yes                        │ no
//!                 full? merge it              a log is left? ─ no ─► merge the victim log
//!                        └──────────► append to the log ◄───────────────┘
//!
//!   switch    log holds all pages in order: it becomes the data block        1 erase
//!   partial   log holds the first n in order: the rest is copied into it     1 erase
//!   full      else: all current pages into a fresh block                     2 erases
//! ```
//!
//! Invariants: a log belongs to one logical block, and a logical block has at most one log; while it has one, none of
//! its pages are programmed at home; a page in the log map is valid; a log is `in_order` if and only if the page at
//! each of its positions has that offset. One erased block beyond the logs stays free for full merges.

use super::{BuildScheme, SchemeContext};
use crate::durable::{MountError, Scan, consolidate};
use crate::merge::{
    ErasedBlocks, LogicalBlocks, MERGE_RESERVE, Mover, NONE, Queues, audit_map, current_home, log_blocks, log_problems,
    spare_problem,
};
use crate::{Cause, CleansInSteps, Flash, Ftl, LpnRun, Merges, OutOfSpace, SchemeFigures, ServesRam, Violation};
use flashwright_block::{Rng, below};
use flashwright_nand::{BlockId, Geometry, Lpn, Ppn, prefetch, table};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which log is merged to make room when all are in use: `ftl.bast.victim-log`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VictimLog {
    /// The least recently written one.
    #[default]
    Lru,
    /// The one that was assigned first.
    Fifo,
    /// A random one, all equally likely.
    Random,
}

/// `[ftl.bast]`: one log block for a data block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct BastSettings {
    /// Log blocks as a share of all blocks, rounded down, at least one: 0.03 in Gupta 2009, 0.01 in Hu 2012.
    #[schemars(extend("exclusiveMinimum" = 0.0, "exclusiveMaximum" = 1.0), extend("x-expected" = "a share of all blocks {range}, such as 0.03"))]
    pub log_fraction: f64,
    /// Number of log blocks; it overrides `log-fraction` unless it is 0.
    pub log_blocks: u32,
    /// Whether a page goes to its home in the data block if that can still be programmed and the block has no log;
    /// otherwise every page goes to a log.
    pub home_first: bool,
    /// Which log is merged to make room when all are in use.
    pub victim_log: VictimLog,
    /// Whether a log becomes the data block as soon as it holds all pages in order; otherwise it does so when its space
    /// is needed.
    pub eager_switch: bool,
}

impl Default for BastSettings {
    fn default() -> Self {
        Self { log_fraction: 0.03, log_blocks: 0, home_first: true, victim_log: VictimLog::Lru, eager_switch: true }
    }
}

/// `ftl.scheme = "bast"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bast {
    logical: LogicalBlocks,
    /// The data block of each logical block, or [`NONE`].
    data: Vec<u32>,
    /// The log slot of each logical block, or [`NONE`].
    log_of: Vec<u32>,
    logs: Vec<Log>,
    /// By slot and offset: one past the position of the newest copy in the log, 0 if it is not there.
    positions: Vec<u16>,
    /// Slots in use, in the order in which they become victims.
    order: Queues,
    /// Slots in use first, from which a random victim is drawn; then unused ones.
    slots: Vec<u32>,
    used: u32,
    rng: Rng,
    erased: ErasedBlocks,
    settings: BastSettings,
    entry_bytes: u32,
    figures: Figures,
    #[serde(skip)]
    mover: Mover,
}

/// A log slot. Without an owner the other fields have no meaning.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Log {
    owner: u32,
    block: BlockId,
    /// Whether the page at each position has that offset.
    in_order: bool,
    /// Its index in `slots`.
    place: u32,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Figures {
    merges: Merges,
    /// Pages programmed in logs by the time they were merged.
    log_pages_used: u64,
    /// Runs of whole blocks, written without the log map.
    whole_blocks: u64,
}

/// The one queue of slots.
const ORDER: usize = 0;

impl BuildScheme for Bast {
    const NAME: &'static str = "bast";
    const ABOUT: &'static str = "BAST: each log block takes the updates of one data block (Kim 2002)";
    type Settings = BastSettings;

    fn problems(context: &SchemeContext, flash: &Flash) -> Vec<String> {
        let BastSettings { log_fraction, log_blocks: given, .. } = context.ftl.schemes.bast;
        let mut problems = log_problems(Self::NAME, given, 1);
        let logs = log_blocks(given, log_fraction, 1, flash.geometry().blocks());
        let why = format!("{logs} log blocks by ftl.bast.log-fraction or log-blocks, and one for full merges");
        problems.extend(spare_problem(context, flash, u64::from(logs) + MERGE_RESERVE as u64, &why));
        problems
    }

    fn table_bytes(settings: &BastSettings, _: u32, geometry: &Geometry) -> u64 {
        let logs = log_blocks(settings.log_blocks, settings.log_fraction, 1, geometry.blocks());
        u64::from(logs) * u64::from(geometry.pages_per_block()) * 2
    }

    fn new(context: &SchemeContext, flash: &mut Flash) -> Self {
        let settings = context.ftl.schemes.bast.clone();
        let logical = LogicalBlocks::new(context.logical_pages, flash.geometry());
        let slots = log_blocks(settings.log_blocks, settings.log_fraction, 1, flash.geometry().blocks());
        let unused = Log { owner: NONE, block: BlockId(0), in_order: true, place: 0 };
        Self {
            logical,
            data: table(NONE, logical.count() as usize),
            log_of: table(NONE, logical.count() as usize),
            logs: (0..slots).map(|place| Log { place, ..unused }).collect(),
            positions: table(0, slots as usize * logical.per_block() as usize),
            order: Queues::new(slots, 1),
            slots: (0..slots).collect(),
            used: 0,
            rng: context.seed.stream("ftl.bast.victim-log"),
            erased: ErasedBlocks::new(context, flash),
            settings,
            entry_bytes: context.ftl.entry_bytes,
            figures: Figures::default(),
            mover: Mover::default(),
        }
    }

    fn mount(context: &SchemeContext, scan: &mut Scan, flash: &mut Flash) -> Result<Self, MountError> {
        let mut scheme = Self::new(context, flash);
        scheme.data = consolidate(scheme.logical, &mut scheme.erased, scan, flash)?;
        Ok(scheme)
    }
}

impl Ftl for Bast {
    #[inline]
    fn write(&mut self, run: LpnRun, flash: &mut Flash) -> Result<(), OutOfSpace> {
        let (mut at, end) = (run.first.0, run.first.0 + run.pages);
        while at < end {
            let (lbn, offset) = self.logical.split(Lpn(at));
            if offset == 0 && end - at >= self.logical.per_block() {
                self.write_whole_block(lbn, flash)?;
                at += self.logical.per_block();
            } else {
                self.write_page(lbn, offset, flash)?;
                at += 1;
            }
        }
        Ok(())
    }

    fn trim(&mut self, run: LpnRun, flash: &mut Flash) {
        for lpn in run.iter() {
            let (lbn, offset) = self.logical.split(lpn);
            self.drop_copy(lbn, offset, flash);
        }
    }

    #[inline]
    fn lookup(&self, lpn: Lpn, flash: &Flash) -> Option<Ppn> {
        let (lbn, offset) = self.logical.split(lpn);
        let slot = self.log_of[lbn as usize];
        if slot != NONE
            && let Some(ppn) = self.in_log(slot, offset, flash)
        {
            return Some(ppn);
        }
        current_home(self.data[lbn as usize], offset, flash)
    }

    fn audit(&self, flash: &Flash, violations: &mut Vec<Violation>) {
        audit_map(self.logical, flash, |lpn| self.lookup(lpn, flash), violations);
        let data = self.data.iter().filter(|block| **block != NONE).map(|block| (BlockId(*block), "data"));
        let in_use = self.logs.iter().filter(|log| log.owner != NONE);
        self.erased.audit(flash, data.chain(in_use.clone().map(|log| (log.block, "log"))), violations);
        if in_use.count() != self.used as usize || self.order.iter(ORDER).count() != self.used as usize {
            violations.push(Violation(format!("{} logs are counted, another number is in use", self.used)));
        }
        for (slot, log) in (0..).zip(&self.logs) {
            self.audit_log(slot, log, flash, violations);
        }
        let owners = self.log_of.iter().filter(|slot| **slot != NONE).count();
        if owners != self.used as usize {
            violations.push(Violation(format!("{owners} logical blocks have a log, {} logs are in use", self.used)));
        }
    }

    fn figures(&self) -> SchemeFigures {
        let Merges { switch, partial, full, .. } = self.figures.merges;
        let merges = (switch + partial + full) as f64;
        let blocks = self.data.len() as u64;
        let log_pages = self.logs.len() as u64 * u64::from(self.logical.per_block());
        SchemeFigures {
            merges: Some(self.figures.merges.clone()),
            ram_bytes: (blocks + log_pages) * u64::from(self.entry_bytes),
            extra: vec![
                ("log_used_at_merge_pages".to_owned(), self.figures.log_pages_used as f64 / merges.max(1.0)),
                ("whole_block_writes".to_owned(), self.figures.whole_blocks as f64),
                ("log_blocks".to_owned(), self.logs.len() as f64),
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
        prefetch(&self.log_of, lbn);
    }

    #[inline(always)]
    fn expect_near(&self, lpn: Lpn, flash: &Flash) {
        self.logical.expect_home(lpn, &self.data, flash);
    }
}

impl CleansInSteps for Bast {}

impl ServesRam for Bast {}

impl Bast {
    #[inline]
    fn write_page(&mut self, lbn: u32, offset: u32, flash: &mut Flash) -> Result<(), OutOfSpace> {
        let lpn = Lpn(self.logical.first_page(lbn) + offset);
        let mut slot = self.log_of[lbn as usize];
        if slot == NONE
            && self.settings.home_first
            && let Some(home) = self.programmable_home(lbn, offset, flash)?
        {
            flash.program(home, lpn, Cause::Host);
            return Ok(());
        }
        if slot != NONE && flash.nand().next_page(self.logs[slot as usize].block) == self.logical.per_block() {
            self.merge(slot, flash)?;
            slot = NONE;
        }
        if slot == NONE {
            slot = self.give_log(lbn, flash)?;
        }
        let log = &mut self.logs[slot as usize];
        let position = flash.nand().next_page(log.block);
        log.in_order &= position == offset;
        let complete = log.in_order && position + 1 == self.logical.per_block();
        let ppn = flash.geometry().page_at(log.block, position);
        self.drop_copy(lbn, offset, flash);
        flash.program(ppn, lpn, Cause::Host);
        let index = self.index(slot, offset);
        self.positions[index] = u16::try_from(position + 1).expect("positions fit 16 bits");
        if self.settings.victim_log == VictimLog::Lru {
            self.order.touch(ORDER, slot);
        }
        if complete && self.settings.eager_switch {
            self.merge(slot, flash)?;
        }
        Ok(())
    }

    /// The home of a page of a block without log, if it can be programmed. Assigns a data block to a block without one.
    #[inline]
    fn programmable_home(&mut self, lbn: u32, offset: u32, flash: &mut Flash) -> Result<Option<Ppn>, OutOfSpace> {
        let mut data = self.data[lbn as usize];
        if data == NONE {
            data = self.take_block(flash)?.0;
            self.data[lbn as usize] = data;
        }
        let home = flash.geometry().page_at(BlockId(data), offset);
        Ok((!flash.is_valid(home) && flash.nand().is_programmable(home)).then_some(home))
    }

    /// Writes all pages of a block at once: its log is superseded, and an erased log that takes the run becomes the
    /// data block.
    fn write_whole_block(&mut self, lbn: u32, flash: &mut Flash) -> Result<(), OutOfSpace> {
        let fresh = self.data[lbn as usize] == NONE;
        if !fresh && self.log_of[lbn as usize] == NONE && self.used as usize == self.logs.len() {
            self.merge_victim(flash)?;
        }
        // If the old data block comes back at once, the reserve block may be used.
        let block = if fresh { self.take_block(flash) } else { self.take_for_merge(flash) }?;
        let slot = self.log_of[lbn as usize];
        let log = (slot != NONE).then(|| self.drop_log(slot));
        if let Some(log) = log {
            flash.invalidate_block(log);
            if !flash.may_lose_power() {
                self.erased.release(log, Cause::Merge, flash);
            }
        }
        let old = std::mem::replace(&mut self.data[lbn as usize], block.0);
        if old != NONE {
            flash.invalidate_block(BlockId(old));
        }
        for offset in 0..self.logical.per_block() {
            let lpn = Lpn(self.logical.first_page(lbn) + offset);
            flash.program_in_merge(flash.geometry().page_at(block, offset), lpn);
        }
        // The old pages are needed until the new ones are there.
        if let Some(log) = log.filter(|_| flash.may_lose_power()) {
            self.erased.release(log, Cause::Merge, flash);
        }
        if old != NONE {
            self.erased.release(BlockId(old), Cause::Merge, flash);
            self.figures.merges.switch += 1;
            self.figures.log_pages_used += u64::from(self.logical.per_block());
        }
        self.figures.whole_blocks += 1;
        Ok(())
    }

    /// Assigns an erased log to a logical block without one.
    fn give_log(&mut self, lbn: u32, flash: &mut Flash) -> Result<u32, OutOfSpace> {
        if self.used as usize == self.logs.len() {
            self.merge_victim(flash)?;
        }
        let block = self.take_block(flash)?;
        let slot = self.slots[self.used as usize];
        self.used += 1;
        let log = &mut self.logs[slot as usize];
        (log.owner, log.block, log.in_order) = (lbn, block, true);
        self.order.push(ORDER, slot);
        self.log_of[lbn as usize] = slot;
        let first = self.index(slot, 0);
        self.positions[first..first + self.logical.per_block() as usize].fill(0);
        Ok(slot)
    }

    /// An erased block beyond the reserve, after merges if necessary.
    fn take_block(&mut self, flash: &mut Flash) -> Result<BlockId, OutOfSpace> {
        loop {
            if let Some(block) = self.erased.take_leaving(MERGE_RESERVE) {
                return Ok(block);
            }
            if self.used == 0 {
                return Err(self.erased.exhausted(flash));
            }
            self.merge_victim(flash)?;
        }
    }

    /// An erased block, the reserve if it is the last.
    fn take_for_merge(&mut self, flash: &Flash) -> Result<BlockId, OutOfSpace> {
        self.erased.take().ok_or_else(|| self.erased.exhausted(flash))
    }

    /// The log to merge to make room.
    fn victim(&mut self) -> u32 {
        match self.settings.victim_log {
            VictimLog::Random => {
                self.slots[usize::try_from(below(&mut self.rng, u64::from(self.used))).expect("a slot number")]
            }
            VictimLog::Lru | VictimLog::Fifo => self.order.first(ORDER).expect("a log is in use"),
        }
    }

    /// Merges the victim log.
    fn merge_victim(&mut self, flash: &mut Flash) -> Result<(), OutOfSpace> {
        let victim = self.victim();
        self.merge(victim, flash)
    }

    /// Merges a log into the data block of its owner.
    fn merge(&mut self, slot: u32, flash: &mut Flash) -> Result<(), OutOfSpace> {
        let Log { owner, block: log, in_order, .. } = self.logs[slot as usize];
        let (per_block, first_lpn) = (self.logical.per_block(), self.logical.first_page(owner));
        let data = self.data[owner as usize];
        let written = flash.nand().next_page(log);
        let empty = flash.pages_valid(log) == 0 && (data == NONE || flash.pages_valid(BlockId(data)) == 0);
        if in_order {
            let newest = |offset, flash: &Flash| current_home(data, offset, flash);
            self.mover.move_home(flash, log, first_lpn, written..per_block, 0..0, newest);
            self.data[owner as usize] = log.0;
            let kind =
                if written == per_block { &mut self.figures.merges.switch } else { &mut self.figures.merges.partial };
            *kind += 1;
        } else {
            let target = if empty { NONE } else { self.take_for_merge(flash)?.0 };
            if target != NONE {
                let positions = &self.positions[self.index(slot, 0)..];
                let newest = |offset, flash: &Flash| match positions[offset as usize] {
                    0 => current_home(data, offset, flash),
                    position => Some(flash.geometry().page_at(log, u32::from(position) - 1)),
                };
                self.mover.move_home(flash, BlockId(target), first_lpn, 0..per_block, 0..0, newest);
            }
            self.data[owner as usize] = target;
            let merges = &mut self.figures.merges;
            merges.full += 1;
            merges.count_reclaim(1);
        }
        self.figures.log_pages_used += u64::from(written);
        self.drop_log(slot);
        self.erased.take_back(data, flash);
        if !in_order {
            self.erased.take_back(log.0, flash);
        }
        Ok(())
    }

    /// Takes a log from its owner; the caller now owns the block.
    fn drop_log(&mut self, slot: u32) -> BlockId {
        let Log { owner, block, place, .. } = self.logs[slot as usize];
        self.log_of[owner as usize] = NONE;
        self.logs[slot as usize].owner = NONE;
        self.order.remove(ORDER, slot);
        self.used -= 1;
        // It swaps places with the last slot in use.
        let other = self.slots[self.used as usize];
        self.slots.swap(place as usize, self.used as usize);
        self.logs[other as usize].place = place;
        self.logs[slot as usize].place = self.used;
        block
    }

    #[inline(always)]
    fn index(&self, slot: u32, offset: u32) -> usize {
        slot as usize * self.logical.per_block() as usize + offset as usize
    }

    /// The copy of a page in a log.
    #[inline(always)]
    fn in_log(&self, slot: u32, offset: u32, flash: &Flash) -> Option<Ppn> {
        match self.positions[self.index(slot, offset)] {
            0 => None,
            position => Some(flash.geometry().page_at(self.logs[slot as usize].block, u32::from(position) - 1)),
        }
    }

    /// Marks the current copy of a page as invalid, if there is one.
    #[inline(always)]
    fn drop_copy(&mut self, lbn: u32, offset: u32, flash: &mut Flash) {
        let slot = self.log_of[lbn as usize];
        if slot != NONE
            && let Some(ppn) = self.in_log(slot, offset, flash)
        {
            let index = self.index(slot, offset);
            self.positions[index] = 0;
            flash.invalidate(ppn);
        } else if let Some(home) = current_home(self.data[lbn as usize], offset, flash) {
            flash.invalidate(home);
        }
    }

    fn audit_log(&self, slot: u32, log: &Log, flash: &Flash, violations: &mut Vec<Violation>) {
        if self.slots.get(log.place as usize) != Some(&slot) || (log.place < self.used) != (log.owner != NONE) {
            violations.push(Violation(format!("log slot {slot} is not at its place {}", log.place)));
        }
        if log.owner == NONE {
            return;
        }
        if self.log_of[log.owner as usize] != slot {
            violations.push(Violation(format!("log slot {slot} belongs to block {}, which has another", log.owner)));
        }
        let written = flash.nand().next_page(log.block);
        let owners = |position: u32| {
            flash.nand().spare(flash.geometry().page_at(log.block, position)).map(|lpn| self.logical.split(lpn))
        };
        let in_order = (0..written).all(|position| owners(position) == Some((log.owner, position)));
        if in_order != log.in_order
            || (0..written).any(|position| owners(position).map(|(lbn, _)| lbn) != Some(log.owner))
        {
            violations
                .push(Violation(format!("log slot {slot}: in order is {}, a look says {in_order}", log.in_order)));
        }
    }
}
