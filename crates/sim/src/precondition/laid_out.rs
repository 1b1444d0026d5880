//! A drive in the steady state of uniform random writes, laid out by writing each physical page once.
//!
//! How many valid pages the blocks have in that state is known ([`stationary`](super::stationary)). Blocks fill in the order of writes, so
//! a page stays valid if none of the writes that follow has the same logical page. The plan goes through the blocks from the one to be
//! cleaned first to the one filled last: in each, as many pages as are to stay valid take the next logical pages of a random order, and the
//! others take logical pages that have their turn later. Nothing is cleaned meanwhile.

use super::stationary::{Cleaning, valid_pages};
use flashwright_block::{Rng, SourceError, below};
use flashwright_ftl::{Allocation, PlacementName, SchemeName, SlcCacheKind, VictimChoice, VictimName};
use flashwright_nand::{BlockId, Condition};
use flashwright_ssd::Ssd;
use flashwright_workload::generate::Permutation;
use serde::{Deserialize, Serialize};

/// The plan, and how far it has got.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct LaidOut {
    pages_per_block: u32,
    /// By block of a plane, the first to be cleaned first: how many pages stay valid in it and in all before it. Planes are alike.
    valid_until: Vec<f64>,
    /// Logical pages whose turn comes one after another, and how many have had it: one class for all planes that take turns as
    /// pages are written, one for each plane that logical pages are bound to.
    classes: Vec<(Permutation, u64, u64)>,
    /// Logical pages whose turn is still to come, of all classes.
    to_come: u64,
    /// By plane in turn: pages of its block that are still to be written, and those of them that stay valid.
    left: Vec<(u32, u32)>,
    /// The next turn and the block of the planes, counted from 0.
    turn: usize,
    block: u32,
}

impl LaidOut {
    /// The plan for a drive.
    ///
    /// # Errors
    /// [`SourceError`] naming the setting for which the steady state is not known.
    pub fn new(ssd: &Ssd, rng: &mut Rng) -> Result<Self, SourceError> {
        let cleaning = cleaning_of(ssd).map_err(|(key, found, expected)| {
            SourceError(format!("precondition: steady:laid-out with {key} = {found:?}, expected {expected}"))
        })?;
        let (geometry, config, pages) = (*ssd.flash().geometry(), ssd.config(), u64::from(ssd.logical_pages()));
        let planes = u64::from(geometry.planes());
        let is_static = config.placement.allocation == Allocation::Static;
        let classes: Vec<u64> = match is_static {
            true => (0..planes).map(|plane| (pages + planes - 1 - plane) / planes).collect(),
            false => vec![pages],
        };
        let nand = ssd.flash().nand();
        let good = (0..geometry.blocks()).filter(|block| nand.condition(BlockId(*block)) == Condition::Good);
        // All that cleaning keeps, but for the open block that host writes fill.
        let reserve = ssd.reserve().expect("page-mapped drives keep blocks for cleaning");
        let kept = u32::try_from(reserve.blocks).expect("blocks are counted in 32 bits") - 1;
        let fitting = u32::try_from(pages.div_ceil(planes).div_ceil(u64::from(geometry.pages_per_block())));
        let fitting = fitting.expect("logical pages fit the drive");
        let blocks = (good.count() as u32 / geometry.planes()).saturating_sub(kept).max(fitting);
        let valid = valid_pages(cleaning, geometry.pages_per_block(), blocks, pages / planes);
        let valid_until = valid.iter().scan(0.0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        Ok(Self {
            pages_per_block: geometry.pages_per_block(),
            valid_until: valid_until.collect(),
            classes: classes.into_iter().map(|count| (Permutation::new(count.max(1), rng), count, 0)).collect(),
            to_come: pages,
            left: vec![(0, 0); planes as usize],
            turn: 0,
            block: 0,
        })
    }

    /// The largest number of pages that it writes.
    pub fn pages(&self) -> u64 {
        (self.valid_until.len() * self.left.len()) as u64 * u64::from(self.pages_per_block)
    }

    /// The next logical page to write; none when the drive is laid out.
    pub fn next_page(&mut self, rng: &mut Rng) -> Option<u32> {
        loop {
            if self.to_come == 0 {
                return None;
            }
            if self.turn == 0 && self.left[0].0 == 0 {
                self.begin_blocks();
            }
            let turn = self.turn;
            self.turn = (turn + 1) % self.left.len();
            let (left, valid) = &mut self.left[turn];
            let stays = below(rng, u64::from(*left)) < u64::from(*valid);
            *left -= 1;
            *valid -= u32::from(stays);
            let class = if self.classes.len() == 1 { 0 } else { turn };
            let (order, count, had) = &mut self.classes[class];
            if had == count {
                continue; // this plane has its logical pages
            }
            let at = if stays { *had } else { *had + below(rng, *count - *had) };
            *had += u64::from(stays);
            self.to_come -= u64::from(stays);
            let page = order.at(at) * self.classes.len() as u64 + class as u64;
            return Some(u32::try_from(page).expect("logical pages are counted in 32 bits"));
        }
    }

    /// Every plane opens its next block. Rounding is spread over the planes.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)] // pages of a block
    fn begin_blocks(&mut self) {
        let (planes, block) = (self.left.len() as f64, self.block as usize);
        let until = |block: usize| self.valid_until[block.min(self.valid_until.len() - 1)];
        let before = if block == 0 { 0.0 } else { until(block - 1) };
        for (plane, left) in self.left.iter_mut().enumerate() {
            let offset = plane as f64 / planes;
            let valid = ((until(block) + offset).floor() - (before + offset).floor()) as u32;
            let is_last = block + 1 >= self.valid_until.len();
            *left = (self.pages_per_block, if is_last { self.pages_per_block } else { valid });
        }
        self.block += 1;
    }
}

/// How a drive chooses victims, or the first setting for which the steady state is not known: its key, what it is, what would do.
fn cleaning_of(ssd: &Ssd) -> Result<Cleaning, (&'static str, String, &'static str)> {
    let config = ssd.config();
    if config.ftl.scheme != SchemeName::Page {
        return Err(("ftl.scheme", config.ftl.scheme.listed().name.to_owned(), "\"page\""));
    }
    if let Some(manager) = config.ram.manager {
        let found = manager.listed().name.to_owned();
        return Err(("ram.manager", found, "\"none\", since RAM changes which pages reach the flash"));
    }
    if config.slc.cache != SlcCacheKind::None {
        return Err(("slc.cache", "a cache".to_owned(), "\"none\", since a cache has blocks of two sizes"));
    }
    if !matches!(config.placement.policy, PlacementName::Auto | PlacementName::Single | PlacementName::GcSeparate) {
        let found = config.placement.policy.listed().name.to_owned();
        return Err(("placement.policy", found, "\"auto\", \"single\" or \"gc-separate\""));
    }
    if config.placement.sets > 1 {
        return Err(("placement.sets", config.placement.sets.to_string(), "1"));
    }
    let victim = match config.gc.victim {
        VictimChoice::Named(name) => name,
        VictimChoice::Default => config.ftl.scheme.victim(),
    };
    match victim {
        VictimName::Greedy => Ok(Cleaning::FewestOf(ssd.flash().geometry().blocks_per_plane())),
        VictimName::DChoices => Ok(Cleaning::FewestOf(config.gc.victims.d_choices.d)),
        VictimName::Random => Ok(Cleaning::FewestOf(1)),
        VictimName::Fifo => Ok(Cleaning::Oldest),
        other => {
            Err(("gc.victim", other.listed().name.to_owned(), "\"greedy\", \"d-choices\", \"random\" or \"fifo\""))
        }
    }
}
