//! Cleaning ahead of need, in time: how a drive follows a `gc.schedule` other than `foreground`.
//!
//! The translation layer performs steps when the schedule requests them ([`CleansInSteps::follow_schedule`]); this module gives them
//! their time. Under `parallel`, steps are issued as work that no request waits for, behind what their dies have queued. When
//! they have ended, the schedule is consulted again. A die is idle if nothing is queued or in progress there, which is checked
//! whenever a request or a step ends. Under `serial`, steps extend the time for which the drive is busy after a write, and gaps
//! between requests are idle time.
//!
//! **Folding.** With `slc.fold-idle` a drive that has been without a request for `slc.fold-after` folds its SLC cache, one step
//! at a time in each plane (under `serial`, one in the drive), under every schedule. Under `parallel`, time advances up to that
//! moment first, then the first steps are issued there; the end of a step brings the next until a request comes.

use crate::clock::Clock;
use crate::ssd::Ssd;
use flashwright_config::{Config, DriveConfig, SettingError, TimingModel};
use flashwright_ftl::policies::schedule::{MakeSchedule, ScheduleRules};
use flashwright_ftl::{CleansInSteps, Flash, Occasion, Progress, Scheme, SchemeName, SlcCacheKind};
use flashwright_nand::PlaneId;
use serde::{Deserialize, Serialize};

const NONE: u32 = u32::MAX;

/// The cleaning steps in progress.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct BackgroundCleaning {
    /// For each slot of the engine, the plane whose steps it holds, or [`NONE`].
    plane_of: Vec<u32>,
    /// For each plane, the number of issued slots in progress.
    under_way: Vec<u32>,
    one_at_a_time: bool,
    uses_idle_time: bool,
    /// Time without a request after which the drive folds its SLC cache, in nanoseconds; none if it doesn't.
    fold_after: Option<u64>,
    /// Pages folded in a step: as many as the dies of a block program at once.
    fold_pages: u32,
    /// Under `parallel`: when the last request ended, and whether folding has begun since.
    idle_since: u64,
    folds: bool,
    /// Planes that the current request wrote to, with the number of its pages.
    #[serde(skip)]
    written: Vec<(PlaneId, u32)>,
}

impl BackgroundCleaning {
    /// None if the schedule cleans only for writes that lack room, and nothing is folded in idle time.
    pub fn new(config: &DriveConfig, schedule: ScheduleRules, planes: u32) -> Option<Box<Self>> {
        let layout = config.block_layout();
        let slc = &config.slc;
        let folds = slc.cache != SlcCacheKind::None && slc.fold_idle && config.timing.model != TimingModel::None;
        (schedule.asked || folds).then(|| {
            Box::new(Self {
                plane_of: Vec::new(),
                under_way: vec![0; planes as usize],
                one_at_a_time: schedule.one_at_a_time,
                uses_idle_time: schedule.uses_idle_time,
                fold_after: folds.then_some(slc.fold_after.0),
                fold_pages: layout.unit() * layout.units_in_row(),
                idle_since: 0,
                folds: false,
                written: Vec::new(),
            })
        })
    }

    /// Validation errors of the schedule in this configuration.
    pub fn problems(config: &Config, own: Option<&dyn MakeSchedule>) -> Vec<SettingError> {
        let (name, rules) = match own {
            Some(maker) => (maker.name(), maker.rules()),
            None => (config.gc.schedule.listed().name, config.gc.schedule.rules()),
        };
        let found = |what: String| SettingError { key: "gc.schedule".to_owned(), what };
        let mut problems = Vec::new();
        if rules.asked && !config.ftl.scheme.cleans_in_steps() {
            problems.push(found(format!(
                "found {:?}, but ftl.scheme = {:?} merges whole blocks and takes only \"foreground\"; cleaning in steps works \
                 with {}",
                name,
                config.ftl.scheme.listed().name,
                SchemeName::those(SchemeName::cleans_in_steps).join(", ")
            )));
        }
        if rules.needs_time && config.timing.model == TimingModel::None {
            problems.push(found(format!(
                "found {:?}, which depends on time, but timing.model = \"none\" has no time; choose serial or parallel, or \
                 gc.schedule = \"rate-limited\"",
                name
            )));
        }
        problems
    }
}

impl Ssd {
    /// Notes where a request wrote. Returns the minimum duration that the schedule demands of it, in nanoseconds.
    #[cold]
    pub(crate) fn note_written(&mut self) -> u64 {
        let Some(ahead) = &mut self.ahead else { return 0 };
        let mut delay = 0;
        self.translation.scheme.written_planes(&mut |plane, pages, least| {
            ahead.written.push((plane, pages));
            delay = delay.max(least.0);
        });
        delay
    }

    /// Performs the steps that the schedule requests after the writes that were noted, at time `at`.
    #[cold]
    pub(crate) fn clean_after_writes(&mut self, at: u64) {
        let Some(ahead) = &mut self.ahead else { return };
        ahead.folds = false; // a request came
        let mut written = std::mem::take(&mut ahead.written);
        for (plane, pages) in written.drain(..) {
            let waits =
                self.ahead.as_ref().is_some_and(|ahead| ahead.one_at_a_time && ahead.under_way[plane.index()] > 0);
            if !waits {
                self.make_steps(plane, Occasion::Written(pages), at);
            }
        }
        if let Some(ahead) = &mut self.ahead {
            ahead.written = written; // for its memory
        }
    }

    /// After a write without time: performs the steps that the schedule requests for the pages written.
    #[inline(always)]
    pub(crate) fn clean_untimed(&mut self) {
        if self.ahead.is_some() {
            self.clean_after_untimed_write();
        }
    }

    #[inline(never)]
    fn clean_after_untimed_write(&mut self) {
        self.note_written();
        let Some(ahead) = &mut self.ahead else { return };
        for (plane, pages) in ahead.written.drain(..) {
            self.translation.scheme.follow_schedule(plane, Occasion::Written(pages), &mut self.translation.flash);
        }
    }

    /// Performs the steps that the schedule requests in a plane. Returns whether there were any.
    fn make_steps(&mut self, plane: PlaneId, occasion: Occasion, at: u64) -> bool {
        self.work_ahead(plane, at, |scheme, flash| scheme.follow_schedule(plane, occasion, flash))
    }

    /// Performs a step of folding in a plane. Returns whether there was one.
    fn fold_step(&mut self, plane: PlaneId, at: u64) -> bool {
        let pages = self.ahead.as_ref().map_or(1, |ahead| ahead.fold_pages);
        self.work_ahead(plane, at, |scheme, flash| scheme.fold(plane, pages, flash))
    }

    /// Performs steps in a plane at `at`, or once its die or, under `serial`, the drive is free.
    fn work_ahead(&mut self, plane: PlaneId, at: u64, steps: impl FnOnce(&mut Scheme, &mut Flash) -> Progress) -> bool {
        let before = self.translation.flash.counters().totals();
        self.translation.flash.clear_log();
        if steps(&mut self.translation.scheme, &mut self.translation.flash) == Progress::Nothing {
            return false;
        }
        match &mut self.clock {
            Clock::None => {}
            Clock::Serial { engine, .. } => {
                let after = self.translation.flash.counters().totals();
                engine.work(at, [&before, &after], self.translation.flash.log(), self.translation.flash.geometry());
            }
            Clock::Parallel(_) => {
                let slot = self.issue_work(at);
                let ahead = self.ahead.as_mut().expect("a schedule is asked");
                let slot = slot as usize;
                if ahead.plane_of.len() <= slot {
                    ahead.plane_of.resize(slot + 1, NONE);
                }
                ahead.plane_of[slot] = plane.0;
                ahead.under_way[plane.index()] += 1;
            }
        }
        true
    }

    /// Work that no request waits for has ended. If it was a plane's cleaning steps, the schedule is consulted again.
    #[cold]
    pub(crate) fn steps_ended(&mut self, slot: u32, at: u64) {
        let Some(ahead) = &mut self.ahead else { return };
        let plane = ahead.plane_of.get_mut(slot as usize).map_or(NONE, |plane| std::mem::replace(plane, NONE));
        if plane == NONE {
            return;
        }
        ahead.under_way[plane as usize] -= 1;
        let again = !ahead.one_at_a_time || ahead.under_way[plane as usize] == 0;
        if again {
            self.make_steps(PlaneId(plane), Occasion::Ended, at);
        }
        self.use_idle_dies(at);
        self.fold_on(PlaneId(plane), at);
    }

    /// A request has ended; the driver has handed over the next, if one waits.
    #[cold]
    pub(crate) fn request_ended(&mut self, at: u64) {
        if self.is_idle()
            && let Some(ahead) = &mut self.ahead
        {
            ahead.idle_since = at;
        }
        self.use_idle_dies(at);
    }

    /// Whether there is no request in the drive.
    fn is_idle(&self) -> bool {
        matches!(&self.clock, Clock::Parallel(clock) if clock.is_quiet())
    }

    /// How far time may advance, `until` at most, before the drive begins to fold.
    #[cold]
    pub(crate) fn until_folding(&self, until: u64) -> u64 {
        match self.ahead.as_deref() {
            Some(BackgroundCleaning { fold_after: Some(after), idle_since, folds: false, .. }) if self.is_idle() => {
                until.min(idle_since.saturating_add(*after))
            }
            _ => until,
        }
    }

    /// Begins to fold in every plane that has no steps in progress.
    #[cold]
    pub(crate) fn begin_folding(&mut self, at: u64) {
        if let Some(ahead) = &mut self.ahead {
            ahead.folds = true;
        }
        for plane in (0..self.translation.flash.geometry().planes()).map(PlaneId) {
            self.fold_on(plane, at);
        }
    }

    /// Goes on to fold in a plane, if the drive folds and the plane has no steps in progress.
    fn fold_on(&mut self, plane: PlaneId, at: u64) {
        if self.ahead.as_ref().is_some_and(|ahead| ahead.folds && ahead.under_way[plane.index()] == 0) {
            self.fold_step(plane, at);
        }
    }

    /// Lets idle dies clean if the schedule uses idle time.
    #[cold]
    pub(crate) fn use_idle_dies(&mut self, at: u64) {
        if self.ahead.as_ref().is_none_or(|ahead| !ahead.uses_idle_time) {
            return;
        }
        let (dies, planes) =
            (self.translation.flash.geometry().dies(), self.translation.flash.geometry().planes_per_die());
        for die in 0..dies {
            let Clock::Parallel(clock) = &self.clock else { return };
            if clock.engine.is_idle(die as usize, at) {
                // The first plane that has steps to perform; the others follow once it has reached its mark.
                let _ =
                    (die * planes..(die + 1) * planes).any(|plane| self.make_steps(PlaneId(plane), Occasion::Idle, at));
            }
        }
    }

    /// Under `serial`, lets the drive clean and fold in the gap before a request that arrives at `start`.
    #[cold]
    pub(crate) fn clean_in_gap(&mut self, start: u64) {
        let (Some(ahead), Clock::Serial { engine, .. }) = (&self.ahead, &self.clock) else { return };
        let (cleans, folds) =
            (ahead.uses_idle_time, ahead.fold_after.map(|after| engine.free_at().saturating_add(after)));
        if cleans {
            self.fill_gap(0, start, |ssd, plane, at| ssd.make_steps(plane, Occasion::Idle, at));
        }
        if let Some(from) = folds {
            self.fill_gap(from, start, Self::fold_step);
        }
    }

    /// Lets the planes take turns with steps that begin from `from` on and before `start`, until none has any.
    fn fill_gap(&mut self, from: u64, start: u64, steps: impl Fn(&mut Self, PlaneId, u64) -> bool) {
        let planes = self.translation.flash.geometry().planes();
        let mut worked = true;
        while worked {
            worked = false;
            for plane in (0..planes).map(PlaneId) {
                let Clock::Serial { engine, .. } = &self.clock else { return };
                let at = engine.free_at().max(from);
                if at >= start {
                    return;
                }
                worked |= steps(self, plane, at);
            }
        }
    }
}
