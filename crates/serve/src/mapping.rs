//! Memory of another process, mapped.
//!
//! The other process changes the memory at any time, so no reference to it is ever made: bytes are copied in and out, and what both
//! sides wait for goes by atomic words. Whoever maps a file has seen that it can't shrink (`F_SEAL_SHRINK`), without which a
//! touch behind its end would kill the process.

#![allow(unsafe_code)]

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::io;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// A part of a file, shared with whoever else maps it.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
    is_writable: bool,
}

// SAFETY: the mapping belongs to the value alone, and its address means the same to every thread.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps bytes of a file that can't become shorter than `offset + bytes`.
    ///
    /// # Errors
    /// Of the system.
    pub fn new(file: impl AsFd, offset: u64, bytes: usize, is_writable: bool) -> io::Result<Self> {
        let mut access = ProtFlags::READ;
        access.set(ProtFlags::WRITE, is_writable);
        // SAFETY: the system chooses an address where nothing is.
        let start = unsafe { mmap(std::ptr::null_mut(), bytes, access, MapFlags::SHARED, file, offset) }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, bytes, is_writable })
    }

    /// The address of bytes from `at` on.
    fn place(&self, at: usize, bytes: usize) -> *mut u8 {
        assert!(at <= self.bytes && bytes <= self.bytes - at, "{bytes} bytes at {at} of {}", self.bytes);
        // SAFETY: it is within the mapping, as was just checked.
        unsafe { self.start.as_ptr().add(at) }
    }

    /// Copies bytes out.
    pub fn read(&self, at: usize, into: &mut [u8]) {
        let from = self.place(at, into.len());
        // SAFETY: the source is mapped and readable, and `into` is memory of ours, apart from it.
        unsafe { std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) }
    }

    /// Copies bytes in.
    pub fn write(&self, at: usize, bytes: &[u8]) {
        assert!(self.is_writable);
        let to = self.place(at, bytes.len());
        // SAFETY: the target is mapped and writable, and `bytes` is memory of ours, apart from it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) }
    }

    /// A word that the other side writes at once.
    fn word(&self, at: usize) -> &AtomicU32 {
        let place = self.place(at, size_of::<u32>());
        assert!(place.cast::<u32>().is_aligned());
        // SAFETY: the word is mapped as long as `self` is, aligned, and touched only by atomic accesses while it is lent.
        unsafe { AtomicU32::from_ptr(place.cast()) }
    }

    /// Reads a word, before all that is read later.
    pub fn load(&self, at: usize) -> u32 {
        u32::from_le(self.word(at).load(Ordering::Acquire))
    }

    /// Writes a word, after all that was written before.
    pub fn store(&self, at: usize, value: u32) {
        assert!(self.is_writable);
        self.word(at).store(value.to_le(), Ordering::Release);
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and nothing lends from it any more.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
