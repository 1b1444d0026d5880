//! Runs that begin with the drive that another one preconditioned end as if each had preconditioned its own.

#![allow(clippy::unwrap_used, clippy::cast_precision_loss)] // helpers of tests count as library code

use flashwright_sim::{Preconditioned, RunOptions, SeedOption, Simulation, Source, SourceSpec, TraceSpec};
use flashwright_ssd::{Config, DriveConfig, Ssd};
use flashwright_workload::trace::{AddressMap, TraceOptions};
use std::fmt::Write as _;

const SMALL: &str = "[geometry]\nchannels = 2\ndies-per-channel = 1\nblocks-per-plane = 64\npages-per-block = 32\n\
                     [capacity]\nutilization = 0.8\n";

fn config(settings: &[&str]) -> DriveConfig {
    let settings: Vec<String> = settings.iter().map(|text| (*text).to_owned()).collect();
    Config::from_toml(SMALL, "test").unwrap().with_settings(&settings).unwrap()
}

fn options(precondition: &str, depth: u32) -> RunOptions {
    RunOptions {
        precondition: Some(precondition.into()),
        depth: Some(depth),
        requests: Some(2000),
        window: Some("requests=300".into()),
        verify: true,
        ..RunOptions::default()
    }
}

fn generated(spec: &str) -> SourceSpec {
    SourceSpec::Workload(spec.parse().unwrap())
}

fn trace() -> SourceSpec {
    let path = std::env::temp_dir().join(format!("flashwright-sharing-{}.spc", std::process::id()));
    let mut text = String::new();
    for n in 0_u64..3000 {
        writeln!(text, "0,{},4096,{},{:.6}", n * 7919 % 2000 * 8, if n % 5 == 0 { 'r' } else { 'w' }, n as f64 * 1e-4)
            .unwrap();
    }
    std::fs::write(&path, text).unwrap();
    let (options, addresses) = (TraceOptions::default(), AddressMap::Wrap);
    SourceSpec::Trace(TraceSpec { path, name: "test".into(), options, addresses, repeat: 3 })
}

fn open(config: &DriveConfig, spec: &SourceSpec, options: &RunOptions) -> (Simulation, Source) {
    let ssd = Ssd::new(config, options.seed(), options.verify).unwrap();
    let source = spec.open(&ssd, options.seed()).unwrap();
    (options.run(ssd, spec, &source).unwrap(), source)
}

/// Everything that a run says, but for what it cost here.
fn result(mut run: Simulation, mut source: Source) -> (serde_json::Value, Vec<u32>) {
    while !run.step(&mut source, 777).unwrap() {}
    let report = run.report().unwrap();
    let mut json: serde_json::Value = serde_json::from_str(&report.report.to_json()).unwrap();
    assert_eq!(json["violations"], serde_json::json!([]));
    assert!(json["digest"].is_string() && json.as_object_mut().unwrap().remove("run").is_some());
    (json, report.erases_per_block)
}

/// What a run hands on that goes to its end, in steps that do not meet the end of preconditioning.
fn handed_on(config: &DriveConfig, spec: &SourceSpec, options: &RunOptions) -> Option<Box<Preconditioned>> {
    let (mut run, mut source) = open(config, spec, options);
    run.hand_on("the workload");
    let mut found = None;
    while !run.step(&mut source, 777).unwrap() {
        found = found.or(run.take_preconditioned());
    }
    found
}

#[test]
fn runs_that_share_a_preconditioned_drive_end_as_each_alone() {
    let half = || generated("uniform:write=0.5");
    let zipf = || generated("zipf:write=0.7");
    let fixed = ["sequential", "random:capacities=2", "steady", "steady:laid-out"];
    let drives: [&[&str]; 4] = [
        &[],
        &["host.scheduler=deadline", "host.queue-depth=4"],
        &["controller.write-buffer.size=64 KiB"],
        &["host.partial-pages=read-modify-write"],
    ];
    let layouts: [&[&str]; 3] =
        [&[], &["ftl.scheme=dftl", "gc.victim=cost-benefit"], &["ram.size=64 KiB", "ram.manager=lru"]];
    for precondition in fixed {
        for layout in layouts {
            if precondition == "steady:laid-out" && !layout.is_empty() {
                continue; // known for page mapping only
            }
            let shared = handed_on(&config(layout), &half(), &options(precondition, 1)).unwrap();
            for (drive, spec, depth) in
                [(drives[0], zipf(), 8), (drives[1], half(), 32), (drives[2], zipf(), 4), (drives[3], half(), 1)]
            {
                let config = config(&[layout, drive].concat());
                let options = options(precondition, depth);
                let (mut run, mut source) = open(&config, &spec, &options);
                assert!(run.take_over(&shared, &mut source, "another workload").unwrap(), "{precondition} {config:?}");
                let (own, own_source) = open(&config, &spec, &options);
                assert_eq!(result(run, source), result(own, own_source), "{precondition} {layout:?} {drive:?}");
            }
        }
    }
}

#[test]
fn a_drive_that_the_workload_preconditioned_is_shared_by_runs_of_that_workload() {
    for (spec, precondition) in
        [(generated("zipf:write=0.7"), "workload"), (generated("uniform:write=1,rate=300"), "auto"), (trace(), "auto")]
    {
        let shared = handed_on(&config(&[]), &spec, &options(precondition, 1)).unwrap();
        let link =
            ["controller.interface-rate=300 MB/s", "controller.write-overhead=20 us", "controller.queue-depth=4"];
        for (settings, depth, warmup) in [
            (&[][..], Some(16), 0),
            (&["host.queue-depth=2"], Some(4), 500),
            (&[], None, 0),
            // It only delays requests, so no time passes until the drive has settled.
            (&link, Some(16), 100),
            (&["controller.command-limit=16 KiB"], Some(2), 0),
        ] {
            let config = config(settings);
            let time_scale = depth.is_none().then_some(0.5);
            let options = RunOptions { depth, time_scale, warmup, ..options(precondition, 1) };
            let (mut run, mut source) = open(&config, &spec, &options);
            assert!(run.take_over(&shared, &mut source, "the workload").unwrap(), "{depth:?}");
            let (own, own_source) = open(&config, &spec, &options);
            assert_eq!(result(run, source), result(own, own_source), "{precondition} {settings:?} {depth:?}");
        }
        let (mut run, mut source) = open(&config(&[]), &spec, &options(precondition, 1));
        assert!(!run.take_over(&shared, &mut source, "another workload").unwrap());
    }
}

#[test]
fn a_drive_is_shared_only_where_preconditioning_ends_in_the_same_state() {
    let spec = generated("uniform:write=0.5");
    let shared = handed_on(&config(&[]), &spec, &options("random", 1)).unwrap();
    let takes = |settings: &[&str], options: &RunOptions| {
        let (mut run, mut source) = open(&config(settings), &spec, options);
        run.take_over(&shared, &mut source, "").unwrap()
    };
    assert!(takes(&["controller.interface-rate=300 MB/s"], &options("random", 32)));
    assert!(!takes(&["gc.victim=fifo"], &options("random", 1)));
    assert!(!takes(&["capacity.utilization=0.7"], &options("random", 1)));
    assert!(!takes(&[], &options("sequential", 1)));
    assert!(!takes(&[], &RunOptions { seed: SeedOption(2), ..options("random", 1) }));
    assert!(!takes(&[], &RunOptions { verify: false, ..options("random", 1) }));
    assert!(handed_on(&config(&[]), &spec, &options("empty", 1)).is_none(), "there is nothing to share");
    for layer in ["host.scheduler=deadline", "controller.write-buffer.size=64 KiB", "controller.command-limit=1 KiB"] {
        let layered = config(&[layer]);
        assert!(handed_on(&layered, &spec, &options("workload", 1)).is_none(), "{layer} merges or cuts by time");
    }
}
