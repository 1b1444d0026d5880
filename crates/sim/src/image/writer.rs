//! Writes changes of the chips to an image.

use super::ImageError;
use super::layout::{BLOCK_SLOT, KEPT_BYTES, Layout, PAGE_SLOT};
use super::record::{BlockRecord, KeptRecord, PageRecord, Place, seal};
use flashwright_block::system_says;
use flashwright_ftl::durable::{Mirror, PageState, Programmed};
use flashwright_nand::{BlockId, Ppn};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// What is known of a block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Block {
    /// What its slot holds.
    pub filed: BlockRecord,
    /// What it will hold after the next sync.
    pub now: BlockRecord,
    /// Whether the two differ.
    pub is_dirty: bool,
}

/// An open image.
#[derive(Debug)]
pub(crate) struct Image {
    pub(super) file: File,
    pub(super) path: PathBuf,
    pub(super) layout: Layout,
    /// The checksum of the header.
    pub(super) sum: u64,
    /// The current epoch.
    pub(super) epoch: u64,
    pub(super) blocks: Vec<Block>,
    /// Blocks whose slots the next sync writes.
    dirty: Vec<BlockId>,
    /// Blocks that were erased when the last sync was made, with their generations.
    idle: Vec<(BlockId, u32)>,
    /// Whether anything was written since the last sync.
    is_unsynced: bool,
    /// Whether a page was.
    has_programmed: bool,
    journal: Vec<u8>,
    pub(super) kept: KeptRecord,
    failure: Option<String>,
}

#[cfg(test)]
thread_local! {
    /// What the file held at the last `fdatasync` of this thread, for a test that asks for it.
    pub(super) static SYNCED: std::cell::RefCell<Option<Vec<u8>>> = const { std::cell::RefCell::new(None) };
}

impl Image {
    pub(super) fn of(
        (file, path): (File, &Path),
        (layout, sum): (Layout, u64),
        epoch: u64,
        blocks: Vec<Block>,
    ) -> Self {
        Self {
            file,
            path: path.to_owned(),
            layout,
            sum,
            epoch,
            blocks,
            dirty: Vec::new(),
            idle: Vec::new(),
            is_unsynced: true, // who wrote it may have been killed before a sync
            has_programmed: true,
            journal: Vec::new(),
            kept: KeptRecord::default(),
            failure: None,
        }
    }

    fn place(&self, offset: u64) -> Place {
        Place { image: self.sum, offset }
    }

    fn fail(&mut self, why: &str) {
        self.failure.get_or_insert_with(|| format!("image {}: can't be written: {why}", self.path.display()));
    }

    /// Does what writes to the file, unless that has failed before.
    fn attempt(&mut self, work: impl FnOnce(&mut Self) -> Result<(), String>) {
        if self.failure.is_none()
            && let Err(why) = work(self)
        {
            self.fail(&why);
        }
    }

    fn write(&self, bytes: &[u8], offset: u64) -> Result<(), String> {
        self.file.write_all_at(bytes, offset).map_err(|error| system_says(&error))
    }

    /// Fills the slot of a page, after its content was written. Returns the slot's checksum.
    pub(super) fn put_page(
        &mut self,
        ppn: Ppn,
        state: PageState,
        page: &Programmed,
        slot: &mut [u8],
    ) -> Result<u64, String> {
        let block = self.layout.geometry.block_of(ppn);
        let (generation, page_bytes) = (self.blocks[block.index()].now.generation, self.layout.page_bytes());
        let record = PageRecord::of((generation, self.epoch), state, page, page_bytes, &mut self.journal)?;
        let content = page.record.as_ref().map_or_else(|| page.bytes.get().unwrap_or_default(), |_| &self.journal);
        let (first, rest) = content.split_at(content.len().min(usize::try_from(page_bytes).unwrap_or(usize::MAX)));
        if !rest.is_empty() {
            self.write(rest, self.layout.rest(ppn))?;
        }
        if !first.is_empty() {
            self.write(first, self.layout.content(ppn))?;
        }
        seal(&record, slot, self.place(self.layout.page_slot(ppn)))
    }

    pub(super) fn put_block(&self, block: BlockId, record: &BlockRecord) -> Result<(), String> {
        let (mut slot, offset) = ([0; BLOCK_SLOT], self.layout.block_slot(block));
        seal(record, &mut slot, self.place(offset))?;
        self.write(&slot, offset)
    }

    /// What was last kept.
    pub fn kept(&self) -> &[u8] {
        &self.kept.bytes
    }

    /// Writes what is kept, beside what was kept before.
    pub(super) fn put_kept(&mut self, what: &[u8]) -> Result<(), String> {
        let record = KeptRecord { number: self.kept.number + 1, bytes: what.to_vec() };
        let (mut slot, offset) = (vec![0; KEPT_BYTES], Layout::kept_slot(record.number));
        seal(&record, &mut slot, self.place(offset))?;
        self.write(&slot, offset)?;
        self.kept = record;
        self.is_unsynced = true;
        Ok(())
    }

    /// Files what is known of a block already now.
    fn refile(&mut self, block: BlockId, change: impl FnOnce(&mut BlockRecord)) -> Result<(), String> {
        let mut filed = self.blocks[block.index()].filed;
        change(&mut filed);
        self.put_block(block, &filed)?;
        self.blocks[block.index()].filed = filed;
        self.is_unsynced = true;
        Ok(())
    }

    fn is_now_dirty(&mut self, block: BlockId) {
        if !std::mem::replace(&mut self.blocks[block.index()].is_dirty, true) {
            self.dirty.push(block);
        }
    }

    fn program(&mut self, ppn: Ppn, state: PageState, page: &Programmed) -> Result<(), String> {
        let block = self.layout.geometry.block_of(ppn);
        if self.blocks[block.index()].filed.is_dying {
            self.make_last()?;
        }
        let mut slot = [0; PAGE_SLOT];
        let sum = self.put_page(ppn, state, page, &mut slot)?;
        self.write(&slot, self.layout.page_slot(ppn))?;
        let now = &mut self.blocks[block.index()].now;
        (now.pages, now.digest) = (now.pages + 1, now.digest.wrapping_add(sum));
        (self.is_unsynced, self.has_programmed) = (true, true);
        self.is_now_dirty(block);
        Ok(())
    }

    fn erase(&mut self, block: BlockId, is_torn: bool) -> Result<(), String> {
        if self.has_programmed {
            self.make_last()?;
        }
        if !self.blocks[block.index()].filed.is_dying {
            self.refile(block, |filed| filed.is_dying = true)?;
        }
        let now = &mut self.blocks[block.index()].now;
        *now = BlockRecord { generation: now.generation + 1, is_torn, pages: 0, digest: 0, ..*now };
        self.is_now_dirty(block);
        Ok(())
    }

    /// After reading: files what was found, so that no block is dying and a sync covers every page.
    pub(super) fn settle(&mut self, torn: &[Ppn]) -> Result<(), String> {
        for ppn in torn {
            let mut slot = [0; PAGE_SLOT];
            let sum = self.put_page(*ppn, PageState::Torn, &Programmed::default(), &mut slot)?;
            self.write(&slot, self.layout.page_slot(*ppn))?;
            let now = &mut self.blocks[self.layout.geometry.block_of(*ppn).index()].now;
            (now.pages, now.digest) = (now.pages + 1, now.digest.wrapping_add(sum));
        }
        for block in (0..self.layout.geometry.blocks()).map(BlockId) {
            let Block { filed, now, .. } = self.blocks[block.index()];
            if filed != (BlockRecord { epoch: filed.epoch, ..now }) {
                self.is_now_dirty(block);
            }
        }
        self.make_last()
    }

    fn make_last(&mut self) -> Result<(), String> {
        if !self.is_unsynced {
            return Ok(());
        }
        self.file.sync_data().map_err(|error| system_says(&error))?;
        #[cfg(test)]
        SYNCED.with_borrow_mut(|synced| {
            if synced.is_some() {
                *synced = std::fs::read(&self.path).ok();
            }
        });
        let mut erased = Vec::new();
        for block in std::mem::take(&mut self.dirty) {
            let Block { filed, now, .. } = self.blocks[block.index()];
            let record = BlockRecord { epoch: self.epoch, ..now };
            self.put_block(block, &record)?;
            if now.pages == 0 && now.generation != filed.generation {
                erased.push((block, now.generation));
            }
            self.blocks[block.index()] = Block { filed: record, now, is_dirty: false };
        }
        self.epoch += 1;
        (self.is_unsynced, self.has_programmed) = (false, false);
        for (block, generation) in std::mem::replace(&mut self.idle, erased) {
            let now = self.blocks[block.index()].now;
            if now.generation == generation && now.pages == 0 {
                self.give_back(block);
            }
        }
        Ok(())
    }

    /// Gives the space of an erased block back. A file system that can't do that keeps it.
    fn give_back(&self, block: BlockId) {
        use rustix::fs::{FallocateFlags, fallocate};
        let first = self.layout.geometry.first_page(block);
        let bytes = self.layout.page_bytes() * u64::from(self.layout.geometry.pages_per_block());
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let _ = fallocate(&self.file, flags, self.layout.content(first), bytes);
    }

    /// Locks the file against other servers.
    pub(super) fn lock(file: &File, path: &Path) -> Result<(), ImageError> {
        use rustix::fs::{FlockOperation, fcntl_lock, flock};
        use rustix::io::Errno;
        let whole = FlockOperation::NonBlockingLockExclusive;
        flock(file, whole).map_err(|errno| match errno {
            Errno::WOULDBLOCK => ImageError::new(
                path,
                "in use by another server",
                "stop that one first, or give each an image of its own",
            ),
            other => ImageError::system(path, "can't be locked", &io::Error::from(other)),
        })?;
        // The other kind of lock, which neither sees nor is seen by the first: QEMU takes it.
        match fcntl_lock(file, whole) {
            Err(Errno::WOULDBLOCK | Errno::ACCESS) => {
                Err(ImageError::new(path, "locked by another program", "end that program first"))
            }
            _ => Ok(()), // or a file system without them
        }
    }
}

impl Mirror for Image {
    fn programmed(&mut self, ppn: Ppn, state: PageState, page: &Programmed) {
        self.attempt(|image| image.program(ppn, state, page));
    }

    fn erased(&mut self, block: BlockId, is_torn: bool) {
        self.attempt(|image| image.erase(block, is_torn));
    }

    fn retired(&mut self, block: BlockId) {
        self.attempt(|image| {
            image.blocks[block.index()].now.is_retired = true;
            image.refile(block, |filed| filed.is_retired = true)
        });
    }

    fn keep(&mut self, what: &[u8]) -> Result<(), String> {
        self.attempt(|image| image.put_kept(what).and_then(|()| image.make_last()));
        self.failure.clone().map_or(Ok(()), Err)
    }

    fn sync(&mut self) -> Result<(), String> {
        self.attempt(Self::make_last);
        self.failure.clone().map_or(Ok(()), Err)
    }

    fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
}
