//! Loss of power: what is left on the chips, and mounting the drive again.
//!
//! The drive's tables are ahead of its chips. With `recovery.mount-by` every change of the chips goes to a [`Medium`] when it is done.
//! A cut leaves the medium as it is, with what was under way torn; a mount builds the drive anew from it.
//!
//! Under `timing.model = "none"` and `"serial"` operations are done one after the other, in the order in which they were decided.

mod checkpoints;
mod in_flight;
mod restart;

use crate::clock::{Clock, Flight};
use crate::engine::{Awaits, Superseded};
use crate::ssd::{Policies, Ssd};
pub(crate) use checkpoints::prepare as prepare_checkpoints;
use flashwright_block::{BlockDevice, IoError, Nanos, RequestKind};
use flashwright_config::{DriveConfig, SettingError};
use flashwright_ftl::durable::{Change, Changed, Medium, MountError};
use flashwright_ftl::{Flash, InvalidateOrder, OpKind};
use in_flight::InFlight;
pub(crate) use in_flight::{Ended, Ends};
pub use restart::RestartError;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

/// The power of a drive that can be mounted again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Power {
    pub medium: Medium,
    /// Programs and erases until power fails, if it is to fail in the middle of one.
    fails_after: Option<u64>,
    /// Whether the energy of capacitors lasts until what has begun is finished.
    is_protected: bool,
    is_off: bool,
    /// Changes that were decided and did not happen.
    #[serde(skip)]
    lost: Vec<Change>,
    /// Programs and erases done since the drive was built.
    operations: u64,
    /// What the dies of `timing.model = "parallel"` have been told.
    in_flight: InFlight,
    /// Flushes in flight: their slots, and up to which change everything must be done.
    flushes: Vec<(u32, u64)>,
    /// Those that have ended but for that.
    held: VecDeque<(Flight, u64)>,
    /// When the last program or erase ended.
    last_end: u64,
    /// Slots of requests in the engine.
    in_engine: BTreeSet<u32>,
    /// Up to which change everything must be done before the checkpoint that was begun is ended.
    checkpoint_after: Option<u64>,
}

/// What a mount did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mounted {
    /// How long it took; zero under `timing.model = "none"`.
    pub duration: Nanos,
    /// Spare areas read.
    pub spare_areas_read: u64,
    /// Pages read.
    pub pages_read: u64,
    /// Pages programmed, to finish what was under way and to write tables again.
    pub pages_programmed: u64,
    /// Blocks erased.
    pub blocks_erased: u64,
    /// Logical pages found.
    pub pages_mapped: u64,
    /// Pages that can't be read because their program, or the erase of their block, was cut short.
    pub pages_torn: u64,
}

/// What the configuration lacks for cuts.
pub(crate) fn problems(config: &DriveConfig, has_foreign_policies: bool, flash: &Flash) -> Vec<SettingError> {
    let blocks = Flash::journal_blocks(config.logical_pages(), &config.layout());
    let most = config.layout().blocks() / 4;
    let mut problems: Vec<SettingError> = checkpoints::problem(config, flash, blocks, most).into_iter().collect();
    if !config.recovery.can_mount() {
        return problems;
    }
    let mut refuse = |key: &str, what: &str| {
        problems.push(SettingError { key: key.to_owned(), what: what.to_owned() });
    };
    if has_foreign_policies {
        refuse(
            "recovery.mount-by",
            "found \"scan\" with policies from outside; expected \"nothing\": a mount builds the drive anew, without them",
        );
    }
    if blocks > most {
        refuse(
            "recovery.mount-by",
            &format!(
                "the journal of trims takes {blocks} blocks, expected at most a quarter of the drive's, {most}; use more blocks"
            ),
        );
    }
    if config.gc.invalidate == InvalidateOrder::BeforeGc {
        refuse(
            "gc.invalidate",
            "found \"before-gc\", expected \"after-gc\" with recovery.mount-by: what a write replaces would be erased before the \
             new page is on flash",
        );
    }
    problems
}

/// Whether capacitors keep what the drive has answered.
fn protects(config: &DriveConfig) -> bool {
    (config.ram.manager.is_some() && config.ram.power_protected) || config.chips.write_ram.0 > 0
}

impl Power {
    /// Power that is on, with what was formatted when the translation layer was built.
    pub fn new(config: &DriveConfig, flash: &mut Flash) -> Box<Self> {
        let mut medium = Medium::new(flash.geometry());
        flash.take_changes().into_iter().for_each(|change| medium.apply(change));
        Box::new(Self {
            medium,
            fails_after: None,
            is_protected: protects(config),
            is_off: false,
            lost: Vec::new(),
            operations: 0,
            in_flight: InFlight::default(),
            flushes: Vec::new(),
            held: VecDeque::new(),
            last_end: 0,
            in_engine: BTreeSet::new(),
            checkpoint_after: None,
        })
    }

    /// Whether the energy of capacitors lasts until what has begun is finished.
    pub fn is_protected(&self) -> bool {
        self.is_protected
    }

    /// A change that a die was told to make is done. Capacitors had promised it.
    fn done(&mut self, change: Change) {
        if self.is_protected { self.medium.arrive(change) } else { self.medium.apply(change) }
    }

    /// Takes changes in the order in which they are done.
    fn take(&mut self, changes: Vec<Change>) {
        for change in changes {
            let is_operation = !matches!(change.what, Changed::Retire(_));
            if self.is_off {
                self.lost.push(change);
            } else if is_operation && self.fails_after == Some(0) && !self.is_protected {
                self.medium.tear(&change);
                (self.is_off, self.fails_after) = (true, None);
            } else {
                if is_operation {
                    self.operations += 1;
                    self.fails_after = self.fails_after.map(|left| left.saturating_sub(1));
                }
                self.medium.apply(change);
            }
        }
    }
}

impl Ssd {
    /// What requests get while the power is off.
    pub(crate) fn power_error(&self) -> Option<IoError> {
        let is_off = self.power.as_ref().is_some_and(|power| power.is_off);
        is_off.then_some(IoError::PowerOff)
    }

    /// The changes of a request are done, if power lasts.
    #[cold]
    pub(crate) fn settle_changes(&mut self) {
        let changes = self.translation.flash.take_changes();
        if let Some(power) = &mut self.power {
            power.take(changes);
            if power.is_protected && power.fails_after == Some(0) && !power.is_off {
                power.fails_after = None;
                self.finish_on_capacitors();
                if let Some(power) = &mut self.power {
                    power.is_off = true;
                }
            }
        }
        self.power_is(self.is_on());
    }

    /// As [`Ssd::settle_changes`] after a request that takes no time, if changes are kept.
    #[inline(always)]
    pub(crate) fn settle_untimed_if_kept(&mut self) {
        if self.power.is_some() {
            self.take_checkpoint(false);
            self.settle_changes();
        }
    }

    /// Programs and erases that were done since the drive was built, if power can be cut.
    #[must_use]
    pub fn operations_done(&self) -> Option<u64> {
        self.power.as_ref().map(|power| power.operations)
    }

    /// Lets power fail in the middle of a program or an erase, after `operations` more of them. The request that it belongs to fails,
    /// and so do all later ones until the drive is mounted. A drive with protected RAM finishes the request and saves its RAM first.
    /// Nothing happens if power can't be cut (`recovery.mount-by`).
    pub fn cut_after(&mut self, operations: u64) {
        if let Some(power) = &mut self.power {
            power.fails_after = Some(operations);
        }
    }

    /// Whether the power is on.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.power.as_ref().is_none_or(|power| !power.is_off)
    }

    /// Whether capacitors keep what the drive has answered.
    #[must_use]
    pub fn is_power_protected(&self) -> bool {
        protects(self.config())
    }

    /// Cuts the power now: what has been acknowledged and not flushed may be lost, and requests in flight fail. RAM that is protected
    /// (`ram.power-protected`) goes to flash on the energy of its capacitors, which takes no time here.
    ///
    /// # Errors
    /// [`MountError::NotKept`] if the drive could not be mounted again.
    pub fn cut(&mut self) -> Result<(), MountError> {
        if self.power.is_none() {
            return Err(MountError::NotKept);
        }
        if self.is_on() {
            self.catch_up();
            if self.power.as_ref().is_some_and(|power| power.is_protected) {
                self.finish_on_capacitors();
            } else {
                self.settle_changes();
                self.tear_under_way();
            }
            if let Some(power) = &mut self.power {
                (power.is_off, power.fails_after) = (true, None);
            }
            self.fail_in_flight();
            self.power_is(false);
        }
        Ok(())
    }

    /// What the chips hold, if power can be cut.
    #[must_use]
    pub fn medium(&self) -> Option<&Medium> {
        self.power.as_ref().map(|power| &power.medium)
    }

    /// As [`Ssd::medium`]: to mirror it, and to ask its mirror.
    pub fn medium_mut(&mut self) -> Option<&mut Medium> {
        self.power.as_mut().map(|power| &mut power.medium)
    }

    /// Finishes what has begun, and writes protected RAM to flash.
    fn finish_on_capacitors(&mut self) {
        if let Some(power) = &mut self.power {
            for change in power.in_flight.take_all() {
                power.done(change);
            }
        }
        if let Some(ram) = self.translation.ram.as_mut().filter(|ram| ram.is_power_protected()) {
            // At the end of its life a drive may lack room: what does not fit is lost.
            let _ = ram.save(&mut self.translation.scheme, &mut self.translation.flash);
        }
        self.translation.flash.flush_journal();
        let saved = self.translation.flash.take_changes();
        if let Some(power) = &mut self.power {
            saved.into_iter().for_each(|change| power.medium.apply(change));
        }
    }

    /// Mounts the drive: reads what the chips hold, finishes or undoes what was under way, and takes requests again. A drive whose
    /// power is on loses it first.
    ///
    /// # Errors
    /// [`MountError`]; the drive then stays off.
    pub fn mount(&mut self) -> Result<Mounted, MountError> {
        self.cut()?;
        let Some(mut power) = self.power.take() else { return Err(MountError::NotKept) };
        let mut lost = std::mem::take(&mut power.lost);
        lost.extend(self.translation.flash.take_changes());
        self.translation.flash.lose_power(&power.medium, &lost);
        self.mount_found(power)
    }

    /// Puts chips that were in use before in the place of this new drive's, and mounts what they hold. Their mirror comes with them.
    ///
    /// # Errors
    /// [`MountError`]; the drive then stays off.
    ///
    /// # Panics
    /// If the chips are not those of a drive of this geometry.
    pub fn take_over(&mut self, medium: Medium) -> Result<Mounted, MountError> {
        self.cut()?;
        let Some(mut power) = self.power.take() else { return Err(MountError::NotKept) };
        (power.medium, power.lost) = (medium, Vec::new());
        self.translation.flash.take_over(&power.medium);
        self.mount_found(power)
    }

    /// A request has been carried out: writes what it trimmed to the journal, where that is due.
    #[cold]
    pub(crate) fn write_journal(&mut self, kind: RequestKind) {
        let Some(power) = &self.power else { return };
        let is_due = match kind {
            // Capacitors write the trims when the power fails.
            RequestKind::Flush => !power.is_protected() && !self.config().recovery.ignores_flush,
            // But not to a mirror when the process is killed.
            RequestKind::Trim => power.is_protected() && power.medium.mirror().is_some(),
            _ => false,
        };
        if is_due {
            self.translation.flash.flush_journal();
        }
    }

    fn mount_found(&mut self, mut power: Box<Power>) -> Result<Mounted, MountError> {
        self.forget_rewrites();
        power.is_off = false;
        power.checkpoint_after = None;
        self.power = Some(power);
        self.power_is(true);
        self.restart_clock();
        let (before, start) = (self.translation.flash.counters().totals(), self.now());
        let mounted = self.build_again();
        let after = self.translation.flash.counters().totals();
        if !self.is_parallel() {
            self.settle_changes();
        }
        let end = self.pass_mount([before, after]);
        let pages_torn = match mounted {
            Ok(torn) => torn,
            Err(error) => {
                self.cut()?;
                return Err(error);
            }
        };
        if !self.is_on() {
            return Ok(Mounted::default()); // it failed again
        }
        let did = |kind: OpKind| after[kind as usize] - before[kind as usize];
        let duration = Nanos(end - start.0);
        self.translation.flash.clear_log();
        Ok(Mounted {
            duration,
            spare_areas_read: did(OpKind::OobRead),
            pages_read: did(OpKind::Read),
            pages_programmed: did(OpKind::Program),
            blocks_erased: did(OpKind::Erase),
            pages_mapped: (0..self.logical_pages()).filter(|lpn| self.is_mapped(*lpn)).count() as u64,
            pages_torn,
        })
    }

    /// Builds the translation layer and the RAM anew; returns the pages that can't be read.
    fn build_again(&mut self) -> Result<u64, MountError> {
        let config = self.config().clone();
        let policies = Policies::default();
        let context = Self::scheme_context(&config, self.seed, &policies);
        let (mut scheme, scan) = config.ftl.scheme.mount(&context, &mut self.translation.flash)?;
        self.translation.ram = Self::build_ram(&config, self.seed, &policies, &mut scheme, &mut self.translation.flash)
            .expect("the same settings were accepted before");
        self.translation.scheme = scheme;
        self.restart_cleaning();
        Ok(scan.torn_pages)
    }

    fn is_mapped(&self, lpn: u32) -> bool {
        use flashwright_ftl::Ftl as _;
        self.scheme().lookup(flashwright_nand::Lpn(lpn), self.flash()).is_some()
    }

    // --- dies that work side by side ---

    /// Issues a part of the log, and keeps the changes that it makes until they are done.
    #[cold]
    pub(crate) fn issue_kept(&mut self, at: u64, least: u64, entries: Range<usize>, awaits: Awaits) -> u32 {
        let end = u32::try_from(entries.end).expect("a request's operations fit 32 bits");
        let changes = self.translation.flash.take_changes_of(end);
        let first = u32::try_from(entries.start).expect("a request's operations fit 32 bits");
        let superseded: Vec<Superseded> = changes
            .iter()
            .flat_map(|change| {
                let at = change.mark - 1 - first;
                change.replaces_in.iter().map(move |block| Superseded { at, block: *block })
            })
            .collect();
        let (Clock::Parallel(clock), Some(power)) = (&mut self.clock, &mut self.power) else {
            unreachable!("only dies that work side by side take work")
        };
        let dies = clock.engine.dies_of_block();
        for change in changes {
            if matches!(change.what, Changed::Retire(_)) {
                power.medium.apply(change);
            } else {
                if power.is_protected {
                    power.medium.promise(&change);
                }
                power.in_flight.add(change, dies);
            }
        }
        let ops = &self.translation.flash.log()[entries];
        clock.engine.issue_superseding(at, least, ops, &superseded, awaits, &self.translation.flash)
    }

    /// Issues the operations of a request.
    #[cold]
    pub(crate) fn dispatch_kept(&mut self, start: u64, least: u64, flight: Flight) {
        let all = self.translation.flash.log().len();
        let awaited = self.translation.flash.background().map_or(all, |(at, _)| at);
        let slot = self.issue_kept(start, least, 0..awaited, Awaits::Request);
        if let (Clock::Parallel(clock), Some(power)) = (&mut self.clock, &mut self.power) {
            clock.issued(slot, flight);
            clock.queue.take(flight.request.kind, 1);
            clock.block_for(slot, &self.translation.flash.log()[..awaited]);
            power.in_engine.insert(slot);
            if flight.request.kind == RequestKind::Flush && !power.is_protected && !self.config().recovery.ignores_flush
            {
                let up_to = self.power.as_ref().map_or(0, |power| power.in_flight.next());
                self.power.iter_mut().for_each(|power| power.flushes.push((slot, up_to)));
            }
        }
        if awaited < all {
            let slot = self.issue_kept(start, 0, awaited..all, Awaits::Work);
            if let Clock::Parallel(clock) = &mut self.clock {
                clock.issued(slot, Flight::background());
                clock.block_for(slot, &self.translation.flash.log()[awaited..all]);
            }
        }
        self.note_checkpoint();
        self.work_follows(start);
    }

    /// Takes what has ended on the dies; returns whether the power is still on.
    #[cold]
    pub(crate) fn note_ends(&mut self) -> bool {
        let (Clock::Parallel(clock), Some(power)) = (&mut self.clock, &mut self.power) else { return true };
        let geometry = *self.translation.flash.geometry();
        let mut done = VecDeque::new();
        for Ended { kind, ppn, at } in clock.engine.take_ends() {
            power.last_end = power.last_end.max(at.0);
            let had_begun = power.in_flight.ended(kind, ppn, &geometry, &mut done);
            debug_assert!(had_begun || power.medium.is_programmed(ppn), "page {} did not begin", ppn.0);
            while let Some(change) = done.pop_front() {
                if power.fails_after == Some(0) {
                    if power.is_protected {
                        power.done(change);
                        done.drain(..).for_each(|change| power.done(change));
                        self.finish_on_capacitors();
                    } else {
                        power.medium.tear(&change);
                        power.lost.extend(done.drain(..));
                        power.lost.extend(power.in_flight.take_all());
                    }
                    if let Some(power) = &mut self.power {
                        (power.is_off, power.fails_after) = (true, None);
                    }
                    self.fail_in_flight();
                    self.power_is(false);
                    return false;
                }
                power.operations += 1;
                power.fails_after = power.fails_after.map(|left| left - 1);
                power.done(change);
            }
        }
        !power.is_off
    }

    /// Whether a request that has ended is a flush before which something is not done yet; it is then held back.
    #[cold]
    pub(crate) fn holds_flush(&mut self, slot: u32, end: u64) -> bool {
        let (Clock::Parallel(clock), Some(power)) = (&self.clock, &mut self.power) else { return false };
        power.in_engine.remove(&slot);
        let Some(at) = power.flushes.iter().position(|(flush, _)| *flush == slot) else { return false };
        let (_, up_to) = power.flushes.swap_remove(at);
        power.last_end = power.last_end.max(end);
        let holds = !power.in_flight.is_done_before(up_to);
        if holds {
            power.held.push_back((clock.flights[slot as usize], up_to));
        }
        holds
    }

    /// Whether a flush was held back and need not be any more.
    pub(crate) fn has_released_flush(&self) -> bool {
        self.power
            .as_ref()
            .is_some_and(|power| power.held.front().is_some_and(|(_, up_to)| power.in_flight.is_done_before(*up_to)))
    }

    /// Takes such a flush.
    #[cold]
    pub(crate) fn released_flush(&mut self) -> Option<Flight> {
        if !self.has_released_flush() {
            return None;
        }
        let power = self.power.as_mut()?;
        let (mut flight, _) = power.held.pop_front()?;
        flight.end = Nanos(power.last_end);
        Some(flight)
    }

    /// The power is off: requests in flight fail.
    #[cold]
    fn fail_in_flight(&mut self) {
        let (Clock::Parallel(clock), Some(power)) = (&mut self.clock, &mut self.power) else { return };
        let mut failed: Vec<Flight> =
            std::mem::take(&mut power.in_engine).into_iter().map(|slot| clock.flights[slot as usize]).collect();
        failed.extend(std::mem::take(&mut power.held).into_iter().map(|(flight, _)| flight));
        power.flushes.clear();
        for flight in &failed {
            clock.queue.release(flight.request.kind, 1);
        }
        clock.queue.reopen();
        while let Some(waiting) = clock.queue.pick() {
            failed.push(Flight::waiting(waiting));
        }
        self.end_with(failed, &IoError::PowerOff);
    }

    fn is_parallel(&self) -> bool {
        matches!(self.clock, Clock::Parallel(_))
    }

    /// What is under way on a die is torn, and the rest does not happen.
    fn tear_under_way(&mut self) {
        let now = self.now().0;
        let geometry = *self.translation.flash.geometry();
        if let (Clock::Parallel(clock), Some(power)) = (&self.clock, &mut self.power) {
            let under_way = clock.engine.unfinished(now);
            let lost = power.in_flight.cut(&under_way, &mut power.medium, &geometry);
            power.lost.extend(lost);
        }
    }
}
