//! What fitting and playing remember of past requests: for each block, which of its parts were used and in which order.
//!
//! ```text
//!   region 4 MiB ─8─ block 512 KiB ─8─ block 64 KiB ─16─ page 4 KiB
//! ```
//!
//! Regions are in a list for each direction; below them each block has two small orders, one of its parts by last read
//! and one by last write. A request uses all blocks of 64 KiB that it covers, and the page that it starts at.

use super::order::Order;
use super::recency::Recency;

/// Sectors of a page.
pub(super) const PAGE_SECTORS: u64 = 8;
/// Pages of a block of 64 KiB.
pub(super) const LEAF_PAGES: u64 = 16;
/// Pages of a region.
pub(super) const REGION_PAGES: u64 = 1024;
/// Blocks of 64 KiB of a region.
pub(super) const REGION_LEAVES: u64 = REGION_PAGES / LEAF_PAGES;
/// Parts of a region, of a block of 512 KiB, of a block of 64 KiB.
pub(super) const FAN: [usize; 3] = [8, 8, 16];

/// Lists: by last read, by last write.
pub(super) const READ: usize = 0;
pub(super) const WRITE: usize = 1;

/// Marks a part without a node.
const NONE: u32 = u32::MAX;

/// The orders of a block's parts, and when it was last used, for both directions.
#[derive(Clone, Copy, Default)]
pub(super) struct Lists {
    pub(super) order: [Order; 2],
    pub(super) last: [u32; 2],
}

/// A region or a block of 512 KiB.
#[derive(Clone, Copy)]
struct Node {
    lists: Lists,
    parts: [u32; 8],
    /// Of a block of 512 KiB: where it lies.
    region: u32,
    part: u8,
}

impl Default for Node {
    fn default() -> Self {
        Node { lists: Lists::default(), parts: [NONE; 8], region: 0, part: 0 }
    }
}

/// A block of 64 KiB.
#[derive(Clone, Copy, Default)]
struct Leaf {
    lists: Lists,
    /// The size of the last request that started at each page, as its users number sizes.
    sizes: [u8; 16],
    /// Requests that started at each page; 255 stands for more.
    counts: [u8; 16],
    /// One bit for each page: whether that request was a write.
    writes: u16,
    /// One bit for each page: whether a request covered it.
    touched: u16,
    /// One bit for each page: whether a request jumped to it.
    jumped: u16,
    /// Where it lies.
    region: u32,
    place: u8,
}

#[derive(Default)]
pub(super) struct Tree {
    regions: Vec<Node>,
    middles: Vec<Node>,
    leaves: Vec<Leaf>,
    /// Pages that some request covered.
    pub(super) pages: u64,
}

/// One bit for each page of a block of 64 KiB that a request of `pages` pages covers from page `part` on.
pub(super) fn cover(part: usize, pages: u64) -> u32 {
    (((1u64 << pages.min(LEAF_PAGES)) - 1) << part) as u32 & 0xFFFF
}

/// Where a page lies: its region, then its part of each block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Path {
    pub(super) region: u32,
    pub(super) parts: [usize; 3],
}

impl Path {
    /// The path of page `page` of the region with this number.
    pub(super) fn new(region: u32, page: u64) -> Self {
        let page = page as usize % REGION_PAGES as usize;
        Path { region, parts: [page / 128, page / 16 % 8, page % 16] }
    }

    /// The page within its region.
    pub(super) fn page(&self) -> u64 {
        (self.parts[0] * 128 + self.parts[1] * 16 + self.parts[2]) as u64
    }
}

impl Tree {
    /// Blocks of 64 KiB that were used.
    pub(super) fn leaves(&self) -> u64 {
        self.leaves.len() as u64
    }

    /// The lists of the block on `path` whose part is `path.parts[level]`; none if it was never used.
    pub(super) fn lists(&self, path: &Path, level: usize) -> Option<&Lists> {
        let region = self.regions.get(path.region as usize)?;
        if level == 0 {
            return Some(&region.lists);
        }
        let middle = self.middles.get(region.parts[path.parts[0]] as usize)?;
        if level == 1 {
            return Some(&middle.lists);
        }
        self.leaves.get(middle.parts[path.parts[1]] as usize).map(|leaf| &leaf.lists)
    }

    /// The number of the page of `path`, if its block of 64 KiB was used.
    pub(super) fn page(&self, path: &Path) -> Option<u32> {
        let region = self.regions.get(path.region as usize)?;
        let middle = self.middles.get(region.parts[path.parts[0]] as usize)?;
        let leaf = middle.parts[path.parts[1]];
        (leaf != NONE).then(|| leaf * 16 + path.parts[2] as u32)
    }

    /// The path of a page by its number.
    pub(super) fn path(&self, page: u32) -> Path {
        let leaf = &self.leaves[page as usize / 16];
        let place = leaf.place as usize;
        Path { region: leaf.region, parts: [place / 8, place % 8, page as usize % 16] }
    }

    /// The size of the last request that started at a page.
    pub(super) fn size(&self, page: u32) -> u8 {
        self.leaves[page as usize / 16].sizes[page as usize % 16]
    }

    /// How often requests started at a page, up to 255.
    pub(super) fn count(&self, page: u32) -> u8 {
        self.leaves[page as usize / 16].counts[page as usize % 16]
    }

    /// The number of the block of 512 KiB of `path`, if it was used.
    pub(super) fn block(&self, path: &Path) -> Option<u32> {
        let region = self.regions.get(path.region as usize)?;
        Some(region.parts[path.parts[0]]).filter(|middle| *middle != NONE)
    }

    /// The path of the first page of a block of 512 KiB by its number.
    pub(super) fn block_path(&self, block: u32) -> Path {
        let middle = &self.middles[block as usize];
        Path { region: middle.region, parts: [middle.part.into(), 0, 0] }
    }

    /// One bit for each page of the block of 64 KiB of `path`: whether a request covered it, and whether one jumped to it.
    pub(super) fn used(&self, path: &Path) -> (u32, u32) {
        self.page(path).map_or((0, 0), |page| {
            let leaf = &self.leaves[page as usize / 16];
            (leaf.touched.into(), leaf.jumped.into())
        })
    }

    /// Whether some request covered the page of `path`.
    pub(super) fn is_used(&self, path: &Path) -> bool {
        self.used(path).0 >> path.parts[2] & 1 == 1
    }

    /// Whether the last request that started at a page was a write.
    pub(super) fn was_write(&self, page: u32) -> bool {
        self.leaves[page as usize / 16].writes >> (page % 16) & 1 == 1
    }

    /// Notes a use at time `now` of the block of 64 KiB of `path`: of `pages` pages from its page on, and of that page if a
    /// request of size `size` starts there, with a jump or without. Returns the page's number.
    pub(super) fn touch(&mut self, path: &Path, list: usize, now: u32, pages: u64, start: Option<(u8, bool)>) -> u32 {
        let index = path.region as usize;
        if index >= self.regions.len() {
            self.regions.resize(index + 1, Node::default());
        }
        let region = &mut self.regions[index];
        region.lists.order[list].touch(path.parts[0]);
        region.lists.last[list] = now;
        let part = &mut region.parts[path.parts[0]];
        if *part == NONE {
            *part = self.middles.len() as u32;
            self.middles.push(Node { region: path.region, part: path.parts[0] as u8, ..Node::default() });
        }
        let middle = &mut self.middles[*part as usize];
        middle.lists.order[list].touch(path.parts[1]);
        middle.lists.last[list] = now;
        let part = &mut middle.parts[path.parts[1]];
        if *part == NONE {
            *part = self.leaves.len() as u32;
            let place = (path.parts[0] * 8 + path.parts[1]) as u8;
            self.leaves.push(Leaf { region: path.region, place, ..Leaf::default() });
        }
        let number = *part * 16 + path.parts[2] as u32;
        let leaf = &mut self.leaves[*part as usize];
        leaf.lists.last[list] = now;
        let covered = cover(path.parts[2], pages) as u16;
        self.pages += u64::from((covered & !leaf.touched).count_ones());
        leaf.touched |= covered;
        if let Some((size, jump)) = start {
            leaf.lists.order[list].touch(path.parts[2]);
            leaf.jumped |= u16::from(jump) << path.parts[2];
            leaf.sizes[path.parts[2]] = size;
            leaf.counts[path.parts[2]] = leaf.counts[path.parts[2]].saturating_add(1);
            leaf.writes = leaf.writes & !(1 << path.parts[2]) | (list as u16) << path.parts[2];
        }
        number
    }
}

/// What was used last, by direction.
pub(super) struct Recent {
    /// Regions, by last read and by last write; one list each.
    pub(super) regions: [Recency; 2],
    /// Blocks of 512 KiB, likewise.
    pub(super) blocks: [Recency; 2],
    /// Pages that requests jumped to, by number; a list for each class of the last request's size.
    pub(super) pages: [Recency; 2],
}

impl Recent {
    pub(super) fn new() -> Self {
        let lists = |count: usize| [Recency::new(count), Recency::new(count)];
        Recent { regions: lists(1), blocks: lists(1), pages: lists(EXTENTS) }
    }
}

/// Classes of the pages that a request covers: 1 or 2, 3 to 8, more.
pub(crate) const EXTENTS: usize = 3;

/// Kinds of jumps: each size class, to something far or new, to a near page, and to another page of a near block.
pub(super) const STATES: usize = 3 * EXTENTS;
/// A block of 512 KiB that fewer others were used after is near.
pub(super) const NEAR_BLOCKS: usize = 8;
/// What fewer others were used after is near.
pub(super) const NEAR: usize = 32;

/// The class of a request of so many pages.
pub(crate) fn extent(pages: u64) -> usize {
    match pages {
        0..=2 => 0,
        3..=8 => 1,
        _ => 2,
    }
}

/// How a block was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Among those used last in the same direction.
    Own(usize),
    /// Among those used last in the other direction, and later than in this one.
    Other(usize),
    /// Used in neither direction.
    New,
}

/// Age classes of blocks, in requests that move data.
const AGES: [u32; 4] = [8, 64, 1024, 32_768];
/// An older block that was found through the other direction is old.
const OTHER_OLD: u32 = 1024;
/// Classes of how a block was found: five ages, and two if through the other direction.
pub(super) const CLASSES: usize = 7;

/// The class of a block found through its own direction, or through the other, `age` requests after its last use.
pub(super) fn class(other: bool, age: u32) -> usize {
    if other {
        return 5 + usize::from(age >= OTHER_OLD);
    }
    AGES.iter().position(|limit| age < *limit).unwrap_or(AGES.len())
}

/// The names of the classes, for the model's file.
pub(super) const CLASS_NAMES: [&str; CLASSES] =
    ["below-8", "below-64", "below-1024", "below-32768", "older", "other-below-1024", "other-older"];
