//! A run whose requests come from outside, one by one and with their data: a drive that is served to real software.
//!
//! It measures and reports as every other run. Nothing plays it: whoever has it submits requests and waits for their
//! completions, and the run looks at each completion as it passes.

use super::live_image::{LiveImage, check_for_image};
use super::{Phase, RunError, RunSettings, Simulation, cpu_seconds, totals};
use crate::machine::Machine;
use crate::measure::{Snapshots, Window};
use crate::player::Pace;
use crate::precondition::Precondition;
use crate::report::{Cost, Ended, LiveFigures, RunReport};
use crate::warnings;
use flashwright_block::{
    BlockDevice, Bytes, Completion, DeviceInfo, HoldsData, IoError, MOVES_MAX, Moved, Nanos, Placed, Placement,
    Request, RequestClass, RequestKind, SECTOR_BYTES, Seed, SourceError, Tag, Zone, Zoned, Zoning,
};
use flashwright_ftl::Ftl;
use flashwright_nand::Lpn;
use flashwright_ssd::{ConfigError, DriveConfig, Keeps, Mounted, Policies, SettingError, Ssd, SsdError};

/// A drive that keeps every byte, measured while requests come from outside.
///
/// ```
/// use flashwright_block::{BlockDevice, Completion, HoldsData, Nanos, Request, RequestKind, Seed};
/// use flashwright_sim::{LiveRun, Precondition};
/// use flashwright_ssd::DriveConfig;
///
/// let mut drive = LiveRun::new(&DriveConfig::default(), Seed(1), Precondition::Empty, || false)?;
/// let write = Request { sectors: 8, kind: RequestKind::Write, ..Request::default() };
/// drive.submit_with(write, &[7; 4096])?;
/// assert!(drive.wait(Nanos(u64::MAX), &mut Completion::default())?);
/// assert_eq!(drive.stretch(0, 64), (true, 8));
/// assert_eq!(drive.report().report.host.pages_written, Some(1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct LiveRun {
    pub(super) run: Simulation,
    completed: u64,
    started_cpu_s: f64,
    pub(super) image: Option<LiveImage>,
    /// See [`LiveRun::kept`].
    pub(super) kept: Vec<u8>,
    /// What people should know, and have not been told.
    pub(super) notes: Vec<String>,
    /// After how many pages trimmed it is looked whether trims have emptied the drive.
    look_at_trims: u64,
    /// What it offers to place data by.
    placement: Option<Placement>,
    /// The handles whose moved data are told, a bit for each, and what has moved.
    watched: u64,
    moved: Vec<Moved>,
}

/// Pages of preconditioning between two looks at whether to go on.
const STEP: u64 = 1 << 16;

impl LiveRun {
    /// Builds and preconditions a drive. `cancelled` is asked every few milliseconds whether to give up.
    ///
    /// # Errors
    /// [`RunError::Ssd`] with every validation error of the configuration, and if it puts a scheduler before the drive,
    /// which only [`crate::Proxied`] does for devices that are served; [`RunError::Source`] for a precondition that plays a workload;
    /// [`RunError::Precondition`].
    pub fn new(
        config: &DriveConfig,
        seed: Seed,
        precondition: Precondition,
        cancelled: impl FnMut() -> bool,
    ) -> Result<Self, RunError> {
        Self::with_policies(config, seed, precondition, &Policies::default(), cancelled)
    }

    /// As [`LiveRun::new`] with policies from outside.
    ///
    /// # Errors
    /// As [`LiveRun::new`].
    pub fn with_policies(
        config: &DriveConfig,
        seed: Seed,
        precondition: Precondition,
        policies: &Policies,
        cancelled: impl FnMut() -> bool,
    ) -> Result<Self, RunError> {
        Self::check(config, precondition)?;
        Self::on(Ssd::with_policies(config, seed, Keeps::Bytes, policies)?, seed, precondition, cancelled)
    }

    /// Refuses what can't be served.
    pub(super) fn check(config: &DriveConfig, precondition: Precondition) -> Result<(), RunError> {
        if let Precondition::Workload { .. } | Precondition::Auto = precondition {
            let what = format!(
                "precondition: found {precondition}, expected empty, sequential, random or steady: a served drive has no \
                 workload to play beforehand"
            );
            return Err(RunError::Source(SourceError(what)));
        }
        let refuse = |key: &str, what: String| {
            let problems = vec![SettingError { key: key.to_owned(), what }];
            let error = ConfigError { source_name: config.name.clone(), problems };
            Err(RunError::Ssd(SsdError::Config(error)))
        };
        if !config.host.stack.scheduler.0.is_empty() {
            let names: Vec<&str> = config.host.stack.scheduler.0.iter().map(|name| name.listed().name).collect();
            let what = format!(
                "found {:?}, expected \"none\": only a device that exists is served behind schedulers (--before)",
                names.join("+")
            );
            return refuse("host.scheduler", what);
        }
        Ok(())
    }

    /// Preconditions and measures a drive.
    pub(super) fn on(
        ssd: Ssd,
        seed: Seed,
        precondition: Precondition,
        mut cancelled: impl FnMut() -> bool,
    ) -> Result<Self, RunError> {
        let settings = RunSettings {
            workload: "requests of clients".to_owned(),
            seed,
            precondition,
            pace: Pace::Interactive,
            window: Window::Requests(1000),
            ..RunSettings::default()
        };
        let mut run = Simulation::on(ssd, settings)?;
        while run.phase == Phase::Precondition && !cancelled() {
            run.step_precondition(STEP)?;
        }
        if let Some(measurement) = &mut run.measurement {
            measurement.count_queues(run.machine.ssd());
        }
        let placement = run.machine.ssd_mut().placement();
        Ok(Self {
            run,
            completed: 0,
            started_cpu_s: cpu_seconds(),
            image: None,
            kept: Vec::new(),
            notes: Vec::new(),
            look_at_trims: 1,
            placement,
            watched: 0,
            moved: Vec::new(),
        })
    }

    /// The drive.
    #[must_use]
    pub fn ssd(&self) -> &Ssd {
        self.run.ssd()
    }

    /// The drive with its controller, without what was measured.
    pub(crate) fn into_machine(self) -> Machine {
        self.run.machine
    }

    /// Cuts the power. See [`Ssd::cut`].
    ///
    /// # Errors
    /// One line if the drive could not be mounted again.
    pub fn cut(&mut self) -> Result<(), String> {
        self.run.machine.cut()?;
        self.sync_image()
    }

    /// Mounts the drive; if its power is on, it loses it first. See [`Ssd::mount`].
    ///
    /// # Errors
    /// One line if it can't be mounted.
    pub fn mount(&mut self) -> Result<Mounted, String> {
        self.check_image()?;
        let mounted = self.run.machine.mount()?;
        self.watch_moves(self.watched);
        self.sync_image().map(|()| mounted)
    }

    /// Restarts the drive with other settings of `gc` and `ram`, losing nothing. See [`Ssd::restart_with`].
    ///
    /// # Errors
    /// One line if it can't; the drive then goes on as before.
    pub fn restart_with(&mut self, settings: &[String]) -> Result<Mounted, String> {
        if self.none_completes_before().is_some() {
            return Err("found requests in flight, expected none: a restart would fail them; try again".to_owned());
        }
        self.check_image()?;
        if self.image.is_some() {
            let after = self.ssd().config().with_settings(settings).map_err(|error| error.to_string())?;
            check_for_image(&after).map_err(|error| error.to_string())?;
        }
        let restarted = self.run.machine.restart_with(settings)?;
        self.watch_moves(self.watched);
        self.sync_image().map(|()| restarted)
    }

    /// A time before which no request completes, whatever is submitted meanwhile; none if nothing is in flight.
    #[must_use]
    pub fn none_completes_before(&self) -> Option<Nanos> {
        self.run.machine.none_completes_before()
    }

    /// Whether the drive holds data from a sector on, and over how many sectors that is so, `sectors` at most. Where it holds
    /// none, reads return zeros.
    #[must_use]
    pub fn stretch(&self, first_sector: u64, sectors: u64) -> (bool, u64) {
        let (ssd, per_page) = (self.ssd(), self.ssd().sectors_per_page());
        let holds = |page: u64| {
            let lpn = Lpn(u32::try_from(page).expect("the drive has such a page"));
            ssd.scheme().lookup(lpn, ssd.flash()).is_some()
                || ssd.ram().is_some_and(|ram| ram.is_dirty(lpn).is_some())
                || self.run.machine.buffers(page * per_page, per_page)
        };
        let (first, end) = (first_sector / per_page, (first_sector + sectors).div_ceil(per_page));
        let found = holds(first);
        let last = (first + 1..end).find(|page| holds(*page) != found).unwrap_or(end);
        (found, (last * per_page).min(first_sector + sectors) - first_sector)
    }

    /// Whether its interface places data by handle.
    #[must_use]
    pub fn places_data(&self) -> bool {
        self.placement.is_some()
    }

    /// Handles of its placement policy; 0 if that has none.
    #[must_use]
    pub fn handles(&self) -> usize {
        self.ssd().figures().handles.len()
    }

    /// Bytes of a page.
    #[must_use]
    pub fn page_bytes(&self) -> u64 {
        self.ssd().sectors_per_page() * SECTOR_BYTES
    }

    /// How long a write may be to survive a loss of power as a whole or not at all, if it crosses no multiple of that; none if any
    /// write does.
    ///
    /// A page of the flash is programmed or it is not. A controller that buffers in smaller entries hands them on one by one. Where
    /// capacitors keep what the drive has taken, and no controller hands on a write in parts, nothing is torn.
    #[must_use]
    pub fn untorn_bytes(&self) -> Option<u64> {
        let config = self.ssd().config();
        let (controller, page) = (&config.controller, self.page_bytes());
        if self.ssd().is_power_protected() && controller.is_off() {
            return None;
        }
        let entry = controller.write_buffer.entry.0;
        let is_split = controller.write_buffer.size.0 > 0 && entry > 0;
        Some(if is_split { greatest_common_divisor(page, entry) } else { page })
    }

    /// The figures of this moment; cheap enough to be asked for every second.
    #[must_use]
    pub fn figures(&self) -> LiveFigures {
        LiveFigures::new(&self.run)
    }

    /// The current state of every block.
    #[must_use]
    pub fn blocks(&self) -> Snapshots {
        Snapshots::now(self.ssd(), self.completed)
    }

    /// The result so far, as of every other run. It ends a window of the time series.
    #[must_use]
    pub fn report(&mut self) -> RunReport {
        self.run.cpu_s = cpu_seconds() - self.started_cpu_s;
        let ssd = self.run.machine.ssd();
        if let Some(measurement) = &mut self.run.measurement {
            measurement.finish(ssd);
        }
        self.note();
        let mut found =
            RunReport::new(&self.run, Ended::Complete, None, Cost { cpu_s: self.run.cpu_s, requests: self.completed });
        let report = &mut found.report;
        report.warnings = warnings::of_served(&self.run);
        report.settled.iter_mut().for_each(|settled| settled.mend = None);
        found
    }

    fn note(&mut self) {
        let now = totals(&self.run.machine);
        if let Some(history) = &mut self.run.history {
            history.note(now, self.completed);
        }
    }

    fn completed(&mut self, completion: &Completion) {
        self.run.machine.completed(completion);
        let ssd = self.run.machine.ssd();
        if let Some(measurement) = &mut self.run.measurement {
            measurement.completed(completion, ssd);
        }
        self.completed += 1;
        if self.completed >= self.run.history().due() {
            self.note();
        }
        if completion.request.kind == RequestKind::Trim {
            self.note_trims();
        }
        if self.watched != 0 {
            self.note_moves();
        }
    }

    /// Keeps the latest moves of watched handles.
    #[cold]
    fn note_moves(&mut self) {
        self.run.machine.ssd_mut().take_moved(&mut self.moved);
        self.moved.drain(..self.moved.len().saturating_sub(MOVES_MAX));
    }

    /// Says once that trims have emptied much of a drive that was filled.
    #[cold]
    fn note_trims(&mut self) {
        let trimmed = self.run.measurement().pages_of(RequestClass::Discard);
        if trimmed < self.look_at_trims {
            return;
        }
        // Each look goes over all blocks, so the next one waits for a twentieth of the drive.
        self.look_at_trims = trimmed + u64::from(self.ssd().logical_pages()) / 20;
        let trims = warnings::of_served(&self.run).into_iter().find(|warning| warning.code == "trimmed");
        if let Some(warning) = trims {
            self.notes.push(warning.to_string());
            self.look_at_trims = u64::MAX;
        }
    }
}

fn greatest_common_divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { greatest_common_divisor(other, one % other) }
}

/// What a mount did, with the names that programs know.
#[must_use]
pub fn mounted_json(mounted: &Mounted) -> serde_json::Value {
    serde_json::json!({
        "duration_ns": mounted.duration.0,
        "spare_areas_read": mounted.spare_areas_read,
        "pages_read": mounted.pages_read,
        "pages_programmed": mounted.pages_programmed,
        "blocks_erased": mounted.blocks_erased,
        "pages_mapped": mounted.pages_mapped,
        "pages_torn": mounted.pages_torn,
    })
}

impl BlockDevice for LiveRun {
    fn info(&self) -> DeviceInfo {
        self.ssd().info()
    }
    fn now(&self) -> Nanos {
        self.run.machine.now()
    }
    fn submit(&mut self, request: Request) -> Result<Tag, IoError> {
        self.check_image().map_err(IoError::Device)?;
        self.run.machine.device().submit(request)
    }
    fn wait(&mut self, until: Nanos, completion: &mut Completion) -> Result<bool, IoError> {
        let ended = self.run.machine.device().wait(until, completion)?;
        if ended {
            if self.image.is_some() {
                self.keep_promise(completion);
            }
            self.completed(completion);
        }
        Ok(ended)
    }
    fn holds_data(&mut self) -> Option<&mut dyn HoldsData> {
        Some(self)
    }
    fn placed(&mut self) -> Option<&mut dyn Placed> {
        self.placement.is_some().then_some(self)
    }
    fn zoned(&mut self) -> Option<&mut dyn Zoned> {
        if self.ssd().has_zones() { Some(self) } else { None }
    }
}

impl Zoned for LiveRun {
    fn zoning(&self) -> Zoning {
        self.ssd().zoning()
    }
    fn zone(&self, number: u32) -> Result<Zone, IoError> {
        self.ssd().zone(number)
    }
    fn retire(&mut self, number: u32) -> Result<(), IoError> {
        self.check_image().map_err(IoError::Device)?;
        self.run.machine.ssd_mut().retire(number)
    }
    fn take_failed(&mut self) -> Vec<u32> {
        self.run.machine.ssd_mut().take_failed()
    }
}

impl Placed for LiveRun {
    fn placement(&mut self) -> Placement {
        self.placement.expect("a drive without handles is not placed")
    }
    fn room(&mut self, stream: u16) -> Result<Bytes, IoError> {
        self.run.machine.ssd_mut().unit_room(stream)
    }
    fn renew(&mut self, stream: u16) -> Result<Option<Bytes>, IoError> {
        self.check_image().map_err(IoError::Device)?;
        self.run.machine.ssd_mut().renew_unit(stream)
    }
    fn watch_moves(&mut self, handles: u64) {
        self.watched = handles;
        self.run.machine.ssd_mut().watch_moves(handles);
    }
    fn take_moved(&mut self) -> Vec<Moved> {
        self.note_moves();
        std::mem::take(&mut self.moved)
    }
}

impl HoldsData for LiveRun {
    fn submit_with(&mut self, request: Request, data: &[u8]) -> Result<Tag, IoError> {
        self.check_image().map_err(IoError::Device)?;
        self.run.machine.device().holds_data().ok_or(IoError::KeepsNoData)?.submit_with(request, data)
    }
    fn take_data(&mut self, tag: Tag, data: &mut [u8]) -> bool {
        self.run.machine.device().holds_data().is_some_and(|device| device.take_data(tag, data))
    }
}
