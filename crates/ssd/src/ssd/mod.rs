//! The drive behind the block-device seam.

mod construction;

use crate::cleaning::BackgroundCleaning;
use crate::clock::{Clock, Flight, ParallelClock};
use crate::data::RequestData;
use crate::engine::{Awaits, BusyTimes, ChipFigures, ObserverOfDrive, Work};
use crate::power_loss::Power;
use crate::translation::{Translation, worn_out};
pub use construction::{Policies, SsdError};
use flashwright_block::{
    Ahead, BlockDevice, Bounds, Bytes, Completion, DeviceInfo, Effects, HoldsData, IoError, Nanos, Request,
    RequestKind, SECTOR_BYTES, Seed, Tag, Waiting,
};
use flashwright_config::{Config, DriveConfig, QueueDepth};
use flashwright_ftl::policies::schedule::ScheduleRules;
use flashwright_ftl::schemes::Reserve;
use flashwright_ftl::{
    CleansInSteps, FaultCell, Flash, Ftl, LpnRun, OP_KINDS, Progress, Scheme, SchemeFigures, Violation,
};
use flashwright_nand::{BlockId, ErrorCounts};
use flashwright_ram::{Ram, RamFigures};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

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
    pub(crate) translation: Translation,
    /// Requests end before this sector: one past the drive's last, or 0 while the power is off.
    reach: u64,
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

impl Ssd {
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
        self.ahead =
            BackgroundCleaning::new(&self.config, self.schedule_rules(), self.translation.flash.geometry().planes());
    }

    /// Lets the time of a mount pass, whose operations are in the log, and returns the end.
    pub(crate) fn pass_mount(&mut self, totals: [[u64; OP_KINDS]; 2]) -> u64 {
        match &mut self.clock {
            Clock::None => {}
            Clock::Serial { engine, .. } => {
                engine.work(
                    self.now,
                    [&totals[0], &totals[1]],
                    self.translation.flash.log(),
                    self.translation.flash.geometry(),
                );
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
            self.clock = Clock::new(
                &self.config,
                self.translation.flash.geometry(),
                self.translation.ram.is_some(),
                self.seed,
                observer,
            );
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
        self.translation.take_state(&other.translation);
        self.ahead = other.ahead.clone();
        self.to_rewrite = other.to_rewrite.clone();
        self.blocks_rewritten = other.blocks_rewritten;
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
        self.translation.follow(&config);
        self.config = config;
    }

    /// Issues all operations in the log as work that no request waits for.
    pub(crate) fn issue_work(&mut self, at: u64) -> u32 {
        let slot = if self.power.is_some() {
            self.issue_kept(at, 0, 0..self.translation.flash.log().len(), Awaits::Work)
        } else {
            let Clock::Parallel(clock) = &mut self.clock else {
                unreachable!("only dies that work side by side take work")
            };
            clock.engine.issue(at, 0, self.translation.flash.log(), Awaits::Work, &self.translation.flash)
        };
        if let Clock::Parallel(clock) = &mut self.clock {
            clock.issued(slot, Flight::background());
            clock.block_for(slot, self.translation.flash.log());
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
        if let Some(clock) = self.clock.parallel() {
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
        self.translation.flash.count_by_owner(ends);
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
        &self.translation.flash
    }
    /// The translation layer, for looking.
    #[must_use]
    pub fn scheme(&self) -> &Scheme {
        &self.translation.scheme
    }
    /// Pages that the host can address.
    #[must_use]
    pub fn logical_pages(&self) -> u32 {
        self.translation.logical_pages
    }
    /// Sectors of a page.
    #[must_use]
    pub fn sectors_per_page(&self) -> u64 {
        self.translation.sectors_per_page
    }
    /// What the scheme counted since the start or the last [`Ssd::reset_figures`].
    #[must_use]
    pub fn figures(&self) -> SchemeFigures {
        self.translation.scheme.figures()
    }
    /// The RAM before the translation layer, for looking; none if the drive buffers nothing.
    #[must_use]
    pub fn ram(&self) -> Option<&Ram> {
        self.translation.ram.as_ref()
    }
    /// What the RAM counted since the start or the last [`Ssd::reset_figures`].
    #[must_use]
    pub fn ram_figures(&self) -> Option<RamFigures> {
        self.translation.ram.as_ref().map(Ram::figures)
    }
    /// Sets the counts of the scheme, the RAM and the chips to zero, for the end of a warm-up.
    pub fn reset_figures(&mut self) {
        if let Clock::Parallel(clock) = &mut self.clock {
            clock.engine.begin_measuring(self.now, &self.translation.flash);
            self.blocks_rewritten = 0;
        }
        self.translation.scheme.reset_figures();
        self.translation.ram.iter_mut().for_each(Ram::reset_figures);
    }
    /// How long the parts of the drive were busy since the start; empty lists under `timing.model = "none"`.
    #[must_use]
    pub fn busy_times(&self) -> BusyTimes {
        self.clock.busy_times()
    }
    /// What the chips did since the start or the last [`Ssd::reset_figures`]; none where the drive needs no more than a page at a
    /// time.
    #[must_use]
    pub fn chip_figures(&self) -> Option<ChipFigures> {
        self.clock.chip_figures()
    }
    /// What reads met since the start or the last [`Ssd::reset_figures`], if errors are modelled, and the blocks that were written again for it.
    #[must_use]
    pub fn error_counts(&self) -> Option<(ErrorCounts, u64)> {
        self.clock.error_counts().map(|counts| (counts, self.blocks_rewritten))
    }
    /// Requests submitted and not yet completed.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        let in_flight = |clock: &ParallelClock| clock.queue.taken() as usize + clock.queue.len();
        self.ready.len() + self.clock.parallel().map_or(0, in_flight)
    }

    /// Requests in flight that have not started: all places are taken, or cleaning blocks the controller.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.clock.parallel().map_or(0, |clock| clock.queue.len())
    }

    /// A time before which no request completes, whatever is submitted meanwhile; none if nothing is in flight. The next one may
    /// complete later: whoever waits in real time looks again then.
    #[must_use]
    pub fn none_completes_before(&self) -> Option<Nanos> {
        if let Some(next) = self.ready.front() {
            return Some(next.end);
        }
        let clock = self.clock.parallel()?;
        (!clock.is_quiet()).then(|| Nanos(clock.engine.next_event()))
    }

    /// Walks the whole state: map and owners inverse, counts equal to recounts, every block accounted for, and under
    /// `verify` every logical page where the host left it. Answers what contradicts; costs time in proportion to the
    /// drive.
    #[must_use]
    pub fn audit(&self) -> Vec<Violation> {
        self.translation.audit()
    }

    /// First page and number of pages that a request touches; (0, 0) for one without sectors.
    #[inline(always)]
    #[must_use]
    pub fn pages_of(&self, request: &Request) -> (u32, u32) {
        self.translation.pages_of(request)
    }

    /// Bytes that writes brought since the drive was new, preconditioning included; [`Flash::host_writes`] counts the pages
    /// that they touched.
    #[inline(always)]
    #[must_use]
    pub fn bytes_written(&self) -> u64 {
        self.translation.bytes_written()
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
        let result = self.translation.carry_out::<PLAIN, RAM>(request);
        if !PLAIN && self.power.is_some() {
            self.write_journal(request.kind);
        }
        result
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
        let mark = self.translation.mark();
        let before =
            (!BARE && matches!(self.clock, Clock::Serial { .. })).then(|| self.translation.flash.counters().totals());
        if !PLAIN || RAM {
            self.translation.flash.clear_log();
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
        let (effects, reads_unmapped) = self.translation.since(&mark);
        let (mut start, mut end) = (start, start);
        if let (Clock::Serial { engine, unmapped_read }, Some(before)) = (&mut self.clock, before) {
            let (after, log) = (self.translation.flash.counters().totals(), self.translation.flash.log());
            let (background_at, awaited) = self.translation.flash.background().unwrap_or((log.len(), after));
            let work = Work { totals: [before, awaited, after], log, background_at };
            let least = if reads_unmapped { *unmapped_read } else { 0 };
            (start, end) = engine.serve(start, least, tag, work, self.translation.flash.geometry());
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
        if self.translation.scheme.zoned().is_some() {
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
        self.translation.flash.clear_log();
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
        let log = self.translation.flash.log();
        let (awaited, background) = log.split_at(self.translation.flash.background().map_or(log.len(), |(at, _)| at));
        let slot = clock.engine.issue(start.0, least, awaited, Awaits::Request, &self.translation.flash);
        clock.issued(slot, flight);
        clock.queue.take(request.kind, 1);
        if !BARE {
            clock.block_for(slot, awaited);
        }
        if !background.is_empty() {
            let slot = clock.engine.issue(start.0, 0, background, Awaits::Work, &self.translation.flash);
            clock.issued(slot, Flight::background());
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
            && self.translation.flash.background().is_none()
            && let Clock::Parallel(clock) = &mut self.clock
        {
            let least = if reads_unmapped { clock.unmapped_read } else { 0 };
            let served = clock.engine.serve_alone(
                start.0,
                least,
                self.translation.flash.log(),
                self.translation.flash.geometry(),
            );
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
                self.to_rewrite.push((block, self.translation.flash.nand().erases(block)));
            }
        }
        for (block, erases) in std::mem::take(&mut self.to_rewrite) {
            if self.translation.flash.nand().erases(block) != erases {
                continue; // it has been cleaned since
            }
            self.translation.flash.clear_log();
            if self.translation.scheme.rewrite(block, &mut self.translation.flash) == Progress::Nothing {
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
            None => Bounds { sectors: self.translation.sectors(), block: Bytes(SECTOR_BYTES) }.check(&request),
        }
    }

    /// The power goes on or off.
    pub(crate) fn power_is(&mut self, on: bool) {
        self.reach = if on { self.translation.sectors() + 1 } else { 0 };
    }

    /// Writes pages, of zeros, without letting time pass: how a drive is preconditioned.
    ///
    /// # Errors
    /// [`IoError::WornOut`] when a page can't be placed.
    #[inline]
    pub fn precondition(&mut self, run: LpnRun) -> Result<(), IoError> {
        let result = self.translation.write_run(run, false);
        self.translation.note_sectors(u64::from(run.pages) * self.translation.sectors_per_page, &result);
        self.clean_untimed();
        self.settle_untimed_if_kept();
        self.translation.flash.clear_log();
        self.result_of(result.map_err(worn_out)).map_err(|error| *error)
    }

    /// Does work in which no time passes, such as many calls of [`Ssd::absorb`]: nothing is noted for an engine.
    pub fn without_time<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let logs = self.translation.flash.stop_logging();
        let done = work(self);
        self.translation.flash.log_again(logs);
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
        let admitted =
            if self.translation.scheme.zoned().is_some() { self.admit_to_zone(&mut request) } else { Ok(()) };
        let done = admitted.and_then(|()| self.translate::<false, true>(&request));
        self.clean_untimed();
        self.settle_untimed_if_kept();
        self.absorbed(request, done, completion);
        Ok(())
    }

    /// Says how a request ended that took no time.
    #[inline(always)]
    fn absorbed(&mut self, request: Request, done: Result<(), Box<IoError>>, completion: &mut Completion) {
        self.translation.flash.clear_log();
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
            if !clock.flights[slot as usize].is_background() {
                return self.completes::<true>(slot, end, land);
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
            if !clock.flights[slot as usize].is_background() {
                break (slot, end);
            }
            self.start_blocked(slot, end);
            if self.ahead.is_some() {
                self.steps_ended(slot, end);
            }
        };
        self.completes::<false>(slot, end, land)
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
                self.completed(flight.request.kind, flight.end.0);
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
            if clock.flights[slot as usize].is_background() {
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
        self.completes::<false>(slot, end, land)
    }

    /// A request has ended in the engine.
    #[inline(always)]
    fn completes<const BARE: bool>(&mut self, slot: u32, end: u64, land: impl FnOnce(&Flight)) -> bool {
        let Clock::Parallel(clock) = &mut self.clock else { return false };
        let flight = &mut clock.flights[slot as usize];
        flight.end = Nanos(end);
        land(flight);
        let kind = flight.request.kind;
        if !BARE && clock.blocking.is_some() {
            clock.unblock(slot);
        }
        self.completed(kind, end);
        true
    }

    /// A request has ended: its place takes the next one.
    #[inline(always)]
    fn completed(&mut self, kind: RequestKind, end: u64) {
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
        DeviceInfo {
            name: self.config.name.clone(),
            capacity: Bytes(self.translation.sectors() * SECTOR_BYTES),
            sector: Bytes(SECTOR_BYTES),
            queue_depth: self.clock.depth(),
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
        if matches!(self.clock, Clock::Parallel(_))
            || !self.ready.is_empty()
            || self.translation.scheme.zoned().is_some()
        {
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
        self.translation.expect(requests, ahead);
    }

    fn holds_data(&mut self) -> Option<&mut dyn HoldsData> {
        if self.data.is_some() { Some(self) } else { None }
    }
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
