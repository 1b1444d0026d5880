//! FIFO within partitions of equal size: the block sealed first of the stream with the most blocks (the cleaning of
//! eNVy, Wu and Zwaenepoel, ASPLOS 1994, as the container-marking report, section V, describes it).
//!
//! A stream that takes a block beyond its share gives up its oldest one, so that streams keep the same number of blocks
//! whatever is written to them, and each reaches its own utilisation. A stream whose sealed blocks hold less than a
//! block's worth of invalid pages is skipped, because cleaning all of it would gain nothing; if this holds for all
//! streams, the one with the most invalid pages is cleaned (our addition). Companion of `placement.policy = "envy"`;
//! with one stream it is FIFO. Ties between streams go to the block sealed first. Seal and invalidation: O(1); pick:
//! O(streams). State: 24 bytes a block.

use super::{PlaneView, VictimContext, VictimPolicy};
use crate::SlotLists;
use crate::registry::NoSettings;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// `gc.victim = "partition-fifo"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PartitionFifo {
    /// The sealed blocks of each stream.
    lists: SlotLists,
    /// The seal number of each block, from 1; 0 for one that is not sealed.
    sealed_as: Vec<u64>,
    last_seal: u64,
    /// Valid pages by sealed block, and invalid pages by stream.
    valid: Vec<u32>,
    invalid: Vec<u64>,
    pages_per_block: u32,
}

impl PartitionFifo {
    fn oldest_of_largest(&self) -> Option<u32> {
        (0u32..)
            .zip(&self.invalid)
            .filter_map(|(stream, invalid)| {
                let oldest = self.lists.oldest(stream)?;
                let worth = *invalid >= u64::from(self.pages_per_block);
                let size = if worth { u64::from(self.lists.len(stream)) } else { *invalid };
                Some((Reverse((worth, size)), self.sealed_as[oldest as usize], oldest))
            })
            .min()
            .map(|(_, _, block)| block)
    }
}

impl VictimPolicy for PartitionFifo {
    const NAME: &'static str = "partition-fifo";
    const ABOUT: &'static str =
        "the block sealed first of the stream with the most blocks (eNVy, Wu and Zwaenepoel 1994)";
    type Settings = NoSettings;

    fn new(_: &NoSettings, context: VictimContext) -> Self {
        Self {
            lists: SlotLists::new(u32::from(context.streams), context.blocks),
            sealed_as: vec![0; context.blocks as usize],
            last_seal: 0,
            valid: vec![0; context.blocks as usize],
            invalid: vec![0; usize::from(context.streams)],
            pages_per_block: context.pages_per_block,
        }
    }
    fn sealed(&mut self, block: u32, view: PlaneView) {
        self.last_seal += 1;
        self.sealed_as[block as usize] = self.last_seal;
        let (stream, valid) = (view.stream_of(block), view.pages_valid(block));
        self.lists.push(u32::from(stream), block);
        self.valid[block as usize] = valid;
        self.invalid[usize::from(stream)] += u64::from(self.pages_per_block - valid);
    }
    #[inline(always)]
    fn invalidated(&mut self, block: u32, pages_valid: u32, view: PlaneView) {
        if self.sealed_as[block as usize] != 0 {
            self.valid[block as usize] = pages_valid;
            self.invalid[usize::from(view.stream_of(block))] += 1;
        }
    }
    fn removed(&mut self, block: u32) {
        let stream = self.lists.list_of(block) as usize;
        self.invalid[stream] -= u64::from(self.pages_per_block - self.valid[block as usize]);
        self.sealed_as[block as usize] = 0;
        self.lists.unlink(block);
    }
    fn pick(&mut self, _: PlaneView) -> Option<u32> {
        self.oldest_of_largest()
    }
    #[inline]
    fn likely_next(&self) -> Option<u32> {
        self.oldest_of_largest()
    }
    fn candidates(&self) -> u32 {
        self.lists.total()
    }
    #[cfg(test)]
    fn search(_: &NoSettings, history: &mut super::tests::History, view: PlaneView) -> Option<u32> {
        use super::tests::NP;
        let of = |stream: u8| history.sealed.iter().filter(move |sealed| view.stream_of(sealed.block) == stream);
        let invalid = |stream| of(stream).map(|sealed| NP - view.pages_valid(sealed.block)).sum::<u32>();
        let best = (0..history.streams).filter(|stream| of(*stream).next().is_some()).min_by_key(|stream| {
            let (worth, oldest) = (invalid(*stream) >= NP, of(*stream).next().unwrap());
            let size = if worth { of(*stream).count() } else { invalid(*stream) as usize };
            (Reverse((worth, size)), oldest.seal)
        });
        best.and_then(|stream| of(stream).next()).map(|sealed| sealed.block)
    }
}
