//! Superblocks: N adjacent logical blocks share up to N + M physical ones, with page mapping among these and the page
//! map in the spare areas of their pages (Kang et al., EMSOFT 2006; described in Gupta 2009, section 2 and Table 2).
//! The available papers give an abstract view; the content of spare areas and the details of cleaning are our
//! interpretation.
//!
//! ```text
//!   write(page) ─► look-up ─► hot frontier of its superblock ─ full ─► fewer than N + M blocks, and erased ones left?
//!                                      ▲                                 │ yes             │ no
//!                                      └──────── an erased block ◄───────┘      clean: valid pages of the sealed block
//!                                                                               with the fewest go to the cold frontier
//!   look-up   last written page ─► newest page of the directory ─► newest page of the table
//!             directory of all     names the tables of 64 pages     names 8 pages
//! ```
//!
//! The spare area of a programmed page carries the directory of its superblock, and the page's own middle directory and
//! table. So a lookup reads one spare area, a second one if the found page belongs to another middle directory, and one
//! more if it belongs to another table; it reads none only if nothing was written. The changes that a write makes to
//! the map are stored with its own program. The same holds for pages that cleaning moves, which are looked up for this
//! too.
//!
//! A superblock with N + M blocks is cleaned itself. If one with fewer blocks needs another while erased blocks are
//! short, the least recently written superblock with anything to reclaim is cleaned. Small drives reach states that
//! these rules do not cover: no sealed block anywhere has an invalid page. Then the superblock's cold frontier takes
//! host writes, or the pages of two open blocks are combined in the least recently written superblock where they fit
//! into one. A drive with fewer than N + 2 blocks per superblock, which is a utilisation above N / (N + 2), is in this
//! state all the time under random writes: it works, but nearly every page written moves a block.
//!
//! Invariants: the map of a superblock points into its own blocks; it has no more than N + M of them outside a clean; a
//! sealed block is programmed to its end; the page with the newest copy of a table or middle directory belongs to it.

use super::{BuildScheme, SchemeContext};
use crate::durable::{Found, MountError, Scan, adopt_pages};
use crate::merge::{ErasedBlocks, LogicalBlocks, NONE, audit_map, good_blocks, spare_problem};
use crate::{Cause, CleansInSteps, Flash, Ftl, LpnRun, MapSize, OutOfSpace, SchemeFigures, ServesRam, Violation};
use flashwright_nand::{BlockId, Condition, Divisor, Lpn, Ppn, prefetch, table};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Pages that a page table lists.
const TABLE_PAGES: u32 = 8;
/// Pages that a page middle directory covers: 8 tables.
const DIRECTORY_PAGES: u32 = 8 * TABLE_PAGES;

/// `[ftl.superblock]`: adjacent logical blocks that share their physical ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct SuperblockSettings {
    /// Logical blocks of a superblock (N). The last superblock of a drive may have fewer. Each superblock can have two
    /// blocks open: choose N so that `capacity.utilization` stays below N / (N + 2).
    #[schemars(range(min = 1), extend("x-expected" = "{range} logical blocks of a superblock"))]
    pub blocks: u32,
    /// Physical blocks that a superblock may have beyond those (M).
    #[schemars(range(min = 1), extend("x-expected" = "{range} blocks beyond them"))]
    pub update_blocks: u32,
    /// Erased blocks that only cleaning may take.
    #[schemars(range(min = 1), extend("x-expected" = "{range} erased blocks for cleaning"))]
    pub reserve_blocks: u32,
}

impl Default for SuperblockSettings {
    fn default() -> Self {
        Self { blocks: 8, update_blocks: 4, reserve_blocks: 2 }
    }
}

/// `ftl.scheme = "superblock"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Superblock {
    logical: LogicalBlocks,
    pages_of_one: Divisor,
    /// The physical page of each logical page, or [`NONE`]. On the flash this is in spare areas.
    map: Vec<u32>,
    groups: Vec<Group>,
    /// By table: the newest page that carries it, or [`NONE`].
    tables: Vec<u32>,
    /// By middle directory: the newest page that carries it, or [`NONE`].
    directories: Vec<u32>,
    tables_of_one: u32,
    directories_of_one: u32,
    /// By block: the superblock that owns it, or [`NONE`].
    owner: Vec<u32>,
    /// Superblocks with something to reclaim, ordered by their last write or an earlier time.
    cleanable: BTreeSet<(u64, u32)>,
    /// Host page writes so far.
    clock: u64,
    blocks_max: usize,
    reserve: usize,
    erased: ErasedBlocks,
    ram_bytes: u64,
    figures: Figures,
    /// Pages of the current victim.
    #[serde(skip)]
    moving: Vec<Ppn>,
}

/// A superblock.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Group {
    /// Its physical blocks, in the order in which it got them.
    blocks: Vec<u32>,
    /// The block with room that takes host writes, or [`NONE`].
    hot: u32,
    /// The block with room that takes pages moved by cleaning, or [`NONE`].
    cold: u32,
    /// Sealed blocks with an invalid page.
    reclaimable: u32,
    /// When the host last wrote to it, 0 for never.
    written: u64,
    /// Its key in `cleanable`, or [`NOT_LISTED`].
    listed: u64,
    /// The last programmed page, which carries the superblock's directory; or [`NONE`].
    last: u32,
}

const NOT_LISTED: u64 = u64::MAX;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Figures {
    cleans: u64,
    victim_pages_invalid: u64,
    /// Victims without a valid page.
    dead: u64,
    /// Cleans of a block with room, to combine two open blocks.
    closed_early: u64,
    lookups: u64,
    oob_reads: u64,
}

impl BuildScheme for Superblock {
    const NAME: &'static str = "superblock";
    const ABOUT: &'static str = "superblocks: page mapping among a few blocks, the map in spare areas (Kang 2006)";
    const TAKES_CHECKPOINTS: bool = true;
    type Settings = SuperblockSettings;

    fn problems(context: &SchemeContext, flash: &Flash) -> Vec<String> {
        let settings = &context.ftl.schemes.superblock;
        let extra = u64::from(settings.reserve_blocks) + 1;
        let why =
            format!("ftl.superblock.reserve-blocks = {} for cleaning, and one to write to", settings.reserve_blocks);
        spare_problem(context, flash, extra, &why).into_iter().collect()
    }

    /// The papers set no limit, because superblocks that are not written need no open block. Random writes open two in
    /// each.
    fn cautions(context: &SchemeContext, flash: &Flash) -> Vec<String> {
        let good = good_blocks(flash);
        let data = u64::from(LogicalBlocks::new(context.logical_pages, flash.geometry()).count());
        let wanted = |blocks: u64| data + 2 * data.div_ceil(blocks);
        let blocks = u64::from(context.ftl.schemes.superblock.blocks);
        if wanted(blocks) <= good {
            return Vec::new();
        }
        // There are then fewer superblocks, and fewer open blocks.
        let enough = (2 * data).div_ceil(good.saturating_sub(data).max(1));
        let enough = (enough..=data).find(|blocks| wanted(*blocks) <= good);
        let raise = enough.map_or(String::new(), |enough| format!("raise ftl.superblock.blocks to {enough}, or "));
        let pages = (good * blocks / (blocks + 2)).saturating_sub(1) * u64::from(flash.geometry().pages_per_block());
        let share = (pages as f64 / f64::from(flash.geometry().pages()) * 1000.0).floor() / 1000.0;
        vec![format!(
            "ftl.superblock: written at random, {} superblocks of {blocks} blocks open 2 blocks each and want {} in all; the \
             drive has {good}, so nearly every page written moves a block; {raise}lower capacity.utilization to {share}",
            data.div_ceil(blocks),
            wanted(blocks),
        )]
    }

    fn new(context: &SchemeContext, flash: &mut Flash) -> Self {
        let settings = &context.ftl.schemes.superblock;
        let geometry = flash.geometry();
        let logical = LogicalBlocks::new(context.logical_pages, geometry);
        // Limited to the drive, so that the product stays small.
        let pages = settings.blocks.min(logical.count()) * logical.per_block();
        let groups = context.logical_pages.div_ceil(pages) as usize;
        let (tables_of_one, directories_of_one) = (pages.div_ceil(TABLE_PAGES), pages.div_ceil(DIRECTORY_PAGES));
        let group = Group {
            blocks: Vec::new(),
            hot: NONE,
            cold: NONE,
            reclaimable: 0,
            written: 0,
            listed: NOT_LISTED,
            last: NONE,
        };
        Self {
            logical,
            pages_of_one: Divisor::new(pages),
            map: table(NONE, context.logical_pages as usize),
            groups: vec![group; groups],
            tables: table(NONE, groups * tables_of_one as usize),
            directories: table(NONE, groups * directories_of_one as usize),
            tables_of_one,
            directories_of_one,
            owner: table(NONE, geometry.blocks() as usize),
            cleanable: BTreeSet::new(),
            clock: 0,
            blocks_max: settings.blocks.saturating_add(settings.update_blocks) as usize,
            reserve: settings.reserve_blocks as usize,
            erased: ErasedBlocks::new(context, flash),
            ram_bytes: u64::from(geometry.blocks()) * u64::from(context.ftl.entry_bytes),
            figures: Figures::default(),
            moving: Vec::new(),
        }
    }

    /// The blocks of each superblock, and its page programmed last. The maps are in spare areas.
    fn checkpoint_bytes_max(context: &SchemeContext, flash: &Flash) -> u64 {
        let entries = u64::from(flash.geometry().blocks()) * 2; // as many superblocks at most
        entries * u64::from(context.ftl.entry_bytes)
    }

    fn map_size(&self, flash: &Flash) -> MapSize {
        let blocks = u64::from(flash.geometry().blocks());
        let entry = self.ram_bytes / blocks;
        MapSize { bytes: self.ram_bytes + self.groups.len() as u64 * entry, stale: Vec::new() }
    }

    fn mount(context: &SchemeContext, scan: &mut Scan, flash: &mut Flash) -> Result<Self, MountError> {
        let mut scheme = Self::new(context, flash);
        scan.undo_clean_of_drive(flash);
        adopt_pages(scan, flash, |lpn, ppn| scheme.map[lpn as usize] = ppn.0);
        for Found { block, .. } in &scan.blocks {
            if flash.pages_valid(*block) > 0 {
                // It was retired when trims or copies had replaced its pages, which the loss of power undid.
                if flash.nand().condition(*block) == Condition::Retired {
                    flash.use_again(*block);
                }
                scheme.adopt_block(*block, flash);
            } else if flash.nand().condition(*block) == Condition::Good {
                scheme.erased.release(*block, Cause::Gc, flash);
            }
        }
        scheme.find_carriers(scan, flash);
        scheme.finish_cleans(flash)?;
        Ok(scheme)
    }
}

impl Ftl for Superblock {
    #[inline]
    fn read(&mut self, run: LpnRun, flash: &mut Flash) {
        for lpn in run.iter() {
            self.look_up(lpn, Cause::Host, flash);
            match self.map[lpn.index()] {
                NONE => {
                    flash.next_waits_for(0);
                    flash.read_unmapped(lpn);
                }
                ppn => flash.read(Ppn(ppn), lpn),
            }
        }
    }

    #[inline]
    fn write(&mut self, run: LpnRun, flash: &mut Flash) -> Result<(), OutOfSpace> {
        for lpn in run.iter() {
            self.write_page(lpn, flash)?;
        }
        Ok(())
    }

    /// Removes the page from the map, without writing spare areas.
    fn trim(&mut self, run: LpnRun, flash: &mut Flash) {
        for lpn in run.iter() {
            let old = std::mem::replace(&mut self.map[lpn.index()], NONE);
            if old != NONE {
                self.drop_copy(Ppn(old), flash);
            }
        }
    }

    #[inline]
    fn lookup(&self, lpn: Lpn, _: &Flash) -> Option<Ppn> {
        let ppn = self.map[lpn.index()];
        (ppn != NONE).then_some(Ppn(ppn))
    }

    fn audit(&self, flash: &Flash, violations: &mut Vec<Violation>) {
        audit_map(self.logical, flash, |lpn| self.lookup(lpn, flash), violations);
        let blocks = self.groups.iter().flat_map(|group| &group.blocks);
        self.erased.audit(flash, blocks.map(|block| (BlockId(*block), "a superblock's")), violations);
        let listed = self.groups.iter().filter(|group| group.listed != NOT_LISTED).count();
        if listed != self.cleanable.len() {
            violations.push(Violation(format!("{listed} superblocks are listed, of {}", self.cleanable.len())));
        }
        let owned = self.owner.iter().filter(|group| **group != NONE).count();
        if owned != self.groups.iter().map(|group| group.blocks.len()).sum::<usize>() {
            violations.push(Violation(format!("{owned} blocks have an owner, superblocks have another number")));
        }
        for (at, group) in (0..).zip(&self.groups) {
            self.audit_group(at, group, flash, violations);
        }
        for (lpn, ppn) in (0..).zip(&self.map).filter(|(_, ppn)| **ppn != NONE) {
            let places = self.places(Lpn(lpn));
            if self.owner[flash.geometry().block_of(Ppn(*ppn)).index()] as usize != places.group {
                violations.push(Violation(format!("lpn {lpn} lies in a block of another superblock")));
            }
            let carries = |carrier: u32, tables: bool| {
                let carried = (carrier != NONE).then(|| flash.nand().spare(Ppn(carrier))).flatten();
                carried.map(|lpn| self.places(lpn)).is_some_and(|carried| {
                    carried.directory == places.directory && (!tables || carried.table == places.table)
                })
            };
            if !carries(self.tables[places.table], true) || !carries(self.directories[places.directory], false) {
                violations.push(Violation(format!("no page carries the table of lpn {lpn}, or its directory")));
            }
        }
    }

    fn figures(&self) -> SchemeFigures {
        let Figures { cleans, victim_pages_invalid, dead, closed_early, lookups, oob_reads } = self.figures;
        let used = self.groups.iter().filter(|group| !group.blocks.is_empty());
        let (count, blocks) = used.fold((0u32, 0), |(count, blocks), group| (count + 1, blocks + group.blocks.len()));
        SchemeFigures {
            collections: cleans,
            victim_pages_invalid,
            ram_bytes: self.ram_bytes,
            extra: vec![
                ("oob_reads_per_lookup_pages".to_owned(), oob_reads as f64 / (lookups as f64).max(1.0)),
                ("erases_dead_blocks".to_owned(), dead as f64),
                ("closed_early_blocks".to_owned(), closed_early as f64),
                ("per_superblock_mean_blocks".to_owned(), blocks as f64 / f64::from(count.max(1))),
                ("superblocks_count".to_owned(), self.groups.len() as f64),
            ],
            ..SchemeFigures::default()
        }
    }

    fn reset_figures(&mut self) {
        self.figures = Figures::default();
    }

    #[inline(always)]
    fn expect_far(&self, lpn: Lpn) {
        let Places { group, directory, table } = self.places(lpn);
        prefetch(&self.map, lpn.index());
        prefetch(&self.groups, group);
        prefetch(&self.directories, directory);
        prefetch(&self.tables, table);
    }

    #[inline(always)]
    fn expect_near(&self, lpn: Lpn, flash: &Flash) {
        let ppn = self.map[lpn.index()];
        if ppn != NONE {
            flash.expect_invalidation(Ppn(ppn));
        }
        self.expect_look_up(lpn, flash);
    }
}

impl CleansInSteps for Superblock {}

impl ServesRam for Superblock {
    fn fetch(&mut self, lpn: Lpn, cause: Cause, flash: &mut Flash) -> Option<Ppn> {
        self.look_up(lpn, cause, flash);
        match self.map[lpn.index()] {
            NONE => {
                flash.next_waits_for(0);
                None
            }
            ppn => {
                flash.read_internal(Ppn(ppn), cause);
                Some(Ppn(ppn))
            }
        }
    }
}

/// The superblock, middle directory and table of a logical page, numbered over the whole drive.
#[derive(Clone, Copy)]
struct Places {
    group: usize,
    directory: usize,
    table: usize,
}

impl Superblock {
    #[inline(always)]
    fn group_of(&self, lpn: Lpn) -> usize {
        self.pages_of_one.of(lpn.0) as usize
    }

    #[inline]
    fn places(&self, lpn: Lpn) -> Places {
        let group = self.pages_of_one.of(lpn.0);
        let page = lpn.0 - group * self.pages_of_one.get();
        Places {
            group: group as usize,
            directory: (group * self.directories_of_one + page / DIRECTORY_PAGES) as usize,
            table: (group * self.tables_of_one + page / TABLE_PAGES) as usize,
        }
    }

    /// Reads the spare areas that lead to a page. The next operation waits for them.
    fn look_up(&mut self, lpn: Lpn, cause: Cause, flash: &mut Flash) {
        let wanted = self.places(lpn);
        self.figures.lookups += 1;
        let mut carrier = self.groups[wanted.group].last;
        if carrier == NONE {
            return;
        }
        let mut carried = self.read_carrier(carrier, cause, flash);
        if carried.directory != wanted.directory {
            carrier = self.directories[wanted.directory];
            if carrier == NONE {
                return; // the directory has no entry: nothing was written there
            }
            carried = self.read_carrier(carrier, cause, flash);
        }
        if carried.table != wanted.table && self.tables[wanted.table] != NONE {
            self.read_carrier(self.tables[wanted.table], cause, flash);
        }
    }

    /// Warms the CPU cache for the spare areas that a lookup reads.
    #[inline(always)]
    fn expect_look_up(&self, lpn: Lpn, flash: &Flash) {
        let Places { group, directory, table } = self.places(lpn);
        for carrier in [self.groups[group].last, self.directories[directory], self.tables[table]] {
            flash.nand().expect_spare(Ppn(carrier));
        }
    }

    /// Reads the spare area of a page and returns the maps that it carries.
    #[inline]
    fn read_carrier(&mut self, page: u32, cause: Cause, flash: &mut Flash) -> Places {
        self.figures.oob_reads += 1;
        let owner = flash.read_oob(Ppn(page), cause).expect("a carrier is programmed");
        flash.next_waits_for(1);
        self.places(owner)
    }

    /// A programmed page carries the newest maps of its superblock, middle directory and table.
    #[inline]
    fn carry(&mut self, lpn: Lpn, ppn: Ppn) {
        let Places { group, directory, table } = self.places(lpn);
        self.groups[group].last = ppn.0;
        self.directories[directory] = ppn.0;
        self.tables[table] = ppn.0;
    }

    fn write_page(&mut self, lpn: Lpn, flash: &mut Flash) -> Result<(), OutOfSpace> {
        self.look_up(lpn, Cause::Host, flash);
        let group = self.group_of(lpn);
        self.make_room(group, flash)?;
        let block = self.groups[group].hot;
        let position = flash.nand().next_page(BlockId(block));
        let ppn = flash.geometry().page_at(BlockId(block), position);
        flash.program(ppn, lpn, Cause::Host);
        let old = std::mem::replace(&mut self.map[lpn.index()], ppn.0);
        if old != NONE {
            self.drop_copy(Ppn(old), flash);
        }
        self.carry(lpn, ppn);
        self.clock += 1;
        self.groups[group].written = self.clock;
        if position + 1 == self.logical.per_block() {
            self.groups[group].hot = NONE;
            self.seal(group, block, flash);
        }
        Ok(())
    }

    /// Makes room in the hot frontier of a superblock.
    fn make_room(&mut self, group: usize, flash: &mut Flash) -> Result<(), OutOfSpace> {
        while self.groups[group].hot == NONE {
            let at_limit = self.groups[group].blocks.len() >= self.blocks_max;
            if !at_limit && let Some(block) = self.erased.take_leaving(self.reserve) {
                self.add_block(group, block);
                self.groups[group].hot = block.0;
                break;
            }
            let cleaned = if at_limit { Some(group) } else { self.oldest_cleanable() };
            let victim = cleaned.and_then(|group| Some((group, self.sealed_victim(group, flash)?)));
            if let Some((group, victim)) = victim
                && self.can_clean(group, victim, flash)
            {
                self.clean(group, victim, flash);
            } else if self.groups[group].cold != NONE {
                let group = &mut self.groups[group];
                group.hot = std::mem::replace(&mut group.cold, NONE);
            } else if let Some((group, victim)) = self.open_victim(flash)
                && self.can_clean(group, victim, flash)
            {
                self.figures.closed_early += 1;
                self.clean(group, victim, flash);
            } else if !self.free_one(flash) {
                return Err(self.erased.exhausted(flash));
            }
        }
        Ok(())
    }

    /// Without an erased block, as losses of power in the middle of cleans may leave a drive: cleans the block with the fewest valid pages
    /// among those whose pages fit into an open block of the same superblock. Returns whether there was one.
    #[cold]
    fn free_one(&mut self, flash: &mut Flash) -> bool {
        let per_block = self.logical.per_block();
        let valid = |block: u32| flash.pages_valid(BlockId(block));
        let room = |block: u32| per_block - flash.nand().next_page(BlockId(block));
        let mut found: Option<(u32, usize, u32, u32)> = None;
        for (at, group) in self.groups.iter().enumerate() {
            for into in [group.hot, group.cold].into_iter().filter(|block| *block != NONE) {
                let is_frontier = |block: u32| block == group.hot || block == group.cold;
                let others = group.blocks.iter().copied().filter(|block| *block != into);
                let others =
                    others.filter(|block| is_frontier(*block) || (room(*block) == 0 && valid(*block) < per_block));
                let fitting = others.filter(|block| valid(*block) <= room(into));
                found = found.into_iter().chain(fitting.map(|block| (valid(block), at, block, into))).min();
            }
        }
        let Some((_, at, victim, into)) = found else { return false };
        let group = &mut self.groups[at];
        if group.hot == into {
            std::mem::swap(&mut group.hot, &mut group.cold);
        }
        self.figures.closed_early += u64::from(group.hot == victim);
        self.clean(at, victim, flash);
        true
    }

    /// The sealed block of a superblock with the fewest valid pages, the oldest of them, if it has an invalid one.
    fn sealed_victim(&self, group: usize, flash: &Flash) -> Option<u32> {
        let group = &self.groups[group];
        let sealed = group.blocks.iter().copied().filter(|block| *block != group.hot && *block != group.cold);
        sealed
            .min_by_key(|block| flash.pages_valid(BlockId(*block)))
            .filter(|block| flash.pages_valid(BlockId(*block)) < self.logical.per_block())
    }

    /// The least recently written superblock that has a sealed block with an invalid page.
    fn oldest_cleanable(&mut self) -> Option<usize> {
        loop {
            let (listed, at) = self.cleanable.first().copied()?;
            let group = &mut self.groups[at as usize];
            if group.written == listed {
                return Some(at as usize);
            }
            // It was written since it was listed: move it to its current place.
            group.listed = group.written;
            self.cleanable.remove(&(listed, at));
            self.cleanable.insert((group.written, at));
        }
    }

    /// An open block that a superblock can do without, from the least recently written superblock that has one.
    fn open_victim(&self, flash: &Flash) -> Option<(usize, u32)> {
        let valid = |block: u32| flash.pages_valid(BlockId(block));
        let victim = |group: &Group| match (group.hot, group.cold) {
            (NONE, NONE) => None,
            (NONE, one) | (one, NONE) => (valid(one) == 0).then_some(one),
            (hot, cold) if valid(cold) == 0 && valid(hot) > 0 => Some(cold),
            (hot, cold) => (valid(hot) + valid(cold) <= self.logical.per_block()).then_some(hot),
        };
        let groups = self.groups.iter().enumerate().filter_map(|(at, group)| Some((group.written, at, victim(group)?)));
        groups.min().map(|(_, at, victim)| (at, victim))
    }

    /// Whether there is room for the valid pages of a victim.
    fn can_clean(&self, group: usize, victim: u32, flash: &Flash) -> bool {
        let cold = self.groups[group].cold;
        let room = if cold == NONE || cold == victim {
            0
        } else {
            self.logical.per_block() - flash.nand().next_page(BlockId(cold))
        };
        self.erased.len() > 0 || flash.pages_valid(BlockId(victim)) <= room
    }

    /// Moves the valid pages of a victim to the cold frontier of its superblock and erases it.
    fn clean(&mut self, at: usize, victim: u32, flash: &mut Flash) {
        let group = &mut self.groups[at];
        let block = BlockId(victim);
        if group.hot == victim {
            group.hot = NONE;
        } else if group.cold == victim {
            group.cold = NONE;
        } else {
            self.reclaimable(at, false);
        }
        flash.nand().expect_scan(block);
        let mut moving = std::mem::take(&mut self.moving);
        moving.clear();
        moving.extend(flash.valid_pages(block));
        self.figures.cleans += 1;
        self.figures.victim_pages_invalid += u64::from(flash.nand().next_page(block)) - moving.len() as u64;
        self.figures.dead += u64::from(moving.is_empty());
        for lpn in moving.iter().filter_map(|from| flash.nand().spare(*from)) {
            self.expect_look_up(lpn, flash);
            prefetch(&self.map, lpn.index());
        }
        for from in &moving {
            self.relocate(at, *from, flash);
        }
        self.moving = moving;
        self.replace_carriers(at, block, flash);
        let group = &mut self.groups[at];
        group.blocks.retain(|other| *other != victim);
        self.owner[block.index()] = NONE;
        self.erased.release(block, Cause::Gc, flash);
    }

    /// Moves a page to the cold frontier.
    fn relocate(&mut self, at: usize, from: Ppn, flash: &mut Flash) {
        let lpn = flash.nand().spare(from).expect("a valid page names its owner");
        self.look_up(lpn, Cause::Gc, flash);
        if self.groups[at].cold == NONE {
            let block = self.erased.take().expect("room was looked for");
            self.add_block(at, block);
            self.groups[at].cold = block.0;
        }
        let cold = self.groups[at].cold;
        let position = flash.nand().next_page(BlockId(cold));
        let to = flash.geometry().page_at(BlockId(cold), position);
        flash.copy(from, to, Cause::Gc);
        self.map[lpn.index()] = to.0;
        self.carry(lpn, to);
        if position + 1 == self.logical.per_block() {
            self.groups[at].cold = NONE;
            self.seal(at, cold, flash);
        }
    }

    /// Only a trimmed page may still be a carrier when its block is erased: another page then carries what is left of
    /// its table or directory.
    fn replace_carriers(&mut self, at: usize, block: BlockId, flash: &Flash) {
        let going = |page: u32| page != NONE && flash.geometry().block_of(Ppn(page)) == block;
        if !going(self.groups[at].last)
            && !flash.nand().spares(block).iter().any(|lpn| {
                *lpn < self.logical.pages() && {
                    let Places { directory, table, .. } = self.places(Lpn(*lpn));
                    going(self.tables[table]) || going(self.directories[directory])
                }
            })
        {
            return;
        }
        let (tables, directories) = (self.tables_of_one as usize, self.directories_of_one as usize);
        let first_lpn = at * self.pages_of_one.get() as usize;
        let end_lpn = (first_lpn + self.pages_of_one.get() as usize).min(self.map.len());
        let mapped = |pages: std::ops::Range<usize>| self.map[pages].iter().copied().find(|page| *page != NONE);
        for nth in 0..tables {
            if going(self.tables[at * tables + nth]) {
                let first = (first_lpn + nth * TABLE_PAGES as usize).min(end_lpn);
                let end = (first + TABLE_PAGES as usize).min(end_lpn);
                self.tables[at * tables + nth] = mapped(first..end).unwrap_or(NONE);
            }
        }
        for nth in 0..directories {
            if going(self.directories[at * directories + nth]) {
                let first = (first_lpn + nth * DIRECTORY_PAGES as usize).min(end_lpn);
                let end = (first + DIRECTORY_PAGES as usize).min(end_lpn);
                self.directories[at * directories + nth] = mapped(first..end).unwrap_or(NONE);
            }
        }
        if going(self.groups[at].last) {
            self.groups[at].last = mapped(first_lpn..end_lpn).unwrap_or(NONE);
        }
    }

    /// Takes a block that was found, the ones opened first first. The last two that have room are the frontiers.
    fn adopt_block(&mut self, block: BlockId, flash: &Flash) {
        let page = flash.valid_pages(block).next().expect("only blocks with a current page are taken");
        let group = self.group_of(flash.nand().spare(page).expect("a current page names its owner"));
        self.add_block(group, block);
        if flash.nand().next_page(block) == self.logical.per_block() {
            self.seal(group, block.0, flash);
            return;
        }
        let group = &mut self.groups[group];
        let before = std::mem::replace(&mut group.hot, block.0);
        group.cold = if before == NONE { group.cold } else { before };
    }

    /// The pages programmed last carry the maps. After a checkpoint the spare areas that it does not hold are read.
    fn find_carriers(&mut self, scan: &Scan, flash: &mut Flash) {
        self.find_programmed_last(scan, flash);
        if scan.checkpoint > 0 {
            let carriers: BTreeSet<u32> = self.directories.iter().chain(&self.tables).copied().collect();
            for carrier in carriers.into_iter().filter(|carrier| *carrier != NONE) {
                flash.read_oob(Ppn(carrier), Cause::Translation);
            }
        }
    }

    fn find_programmed_last(&mut self, scan: &Scan, flash: &Flash) {
        let pages = self.groups.iter().flat_map(|group| &group.blocks).flat_map(|block| {
            let block = BlockId(*block);
            (0..flash.nand().next_page(block)).map(move |page| flash.geometry().page_at(block, page))
        });
        let pages = pages.filter(|page| scan.knows(*page));
        let mut programmed: Vec<(u64, Lpn, Ppn)> =
            pages.filter_map(|page| flash.spare_area(page).map(|spare| (spare.sequence, spare.owner, page))).collect();
        programmed.sort_unstable();
        for (_, lpn, page) in programmed {
            self.carry(lpn, page);
        }
    }

    /// A superblock has two frontiers and no more than N + M blocks. One that has more was being cleaned.
    fn finish_cleans(&mut self, flash: &mut Flash) -> Result<(), OutOfSpace> {
        for at in 0..self.groups.len() {
            while let Some(victim) = self.unfinished(at, flash) {
                if !self.can_clean(at, victim, flash) {
                    if self.free_one(flash) {
                        continue;
                    }
                    return Err(self.erased.exhausted(flash));
                }
                let Group { hot, cold, .. } = self.groups[at];
                if ![hot, cold].contains(&victim) && flash.nand().next_page(BlockId(victim)) < self.logical.per_block()
                {
                    self.reclaimable(at, true); // it was never sealed
                }
                self.clean(at, victim, flash);
            }
        }
        Ok(())
    }

    /// The block to clean in a superblock that was found with too many.
    fn unfinished(&self, at: usize, flash: &Flash) -> Option<u32> {
        let Group { hot, cold, ref blocks, .. } = self.groups[at];
        let has_room = |block: u32| flash.nand().next_page(BlockId(block)) < self.logical.per_block();
        let third = blocks.iter().copied().find(|block| *block != hot && *block != cold && has_room(*block));
        let fewest = || self.sealed_victim(at, flash).filter(|_| blocks.len() > self.blocks_max);
        third.or_else(fewest)
    }

    fn add_block(&mut self, at: usize, block: BlockId) {
        self.groups[at].blocks.push(block.0);
        self.owner[block.index()] = u32::try_from(at).expect("fewer superblocks than pages");
    }

    /// A block of a superblock is full and no longer a frontier.
    #[inline]
    fn seal(&mut self, at: usize, block: u32, flash: &Flash) {
        if flash.pages_valid(BlockId(block)) < self.logical.per_block() {
            self.reclaimable(at, true);
        }
    }

    /// Marks the copy in `ppn` as invalid.
    #[inline]
    fn drop_copy(&mut self, ppn: Ppn, flash: &mut Flash) {
        let (block, left) = flash.invalidate(ppn);
        let at = self.owner[block.index()] as usize;
        let Group { hot, cold, .. } = self.groups[at];
        if block.0 != hot && block.0 != cold && left + 1 == self.logical.per_block() {
            self.reclaimable(at, true);
        }
    }

    /// Counts a sealed block that has an invalid page, or had one.
    fn reclaimable(&mut self, at: usize, more: bool) {
        let key = u32::try_from(at).expect("fewer superblocks than pages");
        let group = &mut self.groups[at];
        if more {
            group.reclaimable += 1;
        } else {
            group.reclaimable -= 1;
        }
        if group.reclaimable == 0 {
            self.cleanable.remove(&(group.listed, key));
            group.listed = NOT_LISTED;
        } else if group.listed == NOT_LISTED {
            group.listed = group.written;
            self.cleanable.insert((group.listed, key));
        }
    }

    fn audit_group(&self, at: u32, group: &Group, flash: &Flash, violations: &mut Vec<Violation>) {
        let per_block = self.logical.per_block();
        let mut reclaimable = 0;
        for block in group.blocks.iter().copied() {
            let open = block == group.hot || block == group.cold;
            if self.owner[block as usize] != at || open == (flash.nand().next_page(BlockId(block)) == per_block) {
                violations.push(Violation(format!("block {block} of superblock {at} is not as {group:?} says")));
            }
            reclaimable += u32::from(!open && flash.pages_valid(BlockId(block)) < per_block);
        }
        let listed = (group.reclaimable > 0) == self.cleanable.contains(&(group.listed, at));
        if reclaimable != group.reclaimable || !listed || (group.listed > group.written && group.reclaimable > 0) {
            violations.push(Violation(format!("superblock {at} has {reclaimable} blocks to clean: {group:?}")));
        }
        if group.blocks.len() > self.blocks_max {
            violations.push(Violation(format!("superblock {at} has {} blocks", group.blocks.len())));
        }
        if [group.hot, group.cold].iter().any(|block| *block != NONE && !group.blocks.contains(block)) {
            violations.push(Violation(format!("superblock {at} writes to a block that it has not: {group:?}")));
        }
        let last = (group.last != NONE).then(|| flash.nand().spare(Ppn(group.last)));
        if last.is_some_and(|lpn| lpn.is_none_or(|lpn| self.group_of(lpn) != at as usize)) {
            violations.push(Violation(format!("the last page of superblock {at} is one of another")));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{FtlSettings, GcSettings, OpKind, PlacementConfig, SchemeName, WearSettings};
    use flashwright_block::{Bytes, Rng, Seed, below};
    use flashwright_nand::{Geometry, Nand, ProgramOrder, WearLimit};

    struct Bench {
        flash: Flash,
        superblock: Superblock,
        pages: u32,
        cautions: Vec<String>,
    }

    fn sized(blocks: u32, update_blocks: u32, reserve_blocks: u32) -> SuperblockSettings {
        SuperblockSettings { blocks, update_blocks, reserve_blocks }
    }

    fn bench(
        settings: SuperblockSettings,
        geometry: Geometry,
        pages: u32,
        order: ProgramOrder,
        limit: WearLimit,
    ) -> Result<Bench, Vec<String>> {
        let mut flash = Flash::new(Nand::new(geometry, order, limit, &[]), pages, true, true);
        let mut ftl = FtlSettings { scheme: SchemeName::Superblock, ..FtlSettings::default() };
        ftl.schemes.superblock = settings;
        let context = SchemeContext {
            logical_pages: pages,
            dies_per_way: 1,
            ftl: &ftl,
            gc: &GcSettings::default(),
            placement: &PlacementConfig::default(),
            wear: &WearSettings::default(),
            seed: Seed(1),
            slc: None,
            foreign: None,
        };
        let problems = Superblock::problems(&context, &flash);
        if !problems.is_empty() {
            return Err(problems);
        }
        let cautions = Superblock::cautions(&context, &flash);
        let superblock = Superblock::new(&context, &mut flash);
        Ok(Bench { flash, superblock, pages, cautions })
    }

    /// One plane of blocks of 4 pages, without limits.
    fn small(settings: SuperblockSettings, blocks: u32, data: u32) -> Bench {
        let geometry = Geometry::new(1, 1, 1, blocks, 4, Bytes(4096));
        bench(settings, geometry, data * 4, ProgramOrder::Ascending, WearLimit::Unlimited).unwrap()
    }

    impl Bench {
        fn write(&mut self, first: u32, pages: u32) -> Result<(), OutOfSpace> {
            let run = LpnRun { first: Lpn(first), pages, stream: 0 };
            run.iter().for_each(|lpn| self.flash.host_writes_page(lpn));
            self.superblock.write(run, &mut self.flash).inspect_err(|_| {
                for lpn in run.iter() {
                    let held = self.superblock.lookup(lpn, &self.flash);
                    self.flash.host_write_failed(lpn, held);
                }
            })
        }

        fn mapped(&self) -> BTreeSet<u32> {
            (0..self.pages).filter(|lpn| self.superblock.lookup(Lpn(*lpn), &self.flash).is_some()).collect()
        }

        fn audit(&self, at: &str) {
            let mut violations = Vec::new();
            self.flash.audit(&mut violations);
            self.superblock.audit(&self.flash, &mut violations);
            violations.extend_from_slice(self.flash.stamps().map_or(&[], |stamps| stamps.violations().1));
            assert!(violations.is_empty(), "{at}: {violations:#?}");
        }
    }

    fn draw(rng: &mut Rng, bound: u32) -> u32 {
        u32::try_from(below(rng, u64::from(bound))).unwrap()
    }

    /// 16 logical blocks of 4 pages in superblocks of 4 + 2, single pages and runs of 8 mixed: the less spare space,
    /// the more is copied. An independent model gave 1.60 with 26 blocks and 1.92 with 24 (algorithms 2.6). It states
    /// only that 30 % is in runs, so its figures must lie between ours for 30 % of the requests and for 30 % of the
    /// pages.
    #[test]
    fn spare_blocks_save_copies() {
        let amplification = |blocks, runs_of_60: u32| {
            let mut bench = small(sized(4, 2, 2), blocks, 16);
            let mut rng = Seed(7).stream("pages");
            bench.write(0, 64).unwrap();
            let before = bench.flash.counters().total(OpKind::Program);
            let mut written = 0;
            while written < 20_000 {
                let count = if draw(&mut rng, 60) < runs_of_60 { 8 } else { 1 };
                bench.write(draw(&mut rng, 65 - count), count).unwrap();
                bench.flash.clear_log();
                written += count;
            }
            bench.audit("at the end");
            (bench.flash.counters().total(OpKind::Program) - before) as f64 / f64::from(written)
        };
        let [requests, pages] = [18, 3].map(|runs| [20, 22, 24, 26].map(|blocks| amplification(blocks, runs)));
        for found in [requests, pages] {
            assert!(found.is_sorted_by(|one, other| one > other), "{found:?}");
        }
        assert!((requests[2]..pages[2]).contains(&1.92), "{requests:?}, {pages:?}");
        assert!((requests[3]..pages[3]).contains(&1.60), "{requests:?}, {pages:?}");
        assert!(pages[3] < requests[3] + 0.3, "{requests:?}, {pages:?}");
    }

    /// One to three reads of spare areas, none for a superblock that was never written.
    #[test]
    fn look_ups_take_one_to_three_reads() {
        let geometry = Geometry::new(1, 1, 1, 40, 32, Bytes(4096));
        let settings = SuperblockSettings::default();
        let mut bench = bench(settings, geometry, 24 * 32, ProgramOrder::Ascending, WearLimit::Unlimited).unwrap();
        let (mut rng, mut seen) = (Seed(3).stream("pages"), BTreeSet::new());
        let mut written = BTreeSet::new();
        for step in 0..6000 {
            let lpn = draw(&mut rng, bench.pages);
            let before = bench.flash.counters().get(OpKind::OobRead, Cause::Host);
            if step < 3 || draw(&mut rng, 2) == 0 {
                let run = LpnRun { first: Lpn(lpn), pages: 1, stream: 0 };
                bench.superblock.read(run, &mut bench.flash);
            } else {
                bench.write(lpn, 1).unwrap();
            }
            bench.flash.clear_log();
            let reads = bench.flash.counters().get(OpKind::OobRead, Cause::Host) - before;
            assert_eq!(reads == 0, !written.contains(&(lpn / 256)), "lpn {lpn}");
            if bench.superblock.map[lpn as usize] != NONE {
                written.insert(lpn / 256);
            }
            seen.insert(reads);
        }
        assert_eq!(seen, BTreeSet::from([0, 1, 2, 3]));
        let mean = bench.superblock.figures().extra[0].1;
        assert!((1.0..=3.0).contains(&mean), "{mean}");
        bench.audit("at the end");
    }

    /// Whole superblocks written in order leave blocks without valid pages: each costs only its erase.
    #[test]
    fn in_order_only_dead_blocks_are_cleaned() {
        let mut bench = small(sized(4, 2, 2), 40, 24);
        for turn in 0..10 {
            for block in 0..24 {
                bench.write(block * 4, 4).unwrap();
                bench.audit(&format!("turn {turn}, block {block}"));
            }
        }
        assert_eq!(bench.flash.counters().get(OpKind::Program, Cause::Gc), 0);
        let Figures { cleans, dead, closed_early, .. } = bench.superblock.figures;
        assert_eq!((cleans, closed_early), (dead, 0));
        assert!(dead > 24 * 8, "{dead}");
    }

    #[test]
    fn every_setting_keeps_every_page() {
        let (mut ended, mut closed_early, mut cleans) = (0, 0, 0);
        for seed in 0..72u32 {
            let order = [ProgramOrder::Ascending, ProgramOrder::Any][(seed % 2) as usize];
            let limit = if seed % 4 < 2 { WearLimit::Unlimited } else { WearLimit::Same(5) };
            let settings = match seed % 6 {
                0 => sized(1, 1, 1),
                1 => sized(2, 1, 2),
                2 => sized(3, 2, 1),
                3 => sized(8, 4, 2),
                4 => sized(100, 1, 3),
                _ => sized(4, 40, 1),
            };
            let geometry = match seed % 3 {
                0 => Geometry::new(1, 1, 1, 26, 4, Bytes(4096)),
                1 => Geometry::new(2, 2, 1, 7, 3, Bytes(4096)),
                _ => Geometry::new(1, 2, 1, 13, 20, Bytes(4096)),
            };
            // From as full as may be to half empty; the last block in part.
            let data = match seed / 6 % 3 {
                0 => geometry.blocks() - settings.reserve_blocks - 1,
                1 => 20,
                _ => 13,
            };
            let pages = data * geometry.pages_per_block() - seed % 2;
            let label = format!("seed {seed}, {order:?}, {limit:?}, {pages} pages, {settings:?}");
            let mut bench = bench(settings, geometry, pages, order, limit.clone()).unwrap();
            let mut rng = Seed(u64::from(seed)).stream("superblock");
            let (mut mapped, mut failed) = (BTreeSet::new(), 0);
            for step in 0..1500 {
                let at = format!("{label}, step {step}");
                let space = if draw(&mut rng, 2) == 0 { pages } else { pages.min(30) };
                let first = draw(&mut rng, space);
                let count = if draw(&mut rng, 2) == 0 { 1 } else { 1 + draw(&mut rng, 20.min(pages - first)) };
                let run = LpnRun { first: Lpn(first), pages: count, stream: 0 };
                match draw(&mut rng, 20) {
                    0 | 1 if seed % 8 < 5 => {
                        run.iter().for_each(|lpn| bench.flash.host_trims_page(lpn));
                        bench.superblock.trim(run, &mut bench.flash);
                        run.iter().for_each(|lpn| _ = mapped.remove(&lpn.0));
                    }
                    2 => bench.superblock.read(run, &mut bench.flash),
                    _ => match bench.write(first, count) {
                        Ok(()) => mapped.extend(run.iter().map(|lpn| lpn.0)),
                        Err(error) => {
                            assert!(limit != WearLimit::Unlimited, "{at}: {error}");
                            let now = bench.mapped();
                            assert!(mapped.is_subset(&now), "{at}: a write that failed lost pages");
                            mapped = now;
                            failed += 1;
                        }
                    },
                }
                bench.flash.clear_log();
                bench.audit(&at);
                assert_eq!(bench.mapped(), mapped, "{at}");
                if failed > 20 {
                    break;
                }
            }
            ended += u32::from(failed > 0);
            closed_early += bench.superblock.figures.closed_early;
            cleans += bench.superblock.figures.cleans;
        }
        assert!(ended > 20, "{ended} drives wore out");
        assert!(closed_early > 100 && cleans > 1000, "{closed_early} of {cleans}");
    }

    /// 16 logical blocks in superblocks of 4 need 16 + 2 * 4 blocks; superblocks of 5 (4 of them) need as many, those
    /// of 6 need 22.
    #[test]
    fn a_drive_with_less_than_two_open_blocks_a_superblock_is_cautioned_against() {
        assert_eq!(small(sized(4, 2, 1), 24, 16).cautions, [] as [String; 0]);
        assert_eq!(
            small(sized(4, 2, 1), 23, 16).cautions,
            [
                "ftl.superblock: written at random, 4 superblocks of 4 blocks open 2 blocks each and want 24 in all; the drive \
              has 23, so nearly every page written moves a block; raise ftl.superblock.blocks to 6, or lower \
              capacity.utilization to 0.608"
            ]
        );
        assert!(small(sized(16, 2, 1), 18, 16).cautions.is_empty());
    }

    #[test]
    fn what_a_drive_lacks_is_said() {
        let geometry = Geometry::new(1, 1, 1, 16, 4, Bytes(4096));
        let problems = |settings, pages| {
            bench(settings, geometry, pages, ProgramOrder::Any, WearLimit::Unlimited)
                .map(|_| ())
                .unwrap_err()
                .join("\n")
        };
        assert!(
            problems(sized(8, 4, 4), 48)
                .contains("ftl.superblock.reserve-blocks = 4 for cleaning, and one to write to")
        );
    }
}
