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
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct HostRequest {
    request: Request,
    tag: u64,
    parts_left: u32,
    /// Parts not yet dispatched; kept only if the device below keeps the order of overlapping requests.
    parts_here: u32,
    /// Whether a later one waits for it.
    waited_for: bool,
    /// Whether a part has completed, so that `so_far` has its completion so far.
    begun: bool,
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
/// Initial and largest number of counts. There are at least 16 for each outstanding request, so that few regions share one.
const REGIONS: usize = 2_048;
const REGIONS_MAX: usize = 1 << 17;
const REGIONS_PER_REQUEST: usize = 16;
/// Largest number of regions of a request that are counted one by one. A longer request is counted by wide regions; if
/// it has too many of those as well, every later request is compared with it.
const REGIONS_COUNTED: u64 = 32;
/// Largest number of regions checked for a long request; beyond it, all live requests are compared.
const REGIONS_LOOKED_AT: u64 = 1_024;

/// A host request that may conflict with later ones; stored contiguously by number, because all of them are scanned. One that
/// is gone ends at 0.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Live {
    first_sector: u64,
    end_sector: u64,
    tag: u64,
    reads: bool,
}

impl Live {
    /// Where a [`Count`] has its kind.
    #[inline(always)]
    fn half(&self) -> u32 {
        16 * u32::from(!self.reads)
    }
}

/// The requests of the regions that share a count.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Count {
    /// Reads in the lower half, requests that change something in the upper. One number, since the kind of a request is
    /// unpredictable and so is no branch. A saturated half stays saturated, which costs only time.
    kinds: u32,
    /// The lower half of the region's number, if all of them are in one; else, or if it has that number, `MIXED`.
    region: u32,
}

const MIXED: u32 = u32::MAX;
const READS: u32 = 0xFFFF;

/// The lower half of the number of a region.
#[inline(always)]
#[allow(clippy::cast_possible_truncation)] // requests of regions that differ in the upper half only are compared
fn low(region: u64) -> u32 {
    region as u32
}

impl Count {
    /// Counts one more request of the kinds that begin at bit `half`.
    #[inline(always)]
    fn add(&mut self, half: u32, region: u64) {
        self.region = if (self.kinds == 0) | (self.region == low(region)) { low(region) } else { MIXED };
        self.kinds += u32::from((self.kinds >> half) & READS != READS) << half;
    }

    #[inline(always)]
    fn take(&mut self, half: u32) {
        self.kinds -= u32::from((self.kinds >> half) & READS != READS) << half;
    }

    /// Whether a request in this region may conflict with one of these kinds.
    #[inline(always)]
    fn may_conflict(&self, kinds: u32, region: u64) -> bool {
        ((self.kinds & kinds) > 0) & ((self.region == low(region)) | (self.region == MIXED))
    }
}

/// The counts of all regions of one size.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Counts {
    shift: u32,
    /// A power of two of them.
    counts: Vec<Count>,
}

impl Counts {
    fn new(shift: u32, count: usize) -> Self {
        Self { shift, counts: vec![Count::default(); count] }
    }

    /// First and last region between two sectors.
    #[inline(always)]
    fn span(&self, sectors: (u64, u64)) -> (u64, u64) {
        (sectors.0 >> self.shift, (sectors.1 - 1) >> self.shift)
    }

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // the truncated bits are folded away anyway
    fn place(&self, region: u64) -> usize {
        // Each run of 1,024 regions is shifted by its own distance, because file systems start at similar places in many
        // groups.
        region.wrapping_add((region >> 10).wrapping_mul(0x9e37_79b9)) as usize & (self.counts.len() - 1)
    }

    /// Counts a request, or no longer; false if it has too many regions.
    #[inline(always)]
    fn change(&mut self, sectors: (u64, u64), by: impl Fn(&mut Count, u64)) -> bool {
        let (first, last) = self.span(sectors);
        if last - first >= REGIONS_COUNTED {
            return false;
        }
        let mut region = first;
        loop {
            let place = self.place(region);
            by(&mut self.counts[place], region);
            if region == last {
                return true;
            }
            region += 1;
        }
    }

    #[inline(always)]
    fn may_conflict(&self, sectors: (u64, u64), kinds: u32) -> bool {
        let (first, last) = self.span(sectors);
        if last - first >= REGIONS_LOOKED_AT {
            return true;
        }
        let mut region = first;
        loop {
            if self.counts[self.place(region)].may_conflict(kinds, region) {
                return true;
            }
            if region == last {
                return false;
            }
            region += 1;
        }
    }
}

/// Counts of outstanding requests by region: a request whose regions are all at zero overlaps nothing.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Regions {
    short: Counts,
    /// The same for longer requests, by wide regions.
    wide: Counts,
    /// Number of requests counted by wide regions.
    wide_live: u32,
    /// Requests too long to be counted by region: reads, and requests that change something.
    long: [u32; 2],
}

impl Regions {
    fn new(count: usize) -> Self {
        let (short, wide) = (Counts::new(REGION_SHIFT, count), Counts::new(WIDE_SHIFT, REGIONS));
        Self { short, wide, wide_live: 0, long: [0; 2] }
    }

    /// The new number of counts, if more are needed.
    #[inline]
    fn growth(&self, live: usize) -> Option<usize> {
        let now = self.short.counts.len();
        (live * REGIONS_PER_REQUEST > now && now < REGIONS_MAX).then(|| 4 * now)
    }

    #[inline(always)]
    fn add(&mut self, live: &Live) {
        let (half, sectors) = (live.half(), (live.first_sector, live.end_sector));
        if !self.short.change(sectors, |count, region| count.add(half, region)) {
            if self.wide.change(sectors, |count, region| count.add(half, region)) {
                self.wide_live += 1;
            } else {
                self.long[usize::from(!live.reads)] += 1;
            }
        }
    }

    #[inline(always)]
    fn take(&mut self, live: &Live) {
        let (half, sectors) = (live.half(), (live.first_sector, live.end_sector));
        if !self.short.change(sectors, |count, _| count.take(half)) {
            if self.wide.change(sectors, |count, _| count.take(half)) {
                self.wide_live -= 1;
            } else {
                self.long[usize::from(!live.reads)] -= 1;
            }
        }
    }

    /// Whether a request may overlap an outstanding one in a way that matters.
    #[inline(always)]
    fn may_conflict(&self, live: &Live) -> bool {
        // Reads conflict only with changes.
        let kinds = !(READS * u32::from(live.reads));
        let sectors = (live.first_sector, live.end_sector);
        if (self.wide_live | self.long[0] | self.long[1]) > 0 {
            let [reads, changes] = self.long;
            if changes > 0
                || (reads > 0 && !live.reads)
                || (self.wide_live > 0 && self.wide.may_conflict(sectors, kinds))
            {
                return true;
            }
        }
        self.short.may_conflict(sectors, kinds)
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
    /// The completions so far of host requests of which some parts have completed, by number.
    so_far: Vec<Completion>,
    /// Host requests that later ones may conflict with, by number, and how many there are.
    live: Vec<Live>,
    live_count: usize,
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
            so_far: Vec::new(),
            live: Vec::new(),
            live_count: 0,
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
        while self.hosts[self.links[at_link as usize].host as usize].request.end_sector() <= at {
            last = at_link;
            at_link = self.links[at_link as usize].next;
        }
        let host = self.links[at_link as usize].host;
        let first_of_rest = if self.hosts[host as usize].request.first_sector < at {
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

    #[inline(always)]
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

    #[inline(always)]
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
        let host = HostRequest { request, tag, parts_left: 1, parts_here: 1, waited_for: false, begun: false };
        match self.free_hosts.pop() {
            Some(at) => {
                self.hosts[at as usize] = host;
                at
            }
            None => {
                self.hosts.push(host);
                self.live.push(Live::default());
                at(self.hosts.len())
            }
        }
    }

    /// Whether a later request waits for this one.
    pub(crate) fn is_waited_for(&self, host: u32) -> bool {
        self.hosts[host as usize].waited_for
    }

    pub(crate) fn request_of(&self, host: u32) -> &Request {
        &self.hosts[host as usize].request
    }

    /// Registers a request, so that later requests that overlap it are detected. Returns the newest earlier request
    /// that overlaps it, if their order matters.
    #[inline]
    pub(crate) fn admit(&mut self, host: u32) -> Option<u32> {
        let live = self.as_live(host);
        if live.end_sector == live.first_sector {
            return None; // a flush covers acknowledged requests, which are below already
        }
        let conflict = if self.regions.may_conflict(&live) { self.find_conflict(&live) } else { None };
        self.live[host as usize] = live;
        self.live_count += 1;
        self.regions.add(&live);
        if let Some(regions) = self.regions.growth(self.live_count) {
            self.regions = Regions::new(regions);
            self.live.iter().filter(|live| live.end_sector > 0).for_each(|live| self.regions.add(live));
        }
        conflict
    }

    #[inline]
    fn as_live(&self, host: u32) -> Live {
        let HostRequest { request, tag, .. } = &self.hosts[host as usize];
        Live {
            first_sector: request.first_sector,
            end_sector: request.end_sector(),
            tag: *tag,
            reads: request.kind == RequestKind::Read,
        }
    }

    /// The newest request that came before this one and overlaps it, unless both are reads; records that a request
    /// waits for it.
    pub(crate) fn conflict(&mut self, host: u32) -> Option<u32> {
        let live = self.as_live(host);
        if self.regions.may_conflict(&live) { self.find_conflict(&live) } else { None }
    }

    #[inline(never)]
    fn find_conflict(&mut self, live: &Live) -> Option<u32> {
        let overlaps = |other: &Live| (other.first_sector < live.end_sector) & (live.first_sector < other.end_sector);
        // Overlaps are rare, so several requests are compared per branch.
        let mut newest: Option<(u64, usize)> = None;
        for (at, several) in self.live.chunks(8).enumerate() {
            if !several.iter().fold(false, |some, other| some | overlaps(other)) {
                continue;
            }
            for (place, other) in several.iter().enumerate() {
                if overlaps(other)
                    && other.tag < live.tag
                    && !(live.reads && other.reads)
                    && newest.is_none_or(|(tag, _)| tag < other.tag)
                {
                    newest = Some((other.tag, 8 * at + place));
                }
            }
        }
        let found = newest?.1;
        self.hosts[found].waited_for = true;
        u32::try_from(found).ok()
    }

    /// Creates a queued request from a host request.
    pub(crate) fn queue(&mut self, host: u32, now: Nanos) -> Id {
        let HostRequest { request, tag, .. } = self.hosts[host as usize];
        let link = self.link(host);
        self.place(Queued {
            first_sector: request.first_sector,
            end_sector: request.end_sector(),
            queued_at: now,
            handed_on_at: Nanos(0),
            order: tag,
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
            entry.parts_left -= 1;
            let HostRequest { request, tag, parts_left, waited_for, begun, .. } = *entry;
            let result = match &below.result {
                Ok(()) => Ok(()),
                Err(error) => Err(error.clone()),
            };
            // What merged requests caused counts once.
            let effects = std::mem::take(&mut effects);
            let mut completion =
                Completion { tag: Tag(tag), request, start: below.start, end: below.end, effects, result };
            if begun || parts_left > 0 {
                completion = self.part_completed(host, completion);
            }
            if parts_left == 0 {
                self.free_hosts.push(host);
                self.retire(host);
                done(completion, host, waited_for);
            } else {
                self.so_far[host as usize] = completion;
            }
        }
        self.free_queued.push(id.0);
    }

    /// The completion of a host request with several parts, after one more of them.
    #[inline(never)]
    fn part_completed(&mut self, host: u32, part: Completion) -> Completion {
        let entry = &mut self.hosts[host as usize];
        if !std::mem::replace(&mut entry.begun, true) {
            if self.so_far.len() <= host as usize {
                self.so_far.resize_with(host as usize + 1, Completion::default);
            }
            return part;
        }
        let so_far = std::mem::take(&mut self.so_far[host as usize]);
        Completion {
            start: so_far.start.min(part.start),
            end: so_far.end.max(part.end),
            effects: so_far.effects + part.effects,
            result: so_far.result.and(part.result),
            ..part
        }
    }

    /// From now on no request conflicts with this one.
    #[inline]
    fn retire(&mut self, host: u32) {
        let live = &mut self.live[host as usize];
        if live.end_sector == 0 {
            return;
        }
        let gone = *live;
        live.end_sector = 0;
        self.live_count -= 1;
        self.regions.take(&gone);
    }
}

/// Index of the last of `len` entries.
fn at(len: usize) -> u32 {
    u32::try_from(len - 1).expect("fewer than 2^32 requests wait")
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwright_block::{Seed, below, chance};

    /// Regions share counts, short requests stand beside long ones, and numbers are used again.
    #[test]
    fn the_newest_overlapping_request_is_found() {
        let mut rng = Seed(3).stream("pool");
        let (mut pool, mut live, mut found) = (Pool::new(true), Vec::<(u32, u64, Request)>::new(), [0; 2]);
        for tag in 0..60_000 {
            let most = if tag % 20_000 < 10_000 { 40 } else { 400 };
            while live.len() >= most {
                let at = usize::try_from(below(&mut rng, live.len() as u64)).expect("few");
                let (gone, ..) = live.swap_remove(at);
                pool.retire(gone);
                pool.free_hosts.push(gone);
            }
            let near = (!live.is_empty() && chance(&mut rng, 0.3))
                .then(|| live[usize::try_from(below(&mut rng, live.len() as u64)).expect("few")].2.first_sector);
            // Some regions differ in the upper half of their numbers only.
            let first_sector = match near {
                None => below(&mut rng, 1 << 36),
                Some(near) => (near + below(&mut rng, 24)) ^ (u64::from(chance(&mut rng, 0.3)) << 40),
            };
            let most = [8, 8, 8, 600, 100_000][usize::try_from(tag % if tag < 30_000 { 3 } else { 5 }).expect("few")];
            let sectors = u32::try_from(1 + below(&mut rng, most)).expect("short");
            let kind = if chance(&mut rng, 0.5) { RequestKind::Read } else { RequestKind::Write };
            let request = Request { first_sector, sectors, kind, ..Request::default() };
            let overlaps = |(_, _, other): &&(u32, u64, Request)| {
                other.first_sector < request.end_sector()
                    && first_sector < other.end_sector()
                    && (kind, other.kind) != (RequestKind::Read, RequestKind::Read)
            };
            let newest = live.iter().filter(overlaps).max_by_key(|(_, tag, _)| *tag).map(|(host, ..)| *host);
            let host = pool.arrives(request, tag);
            assert_eq!(pool.admit(host), newest, "request {tag}");
            assert!(newest.is_none_or(|newest| pool.is_waited_for(newest)));
            found[usize::from(newest.is_some())] += 1;
            live.push((host, tag, request));
        }
        assert!(found[0] > 2_000 && found[1] > 2_000, "{found:?}");
    }
}
