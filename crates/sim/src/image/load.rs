//! Reads an image: what the chips hold, and whether that is what was written.

use super::ImageError;
use super::header::Header;
use super::layout::{BLOCK_SLOT, HEADER_BYTES, KEPT_BYTES, Layout, PAGE_SLOT};
use super::record::{BlockRecord, Content, KeptRecord, PageRecord, Place, Slot, unseal};
use super::writer::{Block, Image};
use flashwright_block::Seed;
use flashwright_ftl::durable::{Medium, MediumBlock, PageState, Programmed};
use flashwright_nand::{BlockId, Ppn};
use flashwright_ssd::DriveConfig;
use rustix::fs::SeekFrom;
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

impl Image {
    /// Opens the image of a drive, and reads what its chips hold.
    ///
    /// # Errors
    /// [`ImageError`] if it is in use, of another drive, or damaged.
    pub fn open(
        path: &Path,
        config: &DriveConfig,
        seed: Seed,
        mut cancelled: impl FnMut() -> bool,
    ) -> Result<(Self, Medium), ImageError> {
        let cant = |error: io::Error| ImageError::system(path, "can't be read", &error);
        let file = File::options().read(true).write(true).open(path).map_err(cant)?;
        if !file.metadata().map_err(cant)?.is_file() {
            return Err(ImageError::new(path, "found no regular file, expected an image of a drive", ""));
        }
        Self::lock(&file, path)?;
        let length = file.metadata().map_err(cant)?.len();
        let mut bytes = vec![0; usize::try_from(HEADER_BYTES.min(length)).expect("a header fits the memory")];
        file.read_exact_at(&mut bytes, 0).map_err(cant)?;
        let (header, sum) = Header::read(path, &bytes)?;
        header.check(path, config, seed)?;
        let geometry = config.layout();
        let layout = Layout::new(&geometry);
        if length < layout.length() {
            let what = format!("the file has {length} B, expected {}: its end is lost", layout.length());
            return Err(ImageError::damaged(path, &what));
        }
        let kept = kept_in(&bytes, sum).ok_or_else(|| ImageError::damaged(path, "what is kept with the drive"))?;
        let mut reading = Reading { file: &file, path, layout, sum, epoch: 0, torn: Vec::new() };
        let (mut blocks, mut found) = (Vec::new(), Vec::new());
        for block in (0..geometry.blocks()).map(BlockId) {
            if cancelled() {
                return Err(ImageError::new(path, "given up while it was read", ""));
            }
            let (known, holds) = reading.block(block)?;
            blocks.push(known);
            found.push(holds);
        }
        let (epoch, torn) = (reading.epoch + 1, reading.torn);
        let mut image = Self::of((file, path), (layout, sum), epoch, blocks);
        image.kept = kept;
        image.settle(&torn).map_err(|why| ImageError::new(path, &format!("can't be written: {why}"), ""))?;
        Ok((image, Medium::found(&geometry, found)))
    }
}

/// What was last kept, in the first bytes of a file. A place that is damaged was being written when the machine failed, which nobody
/// was found_pages to have been done. None if both are.
fn kept_in(bytes: &[u8], sum: u64) -> Option<KeptRecord> {
    let of = |number: u64| {
        let offset = Layout::kept_slot(number);
        let slot = &bytes[usize::try_from(offset).ok()?..][..KEPT_BYTES];
        match unseal::<KeptRecord>(slot, Place { image: sum, offset }) {
            Slot::Empty => Some(KeptRecord::default()),
            Slot::Holds(found, _) => Some(found),
            Slot::Damaged => None,
        }
    };
    [of(0), of(1)].into_iter().flatten().max_by_key(|found| found.number)
}

struct Reading<'a> {
    file: &'a File,
    path: &'a Path,
    layout: Layout,
    sum: u64,
    /// The newest epoch found.
    epoch: u64,
    /// Pages that turned out to be torn.
    torn: Vec<Ppn>,
}

/// A page that was written, by its slot in the file.
struct FoundPage {
    page: u32,
    record: PageRecord,
    sum: u64,
}

impl Reading<'_> {
    fn read(&self, bytes: &mut [u8], offset: u64) -> Result<(), ImageError> {
        self.file.read_exact_at(bytes, offset).map_err(|error| ImageError::system(self.path, "can't be read", &error))
    }

    fn place(&self, offset: u64) -> Place {
        Place { image: self.sum, offset }
    }

    fn damaged(&self, block: BlockId, what: &str) -> ImageError {
        ImageError::damaged(self.path, &format!("block {}: {what}", block.0))
    }

    fn block(&mut self, block: BlockId) -> Result<(Block, MediumBlock), ImageError> {
        let (mut slot, offset) = ([0; BLOCK_SLOT], self.layout.block_slot(block));
        self.read(&mut slot, offset)?;
        let Slot::Holds(filed, _) = unseal::<BlockRecord>(&slot, self.place(offset)) else {
            return Err(self.damaged(block, "its erases and the number of its pages"));
        };
        self.epoch = self.epoch.max(filed.epoch);
        let mut found_pages = self.pages_found(block)?;
        let newest = found_pages.iter().map(|page| page.record.generation).max().unwrap_or(0);
        if newest > filed.generation && !filed.is_dying {
            return Err(self.damaged(block, "pages that were programmed after an erase that it does not know of"));
        }
        let generation = filed.generation.max(newest);
        found_pages.retain(|page| page.record.generation == generation);
        let is_filed = generation == filed.generation;
        if is_filed && !filed.is_dying {
            self.check_count(block, &filed, &found_pages)?;
        }
        let mut holds = MediumBlock { pages: Vec::new(), erases: generation, is_retired: filed.is_retired };
        let mut now = BlockRecord { generation, is_retired: filed.is_retired, ..BlockRecord::default() };
        if is_filed && filed.is_torn {
            now.is_torn = true;
            let pages = self.layout.geometry.pages_per_block() as usize;
            holds.pages.resize(pages, (PageState::Torn, Programmed::default()));
        }
        for FoundPage { page, record, sum } in found_pages {
            let must_be_there = is_filed && !filed.is_dying && record.epoch <= filed.epoch;
            let was_whole = record.state == PageState::Programmed;
            let found = self.page(block, page, record, must_be_there)?;
            if was_whole && found.0 == PageState::Torn {
                self.torn.push(self.layout.geometry.page_at(block, page));
            } else {
                (now.pages, now.digest) = (now.pages + 1, now.digest.wrapping_add(sum));
            }
            if holds.pages.len() <= page as usize {
                holds.pages.resize_with(page as usize + 1, Default::default);
            }
            holds.pages[page as usize] = found;
        }
        Ok((Block { filed, now, is_dirty: false }, holds))
    }

    /// The pages of a block that their slots hold.
    fn pages_found(&mut self, block: BlockId) -> Result<Vec<FoundPage>, ImageError> {
        let first = self.layout.geometry.first_page(block);
        let start = self.layout.page_slot(first);
        let bytes = self.layout.slots_of_block();
        // Where nothing was written the file has a hole; a file system that can't tell has data everywhere.
        let next = rustix::fs::seek(self.file, SeekFrom::Data(start));
        if next == Err(Errno::NXIO) || next.is_ok_and(|next| next >= start + bytes as u64) {
            return Ok(Vec::new());
        }
        let mut slots = vec![0; bytes];
        self.read(&mut slots, start)?;
        let mut found_pages = Vec::new();
        for (page, slot) in (0..).zip(slots.chunks_exact(PAGE_SLOT)) {
            let offset = start + u64::from(page) * PAGE_SLOT as u64;
            match unseal::<PageRecord>(slot, self.place(offset)) {
                Slot::Empty => {}
                Slot::Holds(record, sum) => {
                    self.epoch = self.epoch.max(record.epoch);
                    found_pages.push(FoundPage { page, record, sum });
                }
                Slot::Damaged => return Err(self.damaged(block, &format!("page {page}: its spare area"))),
            }
        }
        Ok(found_pages)
    }

    /// Whether the pages that a sync covered are there.
    fn check_count(&self, block: BlockId, filed: &BlockRecord, found_pages: &[FoundPage]) -> Result<(), ImageError> {
        let covered = found_pages.iter().filter(|page| page.record.epoch <= filed.epoch);
        let (pages, digest) =
            covered.fold((0, 0u64), |(pages, digest), page| (pages + 1, digest.wrapping_add(page.sum)));
        if (pages, digest) != (filed.pages, filed.digest) {
            let what = format!("found {pages} of the {} spare areas that were written", filed.pages);
            return Err(self.damaged(block, &what));
        }
        Ok(())
    }

    /// A page with its content. If that is not what was written, and no sync covered it, it is torn.
    fn page(
        &self,
        block: BlockId,
        page: u32,
        record: PageRecord,
        must_be_there: bool,
    ) -> Result<(PageState, Programmed), ImageError> {
        if record.state != PageState::Programmed {
            return Ok((PageState::Torn, Programmed::default()));
        }
        let ppn = Ppn(self.layout.geometry.first_page(block).0 + page);
        let page_bytes = usize::try_from(self.layout.page_bytes()).expect("a page fits the memory");
        let length = match record.content {
            Content::Zeros => 0,
            Content::Bytes => page_bytes,
            Content::Journal(length) => (length as usize).min(2 * page_bytes),
        };
        let (owner, mut content) = (record.page.owner, vec![0; length]);
        let (in_place, rest) = content.split_at_mut(length.min(page_bytes));
        if !in_place.is_empty() {
            self.read(in_place, self.layout.content(ppn))?;
        }
        if !rest.is_empty() {
            // Beyond the end of the file nothing was written.
            let _ = self.file.read_exact_at(rest, self.layout.rest(ppn));
        }
        let is_journal = matches!(record.content, Content::Journal(_));
        match record.page_with(&content) {
            Some(found) => Ok((PageState::Programmed, found)),
            None if !must_be_there => Ok((PageState::Torn, Programmed::default())),
            None if is_journal => Err(self.damaged(block, &format!("page {page}: a page of the drive's journal"))),
            None => Err(self.damaged(block, &format!("page {page}: the data of logical page {owner}"))),
        }
    }
}
