//! The measurement of a run on a simulated drive: its requests, and the work that the flash did meanwhile.

use super::rows::Kept;
use super::snapshots::Snapshots;
use super::{Closeup, RequestColumns, RequestWindow, Tally, in_pairs};
use crate::energy::Joules;
use flashwright_block::{BlockDevice, Completion, RequestClass, RequestKind};
use flashwright_ftl::{Cause, Counters, OpKind, OwnerCounts};
use flashwright_ssd::{BusyTimes, Ssd};
use serde::{Deserialize, Serialize};
use std::collections::TryReserveError;

/// When a window of the time series ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Window {
    /// No time series.
    Off,
    /// After this many requests.
    Requests(u64),
    /// After this many nanoseconds of the drive's time.
    Nanos(u64),
}

/// One window of the time series of a run on a simulated drive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowRow {
    /// The requests of the window.
    pub of: RequestWindow,
    /// The work of the flash in the window.
    pub flash: FlashWindow,
}

impl WindowRow {
    /// Mean power in watts; none without figures in `[energy]`, or if no time passed.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // energy and time of a window
    pub fn power_w(&self) -> Option<f64> {
        let known = self.flash.energy_nj > 0 && self.of.duration_ns > 0;
        known.then(|| self.flash.energy_nj as f64 / self.of.duration_ns as f64)
    }
}

/// The work of the flash in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlashWindow {
    /// Pages that the host asked to read.
    pub pages_read: u64,
    /// Pages that the host asked to write.
    pub pages_written: u64,
    /// Pages programmed, whatever the cause.
    pub programs: u64,
    /// Pages programmed by cleaning and merging.
    pub programs_gc: u64,
    /// Pages read from flash, whatever the cause.
    pub reads_flash: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Victims of cleaning.
    pub collections: u64,
    /// Valid pages of all victims.
    pub victim_pages_valid: u64,
    /// Blocks retired up to the end of the window, in total.
    pub blocks_worn_out: u64,
    /// Energy in nanojoules, what the rest of the drive draws included; 0 without figures in `[energy]`.
    pub energy_nj: u64,
}

impl FlashWindow {
    /// Mean valid pages of the victims; none without a victim.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // counts of a window
    pub fn victim_pages_valid_mean(&self) -> Option<f64> {
        (self.collections > 0).then(|| self.victim_pages_valid as f64 / self.collections as f64)
    }

    /// Pages programmed per page that the host asked to write; none in a window without host writes.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // counts of a window
    pub fn write_amplification(&self) -> Option<f64> {
        (self.pages_written > 0).then(|| self.programs as f64 / self.pages_written as f64)
    }
}

/// The measurement of a run on a simulated drive.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Measurement {
    pub tally: Tally,
    /// Pages that requests touched, by kind: a page counts once for each request.
    pub pages: [u64; RequestKind::COUNT],
    pub counters_start: Counters,
    /// The same of each reclaim group, if there are several.
    pub groups_start: Vec<Counters>,
    /// Busy times of dies and channels when measuring began.
    pub busy_start: BusyTimes,
    pub digest: u64,
    window: Window,
    window_start: Counted,
    pub windows: Vec<WindowRow>,
    /// Whether nothing is wanted of a request besides counts.
    counts_only: bool,
    /// Whether more is wanted of it than counts and times.
    wants_more: bool,
    /// Costs one test per request if no rows are kept.
    kept: Option<Box<Kept>>,
    /// What was asked for through each queue, by its number: of tenants, or of a drive in service.
    pub queues: Vec<Option<Box<OfQueue>>>,
    /// When it began, if queues are counted as they come up.
    queues_since: Option<u64>,
    /// What each tenant had cost when measuring began.
    pub owners_start: Vec<OwnerCounts>,
    snapshots: Option<Box<Snapshots>>,
}

/// Counts of the drive at the start of the current window.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Counted {
    pages_read: u64,
    pages_written: u64,
    programs: u64,
    programs_gc: u64,
    reads: u64,
    erases: u64,
    collections: u64,
    victim_pages_invalid: u64,
    energy_nj: u64,
}

/// What was asked for through a queue.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct OfQueue {
    pub tally: Tally,
    /// As [`Measurement::pages`].
    pub pages: [u64; RequestKind::COUNT],
}

impl OfQueue {
    fn new(started_ns: u64, timed: bool) -> Self {
        Self { tally: Tally::new(started_ns, timed, false), pages: [0; RequestKind::COUNT] }
    }

    #[inline(always)]
    fn completed(&mut self, completion: &Completion, ssd: &Ssd) {
        self.tally.completed(completion);
        self.pages[completion.request.kind as usize] += u64::from(ssd.pages_of(&completion.request).1);
    }
}

/// Largest number of windows; beyond it, neighbours are joined and the window length doubles.
const WINDOWS_MAX: usize = 2000;

impl Measurement {
    /// `first_tag`: the tag of the host's next request; `closeup`: the first request of the selected stretch, and its
    /// length.
    pub fn new(
        ssd: &Ssd,
        first_tag: u64,
        timed: bool,
        window: Window,
        keep_requests: bool,
        closeup: Option<(u64, u64)>,
        tenants: usize,
    ) -> Self {
        let wants_more = keep_requests || closeup.is_some() || window != Window::Off || tenants > 0;
        let kept = (keep_requests || closeup.is_some()).then(|| Box::new(Kept::new(first_tag, keep_requests, closeup)));
        let mut measurement = Self {
            tally: Tally::new(ssd.now().0, timed, window != Window::Off),
            pages: [0; RequestKind::COUNT],
            counters_start: ssd.flash().counters().clone(),
            groups_start: ssd.flash().group_counters().to_vec(),
            busy_start: ssd.busy_times(),
            digest: DIGEST_START,
            window,
            window_start: Counted::default(),
            windows: Vec::new(),
            counts_only: !timed && !wants_more,
            wants_more,
            kept,
            queues: vec![Some(Box::new(OfQueue::new(ssd.now().0, timed))); tenants],
            queues_since: None,
            owners_start: ssd.flash().owner_counts().to_vec(),
            snapshots: None,
        };
        measurement.window_start = measurement.counts(ssd);
        measurement
    }

    /// Finds memory for what is kept of this many requests more.
    ///
    /// # Errors
    /// [`TryReserveError`] where there is none.
    pub fn try_reserve(&mut self, more: u64) -> Result<(), TryReserveError> {
        let more = usize::try_from(more).unwrap_or(usize::MAX);
        self.kept.as_mut().map_or(Ok(()), |kept| kept.try_reserve(more))
    }

    /// Counts what comes through any queue apart, for a drive in service: its queues come and go.
    pub fn count_queues(&mut self, ssd: &Ssd) {
        self.wants_more = true;
        self.queues_since = Some(ssd.now().0);
    }

    #[cold]
    fn add_queue(&mut self, number: u16, since: u64) -> &mut OfQueue {
        let at = usize::from(number);
        self.queues.resize(self.queues.len().max(at + 1), None);
        self.queues[at].insert(Box::new(OfQueue::new(since, self.tally.timed)))
    }

    /// Keeps at most this many snapshots of all blocks, taken at the ends of windows.
    pub fn keep_snapshots(&mut self, most: usize, ssd: &Ssd) {
        let mut snapshots = Snapshots::new(ssd, most);
        let first = snapshots.look(ssd, self.tally.requests, self.tally.end_ns);
        snapshots.taken.push(first);
        self.snapshots = Some(Box::new(snapshots));
    }

    /// The snapshots, if requested; the last one is the current state.
    pub fn snapshots(&self, ssd: &Ssd) -> Option<Snapshots> {
        let mut found = self.snapshots.as_deref()?.clone();
        let now = found.look(ssd, self.tally.requests, self.tally.end_ns);
        if found.taken.last().is_some_and(|last| last.requests_end == self.tally.requests) {
            found.taken.pop();
        }
        found.taken.push(now);
        Some(found)
    }

    #[inline(always)]
    pub fn completed(&mut self, completion: &Completion, ssd: &Ssd) {
        if completion.result.is_err() {
            return; // the host got no service: no request completed, no service time
        }
        let request = &completion.request;
        self.pages[request.kind as usize] += u64::from(ssd.pages_of(request).1);
        self.digest = mix(self.digest, completion.tag.0 ^ u64::from(completion.effects.flash_ops) << 32);
        self.tally.count(completion);
        if !self.counts_only {
            self.note(completion, ssd);
        }
    }

    /// What is wanted of a counted request besides counts. Apart, since runs that only count don't save registers for it.
    #[inline(never)]
    fn note(&mut self, completion: &Completion, ssd: &Ssd) {
        if self.tally.timed {
            self.tally.time(completion);
            self.digest = mix(self.digest, completion.end.0);
        }
        if self.wants_more {
            self.note_more(completion, ssd);
        }
    }

    /// What is wanted besides counts and times.
    #[inline(never)]
    fn note_more(&mut self, completion: &Completion, ssd: &Ssd) {
        if let Some(kept) = &mut self.kept {
            kept.keep(completion, ssd.pages_of(&completion.request));
        }
        if let Some(Some(of)) = self.queues.get_mut(usize::from(completion.request.queue)) {
            of.completed(completion, ssd);
        } else if let Some(since) = self.queues_since {
            self.add_queue(completion.request.queue, since).completed(completion, ssd);
        }
        let over = match self.window {
            Window::Off => false,
            Window::Requests(length) => self.tally.requests_in_window() >= length,
            Window::Nanos(length) => self.tally.end_ns - self.tally.window_start_ns() >= length,
        };
        if over {
            self.end_window(ssd);
        }
    }

    /// One row per request, if requested, unless some of them were taken.
    pub fn requests_kept(&self) -> Option<&RequestColumns> {
        self.kept.as_ref().filter(|kept| !kept.taken)?.all.as_ref()
    }

    /// Hands over the rows since the last time, if requested, and keeps none of them.
    pub fn take_requests(&mut self) -> Option<RequestColumns> {
        self.kept.as_mut()?.take()
    }

    /// Whether rows were taken.
    pub fn requests_taken(&self) -> bool {
        self.kept.as_ref().is_some_and(|kept| kept.taken)
    }

    /// Rows of consecutive requests, if requested.
    pub fn closeup(&self) -> Option<&Closeup> {
        self.kept.as_ref()?.closeup.as_ref()
    }

    /// Pages of the requests of a class.
    #[must_use]
    pub fn pages_of(&self, class: RequestClass) -> u64 {
        class.sum(&self.pages)
    }

    /// Ends the last window, if it is not empty.
    pub fn finish(&mut self, ssd: &Ssd) {
        if self.window != Window::Off && self.tally.requests_in_window() > 0 {
            self.end_window(ssd);
        }
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // nanojoules of centuries
    fn counts(&self, ssd: &Ssd) -> Counted {
        let (counters, figures) = (ssd.flash().counters(), ssd.figures());
        Counted {
            pages_read: self.pages_of(RequestClass::Read),
            pages_written: self.pages_of(RequestClass::Write),
            programs: counters.total(OpKind::Program),
            programs_gc: counters.get(OpKind::Program, Cause::Gc) + counters.get(OpKind::Program, Cause::Merge),
            reads: counters.total(OpKind::Read),
            erases: counters.total(OpKind::Erase),
            collections: figures.collections,
            victim_pages_invalid: figures.victim_pages_invalid,
            energy_nj: match ssd.config().energy.is_known() && self.tally.timed {
                true => (Joules::of(ssd, counters).sum() * 1e9) as u64,
                false => 0,
            },
        }
    }

    #[cold]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)] // energy of a window
    fn end_window(&mut self, ssd: &Ssd) {
        let now = self.counts(ssd);
        let start = std::mem::replace(&mut self.window_start, now);
        // A mount begins the scheme's counts anew: then these are since the mount.
        let since = |now: u64, start: u64| now.checked_sub(start).unwrap_or(now);
        let collections = since(now.collections, start.collections);
        let victim_pages = collections * u64::from(ssd.flash().geometry().pages_per_block());
        let mut flash = FlashWindow {
            pages_read: now.pages_read - start.pages_read,
            pages_written: now.pages_written - start.pages_written,
            programs: now.programs - start.programs,
            programs_gc: now.programs_gc - start.programs_gc,
            reads_flash: now.reads - start.reads,
            erases: now.erases - start.erases,
            collections,
            victim_pages_valid: victim_pages
                .saturating_sub(since(now.victim_pages_invalid, start.victim_pages_invalid)),
            blocks_worn_out: u64::from(ssd.flash().nand().blocks_retired()),
            energy_nj: now.energy_nj - start.energy_nj,
        };
        let of = self.tally.end_window(self.tally.end_ns);
        if self.tally.timed {
            // Milliwatts times nanoseconds are picojoules.
            flash.energy_nj += (ssd.config().energy.idle_mw * of.duration_ns as f64 / 1e3) as u64;
        }
        self.windows.push(WindowRow { of, flash });
        if let Some(snapshots) = &mut self.snapshots {
            snapshots.window_ended(self.windows.len(), ssd, self.tally.requests, self.tally.end_ns);
        }
        if self.windows.len() == WINDOWS_MAX {
            self.widen();
        }
    }

    /// Joins neighbouring windows, so that a run of unknown length keeps a bounded series.
    fn widen(&mut self) {
        self.windows = in_pairs(&self.windows, join);
        self.window = match self.window {
            Window::Off => Window::Off,
            Window::Requests(length) => Window::Requests(length * 2),
            Window::Nanos(length) => Window::Nanos(length * 2),
        };
        if let Some(snapshots) = &mut self.snapshots {
            snapshots.windows_joined();
        }
    }
}

/// Joins two neighbouring windows.
fn join(a: &WindowRow, b: &WindowRow) -> WindowRow {
    let (x, y) = (&a.flash, &b.flash);
    let flash = FlashWindow {
        pages_read: x.pages_read + y.pages_read,
        pages_written: x.pages_written + y.pages_written,
        programs: x.programs + y.programs,
        programs_gc: x.programs_gc + y.programs_gc,
        reads_flash: x.reads_flash + y.reads_flash,
        erases: x.erases + y.erases,
        collections: x.collections + y.collections,
        victim_pages_valid: x.victim_pages_valid + y.victim_pages_valid,
        blocks_worn_out: y.blocks_worn_out,
        energy_nj: x.energy_nj + y.energy_nj,
    };
    WindowRow { of: a.of.join(&b.of), flash }
}

const DIGEST_START: u64 = 0xcbf2_9ce4_8422_2325;

/// One step of a result's digest: it depends on order, and every bit affects the whole digest.
#[inline(always)]
pub(crate) fn mix(digest: u64, value: u64) -> u64 {
    (digest.rotate_left(5) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwright_block::Seed;
    use flashwright_ssd::Config;

    /// The moments of snapshots in a run of this many windows; a joined window counts as the windows it was joined
    /// from.
    fn snapshots(ssd: &Ssd, most: usize, windows: u64) -> Vec<u64> {
        let mut measurement = Measurement::new(ssd, 0, false, Window::Requests(10), false, None, 0);
        measurement.keep_snapshots(most, ssd);
        while measurement.tally.requests < 10 * windows {
            let Window::Requests(length) = measurement.window else { unreachable!("as it was made") };
            measurement.tally.requests = (10 * windows).min(measurement.tally.requests + length);
            measurement.end_window(ssd);
        }
        measurement.snapshots(ssd).expect("asked for").taken.iter().map(|taken| taken.requests_end).collect()
    }

    #[test]
    fn snapshots_are_even_whatever_the_length_of_the_run() {
        let text = "[geometry]\nchannels = 1\ndies-per-channel = 1\nblocks-per-plane = 32";
        let config = Config::from_toml(text, "test").expect("a drive");
        let ssd = Ssd::new(&config, Seed(1), false).expect("a drive");
        assert_eq!(snapshots(&ssd, 6, 0), [0]);
        assert_eq!(snapshots(&ssd, 6, 4), [0, 10, 20, 30, 40]);
        assert_eq!(snapshots(&ssd, 6, 9), [0, 20, 40, 60, 80, 90]);
        for most in [2, 3, 7, 60] {
            // Long enough that windows are joined twice.
            let found = snapshots(&ssd, most, 5555);
            assert!(found.len() <= most && found.len() >= most.div_ceil(2), "{most}: {found:?}");
            assert_eq!((found[0], found[found.len() - 1]), (0, 55_550));
            let steps: Vec<u64> = found.windows(2).map(|pair| pair[1] - pair[0]).collect();
            assert!(steps[..steps.len() - 1].iter().all(|step| *step == steps[0]), "{most}: {found:?}");
        }
    }
}
