//! The flash as a translation layer from outside gets it ([`crate::schemes::ForeignFtl`]): every step is checked first, and one that
//! is not legal is refused with a line that says what was asked, what was found and what to do instead.
//!
//! [`Flash`] asserts the same rules, because a native scheme that breaks one is a bug of the simulator. A layer from outside may err, so
//! nothing here panics. Beside the rules of NAND it knows what the host waits for:
//!
//! - the **newest copy** of a logical page is what was programmed last for it; it is valid until a newer one exists, a copy of it moves
//!   on, or the host trims the page. So the layer never marks pages: validity follows from its steps.
//! - a **read** is answered for each page, once, from the newest copy; from nothing where there is none.
//! - a **write** programs each page, once. Only [`GuardedFlash::copy`] moves data from then on.

use crate::{Cause, Counters, Flash, LpnRun, OpKind, OutOfSpace, Violation};
use flashwright_block::Bytes;
use flashwright_nand::{BlockId, Condition, Geometry, Lpn, Nand, PlaneId, Ppn, ProgramOrder, WearLimit, table};

const NONE: u32 = u32::MAX;

/// What the layer is called for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Call {
    /// Nothing: it may not touch the flash.
    #[default]
    Rest,
    /// The drive is being made.
    Begin,
    /// The host reads these pages.
    Read(LpnRun),
    /// The host writes these pages.
    Write(LpnRun),
    /// The host trims these pages.
    Trim(LpnRun),
    /// There is time to clean.
    Clean,
}

impl Call {
    fn run(self) -> Option<LpnRun> {
        match self {
            Self::Read(run) | Self::Write(run) | Self::Trim(run) => Some(run),
            _ => None,
        }
    }
}

/// What cleaning cost since the counts were reset.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cleaned {
    pub collections: u64,
    pub victim_pages_invalid: u64,
}

/// A plane as the schedule of cleaning sees it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PlaneUse {
    /// Good blocks that are erased.
    pub free: u32,
    /// Blocks that have room and are not erased.
    open: u32,
    /// Pages copied since the last erase.
    pub copies: u32,
    /// Host pages written since the schedule was asked.
    pub written: u32,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct GuardedFlash {
    /// The drive's during a call, else a placeholder.
    flash: Flash,
    logical_pages: u32,
    /// Blocks that a plane may fill side by side.
    open_max: u32,
    /// The newest copy, by owner: logical pages, then pages of the layer's own tables.
    copies: Vec<u32>,
    call: Call,
    /// Which pages of the run are answered, written or forgotten.
    done: Vec<bool>,
    planes: Vec<PlaneUse>,
    /// Pages copied out of each block since its last erase.
    moved: Vec<u32>,
    cleaned: Cleaned,
}

impl Default for GuardedFlash {
    /// A placeholder.
    fn default() -> Self {
        let geometry = Geometry::new(1, 1, 1, 1, 1, Bytes(512));
        let nand = Nand::new(geometry, ProgramOrder::Any, WearLimit::Unlimited, &[]);
        Self::new(&Flash::new(nand, 1, false, false), 0, 1)
    }
}

impl GuardedFlash {
    /// A guard for a drive of erased flash.
    pub(crate) fn new(flash: &Flash, logical_pages: u32, open_max: u32) -> Self {
        let geometry = *flash.geometry();
        let mut planes = vec![PlaneUse::default(); geometry.planes() as usize];
        for block in (0..geometry.blocks()).map(BlockId) {
            let is_free = flash.nand().condition(block) == Condition::Good && flash.nand().next_page(block) == 0;
            planes[geometry.plane_of(block).index()].free += u32::from(is_free);
        }
        let placeholder = Geometry::new(1, 1, 1, 1, 1, Bytes(512));
        let nand = Nand::new(placeholder, ProgramOrder::Any, WearLimit::Unlimited, &[]);
        Self {
            flash: Flash::new(nand, 1, false, false),
            logical_pages,
            open_max,
            copies: table(NONE, logical_pages as usize),
            call: Call::Rest,
            done: Vec::new(),
            planes,
            moved: vec![0; geometry.blocks() as usize],
            cleaned: Cleaned::default(),
        }
    }

    // --- the border to the scheme ---

    /// Takes the drive's flash for a call.
    pub(crate) fn lend(&mut self, call: Call, flash: &mut Flash) {
        std::mem::swap(&mut self.flash, flash);
        self.call = call;
        self.done.clear();
        self.done.resize(call.run().map_or(0, |run| run.pages as usize), false);
    }

    /// Gives the flash back after a call. Fails if the call left undone what the host waits for; `gave_up` if it said that there is no
    /// space for the rest.
    pub(crate) fn give_back(&mut self, gave_up: bool, flash: &mut Flash) -> Result<(), String> {
        let call = std::mem::take(&mut self.call);
        let missing = call.run().and_then(|run| {
            let at = self.done.iter().position(|done| !done)?;
            Some(run.first.0 + u32::try_from(at).expect("a run is counted in 32 bits"))
        });
        let complete = match (call, missing) {
            (Call::Read(_), Some(lpn)) => Err(format!("read returned without an answer for logical page {lpn}")),
            (Call::Write(_), Some(lpn)) if !gave_up => {
                Err(format!("write returned without a program of logical page {lpn}"))
            }
            (Call::Trim(run), Some(_)) => {
                run.iter().for_each(|lpn| self.drop_copy(lpn.0));
                Ok(())
            }
            _ => Ok(()),
        };
        std::mem::swap(&mut self.flash, flash);
        complete
    }

    pub(crate) fn newest(&self, lpn: Lpn) -> Option<Ppn> {
        let ppn = self.copies[lpn.index()];
        (ppn != NONE).then_some(Ppn(ppn))
    }

    pub(crate) fn logical_pages(&self) -> u32 {
        self.logical_pages
    }

    pub(crate) fn cleaned(&self) -> Cleaned {
        self.cleaned
    }

    pub(crate) fn reset_figures(&mut self) {
        self.cleaned = Cleaned::default();
    }

    pub(crate) fn planes_mut(&mut self) -> &mut [PlaneUse] {
        &mut self.planes
    }

    pub(crate) fn plane(&self, plane: PlaneId) -> PlaneUse {
        self.planes[plane.index()]
    }

    pub(crate) fn out_of_space(&self, flash: &Flash) -> OutOfSpace {
        OutOfSpace::new(self.planes.iter().map(|plane| plane.free as usize).sum(), flash)
    }

    /// Compares what it knows of copies with the flash.
    pub(crate) fn audit(&self, flash: &Flash, violations: &mut Vec<Violation>) {
        let mut copies = 0u64;
        for (owner, ppn) in (0u32..).zip(&self.copies).filter(|(_, ppn)| **ppn != NONE) {
            copies += 1;
            if flash.nand().spare(Ppn(*ppn)) != Some(Lpn(owner)) || !flash.is_valid(Ppn(*ppn)) {
                violations.push(Violation(format!("page {ppn} is not the valid copy of {}", self.named(owner))));
            }
        }
        let valid = flash.pages_valid_in_all();
        if valid != copies {
            violations.push(Violation(format!("{copies} pages have a newest copy, but {valid} flash pages are valid")));
        }
    }

    // --- state, for the layer ---

    /// Counts of operations so far.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        self.flash.counters()
    }

    /// Host page writes so far: the clock of ages.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.flash.host_writes()
    }

    /// Valid pages of a block.
    ///
    /// # Errors
    /// A line, if there is no such block; likewise for all calls below.
    pub fn valid(&self, block: i64) -> Result<u32, String> {
        Ok(self.flash.pages_valid(self.block(block)?))
    }

    /// The valid pages of each block of a plane.
    ///
    /// # Errors
    /// A line, if there is no such plane.
    pub fn valid_in(&self, plane: i64) -> Result<impl ExactSizeIterator<Item = u32>, String> {
        let planes = self.flash.geometry().planes();
        let found = u32::try_from(plane).ok().filter(|plane| *plane < planes);
        let plane = found.ok_or_else(|| format!("found plane {plane}, expected 0 to {}", planes - 1))?;
        let first = self.flash.geometry().first_block(PlaneId(plane)).0;
        let blocks = 0..self.flash.geometry().blocks_per_plane();
        Ok(blocks.map(move |local| self.flash.pages_valid(BlockId(first + local))))
    }

    /// One past the highest page programmed in a block since its last erase.
    ///
    /// # Errors
    /// See [`GuardedFlash::valid`].
    pub fn written(&self, block: i64) -> Result<u32, String> {
        Ok(self.flash.nand().next_page(self.block(block)?))
    }

    /// Erases of a block.
    ///
    /// # Errors
    /// See [`GuardedFlash::valid`].
    pub fn erases(&self, block: i64) -> Result<u32, String> {
        Ok(self.flash.nand().erases(self.block(block)?))
    }

    /// Whether a block may be programmed: neither bad from the factory nor retired.
    ///
    /// # Errors
    /// See [`GuardedFlash::valid`].
    pub fn is_good(&self, block: i64) -> Result<bool, String> {
        Ok(self.flash.nand().condition(self.block(block)?) == Condition::Good)
    }

    /// Whether a block may be erased once more.
    ///
    /// # Errors
    /// See [`GuardedFlash::valid`].
    pub fn can_erase(&self, block: i64) -> Result<bool, String> {
        Ok(self.flash.nand().can_erase(self.block(block)?))
    }

    /// The valid pages of a block in page order, and the owner of each.
    ///
    /// # Errors
    /// See [`GuardedFlash::valid`].
    pub fn live(&self, block: i64) -> Result<(Vec<u32>, Vec<u32>), String> {
        let pages: Vec<u32> = self.flash.valid_pages(self.block(block)?).map(|ppn| ppn.0).collect();
        let owners = pages.iter().map(|ppn| self.flash.nand().spare(Ppn(*ppn)).map_or(NONE, |owner| owner.0));
        let owners = owners.collect();
        Ok((pages, owners))
    }

    // --- steps ---

    /// Answers the host's read of `lpn` from `page`. Like each step below it returns a mark, by which a later step of the same
    /// request may wait for its end (`after`, 0 for none).
    ///
    /// # Errors
    /// A line, if the host does not read `lpn` now or has its answer, or if `page` is not the newest copy of it.
    pub fn read(&mut self, page: i64, lpn: i64, after: u32) -> Result<u32, String> {
        let (ppn, at) = (self.page(page)?, self.answered(lpn)?);
        let lpn = u32::try_from(lpn).expect("it is a page of the run");
        match self.flash.nand().spare(ppn) {
            None => return Err(format!("read of page {page}, which is erased")),
            Some(Lpn(owner)) if owner != lpn => {
                return Err(format!("read of page {page} for logical page {lpn}: it holds {}", self.named(owner)));
            }
            Some(_) if self.copies[lpn as usize] != ppn.0 => {
                let newest = self.where_is(lpn);
                return Err(format!("read of page {page} for logical page {lpn}: it holds an old copy; {newest}"));
            }
            Some(_) => {}
        }
        self.waits(after)?;
        self.done[at] = true;
        self.flash.read(ppn, Lpn(lpn));
        Ok(self.flash.mark())
    }

    /// Answers the host's read of a page that holds nothing.
    ///
    /// # Errors
    /// A line, if the host does not read `lpn` now or has its answer, or if there is a copy of it.
    pub fn read_unmapped(&mut self, lpn: i64) -> Result<(), String> {
        let at = self.answered(lpn)?;
        let lpn = u32::try_from(lpn).expect("it is a page of the run");
        if self.copies[lpn as usize] != NONE {
            return Err(format!("read_unmapped of logical page {lpn}: it holds data; {}", self.where_is(lpn)));
        }
        self.done[at] = true;
        self.flash.read_unmapped(Lpn(lpn));
        Ok(())
    }

    /// Reads a page for the layer's own purposes.
    ///
    /// # Errors
    /// A line, if the page is erased.
    pub fn read_internal(&mut self, page: i64, cause: Cause, after: u32) -> Result<u32, String> {
        let ppn = self.page(page)?;
        self.works("read_internal")?;
        if self.flash.nand().spare(ppn).is_none() {
            return Err(format!("read of page {page}, which is erased"));
        }
        own_cause("read_internal", cause)?;
        self.waits(after)?;
        self.flash.read_internal(ppn, cause);
        Ok(self.flash.mark())
    }

    /// Programs a page with what the host writes to a logical page; or, for an owner beyond them, with a page of the layer's own
    /// tables. While the drive is made, the step is neither counted nor timed.
    ///
    /// # Errors
    /// A line, if the host does not write the logical page now, or the rules of NAND forbid the step.
    pub fn program(&mut self, page: i64, owner: i64, cause: Cause, after: u32) -> Result<u32, String> {
        let (ppn, owner) = (self.page(page)?, self.owner(owner)?);
        let is_table = owner >= self.logical_pages;
        let mut at = None;
        if is_table {
            own_cause("program of a page of tables", cause)?;
            if self.call != Call::Begin {
                self.works("program")?;
            }
        } else {
            if cause != Cause::Host {
                let what = format!("program of logical page {owner} by another cause than the host");
                return Err(format!("{what}; copy moves a page and keeps its content"));
            }
            at = Some(self.in_run(i64::from(owner), "program", "write", |call| matches!(call, Call::Write(_)))?);
        }
        self.expect_programmable(ppn, 1)?;
        self.waits(after)?;
        self.fills(ppn, 1);
        if self.call == Call::Begin {
            self.flash.format(ppn, Lpn(owner));
        } else {
            self.flash.program(ppn, Lpn(owner), cause);
        }
        if let Some(at) = at {
            self.done[at] = true;
            self.plane_at(ppn).written += 1;
        }
        self.drop_copy(owner);
        self.set_copy(owner, ppn);
        Ok(self.flash.mark())
    }

    /// Moves valid pages to `to` and the pages after it, and returns their owners.
    ///
    /// # Errors
    /// A line, if a page is not valid, or the rules of NAND forbid the step.
    pub fn copy(&mut self, pages: &[i64], to: i64, cause: Cause, after: u32) -> Result<Vec<u32>, String> {
        self.works("copy")?;
        own_cause("copy", cause)?;
        let Ok(count @ 1..) = u32::try_from(pages.len()) else { return Ok(Vec::new()) };
        let (mut from, mut owners) = (Vec::with_capacity(pages.len()), Vec::with_capacity(pages.len()));
        for page in pages.iter().copied() {
            let ppn = self.page(page)?;
            match self.flash.nand().spare(ppn) {
                None => return Err(format!("copy of page {page}, which is erased")),
                Some(Lpn(owner)) if !self.flash.is_valid(ppn) => {
                    let newest = self.where_is(owner);
                    return Err(format!("copy of page {page}: an old copy of {}; {newest}", self.named(owner)));
                }
                Some(Lpn(owner)) => owners.push(owner),
            }
            from.push(ppn.0);
        }
        if let Some(page) = repeated(&from) {
            return Err(format!("copy of page {page} twice"));
        }
        let to = self.page(to)?;
        self.expect_programmable(to, count)?;
        self.waits(after)?;
        self.fills(to, count);
        self.flash.copy_run(&from, &owners, to, cause);
        self.plane_at(to).copies += count;
        for (nth, (from, owner)) in (0..).zip(from.iter().zip(&owners)) {
            let (block, _) = self.flash.invalidate(Ppn(*from));
            self.moved[block.index()] += 1;
            self.set_copy(*owner, Ppn(to.0 + nth));
        }
        Ok(owners)
    }

    /// Erases a block.
    ///
    /// # Errors
    /// A line, if it holds a valid page, or can't be erased.
    pub fn erase(&mut self, block: i64, cause: Cause) -> Result<(), String> {
        let id = self.block(block)?;
        self.works("erase")?;
        own_cause("erase", cause)?;
        let valid = self.flash.pages_valid(id);
        if valid > 0 {
            let s = if valid == 1 { "" } else { "s" };
            return Err(format!("erase of block {block}, which holds {valid} valid page{s}; copy moves them first"));
        }
        self.expect_usable(id, "erase")?;
        if !self.flash.nand().can_erase(id) {
            return Err(format!("erase of block {block}, whose erase budget is spent; retire it"));
        }
        let moved = std::mem::take(&mut self.moved[id.index()]);
        if cause != Cause::Wear {
            self.cleaned.collections += 1;
            self.cleaned.victim_pages_invalid += u64::from(self.flash.geometry().pages_per_block() - moved);
        }
        let (is_free, is_open) = self.state_of(id);
        let plane = self.plane_of(id);
        plane.open -= u32::from(is_open);
        plane.free += u32::from(!is_free);
        plane.copies = 0;
        self.flash.erase(id, cause);
        Ok(())
    }

    /// Takes a block out of use; its valid pages stay readable.
    ///
    /// # Errors
    /// A line, if it is out of use.
    pub fn retire(&mut self, block: i64) -> Result<(), String> {
        let id = self.block(block)?;
        self.works("retire")?;
        self.expect_usable(id, "retire")?;
        let (is_free, is_open) = self.state_of(id);
        let plane = self.plane_of(id);
        plane.open -= u32::from(is_open);
        plane.free -= u32::from(is_free);
        self.flash.retire(id);
        Ok(())
    }

    /// The copy of a page that the host trims is valid no more. What a trim leaves out is forgotten when it returns.
    ///
    /// # Errors
    /// A line, if the host does not trim `lpn` now, or it was forgotten.
    pub fn forget(&mut self, lpn: i64) -> Result<(), String> {
        let at = self.in_run(lpn, "forget", "trim", |call| matches!(call, Call::Trim(_)))?;
        self.done[at] = true;
        self.drop_copy(u32::try_from(lpn).expect("it is a page of the run"));
        Ok(())
    }

    // --- checks ---

    fn page(&self, page: i64) -> Result<Ppn, String> {
        let pages = self.flash.geometry().pages();
        let found = u32::try_from(page).ok().filter(|page| *page < pages);
        found.map(Ppn).ok_or_else(|| format!("found page {page}, expected 0 to {}", pages - 1))
    }

    fn block(&self, block: i64) -> Result<BlockId, String> {
        let blocks = self.flash.geometry().blocks();
        let found = u32::try_from(block).ok().filter(|block| *block < blocks);
        found.map(BlockId).ok_or_else(|| format!("found block {block}, expected 0 to {}", blocks - 1))
    }

    /// As many tables as there are pages of flash are enough for any layer.
    fn owner(&self, owner: i64) -> Result<u32, String> {
        let most = u64::from(self.logical_pages) + u64::from(self.flash.geometry().pages());
        let found = u32::try_from(owner).ok().filter(|owner| u64::from(*owner) < most.min(u64::from(NONE)));
        found.ok_or_else(|| format!("found {owner} as the owner of a page, expected 0 to {}", most - 1))
    }

    /// The place of a page in the run of a call.
    fn in_run(&self, lpn: i64, step: &str, by: &str, fits: impl Fn(Call) -> bool) -> Result<usize, String> {
        let run = self.call.run().filter(|_| fits(self.call));
        let at = run.and_then(|run| {
            let at = usize::try_from(lpn - i64::from(run.first.0)).ok()?;
            (at < run.pages as usize).then_some(at)
        });
        let at = at.ok_or_else(|| format!("{step} of logical page {lpn}, which the host does not {by} now"))?;
        if self.done[at] { Err(format!("{step} of logical page {lpn} twice in one {by}")) } else { Ok(at) }
    }

    fn answered(&self, lpn: i64) -> Result<usize, String> {
        self.in_run(lpn, "answer", "read", |call| matches!(call, Call::Read(_)))
    }

    /// Steps of the layer's own need a drive at work.
    fn works(&self, step: &str) -> Result<(), String> {
        match self.call {
            Call::Rest | Call::Begin => Err(format!("{step} while the drive is made: its flash is erased")),
            _ => Ok(()),
        }
    }

    fn expect_usable(&self, block: BlockId, step: &str) -> Result<(), String> {
        let state = match self.flash.nand().condition(block) {
            Condition::Good => return Ok(()),
            Condition::System => "set apart for the journal",
            Condition::FactoryBad => "bad since the factory",
            Condition::Retired => "retired",
        };
        Err(format!("{step} of block {}, which is {state}", block.0))
    }

    /// Whether this many pages may be programmed from `first` on.
    fn expect_programmable(&self, first: Ppn, count: u32) -> Result<(), String> {
        let (geometry, nand) = (self.flash.geometry(), self.flash.nand());
        let (block, page) = geometry.place_of(first);
        self.expect_usable(block, "program")?;
        if page + count > geometry.pages_per_block() {
            return Err(format!(
                "program of {count} pages from page {page} of block {} on, which has {}",
                block.0,
                geometry.pages_per_block()
            ));
        }
        if let Some((place, Lpn(owner))) =
            (page..page + count).find_map(|page| Some((page, nand.spare(geometry.page_at(block, page))?)))
        {
            let holds = self.named(owner);
            return Err(format!("program of page {place} of block {}, which is programmed: it holds {holds}", block.0));
        }
        let next = nand.next_page(block);
        if page != next && nand.program_order() == ProgramOrder::Ascending {
            return Err(format!("program of page {page} of block {} out of order: the next is {next}", block.0));
        }
        let plane = geometry.plane_of(block);
        let open = self.planes[plane.index()].open;
        if next == 0 && open >= self.open_max {
            return Err(format!(
                "program of block {}: {open} blocks of plane {} are open, and open_blocks is {}",
                block.0, plane.0, self.open_max
            ));
        }
        Ok(())
    }

    fn waits(&mut self, after: u32) -> Result<(), String> {
        if after > self.flash.mark() {
            return Err(format!("after: found {after}, expected a mark of this request, or 0"));
        }
        self.flash.next_waits_for_mark(after);
        Ok(())
    }

    // --- what it knows ---

    /// Whether a good block is erased, and whether it is open.
    fn state_of(&self, block: BlockId) -> (bool, bool) {
        let (nand, pages) = (self.flash.nand(), self.flash.geometry().pages_per_block());
        let is_free = nand.next_page(block) == 0;
        (is_free, !is_free && nand.pages_programmed(block) < pages)
    }

    /// Pages of a block are about to be programmed.
    fn fills(&mut self, first: Ppn, count: u32) {
        let (block, _) = self.flash.geometry().place_of(first);
        let pages = self.flash.geometry().pages_per_block();
        let is_free = self.flash.nand().next_page(block) == 0;
        // Counting is only needed where pages may have been skipped.
        let ends = self.flash.nand().next_page(block) + count >= pages;
        let is_full = ends && self.flash.nand().pages_programmed(block) + count == pages;
        let plane = self.plane_of(block);
        plane.free -= u32::from(is_free);
        plane.open += u32::from(is_free);
        plane.open -= u32::from(is_full);
    }

    fn plane_of(&mut self, block: BlockId) -> &mut PlaneUse {
        let plane = self.flash.geometry().plane_of(block);
        &mut self.planes[plane.index()]
    }

    fn plane_at(&mut self, ppn: Ppn) -> &mut PlaneUse {
        self.plane_of(self.flash.geometry().block_of(ppn))
    }

    fn set_copy(&mut self, owner: u32, ppn: Ppn) {
        if owner as usize >= self.copies.len() {
            self.copies.resize(owner as usize + 1, NONE);
        }
        self.copies[owner as usize] = ppn.0;
    }

    fn drop_copy(&mut self, owner: u32) {
        let Some(copy) = self.copies.get_mut(owner as usize) else { return };
        let old = std::mem::replace(copy, NONE);
        if old != NONE {
            self.flash.invalidate(Ppn(old));
        }
    }

    fn named(&self, owner: u32) -> String {
        match owner.checked_sub(self.logical_pages) {
            None => format!("logical page {owner}"),
            Some(page) => format!("page {page} of the tables"),
        }
    }

    fn where_is(&self, owner: u32) -> String {
        match self.copies.get(owner as usize).filter(|ppn| **ppn != NONE) {
            Some(ppn) => format!("the newest is in page {ppn}"),
            None => "it was trimmed".to_owned(),
        }
    }

    /// Steps that changed the flash since the drive was made.
    pub(crate) fn steps(flash: &Flash) -> u64 {
        flash.counters().total(OpKind::Program) + flash.counters().total(OpKind::Erase)
    }
}

fn own_cause(step: &str, cause: Cause) -> Result<(), String> {
    if cause == Cause::Host {
        Err(format!("{step} for the cause \"host\", expected one of the layer's own"))
    } else {
        Ok(())
    }
}

/// A page that is listed more than once.
fn repeated(pages: &[u32]) -> Option<u32> {
    if pages.windows(2).all(|pair| pair[0] < pair[1]) {
        return None;
    }
    let mut sorted = pages.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}
