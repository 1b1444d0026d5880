//! Decides whether write amplification has settled under the workload.
//!
//! The counts of programs and host writes are kept as a bounded series of windows. It starts with the workload,
//! including warm-up and preconditioning by the workload. With `T` host pages written so far, the rule compares
//!
//! ```text
//!   0        T/4          T/2          3T/4          T
//!   |--------|------A------|------B-----|------C-----|
//!            \ A against B and C, then B against C /
//! ```
//!
//! and requires that each difference, plus its own standard error, is at most [`TOLERANCE`], and that blocks were
//! erased [`ERASES_PER_BLOCK_MIN`] times on average. The spans double because of what the rule promises: an
//! amplification that changes by less than 2 % while the history doubles twice changes by less than 3 % until the
//! history has grown tenfold, whether the approach is exponential or logarithmic. Standard errors come from the means
//! of eight batches per span, so that slow oscillation counts as uncertainty. The steady-state criteria of the SNIA SSS
//! PTS (range and slope over five rounds) have the same form with fixed rounds, but fixed rounds can't detect a drift
//! that is slow compared with them.
//!
//! A trace that is repeated is judged by whole passes: one window per pass. Where its passes move nothing, fewer erases do
//! ([`ROUNDS_MIN`]): a page that a pass writes is written again by the next, so that the blocks of one pass hold nothing valid two
//! passes later, and what is cleaned in turn stays the same set of blocks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The largest relative difference between spans of the history, standard error included.
pub const TOLERANCE: f64 = 0.02;
/// The wider tolerance for a history that has met the rule once: without it, a limit that is barely met would soon be
/// barely missed.
const TOLERANCE_KEPT: f64 = 0.03;
/// Mean erases per block since the workload began, below which no drive counts as settled.
pub const ERASES_PER_BLOCK_MIN: f64 = 2.0;
/// Capacities of host writes since the workload began, below which no drive counts as settled that began as a copy of a small one. What
/// is left of the copy's error is small, up to 2 % of write amplification, and goes while pages that are seldom written are written
/// again: a shorter history lies within it and shows no drift.
const CAPACITIES_MIN_OF_COPY: u64 = 3;
/// Mean erases of the blocks that were erased at all, over the last three quarters of the history, from which on passes of a trace
/// that move no page count as settled. Where blocks take turns, more than one means that all have had theirs; half as many again
/// leaves room for less strict orders (`experiments/settling/passes.py`).
const ROUNDS_MIN: f64 = 1.5;
/// The least share of the pages programmed since cleaning began that erases gave back, for such passes: whatever is written is
/// cleaned, and no part of the drive is only being filled.
const GIVEN_BACK_MIN: f64 = 0.9;
/// The largest half width of the 95 % interval of the measured figure, relative to it.
pub const HALF_WIDTH_MAX: f64 = 0.03;
/// Pages moved per page that the host wrote, below which the load needs no cleaning: to three digits, write amplification is that
/// of a drive on which every erased block was empty.
pub const MOVED_MIN: f64 = 0.000_5;
/// How often the verdict "settled" was right to 3 %, compared with a run ten times as long, on families of drives and
/// workloads that were not used to choose the rule (`experiments/settling`).
pub const CONFIDENCE: f64 = 0.99;

/// Largest number of windows; beyond it, neighbours are joined.
const ROWS_MAX: usize = 2048;
/// Requests between two readings of the totals: initial and largest number.
const STRIDE: u64 = 64;
const STRIDE_MAX: u64 = 4096;
/// Batches per span.
const BATCHES: usize = 8;
/// Two-sided 95 % quantiles of Student's t by degrees of freedom, from 1.
const T_95: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];

/// Totals since the drive was new.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Pages that the host asked to write, whichever layer absorbed them.
    pub host_pages: u64,
    /// Pages programmed, whatever the cause.
    pub programs: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Pages programmed to level wear.
    pub wear_programs: u64,
    /// Valid pages that were programmed again: moved by cleaning, merges and wear levelling, or because a buffer completed a block.
    pub moved: u64,
}

impl Totals {
    fn since(self, earlier: Self) -> Self {
        Self {
            host_pages: self.host_pages - earlier.host_pages,
            programs: self.programs - earlier.programs,
            erases: self.erases - earlier.erases,
            wear_programs: self.wear_programs - earlier.wear_programs,
            moved: self.moved - earlier.moved,
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            host_pages: self.host_pages + other.host_pages,
            programs: self.programs + other.programs,
            erases: self.erases + other.erases,
            wear_programs: self.wear_programs + other.wear_programs,
            moved: self.moved + other.moved,
        }
    }
}

/// What the rule must know of a drive.
#[derive(Clone, Copy, Debug)]
pub struct DriveFacts {
    /// Pages that the host can address.
    pub logical_pages: u32,
    /// Blocks of its flash.
    pub blocks: u32,
    /// Pages of each.
    pub pages_per_block: u32,
    /// Whether it has a policy that moves data to level wear.
    pub levels_wear: bool,
    /// Whether a cache of other blocks takes writes first.
    pub has_cache: bool,
    /// Whether it began as a copy of a small drive.
    pub is_copy: bool,
}

/// Windows of one phase of the run, in order; neighbours are joined when there are too many.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Stretch {
    /// The counts of each window, and the requests completed by its end since the phase began.
    rows: Vec<(Totals, u64)>,
    /// Smallest number of host pages in a window.
    width: u64,
}

impl Stretch {
    fn push(&mut self, row: Totals, requests_end: u64) {
        self.rows.push((row, requests_end));
        if self.rows.len() == ROWS_MAX {
            self.rows = self.rows.chunks(2).map(|pair| (pair[0].0.plus(pair[1].0), pair[1].1)).collect();
            self.width *= 2;
        }
    }
}

/// The history of a run under its workload.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct History {
    before: Stretch,
    measured: Stretch,
    is_measured: bool,
    /// Whether the windows before measuring are passes of a trace.
    by_pass: bool,
    /// Totals when the workload began.
    begun: Totals,
    /// Totals at the end of the last window.
    last: Totals,
    /// The latest totals.
    now: Totals,
    /// The number of requests after which the next totals are due.
    due: u64,
    /// Host pages of the narrowest window.
    narrowest: u64,
    blocks: u64,
    pages_per_block: u32,
    /// Blocks that had been erased by the end of the last pass that moved no page.
    blocks_erased: Option<u64>,
    levels_wear: bool,
    has_cache: bool,
    /// Host pages since the workload began, below which the history is too short.
    host_pages_min: u64,
    /// Whether the rule was met before measuring.
    has_held: bool,
}

/// The state of a figure that depends on cleaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It no longer changes, and the measurement is long enough.
    Settled,
    /// It still changes, or it can't be shown that it does not.
    Transient,
    /// The drive has settled, but the measurement is too short to give the figure to 3 %.
    TooShort,
    /// The host wrote nothing.
    None,
    /// Nothing changes any more, but cleaning moved no page: whatever it erased held nothing valid. So the figures say nothing of
    /// what cleaning costs under a load that needs it.
    NeverCleaned,
}

/// The verdict on the measured write amplification, as the JSON of a run has it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Settled {
    /// The verdict.
    pub verdict: Verdict,
    /// The measured request from which on the drive was settled; 0 if it had settled before. Null if it did not settle.
    pub since_request: Option<u64>,
    /// How often such a verdict was right to 3 %, compared with a run ten times as long. Null unless settled.
    pub confidence: Option<f64>,
    /// Write amplification of the settled part of the run, preconditioning by the workload included. Null unless settled.
    pub write_amplification: Option<f64>,
    /// 95 % interval of the measured write amplification, from the means of batches: its ends. Null if too little was
    /// written to estimate it.
    pub interval: Option<(f64, f64)>,
    /// The largest relative difference between spans of the history. Null if too little was written to estimate it.
    pub drift: Option<f64>,
    /// Mean erases per block since the workload began.
    pub erases_per_block: f64,
    /// The reason for the verdict, in one sentence.
    pub why: String,
    /// The option that would make the run settle. Null if none would.
    pub mend: Option<String>,
}

/// A ratio with its standard error; none if there are too few windows to estimate it.
#[derive(Clone, Copy, Debug)]
struct Estimate {
    mean: f64,
    error: Option<f64>,
    batches: usize,
}

impl Estimate {
    fn half_width(self) -> Option<f64> {
        Some(t_95(self.batches.saturating_sub(1)) * self.error?)
    }

    fn error(self) -> f64 {
        self.error.unwrap_or(0.0)
    }
}

/// The state of the history.
#[derive(Clone, Copy, Debug)]
struct Judgement {
    /// Enough erases, and every difference within the tolerance.
    holds: bool,
    drift: f64,
    /// Host pages, since the workload began, from which on the history agrees with its second half.
    since: f64,
    /// Write amplification from that point on.
    mean: f64,
    why_not: &'static str,
}

impl History {
    /// A history that begins with the workload.
    #[must_use]
    pub fn new(now: Totals, drive: DriveFacts) -> Self {
        let DriveFacts { logical_pages, blocks, pages_per_block, levels_wear, has_cache, is_copy } = drive;
        let narrowest = u64::from(logical_pages / 4096).max(1);
        let stretch = Stretch { rows: Vec::new(), width: narrowest };
        Self {
            before: stretch.clone(),
            measured: stretch,
            is_measured: false,
            by_pass: false,
            begun: now,
            last: now,
            now,
            due: STRIDE,
            narrowest,
            blocks: u64::from(blocks.max(1)),
            pages_per_block,
            blocks_erased: None,
            levels_wear,
            has_cache,
            host_pages_min: if is_copy { CAPACITIES_MIN_OF_COPY * u64::from(logical_pages) } else { 0 },
            has_held: false,
        }
    }

    /// The number of requests in the current phase after which [`History::note`] must be called next. It depends on the
    /// history alone, so that the windows of a run do not depend on the steps in which it is played.
    #[must_use]
    pub fn due(&self) -> u64 {
        self.due
    }

    /// Records the current totals and ends the window if it is wide enough. `requests` counts since the start of
    /// preconditioning by the workload, or of measuring.
    pub fn note(&mut self, now: Totals, requests: u64) {
        self.now = now;
        let stretch = if self.is_measured { &mut self.measured } else { &mut self.before };
        self.due = requests + (stretch.width / self.narrowest * STRIDE).min(STRIDE_MAX);
        let row = now.since(self.last);
        let whole_passes_only = self.by_pass && !self.is_measured;
        if row.host_pages >= stretch.width && !whole_passes_only {
            stretch.push(row, requests);
            self.last = now;
        }
    }

    /// Ends a window because a pass of the trace has ended. From the first such call on, each window before measuring
    /// is one pass. `blocks_erased` counts the blocks that were erased since the drive was new; it is asked for after a pass that
    /// erased blocks and moved no page.
    pub fn pass_ended(&mut self, now: Totals, requests: u64, blocks_erased: impl FnOnce() -> u64) {
        self.now = now;
        let pass = now.since(self.last);
        self.blocks_erased = (pass.erases > 0 && pass.moved == 0).then(blocks_erased);
        if !self.by_pass {
            self.by_pass = true;
            let first = self.before.rows.drain(..).fold(Totals::default(), |sum, (row, _)| sum.plus(row));
            self.before.push(first.plus(pass), requests);
        } else {
            self.before.push(pass, requests);
        }
        self.last = now;
    }

    /// Measuring begins.
    pub fn begin_measuring(&mut self, now: Totals, requests: u64) {
        let row = now.since(self.last);
        // The remainder of a pass does not count as a pass.
        if row.host_pages > 0 && !self.by_pass {
            self.before.push(row, requests);
        }
        (self.last, self.now) = (now, now);
        self.is_measured = true;
        self.due = STRIDE;
    }

    /// Whether the windows before measuring are passes of a trace.
    #[must_use]
    pub fn is_by_pass(&self) -> bool {
        self.by_pass
    }

    /// The windows before measuring: pages written by the host, pages programmed, and blocks erased in each.
    pub fn windows_before(&self) -> impl Iterator<Item = Totals> {
        self.before.rows.iter().map(|(row, _)| *row)
    }

    /// Host pages written since the workload began.
    #[must_use]
    pub fn host_pages(&self) -> u64 {
        self.total().host_pages
    }

    /// Host pages of the windows before measuring.
    #[must_use]
    pub fn host_pages_before(&self) -> u64 {
        self.windows_before().map(|row| row.host_pages).sum()
    }

    /// The counts since the workload began.
    #[must_use]
    pub fn total(&self) -> Totals {
        self.now.since(self.begun)
    }

    fn rows(&self) -> impl Iterator<Item = Totals> {
        self.before.rows.iter().chain(&self.measured.rows).map(|(row, _)| *row)
    }

    /// Mean erases per block since the workload began.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // counts far below 2^53
    pub fn erases_per_block(&self) -> f64 {
        self.total().erases as f64 / self.blocks as f64
    }

    /// Whether the last pass of a trace erased blocks and moved no page.
    #[must_use]
    pub fn last_pass_moved_nothing(&self) -> bool {
        self.blocks_erased.is_some()
    }

    /// Whether the history so far has settled; the answer is remembered.
    pub fn holds(&mut self) -> bool {
        let holds = self.judge(&self.rows().collect::<Vec<_>>()).is_some_and(|judgement| judgement.holds);
        self.has_held |= holds;
        holds
    }

    #[allow(clippy::cast_precision_loss)]
    fn judge(&self, rows: &[Totals]) -> Option<Judgement> {
        let series = Series::new(rows);
        let total = series.total();
        if total == 0.0 {
            return None;
        }
        let erases = rows.iter().map(|row| row.erases).sum::<u64>() as f64 / self.blocks as f64;
        let span = |from: f64, to: f64| series.span(from * total, to * total);
        let (a, bc) = (span(0.25, 0.5)?, span(0.5, 1.0)?);
        let (b, c) = (span(0.5, 0.75)?, span(0.75, 1.0)?);
        let gap = |x: Estimate, y: Estimate| {
            let apart = (x.mean - y.mean).abs() / bc.mean;
            (apart, apart + x.error().hypot(y.error()) / bc.mean)
        };
        let (early, late) = (gap(a, bc), gap(b, c));
        let tolerance = if self.has_held { TOLERANCE_KEPT } else { TOLERANCE };
        let wear_waits = self.levels_wear && rows.iter().all(|row| row.wear_programs == 0);
        let why_not = if erases < ERASES_PER_BLOCK_MIN && !self.passes_move_nothing(rows, 0.25 * total) {
            "few-erases"
        } else if total < self.host_pages_min as f64 {
            "few-pages"
        } else if early.1 > tolerance || late.1 > tolerance {
            if early.0.max(late.0) > tolerance { "drift" } else { "noise" }
        } else if wear_waits {
            "wear"
        } else {
            ""
        };
        // Searches back through halving spans as long as they agree with the second half.
        let mut since = 0.25;
        while since > 1.0 / 1024.0 {
            let Some(earlier) = span(since / 2.0, since) else { break };
            if gap(earlier, bc).1 > tolerance {
                break;
            }
            since /= 2.0;
        }
        let mean = span(since, 1.0)?.mean;
        Some(Judgement { holds: why_not.is_empty(), drift: early.0.max(late.0), since: since * total, mean, why_not })
    }

    /// The verdict on the measured write amplification.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn verdict(&self, whole_passes: bool) -> Settled {
        let rows: Vec<Totals> = if self.by_pass {
            // Windows within a pass show how the trace changes, not how the drive does.
            let measured = self.measured.rows.iter().fold(Totals::default(), |sum, (row, _)| sum.plus(*row));
            // One row for several passes would hide the passes before it.
            let pass = (whole_passes && measured.host_pages > 0 && !self.has_held).then_some(measured);
            self.before.rows.iter().map(|(row, _)| *row).chain(pass).collect()
        } else {
            self.rows().collect()
        };
        let measured_rows: Vec<Totals> = self.measured.rows.iter().map(|(row, _)| *row).collect();
        let measured = Series::new(&measured_rows);
        let erases_per_block = self.erases_per_block();
        let mut settled = Settled {
            verdict: Verdict::Transient,
            since_request: None,
            confidence: None,
            write_amplification: None,
            interval: None,
            drift: None,
            erases_per_block,
            why: String::new(),
            mend: None,
        };
        // Pages of a window that has not ended yet are written as well.
        if measured.total() == 0.0 && self.now.host_pages == self.last.host_pages {
            settled.verdict = Verdict::None;
            settled.why = "the host wrote nothing, so no cleaning decides the figures".into();
            return settled;
        }
        let figure = measured.span(0.0, measured.total()).filter(|estimate| estimate.mean > 0.0);
        settled.interval = figure
            .zip(self.half_width(&rows, &measured))
            .map(|(figure, half)| ((figure.mean - half).max(0.0), figure.mean + half));
        let Some(judgement) = self.judge(&rows) else {
            settled.why = self.too_little(erases_per_block);
            settled.mend = Some(MEND.into());
            return settled;
        };
        settled.drift = Some(judgement.drift);
        if !judgement.holds {
            settled.why = self.unsettled(&judgement, erases_per_block);
            settled.mend = (judgement.why_not != "wear").then(|| MEND.into());
            return settled;
        }
        settled.write_amplification = Some(judgement.mean);
        let before = self.host_pages_before();
        settled.since_request = Some(self.request_at(judgement.since - before as f64));
        if self.moves_nothing(&rows, judgement.since) {
            settled.verdict = Verdict::NeverCleaned;
            let (moved, held) = if self.measured.rows.iter().all(|(row, _)| row.moved == 0) {
                ("no page", "nothing")
            } else {
                ("hardly any page", "hardly anything")
            };
            settled.why = format!(
                "cleaning moved {moved}: the blocks that it erased held {held} valid, so under this load write \
                 amplification does not depend on spare space or on the choice of victims"
            );
            return settled;
        }
        if self.by_pass && !whole_passes {
            settled.verdict = Verdict::Settled;
            settled.confidence = Some(CONFIDENCE);
            settled.why =
                "whole passes of the trace have settled; the figures cover the part of a pass that was measured".into();
            return settled;
        }
        let Some(figure) = figure else {
            settled.verdict = Verdict::TooShort;
            settled.why = "the drive has settled, but too few pages were written while it was measured".into();
            settled.mend = Some("--requests with a larger number".into());
            return settled;
        };
        let off = (figure.mean / judgement.mean - 1.0).abs();
        if self.by_pass && off > TOLERANCE_KEPT {
            settled.why = format!(
                "the measured passes of the trace differ from those before them by {:.1} % in write amplification",
                100.0 * off
            );
            return settled;
        }
        let from_the_start = settled.since_request == Some(0);
        if !from_the_start && off > TOLERANCE_KEPT {
            settled.why = format!(
                "the drive settled at request {}, and the figures include what came before: write amplification of the settled part is \
                 {:.3}",
                settled.since_request.unwrap_or(0),
                judgement.mean
            );
            settled.mend = Some(format!("{MEND}, or --warmup {}", settled.since_request.unwrap_or(0)));
            return settled;
        }
        let half = settled.interval.map(|(low, high)| (high - low) / 2.0 / figure.mean);
        if !self.by_pass && half.is_none_or(|half| half > HALF_WIDTH_MAX) {
            settled.verdict = Verdict::TooShort;
            settled.why = match half {
                Some(half) => format!(
                    "the drive has settled, but the measurement is short: another one of this length may differ by {:.1} %",
                    100.0 * half
                ),
                None => "the drive has settled, but too few pages were written while it was measured".into(),
            };
            let times = half.map_or(10.0, |half| (half / HALF_WIDTH_MAX).powi(2).ceil().clamp(2.0, 1e6));
            settled.mend = Some(format!("--requests, {times:.0} times as many"));
            return settled;
        }
        settled.verdict = Verdict::Settled;
        settled.confidence = Some(CONFIDENCE);
        settled.why = format!(
            "write amplification changed by at most {:.1} % over {} erases per block",
            100.0 * judgement.drift,
            two_digits(erases_per_block)
        );
        settled
    }

    /// Whether the passes of the trace stay as they are: from this many host pages on they moved no page and erased each block that
    /// takes part ([`ROUNDS_MIN`], [`GIVEN_BACK_MIN`]).
    #[allow(clippy::cast_precision_loss)]
    fn passes_move_nothing(&self, rows: &[Totals], since: f64) -> bool {
        let is_simple = self.by_pass && !self.levels_wear && !self.has_cache;
        let Some(blocks_erased) = self.blocks_erased.filter(|_| is_simple) else { return false };
        let (mut at, mut later, mut cleaned) = (0.0, Totals::default(), Totals::default());
        let mut has_begun = false;
        for row in rows {
            if at >= since {
                later = later.plus(*row);
            }
            if has_begun {
                cleaned = cleaned.plus(*row);
            }
            has_begun |= row.erases > 0;
            at += row.host_pages as f64;
        }
        let given_back = cleaned.erases as f64 * f64::from(self.pages_per_block);
        later.moved == 0
            && later.erases as f64 >= ROUNDS_MIN * blocks_erased as f64
            && given_back >= GIVEN_BACK_MIN * cleaned.programs as f64
    }

    /// Whether, from this many host pages on and while measuring, no more pages were moved than [`MOVED_MIN`].
    #[allow(clippy::cast_precision_loss)]
    fn moves_nothing(&self, rows: &[Totals], since: f64) -> bool {
        let few = |sum: Totals| sum.moved as f64 <= MOVED_MIN * sum.host_pages as f64;
        let (mut at, mut later) = (0.0, Totals::default());
        for row in rows {
            at += row.host_pages as f64;
            if at > since {
                later = later.plus(*row);
            }
        }
        few(later) && few(self.measured.rows.iter().fold(Totals::default(), |sum, (row, _)| sum.plus(*row)))
    }

    /// Half the width of the 95 % interval of the measured figure. The means of batches within a short measurement
    /// differ less than whole measurements do. So stretches of the same length from the second half of the history
    /// count as well. For a trace, the differences between passes count.
    fn half_width(&self, rows: &[Totals], measured: &Series) -> Option<f64> {
        let history = Series::new(rows);
        let (half, total) = (history.total() / 2.0, history.total());
        if self.by_pass {
            return history.span(half, total).and_then(Estimate::half_width);
        }
        let within = measured.span(0.0, measured.total()).and_then(Estimate::half_width);
        let across = history.spread(half, total, measured.total());
        match (within, across) {
            (Some(within), Some(across)) => Some(within.max(across)),
            (within, across) => within.or(across),
        }
    }

    fn too_little(&self, erases_per_block: f64) -> String {
        format!("too little was written to decide: {} erases per block", two_digits(erases_per_block))
    }

    fn unsettled(&self, judgement: &Judgement, erases_per_block: f64) -> String {
        match judgement.why_not {
            "few-erases" if erases_per_block == 0.0 => "no block was erased: cleaning has not begun".into(),
            "few-erases" => format!(
                "blocks were erased {} times on average; below {ERASES_PER_BLOCK_MIN} the figures still depend on the initial state",
                two_digits(erases_per_block)
            ),
            "few-pages" => format!(
                "fewer than {CAPACITIES_MIN_OF_COPY} capacities were written; below that the figures still depend on the small drive that \
                 this one began as a copy of"
            ),
            "drift" => {
                format!(
                    "write amplification still changes: by {:.1} % while the history doubled",
                    100.0 * judgement.drift
                )
            }
            "wear" => "wear levelling has moved no page yet; write amplification changes when it begins".into(),
            _ => "write amplification varies too much to tell a trend from chance".into(),
        }
    }

    /// The measured request by which this many host pages had been written since measuring began.
    #[allow(clippy::cast_precision_loss)]
    fn request_at(&self, host_pages: f64) -> u64 {
        let mut written = 0.0;
        let mut at = 0;
        for (row, requests_end) in &self.measured.rows {
            if written >= host_pages {
                break;
            }
            written += row.host_pages as f64;
            at = *requests_end;
        }
        at
    }
}

/// The two-sided 95 % quantile of Student's t.
fn t_95(degrees: usize) -> f64 {
    degrees.checked_sub(1).and_then(|at| T_95.get(at)).copied().unwrap_or(if degrees == 0 {
        f64::INFINITY
    } else {
        2.1
    })
}

const MEND: &str = "--precondition workload";

fn two_digits(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        _ if value < 0.1 => "less than 0.1".to_owned(),
        _ if value < 10.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Windows with their running sums.
struct Series {
    /// Host pages and programs up to the end of each window.
    sums: Vec<(f64, f64)>,
}

impl Series {
    #[allow(clippy::cast_precision_loss)]
    fn new(rows: &[Totals]) -> Self {
        let mut sums = Vec::with_capacity(rows.len() + 1);
        let mut at = (0.0, 0.0);
        sums.push(at);
        for row in rows {
            at = (at.0 + row.host_pages as f64, at.1 + row.programs as f64);
            sums.push(at);
        }
        Self { sums }
    }

    fn total(&self) -> f64 {
        self.sums.last().map_or(0.0, |(host, _)| *host)
    }

    /// The edge of a window nearest to this many host pages.
    fn edge(&self, host: f64) -> usize {
        let after = self.sums.partition_point(|(at, _)| *at < host).min(self.sums.len() - 1);
        if after > 0 && host - self.sums[after - 1].0 < self.sums[after].0 - host { after - 1 } else { after }
    }

    /// Programs over host pages between two points, with the error of batch means; none if no window lies between.
    #[allow(clippy::cast_precision_loss)]
    fn span(&self, from: f64, to: f64) -> Option<Estimate> {
        let (first, last) = (self.edge(from), self.edge(to));
        let host = |a: usize, b: usize| self.sums[b].0 - self.sums[a].0;
        let programs = |a: usize, b: usize| self.sums[b].1 - self.sums[a].1;
        if last <= first || host(first, last) <= 0.0 {
            return None;
        }
        let mean = programs(first, last) / host(first, last);
        let mut edges: Vec<usize> = (0..=BATCHES)
            .map(|k| {
                let at = self.sums[first].0 + host(first, last) * k as f64 / BATCHES as f64;
                self.edge(at).clamp(first, last)
            })
            .collect();
        edges.dedup();
        let batches = edges.len() - 1;
        if batches < 2 {
            return Some(Estimate { mean, error: None, batches });
        }
        let size = host(first, last) / batches as f64;
        let squares: f64 = edges
            .windows(2)
            .map(|pair| ((programs(pair[0], pair[1]) - mean * host(pair[0], pair[1])) / size).powi(2))
            .sum();
        let n = batches as f64;
        Some(Estimate { mean, error: Some((squares / (n - 1.0) / n).sqrt()), batches })
    }

    /// Half the width of the 95 % interval of one stretch of `length` host pages, from such stretches between two
    /// points; none if there are fewer than four.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn spread(&self, from: f64, to: f64, length: f64) -> Option<f64> {
        let count = ((to - from) / length).floor().min(64.0) as usize;
        if count < 4 {
            return None;
        }
        let means: Vec<f64> = (0..count)
            .filter_map(|k| {
                let end = to - k as f64 * length;
                self.span(end - length, end).map(|stretch| stretch.mean)
            })
            .collect();
        let n = means.len() as f64;
        if means.len() < 4 {
            return None;
        }
        let mean = means.iter().sum::<f64>() / n;
        let variance = means.iter().map(|each| (each - mean).powi(2)).sum::<f64>() / (n - 1.0);
        Some(t_95(means.len() - 1) * variance.sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The history of a drive of so many blocks of 1,000 pages before its first window.
    fn started(blocks: u32, levels_wear: bool) -> History {
        let drive = DriveFacts {
            logical_pages: 4_096_000,
            blocks,
            pages_per_block: 1000,
            levels_wear,
            has_cache: false,
            is_copy: false,
        };
        History::new(Totals::default(), drive)
    }

    /// A history of windows of 1,000 host pages on a drive of 100 blocks, given the write amplification of each.
    fn history(amplification: impl Fn(f64) -> f64, windows: u32, wear: bool) -> History {
        let mut history = started(100, wear);
        let mut now = Totals::default();
        for n in 0..windows {
            now.host_pages += 1000;
            now.programs += (1000.0 * amplification(f64::from(n))) as u64;
            now.erases += 20;
            history.note(now, u64::from(n + 1) * 1000);
        }
        history
    }

    #[test]
    fn what_stays_the_same_has_settled_and_what_moves_has_not() {
        assert!(history(|_| 2.5, 40, false).holds());
        // From 2 to 3 in a straight line: the later half lies 17 % above the quarter before it.
        assert!(!history(|n| 2.0 + n / 400.0, 400, false).holds());
        // An exponential approach, early and late.
        let approach = |n: f64| 3.0 - 2.0 * (-n / 50.0).exp();
        assert!(!history(approach, 100, false).holds());
        assert!(history(approach, 1000, false).holds());
        // A logarithmic approach: 3.5 % per doubling never meets the rule, 0.7 % does.
        assert!(!history(|n| 2.0 + 0.1 * (n + 1.0).log2(), 2000, false).holds());
        assert!(history(|n| 2.0 + 0.02 * (n + 1.0).log2(), 2000, false).holds());
        // An oscillation as long as the history, and one a hundred times shorter.
        assert!(!history(|n| 2.5 + 0.3 * (n / 60.0).sin(), 400, false).holds());
        assert!(history(|n| 2.5 + 0.3 * (n / 0.6).sin(), 400, false).holds());
    }

    #[test]
    fn few_erases_and_wear_levelling_that_waits_are_no_settled_state() {
        // Twenty erases per window and a hundred blocks: two erases per block after ten windows.
        assert!(!history(|_| 2.5, 9, false).holds());
        assert!(history(|_| 2.5, 10, false).holds());
        assert!(!history(|_| 2.5, 400, true).holds());
    }

    #[test]
    fn a_figure_that_holds_the_start_says_from_where_on_it_is_settled() {
        let mut history = started(100, false);
        history.begin_measuring(Totals::default(), 0);
        let mut now = Totals::default();
        for n in 0_u64..1000 {
            now.host_pages += 1000;
            now.programs += if n < 200 { 1000 } else { 3000 };
            now.moved += if n < 200 { 0 } else { 2000 };
            now.erases += 20;
            history.note(now, (n + 1) * 500);
        }
        let settled = history.verdict(false);
        assert_eq!(settled.verdict, Verdict::Transient, "{settled:?}");
        assert_eq!(settled.write_amplification, Some(3.0));
        assert_eq!(settled.since_request, Some(125_000), "the quarter that begins after the step");
        assert!(settled.mend.unwrap().contains("--warmup 125000"));
    }

    #[test]
    fn a_drive_that_moves_no_page_is_not_called_settled() {
        // Pages moved, per 10,000 written, from the first window on or in the first tenth alone.
        let verdict = |moved: u64, first: u64| {
            let mut history = started(100, false);
            history.begin_measuring(Totals::default(), 0);
            let mut now = Totals::default();
            for n in 0_u64..1000 {
                let more = if n < 100 { moved + first } else { moved };
                now.host_pages += 10_000;
                now.programs += 10_000 + more;
                now.moved += more;
                now.erases += 20;
                history.note(now, (n + 1) * 500);
            }
            history.verdict(false)
        };
        assert_eq!(
            [0, 4, 6, 5000].map(|moved| verdict(moved, 0).verdict),
            [
                Verdict::NeverCleaned, // nothing
                Verdict::NeverCleaned, // a write amplification of 1.000
                Verdict::Settled,      // one of 1.001
                Verdict::Settled,
            ]
        );
        assert_eq!(verdict(0, 5000).verdict, Verdict::Transient, "it is measured with the moves of its beginning");
        assert!(verdict(0, 0).why.starts_with("cleaning moved no page: "));
        assert!(verdict(4, 0).why.starts_with("cleaning moved hardly any page: "));
    }

    #[test]
    fn the_first_pages_are_written_though_they_fill_no_window() {
        let mut history = started(100, false);
        history.begin_measuring(Totals::default(), 0);
        assert_eq!(history.verdict(false).verdict, Verdict::None);
        history.note(Totals { host_pages: 1, programs: 1, ..Totals::default() }, 1);
        let settled = history.verdict(false);
        assert_eq!((settled.verdict, settled.interval), (Verdict::Transient, None));
        assert_eq!(settled.why, "too little was written to decide: 0 erases per block");
    }

    #[test]
    fn passes_of_a_trace_are_judged_as_wholes() {
        let mut history = started(10, false);
        let mut now = Totals::default();
        for pass in 1..=8 {
            for part in [1000, 9000] {
                now.host_pages += 5000;
                now.programs += 5000 + part;
                now.erases += 5;
                now.moved += part;
                history.note(now, pass);
            }
            history.pass_ended(now, pass, || unreachable!("the passes move pages"));
        }
        assert!(history.is_by_pass() && history.holds());
        assert_eq!(history.windows_before().count(), 8);
    }

    #[test]
    fn passes_that_move_nothing_need_turns_of_all_blocks_that_take_part() {
        // A drive of 1,000 blocks; each pass writes as much as five blocks hold and erases some of the 60 that take part.
        let after = |passes: u64, moves_in: u64, erases: u64, wear: bool| {
            let mut history = started(1000, wear);
            let mut now = Totals::default();
            for pass in 1..=passes {
                now.host_pages += 5000;
                now.programs += 5000;
                now.moved += u64::from(pass == moves_in);
                now.erases += erases;
                history.pass_ended(now, pass, || 60);
            }
            history.holds()
        };
        // Twenty-four passes erase 90 blocks in their last three quarters.
        assert_eq!([23, 24, 40].map(|passes| after(passes, 0, 5, false)), [false, true, true]);
        assert_eq!([6, 7, 24].map(|moves_in| after(24, moves_in, 5, false)), [true, false, false]);
        assert!(!after(40, 0, 4, false), "a fifth of what is written fills blocks that were empty");
        assert!(!after(40, 0, 5, true), "wear levelling has yet to begin");
    }
}
