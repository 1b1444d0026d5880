//! FIFO inside partitions of equal size: the block sealed first of the stream that has most blocks (the cleaning of eNVy,
//! Wu and Zwaenepoel, ASPLOS 1994, as the container-marking report, section V, describes it).
//!
//! A stream that takes a block beyond its share gives up its oldest, so that streams keep the same number of blocks
//! whatever is written to them, and each comes to a utilisation of its own. Companion of `placement.policy = "envy"`; with
//! one stream it is FIFO. Ties between streams go to the block sealed first. Seal: O(1); pick: O(streams). State: 20 bytes a
//! block.

use super::{UnitView, VictimContext, VictimPolicy};
use crate::SlotLists;
use crate::registry::NoSettings;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// `gc.victim = "partition-fifo"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PartitionFifo {
    /// The sealed blocks of each stream.
    lists: SlotLists,
    sealed_as: Vec<u64>,
    last_seal: u64,
    streams: u32,
}

impl PartitionFifo {
    fn oldest_of_largest(&self) -> Option<u32> {
        (0..self.streams)
            .filter_map(|stream| {
                let oldest = self.lists.oldest(stream)?;
                Some((Reverse(self.lists.len(stream)), self.sealed_as[oldest as usize], oldest))
            })
            .min()
            .map(|(_, _, block)| block)
    }
}

impl VictimPolicy for PartitionFifo {
    const NAME: &'static str = "partition-fifo";
    const ABOUT: &'static str = "the block sealed first of the stream with most blocks (eNVy, Wu and Zwaenepoel 1994)";
    type Settings = NoSettings;

    fn new(_: &NoSettings, context: VictimContext) -> Self {
        Self {
            lists: SlotLists::new(u32::from(context.streams), context.blocks),
            sealed_as: vec![0; context.blocks as usize],
            last_seal: 0,
            streams: u32::from(context.streams),
        }
    }
    fn sealed(&mut self, block: u32, view: UnitView) {
        self.last_seal += 1;
        self.sealed_as[block as usize] = self.last_seal;
        self.lists.push(u32::from(view.stream_of(block)), block);
    }
    fn removed(&mut self, block: u32) {
        self.lists.unlink(block);
    }
    fn pick(&mut self, _: UnitView) -> Option<u32> {
        self.oldest_of_largest()
    }
    #[inline]
    fn likely_next(&self) -> Option<u32> {
        self.oldest_of_largest()
    }
    fn candidates(&self) -> u32 {
        self.lists.total()
    }
}
