//! Cost-benefit: old blocks with much to gain (Kawaguchi, Nishioka and Motoda, USENIX 1995; the analysis that Gupta 2009
//! adapts for DFTL).
//!
//! A block's score is `(1 - f) * age / 2f`: f is the valid share of its pages, age the host writes since its last change,
//! a program or an invalidation. A read and a write for every valid page make the 2. The highest score goes first; a block
//! without valid pages before all others. Scores are compared exactly, as whole numbers.
//!
//! Among blocks with equally many valid pages the one changed first scores highest, and changes come in the order of time:
//! so the blocks lie on one list per count, from the oldest change on, and a pick looks at the head of each. Seal: O(1),
//! O(log n) for an invalidation that leaves nothing valid; pick: O(pages of a block), and O(ties). State: 28 bytes a block.

use super::{UnitView, VictimContext, VictimPolicy};
use crate::registry::NoSettings;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const NONE: u32 = u32::MAX;

/// A block on the list of its count of valid pages.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Node {
    /// Under which number it was sealed, from 1; 0 for a block that is not sealed.
    seal: u64,
    /// The host writes at its last change.
    changed: u64,
    before: u32,
    after: u32,
    valid: u32,
}

/// `gc.victim = "cost-benefit"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CostBenefit {
    nodes: Vec<Node>,
    /// First and last of each list, by valid pages.
    lists: Vec<[u32; 2]>,
    /// Blocks without valid pages by seal number; those whose number has changed are passed over.
    dead: BinaryHeap<Reverse<(u64, u32)>>,
    last_seal: u64,
    sealed: u32,
}

impl CostBenefit {
    fn append(&mut self, block: u32, valid: u32, now: u64) {
        let node = &mut self.nodes[block as usize];
        (node.valid, node.changed) = (valid, now);
        if valid == 0 {
            self.dead.push(Reverse((node.seal, block)));
            return;
        }
        let [first, last] = &mut self.lists[valid as usize];
        (node.before, node.after) = (*last, NONE);
        let before = std::mem::replace(last, block);
        match before {
            NONE => *first = block,
            before => self.nodes[before as usize].after = block,
        }
    }

    fn unlink(&mut self, block: u32) {
        let Node { before, after, valid, .. } = self.nodes[block as usize];
        if valid == 0 {
            return; // dead blocks are on no list
        }
        let [first, last] = &mut self.lists[valid as usize];
        match before {
            NONE => *first = after,
            before => self.nodes[before as usize].after = after,
        }
        match after {
            NONE => *last = before,
            after => self.nodes[after as usize].before = before,
        }
    }

    /// The block of a list with the highest score: the one changed first, the one sealed first among equals.
    fn head(&self, first: u32) -> Option<u32> {
        let mut at = first;
        let mut best = None;
        while at != NONE && self.nodes[at as usize].changed == self.nodes[first as usize].changed {
            best = best.map_or(Some(at), |best: u32| {
                Some(if self.nodes[at as usize].seal < self.nodes[best as usize].seal { at } else { best })
            });
            at = self.nodes[at as usize].after;
        }
        best
    }
}

impl VictimPolicy for CostBenefit {
    const NAME: &'static str = "cost-benefit";
    const ABOUT: &'static str = "highest (1 - f) * age / 2f, f the valid share (Kawaguchi 1995; adapted by Gupta 2009)";
    type Settings = NoSettings;

    fn new(_: &NoSettings, context: VictimContext) -> Self {
        let fresh = Node { seal: 0, changed: 0, before: NONE, after: NONE, valid: 0 };
        Self {
            nodes: vec![fresh; context.blocks as usize],
            lists: vec![[NONE; 2]; context.pages_per_block as usize + 1],
            dead: BinaryHeap::new(),
            last_seal: 0,
            sealed: 0,
        }
    }

    fn sealed(&mut self, block: u32, view: UnitView) {
        self.last_seal += 1;
        self.sealed += 1;
        self.nodes[block as usize].seal = self.last_seal;
        self.append(block, view.pages_valid(block), view.now());
    }

    #[inline]
    fn invalidated(&mut self, block: u32, pages_valid: u32, view: UnitView) {
        if self.nodes[block as usize].seal != 0 {
            self.unlink(block);
            self.append(block, pages_valid, view.now());
        }
    }

    fn removed(&mut self, block: u32) {
        self.unlink(block);
        self.nodes[block as usize].seal = 0;
        self.sealed -= 1;
    }

    fn pick(&mut self, view: UnitView) -> Option<u32> {
        while let Some(Reverse((seal, block))) = self.dead.peek() {
            if self.nodes[*block as usize].seal == *seal {
                return Some(*block);
            }
            self.dead.pop();
        }
        let pages = u128::try_from(self.lists.len()).expect("a count fits") - 1;
        // Benefit over cost without the factor 2: (pages - valid) * age over valid, with the seal number for ties.
        let score = |block: u32| {
            let Node { seal, changed, valid, .. } = self.nodes[block as usize];
            ((pages - u128::from(valid)) * u128::from(view.now() - changed), u128::from(valid), seal)
        };
        self.lists[1..].iter().filter_map(|[first, _]| self.head(*first)).reduce(|best, other| {
            let ((a, b, seal), (c, d, other_seal)) = (score(best), score(other));
            if (c * b, Reverse(other_seal)) > (a * d, Reverse(seal)) { other } else { best }
        })
    }

    fn candidates(&self) -> u32 {
        self.sealed
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
        let context = VictimContext { blocks, pages_per_block: 64, streams: 1, logical_pages: blocks * 32, rng: Seed(1).stream("test") };
        (flash, CostBenefit::new(&NoSettings {}, context))
    }

    fn pick(policy: &mut CostBenefit, flash: &Flash) -> Option<u32> {
        policy.pick(UnitView::new(flash, BlockId(0)))
    }

    /// The table of algorithms 4.10: blocks a to f with their valid pages, ages and seal order. Scores (1 - f) * age / 2f:
    /// a 55.0, b 2266.7, c 7.8, d 300.0, e 666.7, f 270.0; so b, e, d, f, a, c.
    #[test]
    fn the_worked_example() {
        let (mut flash, mut policy) = setup(6);
        let (valid, age) = ([20, 30, 25, 60, 24, 40], [50u64, 4000, 10, 9000, 800, 900]);
        for block in [3, 1, 4, 5, 0, 2] {
            policy.sealed(block, UnitView::new(&flash, BlockId(0)));
        }
        let mut by_age = [0u32, 1, 2, 3, 4, 5];
        by_age.sort_by_key(|block| Reverse(age[*block as usize]));
        for block in by_age {
            while flash.host_writes() < 9000 - age[block as usize] {
                flash.host_writes_page(Lpn(0));
            }
            for page in 0..64 - valid[block as usize] {
                let (_, left) = flash.invalidate(Ppn(block * 64 + page));
                policy.invalidated(block, left, UnitView::new(&flash, BlockId(0)));
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

    /// Blocks 1 and 0 were sealed in this order and have the same score; 2 dies and goes before both.
    #[test]
    fn ties_go_to_the_block_sealed_first_and_dead_blocks_before_all() {
        let (mut flash, mut policy) = setup(3);
        for block in [1, 0, 2] {
            policy.sealed(block, UnitView::new(&flash, BlockId(0)));
        }
        for page in 0..64 {
            for block in if page < 8 { 0..3 } else { 2..3 } {
                let (_, left) = flash.invalidate(Ppn(block * 64 + page));
                policy.invalidated(block, left, UnitView::new(&flash, BlockId(0)));
            }
        }
        flash.host_writes_page(Lpn(0));
        let order: Vec<u32> =
            std::iter::from_fn(|| pick(&mut policy, &flash).inspect(|block| policy.removed(*block))).collect();
        assert_eq!(order, [2, 1, 0]);
    }
}
