//! The only access to the chip: legality, validity, counters by cause, the log of operations, and page contents.

use crate::contents::{Contents, Keeps, Logged};
use crate::groups::CountsByGroup;
use crate::owners::{OwnerCounts, Owners};
use crate::page_data::PageData;
use crate::stamps::Stamps;
use crate::{Cause, Counters, LpnRun, OP_KINDS, OpKind, Violation};
use flashwright_nand::{BlockId, Condition, Geometry, Lpn, Nand, Ppn, prefetch};
use serde::{Deserialize, Serialize};

/// One operation of the flash, or a run of page copies within a die, as the timing engine sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlashOp {
    /// The page; for an erase the first page of the block.
    pub ppn: Ppn,
    /// The kind of operation.
    pub kind: OpKind,
    /// Its cause.
    pub cause: Cause,
    /// The distance in the log back to the entry whose end this one must await; 0 for none.
    pub after: u32,
    /// 0 for a single operation. Else the entry stands for this many page copies, each a read and then a program, one
    /// after the other on the die of `ppn`; `kind` is then [`OpKind::Program`].
    pub copies: u32,
}

/// A page that is read so that a host program can write its content.
#[derive(Clone, Copy, Debug)]
struct Awaited {
    lpn: Lpn,
    /// The position in the log, plus 1, of the read; 0 if nothing is logged.
    read: u32,
    /// The cause that the program counts under.
    cause: Cause,
}

/// One bit for each block.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct SlcMarks {
    /// Pages of a block in SLC mode.
    pages: u32,
    marks: Vec<u64>,
}

/// The flash of a drive, with all state of its pages and blocks.
///
/// Validity belongs to the translation layer, not to the chip; it is kept here because every scheme needs the same
/// bitmap and the same counts. It takes one bit per page, so that it stays in the CPU cache.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Flash {
    pub(crate) nand: Nand,
    valid: Vec<u64>,
    pages_valid: Vec<u16>,
    /// The placement stream for which each block was last opened.
    streams: Vec<u8>,
    /// Which blocks were last opened in SLC mode, if any are.
    slc: Option<SlcMarks>,
    /// Operations since the start, by kind and cause.
    counters: Counters,
    /// Erases that were counted, and that a loss of power prevented.
    pub(crate) erases_prevented: u64,
    /// Host page writes so far: the clock by which schemes and policies count age.
    host_writes: u64,
    logging: bool,
    /// Whether copies are logged one by one, each as a read and a program.
    copies_apart: bool,
    #[serde(skip)]
    log: Vec<FlashOp>,
    #[serde(skip)]
    pub(crate) next_after: u32,
    /// The position in the log where background work begins, which the request does not wait for, and the totals of the
    /// counters there.
    #[serde(skip)]
    background: Option<(u32, [u64; OP_KINDS])>,
    /// Pages whose host program writes data that an earlier operation reads.
    #[serde(skip)]
    host_awaits: Vec<Awaited>,
    /// The index in that list where the next one is expected: pages are programmed in the order in which they were
    /// read.
    #[serde(skip)]
    awaits_next: usize,
    /// Page contents; none if they are not kept.
    pub(crate) contents: Option<Box<Contents>>,
    /// Who owns the logical pages, if anybody asked.
    owners: Option<Box<Owners>>,
    /// What each reclaim group did, if there are several.
    groups: Option<Box<CountsByGroup>>,
    /// Whether contents, owners or groups need to know of writes and programs: one test for all.
    is_watched: bool,
}

impl Flash {
    /// Wraps a chip of which the host sees `logical_pages`. `keeps` sets what is kept of page contents; `true` stands
    /// for stamps, `false` for nothing.
    #[must_use]
    pub fn new(nand: Nand, logical_pages: u32, logging: bool, keeps: impl Into<Keeps>) -> Self {
        let contents = Contents::new(keeps.into(), logical_pages, nand.geometry());
        let pages = nand.geometry().pages() as usize;
        Self {
            is_watched: contents.is_some(),
            valid: vec![0; pages.div_ceil(64)],
            logging,
            contents,
            ..Self::without_pages(nand)
        }
    }

    /// Flash only to be asked about its layout and its blocks, over a [`Nand::without_pages`].
    #[must_use]
    pub fn without_pages(nand: Nand) -> Self {
        let blocks = nand.geometry().blocks();
        Self {
            is_watched: false,
            owners: None,
            groups: None,
            valid: Vec::new(),
            pages_valid: vec![0; blocks as usize],
            streams: vec![0; blocks as usize],
            slc: None,
            counters: Counters::default(),
            erases_prevented: 0,
            host_writes: 0,
            logging: false,
            copies_apart: false,
            log: Vec::new(),
            next_after: 0,
            background: None,
            host_awaits: Vec::new(),
            awaits_next: 0,
            contents: None,
            nand,
        }
    }

    /// The chip, read-only.
    #[inline(always)]
    #[must_use]
    pub fn nand(&self) -> &Nand {
        &self.nand
    }
    /// The layout of the chip.
    #[inline(always)]
    #[must_use]
    pub fn geometry(&self) -> &Geometry {
        self.nand.geometry()
    }
    /// Counts of operations so far.
    #[inline(always)]
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
    /// Host page writes so far: the clock of ages.
    #[inline(always)]
    #[must_use]
    pub fn host_writes(&self) -> u64 {
        self.host_writes
    }
    /// The stamps, if any are kept.
    #[must_use]
    pub fn stamps(&self) -> Option<&Stamps> {
        self.contents.as_ref().map(|contents| &contents.stamps)
    }
    /// The stamps, to record a contradiction.
    pub fn stamps_mut(&mut self) -> Option<&mut Stamps> {
        self.contents.as_mut().map(|contents| &mut contents.stamps)
    }
    /// The bytes of pages, if they are kept.
    #[must_use]
    pub fn data(&self) -> Option<&PageData> {
        self.contents.as_ref().and_then(|contents| contents.data.as_ref())
    }
    /// The bytes of pages, for writing and reading.
    pub fn data_mut(&mut self) -> Option<&mut PageData> {
        self.contents.as_mut().and_then(|contents| contents.data.as_mut())
    }
    /// From now on counts what each owner of logical pages costs. `ends` is the page after the last one of each: owner 0 has the
    /// first pages, owner 1 those that follow, and nobody the rest.
    pub fn count_by_owner(&mut self, ends: &[u32]) {
        self.owners = Some(Box::new(Owners::new(ends)));
        self.is_watched = true;
    }
    /// What each owner of logical pages cost, and last what is nobody's; empty if nobody asked. Pages of tables are nobody's and
    /// not counted.
    #[must_use]
    pub fn owner_counts(&self) -> &[OwnerCounts] {
        self.owners.as_ref().map_or(&[], |owners| owners.counts())
    }
    /// The planes belong to these reclaim groups, and from now on programs and erases are counted by group. Goes on counting if they
    /// were counted before.
    pub(crate) fn count_by_group(&mut self, of_plane: Vec<u16>) {
        self.groups.get_or_insert_with(|| Box::new(CountsByGroup::new(of_plane)));
        self.is_watched = true;
    }
    /// Programs and erases of each reclaim group so far; empty unless there are several.
    #[must_use]
    pub fn group_counters(&self) -> &[Counters] {
        self.groups.as_ref().map_or(&[], |groups| groups.counters())
    }
    /// The reclaim group of `block`; 0 unless there are several.
    #[must_use]
    pub fn group_of(&self, block: BlockId) -> u16 {
        self.groups.as_ref().map_or(0, |groups| groups.of(self.geometry().plane_of(block)))
    }
    /// Whether `ppn` holds the current copy of its logical page.
    #[inline(always)]
    #[must_use]
    pub fn is_valid(&self, ppn: Ppn) -> bool {
        self.valid[ppn.index() / 64] >> (ppn.0 % 64) & 1 == 1
    }
    /// Valid pages of `block`.
    #[inline(always)]
    #[must_use]
    pub fn pages_valid(&self, block: BlockId) -> u32 {
        u32::from(self.pages_valid[block.index()])
    }
    /// Valid pages of all blocks. O(blocks).
    #[must_use]
    pub fn pages_valid_in_all(&self) -> u64 {
        self.pages_valid.iter().map(|pages| u64::from(*pages)).sum()
    }

    /// The placement stream for which `block` was last opened; 0 for schemes without streams.
    #[inline(always)]
    #[must_use]
    pub fn stream_of(&self, block: BlockId) -> u8 {
        self.streams[block.index()]
    }
    /// Records the placement stream for which `block` is opened.
    #[inline]
    pub fn set_stream(&mut self, block: BlockId, stream: u8) {
        self.streams[block.index()] = stream;
    }

    /// Lets blocks be opened in SLC mode, with this many pages each. Those that were found so stay so.
    pub(crate) fn allow_slc(&mut self, pages: u32) {
        let marks = vec![0; (self.geometry().blocks() as usize).div_ceil(64)];
        self.slc.get_or_insert(SlcMarks { pages, marks });
    }

    /// Whether `block` was opened in SLC mode: its cells hold one bit, and only its first pages exist. It holds from
    /// then on until the block is opened again, so that it still does while the block is erased.
    #[inline(always)]
    #[must_use]
    pub fn is_slc(&self, block: BlockId) -> bool {
        self.slc.as_ref().is_some_and(|slc| slc.marks[block.index() / 64] >> (block.0 % 64) & 1 == 1)
    }

    /// Records whether `block`, which is erased, is opened in SLC mode.
    pub(crate) fn set_slc(&mut self, block: BlockId, on: bool) {
        debug_assert_eq!(self.nand.next_page(block), 0, "an erased block is opened");
        if let Some(slc) = &mut self.slc {
            let (word, bit) = (&mut slc.marks[block.index() / 64], 1 << (block.0 % 64));
            *word = if on { *word | bit } else { *word & !bit };
        }
    }

    /// The valid pages of `block` in page order, as words of bits, each with the page of its lowest bit.
    #[inline]
    pub(crate) fn valid_words(&self, block: BlockId) -> impl Iterator<Item = (u32, u64)> {
        let first = self.geometry().first_page(block).0;
        let end = first + self.geometry().pages_per_block();
        (first / 64..end.div_ceil(64)).map(move |word| {
            let base = word * 64;
            let mut bits = self.valid[word as usize];
            if base < first {
                bits &= u64::MAX << (first - base);
            }
            if end - base < 64 {
                bits &= (1 << (end - base)) - 1;
            }
            (base, bits)
        })
    }

    /// The valid pages of `block` in page order.
    pub fn valid_pages(&self, block: BlockId) -> impl Iterator<Item = Ppn> {
        self.valid_words(block).flat_map(|(base, mut bits)| {
            std::iter::from_fn(move || {
                (bits != 0).then(|| {
                    let bit = bits.trailing_zeros();
                    bits &= bits - 1;
                    Ppn(base + bit)
                })
            })
        })
    }

    // --- host operations, announced by the drive before it calls the scheme ---

    /// The host writes `lpn`: the clock of ages advances.
    #[inline(always)]
    pub fn host_writes_page(&mut self, lpn: Lpn) {
        self.host_writes += 1;
        if self.is_watched {
            self.watch_write(lpn, 1);
        }
    }

    /// As [`Flash::host_writes_page`] for each page of a run.
    #[inline(always)]
    pub fn host_writes_run(&mut self, run: LpnRun) {
        self.host_writes += u64::from(run.pages);
        if self.is_watched {
            self.watch_write(run.first, run.pages);
        }
    }

    #[inline(never)] // drives that are not watched must not pay for it
    fn watch_write(&mut self, first: Lpn, pages: u32) {
        if let Some(contents) = &mut self.contents {
            (first.0..first.0 + pages).for_each(|lpn| contents.stamps.host_writes(Lpn(lpn)));
        }
        if let Some(owners) = &mut self.owners {
            owners.host_writes(first);
        }
    }

    /// The host trims `lpn`.
    #[inline(always)]
    pub fn host_trims_page(&mut self, lpn: Lpn) {
        if let Some(contents) = &mut self.contents {
            contents.stamps.host_trims(lpn);
            if let Some(tracker) = &mut contents.tracker {
                tracker.trimmed(lpn);
            }
        }
    }

    /// RAM takes the data that the host just wrote to `lpn`.
    #[inline(always)]
    pub fn ram_takes(&mut self, lpn: Lpn) {
        if let Some(contents) = &mut self.contents {
            contents.ram_takes(lpn);
        }
    }

    /// RAM takes a copy of `lpn` from `ppn`.
    #[inline(always)]
    pub fn ram_loads(&mut self, lpn: Lpn, ppn: Ppn) {
        if let Some(contents) = &mut self.contents {
            contents.ram_loads(lpn, ppn);
        }
    }

    /// RAM no longer holds `lpn`.
    #[inline(always)]
    pub fn ram_lets_go(&mut self, lpn: Lpn) {
        if let Some(contents) = &mut self.contents {
            contents.ram_lets_go(lpn);
        }
    }

    /// Answers a host read of `lpn` from RAM: no flash operation.
    #[inline(always)]
    pub fn read_from_ram(&mut self, lpn: Lpn) {
        if let Some(contents) = &mut self.contents {
            contents.delivers_from_ram(lpn);
        }
    }

    /// A write that covers `lpn` failed: from now on the copy in RAM, or else `held_in`, counts as its content.
    pub fn host_write_failed(&mut self, lpn: Lpn, held_in: Option<Ppn>) {
        if let Some(contents) = &mut self.contents {
            contents.stamps.accept(lpn, held_in);
        }
    }

    // --- operations of schemes ---

    /// The scheme dropped the old content of a page before it writes the new ([`crate::InvalidateOrder::BeforeGc`]): if that
    /// write fails, the page holds nothing.
    pub fn old_content_dropped(&mut self, lpn: Lpn) {
        if let Some(contents) = &mut self.contents {
            contents.stamps.old_content_dropped(lpn);
        }
    }

    /// Reads the page that holds `lpn` to answer the host.
    #[inline(always)]
    pub fn read(&mut self, ppn: Ppn, lpn: Lpn) {
        self.read_internal(ppn, Cause::Host);
        if self.contents.is_some() {
            let (owner, valid) = (self.nand.spare(ppn), self.is_valid(ppn));
            if let Some(contents) = &mut self.contents {
                contents.delivers(lpn, ppn, owner, valid);
            }
        }
    }

    /// Answers a host read of an unmapped page: no flash operation.
    #[inline(always)]
    pub fn read_unmapped(&mut self, lpn: Lpn) {
        self.counters.reads_unmapped += 1;
        if let Some(contents) = &mut self.contents {
            contents.stamps.delivers_nothing(lpn);
        }
    }

    /// Reads a page for the scheme's own purposes.
    #[inline(always)]
    pub fn read_internal(&mut self, ppn: Ppn, cause: Cause) {
        self.counters.add(OpKind::Read, cause, 1);
        self.note(ppn, OpKind::Read, cause);
    }

    /// Reads the spare area of a page.
    #[inline(always)]
    pub fn read_oob(&mut self, ppn: Ppn, cause: Cause) -> Option<Lpn> {
        self.counters.add(OpKind::OobRead, cause, 1);
        self.note(ppn, OpKind::OobRead, cause);
        self.nand.spare(ppn)
    }

    /// Reads the spare areas of all pages of a block, one operation a page.
    pub fn read_spares(&mut self, block: BlockId, cause: Cause) {
        let pages = self.geometry().pages_per_block();
        self.counters.add(OpKind::OobRead, cause, u64::from(pages));
        if self.logging {
            for page in 0..pages {
                self.note(self.geometry().page_at(block, page), OpKind::OobRead, cause);
            }
        }
    }

    /// Programs `ppn` with the newest data of `lpn` (or, beyond the logical space, with a page of the scheme's own
    /// tables) and marks it valid. It does not touch the old copy: see [`Flash::invalidate`].
    ///
    /// # Panics
    /// As [`Nand::program`].
    #[inline(always)]
    pub fn program(&mut self, ppn: Ppn, lpn: Lpn, mut cause: Cause) {
        let block = self.nand.program(ppn, lpn);
        self.valid[ppn.index() / 64] |= 1 << (ppn.0 % 64);
        self.pages_valid[block.index()] += 1;
        if cause == Cause::Host && !self.host_awaits.is_empty() {
            cause = self.await_read_of(lpn);
        }
        self.counters.add(OpKind::Program, cause, 1);
        self.note(ppn, OpKind::Program, cause);
        if self.is_watched {
            self.watch_program(ppn, lpn, cause);
        }
    }

    #[inline(never)] // drives that are not watched must not pay for it
    fn watch_program(&mut self, ppn: Ppn, lpn: Lpn, cause: Cause) {
        self.keep_programmed(ppn, lpn, cause);
        self.count_in_group(self.geometry().block_of(ppn), OpKind::Program, cause, 1);
        if let Some(owners) = &mut self.owners {
            match cause {
                Cause::Host => owners.host_programs(lpn),
                Cause::Gc | Cause::Merge | Cause::Padding | Cause::Wear => owners.moves(lpn),
                Cause::Translation | Cause::GcTranslation => {}
            }
        }
    }

    fn count_in_group(&mut self, block: BlockId, kind: OpKind, cause: Cause, operations: u64) {
        if let Some(groups) = &mut self.groups {
            groups.add(self.nand.geometry().plane_of(block), kind, cause, operations);
        }
    }

    /// Counts an operation on a block, where no speed is needed.
    pub(crate) fn count(&mut self, block: BlockId, kind: OpKind, cause: Cause) {
        self.counters.add(kind, cause, 1);
        self.count_in_group(block, kind, cause, 1);
    }

    fn keep_programmed(&mut self, ppn: Ppn, lpn: Lpn, cause: Cause) {
        if self.contents.is_none() {
            return;
        }
        let logged = self.logged(self.geometry().block_of(ppn), cause);
        if let Some(contents) = &mut self.contents {
            contents.programmed(ppn, lpn, logged);
        }
    }

    fn logged(&self, block: BlockId, cause: Cause) -> Logged {
        Logged { mark: self.mark(), cause, stream: self.stream_of(block), is_slc: self.is_slc(block) }
    }

    /// Programs `ppn` with a page of the scheme's own tables when the drive is built. The step must be legal, but is
    /// neither counted nor timed.
    ///
    /// # Panics
    /// As [`Nand::program`].
    pub fn format(&mut self, ppn: Ppn, lpn: Lpn) {
        self.nand.program(ppn, lpn);
        self.mark_run_valid(ppn.0, 1);
        self.keep_programmed(ppn, lpn, Cause::Translation);
    }

    /// Moves one valid page: reads `from`, programs `to` with the same content, and marks `from` invalid.
    ///
    /// # Panics
    /// If `from` is not valid, and as [`Nand::program`].
    pub fn copy(&mut self, from: Ppn, to: Ppn, cause: Cause) {
        let lpn = self.nand.spare(from).expect("a valid page names its owner");
        self.copy_run(&[from.0], &[lpn.0], to, cause);
        self.invalidate(from);
    }

    /// Copies the pages `from`, owned by `lpns`, to consecutive pages of one block from `to` on. The sources stay
    /// valid until they are invalidated one by one, or all at once by [`Flash::invalidate_block`].
    ///
    /// # Panics
    /// As [`Nand::program_run`].
    pub fn copy_run(&mut self, from: &[u32], lpns: &[u32], to: Ppn, cause: Cause) {
        debug_assert!(from.iter().all(|ppn| self.is_valid(Ppn(*ppn))), "copy of a page that is not valid");
        self.nand.program_run(to, lpns);
        let count = u32::try_from(lpns.len()).expect("a run lies in one block");
        self.mark_run_valid(to.0, count);
        self.counters.add(OpKind::Read, cause, u64::from(count));
        self.counters.add(OpKind::Program, cause, u64::from(count));
        if self.logging {
            self.note_copies(from, to, cause);
        }
        if self.is_watched {
            self.watch_copies(from, lpns, to, cause);
        }
    }

    #[inline(never)] // drives that are not watched must not pay for it
    fn watch_copies(&mut self, from: &[u32], lpns: &[u32], to: Ppn, cause: Cause) {
        let block = self.geometry().block_of(to);
        self.count_in_group(block, OpKind::Program, cause, lpns.len() as u64);
        let logged = self.logged(block, cause);
        if let Some(contents) = &mut self.contents {
            contents.copied(from, lpns, to, logged);
        }
        if let (Some(owners), Cause::Gc | Cause::Merge | Cause::Padding | Cause::Wear) = (&mut self.owners, cause) {
            lpns.iter().for_each(|lpn| owners.moves(Lpn(*lpn)));
        }
    }

    #[allow(clippy::cast_possible_truncation)] // a block has at most 65,535 pages
    pub(crate) fn mark_run_valid(&mut self, first: u32, count: u32) {
        self.pages_valid[self.nand.geometry().block_of(Ppn(first)).index()] += count as u16;
        let end = first + count;
        let mut at = first;
        while at < end {
            let in_word = (64 - at % 64).min(end - at);
            let ones = if in_word == 64 { u64::MAX } else { (1 << in_word) - 1 };
            self.valid[at as usize / 64] |= ones << (at % 64);
            at += in_word;
        }
    }

    /// Marks the copy in `ppn` as invalid; returns its block and the number of valid pages left in it.
    ///
    /// # Panics
    /// If the page is not valid.
    #[inline(always)]
    pub fn invalidate(&mut self, ppn: Ppn) -> (BlockId, u32) {
        let (word, bit) = (&mut self.valid[ppn.index() / 64], 1 << (ppn.0 % 64));
        if *word & bit == 0 {
            invalidated_twice(ppn);
        }
        *word ^= bit;
        let block = self.nand.geometry().block_of(ppn);
        let left = &mut self.pages_valid[block.index()];
        *left -= 1;
        (block, u32::from(*left))
    }

    /// Marks every page of a block as invalid, after its valid pages were copied.
    pub fn invalidate_block(&mut self, block: BlockId) {
        let first = self.geometry().first_page(block).0;
        let end = first + self.geometry().pages_per_block();
        let mut at = first;
        while at < end {
            let in_word = (64 - at % 64).min(end - at);
            let ones = if in_word == 64 { u64::MAX } else { (1 << in_word) - 1 };
            self.valid[at as usize / 64] &= !(ones << (at % 64));
            at += in_word;
        }
        self.pages_valid[block.index()] = 0;
    }

    /// Erases a block without valid pages.
    ///
    /// # Panics
    /// If the block holds a valid page, and as [`Nand::erase`].
    pub fn erase(&mut self, block: BlockId, cause: Cause) {
        assert!(self.pages_valid(block) == 0, "erase of block {} with valid pages", block.0);
        if self.contents.is_some() {
            self.flush_journal();
        }
        self.counters.pages_used_at_erase += u64::from(self.nand.pages_programmed(block));
        self.nand.erase(block);
        self.count(block, OpKind::Erase, cause);
        self.note(self.geometry().first_page(block), OpKind::Erase, cause);
        let mark = self.mark();
        if let Some(contents) = &mut self.contents {
            contents.erased(block, mark, cause);
        }
    }

    /// Takes a block out of use; its pages stay readable.
    pub fn retire(&mut self, block: BlockId) {
        self.nand.retire(block);
        let mark = self.mark();
        if let Some(tracker) = self.tracker_mut() {
            tracker.retired(block, mark);
        }
    }

    /// Uses a retired block again in which a mount found current pages, until these have moved.
    pub fn use_again(&mut self, block: BlockId) {
        self.nand.use_again(block);
    }

    /// Makes the next operation wait for the end of the one `distance` operations before it.
    #[inline]
    pub fn next_waits_for(&mut self, distance: u32) {
        self.next_after = distance;
    }

    /// A mark on the last operation, for [`Flash::next_waits_for_mark`]; 0 if no operation is logged.
    #[inline(always)]
    #[must_use]
    pub fn mark(&self) -> u32 {
        u32::try_from(self.log.len()).expect("a request's operations fit 32 bits")
    }

    /// Makes the next operation wait for the end of the marked one; mark 0 for none.
    #[inline(always)]
    pub fn next_waits_for_mark(&mut self, mark: u32) {
        if mark > 0 {
            self.next_after = self.mark() + 1 - mark;
        }
    }

    /// The following operations run in the background: the current request does not wait for them.
    #[inline]
    pub fn rest_in_background(&mut self) {
        self.background.get_or_insert((self.mark(), self.counters.totals()));
        self.next_after = 0;
    }

    /// Where background work begins: the position in the log, and the totals of the counters; none if the current
    /// request waits for all operations.
    #[inline(always)]
    #[must_use]
    pub fn background(&self) -> Option<(usize, [u64; OP_KINDS])> {
        self.background.map(|(at, totals)| (at as usize, totals))
    }

    /// Makes the host program of `lpn` wait, within this request, for the end of the last operation, because it writes
    /// what that one reads.
    pub fn host_program_waits(&mut self, lpn: Lpn) {
        if self.logging {
            self.host_awaits.push(Awaited { lpn, read: self.mark(), cause: Cause::Host });
        }
    }

    /// Makes the next host program of `lpn` write the content of `from`, wait for the last operation, which read it,
    /// and count as padding; in force until [`Flash::padding_done`].
    pub fn pads(&mut self, lpn: Lpn, from: Ppn) {
        self.host_awaits.push(Awaited { lpn, read: self.mark(), cause: Cause::Padding });
        if let Some(contents) = &mut self.contents {
            contents.pads(lpn, from);
        }
    }

    /// The padded pages are written.
    #[inline]
    pub fn padding_done(&mut self) {
        self.forget_awaits();
        if let Some(contents) = &mut self.contents {
            contents.padding_done();
        }
    }

    #[inline]
    fn forget_awaits(&mut self) {
        self.host_awaits.clear();
        self.awaits_next = 0;
    }

    /// The cause that a host program of `lpn` counts under; makes the program wait for the read of its data.
    #[cold]
    fn await_read_of(&mut self, lpn: Lpn) -> Cause {
        let at = self.awaits_next;
        let found = match self.host_awaits.get(at) {
            Some(next) if next.lpn == lpn => Some(at),
            // The list is usually in page order, but nothing relies on it.
            Some(next) if next.lpn > lpn && at == 0 => None,
            _ => self.host_awaits.iter().position(|awaited| awaited.lpn == lpn),
        };
        let Some(at) = found else { return Cause::Host };
        self.awaits_next = at + 1;
        let Awaited { read, cause, .. } = self.host_awaits[at];
        self.next_waits_for_mark(read);
        cause
    }

    /// No page is valid any more.
    pub(crate) fn forget_validity(&mut self) {
        self.valid.fill(0);
        self.pages_valid.fill(0);
        self.streams.fill(0);
        if let Some(slc) = &mut self.slc {
            slc.marks.fill(0);
        }
    }

    /// Records that `block` was found in SLC mode, or not.
    pub(crate) fn mark_slc(&mut self, block: BlockId, on: bool) {
        if let Some(slc) = self.slc.as_mut().filter(|_| on) {
            slc.marks[block.index() / 64] |= 1 << (block.0 % 64);
        }
    }

    #[inline(always)]
    pub(crate) fn note(&mut self, ppn: Ppn, kind: OpKind, cause: Cause) {
        if self.logging {
            self.log.push(FlashOp { ppn, kind, cause, after: self.next_after, copies: 0 });
            self.next_after = 0;
        }
    }

    /// From now on logs every copy as a read and a program, so that the log names the page that was read.
    pub fn log_copies_apart(&mut self) {
        self.copies_apart = true;
    }

    /// Logs copies to consecutive pages from `to` on: as runs within a die, else one by one.
    fn note_copies(&mut self, from: &[u32], to: Ppn, cause: Cause) {
        let die = self.geometry().die_of(to);
        let mut open_run = false;
        for (from, to) in from.iter().map(|ppn| Ppn(*ppn)).zip((to.0..).map(Ppn)) {
            if self.copies_apart || self.geometry().die_of(from) != die {
                self.note(from, OpKind::Read, cause);
                self.next_after = 1;
                self.note(to, OpKind::Program, cause);
                open_run = false;
            } else if open_run {
                self.log.last_mut().expect("a run is open").copies += 1;
            } else {
                self.log.push(FlashOp { ppn: to, kind: OpKind::Program, cause, after: self.next_after, copies: 1 });
                self.next_after = 0;
                open_run = true;
            }
        }
    }

    // --- state that the drive and the audit read ---

    /// Logs nothing while no time passes, and returns whether it logged. Where contents are kept it goes on, since these are noted
    /// by places in the log.
    pub fn stop_logging(&mut self) -> bool {
        let logs = self.logging && self.contents.is_none();
        self.logging &= !logs;
        logs
    }

    /// Logs again, if [`Flash::stop_logging`] said that it did.
    pub fn log_again(&mut self, logs: bool) {
        self.logging |= logs;
    }

    /// The operations since the last [`Flash::clear_log`]; empty if logging is off.
    #[inline]
    #[must_use]
    pub fn log(&self) -> &[FlashOp] {
        &self.log
    }

    /// Clears the log but keeps its memory.
    #[inline]
    pub fn clear_log(&mut self) {
        self.log.clear();
        self.next_after = 0;
        self.background = None;
        self.forget_awaits();
    }

    /// Warms the CPU cache for an invalidation of `ppn`.
    #[inline(always)]
    pub fn expect_invalidation(&self, ppn: Ppn) {
        prefetch(&self.valid, ppn.index() / 64);
        prefetch(&self.pages_valid, self.nand.geometry().block_of(ppn).index());
    }

    /// Recounts all redundant state and appends contradictions.
    pub fn audit(&self, violations: &mut Vec<Violation>) {
        let mut erases = 0;
        for block in (0..self.geometry().blocks()).map(BlockId) {
            let counted = self.valid_pages(block).count();
            if counted != self.pages_valid(block) as usize {
                violations.push(Violation(format!(
                    "block {} counts {} valid pages, a recount finds {counted}",
                    block.0,
                    self.pages_valid(block)
                )));
            }
            for ppn in self.valid_pages(block) {
                if self.nand.spare(ppn).is_none() {
                    violations.push(Violation(format!("page {} is valid but erased", ppn.0)));
                }
            }
            if self.nand.condition(block) == Condition::FactoryBad && self.nand.next_page(block) != 0 {
                violations.push(Violation(format!("factory-bad block {} was programmed", block.0)));
            }
            if let Some(slc) =
                self.slc.as_ref().filter(|slc| self.is_slc(block) && self.nand.next_page(block) > slc.pages)
            {
                violations.push(Violation(format!(
                    "block {} has {} pages programmed, in SLC mode it has {}",
                    block.0,
                    self.nand.next_page(block),
                    slc.pages
                )));
            }
            erases += u64::from(self.nand.erases(block));
        }
        let retired = (0..self.geometry().blocks()).map(BlockId);
        let retired = retired.filter(|block| self.nand.condition(*block) == Condition::Retired).count();
        if retired != self.nand.blocks_retired() as usize {
            violations.push(Violation(format!(
                "{retired} blocks are retired, the chip counts {}",
                self.nand.blocks_retired()
            )));
        }
        if erases.wrapping_add(self.erases_prevented) != self.counters.total(OpKind::Erase) {
            violations.push(Violation(format!(
                "blocks count {erases} erases, causes count {}",
                self.counters.total(OpKind::Erase)
            )));
        }
        if let Some(data) = self.data() {
            data.audit(|ppn| self.nand.spare(ppn).is_some(), violations);
        }
        if !self.counters.is_consistent() {
            violations.push(Violation("operations by cause do not add up to the totals".to_owned()));
        }
        for kind in [OpKind::Program, OpKind::Erase] {
            let by_group: u64 = self.group_counters().iter().map(|group| group.total(kind)).sum();
            if self.groups.is_some() && by_group != self.counters.total(kind) {
                violations.push(Violation(format!(
                    "{kind:?}: {} operations, the groups count {by_group}",
                    self.counters.total(kind)
                )));
            }
        }
    }
}

#[cold]
#[inline(never)]
fn invalidated_twice(ppn: Ppn) -> ! {
    panic!("page {} invalidated twice", ppn.0)
}
