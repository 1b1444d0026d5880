//! Block allocation.

use super::*;

impl FileSystem {
    /// Chooses blocks for the file until `until` have one. With `wait` it stops at a bitmap that is not in memory and
    /// returns what to wait for; otherwise it starts the read and continues.
    pub(super) fn allocate(
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

    pub(super) fn add_map_block(&mut self, number: u32, block: u32, now: u64) {
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

    /// The next block for a file: from its reservation, else the first free one from its goal on.
    pub(super) fn next_block(
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

    pub(super) fn take_block(&mut self, block: u32, now: u64) {
        self.space.take(block);
        let group = self.space.group_of(block);
        let (bitmap, descriptor) = (self.space.groups[group as usize].block_bitmap, self.space.descriptor(group));
        self.touch(bitmap, now);
        self.touch(descriptor, now);
    }

    /// The start of the first run of `wanted` free blocks from `goal` on, or of the longest run examined.
    pub(super) fn find_run(&self, goal: u32, wanted: u32) -> Option<u32> {
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

    /// No block is free: blocks of deleted files become free once their transaction commits.
    pub(super) fn no_room(&mut self, thread: u32) -> Result<Need, SourceError> {
        if self.journal.frees_pending() {
            self.journal.want();
            self.waits.committed.push(thread);
            return Ok(Need::Commit);
        }
        Err(SourceError(format!(
            "file system: found no free block for more than {} files and {} directories; give the workload fewer or smaller \
             files, or a larger device",
            self.files.iter().filter(|file| file.live).count(),
            self.directories.len() - 1
        )))
    }
}
