//! The file system: files on blocks, pages in memory, what is written when.
//!
//! A call of a program is carried out in slices. Where it has to wait (for a page, for room, for a commit), the thread
//! is noted in the list of what it waits for and the call answers [`Step::Blocked`]; woken, it is carried out again and
//! looks at everything anew. What goes to the device is put in two queues, reads and writes, that the owner empties.
//!
//! Kept at all times, and checked by [`FileSystem::audit`]:
//! - no block belongs to two files, to a file and the tables, or to a file and the free ones;
//! - a page that is dirty, under write-back or being read is in memory;
//! - a page is under write-back in one request at most, so that the order of requests decides nothing.

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
/// Blocks that ext3 sets aside for a file being written: from 8, doubling, up to 1,024.
const WINDOW_MIN: u32 = 8;
const WINDOW_MAX: u32 = 1024;
/// Groups that go together with extents (mke2fs' `flex_bg` of 16; their tables are not moved together here).
const FLEX_GROUPS: u32 = 16;
/// Runs that an allocation by extents looks at before it takes the longest of them (ours).
const RUNS_TRIED: u32 = 64;
/// The longest run of an allocation by extents: 8 MiB (the largest size mballoc rounds up to).
const EXTENT_TRIED_MAX: u32 = 2048;

/// How far a slice of a call got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The call is done, after so much processor time.
    Done(u64),
    /// There is more to do, after so much processor time.
    More(u64),
    /// The thread is woken when there is something to go on with.
    Blocked,
}

/// Where a thread's call stands.
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

/// What a request on its way carries.
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
    /// Metadata to its place.
    Home,
    /// To the journal, or the flush around it.
    Log,
    /// A flush that a thread waits for.
    Flush,
}

/// A request that waits to be handed over, or is at the device.
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

/// What the model counted.
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
    /// Metadata newer than at its place and in no transaction under way.
    home_dirty: Bits,
    /// (block, since) in order of time; entries no longer in `home_dirty` are passed over.
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
    /// Pages made dirty, for a twin: (file, page); none where nobody listens.
    dirtied: Option<Vec<(u32, u32)>>,
}

impl FileSystem {
    /// A file system made anew over `blocks` blocks.
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
    /// What was counted since the start.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }
    /// Blocks that belong to nobody.
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
    /// The first block of the inode table, directory data and so on of a group, for tests: where its data begins.
    #[must_use]
    pub fn group_data(&self, group: usize) -> Option<u32> {
        self.space.groups.get(group).map(|group| group.data)
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
    /// Begins to keep the pages that are made dirty, for a twin that holds this model against its own books.
    pub fn keep_dirtied(&mut self) {
        self.dirtied = Some(Vec::new());
    }
    /// The pages made dirty since [`FileSystem::keep_dirtied`], as (file, page), in order.
    #[must_use]
    pub fn dirtied(&self) -> &[(u32, u32)] {
        self.dirtied.as_deref().unwrap_or_default()
    }

    // ---- requests ----------------------------------------------------------------------------------------------

    fn new_io(&mut self, load: Load, kind: RequestKind, block: u32, blocks: u32, process: u32) -> u32 {
        match self.ios_free.pop() {
            Some(io) => {
                let entry = &mut self.ios[io as usize];
                (entry.load, entry.kind, entry.block, entry.blocks) = (load, kind, block, blocks);
                (entry.fua, entry.process) = (false, process);
                io
            }
            None => {
                self.ios.push(Io { load, kind, block, blocks, fua: false, process, waiters: Vec::new() });
                u32::try_from(self.ios.len() - 1).expect("fewer requests than pages")
            }
        }
    }

    #[inline]
    pub(crate) fn io(&self, io: u32) -> &Io {
        &self.ios[io as usize]
    }

    fn wait_for_io(&mut self, io: u32, thread: u32) -> Step {
        self.ios[io as usize].waiters.push(thread);
        Step::Blocked
    }

    /// A request is done.
    pub(crate) fn io_done(&mut self, io: u32, now: u64) {
        let Io { load, blocks, block, .. } = self.ios[io as usize];
        match load {
            Load::PagesIn { file, first } => {
                for index in first..first + blocks {
                    let slot = self.files[file as usize].slot(index);
                    self.cache.set_io(slot, NONE);
                    self.cache.list(slot);
                }
                self.files[file as usize].reading_pages -= blocks;
                self.wakes.append(&mut self.waits.room);
            }
            Load::PagesOut { file, first } => self.pages_written(file, first, blocks),
            Load::MetaIn => {
                self.meta_cached.insert(block);
                self.meta_reading.retain(|(_, other)| *other != io);
            }
            Load::Home => {
                self.home_in_flight -= blocks;
                self.wake_if_all_written();
            }
            Load::Log => self.journal.pending -= 1,
            Load::Flush => {}
        }
        let mut waiters = std::mem::take(&mut self.ios[io as usize].waiters);
        self.wakes.append(&mut waiters);
        self.ios[io as usize].waiters = waiters;
        self.ios_free.push(io);
        if !self.journal.is_idle() {
            self.commit_on(now);
        }
    }

    fn pages_written(&mut self, number: u32, first: u32, blocks: u32) {
        let file = &mut self.files[number as usize];
        for index in first..first + blocks {
            file.writeback.remove(index);
            if !file.dirty.has(index) {
                let slot = file.slot(index);
                self.cache.list(slot);
            }
        }
        file.writeback_pages -= blocks;
        self.writeback -= blocks;
        if file.writeback_pages == 0 && !self.waits.written.is_empty() {
            let wakes = &mut self.wakes;
            self.waits.written.retain(|(waited, thread)| {
                if *waited == number {
                    wakes.push(*thread);
                }
                *waited != number
            });
        }
        if !self.waits.throttled.is_empty() && !self.over_throttle() {
            self.wakes.append(&mut self.waits.throttled);
        }
        self.wakes.append(&mut self.waits.room);
        self.wake_if_all_written();
    }

    fn wake_if_all_written(&mut self) {
        if self.writeback == 0 && self.home_in_flight == 0 {
            self.wakes.append(&mut self.waits.all_written);
        }
    }

    // ---- metadata ----------------------------------------------------------------------------------------------

    /// Sees that a block of metadata is in memory; if not, has it read and answers the request to wait for.
    fn want_meta(&mut self, block: u32, process: u32) -> Option<u32> {
        if self.meta_cached.has(block) {
            return None;
        }
        if let Some((_, io)) = self.meta_reading.iter().find(|(wanted, _)| *wanted == block) {
            return Some(*io);
        }
        let io = self.new_io(Load::MetaIn, RequestKind::Read, block, 1, process);
        self.reads.push_back(io);
        self.meta_reading.push((block, io));
        self.counts.metadata_blocks_read += 1;
        Some(io)
    }

    /// As [`FileSystem::want_meta`] for several; the thread waits for the last.
    fn want_all(&mut self, blocks: &[u32], thread: u32) -> Option<Step> {
        let mut last = None;
        for block in blocks {
            last = self.want_meta(*block, thread + 1).or(last);
        }
        last.map(|io| self.wait_for_io(io, thread))
    }

    /// A block of metadata changes.
    fn touch(&mut self, block: u32, now: u64) {
        self.meta_cached.insert(block);
        if self.settings.journal == JournalMode::None {
            if self.home_dirty.insert(block) {
                self.home.push_back((block, now));
            }
        } else {
            // What is in a transaction is not written home before that commits.
            self.home_dirty.remove(block);
            self.journal.join(block, now);
        }
    }

    /// A file's inode changes; `data` where its size or its blocks do.
    fn touch_inode(&mut self, number: u32, data: bool, now: u64) {
        let file = &mut self.files[number as usize];
        file.transaction = self.journal.running();
        if data {
            file.transaction_data = self.journal.running();
        }
        let block = self.space.inode_block(file.inode);
        self.touch(block, now);
    }

    /// A block of metadata is freed: nobody writes it any more.
    fn forget_meta(&mut self, block: u32) {
        self.home_dirty.remove(block);
        self.meta_cached.remove(block);
        self.journal.forget(block);
    }

    /// Metadata that goes home: all that is not in a transaction, or what is older than `before`.
    fn write_home(&mut self, before: Option<u64>, process: u32) {
        let mut blocks = std::mem::take(&mut self.scratch);
        blocks.clear();
        while let Some((block, since)) = self.home.front().copied() {
            if before.is_some_and(|before| since > before) {
                break;
            }
            self.home.pop_front();
            if self.home_dirty.remove(block) {
                blocks.push(block);
            }
        }
        blocks.sort_unstable();
        let max = self.blocks_per_request();
        let mut at = 0;
        while at < blocks.len() {
            let first = blocks[at];
            let mut run = 1;
            while run < max && blocks.get(at + run as usize) == Some(&(first + run)) {
                run += 1;
            }
            let io = self.new_io(Load::Home, RequestKind::Write, first, run, process);
            self.writes.push_back(io);
            self.home_in_flight += run;
            at += run as usize;
        }
        self.counts.metadata_blocks_written += blocks.len() as u64;
        self.scratch = blocks;
    }

    #[inline]
    fn blocks_per_request(&self) -> u32 {
        match self.settings.request_unit {
            RequestUnit::Block => 1,
            RequestUnit::Run => u32::try_from(self.settings.request_max.0 / BLOCK_BYTES).unwrap_or(u32::MAX).max(1),
        }
    }

    // ---- blocks of files ---------------------------------------------------------------------------------------

    /// Chooses blocks for the file until `until` have one. With `wait` it stops where a bitmap is not in memory and
    /// answers what to wait for; else it has it read and goes on.
    fn allocate(
        &mut self,
        number: u32,
        until: u32,
        thread: u32,
        wait: bool,
        now: u64,
    ) -> Result<Option<Need>, SourceError> {
        let layout = self.settings.layout;
        while self.files[number as usize].allocated < until {
            let file = &self.files[number as usize];
            let (next, mapped) = (file.allocated, file.map.len());
            let is_map = layout == Layout::Ext3 && mapped < file.map_blocks_needed(layout, next);
            let ahead = if layout == Layout::Extents { until - next } else { 0 };
            let block = match self.next_block(number, thread, wait, ahead, now)? {
                Ok(block) => block,
                Err(need) => return Ok(Some(need)),
            };
            if is_map {
                self.add_map_block(number, block, now);
            } else {
                self.files[number as usize].push(block);
                let file = &self.files[number as usize];
                if layout == Layout::Ext3
                    && let Some(map) = file.map.last().copied()
                    && file.map_blocks_needed(layout, next) > 0
                {
                    self.touch(map, now);
                }
            }
        }
        while layout == Layout::Extents
            && self.files[number as usize].map.len() < self.files[number as usize].map_blocks_needed(layout, 0)
        {
            let last = self.files[number as usize].last_block;
            match self.next_block(number, thread, wait, 1, now)? {
                Ok(block) => self.add_map_block(number, block, now),
                Err(need) => return Ok(Some(need)),
            }
            self.files[number as usize].last_block = last;
        }
        self.touch_inode(number, true, now);
        Ok(None)
    }

    fn add_map_block(&mut self, number: u32, block: u32, now: u64) {
        let file = &mut self.files[number as usize];
        file.map.push(block);
        file.last_block = Some(block);
        // A double indirect block names the new indirect one.
        if file.map.len() > 2 {
            let double = file.map[1];
            self.touch(double, now);
        }
        self.touch(block, now);
    }

    /// The next block for a file: from what is set aside for it, else the first free from its goal on.
    fn next_block(
        &mut self,
        number: u32,
        thread: u32,
        wait: bool,
        ahead: u32,
        now: u64,
    ) -> Result<Result<u32, Need>, SourceError> {
        let file = &mut self.files[number as usize];
        while file.window.0 < file.window.1 {
            let block = file.window.0;
            file.window.0 += 1;
            self.space.give_back(block, block + 1);
            if self.space.is_free(block) {
                self.take_block(block, now);
                return Ok(Ok(block));
            }
        }
        let goal = match file.last_block {
            Some(last) => last + 1,
            None => {
                let group = file.inode / self.space.inodes_per_group;
                match self.settings.layout {
                    Layout::Ext3 => {
                        // ext3 spreads processes over a group: the colour of a process is its number modulo 16.
                        let group = &self.space.groups[group as usize];
                        group.data.max(group.start + (thread + 1) % 16 * (GROUP_BLOCKS / 16))
                    }
                    Layout::Extents => {
                        // ext4 keeps the first of 16 groups that go together for directories (`ext4_inode_to_goal_block`).
                        let first = group / FLEX_GROUPS * FLEX_GROUPS + 1;
                        self.space.groups.get(first as usize).unwrap_or(&self.space.groups[group as usize]).data
                    }
                }
            }
        };
        let found = match self.settings.layout {
            Layout::Ext3 => self.space.find_block(goal),
            Layout::Extents => self.find_run(goal, ahead.min(EXTENT_TRIED_MAX)),
        };
        let Some(found) = found else {
            return self.no_room(thread).map(Err);
        };
        let bitmap = self.space.groups[self.space.group_of(found) as usize].block_bitmap;
        if let Some(io) = self.want_meta(bitmap, thread + 1)
            && wait
        {
            return Ok(Err(Need::Io(io)));
        }
        let file = &mut self.files[number as usize];
        let window = match self.settings.layout {
            Layout::Ext3 => {
                file.window_blocks = (file.window_blocks * 2).clamp(WINDOW_MIN, WINDOW_MAX);
                file.window_blocks
            }
            Layout::Extents => ahead,
        };
        // Not past the group: the next has a bitmap of its own.
        let window = window.min((found / GROUP_BLOCKS + 1).saturating_mul(GROUP_BLOCKS) - found);
        let run = self.space.run_at(found, window);
        if run > 1 {
            self.space.set_aside(found + 1, found + run);
            file.window = (found + 1, found + run);
        }
        self.take_block(found, now);
        Ok(Ok(found))
    }

    fn take_block(&mut self, block: u32, now: u64) {
        self.space.take(block);
        let group = self.space.group_of(block);
        let (bitmap, descriptor) = (self.space.groups[group as usize].block_bitmap, self.space.descriptor(group));
        self.touch(bitmap, now);
        self.touch(descriptor, now);
    }

    /// The start of the first run of `wanted` free blocks from `goal` on, or of the longest of those looked at.
    fn find_run(&self, goal: u32, wanted: u32) -> Option<u32> {
        let (mut best, mut longest, mut at) = (None, 0, goal);
        for _ in 0..RUNS_TRIED {
            let found = self.space.find_block(at)?;
            let run = self.space.run_at(found, wanted);
            if run >= wanted {
                return Some(found);
            }
            if run > longest || best.is_none() {
                (best, longest) = (Some(found), run);
            }
            at = found + run.max(1);
        }
        best
    }

    /// No block is free: those of deleted files are once their transaction commits.
    fn no_room(&mut self, thread: u32) -> Result<Need, SourceError> {
        if self.journal.frees_pending() {
            self.journal.want();
            self.waits.committed.push(thread);
            return Ok(Need::Commit);
        }
        Err(SourceError(format!(
            "file system: found no free block, expected room for {} files; give the workload fewer or smaller files, or a \
             larger device",
            self.files.iter().filter(|file| file.live).count()
        )))
    }

    // ---- pages -------------------------------------------------------------------------------------------------

    fn over_throttle(&self) -> bool {
        self.dirty + self.writeback > self.throttle_pages
    }

    /// A slot for a page not in memory; none if all memory is dirty or on its way.
    #[inline]
    fn take_slot(&mut self, file: u32, index: u32) -> Option<u32> {
        let (slot, left) = self.cache.take(file, index)?;
        if let Some((file, index)) = left {
            self.files[file as usize].set_slot(index, NONE);
        }
        self.files[file as usize].set_slot(index, slot);
        Some(slot)
    }

    fn wait_for_room(&mut self, thread: u32) -> Step {
        self.waits.room.push(thread);
        Step::Blocked
    }

    /// Makes a page in memory dirty.
    #[inline]
    fn dirty_page(&mut self, number: u32, index: u32, slot: u32, now: u64) {
        self.cache.unlist(slot);
        let file = &mut self.files[number as usize];
        if file.dirty.insert(index) {
            file.dirty_pages += 1;
            self.dirty += 1;
            if index >= file.allocated {
                self.delayed += 1;
            }
            if file.dirty_pages == 1 {
                file.dirty_since = now;
                self.dirty_files.push_back((number, file.generation));
            }
        }
        if let Some(dirtied) = &mut self.dirtied {
            dirtied.push((number, index));
        }
    }

    /// Puts requests for at most `most` dirty pages of a file in the queue, from where the last call stopped; says how
    /// many pages.
    fn write_pages(&mut self, number: u32, most: u32, process: u32, now: u64) -> Result<u32, SourceError> {
        let pages = self.files[number as usize].pages();
        let per_request = self.blocks_per_request();
        let mut queued = 0;
        let mut from = self.files[number as usize].cursor.min(pages);
        let begun = from;
        let mut wrapped = false;
        while queued < most {
            let file = &self.files[number as usize];
            let end = if wrapped { begun } else { pages };
            let Some(first) = file.dirty.next(from, end) else {
                if wrapped || begun == 0 {
                    break;
                }
                (wrapped, from) = (true, 0);
                continue;
            };
            if file.writeback.has(first) {
                from = first + 1;
                continue;
            }
            if first >= file.allocated {
                // The blocks of all pages up to the end are chosen at once: that is what delaying is for.
                let before = file.allocated;
                let need = self.allocate(number, pages, process.saturating_sub(1), false, now)?;
                let chosen = self.files[number as usize].allocated - before;
                self.delayed -= chosen;
                self.join_ordered(number);
                if need.is_some() && self.files[number as usize].allocated <= first {
                    break;
                }
            }
            let (block, follow) = self.files[number as usize].place(first).expect("an allocated page has a place");
            let file = &mut self.files[number as usize];
            let longest = follow.min(per_request).min(most - queued).min(end - first);
            let mut run = 0;
            while run < longest && file.dirty.has(first + run) && !file.writeback.has(first + run) {
                file.dirty.remove(first + run);
                file.writeback.insert(first + run);
                run += 1;
            }
            file.dirty_pages -= run;
            file.writeback_pages += run;
            self.dirty -= run;
            self.writeback += run;
            let io = self.new_io(Load::PagesOut { file: number, first }, RequestKind::Write, block, run, process);
            self.writes.push_back(io);
            queued += run;
            from = first + run;
        }
        let file = &mut self.files[number as usize];
        file.cursor = if file.dirty_pages == 0 { 0 } else { from };
        Ok(queued)
    }

    /// Puts the file in the running transaction's list of data that goes first.
    fn join_ordered(&mut self, number: u32) {
        if self.settings.journal != JournalMode::Ordered {
            return;
        }
        let file = &mut self.files[number as usize];
        if file.ordered_in != self.journal.running() {
            file.ordered_in = self.journal.running();
            self.journal.add_file(number, file.generation);
        }
    }

    /// Write-back when nobody waits: beyond the background limit, or of data that has grown old. To be called when the
    /// queue of writes is empty; puts the pages of one file in it. Says whether there was anything to do.
    pub(crate) fn flush_some(&mut self, process: u32, now: u64) -> Result<bool, SourceError> {
        let background = self.dirty > self.background_pages;
        if !background && self.flush_before.is_none() {
            return Ok(false);
        }
        loop {
            let next = self.dirty_files.front().copied().or_else(|| {
                std::mem::swap(&mut self.dirty_files, &mut self.dirty_more);
                self.dirty_files.front().copied()
            });
            let Some((number, generation)) = next else {
                self.flush_before = None;
                return Ok(false);
            };
            let file = &self.files[number as usize];
            if file.generation != generation || file.dirty_pages == 0 {
                self.dirty_files.pop_front();
                continue;
            }
            if !background && self.flush_before.is_none_or(|before| file.dirty_since > before) {
                if self.dirty_more.is_empty() {
                    self.flush_before = None;
                    return Ok(false);
                }
                std::mem::swap(&mut self.dirty_files, &mut self.dirty_more);
                let old = self.dirty_files.front().is_some_and(|(other, _)| {
                    self.flush_before.is_some_and(|before| self.files[*other as usize].dirty_since <= before)
                });
                while let Some(rest) = self.dirty_more.pop_front() {
                    self.dirty_files.push_back(rest);
                }
                if !old {
                    self.flush_before = None;
                    return Ok(false);
                }
                continue;
            }
            self.dirty_files.pop_front();
            let queued = self.write_pages(number, self.settings.flush_pages, process, now)?;
            if self.files[number as usize].dirty_pages > 0 {
                self.dirty_more.push_back((number, generation));
            }
            // Nothing of it could go if all its dirty pages are under write-back from before.
            return Ok(queued > 0);
        }
    }

    /// The clock of old data ticks.
    pub(crate) fn flush_tick(&mut self, process: u32, now: u64) {
        if let Some(before) = now.checked_sub(self.settings.flush_age.0) {
            self.flush_before = Some(before);
            self.write_home(Some(before), process);
        }
    }

    // ---- calls -------------------------------------------------------------------------------------------------

    /// Makes a directory below the root; directories are numbered from 1 in order.
    pub(crate) fn make_directory(&mut self, task: &mut Task, now: u64) -> Result<Step, SourceError> {
        // Chosen anew if the thread waited: the draw is repeated only then.
        let groups = self.space.groups.len() as u64;
        if task.transaction == 0 {
            task.transaction = 1 + below(&mut self.rng, groups);
        }
        let start = u32::try_from(task.transaction - 1).expect("at most 2^17 groups");
        let group = match self.settings.layout {
            Layout::Ext3 => self.space.directory_group(start),
            Layout::Extents => self.space.directory_group(start) / FLEX_GROUPS * FLEX_GROUPS,
        };
        let Some(inode) = self.space.find_inode(group) else { return Err(self.no_inode()) };
        let entry = self.directories[0].entries;
        if let Some(step) = self.want_for_new(inode, 0, entry, task.thread) {
            return Ok(step);
        }
        let group = inode / self.space.inodes_per_group;
        let bitmap = self.space.groups[group as usize].block_bitmap;
        if let Some(step) = self.want_all(&[bitmap], task.thread) {
            return Ok(step);
        }
        let Some(block) = self.space.find_block(self.space.groups[group as usize].data) else {
            return self.no_room(task.thread).map(|_| Step::Blocked);
        };
        if !self.add_entry(0, entry, task.thread, now)? {
            return Ok(Step::Blocked);
        }
        self.directories[0].entries += 1;
        self.take_block(block, now);
        self.new_inode(inode, now);
        self.space.groups[group as usize].directories += 1;
        self.touch(block, now);
        self.directories.push(Directory { inode, group, blocks: vec![block], entries: 0, entries_free: Vec::new() });
        Ok(Step::Done(self.settings.call_time.0))
    }

    fn no_inode(&self) -> SourceError {
        SourceError(format!(
            "file system: found no free inode, expected fewer than {} files; give the workload fewer files or a larger device",
            u64::from(self.space.inodes_per_group) * self.space.groups.len() as u64
        ))
    }

    /// Blocks to be in memory before an inode and its name can be made.
    fn want_for_new(&mut self, inode: u32, directory: u32, entry: u32, thread: u32) -> Option<Step> {
        let inode_bitmap = self.space.groups[(inode / self.space.inodes_per_group) as usize].inode_bitmap;
        let table = self.space.inode_block(inode);
        let parent = self.space.inode_block(self.directories[directory as usize].inode);
        let names = self.directories[directory as usize].blocks.get((entry / ENTRIES_PER_BLOCK) as usize).copied();
        // A block of the table without another inode in use is not read but made.
        let table = if self.space.inode_block_in_use(inode) { table } else { inode_bitmap };
        self.want_all(&[inode_bitmap, table, parent, names.unwrap_or(parent)], thread)
    }

    /// Room for a name; false if the thread has to wait for a commit to get a block.
    fn add_entry(&mut self, directory: u32, entry: u32, thread: u32, now: u64) -> Result<bool, SourceError> {
        let at = (entry / ENTRIES_PER_BLOCK) as usize;
        if at == self.directories[directory as usize].blocks.len() {
            let goal = self.directories[directory as usize].blocks.last().map_or(0, |last| last + 1);
            let Some(block) = self.space.find_block(goal) else {
                return self.no_room(thread).map(|_| false);
            };
            self.take_block(block, now);
            self.directories[directory as usize].blocks.push(block);
        }
        self.touch_name(directory, entry, now);
        Ok(true)
    }

    /// A name in a directory changes, and with it the directory's times.
    fn touch_name(&mut self, directory: u32, entry: u32, now: u64) {
        let Directory { inode, ref blocks, .. } = self.directories[directory as usize];
        let block = blocks[(entry / ENTRIES_PER_BLOCK) as usize];
        let table = self.space.inode_block(inode);
        self.touch(block, now);
        self.touch(table, now);
    }

    fn new_inode(&mut self, inode: u32, now: u64) {
        self.space.take_inode(inode);
        self.touch_inode_tables(inode, now);
    }

    fn touch_inode_tables(&mut self, inode: u32, now: u64) {
        let group = inode / self.space.inodes_per_group;
        let (bitmap, descriptor) = (self.space.groups[group as usize].inode_bitmap, self.space.descriptor(group));
        let table = self.space.inode_block(inode);
        self.touch(bitmap, now);
        self.touch(descriptor, now);
        self.touch(table, now);
    }

    /// Makes an empty file under a number that no file has.
    pub(crate) fn create(&mut self, task: &Task, number: u32, directory: u32, now: u64) -> Result<Step, SourceError> {
        let Some(inode) = self.space.find_inode(self.directories[directory as usize].group) else {
            return Err(self.no_inode());
        };
        let parent = &self.directories[directory as usize];
        let entry = parent.entries_free.last().copied().unwrap_or(parent.entries);
        if let Some(step) = self.want_for_new(inode, directory, entry, task.thread) {
            return Ok(step);
        }
        if !self.add_entry(directory, entry, task.thread, now)? {
            return Ok(Step::Blocked);
        }
        let parent = &mut self.directories[directory as usize];
        if parent.entries_free.pop().is_none() {
            parent.entries += 1;
        }
        self.new_inode(inode, now);
        while self.files.len() <= number as usize {
            self.files.push(File::nothing());
        }
        let running = self.journal.running();
        let file = &mut self.files[number as usize];
        assert!(!file.live, "a file is created under a number of its own");
        file.renew();
        (file.live, file.directory, file.entry, file.inode) = (true, directory, entry, inode);
        (file.transaction, file.transaction_data) = (running, running);
        Ok(Step::Done(self.settings.call_time.0))
    }

    /// Finds a file by name.
    pub(crate) fn look_up(&mut self, task: &Task, number: u32) -> Step {
        let file = &self.files[number as usize];
        assert!(file.live, "a program names files that there are");
        let table = self.space.inode_block(file.inode);
        let names = self.directories[file.directory as usize].blocks[(file.entry / ENTRIES_PER_BLOCK) as usize];
        self.want_all(&[names, table], task.thread).unwrap_or(Step::Done(self.settings.call_time.0))
    }

    pub(crate) fn open(&mut self, task: &Task, number: u32) -> Step {
        let step = self.look_up(task, number);
        if matches!(step, Step::Done(_)) {
            self.files[number as usize].openers += 1;
        }
        step
    }

    pub(crate) fn close(&mut self, number: u32) -> Step {
        let file = &mut self.files[number as usize];
        file.openers -= 1;
        if file.openers == 0 {
            self.end_window(number);
        }
        Step::Done(self.settings.call_time.0)
    }

    fn end_window(&mut self, number: u32) {
        let file = &mut self.files[number as usize];
        self.space.give_back(file.window.0, file.window.1);
        (file.window, file.window_blocks) = ((0, 0), 0);
    }

    /// Processor time of the calls that end in `done..done + bytes` when each carries `unit` bytes.
    fn calls_cost(&self, done: u64, bytes: u64, unit: u64) -> u64 {
        ((done + bytes).div_ceil(unit) - done.div_ceil(unit)) * self.settings.call_time.0
    }

    /// Writes `bytes` at `offset`, at most the file's size, in calls of `unit` bytes.
    pub(crate) fn write(&mut self, task: &mut Task, what: Extent, now: u64) -> Result<Step, SourceError> {
        let Extent { file: number, offset, bytes, unit } = what;
        assert!(task.done > 0 || offset <= self.files[number as usize].size, "files have no holes");
        if self.over_throttle() {
            self.counts.throttled += 1;
            self.waits.throttled.push(task.thread);
            return Ok(Step::Blocked);
        }
        let (mut cost, mut pages) = (0, 0);
        while task.done < bytes && pages < SLICE_PAGES {
            let at = offset + task.done;
            let index = u32::try_from(at / BLOCK_BYTES).expect("a file is smaller than 16 TiB");
            let part = (BLOCK_BYTES - at % BLOCK_BYTES).min(bytes - task.done);
            match self.write_page(task, number, index, at, part, bytes - task.done, now)? {
                None if pages == 0 => return Ok(Step::Blocked),
                None => break,
                Some(()) => {}
            }
            cost += self.calls_cost(task.done, part, unit) + self.settings.page_time.0 * part / BLOCK_BYTES;
            task.done += part;
            pages += 1;
            let file = &mut self.files[number as usize];
            file.size = file.size.max(at + part);
            self.counts.pages_written += 1;
        }
        Ok(if task.done < bytes { Step::More(cost) } else { Step::Done(cost) })
    }

    /// Writes within one page; none if the thread waits.
    #[allow(clippy::too_many_arguments)] // one place calls it, in a loop
    fn write_page(
        &mut self,
        task: &mut Task,
        number: u32,
        index: u32,
        at: u64,
        part: u64,
        left: u64,
        now: u64,
    ) -> Result<Option<()>, SourceError> {
        let file = &self.files[number as usize];
        let grows = at + part > file.size;
        let mut slot = file.slot(index);
        if slot == NONE
            && at % BLOCK_BYTES + part < BLOCK_BYTES
            && (at + part < file.size || !at.is_multiple_of(BLOCK_BYTES))
        {
            // Part of a page that is on the device and not here: it is read first.
            if u64::from(index) * BLOCK_BYTES < file.size {
                self.bring_in(task, number, index, 1);
                return Ok(None);
            }
        }
        if slot != NONE && self.cache.slot(slot).io != NONE {
            let io = self.cache.slot(slot).io;
            self.wait_for_io(io, task.thread);
            return Ok(None);
        }
        let fresh = index >= self.files[number as usize].allocated;
        if fresh && self.settings.layout == Layout::Ext3 {
            let pages_left = u32::try_from(left.div_ceil(BLOCK_BYTES)).unwrap_or(u32::MAX).min(SLICE_PAGES);
            match self.allocate(number, index + pages_left, task.thread, true, now)? {
                None => {}
                Some(Need::Io(io)) => {
                    self.wait_for_io(io, task.thread);
                    return Ok(None);
                }
                Some(Need::Commit) => return Ok(None),
            }
        } else if fresh && slot == NONE && self.delayed + 64 > self.space.blocks_free {
            // A block is promised though not chosen; some are kept for what maps it.
            self.no_room(task.thread)?;
            return Ok(None);
        }
        if slot == NONE {
            match self.take_slot(number, index) {
                Some(taken) => slot = taken,
                None => {
                    self.wait_for_room(task.thread);
                    return Ok(None);
                }
            }
        }
        self.dirty_page(number, index, slot, now);
        self.touch_inode(number, grows, now);
        if self.settings.layout == Layout::Ext3 {
            self.join_ordered(number);
        }
        Ok(Some(()))
    }

    /// Reads `bytes` at `offset` in calls of `unit` bytes.
    pub(crate) fn read(&mut self, task: &mut Task, what: Extent, now: u64) -> Step {
        let Extent { file: number, offset, bytes, unit } = what;
        let bytes = bytes.min(self.files[number as usize].size.saturating_sub(offset));
        let (mut cost, mut pages) = (0, 0);
        while task.done < bytes && pages < SLICE_PAGES {
            let at = offset + task.done;
            let index = u32::try_from(at / BLOCK_BYTES).expect("a file is smaller than 16 TiB");
            let part = (BLOCK_BYTES - at % BLOCK_BYTES).min(bytes - task.done);
            let slot = self.files[number as usize].slot(index);
            let first_look = task.missed != index + 1;
            if slot == NONE || self.cache.slot(slot).io != NONE {
                if pages > 0 {
                    break;
                }
                if first_look {
                    self.counts.pages_read += 1;
                    task.missed = index + 1;
                }
                if slot == NONE {
                    let wanted = u32::try_from(unit.div_ceil(BLOCK_BYTES)).unwrap_or(u32::MAX);
                    let start = u32::try_from(offset / BLOCK_BYTES).expect("a file is smaller than 16 TiB");
                    self.read_missing(task, number, index, start, wanted);
                } else {
                    self.read_on(task, number, index);
                    let io = self.cache.slot(slot).io;
                    self.wait_for_io(io, task.thread);
                }
                return Step::Blocked;
            }
            if first_look {
                self.counts.pages_read += 1;
                self.counts.page_hits += 1;
            }
            self.cache.used(slot);
            self.read_on(task, number, index);
            cost += self.calls_cost(task.done, part, unit) + self.settings.page_time.0 * part / BLOCK_BYTES;
            task.done += part;
            pages += 1;
        }
        if task.done < bytes {
            return Step::More(cost);
        }
        if self.settings.atimes() && bytes > 0 {
            self.touch_inode(number, false, now);
        }
        Step::Done(cost.max(self.settings.call_time.0))
    }

    /// Reads a page that is not in memory, and others after it where the program reads on from where it was
    /// (`get_init_ra_size` of Linux 2.6.24: four times or twice what is asked for, up to the limit).
    fn read_missing(&mut self, task: &mut Task, number: u32, index: u32, start: u32, wanted: u32) {
        let max = u32::try_from(self.settings.read_ahead.0 / BLOCK_BYTES).unwrap_or(u32::MAX).max(1);
        let wanted = wanted.clamp(1, max);
        let sequential = task.done > 0 || index == 0 || index != start;
        let size = match wanted.next_power_of_two() {
            _ if !sequential => wanted,
            size if size <= max / 32 => size * 4,
            size if size <= max / 4 => size * 2,
            _ => max,
        };
        task.ahead = Window { start: index, size, lead: if sequential { size - wanted.min(size) } else { 0 } };
        self.bring_in(task, number, index, size);
    }

    /// Has the next window read when a page is reached that says so: four times or twice the last one.
    fn read_on(&mut self, task: &mut Task, number: u32, index: u32) {
        let Window { start, size, lead } = task.ahead;
        if lead == 0 || index != start + size - lead {
            return;
        }
        let max = u32::try_from(self.settings.read_ahead.0 / BLOCK_BYTES).unwrap_or(u32::MAX).max(1);
        let next = if size < max / 16 { size * 4 } else { (size * 2).min(max) };
        task.ahead = Window { start: start + size, size: next, lead: next };
        let file = &self.files[number as usize];
        if start + size < file.pages() {
            let first = start + size;
            let [upper, lower] = file.map_blocks_of(self.settings.layout, first);
            let known = [upper, lower].into_iter().flatten().all(|block| self.meta_cached.has(block));
            if known {
                self.submit_reads(number, first, next, task.thread);
            }
        }
    }

    /// Has pages read from `index` on, and the thread wait for the first.
    fn bring_in(&mut self, task: &mut Task, number: u32, index: u32, pages: u32) {
        let map = self.files[number as usize].map_blocks_of(self.settings.layout, index);
        for block in map.into_iter().flatten() {
            if let Some(io) = self.want_meta(block, task.thread + 1) {
                self.wait_for_io(io, task.thread);
                return;
            }
        }
        self.submit_reads(number, index, pages, task.thread);
        let slot = self.files[number as usize].slot(index);
        if slot == NONE {
            self.wait_for_room(task.thread);
        } else {
            let io = self.cache.slot(slot).io;
            self.wait_for_io(io, task.thread);
        }
    }

    /// Puts reads of those pages of `first..first + pages` in the queue that are not in memory.
    fn submit_reads(&mut self, number: u32, first: u32, pages: u32, thread: u32) {
        let max = u32::try_from(self.settings.request_max.0 / BLOCK_BYTES).unwrap_or(u32::MAX).max(1);
        let file = &self.files[number as usize];
        let end = file.pages().min(file.allocated).min(first.saturating_add(pages));
        let mut index = first;
        while index < end {
            let file = &self.files[number as usize];
            if file.slot(index) != NONE {
                index += 1;
                continue;
            }
            let (block, follow) = file.place(index).expect("an allocated page has a place");
            let longest = follow.min(max).min(end - index);
            let io = self.new_io(Load::PagesIn { file: number, first: index }, RequestKind::Read, block, 0, thread + 1);
            let mut run = 0;
            while run < longest && self.files[number as usize].slot(index + run) == NONE {
                let Some(slot) = self.take_slot(number, index + run) else { break };
                self.cache.set_io(slot, io);
                run += 1;
            }
            if run == 0 {
                self.ios_free.push(io);
                return;
            }
            self.ios[io as usize].blocks = run;
            self.files[number as usize].reading_pages += run;
            self.reads.push_back(io);
            index += run;
        }
    }

    /// Makes a file durable; with `data_only` without its times (`fdatasync`).
    pub(crate) fn fsync(
        &mut self,
        task: &mut Task,
        number: u32,
        data_only: bool,
        now: u64,
    ) -> Result<Step, SourceError> {
        loop {
            match task.done {
                0 => {
                    self.write_pages(number, u32::MAX, task.thread + 1, now)?;
                    task.done = 1;
                }
                1 => {
                    let file = &self.files[number as usize];
                    if file.writeback_pages > 0 {
                        self.waits.written.push((number, task.thread));
                        return Ok(Step::Blocked);
                    }
                    // Pages that were under write-back when they changed again are left: once more.
                    task.done = if file.dirty_pages > 0 { 0 } else { 2 };
                }
                2 => {
                    let file = &self.files[number as usize];
                    let wanted = if data_only { file.transaction_data } else { file.transaction };
                    if self.settings.journal != JournalMode::None && wanted > self.journal.committed() {
                        if wanted == self.journal.running() {
                            self.journal.want();
                        }
                        self.waits.committed.push(task.thread);
                        task.transaction = wanted;
                        return Ok(Step::Blocked);
                    }
                    task.done = 3;
                    if self.settings.barriers() && task.transaction == 0 {
                        let io = self.new_io(Load::Flush, RequestKind::Flush, 0, 0, task.thread + 1);
                        self.writes.push_back(io);
                        return Ok(self.wait_for_io(io, task.thread));
                    }
                }
                _ => return Ok(Step::Done(self.settings.call_time.0)),
            }
        }
    }

    /// Writes everything, metadata to its place included.
    pub(crate) fn sync(&mut self, task: &mut Task, now: u64) -> Result<Step, SourceError> {
        loop {
            match task.done {
                0 => {
                    for number in 0..u32::try_from(self.files.len()).expect("files are numbered in 32 bits") {
                        if self.files[number as usize].dirty_pages > 0 {
                            self.write_pages(number, u32::MAX, task.thread + 1, now)?;
                        }
                    }
                    task.done = 1;
                }
                1 => {
                    if self.writeback > 0 {
                        self.waits.all_written.push(task.thread);
                        return Ok(Step::Blocked);
                    }
                    task.done = if self.dirty > 0 { 0 } else { 2 };
                }
                2 => {
                    if task.transaction == 0 {
                        task.transaction = self.journal.newest();
                    }
                    if task.transaction > self.journal.committed() {
                        self.journal.want();
                        self.waits.committed.push(task.thread);
                        return Ok(Step::Blocked);
                    }
                    task.done = 3;
                    self.write_home(None, task.thread + 1);
                }
                _ => {
                    if self.home_in_flight > 0 {
                        self.waits.all_written.push(task.thread);
                        return Ok(Step::Blocked);
                    }
                    return Ok(Step::Done(self.settings.call_time.0));
                }
            }
        }
    }

    /// Deletes a file. Dirty pages that were not written yet never will be.
    pub(crate) fn delete(&mut self, task: &Task, number: u32, now: u64) -> Step {
        if let Step::Blocked = self.look_up(task, number) {
            return Step::Blocked;
        }
        let file = &self.files[number as usize];
        assert!(file.openers == 0, "a program closes a file before it deletes it");
        let (inode, directory, entry) = (file.inode, file.directory, file.entry);
        let group = &self.space.groups[(inode / self.space.inodes_per_group) as usize];
        let parent = self.space.inode_block(self.directories[directory as usize].inode);
        if let Some(step) = self.want_all(&[group.inode_bitmap, parent], task.thread) {
            return step;
        }
        let file = std::mem::replace(&mut self.files[number as usize], File::nothing());
        let mut waited = None;
        for run in &file.runs {
            let bitmap = self.space.groups[self.space.group_of(run.physical) as usize].block_bitmap;
            waited = self.want_meta(bitmap, task.thread + 1).or(waited);
        }
        for block in &file.map {
            // What the file's blocks are is read from them.
            waited = self.want_meta(*block, task.thread + 1).or(waited);
        }
        self.files[number as usize] = file;
        if let Some(io) = waited {
            return self.wait_for_io(io, task.thread);
        }
        self.drop_dirty(number);
        let file = &self.files[number as usize];
        if file.writeback_pages > 0 {
            self.waits.written.push((number, task.thread));
            return Step::Blocked;
        }
        if file.reading_pages > 0 {
            let io = file.slots.iter().filter(|slot| **slot != NONE).map(|slot| self.cache.slot(*slot).io);
            let io = io.into_iter().find(|io| *io != NONE).expect("a page being read names its request");
            return self.wait_for_io(io, task.thread);
        }
        self.end_window(number);
        self.free_file(number, now);
        self.directories[directory as usize].entries_free.push(entry);
        self.touch_name(directory, entry, now);
        self.touch_inode_tables(inode, now);
        self.space.free_inode(inode);
        Step::Done(self.settings.call_time.0)
    }

    fn drop_dirty(&mut self, number: u32) {
        let file = &mut self.files[number as usize];
        let pages = file.pages();
        let mut from = 0;
        while let Some(index) = file.dirty.next(from, pages) {
            file.dirty.remove(index);
            file.dirty_pages -= 1;
            self.dirty -= 1;
            self.delayed -= u32::from(index >= file.allocated);
            self.counts.pages_dropped += 1;
            if !file.writeback.has(index) {
                let slot = file.slot(index);
                self.cache.list(slot);
            }
            from = index + 1;
        }
        if !self.waits.throttled.is_empty() && !self.over_throttle() {
            self.wakes.append(&mut self.waits.throttled);
        }
        self.wakes.append(&mut self.waits.room);
    }

    /// Gives pages and blocks of a deleted file back; the blocks are free once the deletion commits.
    fn free_file(&mut self, number: u32, now: u64) {
        let mut file = std::mem::replace(&mut self.files[number as usize], File::nothing());
        for slot in file.slots.iter().filter(|slot| **slot != NONE) {
            self.cache.release(*slot);
        }
        for run in &file.runs {
            self.free_blocks(run.physical, run.blocks, now);
        }
        for block in &file.map {
            self.forget_meta(*block);
            self.free_blocks(*block, 1, now);
        }
        file.live = false;
        self.files[number as usize] = file;
    }

    fn free_blocks(&mut self, first: u32, blocks: u32, now: u64) {
        let (from, to) = (self.space.group_of(first), self.space.group_of(first + blocks - 1));
        for group in from..=to {
            let (bitmap, descriptor) = (self.space.groups[group as usize].block_bitmap, self.space.descriptor(group));
            self.touch(bitmap, now);
            self.touch(descriptor, now);
        }
        if self.settings.journal == JournalMode::None {
            self.space.free(first, blocks);
        } else {
            self.journal.free_later(first, blocks);
        }
    }

    /// Forgets every clean page and all metadata that is at its place (`drop_caches`).
    pub(crate) fn drop_caches(&mut self) -> Step {
        while let Some(slot) = self.cache.oldest() {
            let entry = *self.cache.slot(slot);
            self.files[entry.file as usize].set_slot(entry.index, NONE);
            self.cache.release(slot);
        }
        let kept: Vec<u32> =
            (0..self.space.blocks).filter(|block| self.home_dirty.has(*block) || self.journal.holds(*block)).collect();
        self.meta_cached.clear();
        kept.into_iter().for_each(|block| {
            self.meta_cached.insert(block);
        });
        let descriptors = self.space.descriptor(u32::try_from(self.space.groups.len()).expect("at most 2^17") - 1);
        (0..=descriptors).for_each(|block| {
            self.meta_cached.insert(block);
        });
        Step::Done(self.settings.call_time.0)
    }

    /// Gives a file of `bytes` its blocks without a request, as a device holds it that was filled before.
    ///
    /// # Errors
    /// [`SourceError`] if there is no room.
    pub(crate) fn place_file(&mut self, number: u32, bytes: u64) -> Result<(), SourceError> {
        self.files[number as usize].size = bytes;
        let pages = self.files[number as usize].pages();
        if self.allocate(number, pages, 0, false, 0)?.is_some() {
            return Err(SourceError(
                "file system: found no room for the files to begin with; expected a larger device".into(),
            ));
        }
        self.end_window(number);
        Ok(())
    }

    // ---- commits -----------------------------------------------------------------------------------------------

    /// Takes a commit as far as it gets: see [`Journal`] for its stages.
    pub(crate) fn commit_on(&mut self, now: u64) {
        use crate::journal::Stage;
        loop {
            match self.journal.stage {
                Stage::Idle => {
                    if !self.journal.begin(now) {
                        return;
                    }
                }
                Stage::Data { at, queued } => {
                    let Some((number, generation)) = self.journal.ordered_file(at) else {
                        self.journal.stage = if queued { Stage::Room } else { Stage::Data { at: 0, queued: true } };
                        continue;
                    };
                    let file = &self.files[number as usize];
                    if file.live && file.generation == generation {
                        if !queued && self.settings.layout == Layout::Ext3 && file.dirty_pages > 0 {
                            self.write_pages(number, u32::MAX, self.journal.process, now)
                                .expect("pages of ext3 have their blocks");
                        }
                        if queued && self.files[number as usize].writeback_pages > 0 {
                            // Looked at again at the next completion.
                            return;
                        }
                    }
                    self.journal.stage = Stage::Data { at: at + 1, queued };
                }
                Stage::Room => {
                    if self.journal.has_room() {
                        self.journal.stage = Stage::Log;
                        continue;
                    }
                    self.counts.checkpoints += 1;
                    self.write_home(None, self.journal.process);
                    self.journal.stage = Stage::Checkpoint;
                }
                Stage::Checkpoint => {
                    if self.home_in_flight > 0 {
                        return;
                    }
                    self.journal.emptied();
                    self.journal.stage = Stage::Log;
                }
                Stage::Log => {
                    let blocks = self.journal.log();
                    self.write_log(blocks, false);
                    self.journal.stage = Stage::Logged;
                }
                Stage::Logged => {
                    if self.journal.pending > 0 {
                        return;
                    }
                    if self.settings.barriers() {
                        let io = self.new_io(Load::Log, RequestKind::Flush, 0, 0, self.journal.process);
                        self.writes.push_back(io);
                        self.journal.pending += 1;
                    }
                    self.journal.stage = Stage::Flushed;
                }
                Stage::Flushed => {
                    if self.journal.pending > 0 {
                        return;
                    }
                    self.write_log(1, self.settings.barriers());
                    self.journal.stage = Stage::Recorded;
                }
                Stage::Recorded => {
                    if self.journal.pending > 0 {
                        return;
                    }
                    self.committed(now);
                }
            }
        }
    }

    /// Puts the next `blocks` of the journal in the queue.
    fn write_log(&mut self, mut blocks: u32, fua: bool) {
        self.counts.journal_blocks += u64::from(blocks);
        let max = self.blocks_per_request();
        while blocks > 0 {
            let (block, run) = self.journal.append(blocks.min(max));
            let io = self.new_io(Load::Log, RequestKind::Write, block, run, self.journal.process);
            self.ios[io as usize].fua = fua;
            self.writes.push_back(io);
            self.journal.pending += 1;
            blocks -= run;
        }
    }

    fn committed(&mut self, now: u64) {
        self.counts.commits += 1;
        for at in 0..self.journal.committing_blocks() {
            if let Some(block) = self.journal.release(at)
                && self.home_dirty.insert(block)
            {
                self.home.push_back((block, now));
            }
        }
        while let Some((first, blocks)) = self.journal.next_free() {
            self.space.free(first, blocks);
        }
        self.journal.end();
        self.wakes.append(&mut self.waits.committed);
    }

    // ---- audit -------------------------------------------------------------------------------------------------

    /// Walks the whole state and says what contradicts. Costs time in proportion to the device.
    #[must_use]
    pub fn audit(&self) -> Vec<String> {
        let mut found = Vec::new();
        self.space.audit(&mut found);
        let mut owned = Bits::with_room(self.space.blocks);
        let mut own = |block: u32, owner: String, free: bool| {
            if !owned.insert(block) {
                found.push(format!("block {block} of {owner} has another owner"));
            }
            if free {
                found.push(format!("block {block} of {owner} is counted as free"));
            }
        };
        for (number, file) in self.files.iter().enumerate().filter(|(_, file)| file.live) {
            for run in &file.runs {
                (run.physical..run.physical + run.blocks)
                    .for_each(|block| own(block, format!("file {number}"), self.space.is_free(block)));
            }
            file.map.iter().for_each(|block| own(*block, format!("map of file {number}"), self.space.is_free(*block)));
        }
        for directory in &self.directories {
            directory.blocks.iter().for_each(|block| own(*block, "a directory".into(), self.space.is_free(*block)));
        }
        for (first, blocks) in self.journal.runs().iter().chain(self.journal.frees()) {
            (*first..first + blocks)
                .for_each(|block| own(block, "the journal or a deletion".into(), self.space.is_free(block)));
        }
        for group in &self.space.groups {
            (group.start..group.data).for_each(|block| own(block, "a table".into(), self.space.is_free(block)));
        }
        let (mut dirty, mut writeback, mut resident, mut used) = (0, 0, 0, 0);
        for group in &self.space.groups {
            used += group.end - group.start - group.blocks_free;
        }
        if owned.count() != u64::from(used) {
            found.push(format!("{used} blocks in use, but {} have an owner", owned.count()));
        }
        for (number, file) in self.files.iter().enumerate() {
            let counts = (file.dirty.count(), file.writeback.count());
            if counts != (u64::from(file.dirty_pages), u64::from(file.writeback_pages)) {
                found.push(format!("file {number} counts other dirty pages than it has"));
            }
            dirty += file.dirty_pages;
            writeback += file.writeback_pages;
            for (index, slot) in file.slots.iter().enumerate().filter(|(_, slot)| **slot != NONE && file.live) {
                resident += 1;
                let index = u32::try_from(index).expect("a file is smaller than 16 TiB");
                let busy = file.dirty.has(index) || file.writeback.has(index) || self.cache.slot(*slot).io != NONE;
                let entry = self.cache.slot(*slot);
                if (entry.file as usize, entry.index) != (number, index) || self.cache.is_clean(*slot) == busy {
                    found.push(format!("page {index} of file {number} is in the wrong list or slot"));
                }
            }
        }
        if (dirty, writeback, resident) != (self.dirty, self.writeback, self.cache.resident()) {
            found.push(format!(
                "dirty, under write-back, in memory: counted {} {} {}, recounted {dirty} {writeback} {resident}",
                self.dirty,
                self.writeback,
                self.cache.resident()
            ));
        }
        found
    }

    /// When the running transaction is old enough to be committed, if there is one.
    pub(crate) fn commit_due(&self) -> Option<u64> {
        self.journal.due(self.settings.commit_every.0)
    }

    /// Begins a commit if it is time or somebody asked.
    pub(crate) fn commit_if_due(&mut self, now: u64) {
        if self.journal.is_idle() && self.commit_due().is_some_and(|due| due <= now) {
            self.commit_on(now);
        }
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
