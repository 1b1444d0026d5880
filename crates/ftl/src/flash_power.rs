//! The flash when power may fail: its changes in order, the journal of trims, and its state after a loss of power.

use crate::durable::{Change, Changed, Journal, Medium, PageState, Record, SpareArea, Tracker};
use crate::{Cause, Flash, OpKind};
use flashwright_nand::{BlockId, Condition, Geometry, Lpn, PlaneId, Ppn, TORN};

impl Flash {
    /// From now on lists every change of the chips, and keeps a journal of trims in blocks that no scheme gets: the last good ones
    /// of the planes in turn. To be called before the scheme is built.
    ///
    /// # Panics
    /// If contents are not kept, or there are fewer good blocks than the journal takes.
    pub fn track_changes(&mut self, logical_pages: u32) {
        let geometry = *self.geometry();
        let blocks = self.set_apart(Journal::blocks_needed(logical_pages, &geometry));
        self.log_copies_apart();
        let contents = self.contents.as_mut().expect("who tracks changes keeps contents");
        contents.tracker = Some(Tracker::new(logical_pages, &blocks, &geometry));
    }

    /// Sets the last good blocks of the planes in turn apart.
    pub(crate) fn set_apart(&mut self, count: u32) -> Vec<BlockId> {
        let geometry = *self.geometry();
        let planes = (0..geometry.planes()).cycle().take(count as usize);
        planes
            .map(|plane| {
                let first = geometry.first_block(PlaneId(plane)).0;
                let mut blocks = (first..first + geometry.blocks_per_plane()).rev().map(BlockId);
                let last = blocks.find(|block| self.nand.condition(*block) == Condition::Good);
                let block = last.expect("blocks to be set apart were checked against the geometry");
                self.nand.set_apart(block);
                block
            })
            .collect()
    }

    /// Blocks that [`Flash::track_changes`] sets apart.
    #[must_use]
    pub fn journal_blocks(logical_pages: u32, geometry: &Geometry) -> u32 {
        Journal::blocks_needed(logical_pages, geometry)
    }

    /// Whether power may fail, so that nothing may be erased before what replaces it is programmed.
    #[must_use]
    pub fn may_lose_power(&self) -> bool {
        self.tracker().is_some()
    }

    pub(crate) fn tracker(&self) -> Option<&Tracker> {
        self.contents.as_ref()?.tracker.as_ref()
    }

    pub(crate) fn tracker_mut(&mut self) -> Option<&mut Tracker> {
        self.contents.as_mut()?.tracker.as_mut()
    }

    /// Programs a page of the host in a merge: until the merge has ended, its request is not answered.
    pub(crate) fn program_in_merge(&mut self, ppn: Ppn, lpn: Lpn) {
        if let Some(tracker) = self.tracker_mut() {
            tracker.in_merge();
        }
        self.program(ppn, lpn, Cause::Host);
    }

    /// The changes since the last call, in the order decided.
    pub fn take_changes(&mut self) -> Vec<Change> {
        self.tracker_mut().map(|tracker| std::mem::take(&mut tracker.changes)).unwrap_or_default()
    }

    /// As [`Flash::take_changes`], those of the first `entries` of the log.
    pub fn take_changes_of(&mut self, entries: u32) -> Vec<Change> {
        let Some(tracker) = self.tracker_mut() else { return Vec::new() };
        let count = tracker.changes.partition_point(|change| change.mark <= entries);
        tracker.changes.drain(..count).collect()
    }

    /// The spare area of a programmed page, if changes are tracked.
    #[must_use]
    pub fn spare_area(&self, ppn: Ppn) -> Option<SpareArea> {
        let owner = self.nand.spare(ppn).filter(|owner| *owner != TORN)?;
        let (sequence, version) = self.tracker()?.numbers(ppn);
        Some(SpareArea { owner, sequence, version })
    }

    /// Writes the trims that the journal lacks: what a flush promises, and what an erase needs, since the erased page may have been
    /// the only one that outranked an older copy elsewhere. The first page of the journal waits for what the next operation was to
    /// wait for, and that for the last page.
    #[cold]
    pub fn flush_journal(&mut self) {
        while self.tracker().is_some_and(|tracker| tracker.journal.is_behind()) {
            self.make_room_in_journal();
            if let Some(tracker) = self.tracker_mut() {
                let record = tracker.journal.next_trims();
                self.program_record(record);
                self.next_waits_for(1);
            }
        }
    }

    fn make_room_in_journal(&mut self) {
        if self.tracker().is_some_and(|tracker| tracker.journal.needs_snapshot()) {
            self.write_snapshot(false);
        }
    }

    /// Writes a snapshot of all trimmed pages, and erases what it replaces. It is exact if no trimmed page is being programmed again,
    /// as in a mount.
    pub(crate) fn write_snapshot(&mut self, is_exact: bool) {
        let Some(tracker) = self.tracker_mut() else { return };
        let sequence = tracker.next();
        let (records, obsolete) = tracker.journal.snapshot(sequence, is_exact);
        for record in records {
            self.program_record(record);
            self.next_waits_for(1);
        }
        for block in obsolete {
            self.erase_in_journal(block);
        }
    }

    pub(crate) fn erase_in_journal(&mut self, block: BlockId) {
        self.erase_set_apart(block);
        if let Some(tracker) = self.tracker_mut() {
            tracker.journal.erased(block);
        }
    }

    /// Erases a block that is set apart; the next operation waits for it.
    pub(crate) fn erase_set_apart(&mut self, block: BlockId) {
        self.nand.erase(block);
        self.count(block, OpKind::Erase, Cause::Translation);
        let first = self.geometry().first_page(block);
        self.note(first, OpKind::Erase, Cause::Translation);
        let mark = self.mark();
        if let Some(tracker) = self.tracker_mut() {
            tracker.erased(block, mark, Cause::Translation);
        }
        self.next_waits_for(1);
    }

    fn program_record(&mut self, record: Record) {
        let geometry = *self.geometry();
        let Some(tracker) = self.tracker_mut() else { return };
        let ppn = tracker.journal.next_page(&geometry);
        let mark = self.program_set_apart(ppn);
        if let Some(tracker) = self.tracker_mut() {
            tracker.recorded(ppn, record, mark, Cause::Translation);
        }
    }

    /// Programs a page of a block that is set apart, and returns its mark in the log.
    pub(crate) fn program_set_apart(&mut self, ppn: Ppn) -> u32 {
        self.nand.program(ppn, crate::durable::SYSTEM);
        self.count(self.geometry().block_of(ppn), OpKind::Program, Cause::Translation);
        self.note(ppn, OpKind::Program, Cause::Translation);
        self.mark()
    }

    // --- after a loss of power ---

    /// Forgets everything that was in RAM, and takes what the chips hold. Nothing is valid until a scheme says so. `lost` are the
    /// changes that were decided and did not happen; the counts keep them, since they only grow.
    pub fn lose_power(&mut self, medium: &Medium, lost: &[Change]) {
        self.clear_log();
        let erases = lost.iter().filter(|change| matches!(change.what, Changed::Erase(_))).count();
        self.erases_prevented += erases as u64;
        self.forget_validity();
        let geometry = *self.geometry();
        if let Some(contents) = &mut self.contents {
            contents.stamps.forget();
            if let Some(data) = &mut contents.data {
                data.forget(&geometry);
            }
            if let Some(tracker) = &mut contents.tracker {
                tracker.forget();
            }
        }
        for block in (0..geometry.blocks()).map(BlockId) {
            self.find_block(block, medium);
        }
    }

    /// As [`Flash::lose_power`], with chips that were in use before this drive was built: their erases are not among its counts.
    pub fn take_over(&mut self, medium: &Medium) {
        let lost = self.take_changes();
        self.lose_power(medium, &lost);
        let erases = medium.blocks().iter().map(|block| u64::from(block.erases)).sum();
        self.erases_prevented = self.counters().total(OpKind::Erase).wrapping_sub(erases);
    }

    fn find_block(&mut self, block: BlockId, medium: &Medium) {
        let found = medium.block(block);
        let owner = |(state, page): &(PageState, crate::durable::Programmed)| match state {
            PageState::Erased => None,
            PageState::Programmed => Some(Lpn(page.owner)),
            PageState::Torn => Some(TORN),
        };
        self.nand.restore(block, found.erases, found.is_retired, found.pages.iter().map(owner));
        let first = self.geometry().first_page(block).0;
        for (ppn, (state, page)) in (first..).map(Ppn).zip(&found.pages) {
            if *state != PageState::Programmed {
                continue;
            }
            self.set_stream(block, page.stream);
            self.mark_slc(block, page.is_slc);
            let Some(contents) = &mut self.contents else { continue };
            contents.stamps.found(ppn, page.stamp);
            if let Some(data) = &mut contents.data {
                data.found(ppn, page.bytes.clone());
            }
            if let Some(tracker) = &mut contents.tracker {
                tracker.found(ppn, page.sequence, page.version);
                match (&page.record, &mut tracker.checkpoints) {
                    (Some(record), Some(checkpoints)) if record.is_of_checkpoint() => {
                        checkpoints.found(ppn, (**record).clone());
                    }
                    (Some(record), _) => tracker.journal.found(ppn, (**record).clone()),
                    (None, _) => {}
                }
            }
        }
    }

    /// Reads the journal: trimmed runs with their sequence numbers, in no particular order, and whether a snapshot must
    /// be taken: one was cut short before it could replace what was older, or there is no room for the next.
    pub(crate) fn read_journal(&mut self) -> (Vec<(u32, u32, u64)>, bool) {
        let Some(tracker) = self.tracker_mut() else { return (Vec::new(), false) };
        let found = tracker.journal.take_found();
        for (_, _, sequence) in &found.runs {
            tracker.found_trim(*sequence);
        }
        for ppn in &found.pages {
            self.read_internal(*ppn, Cause::Translation);
        }
        let (mut in_use, mut useless) = (Vec::new(), Vec::new());
        for block in (0..self.geometry().blocks()).map(BlockId) {
            if self.nand.condition(block) != Condition::System || self.is_for_checkpoints(block) {
                continue;
            }
            let pages = self.nand.next_page(block);
            let first = (0..pages).find_map(|page| self.spare_area(self.geometry().page_at(block, page)));
            let opened = first.map_or(0, |spare| spare.sequence);
            let (snapshot, is_exact) = found.snapshot;
            let tells = found.telling.iter().any(|ppn| self.geometry().block_of(*ppn) == block);
            if pages > 0 && (!tells || (is_exact && opened < snapshot)) {
                useless.push(block);
            } else {
                in_use.push((opened, block, pages));
            }
        }
        in_use.sort_unstable();
        let is_unfinished = in_use.iter().any(|(opened, _, pages)| *pages > 0 && *opened < found.snapshot.0);
        let in_use: Vec<(BlockId, u32)> = in_use.into_iter().map(|(_, block, pages)| (block, pages)).collect();
        if let Some(tracker) = self.tracker_mut() {
            tracker.journal.restore(&in_use);
        }
        for block in useless {
            self.erase_in_journal(block);
        }
        let lacks_room = self.tracker().is_some_and(|tracker| tracker.journal.lacks_room());
        (found.runs, is_unfinished || lacks_room)
    }

    /// A page is trimmed as far as the journal knows.
    pub(crate) fn still_trimmed(&mut self, lpn: u32) {
        if let Some(tracker) = self.tracker_mut() {
            tracker.journal.still_trimmed(lpn);
        }
    }

    /// A mount found that `ppn` holds the current copy of `lpn`.
    pub(crate) fn adopt(&mut self, ppn: Ppn, lpn: Lpn) {
        self.mark_run_valid(ppn.0, 1);
        if let Some(contents) = &mut self.contents {
            contents.stamps.expects(lpn, ppn);
            if let Some(tracker) = &mut contents.tracker {
                tracker.put(lpn, ppn);
            }
        }
    }
}
