//! Reads, writes, trims and flushes: how their mix drifts, and which follows which.
//!
//! Windows of 256 requests that move data are at one of eight levels of the share of writes. Levels are a Markov chain;
//! within a level the next direction depends on the last and on whether the gap to the last request was short.

use super::gaps::SHORT;
use flashwright_block::{RequestClass, RequestKind, Rng, chance, unit_interval};
use serde::{Deserialize, Serialize};

/// Requests of a window.
const WINDOW: usize = 256;
/// Upper ends of the levels' shares of writes; the last is 1.
const LEVELS: [f64; 7] = [0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98];
pub(super) const LEVEL_COUNT: usize = 8;

fn level_of(share: f64) -> usize {
    LEVELS.iter().position(|end| share < *end).unwrap_or(LEVELS.len())
}

/// The mix of requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Mix {
    /// Share of writes among reads and writes.
    pub write: f64,
    /// Share of windows at each level.
    pub levels: Vec<f64>,
    /// Row by row: share of windows at each level that follow one at this level.
    pub next_level: Vec<Vec<f64>>,
    /// Row by row for each level: share of writes after a read and a short gap, a read and a long one, a write and a
    /// short one, a write and a long one.
    pub write_after: Vec<Vec<f64>>,
    /// Share of trims after a read, a write, a trim, a flush.
    pub trim_after: Vec<f64>,
    /// Share of flushes after a read, a write, a trim, a flush.
    pub flush_after: Vec<f64>,
    /// Share of writes that are forced to the medium.
    pub forced: f64,
}

/// Counts of a [`Mix`].
#[derive(Default)]
pub(super) struct MixCounts {
    /// Of the data requests so far: bit 0 write, bit 1 after a short gap.
    data: Vec<u8>,
    after: [u64; 4],
    trims: [u64; 4],
    flushes: [u64; 4],
    last: Option<RequestClass>,
    forced: u64,
}

impl MixCounts {
    pub(super) fn add(&mut self, kind: RequestKind, gap_ns: u64, forced: bool) {
        if kind.class() == RequestClass::Manage {
            return; // a model has no zones
        }
        if let Some(last) = self.last {
            self.after[last as usize] += 1;
            self.trims[last as usize] += u64::from(kind == RequestKind::Trim);
            self.flushes[last as usize] += u64::from(kind == RequestKind::Flush);
        }
        if kind.moves_data() {
            let write = kind.class() == RequestClass::Write;
            self.data.push(u8::from(write) | u8::from(gap_ns < SHORT) << 1);
            self.forced += u64::from(forced && write);
        }
        self.last = Some(kind.class());
    }

    /// The mix, and whether the trace is too short to know how it drifts.
    pub(super) fn mix(&self) -> (Mix, bool) {
        let share = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        let writes = |part: &[u8]| part.iter().filter(|data| **data & 1 == 1).count();
        let all = writes(&self.data);
        let write = share(all as u64, self.data.len() as u64);
        // A last part of less than half a window has no level.
        let windows: Vec<&[u8]> = self
            .data
            .chunks(WINDOW)
            .enumerate()
            .filter(|(i, c)| *i == 0 || c.len() >= WINDOW / 2)
            .map(|(_, c)| c)
            .collect();
        let levels: Vec<usize> =
            windows.iter().map(|part| level_of(share(writes(part) as u64, part.len() as u64))).collect();
        let mut seen = [0u64; LEVEL_COUNT];
        let mut next = [[0u64; LEVEL_COUNT]; LEVEL_COUNT];
        levels.iter().for_each(|level| seen[*level] += 1);
        levels.windows(2).for_each(|pair| next[pair[0]][pair[1]] += 1);
        let mut after = [[(0u64, 0u64); 4]; LEVEL_COUNT];
        let mut of_level = [(0u64, 0u64); LEVEL_COUNT];
        for (part, level) in windows.iter().zip(&levels) {
            for pair in part.windows(2) {
                let state = usize::from(pair[0] & 1) * 2 + usize::from(pair[1] & 2 == 0);
                after[*level][state].0 += u64::from(pair[1] & 1);
                after[*level][state].1 += 1;
                of_level[*level].0 += u64::from(pair[1] & 1);
                of_level[*level].1 += 1;
            }
        }
        let stationary: Vec<f64> = seen.iter().map(|count| share(*count, levels.len() as u64)).collect();
        let mix = Mix {
            write,
            next_level: (0..LEVEL_COUNT)
                .map(|from| {
                    // One more window that follows the overall shares, so that no level is a dead end.
                    let total = next[from].iter().sum::<u64>() as f64 + 1.0;
                    (0..LEVEL_COUNT).map(|to| (next[from][to] as f64 + stationary[to]) / total).collect()
                })
                .collect(),
            write_after: (0..LEVEL_COUNT)
                .map(|level| {
                    let mean = if of_level[level].1 == 0 { write } else { share(of_level[level].0, of_level[level].1) };
                    // Eight more requests with the level's mean share.
                    after[level]
                        .iter()
                        .map(|(part, whole)| (*part as f64 + 8.0 * mean) / (*whole as f64 + 8.0))
                        .collect()
                })
                .collect(),
            levels: stationary,
            trim_after: shares_after(&self.trims, &self.after),
            flush_after: shares_after(&self.flushes, &self.after),
            forced: share(self.forced, all as u64),
        };
        (mix, levels.len() < 20)
    }
}

/// Shares after each kind; after one that the trace never has, those after all kinds.
fn shares_after(of: &[u64; 4], after: &[u64; 4]) -> Vec<f64> {
    let mean = of.iter().sum::<u64>() as f64 / after.iter().sum::<u64>().max(1) as f64;
    let share = |last: usize| if after[last] == 0 { mean } else { of[last] as f64 / after[last] as f64 };
    (0..4).map(share).collect()
}

/// Draws kinds.
pub(super) struct Kinds {
    mix: Mix,
    rng: Rng,
    level: usize,
    left: usize,
    last: RequestKind,
    last_write: bool,
    /// Shares of writes and trims to use instead.
    fixed: Option<(f64, f64)>,
    steering: Option<Steering>,
    share_short: f64,
}

/// What keeps the share of writes at a given one: the odds of a write are shifted by how many are missing so far. The drift
/// between levels, and runs of reads and of writes, stay.
struct Steering {
    share: f64,
    /// Writes that are missing.
    missing: f64,
    /// Factor on the odds of a write in this window.
    odds: f64,
}

/// So many missing writes multiply the odds of a write by e: some windows, so that single windows drift as they did.
const STEERED_OVER: f64 = 2048.0;

fn pick(shares: &[f64], rng: &mut Rng) -> usize {
    let mut draw = unit_interval(rng) * shares.iter().sum::<f64>();
    for (i, share) in shares.iter().enumerate() {
        draw -= share;
        if draw < 0.0 {
            return i;
        }
    }
    shares.iter().rposition(|share| *share > 0.0).unwrap_or(0)
}

impl Kinds {
    /// `share_short` is the share of short gaps, for requests without arrivals.
    /// `steered` is the share of writes that is kept to, if not the mix's own.
    pub(super) fn new(
        mix: &Mix,
        fixed: Option<(f64, f64)>,
        steered: Option<f64>,
        share_short: f64,
        mut rng: Rng,
    ) -> Self {
        let level = pick(&mix.levels, &mut rng);
        let last_write = chance(&mut rng, mix.write);
        let last = if last_write { RequestKind::Write } else { RequestKind::Read };
        let steering = steered.map(|share| {
            let own = mix.write.clamp(1e-3, 1.0 - 1e-3);
            // Begins with as many missing as make up the difference to the mix.
            let missing = STEERED_OVER * libm::log(share.max(1e-6) * (1.0 - own) / (own * (1.0 - share).max(1e-6)));
            Steering { share, missing, odds: libm::exp(missing / STEERED_OVER) }
        });
        Kinds { mix: mix.clone(), rng, level, left: WINDOW, last, last_write, fixed, steering, share_short }
    }

    /// The next kind, `gap_ns` after the last request if there are arrivals.
    #[inline]
    pub(super) fn next(&mut self, gap_ns: Option<u64>) -> RequestKind {
        if let Some((write, trim)) = self.fixed {
            let draw = unit_interval(&mut self.rng);
            return if draw < write {
                RequestKind::Write
            } else if draw < write + trim {
                RequestKind::Trim
            } else {
                RequestKind::Read
            };
        }
        let last = self.last as usize;
        let (trim, flush) = (self.mix.trim_after[last], self.mix.flush_after[last]);
        if trim + flush > 0.0 {
            let draw = unit_interval(&mut self.rng);
            if draw < trim + flush {
                self.last = if draw < trim { RequestKind::Trim } else { RequestKind::Flush };
                return self.last;
            }
        }
        if self.left == 0 {
            self.level = pick(&self.mix.next_level[self.level], &mut self.rng);
            self.left = WINDOW;
            if let Some(steering) = &mut self.steering {
                steering.odds = libm::exp((steering.missing / STEERED_OVER).clamp(-20.0, 20.0));
            }
        }
        self.left -= 1;
        let short = gap_ns.map_or_else(|| chance(&mut self.rng, self.share_short), |gap| gap < SHORT);
        let state = usize::from(self.last_write) * 2 + usize::from(!short);
        let mut share = self.mix.write_after[self.level][state];
        if let Some(steering) = &self.steering {
            // Shares of 0 and 1 have no odds; a thousandth stands for them, so that they can move.
            let odds = share.clamp(1e-3, 1.0 - 1e-3) / (1.0 - share.clamp(1e-3, 1.0 - 1e-3)) * steering.odds;
            share = odds / (1.0 + odds);
        }
        self.last_write = chance(&mut self.rng, share);
        if let Some(steering) = &mut self.steering {
            steering.missing += steering.share - f64::from(u8::from(self.last_write));
        }
        self.last = if self.last_write { RequestKind::Write } else { RequestKind::Read };
        self.last
    }

    /// Whether a write is forced to the medium.
    #[inline]
    pub(super) fn forced(&mut self) -> bool {
        self.mix.forced > 0.0 && chance(&mut self.rng, self.mix.forced)
    }
}
