//! Checkpoints of the map: what a mount need not find out from spare areas.
//!
//! ```text
//!   blocks set apart:  [ map 1 | map 1 | end 1 | map 2 ] [ map 2 | end 2 | .... ] [ erased ]
//!                        └ obsolete once end 2 is there          └ open
//! ```
//!
//! A checkpoint says where the current copy of each page was at a sequence number, and how far each block was programmed. Its last
//! page, the *end*, is programmed once everything up to that number is on flash, so a mount may rely on all of it. Then the blocks
//! that hold nothing of it are erased. There are enough of them that a checkpoint can be written while the one before stays whole.

use super::Record;
use flashwright_nand::{BlockId, Geometry, Ppn};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Bytes of a block in a checkpoint: pages programmed and torn (2 B each), the numbers of its first page and of its first page that
/// can be read (6 B each).
const BLOCK_BYTES: u64 = 16;

/// A block as a checkpoint describes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockThen {
    /// Pages programmed.
    pub pages: u32,
    /// Of these, pages that can't be read.
    pub torn: u32,
    /// The number of the program of its first page; 0 if that is erased or torn.
    pub first: u64,
    /// The number of its first program that can be read; 0 if there is none.
    pub opened: u64,
}

/// What a checkpoint says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Image {
    /// The number up to which it holds.
    pub sequence: u64,
    /// By owner, where its current copy was.
    pub places: Vec<Option<Ppn>>,
    /// By block.
    pub blocks: Vec<BlockThen>,
    /// Pages of the scheme's own tables that were older than what they say.
    pub stale: Vec<u32>,
}

/// No page.
const NOWHERE: u32 = u32::MAX;

impl Image {
    /// The content as words, which the pages of the checkpoint share.
    fn words(&self) -> Vec<u32> {
        let halves = |number: u64| [(number & u64::from(u32::MAX)) as u32, (number >> 32) as u32];
        let count = |count: usize| u32::try_from(count).expect("pages and blocks are counted in 32 bits");
        let mut words = vec![count(self.places.len()), count(self.stale.len()), count(self.blocks.len())];
        words.extend(self.places.iter().map(|place| place.map_or(NOWHERE, |ppn| ppn.0)));
        words.extend(&self.stale);
        for block in &self.blocks {
            words.extend([block.pages, block.torn]);
            words.extend(halves(block.first));
            words.extend(halves(block.opened));
        }
        words
    }

    fn from_words(sequence: u64, words: &[u32]) -> Self {
        let [places, stale, blocks] = [words[0], words[1], words[2]].map(|count| count as usize);
        let (in_places, rest) = words[3..].split_at(places);
        let (in_stale, in_blocks) = rest.split_at(stale);
        let joined = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
        Self {
            sequence,
            places: in_places.iter().map(|place| (*place != NOWHERE).then_some(Ppn(*place))).collect(),
            stale: in_stale.to_vec(),
            blocks: in_blocks
                .chunks_exact(6)
                .take(blocks)
                .map(|block| BlockThen {
                    pages: block[0],
                    torn: block[1],
                    first: joined(block[2], block[3]),
                    opened: joined(block[4], block[5]),
                })
                .collect(),
        }
    }
}

/// A checkpoint whose end is not decided yet.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Begun {
    sequence: u64,
    pages: Vec<Ppn>,
    /// Blocks of the journal that hold only what is older.
    journal: Vec<BlockId>,
}

/// The checkpoints of a drive, and the blocks that they go to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Checkpoints {
    /// Programs and trims from one to the next.
    interval: u64,
    page_bytes: u64,
    pages_per_block: u32,
    /// The number up to which the newest one holds, complete or begun, plus its pages, which count for none.
    counts_from: u64,
    /// All blocks set apart.
    blocks: Vec<BlockId>,
    erased: VecDeque<BlockId>,
    /// Those with pages, in the order in which they were opened. The last one is open as long as it has room.
    used: Vec<BlockId>,
    /// The next page of the open one.
    next: u32,
    begun: Option<Begun>,
    #[serde(skip)]
    found: Vec<(Ppn, Record)>,
}

impl Checkpoints {
    /// Pages of a checkpoint of a map of so many bytes, its end included.
    fn pages(map_bytes: u64, geometry: &Geometry) -> u64 {
        let bytes = map_bytes + u64::from(geometry.blocks()) * BLOCK_BYTES;
        bytes.div_ceil(geometry.page_size().0).max(1) + 1
    }

    /// Blocks that checkpoints of a map of at most so many bytes take: two of them, since one must stay while another is written, and
    /// one block in which the older ends.
    pub fn blocks_needed(map_bytes: u64, geometry: &Geometry) -> u32 {
        let blocks = Self::pages(map_bytes, geometry).div_ceil(u64::from(geometry.pages_per_block()));
        u32::try_from(2 * blocks + 1).unwrap_or(u32::MAX)
    }

    /// None written yet, in erased blocks.
    pub fn new(interval: u64, blocks: Vec<BlockId>, geometry: &Geometry) -> Self {
        Self {
            interval,
            page_bytes: geometry.page_size().0,
            pages_per_block: geometry.pages_per_block(),
            counts_from: 0,
            erased: blocks.iter().copied().collect(),
            blocks,
            used: Vec::new(),
            next: 0,
            begun: None,
            found: Vec::new(),
        }
    }

    /// Whether one should begin, when the next program has this number.
    pub fn is_due(&self, next: u64) -> bool {
        self.begun.is_none() && next > self.counts_from + self.interval
    }

    /// Whether one lacks only its end.
    pub fn is_begun(&self) -> bool {
        self.begun.is_some()
    }

    /// Begins a checkpoint of a map of so many bytes: the records of its pages.
    pub fn begin(&mut self, image: &Image, map_bytes: u64, journal: Vec<BlockId>) -> Vec<Record> {
        self.begun = Some(Begun { sequence: image.sequence, pages: Vec::new(), journal });
        let bytes = map_bytes + image.blocks.len() as u64 * BLOCK_BYTES;
        let parts = usize::try_from(bytes.div_ceil(self.page_bytes).max(1)).expect("parts fit the memory");
        let mut words = image.words();
        words.resize(words.len().next_multiple_of(parts), NOWHERE);
        self.counts_from = image.sequence + parts as u64 + 1;
        let part = |words: &[u32]| Record::Checkpoint { sequence: image.sequence, words: words.to_vec() };
        words.chunks(words.len() / parts).map(part).collect()
    }

    /// The page that the next part, or the end, goes to.
    pub fn next_page(&mut self, geometry: &Geometry) -> Ppn {
        let open = self.used.last().copied().filter(|_| self.next < self.pages_per_block);
        let block = open.unwrap_or_else(|| {
            let block = self.erased.pop_front().expect("two checkpoints fit the blocks set apart");
            self.used.push(block);
            self.next = 0;
            block
        });
        let ppn = geometry.page_at(block, self.next);
        self.next += 1;
        if let Some(begun) = &mut self.begun {
            begun.pages.push(ppn);
        }
        ppn
    }

    /// The end of the checkpoint that has begun: its record, and blocks of the journal that it makes obsolete.
    pub fn end(&mut self) -> Option<(Record, Vec<BlockId>)> {
        let Begun { sequence, pages, journal } = self.begun.take()?;
        Some((Record::CheckpointEnd { sequence, pages }, journal))
    }

    /// Keeps the blocks of these pages, and the open one; returns the others with pages, which are to be erased.
    pub fn keep_only(&mut self, pages: &[Ppn], geometry: &Geometry) -> Vec<BlockId> {
        let open = self.used.last().copied().filter(|_| self.next < self.pages_per_block);
        let keeps = |block: &BlockId| open == Some(*block) || pages.iter().any(|ppn| geometry.block_of(*ppn) == *block);
        let (kept, obsolete) = self.used.iter().partition(|block| keeps(block));
        self.used = kept;
        obsolete
    }

    /// A block was erased.
    pub fn erased(&mut self, block: BlockId) {
        self.erased.push_back(block);
    }

    /// All blocks set apart.
    pub fn blocks(&self) -> &[BlockId] {
        &self.blocks
    }

    // --- after a loss of power ---

    /// Forgets what was in RAM.
    pub fn forget(&mut self) {
        self.found.clear();
        (self.counts_from, self.next, self.begun) = (0, 0, None);
        self.erased.clear();
        self.used.clear();
    }

    /// A page was found.
    pub fn found(&mut self, ppn: Ppn, record: Record) {
        self.found.push((ppn, record));
    }

    /// The pages of the newest checkpoint whose end is among those found in a block: the number up to which it holds, and its pages,
    /// the end last.
    pub fn newest_end_in(&self, block: BlockId, geometry: &Geometry) -> Option<(u64, Vec<Ppn>)> {
        let ends = self.found.iter().filter(|(ppn, _)| geometry.block_of(*ppn) == block);
        let ends = ends.filter_map(|(ppn, record)| match record {
            Record::CheckpointEnd { sequence, pages } => Some((*sequence, [pages.as_slice(), &[*ppn]].concat())),
            _ => None,
        });
        ends.max_by_key(|(sequence, _)| *sequence)
    }

    /// What the pages of a whole checkpoint say.
    pub fn image(&self, sequence: u64, pages: &[Ppn]) -> Image {
        let mut words = Vec::new();
        for page in pages {
            let found = self.found.iter().find(|(ppn, _)| ppn == page);
            if let Some((_, Record::Checkpoint { words: part, .. })) = found {
                words.extend(part);
            }
        }
        Image::from_words(sequence, &words)
    }

    /// Takes the state that was found: the blocks with pages of the newest one, in the order in which they were opened; how many pages
    /// the last of them has; other blocks with pages, which are to be erased; and the number after which programs count for the next.
    pub fn restore(&mut self, used: Vec<BlockId>, next: u32, others: &[BlockId], counts_from: u64) {
        self.found.clear();
        let is_erased = |block: &BlockId| !used.contains(block) && !others.contains(block);
        self.erased = self.blocks.iter().copied().filter(is_erased).collect();
        (self.used, self.next, self.counts_from) = (used, next, counts_from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_checkpoint_says_survives_its_pages() {
        let block = BlockThen { pages: 7, torn: 1, first: 1 << 40, opened: 3 };
        let image = Image {
            sequence: 9,
            places: vec![None, Some(Ppn(4)), None],
            blocks: vec![block, BlockThen::default()],
            stale: vec![2],
        };
        let mut words = image.words();
        words.resize(words.len() + 15, NOWHERE);
        assert_eq!(Image::from_words(9, &words), image);
    }
}
