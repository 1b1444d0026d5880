//! Locality gathering (eNVy, Wu and Zwaenepoel, ASPLOS 1994): partitions in a line from hot to cold, between which cleaning
//! moves pages until each costs the same.
//!
//! A page is written to the partition that holds its old copy; one that was never written goes to the partition of its
//! number, each having the same number of pages. When a block of partition p is cleaned, the cost of p is
//! `c = rate * v / (n - v)`: rate is its share of the last 64 cleans, v the valid of n pages in the mean of its own among
//! those. If c is above the mean over all partitions, an eighth of the victim's valid pages, those longest unwritten, goes to
//! the next colder partition, and an eighth, those written last, to the next hotter one; else all stay.
//!
//! Details are a reading: the paper was not at hand. That a block's pages were written in their order in it is what tells
//! old from new. Its cleaning, FIFO in each partition, is `gc.victim = "partition-fifo"`. State: 64 cleans.

use super::{HostWrite, PlacementContext, PlacementPolicy, Relocation};
use flashwright_nand::BlockId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Cleans that the averages span.
const CLEANS: usize = 64;
/// One page in so many goes each way.
const PART: u32 = 8;

/// Settings of `placement.policy = "envy"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct EnvySettings {
    /// Partitions, 1 to 64. The paper has 16.
    #[schemars(range(min = 1, max = 64))]
    pub partitions: u8,
}

impl Default for EnvySettings {
    fn default() -> Self {
        Self { partitions: 16 }
    }
}

/// `placement.policy = "envy"`. The last stream is the hot end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Envy {
    partitions: u8,
    logical_pages: u32,
    pages_per_block: u32,
    /// The last cleans: partition and valid pages.
    cleans: VecDeque<(u8, u32)>,
    /// The victim at hand, its pages still to come, their number, and how many of them go each way.
    victim: BlockId,
    left: u32,
    valid: u32,
    going: u32,
}

impl Envy {
    /// Notes a clean and says how many pages are to go each way.
    fn clean(&mut self, partition: u8, valid: u32) -> u32 {
        if self.cleans.len() == CLEANS {
            self.cleans.pop_front();
        }
        self.cleans.push_back((partition, valid));
        let mut sums = vec![[0u32; 2]; usize::from(self.partitions)];
        for (partition, valid) in &self.cleans {
            let [cleans, pages] = &mut sums[usize::from(*partition)];
            (*cleans, *pages) = (*cleans + 1, *pages + valid);
        }
        let cost = |[cleans, pages]: [u32; 2]| {
            // Without an invalid page the cost has no bound; one page stands for none.
            let invalid = (cleans * self.pages_per_block).saturating_sub(pages).max(1);
            f64::from(cleans) * f64::from(pages) / f64::from(invalid)
        };
        let mean = sums.iter().map(|sum| cost(*sum)).sum::<f64>() / f64::from(self.partitions);
        if cost(sums[usize::from(partition)]) > mean { valid / PART } else { 0 }
    }
}

impl PlacementPolicy for Envy {
    const NAME: &'static str = "envy";
    const ABOUT: &'static str =
        "partitions from hot to cold that even out their cost of cleaning (eNVy, Wu and Zwaenepoel 1994)";
    type Settings = EnvySettings;

    fn new(settings: &EnvySettings, context: PlacementContext) -> Self {
        Self {
            partitions: settings.partitions.clamp(1, 64),
            logical_pages: context.logical_pages,
            pages_per_block: context.pages_per_block,
            cleans: VecDeque::with_capacity(CLEANS),
            victim: BlockId(u32::MAX),
            left: 0,
            valid: 0,
            going: 0,
        }
    }
    fn streams(&self) -> u8 {
        self.partitions
    }
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // below the number of partitions
    fn host(&mut self, write: HostWrite) -> u8 {
        write.old_stream().unwrap_or_else(|| {
            (u64::from(write.lpn.0) * u64::from(self.partitions) / u64::from(self.logical_pages)) as u8
        })
    }
    #[inline]
    fn relocation(&mut self, page: Relocation) -> u8 {
        let block = page.flash.geometry().block_of(page.from);
        // A scheme may move other pages to a stream of its own.
        let partition = page.old_stream().min(self.partitions - 1);
        if self.left == 0 || self.victim != block {
            self.victim = block;
            self.valid = page.flash.pages_valid(block);
            self.left = self.valid;
            self.going = self.clean(partition, self.valid);
        }
        let nth = self.valid - self.left;
        self.left -= 1;
        if nth < self.going {
            partition.saturating_sub(1)
        } else if self.left < self.going {
            (partition + 1).min(self.partitions - 1)
        } else {
            partition
        }
    }
}
