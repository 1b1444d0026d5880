//! Carries out the managers' choices: makes room, pads blocks, passes runs to the translation layer, and counts.

use crate::at_work::AtWork;
use crate::managers::{ForeignManager, Leaves, MakeManager, Manager, ManagerName, RamContext, View};
use crate::settings::RamSettings;
use flashwright_block::{Nanos, RequestKind, Seed};
use flashwright_ftl::{
    Cause, FaultCell, Flash, Ftl, LpnRun, MapCacheView, OpKind, OutOfSpace, Scheme, ServesRam, Violation, write_runs,
};
use flashwright_nand::{Geometry, Lpn};
use serde::{Deserialize, Serialize};

/// Pages that leave the RAM together.
#[derive(Clone, Debug, Default)]
pub struct Destage {
    /// Pages that go to flash, in ascending order.
    pub pages: Vec<u32>,
    /// Clean pages, which are dropped.
    pub dropped: Vec<u32>,
    /// The block whose other pages are read and written with them, if padding is wanted.
    pub pad_block: Option<u32>,
    /// Whether they should fill an erase block of their own.
    pub own_block: bool,
}

impl Destage {
    fn clear(&mut self) {
        self.pages.clear();
        self.dropped.clear();
        (self.pad_block, self.own_block) = (None, false);
    }
}

/// The parameters of the drive that the RAM needs.
#[derive(Clone, Copy, Debug)]
pub struct RamDrive {
    /// Pages that the drive offers to the host.
    pub logical_pages: u32,
    /// Array time of a page read.
    pub read: Nanos,
    /// Array time of a page program.
    pub program: Nanos,
    /// The seed of the run.
    pub seed: Seed,
}

/// The partition of the RAM at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionPoint {
    /// Requests since the start or the last reset.
    pub requests: u64,
    /// Pages that the buffer may hold.
    pub buffer_pages: u32,
    /// Entries that the cached mapping table may hold.
    pub map_entries: u32,
}

/// The counts of the RAM.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RamFigures {
    /// Pages that the host wrote; `write_hits` of them overwrote a page in RAM.
    pub writes: u64,
    /// See `writes`.
    pub write_hits: u64,
    /// Pages that the host read; `read_hits` of them were answered from RAM.
    pub reads: u64,
    /// See `reads`.
    pub read_hits: u64,
    /// Writes from RAM to flash, to make room or to flush; a block counts once.
    pub destages: u64,
    /// Destages of blocks that asked for an erase block of their own or for padding.
    pub block_destages: u64,
    /// Host pages that destages wrote.
    pub pages_destaged: u64,
    /// Pages read from flash and written again to complete blocks.
    pub pages_padded: u64,
    /// Pages evicted without a write because flash held them already.
    pub pages_dropped: u64,
    /// Flushes that had to write.
    pub flushes: u64,
    /// Pages written past the RAM because the host demanded them on flash at once, or a policy from outside did not admit them.
    pub pages_forced: u64,
    /// The partition over time, if the manager shares the RAM with the mapping table: at most 4,096 points, whose
    /// spacing in [`PartitionPoint::requests`] doubles when there would be more.
    pub partition: Vec<PartitionPoint>,
    /// Figures of this manager alone, by name with the unit last.
    pub extra: Vec<(String, f64)>,
}

/// The manager of the RAM.
enum Chosen<'a> {
    Named(ManagerName),
    Foreign(&'a dyn MakeManager, &'a FaultCell),
}

impl Chosen<'_> {
    fn described(&self) -> String {
        match self {
            Self::Named(name) => format!("ram.manager = {:?}", name.listed().name),
            Self::Foreign(maker, _) => format!("the policy {}", maker.name()),
        }
    }
    fn metadata_bytes(&self) -> u64 {
        match self {
            Self::Named(name) => name.metadata_bytes(),
            Self::Foreign(..) => FOREIGN_METADATA_BYTES,
        }
    }
    fn problems(&self, settings: &RamSettings, context: &RamContext) -> Vec<String> {
        match self {
            Self::Named(name) => name.problems(&settings.managers, context),
            Self::Foreign(maker, _) if maker.rules().by_block && context.pages < context.pages_per_block => {
                vec![format!(
                    "ram.size: found room for {} pages, but {} evicts whole blocks of {} pages",
                    context.pages,
                    self.described(),
                    context.pages_per_block
                )]
            }
            Self::Foreign(..) => Vec::new(),
        }
    }
    fn build(&self, settings: &RamSettings, context: RamContext) -> Manager {
        match self {
            Self::Named(name) => name.build(&settings.managers, context),
            Self::Foreign(maker, fault) => Manager::Foreign(ForeignManager::new(*maker, &context, (*fault).clone())),
        }
    }
}

/// The manager that the settings name, if any; one line if there is RAM without one.
fn chosen_in(settings: &RamSettings) -> Result<Option<Chosen<'static>>, Vec<String>> {
    match settings.manager {
        Some(name) => Ok(Some(Chosen::Named(name))),
        None if settings.size.0 == 0 => Ok(None),
        None => Err(vec![format!(
            "ram.size: found {} with ram.manager = \"none\"; choose a manager, such as ram.manager = \"lru\"",
            settings.size
        )]),
    }
}

/// What the manager is built for, or one line for each problem.
fn context_of(
    chosen: &Chosen,
    settings: &RamSettings,
    drive: RamDrive,
    geometry: &Geometry,
    map_cache: Option<MapCacheView>,
) -> Result<RamContext, Vec<String>> {
    let RamDrive { logical_pages, read, program, seed } = drive;
    let page_bytes = geometry.page_size().0;
    let charged = if settings.charge_metadata { chosen.metadata_bytes() } else { 0 };
    let context = RamContext {
        pages: u32::try_from(settings.size.0 / (page_bytes + charged)).unwrap_or(u32::MAX),
        page_bytes,
        pages_per_block: geometry.pages_per_block(),
        logical_pages,
        map_cache,
        read,
        program,
        charged: settings.charge_metadata,
        seed,
    };
    if context.pages == 0 {
        return Err(vec![format!(
            "ram.size: found {}, which holds no page of {} B, with {}; give it RAM, such as ram.size = \"16 MiB\", or \
             choose ram.manager = \"none\"",
            settings.size,
            page_bytes + charged,
            chosen.described()
        )]);
    }
    let problems = chosen.problems(settings, &context);
    if !problems.is_empty() {
        return Err(problems);
    }
    Ok(context)
}

/// Bytes per page that `ram.charge-metadata` deducts under a foreign policy: as for the managers of blocks.
const FOREIGN_METADATA_BYTES: u64 = 12;

/// Largest number of points of the partition.
const PARTITION_POINTS: usize = 4096;

/// The RAM of a drive.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ram {
    manager: Manager,
    power_protected: bool,
    desk: Desk,
    requests: u64,
    /// Whether the flash has refused an eviction.
    stuck: bool,
    /// Requests between two points of the partition.
    partition_step: u64,
}

/// What lies between a manager and the translation layer. Its functions take the manager by type, so that a page costs one
/// choice between managers and not one for each question to it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Desk {
    pages_per_block: u32,
    logical_pages: u32,
    figures: RamFigures,
    #[serde(skip)]
    soon: Soon,
    #[serde(skip)]
    out: Destage,
    /// Pages of the current destage, including padding.
    #[serde(skip)]
    padded: Vec<u32>,
}

impl Ram {
    /// Builds the RAM over a translation layer, or returns one line for each problem; none if no manager is chosen.
    ///
    /// # Errors
    /// Each problem with its key and what to change.
    pub fn new(
        settings: &RamSettings,
        drive: RamDrive,
        scheme: &mut Scheme,
        flash: &mut Flash,
    ) -> Result<Option<Self>, Vec<String>> {
        match chosen_in(settings)? {
            Some(chosen) => Self::under(&chosen, settings, drive, scheme, flash).map(Some),
            None => Ok(None),
        }
    }

    /// What [`Ram::new`] would refuse over a translation layer without a cached mapping table, which needs none to be built: one
    /// line for each problem.
    #[must_use]
    pub fn problems(settings: &RamSettings, drive: RamDrive, geometry: &Geometry) -> Vec<String> {
        let context = match chosen_in(settings) {
            Ok(Some(chosen)) => context_of(&chosen, settings, drive, geometry, None).map(|_| ()),
            other => other.map(|_| ()),
        };
        context.err().unwrap_or_default()
    }

    /// As [`Ram::new`], with a manager from outside instead of the one that the settings name. It reports in `fault`
    /// why it can't continue.
    ///
    /// # Errors
    /// As [`Ram::new`].
    pub fn with_foreign(
        maker: &dyn MakeManager,
        fault: &FaultCell,
        settings: &RamSettings,
        drive: RamDrive,
        scheme: &mut Scheme,
        flash: &mut Flash,
    ) -> Result<Self, Vec<String>> {
        Self::under(&Chosen::Foreign(maker, fault), settings, drive, scheme, flash)
    }

    fn under(
        chosen: &Chosen,
        settings: &RamSettings,
        drive: RamDrive,
        scheme: &mut Scheme,
        flash: &mut Flash,
    ) -> Result<Self, Vec<String>> {
        let context = context_of(chosen, settings, drive, flash.geometry(), scheme.map_cache())?;
        let manager = chosen.build(settings, context);
        scheme.watch(manager.watch(), flash);
        if let Some(entries) = manager.map_entries() {
            scheme.resize_map_cache(entries, flash);
        }
        let mut ram = Self {
            manager,
            power_protected: settings.power_protected,
            desk: Desk {
                pages_per_block: context.pages_per_block,
                logical_pages: context.logical_pages,
                figures: RamFigures::default(),
                soon: Soon::default(),
                out: Destage::default(),
                padded: Vec::new(),
            },
            requests: 0,
            stuck: false,
            partition_step: 1,
        };
        ram.note_partition();
        Ok(ram)
    }

    /// Whether a page is held, and if so, whether it is newer than its copy on flash.
    #[must_use]
    pub fn is_dirty(&self, lpn: Lpn) -> Option<bool> {
        self.manager.is_dirty(lpn)
    }
    /// Whether what it holds survives a loss of power.
    #[must_use]
    pub fn is_power_protected(&self) -> bool {
        self.power_protected
    }
    /// The manager, read-only.
    #[must_use]
    pub fn manager(&self) -> &Manager {
        &self.manager
    }
    /// Pages held now.
    #[must_use]
    pub fn pages(&self) -> u32 {
        self.manager.pages()
    }
    /// The counts since the start or the last [`Ram::reset_figures`].
    #[must_use]
    pub fn figures(&self) -> RamFigures {
        RamFigures { extra: self.manager.figures(), ..self.desk.figures.clone() }
    }
    /// Resets the counts to zero; the contents stay.
    pub fn reset_figures(&mut self) {
        self.desk.figures = RamFigures::default();
        self.requests = 0;
        self.partition_step = 1;
        self.manager.reset_figures();
        self.note_partition();
    }

    /// Warms the CPU cache for a page that the host is about to name.
    #[inline(always)]
    pub fn expect(&self, lpn: Lpn) {
        self.manager.expect(lpn);
    }

    /// The host reads a run: pages held are answered from RAM, the others from flash.
    pub fn read(&mut self, run: LpnRun, scheme: &mut Scheme, flash: &mut Flash) {
        self.desk.figures.reads += u64::from(run.pages);
        let mut missing = LpnRun { pages: 0, ..run };
        for lpn in run.iter() {
            if self.manager.read(lpn) {
                self.desk.figures.read_hits += 1;
                flash.read_from_ram(lpn);
                if missing.pages > 0 {
                    scheme.read(missing, flash);
                }
                missing = LpnRun { first: Lpn(lpn.0 + 1), pages: 0, ..run };
            } else {
                missing.pages += 1;
            }
        }
        if missing.pages > 0 {
            scheme.read(missing, flash);
        }
        if self.manager.keeps_reads() {
            // The host has its data; room for the copies is made in the background.
            flash.rest_in_background();
            self.keep_reads(run, scheme, flash);
        }
        self.request_done(RequestKind::Read, run, scheme, flash);
    }

    /// Adds the pages of a run that were read from flash, unless no more room can be made.
    fn keep_reads(&mut self, run: LpnRun, scheme: &mut Scheme, flash: &mut Flash) {
        let mut admitted = None;
        for lpn in run.iter() {
            if self.manager.is_dirty(lpn).is_none()
                && scheme.lookup(lpn, flash).is_some()
                && *admitted.get_or_insert_with(|| self.manager.admits(run, false))
                && self.desk.make_room(&mut self.manager, scheme, flash).is_ok()
                && let Some(ppn) = scheme.lookup(lpn, flash)
            {
                flash.ram_loads(lpn, ppn);
                self.manager.take_in(lpn, false);
            }
        }
    }

    /// The host writes a run. With `forced` it must be on flash when the request completes, as it is where a policy does not admit it.
    ///
    /// # Errors
    /// [`OutOfSpace`] when flash takes no more. Pages before the one that needed room are written; the others keep
    /// their content, and their copies in RAM stay there.
    pub fn write(
        &mut self,
        run: LpnRun,
        forced: bool,
        scheme: &mut Scheme,
        flash: &mut Flash,
    ) -> Result<(), OutOfSpace> {
        if (forced && !self.power_protected) || !self.manager.admits(run, true) {
            self.write_past(run, scheme, flash)?;
        } else {
            for lpn in run.iter() {
                self.manager.write_page(&mut self.desk, lpn, scheme, flash)?;
            }
        }
        self.request_done(RequestKind::Write, run, scheme, flash);
        Ok(())
    }

    /// Writes a run to flash at once. Copies in RAM are dropped once their page is on flash; the others stay.
    #[cold]
    fn write_past(&mut self, run: LpnRun, scheme: &mut Scheme, flash: &mut Flash) -> Result<(), OutOfSpace> {
        self.desk.figures.writes += u64::from(run.pages);
        self.desk.figures.pages_forced += u64::from(run.pages);
        run.iter().for_each(|lpn| flash.host_writes_page(lpn));
        let programmed = |flash: &Flash| flash.counters().get(OpKind::Program, Cause::Host);
        let before = programmed(flash);
        let result = scheme.write(run, flash);
        // A scheme writes the pages of a run in order, each by one program.
        let written = programmed(flash) - before;
        debug_assert!(result.is_err() || written == u64::from(run.pages));
        for (lpn, at) in run.iter().zip(0..) {
            if at < written {
                self.desk.figures.write_hits += u64::from(self.manager.remove(lpn));
                flash.ram_lets_go(lpn);
            }
            if result.is_err() {
                flash.host_write_failed(lpn, scheme.lookup(lpn, flash));
            }
        }
        result
    }

    /// The host trims a run.
    pub fn trim(&mut self, run: LpnRun, scheme: &mut Scheme, flash: &mut Flash) {
        for lpn in run.iter() {
            self.manager.remove(lpn);
            flash.ram_lets_go(lpn);
            flash.host_trims_page(lpn);
        }
        scheme.trim(run, flash);
    }

    /// The host flushes: all acknowledged writes must survive a loss of power.
    ///
    /// # Errors
    /// [`OutOfSpace`] when flash takes no more; what is not written stays in RAM.
    pub fn flush(&mut self, scheme: &mut Scheme, flash: &mut Flash) -> Result<(), OutOfSpace> {
        if self.power_protected { Ok(()) } else { self.save(scheme, flash) }
    }

    /// Writes everything to flash that is newer there, protected or not: on the last energy of the capacitors.
    ///
    /// # Errors
    /// As [`Ram::flush`].
    pub fn save(&mut self, scheme: &mut Scheme, flash: &mut Flash) -> Result<(), OutOfSpace> {
        if self.manager.pages() == 0 {
            return Ok(());
        }
        if !self.manager.keeps_reads() {
            self.desk.figures.flushes += 1;
            while self.manager.pages() > 0 {
                self.desk.destage(&mut self.manager, scheme, flash)?;
            }
            return Ok(());
        }
        let desk = &mut self.desk;
        desk.out.clear();
        self.manager.dirty_pages(&mut desk.out.pages);
        if !desk.out.pages.is_empty() {
            desk.figures.flushes += 1;
            desk.write_out(scheme, flash)?;
            for lpn in &desk.out.pages {
                self.manager.cleaned(Lpn(*lpn));
            }
        }
        Ok(())
    }

    /// Notifies the manager that a request has completed, and moves the border between buffer and mapping table if the
    /// manager decides so.
    #[inline(always)]
    fn request_done(&mut self, kind: RequestKind, run: LpnRun, scheme: &mut Scheme, flash: &mut Flash) {
        self.requests += 1;
        if self.manager.request_done(kind, run, View { scheme, flash }) {
            self.repartition(scheme, flash);
        }
    }

    #[cold]
    fn repartition(&mut self, scheme: &mut Scheme, flash: &mut Flash) {
        while self.manager.pages() > self.manager.capacity() {
            if self.desk.destage(&mut self.manager, scheme, flash).is_err() {
                self.stuck = true; // a worn-out drive keeps what it can't write
                break;
            }
        }
        if let Some(entries) = self.manager.map_entries() {
            scheme.resize_map_cache(entries, flash);
        }
        self.note_partition();
    }

    fn note_partition(&mut self) {
        let Some(map_entries) = self.manager.map_entries() else { return };
        let points = &mut self.desk.figures.partition;
        if points.last().is_some_and(|last| self.requests < last.requests + self.partition_step) {
            return;
        }
        points.push(PartitionPoint { requests: self.requests, buffer_pages: self.manager.capacity(), map_entries });
        if points.len() > PARTITION_POINTS {
            let mut at = 0;
            points.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            let span = points.last().map_or(0, |last| last.requests);
            self.partition_step = span / (PARTITION_POINTS as u64 / 2) + 1;
        }
    }

    /// Checks the manager's tables and appends contradictions.
    pub fn audit(&self, violations: &mut Vec<Violation>) {
        self.manager.audit(violations);
        let held = (0..self.desk.logical_pages).filter(|lpn| self.manager.is_dirty(Lpn(*lpn)).is_some()).count();
        if held != self.manager.pages() as usize {
            violations.push(Violation(format!("the RAM counts {} pages, a search finds {held}", self.manager.pages())));
        }
        if self.manager.pages() > self.manager.capacity() && !self.stuck {
            violations.push(Violation(format!(
                "the RAM holds {} pages, but has room for {}",
                self.manager.pages(),
                self.manager.capacity()
            )));
        }
    }
}

/// Slots announced to leave soon, the next one first. An eviction touches the maps of its page, which are in memory, and memory
/// answers later than the next page comes: so the maps of several pages to come are on their way at once. Wrong guesses cost only
/// time.
#[derive(Clone, Debug)]
struct Soon {
    /// A ring: the first of them is at `from`, and `len` of them count.
    slots: [(u32, Lpn); SOON],
    from: usize,
    len: usize,
    /// Slots that left in a row without having been announced.
    unknown: u32,
}

/// Slots announced.
const SOON: usize = 8;
/// After so many that were not announced the search begins anew. The last slot announced may have been used and moved, and those
/// after it leave last; but a manager that prefers clean pages passes announced ones over, which stay true.
const UNKNOWN: u32 = 16;

impl Default for Soon {
    fn default() -> Self {
        Self { slots: [(0, Lpn(0)); SOON], from: 0, len: 0, unknown: 0 }
    }
}

impl Soon {
    #[inline(always)]
    fn at(&self, nth: usize) -> (u32, Lpn) {
        self.slots[(self.from + nth) % SOON]
    }

    /// A slot has left: announces further ones.
    #[inline(always)]
    fn look_ahead<M: AtWork>(&mut self, left: Option<u32>, manager: &M, scheme: &Scheme, flash: &Flash) {
        if let Some(nth) = (0..self.len).find(|nth| Some(self.at(*nth).0) == left) {
            // Those before it were used meanwhile and moved.
            (self.from, self.len) = (self.from + nth + 1, self.len - nth - 1);
            self.unknown = 0;
        } else {
            self.unknown += 1;
            if self.unknown == UNKNOWN {
                (self.len, self.unknown) = (0, 0);
            }
        }
        while self.len < SOON
            && let Some((slot, lpn)) = manager.leaves_after(self.len.checked_sub(1).map(|last| self.at(last).0))
        {
            scheme.expect_far(lpn);
            self.slots[(self.from + self.len) % SOON] = (slot, lpn);
            self.len += 1;
        }
        if self.len > 1 {
            scheme.expect_near(self.at(self.len / 2).1, flash);
        }
    }
}

impl Desk {
    /// The host writes a page.
    #[inline(always)]
    pub(crate) fn write_page<M: AtWork>(
        &mut self,
        manager: &mut M,
        lpn: Lpn,
        scheme: &mut Scheme,
        flash: &mut Flash,
    ) -> Result<(), OutOfSpace> {
        self.figures.writes += 1;
        if manager.overwrite(lpn) {
            self.figures.write_hits += 1;
            flash.host_writes_page(lpn);
            flash.ram_takes(lpn);
            return Ok(());
        }
        self.make_room(manager, scheme, flash)?;
        flash.host_writes_page(lpn);
        flash.ram_takes(lpn);
        manager.take_in(lpn, true);
        Ok(())
    }

    /// Makes room for a page.
    #[inline(always)]
    fn make_room<M: AtWork>(
        &mut self,
        manager: &mut M,
        scheme: &mut Scheme,
        flash: &mut Flash,
    ) -> Result<(), OutOfSpace> {
        while manager.pages() >= manager.capacity() {
            self.destage(manager, scheme, flash)?;
        }
        Ok(())
    }

    /// Evicts what the manager chooses.
    #[inline(always)]
    fn destage<M: AtWork>(
        &mut self,
        manager: &mut M,
        scheme: &mut Scheme,
        flash: &mut Flash,
    ) -> Result<(), OutOfSpace> {
        let left = match manager.leaves_alone() {
            Some(Leaves { slot, lpn, dirty }) => {
                if dirty {
                    self.write_one(lpn, scheme, flash)?;
                }
                self.figures.pages_dropped += u64::from(!dirty);
                manager.left_alone(slot);
                flash.ram_lets_go(lpn);
                Some(slot)
            }
            None => {
                let next = manager.leaves_after(None);
                self.out.clear();
                manager.choose(View { scheme, flash }, &mut self.out);
                self.let_out(scheme, flash)?;
                self.figures.pages_dropped += self.out.dropped.len() as u64;
                manager.left(&self.out);
                for lpn in self.out.pages.iter().chain(&self.out.dropped) {
                    flash.ram_lets_go(Lpn(*lpn));
                }
                next.map(|(slot, _)| slot)
            }
        };
        self.soon.look_ahead(left, manager, scheme, flash);
        Ok(())
    }

    /// Writes what leaves together.
    fn let_out(&mut self, scheme: &mut Scheme, flash: &mut Flash) -> Result<(), OutOfSpace> {
        assert!(!self.out.pages.is_empty() || !self.out.dropped.is_empty(), "a manager names what leaves");
        if let ([lpn], None, false) = (&self.out.pages[..], self.out.pad_block, self.out.own_block) {
            return self.write_one(Lpn(*lpn), scheme, flash);
        }
        if self.out.pages.len() > 1 {
            for lpn in &self.out.pages {
                scheme.expect_near(Lpn(*lpn), flash); // their misses overlap
            }
        }
        if self.out.pages.is_empty() { Ok(()) } else { self.write_out(scheme, flash) }
    }

    /// Writes an evicted page that nothing goes with.
    #[inline(never)]
    fn write_one(&mut self, lpn: Lpn, scheme: &mut Scheme, flash: &mut Flash) -> Result<(), OutOfSpace> {
        self.figures.destages += 1;
        self.figures.pages_destaged += 1;
        scheme.write(LpnRun { first: lpn, pages: 1, stream: 0 }, flash)
    }

    /// Writes the evicted pages, padded to a block if requested.
    fn write_out(&mut self, scheme: &mut Scheme, flash: &mut Flash) -> Result<(), OutOfSpace> {
        let Self { out, padded, figures, .. } = self;
        figures.destages += 1;
        figures.block_destages += u64::from(out.own_block || out.pad_block.is_some());
        figures.pages_destaged += out.pages.len() as u64;
        if out.own_block || out.pad_block.is_some() {
            let first = out.pad_block.map_or(out.pages[0], |block| block * self.pages_per_block);
            let end = out.pad_block.map_or(out.pages[out.pages.len() - 1] + 1, |_| first + self.pages_per_block);
            let pages = end.min(self.logical_pages) - first;
            scheme.look_up_block(LpnRun { first: Lpn(first), pages, stream: 0 }, flash);
        }
        if out.pages.len() > 1 {
            scheme.supersede(&out.pages, flash);
        }
        let pages = match out.pad_block {
            None => &out.pages,
            Some(block) => {
                let first = block * self.pages_per_block;
                let mut own = out.pages.iter().copied().peekable();
                padded.clear();
                for lpn in first..(first + self.pages_per_block).min(self.logical_pages) {
                    if own.next_if_eq(&lpn).is_some() {
                        padded.push(lpn);
                    } else if let Some(ppn) = scheme.fetch(Lpn(lpn), Cause::Padding, flash) {
                        flash.pads(Lpn(lpn), ppn);
                        figures.pages_padded += 1;
                        padded.push(lpn);
                    }
                }
                debug_assert!(own.next().is_none(), "pages of a padded destage are of one block, in order");
                padded
            }
        };
        let result = if out.own_block {
            scheme.write_block(pages, flash)
        } else {
            write_runs(pages, |run| scheme.write(run, flash))
        };
        flash.padding_done();
        result
    }
}
