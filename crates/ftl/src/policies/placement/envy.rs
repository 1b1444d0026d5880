//! Locality gathering (eNVy, Wu and Zwaenepoel, ASPLOS 1994): partitions from hot to cold, between which cleaning moves
//! pages until each partition costs the same.
//!
//! A page is written to the partition that holds its old copy; one that was never written goes to the partition of its
//! number, each having the same number of pages. When a block of partition p is cleaned, the cost of p is
//! `c = rate * v / (n - v)`: rate is its share of the last 64 cleans, and v the mean number of valid pages, of n, in
//! its own victims among them. If c is above the mean of all partitions, the eighth of the victim's valid pages that
//! was written longest ago goes to the next colder partition, and the eighth written last to the next hotter one; else
//! all stay.
//!
//! The details are our interpretation, because the paper was not available. The order of pages in a block stands for
//! the order in which they were written. The paper's cleaning, FIFO in each partition, is
//! `gc.victim = "partition-fifo"`. State: 64 cleans.

use super::{HostWrite, PlacementContext, PlacementPolicy, Relocation};
use flashwright_nand::BlockId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Cleans that the averages span.
const CLEANS: usize = 64;
/// One of this many pages moves in each direction.
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
    /// The current victim, its remaining pages, their initial number, and how many of them move in each direction.
    victim: BlockId,
    left: u32,
    valid: u32,
    going: u32,
}

impl Envy {
    /// Records a clean and returns how many pages move in each direction.
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
            // Without an invalid page the cost would be infinite; 0 counts as 1.
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
        "partitions from hot to cold that balance their cleaning cost (eNVy, Wu and Zwaenepoel 1994)";
    const SMALL: &'static [&'static str] = &["partitions=3"];
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
