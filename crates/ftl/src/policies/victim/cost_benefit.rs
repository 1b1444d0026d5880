//! Cost-benefit: old blocks with many invalid pages (Kawaguchi, Nishioka and Motoda, USENIX 1995; the analysis that
//! Gupta 2009 adapts for DFTL).
//!
//! A block's score is `(1 - f) * age / 2f`: f is the valid share of its pages; age is the number of host writes since
//! its last change, a program or an invalidation. The factor 2 stands for a read and a write of every valid page. The
//! block with the highest score is chosen; a block without valid pages goes before all others. Scores are compared
//! exactly, as whole numbers.
//!
//! Among blocks with equally many valid pages the one changed first has the highest score, and changes come in order of
//! time. So there is one list of blocks per count, from the oldest change on, and a pick compares the heads: first in
//! floating point, then exactly those within the rounding error of the best. Changes of order are deferred until a pick
//! needs them or some tens are pending, so that their memory can be prefetched together. Seal: O(1), O(log n) for an
//! invalidation that leaves nothing valid; pick: O(pages of a block), and O(ties). State: 24 bytes a block.

use super::{PlaneView, VictimContext, VictimPolicy};
use crate::registry::NoSettings;
use flashwright_nand::prefetch;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const NONE: u32 = u32::MAX;
/// Largest number of deferred changes.
const PENDING_MAX: usize = 64;
/// How many changes ahead memory is prefetched.
const AHEAD: usize = 6;
/// An upper bound on the relative error of a score in floating point, which has three roundings.
const ERROR: f64 = 1e-12;

/// When a block changed last, in host writes, and its valid pages then: 48 and 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct State(u64);

impl State {
    const NOT_SEALED: Self = Self(u64::MAX);

    #[inline(always)]
    fn new(changed: u64, valid: u32) -> Self {
        Self(changed << 16 | u64::from(valid))
    }
    #[inline(always)]
    fn changed(self) -> u64 {
        self.0 >> 16
    }
    #[inline(always)]
    fn valid(self) -> u32 {
        (self.0 & 0xffff) as u32
    }
}

/// `gc.victim = "cost-benefit"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CostBenefit {
    states: Vec<State>,
    /// The blocks before and after a block on its list.
    links: Vec<[u32; 2]>,
    /// The last seal number of each block, from 1.
    seals: Vec<u64>,
    /// First and last of each list, by valid pages.
    lists: Vec<[u32; 2]>,
    /// When the first of each list changed last; infinite for an empty one.
    oldest: Vec<f64>,
    /// `(1 - f) / f` by valid pages; 0 for no valid pages, because such blocks are on no list.
    weights: Vec<f64>,
    /// Invalidations whose blocks have not changed place yet.
    pending: Vec<(u32, State)>,
    /// Blocks without valid pages by seal number; those whose number has changed are passed over.
    dead: BinaryHeap<Reverse<(u64, u32)>>,
    /// The host writes at the last pick, to estimate the next one.
    picked_at: f64,
    last_seal: u64,
    sealed: u32,
}

impl CostBenefit {
    #[inline(always)]
    fn append(&mut self, block: u32, state: State) {
        self.states[block as usize] = state;
        let list = state.valid() as usize;
        if list == 0 {
            self.dead.push(Reverse((self.seals[block as usize], block)));
            return;
        }
        let [first, last] = &mut self.lists[list];
        self.links[block as usize] = [*last, NONE];
        match std::mem::replace(last, block) {
            NONE => {
                *first = block;
                self.oldest[list] = state.changed() as f64;
            }
            before => self.links[before as usize][1] = block,
        }
    }

    #[inline(always)]
    fn unlink(&mut self, block: u32) {
        let list = self.states[block as usize].valid() as usize;
        if list == 0 {
            return; // dead blocks are on no list
        }
        let [before, after] = self.links[block as usize];
        let [first, last] = &mut self.lists[list];
        match before {
            NONE => {
                *first = after;
                self.oldest[list] =
                    self.states.get(after as usize).map_or(f64::INFINITY, |state| state.changed() as f64);
            }
            before => self.links[before as usize][1] = after,
        }
        match after {
            NONE => *last = before,
            after => self.links[after as usize][0] = before,
        }
    }

    /// Moves the blocks of pending invalidations to their new places, in order of time.
    #[inline(never)]
    fn settle(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        for (at, (block, state)) in pending.iter().enumerate() {
            if let Some((soon, _)) = pending.get(at + AHEAD) {
                let [before, after] = self.links[*soon as usize];
                prefetch(&self.links, before as usize);
                prefetch(&self.links, after as usize);
            }
            if self.states[*block as usize] != State::NOT_SEALED {
                self.unlink(*block);
                self.append(*block, *state);
            }
        }
        self.pending = pending;
        self.pending.clear();
    }

    /// As [`VictimPolicy::invalidated`], not inlined.
    #[inline(never)]
    pub(super) fn invalidated_called(&mut self, block: u32, pages_valid: u32, view: PlaneView) {
        self.invalidated(block, pages_valid, view);
    }

    /// The block of a list with the highest score: the one changed first, among equals the one sealed first.
    fn head(&self, first: u32) -> Option<u32> {
        let changed = self.states.get(first as usize)?.changed();
        let mut best = first;
        let mut at = self.links[first as usize][1];
        while at != NONE && self.states[at as usize].changed() == changed {
            if self.seals[at as usize] < self.seals[best as usize] {
                best = at;
            }
            at = self.links[at as usize][1];
        }
        Some(best)
    }

    /// The highest score of all lists, up to the rounding error.
    fn highest(&self, now: f64) -> f64 {
        const LANES: usize = 8;
        let mut best = [f64::NEG_INFINITY; LANES];
        let scores = |weights: &[f64], oldest: &[f64], best: &mut [f64]| {
            for ((weight, oldest), best) in weights.iter().zip(oldest).zip(best) {
                let score = weight * (now - oldest);
                // NaN, from an empty list of weight 0, is never greater.
                *best = if score > *best { score } else { *best };
            }
        };
        let (weights, oldest) = (self.weights.chunks_exact(LANES), self.oldest.chunks_exact(LANES));
        scores(weights.remainder(), oldest.remainder(), &mut best);
        weights.zip(oldest).for_each(|(weights, oldest)| scores(weights, oldest, &mut best));
        best.into_iter().fold(f64::NEG_INFINITY, f64::max)
    }
}

#[allow(clippy::cast_precision_loss)] // host writes and pages of a block lie far below 2^53
impl VictimPolicy for CostBenefit {
    const NAME: &'static str = "cost-benefit";
    const ABOUT: &'static str = "highest (1 - f) * age / 2f, f the valid share (Kawaguchi 1995; adapted by Gupta 2009)";
    type Settings = NoSettings;

    fn new(_: &NoSettings, context: VictimContext) -> Self {
        let lists = context.pages_per_block as usize + 1;
        let pages = f64::from(context.pages_per_block);
        let weight = |valid: u32| if valid == 0 { 0.0 } else { (pages - f64::from(valid)) / f64::from(valid) };
        Self {
            states: vec![State::NOT_SEALED; context.blocks as usize],
            links: vec![[NONE; 2]; context.blocks as usize],
            seals: vec![0; context.blocks as usize],
            lists: vec![[NONE; 2]; lists],
            oldest: vec![f64::INFINITY; lists],
            weights: (0..=context.pages_per_block).map(weight).collect(),
            pending: Vec::with_capacity(PENDING_MAX),
            dead: BinaryHeap::new(),
            picked_at: 0.0,
            last_seal: 0,
            sealed: 0,
        }
    }

    fn sealed(&mut self, block: u32, view: PlaneView) {
        self.settle();
        self.last_seal += 1;
        self.sealed += 1;
        self.seals[block as usize] = self.last_seal;
        self.append(block, State::new(view.now(), view.pages_valid(block)));
    }

    #[inline(always)]
    fn invalidated(&mut self, block: u32, pages_valid: u32, view: PlaneView) {
        prefetch(&self.states, block as usize);
        prefetch(&self.links, block as usize);
        if self.pending.len() == PENDING_MAX {
            self.settle();
        }
        self.pending.push((block, State::new(view.now(), pages_valid)));
    }

    fn removed(&mut self, block: u32) {
        self.settle();
        self.unlink(block);
        self.states[block as usize] = State::NOT_SEALED;
        self.sealed -= 1;
    }

    fn pick(&mut self, view: PlaneView) -> Option<u32> {
        self.settle();
        while let Some(Reverse((seal, block))) = self.dead.peek() {
            let state = self.states[*block as usize];
            if state.valid() == 0 && self.seals[*block as usize] == *seal {
                return Some(*block);
            }
            self.dead.pop();
        }
        let now = view.now() as f64;
        self.picked_at = now;
        let highest = self.highest(now);
        // If no block has aged, or only fully valid ones have, all are compared.
        let least = if highest > 0.0 { highest * (1.0 - ERROR) } else { f64::NEG_INFINITY };
        let pages = u128::try_from(self.lists.len()).expect("a count fits") - 1;
        // Benefit over cost without the factor 2: (pages - valid) * age over valid, with the seal number for ties.
        let exact = |block: u32| {
            let (state, seal) = (self.states[block as usize], self.seals[block as usize]);
            let valid = u128::from(state.valid());
            ((pages - valid) * u128::from(view.now() - state.changed()), valid, seal)
        };
        (1..self.lists.len())
            .filter(|list| self.weights[*list] * (now - self.oldest[*list]) >= least)
            .filter_map(|list| self.head(self.lists[list][0]))
            .reduce(|best, other| {
                let ((a, b, seal), (c, d, other_seal)) = (exact(best), exact(other));
                if (c * b, Reverse(other_seal)) > (a * d, Reverse(seal)) { other } else { best }
            })
    }

    fn likely_next(&self) -> Option<u32> {
        if let Some(Reverse((_, block))) = self.dead.peek() {
            return Some(*block);
        }
        let highest = self.highest(self.picked_at);
        let score = |list: &usize| self.weights[*list] * (self.picked_at - self.oldest[*list]);
        let list = (1..self.lists.len()).find(|list| score(list) >= highest)?;
        let first = self.lists[list][0];
        (first != NONE).then_some(first)
    }

    fn candidates(&self) -> u32 {
        self.sealed
    }

    #[cfg(test)]
    fn search(_: &NoSettings, history: &mut super::tests::History, view: PlaneView) -> Option<u32> {
        let age = |sealed: &super::tests::Sealed| (view.now() - sealed.changed) as f64;
        let found = history.highest(|sealed| super::tests::gain(sealed.block, age(sealed), view), |sealed| sealed.seal);
        // At 0 all are fully valid or just changed: the order of changes decides.
        found.filter(|(gain, _)| *gain != 0.0).map(|(_, block)| block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cause, Flash};
    use flashwright_block::{Bytes, Seed};
    use flashwright_nand::{BlockId, Geometry, Lpn, Nand, Ppn, ProgramOrder, WearLimit};

    fn setup(blocks: u32) -> (Flash, CostBenefit) {
        let geometry = Geometry::new(1, 1, 1, blocks, 64, Bytes(4096));
        let nand = Nand::new(geometry, ProgramOrder::Ascending, WearLimit::Unlimited, &[]);
        let mut flash = Flash::new(nand, blocks * 64, false, false);
        for ppn in 0..blocks * 64 {
            flash.program(Ppn(ppn), Lpn(ppn), Cause::Host);
        }
        let context = VictimContext {
            blocks,
            pages_per_block: 64,
            streams: 1,
            logical_pages: blocks * 32,
            rng: Seed(1).stream("test"),
        };
        (flash, CostBenefit::new(&NoSettings {}, context))
    }

    fn pick(policy: &mut CostBenefit, flash: &Flash) -> Option<u32> {
        policy.pick(PlaneView::new(flash, BlockId(0)))
    }

    /// The table of algorithms 4.10: blocks a to f with their valid pages, ages and seal order. Scores (1 - f) * age / 2f:
    /// a 55.0, b 2266.7, c 7.8, d 300.0, e 666.7, f 270.0; so b, e, d, f, a, c.
    #[test]
    fn the_worked_example() {
        let (mut flash, mut policy) = setup(6);
        let (valid, age) = ([20, 30, 25, 60, 24, 40], [50u64, 4000, 10, 9000, 800, 900]);
        for block in [3, 1, 4, 5, 0, 2] {
            policy.sealed(block, PlaneView::new(&flash, BlockId(0)));
        }
        let mut by_age = [0u32, 1, 2, 3, 4, 5];
        by_age.sort_by_key(|block| Reverse(age[*block as usize]));
        for block in by_age {
            while flash.host_writes() < 9000 - age[block as usize] {
                flash.host_writes_page(Lpn(0));
            }
            for page in 0..64 - valid[block as usize] {
                let (_, left) = flash.invalidate(Ppn(block * 64 + page));
                policy.invalidated(block, left, PlaneView::new(&flash, BlockId(0)));
            }
        }
        while flash.host_writes() < 9000 {
            flash.host_writes_page(Lpn(0));
        }
        let mut order = Vec::new();
        while let Some(block) = pick(&mut policy, &flash) {
            policy.removed(block);
            order.push(block);
        }
        assert_eq!(order, [1, 4, 3, 5, 0, 2]);
    }

    /// Blocks 1 and 0 were sealed in this order and have the same score; block 2 loses its last valid page and goes
    /// before both.
    #[test]
    fn ties_go_to_the_block_sealed_first_and_dead_blocks_before_all() {
        let (mut flash, mut policy) = setup(3);
        for block in [1, 0, 2] {
            policy.sealed(block, PlaneView::new(&flash, BlockId(0)));
        }
        for page in 0..64 {
            for block in if page < 8 { 0..3 } else { 2..3 } {
                let (_, left) = flash.invalidate(Ppn(block * 64 + page));
                policy.invalidated(block, left, PlaneView::new(&flash, BlockId(0)));
            }
        }
        flash.host_writes_page(Lpn(0));
        let order: Vec<u32> =
            std::iter::from_fn(|| pick(&mut policy, &flash).inspect(|block| policy.removed(*block))).collect();
        assert_eq!(order, [2, 1, 0]);
    }

    /// Random seals, invalidations and cleans, some of them many at the same time: every pick equals that of a search
    /// through all sealed blocks by the definition.
    #[test]
    fn every_pick_is_that_of_a_full_search() {
        const BLOCKS: u32 = 40;
        let (mut flash, mut policy) = setup(BLOCKS);
        let mut rng = Seed(5).stream("cost-benefit");
        let mut draw = |n: u32| u32::try_from(flashwright_block::below(&mut rng, u64::from(n))).unwrap();
        let mut seals = [0u64; BLOCKS as usize];
        let mut changed = [0u64; BLOCKS as usize];
        let (mut last_seal, mut dead, mut chosen) = (0, 0, 0);
        for block in (0..BLOCKS).map(BlockId) {
            flash.invalidate_block(block);
            flash.erase(block, Cause::Gc);
        }
        for _ in 0..60_000 {
            for _ in 0..draw(3) {
                flash.host_writes_page(Lpn(0));
            }
            let block = draw(BLOCKS);
            let at = block as usize;
            let valid = flash.valid_pages(BlockId(block)).next();
            if seals[at] == 0 {
                for ppn in block * 64..(block + 1) * 64 {
                    flash.program(Ppn(ppn), Lpn(ppn), Cause::Host);
                }
                last_seal += 1;
                (seals[at], changed[at]) = (last_seal, flash.host_writes());
                policy.sealed(block, PlaneView::new(&flash, BlockId(0)));
            } else if let Some(ppn) = valid {
                let (_, left) = flash.invalidate(ppn);
                changed[at] = flash.host_writes();
                policy.invalidated(block, left, PlaneView::new(&flash, BlockId(0)));
            }
            if draw(40) > 0 {
                continue;
            }
            let better = |a: u32, b: u32| {
                let of = |block: u32| {
                    let valid = u128::from(flash.pages_valid(BlockId(block)));
                    let age = u128::from(flash.host_writes() - changed[block as usize]);
                    (valid, (64 - valid) * age, Reverse(seals[block as usize]))
                };
                let ((v, gain, seal), (w, other, other_seal)) = (of(a), of(b));
                match (v, w) {
                    (0, 0) => seal > other_seal,
                    (0, _) | (_, 0) => v == 0,
                    _ => (gain * w, seal) > (other * v, other_seal),
                }
            };
            let sealed = (0..BLOCKS).filter(|block| seals[*block as usize] != 0);
            let expected = sealed.reduce(|best, other| if better(other, best) { other } else { best });
            let found = pick(&mut policy, &flash);
            assert_eq!(found, expected);
            if let Some(block) = found {
                chosen += 1;
                dead += u32::from(flash.pages_valid(BlockId(block)) == 0);
                policy.removed(block);
                seals[block as usize] = 0;
                flash.invalidate_block(BlockId(block));
                flash.erase(BlockId(block), Cause::Gc);
            }
        }
        assert!(dead > 0 && chosen > dead, "{chosen} victims, {dead} of them dead");
    }
}
