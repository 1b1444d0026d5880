//! The geometry of a drive's flash.

use crate::{BlockId, DieId, Divisor, PlaneId, Ppn};
use flashwright_block::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The order in which a chip allows the pages of a block to be programmed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProgramOrder {
    /// A page may be programmed only while all higher pages of the block are still erased: gaps are allowed, going back
    /// is not, as large-block NAND demands.
    #[default]
    Ascending,
    /// Any erased page may be programmed, as small-block NAND allows.
    Any,
}

/// The geometry of the flash, with the divisors of address arithmetic prepared.
///
/// ```
/// # use flashwright_nand::{Geometry, Ppn, BlockId};
/// # use flashwright_block::Bytes;
/// let g = Geometry::new(2, 2, 1, 10, 64, Bytes(4096));
/// assert_eq!((g.planes(), g.blocks(), g.pages()), (4, 40, 2560));
/// assert_eq!(g.block_of(Ppn(130)), BlockId(2));
/// assert_eq!(g.die_of(Ppn(64 * 10)).0, 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Geometry {
    channels: u32,
    dies_per_channel: u32,
    planes_per_die: u32,
    page_size: Bytes,
    pages_per_block: Divisor,
    blocks_per_plane: Divisor,
    pages_per_die: Divisor,
    pages: u32,
}

impl Geometry {
    /// Largest number of pages of a drive: physical page numbers have 32 bits, and one value means "none".
    pub const PAGES_MAX: u64 = u32::MAX as u64 - 1;

    /// A geometry of the given counts.
    ///
    /// # Panics
    /// If a count is 0 or the pages exceed [`Self::PAGES_MAX`]; configurations are validated before.
    #[must_use]
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        channels: u32,
        dies_per_channel: u32,
        planes_per_die: u32,
        blocks_per_plane: u32,
        pages_per_block: u32,
        page_size: Bytes,
    ) -> Self {
        let pages_per_die = u64::from(planes_per_die) * u64::from(blocks_per_plane) * u64::from(pages_per_block);
        let pages = u64::from(channels) * u64::from(dies_per_channel) * pages_per_die;
        assert!(pages > 0 && pages <= Self::PAGES_MAX, "a drive has 1 to {} pages, not {pages}", Self::PAGES_MAX);
        let fits = "no larger than the page count, which was checked";
        Self {
            channels,
            dies_per_channel,
            planes_per_die,
            page_size,
            pages_per_block: Divisor::new(pages_per_block),
            blocks_per_plane: Divisor::new(blocks_per_plane),
            pages_per_die: Divisor::new(u32::try_from(pages_per_die).expect(fits)),
            pages: u32::try_from(pages).expect(fits),
        }
    }

    /// Channels (buses).
    #[must_use]
    pub fn channels(&self) -> u32 {
        self.channels
    }
    /// Dies on each channel.
    #[must_use]
    pub fn dies_per_channel(&self) -> u32 {
        self.dies_per_channel
    }
    /// Planes in each die.
    #[must_use]
    pub fn planes_per_die(&self) -> u32 {
        self.planes_per_die
    }
    /// Blocks in each plane.
    #[inline(always)]
    #[must_use]
    pub fn blocks_per_plane(&self) -> u32 {
        self.blocks_per_plane.get()
    }
    /// Pages in each block.
    #[inline(always)]
    #[must_use]
    pub fn pages_per_block(&self) -> u32 {
        self.pages_per_block.get()
    }
    /// Bytes of data in a page.
    #[must_use]
    pub fn page_size(&self) -> Bytes {
        self.page_size
    }
    /// Dies of the drive.
    #[must_use]
    pub fn dies(&self) -> u32 {
        self.channels * self.dies_per_channel
    }
    /// Planes of the drive.
    #[must_use]
    pub fn planes(&self) -> u32 {
        self.dies() * self.planes_per_die
    }
    /// Blocks of the drive.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        self.planes() * self.blocks_per_plane()
    }
    /// Pages of the drive.
    #[must_use]
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// The block that holds a page.
    #[inline(always)]
    #[must_use]
    pub fn block_of(&self, ppn: Ppn) -> BlockId {
        BlockId(self.pages_per_block.of(ppn.0))
    }
    /// The block that holds a page, and the position of the page in it.
    #[inline(always)]
    #[must_use]
    pub fn place_of(&self, ppn: Ppn) -> (BlockId, u32) {
        let (block, page) = self.pages_per_block.split(ppn.0);
        (BlockId(block), page)
    }
    /// The position of a page in its block.
    #[inline(always)]
    #[must_use]
    pub fn page_in_block(&self, ppn: Ppn) -> u32 {
        self.pages_per_block.remainder(ppn.0)
    }
    /// The first page of a block.
    #[inline(always)]
    #[must_use]
    pub fn first_page(&self, block: BlockId) -> Ppn {
        Ppn(block.0 * self.pages_per_block())
    }
    /// The page at a position of a block.
    #[inline(always)]
    #[must_use]
    pub fn page_at(&self, block: BlockId, page: u32) -> Ppn {
        Ppn(block.0 * self.pages_per_block() + page)
    }
    /// The plane that holds a block.
    #[inline(always)]
    #[must_use]
    pub fn plane_of(&self, block: BlockId) -> PlaneId {
        PlaneId(self.blocks_per_plane.of(block.0))
    }
    /// The first block of a plane.
    #[inline(always)]
    #[must_use]
    pub fn first_block(&self, plane: PlaneId) -> BlockId {
        BlockId(plane.0 * self.blocks_per_plane())
    }
    /// The die that holds a page.
    #[inline(always)]
    #[must_use]
    pub fn die_of(&self, ppn: Ppn) -> DieId {
        DieId(self.pages_per_die.of(ppn.0))
    }
}
