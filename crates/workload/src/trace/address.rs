//! Fits the addresses of a trace to a drive of another size.
//!
//! | map | address | memory |
//! | --- | --- | --- |
//! | `wrap` | modulo the drive's size; a request across the end becomes two | none |
//! | `reject` | as it is; past the end is an error | none |
//! | `dense` | the n-th page touched first is page n of the drive; a request over pages that are not neighbours there becomes several | about 20 B a page touched |
//!
//! `dense` suits studies of write amplification: holes that a trace never touches would hold no data. A trim does not
//! touch pages: the untouched pages that it covers are left out.

use flashwright_block::{Bytes, Passes, Request, RequestKind, RequestSource, SECTOR_BYTES, SourceError};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// How addresses are fitted to a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressMap {
    /// Modulo the drive's size. A request that crosses the end becomes two: up to the end, and from sector 0.
    Wrap,
    /// As they are; one past the drive's end is an error.
    Reject,
    /// The n-th page touched first becomes page n.
    Dense {
        /// Size of a page, a multiple of 512 B; 4 KiB is usual.
        page: Bytes,
    },
}

impl AddressMap {
    /// [`AddressMap::Dense`] with pages of 4 KiB.
    pub const DENSE: AddressMap = AddressMap::Dense { page: Bytes(4096) };

    /// Its name for `--addresses`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            AddressMap::Wrap => "wrap",
            AddressMap::Reject => "reject",
            AddressMap::Dense { .. } => "dense",
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
            other => Err(MapError::Unknown { found: other.to_owned() }),
        }
    }
}

/// Why addresses could not be fitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MapError {
    /// The name is unknown.
    #[error("there is no address map {found:?}; known: wrap, reject, dense")]
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
         choose a larger drive, --addresses wrap or --addresses dense"
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
         choose a larger drive or --addresses wrap"
    )]
    PagesUsedUp {
        /// Pages of the drive.
        pages: u64,
        /// Size of a page.
        page: Bytes,
        /// Number of the request in the stream, from 1.
        request: u64,
    },
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
    /// Trims left out because they cover untouched pages only (`dense`).
    pub trims_left_out: u64,
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
        Ok(Mapped { inner, map, device_sectors, taken, ready, next: 0, failure: None, dense, report })
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
            AddressMap::Reject => self.reject(request)?,
            AddressMap::Wrap => self.wrap(request)?,
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
            self.report = MapReport { pages: self.report.pages, ..MapReport::default() };
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
        let (mut at, end, own) = (request.first_sector, request.end_sector(), out.len());
        while at < end {
            let page = at / self.page_sectors;
            let stop = ((page + 1) * self.page_sectors).min(end);
            let place = match request.kind {
                RequestKind::Trim => self.places.get(&page).copied(),
                _ => Some(self.touch(page, number)?),
            };
            if let Some(place) = place {
                let first_sector = place * self.page_sectors + at % self.page_sectors;
                // At most a page or the rest of the request, so below 2^32.
                let sectors = u32::try_from(stop - at).unwrap_or(u32::MAX);
                match out[own..].last_mut() {
                    Some(last) if last.end_sector() == first_sector => last.sectors += sectors,
                    _ => out.push(Request { first_sector, sectors, ..request }),
                }
            }
            at = stop;
        }
        Ok(())
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
