//! Dirty pages, and when they go to the device.

use super::*;

impl FileSystem {
    pub(super) fn over_throttle(&self) -> bool {
        self.dirty + self.writeback > self.throttle_pages
    }

    /// A slot for a page not in memory; none if all memory is dirty or in transfer.
    #[inline]
    pub(super) fn take_slot(&mut self, file: u32, index: u32) -> Option<u32> {
        let (slot, left) = self.cache.take(file, index)?;
        if let Some((file, index)) = left {
            self.files[file as usize].set_slot(index, NONE);
        }
        self.files[file as usize].set_slot(index, slot);
        Some(slot)
    }

    pub(super) fn wait_for_room(&mut self, thread: u32) -> Step {
        self.waits.room.push(thread);
        Step::Blocked
    }

    /// Makes a page in memory dirty.
    #[inline]
    pub(super) fn dirty_page(&mut self, number: u32, index: u32, slot: u32, now: u64) {
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

    /// Queues requests for at most `most` dirty pages of a file, from where the last call stopped; returns the number
    /// of pages.
    pub(super) fn write_pages(&mut self, number: u32, most: u32, process: u32, now: u64) -> Result<u32, SourceError> {
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
                // The blocks of all pages up to the end are chosen together, which is the purpose of delayed
                // allocation.
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
    pub(super) fn join_ordered(&mut self, number: u32) {
        if self.settings.journal != JournalMode::Ordered {
            return;
        }
        let file = &mut self.files[number as usize];
        if file.ordered_in != self.journal.running() {
            file.ordered_in = self.journal.running();
            self.journal.add_file(number, file.generation);
        }
    }

    /// Write-back when nobody waits: beyond the background limit, or of data that has grown old. Call it when the queue
    /// of writes is empty; it queues the pages of one file. Returns whether there was anything to do.
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
}
