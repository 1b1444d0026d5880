//! One run from preconditioning to report, in steps that can be paused, saved and resumed.
//!
//! ```text
//!   precondition ──► settling ──► warm-up ──► measured ──► report
//!        pages        requests     requests    requests      (also from a run that was stopped)
//! ```
//!
//! Settling takes place if the workload itself preconditions the drive. From the start of the workload, the [`History`]
//! of write amplification determines whether the drive has settled under it.

mod live;
mod live_image;
mod scaled;
mod shared;

pub use live::{LiveRun, mounted_json};
pub use scaled::ScaledStart;
pub use shared::Preconditioned;

use crate::conditioning::{Conditioning, Search, totals};
use crate::image::ImageError;
use crate::machine::Machine;
use crate::measure::{Measurement, RequestColumns, Window};
use crate::player::{Pace, PlayError, Player, Step};
use crate::precondition::{Precondition, Preconditioning};
use crate::report::{Cost, Ended, RunReport};
use crate::settle::{DriveFacts, History, Settled, Verdict};
use crate::tenants::{self, Tenant};
use crate::warnings::Origin;
use flashwright_block::{IoError, RequestSource, Seed};
use flashwright_ftl::{OpKind, SlcCacheKind};
use flashwright_host::LayerFigures;
use flashwright_nand::BlockId;
use flashwright_ssd::{ControllerFigures, DriveConfig, Ssd, SsdError, TimingModel};
use rustix::time::ClockId;
use serde::{Deserialize, Serialize};
use std::collections::TryReserveError;

/// The settings of a run, apart from the drive and the source of requests.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunSettings {
    /// The workload in words, for the report; stand-ins are labelled here.
    pub workload: String,
    /// The seed; it determines the whole run.
    pub seed: Seed,
    /// How the drive is preconditioned.
    pub precondition: Precondition,
    /// When requests are issued.
    pub pace: Pace,
    /// Requests played before measuring begins.
    pub warmup_requests: u64,
    /// Largest number of measured requests; none for all that the source has.
    pub requests: Option<u64>,
    /// The time series.
    pub window: Window,
    /// Whether to keep a row for every request.
    pub keep_requests: bool,
    /// Rows of consecutive requests to keep: the first, counted from 0 at the start of measuring, and their number.
    pub closeup: Option<(u64, u64)>,
    /// Most snapshots of all blocks to keep (2 or more), spaced evenly over the measurement, including its start and end;
    /// they need a time series.
    pub snapshots: Option<usize>,
    /// Whether to check every read and audit the state.
    pub verify: bool,
    /// Under `verify`, the whole state is also audited every this many requests; 0 audits only at the end.
    pub audit_every: u64,
    /// The tenants, if there are several workloads at once.
    pub tenants: Vec<Tenant>,
}

/// All of a nameless workload on an erased drive, one request at a time, with nothing kept or checked.
impl Default for RunSettings {
    fn default() -> Self {
        Self {
            workload: String::new(),
            seed: Seed(1),
            precondition: Precondition::Empty,
            pace: Pace::Closed { depth: 1 },
            warmup_requests: 0,
            requests: None,
            window: Window::Off,
            keep_requests: false,
            closeup: None,
            snapshots: None,
            verify: false,
            audit_every: 0,
            tenants: Vec::new(),
        }
    }
}

/// Requests after which a run looks whether its drive has refused a write. A number of requests and not a time, so that runs repeat.
const LOOK: u64 = 4096;

/// Why a run failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The drive could not be built.
    #[error(transparent)]
    Ssd(#[from] SsdError),
    /// The workload could not continue.
    #[error(transparent)]
    Source(#[from] flashwright_block::SourceError),
    /// A request failed or was refused.
    #[error("{0}")]
    Device(IoError),
    /// The workload ended within the warm-up.
    #[error("warmup: found {warmup}, expected fewer than the {played} requests that the workload has")]
    NothingMeasured {
        /// Requests of the warm-up.
        warmup: u64,
        /// Requests that the workload had.
        played: u64,
    },
    /// Preconditioning filled the drive beyond what it can clean.
    #[error("precondition: {0}")]
    Precondition(IoError),
    /// The rows of the requests need more memory than there is.
    #[error("no memory is left for the rows of requests: {0}")]
    Memory(#[from] TryReserveError),
    /// The image of a drive can't be used.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// A saved run can't be read.
    #[error("{path}: {what}")]
    Saved {
        /// The file.
        path: String,
        /// The error, and what to do.
        what: String,
    },
}

/// The phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// The drive is being preconditioned.
    Precondition,
    /// The workload is played, not measured, until the drive has settled under it.
    Settling,
    /// Requests are played but not measured.
    Warmup,
    /// Requests are played and measured.
    Measured,
    /// The run has ended.
    Done,
}

/// Progress of a run, for progress bars.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunProgress {
    /// Phase and progress of the run.
    pub phase: Phase,
    /// Pages or requests of this phase that are done.
    pub done: u64,
    /// Pages or requests of this phase in total, if known.
    pub total: Option<u64>,
    /// Share of the source that was read, if only that is known.
    pub share: Option<f64>,
    /// Requests played in total.
    pub requests: u64,
}

/// A run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Simulation {
    settings: RunSettings,
    origin: Origin,
    machine: Machine,
    preconditioning: Preconditioning,
    /// The drive that the run's own is to be a copy of, until it has settled.
    small: Option<Box<scaled::SmallDrive>>,
    conditioning: Option<Conditioning>,
    history: Option<History>,
    player: Option<Player>,
    measurement: Option<Measurement>,
    phase: Phase,
    ended: Option<String>,
    cpu_s: f64,
    /// A preconditioned drive for other runs; not part of a saved one.
    #[serde(skip)]
    handing_on: Option<shared::HandingOn>,
}

impl Simulation {
    /// Builds the drive; nothing is played yet.
    ///
    /// # Errors
    /// [`RunError::Ssd`] with every validation error of the configuration.
    pub fn new(config: &DriveConfig, settings: RunSettings) -> Result<Self, RunError> {
        Self::on(Ssd::new(config, settings.seed, settings.verify)?, settings)
    }

    /// A run on an existing drive, which was built with the seed and the `verify` of the settings and has not been
    /// used.
    ///
    /// # Errors
    /// [`RunError::Ssd`] with every validation error of the layers between host and drive.
    pub fn on(mut ssd: Ssd, settings: RunSettings) -> Result<Self, RunError> {
        match settings.pace {
            Pace::Closed { depth } => ssd.widen_queue(depth),
            Pace::Tenants => ssd.widen_queue(tenants::outstanding(&settings.tenants)),
            Pace::Open { .. } | Pace::Interactive => {}
        }
        let preconditioning = Preconditioning::new(settings.precondition, &ssd, settings.seed)?;
        let conditioning = match settings.precondition {
            Precondition::Workload { capacities, .. } => Some(Conditioning::new(capacities, ssd.logical_pages())),
            _ => None,
        };
        Ok(Self {
            machine: Machine::new(ssd, settings.seed)?,
            settings,
            origin: Origin::default(),
            preconditioning,
            small: None,
            conditioning,
            history: None,
            player: None,
            measurement: None,
            phase: Phase::Precondition,
            ended: None,
            cpu_s: 0.0,
            handing_on: None,
        })
    }

    /// Sets the origin of the requests, which the run's warnings depend on.
    pub fn say_origin(&mut self, origin: Origin) {
        self.origin = origin;
    }

    /// The origin of the requests, if it was set.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The drive.
    #[must_use]
    pub fn ssd(&self) -> &Ssd {
        self.machine.ssd()
    }
    /// Figures of the drive's controller since measuring began, if it has one.
    #[must_use]
    pub fn controller(&self) -> Option<ControllerFigures> {
        self.machine.controller()
    }
    /// Figures of the layers between the workload and the drive since measuring began, from the host down.
    #[must_use]
    pub fn layers(&self) -> Vec<LayerFigures> {
        self.machine.layers()
    }
    /// Erases of all blocks since the drive was new, and what the host has written since then: the pages that writes
    /// touched, and their bytes.
    #[must_use]
    pub fn wear(&self) -> (u64, u64, u64) {
        let written = self.machine.written();
        (self.ssd().flash().counters().total(OpKind::Erase), written.pages, written.bytes)
    }

    /// Erases of each block since the drive was new.
    #[must_use]
    pub fn erases_per_block(&self) -> Vec<u32> {
        let nand = self.ssd().flash().nand();
        (0..self.ssd().flash().geometry().blocks()).map(|block| nand.erases(BlockId(block))).collect()
    }

    /// The settings of the run.
    #[must_use]
    pub fn settings(&self) -> &RunSettings {
        &self.settings
    }
    /// The preconditioning, finished or in progress.
    #[must_use]
    pub fn preconditioning(&self) -> &Preconditioning {
        &self.preconditioning
    }
    /// The search for the settled state, finished or in progress, if the workload preconditions the drive.
    #[must_use]
    pub fn conditioning(&self) -> Option<&Conditioning> {
        self.conditioning.as_ref()
    }
    /// The history of pages written and programmed since the workload began.
    ///
    /// # Panics
    /// Before preconditioning has ended.
    #[must_use]
    pub fn history(&self) -> &History {
        self.history.as_ref().expect("it begins with the workload")
    }

    /// Whether the figures describe a drive that has settled under the workload.
    #[must_use]
    pub fn settled(&self) -> Settled {
        self.verdict_on(self.history())
    }

    /// As [`Simulation::settled`], up to this moment, at which so many requests have completed since measuring began.
    pub(crate) fn settled_now(&self, requests: u64) -> Settled {
        let mut history = self.history().clone();
        history.note(totals(&self.machine), requests);
        self.verdict_on(&history)
    }

    fn verdict_on(&self, history: &History) -> Settled {
        let whole_passes = self.settings.warmup_requests == 0 && self.player.as_ref().is_some_and(Player::is_done);
        let mut settled = history.verdict(whole_passes);
        if settled.verdict == Verdict::NeverCleaned && self.origin.is_trace {
            settled.mend = Some("--addresses scale, or a smaller drive, if the trace was to fill the drive".into());
        }
        let search = self.conditioning.as_ref().map(Conditioning::search);
        if let (Verdict::Transient, Some(search), Some(conditioning)) = (settled.verdict, search, &self.conditioning) {
            match search {
                Search::GaveUp if history.is_by_pass() => {
                    settled.why = format!(
                        "{}; the trace was played {} times beforehand and wrote {:.2} capacities of the drive",
                        settled.why,
                        conditioning.passes(),
                        self.capacities(history.host_pages_before())
                    );
                    settled.mend = Some("a smaller drive, or --addresses scale, or a longer trace".into());
                }
                Search::GaveUp => {
                    settled.why = format!(
                        "{}; preconditioning gave up after {:.0} capacities",
                        settled.why,
                        self.capacities(history.host_pages_before())
                    );
                    settled.mend = Some("--precondition workload:capacities=N with a larger N".into());
                }
                Search::Ended => {
                    settled.why = format!("{}; the workload ended before the drive had settled", settled.why);
                    settled.mend = None;
                }
                _ => settled.mend = Some("--requests with a larger number".into()),
            }
        }
        settled
    }

    #[allow(clippy::cast_precision_loss)] // pages far below 2^53
    pub(crate) fn capacities(&self, host_pages: u64) -> f64 {
        host_pages as f64 / f64::from(self.ssd().logical_pages())
    }

    pub(crate) fn measurement(&self) -> &Measurement {
        self.measurement.as_ref().expect("a report is made only after measuring began")
    }
    /// Requests that the drive accepts at once; none if there is a scheduler before it.
    pub(crate) fn queue_depth(&self) -> Option<u32> {
        self.machine.queue_depth()
    }
    /// Arrival rate of an open loop in requests per second; none if all of them arrive at once.
    pub(crate) fn arrivals_per_s(&self) -> Option<f64> {
        self.player.as_ref()?.arrivals_per_s()
    }
    pub(crate) fn is_timed(&self) -> bool {
        self.ssd().config().timing.model != TimingModel::None
    }

    /// Phase and progress of the run.
    #[must_use]
    pub fn progress(&self, source: &dyn RequestSource) -> RunProgress {
        let requests = self.player.as_ref().map_or(0, Player::submitted);
        let (done, total, share) = match self.phase {
            Phase::Precondition => {
                let of_small = self.small.as_ref().map(|small| small.progress());
                let (done, total) = of_small.unwrap_or_else(|| self.preconditioning.progress());
                (done, Some(total), None)
            }
            Phase::Settling => match (&self.conditioning, &self.history) {
                (Some(conditioning), Some(history)) => {
                    (history.host_pages(), Some(conditioning.host_pages_max()), None)
                }
                _ => (0, None, None),
            },
            Phase::Warmup => (requests, Some(self.settings.warmup_requests), None),
            Phase::Measured | Phase::Done => {
                let done = requests.saturating_sub(self.settings.warmup_requests);
                let left = source.remaining().map(|left| done + left);
                let total = match (self.settings.requests, left) {
                    (Some(asked), Some(left)) => Some(asked.min(left)),
                    (asked, left) => asked.or(left),
                };
                (done, total, source.progress())
            }
        };
        RunProgress { phase: self.phase, done, total, share, requests }
    }

    /// Continues by about `budget` pages or requests; returns true when the run has ended.
    ///
    /// # Errors
    /// [`RunError`]; the run can still be reported as interrupted. A drive that can take no more writes ends the run
    /// without an error.
    pub fn step(&mut self, source: &mut dyn RequestSource, budget: u64) -> Result<bool, RunError> {
        let started = seconds(ClockId::ThreadCPUTime);
        let is_run = matches!(self.phase, Phase::Warmup | Phase::Measured);
        let result = match self.phase {
            Phase::Precondition => match self.step_scaled(source, budget) {
                Ok(true) => self.step_precondition(budget),
                Ok(false) => Ok(()),
                Err(error) => Err(error),
            },
            Phase::Settling => self.step_settling(source, budget),
            Phase::Warmup => self.step_warmup(source, budget),
            Phase::Measured => self.step_measured(source, budget),
            Phase::Done => Ok(()),
        };
        if is_run {
            self.cpu_s += seconds(ClockId::ThreadCPUTime) - started;
        }
        result.map(|()| self.phase == Phase::Done)
    }

    fn step_precondition(&mut self, budget: u64) -> Result<(), RunError> {
        if !self.preconditioning.step(self.machine.ssd_mut(), budget).map_err(RunError::Precondition)? {
            return Ok(());
        }
        if self.conditioning.is_none() {
            self.keep_preconditioned();
        }
        self.workload_begins();
        Ok(())
    }

    /// Whether time passes while the workload preconditions the drive: layers before the flash merge and buffer by time, and the
    /// order of tenants' requests depends on completions.
    fn settling_takes_time(&self) -> bool {
        self.machine.settles_at_pace() || self.settings.pace == Pace::Tenants
    }

    /// The drive is preconditioned, but for what the workload itself does.
    fn workload_begins(&mut self) {
        self.machine.workload_begins();
        if !self.settings.tenants.is_empty() {
            let ends: Vec<u32> = self.settings.tenants.iter().map(Tenant::end_page).collect();
            self.machine.ssd_mut().count_by_owner(&ends);
        }
        let (now, ssd) = (self.machine.now(), self.machine.ssd());
        let geometry = ssd.flash().geometry();
        let drive = DriveFacts {
            logical_pages: ssd.logical_pages(),
            blocks: geometry.blocks(),
            pages_per_block: geometry.pages_per_block(),
            levels_wear: ssd.levels_wear(),
            has_cache: ssd.config().slc.cache != SlcCacheKind::None,
            is_copy: self.preconditioning.scaled().is_some_and(|start| start.refused.is_none()),
        };
        self.history = Some(History::new(totals(&self.machine), drive));
        let settles = self.conditioning.is_some();
        let pace = if settles && !self.settling_takes_time() { Pace::Closed { depth: 1 } } else { self.settings.pace };
        self.player = Some(Player::new(pace, now).past_refusals());
        if settles {
            self.phase = Phase::Settling;
        } else {
            self.begin_warmup();
        }
    }

    fn step_settling(&mut self, source: &mut dyn RequestSource, budget: u64) -> Result<(), RunError> {
        let player = self.player.as_mut().expect("made when preconditioning ended");
        let history = self.history.as_mut().expect("begun when preconditioning ended");
        let conditioning = self.conditioning.as_mut().expect("this phase is there only with it");
        let over =
            conditioning.step(&mut self.machine, player, history, source, budget).map_err(|error| match error {
                PlayError::Source(error) => error.into(),
                PlayError::Device(error) => RunError::Precondition(error),
            })?;
        if over {
            self.keep_preconditioned();
            self.settling_over();
        }
        Ok(())
    }

    /// The drive has settled under the workload.
    fn settling_over(&mut self) {
        let (now, takes_time) = (self.machine.now(), self.settling_takes_time());
        let player = self.player.as_mut().expect("made when preconditioning ended");
        player.count_anew();
        if !takes_time {
            player.change_pace(self.settings.pace, now);
        }
        self.begin_warmup();
    }

    fn begin_warmup(&mut self) {
        self.phase = Phase::Warmup;
        if self.settings.warmup_requests == 0 {
            self.begin_measuring();
        }
    }

    /// Requests in the current phase of the history.
    fn requests_of_stretch(&self) -> u64 {
        let submitted = self.player.as_ref().map_or(0, Player::submitted);
        match self.phase {
            Phase::Warmup => submitted + self.conditioning.as_ref().map_or(0, Conditioning::requests),
            _ => submitted.saturating_sub(self.settings.warmup_requests),
        }
    }

    /// Requests until the history needs the next counts.
    fn until_note(&self) -> u64 {
        self.history().due().saturating_sub(self.requests_of_stretch()).max(1)
    }

    /// Passes the counts to the history if they are due, or if `last`.
    fn note(&mut self, last: bool) {
        let (now, requests) = (totals(&self.machine), self.requests_of_stretch());
        let history = self.history.as_mut().expect("it begins with the workload");
        if last || requests >= history.due() {
            history.note(now, requests);
        }
    }

    fn step_warmup(&mut self, source: &mut dyn RequestSource, budget: u64) -> Result<(), RunError> {
        let mut left = budget;
        while left > 0 && self.phase == Phase::Warmup {
            let go = left.min(self.until_note());
            left -= go;
            let player = self.player.as_mut().expect("made when preconditioning ended");
            let stop = self.settings.warmup_requests.min(player.submitted() + go);
            let last = stop == self.settings.warmup_requests;
            let result = self.machine.play(player, source, stop, last, |_, _| {});
            match self.outcome(result)? {
                Some(Step::Paused) => self.note(false),
                // The source may have ended during the warm-up; then nothing is left to measure.
                Some(Step::Finished | Step::Stopped) | None => self.begin_measuring(),
            }
        }
        Ok(())
    }

    fn begin_measuring(&mut self) {
        self.machine.reset_figures();
        let timed = self.is_timed();
        // Nobody else submits, so the tag of the next request equals the number of requests.
        let beforehand = match (&self.conditioning, self.settling_takes_time()) {
            (Some(conditioning), true) => conditioning.requests(),
            _ => 0,
        };
        let first_tag = beforehand + self.player.as_ref().map_or(0, Player::submitted);
        let (now, requests) = (totals(&self.machine), self.requests_of_stretch());
        self.history.as_mut().expect("it begins with the workload").begin_measuring(now, requests);
        let ssd = self.machine.ssd();
        let RunSettings { window, keep_requests, closeup, snapshots, .. } = self.settings;
        let tenants = self.settings.tenants.len();
        let mut measurement = Measurement::new(ssd, first_tag, timed, window, keep_requests, closeup, tenants);
        if let Some(most) = snapshots {
            measurement.keep_snapshots(most, ssd);
        }
        self.measurement = Some(measurement);
        self.phase = if self.ended.is_some() { Phase::Done } else { Phase::Measured };
    }

    fn step_measured(&mut self, source: &mut dyn RequestSource, budget: u64) -> Result<(), RunError> {
        let mut left = budget;
        while left > 0 && self.phase == Phase::Measured {
            let go = left.min(self.until_note());
            left -= go;
            self.measure(source, go)?;
        }
        Ok(())
    }

    fn measure(&mut self, source: &mut dyn RequestSource, budget: u64) -> Result<(), RunError> {
        let (player, measurement) = (
            self.player.as_mut().expect("made when preconditioning ended"),
            self.measurement.as_mut().expect("made when measuring began"),
        );
        let end = self.settings.requests.map_or(u64::MAX, |asked| asked.saturating_add(self.settings.warmup_requests));
        let submitted = player.submitted();
        let mut budget = budget.min(LOOK - submitted % LOOK);
        if self.settings.verify && self.settings.audit_every > 0 {
            budget = budget.min(self.settings.audit_every - submitted % self.settings.audit_every);
        }
        measurement.try_reserve(budget)?;
        // An open loop may have submitted millions of requests by the time when the one ends that the drive refused; no more follow.
        let has_refused = submitted.is_multiple_of(LOOK) && self.machine.ssd().is_worn_out();
        let stop = if has_refused { submitted } else { end.min(submitted + budget) };
        let result = self.machine.play(player, source, stop, stop == end || has_refused, |completion, ssd: &Ssd| {
            measurement.completed(completion, ssd);
        });
        let submitted = player.submitted();
        let outcome = self.outcome(result)?;
        if self.settings.verify && self.settings.audit_every > 0 && submitted.is_multiple_of(self.settings.audit_every)
        {
            self.audit()?;
        }
        self.note(outcome != Some(Step::Paused));
        if outcome != Some(Step::Paused) {
            let measurement = self.measurement.as_mut().expect("made when measuring began");
            measurement.finish(self.machine.ssd());
            self.phase = Phase::Done;
            let warmup = self.settings.warmup_requests;
            if warmup > 0 && measurement.tally.requests == 0 && self.ended.is_none() {
                return Err(RunError::NothingMeasured { warmup, played: submitted });
            }
        }
        Ok(())
    }

    fn audit(&self) -> Result<(), RunError> {
        match self.ssd().audit().into_iter().next() {
            None => Ok(()),
            Some(violation) => Err(RunError::Device(IoError::Violation { what: violation.0 })),
        }
    }

    /// Distinguishes a worn-out drive, which ends the run, from failures; none if the drive is worn out.
    fn outcome(&mut self, result: Result<Step, PlayError>) -> Result<Option<Step>, RunError> {
        match result {
            Ok(step) => Ok(Some(step)),
            Err(PlayError::Device(IoError::WornOut { reason })) => {
                self.ended = Some(reason);
                Ok(None)
            }
            Err(PlayError::Device(error)) => Err(RunError::Device(error)),
            Err(PlayError::Source(error)) => Err(error.into()),
        }
    }

    /// Hands over the rows of the requests that completed since the last time, in order of completion, so that a run of any
    /// length can be written down in bounded memory. None before measuring began, or where no rows are kept. From the first
    /// time on, a report has no rows.
    pub fn take_requests(&mut self) -> Option<RequestColumns> {
        self.measurement.as_mut()?.take_requests()
    }

    /// Whether rows were handed over by [`Simulation::take_requests`], so that a saved run would lack them.
    #[must_use]
    pub fn requests_taken(&self) -> bool {
        self.measurement.as_ref().is_some_and(Measurement::requests_taken)
    }

    /// Memory that the rows in a report need, in bytes.
    #[must_use]
    pub fn report_bytes(&self) -> usize {
        self.measurement.as_ref().and_then(Measurement::requests_kept).map_or(0, RequestColumns::bytes)
    }

    /// The report of what was finished. None during preconditioning and warm-up.
    #[must_use]
    pub fn report(&mut self) -> Option<RunReport> {
        let ssd = self.machine.ssd();
        self.measurement.as_mut()?.finish(ssd);
        let ended = match (self.phase, &self.ended) {
            (_, Some(_)) => Ended::WornOut,
            (Phase::Done, None) => Ended::Complete,
            _ => Ended::Interrupted,
        };
        let requests = self.player.as_ref().map_or(0, Player::submitted);
        Some(RunReport::new(self, ended, self.ended.clone(), Cost { cpu_s: self.cpu_s, requests }))
    }

    /// The whole state as compressed bytes. The source is not part of it: on resume, the source is rebuilt and
    /// fast-forwarded. Nor are a checksum and the version of the state's layout: code that writes the bytes to a file
    /// adds both.
    #[must_use]
    #[inline] // cold and large: compiled where it is called, once and small
    pub fn save(&self) -> Vec<u8> {
        let state = postcard::to_stdvec(self).expect("the state is plain data");
        zstd::bulk::compress(&state, 1).expect("memory holds what is compressed")
    }

    /// Restores a saved run. `source` must be built from the same settings; it is fast-forwarded to the saved position.
    ///
    /// # Errors
    /// [`RunError::Saved`] if the bytes are not a saved run, [`RunError::Source`] if it is a different source.
    #[inline] // as `save`
    pub fn load(bytes: &[u8], path: &str, source: &mut dyn RequestSource) -> Result<Self, RunError> {
        let mut simulation = Self::load_without_source(bytes, path)?;
        simulation.rewind(source)?;
        Ok(simulation)
    }

    /// Restores a saved run whose source is fast-forwarded later, by [`Simulation::rewind`].
    ///
    /// # Errors
    /// As [`Simulation::load`].
    #[inline] // as `save`
    pub fn load_without_source(bytes: &[u8], path: &str) -> Result<Self, RunError> {
        let fail = |what: String| RunError::Saved { path: path.to_owned(), what };
        let state =
            zstd::stream::decode_all(bytes).map_err(|error| fail(format!("the saved run is damaged: {error}")))?;
        postcard::from_bytes(&state).map_err(|error| fail(format!("the saved run is damaged: {error}")))
    }

    /// Fast-forwards a rebuilt source to the current position of the run.
    ///
    /// # Errors
    /// [`RunError::Source`] if it is a different source.
    pub fn rewind(&mut self, source: &mut dyn RequestSource) -> Result<(), RunError> {
        if let Some(conditioning) = &self.conditioning {
            conditioning.rewind(source)?;
        }
        Ok(self.player.as_mut().map_or(Ok(()), |player| player.rewind(source))?)
    }
}

/// CPU time of the process.
pub(crate) fn cpu_seconds() -> f64 {
    seconds(ClockId::ProcessCPUTime)
}

#[allow(clippy::cast_precision_loss)]
fn seconds(clock: ClockId) -> f64 {
    let time = rustix::time::clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
