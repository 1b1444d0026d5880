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
//! classes the head gives a bound, and the list is followed while the bound beats the best so far. Pick: O(classes in
//! use x pages of a block), and the blocks so followed; seal and invalidation: O(1), O(log n) if nothing stays valid.
//! State: 40 bytes a block, 8 for each list.

use super::{PlaneView, VictimContext, VictimPolicy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

const NONE: u32 = u32::MAX;

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
}

/// `gc.victim = "cat"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cat {
    nodes: Vec<Node>,
    rows: Vec<Row>,
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

impl Cat {
    fn append(&mut self, block: u32, valid: u32, now: u64) {
        let node = &mut self.nodes[block as usize];
        (node.valid, node.changed) = (valid, now);
        if valid == 0 {
            self.dead.push(Reverse((node.seal, block)));
            return;
        }
        let [first, last] = &mut self.rows[node.row as usize].lists[valid as usize];
        (node.before, node.after) = (*last, NONE);
        match std::mem::replace(last, block) {
            NONE => *first = block,
            before => self.nodes[before as usize].after = block,
        }
    }

    fn unlink(&mut self, block: u32) {
        let Node { before, after, valid, row, .. } = self.nodes[block as usize];
        if valid == 0 {
            return; // dead blocks are on no list
        }
        let [first, last] = &mut self.rows[row as usize].lists[valid as usize];
        match before {
            NONE => *first = after,
            before => self.nodes[before as usize].after = after,
        }
        match after {
            NONE => *last = before,
            after => self.nodes[after as usize].before = before,
        }
    }

    /// The row of a wear class; an unused row is reused for a new class.
    fn row_for(&mut self, erases: u32) -> u32 {
        let class = class(erases);
        let at = self.rows.iter().position(|row| row.erases == class);
        let at = at.or_else(|| self.rows.iter().position(|row| row.blocks == 0)).unwrap_or_else(|| {
            self.rows.push(Row { erases: class, blocks: 0, lists: vec![[NONE; 2]; self.pages as usize + 1] });
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
            dead: BinaryHeap::new(),
            last_seal: 0,
            sealed: 0,
            pages: context.pages_per_block,
            age_step: settings.age_step.max(1),
        }
    }

    fn sealed(&mut self, block: u32, view: PlaneView) {
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
        if self.nodes[block as usize].seal != 0 {
            self.unlink(block);
            self.append(block, pages_valid, view.now());
        }
    }

    fn removed(&mut self, block: u32) {
        self.unlink(block);
        let node = &mut self.nodes[block as usize];
        node.seal = 0;
        self.rows[node.row as usize].blocks -= 1;
        self.sealed -= 1;
    }

    fn pick(&mut self, view: PlaneView) -> Option<u32> {
        while let Some(Reverse((seal, block))) = self.dead.peek() {
            if self.nodes[*block as usize].seal == *seal {
                return Some(*block);
            }
            self.dead.pop();
        }
        let now = view.now();
        let mut best: Option<(Score, u32)> = None;
        for row in self.rows.iter().filter(|row| row.blocks > 0) {
            let [least, greatest] = row.erases;
            for [first, _] in &row.lists[1..] {
                let (mut at, mut head) = (*first, None);
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
}
