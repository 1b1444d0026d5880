//! Preconditioning by the workload: it ends in the same state whatever the steps and wherever it is saved, it plays what the
//! run plays, and the verdict stands beside figures that a longer run confirms.

#![allow(clippy::unwrap_used, clippy::cast_precision_loss)] // helpers of tests count as library code

use flashwright_block::{RequestSource, Seed};
use flashwright_sim::{
    Pace, Phase, Precondition, RunSettings, Search, Simulation, Source, SourceSpec, TraceSpec, Verdict,
};
use flashwright_ssd::{Config, DriveConfig};
use flashwright_workload::trace::{AddressMap, TraceOptions};
use std::fmt::Write as _;
use std::path::PathBuf;

const SMALL: &str = "[geometry]\nchannels = 2\ndies-per-channel = 1\nblocks-per-plane = 64\npages-per-block = 32\n\
                     [capacity]\nutilization = 0.8\n";

fn config(settings: &[&str]) -> DriveConfig {
    let settings: Vec<String> = settings.iter().map(|text| (*text).to_owned()).collect();
    Config::from_toml(SMALL, "test").unwrap().with_settings(&settings).unwrap()
}

fn settings(precondition: &str, pace: Pace, requests: Option<u64>) -> RunSettings {
    RunSettings {
        workload: "test".into(),
        seed: Seed(3),
        precondition: precondition.parse().unwrap(),
        pace,
        requests,
        verify: true,
        ..RunSettings::default()
    }
}

const CLOSED: Pace = Pace::Closed { depth: 4 };

fn generated(spec: &str) -> SourceSpec {
    SourceSpec::Workload(spec.parse().unwrap())
}

/// A trace of writes over the first part of a drive, with trims of pages that only later passes find written.
fn trace(name: &str, addresses: AddressMap, repeat: u32) -> SourceSpec {
    let path: PathBuf = std::env::temp_dir().join(format!("flashwright-settling-{name}-{}.spc", std::process::id()));
    let mut text = String::new();
    for n in 0_u64..3000 {
        let page = n * 7919 % 2000;
        let kind = if n % 5 == 0 { 'r' } else { 'w' };
        writeln!(text, "0,{},4096,{kind},{:.6}", page * 8, n as f64 * 1e-4).unwrap();
    }
    std::fs::write(&path, text).unwrap();
    let options = TraceOptions::default();
    SourceSpec::Trace(TraceSpec { path, name: "test".into(), options, addresses, repeat })
}

fn play(simulation: &mut Simulation, source: &mut Source, budget: u64) {
    while !simulation.step(source, budget).unwrap() {}
}

fn digest(simulation: &mut Simulation) -> String {
    let report = simulation.report().unwrap();
    assert_eq!(report.report.violations, Some(Vec::new()));
    report.report.digest.unwrap()
}

fn cases() -> Vec<(&'static str, DriveConfig, SourceSpec, Pace, Option<u64>)> {
    let dense = AddressMap::Dense { page: flashwright_block::Bytes(4096) };
    let open = Pace::Open { time_scale: 1.0 };
    vec![
        ("closed", config(&[]), generated("zipf:write=0.7"), CLOSED, Some(5000)),
        ("open", config(&[]), generated("uniform:write=1,rate=300"), open, Some(3000)),
        ("scheduler", config(&["host.scheduler=deadline"]), generated("uniform:write=0.9"), CLOSED, Some(3000)),
        ("ram", config(&["ram.size=128 KiB", "ram.manager=lru"]), generated("hot-cold:write=1"), CLOSED, Some(3000)),
        ("dftl", config(&["ftl.scheme=dftl"]), generated("zipf:write=0.5"), CLOSED, Some(3000)),
        ("trace", config(&[]), trace("wrap", AddressMap::Wrap, 1), CLOSED, None),
        ("dense trace", config(&[]), trace("dense", dense, 2), open, None),
    ]
}

#[test]
fn steps_of_any_size_and_runs_that_were_saved_come_to_the_same_end() {
    for (name, config, spec, pace, requests) in cases() {
        let begin = || {
            let run = Simulation::new(&config, settings("workload:capacities=12", pace, requests)).unwrap();
            let source = spec.open(run.ssd(), Seed(3)).unwrap();
            (run, source)
        };
        let (mut whole, mut source) = begin();
        play(&mut whole, &mut source, 1 << 20);
        let want = digest(&mut whole);
        let conditioned = whole.conditioning().unwrap();
        assert_ne!(conditioned.search(), Search::UnderWay, "{name}");
        assert!(conditioned.requests() > 3000, "{name}: {conditioned:?}");

        let (mut stepped, mut source) = begin();
        play(&mut stepped, &mut source, 617);
        assert_eq!(digest(&mut stepped), want, "{name}: in small steps");

        // Saved in the fill, while it settles, early and late, and while it is measured.
        let settling = conditioned.requests();
        for stop in [1, settling / 3, settling - 10, settling + 500] {
            let (mut first, mut source) = begin();
            while first.progress(&source).phase == Phase::Precondition {
                first.step(&mut source, 700).unwrap();
            }
            let mut played = 0;
            while played < stop {
                let go = (stop - played).min(997);
                first.step(&mut source, go).unwrap();
                played += go;
            }
            let saved = first.save();
            let mut source = spec.open(whole.ssd(), Seed(3)).unwrap();
            let mut rest = Simulation::load(&saved, "saved", &mut source).unwrap();
            play(&mut rest, &mut source, 5000);
            assert_eq!(digest(&mut rest), want, "{name}: saved after {stop} of {settling}");
        }
    }
}

/// What is played untimed leaves the drive as if it had been played at its pace.
#[test]
fn a_drive_that_was_conditioned_goes_on_as_one_that_was_warmed_up() {
    for (spec, requests) in [("zipf:write=0.7", 4000), ("uniform:write=1", 4000)] {
        let spec = generated(spec);
        let mut run = Simulation::new(&config(&[]), settings("workload", CLOSED, Some(requests))).unwrap();
        let mut source = spec.open(run.ssd(), Seed(3)).unwrap();
        play(&mut run, &mut source, 4096);
        let mut warmed = settings("sequential", CLOSED, Some(requests));
        warmed.warmup_requests = run.conditioning().unwrap().requests();
        let mut other = Simulation::new(&config(&[]), warmed).unwrap();
        let mut source = spec.open(other.ssd(), Seed(3)).unwrap();
        play(&mut other, &mut source, 4096);
        let (a, b) = (run.report().unwrap().report.to_value(), other.report().unwrap().report.to_value());
        assert_eq!(a["drive"]["state_digest"], b["drive"]["state_digest"]);
        assert_eq!(a["flash"], b["flash"]);
    }
}

#[test]
fn a_settled_figure_is_that_of_a_longer_run_and_a_transient_one_says_so() {
    let figure = |precondition: &str, requests: u64, seed: u64| {
        let mut settings = settings(precondition, CLOSED, Some(requests));
        settings.verify = false;
        settings.seed = Seed(seed);
        let mut run = Simulation::new(&config(&["timing.model=none"]), settings).unwrap();
        let mut source = generated("uniform:write=1").open(run.ssd(), Seed(seed)).unwrap();
        play(&mut run, &mut source, 1 << 16);
        let amplification = run.report().unwrap().report.to_value()["write_amplification"].as_f64().unwrap();
        (run.settled(), amplification)
    };
    let (settled, found) = figure("workload", 20_000, 1);
    let (long, want) = figure("workload", 400_000, 2);
    assert_eq!((settled.verdict, long.verdict), (Verdict::Settled, Verdict::Settled), "{settled:?} {long:?}");
    assert_eq!(settled.since_request, Some(0));
    assert!((found / want - 1.0).abs() < 0.03, "{found} against {want}");
    let (low, high) = settled.interval.unwrap();
    assert!(low < found && found < high);

    let (transient, found) = figure("sequential", 300, 1);
    assert_eq!(transient.verdict, Verdict::Transient);
    assert_eq!(transient.mend.as_deref(), Some("--precondition workload"));
    assert!(found < 0.9 * want, "what is not settled here is far from it: {found} against {want}");

    let (read_only, _) = {
        let mut run = Simulation::new(&config(&[]), settings_of_reads()).unwrap();
        let mut source = generated("uniform:write=0").open(run.ssd(), Seed(3)).unwrap();
        play(&mut run, &mut source, 1 << 16);
        (run.settled(), ())
    };
    assert_eq!(read_only.verdict, Verdict::None);
}

fn settings_of_reads() -> RunSettings {
    settings("sequential", CLOSED, Some(2000))
}

#[test]
fn a_trace_that_writes_nothing_and_one_that_is_too_small_are_told() {
    let path = std::env::temp_dir().join(format!("flashwright-settling-reads-{}.spc", std::process::id()));
    std::fs::write(&path, "0,0,4096,r,0.0\n0,8,4096,r,0.1\n").unwrap();
    let of = |text: &str, settings_of_drive: &[&str]| {
        std::fs::write(&path, text).unwrap();
        let options = TraceOptions::default();
        let spec = TraceSpec { path: path.clone(), name: "t".into(), options, addresses: AddressMap::Wrap, repeat: 1 };
        let mut run = Simulation::new(&config(settings_of_drive), settings("workload", CLOSED, None)).unwrap();
        let mut source = SourceSpec::Trace(spec).open(run.ssd(), Seed(3)).unwrap();
        play(&mut run, &mut source, 1 << 16);
        assert_eq!(source.remaining().unwrap_or(0), 0);
        (run.conditioning().unwrap().search(), run.settled())
    };
    let (search, settled) = of("0,0,4096,r,0.0\n0,8,4096,r,0.1\n", &[]);
    assert_eq!((search, settled.verdict), (Search::NothingWritten, Verdict::None));
    // A page that is written again and again leaves a block behind that holds nothing, whatever else the drive holds.
    let (search, settled) = of("0,0,4096,w,0.0\n", &[]);
    assert_eq!((search, settled.verdict), (Search::Settled, Verdict::NeverCleaned), "{settled:?}");
    // Two thousand passes of one page write half of this drive's pages, and more were spare.
    let (search, settled) = of("0,0,4096,w,0.0\n", &["capacity.utilization=0.4"]);
    assert_eq!((search, settled.verdict), (Search::GaveUp, Verdict::Transient), "{settled:?}");
    assert!(settled.why.contains("2000 times beforehand"), "{settled:?}");
    assert!(settled.mend.unwrap().contains("a smaller drive"));
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_workload_that_reacts_to_the_drive_falls_back() {
    assert_eq!(Precondition::Auto.resolved(true), Precondition::Sequential);
    assert!(matches!(Precondition::Auto.resolved(false), Precondition::Workload { .. }));
    assert_eq!(Precondition::Empty.resolved(true), Precondition::Empty);
}

/// A workload that never writes can't settle; looking for it ends.
#[test]
fn a_workload_that_only_reads_is_not_waited_for() {
    let mut run = Simulation::new(&config(&[]), settings("workload", CLOSED, Some(500))).unwrap();
    let mut source = generated("uniform:write=0").open(run.ssd(), Seed(3)).unwrap();
    play(&mut run, &mut source, 1 << 20);
    assert_eq!(run.conditioning().unwrap().search(), Search::NothingWritten);
    assert_eq!(run.settled().verdict, Verdict::None);
}
