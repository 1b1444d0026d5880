//! Where the requests of a stand-in start.
//!
//! The published figures are the number of distinct addresses and the share of them that is updated more than once.
//! Together they rule out a single popularity law: Zipf's law over the whole footprint, run for the length of a trace,
//! either leaves much of it untouched or updates nearly all of it. So the footprint has two parts:
//!
//! - a **popular** part, a share `h` of the slots, drawn by Zipf's law over chunks of 64 slots, uniformly within;
//! - the **rest**, walked through in random order: each slot written once in the length of the trace. If the footprint
//!   has addresses that are only read, these follow, and reads go to all of the rest uniformly.
//!
//! ```text
//!   index:  0 ........ h n | h n ............................ | ...... n   popular first
//!              Zipf        |  a random walk, each once        |  only read
//!   slot:   chunks of 64 indexes, scattered over the space by a permutation
//! ```
//!
//! `h` is solved such that, after as many writes as the trace has, the published share of written slots has three
//! writes or more. Scaling footprint and length together does not change this.

use crate::generate::alias::AliasTable;
use crate::generate::permutation::Permutation;
use crate::generate::zipf::{power_sum, weights};
use flashwright_block::{Rng, below, chance};
use libm::{exp, pow};

/// Slots of a chunk: 256 KiB of 4 KiB slots.
const CHUNK: u64 = 64;

/// The inputs of the layout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    pub(crate) slots: u64,
    /// Share of the slots that walkers use, above 0 up to 1.
    pub(crate) walkable: f64,
    /// Requests (of kinds that walk the rest) that start outside runs, in the length of the trace.
    pub(crate) visits: f64,
    /// The same of the other kinds; 0 when all walk.
    pub(crate) others: f64,
    /// Share of visited slots with three visits or more; none takes `hot_assumed`.
    pub(crate) updated: Option<f64>,
    pub(crate) hot_assumed: f64,
    pub(crate) alpha: f64,
}

pub(crate) struct Places {
    slots: u64,
    /// Popular slots; the indexes below.
    hot: u64,
    chunk: u64,
    /// Popular chunks.
    table: AliasTable,
    /// From chunk of indexes to chunk of slots.
    scatter: Permutation,
    /// The order of the walk, and its position.
    order: Permutation,
    walked: u64,
    /// Slots to walk over, those behind the popular ones.
    walk: u64,
    /// Probability that a walker, or another, goes to the rest.
    rest_walkers: f64,
    rest_others: f64,
}

/// Mean visits of reads to a slot of the rest, where there are slots that are only read: leaves 1 % unread. Ours.
const READS_OF_REST: f64 = 4.5;

impl Places {
    /// None when there are too many chunks for a table.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub(crate) fn new(demand: Demand, layout: &mut Rng) -> Option<Self> {
        let chunk = if demand.slots < 16 * CHUNK { 1 } else { CHUNK };
        let slots = demand.slots / chunk * chunk;
        let walkable = ((slots as f64 * demand.walkable).round() as u64).clamp(1, slots);
        let share = demand.updated.map_or(demand.hot_assumed, |updated| solve_hot(updated, walkable as f64, demand));
        let hot = ((walkable as f64 * share).round() as u64).clamp(1, walkable.saturating_sub(1).max(1));
        let mut weights = weights(hot.div_ceil(chunk), demand.alpha)?;
        let last = hot - (weights.len() as u64 - 1) * chunk;
        if let Some(weight) = weights.last_mut() {
            *weight *= last as f64 / chunk as f64;
        }
        let walk = walkable - hot;
        let rest = if walk == 0 { 0.0 } else { (walk as f64 / demand.visits).min(0.95) };
        let unread = ((slots - hot) as f64 * READS_OF_REST / demand.others.max(1.0)).min(0.5);
        Some(Places {
            slots,
            hot,
            chunk,
            table: AliasTable::new(&weights),
            scatter: Permutation::new(slots / chunk, layout),
            order: Permutation::new(walk.max(1), layout),
            walked: 0,
            walk,
            rest_walkers: rest,
            rest_others: if walkable < slots { unread } else { rest },
        })
    }

    /// The slot of a request. Walkers take the next slot of the rest, others any of it.
    #[inline]
    pub(crate) fn draw(&mut self, rng: &mut Rng, walks: bool) -> u64 {
        let rest = if walks { self.rest_walkers } else { self.rest_others };
        let index = if !chance(rng, rest) {
            let first = self.table.draw(rng) as u64 * self.chunk;
            first + below(rng, self.chunk.min(self.hot - first))
        } else if walks {
            let step = self.order.at(self.walked);
            self.walked += 1;
            if self.walked == self.walk {
                self.walked = 0;
            }
            self.hot + step
        } else {
            self.hot + below(rng, self.slots - self.hot)
        };
        self.scatter.at(index / self.chunk) * self.chunk + index % self.chunk
    }
}

/// The popular share of `slots` walkable slots at which `updated` of the visited slots have three visits or more. Visits to a slot are
/// Poisson; the mean over the popular part is taken at 512 of its quantiles.
#[allow(clippy::cast_precision_loss)]
fn solve_hot(updated: f64, slots: f64, demand: Demand) -> f64 {
    let per_slot = demand.visits / slots;
    let share = |hot: f64| {
        let mean = (per_slot - (1.0 - hot)) / hot;
        if mean <= 0.0 {
            return 0.0;
        }
        let chunks = (hot * slots / CHUNK as f64).max(1.0);
        let scale = mean * chunks / power_sum(chunks.ceil() as u64, demand.alpha);
        let (mut once, mut thrice) = (0.0, 0.0);
        for quantile in 0..512 {
            let rank = (chunks * (f64::from(quantile) + 0.5) / 512.0).max(1.0);
            let visits = scale * pow(rank, -demand.alpha);
            let none = exp(-visits);
            once += (1.0 - none) / 512.0;
            thrice += (1.0 - none * (1.0 + visits + visits * visits / 2.0)) / 512.0;
        }
        hot * thrice / (1.0 - hot + hot * once)
    };
    let (mut low, mut high) = (1e-6, 1.0);
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        if share(middle) < updated { low = middle } else { high = middle }
    }
    low
}
