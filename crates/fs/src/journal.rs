//! The journal of metadata, as in JBD's ordered mode.
//!
//! ```text
//!  running ──begin──► committing: data ─► room ─► log ─► (flush) ─► commit record ──► blocks are dirty at home,
//!     ▲                                   │  descriptor, blocks      freed blocks are free
//!     └── calls join blocks               └─ checkpoint: everything home, if the ring is full
//! ```
//!
//! The ring holds, for each transaction, descriptors (each names up to 506 blocks: 4,096 bytes less a head of 12, tags
//! of 8, the first with an identifier of 16), the blocks, and a commit record. All space is freed together, when a
//! checkpoint has written everything home; JBD frees it transaction by transaction. Blocks that were freed are left out
//! (JBD writes revoke records for them, which are not modelled).

use crate::bits::Bits;
use crate::settings::{JournalMode, Settings};
use crate::space::Space;

const TAGS_PER_DESCRIPTOR: u32 = 506;

/// The stage of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Idle,
    /// The data of the transaction's files: first put in the queue, then waited for.
    Data {
        at: usize,
        queued: bool,
    },
    Room,
    Checkpoint,
    Log,
    Logged,
    Flushed,
    Recorded,
}

#[derive(Clone, Debug, Default)]
struct Transaction {
    /// Blocks that joined, in order; those that were forgotten are no longer in the set beside it.
    blocks: Vec<u32>,
    /// (file, generation) whose data goes first.
    files: Vec<(u32, u32)>,
    /// Blocks freed: (first, blocks).
    frees: Vec<(u32, u32)>,
    began: u64,
}

/// The journal.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    runs: Vec<(u32, u32)>,
    blocks: u32,
    /// The next block of the ring to be written, and how many are in use.
    head: u32,
    used: u32,
    running: Transaction,
    committing: Transaction,
    in_running: Bits,
    in_committing: Bits,
    running_id: u64,
    wanted: bool,
    pub(crate) stage: Stage,
    /// Requests of this stage that are on their way.
    pub(crate) pending: u32,
    /// The process that its requests name.
    pub(crate) process: u32,
}

/// Blocks that mke2fs gives a journal (`ext2fs_default_journal_size`, e2fsprogs 1.40); beyond a gigablock no more.
fn default_blocks(blocks: u32) -> u32 {
    match blocks {
        0..32_768 => 1024,
        32_768..262_144 => 4096,
        262_144..524_288 => 8192,
        524_288..1_048_576 => 16_384,
        _ => 32_768,
    }
}

impl Journal {
    /// A journal right after the tables of the first group; none if there is no room.
    pub(crate) fn new(space: &mut Space, settings: &Settings) -> Option<Self> {
        let wanted = if settings.journal == JournalMode::None { 0 } else { default_blocks(space.blocks) };
        if space.blocks_free <= wanted {
            return None;
        }
        let mut runs: Vec<(u32, u32)> = Vec::new();
        let mut goal = 0;
        for _ in 0..wanted {
            let block = space.find_block(goal)?;
            space.take(block);
            match runs.last_mut() {
                Some((first, blocks)) if *first + *blocks == block => *blocks += 1,
                _ => runs.push((block, 1)),
            }
            goal = block + 1;
        }
        Some(Self {
            runs,
            blocks: wanted,
            head: 0,
            used: 0,
            running: Transaction::default(),
            committing: Transaction::default(),
            in_running: Bits::with_room(space.blocks),
            in_committing: Bits::with_room(space.blocks),
            running_id: 1,
            wanted: false,
            stage: Stage::Idle,
            pending: 0,
            process: 0,
        })
    }

    pub(crate) fn runs(&self) -> &[(u32, u32)] {
        &self.runs
    }
    pub(crate) fn is_idle(&self) -> bool {
        self.stage == Stage::Idle
    }
    /// The number of the running transaction.
    pub(crate) fn running(&self) -> u64 {
        self.running_id
    }
    /// The last transaction that is on the device.
    pub(crate) fn committed(&self) -> u64 {
        if self.is_idle() { self.running_id - 1 } else { self.running_id - 2 }
    }
    /// The last transaction with anything in it.
    pub(crate) fn newest(&self) -> u64 {
        if self.is_empty() { self.running_id - 1 } else { self.running_id }
    }

    fn is_empty(&self) -> bool {
        self.running.blocks.is_empty() && self.running.frees.is_empty() && self.running.files.is_empty()
    }

    /// Requests that the running transaction is committed at once.
    pub(crate) fn want(&mut self) {
        self.wanted = true;
    }

    /// When the running transaction must be committed.
    pub(crate) fn due(&self, every: u64) -> Option<u64> {
        if self.is_empty() {
            None
        } else if self.wanted {
            Some(0)
        } else {
            Some(self.running.began + every)
        }
    }

    fn begin_if_empty(&mut self, now: u64) {
        if self.is_empty() {
            self.running.began = now;
        }
    }

    /// A block changes in the running transaction.
    #[inline]
    pub(crate) fn join(&mut self, block: u32, now: u64) {
        if self.in_running.insert(block) {
            self.begin_if_empty(now);
            self.running.blocks.push(block);
        }
    }

    /// A block is freed: no transaction writes it from now on.
    pub(crate) fn forget(&mut self, block: u32) {
        if self.in_running.remove(block) {
            self.running.blocks.retain(|other| *other != block);
        }
        self.in_committing.remove(block);
    }

    pub(crate) fn holds(&self, block: u32) -> bool {
        self.in_running.has(block) || self.in_committing.has(block)
    }

    pub(crate) fn add_file(&mut self, file: u32, generation: u32) {
        self.running.files.push((file, generation));
    }

    pub(crate) fn free_later(&mut self, first: u32, blocks: u32) {
        self.running.frees.push((first, blocks));
    }

    pub(crate) fn frees_pending(&self) -> bool {
        !self.running.frees.is_empty() || !self.committing.frees.is_empty()
    }

    pub(crate) fn frees(&self) -> impl Iterator<Item = &(u32, u32)> {
        self.running.frees.iter().chain(&self.committing.frees)
    }

    /// The running transaction becomes the committing one; false if there is nothing in it.
    pub(crate) fn begin(&mut self, now: u64) -> bool {
        if self.is_empty() {
            self.wanted = false;
            return false;
        }
        assert!(self.committing.blocks.is_empty() && self.committing.frees.is_empty());
        std::mem::swap(&mut self.running, &mut self.committing);
        std::mem::swap(&mut self.in_running, &mut self.in_committing);
        self.running.began = now;
        self.running_id += 1;
        self.wanted = false;
        self.stage = Stage::Data { at: 0, queued: false };
        true
    }

    pub(crate) fn ordered_file(&self, at: usize) -> Option<(u32, u32)> {
        self.committing.files.get(at).copied()
    }

    /// Blocks of the committing transaction that are still to be logged, and the descriptors before them.
    fn log_blocks(&self) -> u32 {
        let blocks = self.committing.blocks.iter().filter(|block| self.in_committing.has(**block)).count();
        let blocks = u32::try_from(blocks).expect("a transaction is smaller than the device");
        blocks + blocks.div_ceil(TAGS_PER_DESCRIPTOR)
    }

    /// Whether the ring has room for the committing transaction with a quarter to spare (JBD's reserve).
    pub(crate) fn has_room(&self) -> bool {
        self.used + self.log_blocks() < self.blocks - self.blocks / 4
    }

    /// A checkpoint has written everything home.
    pub(crate) fn emptied(&mut self) {
        self.used = 0;
    }

    /// How many blocks the log of the committing transaction takes, before its commit record.
    pub(crate) fn log(&self) -> u32 {
        self.log_blocks()
    }

    /// The next blocks of the ring, at most `most`: where they lie and how many follow each other.
    pub(crate) fn append(&mut self, most: u32) -> (u32, u32) {
        let mut within = self.head;
        for (first, blocks) in &self.runs {
            if within < *blocks {
                let run = most.min(blocks - within);
                self.head = (self.head + run) % self.blocks;
                self.used += run;
                return (first + within, run);
            }
            within -= blocks;
        }
        unreachable!("the head lies within the ring")
    }

    pub(crate) fn committing_blocks(&self) -> usize {
        self.committing.blocks.len()
    }

    /// A block of the committed transaction that must be written home: it was not freed and has not joined the next
    /// transaction.
    pub(crate) fn release(&mut self, at: usize) -> Option<u32> {
        let block = self.committing.blocks[at];
        (self.in_committing.remove(block) && !self.in_running.has(block)).then_some(block)
    }

    pub(crate) fn next_free(&mut self) -> Option<(u32, u32)> {
        self.committing.frees.pop()
    }

    /// The commit is done.
    pub(crate) fn end(&mut self) {
        self.committing.blocks.clear();
        self.committing.files.clear();
        self.stage = Stage::Idle;
    }
}
