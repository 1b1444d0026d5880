//! Every random stream changes with the seed. The table names each stream of the sources with a case in which nothing
//! but the seed of that stream's owner changes; the last test finds a stream that the table lacks.

#![allow(clippy::unwrap_used)] // helpers of tests count as library code

use flashwright_block::{
    BlockDevice, Bytes, Completion, Interactive, Nanos, Request, RequestKind, RequestSource, Rng, SECTOR_BYTES, Seed,
    SourceError, below,
};
use flashwright_disk::{Effect, Faulty, Which};
use flashwright_fs::{
    Application, Filebench, FilebenchSettings, Postmark, PostmarkSettings, Profile, Settings, System,
};
use flashwright_nand::{BlockId, Lpn};
use flashwright_sim::{Pace, Player, Precondition, Preconditioning, SourceSpec};
use flashwright_ssd::{Config, Controller, DriveConfig, Ssd};
use flashwright_workload::generate::Target;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::{Path, PathBuf};

/// Evidence that a stream changes.
enum Shown {
    /// A result that this seed gives.
    By(fn(Seed) -> String),
    /// A test elsewhere, since it needs the kernel or Python: its file and its name.
    In(&'static str, &'static str),
}

use Shown::{By, In};

/// The streams as the sources name them, `{...}` for what is filled in.
const STREAMS: &[(&str, Shown)] = &[
    ("controller noise", By(ends_of_reads)),
    ("disk data", In("crates/disk/tests/files.rs", "data_depends_on_the_seed_alone")),
    ("errors", By(retries)),
    ("errors of blocks", By(|seed| budgets(&["errors.law=power-law", "geometry.bits-per-cell=3"], seed))),
    ("faults", By(requests_hit)),
    ("filebench", By(|seed| program(Filebench::new(Profile::Varmail, mail(true), seed), Seed(1)))),
    ("filebench.sizes", By(|seed| format!("{:?}", bytes_prepared(seed)))),
    ("fs.directories", By(|seed| program(Postmark::new(postmark(), Seed(1)), seed))),
    ("ftl.bast.victim-log", By(|seed| worked(&["ftl.scheme=bast", "ftl.bast.victim-log=random"], seed))),
    ("ftl.scheme", In("tests/python/test_layers_in_python.py", "test_a_layer_draws_by_the_seed")),
    ("ftl.dftl.prefetch", In("tests/python/test_parts_in_python.py", "test_parts_draw_by_the_seed")),
    ("ftl.dftl.replacement", In("tests/python/test_parts_in_python.py", "test_parts_draw_by_the_seed")),
    ("gc.schedule.{plane}", In("tests/python/test_parts_in_python.py", "test_parts_draw_by_the_seed")),
    ("gc.victim.{plane}", By(|seed| worked(&["gc.victim=random"], seed))),
    (
        "placement",
        By(|seed| worked(&["placement.policy=container-marking", "placement.container-marking.levels=2"], seed)),
    ),
    ("model.fit", In("crates/workload/tests/model.rs", "a_fit_depends_on_the_trace_alone")),
    ("model.growth", In("crates/workload/tests/model_sequence.rs", "what_is_new_grows_as_in_the_trace")),
    ("model.segments", In("crates/workload/tests/model_sequence.rs", "a_round_plays_each_request_once_in_segments")),
    ("postmark", By(|seed| program(Postmark::new(postmark(), seed), Seed(1)))),
    ("precondition", By(preconditioned)),
    ("precondition.small", In("crates/sim/tests/scaled.rs", "the_small_drive_draws_by_the_seed")),
    ("ram.manager", In("tests/python/test_policies_in_python.py", "test_a_buffer_policy_draws_by_the_seed")),
    ("repeated disk data", In("crates/disk/src/noise.rs", "what_repeats_depends_on_the_seed_alone")),
    ("wear.factory-bad", By(|seed| worked(&["wear.factory-bad=0.05"], seed))),
    ("wear.pe-cycles", By(|seed| budgets(&["wear.pe-cycles-max=1000", "wear.pe-cycles-spread=0.2"], seed))),
    ("wear.policy.{plane}", By(|seed| worked(&["wear.policy=random", "wear.random.every=5"], seed))),
    ("workload.address", By(|seed| list("uniform:write=1", seed, |request| request.first_sector))),
    ("workload.arrival", By(|seed| list("sequential:write=1,rate=1000", seed, |request| request.arrival))),
    ("workload.gap", By(|seed| list("stand-in:websearch1,rate=100,arrival=poisson", seed, |request| request.arrival))),
    ("workload.kind", By(|seed| list("sequential:write=0.5", seed, |request| request.kind))),
    ("workload.layout", By(|seed| hottest("zipf:write=1", seed))),
    ("workload.size", By(|seed| list("stand-in:financial1", seed, |request| request.sectors))),
];

#[test]
fn every_stream_moves_with_the_seed() {
    for (name, shown) in STREAMS {
        let By(result) = shown else { continue };
        assert_eq!(result(Seed(1)), result(Seed(1)), "{name}: one seed, two results");
        assert_ne!(result(Seed(1)), result(Seed(2)), "{name}: the seed does not move it");
    }
}

#[test]
fn every_stream_of_the_sources_is_in_the_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(root.join("crates")).unwrap() {
        let package = entry.unwrap().path();
        // The benchmark's workload must never change.
        if !package.ends_with("bench") {
            scan(&package.join("src"), &mut found);
        }
    }
    for (name, place) in &found {
        assert!(STREAMS.iter().any(|(known, _)| known == name), "{}: {name:?} is not in STREAMS", place.display());
    }
    for (name, shown) in STREAMS {
        assert!(found.contains_key(*name), "{name:?} is in STREAMS, but no longer in the sources");
        if let In(file, test) = shown {
            let text = std::fs::read_to_string(root.join(file)).unwrap();
            assert!(text.contains(test), "{name}: {file} has no {test}");
        }
    }
}

/// Finds the names of streams below a folder, those of tests left out.
fn scan(folder: &Path, found: &mut BTreeMap<String, PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            scan(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") && !path.to_string_lossy().ends_with("tests.rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("\nmod tests {").next().unwrap();
            let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
            for line in lines {
                for call in line.split(".stream(").skip(1).filter(|call| !call.starts_with(')')) {
                    let quoted = call.trim_start_matches("&format!(").strip_prefix('"');
                    let name = quoted.and_then(|rest| rest.split('"').next());
                    let name = name.unwrap_or_else(|| panic!("{}: a stream without a name: {line}", path.display()));
                    found.insert(name.to_owned(), path.clone());
                }
            }
        }
    }
}

// --- drives ---

fn config(settings: &[&str]) -> DriveConfig {
    let small = [
        "geometry.channels=2",
        "geometry.dies-per-channel=1",
        "geometry.blocks-per-plane=48",
        "geometry.pages-per-block=16",
        "geometry.page-size=\"4 KiB\"",
        "capacity.utilization=0.7",
        "timing.model=none",
    ];
    Config::default()
        .with_settings(&[&small[..], settings].concat().iter().map(ToString::to_string).collect::<Vec<_>>())
        .unwrap()
}

/// Where a drive's pages lie and how often its blocks were erased.
fn state(ssd: &Ssd) -> String {
    use flashwright_ftl::Ftl as _;
    let flash = ssd.flash();
    let map: Vec<_> = (0..ssd.logical_pages()).map(|lpn| ssd.scheme().lookup(Lpn(lpn), flash)).collect();
    let erases: Vec<_> = (0..flash.geometry().blocks()).map(|block| flash.nand().erases(BlockId(block))).collect();
    format!("{map:?} {erases:?}")
}

/// A drive made with this seed, after writes that are always the same.
fn worked(settings: &[&str], seed: Seed) -> String {
    let mut ssd = Ssd::new(&config(settings), seed, false).unwrap();
    let mut rng: Rng = Seed(7).stream("test");
    let (pages, mut completion) = (u64::from(ssd.logical_pages()), Completion::default());
    for _ in 0..8 * pages {
        let first_sector = below(&mut rng, pages) * 8;
        let write = Request { kind: RequestKind::Write, first_sector, sectors: 8, ..Request::default() };
        ssd.execute(write, &mut completion).unwrap();
        assert_eq!(completion.result, Ok(()), "{settings:?}");
    }
    state(&ssd)
}

fn budgets(settings: &[&str], seed: Seed) -> String {
    let ssd = Ssd::new(&config(settings), seed, false).unwrap();
    let nand = ssd.flash().nand();
    format!(
        "{:?}",
        (0..ssd.flash().geometry().blocks()).map(|block| nand.cycles_left(BlockId(block))).collect::<Vec<_>>()
    )
}

/// What reads of aged data meet on blocks that are all alike.
fn retries(seed: Seed) -> String {
    let settings = [
        "errors.law=power-law",
        "errors.block-sigma=0.0",
        "timing.model=parallel",
        "errors.pe-cycles-at-start=1500",
        "errors.age-at-start=30 d",
        "geometry.bits-per-cell=3",
        "geometry.blocks-per-plane=16",
        "capacity.utilization=0.5",
    ];
    let mut ssd = Ssd::new(&config(&settings), seed, false).unwrap();
    let mut preconditioning = Preconditioning::new(Precondition::Sequential, &ssd, Seed(1)).unwrap();
    while !preconditioning.step(&mut ssd, 1 << 20).unwrap() {}
    ssd.reset_figures();
    let mut completion = Completion::default();
    for page in 0..2_000 {
        let first_sector = page % u64::from(ssd.logical_pages()) * ssd.sectors_per_page();
        let read = Request { first_sector, sectors: 1, ..Request::default() };
        ssd.execute(read, &mut completion).unwrap();
    }
    format!("{:?}", ssd.error_counts())
}

fn preconditioned(seed: Seed) -> String {
    let mut ssd = Ssd::new(&config(&[]), Seed(1), false).unwrap();
    let random = Precondition::Random { capacities: 1.0 };
    let mut preconditioning = Preconditioning::new(random, &ssd, seed).unwrap();
    while !preconditioning.step(&mut ssd, 1 << 20).unwrap() {}
    state(&ssd)
}

fn ends_of_reads(seed: Seed) -> String {
    let config = config(&["timing.model=serial", "controller.noise=0.1", "controller.read-overhead=\"20 us\""]);
    let ssd = Ssd::new(&config, Seed(1), false).unwrap();
    let (mut drive, mut completion) = (Controller::new(&config.controller, seed, ssd), Completion::default());
    let ends = (0..20).map(|page| {
        let read = Request { arrival: drive.now(), first_sector: 8 * page, sectors: 8, ..Request::default() };
        drive.execute(read, &mut completion).unwrap();
        completion.end
    });
    format!("{:?}", ends.collect::<Vec<_>>())
}

fn requests_hit(seed: Seed) -> String {
    let ssd = Ssd::new(&config(&[]), Seed(1), false).unwrap();
    let mut device = Faulty::new(ssd, Which::Share { share: 0.3, seed }, Effect::Fail);
    let mut completion = Completion::default();
    let hit = (0..50).map(|page| {
        device.execute(Request { first_sector: 8 * page, sectors: 8, ..Request::default() }, &mut completion).unwrap();
        completion.result.is_err()
    });
    format!("{:?}", hit.collect::<Vec<_>>())
}

// --- workloads ---

fn requests(spec: &str, seed: Seed, count: usize) -> Vec<Request> {
    let target = Target { logical_sectors: 1 << 22, page_sectors: 8 };
    let mut source = SourceSpec::Workload(spec.parse().unwrap()).open_on(&target, seed).unwrap();
    let mut requests = Vec::new();
    while requests.len() < count && source.fill(&mut requests, count).unwrap() > 0 {}
    assert!(!requests.is_empty());
    requests
}

/// One column of a workload's requests.
fn list<T: Debug>(spec: &str, seed: Seed, column: fn(&Request) -> T) -> String {
    format!("{:?}", requests(spec, seed, 500).iter().map(column).collect::<Vec<_>>())
}

/// The mebibyte that is asked for most often: where chance laid it, whatever the order of the requests.
fn hottest(spec: &str, seed: Seed) -> String {
    let mut counts = BTreeMap::new();
    for request in requests(spec, seed, 50_000) {
        *counts.entry((request.first_sector * SECTOR_BYTES) >> 20).or_insert(0) += 1;
    }
    format!("{:?}", counts.into_iter().max_by_key(|(_, count)| *count).map(|(place, _)| place))
}

// --- programs above a file system ---

struct Running<A: Application>(System<A>);

impl<A: Application> RequestSource for Running<A> {
    fn fill(&mut self, _: &mut Vec<Request>, _: usize) -> Result<usize, SourceError> {
        unreachable!("the player asks an interactive source")
    }
    fn interactive(&mut self) -> Option<&mut dyn Interactive> {
        Some(&mut self.0)
    }
}

fn postmark() -> PostmarkSettings {
    PostmarkSettings { files: 400, subdirectories: 6, transactions: 400, ..PostmarkSettings::default() }
}

/// Mail files, all of one size or not.
fn mail(fixed: bool) -> FilebenchSettings {
    let duration = Nanos(100_000_000);
    FilebenchSettings { files: 50, threads: 4, fixed, duration, ..Profile::Varmail.settings() }
}

/// The requests of a program, whose file system has a seed of its own.
fn played<A: Application>(app: A, seed: Seed) -> Vec<(RequestKind, u64, u32)> {
    let config = Config::default().with_settings(&["geometry.blocks-per-plane=256".to_owned()]).unwrap();
    let mut ssd = Ssd::new(&config, Seed(1), false).unwrap();
    let sectors = ssd.info().capacity.0 / SECTOR_BYTES;
    // Little memory, so that what the program does reaches the device.
    let settings = Settings { memory: Bytes(1 << 20), ..Settings::default() };
    let mut source = Running(System::new(app, settings, sectors, seed).unwrap());
    let mut seen = Vec::new();
    let mut player = Player::new(Pace::Interactive, Nanos(0));
    player
        .play(&mut ssd, &mut source, 20_000, true, |completion, _| {
            let Request { kind, first_sector, sectors, .. } = completion.request;
            seen.push((kind, first_sector, sectors));
        })
        .unwrap();
    seen
}

fn program<A: Application>(app: A, seed: Seed) -> String {
    format!("{:?}", played(app, seed))
}

/// Sectors written by a file set that nobody then writes to: what the drawn sizes come to.
fn bytes_prepared(seed: Seed) -> u64 {
    let settings = FilebenchSettings { duration: Nanos(1), ..mail(false) };
    let seen = played(Filebench::new(Profile::Varmail, settings, seed), Seed(1));
    seen.iter().filter(|(kind, ..)| *kind == RequestKind::Write).map(|(.., sectors)| u64::from(*sectors)).sum()
}
