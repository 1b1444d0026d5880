//! Where everything lies in an image.
//!
//! ```text
//!   0        header: the drive, its seed, its geometry
//!   192 KiB  two places of 32 KiB for what the owner of the drive keeps with it, written by turns
//!   256 KiB  a slot of 64 B for each block
//!            a slot of 128 B for each page: its spare area
//!            a place for the content of each page
//!   length   a second place for each page, for records of the journal that take more than a page
//! ```
//!
//! The regions begin at multiples of 4 KiB. What was never written is a hole, and the last region is beyond the end of the file
//! unless it is used.

use flashwright_nand::{BlockId, Geometry, Ppn};

/// Bytes of the header's place.
pub const HEADER_BYTES: u64 = 256 << 10;
/// Bytes of a place for what the owner of the drive keeps with it.
pub const KEPT_BYTES: usize = 32 << 10;
/// Bytes that the header may take.
pub const HEADER_MAX: u64 = HEADER_BYTES - 2 * KEPT_BYTES as u64;
/// Bytes of a block's slot.
pub const BLOCK_SLOT: usize = 64;
/// Bytes of a page's slot. It never crosses a sector, so that a disk writes it whole or not at all.
pub const PAGE_SLOT: usize = 128;

/// The places in an image of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub geometry: Geometry,
    page_slots: u64,
    contents: u64,
}

impl Layout {
    pub fn new(geometry: &Geometry) -> Self {
        let aligned = |at: u64| at.next_multiple_of(4096);
        let page_slots = aligned(HEADER_BYTES + u64::from(geometry.blocks()) * BLOCK_SLOT as u64);
        let contents = aligned(page_slots + u64::from(geometry.pages()) * PAGE_SLOT as u64);
        Self { geometry: *geometry, page_slots, contents }
    }

    /// The place for what is kept the `number`th time.
    pub fn kept_slot(number: u64) -> u64 {
        HEADER_MAX + number % 2 * KEPT_BYTES as u64
    }

    /// The slot of a block.
    pub fn block_slot(&self, block: BlockId) -> u64 {
        HEADER_BYTES + u64::from(block.0) * BLOCK_SLOT as u64
    }

    /// The slot of a page.
    pub fn page_slot(&self, ppn: Ppn) -> u64 {
        self.page_slots + u64::from(ppn.0) * PAGE_SLOT as u64
    }

    /// Bytes of the slots of a block's pages.
    pub fn slots_of_block(&self) -> usize {
        self.geometry.pages_per_block() as usize * PAGE_SLOT
    }

    /// The content of a page.
    pub fn content(&self, ppn: Ppn) -> u64 {
        self.contents + u64::from(ppn.0) * self.page_bytes()
    }

    /// Where the rest of a content begins that takes more than a page.
    pub fn rest(&self, ppn: Ppn) -> u64 {
        self.content(ppn) + self.length() - self.contents
    }

    pub fn page_bytes(&self) -> u64 {
        self.geometry.page_size().0
    }

    /// Bytes of an image without second places.
    pub fn length(&self) -> u64 {
        self.contents + u64::from(self.geometry.pages()) * self.page_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwright_block::Bytes;

    #[test]
    fn regions_follow_one_another() {
        let layout = Layout::new(&Geometry::new(1, 1, 1, 3, 5, Bytes(512)));
        assert_eq!(layout.block_slot(BlockId(2)), (256 << 10) + 128);
        assert_eq!(layout.page_slot(Ppn(1)), (260 << 10) + 128);
        assert_eq!(layout.content(Ppn(14)) + 512, layout.length());
        assert_eq!((layout.length(), layout.rest(Ppn(0))), ((264 << 10) + 15 * 512, layout.length()));
        assert_eq!(layout.rest(Ppn(2)) - layout.rest(Ppn(1)), 512);
    }
}
