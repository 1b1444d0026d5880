//! Several workloads at once on one drive: tenants, each with a queue, a namespace and a pace of its own.
//!
//! ```text
//!   tenant 0: source ── namespace, handle ─┐  closed loops: `ready`, a place for each request that may go
//!   tenant 1: source ── namespace, handle ─┼─►                                            ──► Player ──► device
//!   tenant 2: source ── namespace, handle ─┘  open loops: `arrivals`, by time
//! ```
//!
//! They share one clock, so they are played as a source that reacts to the device ([`Interactive`]): whether the next request of a
//! closed loop may go depends on completions. Requests name their tenant as their queue ([`Request::queue`]).
//!
//! Namespaces are ranges of the logical space, laid out in the order of the tenants. A tenant alone, to compare with, keeps its
//! namespace and its requests.

use crate::player::{self, Pace};
use crate::source::{OpenError, Source, SourceSpec};
use flashwright_block::{
    Completion, Interactive, Nanos, Next, Passes, Priority, Request, RequestSource, Seed, SourceError, Tag,
};
use flashwright_workload::generate::{Target, ZonedTarget};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Most tenants: each counts its pages for every other.
pub(crate) const TENANTS_MAX: usize = 64;

/// Requests that a tenant draws at a time: few, so that those of many tenants stay in the CPU cache.
const BATCH: usize = 64;

/// The size of a namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum NamespaceSize {
    /// What the others leave, in equal parts with those that say nothing either.
    #[default]
    Rest,
    /// A share of the drive's logical pages, above 0 up to 1.
    Share(f64),
    /// A number of logical pages.
    Pages(u64),
}

/// A tenant as users describe it.
#[derive(Clone, Debug)]
pub struct TenantSpec {
    /// What results call it; empty for its number, counted from 1.
    pub name: String,
    /// What it plays.
    pub source: SourceSpec,
    /// Closed loop with this many requests outstanding; none for what the source sets.
    pub depth: Option<u32>,
    /// Factor on arrival times; none for what the source sets.
    pub time_scale: Option<f64>,
    /// The size of its namespace.
    pub size: NamespaceSize,
    /// The placement handle of all its requests; none for the streams that the source names.
    pub handle: Option<u16>,
    /// The class of its queue.
    pub priority: Priority,
}

/// Tenants, and which of them plays if it plays alone.
#[derive(Clone, Debug)]
pub struct TenantsSpec {
    /// All of them.
    pub all: Vec<TenantSpec>,
    /// The index of the only one that issues requests; none if all do.
    pub alone: Option<usize>,
}

/// A tenant on a drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tenant {
    /// What results call it.
    pub name: String,
    /// Its workload in words.
    pub workload: String,
    /// When it issues requests.
    pub pace: Pace,
    /// The first logical page of its namespace.
    pub first_page: u32,
    /// The number of pages of its namespace.
    pub pages: u32,
    /// The placement handle of its requests; none for the streams that its workload names.
    pub handle: Option<u16>,
    /// The class of its queue.
    pub priority: Priority,
}

impl Tenant {
    /// The page after the last one of its namespace.
    #[must_use]
    pub fn end_page(&self) -> u32 {
        self.first_page + self.pages
    }
}

/// Requests that closed loops among the tenants keep outstanding together.
pub(crate) fn outstanding(tenants: &[Tenant]) -> u32 {
    let depths = tenants.iter().map(|tenant| if let Pace::Closed { depth } = tenant.pace { depth } else { 0 });
    depths.fold(0, u32::saturating_add)
}

impl TenantsSpec {
    /// Opens the sources of the tenants, each on its namespace, which is of whole zones if there are any.
    ///
    /// # Errors
    /// [`OpenError`] with one line for the user.
    pub(crate) fn open_on(
        &self,
        target: &Target,
        zones: Option<ZonedTarget>,
        seed: Seed,
    ) -> Result<Tenants, OpenError> {
        let names: Vec<String> = self.all.iter().enumerate().map(|(at, spec)| name(spec, at)).collect();
        let fail = |what: String| Err(OpenError::Tenants(what));
        if self.all.is_empty() || self.all.len() > TENANTS_MAX {
            return fail(format!("tenants: found {}, expected 1 to {TENANTS_MAX}", self.all.len()));
        }
        if let Some((_, twice)) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
            return fail(format!("tenants: found two of the name {twice:?}, expected a name of its own for each"));
        }
        let page_sectors = u64::from(target.page_sectors);
        let unit = zones.map_or(1, |zones| zones.size_sectors / page_sectors);
        let namespaces = namespaces(&self.all, &names, target.logical_sectors / page_sectors, unit)?;
        let mut tenants = Vec::with_capacity(self.all.len());
        let mut queues = Vec::with_capacity(self.all.len());
        for (at, ((spec, name), (first_page, pages))) in self.all.iter().zip(names).zip(namespaces).enumerate() {
            let of_tenant = Target { logical_sectors: u64::from(pages) * page_sectors, ..*target };
            let source = spec
                .source
                .open_with(&of_tenant, zones, seed_of(seed, at))
                .map_err(|error| OpenError::Tenants(format!("tenant {name}: {error}")))?;
            let pace = match (spec.depth, spec.time_scale) {
                (Some(depth), _) => Pace::Closed { depth },
                (None, Some(time_scale)) => Pace::Open { time_scale },
                (None, None) => source.pace(),
            };
            if source.is_interactive() {
                return fail(format!(
                    "tenant {name}: found {}, which reacts to the drive, expected a workload or a trace that does not",
                    source.description()
                ));
            }
            if let (Pace::Open { .. }, Pace::Closed { .. }) = (pace, source.pace()) {
                return fail(format!(
                    "tenant {name}: time-scale: found one with {}, which has no arrival times, expected rate=N in the workload",
                    source.description()
                ));
            }
            let (handle, priority) = (spec.handle, spec.priority);
            let workload = source.description().to_owned();
            let tenant = Tenant { name, workload, pace, first_page, pages, handle, priority };
            let (plays, is_recording) =
                (self.alone.is_none_or(|alone| alone == at), matches!(spec.source, SourceSpec::Trace(_)));
            queues.push(plays.then(|| Queue::new(source, is_recording, &tenant, number(at), page_sectors)));
            tenants.push(tenant);
        }
        Ok(Tenants {
            tenants,
            has_recordings: queues.iter().flatten().any(|queue| queue.is_recording),
            queues,
            ready: VecDeque::new(),
            arrivals: BinaryHeap::new(),
            in_flight: 0,
            drew: None,
            repeats: false,
            begun: false,
            begins_anew: false,
        })
    }
}

fn name(spec: &TenantSpec, at: usize) -> String {
    if spec.name.is_empty() { (at + 1).to_string() } else { spec.name.clone() }
}

/// The seed of a tenant's source. The first has the run's, so that a tenant that has the whole drive is the run of its workload.
fn seed_of(seed: Seed, at: usize) -> Seed {
    Seed(seed.0 ^ (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// The first page and the pages of each namespace, in whole units of so many pages.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)] // pages fit 32 bits
fn namespaces(
    specs: &[TenantSpec],
    names: &[String],
    logical_pages: u64,
    unit: u64,
) -> Result<Vec<(u32, u32)>, OpenError> {
    let whole = |pages: u64| pages / unit * unit;
    let said = |spec: &TenantSpec| match spec.size {
        NamespaceSize::Rest => None,
        NamespaceSize::Share(share) => Some((logical_pages as f64 * share) as u64),
        NamespaceSize::Pages(pages) => Some(pages),
    };
    let taken = specs.iter().filter_map(said).fold(0, u64::saturating_add);
    let open = specs.iter().filter(|spec| spec.size == NamespaceSize::Rest).count() as u64;
    let Some(left) = logical_pages.checked_sub(taken) else {
        return Err(OpenError::Tenants(format!(
            "tenants: found namespaces of {taken} pages in all, expected at most the {logical_pages} of the drive"
        )));
    };
    let rest = whole(left / open.max(1));
    let mut next = 0;
    let laid_out = specs.iter().zip(names).map(|(spec, name)| {
        let pages = whole(said(spec).unwrap_or(rest));
        if pages == 0 {
            let least = if unit == 1 {
                "page, expected at least one".to_owned()
            } else {
                format!("whole zone, expected at least {unit}")
            };
            return Err(OpenError::Tenants(format!(
                "tenant {name}: found a namespace without a {least} of the drive's {logical_pages} pages"
            )));
        }
        let first = next;
        next += pages;
        Ok((first as u32, pages as u32))
    });
    laid_out.collect()
}

/// What a tenant has still to issue.
struct Queue {
    source: Source,
    /// What a request takes over: the first sector of the namespace, the handle, number and class of the queue.
    as_issued: Request,
    handle: Option<u16>,
    is_recording: bool,
    /// Factor on arrival times of an open loop; none for a closed loop.
    time_scale: Option<f64>,
    /// Places of a closed loop.
    depth: u32,
    batch: Vec<Request>,
    next: usize,
    dry: bool,
    /// The device's time at which arrival times begin.
    base: Nanos,
    /// Arrival of the last request taken, and requests taken, in this pass of a recording.
    last: Nanos,
    in_pass: u64,
}

impl Queue {
    fn new(source: Source, is_recording: bool, tenant: &Tenant, number: u16, page_sectors: u64) -> Self {
        let (time_scale, depth) = match tenant.pace {
            Pace::Open { time_scale } => (Some(time_scale), 0),
            Pace::Closed { depth } => (None, depth),
            Pace::Interactive | Pace::Tenants => unreachable!("refused when it was opened"),
        };
        Self {
            source,
            as_issued: Request {
                first_sector: u64::from(tenant.first_page) * page_sectors,
                queue: number,
                priority: tenant.priority,
                ..Request::default()
            },
            handle: tenant.handle,
            is_recording,
            time_scale,
            depth,
            batch: Vec::with_capacity(BATCH),
            next: 0,
            dry: false,
            base: Nanos(0),
            last: Nanos(0),
            in_pass: 0,
        }
    }

    /// The next request, its arrival on the device's clock if it is of an open loop; none at the end. It stays the next one.
    #[inline(always)]
    fn peek(&mut self, repeats: bool) -> Result<Option<Request>, SourceError> {
        if self.next == self.batch.len() && !self.refill(repeats)? {
            return Ok(None);
        }
        let mut request = self.batch[self.next];
        if let Some(time_scale) = self.time_scale {
            request.arrival = self.base + player::scaled(request.arrival, time_scale);
        }
        Ok(Some(request))
    }

    #[inline(always)]
    fn take(&mut self, repeats: bool) -> Result<Option<Request>, SourceError> {
        let request = self.peek(repeats)?;
        if let Some(request) = request {
            self.next += 1;
            self.last = request.arrival;
            self.in_pass += 1;
        }
        Ok(request)
    }

    #[inline(never)]
    fn refill(&mut self, repeats: bool) -> Result<bool, SourceError> {
        self.batch.clear();
        self.next = 0;
        if !self.dry && self.source.fill(&mut self.batch, BATCH)? == 0 {
            if repeats && self.is_recording && self.in_pass > 0 {
                // The next pass begins one mean gap after the last request of this one.
                let span = self.last.0.saturating_sub(self.base.0);
                self.begin_pass(self.last + Nanos(span / (self.in_pass - 1).max(1)), Passes::One)?;
                return self.refill(repeats);
            }
            self.dry = true;
        }
        let Request { first_sector, queue, priority, .. } = self.as_issued;
        for request in &mut self.batch {
            request.first_sector += first_sector;
            request.stream = self.handle.unwrap_or(request.stream);
            (request.queue, request.priority) = (queue, priority);
        }
        Ok(!self.batch.is_empty())
    }

    /// Starts a recording over, its times from `base` on.
    fn begin_pass(&mut self, base: Nanos, passes: Passes) -> Result<(), SourceError> {
        self.source.start_over(passes)?;
        self.batch.clear();
        (self.next, self.dry, self.base, self.last, self.in_pass) = (0, false, base, base, 0);
        Ok(())
    }
}

/// The tenants of a run at play.
pub(crate) struct Tenants {
    tenants: Vec<Tenant>,
    /// By tenant; none of those that are silent.
    queues: Vec<Option<Queue>>,
    /// A place of a closed loop that is free, by tenant, in the order in which they became so.
    ready: VecDeque<u16>,
    /// The next arrival of each open loop.
    arrivals: BinaryHeap<Reverse<(Nanos, u16)>>,
    in_flight: u64,
    /// Who has just drawn requests that are not announced.
    drew: Option<u16>,
    /// Whether there are recordings, with the last of which playing ends.
    has_recordings: bool,
    /// Whether recordings start over when they end.
    repeats: bool,
    /// Whether the first request was asked for.
    begun: bool,
    /// Whether all begin anew before the next request.
    begins_anew: bool,
}

impl Tenants {
    /// The tenants, silent ones included.
    pub fn tenants(&self) -> &[Tenant] {
        &self.tenants
    }

    /// The sources of those that play, with the names of their tenants.
    pub fn sources(&self) -> impl Iterator<Item = (&str, &Source)> {
        let named = self.tenants.iter().zip(&self.queues);
        named.filter_map(|(tenant, queue)| Some((tenant.name.as_str(), &queue.as_ref()?.source)))
    }

    /// Whether playing ends by itself.
    pub fn ends(&self) -> bool {
        self.has_recordings
    }

    /// Begins anew at `now`: recordings with their first request, all other open loops with their next one, which keeps its
    /// distance from the one before.
    fn begin_anew(&mut self, now: Nanos) -> Result<(), SourceError> {
        self.begins_anew = false;
        self.arrivals.clear();
        for at in 0..self.queues.len() {
            match &mut self.queues[at] {
                Some(queue) if queue.is_recording => queue.begin_pass(now, Passes::All)?,
                Some(queue) => queue.base += now - queue.last,
                None => {}
            }
            self.expect_arrival(at)?;
        }
        Ok(())
    }

    /// Gives closed loops their places, in turn, and looks for the first arrival of open loops.
    fn begin(&mut self, now: Nanos) -> Result<(), SourceError> {
        self.begun = true;
        let deepest = self.queues.iter().flatten().map(|queue| queue.depth).max().unwrap_or(0);
        for place in 0..deepest {
            let takes = |queue: &Option<Queue>| queue.as_ref().is_some_and(|queue| place < queue.depth);
            self.ready.extend((0..).zip(&self.queues).filter_map(|(at, queue)| takes(queue).then_some(at)));
        }
        for at in 0..self.queues.len() {
            if let Some(queue) = &mut self.queues[at] {
                (queue.base, queue.last) = (now, now);
            }
            self.expect_arrival(at)?;
        }
        Ok(())
    }

    /// Enters the next arrival of a tenant, if it is an open loop that goes on.
    fn expect_arrival(&mut self, at: usize) -> Result<(), SourceError> {
        if let Some(queue) = &mut self.queues[at]
            && queue.time_scale.is_some()
            && let Some(request) = queue.peek(self.repeats)?
        {
            self.arrivals.push(Reverse((request.arrival, number(at))));
        }
        Ok(())
    }

    /// The next request of a tenant; none at its end.
    #[inline(always)]
    fn take(&mut self, at: usize) -> Result<Option<Request>, SourceError> {
        let Some(queue) = &mut self.queues[at] else { return Ok(None) };
        let taken = queue.take(self.repeats);
        if queue.next == 1 {
            self.drew = Some(number(at));
        }
        taken
    }

    /// Whether every recording has ended.
    fn recordings_are_over(&self) -> bool {
        let mut recordings = self.queues.iter().flatten().filter(|queue| queue.is_recording);
        recordings.all(|queue| queue.dry && queue.next == queue.batch.len())
    }
}

#[allow(clippy::cast_possible_truncation)] // there are at most `TENANTS_MAX`
fn number(at: usize) -> u16 {
    at as u16
}

impl RequestSource for Tenants {
    fn fill(&mut self, _: &mut Vec<Request>, _: usize) -> Result<usize, SourceError> {
        Err(SourceError("tenants share a clock, so they can only be played".into()))
    }

    /// Under [`Passes::One`] recordings start over whenever they end; with [`Passes::All`] they do so now, and then no more. The
    /// tenants together never start over: their generators go on.
    fn start_over(&mut self, passes: Passes) -> Result<bool, SourceError> {
        self.repeats = passes == Passes::One;
        self.begins_anew = passes == Passes::All;
        if self.repeats {
            for queue in self.queues.iter_mut().flatten().filter(|queue| queue.is_recording) {
                queue.source.start_over(passes)?;
            }
        }
        Ok(false)
    }

    fn interactive(&mut self) -> Option<&mut dyn Interactive> {
        Some(self)
    }
}

impl Interactive for Tenants {
    fn next(&mut self, now: Nanos) -> Result<Next, SourceError> {
        if !self.begun {
            self.begin(now)?;
        }
        if self.begins_anew {
            self.begin_anew(now)?;
        }
        if let Some(Reverse((arrival, at))) = self.arrivals.peek().copied()
            && arrival <= now
        {
            self.arrivals.pop();
            let request = self.take(usize::from(at))?;
            self.expect_arrival(usize::from(at))?;
            return Ok(Next::Arrived(request.expect("it was looked at")));
        }
        while let Some(at) = self.ready.pop_front() {
            if let Some(request) = self.take(usize::from(at))? {
                return Ok(Next::Submit(request));
            }
        }
        if self.has_recordings && self.recordings_are_over() {
            return Ok(Next::Ended);
        }
        Ok(match self.arrivals.peek() {
            Some(Reverse((arrival, _))) => Next::Wait(*arrival),
            None if self.in_flight > 0 => Next::WaitForCompletion,
            None => Next::Ended,
        })
    }

    #[inline(always)]
    fn drawn(&mut self) -> &[Request] {
        let Some(at) = self.drew.take() else { return &[] };
        self.queues[usize::from(at)].as_ref().map_or(&[], |queue| &queue.batch[queue.next..])
    }

    fn submitted(&mut self, _: Tag) {
        self.in_flight += 1;
    }

    fn completed(&mut self, completion: &Completion) {
        self.in_flight -= 1;
        let at = completion.request.queue;
        if self.queues[usize::from(at)].as_ref().is_some_and(|queue| queue.time_scale.is_none()) {
            self.ready.push_back(at);
        }
    }
}
