//! Stand-ins for traces that cannot be shipped: synthetic, calibrated to the statistics that papers and publishers
//! give.
//!
//! **With a head's locality**, where a head of such a trace is public: a model that was fitted to the head, forced to the
//! published share of writes, mean sizes, rate and number of distinct addresses ([`heads`]). How requests follow one
//! another is the head's; how many addresses are updated more than once, and which share is sequential, then come from
//! there too.
//!
//! **From statistics only**, by `variant=statistics-only`, or where there is no such head: the trace's share of writes, mean
//! sizes of reads and writes, rate (with bursts if a source reports them), share of sequential requests, number of distinct
//! addresses, and share of addresses updated more than once. It shares nothing else with the trace: no order of phases, no
//! time of day, no correlation between requests beyond runs and bursts.
//!
//! Reports always call either a stand-in ([`Workload::label`]).
//!
//! The space is compact: the footprint lies at the start of the drive, whose rest stays untouched. On a drive that
//! is smaller the footprint shrinks to fit, and with it the number of requests after which the statistics hold
//! ([`Workload::natural_requests`]), so that the popular part keeps its share of space and of requests.
//! See [`places`] for why popularity has two parts, [`sizes`] and [`bursts`] for the other two distributions,
//! [`table`] for the numbers and where they come from.

mod bursts;
mod heads;
mod places;
mod sizes;
mod table;

use super::common::{Common, Defaults, Pace, Plan, sectors};
use super::generator::{Clock, Mix, take_from};
use super::model::play;
use super::runs::Runs;
use super::settings::settings;
use super::{Describe, Fault, Workload};
use crate::model::{Play, Player, REGION_SECTORS};
use bursts::Bursts;
use flashwright_block::{Bytes, Nanos, Request, RequestKind, RequestSource, Rng, SECTOR_BYTES, SourceError};
use heads::{Head, footprint, forced, head};
use places::{Demand, Places};
use sizes::Sizes;
use table::{Footprint, HOT_ASSUMED, ROWS, RUN_MEAN, Row, Trace, Variant, row, title};

settings! {
    /// Settings of `stand-in`.
    pub struct StandIn {
        "trace" trace: Option<Trace> = "", "The trace that it replaces; written without its key, as in stand-in:financial1.";
        "variant" variant: Option<Variant> = "", "Source of the statistics; default the whole trace, or the DFTL paper if there are none for the whole trace. With statistics-only at the end it has no head's locality.";
    }
}

impl Describe for StandIn {
    const NAME: &'static str = "stand-in";
    const SUMMARY: &'static str = "synthetic stand-in for a known trace, calibrated to its published statistics";
    const BARE: Option<&'static str> = Some("trace");
}

/// Sectors of the 4 KiB pages that sources count in.
const PAGE_SECTORS: u64 = 8;

impl StandIn {
    fn row(&self) -> Option<&'static Row> {
        row(self.trace?, self.variant)
    }

    fn known_row(&self) -> Result<&'static Row, Fault> {
        self.row().ok_or_else(|| Fault::new("trace", "nothing", "the name of a trace"))
    }

    /// The head whose locality it has.
    fn head(&self) -> Option<&'static Head> {
        let (source, statistics_only) = self.variant.map_or((None, false), Variant::parts);
        head(self.trace?, source).filter(|_| !statistics_only)
    }

    /// Footprint over that of the trace, at most 1; the footprint here and that of the trace in sectors.
    fn layout(&self, row: &Row, plan: &Plan<'_>) -> (f64, u64, u64) {
        let Some(head) = self.head() else {
            let layout = Layout::new(row, plan);
            let sectors = |slots: u64| slots * row.grain_pages * PAGE_SECTORS;
            return (layout.scale, sectors(layout.slots), sectors(row.slots()));
        };
        let whole = footprint(head, row).most_regions * REGION_SECTORS;
        let here = whole.min(plan.space_sectors);
        (here as f64 / whole as f64, here, whole)
    }
}

impl Workload for StandIn {
    fn defaults(&self) -> Defaults {
        Defaults { write: self.row().map_or(1.0, |row| row.write), size: None, open: true }
    }

    fn check(&self, _: &Common, faults: &mut Vec<Fault>) {
        use super::value::Value;
        let Some(trace) = self.trace else {
            faults.push(Fault::new("trace", "nothing", Trace::allowed()));
            return;
        };
        if let (Some(variant), None) = (self.variant, self.row()) {
            let there: Vec<String> =
                ROWS.iter().filter(|row| row.trace == trace).map(|row| row.variant.text()).collect();
            let allowed = format!("one of {} for {}", there.join(", "), trace.text());
            faults.push(Fault::new("variant", variant.text(), allowed));
        }
    }

    fn source(&self, plan: &Plan<'_>) -> Result<Box<dyn RequestSource + Send>, Fault> {
        let row = self.known_row()?;
        let Some(head) = self.head() else { return Ok(Box::new(Source::new(row, plan)?)) };
        let model = forced(head, row);
        let (scale, ..) = self.layout(row, plan);
        let play = Play { steered: Some(row.write), strict: false, ..play(&model, plan, scale, 1.0)? };
        Ok(Box::new(Player::new(&model, play)))
    }

    fn label(&self) -> Option<String> {
        use super::value::Value;
        let trace = title(self.trace?);
        let variant = self.variant.map_or_else(String::new, |variant| format!("; variant {}", variant.text()));
        let locality = self.head().map_or_else(String::new, |head| format!(", locality of {}", head.name));
        Some(format!("stand-in for {trace} (synthetic, calibrated to published statistics{locality}{variant})"))
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn natural_requests(&self, plan: &Plan<'_>) -> Option<u64> {
        let row = self.row()?;
        if matches!(row.footprint, Footprint::Assumed(_)) {
            return None; // no published figure depends on the length
        }
        Some((row.requests * self.layout(row, plan).0).round().max(1.0) as u64)
    }

    fn notes(&self, plan: &Plan<'_>) -> Vec<String> {
        let Some(row) = self.row() else { return Vec::new() };
        let (scale, here, whole) = self.layout(row, plan);
        if scale >= 1.0 {
            return Vec::new();
        }
        vec![format!(
            "{}: footprint scaled to {:.3} % of the trace's, {:.3} GiB to {}, to fit the drive",
            title(row.trace),
            scale * 100.0,
            Bytes(whole * SECTOR_BYTES).0 as f64 / f64::from(1u32 << 30),
            Bytes(here * SECTOR_BYTES)
        )]
    }
}

/// The footprint on the drive.
struct Layout {
    /// Sectors from slot to slot.
    grain_sectors: u64,
    slots: u64,
    /// Footprint over that of the trace, at most 1.
    scale: f64,
}

impl Layout {
    #[allow(clippy::cast_precision_loss)]
    fn new(row: &Row, plan: &Plan<'_>) -> Self {
        let grain_sectors = plan.common.align.map_or(row.grain_pages * PAGE_SECTORS, sectors);
        let slots = row.slots().min(plan.space_sectors / grain_sectors).max(1);
        Layout { grain_sectors, slots, scale: slots as f64 / row.slots() as f64 }
    }
}

/// Arrivals: those of the trace, possibly scaled, or those of the common keys.
enum Arrivals {
    Plain(Clock),
    /// Nanoseconds so far, and nanoseconds for each millisecond of the trace.
    OfTrace {
        now_ns: f64,
        ns_per_ms: f64,
    },
}

struct Source {
    places: Places,
    grain_sectors: u64,
    /// One past the last sector in use.
    end: u64,
    read_sizes: Sizes,
    write_sizes: Sizes,
    runs: Runs,
    bursts: Bursts,
    arrivals: Arrivals,
    mix: Mix,
    /// Whether reads take part in the walk over the rest.
    reads_walk: bool,
    addresses: Rng,
    size_rng: Rng,
    arrival_rng: Rng,
    last: Request,
    started: bool,
    remaining: Option<u64>,
}

impl Source {
    #[allow(clippy::cast_precision_loss)]
    fn new(row: &Row, plan: &Plan<'_>) -> Result<Self, Fault> {
        let (write, trim) = plan.common.shares(plan.defaults);
        let sizes = |kib| match plan.common.size {
            Some(_) => Sizes::fixed(plan.size_sectors),
            None => Sizes::tilted(row.shape, kib),
        };
        let (read_sizes, write_sizes) = (sizes(row.read_kib), sizes(row.write_kib));
        let largest = u64::from(read_sizes.largest().max(write_sizes.largest()));
        if largest > plan.space_sectors {
            let found =
                format!("requests of up to {} ({} sectors in use)", Bytes(largest * SECTOR_BYTES), plan.space_sectors);
            return Err(Fault::new("size", found, "a size that fits the part of the drive in use"));
        }
        let layout = Layout::new(row, plan);
        // If updates are published, writes cover the footprint; otherwise all requests do.
        let walkers = if row.updated.is_some() { write + trim } else { 1.0 };
        let visits = row.requests * layout.scale * (1.0 - row.sequential);
        let demand = Demand {
            slots: layout.slots,
            walkable: row.written,
            visits: (visits * walkers).max(1.0),
            others: visits * (1.0 - walkers),
            updated: row.updated,
            hot_assumed: HOT_ASSUMED,
            alpha: row.alpha,
        };
        let places = Places::new(demand, &mut plan.layout()).ok_or_else(|| {
            Fault::new("align", layout.grain_sectors * SECTOR_BYTES, "a larger alignment for this drive")
        })?;
        let bursts = Bursts::new(row.gap_ms, row.close_writes, row.write);
        let arrivals = match (plan.common.pace(plan.defaults), plan.common.arrival) {
            (Pace::Closed { .. } | Pace::Interactive, _) => Arrivals::Plain(Clock::Closed),
            (Pace::Open, asked) => {
                let gap_ns = plan.common.rate.map_or(row.gap_ms * 1e6, |rate| 1e9 / rate.0);
                match asked {
                    Some(kind) => Arrivals::Plain(Clock::open(plan.seed.stream("workload.gap"), gap_ns, kind)),
                    None => Arrivals::OfTrace { now_ns: 0.0, ns_per_ms: gap_ns / row.gap_ms },
                }
            }
        };
        Ok(Source {
            places,
            grain_sectors: layout.grain_sectors,
            // One slot may be larger than the part of the drive in use.
            end: (layout.slots * layout.grain_sectors).min(plan.space_sectors).max(largest),
            read_sizes,
            write_sizes,
            runs: Runs::new(row.sequential, RUN_MEAN).ok_or_else(|| {
                Fault::new("trace", row.sequential, "a share of sequential requests that runs can have")
            })?,
            bursts,
            arrivals,
            mix: Mix::new(plan.seed.stream("workload.kind"), write, trim),
            reads_walk: row.updated.is_none(),
            addresses: plan.addresses(),
            size_rng: plan.seed.stream("workload.size"),
            arrival_rng: plan.seed.stream("workload.arrival"),
            last: Request::default(),
            started: false,
            remaining: plan.requests,
        })
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn next(&mut self) -> Request {
        let (gap_ms, close) = self.bursts.draw(&mut self.arrival_rng);
        let arrival = match &mut self.arrivals {
            Arrivals::Plain(clock) => clock.next(),
            Arrivals::OfTrace { now_ns, ns_per_ms } => {
                *now_ns += gap_ms * *ns_per_ms;
                Nanos(*now_ns as u64)
            }
        };
        let kind = if close && self.started { self.last.kind } else { self.mix.next() };
        let reads = kind == RequestKind::Read;
        let sectors = if reads { &self.read_sizes } else { &self.write_sizes }.draw(&mut self.size_rng);
        let room = self.end - u64::from(sectors);
        let follows = self.runs.continues(&mut self.addresses) && self.last.end_sector() <= room;
        let first_sector = if follows {
            self.last.end_sector()
        } else {
            let slot = self.places.draw(&mut self.addresses, self.reads_walk || !reads);
            // The last places have no room for the largest requests, which therefore start a little earlier.
            (slot * self.grain_sectors).min(room / self.grain_sectors * self.grain_sectors)
        };
        self.started = true;
        self.last = Request { arrival, first_sector, sectors, kind, ..Request::default() };
        self.last
    }
}

impl RequestSource for Source {
    fn fill(&mut self, batch: &mut Vec<Request>, at_most: usize) -> Result<usize, SourceError> {
        let count = take_from(&mut self.remaining, at_most);
        batch.extend((0..count).map(|_| self.next()));
        Ok(count)
    }

    fn remaining(&self) -> Option<u64> {
        self.remaining
    }
}
