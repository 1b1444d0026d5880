//! Models for tests: fitted to requests that are made here.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

use flashwright_block::{Nanos, Request, RequestKind, Seed, below, chance};
use flashwright_workload::generate::{Target, WorkloadSpec};
use flashwright_workload::model::{Fitting, Model};
use proptest::prelude::*;
use std::sync::OnceLock;

/// A write of a page, `i` milliseconds after the start.
pub fn write(page: u64, i: u64) -> Request {
    let kind = RequestKind::Write;
    Request { arrival: Nanos(i * 1_000_000), first_sector: page * 8, sectors: 8, kind, ..Request::default() }
}

/// Requests of first sectors, sectors, numbers of `kinds` and gaps.
pub fn requests_of(drawn: Vec<(u64, u32, u8, u64)>, kinds: &[RequestKind]) -> Vec<Request> {
    let mut now = 0;
    let request = |(first_sector, sectors, kind, gap)| {
        now += gap;
        let kind = kinds[usize::from(kind)];
        Request { arrival: Nanos(now), first_sector, sectors, kind, ..Request::default() }
    };
    drawn.into_iter().map(request).collect()
}

/// Two thousand requests of a model on a drive of `sectors`, in the order of their arrival; none if it is refused as too small.
pub fn played_if_it_fits(spec: &WorkloadSpec, sectors: u64) -> Result<Vec<Request>, TestCaseError> {
    let mut batch = Vec::new();
    let drive = Target { logical_sectors: sectors, page_sectors: 8 };
    match spec.source(&drive, Seed(1), Some(2000)) {
        Ok(mut source) => drop(source.fill(&mut batch, 2000).unwrap()),
        // What the requests use does not fit the drive.
        Err(refused) => prop_assert!(refused.to_string().contains("a larger drive"), "{refused}"),
    }
    for pair in batch.windows(2) {
        prop_assert!(pair[1].arrival >= pair[0].arrival);
    }
    Ok(batch)
}

/// The model of `requests`.
pub fn fitted(requests: impl IntoIterator<Item = Request>) -> Model {
    let mut fitting = Fitting::new();
    requests.into_iter().for_each(|request| fitting.add(&request));
    fitting.model().unwrap()
}

/// `count` requests of 4 KiB at uniform pages of the first `pages`, a millisecond apart.
pub fn uniform(count: u64, pages: u64, write: f64, seed: u64) -> Vec<Request> {
    let mut rng = Seed(seed).stream("test");
    let request = |i| {
        let kind = if chance(&mut rng, write) { RequestKind::Write } else { RequestKind::Read };
        let first_sector = below(&mut rng, pages) * 8;
        Request { arrival: Nanos(i * 1_000_000), first_sector, sectors: 8, kind, ..Request::default() }
    };
    (0..count).map(request).collect()
}

/// The path of a model of uniform reads and writes, written once for all tests.
pub fn model_file() -> &'static str {
    static FILE: OnceLock<String> = OnceLock::new();
    FILE.get_or_init(|| {
        let path = std::env::temp_dir().join(format!("flashwright-model-{}.toml", std::process::id()));
        std::fs::write(&path, fitted(uniform(6000, 2048, 0.6, 1)).to_text()).unwrap();
        path.to_str().unwrap().to_owned()
    })
}
