//! Models fitted to requests of a known law give the law back; files are read back as they were, or refused in one line.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

use crate::model_support::{fitted, model_file, played_if_it_fits, requests_of, uniform, write};
use flashwright_block::{Nanos, Request, RequestKind, Seed, below, unit_interval};
use flashwright_workload::generate::{Target, WorkloadSpec};
use flashwright_workload::model::{FitError, Fitting, Model};
use flashwright_workload::trace::TraceOptions;
use proptest::prelude::*;
use std::collections::HashSet;

const DRIVE: Target = Target { logical_sectors: 1 << 21, page_sectors: 8 }; // 1 GiB

/// `count` requests of `model` with the further keys `keys`; `name` is that of its file.
fn played(model: &Model, name: &str, keys: &str, count: usize) -> Vec<Request> {
    let path = std::env::temp_dir().join(format!("flashwright-{name}-{}.toml", std::process::id()));
    std::fs::write(&path, model.to_text()).unwrap();
    let spec: WorkloadSpec =
        format!("model:{}{keys}", path.display()).parse().unwrap_or_else(|error| panic!("{error}"));
    std::fs::remove_file(&path).unwrap();
    let mut batch = Vec::new();
    spec.source(&DRIVE, Seed(3), Some(count as u64)).unwrap().fill(&mut batch, count).unwrap();
    batch
}

/// Share of the pages of `requests` that are among the `most` last used ones.
fn hits(requests: &[Request], most: usize) -> f64 {
    let (mut list, mut hits) = (Vec::<u64>::new(), 0);
    for request in requests {
        let found = list.iter().position(|page| *page == request.first_sector);
        hits += u64::from(found.is_some());
        found.map(|at| list.remove(at));
        list.insert(0, request.first_sector);
        list.truncate(most);
    }
    hits as f64 / requests.len() as f64
}

fn pages(requests: &[Request]) -> usize {
    requests.iter().map(|request| request.first_sector / 8).collect::<HashSet<_>>().len()
}

/// Uniform requests: the share of writes, the footprint, and hits in proportion to the cache. One sigma of 20,000 is 0.4 %.
#[test]
fn uniform_requests_come_back_uniform() {
    let model = fitted(uniform(20_000, 1024, 1.0, 5));
    assert_eq!((model.footprint.pages, model.footprint.most_pages), (1024, 1024));
    let found = played(&model, "uniform", "", 40_000);
    assert!((pages(&found) as i64 - 1024).abs() < 64, "{}", pages(&found));
    for most in [64, 256] {
        let (found, expected) = (hits(&found[20_000..], most), most as f64 / 1024.0);
        assert!((found / expected - 1.0).abs() < 0.15, "{most}: {found} {expected}");
    }
}

/// Zipf's law over scattered pages: caches of two sizes find as much.
#[test]
fn a_skew_comes_back() {
    let zipf: WorkloadSpec = "zipf:chunk=4KiB,range=0.008,rate=1000".parse().unwrap();
    let mut requests = Vec::new();
    zipf.source(&DRIVE, Seed(1), Some(30_000)).unwrap().fill(&mut requests, 30_000).unwrap();
    let found = played(&fitted(requests.iter().copied()), "zipf", "", 30_000);
    for most in [32, 256] {
        let (found, expected) = (hits(&found, most), hits(&requests, most));
        assert!((found - expected).abs() < 0.05, "{most}: {found} {expected}");
    }
}

/// Two runs of 16 requests each that take turns: as many requests continue a run, and no single request does.
#[test]
fn runs_come_back() {
    let mut rng = Seed(2).stream("test");
    let mut starts = [0, 0];
    let requests = (0..16_000u64).map(|i| {
        let (run, at) = ((i % 2) as usize, i / 2 % 16);
        if at == 0 {
            starts[run] = below(&mut rng, 4096) * 16;
        }
        write(starts[run] + at, i)
    });
    let model = fitted(requests);
    // Those that begin with a jump of 1 or 2 pages to something far.
    let go_on = &model.write.as_ref().unwrap().runs.go_on[0];
    assert!(go_on[..15].iter().all(|share| *share > 0.98) && go_on[15] < 0.02, "{go_on:?}");
    let mut ends = Vec::new();
    let mut continued = 0;
    for request in played(&model, "runs", "", 16_000) {
        continued += i32::from(ends.contains(&request.first_sector));
        ends.insert(0, request.end_sector());
        ends.truncate(4);
    }
    assert!((continued - 15_000).abs() < 450, "{continued}");
}

/// Bursts of 20 requests in a millisecond, ten times a second, of writes and of reads in turn.
#[test]
fn bursts_come_back() {
    let mut rng = Seed(2).stream("test");
    let mut requests = Vec::new();
    for burst in 0..1000u64 {
        let mut times: Vec<u64> = (0..20).map(|_| burst * 100_000_000 + below(&mut rng, 1_000_000)).collect();
        times.sort_unstable();
        let kind = if burst % 2 == 0 { RequestKind::Write } else { RequestKind::Read };
        let request = |time| Request { arrival: Nanos(time), kind, ..write(below(&mut rng, 4096), 0) };
        requests.extend(times.into_iter().map(request));
    }
    let found = played(&fitted(requests), "bursts", "", 20_000);
    let gaps: Vec<u64> = found.windows(2).map(|pair| pair[1].arrival.0 - pair[0].arrival.0).collect();
    let long = gaps.iter().filter(|gap| **gap > 10_000_000).count();
    assert!((700..1400).contains(&long), "{long} of 1000 pauses");
    let span = found[19_999].arrival.0 as f64;
    assert!((span / 100e9 - 1.0).abs() < 0.1, "{span}");
    // Within a burst, directions rarely change: 1 in 20 in the trace.
    let changes = found.windows(2).filter(|pair| pair[0].kind != pair[1].kind).count();
    assert!(changes < 3000, "{changes}");
}

/// A hundred times the trace: the hits of the last tenth are those of the second, since the footprint has reached its bound.
#[test]
fn nothing_drifts_once_the_footprint_is_there() {
    let found = played(&fitted(uniform(5000, 512, 0.7, 9)), "drift", "", 500_000);
    let share = |part: &[Request]| {
        part.iter().filter(|request| request.kind == RequestKind::Write).count() as f64 / part.len() as f64
    };
    let (early, late) = (&found[10_000..60_000], &found[450_000..]);
    assert!((hits(early, 64) - hits(late, 64)).abs() < 0.01, "{} {}", hits(early, 64), hits(late, 64));
    assert!((share(early) - share(late)).abs() < 0.02);
    assert!(pages(&found) <= 520, "{}", pages(&found));
}

/// Requests of several pages and runs of them, ten times as long as the trace: no page beyond the bounds is used.
#[test]
fn the_footprint_is_as_the_model_says() {
    let mut rng = Seed(7).stream("test");
    let mut first = 0;
    let requests: Vec<Request> = (0..4000)
        .map(|i| {
            first = if unit_interval(&mut rng) < 0.3 { below(&mut rng, 500) * 5 } else { first + 3 };
            Request { sectors: 24, ..write(first, i) }
        })
        .collect();
    let model = fitted(requests);
    let covered: HashSet<u64> = played(&model, "bounds", "", 40_000)
        .iter()
        .flat_map(|request| request.first_sector / 8..request.end_sector().div_ceil(8))
        .collect();
    let most = model.footprint.most_pages;
    assert!((most * 95 / 100..=most).contains(&(covered.len() as u64)), "{} of {most}", covered.len());
}

#[test]
fn the_keys_scale_footprint_and_rate() {
    let model = fitted(uniform(20_000, 8192, 1.0, 4));
    let plain = played(&model, "scale-1", "", 30_000);
    let twice = played(&model, "scale-2", ",scale=2,rate-scale=4", 60_000);
    let (plain_pages, twice_pages) = (pages(&plain) as f64, pages(&twice) as f64);
    assert!((1.7..2.3).contains(&(twice_pages / plain_pages)), "{plain_pages} {twice_pages}");
    let per_request = |requests: &[Request]| requests[requests.len() - 1].arrival.0 as f64 / requests.len() as f64;
    let faster = per_request(&plain) / per_request(&twice);
    assert!((3.8..4.2).contains(&faster), "{faster}");
}

/// Sizes, their offsets and their alignment are exact where they are common.
#[test]
fn sizes_and_alignment_come_back() {
    let mut rng = Seed(8).stream("test");
    let requests = (0..5000).map(|i| {
        let big = unit_interval(&mut rng) < 0.25;
        let first_sector = if big { below(&mut rng, 4000) * 128 } else { below(&mut rng, 32_000) * 16 + 7 };
        Request { first_sector, sectors: if big { 128 } else { 3 }, ..write(0, i) }
    });
    let found = played(&fitted(requests), "sizes", "", 5000);
    assert!(found.iter().all(|request| match request.sectors {
        128 => request.first_sector % 128 == 0,
        3 => request.first_sector % 16 == 7,
        _ => false,
    }));
    let big = found.iter().filter(|request| request.sectors == 128).count();
    assert!((1100..1400).contains(&big), "{big}");
}

/// Trims, flushes and forced writes keep their shares; trims go to what was written.
#[test]
fn the_other_kinds_come_back() {
    let mut rng = Seed(8).stream("test");
    let mut requests = Vec::new();
    for i in 0..4000 {
        let page = below(&mut rng, 300);
        requests.push(Request { fua: i % 4 == 0, ..write(page, i) });
        if i % 5 == 0 {
            requests.push(Request { kind: RequestKind::Flush, sectors: 0, first_sector: 0, ..write(0, i) });
        }
        if i % 10 == 0 {
            requests.push(Request { kind: RequestKind::Trim, ..write(page, i) });
        }
    }
    let found = played(&fitted(requests), "kinds", "", 13_000);
    let count = |wanted: fn(&Request) -> bool| found.iter().filter(|request| wanted(request)).count();
    assert!((1800..2200).contains(&count(|request| request.kind == RequestKind::Flush)));
    assert!((850..1150).contains(&count(|request| request.kind == RequestKind::Trim)));
    assert!((2250..2750).contains(&count(|request| request.fua)));
}

/// Traces at the edge: one page, reads alone, no times, trims alone.
#[test]
fn odd_traces_have_models() {
    let one = fitted((0..200).map(|i| write(5, i)));
    assert_eq!(pages(&played(&one, "one-page", "", 500)), 1);
    let reads = fitted(uniform(200, 100, 0.0, 1));
    assert!(played(&reads, "reads", "", 500).iter().all(|request| request.kind == RequestKind::Read));
    assert!(played(&reads, "reads-written", ",write=1", 500).iter().all(|request| request.kind == RequestKind::Write));
    let still = fitted((0..200).map(|i| Request { arrival: Nanos(0), ..write(i, 0) }));
    assert!(still.arrivals.is_none() && still.fitted.borrowed.iter().any(|line| line.contains("no times")));
    assert!(played(&still, "still", "", 100).iter().all(|request| request.arrival == Nanos(0)));
    let trims = fitted((0..200).map(|i| Request { kind: RequestKind::Trim, ..write(i, i) }));
    assert!(played(&trims, "trims", "", 100).iter().any(|request| request.kind == RequestKind::Trim));
    let mut few = Fitting::new();
    (0..99).for_each(|i| few.add(&write(i, i)));
    let FitError::TooShort { found } = few.model().unwrap_err() else { panic!("too short") };
    assert_eq!(found, 99);
}

#[test]
fn a_file_is_small_has_no_address_and_reads_back() {
    let far = 987_654_321_000;
    let model = fitted((0..5000).map(|i| Request { first_sector: far + i * 7919 % 5000 * 8, ..write(0, i) }));
    let text = model.to_text();
    assert!(text.len() < 100_000, "{}", text.len());
    assert!(!text.contains("98765") && !text.contains("123456"), "no address");
    assert_eq!(text.parse::<Model>().unwrap(), model);
    assert_eq!(text.parse::<Model>().unwrap().to_text(), text);
}

#[test]
fn edited_files_are_refused_in_one_line() {
    let text = fitted(uniform(500, 100, 0.5, 1)).to_text();
    for (from, to, expected) in [
        ("version = 2", "version = 1", "version: found 1, expected 2 or 3: fit the model again"),
        ("[mix]", "[mixture]", "found unknown field `mixture`"),
        ("\nforced = 0", "\nforced = 1.5", "mix.forced: found 1.5, expected a share from 0 to 1"),
        ("\nregions = 1", "\nregions = 9", "footprint.regions: found 9, expected 1 up to most-regions (1)"),
        ("\nflush-after = [0, 0, 0, 0]", "\nflush-after = [0, 0]", "mix.flush-after: found 2 entries, expected 4"),
        (
            "from = 4096, to = 4096",
            "from = 4096, to = 512",
            "found from 4096 to 512, expected multiples of 512 B in rising",
        ),
        ("align = 4096", "align = 5000", "align 5000, expected 4096, 8192"),
        ("share = 1 }", "share = 0.5 }", "a sum of 0.500, expected shares that add up to 1"),
        ("[write]", "[trim]", "write: found no such section, expected one, since [mix] has writes"),
    ] {
        assert!(text.contains(from), "{from} in\n{text}");
        let error = text.replacen(from, to, 1).parse::<Model>().unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains('\n'), "{error}");
    }
}

#[test]
fn workloads_that_cannot_be_say_why() {
    let fail = |text: &str| text.parse::<WorkloadSpec>().unwrap_err().to_string();
    assert!(fail("model").contains("file: found nothing, expected the path of a file"), "{}", fail("model"));
    assert!(fail("model:none.toml").contains("file: found none.toml: no such file"), "{}", fail("model:none.toml"));
    let file = model_file();
    for (keys, expected) in [
        ("scale=0", "scale: found \"0\", expected a factor from 0.0001 to 10000"),
        ("rate-scale=2,depth=4", "rate-scale: found rate-scale in a closed loop"),
        ("rate-scale=2,rate=4", "rate-scale: found rate-scale and rate together"),
        ("digest=0123456789abcdef", "expected 0123456789abcdef: the file was changed"),
    ] {
        let error = fail(&format!("model:{file},{keys}"));
        assert!(error.contains(expected) && !error.contains('\n'), "{error}");
    }
    let spec: WorkloadSpec = format!("model:{file}").parse().unwrap();
    assert!(spec.to_string().contains(",digest="), "{spec}");
    assert_eq!(spec.to_string().parse::<WorkloadSpec>().unwrap(), spec);
    assert!(spec.label().unwrap().contains("fitted to 6000 requests"));
}

#[test]
fn a_trace_is_fitted_from_its_file_or_its_head() {
    let path = std::env::temp_dir().join(format!("flashwright-fit-{}.spc", std::process::id()));
    let lines: String =
        (0..500).map(|i| format!("0,{},4096,{},{i}.5\n", i * 8, if i % 2 == 0 { "r" } else { "w" })).collect();
    std::fs::write(&path, lines).unwrap();
    let fit = |most| flashwright_workload::model::fit(&path, &TraceOptions::default(), most).unwrap();
    assert_eq!((fit(None).fitted.requests, fit(Some(200)).fitted.requests), (500, 200));
    std::fs::remove_file(&path).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// Any requests have a model, it reads back, and plays on a drive of any size.
    #[test]
    fn any_requests_have_a_model(
        requests in prop::collection::vec((0u64..1 << 30, 1u32..3000, 0u8..4, 0u64..1 << 24), 100..400),
        sectors in 4000u64..1 << 22,
        scale in 0.01f64..20.0,
    ) {
        let kinds = [RequestKind::Read, RequestKind::Write, RequestKind::Trim, RequestKind::Write];
        let model = fitted(requests_of(requests, &kinds));
        prop_assert_eq!(&model.to_text().parse::<Model>().unwrap(), &model);
        let path = std::env::temp_dir().join(format!("flashwright-any-{}.toml", std::process::id()));
        std::fs::write(&path, model.to_text()).unwrap();
        let spec: WorkloadSpec = format!("model:{},scale={scale}", path.display()).parse().unwrap();
        for request in played_if_it_fits(&spec, sectors)? {
            prop_assert!(request.sectors > 0 && request.end_sector() <= sectors, "{:?}", request);
        }
    }
}

/// Fitting draws some pages to compare others with, from a stream that no seed changes.
#[test]
fn a_fit_depends_on_the_trace_alone() {
    let fitted = || {
        let mut fitting = Fitting::new();
        (0..4000).for_each(|i| fitting.add(&write(i * 7919 % 300, i)));
        fitting.model().unwrap().to_text()
    };
    assert_eq!(fitted(), fitted());
}
