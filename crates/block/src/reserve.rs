//! What a process falls back on where memory ends.
//!
//! An allocation of Rust that fails ends the process, and Python with it. So memory is put aside before work begins, never
//! touched, so that it takes addresses alone. The first allocation that fails gives it back to the system and is tried again.
//! The work in hand goes on for a step; then whoever runs it asks [`check_memory`] and ends it as an error.
//!
//! Memory ends like that at a limit of addresses (`ulimit -v`), or where the system promises no more than it has. A control
//! group that is full kills instead: what is left of it is asked before.

use core::ffi::c_void;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Sizes of the reserve, and what has to be left of addresses for each. The largest holds more than a step of a run takes. Libraries
/// that Python loads later need addresses too, and end the process where they find none. Below the last a process does
/// not begin.
const SIZES: [(usize, usize); 4] =
    [(128 << 20, 8 << 30), (64 << 20, 2 << 30), (32 << 20, 512 << 20), (LEAST_RESERVE_BYTES, 2 * LEAST_RESERVE_BYTES)];
/// The smallest reserve: a step of a run on a drive whose tables fit without being asked.
pub const LEAST_RESERVE_BYTES: usize = 16 << 20;

/// A piece of the process's addresses that is not used. Not of the C library's: what is freed there changes how it shares out
/// later memory.
struct Piece {
    start: *mut c_void,
    bytes: usize,
}

// Sound: the piece has one owner, and any thread may unmap it.
#[allow(unsafe_code)]
unsafe impl Send for Piece {}

impl Piece {
    fn take(bytes: usize) -> Option<Self> {
        let (access, kind) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
        // Sound: it asks for new addresses, wherever they are.
        #[allow(unsafe_code)]
        let start = unsafe { mmap_anonymous(ptr::null_mut(), bytes, access, kind) };
        start.ok().map(|start| Self { start, bytes })
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        // Sound: the range was mapped by `take`, and nobody else has it. It can't fail.
        #[allow(unsafe_code)]
        let _ = unsafe { munmap(self.start, self.bytes) };
    }
}

static RESERVE: Mutex<Option<Piece>> = Mutex::new(None);
/// Whether there is a reserve, for a look without the lock.
static IS_HELD: AtomicBool = AtomicBool::new(false);

/// The system's allocator, with a reserve. A program that wants it says `#[global_allocator]`.
#[derive(Debug)]
pub struct WithReserve;

/// The memory that this process may take is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the memory that this process may take is used up")]
pub struct MemoryEnded;

/// Finds that memory has not ended. Work that may allocate asks this before it begins, and between its steps.
///
/// # Errors
/// [`MemoryEnded`] if there is no reserve, since an allocation needed it or the process never had that much, and none can be
/// put aside. Where one can, it is from now on.
///
/// ```
/// # use flashwright_block::check_memory;
/// assert_eq!(check_memory(), Ok(()));
/// ```
pub fn check_memory() -> Result<(), MemoryEnded> {
    if IS_HELD.load(Ordering::Acquire) {
        return Ok(());
    }
    let mut reserve = lock();
    if reserve.is_none() {
        *reserve = SIZES.iter().find_map(|&(bytes, left)| Piece::take(left).and_then(|_| Piece::take(bytes)));
        IS_HELD.store(reserve.is_some(), Ordering::Release);
    }
    reserve.as_ref().map(drop).ok_or(MemoryEnded)
}

/// Finds that so many bytes can be allocated beside the reserve, for work that allocates them as if that never failed.
///
/// # Errors
/// [`MemoryEnded`].
///
/// ```
/// # use flashwright_block::{MemoryEnded, room_for};
/// assert_eq!((room_for(1 << 20), room_for(usize::MAX)), (Ok(()), Err(MemoryEnded)));
/// ```
pub fn room_for(bytes: usize) -> Result<(), MemoryEnded> {
    let mut room = Vec::<u8>::new();
    // The reserve is no room: where this took it, it is put aside again beside what was asked.
    let found = room.try_reserve_exact(bytes).map_err(|_| MemoryEnded).and_then(|()| check_memory());
    std::hint::black_box(&room);
    found
}

/// Gives the reserve back to the system.
#[cold]
fn release() {
    let mut reserve = lock();
    IS_HELD.store(false, Ordering::Release);
    *reserve = None;
}

fn lock() -> MutexGuard<'static, Option<Piece>> {
    // Nothing panics between lock and release.
    RESERVE.lock().unwrap_or_else(PoisonError::into_inner)
}

// Sound: all is the system's allocator, which is asked again where it had nothing. Nothing here panics or uses this allocator.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for WithReserve {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        twice(|| unsafe { System.alloc(layout) })
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        twice(|| unsafe { System.alloc_zeroed(layout) })
    }

    #[inline]
    unsafe fn realloc(&self, old: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // One that fails leaves the old one as it is.
        twice(|| unsafe { System.realloc(old, layout, bytes) })
    }

    #[inline]
    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        unsafe { System.dealloc(old, layout) }
    }
}

/// What an allocation gives, the second time if it gives nothing the first.
#[inline]
fn twice(allocate: impl Fn() -> *mut u8) -> *mut u8 {
    let taken = allocate();
    if !taken.is_null() {
        return taken;
    }
    release();
    allocate()
}
