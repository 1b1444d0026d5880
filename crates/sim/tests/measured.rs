//! Figures cover the measured requests, not those of the warm-up.

#![allow(clippy::unwrap_used, clippy::cast_precision_loss)] // helpers of tests count as library code

use flashwright_block::Seed;
use flashwright_sim::{Pace, RunSettings, Simulation, SourceSpec, Window};
use flashwright_ssd::{Config, DriveConfig};
use serde_json::Value;
use std::time::Instant;

const SMALL: &str = "[geometry]\nchannels = 2\ndies-per-channel = 2\nblocks-per-plane = 64\npages-per-block = 32\n\
                     [capacity]\nutilization = 0.8\n";

fn config(more: &[&str]) -> DriveConfig {
    let settings: Vec<String> = more.iter().map(|text| (*text).to_owned()).collect();
    Config::from_toml(SMALL, "test").unwrap().with_settings(&settings).unwrap()
}

fn play(config: &DriveConfig, workload: &str, depth: u32, warmup: u64, requests: u64) -> Value {
    played(config, workload, depth, warmup, requests).report().unwrap().report.to_value()
}

fn played(config: &DriveConfig, workload: &str, depth: u32, warmup: u64, requests: u64) -> Simulation {
    played_in_steps(config, workload, [u64::from(depth), warmup, requests, 1000])
}

/// With depth, requests of the warm-up and those measured, and the most of a step.
fn played_in_steps(config: &DriveConfig, workload: &str, [depth, warmup, requests, step]: [u64; 4]) -> Simulation {
    let settings = RunSettings {
        workload: workload.into(),
        seed: Seed(3),
        precondition: "sequential".parse().unwrap(),
        pace: Pace::Closed { depth: u32::try_from(depth).unwrap() },
        warmup_requests: warmup,
        requests: Some(requests),
        window: Window::Requests(100),
        ..RunSettings::default()
    };
    let mut run = Simulation::new(config, settings).unwrap();
    let mut source = SourceSpec::Workload(workload.parse().unwrap()).open(run.ssd(), Seed(3)).unwrap();
    while !run.step(&mut source, step).unwrap() {}
    run
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

/// A short run after long preconditioning costs next to nothing. Other tests of this process count as well, so the cheapest of
/// several runs is looked at.
#[test]
fn preconditioning_is_no_cost_of_the_run() {
    let config = config(&["geometry.blocks-per-plane=2048", "timing.model=none"]);
    let share = || {
        let before = Instant::now();
        let mut run = played_in_steps(&config, "uniform:write=1", [1, 0, 1, u64::MAX]);
        let json = run.report().unwrap().report.to_value();
        json["run"]["cpu_s"].as_f64().unwrap() / before.elapsed().as_secs_f64()
    };
    let least = (0..10).map(|_| share()).fold(1.0, f64::min);
    assert!(least < 0.1, "{least} of the whole time");
}

/// Watts of the windows, times their length, are the energy of the run; and power follows the load.
#[test]
fn power_over_time_adds_up_to_the_energy() {
    let energy = ["energy.read-uj=30", "energy.program-uj=200", "energy.erase-uj=1500", "energy.idle-mw=400"];
    for more in [
        &["timing.model=parallel"][..],
        &["timing.model=parallel", "timing.die-order=by-class"],
        &["timing.model=serial"],
    ] {
        let config = config(&[&energy, more].concat());
        let mut run = played(&config, "uniform:write=0.7", 4, 200, 3000);
        let report = run.report().unwrap();
        let total = report.report.to_value()["energy"]["total_j"].as_f64().unwrap();
        let sum: f64 = report.windows.iter().map(|row| row.power_w().unwrap() * row.of.duration_ns as f64 / 1e9).sum();
        assert!((sum / total - 1.0).abs() < 1e-3, "{more:?}: windows have {sum} J of {total} J");
        assert!(report.windows.iter().all(|row| row.power_w().unwrap() > 0.4), "{more:?}");
    }
    let mut run = played(&config(&["timing.model=none"]), "uniform:write=0.7", 4, 0, 500);
    assert!(run.report().unwrap().windows.iter().all(|row| row.power_w().is_none()));
}

/// Host pages asked and into flash, programs, and the verdict's write amplification with the measured one.
fn writes(config: &DriveConfig, workload: &str, depth: u32) -> (u64, u64, u64, Value) {
    let json = play(config, workload, depth, 200, 4000);
    let count = |value: &Value| value.as_u64().unwrap();
    let programs = count(&json["flash"]["programs"]["total"]);
    let (asked, into) = (count(&json["host"]["pages_written"]), count(&json["host"]["pages_into_flash"]));
    assert_eq!(json["write_amplification"], programs as f64 / asked as f64);
    assert_eq!(json["write_amplification_into_flash"], programs as f64 / into as f64);
    assert_eq!(json["requests"]["write"], asked, "requests of one page each");
    (asked, into, programs, json)
}

#[test]
fn buffers_do_not_change_what_the_host_asked() {
    let hot = "hot-cold:hot-space=0.002,hot-access=0.9,write=1,size=4KiB";
    let plain = writes(&config(&[]), hot, 4);
    assert_eq!((plain.0, plain.1), (4000, 4000), "nothing lies before the flash");
    for before in [
        &["ram.manager=lru", "ram.size=256 KiB"][..],
        &["controller.write-buffer.size=256 KiB"],
        &["host.scheduler=deadline"],
    ] {
        let (asked, into, programs, json) = writes(&config(before), hot, 4);
        assert_eq!(asked, 4000, "{before:?}");
        assert!(into <= asked && programs >= into, "{before:?}: {into} of {asked} into flash");
        match before[0] {
            "ram.manager=lru" => {
                assert!(into < asked / 2, "nine writes in ten hit what is buffered: {into} came through")
            }
            "host.scheduler=deadline" => assert_eq!(into, asked, "requests of one page each, in random order"),
            _ => assert!(into < asked, "{before:?}: {into} came through"),
        }
        // The interval beside the figure is of the same ratio.
        let interval = json["settled"]["interval"].as_array().unwrap();
        let (low, high) = (interval[0].as_f64().unwrap(), interval[1].as_f64().unwrap());
        let figure = json["write_amplification"].as_f64().unwrap();
        assert!(low <= figure && figure <= high, "{before:?}: {figure} outside {low} to {high}");
    }
}

/// Requests of 512 B on pages of 4 KiB: bytes are those of the requests, whichever layer takes them, and a fill is of whole
/// pages.
#[test]
fn bytes_are_those_that_the_host_asked() {
    for before in [
        &[][..],
        &["timing.model=none"],
        &["ram.manager=lru", "ram.size=256 KiB"],
        &["controller.write-buffer.size=256 KiB"],
        &["host.scheduler=deadline"],
    ] {
        let json = play(&config(before), "uniform:write=1,size=512", 4, 200, 4000);
        let programs = json["flash"]["programs"]["total"].as_u64().unwrap();
        assert_eq!(json["requests"]["bytes_written"], 4000 * 512, "{before:?}");
        assert_eq!(json["write_amplification_bytes"], (programs * 4096) as f64 / (4000 * 512) as f64, "{before:?}");
        let pages = json["drive"]["logical_pages"].as_u64().unwrap();
        assert_eq!(json["wear"]["host_bytes_written"], pages * 4096 + 4200 * 512, "{before:?}");
        assert_eq!(json["wear"]["host_pages_written"], pages + 4200, "{before:?}");
        let warned = json["warnings"].as_array().unwrap().iter().any(|each| each["code"] == "parts-of-pages");
        assert!(warned, "{before:?}: {}", json["warnings"]);
    }
    let whole = play(&config(&[]), "uniform:write=1,size=4KiB", 4, 0, 2000);
    assert_eq!(whole["write_amplification"], whole["write_amplification_bytes"]);
    let none = play(&config(&[]), "uniform:write=0,size=512", 4, 0, 100);
    assert_eq!(none["write_amplification_bytes"], Value::Null);
}
