//! The writes of a stand-in for Financial1, generated before timing starts, so that floor and simulator get the same
//! pages and neither pays for generating them. Reads are left out, because the floor has none.

use flashwright_block::{Request, RequestKind, RequestSource, Seed, SourceError};
use flashwright_workload::generate::{Target, WorkloadSpec};

/// Sectors of a page of 4 KiB.
const PAGE_SECTORS: u32 = 8;
/// The writes to play.
pub const FINANCIAL: &str = "stand-in:financial1,variant=statistics-only";

/// Writes as runs of pages: first page and length. Played from the start each time it is opened.
pub struct Stream {
    runs: Vec<(u32, u32)>,
    next: usize,
}

impl Stream {
    /// This many writes, over this many logical pages.
    pub fn financial(logical_pages: u32, writes: u64) -> Result<Self, String> {
        let spec: WorkloadSpec =
            FINANCIAL.parse().map_err(|e: flashwright_workload::generate::SpecError| e.to_string())?;
        let logical_sectors = u64::from(logical_pages) * u64::from(PAGE_SECTORS);
        let target = Target { logical_sectors, page_sectors: PAGE_SECTORS };
        let mut source = spec.source(&target, Seed(1), None).map_err(|error| error.to_string())?;
        let wanted = usize::try_from(writes).expect("fits the memory");
        let (mut runs, mut batch) = (Vec::with_capacity(wanted), Vec::new());
        while runs.len() < wanted {
            batch.clear();
            source.fill(&mut batch, 4096).map_err(|error| error.to_string())?;
            let writes = batch.iter().filter(|request| request.kind == RequestKind::Write);
            runs.extend(writes.take(wanted - runs.len()).map(|request| {
                let page = |sector: u64| u32::try_from(sector / u64::from(PAGE_SECTORS)).expect("pages have 32 bits");
                let first = page(request.first_sector);
                (first, page(request.end_sector() - 1) - first + 1)
            }));
        }
        Ok(Self { runs, next: 0 })
    }

    /// Pages of the first half of the writes, and all pages one by one.
    pub fn pages(&self) -> (usize, Vec<u32>) {
        let pages =
            |runs: &[(u32, u32)]| runs.iter().flat_map(|(first, pages)| *first..first + pages).collect::<Vec<_>>();
        (pages(&self.runs[..self.runs.len() / 2]).len(), pages(&self.runs))
    }
}

impl RequestSource for Stream {
    fn fill(&mut self, batch: &mut Vec<Request>, at_most: usize) -> Result<usize, SourceError> {
        let runs = &self.runs[self.next..];
        let runs = &runs[..at_most.min(runs.len())];
        batch.extend(runs.iter().map(|(first, pages)| Request {
            first_sector: u64::from(*first) * u64::from(PAGE_SECTORS),
            sectors: pages * PAGE_SECTORS,
            kind: RequestKind::Write,
            ..Request::default()
        }));
        self.next += runs.len();
        Ok(runs.len())
    }

    fn remaining(&self) -> Option<u64> {
        Some((self.runs.len() - self.next) as u64)
    }
}
