//! The kernel's rings: the one module here with unsafe code.
//!
//! Why it is sound: the kernel reads and writes the buffer of a slot from [`Ring::push`] until [`Ring::pop`] returns
//! that slot. In between the slot is marked busy, no code can reach its buffer ([`Ring::buffer`] asserts it), and the
//! ring is not dropped before every slot is returned.
#![allow(unsafe_code)]

use crate::consent::TargetFile;
use io_uring::types::{Fd, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

/// Alignment of buffers; no block device requires more for DMA.
const ALIGN: usize = 4096;

#[repr(C, align(4096))]
#[derive(Clone)]
struct Page([u8; ALIGN]);

/// An operation of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Read {
        offset: u64,
        bytes: u32,
    },
    Write {
        offset: u64,
        bytes: u32,
        durable: bool,
    },
    Discard {
        offset: u64,
        bytes: u64,
    },
    PunchHole {
        offset: u64,
        bytes: u64,
    },
    /// Zeros that the file system or the device lays out by itself.
    Zeros {
        offset: u64,
        bytes: u64,
    },
    Flush,
}

/// Memory that the kernel reads into or writes from.
#[derive(Default)]
pub(crate) struct Buffer(Vec<Page>);

impl Buffer {
    /// At least this many bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        Self(vec![Page([0; ALIGN]); bytes.div_ceil(ALIGN)])
    }

    /// Its length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.0.len() * ALIGN
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: pages are plain bytes without padding, one after the other, borrowed as long as the slice.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.len()) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), self.len()) }
    }
}

struct Slot {
    pages: Buffer,
    busy: bool,
}

/// A ring for one file, with a buffer for each request that can be in flight.
pub(crate) struct Ring {
    io: IoUring,
    slots: Vec<Slot>,
    in_flight: u32,
    /// Not registered with the ring, whose teardown is asynchronous: the file must be free once it is closed.
    file: TargetFile,
}

/// `BLOCK_URING_CMD_DISCARD`, `_IO(0x12, 0)` of `linux/blkdev.h`: an asynchronous BLKDISCARD, since Linux 6.12.
const DISCARD: u32 = 0x1200;
/// `RWF_DSYNC` of `linux/fs.h`: durable before it completes.
const DSYNC: i32 = 2;
/// `FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE` of `linux/falloc.h`.
const PUNCH_HOLE: i32 = 1 | 2;
/// `FALLOC_FL_KEEP_SIZE | FALLOC_FL_ZERO_RANGE`.
const ZERO_RANGE: i32 = 1 | 16;

impl Ring {
    /// A ring of `depth` slots with buffers of at least `bytes` each.
    pub(crate) fn new(file: TargetFile, depth: u32, bytes: usize) -> io::Result<Self> {
        let io = IoUring::new(depth)?;
        if !io.params().is_feature_ext_arg() {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "waiting with a timeout needs Linux 5.11 or newer"));
        }
        let slot = || Slot { pages: Buffer::new(bytes), busy: false };
        Ok(Self { io, slots: (0..depth).map(|_| slot()).collect(), in_flight: 0, file })
    }

    /// Requests that are in the kernel or about to be submitted.
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// The buffer of an idle slot, at least `bytes` long. Grows at the first request of its size, never shrinks.
    pub(crate) fn buffer(&mut self, slot: u32, bytes: usize) -> &mut [u8] {
        let slot = &mut self.slots[slot as usize];
        assert!(!slot.busy, "the kernel owns the buffer of a slot in flight");
        if slot.pages.len() < bytes {
            // In powers of two, so that a slot grows only a few times.
            slot.pages.0.resize(bytes.div_ceil(ALIGN).next_power_of_two(), Page([0; ALIGN]));
        }
        slot.pages.bytes_mut()
    }

    /// Takes the buffer of an idle slot, with what was read into it, and leaves another one.
    pub(crate) fn exchange(&mut self, slot: u32, buffer: Buffer) -> Buffer {
        let slot = &mut self.slots[slot as usize];
        assert!(!slot.busy, "the kernel owns the buffer of a slot in flight");
        std::mem::replace(&mut slot.pages, buffer)
    }

    /// A handle of the ring, which is readable when there are completions to be fetched.
    pub(crate) fn wakes(&self) -> io::Result<OwnedFd> {
        // SAFETY: the ring is open as long as `self` is borrowed.
        unsafe { BorrowedFd::borrow_raw(self.io.as_raw_fd()) }.try_clone_to_owned()
    }

    /// Puts an operation of an idle slot into the ring. The kernel sees it at the next [`Ring::enter`].
    pub(crate) fn push(&mut self, slot: u32, operation: Operation) {
        let bytes = match operation {
            Operation::Read { bytes, .. } | Operation::Write { bytes, .. } => bytes as usize,
            _ => 0,
        };
        // Also asserts that the slot is idle and its buffer long enough.
        let memory = self.buffer(slot, bytes).as_mut_ptr();
        let entry = entry(operation, Fd(self.file.0.as_raw_fd()), memory).user_data(u64::from(slot));
        // SAFETY: the buffer lives in `slots`, does not move and is not accessed until `pop` returns it; the file is
        // kept open in `file`.
        let pushed = unsafe { self.io.submission().push(&entry) };
        pushed.expect("the ring has an entry for every slot");
        self.slots[slot as usize].busy = true;
        self.in_flight += 1;
    }

    /// Submits pushed operations and waits for `want` completions, at most for `timeout`.
    pub(crate) fn enter(&mut self, want: u32, timeout: Option<Duration>) -> io::Result<()> {
        if want == 0 && self.io.submission().is_empty() {
            return Ok(());
        }
        let submitter = self.io.submitter();
        let entered = match timeout {
            Some(timeout) => {
                let time = Timespec::new().sec(timeout.as_secs()).nsec(timeout.subsec_nanos());
                submitter.submit_with_args(want as usize, &SubmitArgs::new().timespec(&time))
            }
            None => submitter.submit_and_wait(want as usize),
        };
        match entered {
            Ok(_) => Ok(()),
            // The timeout expired, a signal arrived, or completions must be fetched first: the caller checks again.
            Err(error) if [ETIME, EINTR, EAGAIN, EBUSY].contains(&error.raw_os_error().unwrap_or(0)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The next completion: its slot, idle from now on, and bytes or a negative errno.
    pub(crate) fn pop(&mut self) -> Option<(u32, i32)> {
        let entry = self.io.completion().next()?;
        let slot = u32::try_from(entry.user_data()).expect("slots are numbered in 32 bits");
        self.slots[slot as usize].busy = false;
        self.in_flight -= 1;
        Some((slot, entry.result()))
    }
}

const EINTR: i32 = 4;
const EAGAIN: i32 = 11;
const EBUSY: i32 = 16;
const ETIME: i32 = 62;

fn entry(operation: Operation, file: Fd, memory: *mut u8) -> squeue::Entry {
    match operation {
        Operation::Read { offset, bytes } => opcode::Read::new(file, memory, bytes).offset(offset).build(),
        Operation::Write { offset, bytes, durable } => {
            opcode::Write::new(file, memory, bytes).offset(offset).rw_flags(if durable { DSYNC } else { 0 }).build()
        }
        Operation::Discard { offset, bytes } => {
            // The length is in the field of the third address of other operations: the first 8 bytes of the command.
            let mut command = [0; 16];
            command[..8].copy_from_slice(&bytes.to_ne_bytes());
            opcode::UringCmd16::new(file, DISCARD).addr(Some(offset)).cmd(command).build()
        }
        Operation::PunchHole { offset, bytes } => {
            opcode::Fallocate::new(file, bytes).offset(offset).mode(PUNCH_HOLE).build()
        }
        Operation::Zeros { offset, bytes } => {
            opcode::Fallocate::new(file, bytes).offset(offset).mode(ZERO_RANGE).build()
        }
        Operation::Flush => opcode::Fsync::new(file).flags(FsyncFlags::DATASYNC).build(),
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // The kernel may still write to the buffers.
        while self.in_flight > 0 {
            if self.pop().is_none() && self.enter(1, None).is_err() {
                // The ring no longer works: leaking the memory is better than sharing it.
                std::mem::forget(std::mem::take(&mut self.slots));
                return;
            }
        }
    }
}
