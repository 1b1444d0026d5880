//! Sequential runs: requests that start where one of the last requests of their direction ended.
//!
//! Whether a run goes on depends on its length so far; when it does, after how many requests of its direction. So several
//! runs are under way at once, as often as in the trace.

use super::tree::STATES;
use crate::generate::AliasTable;
use flashwright_block::{Rng, chance};
use serde::{Deserialize, Serialize};

/// A run goes on within this many requests of its direction, or it has ended.
pub(super) const WINDOW: usize = 32;
/// Classes of the length of a run so far, in requests.
pub(super) const LENGTHS: usize = 36;

/// The end of a request.
#[derive(Clone, Copy)]
pub(super) struct End {
    pub(super) sector: u64,
    pub(super) size: u8,
    /// Requests of the run so far.
    length: u32,
    /// Requests of its direction when it was set, or when it goes on.
    at: u64,
    /// Requests of its direction between its last two.
    delay: u8,
    ahead: Ahead,
    /// The kind of jump that began the run.
    pub(super) state: u8,
}

/// What lies where a request ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ahead {
    /// Pages that no request covered.
    Unused,
    /// Used pages.
    Used,
}

/// Lengths of their own up to 32, since files and extents have exact ones; then doublings.
fn length_class(length: u32) -> usize {
    match length {
        0..=32 => length.max(1) as usize - 1,
        33..=64 => 32,
        65..=128 => 33,
        129..=256 => 34,
        _ => 35,
    }
}

/// How runs go on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RunLaw {
    /// Share of runs that go on into unused pages. A row for each kind of jump that began the run: after 1, 2, ... 32, up to
    /// 64, 128, 256 and more requests.
    pub go_on: Vec<Vec<f64>>,
    /// The same into used pages.
    pub go_on_used: Vec<Vec<f64>>,
    /// Share of each delay of 1 to 32 requests of the direction.
    pub delays: Vec<f64>,
    /// Share of delays that are as the run's last one.
    pub same_delay: f64,
}

/// Counts of a [`RunLaw`].
pub(super) struct RunCounts {
    /// The ends of the last requests that no request has continued, oldest first.
    ends: Vec<End>,
    now: u64,
    /// Length of the run of the last request, and its delay.
    last: (u32, u8),
    /// By what lies ahead, kind of jump and length: those that went on, and all.
    counts: [[[[u64; 2]; LENGTHS]; STATES]; 2],
    delays: [u64; WINDOW],
    same: u64,
    compared: u64,
}

impl Default for RunCounts {
    fn default() -> Self {
        let (counts, delays) = ([[[[0; 2]; LENGTHS]; STATES]; 2], [0; WINDOW]);
        RunCounts { ends: Vec::new(), now: 0, last: (1, 0), counts, delays, same: 0, compared: 0 }
    }
}

impl RunCounts {
    /// Adds a request; returns the end that it continues.
    pub(super) fn add(&mut self, first: u64) -> Option<End> {
        self.now += 1;
        let old = self.ends.iter().take_while(|end| self.now - end.at > WINDOW as u64).count();
        let counts = &mut self.counts;
        let mut count = |end: &End, on: bool| {
            let count = &mut counts[end.ahead as usize][usize::from(end.state)][length_class(end.length)];
            count[0] += u64::from(on);
            count[1] += 1;
        };
        self.ends.drain(..old).for_each(|end| count(&end, false));
        let found = self.ends.iter().rposition(|end| end.sector == first).map(|at| self.ends.remove(at));
        let (mut length, mut delay) = (1, 0);
        if let Some(run) = &found {
            delay = (self.now - run.at) as u8;
            length = run.length.saturating_add(1);
            count(run, true);
            if run.delay > 0 {
                self.compared += 1;
                self.same += u64::from(run.delay == delay);
            }
            if run.delay != delay {
                self.delays[usize::from(delay) - 1] += 1;
            }
        }
        self.last = (length, delay);
        found
    }

    /// Notes where the request that was added last ends, its size, and what lies ahead of it.
    pub(super) fn note(&mut self, end: u64, size: u8, state: usize, ahead: Ahead) {
        let (length, delay) = self.last;
        let state = state as u8;
        self.ends.push(End { sector: end, size, length, at: self.now, delay, ahead, state });
    }

    /// The law; lengths that few runs had lean on the next shorter one.
    pub(super) fn law(&self) -> RunLaw {
        let row = |counts: &[[u64; 2]; LENGTHS]| {
            let mut row: Vec<f64> = Vec::new();
            for [on, all] in *counts {
                let (weight, shorter) =
                    row.last().map_or((0.0, 0.0), |share| (if all < 8 { 2.0 } else { 0.0 }, *share));
                let all = all as f64 + weight;
                row.push(if all == 0.0 { 0.0 } else { (on as f64 + weight * shorter) / all });
            }
            row
        };
        let go_on = |ahead: Ahead| self.counts[ahead as usize].iter().map(row).collect();
        let total = self.delays.iter().sum::<u64>() as f64;
        let delay = |count: &u64| if total == 0.0 { 1.0 / WINDOW as f64 } else { *count as f64 / total };
        RunLaw {
            go_on: go_on(Ahead::Unused),
            go_on_used: go_on(Ahead::Used),
            delays: self.delays.iter().map(delay).collect(),
            same_delay: if self.compared == 0 { 0.0 } else { self.same as f64 / self.compared as f64 },
        }
    }
}

/// Draws which requests continue a run.
pub(super) struct Runs {
    /// By what lies ahead, kind of jump and length.
    go_on: [[[f64; LENGTHS]; STATES]; 2],
    delays: AliasTable,
    same_delay: f64,
    /// Runs that will go on.
    waiting: Vec<End>,
    now: u64,
}

impl Runs {
    pub(super) fn new(law: &RunLaw) -> Self {
        let by_length =
            |rows: &[Vec<f64>]| std::array::from_fn(|state| std::array::from_fn(|length| rows[state][length]));
        let go_on = [by_length(&law.go_on), by_length(&law.go_on_used)];
        let (delays, same_delay) = (AliasTable::new(&law.delays), law.same_delay);
        Runs { go_on, delays, same_delay, waiting: Vec::new(), now: 0 }
    }

    /// The run that the next request continues.
    #[inline]
    pub(super) fn due(&mut self) -> Option<End> {
        self.now += 1;
        let (at, end) = self.waiting.iter().enumerate().min_by_key(|(_, end)| end.at)?;
        if end.at > self.now {
            return None;
        }
        Some(self.waiting.swap_remove(at))
    }

    /// Notes that the request ends at `sector`, and draws whether it will be continued.
    #[inline]
    pub(super) fn note(
        &mut self,
        run: Option<&End>,
        sector: u64,
        (size, state): (u8, usize),
        ahead: Ahead,
        rng: &mut Rng,
    ) {
        let (length, last) = run.map_or((1, 0), |run| (run.length.saturating_add(1), run.delay));
        let share = self.go_on[ahead as usize][state][length_class(length)];
        // Runs that wait for their turn are few, unless a file asks for runs without end.
        if share == 0.0 || !chance(rng, share) || self.waiting.len() == WINDOW {
            return;
        }
        let same = last > 0 && chance(rng, self.same_delay);
        let delay = if same { last } else { self.delays.draw(rng) as u8 + 1 };
        let state = state as u8;
        self.waiting.push(End { sector, size, length, at: self.now + u64::from(delay), delay, ahead, state });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwright_block::{Seed, unit_interval};

    /// Two runs that take turns and end one time in ten; drawn from their law, as many requests continue a run, most of
    /// them the last but one.
    #[test]
    fn runs_come_back_as_long_and_as_many_at_once() {
        let mut rng = Seed(6).stream("test");
        let (mut counts, mut next, mut went_on) = (RunCounts::default(), [0, 1 << 40], 0);
        for i in 0..20_000u64 {
            let start = &mut next[i as usize % 2];
            if unit_interval(&mut rng) < 0.1 {
                *start += 1000;
            }
            went_on += i64::from(counts.add(*start).is_some());
            counts.note(*start + 8, 0, 0, Ahead::Unused);
            *start += 8;
        }
        let law = counts.law();
        assert!((law.go_on[0][3] - 0.9).abs() < 0.02 && law.delays[1] > 0.99, "{law:?}");
        let (mut runs, mut drawn) = (Runs::new(&law), 0);
        for i in 0..20_000 {
            let run = runs.due();
            runs.note(run.as_ref(), i, (0, 0), Ahead::Unused, &mut rng);
            drawn += i64::from(run.is_some());
        }
        assert!((went_on - 18_000).abs() < 300 && (drawn - went_on).abs() < 300, "{went_on} {drawn}");
    }
}
