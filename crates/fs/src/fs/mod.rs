//! The file system: files on blocks, pages in memory, and the times of writes.
//!
//! A call of a program is executed in slices. If it has to wait (for a page, for room, for a commit), the thread joins
//! the list of waiters and the call returns [`Step::Blocked`]; when it is woken, it is executed again and checks
//! everything again. Requests to the device go into two queues, reads and writes, that the owner empties.
//!
//! Invariants, checked by [`FileSystem::audit`]:
//! - no block belongs to two files, to a file and the tables, or to a file and the free ones;
//! - a page that is dirty, under write-back or being read is in memory;
//! - a page is under write-back in at most one request, so that the order of requests does not matter.

mod allocation;
mod audit;
mod data;
mod durability;
mod names;
mod requests;
mod write_back;

use crate::Misfit;
use crate::bits::Bits;
use crate::cache::{Cache, NONE};
use crate::file::{Directory, File, Run};
use crate::journal::Journal;
use crate::settings::{BLOCK_BYTES, JournalMode, Layout, RequestUnit, Settings};
use crate::space::{GROUP_BLOCKS, Space};
use flashwright_block::{RequestKind, Rng, Seed, SourceError, below};
use std::collections::VecDeque;

/// Pages that a call gets through before others get their turn.
const SLICE_PAGES: u32 = 32;
/// Names in a block of a directory: 4 KiB over some 20 bytes (an entry's head of 8 and a short name; ours).
const ENTRIES_PER_BLOCK: u32 = 204;
/// Blocks that ext3 reserves for a file being written: from 8, doubling, up to 1,024.
const WINDOW_MIN: u32 = 8;
const WINDOW_MAX: u32 = 1024;
/// Groups that go together with extents (mke2fs' `flex_bg` of 16; their tables are not moved together here).
const FLEX_GROUPS: u32 = 16;
/// Runs that an allocation by extents looks at before it takes the longest of them (ours).
const RUNS_TRIED: u32 = 64;
/// The longest run of an allocation by extents: 8 MiB (the largest size mballoc rounds up to).
const EXTENT_TRIED_MAX: u32 = 2048;

/// The result of a slice of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The call is done, after so much processor time.
    Done(u64),
    /// There is more to do, after so much processor time.
    More(u64),
    /// The thread waits and will be woken.
    Blocked,
}

/// The progress of a thread's call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Task {
    pub(crate) thread: u32,
    /// Bytes read or written, or stages passed.
    pub(crate) done: u64,
    /// A transaction to wait for.
    transaction: u64,
    /// The page whose absence was counted already, plus 1.
    missed: u32,
    ahead: Window,
}

impl Task {
    /// The start of a thread's next call.
    pub(crate) fn of(thread: u32) -> Self {
        Self { thread, ..Self::default() }
    }
}

/// Read-ahead: pages `start..start + size` were asked for; the next window is when page `start + size - lead` is read.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    start: u32,
    size: u32,
    lead: u32,
}

/// The content of a request in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    PagesIn {
        file: u32,
        first: u32,
    },
    PagesOut {
        file: u32,
        first: u32,
    },
    MetaIn,
    /// Metadata to its home.
    Home,
    /// To the journal, or the flush around it.
    Log,
    /// A flush that a thread waits for.
    Flush,
}

/// A request that waits to be submitted, or is in the device.
#[derive(Clone, Debug)]
pub(crate) struct Io {
    pub(crate) load: Load,
    pub(crate) kind: RequestKind,
    pub(crate) block: u32,
    pub(crate) blocks: u32,
    pub(crate) fua: bool,
    pub(crate) process: u32,
    waiters: Vec<u32>,
}

/// The counts of the model.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Pages that programs read, and those of them that were in memory when they asked.
    pub pages_read: u64,
    /// See `pages_read`; brought by read-ahead or by an earlier use.
    pub page_hits: u64,
    /// Pages that programs made dirty.
    pub pages_written: u64,
    /// Dirty pages that a deletion dropped: they never reach the device.
    pub pages_dropped: u64,
    /// Transactions committed.
    pub commits: u64,
    /// Blocks written to the journal, descriptors and commit records included.
    pub journal_blocks: u64,
    /// Times that the journal was full and metadata was written home for room.
    pub checkpoints: u64,
    /// Blocks of metadata written to their place.
    pub metadata_blocks_written: u64,
    /// Blocks of metadata read.
    pub metadata_blocks_read: u64,
    /// Times that a writer waited for write-back.
    pub throttled: u64,
}

#[derive(Clone, Debug, Default)]
struct Waits {
    /// (file, thread): until none of its pages is under write-back.
    written: Vec<(u32, u32)>,
    throttled: Vec<u32>,
    room: Vec<u32>,
    committed: Vec<u32>,
    /// Until nothing at all is under write-back.
    all_written: Vec<u32>,
}

/// A file system, its cache and its journal. No clock of its own: calls say when they are.
#[derive(Clone, Debug)]
pub struct FileSystem {
    pub(crate) settings: Settings,
    pub(crate) space: Space,
    files: Vec<File>,
    directories: Vec<Directory>,
    cache: Cache,
    pub(crate) journal: Journal,
    /// Blocks of metadata in memory; they stay there until caches are dropped.
    meta_cached: Bits,
    /// (block, request) of metadata on its way in.
    meta_reading: Vec<(u32, u32)>,
    /// Metadata newer than at its home and in no current transaction.
    home_dirty: Bits,
    /// (block, since) in order of time; entries no longer in `home_dirty` are skipped.
    home: VecDeque<(u32, u64)>,
    home_in_flight: u32,
    ios: Vec<Io>,
    ios_free: Vec<u32>,
    pub(crate) reads: VecDeque<u32>,
    pub(crate) writes: VecDeque<u32>,
    dirty: u32,
    writeback: u32,
    /// Pages not yet given a block.
    delayed: u32,
    dirty_files: VecDeque<(u32, u32)>,
    dirty_more: VecDeque<(u32, u32)>,
    background_pages: u32,
    throttle_pages: u32,
    /// Data older than this is being written back.
    flush_before: Option<u64>,
    waits: Waits,
    pub(crate) wakes: Vec<u32>,
    rng: Rng,
    pub(crate) counts: Counts,
    /// Reused: blocks to be written home.
    scratch: Vec<u32>,
    /// Pages that became dirty, for a reference model: (file, page); none if not requested.
    dirtied: Option<Vec<(u32, u32)>>,
}

impl FileSystem {
    /// A new file system on `blocks` blocks.
    ///
    /// # Errors
    /// [`Misfit`] if the device has no room for the tables and the journal, or is too large.
    pub fn new(settings: Settings, blocks: u64, seed: Seed) -> Result<Self, Misfit> {
        let small = || Misfit {
            what: "file system",
            found: format!("a device of {}", flashwright_block::Bytes(blocks * BLOCK_BYTES)),
            expected: "one of at least 16 MiB and at most 16 TiB".into(),
        };
        let blocks = u32::try_from(blocks).ok().filter(|blocks| *blocks >= 4096).ok_or_else(small)?;
        let mut space = Space::new(blocks, settings.layout).ok_or_else(small)?;
        let journal = Journal::new(&mut space, &settings).ok_or_else(small)?;
        let pages = settings.pages(1.0);
        let mut fs = Self {
            cache: Cache::new(pages),
            background_pages: settings.pages(settings.dirty_background),
            throttle_pages: settings.pages(settings.dirty_throttle),
            settings,
            files: Vec::new(),
            directories: Vec::new(),
            journal,
            meta_cached: Bits::with_room(blocks),
            meta_reading: Vec::new(),
            home_dirty: Bits::with_room(blocks),
            home: VecDeque::new(),
            home_in_flight: 0,
            ios: Vec::new(),
            ios_free: Vec::new(),
            reads: VecDeque::new(),
            writes: VecDeque::new(),
            dirty: 0,
            writeback: 0,
            delayed: 0,
            dirty_files: VecDeque::new(),
            dirty_more: VecDeque::new(),
            flush_before: None,
            waits: Waits::default(),
            wakes: Vec::new(),
            rng: seed.stream("fs.directories"),
            counts: Counts::default(),
            scratch: Vec::new(),
            dirtied: None,
            space,
        };
        // Mounting reads the superblock, the descriptors and the root's inode and block.
        let descriptors = fs.space.descriptor(u32::try_from(fs.space.groups.len()).expect("at most 2^17 groups") - 1);
        (0..=descriptors).for_each(|block| {
            fs.meta_cached.insert(block);
        });
        let root_block = fs.space.find_block(fs.space.groups[0].data).ok_or_else(small)?;
        fs.space.take(root_block);
        fs.directories.push(Directory {
            inode: 1,
            group: 0,
            blocks: vec![root_block],
            entries: 0,
            entries_free: Vec::new(),
        });
        fs.meta_cached.insert(root_block);
        fs.meta_cached.insert(fs.space.inode_block(1));
        Ok(fs)
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }
    /// The counts since the start.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }
    /// Free blocks.
    #[must_use]
    pub fn blocks_free(&self) -> u32 {
        self.space.blocks_free
    }
    /// Bytes of a file; none if there is no such file.
    #[must_use]
    pub fn size(&self, file: u32) -> Option<u64> {
        self.files.get(file as usize).filter(|file| file.live).map(|file| file.size)
    }
    /// Where a file's data lies, in blocks from the device's start.
    #[must_use]
    pub fn runs(&self, file: u32) -> &[Run] {
        self.files.get(file as usize).filter(|file| file.live).map_or(&[], |file| &file.runs)
    }
    /// A file's indirect blocks, or its blocks of extents, in the order in which they were chosen.
    #[must_use]
    pub fn map_blocks(&self, file: u32) -> &[u32] {
        self.files.get(file as usize).filter(|file| file.live).map_or(&[], |file| &file.map)
    }
    /// The journal's runs on the device, as (first block, blocks).
    #[must_use]
    pub fn journal_runs(&self) -> &[(u32, u32)] {
        self.journal.runs()
    }
    /// Pages dirty, and pages under write-back.
    #[must_use]
    pub fn dirty_pages(&self) -> (u32, u32) {
        (self.dirty, self.writeback)
    }
    /// Starts to record pages that become dirty, for a reference model that is compared with this one.
    pub fn keep_dirtied(&mut self) {
        self.dirtied = Some(Vec::new());
    }
    /// The pages that became dirty since [`FileSystem::keep_dirtied`], as (file, page), in order.
    #[must_use]
    pub fn dirtied(&self) -> &[(u32, u32)] {
        self.dirtied.as_deref().unwrap_or_default()
    }
}

/// What an allocation waits for; where it is a commit the thread is in the list of those who wait for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    Io(u32),
    Commit,
}

/// Part of a file, and the size of the calls that read or write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) file: u32,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) unit: u64,
}
