//! Requirements on demand-based page mapping alone, on drives as full as its check of the configuration allows.
//!
//! The conformance suite runs DFTL like every scheme, but on drives whose whole table fits one page. Here a translation
//! page holds eight entries, so that translation pages make up an eighth of the drive, evictions and cleaning fight for
//! the same blocks, and nearly every data clean loses room.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers of tests count as library code

use crate::common::*;
use flashwright_block::{IoError, RequestKind, Rng, Seed, chance};
use flashwright_ftl::{Cause, Ftl, MapCacheName, MapPrefetchName, OpKind, VictimName};
use flashwright_nand::Lpn;
use flashwright_ssd::Ssd;

/// Settings of a tiny drive with eight entries a translation page.
fn tiny(channels: u32, planes: u32, blocks: u32, pages: u32, logical: u32) -> Vec<String> {
    [
        shape(channels, 1, planes, blocks, pages, 0),
        vec![
            "geometry.page-size=\"512 B\"".to_owned(),
            format!("capacity.logical=\"{} B\"", u64::from(logical) * 512),
            "ftl.scheme=dftl".to_owned(),
            "ftl.entry-bytes=64".to_owned(),
            "timing.model=none".to_owned(),
        ],
    ]
    .concat()
}

/// Draws a drive and fills it to the last page that the scheme accepts.
fn fullest(rng: &mut Rng, seed: u64, more: &[String]) -> Ssd {
    let (channels, planes) = *pick(rng, &[(1, 1), (1, 1), (2, 1), (1, 2), (2, 2)]);
    let (blocks, pages) = (11 + draw(rng, 14), *pick(rng, &[2, 3, 4, 6, 8]));
    let victims: Vec<&str> = VictimName::ALL.iter().map(|name| name.listed().name).collect();
    let prefetches: Vec<&str> =
        std::iter::once("none").chain(MapPrefetchName::ALL.iter().map(|name| name.listed().name)).collect();
    let odds = [
        format!("ftl.dftl.cmt-entries={}", 1 + draw(rng, 12)),
        format!("ftl.dftl.replacement={}", pick(rng, MapCacheName::ALL).listed().name),
        format!("ftl.dftl.batch-on-evict={}", pick(rng, &[true, false])),
        format!("ftl.dftl.same-page-read={}", pick(rng, &["separate", "shared"])),
        format!("ftl.dftl.prefetch={}", pick(rng, &prefetches)),
        format!("ftl.dftl.prefetch-evicts={}", pick(rng, &["one-page", "any"])),
        "ftl.dftl.selective.threshold=1".to_owned(),
        format!("gc.victim={}", pick(rng, &victims)),
        format!("gc.invalidate={}", pick(rng, &["at-program", "before-gc"])),
        format!("gc.free-blocks-min={}", 1 + draw(rng, 4)),
        format!("placement.policy={}", pick(rng, &["single", "gc-separate"])),
        format!("placement.allocation={}", pick(rng, &["dynamic", "dynamic", "static"])),
        format!("wear.free-block={}", pick(rng, &["fifo", "least-worn"])),
    ];
    let all = channels * planes * blocks * pages;
    let small = small_policies();
    (16..all)
        .rev()
        .find_map(|logical| {
            let settings = [&tiny(channels, planes, blocks, pages, logical), &small[..], &odds[..], more].concat();
            Ssd::new(&config(&settings), Seed(seed), true).ok()
        })
        .unwrap_or_else(|| {
            let settings = [&tiny(1, 1, 24, 8, 60), &small[..], &odds[..], more].concat();
            Ssd::new(&config(&settings), Seed(seed), true).unwrap()
        })
}

fn random_request(rng: &mut Rng, ssd: &Ssd, hot: f64, trims: f64) -> flashwright_block::Request {
    let logical = ssd.logical_pages();
    let space = if chance(rng, hot) { (logical / 8).max(1) } else { logical };
    let kind = if chance(rng, trims) {
        RequestKind::Trim
    } else if chance(rng, 0.25) {
        RequestKind::Read
    } else {
        RequestKind::Write
    };
    let first = draw(rng, space);
    let count = if chance(rng, 0.1) { 1 + draw(rng, (logical - first).min(20)) } else { 1 };
    pages(ssd, kind, first, count)
}

/// Rounds of the random tests; more with `FLASHWRIGHT_ROUNDS`.
fn rounds(usual: u64) -> u64 {
    std::env::var("FLASHWRIGHT_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Without wear no write may ever fail, however full the drive, whatever the policies.
#[test]
fn the_fullest_drives_never_run_out_of_space() {
    for seed in 0..rounds(150) {
        let mut rng = rng(seed);
        let mut ssd = fullest(&mut rng, seed, &[]);
        let (hot, trims) = (*pick(&mut rng, &[0.0, 0.5, 0.95]), *pick(&mut rng, &[0.0, 0.0, 0.1]));
        for lpn in 0..ssd.logical_pages() {
            let write = pages(&ssd, RequestKind::Write, lpn, 1);
            perform(&mut ssd, write).unwrap_or_else(|error| panic!("seed {seed}, fill {lpn}: {error}"));
        }
        for step in 0..800 {
            let request = random_request(&mut rng, &ssd, hot, trims);
            perform(&mut ssd, request)
                .unwrap_or_else(|error| panic!("seed {seed}, step {step}: {error}\n{}", ssd.config().to_toml()));
            if step % 7 == 0 {
                assert_clean(&ssd, &format!("seed {seed}, step {step}"));
            }
        }
        assert_clean(&ssd, &format!("seed {seed}"));
    }
}

/// With few cycles and bad blocks the drive ends with an error; what it holds stays readable, trims still work.
#[test]
fn worn_drives_end_with_their_data() {
    for seed in 0..rounds(80) {
        let mut rng = rng(1000 + seed);
        let more = [
            format!("wear.pe-cycles-max={}", 1 + seed % 6),
            format!("wear.factory-bad={}", [0.0, 0.08][usize::try_from(seed % 2).unwrap()]),
            "gc.invalidate=at-program".to_owned(),
        ];
        let mut ssd = fullest(&mut rng, seed, &more);
        let mut failed = 0;
        for step in 0..20_000 {
            let request = random_request(&mut rng, &ssd, 0.3, if failed > 0 { 0.2 } else { 0.02 });
            match perform(&mut ssd, request) {
                Ok(_) => {}
                Err(IoError::WornOut { .. }) => failed += 1,
                Err(other) => panic!("seed {seed}, step {step}: {other}"),
            }
            if step % 16 == 0 || failed > 0 {
                assert_clean(&ssd, &format!("seed {seed}, step {step}"));
            }
            if failed > 40 {
                break;
            }
        }
        assert!(failed > 40, "seed {seed}: the drive outlives its cycles");
        for lpn in 0..ssd.logical_pages() {
            let read = pages(&ssd, RequestKind::Read, lpn, 1);
            perform(&mut ssd, read).unwrap();
        }
        assert_clean(&ssd, &format!("seed {seed}, read back"));
    }
}

/// Gupta 2009, 3.2: a miss costs at most two reads and one write of translation pages, a hit none; whatever is prefetched with it.
#[test]
fn a_miss_costs_at_most_two_reads_and_a_write() {
    let mut worst = (0, 0);
    for seed in 0..rounds(40) {
        let mut rng = rng(2000 + seed);
        let mut ssd = fullest(&mut rng, seed, &["ftl.dftl.prefetch-evicts=one-page".to_owned()]);
        for step in 0..600 {
            let first = draw(&mut rng, ssd.logical_pages());
            let kind = *pick(&mut rng, &[RequestKind::Write, RequestKind::Write, RequestKind::Read, RequestKind::Trim]);
            let request = pages(&ssd, kind, first, 1);
            let (before, figures) = (ssd.flash().counters().clone(), ssd.figures().mapping_cache.unwrap());
            perform(&mut ssd, request).unwrap();
            let did = ssd.flash().counters().since(&before);
            let (reads, programs) =
                (did.get(OpKind::Read, Cause::Translation), did.get(OpKind::Program, Cause::Translation));
            let after = ssd.figures().mapping_cache.unwrap();
            assert_eq!(after.lookups, figures.lookups + 1, "seed {seed}, step {step}");
            let hit = after.hits > figures.hits;
            assert!(if hit { (reads, programs) == (0, 0) } else { (1..=2).contains(&reads) && programs <= 1 });
            let dirty = after.dirty_evictions - figures.dirty_evictions;
            let groups = ssd.config().ftl.schemes.dftl.replacement == MapCacheName::Grouped;
            // One program for each, or for a group that leaves together.
            assert_eq!(programs, if groups { dirty.min(1) } else { dirty }, "seed {seed}, step {step}");
            worst = worst.max((reads, programs));
        }
    }
    assert_eq!(worst, (2, 1), "the worst case occurs");
}

/// A cache that holds every entry, on a drive with one block more for the table: nothing is ever written to the table,
/// nothing read once every entry was seen, and host and cleaning do exactly what they do under page mapping.
#[test]
fn with_everything_cached_it_is_page_mapping() {
    for (victim, seed) in [("greedy", 1), ("fifo", 2), ("cost-benefit", 3)] {
        let run = |scheme: &str, blocks: u32| {
            let settings = [
                shape(1, 1, 1, blocks, 8, 200),
                vec![
                    format!("ftl.scheme={scheme}"),
                    "ftl.dftl.cmt-entries=200".to_owned(),
                    "gc.free-blocks-min=3".to_owned(),
                    "wear.free-block=fifo".to_owned(),
                    "timing.model=none".to_owned(),
                    format!("gc.victim={victim}"),
                ],
            ];
            // Page mapping has no use for the cache's settings, which are checked by the scheme alone.
            let mut ssd = Ssd::new(&config(&settings.concat()), Seed(seed), true).unwrap();
            let mut rng = rng(seed);
            fill(&mut ssd, 200);
            let warm = ssd.flash().counters().clone();
            for _ in 0..5000 {
                let (kind, lpn) = (*pick(&mut rng, &[RequestKind::Write, RequestKind::Read]), draw(&mut rng, 200));
                let request = pages(&ssd, kind, lpn, 1);
                perform(&mut ssd, request).unwrap();
            }
            assert_clean(&ssd, scheme);
            (warm, ssd)
        };
        let (warm, page) = run("page", 40);
        let (dftl_warm, dftl) = run("dftl", 41);
        assert_eq!(dftl_warm.get(OpKind::Read, Cause::Translation), 200, "one read for each entry");
        let did = dftl.flash().counters().since(&dftl_warm);
        for kind in KIND {
            for cause in CAUSE {
                assert_eq!(
                    did.get(kind, cause),
                    page.flash().counters().since(&warm).get(kind, cause),
                    "{victim}: {kind:?} by {cause:?}"
                );
            }
        }
        assert_eq!(dftl.figures().collections, page.figures().collections, "{victim}");
        // The same pages of the same blocks, one block further on.
        let shifted: Vec<_> = map(&page).into_iter().map(|ppn| ppn.map(|ppn| ppn + 8)).collect();
        assert_eq!(map(&dftl), shifted, "{victim}");
    }
}

/// Under the parallel engine a read of data starts when its entry has come; other dies go on meanwhile.
#[test]
fn data_wait_for_their_translation() {
    let settings = [
        shape(2, 1, 1, 24, 4, 64),
        vec!["ftl.scheme=dftl".to_owned(), "ftl.dftl.cmt-entries=1".to_owned(), "timing.bus-rate=none".to_owned()],
    ];
    let mut ssd = Ssd::new(&config(&settings.concat()), Seed(1), true).unwrap();
    // The table is one page on die 0, and so is page 0; page 1 goes to die 1.
    fill(&mut ssd, 2);
    for (lpn, evicts) in [(0, 1), (1, 0), (0, 0), (1, 0)] {
        assert_eq!(ssd.flash().geometry().die_of(ssd.scheme().lookup(Lpn(lpn), ssd.flash()).unwrap()).0, lpn);
        let request = pages(&ssd, RequestKind::Read, lpn, 1);
        let done = perform(&mut ssd, request).unwrap();
        let span = done[0].end.0 - done[0].start.0;
        // A read of the table, 50 us, then the data, 50 us; an eviction reads and writes the table first, and its program
        // may go on in another die while the entry is loaded: the request ends with the last of its operations.
        let least = if evicts == 1 { 50_000 + 200_000 } else { 100_000 };
        assert!(span >= least, "lpn {lpn}: {span} ns, at least {least} expected");
        assert!(evicts == 1 || span == least, "lpn {lpn}: {span} ns, {least} expected");
    }
}

#[test]
fn faults_say_what_to_change() {
    let problem = |more: &[&str]| {
        let more: Vec<String> = more.iter().map(|text| (*text).to_owned()).collect();
        let settings = [shape(1, 1, 1, 32, 8, 128), vec!["ftl.scheme=dftl".to_owned()], more].concat();
        match Ssd::new(&config(&settings), Seed(1), false) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    };
    assert_eq!(problem(&[]), "");
    assert_eq!(problem(&["ftl.dftl.ram=64 KiB"]), "", "more RAM than the table takes is no problem");
    for (settings, expected) in [
        (&["ftl.dftl.ram=7 B"][..], "ftl.dftl.ram: found 7 B, expected at least 8 B, which hold one entry"),
        (
            &["ftl.dftl.ram=1 KiB", "ftl.dftl.cmt-entries=4"],
            "ftl.dftl.ram: found 1 KiB beside ftl.dftl.cmt-entries = 4; set one of them and leave the other at 0",
        ),
        (&["ftl.dftl.cmt-entries=129"], "ftl.dftl.cmt-entries: found 129, expected at most 128"),
        (
            &["capacity.logical=880 KiB"],
            "capacity: 220 logical and 1 translation pages (up to 1 in a plane), but only 216 of 256",
        ),
    ] {
        let found = problem(settings);
        assert!(found.contains(expected) && found.lines().count() == 1, "{settings:?}: {found}");
    }
}
