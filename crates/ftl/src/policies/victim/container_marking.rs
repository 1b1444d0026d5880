//! The victim policy of container marking (Hu, Haas, Eleftheriou, IBM Research, section III.C): the fewest valid pages,
//! weighted by SEP, in a window of the oldest blocks of each marker.
//!
//! Sealed blocks lie on one list per marker (stream) in seal order. The report has one window of the s = 100 "oldest"
//! blocks and does not state how the lists share it; there are three interpretations:
//!
//! * `per-list`: the s / 2L oldest of each list, rounded up (7 of 16 lists). Alone, this stalls once static, fully
//!   valid blocks are at the heads of the lists. So after each clean the blocks that were examined but not taken, and
//!   have at least the share `rotate-share` of valid pages, go to the tail of their list (our addition).
//! * `each-list`: the s oldest of each list.
//! * `global`: the s oldest of all.
//!
//! SEP (equations 1 and 2) takes `v - beta * w`: w is the number by which a block's remaining cycles exceed their mean,
//! if it is more than `cycles-threshold`, or, for a marker below L - 1, if it is more than 0. With `sep-alternate` (our
//! addition), a clean chosen only because of SEP is followed by one without SEP, so that moves for wear can't stop
//! reclaiming.
//!
//! Markers are streams counted from 1; L is half the streams. Seal: O(1); pick: O(window). State: 20 bytes a block.

use super::sep::Sep;
use super::{PlaneView, VictimContext, VictimPolicy, blocks_problem};
use crate::SlotLists;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the lists share the window: see the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Window {
    /// Each list gets an equal part of the window.
    #[default]
    PerList,
    /// Each list gets a whole window.
    EachList,
    /// The window holds the oldest blocks of all lists.
    Global,
}

/// Which blocks of the window go to the tail of their list when another block is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rotate {
    /// None.
    None,
    /// Those without an invalid page.
    Full,
    /// Those with at least `rotate-share` of their pages valid.
    #[default]
    Share,
}

/// Settings of `gc.victim = "container-marking"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ContainerMarkingSettings {
    /// How the lists share the window.
    pub window: Window,
    /// Blocks in the window (s in the report): 1 to the number of blocks of a plane.
    pub window_blocks: u32,
    /// Which blocks of the window go to the tail of their list when another block is taken.
    pub rotate: Rotate,
    /// Share of a block's pages that must be valid for `rotate = "share"`, 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-expected" = "a share of a block's pages, {range}"))]
    pub rotate_share: f64,
    /// Weight of a cycle in valid pages under SEP; 0 turns SEP off, and so does `wear.pe-cycles-max = 0`.
    #[schemars(range(min = 0.0, max = 1e6), extend("x-expected" = "valid pages a cycle, {range}"))]
    pub beta: f64,
    /// Remaining cycles above the mean from which on a block counts as young, whatever its marker.
    pub cycles_threshold: u32,
    /// Whether a clean chosen only because of SEP is followed by one without SEP.
    pub sep_alternate: bool,
}

impl Default for ContainerMarkingSettings {
    fn default() -> Self {
        Self {
            window: Window::PerList,
            window_blocks: 100,
            rotate: Rotate::Share,
            rotate_share: 0.75,
            beta: 0.1,
            cycles_threshold: 200,
            sep_alternate: true,
        }
    }
}

/// `gc.victim = "container-marking"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ContainerMarking {
    /// One list per marker, or one list for all.
    lists: SlotLists,
    list_count: u32,
    /// Blocks of a list in the window.
    per_list: u32,
    sealed_as: Vec<u64>,
    last_seal: u64,
    /// Smallest number of valid pages with which a block rotates.
    rotates_from: u32,
    sep: Sep,
    sep_alternate: bool,
    /// Markers below this one make a young block's data aged: L - 1.
    aged_below: u32,
    /// The last chosen victim, the blocks that rotate once it is taken, and whether only SEP led to the choice.
    picked: Option<u32>,
    rotating: Vec<u32>,
    by_sep: bool,
    /// Whether the next clean is without SEP.
    plain_next: bool,
}

impl ContainerMarking {
    fn list_of(&self, block: u32, view: PlaneView) -> u32 {
        if self.list_count == 1 { 0 } else { u32::from(view.stream_of(block)) }
    }
}

impl VictimPolicy for ContainerMarking {
    const NAME: &'static str = "container-marking";
    const ABOUT: &'static str =
        "fewest valid pages, weighted by wear, of the oldest blocks of each marker (container marking)";
    const SMALL: &'static [&'static str] = &["window-blocks=9"];
    type Settings = ContainerMarkingSettings;

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a share from 0 to 1 of a number of pages
    fn new(settings: &ContainerMarkingSettings, context: VictimContext) -> Self {
        let (streams, pages) = (u32::from(context.streams), context.pages_per_block);
        let list_count = if settings.window == Window::Global { 1 } else { streams };
        Self {
            lists: SlotLists::new(list_count, context.blocks),
            list_count,
            per_list: match settings.window {
                Window::PerList => settings.window_blocks.div_ceil(streams),
                Window::EachList | Window::Global => settings.window_blocks,
            },
            sealed_as: vec![0; context.blocks as usize],
            last_seal: 0,
            rotates_from: match settings.rotate {
                Rotate::None => pages + 1,
                Rotate::Full => pages,
                Rotate::Share => (f64::from(pages) * settings.rotate_share).ceil() as u32,
            },
            sep: Sep::new(settings.beta, settings.cycles_threshold),
            sep_alternate: settings.sep_alternate,
            aged_below: (streams / 2).saturating_sub(1),
            picked: None,
            rotating: Vec::new(),
            by_sep: false,
            plain_next: false,
        }
    }

    fn problem(settings: &ContainerMarkingSettings, context: &VictimContext) -> Option<String> {
        blocks_problem("window-blocks", settings.window_blocks, context)
    }

    fn sealed(&mut self, block: u32, view: PlaneView) {
        self.last_seal += 1;
        self.sealed_as[block as usize] = self.last_seal;
        self.lists.push(self.list_of(block, view), block);
    }

    fn removed(&mut self, block: u32) {
        self.lists.unlink(block);
        if self.picked.take() == Some(block) {
            for other in self.rotating.drain(..) {
                self.lists.move_to(self.lists.list_of(other), other);
            }
            self.plain_next = self.sep_alternate && self.by_sep;
        }
    }

    fn pick(&mut self, view: PlaneView) -> Option<u32> {
        let mean = if self.plain_next { None } else { self.sep.mean(view) };
        self.rotating.clear();
        let mut best: Option<(f64, u64, u32)> = None;
        let mut fewest = u32::MAX;
        for list in 0..self.list_count {
            let mut next = self.lists.oldest(list);
            for _ in 0..self.per_list {
                let Some(block) = next else { break };
                let valid = view.pages_valid(block);
                fewest = fewest.min(valid);
                let weighted = mean.map_or(f64::from(valid), |mean| {
                    let aged = u32::from(view.stream_of(block)) + 1 < self.aged_below;
                    self.sep.weighted(block, mean, aged, view)
                });
                let found = (weighted, self.sealed_as[block as usize], block);
                if best.is_none_or(|best| (found.0, found.1) < (best.0, best.1)) {
                    best = Some(found);
                }
                if valid >= self.rotates_from {
                    self.rotating.push(block);
                }
                next = self.lists.after(block);
            }
        }
        self.picked = best.map(|(_, _, block)| block);
        if let Some(block) = self.picked {
            self.rotating.retain(|other| *other != block);
            self.by_sep = view.pages_valid(block) > fewest;
        }
        self.picked
    }

    fn candidates(&self) -> u32 {
        self.lists.total()
    }

    #[cfg(test)]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a share from 0 to 1 of a number of pages
    fn search(settings: &Self::Settings, history: &mut super::tests::History, view: PlaneView) -> Option<u32> {
        use super::tests::{NP, above_mean};
        let levels = u32::from(history.streams) / 2;
        let lists = history.lists.len() as u32;
        let per_list = settings.window == Window::PerList;
        let take = if per_list { settings.window_blocks.div_ceil(lists) } else { settings.window_blocks };
        let window: Vec<u32> = history.lists.iter().flat_map(|list| list.iter().copied().take(take as usize)).collect();
        let weighted = |block: u32| {
            let above = above_mean(block, view);
            let marker = u32::from(view.stream_of(block)) + 1;
            let low = levels > 0 && marker < levels - 1;
            let w = if above > f64::from(settings.cycles_threshold) || (low && above > 0.0) { above } else { 0.0 };
            f64::from(view.pages_valid(block)) - if history.plain_next { 0.0 } else { settings.beta * w }
        };
        let seal = |block: u32| history.sealed.iter().find(|sealed| sealed.block == block).unwrap().seal;
        let order = |a: &u32, b: &u32| weighted(*a).total_cmp(&weighted(*b)).then(seal(*a).cmp(&seal(*b)));
        let best = window.iter().copied().min_by(order)?;
        let full_enough = match settings.rotate {
            Rotate::None => NP + 1,
            Rotate::Full => NP,
            Rotate::Share => (f64::from(NP) * settings.rotate_share).ceil() as u32,
        };
        history.plain_next =
            settings.sep_alternate && window.iter().any(|block| view.pages_valid(*block) < view.pages_valid(best));
        for block in window {
            if block != best && view.pages_valid(block) >= full_enough {
                let list = history.lists.iter_mut().find(|list| list.contains(&block)).unwrap();
                list.retain(|other| *other != block);
                list.push(block);
            }
        }
        Some(best)
    }
}
