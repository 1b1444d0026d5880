//! The SLC cache in time: when a drive folds in idle time, what a fill shows, and what is refused.

use crate::common::*;
use flashwright_block::{BlockDevice, Nanos, Request, RequestKind, Seed};
use flashwright_ftl::{Cause, OpKind, SchemeName};
use flashwright_ssd::{Config, Ssd, SsdError};

/// Settings in place of each other's defaults.
fn with(shape: Vec<String>, more: &[&str]) -> Vec<String> {
    shape.into_iter().chain(more.iter().map(|setting| (*setting).to_owned())).collect()
}

/// One plane of 16 blocks with 6 pages, 2 in SLC mode, of which 4 pages have just been written in order; each took 302.4 us, so
/// that the drive is idle from 1209.6 us on, with two full blocks in its cache.
fn by_hand(timing: &str, more: &[&str]) -> Ssd {
    let slc = ["geometry.bits-per-cell=3", "slc.cache=dynamic", "slc.block-share=0.5", "slc.fold-after=1 ms"];
    let timing = format!("timing.model={timing}");
    let settings = with(one_plane(16, 6, 30), &[&slc[..], &[timing.as_str()], more].concat());
    let mut ssd = Ssd::new(&config(&settings), Seed(1), true).unwrap();
    for lpn in 0..4 {
        let write = Request { arrival: ssd.now(), ..pages(&ssd, RequestKind::Write, lpn, 1) };
        perform(&mut ssd, write).unwrap();
    }
    assert_eq!(ssd.now(), Nanos(1_209_600));
    ssd
}

fn moved(ssd: &Ssd) -> u64 {
    ssd.flash().counters().get(OpKind::Program, Cause::Gc)
}

/// A read takes 50 us and 102.4 of bus, a copy 454.8, an erase 700. Folding begins 1 ms after the last request: at 2209.6.
///
/// ```text
///   copy 2209.6-2664.4 | copy -3119.2 | erase -3819.2 | copy -4274.0 | copy -4728.8 | erase -5428.8
/// ```
#[test]
fn a_request_finds_at_most_one_step_of_folding_in_progress() {
    for timing in ["serial", "parallel"] {
        for schedule in ["foreground", "background", "preemptive"] {
            let schedule = format!("gc.schedule={schedule}");
            let of = |arrival: u64| {
                let mut ssd = by_hand(timing, &[&schedule]);
                let read = Request { arrival: Nanos(arrival), ..pages(&ssd, RequestKind::Read, 0, 1) };
                let end = perform(&mut ssd, read).unwrap()[0].end.0;
                assert_clean(&ssd, "folded in part");
                (end - 152_400, moved(&ssd))
            };
            assert_eq!(of(2_000_000), (2_000_000, 0), "{timing}, {schedule}: not idle for long enough");
            assert_eq!(of(2_209_600), (2_209_600, 0), "{timing}, {schedule}: folding would begin now");
            assert_eq!(of(2_209_601), (2_664_400, 1), "{timing}, {schedule}: in the first step");
            assert_eq!(of(2_700_000), (3_119_200, 2), "{timing}, {schedule}: in the second");
            assert_eq!(of(3_200_000), (3_819_200, 2), "{timing}, {schedule}: in the erase");
            assert_eq!(of(4_800_000), (5_428_800, 4), "{timing}, {schedule}: in the last");
            assert_eq!(of(9_000_000), (9_000_000, 4), "{timing}, {schedule}: nothing is left");
        }
        let mut ssd = by_hand(timing, &["slc.fold-idle=false"]);
        let read = Request { arrival: Nanos(60_000_000_000), ..pages(&ssd, RequestKind::Read, 0, 1) };
        perform(&mut ssd, read).unwrap();
        assert_eq!(moved(&ssd), 0, "{timing}: switched off");
    }
}

/// A request ends the idle time; the next begins when it ends, wherever folding was.
#[test]
fn each_request_begins_a_new_wait() {
    for timing in ["serial", "parallel"] {
        let mut ssd = by_hand(timing, &[]);
        // In the first copy; it is answered at 2664.4 + 152.4 = 2816.8, so that folding goes on at 3816.8.
        for (arrival, end, copies) in
            [(2_300_000, 2_816_800, 1), (3_816_800, 3_969_200, 1), (4_969_201, 4_969_200 + 454_800 + 152_400, 2)]
        {
            let read = Request { arrival: Nanos(arrival), ..pages(&ssd, RequestKind::Read, 3, 1) };
            assert_eq!(perform(&mut ssd, read).unwrap()[0].end, Nanos(end), "{timing}");
            assert_eq!(moved(&ssd), copies, "{timing}");
        }
    }
}

/// While time passes without a request, a parallel drive folds at its times, and requests in flight keep it from folding.
#[test]
fn folding_follows_the_clock_of_the_host() {
    let mut ssd = by_hand("parallel", &[]);
    for (until, copies) in
        [(2_209_600, 0), (2_209_601, 1), (2_664_399, 1), (2_664_400, 2), (3_819_200, 3), (4_274_000, 4)]
    {
        assert!(wait(&mut ssd, Nanos(until)).unwrap().is_none());
        assert_eq!(moved(&ssd), copies, "at {until}");
    }
    assert!(wait(&mut ssd, Nanos(5_428_800)).unwrap().is_none());
    assert_eq!(ssd.flash().counters().total(OpKind::Erase), 2);
    assert_clean(&ssd, "folded");
    // A write of 12 pages takes longer than the wait.
    let mut busy = by_hand("parallel", &["slc.fold-after=100 us"]);
    let write = Request { arrival: busy.now(), ..pages(&busy, RequestKind::Write, 0, 12) };
    busy.submit(write).unwrap();
    assert!(wait(&mut busy, Nanos(4_000_000)).unwrap().is_none());
    assert_eq!(moved(&busy), 0);
    drain(&mut busy).unwrap();
}

/// A QLC drive fills its cache at full speed and then folds a page for each that it takes; idle time restores the cache.
#[test]
fn a_fill_shows_the_cliff_and_idle_time_restores_the_cache() {
    for timing in ["serial", "parallel"] {
        let slc = [
            "geometry.bits-per-cell=4",
            "slc.cache=dynamic",
            "slc.block-share=0.5",
            "slc.when-full=fold",
            "slc.fold-after=10 ms",
            "gc.invalidate=at-program",
        ];
        let timing = format!("timing.model={timing}");
        let settings = with(shape(2, 1, 1, 64, 32, 3000), &[&slc[..], &[timing.as_str()]].concat());
        let mut ssd = Ssd::new(&config(&settings), Seed(1), true).unwrap();
        // Two planes, 32 of 64 blocks, 8 of 32 pages.
        let cache = 2 * 32 * 8;
        let write = |ssd: &mut Ssd, lpn: u32, wait: u64| {
            let write = Request { arrival: Nanos(ssd.now().0 + wait), ..pages(ssd, RequestKind::Write, lpn, 1) };
            let done = &perform(ssd, write).unwrap()[0];
            (done.end.0 - done.request.arrival.0, u64::from(done.effects.flash_ops))
        };
        let times: Vec<(u64, u64)> = (0..1500).map(|lpn| write(&mut ssd, lpn, 0)).collect();
        assert!(times[..cache].iter().all(|took| *took == (302_400, 1)), "{timing}: the cache");
        assert!(times[cache].0 > 8 * 454_800, "{timing}: the first write that folds: {:?}", times[cache]);
        let programs: u64 = times[cache..].iter().map(|(_, ops)| ops).sum();
        let per_page = programs as f64 / (times.len() - cache) as f64;
        assert!((3.0..4.0).contains(&per_page), "{timing}: a program, a read and a program, and erases: {per_page}");
        // The cache takes half of the blocks that hold no normal data, which are half of all.
        let again: Vec<u64> =
            (1500..2500).map(|lpn| write(&mut ssd, lpn, if lpn == 1500 { 60_000_000_000 } else { 0 }).0).collect();
        let fast = again.iter().take_while(|took| **took == 302_400).count();
        let free = f64::from(64 - 1500_u32.div_ceil(2 * 32));
        assert!(
            (fast as f64 / (free * 8.0) - 1.0).abs() < 0.1,
            "{timing}: {fast} pages after the pause, {free} free blocks"
        );
        assert_clean(&ssd, "at the end");
    }
}

fn refusal(settings: &[&str]) -> String {
    let SsdError::Config(error) =
        Ssd::new(&config(&with(shape(2, 1, 1, 32, 8, 300), settings)), Seed(1), false).unwrap_err()
    else {
        unreachable!()
    };
    error.to_string()
}

#[test]
fn what_does_not_go_with_a_cache_is_refused() {
    for scheme in SchemeName::those(|scheme| !scheme.caches_in_slc()) {
        let scheme = format!("ftl.scheme={scheme}");
        let said = refusal(&["slc.cache=dynamic", "geometry.bits-per-cell=3", "slc.block-share=0.5", &scheme]);
        assert!(said.contains("slc.cache: found a cache, but ftl.scheme ="), "{said}");
        assert!(said.contains("an SLC cache works with page"), "{said}");
    }
    let leveled =
        refusal(&["slc.cache=dynamic", "geometry.bits-per-cell=3", "slc.block-share=0.5", "wear.policy=threshold"]);
    assert!(leveled.contains("wear.policy: found \"threshold\", expected \"none\" with an SLC cache"), "{leveled}");
    assert!(refusal(&["slc.cache=fixed", "slc.block-share=0.5"]).contains("geometry.bits-per-cell = 1"));
    let said = |setting: &str| Config::default().with_settings(&[setting]).unwrap_err().to_string();
    assert_eq!(
        said("slc.block-share=0.0"),
        "--set: slc.block-share: found 0, expected a share of the blocks above 0 and at most 1"
    );
    assert_eq!(
        said("slc.cache=dynamical"),
        "--set: slc.cache: found \"dynamical\", expected none, fixed, dynamic; did you mean \"dynamic\"?"
    );
    assert!(said("slc.fold-after=2 h").starts_with("--set: slc.fold-after: found"), "{}", said("slc.fold-after=2 h"));
}
