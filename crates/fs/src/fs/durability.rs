//! Calls that make data durable or take them away, and commits of the journal.

use super::*;

impl FileSystem {
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
                    // Pages that changed during their write-back are still dirty: repeats.
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

    /// Deletes a file. Its dirty pages are never written.
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
            // The mapping blocks name the file's blocks, so they are read first.
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

    pub(super) fn drop_dirty(&mut self, number: u32) {
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

    /// Releases pages and blocks of a deleted file; the blocks become free once the deletion commits.
    pub(super) fn free_file(&mut self, number: u32, now: u64) {
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

    pub(super) fn free_blocks(&mut self, first: u32, blocks: u32, now: u64) {
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

    /// Drops every clean page and all clean metadata (`drop_caches`).
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

    /// Allocates a file of `bytes` without a request, as on a device that was filled before.
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

    /// Advances a commit as far as possible: see [`Journal`] for its stages.
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
                            // Checked again at the next completion.
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
    pub(super) fn write_log(&mut self, mut blocks: u32, fua: bool) {
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

    pub(super) fn committed(&mut self, now: u64) {
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

    /// The time when the running transaction, if any, is old enough to be committed.
    pub(crate) fn commit_due(&self) -> Option<u64> {
        self.journal.due(self.settings.commit_every.0)
    }

    /// Begins a commit if it is due or was requested.
    pub(crate) fn commit_if_due(&mut self, now: u64) {
        if self.journal.is_idle() && self.commit_due().is_some_and(|due| due <= now) {
            self.commit_on(now);
        }
    }
}
