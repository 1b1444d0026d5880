//! The adapter for victim policies from outside ([`crate::policies::foreign`]).
//!
//! The adapter keeps a table of the sealed blocks, so that a policy is called only to choose: an invalidation stores
//! two numbers, a seal five, and a clean removes its block from the table. State: 33 bytes per block.

use super::scored::{Reads, ScoreBlocks, Scored};
use super::{PlaneView, VictimContext};
use crate::policies::foreign::FaultCell;
use std::sync::Arc;

/// Builds a policy for each unit.
pub trait MakeVictim {
    /// Its name in messages.
    fn name(&self) -> &str;
    /// The policy of a unit.
    fn make(&self, unit: u32, context: VictimContext) -> Choosing;
}

/// How a policy chooses.
#[derive(Clone, Debug)]
pub enum Choosing {
    /// It looks at all blocks at each clean.
    Pick(Box<dyn PickVictim>),
    /// It rates kinds of blocks.
    Score(Box<dyn ScoreBlocks>, Reads),
}

/// Chooses among the sealed blocks of one unit.
pub trait PickVictim: std::fmt::Debug + Send + Sync {
    /// Chooses one of `blocks`, of which there is at least one. It may move the table out of its box, and must put it
    /// back.
    ///
    /// # Errors
    /// The reason why it can't.
    fn pick(&mut self, blocks: &mut Box<SealedBlocks>) -> Result<i64, String>;
    /// A copy that continues as this one would.
    fn again(&self) -> Box<dyn PickVictim>;
}

impl Clone for Box<dyn PickVictim> {
    fn clone(&self) -> Self {
        self.again()
    }
}

/// The sealed blocks of a unit in the order in which they were sealed.
#[derive(Clone, Debug, Default)]
pub struct SealedBlocks {
    /// The unit's number.
    pub unit: u32,
    /// Pages of a block.
    pub pages_per_block: u32,
    /// The clock of ages: host page writes so far.
    pub now: u64,
    order: Vec<u32>,
    /// State by block, sealed or not.
    pub(super) valid: Vec<u32>,
    pub(super) changed: Vec<u64>,
    sealed_at: Vec<u64>,
    pub(super) erases: Vec<u32>,
    pub(super) streams: Vec<u8>,
    is_sealed: Vec<bool>,
}

impl SealedBlocks {
    fn new(unit: u32, context: &VictimContext) -> Self {
        let blocks = context.blocks as usize;
        Self {
            unit,
            pages_per_block: context.pages_per_block,
            now: 0,
            order: Vec::with_capacity(blocks),
            valid: vec![0; blocks],
            changed: vec![0; blocks],
            sealed_at: vec![0; blocks],
            erases: vec![0; blocks],
            streams: vec![0; blocks],
            is_sealed: vec![false; blocks],
        }
    }

    /// Their numbers within the unit.
    #[must_use]
    pub fn blocks(&self) -> &[u32] {
        &self.order
    }
    /// All blocks of the unit, in any state.
    #[must_use]
    pub fn blocks_in_unit(&self) -> usize {
        self.valid.len()
    }
    /// The valid pages of each.
    pub fn valid(&self) -> impl Iterator<Item = u32> {
        self.order.iter().map(|block| self.valid[*block as usize])
    }
    /// Host page writes since the last change of each: its last program, or a page that became invalid.
    pub fn ages(&self) -> impl Iterator<Item = u64> {
        self.order.iter().map(|block| self.now - self.changed[*block as usize])
    }
    /// Host page writes since each was sealed.
    pub fn sealed_for(&self) -> impl Iterator<Item = u64> {
        self.order.iter().map(|block| self.now - self.sealed_at[*block as usize])
    }
    /// The erases of each.
    pub fn erases(&self) -> impl Iterator<Item = u32> {
        self.order.iter().map(|block| self.erases[*block as usize])
    }
    /// The placement stream for which each was opened.
    pub fn streams(&self) -> impl Iterator<Item = u8> {
        self.order.iter().map(|block| self.streams[*block as usize])
    }

    fn holds_old(&self, block: u32) -> bool {
        self.valid[block as usize] < self.pages_per_block
    }
}

/// As [`Choosing`], with the blocks by kind.
#[derive(Clone, Debug)]
enum InUse {
    Pick(Box<dyn PickVictim>),
    Score(Box<Scored>),
}

/// A foreign victim policy in use. Its methods are not inlined, so that native policies do not pay for them.
#[derive(Clone, Debug)]
pub struct ForeignVictim {
    policy: InUse,
    blocks: Box<SealedBlocks>,
    name: Arc<str>,
    fault: FaultCell,
    /// The block picked last, if all of its pages were valid.
    full: Option<u32>,
    /// Blocks without an invalid page that were cleaned in a row.
    fruitless: u32,
}

impl ForeignVictim {
    pub(crate) fn new(maker: &dyn MakeVictim, unit: u32, context: VictimContext, fault: FaultCell) -> Self {
        let blocks = Box::new(SealedBlocks::new(unit, &context));
        let policy = match maker.make(unit, context) {
            Choosing::Pick(policy) => InUse::Pick(policy),
            Choosing::Score(policy, reads) => InUse::Score(Box::new(Scored::new(policy, reads, &blocks))),
        };
        Self { blocks, policy, name: maker.name().into(), fault, full: None, fruitless: 0 }
    }

    #[inline(never)]
    pub(super) fn sealed(&mut self, block: u32, view: PlaneView) {
        let (at, now) = (block as usize, view.now());
        let blocks = &mut self.blocks;
        blocks.valid[at] = view.pages_valid(block);
        (blocks.changed[at], blocks.sealed_at[at]) = (now, now);
        blocks.erases[at] = view.erases(block);
        blocks.streams[at] = view.stream_of(block);
        blocks.is_sealed[at] = true;
        blocks.order.push(block);
        if let InUse::Score(scored) = &mut self.policy {
            scored.sealed(block, &self.blocks);
        }
    }

    /// An open block's numbers are set when it is sealed.
    #[inline(never)]
    pub(super) fn invalidated(&mut self, block: u32, pages_valid: u32, view: PlaneView) {
        self.blocks.valid[block as usize] = pages_valid;
        self.blocks.changed[block as usize] = view.now();
        if let InUse::Score(scored) = &mut self.policy {
            scored.invalidated(block, &self.blocks);
        }
    }

    #[inline(never)]
    pub(super) fn removed(&mut self, block: u32) {
        self.blocks.is_sealed[block as usize] = false;
        if let Some(at) = self.blocks.order.iter().position(|sealed| *sealed == block) {
            self.blocks.order.remove(at);
        }
        if let InUse::Score(scored) = &mut self.policy {
            scored.removed(block, &self.blocks);
        }
        self.fruitless = if self.full == Some(block) { self.fruitless + 1 } else { 0 };
    }

    #[inline(never)]
    pub(super) fn candidates(&self) -> u32 {
        u32::try_from(self.blocks.order.len()).expect("blocks are counted in 32 bits")
    }

    #[inline(never)]
    pub(super) fn pick(&mut self, view: PlaneView) -> Option<u32> {
        if self.blocks.order.is_empty() || self.fault.get().is_some() {
            return None;
        }
        self.blocks.now = view.now();
        let answer = match &mut self.policy {
            InUse::Pick(policy) => policy.pick(&mut self.blocks),
            InUse::Score(scored) => scored.pick(view.now(), &self.blocks),
        };
        let picked = answer.and_then(|block| {
            self.legal(block).ok_or_else(|| self.refusal(block, view)).and_then(|block| self.of_use(block))
        });
        match picked {
            Ok(block) => {
                self.full = (!self.blocks.holds_old(block)).then_some(block);
                Some(block)
            }
            Err(what) => {
                self.fault.set(format!(
                    "{}: unit {}, host page write {}: {what}",
                    self.name,
                    self.blocks.unit,
                    view.now()
                ));
                None
            }
        }
    }

    fn legal(&self, block: i64) -> Option<u32> {
        let block = u32::try_from(block).ok()?;
        self.blocks.is_sealed.get(block as usize)?.then_some(block)
    }

    /// Why a block can't be the victim.
    #[cold]
    fn refusal(&self, block: i64, view: PlaneView) -> String {
        let of_unit = u32::try_from(block).ok().filter(|block| (*block as usize) < self.blocks.blocks_in_unit());
        let state = match of_unit {
            None => format!("beyond the unit's {} blocks", self.blocks.blocks_in_unit()),
            Some(block) => view.unsealed_state(block).to_owned(),
        };
        format!(
            "pick answered block {block}, which is {state}; expected one of the {} sealed blocks",
            self.candidates()
        )
    }

    /// The policy chose twice as many blocks as there are without a gain, although others would gain something.
    fn of_use(&self, block: u32) -> Result<u32, String> {
        let blocks = &self.blocks;
        let rounds = 2 * u32::try_from(blocks.blocks_in_unit()).expect("blocks are counted in 32 bits");
        if self.fruitless >= rounds && !blocks.holds_old(block) {
            let useful = blocks.order.iter().filter(|block| blocks.holds_old(**block)).count();
            if useful > 0 {
                return Err(format!(
                    "pick answered {} blocks in a row without an invalid page, of which cleaning gains nothing; expected one \
                     of the {useful} blocks that have some",
                    self.fruitless + 1
                ));
            }
        }
        Ok(block)
    }
}
