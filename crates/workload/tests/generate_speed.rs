//! The cost of a draw. A small run is part of the suite, so that it stays working; for numbers:
//! `cargo test --release -p flashwright-workload --test all generate_speed -- --ignored --nocapture`.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

use crate::model_support::model_file;
use flashwright_block::Seed;
use flashwright_workload::generate::{Target, WorkloadSpec};
use std::time::Instant;

const SPECS: &[&str] = &[
    "sequential",
    "uniform",
    "uniform:write=0.7",
    "uniform:rate=10000",
    "strided",
    "hot-cold",
    "hot-cold:placement=scattered",
    "zipf",
    "zipf:write=0.7",
    "dynamic-static",
    "dftl-a",
    "stand-in:financial1",
    "stand-in:tpc-e,depth=32",
    "cachelib",
    "kv-cache",
    "three-streams",
];

/// The generators above, and a model at its own arrivals and in a closed loop.
fn specs() -> Vec<String> {
    let model = format!("model:{}", model_file());
    SPECS.iter().map(|text| (*text).to_owned()).chain([model.clone(), format!("{model},depth=32")]).collect()
}

/// Best nanoseconds a request over `rounds` rounds of 1,000 batches of 1,000, and a digest of the addresses.
fn cost(text: &str, rounds: u32) -> (f64, u64) {
    let drive = Target { logical_sectors: 8 << 21, page_sectors: 8 };
    let mut source = text.parse::<WorkloadSpec>().unwrap().source(&drive, Seed(1), None).unwrap();
    let (mut batch, mut best, mut digest) = (Vec::with_capacity(1000), f64::INFINITY, 0u64);
    for _ in 0..rounds {
        let start = Instant::now();
        for _ in 0..1000 {
            batch.clear();
            source.fill(&mut batch, 1000).unwrap();
            digest = digest.rotate_left(5) ^ batch[999].first_sector ^ batch[0].arrival.0;
        }
        best = best.min(start.elapsed().as_nanos() as f64 / 1e6);
    }
    (best, digest)
}

#[test]
fn the_benchmark_runs_and_repeats() {
    for text in specs() {
        assert_eq!(cost(&text, 1).1, cost(&text, 1).1, "{text}");
    }
}

#[test]
#[ignore = "long: a benchmark, to be run by name and in release"]
fn cost_of_a_draw() {
    for text in specs() {
        let (ns, digest) = cost(&text, 15);
        println!("{text:32} {ns:6.2} ns  {digest:016x}");
    }
}
