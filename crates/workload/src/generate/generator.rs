//! The loop that turns a pattern of addresses into requests.
//!
//! Kinds, addresses and arrivals draw from separate random streams: a workload with reads mixed in touches the same
//! addresses as the one without, and a faster one is the same in less time.

use super::value::ArrivalKind;
use flashwright_block::{Nanos, Popularity, Request, RequestKind, RequestSource, Rng, SourceError, unit_interval};
use libm::log;
use std::sync::Arc;

/// Chooses the address of each request. Called once per request.
pub(crate) trait Pattern: Send {
    /// First sector of the next request.
    fn next(&mut self, kind: RequestKind) -> u64;
    /// The placement stream of the request just drawn; 0 for none.
    #[inline]
    fn stream(&self) -> u16 {
        0
    }
    /// How often its places are written, if writes are independent of each other.
    fn popularity(&self) -> Option<Arc<dyn Popularity>> {
        None
    }
    /// Sectors of the request just drawn, where requests of the workload have `all`.
    #[inline]
    fn sectors(&self, all: u32) -> u32 {
        all
    }
}

/// Draws the kind of a request.
pub(crate) struct Mix {
    rng: Rng,
    /// Below this share a draw is a write,
    write: f64,
    /// below this one a trim, above a read.
    write_or_trim: f64,
}

impl Mix {
    pub(crate) fn new(rng: Rng, write: f64, trim: f64) -> Self {
        Mix { rng, write, write_or_trim: write + trim }
    }

    /// The kind, if there is only one.
    fn only(&self) -> Option<RequestKind> {
        if self.write >= 1.0 {
            Some(RequestKind::Write)
        } else if self.write_or_trim <= 0.0 {
            Some(RequestKind::Read)
        } else if self.write <= 0.0 && self.write_or_trim >= 1.0 {
            Some(RequestKind::Trim)
        } else {
            None
        }
    }

    /// Whether it writes and does not trim.
    fn only_writes_change(&self) -> bool {
        self.write > 0.0 && self.write_or_trim <= self.write
    }

    #[inline]
    pub(crate) fn next(&mut self) -> RequestKind {
        let draw = unit_interval(&mut self.rng);
        if draw < self.write {
            RequestKind::Write
        } else if draw < self.write_or_trim {
            RequestKind::Trim
        } else {
            RequestKind::Read
        }
    }
}

/// Generates arrival times.
pub(crate) enum Clock {
    /// The player sets them at issue; until then they are 0.
    Closed,
    /// Exponential gaps.
    Poisson {
        rng: Rng,
        /// Mean gap in nanoseconds.
        gap_ns: f64,
        /// Time of the last arrival in nanoseconds: exact to 1 ns for 104 days.
        now_ns: f64,
    },
    /// Equal gaps: arrival `n` at `n * gap_ns`, so that rounding errors do not accumulate.
    Fixed { gap_ns: f64, arrivals: u64 },
}

impl Clock {
    pub(crate) fn open(rng: Rng, gap_ns: f64, kind: ArrivalKind) -> Self {
        match kind {
            ArrivalKind::Poisson => Clock::Poisson { rng, gap_ns, now_ns: 0.0 },
            ArrivalKind::Fixed => Clock::Fixed { gap_ns, arrivals: 0 },
        }
    }

    /// The next arrival; the first comes one gap after the start.
    #[inline]
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub(crate) fn next(&mut self) -> Nanos {
        match self {
            Clock::Closed => Nanos(0),
            Clock::Poisson { rng, gap_ns, now_ns } => {
                *now_ns += exponential(rng, *gap_ns);
                Nanos(*now_ns as u64)
            }
            Clock::Fixed { gap_ns, arrivals } => {
                *arrivals += 1;
                Nanos((*arrivals as f64 * *gap_ns) as u64)
            }
        }
    }
}

/// A draw from the exponential distribution with the given mean.
#[inline]
pub(crate) fn exponential(rng: &mut Rng, mean: f64) -> f64 {
    -mean * log(1.0 - unit_interval(rng)) // 1 - u lies in (0, 1]: the logarithm is finite
}

/// How many of `at_most` requests a source with `remaining` ones may still return; subtracts them.
#[inline]
pub(crate) fn take_from(remaining: &mut Option<u64>, at_most: usize) -> usize {
    match remaining {
        None => at_most,
        Some(left) => {
            let count = usize::try_from(*left).unwrap_or(usize::MAX).min(at_most);
            *left -= count as u64;
            count
        }
    }
}

/// The next request of a kind, apart from its arrival.
#[inline]
fn drawn(pattern: &mut impl Pattern, kind: RequestKind, template: Request) -> Request {
    let first_sector = pattern.next(kind);
    Request { kind, first_sector, sectors: pattern.sectors(template.sectors), stream: pattern.stream(), ..template }
}

/// A pattern with kinds and arrivals: a [`RequestSource`].
pub(crate) struct Generator<P> {
    pattern: P,
    mix: Mix,
    clock: Clock,
    template: Request,
    remaining: Option<u64>,
}

impl<P: Pattern> Generator<P> {
    pub(crate) fn new(pattern: P, mix: Mix, clock: Clock, template: Request, requests: Option<u64>) -> Self {
        Generator { pattern, mix, clock, template, remaining: requests }
    }
}

impl<P: Pattern> RequestSource for Generator<P> {
    fn fill(&mut self, batch: &mut Vec<Request>, at_most: usize) -> Result<usize, SourceError> {
        let count = take_from(&mut self.remaining, at_most);
        let Self { pattern, mix, clock, template, .. } = self;
        // With iterators of known length, `extend` does not check the capacity for each request.
        match (clock, mix.only()) {
            (Clock::Closed, Some(kind)) => batch.extend((0..count).map(|_| drawn(pattern, kind, *template))),
            (Clock::Closed, None) => batch.extend((0..count).map(|_| drawn(pattern, mix.next(), *template))),
            (clock, _) => batch.extend((0..count).map(|_| {
                let request = drawn(pattern, mix.next(), *template);
                Request { arrival: clock.next(), ..request }
            })),
        }
        Ok(count)
    }

    fn remaining(&self) -> Option<u64> {
        self.remaining
    }

    fn popularity(&self) -> Option<Arc<dyn Popularity>> {
        let popularity = self.pattern.popularity().filter(|_| self.mix.only_writes_change())?;
        (popularity.sectors() == u64::from(self.template.sectors)).then_some(popularity)
    }
}
