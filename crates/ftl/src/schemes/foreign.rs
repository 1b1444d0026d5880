//! The adapter for a whole translation layer from outside ([`crate::policies::foreign`]).
//!
//! The layer is called as a native scheme is, with a [`GuardedFlash`] in the place of the flash: it takes the drive's flash for the
//! call, refuses illegal steps, and follows the newest copy of each page. So reads, validity and the counts of cleaning are right
//! whatever the layer does, and the audit compares its own map with them. After the first fault it is not called again.

use super::own::{OwnLayer, OwnSettings};
use super::{BuildScheme, SchemeContext, SchemeName};
use crate::durable::{MountError, Scan};
use crate::guarded::{Call, GuardedFlash};
use crate::policies::foreign::FaultCell;
use crate::policies::schedule::{Moment, Occasion, Schedule};
use crate::registry::NoSettings;
use crate::{
    CleansInSteps, Flash, Ftl, LpnRun, MappingCache, OutOfSpace, Progress, SchemeFigures, ServesRam, Violation,
};
use flashwright_block::{Nanos, Rng};
use flashwright_nand::{Lpn, PlaneId, Ppn};
use std::sync::Arc;

/// Builds the translation layer of a drive.
pub trait MakeFtl {
    /// Its name in messages.
    fn name(&self) -> &str;
    /// Blocks of a plane that it fills side by side, at least 1.
    fn open_blocks(&self) -> u32;
    /// Whether it cleans where no write waits.
    fn cleans(&self) -> bool;
    /// The layer, over erased flash; `settings` has those of registered layers.
    ///
    /// # Errors
    /// The reason why there can be none on this drive.
    fn make(
        &self,
        drive: FtlDrive,
        settings: &OwnSettings,
        flash: &mut Box<GuardedFlash>,
    ) -> Result<Box<dyn DecideFtl>, String>;
}

/// The drive that a layer is made for.
#[derive(Clone, Debug)]
pub struct FtlDrive {
    /// Pages that the drive offers to the host.
    pub logical_pages: u32,
    /// The layout of the flash.
    pub geometry: flashwright_nand::Geometry,
    /// The planes in the order in which they take turns (`placement.order`).
    pub plane_order: Vec<u32>,
    /// `gc.free-blocks-min`, at least 1.
    pub free_blocks_min: u32,
    /// Bytes of an entry of a map (`ftl.entry-bytes`).
    pub entry_bytes: u32,
    /// Its own random stream.
    pub rng: Rng,
}

/// A translation layer from outside. It may move the flash out of its box, and must put it back.
pub trait DecideFtl: std::fmt::Debug + Send + Sync {
    /// See [`Ftl::read`]: each page is answered once. By default from [`DecideFtl::lookup`].
    ///
    /// # Errors
    /// The reason why it can't; likewise below.
    fn read(&mut self, run: LpnRun, flash: &mut Box<GuardedFlash>) -> Result<(), String> {
        for Lpn(lpn) in run.iter() {
            match self.lookup(lpn)? {
                Some(page) => flash.read(page, i64::from(lpn), 0).map(drop)?,
                None => flash.read_unmapped(i64::from(lpn))?,
            }
        }
        Ok(())
    }
    /// See [`Ftl::write`]: each page is programmed once. False if the rest of the run can't be placed.
    ///
    /// # Errors
    /// See [`DecideFtl::read`].
    fn write(&mut self, run: LpnRun, flash: &mut Box<GuardedFlash>) -> Result<bool, String>;
    /// See [`Ftl::trim`]. The copies that are left when it returns are old.
    ///
    /// # Errors
    /// See [`DecideFtl::read`].
    fn trim(&mut self, run: LpnRun, flash: &mut Box<GuardedFlash>) -> Result<(), String>;
    /// Makes up to `budget` steps of cleaning in a plane.
    ///
    /// # Errors
    /// See [`DecideFtl::read`].
    fn clean(&mut self, plane: u32, budget: u32, flash: &mut Box<GuardedFlash>) -> Result<(), String> {
        let _ = (plane, budget, flash);
        Err("it does not clean ahead of need".to_owned())
    }
    /// The page that its map names for a logical page.
    ///
    /// # Errors
    /// See [`DecideFtl::read`].
    fn lookup(&self, lpn: u32) -> Result<Option<i64>, String>;
    /// Figures of its own, by name: `ram_bytes`, `cache_lookups`, `cache_hits`, `cache_evictions` and `cache_dirty_evictions` have
    /// places in results, all others are listed.
    ///
    /// # Errors
    /// See [`DecideFtl::read`].
    fn figures(&self) -> Result<Vec<(String, f64)>, String> {
        Ok(Vec::new())
    }
    /// Its figures begin anew.
    ///
    /// # Errors
    /// See [`DecideFtl::read`].
    fn reset_figures(&mut self) -> Result<(), String> {
        Ok(())
    }
    /// A copy that continues as this one would.
    fn again(&self) -> Box<dyn DecideFtl>;
}

impl Clone for Box<dyn DecideFtl> {
    fn clone(&self) -> Self {
        self.again()
    }
}

/// In the place of a layer that can't be: the fault is known, so it is never called.
#[derive(Debug)]
struct Absent;

impl DecideFtl for Absent {
    fn write(&mut self, _: LpnRun, _: &mut Box<GuardedFlash>) -> Result<bool, String> {
        Ok(false)
    }
    fn trim(&mut self, _: LpnRun, _: &mut Box<GuardedFlash>) -> Result<(), String> {
        Ok(())
    }
    fn lookup(&self, _: u32) -> Result<Option<i64>, String> {
        Ok(None)
    }
    fn again(&self) -> Box<dyn DecideFtl> {
        Box::new(Self)
    }
}

/// The layer that was passed in, or else the registered one that the settings name.
fn maker_of<'a>(context: &SchemeContext<'a>) -> Option<&'a dyn MakeFtl> {
    let passed_in = context.foreign.and_then(|foreign| foreign.ftl.as_deref());
    passed_in.or_else(|| {
        let SchemeName::Foreign(Some(name)) = context.ftl.scheme else { return None };
        OwnLayer::named(name).map(|layer| layer as &dyn MakeFtl)
    })
}

/// A translation layer from outside at work.
#[derive(Clone, Debug)]
pub struct ForeignFtl {
    layer: Box<dyn DecideFtl>,
    flash: Box<GuardedFlash>,
    name: Arc<str>,
    fault: FaultCell,
    /// By plane, if the schedule is asked.
    schedules: Vec<Schedule>,
}

impl ForeignFtl {
    /// Calls the layer with the drive's flash. None if it can't go on; `gave_up` says whether the answer means that there is no space.
    fn call<T>(
        &mut self,
        call: Call,
        flash: &mut Flash,
        ask: impl FnOnce(&mut dyn DecideFtl, &mut Box<GuardedFlash>) -> Result<T, String>,
        gave_up: impl FnOnce(&T) -> bool,
    ) -> Option<T> {
        if self.fault.get().is_some() {
            return None;
        }
        self.flash.lend(call, flash);
        let answer = ask(&mut *self.layer, &mut self.flash);
        let ended = self.flash.give_back(answer.as_ref().is_ok_and(gave_up), flash);
        let answer = answer.and_then(|answer| ended.map(|()| answer));
        answer.map_err(|what| self.fail(flash, &what)).ok()
    }

    #[cold]
    fn fail(&self, flash: &Flash, what: &str) {
        self.fault.set(format!("{}: host page write {}: {what}", self.name, flash.host_writes()));
    }
}

impl BuildScheme for ForeignFtl {
    const NAME: &'static str = "foreign";
    const ABOUT: &'static str = "a translation layer from outside";
    const CLEANS_IN_STEPS: bool = true;
    const FILLS_IN_ORDER: bool = true;
    type Settings = NoSettings;

    fn problems(context: &SchemeContext, flash: &Flash) -> Vec<String> {
        let Some(maker) = maker_of(context) else {
            return vec!["ftl.scheme: found no translation layer from outside, expected one".to_owned()];
        };
        let schedule = context.gc.schedule;
        let mut problems = schedule.problems(&context.gc.schedules, &context.schedule_context(1, flash));
        if schedule.asked() && !maker.cleans() {
            problems.push(format!(
                "gc.schedule: found {:?} with {}, which has no method clean, expected \"foreground\"",
                schedule.listed().name,
                maker.name()
            ));
        }
        problems
    }

    fn side_by_side(context: &SchemeContext, _: &Flash) -> u32 {
        maker_of(context).map_or(1, MakeFtl::open_blocks)
    }

    fn new(context: &SchemeContext, flash: &mut Flash) -> Self {
        let maker = maker_of(context).expect("problems found it");
        let fault = context.foreign.map(|foreign| foreign.fault.clone()).unwrap_or_default();
        let mut guarded = Box::new(GuardedFlash::new(flash, context.logical_pages, maker.open_blocks()));
        let drive = FtlDrive {
            logical_pages: context.logical_pages,
            geometry: *flash.geometry(),
            plane_order: context.placement.order.planes(flash.geometry(), context.dies_per_way),
            free_blocks_min: context.gc.free_blocks_min.max(1),
            entry_bytes: context.ftl.entry_bytes,
            rng: context.seed.stream("ftl.scheme"),
        };
        let schedule = context.gc.schedule;
        let schedules = if schedule.asked() { flash.geometry().planes() } else { 0 };
        let made_for = context.schedule_context(1, flash);
        let schedules = (0..schedules).map(|_| schedule.build(&context.gc.schedules, made_for)).collect();
        guarded.lend(Call::Begin, flash);
        let layer = maker.make(drive, &context.ftl.own, &mut guarded).unwrap_or_else(|what| {
            fault.set(format!("{}: {what}", maker.name()));
            Box::new(Absent)
        });
        guarded.give_back(false, flash).expect("no request waits");
        Self { layer, flash: guarded, name: maker.name().into(), fault, schedules }
    }

    fn mount(_: &SchemeContext, _: &mut Scan, _: &mut Flash) -> Result<Self, MountError> {
        Err(MountError::NotKept) // a drive with such a layer does not lose power
    }
}

impl Ftl for ForeignFtl {
    #[inline(never)]
    fn read(&mut self, run: LpnRun, flash: &mut Flash) {
        self.call(Call::Read(run), flash, |layer, flash| layer.read(run, flash), |()| false);
    }

    #[inline(never)]
    fn write(&mut self, run: LpnRun, flash: &mut Flash) -> Result<(), OutOfSpace> {
        let placed = self.call(Call::Write(run), flash, |layer, flash| layer.write(run, flash), |placed| !placed);
        if placed == Some(true) { Ok(()) } else { Err(self.flash.out_of_space(flash)) }
    }

    #[inline(never)]
    fn trim(&mut self, run: LpnRun, flash: &mut Flash) {
        self.call(Call::Trim(run), flash, |layer, flash| layer.trim(run, flash), |()| false);
    }

    fn lookup(&self, lpn: Lpn, _: &Flash) -> Option<Ppn> {
        self.flash.newest(lpn)
    }

    fn audit(&self, flash: &Flash, violations: &mut Vec<Violation>) {
        self.flash.audit(flash, violations);
        for lpn in (0..self.flash.logical_pages()).map(Lpn) {
            if self.fault.get().is_some() {
                return; // the run ends with it
            }
            let shown = |page: Option<i64>| page.map_or_else(|| "none".to_owned(), |page| format!("page {page}"));
            let newest = self.flash.newest(lpn).map(|ppn| i64::from(ppn.0));
            match self.layer.lookup(lpn.0) {
                Err(what) => {
                    self.fail(flash, &what);
                    violations.push(Violation(format!("{}: {what}", self.name)));
                }
                Ok(found) if found != newest => violations.push(Violation(format!(
                    "{}: lookup answered {} for logical page {}, whose newest copy is in {}",
                    self.name,
                    shown(found),
                    lpn.0,
                    shown(newest)
                ))),
                Ok(_) => {}
            }
        }
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // counts below 2^53
    fn figures(&self) -> SchemeFigures {
        let cleaned = self.flash.cleaned();
        let mut figures = SchemeFigures {
            collections: cleaned.collections,
            victim_pages_invalid: cleaned.victim_pages_invalid,
            ..SchemeFigures::default()
        };
        let own = if self.fault.get().is_some() { Ok(Vec::new()) } else { self.layer.figures() };
        for (name, value) in own.unwrap_or_else(|what| {
            self.fault.set(format!("{}: {what}", self.name));
            Vec::new()
        }) {
            let mut of_cache = |set: fn(&mut MappingCache, u64)| {
                set(figures.mapping_cache.get_or_insert_default(), value as u64);
            };
            match name.as_str() {
                "ram_bytes" => figures.ram_bytes = value as u64,
                "cache_lookups" => of_cache(|cache, value| cache.lookups = value),
                "cache_hits" => of_cache(|cache, value| cache.hits = value),
                "cache_evictions" => of_cache(|cache, value| cache.evictions = value),
                "cache_dirty_evictions" => of_cache(|cache, value| cache.dirty_evictions = value),
                _ => figures.extra.push((name, value)),
            }
        }
        figures
    }

    fn reset_figures(&mut self) {
        self.flash.reset_figures();
        if self.fault.get().is_none()
            && let Err(what) = self.layer.reset_figures()
        {
            self.fault.set(format!("{}: {what}", self.name));
        }
    }
}

impl CleansInSteps for ForeignFtl {
    fn follow_schedule(&mut self, plane: PlaneId, occasion: Occasion, flash: &mut Flash) -> Progress {
        let found = self.flash.plane(plane);
        let Some(schedule) = self.schedules.get_mut(plane.index()) else { return Progress::Nothing };
        let budget = schedule.steps(&Moment { occasion, free_blocks: found.free, copies: found.copies });
        if budget == 0 {
            return Progress::Nothing;
        }
        let before = GuardedFlash::steps(flash);
        self.call(Call::Clean, flash, |layer, flash| layer.clean(plane.0, budget, flash), |()| false);
        match u32::try_from(GuardedFlash::steps(flash) - before).unwrap_or(u32::MAX) {
            0 => Progress::Nothing,
            steps => Progress::Worked(steps),
        }
    }

    fn written_planes(&mut self, note: &mut dyn FnMut(PlaneId, u32, Nanos)) {
        for (plane, (used, schedule)) in (0..).zip(self.flash.planes_mut().iter_mut().zip(&self.schedules)) {
            if used.written > 0 {
                note(PlaneId(plane), std::mem::take(&mut used.written), schedule.delay(used.free));
            }
        }
    }
}

impl ServesRam for ForeignFtl {}
