//! The journal of trims: which pages it goes to, and what it holds.
//!
//! ```text
//!   blocks set apart:   [ snapshot | trims | trims ] [ trims ........ ] [ erased ] [ erased ]
//!                                                          open           for the next snapshot
//! ```
//!
//! When only the blocks for a snapshot are left erased, a snapshot of all trimmed pages goes there, and then all other blocks are
//! erased. A snapshot counts once all its pages are there. It lacks pages that were trimmed and are being programmed again; the old
//! blocks have their trims, and are erased only once those programs are done. A mount that finds a whole snapshot and older blocks,
//! or no room for the next snapshot, takes another snapshot before it erases them, in blocks that nothing else takes.

use flashwright_nand::{BlockId, Geometry, Ppn};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Bytes of a trim in the journal: first page, number of pages, sequence number.
const TRIM_BYTES: u64 = 16;

/// What a page of the journal, or of a checkpoint, holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Record {
    /// Trimmed runs in the order of their trims: first page, number of pages, sequence number.
    Trims(Vec<(u32, u32, u64)>),
    /// A part of a snapshot: from a multiple of 64 on, one bit for each logical page that was trimmed and not written again, up to
    /// a sequence number.
    Snapshot {
        /// The number up to which it holds.
        sequence: u64,
        /// Whether it was taken by a mount, when no trimmed page was being programmed again.
        is_exact: bool,
        /// The number of this part.
        part: u32,
        /// The number of parts.
        parts: u32,
        /// The first word of this part in the whole bitmap.
        first_word: u32,
        /// The bits.
        words: Vec<u64>,
    },
    /// A part of a checkpoint.
    Checkpoint {
        /// The number up to which it holds.
        sequence: u64,
        /// A share of the places of all pages, and of the states of blocks. With a map that lies on flash it includes what the map's
        /// own pages say; the part then stands for fewer bytes.
        words: Vec<u32>,
    },
    /// The end of a checkpoint: everything that it names is on flash.
    CheckpointEnd {
        /// The number up to which it holds.
        sequence: u64,
        /// Its parts.
        pages: Vec<Ppn>,
    },
}

impl Record {
    /// Whether it belongs to a checkpoint.
    pub(crate) fn is_of_checkpoint(&self) -> bool {
        matches!(self, Self::Checkpoint { .. } | Self::CheckpointEnd { .. })
    }
}

/// What the journal tells of when a drive is mounted.
pub(crate) struct FoundTrims {
    /// Its pages.
    pub pages: Vec<Ppn>,
    /// Trimmed runs: first page, number of pages, sequence number.
    pub runs: Vec<(u32, u32, u64)>,
    /// The number up to which the newest whole snapshot holds, 0 for none, and whether it is exact.
    pub snapshot: (u64, bool),
    /// Pages that tell something: all but those of snapshots that lack a part.
    pub telling: Vec<Ppn>,
}

/// The journal of a drive.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Journal {
    /// One bit for each logical page that was trimmed and not programmed since.
    trimmed: Vec<u64>,
    /// Trims that are not in the journal yet.
    unwritten: VecDeque<(u32, u32, u64)>,
    trims_per_page: usize,
    words_per_page: usize,
    pages_per_block: u32,
    /// Blocks that a snapshot may need.
    snapshot_blocks: usize,
    /// Erased blocks for the snapshot of a mount.
    reserve: Vec<BlockId>,
    erased: VecDeque<BlockId>,
    full: Vec<BlockId>,
    open: Option<(BlockId, u32)>,
    /// Pages found when the drive is mounted.
    #[serde(skip)]
    found: Vec<(Ppn, Record)>,
}

impl Journal {
    /// Blocks that the journal of a drive takes.
    pub fn blocks_needed(logical_pages: u32, geometry: &Geometry) -> u32 {
        let pages = (u64::from(logical_pages).div_ceil(64) * 8).div_ceil(geometry.page_size().0);
        let snapshot = pages.div_ceil(u64::from(geometry.pages_per_block()));
        u32::try_from(3 * snapshot + 2).unwrap_or(u32::MAX)
    }

    /// An empty journal in erased blocks.
    pub fn new(logical_pages: u32, blocks: &[BlockId], geometry: &Geometry) -> Self {
        let page_bytes = geometry.page_size().0;
        let snapshot_blocks = (blocks.len() - 2) / 3;
        let (reserve, erased) = blocks.split_at(snapshot_blocks);
        Self {
            trimmed: vec![0; (logical_pages as usize).div_ceil(64)],
            unwritten: VecDeque::new(),
            trims_per_page: usize::try_from(page_bytes / TRIM_BYTES).expect("a page fits the memory").max(1),
            words_per_page: usize::try_from(page_bytes / 8).expect("a page fits the memory").max(1),
            pages_per_block: geometry.pages_per_block(),
            snapshot_blocks,
            reserve: reserve.to_vec(),
            erased: erased.iter().copied().collect(),
            full: Vec::new(),
            open: None,
            found: Vec::new(),
        }
    }

    /// Whether trims wait to be written.
    #[inline]
    pub fn is_behind(&self) -> bool {
        !self.unwritten.is_empty()
    }

    /// The host trims a page under a sequence number.
    pub fn trimmed(&mut self, lpn: u32, sequence: u64) {
        if let Some(word) = self.trimmed.get_mut(lpn as usize / 64) {
            *word |= 1 << (lpn % 64);
        }
        match self.unwritten.back_mut() {
            // Nothing was programmed between the two, so one number says the same.
            Some((first, pages, last)) if *first + *pages == lpn && *last + 1 == sequence => {
                (*pages, *last) = (*pages + 1, sequence);
            }
            _ => self.unwritten.push_back((lpn, 1, sequence)),
        }
    }

    /// A page of the host is programmed; returns the blocks that may hold a record of its trim. They are needed until the program
    /// is done.
    pub fn written(&mut self, lpn: u32) -> Vec<BlockId> {
        let Some(word) = self.trimmed.get_mut(lpn as usize / 64).filter(|word| **word >> (lpn % 64) & 1 == 1) else {
            return Vec::new();
        };
        *word &= !(1 << (lpn % 64));
        self.full.iter().copied().chain(self.open.map(|(block, _)| block)).collect()
    }

    /// The trims for the next page of the journal.
    pub fn next_trims(&mut self) -> Record {
        let count = self.trims_per_page.min(self.unwritten.len());
        Record::Trims(self.unwritten.drain(..count).collect())
    }

    /// Whether the next page needs a snapshot first.
    pub fn needs_snapshot(&self) -> bool {
        self.open.is_none_or(|(_, next)| next == self.pages_per_block) && self.erased.len() <= self.snapshot_blocks
    }

    /// Whether a snapshot has no room but the reserve. A mount finds it so where a checkpoint had made blocks obsolete, and the journal
    /// went on in another one before they were erased.
    pub fn lacks_room(&self) -> bool {
        self.erased.len() < self.snapshot_blocks
    }

    /// The pages of a snapshot, and the blocks that can be erased once they are written.
    pub fn snapshot(&mut self, sequence: u64, is_exact: bool) -> (Vec<Record>, Vec<BlockId>) {
        if let Some((block, _)) = self.open.take() {
            self.full.push(block);
        }
        if is_exact {
            self.reserve.drain(..).rev().for_each(|block| self.erased.push_front(block));
        }
        let chunks = self.trimmed.chunks(self.words_per_page);
        let parts = u32::try_from(chunks.len()).expect("pages of a snapshot fit 32 bits");
        let record = |(part, words): (u32, &[u64])| Record::Snapshot {
            sequence,
            is_exact,
            part,
            parts,
            first_word: part * u32::try_from(self.words_per_page).expect("words of a page fit 32 bits"),
            words: words.to_vec(),
        };
        let records = (0..parts).zip(chunks).map(record).collect();
        (records, std::mem::take(&mut self.full))
    }

    /// The next page of the journal, without a snapshot.
    pub fn next_page(&mut self, geometry: &Geometry) -> Ppn {
        let (block, page) = match self.open {
            Some((block, next)) if next < self.pages_per_block => (block, next),
            other => {
                self.full.extend(other.map(|(block, _)| block));
                (self.erased.pop_front().expect("a snapshot frees blocks before the last ones are taken"), 0)
            }
        };
        self.open = Some((block, page + 1));
        geometry.page_at(block, page)
    }

    /// A block was erased.
    pub fn erased(&mut self, block: BlockId) {
        if self.reserve.len() < self.snapshot_blocks {
            self.reserve.push(block);
        } else {
            self.erased.push_back(block);
        }
    }

    /// Blocks without room.
    pub fn full_blocks(&self) -> Vec<BlockId> {
        self.full.clone()
    }

    /// Blocks hold nothing that is needed any more: returns those that are still full, which are to be erased.
    pub fn give_up(&mut self, blocks: &[BlockId]) -> Vec<BlockId> {
        let (obsolete, full) = self.full.iter().partition(|block| blocks.contains(block));
        self.full = full;
        obsolete
    }

    /// A page of the journal was found.
    pub fn found(&mut self, ppn: Ppn, record: Record) {
        self.found.push((ppn, record));
    }

    /// What the pages found tell of. A snapshot of which a part is missing tells nothing: what it replaces is still there.
    pub fn take_found(&mut self) -> FoundTrims {
        let found = std::mem::take(&mut self.found);
        let mut parts_found = BTreeMap::new();
        for (_, record) in &found {
            if let Record::Snapshot { sequence, .. } = record {
                *parts_found.entry(*sequence).or_insert(0) += 1;
            }
        }
        let (mut pages, mut telling, mut runs_found, mut snapshot) = (Vec::new(), Vec::new(), Vec::new(), (0, false));
        for (ppn, record) in found {
            pages.push(ppn);
            telling.push(ppn);
            match record {
                Record::Trims(runs) => runs_found.extend(runs),
                Record::Snapshot { sequence, is_exact, parts, first_word, words, .. }
                    if parts_found[&sequence] == parts =>
                {
                    snapshot = snapshot.max((sequence, is_exact));
                    for (word, bits) in (first_word..).zip(words) {
                        let set = (0..64).filter(|bit| bits >> bit & 1 == 1);
                        runs_found.extend(set.map(|bit| (word * 64 + bit, 1, sequence)));
                    }
                }
                _ => _ = telling.pop(),
            }
        }
        FoundTrims { pages, runs: runs_found, snapshot, telling }
    }

    /// Takes the state that was found: for each block the pages programmed, in the order in which the blocks were opened.
    pub fn restore(&mut self, found: &[(BlockId, u32)]) {
        self.forget();
        let last_used = found.iter().rfind(|(_, pages)| *pages > 0).map(|(block, _)| *block);
        for (block, pages) in found {
            match *pages {
                0 => self.erased(*block),
                pages if pages < self.pages_per_block && Some(*block) == last_used => self.open = Some((*block, pages)),
                _ => self.full.push(*block),
            }
        }
    }

    /// A page is trimmed, as the journal says.
    pub fn still_trimmed(&mut self, lpn: u32) {
        if let Some(word) = self.trimmed.get_mut(lpn as usize / 64) {
            *word |= 1 << (lpn % 64);
        }
    }

    /// Forgets what was in RAM, but not what was found.
    pub fn forget(&mut self) {
        self.trimmed.fill(0);
        self.unwritten.clear();
        self.reserve.clear();
        self.erased.clear();
        self.full.clear();
        self.open = None;
    }
}
