//! The drive behind the block-device seam.

use crate::cleaning::BackgroundCleaning;
use crate::cleaning_blocks::BlockingSlots;
use crate::data::RequestData;
use crate::engine::{Awaits, BusyTimes, ChipFigures, Observer as _, ObserverOfDrive, ParallelOfDrive, Serial, Work};
use crate::power_loss::Power;
use flashwright_block::{
    Ahead, BlockDevice, Bounds, Bytes, Completion, DeviceInfo, DriverQueue, Effects, HoldsData, IoError, Nanos,
    Request, RequestKind, SECTOR_BYTES, Seed, Tag, Waiting, below,
};
use flashwright_config::{
    CleaningBlocks, Config, ConfigError, DriveConfig, PartialPages, QueueDepth, SettingError, TimingModel,
};
use flashwright_ftl::policies::schedule::{MakeSchedule, ScheduleRules};
use flashwright_ftl::schemes::{Reserve, SchemeContext};
use flashwright_ftl::{
    CleansInSteps, FaultCell, Flash, Foreign, Ftl, Keeps, LpnRun, OP_KINDS, OpKind, OutOfSpace, Progress, Scheme,
    SchemeFigures, SchemeName, SlcContext, Violation,
};
use flashwright_nand::{BlockId, ErrorCounts, ErrorLaw, Geometry, Lpn, Nand};
use flashwright_ram::{MakeManager, Ram, RamDrive, RamFigures};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Why a drive could not be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SsdError {
    /// The configuration contradicts itself.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// A simulated drive.
///
/// All state is in the value: two drives in one process know nothing of each other, and a clone goes on exactly as the
/// original. Saving and loading goes through serde with any format that is not self-describing.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ssd {
    #[serde(with = "as_toml")]
    config: DriveConfig,
    cautions: Vec<String>,
    reserve: Option<Reserve>,
    pub(crate) flash: Flash,
    pub(crate) scheme: Scheme,
    pub(crate) ram: Option<Ram>,
    logical_pages: u32,
    sectors: u64,
    /// Requests end before this sector: one past the drive's last, or 0 while the power is off.
    reach: u64,
    sectors_per_page: u64,
    /// The shift that divides by `sectors_per_page`, where it is a power of two.
    page_shift: Option<u32>,
    pub(crate) clock: Clock,
    /// What its requests meet.
    path: Path,
    now: u64,
    tag: u64,
    /// Cleaning ahead of need, if the schedule has any.
    pub(crate) ahead: Option<Box<BackgroundCleaning>>,
    /// Whether errors may ask for blocks to be written again, and those that wait for it, with their erases at that time.
    rewrites: bool,
    to_rewrite: Vec<(BlockId, u32)>,
    blocks_rewritten: u64,
    /// Sectors of the writes that succeeded, preconditioning included.
    sectors_written: u64,
    /// Requests that have ended and wait to be fetched.
    ready: VecDeque<Flight>,
    /// Why requests in flight or ready have failed, by their tags.
    failed: Vec<(Tag, Box<IoError>)>,
    /// Where policies from outside say why they can't go on, if there are any.
    #[serde(skip)]
    policy_fault: Option<FaultCell>,
    /// When the schedule from outside is consulted, if there is one, and whether a wear policy comes from there.
    #[serde(skip)]
    own_schedule: Option<ScheduleRules>,
    #[serde(skip)]
    own_wear: bool,
    /// Where pages hold bytes, those of requests.
    pub(crate) data: Option<Box<RequestData>>,
    pub(crate) seed: Seed,
    /// What the chips hold, if power can be cut.
    pub(crate) power: Option<Box<Power>>,
}

/// Policies from outside, each in place of the one that the configuration names.
#[derive(Default)]
pub struct Policies {
    /// Those of the translation layer, and where all say why they can't go on.
    pub ftl: Foreign,
    /// What leaves the RAM.
    pub manager: Option<Box<dyn MakeManager>>,
}

impl Policies {
    pub(crate) fn is_empty(&self) -> bool {
        self.ftl.ftl.is_none() && self.ftl.policies().is_empty() && self.manager.is_none()
    }
}

/// What a request meets in a drive. Where that is little, it is spared the tests for the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Path {
    /// The translation layer alone: no time passes.
    Plain,
    /// The translation layer, and dies that work side by side.
    Bare,
    /// RAM and the translation layer: no time passes.
    Buffered,
    /// Anything.
    Whole,
}

impl Path {
    /// The path of a drive; `is_bare` if nothing else that is optional was asked for, RAM aside.
    fn of(model: TimingModel, is_bare: bool, has_ram: bool) -> Self {
        match (model, has_ram) {
            (TimingModel::None, false) if is_bare => Self::Plain,
            (TimingModel::None, true) if is_bare => Self::Buffered,
            (TimingModel::Parallel, false) if is_bare => Self::Bare,
            _ => Self::Whole,
        }
    }
    /// Whether a request meets no more than the translation layer and time.
    #[inline(always)]
    fn is_bare(self) -> bool {
        matches!(self, Self::Bare | Self::Plain)
    }
}

/// What became of a request.
#[derive(Clone, Copy)]
struct Outcome {
    start: Nanos,
    end: Nanos,
    effects: Effects,
    /// Whether it read a page that holds no data.
    reads_unmapped: bool,
    /// The minimum duration that the cleaning schedule demands, in nanoseconds.
    delay: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(clippy::large_enum_variant)] // one a drive
pub(crate) enum Clock {
    None,
    Serial {
        engine: Serial<ObserverOfDrive>,
        /// What a read of pages without data lasts at least.
        unmapped_read: u64,
    },
    Parallel(ParallelClock),
}

/// The engine with the requests in flight and the driver's queue before it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ParallelClock {
    pub(crate) engine: ParallelOfDrive,
    pub(crate) flights: Vec<Flight>,
    /// Places of requests in flight, and the requests that wait for one.
    pub(crate) queue: DriverQueue,
    /// What blocks the controller, if cleaning does.
    pub(crate) blocking: Option<Box<BlockingSlots>>,
    /// What a read of pages without data lasts at least.
    unmapped_read: u64,
}

/// A request in flight, or background work under the tag [`BACKGROUND`]: what its completion will say, but for the result.
/// Failures are so rare that they are kept apart.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Flight {
    tag: Tag,
    pub(crate) request: Request,
    start: Nanos,
    /// Open while it is in the engine.
    pub(crate) end: Nanos,
    effects: Effects,
}

impl Flight {
    /// A request that the driver still had.
    pub(crate) fn waiting(waiting: Waiting) -> Self {
        let Waiting { id, request } = waiting;
        Self { tag: Tag(id), request, start: request.arrival, ..Self::default() }
    }

    /// Work that no request waits for.
    pub(crate) fn background() -> Self {
        Self { tag: BACKGROUND, ..Self::default() }
    }

    /// Puts everything but the result in a completion.
    #[inline(always)]
    fn fill(&self, completion: &mut Completion) {
        completion.tag = self.tag;
        completion.request = self.request;
        completion.start = self.start;
        completion.end = self.end;
        completion.effects = self.effects;
    }
}

impl Ssd {
    /// Builds a drive with erased flash that keeps of the host's data what `keeps` says; a bool stands for the user's
    /// `verify`, under which pages carry stamps and every read is checked.
    ///
    /// ```
    /// # use flashwright_block::{BlockDevice, Completion, HoldsData, Request, RequestKind, Seed};
    /// # use flashwright_ssd::{DriveConfig, Keeps, Ssd};
    /// let mut drive = Ssd::new(&DriveConfig::default(), Seed(1), Keeps::Bytes)?;
    /// let (mut done, mut data) = (Completion::default(), [0; 1024]);
    /// drive.submit_with(Request { first_sector: 9, sectors: 2, kind: RequestKind::Write, ..Request::default() }, &[7; 1024])?;
    /// drive.submit_with(Request { first_sector: 10, sectors: 2, ..Request::default() }, &[])?;
    /// while drive.wait(flashwright_block::Nanos(u64::MAX), &mut done)? {
    ///     drive.take_data(done.tag, &mut data);
    /// }
    /// assert_eq!((data[..512].to_vec(), data[512..].to_vec()), (vec![7; 512], vec![0; 512]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`SsdError::Config`] if its tables do not fit the memory of this machine, or with everything wrong with the settings
    /// that only shows once the drive is laid out.
    pub fn new(config: &DriveConfig, seed: Seed, keeps: impl Into<Keeps>) -> Result<Self, SsdError> {
        Self::with_policies(config, seed, keeps, &Policies::default())
    }

    /// As [`Ssd::new`] with policies from outside. When one of them can't go on, every later request fails with
    /// [`IoError::Policy`].
    ///
    /// # Errors
    /// As [`Ssd::new`].
    pub fn with_policies(
        config: &DriveConfig,
        seed: Seed,
        keeps: impl Into<Keeps>,
        policies: &Policies,
    ) -> Result<Self, SsdError> {
        let keeps = keeps.into();
        let with_own_layer = policies.ftl.ftl.is_some().then(|| {
            let mut written = config.clone().into_written();
            written.ftl.scheme = SchemeName::Foreign(None);
            written.check()
        });
        let with_own_layer = with_own_layer.transpose()?;
        let config = with_own_layer.as_ref().unwrap_or(config);
        let has_foreign = !policies.is_empty() || config.ftl.scheme.is_from_outside();
        let fail = |problems| ConfigError { source_name: config.name.clone(), problems };
        if let Some(problem) = crate::memory::problem(config, keeps) {
            return Err(fail(vec![problem]).into());
        }
        let (geometry, logical_pages, order) = (config.layout(), config.logical_pages(), config.geometry.program_order);
        let limit = crate::budgets::of_drive(config, seed);
        let nand = Nand::new(geometry, order, limit, &factory_bad(config, &geometry, seed));
        #[allow(clippy::let_unit_value)] // an observer that observes is no unit
        let observer = ObserverOfDrive::default();
        let logging = match config.timing.model {
            TimingModel::None => false,
            TimingModel::Serial => observer.listens(),
            TimingModel::Parallel => true,
        };
        let can_mount = config.recovery.can_mount();
        let kept = if can_mount && keeps == Keeps::Nothing { Keeps::Stamps } else { keeps };
        let mut flash = Flash::new(nand, logical_pages, logging, kept);
        let context = Self::scheme_context(config, seed, policies);
        let problems = crate::laid_out::problems(config, &context, &mut flash, policies);
        if !problems.is_empty() {
            return Err(fail(problems).into());
        }
        let cautions = config.ftl.scheme.cautions(&context, &flash);
        let reserve = config.ftl.scheme.reserve(&context, &flash);
        let mut scheme = config.ftl.scheme.build(&context, &mut flash);
        let ram = Self::build_ram(config, seed, policies, &mut scheme, &mut flash).map_err(|problems| {
            fail(problems.into_iter().map(|what| SettingError { key: String::new(), what }).collect())
        })?;
        let power = can_mount.then(|| Power::new(config, &mut flash));
        let sectors_per_page = geometry.page_size().0 / SECTOR_BYTES;
        let ahead = BackgroundCleaning::new(config, context.schedule_rules(), geometry.planes());
        let is_bare = config.errors.law == ErrorLaw::None
            && !observer.listens()
            && config.host.partial_pages != PartialPages::ReadModifyWrite
            && keeps != Keeps::Bytes
            && !has_foreign
            && ahead.is_none()
            && config.timing.cleaning_blocks == CleaningBlocks::Dies
            && power.is_none()
            && scheme.zoned().is_none();
        let path = Path::of(config.timing.model, is_bare, ram.is_some());
        let clock = Clock::new(config, &geometry, ram.is_some(), seed, observer);
        if let Clock::Parallel(clock) = &clock
            && clock.engine.wants_copies_apart()
        {
            flash.log_copies_apart();
        }
        Ok(Self {
            clock,
            path,
            config: config.clone(),
            cautions,
            reserve,
            flash,
            scheme,
            ram,
            logical_pages,
            sectors: u64::from(logical_pages) * sectors_per_page,
            reach: u64::from(logical_pages) * sectors_per_page + 1,
            sectors_per_page,
            page_shift: sectors_per_page.is_power_of_two().then(|| sectors_per_page.trailing_zeros()),
            now: 0,
            tag: 0,
            ahead,
            rewrites: config.errors.law != ErrorLaw::None,
            to_rewrite: Vec::new(),
            blocks_rewritten: 0,
            sectors_written: 0,
            ready: VecDeque::new(),
            failed: Vec::new(),
            policy_fault: has_foreign.then(|| policies.ftl.fault.clone()),
            own_schedule: policies.ftl.schedule.as_deref().map(MakeSchedule::rules),
            own_wear: policies.ftl.wear.is_some(),
            data: (keeps == Keeps::Bytes).then(Box::default),
            seed,
            power,
        })
    }

    /// What the translation layer is built for.
    pub(crate) fn scheme_context<'a>(config: &'a DriveConfig, seed: Seed, policies: &'a Policies) -> SchemeContext<'a> {
        SchemeContext {
            logical_pages: config.logical_pages(),
            dies_per_way: config.dies_per_way(),
            ftl: &config.ftl,
            gc: &config.gc,
            placement: &config.placement,
            wear: &config.wear,
            slc: SlcContext::new(&config.slc, config.geometry.bits_per_cell)
                .filter(|_| config.ftl.scheme.caches_in_slc()),
            seed,
            foreign: Some(&policies.ftl),
        }
    }

    /// The RAM before the translation layer.
    pub(crate) fn build_ram(
        config: &DriveConfig,
        seed: Seed,
        policies: &Policies,
        scheme: &mut Scheme,
        flash: &mut Flash,
    ) -> Result<Option<Ram>, Vec<String>> {
        let logical_pages = config.logical_pages();
        let drive = RamDrive { logical_pages, read: config.timing.read, program: config.timing.program, seed };
        match policies.manager.as_deref() {
            None => Ram::new(&config.ram, drive, scheme, flash),
            Some(maker) => Ram::with_foreign(maker, &policies.ftl.fault, &config.ram, drive, scheme, flash).map(Some),
        }
    }

    /// Requests end now, and fail.
    pub(crate) fn end_with(&mut self, flights: Vec<Flight>, error: &IoError) {
        for flight in flights {
            self.forget_data(flight.tag.0);
            self.failed.retain(|(tag, _)| *tag != flight.tag);
            self.failed.push((flight.tag, Box::new(error.clone())));
            self.ready.push_back(Flight { end: Nanos(self.now), ..flight });
        }
    }

    /// Lets the dies do what they do up to now; the requests that end wait to be fetched.
    pub(crate) fn catch_up(&mut self) {
        let mut ended = Flight::default();
        while self.advance(self.now, |flight| ended = *flight) {
            self.ready.push_back(ended);
        }
    }

    /// Blocks that were to be written again are forgotten.
    pub(crate) fn forget_rewrites(&mut self) {
        self.to_rewrite.clear();
    }

    /// Cleaning ahead of need begins anew.
    pub(crate) fn restart_cleaning(&mut self) {
        self.ahead = BackgroundCleaning::new(&self.config, self.schedule_rules(), self.flash.geometry().planes());
    }

    /// Lets the time of a mount pass, whose operations are in the log, and returns the end.
    pub(crate) fn pass_mount(&mut self, totals: [[u64; OP_KINDS]; 2]) -> u64 {
        match &mut self.clock {
            Clock::None => {}
            Clock::Serial { engine, .. } => {
                engine.work(self.now, [&totals[0], &totals[1]], self.flash.log(), self.flash.geometry());
                self.now = self.now.max(engine.free_at());
            }
            Clock::Parallel(_) => {
                let wanted = self.issue_work(self.now);
                while let Clock::Parallel(clock) = &mut self.clock {
                    let ended = clock.engine.next_completion(u64::MAX);
                    if !self.note_ends() {
                        break;
                    }
                    let (slot, end) = ended.expect("what was issued ends");
                    self.now = self.now.max(end);
                    if slot == wanted {
                        self.start_blocked(slot, self.now);
                        break;
                    }
                }
            }
        }
        self.now
    }

    /// After a loss of power the dies are at rest, and the driver has nothing in flight.
    pub(crate) fn restart_clock(&mut self) {
        if let Clock::Parallel(before) = &self.clock {
            let depth = before.queue.depth();
            #[allow(clippy::let_unit_value)] // an observer that observes is no unit
            let observer = ObserverOfDrive::default();
            self.clock = Clock::new(&self.config, self.flash.geometry(), self.ram.is_some(), self.seed, observer);
            if let Clock::Parallel(clock) = &mut self.clock {
                clock.queue.set_depth(depth);
            }
        }
    }

    /// Takes over what `other` holds: its pages, tables and wear. Both were built from the same settings, but for those of the
    /// host and the controller, and no time has passed on either. Both then go on alike.
    ///
    /// # Panics
    /// If requests were played on one of them, or one may lose power.
    pub fn take_state(&mut self, other: &Self) {
        for drive in [&*self, other] {
            assert!(
                drive.now == 0 && drive.tag == 0 && drive.power.is_none(),
                "nothing was played, and nothing is kept"
            );
        }
        self.flash = other.flash.clone();
        self.scheme = other.scheme.clone();
        self.ram = other.ram.clone();
        self.ahead = other.ahead.clone();
        self.to_rewrite = other.to_rewrite.clone();
        self.blocks_rewritten = other.blocks_rewritten;
        self.sectors_written = other.sectors_written;
    }

    /// When the schedule of cleaning is consulted.
    #[must_use]
    pub fn schedule_rules(&self) -> ScheduleRules {
        self.own_schedule.unwrap_or_else(|| self.config.gc.schedule.rules())
    }

    /// Whether blocks are recycled for the sake of wear.
    #[must_use]
    pub fn levels_wear(&self) -> bool {
        self.own_wear || self.config.wear.policy.is_some()
    }

    /// Whether policies or a translation layer from outside take part, whose state is not saved.
    #[must_use]
    pub fn has_foreign_policies(&self) -> bool {
        self.policy_fault.is_some()
    }

    /// Other settings, which a mount then builds the drive by.
    pub(crate) fn replace_config(&mut self, config: DriveConfig) {
        self.config = config;
    }

    /// Issues all operations in the log as work that no request waits for.
    pub(crate) fn issue_work(&mut self, at: u64) -> u32 {
        let slot = if self.power.is_some() {
            self.issue_kept(at, 0, 0..self.flash.log().len(), Awaits::Work)
        } else {
            let Clock::Parallel(clock) = &mut self.clock else {
                unreachable!("only dies that work side by side take work")
            };
            clock.engine.issue(at, 0, self.flash.log(), Awaits::Work, &self.flash)
        };
        if let Clock::Parallel(clock) = &mut self.clock {
            clock.takes_off(slot, Flight::background());
            clock.block_for(slot, self.flash.log());
        }
        slot
    }

    /// The configuration it was built from.
    #[must_use]
    pub fn config(&self) -> &DriveConfig {
        &self.config
    }
    /// The configuration with what it leaves open as this drive has it.
    #[must_use]
    pub fn config_in_force(&self) -> Config {
        let mut config = self.config.resolved();
        if let Clock::Parallel(clock) = &self.clock {
            config.host.queue_depth = QueueDepth::Requests(clock.queue.depth());
        }
        config
    }
    /// Takes as many requests at once as a closed loop of `depth` keeps in flight, where the configuration leaves that open
    /// and nothing before the drive queues by a rule of its own. To be called before the first request.
    pub fn widen_queue(&mut self, depth: u32) {
        let before = &self.config.host.stack.scheduler.0;
        let is_open = self.config.host.queue_depth == QueueDepth::Auto
            && before.is_empty()
            && self.config.controller.queue_depth == 0
            && self.config.controller.queues.is_plain();
        if let (Clock::Parallel(clock), true) = (&mut self.clock, is_open) {
            clock.queue.set_depth(clock.queue.depth().max(depth.min(QueueDepth::MAX)));
        }
    }
    /// See [`Flash::count_by_owner`].
    pub fn count_by_owner(&mut self, ends: &[u32]) {
        self.flash.count_by_owner(ends);
    }
    /// What of the configuration is allowed but costs far more than may be expected: one line each, for users.
    #[must_use]
    pub fn cautions(&self) -> &[String] {
        &self.cautions
    }
    /// What of each plane cleaning keeps for itself, where the scheme says so.
    #[must_use]
    pub fn reserve(&self) -> Option<Reserve> {
        self.reserve
    }
    /// The flash, for looking.
    #[must_use]
    pub fn flash(&self) -> &Flash {
        &self.flash
    }
    /// The translation layer, for looking.
    #[must_use]
    pub fn scheme(&self) -> &Scheme {
        &self.scheme
    }
    /// Pages that the host can address.
    #[must_use]
    pub fn logical_pages(&self) -> u32 {
        self.logical_pages
    }
    /// Sectors of a page.
    #[must_use]
    pub fn sectors_per_page(&self) -> u64 {
        self.sectors_per_page
    }
    /// What the scheme counted since the start or the last [`Ssd::reset_figures`].
    #[must_use]
    pub fn figures(&self) -> SchemeFigures {
        self.scheme.figures()
    }
    /// The RAM before the translation layer, for looking; none if the drive buffers nothing.
    #[must_use]
    pub fn ram(&self) -> Option<&Ram> {
        self.ram.as_ref()
    }
    /// What the RAM counted since the start or the last [`Ssd::reset_figures`].
    #[must_use]
    pub fn ram_figures(&self) -> Option<RamFigures> {
        self.ram.as_ref().map(Ram::figures)
    }
    /// Sets the counts of the scheme, the RAM and the chips to zero, for the end of a warm-up.
    pub fn reset_figures(&mut self) {
        if let Clock::Parallel(clock) = &mut self.clock {
            clock.engine.begin_measuring(self.now, &self.flash);
            self.blocks_rewritten = 0;
        }
        self.scheme.reset_figures();
        self.ram.iter_mut().for_each(Ram::reset_figures);
    }
    /// How long the parts of the drive were busy since the start; empty lists under `timing.model = "none"`.
    #[must_use]
    pub fn busy_times(&self) -> BusyTimes {
        match &self.clock {
            Clock::None => BusyTimes::default(),
            Clock::Serial { engine, .. } => BusyTimes { dies: vec![engine.busy()], channels: Vec::new() },
            Clock::Parallel(clock) => clock.engine.busy(),
        }
    }
    /// What the chips did since the start or the last [`Ssd::reset_figures`]; none where the drive needs no more than a page at a
    /// time.
    #[must_use]
    pub fn chip_figures(&self) -> Option<ChipFigures> {
        match &self.clock {
            Clock::Parallel(clock) => clock.engine.chip_figures(),
            _ => None,
        }
    }
    /// What reads met since the start or the last [`Ssd::reset_figures`], if errors are modelled, and the blocks that were written again for it.
    #[must_use]
    pub fn error_counts(&self) -> Option<(ErrorCounts, u64)> {
        match &self.clock {
            Clock::Parallel(clock) => clock.engine.error_counts().map(|counts| (counts, self.blocks_rewritten)),
            _ => None,
        }
    }
    /// Requests submitted and not yet completed.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.ready.len()
            + match &self.clock {
                Clock::Parallel(clock) => clock.queue.taken() as usize + clock.queue.len(),
                _ => 0,
            }
    }

    /// Requests in flight that have not started: all places are taken, or cleaning blocks the controller.
    #[must_use]
    pub fn waiting(&self) -> usize {
        match &self.clock {
            Clock::Parallel(clock) => clock.queue.len(),
            _ => 0,
        }
    }

    /// A time before which no request completes, whatever is submitted meanwhile; none if nothing is in flight. The next one may
    /// complete later: whoever waits in real time looks again then.
    #[must_use]
    pub fn none_completes_before(&self) -> Option<Nanos> {
        if let Some(next) = self.ready.front() {
            return Some(next.end);
        }
        let Clock::Parallel(clock) = &self.clock else { return None };
        (!clock.is_quiet()).then(|| Nanos(clock.engine.next_event()))
    }

    /// Walks the whole state: map and owners inverse, counts equal to recounts, every block accounted for, and under
    /// `verify` every logical page where the host left it. Answers what contradicts; costs time in proportion to the
    /// drive.
    #[must_use]
    pub fn audit(&self) -> Vec<Violation> {
        let mut violations = Vec::new();
        self.flash.audit(&mut violations);
        self.scheme.audit(&self.flash, &mut violations);
        if let Some(ram) = &self.ram {
            ram.audit(&mut violations);
        }
        if let Some(stamps) = self.flash.stamps() {
            violations.extend_from_slice(stamps.violations().1);
            for lpn in (0..self.logical_pages).map(Lpn) {
                let in_ram = self.ram.as_ref().and_then(|ram| ram.is_dirty(lpn));
                if in_ram.is_some() && !stamps.is_newest_in_ram(lpn) {
                    violations.push(Violation(format!("RAM does not hold the newest data of lpn {}", lpn.0)));
                }
                if in_ram == Some(true) {
                    continue; // what flash holds is old
                }
                match self.scheme.lookup(lpn, &self.flash) {
                    None if stamps.is_written(lpn) => {
                        violations.push(Violation(format!("lpn {} was written but is not mapped", lpn.0)));
                    }
                    Some(ppn) if !stamps.is_newest(lpn, ppn) => {
                        violations
                            .push(Violation(format!("page {} does not hold the newest data of lpn {}", ppn.0, lpn.0)));
                    }
                    _ => {}
                }
            }
        }
        violations
    }

    /// First page and number of pages that a request touches; (0, 0) for one without sectors.
    #[inline(always)]
    #[must_use]
    pub fn pages_of(&self, request: &Request) -> (u32, u32) {
        if request.sectors == 0 {
            return (0, 0);
        }
        let run = self.run_of(request);
        (run.first.0, run.pages)
    }

    /// Bytes that writes brought since the drive was new, preconditioning included; [`Flash::host_writes`] counts the pages
    /// that they touched.
    #[inline(always)]
    #[must_use]
    pub fn bytes_written(&self) -> u64 {
        self.sectors_written * SECTOR_BYTES
    }

    /// The pages that a request touches.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // the device's end was checked, and its pages are counted in 32 bits
    fn run_of(&self, request: &Request) -> LpnRun {
        let first = self.page_of(request.first_sector);
        let last = self.page_of(request.end_sector() - 1);
        LpnRun { first: Lpn(first as u32), pages: (last - first + 1) as u32, stream: u32::from(request.stream) }
    }

    /// The page that holds a sector.
    #[inline(always)]
    fn page_of(&self, sector: u64) -> u64 {
        match self.page_shift {
            Some(shift) => sector >> shift,
            None => sector / self.sectors_per_page,
        }
    }

    /// Whether a page begins with this sector.
    #[inline(always)]
    fn begins_page(&self, sector: u64) -> bool {
        match self.page_shift {
            Some(shift) => sector & ((1 << shift) - 1) == 0,
            None => sector.is_multiple_of(self.sectors_per_page),
        }
    }

    fn expect_on_flash(&self, pages: impl Iterator<Item = Lpn>, ahead: Ahead) {
        match ahead {
            Ahead::Far => self.scheme.expect_all_far(pages),
            Ahead::Near => self.scheme.expect_all_near(pages, &self.flash),
        }
    }

    /// The tag that the next request gets.
    pub(crate) fn next_tag(&self) -> u64 {
        self.tag
    }

    /// Hands a request to the translation layer, which leaves its operations in the flash's log and counts.
    #[inline(always)]
    fn translate<const PLAIN: bool, const RAM: bool>(&mut self, request: &Request) -> Result<(), Box<IoError>> {
        if !PLAIN && self.data.is_some() {
            return self.translate_data(request);
        }
        self.translate_pages::<PLAIN, RAM>(request)
    }

    /// As [`Ssd::translate`], once the bytes of a write are at hand.
    #[inline(always)]
    pub(crate) fn translate_pages<const PLAIN: bool, const RAM: bool>(
        &mut self,
        request: &Request,
    ) -> Result<(), Box<IoError>> {
        match request.kind {
            RequestKind::Flush => self.flush().map_err(worn_out),
            RequestKind::Append
            | RequestKind::ZoneOpen
            | RequestKind::ZoneClose
            | RequestKind::ZoneFinish
            | RequestKind::ZoneReset => self.translate_for_zones(request),
            _ if request.sectors == 0 => Ok(()),
            RequestKind::Write if PLAIN && !RAM => {
                let result = self.write_to_flash(self.run_of(request));
                self.note_sectors(u64::from(request.sectors), &result);
                result.map_err(worn_out)
            }
            RequestKind::Write => {
                if !PLAIN && self.config.host.partial_pages == PartialPages::ReadModifyWrite {
                    self.read_partial_pages(request);
                }
                // Worked out anew: a run whose address was taken would be copied through memory, which stalls.
                let result = self.write_run(self.run_of(request), request.fua && !self.config.recovery.ignores_flush);
                self.note_sectors(u64::from(request.sectors), &result);
                result.map_err(worn_out)
            }
            RequestKind::Read => {
                let run = self.run_of(request);
                let delivered = self.flash.stamps().map(|stamps| stamps.delivered());
                match &mut self.ram {
                    Some(ram) if RAM => ram.read(run, &mut self.scheme, &mut self.flash),
                    _ => self.scheme.read(run, &mut self.flash),
                }
                if let (Some(before), Some(stamps)) = (delivered, self.flash.stamps_mut())
                    && stamps.delivered() != before + u64::from(run.pages)
                {
                    stamps.report(format!("a read of {} pages answered another number", run.pages));
                }
                Ok(())
            }
            RequestKind::Trim => {
                self.trim(request.first_sector, request.end_sector(), request.stream);
                Ok(())
            }
        }
    }

    /// Writes the pages of a request that covers no page in part.
    pub(crate) fn write_whole_pages(&mut self, request: &Request) -> Result<(), Box<IoError>> {
        let result = self.write_run(self.run_of(request), request.fua);
        self.note_sectors(u64::from(request.sectors), &result);
        result.map_err(worn_out)
    }

    #[inline(never)]
    fn flush(&mut self) -> Result<(), OutOfSpace> {
        if self.config.recovery.ignores_flush {
            return Ok(());
        }
        // Without RAM what was acknowledged is on flash.
        let flushed = self.ram.as_mut().map_or(Ok(()), |ram| ram.flush(&mut self.scheme, &mut self.flash));
        // Capacitors write the trims when the power fails.
        if self.power.as_ref().is_some_and(|power| !power.is_protected()) {
            self.flash.flush_journal();
        }
        flushed
    }

    #[inline(never)]
    fn trim(&mut self, first_sector: u64, end_sector: u64, stream: u16) {
        if self.scheme.zoned().is_some() {
            return; // what is no longer needed leaves with its zone
        }
        // Only pages wholly covered lose their content.
        let first = first_sector.div_ceil(self.sectors_per_page);
        let end = end_sector / self.sectors_per_page;
        if let (Ok(first), Ok(pages)) = (u32::try_from(first), u32::try_from(end.saturating_sub(first)))
            && pages > 0
        {
            self.trim_run(LpnRun { first: Lpn(first), pages, stream: u32::from(stream) });
        }
    }

    fn trim_run(&mut self, run: LpnRun) {
        if let Some(ram) = &mut self.ram {
            ram.trim(run, &mut self.scheme, &mut self.flash);
        } else {
            run.iter().for_each(|lpn| self.flash.host_trims_page(lpn));
            self.scheme.trim(run, &mut self.flash);
        }
        // Capacitors write the trims when the power fails, but not to a mirror when the process is killed.
        if self.power.as_ref().is_some_and(|power| power.is_protected() && power.medium.mirror().is_some()) {
            self.flash.flush_journal();
        }
    }

    /// Counts the sectors of a write, if it succeeded.
    #[inline(always)]
    fn note_sectors(&mut self, sectors: u64, result: &Result<(), OutOfSpace>) {
        self.sectors_written += if result.is_ok() { sectors } else { 0 };
    }

    /// Writes whole pages. Where one can't be placed, what the pages hold then counts as their content.
    #[inline(always)]
    fn write_run(&mut self, run: LpnRun, forced: bool) -> Result<(), OutOfSpace> {
        if let Some(ram) = &mut self.ram {
            return ram.write(run, forced, &mut self.scheme, &mut self.flash);
        }
        self.write_to_flash(run)
    }

    #[inline(always)]
    fn write_to_flash(&mut self, run: LpnRun) -> Result<(), OutOfSpace> {
        self.flash.host_writes_run(run);
        let result = self.scheme.write(run, &mut self.flash);
        if result.is_err() {
            self.write_failed(run.apart());
        }
        result
    }

    #[cold]
    fn write_failed(&mut self, run: LpnRun) {
        for lpn in run.iter() {
            self.flash.host_write_failed(lpn, self.scheme.lookup(lpn, &self.flash));
        }
    }

    /// Reads the first and last page of a write that covers them only in part, if they hold data.
    #[inline(never)]
    fn read_partial_pages(&mut self, request: &Request) {
        let run = self.run_of(request);
        let starts_inside = !self.begins_page(request.first_sector);
        let ends_inside = !self.begins_page(request.end_sector());
        if !starts_inside && !ends_inside {
            return;
        }
        let last = Lpn(run.first.0 + run.pages - 1);
        let partial = [starts_inside.then_some(run.first), ends_inside.then_some(last)];
        for lpn in partial.into_iter().flatten().take(if run.pages == 1 { 1 } else { 2 }) {
            if self.ram.as_ref().is_some_and(|ram| ram.is_dirty(lpn).is_some()) {
                continue; // completed in RAM
            }
            if self.scheme.lookup(lpn, &self.flash).is_some() {
                self.scheme.read(LpnRun { first: lpn, pages: 1, stream: run.stream }, &mut self.flash);
                if self.ram.is_none() {
                    self.flash.host_program_waits(lpn);
                }
            }
        }
    }

    /// Translates a request that the drive takes at `start`. Under `parallel` its operations lie in the flash's log and
    /// its end is open; else the outcome is final. What a request did before it failed takes its time too; its error is kept
    /// under its tag.
    ///
    /// `PLAIN` on [`Path::Plain`], `BARE` on that and on [`Path::Bare`], where RAM may be there despite both if `RAM`; what only
    /// other drives have is then compiled away.
    #[inline(always)]
    fn carry_out<const PLAIN: bool, const BARE: bool, const RAM: bool>(
        &mut self,
        request: &Request,
        tag: u64,
        start: u64,
    ) -> Outcome {
        if !BARE && self.ahead.is_some() {
            self.clean_in_gap(start);
        }
        let counters = self.flash.counters();
        let (operations, erases, unmapped) =
            (counters.operations(), counters.total(OpKind::Erase), counters.reads_unmapped);
        let before = (!BARE && matches!(self.clock, Clock::Serial { .. })).then(|| counters.totals());
        if !PLAIN || RAM {
            self.flash.clear_log();
        }
        // A match, unlike `is_err`, leaves nothing of a success to be dropped.
        match self.translate::<BARE, RAM>(request) {
            Ok(()) if BARE || self.policy_fault.is_none() => {}
            done => self.note_failure(done, tag),
        }
        if !BARE && self.power.is_some() {
            self.take_checkpoint(true);
            if !matches!(self.clock, Clock::Parallel(_)) {
                self.settle_request(tag);
            }
        }
        let counters = self.flash.counters();
        let effects = Effects {
            flash_ops: saturating_u32(counters.operations() - operations),
            erases: saturating_u32(counters.total(OpKind::Erase) - erases),
        };
        let reads_unmapped = counters.reads_unmapped > unmapped;
        let (mut start, mut end) = (start, start);
        if let (Clock::Serial { engine, unmapped_read }, Some(before)) = (&mut self.clock, before) {
            let (after, log) = (counters.totals(), self.flash.log());
            let (background_at, awaited) = self.flash.background().unwrap_or((log.len(), after));
            let work = Work { totals: [before, awaited, after], log, background_at };
            let least = if reads_unmapped { *unmapped_read } else { 0 };
            (start, end) = engine.serve(start, least, tag, work, self.flash.geometry());
        }
        let delay = if !BARE && self.ahead.is_some() { self.note_written() } else { 0 };
        if !BARE && self.ahead.is_some() && !matches!(self.clock, Clock::Parallel(_)) {
            end = end.max(start + delay);
            self.clean_after_writes(start);
        }
        Outcome { start: Nanos(start), end: Nanos(end), effects, reads_unmapped, delay }
    }

    /// Whether it has refused a write for lack of room, which whoever submitted the write does not know yet.
    #[must_use]
    pub fn is_worn_out(&self) -> bool {
        self.failed.iter().any(|(_, error)| matches!(**error, IoError::WornOut { .. }))
    }

    /// Keeps the error of a request that failed, if it did.
    #[cold]
    #[inline(never)]
    fn note_failure(&mut self, done: Result<(), Box<IoError>>, tag: u64) {
        if let Err(error) = self.result_of(done) {
            self.forget_data(tag);
            self.failed.push((Tag(tag), error));
        }
    }

    /// The changes of a request are done. It fails if power failed.
    #[cold]
    fn settle_request(&mut self, tag: u64) {
        self.settle_changes();
        if let Some(error) = self.power_error() {
            self.forget_data(tag);
            self.failed.retain(|(failed, _)| failed.0 != tag);
            self.failed.push((Tag(tag), Box::new(error)));
        }
    }

    /// How a request ended: it failed, or a policy from outside can't go on.
    #[inline(always)]
    fn result_of(&self, done: Result<(), Box<IoError>>) -> Result<(), Box<IoError>> {
        match done {
            Ok(()) if self.policy_fault.is_none() => Ok(()),
            done => self.failure(done),
        }
    }

    #[cold]
    fn failure(&self, done: Result<(), Box<IoError>>) -> Result<(), Box<IoError>> {
        match self.policy_fault.as_ref().and_then(FaultCell::get) {
            None => done,
            Some(what) => Err(Box::new(IoError::Policy { what: what.to_owned() })),
        }
    }

    /// Carries out a request and puts it where its completion is waited for.
    #[inline(always)]
    fn dispatch(&mut self, request: &Request, tag: u64, start: u64) {
        if self.path.is_bare() {
            let outcome = self.carry_out::<false, true, false>(request, tag, start);
            return self.launch::<true>(request, tag, outcome);
        }
        if self.scheme.zoned().is_some() {
            return self.dispatch_to_zone(*request, tag, start);
        }
        self.dispatch_whole(request, tag, start);
    }

    #[inline(always)]
    fn dispatch_whole(&mut self, request: &Request, tag: u64, start: u64) {
        if let Some(data) = &mut self.data {
            data.at_hand = Some(tag);
        }
        let outcome = self.carry_out::<false, false, true>(request, tag, start);
        self.launch::<false>(request, tag, outcome);
    }

    /// As [`Ssd::dispatch`] on a drive with zones. A request that they refuse ends without an effect.
    #[inline(never)]
    fn dispatch_to_zone(&mut self, mut request: Request, tag: u64, start: u64) {
        let Err(error) = self.admit_to_zone(&mut request) else {
            return self.dispatch_whole(&request, tag, start);
        };
        self.flash.clear_log();
        self.note_failure(Err(error), tag);
        let (start, effects) = (Nanos(start), Effects::default());
        self.launch::<false>(&request, tag, Outcome { start, end: start, effects, reads_unmapped: false, delay: 0 });
    }

    /// Puts a request that was carried out where its completion is waited for.
    #[inline(always)]
    fn launch<const BARE: bool>(&mut self, request: &Request, tag: u64, outcome: Outcome) {
        let Outcome { start, end, effects, reads_unmapped, delay } = outcome;
        let flight = Flight { tag: Tag(tag), request: *request, start, end, effects };
        let Clock::Parallel(clock) = &mut self.clock else {
            self.ready.push_back(flight);
            return;
        };
        let mut least = if reads_unmapped { clock.unmapped_read } else { delay };
        if request.kind == RequestKind::Trim || !BARE && request.kind == RequestKind::ZoneReset {
            least = clock.least_of_trim(start.0, least, request);
        }
        if !BARE && self.power.is_some() {
            return self.dispatch_kept(start.0, least, flight);
        }
        let log = self.flash.log();
        let (awaited, background) = log.split_at(self.flash.background().map_or(log.len(), |(at, _)| at));
        let slot = clock.engine.issue(start.0, least, awaited, Awaits::Request, &self.flash);
        clock.takes_off(slot, flight);
        clock.queue.take(request.kind, 1);
        if !BARE {
            clock.block_for(slot, awaited);
        }
        if !background.is_empty() {
            let slot = clock.engine.issue(start.0, 0, background, Awaits::Work, &self.flash);
            clock.takes_off(slot, Flight::background());
            if !BARE {
                clock.block_for(slot, background);
            }
        }
        if !BARE {
            self.work_follows(start.0);
        }
    }

    /// Carries out a request on a drive that is bare, has dies that work side by side, and has nothing in flight.
    #[inline(always)]
    fn execute_quiet(&mut self, mut request: Request, completion: &mut Completion) -> Result<(), IoError> {
        self.check(&request)?;
        request.arrival = request.arrival.max(Nanos(self.now));
        let tag = self.tag;
        (self.tag, self.now) = (tag + 1, request.arrival.0);
        let outcome = self.carry_out::<false, true, false>(&request, tag, request.arrival.0);
        let Outcome { start, effects, reads_unmapped, .. } = outcome;
        if request.kind != RequestKind::Trim
            && self.flash.background().is_none()
            && let Clock::Parallel(clock) = &mut self.clock
        {
            let least = if reads_unmapped { clock.unmapped_read } else { 0 };
            let served = clock.engine.serve_alone(start.0, least, self.flash.log(), self.flash.geometry());
            if let Some(end) = served {
                Flight { tag: Tag(tag), request, start, end: Nanos(end), effects }.fill(completion);
                self.conclude(completion);
                self.now = self.now.max(end);
                return Ok(());
            }
        }
        self.launch::<true>(&request, tag, outcome);
        let ended = self.wait(Nanos(u64::MAX), completion)?;
        assert!(ended, "a request in flight ends");
        Ok(())
    }

    /// A request was issued: cleaning and rewriting may follow.
    #[inline(always)]
    pub(crate) fn work_follows(&mut self, at: u64) {
        if self.ahead.is_some() {
            self.clean_after_writes(at);
        }
        if self.rewrites {
            self.rewrite_blocks(at);
        }
    }

    /// Writes the data of blocks again that have gathered too many errors, as work that no request waits for.
    #[cold]
    fn rewrite_blocks(&mut self, at: u64) {
        let rewrites = self.config.ftl.scheme.asks_policies();
        while let Clock::Parallel(clock) = &mut self.clock
            && let Some(block) = clock.engine.next_to_rewrite()
        {
            if rewrites {
                self.to_rewrite.push((block, self.flash.nand().erases(block)));
            }
        }
        for (block, erases) in std::mem::take(&mut self.to_rewrite) {
            if self.flash.nand().erases(block) != erases {
                continue; // it has been cleaned since
            }
            self.flash.clear_log();
            if self.scheme.rewrite(block, &mut self.flash) == Progress::Nothing {
                self.to_rewrite.push((block, erases)); // its plane has no room now
                continue;
            }
            self.issue_work(at);
            self.blocks_rewritten += 1;
        }
    }

    /// Takes a request that failed because the power did, while its end was waited for.
    #[cold]
    #[inline(never)]
    fn failed_meanwhile(&mut self, completion: &mut Completion) -> bool {
        let Some(next) = self.ready.pop_front() else { return false };
        next.fill(completion);
        self.conclude(completion);
        true
    }

    /// Says in a completion that is otherwise filled how its request ended.
    #[inline(always)]
    fn conclude(&mut self, completion: &mut Completion) {
        // The completion may hold an error of another request, which goes.
        if !self.failed.is_empty() || completion.result.is_err() {
            self.conclude_slowly(completion);
        }
    }

    #[cold]
    fn conclude_slowly(&mut self, completion: &mut Completion) {
        let at = self.failed.iter().position(|(tag, _)| *tag == completion.tag);
        completion.result = at.map_or(Ok(()), |at| Err(self.failed.swap_remove(at).1));
    }

    /// Refuses a request that reaches past the end of the drive, and any while the power is off.
    #[inline(always)]
    fn check(&self, request: &Request) -> Result<(), IoError> {
        // A copy for the rare case: a request whose address is taken lies in memory.
        if request.end_sector() < self.reach { Ok(()) } else { self.refuse(*request) }
    }

    #[cold]
    #[inline(never)]
    fn refuse(&self, request: Request) -> Result<(), IoError> {
        match self.power_error() {
            Some(error) => Err(error),
            None => Bounds { sectors: self.sectors, block: Bytes(SECTOR_BYTES) }.check(&request),
        }
    }

    /// The power goes on or off.
    pub(crate) fn power_is(&mut self, on: bool) {
        self.reach = if on { self.sectors + 1 } else { 0 };
    }

    /// Writes pages, of zeros, without letting time pass: how a drive is preconditioned.
    ///
    /// # Errors
    /// [`IoError::WornOut`] when a page can't be placed.
    #[inline]
    pub fn precondition(&mut self, run: LpnRun) -> Result<(), IoError> {
        let result = self.write_run(run, false);
        self.note_sectors(u64::from(run.pages) * self.sectors_per_page, &result);
        self.clean_untimed();
        self.settle_untimed_if_kept();
        self.flash.clear_log();
        self.result_of(result.map_err(worn_out)).map_err(|error| *error)
    }

    /// Does work in which no time passes, such as many calls of [`Ssd::absorb`]: nothing is noted for an engine.
    pub fn without_time<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let logs = self.flash.stop_logging();
        let done = work(self);
        self.flash.log_again(logs);
        done
    }

    /// As [`BlockDevice::execute`] without letting time pass: the drive's pages and tables end up as if the request had
    /// been played at any pace in the same order. Nothing may be in flight. Of the completion only the request and the
    /// result are set.
    ///
    /// # Errors
    /// [`IoError`] as from [`BlockDevice::submit`]; the drive and `completion` are then as they were.
    #[inline]
    pub fn absorb(&mut self, request: Request, completion: &mut Completion) -> Result<(), IoError> {
        if !self.path.is_bare() {
            return self.absorb_whole(request, completion);
        }
        self.check(&request)?;
        let done = self.translate::<true, false>(&request);
        self.absorbed(request, done, completion);
        Ok(())
    }

    #[inline(never)]
    fn absorb_whole(&mut self, mut request: Request, completion: &mut Completion) -> Result<(), IoError> {
        self.check(&request)?;
        let admitted = if self.scheme.zoned().is_some() { self.admit_to_zone(&mut request) } else { Ok(()) };
        let done = admitted.and_then(|()| self.translate::<false, true>(&request));
        self.clean_untimed();
        self.settle_untimed_if_kept();
        self.absorbed(request, done, completion);
        Ok(())
    }

    /// Says how a request ended that took no time.
    #[inline(always)]
    fn absorbed(&mut self, request: Request, done: Result<(), Box<IoError>>, completion: &mut Completion) {
        self.flash.clear_log();
        completion.request = request;
        match self.result_of(done) {
            Ok(()) if completion.result.is_ok() => {}
            result => completion.result = result,
        }
    }

    /// Carries out a request on a drive that has one at a time, while none waits to be fetched.
    #[inline(always)]
    fn execute_alone<const PLAIN: bool, const RAM: bool>(
        &mut self,
        mut request: Request,
        completion: &mut Completion,
    ) -> Result<(), IoError> {
        self.check(&request)?;
        request.arrival = request.arrival.max(Nanos(self.now));
        let tag = self.tag;
        let Outcome { start, end, effects, .. } = self.carry_out::<PLAIN, PLAIN, RAM>(&request, tag, request.arrival.0);
        Flight { tag: Tag(tag), request, start, end, effects }.fill(completion);
        self.conclude(completion);
        self.tag += 1;
        self.now = end.0;
        Ok(())
    }

    /// Runs the engine to its next completion not after `until` and hands that to `land`; a freed place takes the next
    /// request of the driver.
    #[inline(always)]
    fn advance(&mut self, until: u64, land: impl FnOnce(&Flight)) -> bool {
        if self.path.is_bare() {
            let Clock::Parallel(clock) = &mut self.clock else { return false };
            if clock.queue.taken() == 0 && until == u64::MAX {
                return false; // the clock stands where the next request comes
            }
            let Some((slot, end)) = clock.engine.next_completion(until) else { return false };
            if clock.flights[slot as usize].tag != BACKGROUND {
                return self.lands::<true>(slot, end, land);
            }
            // Work that no request waits for has ended: the general way goes on.
        }
        if self.power.is_some() {
            return self.advance_kept(until, land);
        }
        let (slot, end) = loop {
            let Clock::Parallel(clock) = &self.clock else { return false };
            if until == u64::MAX && clock.is_quiet() {
                return false; // the clock stands where the next request comes
            }
            let limit = if self.ahead.is_some() { self.until_folding(until) } else { until };
            let Clock::Parallel(clock) = &mut self.clock else { return false };
            let Some((slot, end)) = clock.engine.next_completion(limit) else {
                if limit == until {
                    return false;
                }
                self.begin_folding(limit);
                continue;
            };
            if clock.flights[slot as usize].tag != BACKGROUND {
                break (slot, end);
            }
            self.start_blocked(slot, end);
            if self.ahead.is_some() {
                self.steps_ended(slot, end);
            }
        };
        self.lands::<false>(slot, end, land)
    }

    /// As [`Ssd::advance`], for a drive that may lose power: changes of the chips are noted when they are done, and flushes wait for
    /// them.
    #[cold]
    #[inline(never)]
    fn advance_kept(&mut self, until: u64, land: impl FnOnce(&Flight)) -> bool {
        let (slot, end) = loop {
            if !self.is_on() {
                return false; // the dies do nothing
            }
            if let Some(flight) = self.released_flush() {
                land(&flight);
                self.landed(flight.request.kind, flight.end.0);
                return true;
            }
            let Clock::Parallel(clock) = &mut self.clock else { return false };
            if until == u64::MAX && clock.is_quiet() {
                return false;
            }
            let next = clock.engine.next_completion(until);
            if !self.note_ends() {
                return false;
            }
            let Clock::Parallel(clock) = &mut self.clock else { return false };
            let Some((slot, end)) = next else {
                if self.has_released_flush() {
                    continue;
                }
                return false;
            };
            if clock.flights[slot as usize].tag == BACKGROUND {
                self.start_blocked(slot, end);
                if self.ahead.is_some() {
                    self.steps_ended(slot, end);
                }
            } else if self.holds_flush(slot, end) {
                self.start_blocked(slot, end);
            } else {
                break (slot, end);
            }
        };
        self.lands::<false>(slot, end, land)
    }

    /// A request has ended in the engine.
    #[inline(always)]
    fn lands<const BARE: bool>(&mut self, slot: u32, end: u64, land: impl FnOnce(&Flight)) -> bool {
        let Clock::Parallel(clock) = &mut self.clock else { return false };
        let flight = &mut clock.flights[slot as usize];
        flight.end = Nanos(end);
        land(flight);
        let kind = flight.request.kind;
        if !BARE && clock.blocking.is_some() {
            clock.unblock(slot);
        }
        self.landed(kind, end);
        true
    }

    /// A request has ended: its place takes the next one.
    #[inline(always)]
    fn landed(&mut self, kind: RequestKind, end: u64) {
        let Clock::Parallel(clock) = &mut self.clock else { return };
        clock.queue.release(kind, 1);
        let waiting = !clock.queue.is_empty();
        self.now = self.now.max(end);
        if waiting {
            self.admit(end);
        }
        if self.ahead.is_some() {
            self.request_ended(end);
        }
    }

    /// Takes requests from the driver while there is a place.
    #[cold]
    pub(crate) fn admit(&mut self, at: u64) {
        while let Clock::Parallel(clock) = &mut self.clock
            && let Some(Waiting { id, request }) = clock.queue.pick()
        {
            self.dispatch(&request, id, at);
        }
    }
}

impl BlockDevice for Ssd {
    fn info(&self) -> DeviceInfo {
        let queue_depth = match &self.clock {
            Clock::Parallel(clock) => clock.queue.depth(),
            _ => 1,
        };
        DeviceInfo {
            name: self.config.name.clone(),
            capacity: Bytes(self.sectors * SECTOR_BYTES),
            sector: Bytes(SECTOR_BYTES),
            queue_depth,
        }
    }

    #[inline]
    fn now(&self) -> Nanos {
        Nanos(self.now)
    }

    #[inline(always)]
    fn submit(&mut self, mut request: Request) -> Result<Tag, IoError> {
        self.check(&request)?;
        request.arrival = request.arrival.max(Nanos(self.now));
        let tag = self.tag;
        self.tag += 1;
        if let Clock::Parallel(_) = self.clock {
            // What ends at this very moment may stay to be fetched: it changes nothing for the request.
            if request.arrival.0 > self.now {
                let mut ended = Flight::default();
                while self.advance(request.arrival.0, |flight| ended = *flight) {
                    self.ready.push_back(ended);
                }
                self.now = request.arrival.0;
                self.check(&request)?; // the power may have failed by then
            }
            if let Clock::Parallel(clock) = &mut self.clock
                && !clock.queue.goes_at_once(&request)
            {
                clock.queue.push(tag, request);
                return Ok(Tag(tag));
            }
        }
        self.dispatch(&request, tag, request.arrival.0);
        Ok(Tag(tag))
    }

    #[inline(always)]
    fn execute(&mut self, request: Request, completion: &mut Completion) -> Result<(), IoError> {
        if self.path == Path::Plain && self.ready.is_empty() {
            return self.execute_alone::<true, false>(request, completion);
        }
        if self.path == Path::Buffered && self.ready.is_empty() {
            return self.execute_alone::<true, true>(request, completion);
        }
        if let Clock::Parallel(clock) = &self.clock
            && self.path == Path::Bare
            && clock.queue.taken() == 0
            && self.ready.is_empty()
        {
            return self.execute_quiet(request, completion);
        }
        if matches!(self.clock, Clock::Parallel(_)) || !self.ready.is_empty() || self.scheme.zoned().is_some() {
            self.submit(request)?;
            let ended = self.wait(Nanos(u64::MAX), completion)?;
            assert!(ended, "a request in flight ends");
            return Ok(());
        }
        self.execute_alone::<false, true>(request, completion)
    }

    #[inline(always)]
    fn wait(&mut self, until: Nanos, completion: &mut Completion) -> Result<bool, IoError> {
        if let Some(next) = self.ready.front() {
            if next.end > until {
                self.now = self.now.max(until.0);
                return Ok(false);
            }
            next.fill(completion);
            self.ready.pop_front();
            self.conclude(completion);
            self.now = self.now.max(completion.end.0);
            return Ok(true);
        }
        if self.advance(until.0, |flight| flight.fill(completion)) {
            self.conclude(completion);
            return Ok(true);
        }
        if self.power.is_some() && self.failed_meanwhile(completion) {
            return Ok(true);
        }
        if until.0 != u64::MAX {
            self.now = self.now.max(until.0);
        }
        Ok(false)
    }

    #[inline]
    fn expect(&self, requests: &[Request], ahead: Ahead) {
        // Only the first page of each is looked at, so only that needs to exist.
        #[allow(clippy::cast_possible_truncation)] // pages that exist are counted in 32 bits
        let pages = || {
            let exist = requests.iter().filter(|request| request.first_sector < self.sectors);
            exist.map(|request| (Lpn(self.page_of(request.first_sector) as u32), request.kind))
        };
        let Some(ram) = &self.ram else { return self.expect_on_flash(pages().map(|(lpn, _)| lpn), ahead) };
        if ahead == Ahead::Far {
            pages().for_each(|(lpn, _)| ram.expect(lpn));
        }
        // Of a RAM that keeps what is new, flash gets other pages than those written.
        let lets_go_new = ram.manager().lets_go_new();
        let of_flash = pages().filter(|(_, kind)| lets_go_new || *kind != RequestKind::Write);
        self.expect_on_flash(of_flash.map(|(lpn, _)| lpn), ahead);
    }

    fn holds_data(&mut self) -> Option<&mut dyn HoldsData> {
        if self.data.is_some() { Some(self) } else { None }
    }
}

/// Stands for work that no request waits for.
const BACKGROUND: Tag = Tag(u64::MAX);

impl ParallelClock {
    /// How long a trim takes at least, while the firmware clears its part of the map.
    #[cold]
    #[inline(never)]
    fn least_of_trim(&mut self, start: u64, least: u64, request: &Request) -> u64 {
        least.max(self.engine.clear_map(start, u64::from(request.sectors) * SECTOR_BYTES))
    }

    /// Whether the drive works for no request, and none waits for it.
    #[inline(always)]
    pub(crate) fn is_quiet(&self) -> bool {
        self.queue.taken() == 0 && self.queue.is_empty()
    }

    #[inline(always)]
    pub(crate) fn takes_off(&mut self, slot: u32, flight: Flight) {
        let slot = slot as usize;
        if slot == self.flights.len() {
            self.flights.push(Flight::default());
        }
        self.flights[slot] = flight;
    }
}

impl Clock {
    fn new(config: &DriveConfig, geometry: &Geometry, has_ram: bool, seed: Seed, observer: ObserverOfDrive) -> Self {
        let (times, unmapped_read) = (config.times(), config.flash_times().unmapped_read);
        let latency = if has_ram { config.ram.latency.0 } else { 0 };
        match config.timing.model {
            TimingModel::None => Self::None,
            TimingModel::Serial => Self::Serial { engine: Serial::new(&times, latency, observer), unmapped_read },
            TimingModel::Parallel => Self::Parallel(ParallelClock {
                engine: ParallelOfDrive::new(config, geometry, latency, seed, observer),
                flights: Vec::new(),
                queue: DriverQueue::new(config.host.queue_depth.requests()),
                blocking: BlockingSlots::new(config),
                unmapped_read,
            }),
        }
    }
}

/// The translation layer found no room.
#[cold]
#[allow(clippy::needless_pass_by_value)] // for `map_err`
fn worn_out(error: OutOfSpace) -> Box<IoError> {
    Box::new(IoError::WornOut { reason: error.to_string() })
}

/// A count for a column of 32 bits.
#[inline(always)]
fn saturating_u32(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Blocks that are bad since the factory, drawn without replacement.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a share of at most one half
fn factory_bad(config: &Config, geometry: &Geometry, seed: Seed) -> Vec<BlockId> {
    let mut rng = seed.stream("wear.factory-bad");
    let mut blocks: Vec<u32> = Vec::new();
    let count = (f64::from(geometry.blocks()) * config.wear.factory_bad).round() as usize;
    if count > 0 {
        blocks = (0..geometry.blocks()).collect();
        for at in 0..count {
            let other = at + below(&mut rng, (blocks.len() - at) as u64) as usize;
            blocks.swap(at, other);
        }
        blocks.truncate(count);
    }
    blocks.into_iter().map(BlockId).collect()
}

/// A configuration inside a saved state: as text, so that formats without field names can hold it.
mod as_toml {
    use super::{Config, DriveConfig};
    use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

    pub fn serialize<S: Serializer>(config: &DriveConfig, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&config.to_toml())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<DriveConfig, D::Error> {
        let text = String::deserialize(deserializer)?;
        Config::from_toml(&text, "saved state").map_err(D::Error::custom)
    }
}
