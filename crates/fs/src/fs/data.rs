//! Calls that read and write a file.

use super::*;

impl FileSystem {
    /// Processor time of the calls that end in `done..done + bytes` when each carries `unit` bytes.
    pub(super) fn calls_cost(&self, done: u64, bytes: u64, unit: u64) -> u64 {
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
    pub(super) fn write_page(
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
            // A partial write to a page that is on the device but not in memory: the page is read first.
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
            // A block is reserved but not chosen; some more are reserved for its mapping.
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

    /// Reads a page that is not in memory, and pages after it if the program continues where it was (`get_init_ra_size`
    /// of Linux 2.6.24: four times or twice what is asked for, up to the limit).
    pub(super) fn read_missing(&mut self, task: &mut Task, number: u32, index: u32, start: u32, wanted: u32) {
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

    /// Starts to read the next window when a marked page is reached: four times or twice the last one.
    pub(super) fn read_on(&mut self, task: &mut Task, number: u32, index: u32) {
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

    /// Starts to read pages from `index` on; the thread waits for the first.
    pub(super) fn bring_in(&mut self, task: &mut Task, number: u32, index: u32, pages: u32) {
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
    pub(super) fn submit_reads(&mut self, number: u32, first: u32, pages: u32, thread: u32) {
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
}
