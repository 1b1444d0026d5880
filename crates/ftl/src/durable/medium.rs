//! What the chips hold, which a loss of power does not change.

use super::mirror::Mirrored;
use super::{Change, Changed, Mirror, Record};
use crate::PageBytes;
use flashwright_nand::{BlockId, Divisor, Geometry, Ppn};
use serde::{Deserialize, Serialize};

/// Whether a page can be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PageState {
    /// Not programmed since its last erase.
    #[default]
    Erased,
    /// Programmed to the end.
    Programmed,
    /// Power failed while it was programmed, or while its block was erased.
    Torn,
}

/// A page and its spare area.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Programmed {
    /// The logical page, or a page of the scheme's own tables.
    pub owner: u32,
    /// The number of the program.
    pub sequence: u64,
    /// The number of the program that first wrote the content.
    pub version: u64,
    /// The placement stream of its block.
    pub stream: u8,
    /// Whether its block is in SLC mode.
    pub is_slc: bool,
    /// The stamp of its content.
    pub stamp: u32,
    /// The bytes of its content, if they are kept.
    pub bytes: PageBytes,
    /// What it holds if it belongs to the journal.
    pub record: Option<Box<Record>>,
}

/// A block of the chips.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct MediumBlock {
    /// Its pages, up to the last that is not erased.
    pub pages: Vec<(PageState, Programmed)>,
    /// Erases, those cut short included.
    pub erases: u32,
    /// Whether the drive has taken it out of use.
    pub is_retired: bool,
}

/// The chips.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Medium {
    pages_per_block: Divisor,
    blocks: Vec<MediumBlock>,
    #[serde(skip)]
    mirror: Mirrored,
}

impl Medium {
    /// Erased chips.
    #[must_use]
    pub fn new(geometry: &Geometry) -> Self {
        Self {
            pages_per_block: Divisor::new(geometry.pages_per_block()),
            blocks: vec![MediumBlock::default(); geometry.blocks() as usize],
            mirror: Mirrored::default(),
        }
    }

    /// Chips that were found, by block.
    ///
    /// # Panics
    /// If these are not the blocks of the geometry.
    #[must_use]
    pub fn found(geometry: &Geometry, blocks: Vec<MediumBlock>) -> Self {
        assert_eq!(blocks.len(), geometry.blocks() as usize, "every block of the drive was found");
        Self { blocks, ..Self::new(geometry) }
    }

    /// From now on tells `mirror` of every change. It holds what the chips hold now.
    pub fn mirror_to(&mut self, mirror: Box<dyn Mirror>) {
        self.mirror = Mirrored(Some(mirror));
    }

    /// What is told of every change.
    pub fn mirror(&self) -> Option<&dyn Mirror> {
        self.mirror.0.as_deref()
    }

    /// As [`Medium::mirror`].
    pub fn mirror_mut(&mut self) -> Option<&mut dyn Mirror> {
        match &mut self.mirror.0 {
            Some(mirror) => Some(mirror.as_mut()),
            None => None,
        }
    }

    /// All blocks, by number.
    #[must_use]
    pub fn blocks(&self) -> &[MediumBlock] {
        &self.blocks
    }

    /// A block.
    #[must_use]
    pub fn block(&self, block: BlockId) -> &MediumBlock {
        &self.blocks[block.index()]
    }

    /// Whether a page is programmed, torn ones included.
    #[must_use]
    pub fn is_programmed(&self, ppn: Ppn) -> bool {
        let block = self.pages_per_block.of(ppn.0);
        let page = (ppn.0 - block * self.pages_per_block.get()) as usize;
        self.blocks[block as usize].pages.get(page).is_some_and(|(state, _)| *state != PageState::Erased)
    }

    fn page_mut(&mut self, ppn: Ppn) -> &mut (PageState, Programmed) {
        let block = self.pages_per_block.of(ppn.0);
        let page = (ppn.0 - block * self.pages_per_block.get()) as usize;
        let pages = &mut self.blocks[block as usize].pages;
        if pages.len() <= page {
            pages.resize_with(page + 1, Default::default);
        }
        &mut pages[page]
    }

    /// A change is done.
    ///
    /// # Panics
    /// If it programs a page that is not erased.
    pub fn apply(&mut self, change: Change) {
        self.mirror.done(&change.what);
        self.arrive(change);
    }

    /// A change is certain to be done: the mirror takes it now, and [`Medium::arrive`] follows.
    pub fn promise(&mut self, change: &Change) {
        self.mirror.done(&change.what);
    }

    /// A change that the mirror has is done.
    ///
    /// # Panics
    /// As [`Medium::apply`].
    pub fn arrive(&mut self, change: Change) {
        match change.what {
            Changed::Program(ppn, programmed) => {
                let page = self.page_mut(ppn);
                assert!(page.0 == PageState::Erased, "page {} programmed while it is {:?}", ppn.0, page.0);
                *page = (PageState::Programmed, programmed);
            }
            Changed::Erase(block) => {
                let block = &mut self.blocks[block.index()];
                block.pages.clear();
                block.erases += 1;
            }
            Changed::Retire(block) => self.blocks[block.index()].is_retired = true,
        }
    }

    /// Power fails in the middle of a change. A block whose erase is cut short holds nothing that can be read, and must be erased
    /// again.
    pub fn tear(&mut self, change: &Change) {
        self.mirror.torn(&change.what);
        match change.what {
            Changed::Program(ppn, _) => *self.page_mut(ppn) = (PageState::Torn, Programmed::default()),
            Changed::Erase(block) => {
                let pages = self.pages_per_block.get() as usize;
                let block = &mut self.blocks[block.index()];
                block.pages.clear();
                block.pages.resize(pages, (PageState::Torn, Programmed::default()));
                block.erases += 1;
            }
            Changed::Retire(_) => {}
        }
    }
}
