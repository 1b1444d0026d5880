//! Saved runs: the bytes of the state with random damage, before compression and after. Files of saved runs have a
//! checksum, so this is the second line of defence.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

use crate::damage;
use flashwright_block::Seed;
use flashwright_sim::{Pace, Precondition, RunSettings, Simulation, SourceSpec};
use flashwright_ssd::Config;

fn saved(settings: &[&str], requests: u64) -> Vec<u8> {
    let small = [
        "geometry.channels=1",
        "geometry.dies-per-channel=2",
        "geometry.blocks-per-plane=16",
        "geometry.pages-per-block=8",
        "capacity.utilization=0.7",
    ];
    let config = Config::default().with_settings(&small).unwrap().with_settings(settings).unwrap();
    let run = RunSettings {
        workload: "uniform".to_owned(),
        precondition: Precondition::Sequential,
        pace: Pace::Closed { depth: 2 },
        warmup_requests: 10,
        requests: Some(200),
        keep_requests: true,
        ..RunSettings::default()
    };
    let mut simulation = Simulation::new(&config, run).unwrap();
    let spec = "uniform:write=0.5".parse().unwrap();
    let mut source = SourceSpec::Workload(spec).open(simulation.ssd(), Seed(1)).unwrap();
    while !simulation.step(&mut source, 50).unwrap() {
        if simulation.progress(&source).requests >= requests {
            break;
        }
    }
    simulation.save()
}

fn check(bytes: &[u8]) {
    if let Err(error) = Simulation::load_without_source(bytes, "run.fwrun") {
        damage::assert_one_line(&error.to_string());
    }
}

#[test]
fn saved_runs() {
    let files = vec![
        saved(&[], 0),
        saved(&[], 60),
        saved(&["ram.manager=lru", "ram.size=64 KiB", "timing.model=serial"], 60),
        saved(&["host.scheduler=deadline"], 60),
    ];
    let states: Vec<Vec<u8>> = files.iter().map(|file| zstd::stream::decode_all(file.as_slice()).unwrap()).collect();
    for file in &files {
        assert!(Simulation::load_without_source(file, "run.fwrun").is_ok());
    }
    damage::fuzz("saved_runs", |draws| {
        if draws.below(4) == 0 {
            let good = draws.pick(&files).clone();
            check(&damage::damaged(draws, &good, &files));
        } else {
            let good = draws.pick(&states).clone();
            let state = damage::damaged(draws, &good, &states);
            check(&zstd::bulk::compress(&state, 1).unwrap());
        }
    });
}
