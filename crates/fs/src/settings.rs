//! Settings of the file system and of the memory above it.

use flashwright_block::{Bytes, Nanos};

/// Bytes of a block of the file system, and of a page of memory.
pub const BLOCK_BYTES: u64 = 4096;

/// How a file's blocks are found and when they are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// As ext3: 12 blocks named in the inode, then an indirect block before each 1,024 more; a block is chosen when
    /// the program writes.
    Ext3,
    /// As ext4: extents; blocks are chosen when pages are written back.
    Extents,
}

/// The journal's guarantee for data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalMode {
    /// Data reaches its place before the transaction that names it commits.
    Ordered,
    /// Only metadata is journaled; data are written at any time.
    Writeback,
    /// No journal: metadata is written back like data.
    None,
}

/// The content of one write request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestUnit {
    /// One block, because ext3 submits its buffers one by one and the block layer merges them. Reads are runs anyway
    /// (`mpage_readpages` of Linux 2.6).
    Block,
    /// Consecutive blocks on the device and in the file, up to [`Settings::request_max`].
    Run,
}

/// Settings of the file system, its cache and the machine above it. Defaults are Linux 2.6.24 on the machine of Kim et
/// al. 2011 (section 4.2.1: four cores, 4 GB), except those marked "ours".
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// How blocks are laid out.
    pub layout: Layout,
    /// Memory, all of it for the page cache; the shares below are of this.
    pub memory: Bytes,
    /// The content of one write request.
    pub request_unit: RequestUnit,
    /// The longest request, 512 KiB (`max_sectors_kb` of Linux 2.6).
    pub request_max: Bytes,
    /// Write requests outstanding at most: 128 (`nr_requests`) for runs, 16,384 for blocks, which is as much data.
    pub in_flight: Option<u32>,
    /// The journal's guarantee.
    pub journal: JournalMode,
    /// Age at which a transaction is committed; 5 s.
    pub commit_every: Nanos,
    /// Whether commits flush the device's cache before and after: off in ext3 of that time, on in ext4.
    pub barrier: Option<bool>,
    /// Whether reading a file changes its inode, as in Linux 2.6.24; later kernels default to `relatime`.
    pub atime: Option<bool>,
    /// Share of memory that may be dirty before write-back begins; 5 % (`dirty_background_ratio`).
    pub dirty_background: f64,
    /// Share of memory that may be dirty or under write-back before writers wait; 10 % (`dirty_ratio`).
    pub dirty_throttle: f64,
    /// Interval between two searches for old data; 5 s (`dirty_writeback_centisecs`).
    pub flush_every: Nanos,
    /// Age at which data are written back; 30 s (`dirty_expire_centisecs`).
    pub flush_age: Nanos,
    /// Pages of one file that are written back together; 1,024 (`MAX_WRITEBACK_PAGES`).
    pub flush_pages: u32,
    /// The longest read-ahead; 128 KiB (`VM_MAX_READAHEAD`).
    pub read_ahead: Bytes,
    /// Processors; 4.
    pub processors: u32,
    /// Processor time of a system call, without copying its data; 1 us, ours.
    pub call_time: Nanos,
    /// Processor time of one page copied between a program and the cache, bookkeeping included; 2 us, ours (some
    /// 2 GB/s, a processor of 2007).
    pub page_time: Nanos,
    /// Whether dirty data are written at the end, as `sync` does.
    pub sync_at_end: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            layout: Layout::Ext3,
            memory: Bytes(4 << 30),
            request_unit: RequestUnit::Run,
            request_max: Bytes(512 << 10),
            in_flight: None,
            journal: JournalMode::Ordered,
            commit_every: Nanos(5_000_000_000),
            barrier: None,
            atime: None,
            dirty_background: 0.05,
            dirty_throttle: 0.10,
            flush_every: Nanos(5_000_000_000),
            flush_age: Nanos(30_000_000_000),
            flush_pages: 1024,
            read_ahead: Bytes(128 << 10),
            processors: 4,
            call_time: Nanos(1000),
            page_time: Nanos(2000),
            sync_at_end: true,
        }
    }
}

impl Settings {
    pub(crate) fn barriers(&self) -> bool {
        self.barrier.unwrap_or(self.layout == Layout::Extents)
    }

    pub(crate) fn atimes(&self) -> bool {
        self.atime.unwrap_or(self.layout == Layout::Ext3)
    }

    pub(crate) fn writes_in_flight(&self) -> u32 {
        self.in_flight.unwrap_or(match self.request_unit {
            RequestUnit::Run => 128,
            RequestUnit::Block => 16_384,
        })
    }

    pub(crate) fn pages(&self, share: f64) -> u32 {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
        // far below 2^53
        let pages = (self.memory.0 as f64 * share / BLOCK_BYTES as f64) as u32;
        pages.max(1)
    }
}
