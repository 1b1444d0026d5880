//! Devices that keep the bytes that are written to them.

use crate::{BlockDevice, IoError, Request, RequestKind, SECTOR_BYTES, Tag};

/// A block device that gives back the bytes that were written to it.
///
/// ```text
///   submit_with(write, bytes) ─► device ─► wait: completion
///   submit_with(read, &[])    ─► device ─► wait: completion ─► take_data(tag, bytes)
/// ```
///
/// A read is given what the sectors hold at the moment at which it takes effect in the device; what is written later
/// does not change it. Sectors that were never written hold zeros, and so do those of a trim that covers whole pages of
/// the device. Where it covers a page in part, its sectors there may keep what they hold, or fall back to what they held
/// before; they are settled when they are written again.
///
/// A write that comes without data, by [`BlockDevice::submit`], writes zeros; a read that comes that way leaves no data to
/// take. One gets at the trait by [`BlockDevice::holds_data`]. Schedulers of the host (filters) merge and cut requests but
/// carry no data: a device behind one holds none.
pub trait HoldsData: BlockDevice {
    /// As [`BlockDevice::submit`], with the bytes that a write brings; `data` is empty for all other requests. The data of
    /// a read wait for [`HoldsData::take_data`].
    ///
    /// # Errors
    /// As [`BlockDevice::submit`], and [`IoError::KeepsNoData`].
    ///
    /// # Panics
    /// If `data` has not the length of the write.
    fn submit_with(&mut self, request: Request, data: &[u8]) -> Result<Tag, IoError>;

    /// Copies what a read gave into `data`, after its completion, and forgets it; answers false, and leaves `data` as it
    /// is, where there is nothing under this tag: it was no read, it failed, or its data were taken.
    ///
    /// # Panics
    /// If `data` has not the length of the read.
    fn take_data(&mut self, tag: Tag, data: &mut [u8]) -> bool;
}

impl Request {
    /// Bytes that it brings, if it writes, or is given, if it reads; 0 for others.
    #[must_use]
    pub fn data_bytes(&self) -> usize {
        if self.kind.moves_data() { self.sectors as usize * SECTOR_BYTES as usize } else { 0 }
    }

    /// The length of the data that come with it, checked.
    ///
    /// # Panics
    /// If `data` has not the length of the write, or comes with anything else.
    pub fn check_data(&self, data: &[u8]) {
        let expected = if self.kind == RequestKind::Write { self.data_bytes() } else { 0 };
        assert!(
            data.len() == expected,
            "a {} of {} sectors came with {} bytes, expected {expected}",
            self.kind.name(),
            self.sectors,
            data.len()
        );
    }
}
