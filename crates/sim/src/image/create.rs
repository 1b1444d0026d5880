//! Makes an image of chips. It appears under its name when it is whole.

use super::ImageError;
use super::header::Header;
use super::layout::Layout;
use super::record::BlockRecord;
use super::writer::{Block, Image};
use flashwright_block::{Beside, system_says};
use flashwright_ftl::durable::{Medium, PageState};
use flashwright_nand::{BlockId, Geometry, Ppn};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// An image that has no name yet. Where the file system has no files without names, it is written beside its place.
#[derive(Debug)]
pub(crate) struct Creating {
    file: File,
    path: PathBuf,
    beside: Option<Beside>,
}

impl Creating {
    /// Begins an image, so that a folder that can't be written is found before the drive is filled.
    pub fn begin(path: &Path) -> Result<Self, ImageError> {
        // What clients store is for its owner.
        let mode = Mode::from_raw_mode(0o600);
        Self::begin_with(path, open(folder_of(path), OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode))
    }

    /// With what opening a file without a name gave.
    pub(super) fn begin_with(path: &Path, unnamed: Result<OwnedFd, Errno>) -> Result<Self, ImageError> {
        let cant = |error: io::Error| ImageError::system(path, "can't be made", &error);
        if path.symlink_metadata().is_ok() {
            return Err(exists(path));
        }
        let (file, beside) = match unnamed {
            Ok(file) => (File::from(file), None),
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
                let (beside, file) = Beside::create(path).map_err(cant)?;
                (file, Some(beside.private()))
            }
            Err(errno) => return Err(cant(errno.into())),
        };
        Image::lock(&file, path)?;
        Ok(Self { file, path: path.to_owned(), beside })
    }

    /// Writes what the chips hold and what is kept with the drive, and gives the image its name.
    pub fn finish(
        self,
        header: &Header,
        (geometry, medium, kept): (&Geometry, &Medium, &[u8]),
        mut cancelled: impl FnMut() -> bool,
    ) -> Result<Image, ImageError> {
        let cant = |why: &str| ImageError::new(&self.path, &format!("can't be written: {why}"), "");
        let (bytes, sum) = header.bytes().map_err(|why| cant(&why))?;
        let layout = Layout::new(geometry);
        let write = |bytes: &[u8], offset| self.file.write_all_at(bytes, offset).map_err(|error| system_says(&error));
        self.file.set_len(layout.length()).map_err(|error| cant(&system_says(&error)))?;
        write(&bytes, 0).map_err(|why| cant(&why))?;
        let file = self.file.try_clone().map_err(|error| cant(&system_says(&error)))?;
        let blocks = vec![Block::default(); geometry.blocks() as usize];
        let mut image = Image::of((file, &self.path), (layout, sum), 1, blocks);
        for block in (0..geometry.blocks()).map(BlockId) {
            if cancelled() {
                return Err(cant("given up"));
            }
            image.put_whole_block(block, medium).map_err(|why| cant(&why))?;
        }
        if !kept.is_empty() {
            image.put_kept(kept).map_err(|why| cant(&why))?;
        }
        image.epoch += 1;
        self.file.sync_all().map_err(|error| cant(&system_says(&error)))?;
        self.name().map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => exists(&self.path),
            _ => ImageError::system(&self.path, "can't be named", &error),
        })?;
        Ok(image)
    }

    fn name(&self) -> io::Result<()> {
        match &self.beside {
            Some(beside) => beside.name(&self.path)?,
            None => {
                let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
                linkat(CWD, own, CWD, &self.path, AtFlags::SYMLINK_FOLLOW)?;
            }
        }
        File::open(folder_of(&self.path))?.sync_all()
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn exists(path: &Path) -> ImageError {
    ImageError::new(path, "exists already", "")
}

impl Image {
    fn put_whole_block(&mut self, block: BlockId, medium: &Medium) -> Result<(), String> {
        let found = medium.block(block);
        let mut now = BlockRecord {
            generation: found.erases,
            epoch: self.epoch,
            is_retired: found.is_retired,
            ..BlockRecord::default()
        };
        self.blocks[block.index()].now = now;
        let first = self.layout.geometry.first_page(block);
        let mut slots = vec![0; self.layout.slots_of_block()];
        let each = slots.chunks_exact_mut(super::layout::PAGE_SLOT).zip(&found.pages).zip((first.0..).map(Ppn));
        for ((slot, (state, page)), ppn) in each.filter(|((_, (state, _)), _)| *state != PageState::Erased) {
            let sum = self.put_page(ppn, *state, page, slot)?;
            (now.pages, now.digest) = (now.pages + 1, now.digest.wrapping_add(sum));
        }
        if now.pages > 0 {
            self.file.write_all_at(&slots, self.layout.page_slot(first)).map_err(|error| system_says(&error))?;
        }
        self.blocks[block.index()] = Block { filed: now, now, is_dirty: false };
        self.put_block(block, &now)
    }
}
