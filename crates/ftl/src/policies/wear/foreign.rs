//! The adapter for wear policies from outside ([`crate::policies::foreign`]).
//!
//! The policy is called after cleaning only, with a table of the plane's blocks made for the call: O(blocks).

use super::{BlockUse, Recycle, WearContext, WearView};
use crate::policies::foreign::FaultCell;
use std::sync::Arc;

/// Builds a wear policy for each plane.
pub trait MakeWear {
    /// Its name in messages.
    fn name(&self) -> &str;
    /// The policy of a plane.
    fn make(&self, plane: u32, context: &mut WearContext) -> Box<dyn LevelWear>;
}

/// Chooses the blocks of one plane whose data are moved.
pub trait LevelWear: std::fmt::Debug + Send + Sync {
    /// The block to recycle next and the free block that takes its pages, if it says which; none to end the round.
    /// `nth` counts the recyclings since the clean. It may move the table out of its box, and must put it back.
    ///
    /// # Errors
    /// The reason why it can't.
    fn recycle(&mut self, nth: u32, blocks: &mut Box<WornBlocks>) -> Result<Option<(i64, Option<i64>)>, String>;
    /// A copy that continues as this one would.
    fn again(&self) -> Box<dyn LevelWear>;
}

impl Clone for Box<dyn LevelWear> {
    fn clone(&self) -> Self {
        self.again()
    }
}

/// The blocks of a plane as a wear policy sees them.
#[derive(Clone, Debug, Default)]
pub struct WornBlocks {
    /// The plane's number.
    pub plane: u32,
    /// The clock: host page writes so far.
    pub now: u64,
    /// Wear by block.
    pub wear: Vec<u32>,
    /// Valid pages by block.
    pub valid: Vec<u32>,
    /// The blocks that may be recycled.
    pub sealed: Vec<u32>,
    /// The blocks that may take their pages.
    pub free: Vec<u32>,
    /// The wear of the most worn block in use.
    pub wear_max: u32,
}

impl WornBlocks {
    fn fill(&mut self, view: WearView) {
        let (blocks, plane) = (view.blocks, view.plane);
        let all = || (0u32..).zip(&blocks.uses);
        let used = |as_what| all().filter(move |(_, used)| **used == as_what).map(|(block, _)| block);
        self.now = plane.now();
        self.wear.clone_from(&blocks.wear);
        self.valid.clear();
        self.valid.extend(all().map(|(block, _)| plane.pages_valid(block)));
        self.sealed.clear();
        self.sealed.extend(used(BlockUse::Sealed));
        self.free.clear();
        self.free.extend(used(BlockUse::Free));
        self.wear_max = blocks.wear_max().unwrap_or(0);
    }
}

/// A foreign wear policy in use.
#[derive(Clone, Debug)]
pub struct ForeignWear {
    policy: Box<dyn LevelWear>,
    blocks: Box<WornBlocks>,
    name: Arc<str>,
    fault: FaultCell,
}

impl ForeignWear {
    pub(crate) fn new(maker: &dyn MakeWear, plane: u32, mut context: WearContext, fault: FaultCell) -> Self {
        Self {
            policy: maker.make(plane, &mut context),
            blocks: Box::new(WornBlocks { plane, ..WornBlocks::default() }),
            name: maker.name().into(),
            fault,
        }
    }

    pub(super) fn recycle(&mut self, nth: u32, view: WearView) -> Option<Recycle> {
        if self.fault.get().is_some() {
            return None;
        }
        self.blocks.fill(view);
        let answer = self.policy.recycle(nth, &mut self.blocks);
        let answer = answer.and_then(|wanted| wanted.map(|wanted| legal(wanted, view)).transpose());
        answer.unwrap_or_else(|what| {
            let WornBlocks { plane, now, .. } = *self.blocks;
            self.fault.set(format!("{}: plane {plane}, host page write {now}: {what}", self.name));
            None
        })
    }
}

/// The recycling of a block into another, if there can be such.
fn legal((block, into): (i64, Option<i64>), view: WearView) -> Result<Recycle, String> {
    let blocks = view.blocks;
    let used = |block: i64| {
        let block = u32::try_from(block).ok().filter(|block| (*block as usize) < blocks.uses.len());
        block.map(|block| (block, blocks.used_as(block)))
    };
    let refusal = |which: &str, block: i64, expected: &str| {
        let state = match used(block).map(|(_, used)| used) {
            None => format!("beyond the plane's {} blocks", blocks.uses.len()),
            Some(BlockUse::Free) => "free".to_owned(),
            Some(BlockUse::Open) => "open".to_owned(),
            Some(BlockUse::Sealed) => "sealed".to_owned(),
            Some(BlockUse::Gone) => "retired or bad".to_owned(),
        };
        format!("recycle answered block {block}{which}, which is {state}; expected one of {expected}")
    };
    let Some((block, _)) = used(block).filter(|(_, used)| *used == BlockUse::Sealed) else {
        return Err(refusal("", block, "the sealed blocks"));
    };
    let into = match into.map(|into| (into, used(into).filter(|(_, used)| *used == BlockUse::Free))) {
        None => None,
        Some((_, Some((into, _)))) => Some(into),
        Some((into, None)) => return Err(refusal(" to take its pages", into, "the free blocks")),
    };
    Ok(Recycle { block, into })
}
