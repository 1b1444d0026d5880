//! Devices that keep written bytes.

use crate::{BlockDevice, IoError, Request, RequestClass, SECTOR_BYTES, Tag};

/// What the bytes of writes are like that bring no data of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Contents {
    /// Bytes that no drive can shrink or find twice.
    #[default]
    Noise,
    /// In each sector, so many bytes that no drive can shrink, and zeros; with 0 bytes nothing but zeros.
    Shrinking {
        /// At most [`SECTOR_BYTES`].
        noise: u16,
    },
    /// Bytes that no drive can shrink, but finds again: those of [`Contents::REPEATED_BYTES`], by their address.
    Repeated,
}

impl Contents {
    /// Addresses so far apart hold the same bytes if these are [`Contents::Repeated`]. Blocks that are looked at together for
    /// what they share are shorter.
    pub const REPEATED_BYTES: u64 = 1 << 20;
}

/// A block device that keeps written bytes and returns them to reads.
///
/// ```text
///   submit_with(write, bytes) ─► device ─► wait: completion
///   submit_with(read, &[])    ─► device ─► wait: completion ─► take_data(tag, bytes)
/// ```
///
/// A read returns the content of its sectors at the moment when it takes effect in the device; later writes do not
/// change it. Sectors that were never written hold zeros, and so do sectors of a trim that covers whole pages of the
/// device. If a trim covers only part of a page, its sectors there may keep their content or revert to older content;
/// it becomes definite when they are rewritten.
///
/// A write without data, submitted by [`BlockDevice::submit`], writes zeros; a read submitted that way leaves no data
/// to take. [`BlockDevice::holds_data`] gives access to this trait. Schedulers of the host (filters) merge and cut data with
/// their requests, so a device behind them holds data if it does without.
pub trait HoldsData: BlockDevice {
    /// As [`BlockDevice::submit`], with the bytes of a write; `data` is empty for all other requests.
    /// [`HoldsData::take_data`] returns the data of a read.
    ///
    /// # Errors
    /// As [`BlockDevice::submit`], and [`IoError::KeepsNoData`].
    ///
    /// # Panics
    /// If `data` does not have the length of the write.
    fn submit_with(&mut self, request: Request, data: &[u8]) -> Result<Tag, IoError>;

    /// Copies the data of a completed read into `data` and drops them. Returns false and leaves `data` unchanged if
    /// there is nothing under this tag: it was no read, it failed, or its data were already taken.
    ///
    /// # Panics
    /// If `data` does not have the length of the read.
    fn take_data(&mut self, tag: Tag, data: &mut [u8]) -> bool;
}

impl Request {
    /// Bytes that a write brings or a read returns; 0 for other requests.
    #[must_use]
    pub fn data_bytes(&self) -> usize {
        if self.kind.moves_data() { self.sectors as usize * SECTOR_BYTES as usize } else { 0 }
    }

    /// The length of the request's data, checked.
    ///
    /// # Panics
    /// If `data` does not have the length of the write, or the request is not a write and has data.
    pub fn check_data(&self, data: &[u8]) {
        let expected = if self.kind.class() == RequestClass::Write { self.data_bytes() } else { 0 };
        assert!(
            data.len() == expected,
            "a {} of {} sectors came with {} bytes, expected {expected}",
            self.kind.name(),
            self.sectors,
            data.len()
        );
    }
}
