//! The requests in a filter: those of the host, and the queued requests that merging and cutting make of them.
//!
//! ```text
//!  host requests   A ├────┤ B ├──┤ C ├──────┤        a completion each, when their last part is done
//!  queued          1 ├───────────┤ 2 ├──┤ 3 ├───┤    A and B merged, C cut in two
//! ```

use crate::tables::ByKey;
use flashwright_block::{Completion, Nanos, Request, RequestKind, Tag};
use serde::{Deserialize, Serialize};

const NONE: u32 = u32::MAX;

/// Number of a queued request; numbers of requests that left are reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Id(pub u32);

/// A queued request: one or several host requests, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queued {
    /// First sector.
    pub first_sector: u64,
    /// One past the last sector.
    pub end_sector: u64,
    /// When the earliest of its parts was queued.
    pub queued_at: Nanos,
    /// When it was dispatched to the device below; zero before.
    pub handed_on_at: Nanos,
    /// Position in the order of arrival of the earliest of its parts.
    pub order: u64,
    /// The process of the earliest of its parts.
    pub process: u32,
    /// The stream of the earliest of its parts.
    pub stream: u16,
    /// Its kind.
    pub kind: RequestKind,
    /// Whether it must be durable when it completes.
    pub fua: bool,
    /// Whether it may still grow.
    open: bool,
    /// First and last of its links to host requests, by address.
    links: (u32, u32),
}

impl Queued {
    /// Length in sectors.
    #[must_use]
    pub fn sectors(&self) -> u64 {
        self.end_sector - self.first_sector
    }

    /// Whether it is synchronous in the sense of Linux 2.6 schedulers: a read. No trace records whether a write was
    /// direct.
    #[must_use]
    pub fn is_sync(&self) -> bool {
        self.kind == RequestKind::Read
    }
}

/// A request of the host that has not completed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct HostRequest {
    completion: Completion,
    parts_left: u32,
    /// Parts not yet dispatched; kept only if the device below keeps the order of overlapping requests.
    parts_here: u32,
    /// Its index in `live`.
    live_at: u32,
    /// Whether a later one waits for it.
    waited_for: bool,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Link {
    host: u32,
    next: u32,
}

/// Size of a region whose outstanding requests are counted, as a shift in sectors: 4 KiB, and 1 MiB for longer
/// requests.
const REGION_SHIFT: u32 = 3;
const WIDE_SHIFT: u32 = 11;
/// Initial and largest number of counts. There are 64 for each outstanding request, so that few requests without an
/// overlap need a closer check.
const REGIONS: usize = 4_096;
const REGIONS_MAX: usize = 1 << 17;
const REGIONS_PER_REQUEST: usize = 64;
/// Largest number of regions of a request that are counted one by one. A longer request is counted by wide regions; if
/// it has too many of those as well, every later request is compared with it.
const REGIONS_COUNTED: u64 = 32;
/// Largest number of regions checked for a long request; beyond it, all live requests are compared.
const REGIONS_LOOKED_AT: u64 = 1_024;

/// A host request that may conflict with later ones; stored contiguously, because all of them are scanned.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Live {
    first_sector: u64,
    end_sector: u64,
    tag: u64,
    host: u32,
    reads: bool,
}

/// The regions of one size between two sectors, folded to a power of two of counts; none if there are too many.
#[inline]
fn regions(sectors: (u64, u64), shift: u32, counts: usize, most: u64) -> Option<impl Iterator<Item = usize> + use<>> {
    let (first, last) = (sectors.0 >> shift, (sectors.1 - 1) >> shift);
    let mask = counts - 1;
    // Each run of 1,024 regions is shifted by its own distance, because file systems start at similar places in many
    // groups.
    #[allow(clippy::cast_possible_truncation)] // the truncated bits are folded away anyway
    let fold = move |region: u64| region.wrapping_add((region >> 10).wrapping_mul(0x9e37_79b9)) as usize & mask;
    (last - first < most).then(|| (first..=last).map(fold))
}

/// Counts of outstanding requests by region: a request whose regions are all at zero overlaps nothing.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Regions {
    /// Reads, and requests that change something.
    counts: [Vec<u16>; 2],
    /// The same for longer requests, by wide regions.
    wide: [Vec<u16>; 2],
    /// Number of requests counted by wide regions.
    wide_live: u32,
    /// Requests too long to be counted by region: reads, and requests that change something.
    long: [u32; 2],
}

impl Regions {
    fn new(count: usize) -> Self {
        let counts = |count| [vec![0; count], vec![0; count]];
        Self { counts: counts(count), wide: counts(REGIONS), wide_live: 0, long: [0; 2] }
    }

    /// The new number of counts, if more are needed.
    #[inline]
    fn growth(&self, live: usize) -> Option<usize> {
        let now = self.counts[0].len();
        (live * REGIONS_PER_REQUEST > now && now < REGIONS_MAX).then(|| 4 * now)
    }

    #[inline]
    fn change(&mut self, live: &Live, by: impl Fn(&mut u16), by_long: impl Fn(&mut u32)) {
        let (list, sectors) = (usize::from(!live.reads), (live.first_sector, live.end_sector));
        if let Some(regions) = regions(sectors, REGION_SHIFT, self.counts[0].len(), REGIONS_COUNTED) {
            regions.for_each(|region| by(&mut self.counts[list][region]));
        } else if let Some(regions) = regions(sectors, WIDE_SHIFT, REGIONS, REGIONS_COUNTED) {
            by_long(&mut self.wide_live);
            regions.for_each(|region| by(&mut self.wide[list][region]));
        } else {
            by_long(&mut self.long[list]);
        }
    }

    #[inline]
    fn add(&mut self, live: &Live) {
        // A saturated count stays saturated, which costs only time.
        self.change(live, |count| *count = count.saturating_add(1), |long| *long += 1);
    }

    #[inline]
    fn take(&mut self, live: &Live) {
        self.change(live, |count| *count -= u16::from(*count != u16::MAX), |long| *long -= 1);
    }

    /// Whether a request may overlap an outstanding one in a way that matters.
    #[inline]
    fn may_conflict(&self, request: &Request) -> bool {
        // Reads conflict only with changes; computed without a branch, because the kind is unpredictable.
        let with_reads = u16::from(request.kind != RequestKind::Read);
        let sectors = (request.first_sector, request.end_sector());
        let counted = |[reads, changes]: &[Vec<u16>; 2], shift, most| {
            regions(sectors, shift, reads.len(), most)
                .is_none_or(|mut regions| regions.any(|at| changes[at] | (reads[at] * with_reads) > 0))
        };
        let [reads, changes] = self.long;
        changes + reads * u32::from(with_reads) > 0
            || (self.wide_live > 0 && counted(&self.wide, WIDE_SHIFT, REGIONS_LOOKED_AT))
            || counted(&self.counts, REGION_SHIFT, REGIONS_LOOKED_AT)
    }
}

/// Arena of requests of one filter.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pool {
    queued: Vec<Queued>,
    free_queued: Vec<u32>,
    links: Vec<Link>,
    free_links: Vec<u32>,
    hosts: Vec<HostRequest>,
    free_hosts: Vec<u32>,
    live: Vec<Live>,
    regions: Regions,
    /// Queued requests that may grow, by end and by start; the lowest two bits are the kind.
    by_end: ByKey,
    by_start: ByKey,
    /// Whether requests are also searched by start.
    keeps_starts: bool,
}

/// The index of a kind in counts by direction: reads 0, all others 1.
pub(crate) fn side(kind: RequestKind) -> usize {
    usize::from(kind != RequestKind::Read)
}

fn key(sector: u64, kind: RequestKind) -> u64 {
    (sector << 2) | kind as u64
}

impl Pool {
    pub(crate) fn new(keeps_starts: bool) -> Self {
        Self {
            queued: Vec::new(),
            free_queued: Vec::new(),
            links: Vec::new(),
            free_links: Vec::new(),
            hosts: Vec::new(),
            free_hosts: Vec::new(),
            live: Vec::new(),
            regions: Regions::new(REGIONS),
            by_end: ByKey::default(),
            by_start: ByKey::default(),
            keeps_starts,
        }
    }

    /// A queued request.
    #[inline]
    #[must_use]
    pub fn get(&self, id: Id) -> &Queued {
        &self.queued[id.0 as usize]
    }

    /// Number of queued requests, including those below.
    pub(crate) fn queued_count(&self) -> usize {
        self.queued.len() - self.free_queued.len()
    }

    /// Cuts a queued request at a sector inside it. It keeps the part before the sector; returns the rest, which no
    /// longer grows unless [`Pool::reopen`] is called.
    pub fn split(&mut self, id: Id, at: u64) -> Id {
        let whole = *self.get(id);
        assert!(whole.first_sector < at && at < whole.end_sector, "a cut lies inside the request");
        let was_open = whole.open;
        self.close(id);
        // Links are in order of address, and each host request covers its sectors without a gap.
        let (mut last, mut at_link) = (NONE, whole.links.0);
        while self.hosts[self.links[at_link as usize].host as usize].completion.request.end_sector() <= at {
            last = at_link;
            at_link = self.links[at_link as usize].next;
        }
        let host = self.links[at_link as usize].host;
        let first_of_rest = if self.hosts[host as usize].completion.request.first_sector < at {
            // A host request on both sides of the cut.
            self.hosts[host as usize].parts_left += 1;
            self.hosts[host as usize].parts_here += 1;
            let rest = self.link(host);
            self.links[rest as usize].next = self.links[at_link as usize].next;
            self.links[at_link as usize].next = NONE;
            last = at_link;
            rest
        } else {
            self.links[last as usize].next = NONE;
            at_link
        };
        let tail = if whole.links.1 == at_link && first_of_rest != at_link { first_of_rest } else { whole.links.1 };
        let rest = Queued { first_sector: at, links: (first_of_rest, tail), open: false, ..whole };
        let rest = self.place(rest);
        let kept = &mut self.queued[id.0 as usize];
        kept.end_sector = at;
        kept.links.1 = last;
        if was_open {
            self.reopen(id);
        }
        rest
    }

    /// Lets a request grow again.
    #[inline]
    pub fn reopen(&mut self, id: Id) {
        let queued = &mut self.queued[id.0 as usize];
        queued.open = !queued.fua && queued.kind != RequestKind::Flush;
        if queued.open {
            self.by_end.insert(key(queued.end_sector, queued.kind), id);
            if self.keeps_starts {
                self.by_start.insert(key(queued.first_sector, queued.kind), id);
            }
        }
    }

    /// Stops a request from growing.
    pub fn close(&mut self, id: Id) {
        let queued = &mut self.queued[id.0 as usize];
        if !std::mem::take(&mut queued.open) {
            return;
        }
        let (end, start) = (key(queued.end_sector, queued.kind), key(queued.first_sector, queued.kind));
        self.by_end.remove(end, id);
        if self.keeps_starts {
            self.by_start.remove(start, id);
        }
    }

    /// A request goes below and no longer grows.
    #[inline]
    pub(crate) fn hand_on(&mut self, id: Id, now: Nanos) {
        self.close(id);
        self.queued[id.0 as usize].handed_on_at = now;
    }

    /// The open request that ends where a request of this kind begins.
    #[inline]
    pub(crate) fn ending_at(&self, sector: u64, kind: RequestKind) -> Option<Id> {
        self.by_end.get(key(sector, kind))
    }

    /// The open request that begins where a request of this kind ends.
    #[inline]
    pub(crate) fn starting_at(&self, sector: u64, kind: RequestKind) -> Option<Id> {
        self.by_start.get(key(sector, kind))
    }

    /// Joins two adjacent queued requests into the one that stays; the other's number becomes free.
    pub(crate) fn join(&mut self, front: Id, back: Id, stays: Id) {
        let was_open = self.get(stays).open;
        self.close(front);
        self.close(back);
        let (a, b) = (*self.get(front), *self.get(back));
        debug_assert!(a.end_sector == b.first_sector && a.kind == b.kind);
        self.links[a.links.1 as usize].next = b.links.0;
        let earlier = if a.order < b.order { a } else { b };
        self.queued[stays.0 as usize] = Queued {
            first_sector: a.first_sector,
            end_sector: b.end_sector,
            links: (a.links.0, b.links.1),
            queued_at: a.queued_at.min(b.queued_at),
            ..earlier
        };
        let gone = if stays == front { back } else { front };
        self.free_queued.push(gone.0);
        self.queued[stays.0 as usize].open = false;
        if was_open {
            self.reopen(stays);
        }
    }

    fn link(&mut self, host: u32) -> u32 {
        let link = Link { host, next: NONE };
        match self.free_links.pop() {
            Some(at) => {
                self.links[at as usize] = link;
                at
            }
            None => {
                self.links.push(link);
                at(self.links.len())
            }
        }
    }

    fn place(&mut self, queued: Queued) -> Id {
        Id(match self.free_queued.pop() {
            Some(at) => {
                self.queued[at as usize] = queued;
                at
            }
            None => {
                self.queued.push(queued);
                at(self.queued.len())
            }
        })
    }

    /// Records a host request; its tag is its position in the order of arrival.
    pub(crate) fn arrives(&mut self, request: Request, tag: u64) -> u32 {
        let host = HostRequest {
            completion: Completion { tag: Tag(tag), request, start: Nanos(u64::MAX), ..Completion::default() },
            parts_left: 1,
            parts_here: 1,
            live_at: NONE,
            waited_for: false,
        };
        match self.free_hosts.pop() {
            Some(at) => {
                self.hosts[at as usize] = host;
                at
            }
            None => {
                self.hosts.push(host);
                at(self.hosts.len())
            }
        }
    }

    /// Whether a later request waits for this one.
    pub(crate) fn is_waited_for(&self, host: u32) -> bool {
        self.hosts[host as usize].waited_for
    }

    pub(crate) fn request_of(&self, host: u32) -> &Request {
        &self.hosts[host as usize].completion.request
    }

    /// Registers a request, so that later requests that overlap it are detected. Returns the newest earlier request
    /// that overlaps it, if their order matters.
    pub(crate) fn admit(&mut self, host: u32) -> Option<u32> {
        let Completion { request, tag, .. } = &self.hosts[host as usize].completion;
        if request.sectors == 0 {
            return None; // a flush covers acknowledged requests, which are below already
        }
        let live = Live {
            first_sector: request.first_sector,
            end_sector: request.end_sector(),
            tag: tag.0,
            host,
            reads: request.kind == RequestKind::Read,
        };
        let conflict = self.conflict(host);
        self.hosts[host as usize].live_at = u32::try_from(self.live.len()).expect("fewer than 2^32 requests wait");
        self.live.push(live);
        self.regions.add(&live);
        if let Some(regions) = self.regions.growth(self.live.len()) {
            self.regions = Regions::new(regions);
            self.live.iter().for_each(|live| self.regions.add(live));
        }
        conflict
    }

    /// The newest request that came before this one and overlaps it, unless both are reads; records that a request
    /// waits for it.
    pub(crate) fn conflict(&mut self, host: u32) -> Option<u32> {
        let Completion { request, tag, .. } = &self.hosts[host as usize].completion;
        if !self.regions.may_conflict(request) {
            return None;
        }
        let (first, end, reads) = (request.first_sector, request.end_sector(), request.kind == RequestKind::Read);
        let overlaps = |other: &Live| (other.first_sector < end) & (first < other.end_sector);
        // Overlaps are rare, so several requests are compared per branch.
        let some_do = |several: &[Live]| several.iter().fold(false, |some, other| some | overlaps(other));
        let overlapping =
            self.live.chunks(8).filter(|several| some_do(several)).flatten().filter(|other| overlaps(other));
        let conflicts = overlapping.filter(|other| other.tag < tag.0 && !(reads && other.reads));
        let found = conflicts.max_by_key(|other| other.tag)?.host;
        self.hosts[found as usize].waited_for = true;
        Some(found)
    }

    /// Creates a queued request from a host request.
    pub(crate) fn queue(&mut self, host: u32, now: Nanos) -> Id {
        let Completion { request, tag, .. } = self.hosts[host as usize].completion;
        let link = self.link(host);
        self.place(Queued {
            first_sector: request.first_sector,
            end_sector: request.end_sector(),
            queued_at: now,
            handed_on_at: Nanos(0),
            order: tag.0,
            process: request.process,
            stream: request.stream,
            kind: request.kind,
            fua: request.fua,
            open: false,
            links: (link, link),
        })
    }

    /// The host requests of a queued request, in order of address, with the sectors of each that it covers.
    pub(crate) fn parts(&self, id: Id) -> impl Iterator<Item = (u32, u64, u64)> + '_ {
        let queued = self.get(id);
        let (first, end, mut at) = (queued.first_sector, queued.end_sector, queued.links.0);
        std::iter::from_fn(move || {
            let Link { host, next } = *self.links.get(at as usize)?;
            at = next;
            let request = self.request_of(host);
            Some((host, request.first_sector.max(first), request.end_sector().min(end)))
        })
    }

    /// A queued request went to a device that keeps the order of overlapping requests itself: host requests that are
    /// below completely no longer block others. Passes those that a later one waits for to `gone`.
    pub(crate) fn handed_on(&mut self, id: Id, mut gone: impl FnMut(u32)) {
        let mut at = self.get(id).links.0;
        while at != NONE {
            let Link { host, next } = self.links[at as usize];
            at = next;
            let entry = &mut self.hosts[host as usize];
            entry.parts_here -= 1;
            if entry.parts_here == 0 {
                if entry.waited_for {
                    gone(host);
                }
                self.retire(host);
            }
        }
    }

    /// A queued request has completed: passes every host request without remaining parts to `done`, with whether a
    /// later one waits for it. The number becomes free. A host request fails if one of its parts fails, with the error
    /// of the first that failed.
    pub(crate) fn completed(&mut self, id: Id, below: &Completion, mut done: impl FnMut(Completion, u32, bool)) {
        let mut at = self.get(id).links.0;
        let mut effects = below.effects;
        while at != NONE {
            let Link { host, next } = self.links[at as usize];
            self.free_links.push(at);
            at = next;
            let entry = &mut self.hosts[host as usize];
            let so_far = &mut entry.completion;
            let mut result = std::mem::replace(&mut so_far.result, Ok(()));
            if let Err(error) = &below.result {
                result = result.and_then(|()| Err(error.clone()));
            }
            // Assembled in registers: copying fields that were just written would wait for them to reach the cache.
            let completion = Completion {
                start: so_far.start.min(below.start),
                end: so_far.end.max(below.end),
                // What merged requests caused counts once.
                effects: so_far.effects + std::mem::take(&mut effects),
                tag: so_far.tag,
                request: so_far.request,
                result,
            };
            entry.parts_left -= 1;
            if entry.parts_left == 0 {
                let waited_for = entry.waited_for;
                self.free_hosts.push(host);
                self.retire(host);
                done(completion, host, waited_for);
            } else {
                entry.completion = completion;
            }
        }
        self.free_queued.push(id.0);
    }

    /// From now on no request conflicts with this one.
    fn retire(&mut self, host: u32) {
        let live_at = std::mem::replace(&mut self.hosts[host as usize].live_at, NONE);
        if live_at == NONE {
            return;
        }
        let gone = self.live.swap_remove(live_at as usize);
        if let Some(moved) = self.live.get(live_at as usize) {
            self.hosts[moved.host as usize].live_at = live_at;
        }
        self.regions.take(&gone);
    }
}

/// Index of the last of `len` entries.
fn at(len: usize) -> u32 {
    u32::try_from(len - 1).expect("fewer than 2^32 requests wait")
}
