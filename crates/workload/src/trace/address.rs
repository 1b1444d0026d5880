//! Fits the addresses of a trace to a drive of another size.
//!
//! | map | address | memory |
//! | --- | --- | --- |
//! | `wrap` | modulo the drive's size; a request across the end becomes two | none |
//! | `reject` | as it is; past the end is an error | none |
//! | `dense` | the n-th page touched first is page n of the drive; a request over pages that are not neighbours there becomes several | about 20 B a page touched |
//! | `compact` | touched sectors are numbered in order of address, so holes vanish | [`Footprint`] |
//! | `scale` | in order of address, onto a share of the drive: holes shrink or grow, and where that is not enough, several pages of the trace share one of the drive | [`Footprint`] |
//!
//! Unless one is chosen, a trace is wrapped if few of its requests reach past the end of the drive, and refused if many do
//! ([`WRAPPED_MAX`]): wrapped addresses meet data of others, so the drive would play another load.
//!
//! `dense` suits studies of write amplification: holes that a trace never touches would hold no data. A trim does not
//! touch pages: the untouched pages that it covers are left out. `compact` and `scale` take a first pass over the trace.

use super::footprint::Footprint;
use flashwright_block::{Bytes, Passes, Request, RequestClass, RequestKind, RequestSource, SECTOR_BYTES, SourceError};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The share of requests past the end of the drive from which on a trace is refused unless `wrap` was asked for. Up to it, the
/// requests that meet data of others are too few to show in figures given to a few percent.
pub const WRAPPED_MAX: f64 = 0.05;

/// Sectors of the pages that `scale` keeps together: 4 KiB, the page of file systems.
const SCALE_SECTORS: u64 = 8;

/// How addresses are fitted to a drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AddressMap {
    /// Nothing was asked for: as [`AddressMap::Wrap`], but an error if more than [`WRAPPED_MAX`] of the requests reach past the
    /// drive's end.
    WrapFew,
    /// Modulo the drive's size. A request that crosses the end becomes two: up to the end, and from sector 0.
    Wrap,
    /// As they are; one past the drive's end is an error.
    Reject,
    /// The n-th page touched first becomes page n.
    Dense {
        /// Size of a page, a multiple of 512 B; 4 KiB is usual.
        page: Bytes,
    },
    /// The n-th touched sector in order of address becomes sector n.
    Compact,
    /// Onto this share of the drive, in order of address.
    Scale {
        /// Above 0, at most 1.
        share: f64,
    },
}

impl AddressMap {
    /// [`AddressMap::Dense`] with pages of 4 KiB.
    pub const DENSE: AddressMap = AddressMap::Dense { page: Bytes(4096) };

    /// Its name for `--addresses`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            AddressMap::WrapFew | AddressMap::Wrap => "wrap",
            AddressMap::Reject => "reject",
            AddressMap::Dense { .. } => "dense",
            AddressMap::Compact => "compact",
            AddressMap::Scale { .. } => "scale",
        }
    }

    /// Whether the map depends on all addresses of the trace, so that [`Mapped::fitted`] needs a [`Footprint`] of units of
    /// this many sectors; `granule` is the largest that all requests of the trace are whole multiples of.
    #[must_use]
    pub fn unit_sectors(&self, granule: u64) -> Option<u64> {
        match self {
            AddressMap::Compact => Some(granule),
            AddressMap::Scale { .. } => Some(SCALE_SECTORS),
            _ => None,
        }
    }
}

impl std::str::FromStr for AddressMap {
    type Err = MapError;

    fn from_str(text: &str) -> Result<Self, MapError> {
        match text {
            "wrap" => Ok(AddressMap::Wrap),
            "reject" => Ok(AddressMap::Reject),
            "dense" => Ok(AddressMap::DENSE),
            "compact" => Ok(AddressMap::Compact),
            "scale" => Ok(AddressMap::Scale { share: 1.0 }),
            other => {
                let share = other.strip_prefix("scale:").and_then(|share| match share.strip_suffix('%') {
                    Some(percent) => Some(percent.trim().parse::<f64>().ok()? / 100.0),
                    None => share.trim().parse().ok(),
                });
                match share {
                    Some(share) if share > 0.0 && share <= 1.0 => Ok(AddressMap::Scale { share }),
                    _ => Err(MapError::Unknown { found: other.to_owned() }),
                }
            }
        }
    }
}

/// Why addresses could not be fitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MapError {
    /// The name is unknown.
    #[error(
        "addresses: found {found:?}, expected wrap, reject, dense, compact, scale or scale:SHARE with a share up to 1"
    )]
    Unknown {
        /// As the user wrote it.
        found: String,
    },
    /// The page is no multiple of a sector, or the drive has no room for one.
    #[error("pages of {page} do not fit a drive of {device_sectors} sectors: take a multiple of 512 B below its size")]
    Page {
        /// Size of the page.
        page: Bytes,
        /// Size of the drive.
        device_sectors: u64,
    },
    /// The request reaches past the end of the drive.
    #[error(
        "request {request} reaches sector {end_sector}, but the drive has {device_sectors}: \
         choose a larger drive, --addresses scale, compact, dense or wrap"
    )]
    PastEnd {
        /// Number of the request in the stream, from 1.
        request: u64,
        /// One past its last sector.
        end_sector: u64,
        /// Size of the drive.
        device_sectors: u64,
    },
    /// A single request is larger than the drive.
    #[error(
        "request {request} has {sectors} sectors, more than the whole drive ({device_sectors}): choose a larger drive"
    )]
    Larger {
        /// Number of the request in the stream, from 1.
        request: u64,
        /// Its length.
        sectors: u32,
        /// Size of the drive.
        device_sectors: u64,
    },
    /// More distinct pages than the drive has.
    #[error(
        "the trace touches more than {pages} pages of {page} (request {request}); the drive has {pages}: \
         choose a larger drive or --addresses scale"
    )]
    PagesUsedUp {
        /// Pages of the drive.
        pages: u64,
        /// Size of a page.
        page: Bytes,
        /// Number of the request in the stream, from 1.
        request: u64,
    },
    /// Most of the trace lies past the end of the drive, and nobody asked for wrapping.
    #[error(
        "{} of {} reach past the end of the drive ({} of {}): wrapped around it they would meet data of others. Choose \
         --addresses scale, which fits what the trace touches to the drive; compact or dense, if that is less than the \
         drive; wrap; or a larger drive",
        percent(.past, .requests),
        looked_at(.requests, .whole),
        size(.device_sectors),
        size(.end_sector)
    )]
    Mostly {
        /// Requests past the end.
        past: u64,
        /// Requests looked at.
        requests: u64,
        /// Whether these are all of the trace.
        whole: bool,
        /// One past the last sector of these.
        end_sector: u64,
        /// Size of the drive.
        device_sectors: u64,
    },
    /// What the trace touches is more than the drive.
    #[error(
        "the trace touches {}, and the drive has {}: choose a larger drive or --addresses scale",
        size(.touched_sectors),
        size(.device_sectors)
    )]
    Beyond {
        /// What the trace touches.
        touched_sectors: u64,
        /// Size of the drive.
        device_sectors: u64,
    },
}

/// A share in whole percent.
fn percent(part: &u64, of: &u64) -> String {
    let of = u128::from((*of).max(1));
    format!("{} %", (u128::from(*part) * 100 + of / 2) / of)
}

fn looked_at(requests: &u64, whole: &bool) -> String {
    format!("the trace's {}{requests} requests", if *whole { "" } else { "first " })
}

fn size(sectors: &u64) -> String {
    Bytes(sectors.saturating_mul(SECTOR_BYTES)).rounded()
}

impl From<MapError> for SourceError {
    fn from(error: MapError) -> Self {
        SourceError(error.to_string())
    }
}

/// The counts of a map so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct MapReport {
    /// Requests mapped.
    pub requests: u64,
    /// Requests moved because they lay past the end of the drive (`wrap`).
    pub wrapped: u64,
    /// Requests that became more than one.
    pub split: u64,
    /// Distinct pages touched (`dense`).
    pub pages: u64,
    /// Trims left out because they cover untouched pages only (`dense`, `compact`), or less than a page of the drive (`scale`).
    pub trims_left_out: u64,
    /// Pages of 4 KiB that the trace touches, and those of the drive that they share, where these are fewer (`scale`).
    pub shared: Option<(u64, u64)>,
}

/// A map that follows the order of addresses.
struct Ordered {
    footprint: Footprint,
    /// Sectors of a unit.
    unit: u64,
    /// Units of the drive that are used, from its start.
    room: u64,
}

impl Ordered {
    /// The unit of the drive for a unit of the trace: straight lines between the ends of what the trace touches. If that fits,
    /// it keeps its size and the holes get the rest of the room; if not, the holes vanish and all else shrinks.
    fn place(&self, unit: u64) -> u64 {
        let (touched, holes) = (self.footprint.units(), self.footprint.holes());
        let (below, holes_below) = self.footprint.below(unit);
        let part = |of: u64, from: u64, to: u64| {
            // At most `to`, since `of` is at most `from`.
            (u128::from(of) * u128::from(to)).checked_div(u128::from(from)).unwrap_or(0) as u64
        };
        if touched <= self.room {
            below + part(holes_below, holes, self.room - touched)
        } else {
            part(below, touched, self.room)
        }
    }

    /// The sector of the drive for a sector of the trace; within a touched unit it keeps its place.
    fn sector(&self, sector: u64) -> u64 {
        let (unit, within) = (sector / self.unit, sector % self.unit);
        let start = self.place(unit) * self.unit;
        if within > 0 && self.footprint.touches(unit) { start + within } else { start }
    }
}

/// A source whose addresses fit a drive.
pub struct Mapped<S> {
    inner: S,
    map: AddressMap,
    device_sectors: u64,
    taken: Vec<Request>,
    /// Pieces of the last requests that did not fit the caller's batch.
    ready: Vec<Request>,
    next: usize,
    failure: Option<SourceError>,
    dense: Dense,
    ordered: Option<Ordered>,
    report: MapReport,
}

/// Requests taken from the inner source at once.
const BATCH: usize = 1024;

impl<S: RequestSource> Mapped<S> {
    /// Fits `inner` to a drive of `device_sectors`.
    ///
    /// # Errors
    /// [`MapError::Page`] if the drive has no room for one page.
    pub fn new(inner: S, map: AddressMap, device_sectors: u64) -> Result<Self, MapError> {
        let page = if let AddressMap::Dense { page } = map { page } else { Bytes(SECTOR_BYTES) };
        let page_sectors = page.0 / SECTOR_BYTES;
        if page_sectors == 0 || !page.0.is_multiple_of(SECTOR_BYTES) || page_sectors > device_sectors {
            return Err(MapError::Page { page, device_sectors });
        }
        let pages_max = device_sectors / page_sectors;
        let dense = Dense { page, page_sectors, pages_max, places: HashMap::default() };
        let (taken, ready) = (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH));
        let report = MapReport::default();
        Ok(Mapped { inner, map, device_sectors, taken, ready, next: 0, failure: None, dense, ordered: None, report })
    }

    /// As [`Mapped::new`], for a map that depends on all addresses: `footprint` is what `inner` touches, in units of
    /// [`AddressMap::unit_sectors`].
    ///
    /// # Errors
    /// [`MapError::Beyond`] if a compact footprint is larger than the drive, [`MapError::Page`] if the share of the drive has
    /// no room for one page.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // at most the drive
    pub fn fitted(inner: S, map: AddressMap, footprint: Footprint, device_sectors: u64) -> Result<Self, MapError> {
        let unit = footprint.unit_sectors();
        let room = match map {
            AddressMap::Scale { share } if share < 1.0 => (device_sectors as f64 * share) as u64 / unit,
            _ => device_sectors / unit,
        };
        let touched = footprint.units();
        if map == AddressMap::Compact && touched > room {
            return Err(MapError::Beyond { touched_sectors: touched * unit, device_sectors });
        }
        if room == 0 {
            return Err(MapError::Page { page: Bytes(unit * SECTOR_BYTES), device_sectors });
        }
        // A compact footprint has no room for holes.
        let room = if map == AddressMap::Compact { touched.max(1) } else { room };
        let mut mapped = Mapped::new(inner, map, device_sectors)?;
        mapped.report.shared = (touched > room).then_some((touched, room));
        mapped.ordered = Some(Ordered { footprint, unit, room });
        Ok(mapped)
    }

    /// The counts so far.
    #[must_use]
    pub fn report(&self) -> MapReport {
        self.report
    }

    /// The source inside.
    #[must_use]
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// Unwraps the inner source.
    #[must_use]
    pub fn into_inner(self) -> S {
        self.inner
    }

    fn map(&mut self, request: Request) -> Result<(), MapError> {
        self.report.requests += 1;
        if request.kind == RequestKind::Flush {
            self.ready.push(request);
            return Ok(());
        }
        let before = self.ready.len();
        match self.map {
            // Zones stay where they are.
            _ if request.kind.class() == RequestClass::Manage => self.reject(request)?,
            AddressMap::Reject => self.reject(request)?,
            AddressMap::WrapFew | AddressMap::Wrap => self.wrap(request)?,
            AddressMap::Compact | AddressMap::Scale { .. } => self.keep_order(request)?,
            AddressMap::Dense { .. } => {
                self.dense.map(request, self.report.requests, &mut self.ready)?;
                self.report.pages = self.dense.places.len() as u64;
                self.report.trims_left_out += u64::from(self.ready.len() == before);
            }
        }
        self.report.split += u64::from(self.ready.len() > before + 1);
        Ok(())
    }

    fn reject(&mut self, request: Request) -> Result<(), MapError> {
        let (end_sector, device_sectors) = (request.end_sector(), self.device_sectors);
        if end_sector > device_sectors {
            return Err(MapError::PastEnd { request: self.report.requests, end_sector, device_sectors });
        }
        self.ready.push(request);
        Ok(())
    }

    fn keep_order(&mut self, request: Request) -> Result<(), MapError> {
        let ordered = self.ordered.as_ref().expect("made by `fitted`, as the map needs it");
        let first_sector = ordered.sector(request.first_sector);
        let end = ordered.room * ordered.unit;
        if request.kind == RequestKind::Trim {
            // Of what it covers, the pages that are there.
            let past = ordered.sector(request.end_sector()).min(end);
            match u32::try_from(past.saturating_sub(first_sector)) {
                Ok(sectors) if sectors > 0 => self.ready.push(Request { first_sector, sectors, ..request }),
                _ => self.report.trims_left_out += 1,
            }
            return Ok(());
        }
        let sectors = u64::from(request.sectors);
        // A request as large as before reaches past the end where pages are shared: it is moved down by whole units.
        let down = (first_sector + sectors).saturating_sub(end).next_multiple_of(ordered.unit);
        let Some(first_sector) = first_sector.checked_sub(down) else {
            let (request, sectors) = (self.report.requests, request.sectors);
            return Err(MapError::Larger { request, sectors, device_sectors: end });
        };
        self.ready.push(Request { first_sector, ..request });
        Ok(())
    }

    fn wrap(&mut self, request: Request) -> Result<(), MapError> {
        let (sectors, device_sectors) = (request.sectors, self.device_sectors);
        if u64::from(sectors) > device_sectors {
            return Err(MapError::Larger { request: self.report.requests, sectors, device_sectors });
        }
        let first_sector = request.first_sector % device_sectors;
        self.report.wrapped += u64::from(request.end_sector() > device_sectors);
        let to_end = device_sectors - first_sector;
        match u32::try_from(to_end).ok().filter(|to_end| *to_end < sectors) {
            None => self.ready.push(Request { first_sector, ..request }),
            Some(head) => self.ready.extend([
                Request { first_sector, sectors: head, ..request },
                Request { first_sector: 0, sectors: sectors - head, ..request },
            ]),
        }
        Ok(())
    }

    /// Takes requests from the inner source and maps them; an error is kept until the requests before it were returned.
    fn refill(&mut self, at_most: usize) {
        self.ready.clear();
        self.next = 0;
        self.taken.clear();
        let result = self.inner.fill(&mut self.taken, at_most.min(BATCH));
        let taken = std::mem::take(&mut self.taken);
        for request in &taken {
            if let Err(error) = self.map(*request) {
                self.failure = Some(error.into());
                break;
            }
        }
        self.taken = taken;
        if let (Err(error), None) = (result, &self.failure) {
            self.failure = Some(error);
        }
    }
}

impl<S: RequestSource> RequestSource for Mapped<S> {
    fn fill(&mut self, batch: &mut Vec<Request>, at_most: usize) -> Result<usize, SourceError> {
        let mut count = 0;
        while count < at_most {
            if self.next < self.ready.len() {
                let upto = self.ready.len().min(self.next + at_most - count);
                batch.extend_from_slice(&self.ready[self.next..upto]);
                count += upto - self.next;
                self.next = upto;
                continue;
            }
            if let Some(error) = &self.failure {
                return if count > 0 { Ok(count) } else { Err(error.clone()) };
            }
            let before = self.report.requests;
            self.refill(at_most - count);
            if self.ready.is_empty() && self.failure.is_none() && self.report.requests == before {
                break;
            }
        }
        Ok(count)
    }

    /// Splitting increases the number of requests, so only a map that never splits knows.
    fn remaining(&self) -> Option<u64> {
        let ready = (self.ready.len() - self.next) as u64;
        let inner = if self.map == AddressMap::Reject { self.inner.remaining() } else { None };
        inner.map(|inner| inner + ready)
    }

    fn progress(&self) -> Option<f64> {
        self.inner.progress()
    }

    /// Pages keep their places, and the request count restarts.
    fn start_over(&mut self, passes: Passes) -> Result<bool, SourceError> {
        let starts = self.inner.start_over(passes)?;
        if starts {
            self.ready.clear();
            self.next = 0;
            self.failure = None;
            self.report = MapReport { pages: self.report.pages, shared: self.report.shared, ..MapReport::default() };
        }
        Ok(starts)
    }
}

/// Pages in order of first touch.
struct Dense {
    page: Bytes,
    page_sectors: u64,
    pages_max: u64,
    places: HashMap<u64, u64, BuildHasherDefault<PageHasher>>,
}

impl Dense {
    /// Appends the pieces of `request`, neighbours on the drive joined.
    fn map(&mut self, request: Request, number: u64, out: &mut Vec<Request>) -> Result<(), MapError> {
        let own = out.len();
        if request.sectors == 0 {
            return Ok(());
        }
        let pages = request.first_sector / self.page_sectors..request.end_sector().div_ceil(self.page_sectors);
        if request.kind != RequestKind::Trim {
            for page in pages {
                let place = self.touch(page, number)?;
                self.add_piece(&request, page, place, own, out);
            }
        } else if pages.end - pages.start <= self.places.len() as u64 {
            for page in pages {
                if let Some(&place) = self.places.get(&page) {
                    self.add_piece(&request, page, place, own, out);
                }
            }
        } else {
            // Of a trim of more than there is, what is there.
            let mut there: Vec<(u64, u64)> = self
                .places
                .iter()
                .filter(|(page, _)| pages.contains(page))
                .map(|(&page, &place)| (page, place))
                .collect();
            there.sort_unstable();
            for (page, place) in there {
                self.add_piece(&request, page, place, own, out);
            }
        }
        Ok(())
    }

    /// The part of a request on a page; it joins the piece before it, of those from `own` on, where it follows that on the drive.
    fn add_piece(&self, request: &Request, page: u64, place: u64, own: usize, out: &mut Vec<Request>) {
        let begin = page * self.page_sectors;
        let at = begin.max(request.first_sector);
        let first_sector = place * self.page_sectors + (at - begin);
        // At most a page or the rest of the request, so below 2^32.
        let sectors = u32::try_from((begin + self.page_sectors).min(request.end_sector()) - at).unwrap_or(u32::MAX);
        match out[own..].last_mut() {
            Some(last) if last.end_sector() == first_sector => last.sectors += sectors,
            _ => out.push(Request { first_sector, sectors, ..*request }),
        }
    }

    fn touch(&mut self, page: u64, request: u64) -> Result<u64, MapError> {
        let next = self.places.len() as u64;
        if let Some(&place) = self.places.get(&page) {
            return Ok(place);
        }
        if next == self.pages_max {
            return Err(MapError::PagesUsedUp { pages: self.pages_max, page: self.page, request });
        }
        self.places.insert(page, next);
        Ok(next)
    }
}

/// Spreads page numbers by one multiplication; they come from the user's files, not from an adversary.
#[derive(Default)]
pub(crate) struct PageHasher(u64);

impl Hasher for PageHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(self.0 ^ u64::from(byte));
        }
    }

    fn write_u64(&mut self, page: u64) {
        let mixed = page.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}
