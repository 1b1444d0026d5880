//! Windowed greedy: the block with the fewest valid pages among the s sealed first (Hu et al., SYSTOR 2009; the
//! counterpart of the container-marking report, section IV.A, with s = 100).
//!
//! s = 1 is FIFO, a window of all blocks is greedy. With `beta` above 0 and a limit of cycles, blocks count
//! `v - beta * w` valid pages by SEP, with the age of the data in place of the condition on the marker: the seals since
//! the block's own, above `age-threshold` (section IV.A; the threshold is not given there).
//!
//! The window is an array, refilled from a queue. Seal: O(1); pick: O(s). State: 8 bytes per block, 16 per sealed
//! block.

use super::sep::Sep;
use super::{PlaneView, VictimContext, VictimPolicy, blocks_problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Settings of `gc.victim = "windowed-greedy"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct WindowedGreedySettings {
    /// Blocks in the window (s in the report): 1 to the number of blocks of a plane.
    pub window: u32,
    /// Weight of a cycle in valid pages under SEP; 0 turns SEP off, and so does `wear.pe-cycles-max = 0`.
    #[schemars(range(min = 0.0, max = 1e6), extend("x-expected" = "valid pages a cycle, {range}"))]
    pub beta: f64,
    /// Remaining cycles above the mean from which on a block counts as young, whatever the age of its data.
    pub cycles_threshold: u32,
    /// Number of blocks of the plane that must be sealed after a block before its data count as aged; 0 for the number
    /// of blocks of the plane.
    pub age_threshold: u64,
}

impl Default for WindowedGreedySettings {
    fn default() -> Self {
        Self { window: 100, beta: 0.0, cycles_threshold: 200, age_threshold: 0 }
    }
}

/// `gc.victim = "windowed-greedy"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WindowedGreedy {
    /// The seal number of each block, from 1; 0 for one that is not sealed.
    sealed_as: Vec<u64>,
    last_seal: u64,
    sealed: u32,
    /// The blocks sealed first, in this order.
    window: Vec<u32>,
    /// The seal number of the last block that entered the window.
    window_end: u64,
    window_len: usize,
    /// All later blocks with their seal numbers; those whose number has changed are skipped.
    later: VecDeque<(u64, u32)>,
    sep: Sep,
    age_threshold: u64,
}

impl WindowedGreedy {
    fn refill(&mut self) {
        while self.window.len() < self.window_len
            && let Some((seal, block)) = self.later.pop_front()
        {
            if self.sealed_as[block as usize] == seal {
                self.window.push(block);
                self.window_end = seal;
            }
        }
    }
}

impl VictimPolicy for WindowedGreedy {
    const NAME: &'static str = "windowed-greedy";
    const ABOUT: &'static str =
        "fewest valid pages of the s blocks sealed first (Hu et al., SYSTOR 2009; container marking)";
    const SMALL: &'static [&'static str] = &["window=7"];
    type Settings = WindowedGreedySettings;

    fn new(settings: &WindowedGreedySettings, context: VictimContext) -> Self {
        Self {
            sealed_as: vec![0; context.blocks as usize],
            last_seal: 0,
            sealed: 0,
            window: Vec::new(),
            window_end: 0,
            window_len: settings.window as usize,
            later: VecDeque::new(),
            sep: Sep::new(settings.beta, settings.cycles_threshold),
            age_threshold: if settings.age_threshold == 0 { u64::from(context.blocks) } else { settings.age_threshold },
        }
    }

    fn problem(settings: &WindowedGreedySettings, context: &VictimContext) -> Option<String> {
        blocks_problem("window", settings.window, context)
    }

    fn sealed(&mut self, block: u32, _: PlaneView) {
        self.last_seal += 1;
        self.sealed += 1;
        self.sealed_as[block as usize] = self.last_seal;
        self.later.push_back((self.last_seal, block));
        if self.later.len() > 2 * self.sealed_as.len() {
            self.later.retain(|(seal, block)| self.sealed_as[*block as usize] == *seal);
        }
    }

    fn removed(&mut self, block: u32) {
        self.sealed -= 1;
        if std::mem::take(&mut self.sealed_as[block as usize]) <= self.window_end
            && let Some(at) = self.window.iter().position(|known| *known == block)
        {
            self.window.remove(at);
        }
    }

    fn pick(&mut self, view: PlaneView) -> Option<u32> {
        self.refill();
        let window = self.window.iter().copied();
        // The first among equals is the one sealed first.
        match self.sep.mean(view) {
            None => window.min_by_key(|block| view.pages_valid(*block)),
            Some(mean) => {
                let weighted = |block: &u32| {
                    let aged = self.last_seal - self.sealed_as[*block as usize] > self.age_threshold;
                    self.sep.weighted(*block, mean, aged, view)
                };
                window.min_by(|a, b| weighted(a).total_cmp(&weighted(b)))
            }
        }
    }

    fn candidates(&self) -> u32 {
        self.sealed
    }

    #[cfg(test)]
    fn search(settings: &Self::Settings, history: &mut super::tests::History, view: PlaneView) -> Option<u32> {
        let weighted = |sealed: &super::tests::Sealed| {
            let above = super::tests::above_mean(sealed.block, view);
            let aged = history.last_seal - sealed.seal > settings.age_threshold;
            let w = if above > f64::from(settings.cycles_threshold) || (aged && above > 0.0) { above } else { 0.0 };
            f64::from(view.pages_valid(sealed.block)) - settings.beta * w
        };
        let window = history.sealed.iter().take(settings.window as usize);
        window.min_by(|a, b| weighted(a).total_cmp(&weighted(b))).map(|sealed| sealed.block)
    }
}
