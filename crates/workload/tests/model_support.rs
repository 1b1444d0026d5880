//! Models for tests: fitted to requests that are made here.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

use flashwright_block::{Nanos, Request, RequestKind, Seed, below, chance};
use flashwright_workload::model::{Fitting, Model};
use std::sync::OnceLock;

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
