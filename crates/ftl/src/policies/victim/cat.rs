//! CAT, cost-age-times (Chiang and Chang, 1999): cheap, old and little worn blocks first.
//!
//! The block with the smallest `f / (1 - f) * (erases + 1) / g(age)` is chosen. f is the valid share of its pages; age
//! is the number of host page writes since its last change, a program or an invalidation. g(age) = age / age-step + 1,
//! rounded down, is a step transform like the paper's, whose steps were not available; the default step of 1 gives
//! g(age) = age + 1. A block without valid pages goes before all others. Scores are compared exactly; ties go to the
//! block changed first, then to the one sealed first (directly to that one if nothing is valid).
//!
//! Blocks are on lists by wear class and valid pages, from the oldest change on. Below 16 erases a class is one number
//! of erases, above it an eighth of an octave. In a class of one number the head of a list is its best block. In other
//! classes the head gives a bound, and the list is followed while the bound beats the best so far. Most heads are passed over
//! by a comparison in floating point of what each list keeps of its own; those within the rounding error of the best are
//! compared exactly. Changes of order are deferred until a pick needs them or some tens are pending, so that their memory can
//! be prefetched together. Pick: O(classes in use x pages of a block), and the blocks so followed; seal and invalidation:
//! O(1), O(log n) if nothing stays valid. State: 40 bytes a block, 16 for each list.

use super::{PlaneView, VictimContext, VictimPolicy};
use flashwright_nand::prefetch;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

const NONE: u32 = u32::MAX;
/// Largest number of deferred changes.
const PENDING_MAX: usize = 64;
/// How many changes ahead memory is prefetched.
const AHEAD: usize = 6;
/// An upper bound on the relative error of a score in floating point, which has some roundings.
const ERROR: f64 = 1e-12;

/// Settings of `gc.victim = "cat"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct CatSettings {
    /// Host page writes in one step of age, 1 or more.
    #[schemars(range(min = 1), extend("x-expected" = "{range} host page writes"))]
    pub age_step: u64,
}

impl Default for CatSettings {
    fn default() -> Self {
        Self { age_step: 1 }
    }
}

/// A block on the list of its wear class and its count of valid pages.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Node {
    /// Its seal number, from 1; 0 for a block that is not sealed.
    seal: u64,
    /// The host writes at its last change.
    changed: u64,
    before: u32,
    after: u32,
    valid: u32,
    row: u32,
    erases: u32,
}

/// The lists of a wear class.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Row {
    /// Smallest and largest number of erases.
    erases: [u32; 2],
    blocks: u32,
    /// First and last of each list, by valid pages.
    lists: Vec<[u32; 2]>,
    /// When the first of each list changed last; infinite for an empty one.
    oldest: Vec<f64>,
}

/// An invalidation whose block has not changed place yet.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Change {
    block: u32,
    valid: u32,
    now: u64,
}

/// `gc.victim = "cat"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cat {
    nodes: Vec<Node>,
    rows: Vec<Row>,
    /// `(1 - f) / f` by valid pages; 0 for no valid pages, because such blocks are on no list.
    weights: Vec<f64>,
    pending: Vec<Change>,
    /// Blocks without valid pages by seal number; those whose number has changed are passed over.
    dead: BinaryHeap<Reverse<(u64, u32)>>,
    last_seal: u64,
    sealed: u32,
    pages: u32,
    age_step: u64,
}

/// Benefit over cost, larger first, then the tie rule: (change, seal), smaller first.
#[derive(Clone, Copy)]
struct Score {
    benefit: u128,
    cost: u128,
    tie: (u64, u64),
}

impl Score {
    fn beats(self, other: Self) -> bool {
        match (self.benefit * other.cost).cmp(&(other.benefit * self.cost)) {
            Ordering::Equal => self.tie < other.tie,
            order => order == Ordering::Greater,
        }
    }
}

/// The class of a number of erases: its smallest and largest member.
fn class(erases: u32) -> [u32; 2] {
    let width = if erases < 16 { 1 } else { 1 << (erases.ilog2() - 3) };
    let least = erases / width * width;
    [least, least + (width - 1)]
}

#[allow(clippy::cast_precision_loss)] // host writes lie far below 2^53
impl Cat {
    #[inline(always)]
    fn append(&mut self, block: u32, valid: u32, now: u64) {
        let node = &mut self.nodes[block as usize];
        (node.valid, node.changed) = (valid, now);
        if valid == 0 {
            self.dead.push(Reverse((node.seal, block)));
            return;
        }
        let row = &mut self.rows[node.row as usize];
        let [first, last] = &mut row.lists[valid as usize];
        (node.before, node.after) = (*last, NONE);
        match std::mem::replace(last, block) {
            NONE => {
                *first = block;
                row.oldest[valid as usize] = now as f64;
            }
            before => self.nodes[before as usize].after = block,
        }
    }

    #[inline(always)]
    fn unlink(&mut self, block: u32) {
        let Node { before, after, valid, row, .. } = self.nodes[block as usize];
        if valid == 0 {
            return; // dead blocks are on no list
        }
        let row = &mut self.rows[row as usize];
        let [first, last] = &mut row.lists[valid as usize];
        match before {
            NONE => {
                *first = after;
                row.oldest[valid as usize] =
                    self.nodes.get(after as usize).map_or(f64::INFINITY, |node| node.changed as f64);
            }
            before => self.nodes[before as usize].after = after,
        }
        match after {
            NONE => *last = before,
            after => self.nodes[after as usize].before = before,
        }
    }

    /// Moves the blocks of pending invalidations to their new places, in order of time.
    fn settle(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        for (at, Change { block, valid, now }) in pending.iter().enumerate() {
            if let Some(soon) = pending.get(at + AHEAD) {
                let Node { before, after, .. } = self.nodes[soon.block as usize];
                prefetch(&self.nodes, before as usize);
                prefetch(&self.nodes, after as usize);
            }
            if self.nodes[*block as usize].seal != 0 {
                self.unlink(*block);
                self.append(*block, *valid, *now);
            }
        }
        self.pending = pending;
        self.pending.clear();
    }

    /// No block of the list with `valid` valid pages has a higher score than this, nearly; the wear class has `worth` as
    /// `1 / (erases + 1)`. Infinitely low, or no number, for an empty list.
    #[inline(always)]
    fn bound(&self, row: &Row, valid: usize, worth: f64, now: f64) -> f64 {
        self.weights[valid] * worth * ((now - row.oldest[valid]) / self.age_step as f64 + 1.0)
    }

    /// A score that the best block reaches, rounding errors aside: that of the best head in a class of one number of erases.
    fn reached(&self, now: f64) -> f64 {
        let mut highest = f64::NEG_INFINITY;
        // Steps of age are rounded down: the fraction of a step may not count.
        let uncounted = if self.age_step == 1 { 0.0 } else { 1.0 };
        for row in self.rows.iter().filter(|row| row.blocks > 0 && row.erases[0] == row.erases[1]) {
            let worth = 1.0 / (f64::from(row.erases[0]) + 1.0);
            for valid in 1..row.lists.len() {
                let less = self.weights[valid] * worth * uncounted;
                highest = highest.max(self.bound(row, valid, worth, now) - less);
            }
        }
        if highest > 0.0 { highest * (1.0 - ERROR) } else { f64::NEG_INFINITY }
    }

    /// The row of a wear class; an unused row is reused for a new class.
    fn row_for(&mut self, erases: u32) -> u32 {
        let class = class(erases);
        let at = self.rows.iter().position(|row| row.erases == class);
        let at = at.or_else(|| self.rows.iter().position(|row| row.blocks == 0)).unwrap_or_else(|| {
            let lists = self.pages as usize + 1;
            let (lists, oldest) = (vec![[NONE; 2]; lists], vec![f64::INFINITY; lists]);
            self.rows.push(Row { erases: class, blocks: 0, lists, oldest });
            self.rows.len() - 1
        });
        self.rows[at].erases = class;
        u32::try_from(at).expect("a few hundred classes")
    }

    /// A block's score as if it had been erased this often.
    fn score(&self, node: Node, erases: u32, now: u64) -> Score {
        let steps = (now - node.changed) / self.age_step + 1;
        Score {
            benefit: u128::from(self.pages - node.valid) * u128::from(steps),
            cost: u128::from(node.valid) * (u128::from(erases) + 1),
            tie: (node.changed, node.seal),
        }
    }
}

#[allow(clippy::cast_precision_loss)] // as above
impl VictimPolicy for Cat {
    const NAME: &'static str = "cat";
    const ABOUT: &'static str =
        "smallest f/(1 - f) * erases/age, f the valid share (cost-age-times; Chiang and Chang 1999)";
    type Settings = CatSettings;

    fn new(settings: &CatSettings, context: VictimContext) -> Self {
        let fresh = Node { seal: 0, changed: 0, before: NONE, after: NONE, valid: 0, row: 0, erases: 0 };
        Self {
            nodes: vec![fresh; context.blocks as usize],
            rows: Vec::new(),
            weights: (0..=context.pages_per_block)
                .map(|valid| match valid {
                    0 => 0.0,
                    _ => f64::from(context.pages_per_block - valid) / f64::from(valid),
                })
                .collect(),
            pending: Vec::with_capacity(PENDING_MAX),
            dead: BinaryHeap::new(),
            last_seal: 0,
            sealed: 0,
            pages: context.pages_per_block,
            age_step: settings.age_step.max(1),
        }
    }

    fn sealed(&mut self, block: u32, view: PlaneView) {
        self.settle();
        self.last_seal += 1;
        self.sealed += 1;
        let erases = view.erases(block);
        let row = self.row_for(erases);
        self.rows[row as usize].blocks += 1;
        let node = &mut self.nodes[block as usize];
        (node.seal, node.row, node.erases) = (self.last_seal, row, erases);
        self.append(block, view.pages_valid(block), view.now());
    }

    #[inline]
    fn invalidated(&mut self, block: u32, pages_valid: u32, view: PlaneView) {
        prefetch(&self.nodes, block as usize);
        self.pending.push(Change { block, valid: pages_valid, now: view.now() });
        if self.pending.len() == PENDING_MAX {
            self.settle();
        }
    }

    fn removed(&mut self, block: u32) {
        self.settle();
        self.unlink(block);
        let node = &mut self.nodes[block as usize];
        node.seal = 0;
        self.rows[node.row as usize].blocks -= 1;
        self.sealed -= 1;
    }

    fn pick(&mut self, view: PlaneView) -> Option<u32> {
        self.settle();
        while let Some(Reverse((seal, block))) = self.dead.peek() {
            if self.nodes[*block as usize].seal == *seal {
                return Some(*block);
            }
            self.dead.pop();
        }
        let now = view.now();
        let reached = self.reached(now as f64);
        let mut best: Option<(Score, u32)> = None;
        for row in self.rows.iter().filter(|row| row.blocks > 0) {
            let [least, greatest] = row.erases;
            let worth = 1.0 / (f64::from(least) + 1.0);
            for valid in 1..row.lists.len() {
                if self.bound(row, valid, worth, now as f64) < reached {
                    continue;
                }
                let (mut at, mut head) = (row.lists[valid][0], None);
                while at != NONE {
                    let node = self.nodes[at as usize];
                    let changed_first = *head.get_or_insert(node.changed);
                    if least == greatest && node.changed != changed_first {
                        break; // the head, or one changed with it, is the best
                    }
                    // No block from here on can have a better score than this.
                    let bound = Score { tie: (node.changed, 0), ..self.score(node, least, now) };
                    if best.is_some_and(|(best, _)| !bound.beats(best)) {
                        break;
                    }
                    let score = self.score(node, node.erases, now);
                    if best.is_none_or(|(best, _)| score.beats(best)) {
                        best = Some((score, at));
                    }
                    at = node.after;
                }
            }
        }
        best.map(|(_, block)| block)
    }

    fn candidates(&self) -> u32 {
        self.sealed
    }

    #[cfg(test)]
    fn search(settings: &CatSettings, history: &mut super::tests::History, view: PlaneView) -> Option<u32> {
        let gain = |sealed: &super::tests::Sealed| {
            let steps = (view.now() - sealed.changed) / settings.age_step;
            let factor = (steps as f64 + 1.0) / (f64::from(view.erases(sealed.block)) + 1.0);
            super::tests::gain(sealed.block, factor, view)
        };
        let tie = |sealed: &super::tests::Sealed| {
            (if view.pages_valid(sealed.block) == 0 { 0 } else { sealed.changed }, sealed.seal)
        };
        history.highest(gain, tie).map(|(_, block)| block)
    }
}
