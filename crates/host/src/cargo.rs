//! The bytes of requests on their way through a filter.
//!
//! ```text
//!  host requests   A ├aaaa┤ B ├bb┤            bytes by host request
//!  queued            ├aaaabb┤                 gathered when it is handed on; of a read, scattered when it lands
//! ```
//!
//! Schedulers see none of it: which bytes belong to a queued request follows from its host requests and their sectors.
//! A filter without data, as in every simulation, only asks whether this is empty.

use crate::pool::{Id, Pool};
use flashwright_block::{BlockDevice, Completion, IoError, Request, RequestClass, RequestKind, SECTOR_BYTES, Tag};
use rustc_hash::FxHashMap;

/// What a host request has to do with data.
#[derive(Clone, Debug, Default)]
enum Load {
    /// Nothing: a trim, a flush, a read whose data nobody wants, or a write of zeros.
    #[default]
    None,
    /// It brings these.
    Brings(Vec<u8>),
    /// It wants some; those that came are there.
    Wants(Vec<u8>),
}

/// The bytes of the requests in a filter.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cargo {
    /// By the number of the host request.
    loads: Vec<Load>,
    /// How many of them are not none.
    loaded: usize,
    /// Reads that completed and were not taken, by tag.
    ready: FxHashMap<u64, Vec<u8>>,
    spare: Vec<Vec<u8>>,
    /// Bytes of a request with several host requests.
    joined: Vec<u8>,
}

/// Buffers that are kept for the next requests, and the longest of them.
const SPARE_MAX: usize = 64;
const SPARE_BYTES_MAX: usize = 1 << 20;

/// Where sectors lie in a buffer that begins with the sector `base`.
#[allow(clippy::cast_possible_truncation)] // a request is shorter than the address space
fn span(base: u64, first: u64, end: u64) -> std::ops::Range<usize> {
    ((first - base) * SECTOR_BYTES) as usize..((end - base) * SECTOR_BYTES) as usize
}

impl Cargo {
    /// Whether no request in the filter has data.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.loaded == 0
    }

    /// A host request has arrived that brings data, or wants some.
    pub fn load(&mut self, host: u32, request: &Request, data: &[u8]) {
        let mut bytes = self.spare.pop().unwrap_or_default();
        let load = match request.kind.class() {
            RequestClass::Write => {
                bytes.clear();
                bytes.extend_from_slice(data);
                Load::Brings(bytes)
            }
            RequestClass::Read => {
                bytes.resize(request.data_bytes(), 0); // all of it is overwritten by what is read
                Load::Wants(bytes)
            }
            _ => return self.keep(bytes),
        };
        let at = host as usize;
        if self.loads.len() <= at {
            self.loads.resize_with(at + 1, Load::default);
        }
        self.loads[at] = load;
        self.loaded += 1;
    }

    /// The data of a host request; none if it has none.
    fn of(&self, host: u32) -> &Load {
        self.loads.get(host as usize).unwrap_or(&Load::None)
    }

    /// Submits a queued request with its data.
    pub fn hand_on(
        &mut self,
        below: &mut impl BlockDevice,
        pool: &Pool,
        id: Id,
        request: Request,
    ) -> Result<Tag, IoError> {
        let has_data = |(host, ..): (u32, u64, u64)| !matches!(self.of(host), Load::None);
        if !request.kind.moves_data() || !pool.parts(id).any(has_data) {
            return below.submit(request);
        }
        let below = below.holds_data().ok_or(IoError::KeepsNoData)?;
        if request.kind == RequestKind::Read {
            return below.submit_with(request, &[]);
        }
        let mut parts = pool.parts(id);
        if let (Some((host, first, end)), None) = (parts.next(), parts.next())
            && let Load::Brings(bytes) = self.of(host)
        {
            return below.submit_with(request, &bytes[span(pool.request_of(host).first_sector, first, end)]);
        }
        let mut joined = std::mem::take(&mut self.joined);
        joined.clear();
        for (host, first, end) in pool.parts(id) {
            let range = span(pool.request_of(host).first_sector, first, end);
            match self.of(host) {
                Load::Brings(bytes) => joined.extend_from_slice(&bytes[range]),
                _ => joined.resize(joined.len() + range.len(), 0), // a write without data is one of zeros
            }
        }
        let submitted = below.submit_with(request, &joined);
        self.joined = joined;
        submitted
    }

    /// A queued request has completed below: what it read goes to its host requests.
    pub fn landed(&mut self, below: &mut impl BlockDevice, pool: &Pool, id: Id, completion: &Completion) {
        if completion.request.kind != RequestKind::Read || completion.result.is_err() {
            return;
        }
        let Some(below) = below.holds_data() else { return };
        let mut parts = pool.parts(id);
        if let (Some((host, first, end)), None) = (parts.next(), parts.next()) {
            if let Some(Load::Wants(bytes)) = self.loads.get_mut(host as usize) {
                let base = pool.request_of(host).first_sector;
                let taken = below.take_data(completion.tag, &mut bytes[span(base, first, end)]);
                debug_assert!(taken, "a read that succeeded has data");
            }
            return;
        }
        if !pool.parts(id).any(|(host, ..)| matches!(self.of(host), Load::Wants(_))) {
            return;
        }
        let base = completion.request.first_sector;
        self.joined.resize(completion.request.data_bytes(), 0);
        let taken = below.take_data(completion.tag, &mut self.joined);
        debug_assert!(taken, "a read that succeeded has data");
        for (host, first, end) in pool.parts(id) {
            if let Some(Load::Wants(bytes)) = self.loads.get_mut(host as usize) {
                let to = span(pool.request_of(host).first_sector, first, end);
                bytes[to].copy_from_slice(&self.joined[span(base, first, end)]);
            }
        }
    }

    /// A host request has completed: what it read can be taken.
    pub fn completed(&mut self, host: u32, completion: &Completion) {
        let Some(load) = self.loads.get_mut(host as usize) else { return };
        match std::mem::take(load) {
            Load::None => return,
            Load::Wants(bytes) if completion.result.is_ok() => {
                self.ready.insert(completion.tag.0, bytes);
            }
            Load::Wants(bytes) | Load::Brings(bytes) => self.keep(bytes),
        }
        self.loaded -= 1;
    }

    /// See [`flashwright_block::HoldsData::take_data`].
    pub fn take(&mut self, tag: Tag, data: &mut [u8]) -> bool {
        let Some(bytes) = self.ready.remove(&tag.0) else { return false };
        data.copy_from_slice(&bytes);
        self.keep(bytes);
        true
    }

    fn keep(&mut self, bytes: Vec<u8>) {
        if self.spare.len() < SPARE_MAX && bytes.capacity() <= SPARE_BYTES_MAX {
            self.spare.push(bytes);
        }
    }
}
