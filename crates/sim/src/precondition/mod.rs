//! Brings a drive into a known state before it is measured.

mod laid_out;
mod scaled;
mod stationary;

pub(crate) use scaled::{Scale, SmallSource, copied, small_of};

use crate::simulation::ScaledStart;
use flashwright_block::{Ahead, BlockDevice, IoError, Popularity, Request, RequestKind, Rng, Seed, SourceError, below};
use flashwright_ftl::{Counters, LpnRun, OpKind, ZoneLayout};
use flashwright_nand::Lpn;
use flashwright_ssd::Ssd;
use flashwright_workload::generate::Permutation;
use laid_out::LaidOut;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// How a drive is preconditioned before a run. No time passes and nothing is measured.
///
/// ```
/// # use flashwright_sim::Precondition;
/// assert_eq!("random:capacities=3".parse(), Ok(Precondition::Random { capacities: 3.0 }));
/// assert_eq!("steady".parse(), Ok(Precondition::Steady));
/// assert!("full".parse::<Precondition>().is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Precondition {
    /// Nothing: the drive is erased.
    #[default]
    Empty,
    /// The whole logical space is written once, in order.
    Sequential,
    /// The whole logical space is written once in random order; further writes go to pages drawn uniformly.
    Random {
        /// Page writes divided by logical pages, at least 1.
        capacities: f64,
    },
    /// Two sequential fills, then rounds of uniform random writes of half a capacity until the steady-state rule of the
    /// SNIA SSS PTS holds for write amplification over five rounds: range at most 20 % and slope at most 10 % of the
    /// mean. Gives up after 50 rounds and reports it.
    Steady,
    /// The steady state of uniform random writes under page mapping, laid out from what theory says of it instead of reached by
    /// writing: each physical page is written about once, then half a capacity of random writes follows. Blocks have hardly been
    /// erased.
    LaidOut,
    /// One sequential fill, then the workload itself, not measured, until write amplification has settled under it
    /// ([`crate::History`]); a trace is repeated. Gives up after a given number of capacities of host writes and
    /// reports it.
    Workload {
        /// Largest number of page writes divided by logical pages, not counting the fill; at least 1.
        capacities: f64,
        /// Whether a smaller drive settles first and the drive begins as a copy of it, larger by the same popularity of pages, in place
        /// of a sequential fill. Where that can't be, it begins with the fill, and the report says why.
        scaled: bool,
    },
    /// [`Precondition::Workload`] if the workload can be played beforehand, else [`Precondition::Sequential`].
    Auto,
}

/// Default number of capacities of host writes after which preconditioning by the workload gives up.
const CAPACITIES_MAX: f64 = 64.0;

impl Precondition {
    /// Resolves `auto`: programs that react to the drive can start only once, so they can't be played beforehand.
    #[must_use]
    pub fn resolved(self, is_interactive: bool) -> Self {
        match self {
            Self::Auto if is_interactive => Self::Sequential,
            Self::Auto => Self::Workload { capacities: CAPACITIES_MAX, scaled: false },
            other => other,
        }
    }
}

impl FromStr for Precondition {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let fail = || {
            format!(
                "precondition: found {text:?}, expected auto, workload, empty, sequential, random or steady; workload and \
                 random take :capacities=N with N of 1 or more, workload takes :scaled, and steady takes :laid-out"
            )
        };
        let capacities = |settings: &str| {
            settings
                .strip_prefix("capacities=")
                .and_then(|number| number.parse().ok())
                .filter(|capacities| (1.0..=1e6).contains(capacities))
                .ok_or_else(fail)
        };
        match text.split_once(':') {
            None => match text {
                "empty" => Ok(Self::Empty),
                "sequential" => Ok(Self::Sequential),
                "random" => Ok(Self::Random { capacities: 1.0 }),
                "steady" => Ok(Self::Steady),
                "workload" => Ok(Self::Workload { capacities: CAPACITIES_MAX, scaled: false }),
                "auto" => Ok(Self::Auto),
                _ => Err(fail()),
            },
            Some(("steady", "laid-out")) => Ok(Self::LaidOut),
            Some(("random", settings)) => Ok(Self::Random { capacities: capacities(settings)? }),
            Some(("workload", "scaled")) => Ok(Self::Workload { capacities: CAPACITIES_MAX, scaled: true }),
            Some(("workload", settings)) => {
                let (scaled, settings) =
                    settings.strip_prefix("scaled,").map_or((false, settings), |rest| (true, rest));
                Ok(Self::Workload { capacities: capacities(settings)?, scaled })
            }
            Some(_) => Err(fail()),
        }
    }
}

impl fmt::Display for Precondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("empty"),
            Self::Sequential => f.write_str("sequential"),
            Self::Random { capacities } if *capacities == 1.0 => f.write_str("random"),
            Self::Random { capacities } => write!(f, "random:capacities={capacities}"),
            Self::Steady => f.write_str("steady"),
            Self::LaidOut => f.write_str("steady:laid-out"),
            Self::Workload { capacities, scaled } => {
                let scaled = scaled.then(|| "scaled".to_owned());
                let capacities = (*capacities != CAPACITIES_MAX).then(|| format!("capacities={capacities}"));
                let settings: Vec<String> = scaled.into_iter().chain(capacities).collect();
                write!(f, "workload{}{}", if settings.is_empty() { "" } else { ":" }, settings.join(","))
            }
            Self::Auto => f.write_str("auto"),
        }
    }
}

/// Rounds of the steady-state window, and the largest number of rounds tried.
const WINDOW: usize = 5;
const ROUNDS_MAX: usize = 50;

/// Pages drawn at a time, and how far ahead of its write the drive is told of a page, so that it can fetch its tables.
const BATCH: u64 = 256;
const LOOK_AHEAD: usize = 16;

fn expect(ssd: &Ssd, lpn: u32) {
    let sectors = ssd.sectors_per_page();
    let first_sector = u64::from(lpn) * sectors;
    let sectors = u32::try_from(sectors).expect("sectors of a page");
    ssd.expect(&[Request { kind: RequestKind::Write, first_sector, sectors, ..Request::default() }], Ahead::Far);
}

/// Preconditioning in steps.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Preconditioning {
    wanted: Precondition,
    pages: u64,
    done: u64,
    total: u64,
    /// Of a zoned drive, whose pages are those that its zones have room for.
    zones: Option<ZoneLayout>,
    order: Permutation,
    rng: Rng,
    round_start: Counters,
    rounds: Vec<f64>,
    steady: Option<bool>,
    laid_out: Option<LaidOut>,
    /// How `workload:scaled` began; none before, and none otherwise.
    scaled: Option<ScaledStart>,
    /// That of the workload, while a scaled layout is under way.
    #[serde(skip)]
    popularity: Option<Arc<dyn Popularity>>,
    /// Logical pages that are written next.
    #[serde(skip)]
    batch: Vec<u32>,
}

impl Preconditioning {
    /// Prepares to bring a drive into the wanted state.
    ///
    /// # Errors
    /// [`SourceError`] naming a setting of the drive for which that state is not known.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    pub fn new(wanted: Precondition, ssd: &Ssd, seed: Seed) -> Result<Self, SourceError> {
        let zones = ssd.zone_layout();
        let pages =
            zones.map_or(u64::from(ssd.logical_pages()), |zones| u64::from(zones.count) * u64::from(zones.capacity));
        if zones.is_some()
            && matches!(wanted, Precondition::Random { .. } | Precondition::Steady | Precondition::LaidOut)
        {
            return Err(SourceError(format!(
                "precondition: found {wanted}, expected empty, sequential or workload: zones are written in order"
            )));
        }
        let mut rng = seed.stream("precondition");
        let order = Permutation::new(pages, &mut rng);
        let laid_out = if wanted == Precondition::LaidOut { Some(LaidOut::new(ssd, &mut rng)?) } else { None };
        let total = match wanted {
            Precondition::Empty => 0,
            Precondition::Sequential | Precondition::Workload { .. } | Precondition::Auto => pages,
            Precondition::Random { capacities } => (pages as f64 * capacities).round() as u64,
            Precondition::Steady => 2 * pages + ROUNDS_MAX as u64 * round_pages(pages),
            Precondition::LaidOut => laid_out.as_ref().map_or(0, LaidOut::pages) + round_pages(pages),
        };
        Ok(Self {
            wanted,
            pages,
            done: 0,
            total,
            zones,
            order,
            rng,
            round_start: Counters::default(),
            rounds: Vec::new(),
            steady: None,
            laid_out,
            scaled: None,
            popularity: None,
            batch: Vec::new(),
        })
    }

    /// Pages written, and the largest number of pages to write.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        (self.done, self.total)
    }

    /// For `steady`: write amplification of each round, and whether the rule held in the end.
    #[must_use]
    pub fn rounds(&self) -> (&[f64], Option<bool>) {
        (&self.rounds, self.steady)
    }

    /// Whether a small drive may still settle for it.
    pub(crate) fn may_be_scaled(&self) -> bool {
        matches!(self.wanted, Precondition::Workload { scaled: true, .. }) && self.scaled.is_none()
    }

    /// How `workload:scaled` began; none before, and none otherwise.
    #[must_use]
    pub fn scaled(&self) -> Option<&ScaledStart> {
        self.scaled.as_ref()
    }

    /// Fills the drive in order after all, for this reason.
    pub(crate) fn stay_plain(&mut self, refused: String) {
        self.scaled = Some(ScaledStart { refused: Some(refused), times_smaller: None, capacities: None, ended: None });
    }

    /// Lays the drive out in place of a fill in order.
    pub(crate) fn lay_out(&mut self, plan: LaidOut, popularity: Arc<dyn Popularity>, start: ScaledStart) {
        self.total = plan.pages();
        (self.laid_out, self.popularity, self.scaled) = (Some(plan), Some(popularity), Some(start));
    }

    /// Provides the workload's popularity to a layout that was saved without.
    pub(crate) fn remember(&mut self, popularity: impl FnOnce() -> Option<Arc<dyn Popularity>>) {
        if self.scaled.is_some() && self.laid_out.is_some() && self.popularity.is_none() {
            self.popularity = popularity();
        }
    }

    /// Writes up to `pages` pages; returns true when the drive is in the wanted state.
    ///
    /// # Errors
    /// [`IoError`] when the drive can't take a page.
    pub fn step(&mut self, ssd: &mut Ssd, pages: u64) -> Result<bool, IoError> {
        let stop = self.done.saturating_add(pages);
        while self.done < stop.min(self.total) {
            self.draw_batch(stop);
            let batch = std::mem::take(&mut self.batch);
            batch.iter().take(LOOK_AHEAD).for_each(|lpn| expect(ssd, *lpn));
            for (at, lpn) in batch.iter().enumerate() {
                batch.get(at + LOOK_AHEAD).iter().for_each(|ahead| expect(ssd, **ahead));
                ssd.precondition(LpnRun { first: Lpn(*lpn), pages: 1, stream: 0 })?;
            }
            self.batch = batch;
            if self.wanted == Precondition::Steady && self.end_of_round(ssd) {
                self.total = self.done;
            }
        }
        Ok(self.done == self.total)
    }

    /// Draws the next pages, not beyond a round of `steady`.
    fn draw_batch(&mut self, stop: u64) {
        let round = round_pages(self.pages);
        let to_round = match self.done.checked_sub(2 * self.pages) {
            _ if self.wanted != Precondition::Steady => u64::MAX,
            None => 2 * self.pages - self.done,
            Some(random) => round - random % round,
        };
        self.batch.clear();
        for _ in 0..to_round.min(BATCH) {
            if self.done >= stop.min(self.total) {
                break;
            }
            let Some(page) = self.next_page() else {
                self.total = self.done;
                break;
            };
            self.batch.push(page);
            self.done += 1;
        }
    }

    #[allow(clippy::cast_possible_truncation)] // logical pages are counted in 32 bits
    fn next_page(&mut self) -> Option<u32> {
        if let Some(plan) = &mut self.laid_out {
            if let Some(page) = plan.next_page(self.popularity.as_deref(), &mut self.rng) {
                return Some(page);
            }
            (self.laid_out, self.popularity) = (None, None);
            if self.wanted != Precondition::LaidOut {
                return None;
            }
            self.total = self.done + round_pages(self.pages);
        }
        let in_order = (self.done % self.pages) as u32;
        Some(match self.wanted {
            Precondition::LaidOut => below(&mut self.rng, self.pages) as u32,
            Precondition::Random { .. } if self.done < self.pages => self.order.at(self.done) as u32,
            Precondition::Random { .. } => below(&mut self.rng, self.pages) as u32,
            Precondition::Steady if self.done >= 2 * self.pages => below(&mut self.rng, self.pages) as u32,
            _ => {
                self.zones.map_or(in_order, |zones| zones.start(in_order / zones.capacity) + in_order % zones.capacity)
            }
        })
    }

    /// Records the rounds of `steady`; returns true when the search is over.
    #[allow(clippy::cast_precision_loss)]
    fn end_of_round(&mut self, ssd: &Ssd) -> bool {
        let round = round_pages(self.pages);
        let Some(random) = self.done.checked_sub(2 * self.pages) else { return false };
        if random == 0 {
            self.round_start = ssd.flash().counters().clone();
        }
        if random == 0 || !random.is_multiple_of(round) {
            return false;
        }
        let programs = ssd.flash().counters().since(&self.round_start).total(OpKind::Program);
        self.round_start = ssd.flash().counters().clone();
        self.rounds.push(programs as f64 / round as f64);
        let holds = self.rounds.len() >= WINDOW && is_steady(&self.rounds[self.rounds.len() - WINDOW..]);
        if holds || self.rounds.len() == ROUNDS_MAX {
            self.steady = Some(holds);
        }
        self.steady.is_some()
    }
}

fn round_pages(pages: u64) -> u64 {
    (pages / 2).max(1)
}

/// The steady-state rule of the SNIA Solid State Storage Performance Test Specification over one window: the range is at
/// most 20 % of the mean, and the least-squares line rises or falls by at most 10 % of the mean over the window.
///
/// ```
/// # use flashwright_sim::is_steady;
/// assert!(is_steady(&[100.0, 95.0, 104.0, 98.0, 101.0]));
/// assert!(!is_steady(&[110.0, 106.0, 103.0, 99.0, 96.0])); // the line falls by 13.6 %
/// assert!(!is_steady(&[100.0, 90.0, 112.0, 95.0, 103.0])); // the range is 22 %
/// ```
#[must_use]
#[allow(clippy::cast_precision_loss)]
pub fn is_steady(window: &[f64]) -> bool {
    let n = window.len() as f64;
    let mean = window.iter().sum::<f64>() / n;
    let (low, high) = window.iter().fold((f64::MAX, f64::MIN), |(low, high), x| (low.min(*x), high.max(*x)));
    let middle = (n - 1.0) / 2.0;
    let (mut above, mut below) = (0.0, 0.0);
    for (at, value) in window.iter().enumerate() {
        above += (at as f64 - middle) * (value - mean);
        below += (at as f64 - middle) * (at as f64 - middle);
    }
    high - low <= 0.2 * mean && (above / below * (n - 1.0)).abs() <= 0.1 * mean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips() {
        for text in [
            "empty",
            "sequential",
            "random",
            "random:capacities=2.5",
            "steady",
            "steady:laid-out",
            "workload",
            "workload:capacities=9",
            "workload:scaled",
            "workload:scaled,capacities=9",
            "auto",
        ] {
            assert_eq!(text.parse::<Precondition>().unwrap().to_string(), text);
        }
        for bad in [
            "",
            "random:capacities=0.5",
            "random:x=1",
            "sequential:2",
            "workload:capacities=0",
            "workload:scaledX",
            "workload:scaled,",
            "auto:1",
        ] {
            assert!(bad.parse::<Precondition>().unwrap_err().contains("expected auto"), "{bad}");
        }
    }
}
