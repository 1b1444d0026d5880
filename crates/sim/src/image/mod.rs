//! The image of a drive: a file that holds what its chips hold, so that the drive outlives the process.
//!
//! ```text
//!   Medium ─► Mirror: programmed, erased, retired ─► Image ─► pwrite        (each change, as it is done)
//!                     sync                        ─►       ─► fdatasync     (before a flush is answered)
//!   Medium ◄────────────────────────────── load ◄─────────── file           (then the drive is mounted by scan)
//! ```
//!
//! **A killed process** leaves the file as after a power cut: every change that was done is in the page cache. The content of a page is
//! written before its slot, so a page whose program was not finished is still erased.
//!
//! **A crash of the machine** may keep any of the writes since the last sync, and lose any others. What makes that safe:
//!
//! - Slots lie within a sector, which a disk writes whole or not at all. A slot has the checksum of its page's content; where they
//!   differ, the page is torn.
//! - *Epochs* are the times between syncs. A page names the epoch in which it was written, a block the last one that a sync covered,
//!   with the number of its pages up to then and the sum of their checksums. So what a sync covered is known, and if it is not there as
//!   it was, it is damaged and not torn.
//! - An erase must not overtake the copies that it relies on. So it syncs first, if a page was programmed since the last sync. Then it
//!   only marks its block as *dying*, and nothing of the block is overwritten before the next sync makes the mark last: programming a
//!   dying block syncs first too. A dying block without a page of the next generation counts as not erased; its pages outrank nothing.
//!   A crash therefore loses programs of one clean at most, as a power cut does, and a mount finds a free block.
//! - A block that stays erased until the sync after that gives its space back to the file system.
//!
//! **A write that fails** ends the image: nothing further is written, so that the file stays what it was, and every sync fails.

mod create;
mod header;
mod layout;
mod load;
mod record;
mod writer;

pub(crate) use create::Creating;
pub(crate) use header::Header;
pub(crate) use writer::Image;

use flashwright_block::system_says;
use std::fmt;
use std::io;
use std::path::Path;

/// Why an image can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageError {
    /// One line: which image, and what is wrong.
    pub what: String,
    /// What to do about it; may be empty.
    pub hint: String,
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for ImageError {}

impl ImageError {
    pub(crate) fn new(path: &Path, what: &str, hint: &str) -> Self {
        Self { what: format!("image {}: {what}", path.display()), hint: hint.to_owned() }
    }

    fn hint(self, hint: &str) -> Self {
        Self { hint: hint.to_owned(), ..self }
    }

    fn damaged(path: &Path, what: &str) -> Self {
        Self::new(
            path,
            &format!("damaged: {what}"),
            "it can't be repaired, since older data would appear in place of what is lost; take a copy that is whole",
        )
    }

    fn system(path: &Path, doing: &str, error: &io::Error) -> Self {
        Self::new(path, &format!("{doing}: {}", system_says(error)), "")
    }
}

#[cfg(test)]
mod drive_tests;
#[cfg(test)]
mod tests;
