//! What is told of every change of the chips.

use super::{Changed, PageState, Programmed};
use flashwright_nand::{BlockId, Ppn};
use std::fmt;

/// Receives every change of a [`Medium`](super::Medium) in the order in which the changes are done, such as a file that outlives
/// the process.
///
/// Its calls return nothing: a mirror that can't go on keeps the reason, takes no further change, and says so when it is asked.
pub trait Mirror: fmt::Debug + Send + Sync {
    /// A page was programmed, or torn.
    fn programmed(&mut self, ppn: Ppn, state: PageState, page: &Programmed);

    /// A block was erased; `is_torn` if the erase was cut short.
    fn erased(&mut self, block: BlockId, is_torn: bool);

    /// A block was taken out of use.
    fn retired(&mut self, block: BlockId);

    /// Keeps what whoever owns the drive wants to find with it again, in place of what was kept before; it lasts when this returns.
    ///
    /// # Errors
    /// As of [`Mirror::sync`].
    fn keep(&mut self, what: &[u8]) -> Result<(), String>;

    /// Makes everything so far last, as a flush promises.
    ///
    /// # Errors
    /// Why it can't, in one line; also if an earlier change was not taken.
    fn sync(&mut self) -> Result<(), String>;

    /// Why it takes no changes any more, in one line.
    fn failure(&self) -> Option<&str>;
}

/// The mirror of a medium. A clone of the medium, or one that was saved and loaded, has none.
#[derive(Debug, Default)]
pub(super) struct Mirrored(pub Option<Box<dyn Mirror>>);

impl Clone for Mirrored {
    fn clone(&self) -> Self {
        Self(None)
    }
}

impl Mirrored {
    pub fn done(&mut self, what: &Changed) {
        let Some(mirror) = &mut self.0 else { return };
        match what {
            Changed::Program(ppn, page) => mirror.programmed(*ppn, PageState::Programmed, page),
            Changed::Erase(block) => mirror.erased(*block, false),
            Changed::Retire(block) => mirror.retired(*block),
        }
    }

    pub fn torn(&mut self, what: &Changed) {
        let Some(mirror) = &mut self.0 else { return };
        match what {
            Changed::Program(ppn, _) => mirror.programmed(*ppn, PageState::Torn, &Programmed::default()),
            Changed::Erase(block) => mirror.erased(*block, true),
            Changed::Retire(_) => {}
        }
    }
}
