//! How much of an address space a model may be of: its tables take some hundred bytes for each block that requests touch, and
//! one request touches up to 2 TiB.

use super::sequence::{BLOCK_SECTORS, moves};
use crate::trace::Pages;
use flashwright_block::{Bytes, Request, SECTOR_BYTES};

/// Blocks that reads and writes may touch: 2 TiB. Up to twice as many are taken before they are counted.
const BLOCKS_MAX: u64 = 1 << 25;

/// Counts the blocks that requests touch.
#[derive(Default)]
pub(super) struct Room {
    blocks: Pages<1>,
    /// There are no more than so many.
    most: u64,
}

/// Requests touch more than a model can be of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found requests that touch {found} or more, expected at most {most} for a model")]
pub(super) struct TooLarge {
    pub found: Bytes,
    pub most: Bytes,
}

impl Room {
    /// Takes a request, before anything is kept of it.
    pub fn take(&mut self, request: &Request) -> Result<(), TooLarge> {
        if !moves(request) || request.sectors == 0 {
            return Ok(());
        }
        let (first, last) = (request.first_sector / BLOCK_SECTORS, (request.end_sector() - 1) / BLOCK_SECTORS);
        self.blocks.touch(first, last, false);
        self.most = self.most.saturating_add(last - first + 1);
        if self.most > 2 * BLOCKS_MAX {
            [self.most] = self.blocks.counts();
            if self.most > BLOCKS_MAX {
                let bytes = |blocks: u64| Bytes(blocks.saturating_mul(BLOCK_SECTORS * SECTOR_BYTES));
                return Err(TooLarge { found: bytes(self.most), most: bytes(BLOCKS_MAX) });
            }
        }
        Ok(())
    }
}
