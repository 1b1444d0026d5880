//! A drive in a settled state, laid out by writing each physical page once.
//!
//! Blocks fill in the order of writes, so a page stays valid if none of the writes that follow has the same logical page. The layout goes
//! through the blocks from the one filled first to the one filled last: in each, as many pages as are to stay valid take the logical pages
//! whose turn it is, and the others take logical pages that have their turn later. Nothing is cleaned meanwhile.
//!
//! How many pages the blocks hold, and which, comes from theory ([`stationary`](super::stationary)) or from a small drive that has settled
//! ([`scaled`](super::scaled)).

use super::scaled::ScaledOrder;
use super::stationary::{Cleaning, valid_pages};
use flashwright_block::{Popularity, Rng, SourceError, below};
use flashwright_ftl::{Allocation, PlacementName, SchemeName, SlcCacheKind, VictimChoice, VictimName};
use flashwright_nand::{BlockId, Condition};
use flashwright_ssd::Ssd;
use flashwright_workload::generate::Permutation;
use serde::{Deserialize, Serialize};

/// The plan, and how far it has got.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LaidOut {
    pages_per_block: u32,
    /// By block of a plane, in the order of filling: how many pages stay valid in it and in all before it. One list if planes are alike,
    /// else one for each.
    valid_until: Vec<Vec<f64>>,
    /// Logical pages whose turn comes one after another: one class for all planes that take turns as pages are written and are alike, else
    /// one for each plane.
    classes: Vec<Class>,
    /// Logical pages whose turn is still to come, of all classes.
    to_come: u64,
    /// By plane in turn: pages of its block that are still to be written, and those of them that stay valid.
    left: Vec<(u32, u32)>,
    /// The next turn and the block of the planes, counted from 0.
    turn: usize,
    block: u32,
}

/// Logical pages in the order of their turns.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Class {
    pub order: Order,
    /// How many there are, and how many have had their turn.
    pub count: u64,
    pub had: u64,
}

/// Which logical page has a turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Order {
    /// At random, of the pages that leave a remainder when divided by a number.
    Random { order: Permutation, divisor: u64, remainder: u64 },
    /// Those that stand for the pages of a small drive.
    Scaled(ScaledOrder),
}

impl LaidOut {
    /// The steady state of uniform random writes.
    ///
    /// # Errors
    /// [`SourceError`] naming the setting for which it is not known.
    pub fn new(ssd: &Ssd, rng: &mut Rng) -> Result<Self, SourceError> {
        let cleaning =
            cleaning_of(ssd).map_err(|reason| SourceError(format!("precondition: steady:laid-out with {reason}")))?;
        let (geometry, config, pages) = (*ssd.flash().geometry(), ssd.config(), u64::from(ssd.logical_pages()));
        let planes = u64::from(geometry.planes());
        let is_static = config.placement.allocation == Allocation::Static;
        let divisor = if is_static { planes } else { 1 };
        let classes = (0..divisor).map(|remainder| {
            let count = (pages + divisor - 1 - remainder) / divisor;
            Class {
                order: Order::Random { order: Permutation::new(count.max(1), rng), divisor, remainder },
                count,
                had: 0,
            }
        });
        let classes = classes.collect();
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
        Ok(Self::of_plan(ssd, vec![valid_until.collect()], classes))
    }

    /// A layout by lists of valid pages and classes of logical pages, either one for all planes or one for each.
    pub(super) fn of_plan(ssd: &Ssd, valid_until: Vec<Vec<f64>>, classes: Vec<Class>) -> Self {
        let geometry = ssd.flash().geometry();
        Self {
            pages_per_block: geometry.pages_per_block(),
            valid_until,
            to_come: classes.iter().map(|class| class.count).sum(),
            classes,
            left: vec![(0, 0); geometry.planes() as usize],
            turn: 0,
            block: 0,
        }
    }

    /// The largest number of pages that it writes.
    pub fn pages(&self) -> u64 {
        let blocks = self.valid_until.iter().map(Vec::len).max().unwrap_or_default();
        (blocks * self.left.len()) as u64 * u64::from(self.pages_per_block)
    }

    /// The next logical page to write; none when the drive is laid out. `popularity` is that of the workload whose settled state is laid out.
    pub fn next_page(&mut self, popularity: Option<&dyn Popularity>, rng: &mut Rng) -> Option<u32> {
        loop {
            if self.to_come == 0 {
                return None;
            }
            if self.turn == 0 && self.left.iter().all(|(left, _)| *left == 0) {
                self.begin_blocks();
            }
            let turn = self.turn;
            self.turn = (turn + 1) % self.left.len();
            let (left, valid) = &mut self.left[turn];
            let stays = below(rng, u64::from(*left)) < u64::from(*valid);
            *left -= 1;
            *valid -= u32::from(stays);
            let class = if self.classes.len() == 1 { 0 } else { turn };
            let Class { order, count, had } = &mut self.classes[class];
            if had == count {
                continue; // this plane has its logical pages
            }
            let at = if stays { *had } else { *had + below(rng, *count - *had) };
            *had += u64::from(stays);
            self.to_come -= u64::from(stays);
            let page = match order {
                Order::Random { order, divisor, remainder } => order.at(at) * *divisor + *remainder,
                Order::Scaled(order) => order.at(at, popularity.expect("a scaled layout is of a workload")),
            };
            return Some(u32::try_from(page).expect("logical pages are counted in 32 bits"));
        }
    }

    /// Every plane opens its next block. Rounding is spread over the planes.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)] // pages of a block
    fn begin_blocks(&mut self) {
        let (planes, block) = (self.left.len() as f64, self.block as usize);
        for (plane, left) in self.left.iter_mut().enumerate() {
            let valid_until = &self.valid_until[if self.valid_until.len() == 1 { 0 } else { plane }];
            let until = |block: usize| valid_until[block.min(valid_until.len() - 1)];
            let before = if block == 0 { 0.0 } else { until(block - 1) };
            let offset = plane as f64 / planes;
            let valid = ((until(block) + offset).floor() - (before + offset).floor()) as u32;
            let is_last = block + 1 >= valid_until.len();
            *left = (self.pages_per_block, if is_last { self.pages_per_block } else { valid });
        }
        self.block += 1;
    }
}

/// How a drive chooses victims, or the first setting for which the steady state is not known.
fn cleaning_of(ssd: &Ssd) -> Result<Cleaning, String> {
    lays_out(ssd)?;
    match victim_of(ssd) {
        VictimName::Greedy => Ok(Cleaning::FewestOf(ssd.flash().geometry().blocks_per_plane())),
        VictimName::DChoices => Ok(Cleaning::FewestOf(ssd.config().gc.victims.d_choices.d)),
        VictimName::Random => Ok(Cleaning::FewestOf(1)),
        VictimName::Fifo => Ok(Cleaning::Oldest),
        other => Err(refusal("gc.victim", other.listed().name, "\"greedy\", \"d-choices\", \"random\" or \"fifo\"")),
    }
}

pub(super) fn victim_of(ssd: &Ssd) -> VictimName {
    let config = ssd.config();
    match config.gc.victim {
        VictimChoice::Named(name) => name,
        VictimChoice::Default => config.ftl.scheme.victim(),
    }
}

/// A setting that speaks against a layout.
pub(super) fn refusal(key: &str, found: &str, expected: &str) -> String {
    format!("{key} = {found:?}, expected {expected}")
}

/// Whether the pages of a drive lie where its writes in order put them; else the first setting because of which they don't.
pub(super) fn lays_out(ssd: &Ssd) -> Result<(), String> {
    let config = ssd.config();
    if config.ftl.scheme != SchemeName::Page {
        return Err(refusal("ftl.scheme", config.ftl.scheme.listed().name, "\"page\""));
    }
    if let Some(manager) = config.ram.manager {
        let expected = "\"none\", since RAM changes which pages reach the flash";
        return Err(refusal("ram.manager", manager.listed().name, expected));
    }
    if config.slc.cache != SlcCacheKind::None {
        return Err(refusal("slc.cache", "a cache", "\"none\", since a cache has blocks of two sizes"));
    }
    if !matches!(config.placement.policy, PlacementName::Auto | PlacementName::Single | PlacementName::GcSeparate) {
        let expected = "\"auto\", \"single\" or \"gc-separate\"";
        return Err(refusal("placement.policy", config.placement.policy.listed().name, expected));
    }
    if config.placement.sets > 1 {
        return Err(format!("placement.sets = {}, expected 1", config.placement.sets));
    }
    Ok(())
}
