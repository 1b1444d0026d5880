//! Audits the state for contradictions.

use super::*;

impl FileSystem {
    /// Walks the whole state and returns contradictions. Takes time proportional to the device.
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
}
