//! The SLC cache: blocks that hold one bit per cell take what the host writes, until their pages are folded.
//!
//! A block in SLC mode holds `pages per block / bits per cell` pages, and programs and reads faster. Host writes go to
//! such a block while the cache takes one; *folding* moves its valid pages to normal blocks and erases it.
//!
//! ```text
//!   free ── open in SLC mode ──► host frontier ── full: seal ──► FIFO ── fold: copy valid pages, erase ──► free
//!     └──── open as a normal block (the cache is full) ──► host frontier ── full: seal ──► victim policy
//! ```
//!
//! **Frontiers.** A plane has two for each placement stream: the first half takes moved pages, always in normal blocks;
//! the second takes pages of the host, in SLC or normal blocks. A frontier ends where its block does, so a write does
//! not ask which kind it is. Both record the placement stream, so pages keep it when they are folded. Placement has at
//! most 64 streams, so that frontiers are counted in 8 bits.
//!
//! **Which block is folded.** The one sealed first: its pages had the most time to be overwritten, and overwritten pages
//! are not folded. Victim policies never see SLC blocks. A plane of a dynamic cache that lacks free blocks folds before
//! it cleans: a block in SLC mode holds at most half of its pages, so folding it gains at least half a block for at
//! most half a block of copies. A fixed cache has blocks of its own, so folding gains no room for normal data there.
//!
//! **Space.** A clean needs room for a block of moved pages when it begins, be it in free blocks or in the frontiers of
//! moved pages. A dynamic cache leaves it because it takes a block only above `slc.blocks-kept`; folding then gains
//! room, as cleaning does. A fixed cache's folding takes room without returning a normal block. So it begins only above
//! `gc.free-blocks-min`, which counts as 2 at least, and pauses with 2 free blocks: one for its pages, one for the next
//! clean. A block without erases left never opens in SLC mode: its pages stay where they are, and would take a whole
//! block for a part of one.

use crate::plane::{Plane, good_blocks};
use crate::planes::held_by_all;
use crate::schemes::SchemeContext;
use crate::{BlockPool, Flash, Violation};
use flashwright_block::Nanos;
use flashwright_nand::{BlockId, Condition, PlaneId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Which blocks the SLC cache takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SlcCacheKind {
    /// None: all blocks are normal.
    #[default]
    None,
    /// A share of each plane's blocks, which never hold normal data.
    Fixed,
    /// Free blocks, as long as there are enough.
    Dynamic,
}

/// Where host writes go while the SLC cache is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WhenFull {
    /// To normal blocks.
    #[default]
    Direct,
    /// To the cache, once its oldest block is folded.
    Fold,
}

/// `[slc]`: the SLC cache, blocks with one bit per cell that take host writes. Needs `ftl.scheme = "page"` and
/// `geometry.bits-per-cell` of 2 or more.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct SlcSettings {
    /// Which blocks the cache takes: none, a fixed share of each plane, or free ones.
    pub cache: SlcCacheKind,
    /// Share of a plane's blocks that the cache takes: with `"fixed"` of all its blocks, with `"dynamic"` at most, of
    /// those that hold no normal data (free blocks and the cache's own).
    #[schemars(extend("exclusiveMinimum" = 0.0, "maximum" = 1.0, "x-expected" = "a share of the blocks {range}"))]
    pub block_share: f64,
    /// Free blocks of a plane that a dynamic cache leaves to cleaning and folding; fewer than `gc.free-blocks-min` count
    /// as that.
    #[schemars(range(min = 1))]
    pub blocks_kept: u32,
    /// Where host writes go while the cache is full: to normal blocks, or to the cache once its oldest block is folded.
    pub when_full: WhenFull,
    /// Array time of reading a page of such a block, under `timing.model = "parallel"`.
    #[schemars(extend("x-maximum" = "10 s"))]
    pub page_read: Nanos,
    /// Array time of programming such a block, under `timing.model = "parallel"`: a page, or the pages of all planes that are
    /// programmed together.
    #[schemars(extend("x-maximum" = "10 s"))]
    pub page_program: Nanos,
    /// Whether the drive folds in idle time, until the cache holds only open blocks.
    pub fold_idle: bool,
    /// Time without a request in the drive after which it starts to fold.
    #[schemars(extend("x-maximum" = "3600 s"))]
    pub fold_after: Nanos,
}

impl Default for SlcSettings {
    fn default() -> Self {
        Self {
            cache: SlcCacheKind::None,
            block_share: 0.05,
            blocks_kept: 4,
            when_full: WhenFull::Direct,
            page_read: Nanos(30_000),
            page_program: Nanos(200_000),
            fold_idle: true,
            fold_after: Nanos(1_000_000_000),
        }
    }
}

/// The SLC cache that a scheme is built with.
#[derive(Clone, Copy, Debug)]
pub struct SlcContext {
    /// Its settings.
    pub settings: SlcSettings,
    /// `geometry.bits-per-cell`.
    pub bits_per_cell: u32,
}

impl SlcContext {
    /// None if the settings name no cache.
    #[must_use]
    pub fn new(settings: &SlcSettings, bits_per_cell: u32) -> Option<Self> {
        (settings.cache != SlcCacheKind::None).then_some(Self { settings: *settings, bits_per_cell })
    }

    /// Pages of a block in SLC mode.
    pub(crate) fn pages_per_block(&self, flash: &Flash) -> u32 {
        flash.geometry().pages_per_block() / self.bits_per_cell
    }

    fn is_fixed(&self) -> bool {
        self.settings.cache == SlcCacheKind::Fixed
    }

    /// Of a plane with so many good blocks, those that never hold normal data.
    pub(crate) fn own_blocks(&self, good: u64) -> u64 {
        if self.is_fixed() { share_of(self.settings.block_share, good) } else { 0 }
    }

    /// Free blocks above which a plane opens a normal block for a write, and those with which its work may pause.
    pub(crate) fn limits(&self, free_blocks_min: u32) -> (u32, u32) {
        if self.is_fixed() { (free_blocks_min.max(2), 2) } else { (free_blocks_min, 1) }
    }

    /// Validation errors, one line each. `reserved` blocks of each plane never hold data.
    pub(crate) fn problems(&self, context: &SchemeContext, reserved: u64, flash: &Flash) -> Vec<String> {
        let geometry = flash.geometry();
        let (share, pages) = (self.settings.block_share, u64::from(geometry.pages_per_block()));
        if self.bits_per_cell < 2 {
            return vec![
                "slc.cache: found a cache, but cells of geometry.bits-per-cell = 1 hold one bit anyway; expected 2, 3 or \
                 4 with it, or slc.cache = \"none\""
                    .to_owned(),
            ];
        }
        if self.pages_per_block(flash) == 0 {
            return vec![format!(
                "slc.cache: found a cache, but geometry.pages-per-block = {pages} leaves none of geometry.bits-per-cell = \
                 {} in SLC mode; expected more pages in a block",
                self.bits_per_cell
            )];
        }
        let mut problems = Vec::new();
        if let Some(policy) = context.wear.policy {
            problems.push(format!(
                "wear.policy: found {:?}, expected \"none\" with an SLC cache (slc.cache): wear levelling does not know \
                 its blocks",
                policy.listed().name
            ));
        }
        let good: Vec<u64> = (0..geometry.planes()).map(|plane| good_blocks(flash, PlaneId(plane))).collect();
        let least = good.iter().copied().min().unwrap_or(0);
        if share_of(share, least) == 0 {
            problems.push(format!(
                "slc.block-share: found {share}, less than a block of a plane with {least}; expected {:.3} or more",
                (1000.0 / least.max(1) as f64).ceil() / 1000.0
            ));
        }
        if !self.is_fixed() && u64::from(self.settings.blocks_kept) >= least {
            problems.push(format!(
                "slc.blocks-kept: found {}, expected less than the {least} blocks of a plane",
                self.settings.blocks_kept
            ));
        }
        // What the planes hold if the cache takes `own` blocks of each.
        let holds =
            |own: u64| held_by_all(context, flash, |plane| good[plane as usize].saturating_sub(own + reserved) * pages);
        let (own, logical) = (self.own_blocks(least), u64::from(context.logical_pages));
        if own > 0 && holds(own) < logical && holds(1) >= logical {
            let most = (1..own).rev().find(|own| holds(*own) >= logical).unwrap_or(1);
            problems.push(format!(
                "slc.block-share: found {share}, but besides the {own} blocks of the cache and {reserved} for cleaning a plane \
                 of {least} blocks does not hold its share of {logical} logical pages; expected at most {:.4}, or a lower \
                 capacity.utilization",
                // The next whole block is beyond this.
                ((most as f64 + 0.5) / least as f64 * 1e4).floor() / 1e4
            ));
        }
        problems
    }
}

/// A share of blocks, in whole blocks.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a share from 0 to 1
fn share_of(share: f64, blocks: u64) -> u64 {
    // A share such as 0.29 of 100 means 29, although the product is a little less.
    (share * blocks as f64 + 1e-9) as u64
}

/// The SLC cache of a plane.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SlcCache {
    settings: SlcSettings,
    /// Pages of a block in SLC mode.
    pages: u32,
    /// By placement stream: whether the host's frontier is a block in SLC mode.
    pub open: Vec<bool>,
    /// Full blocks, oldest first.
    pub sealed: VecDeque<BlockId>,
    /// The cache's own erased blocks, if it is fixed.
    pub own: Option<BlockPool>,
    /// Blocks in SLC mode that are open, full, or being folded.
    pub in_use: u32,
    /// Pages of the blocks opened since the figures were reset.
    pages_opened: u64,
}

impl SlcCache {
    /// An empty cache in a plane with so many good blocks, of which `in_use` hold pages in SLC mode. Blocks of its own, if it has
    /// any, go from the erased blocks of the plane, `pool`, to `own`, which is empty; `wear` ranks them.
    #[allow(clippy::too_many_arguments)] // one caller
    pub fn new(
        context: &SlcContext,
        streams: usize,
        [good, in_use]: [u64; 2],
        pool: &mut BlockPool,
        mut own: BlockPool,
        wear: impl Fn(u32) -> u32,
        flash: &Flash,
    ) -> Self {
        for _ in in_use..context.own_blocks(good) {
            let Some(block) = pool.pop() else { break };
            own.push(block, wear(block));
        }
        Self {
            settings: context.settings,
            pages: context.pages_per_block(flash),
            open: vec![false; streams],
            sealed: VecDeque::new(),
            own: context.is_fixed().then_some(own),
            in_use: 0,
            pages_opened: 0,
        }
    }

    /// Whether folding a block makes a normal block free.
    pub fn folding_frees(&self) -> bool {
        self.own.is_none()
    }

    /// Whether the cache takes another block, in a plane with so many free blocks. `free_blocks_min`: see
    /// [`crate::cleaner::Cleaner`].
    pub fn takes_block(&self, free: usize, free_blocks_min: usize) -> bool {
        match &self.own {
            Some(own) => !own.is_empty(),
            None => {
                let kept = free_blocks_min.max(self.settings.blocks_kept as usize);
                let not_normal = free as u64 + u64::from(self.in_use);
                free > kept && u64::from(self.in_use) < share_of(self.settings.block_share, not_normal)
            }
        }
    }

    /// Whether a write that finds the cache full waits until a block is folded.
    pub fn folds_when_full(&self) -> bool {
        self.settings.when_full == WhenFull::Fold
    }

    /// Takes a block for the host's frontier of a stream, in SLC mode; returns its pages.
    pub fn opens(&mut self, stream: usize) -> u32 {
        self.open[stream] = true;
        self.in_use += 1;
        self.pages_opened += u64::from(self.pages);
        self.pages
    }

    /// The block of the host's frontier of a stream is full.
    pub fn seals(&mut self, stream: usize, block: BlockId) {
        self.open[stream] = false;
        self.sealed.push_back(block);
    }

    /// Takes the oldest full block, to be folded.
    pub fn takes_to_fold(&mut self, block: BlockId) {
        let oldest = self.sealed.pop_front();
        assert_eq!(oldest, Some(block), "folding takes the oldest block");
    }

    /// Blocks that never hold normal data.
    pub fn only_its_own(&self) -> usize {
        self.own.as_ref().map_or(0, |own| own.len() + self.in_use as usize)
    }

    /// Erased blocks of its own.
    pub fn own_free(&self) -> usize {
        self.own.as_ref().map_or(0, BlockPool::len)
    }

    /// Pages programmed since the figures were reset; `room` are those left in the open blocks.
    pub fn pages_written(&self, room: u64) -> u64 {
        self.pages_opened - room
    }

    /// Resets that count.
    pub fn reset_figures(&mut self, room: u64) {
        self.pages_opened = room;
    }

    /// Appends contradictions between the cache and the flash; `folding` is the block of the plane's paused fold.
    pub fn audit(&self, plane: usize, folding: Option<BlockId>, flash: &Flash, violations: &mut Vec<Violation>) {
        for block in &self.sealed {
            let (next, good) = (flash.nand().next_page(*block), flash.nand().condition(*block) == Condition::Good);
            // A mount seals blocks that power failed in, unless they were the last ones opened.
            let is_full = next == self.pages || (flash.may_lose_power() && (1..self.pages).contains(&next));
            if !flash.is_slc(*block) || !is_full || !good {
                violations.push(Violation(format!(
                    "plane {plane}: block {} is full in the SLC cache with {next} of {} pages, SLC mode {}, good {good}",
                    block.0,
                    self.pages,
                    flash.is_slc(*block)
                )));
            }
        }
        let open = self.open.iter().filter(|open| **open).count();
        let found = open + self.sealed.len() + usize::from(folding.is_some());
        if found != self.in_use as usize {
            violations.push(Violation(format!(
                "plane {plane}: {} blocks in SLC mode by the count, {found} by a search",
                self.in_use
            )));
        }
        let first = flash.geometry().first_block(PlaneId(u32::try_from(plane).expect("planes are counted in 32 bits")));
        let written = (first.0..first.0 + flash.geometry().blocks_per_plane()).map(BlockId);
        // A cut may have left pages in a block whose last erase was decided: it is retired, and nobody's any more.
        let in_use = |block: &BlockId| flash.is_slc(*block) && flash.nand().condition(*block) == Condition::Good;
        let written = written.filter(|block| in_use(block) && flash.nand().next_page(*block) > 0).count();
        if written > found {
            violations.push(Violation(format!(
                "plane {plane}: {written} blocks hold pages in SLC mode, but the cache knows {found}"
            )));
        }
    }
}

impl Plane {
    /// Opens a block of the SLC cache as the host's frontier of a stream.
    pub fn open_slc(&mut self, stream: u8, flash: &mut Flash) {
        let streams = u8::try_from(self.streams()).expect("streams are counted in 8 bits");
        let own = self.slc.as_mut().and_then(|slc| slc.own.as_mut());
        let local = own.unwrap_or(&mut self.pool).pop_for(stream % streams, streams).expect("the cache takes a block");
        // Its last pages stay: see `slc`.
        let can_erase = flash.nand().can_erase(BlockId(self.first_block.0 + local));
        if !can_erase && self.slc.as_ref().is_some_and(|slc| slc.own.is_some()) {
            self.room += i64::from(flash.geometry().pages_per_block()); // it becomes a normal block
        }
        self.begin(stream, local, can_erase, flash);
    }

    /// Erased pages in the open blocks of the SLC cache.
    pub fn slc_room(&self) -> u64 {
        let open = self.slc.iter().flat_map(|slc| &slc.open).zip(&self.frontiers[self.streams()..]);
        open.filter(|(open, _)| **open).map(|(_, frontier)| u64::from(frontier.room())).sum()
    }
}
