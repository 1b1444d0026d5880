//! `workload:scaled`: a drive that begins as a copy of a smaller one, which has settled under the same workload.

#![allow(clippy::unwrap_used, clippy::cast_precision_loss)] // helpers of tests count as library code

use flashwright_ftl::Ftl as _;
use flashwright_nand::{BlockId, Lpn};
use flashwright_sim::{Phase, RunOptions, SeedOption, Simulation, Source, SourceSpec};
use flashwright_ssd::{Config, DriveConfig, Ssd};

/// Four planes of 244 blocks, of which four are kept for cleaning: a small drive of 64 blocks a plane is four times smaller.
const DRIVE: &str = "[geometry]\nchannels = 2\ndies-per-channel = 2\nblocks-per-plane = 244\npages-per-block = 32\n\
                     [timing]\nmodel = \"none\"\n[capacity]\nlogical = \"97280 KiB\"\n";

fn config(settings: &[&str]) -> DriveConfig {
    Config::from_toml(DRIVE, "test").unwrap().with_settings(settings).unwrap()
}

fn run(config: &DriveConfig, workload: &str, precondition: &str, seed: u64) -> (Simulation, Source) {
    let options = RunOptions {
        precondition: Some(precondition.into()),
        requests: Some(40_000),
        seed: SeedOption(seed),
        verify: true,
        ..RunOptions::default()
    };
    let spec = SourceSpec::Workload(workload.parse().unwrap());
    let ssd = Ssd::new(config, options.seed(), true).unwrap();
    let source = spec.open(&ssd, options.seed()).unwrap();
    (options.run(ssd, &spec, &source).unwrap(), source)
}

fn report(run: &mut Simulation) -> serde_json::Value {
    serde_json::from_str(&run.report().unwrap().report.to_json()).unwrap()
}

fn played(config: &DriveConfig, workload: &str, precondition: &str, seed: u64) -> serde_json::Value {
    let (mut run, mut source) = run(config, workload, precondition, seed);
    while !run.step(&mut source, 5000).unwrap() {}
    report(&mut run)
}

/// Where pages lie and how often blocks were erased.
fn state(ssd: &Ssd) -> (Vec<Option<u32>>, Vec<u32>) {
    let map = (0..ssd.logical_pages()).map(|lpn| ssd.scheme().lookup(Lpn(lpn), ssd.flash()).map(|ppn| ppn.0));
    (map.collect(), ssd.flash().nand().erases_of_all().collect())
}

/// The drive as it is when the workload begins.
fn laid_out(config: &DriveConfig, workload: &str, seed: u64) -> Simulation {
    let (mut run, mut source) = run(config, workload, "workload:scaled", seed);
    while run.progress(&source).phase == Phase::Precondition {
        run.step(&mut source, 64).unwrap();
    }
    run
}

#[test]
fn the_copy_holds_every_page_and_hardly_anything_was_cleaned() {
    for workload in ["zipf:write=0.7", "zipf:0.99,write=1", "uniform:write=1", "hot-cold:write=1,placement=scattered"] {
        let run = laid_out(&config(&[]), workload, 1);
        let ssd = run.ssd();
        assert_eq!(ssd.flash().pages_valid_in_all(), u64::from(ssd.logical_pages()), "{workload}");
        assert_eq!(ssd.audit(), [], "{workload}");
        let erased: u32 = ssd.flash().nand().erases_of_all().sum();
        assert!(erased < 98, "{workload}: {erased} blocks were erased, of 976");
        // Each page is there since the small drive has settled, and blocks were filled in the order of their age: the oldest are emptiest
        // where victims are the emptiest.
        let pages = |block: u32| ssd.flash().pages_valid(BlockId(block));
        let (old, young) = ((0..24).map(pages).sum::<u32>(), (200..224).map(pages).sum::<u32>());
        assert!(old < young, "{workload}: {old} valid pages in the first blocks, {young} in later ones");
    }
}

/// The blocks that one block of the small drive stands for are as full as it: four of them in a row are alike.
#[test]
fn four_blocks_in_a_row_are_as_full_as_the_one_that_they_stand_for() {
    // Planes take strict turns, so that each block is filled from one block of the small drive.
    let run = laid_out(&config(&["placement.allocation=dynamic"]), "hot-cold:write=1", 1);
    let counts: Vec<u32> = (0..200).map(|block| run.ssd().flash().pages_valid(BlockId(block))).collect();
    let (rows, _) = counts.as_chunks::<4>();
    let apart = |pages: &[u32]| pages.iter().max().unwrap() - pages.iter().min().unwrap();
    // A few were cleaned at the end.
    let even = rows.iter().filter(|row| apart(*row) == 0).count();
    assert!(even >= 45, "{even} of 50 rows hold as much in each block: {counts:?}");
    assert!(apart(&counts) > 8, "blocks of one drive differ: {counts:?}");
}

#[test]
fn it_settles_at_the_same_figure_with_less_writing() {
    for (settings, workload) in [
        (&["gc.victim=greedy"][..], "zipf:write=1"),
        (&["gc.victim=cost-benefit"], "zipf:0.9,write=1"),
        (&["gc.victim=d-choices"], "hot-cold:write=1,hot-space=0.1,hot-access=0.9"),
        (&["gc.victim=random"], "pareto:write=1"),
    ] {
        let config = config(settings);
        let (mut written, mut amplification) = ([0.0; 2], [0.0; 2]);
        for seed in 1..=3 {
            for (at, precondition) in ["workload", "workload:scaled"].into_iter().enumerate() {
                let json = played(&config, workload, precondition, seed);
                let done = &json["precondition"];
                assert_eq!(done["workload"]["ended"], "settled", "{settings:?} {workload} {precondition}");
                amplification[at] += json["write_amplification"].as_f64().unwrap() / 3.0;
                written[at] += done["workload"]["capacities"].as_f64().unwrap();
                let of_small = &done["scaled"];
                if at == 1 {
                    assert!(of_small["refused"].is_null(), "{of_small}");
                    let times = of_small["times_smaller"].as_f64().unwrap();
                    assert!((times - 4.0).abs() < 1e-9, "{times}");
                    written[at] += of_small["capacities"].as_f64().unwrap() / times;
                }
            }
        }
        println!("{settings:?} {workload}: {amplification:?}, {written:?} capacities");
        let [plain, scaled] = amplification;
        assert!((scaled / plain - 1.0).abs() < 0.03, "{settings:?} {workload}: {scaled} for {plain}");
    }
}

#[test]
fn steps_of_any_size_and_saved_runs_come_to_the_same_end() {
    let (drive, workload) = (config(&[]), "zipf:write=0.7");
    let (mut whole, mut source) = run(&drive, workload, "workload:scaled", 3);
    while !whole.step(&mut source, u64::MAX).unwrap() {}
    let expected = report(&mut whole)["digest"].clone();
    // Saved while the small drive settles, while its copy is laid out, and while that settles.
    for saves in [[1, 3, 6], [2, 8, 9], [4, 7, 20]] {
        let (mut part, mut source) = run(&drive, workload, "workload:scaled", 3);
        let mut steps = 0;
        while !part.step(&mut source, 9999).unwrap() {
            steps += 1;
            if saves.contains(&steps) {
                let bytes = part.save();
                source = run(&drive, workload, "workload:scaled", 3).1;
                part = Simulation::load(&bytes, "test", &mut source).unwrap();
            }
        }
        assert_eq!(report(&mut part)["digest"], expected, "{saves:?}");
    }
}

/// The requests of the run and its drive stay as they are; the layout differs.
#[test]
fn the_small_drive_draws_by_the_seed() {
    let of = |seed| state(laid_out(&config(&["gc.victim=greedy"]), "uniform:write=1", seed).ssd());
    assert!(of(1) == of(1));
    assert!(of(1) != of(2));
}

#[test]
fn where_no_small_drive_stands_for_the_large_one_the_run_says_why_and_begins_with_a_fill() {
    for (settings, workload, why) in [
        (&["ftl.scheme=dftl"][..], "zipf:write=1", "ftl.scheme = \"dftl\", expected \"page\""),
        (&["ram.manager=lru", "ram.size=1 MiB"], "zipf:write=1", "ram.manager = \"lru\", expected \"none\""),
        (&["placement.policy=dac"], "zipf:write=1", "placement.policy = \"dac\", expected"),
        (&["placement.allocation=static"], "zipf:write=1", "placement.allocation = \"static\", expected"),
        (&["wear.policy=random"], "zipf:write=1", "wear.policy = \"random\", expected \"none\""),
        (&["wear.factory-bad=0.03"], "zipf:write=1", "wear.factory-bad above 0, expected 0"),
        (&["host.scheduler=noop"], "zipf:write=1", "what lies between the workload and the flash"),
        (
            &["geometry.blocks-per-plane=100", "capacity.logical=32 MiB"],
            "zipf:write=1",
            "100 blocks in a plane, expected 244",
        ),
        (&[], "zipf:write=1,size=8KiB", "a workload whose order of popularity is not known"),
        (&[], "zipf:write=0.5,trim=0.1", "a workload whose order of popularity is not known"),
        (&[], "dynamic-static:write=1", "a workload whose order of popularity is not known"),
        (&[], "zipf:write=1,range=0.6", "pages that the workload never writes"),
        (&[], "hot-cold:write=1,hot-access=1", "pages that the workload never writes"),
        (&[], "sequential:write=1", "a workload whose order of popularity is not known"),
        (&[], "zipf:write=0", "a workload whose order of popularity is not known"),
    ] {
        let config = config(settings);
        let (mut scaled, mut plain) =
            (played(&config, workload, "workload:scaled", 1), played(&config, workload, "workload", 1));
        let refused = scaled["precondition"]["scaled"]["refused"].as_str().unwrap().to_owned();
        assert!(refused.starts_with(why), "{settings:?} {workload}: {refused}");
        for json in [&mut scaled, &mut plain] {
            for key in ["run", "precondition"] {
                json.as_object_mut().unwrap().remove(key);
            }
        }
        assert_eq!(scaled["digest"], plain["digest"], "{settings:?} {workload}");
        assert_eq!(scaled["settled"], plain["settled"], "{settings:?} {workload}");
    }
}
