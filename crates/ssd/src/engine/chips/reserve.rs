//! The erased blocks that a mount may need: the first program of a block waits for the erases that were decided before it.
//!
//! Merges take an erased block before they release others. A later request that overtook those erases could use the last erased block,
//! and if power failed then, a mount could not finish the merges.

use super::Chips;
use super::command::NONE;
use crate::engine::Observer;
use serde::{Deserialize, Serialize};

/// Erases under way, and blocks that have been programmed since their last one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Reserve {
    opened: Vec<bool>,
    /// Commands, and what tells them from others in the same place.
    erases: Vec<(u32, u32)>,
}

impl Reserve {
    pub fn new(blocks: usize) -> Box<Self> {
        Box::new(Self { opened: vec![false; blocks], erases: Vec::new() })
    }
}

impl<W: Observer> Chips<W> {
    /// A block is going to be erased by a command.
    pub(super) fn reserve_grows(&mut self, block: u32, id: u32) {
        if let Some(reserve) = &mut self.reserve {
            reserve.opened[block as usize] = false;
            reserve.erases.push((id, self.commands[id].born));
        }
    }

    /// A command programs a block. If it is the first one since the block's erase, it waits for the erases under way.
    pub(super) fn reserve_shrinks(&mut self, block: u32, id: u32) {
        let Some(reserve) = &mut self.reserve else { return };
        if id == NONE || std::mem::replace(&mut reserve.opened[block as usize], true) {
            return;
        }
        reserve.erases.retain(|(erase, born)| self.commands[*erase].born == *born);
        for (erase, _) in &reserve.erases {
            self.commands.after_end(*erase, id);
        }
    }
}
