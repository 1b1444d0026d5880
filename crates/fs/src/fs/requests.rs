//! Requests to the device, and metadata in memory.

use super::*;

impl FileSystem {
    pub(super) fn new_io(&mut self, load: Load, kind: RequestKind, block: u32, blocks: u32, process: u32) -> u32 {
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

    pub(super) fn wait_for_io(&mut self, io: u32, thread: u32) -> Step {
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

    pub(super) fn pages_written(&mut self, number: u32, first: u32, blocks: u32) {
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

    pub(super) fn wake_if_all_written(&mut self) {
        if self.writeback == 0 && self.home_in_flight == 0 {
            self.wakes.append(&mut self.waits.all_written);
        }
    }

    /// Ensures that a block of metadata is in memory; if not, starts to read it and returns the request to wait for.
    pub(super) fn want_meta(&mut self, block: u32, process: u32) -> Option<u32> {
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
    pub(super) fn want_all(&mut self, blocks: &[u32], thread: u32) -> Option<Step> {
        let mut last = None;
        for block in blocks {
            last = self.want_meta(*block, thread + 1).or(last);
        }
        last.map(|io| self.wait_for_io(io, thread))
    }

    /// A block of metadata changes.
    pub(super) fn touch(&mut self, block: u32, now: u64) {
        self.meta_cached.insert(block);
        if self.settings.journal == JournalMode::None {
            if self.home_dirty.insert(block) {
                self.home.push_back((block, now));
            }
        } else {
            // Blocks of a transaction are not written home before it commits.
            self.home_dirty.remove(block);
            self.journal.join(block, now);
        }
    }

    /// A file's inode changes; `data` where its size or its blocks do.
    pub(super) fn touch_inode(&mut self, number: u32, data: bool, now: u64) {
        let file = &mut self.files[number as usize];
        file.transaction = self.journal.running();
        if data {
            file.transaction_data = self.journal.running();
        }
        let block = self.space.inode_block(file.inode);
        self.touch(block, now);
    }

    /// A block of metadata is freed: it is no longer written.
    pub(super) fn forget_meta(&mut self, block: u32) {
        self.home_dirty.remove(block);
        self.meta_cached.remove(block);
        self.journal.forget(block);
    }

    /// Metadata that goes home: all that is not in a transaction, or what is older than `before`.
    pub(super) fn write_home(&mut self, before: Option<u64>, process: u32) {
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
    pub(super) fn blocks_per_request(&self) -> u32 {
        match self.settings.request_unit {
            RequestUnit::Block => 1,
            RequestUnit::Run => u32::try_from(self.settings.request_max.0 / BLOCK_BYTES).unwrap_or(u32::MAX).max(1),
        }
    }
}
