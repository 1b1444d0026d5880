//! A layout that copies a small drive which has settled under the same workload.
//!
//! The small drive has as many planes, fewer blocks in each, and the same share of spare space beside the blocks that cleaning keeps. Each
//! of its logical pages stands for a group of neighbours in the order of popularity, `L / l` ranks where the large drive has `L` pages and
//! the small one `l`. Then a block of the small drive stands for `L / l` blocks of the large one: as many of their pages are valid, and
//! these are as popular.

use super::laid_out::{Class, LaidOut, Order, lays_out, refusal};
use flashwright_block::{Bytes, Popularity, Request, RequestKind, RequestSource, Rng, SECTOR_BYTES, Seed, SourceError};
use flashwright_ftl::{Allocation, PlacementName};
use flashwright_nand::{BlockId, PlaneId};
use flashwright_ssd::{DriveConfig, Ssd};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Blocks of each plane of the small drive, beside those that cleaning keeps. Half as many shift write amplification by a few per cent,
/// which the large drive has to play away (`experiments/settling/scaled.py`).
const BLOCKS: u32 = 60;

/// The small drive is at least so many times smaller: else settling it costs about what the copy saves.
const TIMES_MIN: u32 = 4;

/// The order of turns of the logical pages of a plane.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ScaledOrder {
    /// The groups whose pages are valid in the plane, block by block. In each block those of one rank more come first.
    groups: Vec<u32>,
    /// By block: the first turn, and the first of its groups.
    blocks: Vec<(u64, usize)>,
    scale: Scale,
}

/// Logical pages of both drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Scale {
    pub small: u64,
    pub large: u64,
}

impl Scale {
    /// How many times larger the large drive is.
    #[allow(clippy::cast_precision_loss)] // pages are counted in 32 bits
    pub fn times(self) -> f64 {
        self.large as f64 / self.small as f64
    }
    /// The group of a rank: a page of the small drive stands for each group.
    fn group_of(self, rank: u64) -> u64 {
        rank * self.small / self.large
    }
    fn first_rank(self, group: u64) -> u64 {
        (group * self.large).div_ceil(self.small)
    }
    fn ranks(self, group: u64) -> u64 {
        self.first_rank(group + 1) - self.first_rank(group)
    }
}

impl ScaledOrder {
    /// The logical page of a turn.
    #[allow(clippy::cast_possible_truncation)] // places within a block
    pub fn at(&self, turn: u64, popularity: &dyn Popularity) -> u64 {
        let block = self.blocks.partition_point(|(first, _)| *first <= turn) - 1;
        let (first, from) = self.blocks[block];
        let until = self.blocks.get(block + 1).map_or(self.groups.len(), |(_, from)| *from);
        let (groups, rounds) = ((until - from) as u64, self.scale.large / self.scale.small);
        let round = ((turn - first) / groups).min(rounds);
        let group = self.groups[from + (turn - first - round * groups) as usize];
        place_of(popularity, self.scale.first_rank(u64::from(group)) + round)
    }
}

/// The page of a rank; pages that no rank stands for follow as they are.
fn place_of(popularity: &dyn Popularity, rank: u64) -> u64 {
    if rank < popularity.places() { popularity.place(rank) } else { rank }
}

/// The small drive for a large one.
///
/// # Errors
/// Why there is none, in one sentence.
pub(crate) fn small_of(ssd: &Ssd, popularity: Option<&dyn Popularity>) -> Result<(DriveConfig, Scale), String> {
    lays_out(ssd)?;
    let (config, geometry) = (ssd.config(), *ssd.flash().geometry());
    if config.placement.allocation == Allocation::Static {
        let expected = "\"by-room\" or \"dynamic\", since the page number would decide the plane";
        return Err(refusal("placement.allocation", "static", expected));
    }
    if let Some(policy) = config.wear.policy {
        return Err(refusal("wear.policy", policy.listed().name, "\"none\", since a layout has hardly erased a block"));
    }
    let conditions = ssd.flash().nand();
    if (0..geometry.blocks()).any(|block| conditions.condition(BlockId(block)) != flashwright_nand::Condition::Good) {
        return Err("wear.factory-bad above 0, expected 0: planes differ".to_owned());
    }
    if ssd.has_foreign_policies() {
        return Err("a policy that is no part of Flashwright: it may keep what a layout does not".to_owned());
    }
    let Some(popularity) = popularity.filter(|law| law.sectors() == ssd.sectors_per_page()) else {
        return Err("a workload whose order of popularity is not known by construction; it is for uniform, zipf, hot-cold and pareto, with \
                    writes of a page and without trims"
            .to_owned());
    };
    if !writes_all(popularity, u64::from(ssd.logical_pages())) {
        return Err("pages that the workload never writes: what cleaning costs depends on where they lie, thus on how the drive began"
            .to_owned());
    }
    let reserve = ssd.reserve().expect("page-mapped drives keep blocks for cleaning").blocks;
    let kept = u32::try_from(reserve).expect("blocks are counted in 32 bits");
    let (cleaned, large) = (geometry.blocks_per_plane().saturating_sub(kept), u64::from(ssd.logical_pages()));
    let times = cleaned / BLOCKS;
    if times < TIMES_MIN || config.geometry.blocks_per_plane != geometry.blocks_per_plane() {
        return Err(format!(
            "{} blocks in a plane, expected {} or more: a small drive would not be much smaller",
            geometry.blocks_per_plane(),
            TIMES_MIN * BLOCKS + kept
        ));
    }
    let blocks = cleaned.div_ceil(times);
    let small = large * u64::from(blocks) / u64::from(cleaned);
    let mut written = config.clone().into_written();
    written.geometry.blocks_per_plane = blocks + kept;
    written.capacity.logical = Bytes(small * ssd.sectors_per_page() * SECTOR_BYTES);
    (written.host, written.controller) = Default::default();
    if written.placement.policy == PlacementName::Auto {
        // It would decide by the blocks of the small drive.
        let is_apart = kept > config.gc.free_blocks_min.max(1) + 1;
        written.placement.policy = if is_apart { PlacementName::GcSeparate } else { PlacementName::Single };
    }
    let config = written.check().map_err(|error| format!("a small drive that can't be built: {error}"))?;
    Ok((config, Scale { small, large }))
}

/// Whether the whole drive is written, all but a hundredth of it, and of so many writes a few go to the half that is written least.
fn writes_all(popularity: &dyn Popularity, pages: u64) -> bool {
    const DRAWS: usize = 10_000;
    const LEAST: usize = 10;
    let (places, mut rng) = (popularity.places(), Seed(1).stream("precondition.small"));
    let seldom = (0..DRAWS).filter(|_| popularity.draw(&mut rng) >= places / 2).count();
    seldom >= LEAST && places <= pages && (pages - places) * 100 <= pages
}

/// A plan by which a large drive copies a small one, whose blocks are given in the order in which they were filled.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // pages are counted in 32 bits
pub(crate) fn copied(small: &Ssd, filled: &[BlockId], source: &SmallSource, large: &Ssd) -> LaidOut {
    let scale = source.scale;
    let mut group_of = vec![0; source.pages.len()];
    (0..).zip(&source.pages).for_each(|(group, page)| group_of[*page as usize] = group);
    let (flash, geometry) = (small.flash(), small.flash().geometry());
    let (times, per_block) = (scale.times(), f64::from(geometry.pages_per_block()));
    let rounds = scale.large / scale.small;
    let (mut valid_until, mut classes) = (Vec::new(), Vec::new());
    for plane in (0..geometry.planes()).map(PlaneId) {
        let mut order = ScaledOrder { groups: Vec::new(), blocks: Vec::new(), scale };
        // Where blocks end: in pages programmed, and in pages of the large drive that are valid.
        let (mut ends, mut programmed, mut valid) = (vec![(0.0, 0.0)], 0, 0);
        for block in filled.iter().filter(|block| geometry.plane_of(**block) == plane) {
            let from = order.groups.len();
            let pages = flash.valid_pages(*block).filter_map(|ppn| flash.nand().spare(ppn));
            order.groups.extend(pages.map(|page| group_of[page.index()]));
            let groups = &mut order.groups[from..];
            groups.sort_by_key(|group| scale.ranks(u64::from(*group)) == rounds);
            if !groups.is_empty() {
                order.blocks.push((valid, from));
            }
            valid += groups.iter().map(|group| scale.ranks(u64::from(*group))).sum::<u64>();
            programmed += flash.nand().next_page(*block);
            ends.push((f64::from(programmed), valid as f64));
        }
        let blocks = (f64::from(programmed) * times / per_block).ceil() as u32;
        valid_until
            .push((1..=blocks.max(1)).map(|block| valid_at(&ends, f64::from(block) * per_block / times)).collect());
        classes.push(Class { order: Order::Scaled(order), count: valid, had: 0 });
    }
    LaidOut::of_plan(large, valid_until, classes)
}

/// The pages that are valid in the first so many, by the ends of blocks. Rounding must not take a page away where blocks end together.
fn valid_at(ends: &[(f64, f64)], programmed: f64) -> f64 {
    const ROUNDING: f64 = 1e-6;
    let next = ends.partition_point(|(end, _)| *end < programmed - ROUNDING).clamp(1, ends.len() - 1);
    let ((from, less), (until, more)) = (ends[next - 1], ends[next]);
    let share = if until > from { ((programmed - from) / (until - from)).min(1.0) } else { 1.0 };
    less + (more - less) * share + ROUNDING
}

/// The workload on the small drive: writes alone, each to the page that stands for the rank drawn.
#[derive(Debug)]
pub(crate) struct SmallSource {
    popularity: Arc<dyn Popularity>,
    rng: Rng,
    scale: Scale,
    /// The logical page of each group of ranks. They are in the order of the places of the first ranks, so that a fill in order puts side
    /// by side what it puts side by side on the large drive.
    pages: Vec<u32>,
}

impl SmallSource {
    #[allow(clippy::cast_possible_truncation)] // pages are counted in 32 bits
    pub fn new(popularity: Arc<dyn Popularity>, seed: Seed, scale: Scale) -> Self {
        let mut groups: Vec<u32> = (0..scale.small as u32).collect();
        groups.sort_by_cached_key(|group| place_of(&*popularity, scale.first_rank(u64::from(*group))));
        let mut pages = vec![0; groups.len()];
        (0..).zip(groups).for_each(|(page, group)| pages[group as usize] = page);
        Self { popularity, rng: seed.stream("precondition.small"), scale, pages }
    }
}

impl RequestSource for SmallSource {
    #[allow(clippy::cast_possible_truncation)] // sectors of a page
    fn fill(&mut self, batch: &mut Vec<Request>, at_most: usize) -> Result<usize, SourceError> {
        let sectors = self.popularity.sectors();
        batch.extend((0..at_most).map(|_| {
            let group = self.scale.group_of(self.popularity.draw(&mut self.rng));
            let page = u64::from(self.pages[group as usize]);
            Request {
                kind: RequestKind::Write,
                first_sector: page * sectors,
                sectors: sectors as u32,
                ..Request::default()
            }
        }));
        Ok(at_most)
    }
}
