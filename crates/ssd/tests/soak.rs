//! A long run of power cuts on drives of random shape: `make soak`, with `OPERATIONS=` or `HOURS=` for its length. A failure names the
//! seed of its drive; `SEED=` begins with that one.

use crate::common::*;
use crate::controller_power::{any_drive_behind_a_controller, cut_behind_a_controller};
use crate::power::{Promises, any_drive, any_parallel_drive, cut_in_flight, is_worn, next_request};
use flashwright_block::{Rng, Seed, below, chance};
use flashwright_ssd::{Keeps, Ssd};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

/// What a soak has done so far.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    drives: u64,
    /// Requests whose effect was checked: reads when they were answered, others after the next mount.
    operations: u64,
    /// Power cuts, those in mounts included.
    cuts: u64,
    /// Pages compared with what the host may expect.
    pages: u64,
}

/// Requests of a drive.
const OF_A_DRIVE: u64 = 20_000;

/// Cuts of a drive that keeps several requests in flight.
const IN_FLIGHT: u64 = 30;

/// Draws drives until enough is done, and says how it goes every so often.
fn soak_until(first: u64, every: Duration, is_enough: impl Fn(&Done) -> bool, say: impl Fn(String)) -> Done {
    let (start, mut said) = (Instant::now(), Instant::now());
    let mut done = Done::default();
    let rate = |done: &Done| done.operations as f64 / start.elapsed().as_secs_f64().max(1e-9);
    for seed in first.. {
        if is_enough(&done) {
            break;
        }
        let before = done;
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let mut done = before;
            soak_drive(seed, &mut done);
            done
        }));
        match outcome {
            Ok(after) => done = after,
            Err(panic) => {
                say(format!("failed after {} operations; SEED={seed} make soak reproduces it", done.operations));
                resume_unwind(panic);
            }
        }
        if said.elapsed() > every {
            said = Instant::now();
            say(format!(
                "{} operations on {} drives, {} cuts, {} pages compared; {:.0} operations/s; next seed {}",
                done.operations,
                done.drives,
                done.cuts,
                done.pages,
                rate(&done),
                seed + 1
            ));
        }
    }
    say(format!("end: {done:?}, {:.0} operations/s, no violation", rate(&done)));
    done
}

/// Plays one drive of random shape, if the shape drawn can be built.
fn soak_drive(seed: u64, done: &mut Done) {
    if let Some(settings) = behind_a_controller(seed) {
        let requests = cut_behind_a_controller(&settings, IN_FLIGHT, seed).requests;
        done.drives += 1;
        done.operations += requests;
        done.cuts += IN_FLIGHT;
    } else {
        soak_bare_drive(seed, done);
    }
}

/// As [`soak_drive`], without a controller before the flash.
fn soak_bare_drive(seed: u64, done: &mut Done) {
    let mut rng = Seed(seed).stream("test.soak");
    if chance(&mut rng, 0.2) {
        if let Some(settings) = any_parallel_drive(&mut rng) {
            let (requests, pages) = cut_in_flight(&settings, IN_FLIGHT, seed);
            done.drives += 1;
            done.operations += requests;
            done.cuts += IN_FLIGHT;
            done.pages += pages;
        }
    } else if let Some(settings) = any_drive(&mut rng) {
        done.drives += 1;
        cut_one_by_one(&settings, seed, &mut rng, done);
    }
}

/// The settings of a drive with a controller, for some seeds.
fn behind_a_controller(seed: u64) -> Option<Vec<String>> {
    let mut rng = Seed(seed).stream("test.soak.controller");
    chance(&mut rng, 0.2).then(|| any_drive_behind_a_controller(&mut rng)).flatten()
}

/// Plays requests, and cuts the power in operations of the flash that are drawn, until a block is worn out or the drive has had enough.
fn cut_one_by_one(settings: &[String], seed: u64, rng: &mut Rng, done: &mut Done) {
    let mut ssd = Ssd::new(&config(settings), Seed(seed), Keeps::Stamps).unwrap();
    let mut promises = Promises::new(ssd.logical_pages());
    let what = || format!("{settings:?}, seed {seed}");
    ssd.cut_after(below(rng, 1000));
    for _ in 0..OF_A_DRIVE {
        let request = next_request(&ssd, rng);
        let outcome = perform(&mut ssd, request);
        promises.note(&ssd, &request, outcome.is_ok());
        done.operations += 1;
        if outcome.is_ok() {
            continue;
        }
        if ssd.is_on() {
            assert!(is_worn(&ssd), "{}: {outcome:?}", what());
            return;
        }
        done.cuts += 1;
        let again = chance(rng, 0.3).then(|| below(rng, 12));
        again.into_iter().for_each(|operations| ssd.cut_after(operations));
        for _ in 0..2 {
            if let Err(error) = ssd.mount() {
                assert!(is_worn(&ssd), "{}: {error}", what());
                return;
            }
            done.cuts += u64::from(!ssd.is_on());
        }
        if is_worn(&ssd) && ssd.config().ram.power_protected {
            return; // without free blocks it can't save all of its RAM
        }
        promises.check(&ssd, &what);
        done.pages += u64::from(ssd.logical_pages());
        ssd.cut_after(below(rng, 1000));
    }
    assert_eq!(ssd.audit(), [], "{}", what());
}

fn number(name: &str) -> Option<f64> {
    let text = std::env::var(name).ok().filter(|text| !text.is_empty())?;
    Some(text.replace('_', "").parse().unwrap_or_else(|_| panic!("{name}: found {text:?}, expected a number")))
}

#[test]
fn drives_on_which_the_soak_has_failed() {
    for seed in [87, 1207, 2488, 2722, 7056, 35488, 36913, 40713, 52104, 217_964, 300_462, 362_110, 700_880, 1_001_142]
    {
        soak_bare_drive(seed, &mut Done::default());
    }
}

#[test]
#[ignore = "takes as long as OPERATIONS or HOURS say"]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // seeds and counts that people type
fn soak() {
    let (operations, hours) = (number("OPERATIONS"), number("HOURS"));
    let start = Instant::now();
    let most = operations.unwrap_or(if hours.is_some() { f64::INFINITY } else { 1e9 });
    let is_enough = |done: &Done| {
        done.operations as f64 >= most || hours.is_some_and(|hours| start.elapsed().as_secs_f64() >= hours * 3600.0)
    };
    let first = number("SEED").map_or(1, |seed| seed as u64);
    soak_until(first, Duration::from_secs(10), is_enough, |line| eprintln!("soak: {line}"));
}

/// Drives that are worn out between cuts. The first ones lost pages of cleans that a mount had undone, and their superblocks got retired
/// blocks; those with streams began cleans that had no room.
#[test]
fn worn_drives_lose_nothing() {
    let checkpoints = "recovery.checkpoint-interval=1 MiB";
    let streams =
        ["gc.victim=cost-benefit", "placement.policy=dac", "gc.schedule=preemptive", "wear.policy=rate-limit"];
    for (shape, cycles, more, seeds) in [
        (shape(1, 2, 1, 60, 16, 607), 21, &["ftl.scheme=superblock", "ftl.superblock.blocks=3", checkpoints][..], 1..6),
        (shape(1, 1, 1, 31, 8, 79), 30, &["ftl.scheme=superblock", "ftl.superblock.blocks=4"], 1..12),
        (shape(1, 2, 1, 29, 16, 612), 25, &streams, 1..7),
    ] {
        let mut settings = shape;
        settings.extend(small_policies());
        settings.extend(more.iter().map(|setting| (*setting).to_owned()));
        settings.extend(["recovery.mount-by=scan", "timing.model=serial"].map(str::to_owned));
        settings.push(format!("wear.pe-cycles-max={cycles}"));
        for seed in seeds {
            let mut done = Done::default();
            cut_one_by_one(&settings, seed, &mut Seed(seed).stream("test.soak.worn"), &mut done);
            assert!(done.operations < OF_A_DRIVE, "it was worn out: {done:?}");
        }
    }
}

#[test]
fn a_short_soak_finds_nothing() {
    let done = soak_until(1, Duration::MAX, |done| done.operations >= 100_000, |_| ());
    assert!(done.operations >= 100_000 && done.cuts >= 100 && done.drives >= 5, "{done:?}");
    assert!(done.pages >= 10_000, "{done:?}");
}
