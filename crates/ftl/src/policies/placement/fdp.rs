//! Flexible data placement (NVM Express Base 2.1, section 8.1.10): each handle that the host names has a reclaim unit of its own,
//! and pages that cleaning moves stay with their handle or share a unit.
//!
//! ```text
//!   host write of handle h ─► frontier h
//!   moved by cleaning      ─► frontier h           persistently isolated
//!                          └► one frontier for all  initially isolated
//! ```
//!
//! A reclaim unit is a block of the geometry: with `geometry.superblock = "drive"`, a block of every plane of its group. Which group a page
//! goes to is not asked here: [`crate::planes`] deals planes to groups. An identifier of which there is no group or no handle means
//! handle 0 of group 0. State: a byte for each logical page, the handle that wrote it last.
//!
//! It counts who wrote and who was moved: a page that is moved counts for its handle, and for the handle that wrote last before,
//! since its writes made the room necessary.

use super::{HandleCounts, HostWrite, PlacementContext, PlacementPolicy, Relocation};
use flashwright_block::{GroupBits, MOVES_MAX};
use flashwright_nand::{Lpn, Ppn, table};
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
    /// Number of reclaim groups, 1 to 256 and a divisor of the dies. Each is on dies of its own, which cleaning never leaves, and every handle has
    /// units in each. Dies are dealt in the order of turns, as to `placement.sets`, which must be 1 with it; with `geometry.superblock = "drive"`, whose
    /// blocks then span the dies of a group, over channels first. The highest bits of a request's stream, as few as number all groups, are the group,
    /// the others the handle: of two groups, 32770 is handle 2 of group 1. No stream, or one that there is not, is handle 0 of group 0. A group
    /// holds at most its part of the logical space. What is written to it beyond that goes to the same handle of the group with the most room, so
    /// that no write fails while the drive has room.
    #[schemars(range(min = 1, max = 256))]
    pub groups: u16,
}

impl Default for FdpSettings {
    fn default() -> Self {
        Self { handles: 8, isolation: Isolation::Persistent, groups: 1 }
    }
}

/// The groups and handles that there are, and how they are named.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Named {
    groups: u16,
    handles: u8,
    bits: GroupBits,
}

impl Named {
    /// Those of a drive that places by handle.
    pub fn of(settings: &FdpSettings) -> Self {
        let groups = settings.groups.clamp(1, 256);
        Self { groups, handles: settings.handles.clamp(1, 64), bits: GroupBits::of(groups) }
    }

    /// Number of groups.
    pub fn groups(self) -> u16 {
        self.groups
    }

    /// The group and the handle that a stream names, if there are such.
    pub fn exactly(self, stream: u32) -> Option<(u16, u8)> {
        let (group, handle) = self.bits.split(u16::try_from(stream).ok()?);
        let handle = u8::try_from(handle).ok().filter(|handle| *handle < self.handles)?;
        (group < self.groups).then_some((group, handle))
    }

    /// The same; handle 0 of group 0 if there are none such.
    pub fn of_stream(self, stream: u32) -> (u16, u8) {
        self.exactly(stream).unwrap_or((0, 0))
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
    /// Where the first of them lies now.
    pub to: Ppn,
}

/// The handle of a page that nobody wrote since the drive was built or mounted; it counts for the handle of its block, or for
/// handle 0.
const UNKNOWN: u8 = u8::MAX;

/// `placement.policy = "fdp"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fdp {
    handles: u8,
    named: Named,
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

    /// The handle of a stream whose number is no handle of group 0.
    #[cold]
    fn handle_beyond(&self, stream: u32) -> u8 {
        self.named.of_stream(stream).1
    }

    #[cold]
    fn note(&mut self, lpns: &[u32], to: Ppn) {
        let mut rest = lpns;
        while let Some(first) = rest.first() {
            let (handle, done) = (self.owner(*first as usize), lpns.len() - rest.len());
            let count = rest.iter().take_while(|lpn| self.owner(**lpn as usize) == handle).count();
            rest = &rest[count..];
            if self.watched & 1 << handle != 0 {
                self.noted.truncate(MOVES_MAX - 1);
                self.noted.push_front(MovedRun {
                    handle,
                    first: Lpn(*first),
                    pages: count as u32,
                    to: Ppn(to.0 + done as u32),
                });
            }
        }
    }

    /// Number of handles.
    #[must_use]
    pub fn handle_count(&self) -> u8 {
        self.handles
    }

    /// The groups and handles that there are.
    pub(crate) fn named(&self) -> Named {
        self.named
    }

    /// Number of reclaim groups.
    #[must_use]
    pub fn group_count(&self) -> u16 {
        self.named.groups
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
        let named = Named::of(settings);
        let handles = named.handles;
        let counts = HandleCounts { pages_moved_for: vec![0; usize::from(handles)], ..HandleCounts::default() };
        Self {
            handles,
            named,
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
        let handle = match u8::try_from(write.stream) {
            Ok(handle) if handle < self.handles => handle,
            _ => self.handle_beyond(write.stream),
        };
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
    fn moved(&mut self, lpns: &[u32], to: Ppn) {
        for lpn in lpns {
            let owner = self.owner(*lpn as usize);
            self.counts[usize::from(owner)].pages_moved_for[usize::from(self.writer)] += 1;
        }
        if self.watched != 0 {
            self.note(lpns, to);
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
