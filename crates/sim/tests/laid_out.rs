//! `steady:laid-out`: a drive that was laid out is in the state that a drive reaches by writing.

#![allow(clippy::unwrap_used, clippy::cast_precision_loss)] // helpers of tests count as library code

use flashwright_block::{Rng, Seed, below};
use flashwright_ftl::{LpnRun, OpKind};
use flashwright_nand::{BlockId, Lpn};
use flashwright_sim::{Precondition, Preconditioning};
use flashwright_ssd::{Config, Ssd};

const DRIVE: &str = "[geometry]\nchannels = 2\ndies-per-channel = 2\nblocks-per-plane = 256\npages-per-block = 64\n\
                     [timing]\nmodel = \"none\"\n[capacity]\nutilization = 0.85\n";

fn drive(settings: &[&str], precondition: &str, seed: u64) -> Result<(Ssd, u64), String> {
    let settings: Vec<String> = settings.iter().map(|text| (*text).to_owned()).collect();
    let config = Config::from_toml(DRIVE, "test").unwrap().with_settings(&settings).unwrap();
    let mut ssd = Ssd::new(&config, Seed(seed), false).unwrap();
    let wanted: Precondition = precondition.parse().unwrap();
    let mut preconditioning = Preconditioning::new(wanted, &ssd, Seed(seed)).map_err(|error| error.0)?;
    while !preconditioning.step(&mut ssd, 1000).unwrap() {}
    Ok((ssd, preconditioning.progress().0))
}

/// Pages programmed for each page written, over so many capacities of uniform random writes.
fn amplification(ssd: &mut Ssd, capacities: f64, rng: &mut Rng) -> f64 {
    let before = ssd.flash().counters().clone();
    let pages = (f64::from(ssd.logical_pages()) * capacities) as u64;
    for _ in 0..pages {
        let lpn = below(rng, u64::from(ssd.logical_pages())) as u32;
        ssd.precondition(LpnRun { first: Lpn(lpn), pages: 1, stream: 0 }).unwrap();
    }
    ssd.flash().counters().since(&before).total(OpKind::Program) as f64 / pages as f64
}

/// Valid pages of all full blocks, fewest first.
fn valid_pages(ssd: &Ssd) -> Vec<u32> {
    let nand = ssd.flash().nand();
    let full = (0..nand.geometry().blocks()).map(BlockId);
    let full = full.filter(|block| nand.next_page(*block) == nand.geometry().pages_per_block());
    let mut counts: Vec<u32> = full.map(|block| ssd.flash().pages_valid(block)).collect();
    counts.sort_unstable();
    counts
}

/// For each policy whose steady state is known: cleaning costs at once what it costs in the long run, and blocks are as full.
#[test]
fn it_costs_at_once_what_it_costs_in_the_long_run() {
    for settings in [
        &["gc.victim=greedy"][..],
        &["gc.victim=fifo"],
        &["gc.victim=d-choices", "gc.d-choices.d=3"],
        &["gc.victim=random"],
        &["gc.victim=greedy", "placement.allocation=static"],
        &["gc.victim=greedy", "placement.policy=gc-separate"],
        &["gc.victim=greedy", "gc.schedule=rate-limited"],
        &["gc.victim=greedy", "capacity.utilization=0.6", "gc.free-blocks-min=1"],
    ] {
        let seeds = 4;
        let (mut at_once, mut in_the_long_run, mut apart) = (0.0, 0.0, 0.0);
        for seed in 1..=seeds {
            let mut rng = Seed(seed).stream("test.laid-out");
            let (mut quick, pages) = drive(settings, "steady:laid-out", seed).unwrap();
            let (mut slow, _) = drive(settings, "random:capacities=12", seed).unwrap();
            let physical = u64::from(quick.flash().geometry().pages());
            assert!(pages <= physical + u64::from(quick.logical_pages()) / 2, "{settings:?}: {pages} of {physical}");
            let distance: f64 = valid_pages(&quick)
                .iter()
                .zip(valid_pages(&slow))
                .map(|(quick, slow)| (f64::from(*quick) - f64::from(slow)).abs() / 64.0)
                .sum();
            apart += distance / valid_pages(&quick).len() as f64 / seeds as f64;
            at_once += amplification(&mut quick, 0.5, &mut rng) / seeds as f64;
            in_the_long_run += amplification(&mut slow, 3.0, &mut rng) / seeds as f64;
        }
        let ratio = at_once / in_the_long_run;
        println!("{settings:?}: {at_once:.3} for {in_the_long_run:.3}, blocks {apart:.4} apart");
        assert!((ratio - 1.0).abs() < 0.02, "{settings:?}: {at_once} at once, {in_the_long_run} in the long run");
        assert!(apart < 0.02, "{settings:?}: blocks differ by {apart} of their pages");
    }
}

#[test]
fn every_page_is_written_and_the_drive_is_sound() {
    for settings in
        [&["placement.allocation=static"][..], &[], &["capacity.utilization=0.02"], &["wear.factory-bad=0.03"]]
    {
        let (ssd, _) = drive(settings, "steady:laid-out", 5).unwrap();
        let blocks = (0..ssd.flash().geometry().blocks()).map(BlockId);
        let valid: u32 = blocks.map(|block| ssd.flash().pages_valid(block)).sum();
        assert_eq!(valid, ssd.logical_pages(), "{settings:?}");
        assert_eq!(ssd.audit(), [], "{settings:?}");
    }
}

#[test]
fn what_theory_does_not_know_is_refused() {
    for (settings, expected) in [
        (&["ftl.scheme=fast"][..], "ftl.scheme = \"fast\", expected \"page\""),
        (&["gc.victim=cat"], "gc.victim = \"cat\", expected \"greedy\""),
        (&["ram.manager=lru", "ram.size=1 MiB"], "ram.manager = \"lru\", expected \"none\""),
        (&["placement.policy=dac"], "placement.policy = \"dac\", expected \"auto\", \"single\""),
    ] {
        let error = drive(settings, "steady:laid-out", 1).map(|_| ()).unwrap_err();
        assert!(error.starts_with("precondition: steady:laid-out with ") && error.contains(expected), "{error}");
    }
}
