//! Plays the workload itself, without measuring, until the drive has settled under it.
//!
//! If what lies between the workload and the flash only delays requests, no time passes: the translation layer depends
//! only on their order, which is the same at every pace. Schedulers and buffers merge by time, and whose request is next
//! among tenants depends on completions, so those are played at the pace of the run.

use crate::machine::Machine;
use crate::player::{self, Pace, PlayError, Player, Step};
use crate::settle::{History, Totals};
use flashwright_block::{Passes, RequestSource, SourceError};
use flashwright_ftl::{Cause, OpKind};
use flashwright_ssd::Ssd;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Largest number of passes of a trace.
const PASSES_MAX: u64 = 2000;
/// Passes of a trace before the first check whether the drive has settled.
const PASSES_MIN: u64 = 4;
/// The history grows by this factor from one check to the next: four checks while it doubles.
const GROWTH: f64 = 1.189_207_115_002_721;
/// Largest number of pages programmed, as a multiple of the drive's pages: it bounds the cost of a drive that is filled
/// beyond what it can clean.
const PROGRAMS_MAX: u64 = 1000;

/// How the search for the settled state ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Search {
    /// The search continues.
    UnderWay,
    /// The drive has settled.
    Settled,
    /// The limit on host writes, passes or programs was reached first.
    GaveUp,
    /// The workload writes nothing, so nothing can settle.
    NothingWritten,
    /// The workload ended and can't be repeated.
    Ended,
}

/// Preconditioning by the workload, in steps.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Conditioning {
    host_pages_max: u64,
    next_judgement: f64,
    requests: u64,
    /// Whether the source is a recorded trace, which is played pass by pass; unknown before the first step.
    is_recording: Option<bool>,
    passes: u64,
    /// Requests of the first pass, in which a dense address map assigns places to pages.
    first_pass: u64,
    search: Search,
}

impl Conditioning {
    /// Prepares to write at most this many capacities of a drive of `logical_pages`.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    pub fn new(capacities: f64, logical_pages: u32) -> Self {
        Self {
            host_pages_max: (f64::from(logical_pages) * capacities).ceil() as u64,
            next_judgement: f64::from(logical_pages) / 2.0,
            requests: 0,
            is_recording: None,
            passes: 0,
            first_pass: 0,
            search: Search::UnderWay,
        }
    }

    /// Requests played.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests
    }
    /// Whole passes of the trace; 0 for other workloads.
    #[must_use]
    pub fn passes(&self) -> u64 {
        self.passes
    }
    /// How the search ended.
    #[must_use]
    pub fn search(&self) -> Search {
        self.search
    }
    /// Host pages after which it gives up.
    #[must_use]
    pub fn host_pages_max(&self) -> u64 {
        self.host_pages_max
    }

    /// Plays about `budget` more requests; returns true when the search is over. The player and the source are then at
    /// the same position; a trace has been restarted from its beginning.
    ///
    /// # Errors
    /// [`PlayError`] of the source or the drive.
    pub(crate) fn step(
        &mut self,
        machine: &mut Machine,
        player: &mut Player,
        history: &mut History,
        source: &mut dyn RequestSource,
        budget: u64,
    ) -> Result<bool, PlayError> {
        let is_recording = match self.is_recording {
            Some(is) => is,
            None => *self.is_recording.insert(source.start_over(Passes::One)?),
        };
        let mut left = budget;
        while left > 0 && self.search == Search::UnderWay {
            let go = left.min(history.due().saturating_sub(self.requests).max(1));
            let (before, stop) = (player.submitted(), player.submitted() + go);
            let step = play(machine, player, source, stop, false)?;
            self.requests += player.submitted() - before;
            left -= go;
            let now = totals(machine);
            if step == Step::Finished && is_recording {
                self.pass_ended(now, player, history, source, machine)?;
            } else if step == Step::Finished {
                history.note(now, self.requests);
                self.search = Search::Ended;
            } else if self.requests >= history.due() {
                history.note(now, self.requests);
                if !is_recording {
                    self.judge(history);
                }
                self.bound(history, machine.ssd());
            }
        }
        let over = self.search != Search::UnderWay;
        if over && is_recording {
            play(machine, player, source, player.submitted(), true)?;
            source.start_over(Passes::All)?;
            player.start_over(machine.now());
        } else if over && player.pace() == Pace::Tenants {
            // What waits in an open loop that the drive can't follow is not measured, and recordings start over.
            play(machine, player, source, player.submitted(), true)?;
            source.start_over(Passes::All)?;
        }
        Ok(over)
    }

    fn pass_ended(
        &mut self,
        now: Totals,
        player: &mut Player,
        history: &mut History,
        source: &mut dyn RequestSource,
        machine: &Machine,
    ) -> Result<(), PlayError> {
        source.start_over(Passes::One)?;
        player.start_over(machine.now());
        self.passes += 1;
        if self.passes == 1 {
            self.first_pass = self.requests;
        }
        let erases = || machine.ssd().flash().nand().erases_of_all();
        history.pass_ended(now, self.requests, || erases().map(|erases| u64::from(erases > 0)).sum());
        if history.host_pages() == 0 {
            self.search = Search::NothingWritten;
        } else if self.passes >= PASSES_MIN {
            self.judge(history);
            self.bound(history, machine.ssd());
        }
        Ok(())
    }

    /// Checks whether the drive has settled, if the history has grown enough since the last check or the last pass moved nothing.
    #[allow(clippy::cast_precision_loss)] // pages far below 2^53
    fn judge(&mut self, history: &mut History) {
        let pages = history.total().host_pages as f64;
        if pages >= self.next_judgement || history.last_pass_moved_nothing() {
            if history.holds() {
                self.search = Search::Settled;
            }
            self.next_judgement = pages * GROWTH;
        }
    }

    /// Gives up when a limit is reached. A few passes of a trace are always played, whatever they write.
    fn bound(&mut self, history: &History, ssd: &Ssd) {
        let total = history.total();
        let programs_max = u64::from(ssd.flash().geometry().pages()).saturating_mul(PROGRAMS_MAX);
        let enough = total.host_pages >= self.host_pages_max || self.passes >= PASSES_MAX;
        let few_passes = self.is_recording == Some(true) && self.passes < PASSES_MIN;
        if self.search == Search::UnderWay && (enough && !few_passes || total.programs >= programs_max) {
            self.search = Search::GaveUp;
        }
        // A request for each page of the drive, and none of them wrote.
        let writes_nothing = total.host_pages == 0 && self.requests >= u64::from(ssd.logical_pages());
        if self.search == Search::UnderWay && self.is_recording == Some(false) && writes_nothing {
            self.search = Search::NothingWritten;
        }
    }

    /// Fast-forwards a rebuilt source to the position where it last started over.
    ///
    /// # Errors
    /// [`SourceError`] if it is a different source.
    pub(crate) fn rewind(&self, source: &mut dyn RequestSource) -> Result<(), SourceError> {
        if self.is_recording == Some(true) {
            source.start_over(Passes::One)?;
            if self.passes > 0 {
                player::skip(source, self.first_pass)?;
                source.start_over(Passes::One)?;
            }
            if self.search != Search::UnderWay {
                source.start_over(Passes::All)?;
            }
        }
        Ok(())
    }
}

/// Plays up to this many requests in total; no time passes if the drive's state hangs on none.
fn play(
    machine: &mut Machine,
    player: &mut Player,
    source: &mut dyn RequestSource,
    until: u64,
    finish: bool,
) -> Result<Step, PlayError> {
    if machine.is_timeless() && player.pace() != Pace::Tenants {
        machine.play_untimed(player, source, until, finish)
    } else {
        machine.play(player, source, until, finish, |_, _| {})
    }
}

/// The totals that the settling rule uses.
pub(crate) fn totals(machine: &Machine) -> Totals {
    let counters = machine.ssd().flash().counters();
    Totals {
        host_pages: machine.written().pages,
        programs: counters.total(OpKind::Program),
        erases: counters.total(OpKind::Erase),
        wear_programs: counters.get(OpKind::Program, Cause::Wear),
        moved: [Cause::Gc, Cause::Merge, Cause::Padding, Cause::Wear]
            .map(|cause| counters.get(OpKind::Program, cause))
            .iter()
            .sum(),
    }
}
