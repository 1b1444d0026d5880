//! What is measured covers what it says: the measured requests, not those of the warm-up.

#![allow(clippy::unwrap_used, clippy::cast_precision_loss)] // helpers of tests count as library code

use flashwright_block::Seed;
use flashwright_sim::{Pace, RunSettings, Simulation, SourceSpec, Window};
use flashwright_ssd::Config;
use serde_json::Value;

const SMALL: &str = "[geometry]\nchannels = 2\ndies-per-channel = 2\nblocks-per-plane = 64\npages-per-block = 32\n\
                     [capacity]\nutilization = 0.8\n";

fn config(more: &[&str]) -> Config {
    let settings: Vec<String> = more.iter().map(|text| (*text).to_owned()).collect();
    Config::from_toml(SMALL, "test").unwrap().with_settings(&settings).unwrap()
}

fn play(config: &Config, workload: &str, depth: u32, warmup: u64, requests: u64) -> Value {
    let settings = RunSettings {
        workload: workload.into(),
        seed: Seed(3),
        precondition: "sequential".parse().unwrap(),
        pace: Pace::Closed { depth },
        warmup_requests: warmup,
        requests: Some(requests),
        window: Window::Requests(100),
        keep_requests: false,
        verify: false,
        audit_every: 0,
    };
    let mut run = Simulation::new(config, settings).unwrap();
    let mut source = SourceSpec::Workload(workload.parse().unwrap()).open(run.ssd(), Seed(3)).unwrap();
    while !run.step(&mut source, 1000).unwrap() {}
    run.report().unwrap().report.to_value()
}

/// Nanoseconds for which each die and channel was busy while it was measured.
fn busy_ns(json: &Value) -> Vec<f64> {
    let nanos = json["measured"]["duration_ns"].as_f64().unwrap();
    let parts = ["dies", "channels"].into_iter().flat_map(|part| json["busy"][part].as_array().unwrap());
    parts.map(|share| share.as_f64().unwrap() * nanos).collect()
}

#[test]
fn parts_are_busy_with_what_is_measured() {
    for model in ["serial", "parallel"] {
        let config = config(&[&format!("timing.model={model}")]);
        let play = |warmup, requests| busy_ns(&play(&config, "uniform:write=0.7", 1, warmup, requests));
        let (first, second, both) = (play(0, 700), play(700, 300), play(0, 1000));
        for ((first, second), both) in first.iter().zip(&second).zip(&both) {
            assert!((first + second - both).abs() < 1.0, "{model}: {first} ns and {second} ns, together {both} ns");
        }
    }
}
