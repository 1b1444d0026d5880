//! The source of a run's requests: a trace fitted to the drive, a generator, or several of them.

use crate::player::Pace;
use crate::tenants::{Tenant, Tenants, TenantsSpec};
use crate::warnings::{Origin, Warning, percent};
use flashwright_block::{Interactive, Nanos, Passes, Popularity, Request, RequestSource, Seed, SourceError};
use flashwright_ssd::Ssd;
use flashwright_workload::generate::{self, SpecError, Target, WorkloadSpec, ZonedTarget};
use flashwright_workload::trace::{
    AddressMap, Doubt, DoubtKind, Footprint, MapError, MapReport, Mapped, TraceError, TraceOptions, TraceReader,
    WRAPPED_MAX,
};
use std::path::PathBuf;
use std::sync::Arc;

/// What to play.
#[derive(Clone, Debug)]
pub enum SourceSpec {
    /// A trace file.
    Trace(TraceSpec),
    /// A generator.
    Workload(WorkloadSpec),
    /// Several of both at once.
    Tenants(TenantsSpec),
}

/// A trace and how it is fitted to a drive.
#[derive(Clone, Debug)]
pub struct TraceSpec {
    /// The file.
    pub path: PathBuf,
    /// Its name in reports; the path if this is empty.
    pub name: String,
    /// The options for reading it.
    pub options: TraceOptions,
    /// How addresses beyond the drive are handled.
    pub addresses: AddressMap,
    /// The number of passes, one after the other; at least 1.
    pub repeat: u32,
}

/// Why a source could not be opened.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The trace can't be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The trace can't be fitted to the drive.
    #[error(transparent)]
    Map(#[from] MapError),
    /// The workload's text is wrong, or it does not fit this drive.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// Tenants do not fit the drive, or one of them does not fit its namespace.
    #[error("{0}")]
    Tenants(String),
}

/// Default number of requests that a run plays from a generator.
const REQUESTS_DEFAULT: u64 = 1_000_000;

/// Requests of a trace that are kept in memory, so that it need not be read again for each pass.
const KEPT_MAX: usize = 1 << 20;

/// Requests of a trace that are looked at before it is played, for how many reach past the end of the drive: as many as are read
/// in a fraction of a second.
const LOOKED_AT: u64 = 1 << 20;
/// Share of the requests that were wrapped from which on there is a warning, and not a note alone.
const WRAPPED_SAID: f64 = 0.01;

/// A source that is open.
pub struct Source {
    kind: Kind,
    kept: Kept,
    description: String,
    pace: Pace,
    requests: Option<u64>,
    notes: Vec<String>,
    doubts: Vec<Doubt>,
    /// How a generator's footprint was shrunk to fit the drive.
    shrunk: Vec<String>,
}

/// The requests that are kept in memory of a trace that is repeated.
enum Kept {
    /// Nothing: the trace is not repeated, or is too long.
    Nothing,
    /// Nothing in the first pass.
    Skipping,
    /// This pass is being kept.
    Filling(Vec<Request>),
    /// A whole pass, and the number of its requests that were played again so far.
    Whole(Vec<Request>, usize),
}

enum Kind {
    Trace(Box<Mapped<Repeated>>),
    Generated(Box<dyn RequestSource + Send>),
    Tenants(Box<Tenants>),
}

impl SourceSpec {
    /// What the warnings need to know about this source in a run at `pace`; `own` is the pace that the source itself
    /// asks for.
    #[must_use]
    pub fn origin(&self, pace: Pace, own: Pace) -> Origin {
        match self {
            Self::Trace(spec) => Origin {
                is_trace: true,
                is_packed: !matches!(spec.addresses, AddressMap::WrapFew | AddressMap::Wrap | AddressMap::Reject),
                ..Origin::default()
            },
            Self::Workload(spec) => Origin {
                overridden: spec.pace_said().filter(|_| match (pace, own) {
                    (Pace::Open { .. }, Pace::Open { .. }) => false,
                    _ => pace != own,
                }),
                has_no_arrivals: matches!((pace, own), (Pace::Open { .. }, Pace::Closed { .. })),
                ..Origin::default()
            },
            Self::Tenants(_) => Origin::default(),
        }
    }

    /// Opens the source for a drive. Opened again with the same drive and seed it gives the same requests.
    ///
    /// # Errors
    /// [`OpenError`] with one line for the user.
    pub fn open(&self, ssd: &Ssd, seed: Seed) -> Result<Source, OpenError> {
        let sectors_per_page = ssd.sectors_per_page();
        let target = Target {
            logical_sectors: u64::from(ssd.logical_pages()) * sectors_per_page,
            page_sectors: u32::try_from(sectors_per_page).expect("a page is at most 16 MiB"),
        };
        let zones = ssd.zone_layout().map(|zones| ZonedTarget {
            size_sectors: u64::from(zones.size) * sectors_per_page,
            capacity_sectors: u64::from(zones.capacity) * sectors_per_page,
        });
        self.open_with(&target, zones, seed)
    }

    /// As [`SourceSpec::open`], for any device with a size and a page size, real ones included.
    ///
    /// # Errors
    /// [`OpenError`] with one line for the user.
    pub fn open_on(&self, target: &Target, seed: Seed) -> Result<Source, OpenError> {
        self.open_with(target, None, seed)
    }

    pub(crate) fn open_with(
        &self,
        target: &Target,
        zones: Option<ZonedTarget>,
        seed: Seed,
    ) -> Result<Source, OpenError> {
        match self {
            Self::Trace(spec) => spec.open(target.logical_sectors),
            Self::Workload(spec) => {
                let shrunk = spec.notes(target);
                let notes = shrunk.iter().cloned().chain(spec.label()).collect();
                Ok(Source {
                    kept: Kept::Nothing,
                    kind: Kind::Generated(spec.source_on_zones(target, zones, seed, None)?),
                    description: spec.to_string(),
                    pace: match spec.pace() {
                        generate::Pace::Closed { depth } => Pace::Closed { depth },
                        generate::Pace::Open => Pace::Open { time_scale: 1.0 },
                        generate::Pace::Interactive => Pace::Interactive,
                    },
                    requests: (!spec.is_interactive())
                        .then(|| spec.natural_requests(target).unwrap_or(REQUESTS_DEFAULT)),
                    notes,
                    doubts: Vec::new(),
                    shrunk,
                })
            }
            Self::Tenants(spec) => {
                let tenants = Box::new(spec.open_on(target, zones, seed)?);
                let texts: Vec<&str> = tenants.tenants().iter().map(|tenant| tenant.workload.as_str()).collect();
                Ok(Source {
                    kept: Kept::Nothing,
                    description: texts.join(" | "),
                    pace: Pace::Tenants,
                    requests: (!tenants.ends()).then_some(REQUESTS_DEFAULT),
                    kind: Kind::Tenants(tenants),
                    notes: Vec::new(),
                    doubts: Vec::new(),
                    shrunk: Vec::new(),
                })
            }
        }
    }
}

impl TraceSpec {
    fn open(&self, logical_sectors: u64) -> Result<Source, OpenError> {
        let reader = TraceReader::open(&self.path, &self.options)?;
        let name = if self.name.is_empty() { self.path.display().to_string() } else { self.name.clone() };
        let mut notes =
            vec![format!("format {}; addresses beyond the drive: {}", reader.format().name(), self.addresses.name())];
        if !reader.label().is_empty() {
            notes.push(reader.label().to_owned());
        }
        notes.extend_from_slice(reader.notes());
        let doubts = reader.doubts().to_vec();
        if self.options.copies > 1 {
            notes.push(format!("{} copies of the trace side by side", self.options.copies));
        }
        if self.options.start > 0.0 {
            notes.push(format!("begins after {} of its requests, and ends with these", percent(self.options.start)));
        }
        if self.repeat > 1 {
            notes.push(format!("played {} times", self.repeat));
        }
        if self.addresses == AddressMap::WrapFew {
            self.expect_to_fit(logical_sectors)?;
        }
        let footprint = self.footprint()?;
        let repeated = Repeated::new(reader, self.clone());
        let mapped = match footprint {
            Some(footprint) => Mapped::fitted(repeated, self.addresses, footprint, logical_sectors)?,
            None => Mapped::new(repeated, self.addresses, logical_sectors)?,
        };
        Ok(Source {
            kept: Kept::Nothing,
            kind: Kind::Trace(Box::new(mapped)),
            description: format!("trace {name}"),
            pace: Pace::Open { time_scale: 1.0 },
            requests: None,
            notes,
            doubts,
            shrunk: Vec::new(),
        })
    }

    /// What the trace touches, if its addresses are fitted by that.
    fn footprint(&self) -> Result<Option<Footprint>, TraceError> {
        let granule = match self.addresses {
            AddressMap::Compact => Footprint::granule(&self.path, &self.options)?,
            _ => 1,
        };
        let unit = self.addresses.unit_sectors(granule);
        unit.map(|unit| Footprint::read(&self.path, &self.options, unit)).transpose()
    }

    /// Refuses a trace of which many requests reach past the end of the drive.
    #[allow(clippy::cast_precision_loss)] // counts far below 2^53
    fn expect_to_fit(&self, device_sectors: u64) -> Result<(), OpenError> {
        let mut reader = TraceReader::open(&self.path, &self.options)?;
        let (mut batch, mut requests, mut past, mut end_sector) = (Vec::new(), 0_u64, 0_u64, 0);
        let mut whole = false;
        while requests < LOOKED_AT && !whole {
            // A fault further on is for the run to say, once it gets there.
            whole = reader.read(&mut batch, 4096).unwrap_or(0) == 0;
            for request in batch.drain(..) {
                requests += 1;
                past += u64::from(request.end_sector() > device_sectors);
                end_sector = request.end_sector().max(end_sector);
            }
        }
        if past as f64 > WRAPPED_MAX * requests as f64 {
            return Err(MapError::Mostly { past, requests, whole, end_sector, device_sectors }.into());
        }
        Ok(())
    }
}

impl Source {
    /// The workload in words, for reports. Stand-ins are labelled.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }
    /// The pace that the workload asks for.
    #[must_use]
    pub fn pace(&self) -> Pace {
        self.pace
    }
    /// Default number of requests; none for all that a trace or a program has.
    #[must_use]
    pub fn requests_default(&self) -> Option<u64> {
        self.requests
    }
    /// The tenants, if there are several workloads at once.
    #[must_use]
    pub fn tenants(&self) -> &[Tenant] {
        if let Kind::Tenants(tenants) = &self.kind { tenants.tenants() } else { &[] }
    }
    /// Whether the workload reacts to the device. Such a run sets its own pace and can't be saved.
    #[must_use]
    pub fn is_interactive(&self) -> bool {
        self.pace == Pace::Interactive
    }
    /// Section `application` of the report: figures of programs above the device, by name; none for other workloads.
    #[must_use]
    pub fn application(&self) -> Option<serde_json::Map<String, serde_json::Value>> {
        let figures = self.figures()?;
        Some(figures.into_iter().map(|(name, value)| (name.to_owned(), serde_json::json!(value))).collect())
    }
    /// What a reader of the result needs to know: labels, how addresses were fitted, lines that were skipped. Complete
    /// once the source was played.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.notes.clone();
        if let Kind::Tenants(tenants) = &self.kind {
            let of = |(name, source): (&str, &Source)| {
                source.notes().into_iter().map(|note| format!("{name}: {note}")).collect::<Vec<_>>()
            };
            notes.extend(tenants.sources().flat_map(of));
        }
        if let Kind::Trace(mapped) = &self.kind {
            let (map, stats) = (mapped.report(), mapped.inner().reader.stats());
            let mut count = |n: u64, what: &str| {
                if n > 0 {
                    notes.push(format!("{n} {what}"));
                }
            };
            count(map.wrapped, "requests wrapped around the end of the drive");
            count(map.split, "requests split to fit");
            count(map.pages, "distinct pages");
            count(map.trims_left_out, "trims of pages never touched left out");
            count(stats.bad_lines, "bad lines skipped");
            count(stats.out_of_order, "requests out of order, taken at the time of the one before");
            notes.extend(map.shared.map(|(touched, room)| {
                format!("{touched} pages of 4 KiB that the trace touches share {room} of the drive")
            }));
            notes.extend(stats.first_bad_lines.iter().map(|line| format!("skipped: {line}")));
        }
        notes
    }
    /// Where the requests are not those that were asked for, or hardly those that were recorded. Complete once the source was played.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // counts far below 2^53
    pub fn warnings(&self) -> Vec<Warning> {
        if let Kind::Tenants(tenants) = &self.kind {
            let of = |(name, source): (&str, &Source)| {
                let named = |warning: Warning| Warning { text: format!("tenant {name}: {}", warning.text), ..warning };
                source.warnings().into_iter().map(named).collect::<Vec<_>>()
            };
            return tenants.sources().flat_map(of).collect();
        }
        let doubts = self.doubts.iter().map(|doubt| {
            let (code, text) = match doubt.kind {
                DoubtKind::Content => {
                    ("doubtful-trace", format!("the trace is hardly what it is read as: {}", doubt.text))
                }
                DoubtKind::Order => ("times-go-back", doubt.text.clone()),
            };
            Warning { code, text, mend: Some(doubt.mend.clone()) }
        });
        let shrunk = self.shrunk.iter().map(|text| Warning {
            code: "footprint-shrunk",
            text: format!("{text}: this is another load than on a drive with room for it"),
            mend: Some("a larger drive".to_owned()),
        });
        let wrapped = match &self.kind {
            Kind::Trace(mapped) => Some(mapped.report()),
            Kind::Generated(_) | Kind::Tenants(_) => None,
        };
        let share = |map: MapReport| map.wrapped as f64 / map.requests.max(1) as f64;
        let wrapped = wrapped.map(share).filter(|share| *share > WRAPPED_SAID).map(|share| Warning {
            code: "addresses-wrapped",
            text: format!(
                "{} of the trace's requests reach past the end of the drive and were wrapped around it, where they meet data of \
                 others: this is another load than the trace's",
                percent(share)
            ),
            mend: Some("--addresses scale, or a larger drive".to_owned()),
        });
        doubts.chain(shrunk).chain(wrapped).collect()
    }
}

impl RequestSource for Source {
    fn fill(&mut self, batch: &mut Vec<Request>, at_most: usize) -> Result<usize, SourceError> {
        let trace = match &mut self.kind {
            Kind::Trace(source) => source,
            Kind::Generated(source) => return source.fill(batch, at_most),
            Kind::Tenants(tenants) => return tenants.fill(batch, at_most),
        };
        match &mut self.kept {
            Kept::Nothing | Kept::Skipping => trace.fill(batch, at_most),
            Kept::Filling(kept) => {
                let before = batch.len();
                let got = trace.fill(batch, at_most)?;
                if kept.len() + got > KEPT_MAX {
                    self.kept = Kept::Nothing;
                } else {
                    kept.extend_from_slice(&batch[before..]);
                    if got == 0 && at_most > 0 {
                        self.kept = Kept::Whole(std::mem::take(kept), usize::MAX);
                    }
                }
                Ok(got)
            }
            Kept::Whole(kept, at) => {
                let from = (*at).min(kept.len());
                let got = at_most.min(kept.len() - from);
                batch.extend_from_slice(&kept[from..from + got]);
                *at = from + got;
                Ok(got)
            }
        }
    }
    fn start_over(&mut self, passes: Passes) -> Result<bool, SourceError> {
        let trace = match &mut self.kind {
            Kind::Trace(trace) => trace,
            Kind::Generated(_) => return Ok(false),
            Kind::Tenants(tenants) => return tenants.start_over(passes),
        };
        match (&mut self.kept, passes) {
            (Kept::Whole(_, at), Passes::One) => {
                *at = 0;
                return Ok(true);
            }
            // In the first pass a dense map assigns places, and may leave out requests that are played in later passes.
            (Kept::Nothing, Passes::One) => self.kept = Kept::Skipping,
            (Kept::Skipping | Kept::Filling(_), Passes::One) => self.kept = Kept::Filling(Vec::new()),
            (_, Passes::All) => self.kept = Kept::Nothing,
        }
        trace.start_over(passes)
    }
    fn remaining(&self) -> Option<u64> {
        if let Kept::Whole(kept, at) = &self.kept {
            return Some(kept.len().saturating_sub(*at) as u64);
        }
        match &self.kind {
            Kind::Trace(source) => source.remaining(),
            Kind::Generated(source) => source.remaining(),
            Kind::Tenants(tenants) => tenants.remaining(),
        }
    }
    fn progress(&self) -> Option<f64> {
        if let Kept::Whole(..) = &self.kept {
            return None;
        }
        match &self.kind {
            Kind::Trace(source) => source.progress(),
            Kind::Generated(source) => source.progress(),
            Kind::Tenants(tenants) => tenants.progress(),
        }
    }
    fn interactive(&mut self) -> Option<&mut dyn Interactive> {
        match &mut self.kind {
            Kind::Trace(_) => None,
            Kind::Generated(source) => source.interactive(),
            Kind::Tenants(tenants) => tenants.interactive(),
        }
    }
    fn popularity(&self) -> Option<Arc<dyn Popularity>> {
        match &self.kind {
            Kind::Trace(_) | Kind::Tenants(_) => None,
            Kind::Generated(source) => source.popularity(),
        }
    }
    fn figures(&self) -> Option<Vec<(&'static str, f64)>> {
        match &self.kind {
            Kind::Trace(_) | Kind::Tenants(_) => None,
            Kind::Generated(source) => source.figures(),
        }
    }
}

/// A trace that is repeated: each pass begins one mean gap after the last request of the pass before.
struct Repeated {
    reader: TraceReader,
    spec: TraceSpec,
    passes_left: u32,
    offset: Nanos,
    last: Nanos,
    in_pass: u64,
}

impl Repeated {
    fn new(reader: TraceReader, spec: TraceSpec) -> Self {
        let passes_left = spec.repeat.max(1) - 1;
        Self { reader, spec, passes_left, offset: Nanos(0), last: Nanos(0), in_pass: 0 }
    }

    fn begin_next_pass(&mut self) -> Result<(), TraceError> {
        self.passes_left -= 1;
        let span = self.last - self.offset;
        self.offset = self.last + Nanos(span.0 / self.in_pass.saturating_sub(1).max(1));
        self.in_pass = 0;
        self.reader = TraceReader::open(&self.spec.path, &self.spec.options)?;
        Ok(())
    }
}

impl RequestSource for Repeated {
    fn fill(&mut self, batch: &mut Vec<Request>, at_most: usize) -> Result<usize, SourceError> {
        let before = batch.len();
        let mut got = self.reader.fill(batch, at_most)?;
        if got == 0 && self.passes_left > 0 && at_most > 0 {
            self.begin_next_pass()?;
            got = self.reader.fill(batch, at_most)?;
        }
        for request in &mut batch[before..] {
            request.arrival += self.offset;
            self.last = request.arrival;
        }
        self.in_pass += got as u64;
        Ok(got)
    }

    fn remaining(&self) -> Option<u64> {
        let left = self.reader.remaining()?;
        Some(left + u64::from(self.passes_left) * (self.in_pass + left))
    }

    fn start_over(&mut self, passes: Passes) -> Result<bool, SourceError> {
        self.reader = TraceReader::open(&self.spec.path, &self.spec.options)?;
        self.passes_left = if passes == Passes::All { self.spec.repeat.max(1) - 1 } else { 0 };
        (self.offset, self.last, self.in_pass) = (Nanos(0), Nanos(0), 0);
        Ok(true)
    }

    fn progress(&self) -> Option<f64> {
        let passes = f64::from(self.spec.repeat.max(1));
        let done = passes - 1.0 - f64::from(self.passes_left);
        self.reader.progress().map(|share| (done + share) / passes)
    }
}
