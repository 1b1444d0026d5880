//! Flexible data placement (NVM Express Base 2.1, section 8.1.10): each handle that the host names has a reclaim unit of its own,
//! and pages that cleaning moves stay with their handle or share a unit.
//!
//! ```text
//!   host write of handle h ─► frontier h
//!   moved by cleaning      ─► frontier h           persistently isolated
//!                          └► one frontier for all  initially isolated
//! ```
//!
//! A reclaim unit is a block of the geometry: with `geometry.superblock = "drive"`, a block of every plane. There is one reclaim
//! group. A handle that there is not means handle 0, as the specification has it. State: a byte for each logical page, the handle
//! that wrote it last.
//!
//! It counts who wrote and who was moved: a page that is moved counts for its handle, and for the handle that wrote last before,
//! since its writes made the room necessary.

use super::{HandleCounts, HostWrite, PlacementContext, PlacementPolicy, Relocation};
use flashwright_block::MOVES_MAX;
use flashwright_nand::{Lpn, table};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// What becomes of pages that cleaning moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// Moved pages of all handles share a reclaim unit.
    Initial,
    /// Moved pages stay in units of their handle.
    #[default]
    Persistent,
}

/// Settings of `placement.policy = "fdp"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct FdpSettings {
    /// Number of handles, including handle 0: 1 to 64.
    #[schemars(range(min = 1, max = 64))]
    pub handles: u8,
    /// What becomes of pages that cleaning moves.
    pub isolation: Isolation,
}

impl Default for FdpSettings {
    fn default() -> Self {
        Self { handles: 8, isolation: Isolation::Persistent }
    }
}

/// Pages of a handle that cleaning moved together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MovedRun {
    /// The handle.
    pub handle: u8,
    /// The first of them; the others need not follow it.
    pub first: Lpn,
    /// How many.
    pub pages: u32,
}

/// The handle of a page that nobody wrote since the drive was built or mounted; it counts for the handle of its block, or for
/// handle 0.
const UNKNOWN: u8 = u8::MAX;

/// `placement.policy = "fdp"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fdp {
    handles: u8,
    isolation: Isolation,
    /// By logical page, the handle that wrote it last.
    owners: Vec<u8>,
    /// The handle that wrote last.
    writer: u8,
    counts: Vec<HandleCounts>,
    /// The handles whose moved pages are noted, a bit for each, and those notes.
    #[serde(skip)]
    watched: u64,
    #[serde(skip)]
    noted: VecDeque<MovedRun>,
}

impl Fdp {
    /// The handle of a page.
    #[inline]
    fn owner(&self, lpn: usize) -> u8 {
        let owner = self.owners[lpn];
        if owner == UNKNOWN { 0 } else { owner }
    }

    #[cold]
    fn note(&mut self, lpns: &[u32]) {
        let mut rest = lpns;
        while let Some(first) = rest.first() {
            let handle = self.owner(*first as usize);
            let count = rest.iter().take_while(|lpn| self.owner(**lpn as usize) == handle).count();
            rest = &rest[count..];
            if self.watched & 1 << handle != 0 {
                self.noted.truncate(MOVES_MAX - 1);
                self.noted.push_front(MovedRun { handle, first: Lpn(*first), pages: count as u32 });
            }
        }
    }

    /// Number of handles.
    #[must_use]
    pub fn handle_count(&self) -> u8 {
        self.handles
    }

    /// What becomes of pages that cleaning moves.
    #[must_use]
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// Chooses the handles whose moved pages are noted, a bit for each.
    pub fn watch(&mut self, handles: u64) {
        self.watched = handles;
    }

    /// Takes the latest notes, in order.
    pub fn take_noted(&mut self) -> impl Iterator<Item = MovedRun> {
        std::mem::take(&mut self.noted).into_iter().rev()
    }
}

impl PlacementPolicy for Fdp {
    const NAME: &'static str = "fdp";
    const ABOUT: &'static str =
        "a frontier for each handle of flexible data placement; moved pages isolated or together (NVMe 2.1)";
    const SMALL: &'static [&'static str] = &["handles=3"];
    type Settings = FdpSettings;

    fn new(settings: &FdpSettings, context: PlacementContext) -> Self {
        let handles = settings.handles.clamp(1, 64);
        let counts = HandleCounts { pages_moved_for: vec![0; usize::from(handles)], ..HandleCounts::default() };
        Self {
            handles,
            isolation: settings.isolation,
            owners: table(UNKNOWN, context.logical_pages as usize),
            writer: 0,
            counts: vec![counts; usize::from(handles)],
            watched: 0,
            noted: VecDeque::new(),
        }
    }
    fn streams(&self) -> u8 {
        self.handles + u8::from(self.isolation == Isolation::Initial)
    }
    #[inline]
    fn host(&mut self, write: HostWrite) -> u8 {
        let handle = u8::try_from(write.stream).ok().filter(|stream| *stream < self.handles).unwrap_or(0);
        self.owners[write.lpn.index()] = handle;
        self.writer = handle;
        self.counts[usize::from(handle)].pages_written += 1;
        handle
    }
    #[inline]
    fn relocation(&mut self, page: Relocation) -> u8 {
        let owner = &mut self.owners[page.lpn.index()];
        if *owner == UNKNOWN && page.old_stream() < self.handles {
            *owner = page.old_stream(); // as before the drive was mounted
        }
        match self.isolation {
            Isolation::Initial => self.handles,
            Isolation::Persistent => self.owner(page.lpn.index()),
        }
    }
    fn moved(&mut self, lpns: &[u32]) {
        for lpn in lpns {
            let owner = self.owner(*lpn as usize);
            self.counts[usize::from(owner)].pages_moved_for[usize::from(self.writer)] += 1;
        }
        if self.watched != 0 {
            self.note(lpns);
        }
    }
    fn handles(&self) -> &[HandleCounts] {
        &self.counts
    }
    fn reset_figures(&mut self) {
        for counts in &mut self.counts {
            counts.pages_written = 0;
            counts.pages_moved_for.fill(0);
        }
    }
}
