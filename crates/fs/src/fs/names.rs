//! Calls about directories and names.

use super::*;

impl FileSystem {
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
        if !self.add_entry(0, entry, task.thread, now)? {
            return Ok(Step::Blocked);
        }
        // Chosen after the name, which may have taken a block too.
        let Some(block) = self.space.find_block(self.space.groups[group as usize].data) else {
            return self.no_room(task.thread).map(|_| Step::Blocked);
        };
        self.directories[0].entries += 1;
        self.take_block(block, now);
        self.new_inode(inode, now);
        self.space.groups[group as usize].directories += 1;
        self.touch(block, now);
        self.directories.push(Directory { inode, group, blocks: vec![block], entries: 0, entries_free: Vec::new() });
        Ok(Step::Done(self.settings.call_time.0))
    }

    pub(super) fn no_inode(&self) -> SourceError {
        SourceError(format!(
            "file system: found no free inode, expected fewer than {} files and directories; give the workload fewer of them, or \
             a larger device",
            u64::from(self.space.inodes_per_group) * self.space.groups.len() as u64
        ))
    }

    /// Blocks to be in memory before an inode and its name can be made.
    pub(super) fn want_for_new(&mut self, inode: u32, directory: u32, entry: u32, thread: u32) -> Option<Step> {
        let inode_bitmap = self.space.groups[(inode / self.space.inodes_per_group) as usize].inode_bitmap;
        let table = self.space.inode_block(inode);
        let parent = self.space.inode_block(self.directories[directory as usize].inode);
        let names = self.directories[directory as usize].blocks.get((entry / ENTRIES_PER_BLOCK) as usize).copied();
        // A block of the table without another inode in use is not read but made.
        let table = if self.space.inode_block_in_use(inode) { table } else { inode_bitmap };
        self.want_all(&[inode_bitmap, table, parent, names.unwrap_or(parent)], thread)
    }

    /// Room for a name; false if the thread has to wait for a commit to get a block.
    pub(super) fn add_entry(&mut self, directory: u32, entry: u32, thread: u32, now: u64) -> Result<bool, SourceError> {
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
    pub(super) fn touch_name(&mut self, directory: u32, entry: u32, now: u64) {
        let Directory { inode, ref blocks, .. } = self.directories[directory as usize];
        let block = blocks[(entry / ENTRIES_PER_BLOCK) as usize];
        let table = self.space.inode_block(inode);
        self.touch(block, now);
        self.touch(table, now);
    }

    pub(super) fn new_inode(&mut self, inode: u32, now: u64) {
        self.space.take_inode(inode);
        self.touch_inode_tables(inode, now);
    }

    pub(super) fn touch_inode_tables(&mut self, inode: u32, now: u64) {
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

    pub(super) fn end_window(&mut self, number: u32) {
        let file = &mut self.files[number as usize];
        self.space.give_back(file.window.0, file.window.1);
        (file.window, file.window_blocks) = ((0, 0), 0);
    }
}
