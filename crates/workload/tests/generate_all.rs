//! Properties of every generator on the list: a new one is tested automatically.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

use crate::model_support::model_file;
use flashwright_block::{Nanos, Request, RequestKind, Seed};
use flashwright_workload::generate::{Pace, Target, WorkloadSpec, catalogue};
use proptest::prelude::*;

const DRIVE: Target = Target { logical_sectors: 1 << 17, page_sectors: 8 }; // 64 MiB

fn parse(text: &str) -> WorkloadSpec {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

/// `count` requests in batches of `batch`.
fn draw(spec: &WorkloadSpec, drive: &Target, seed: u64, count: u64, batch: usize) -> Vec<Request> {
    let mut source = spec.source(drive, Seed(seed), Some(count)).unwrap_or_else(|error| panic!("{error}"));
    let mut all = Vec::new();
    loop {
        let (before, left) = (all.len(), source.remaining());
        assert_eq!(left, Some(count - before as u64), "{spec}");
        let given = source.fill(&mut all, batch).unwrap();
        assert_eq!(all.len() - before, given, "{spec}");
        if given == 0 {
            return all;
        }
    }
}

/// Every generator by its bare name, with the common keys `keys`.
fn every(keys: &str) -> Vec<WorkloadSpec> {
    let mut all = Vec::new();
    // Writers of zones need a drive that has some: `generate_zones.rs`.
    for info in catalogue().into_iter().filter(|info| !info.interactive && info.name != "zones") {
        let bare: Vec<String> = match info.bare_key {
            None => vec![String::new()],
            Some("file") => vec![model_file().to_owned()],
            // Numbers that may be left out.
            Some("theta" | "h") => vec![String::new(), "0.4".to_owned()],
            Some(bare) => {
                let choices = &info.keys.iter().find(|key| key.name == bare).unwrap().allowed;
                choices.trim_start_matches("one of ").split(", ").map(str::to_owned).collect()
            }
        };
        for bare in bare {
            let items: Vec<&str> = [bare.as_str(), keys].into_iter().filter(|item| !item.is_empty()).collect();
            all.push(parse(&format!("{}{}{}", info.name, if items.is_empty() { "" } else { ":" }, items.join(","))));
        }
    }
    assert!(all.len() >= 18);
    all
}

#[test]
fn one_seed_gives_one_stream_and_another_seed_another() {
    for spec in every("write=0.6") {
        let first = draw(&spec, &DRIVE, 1, 3000, 256);
        assert_eq!(first, draw(&spec, &DRIVE, 1, 3000, 256), "{spec}");
        assert_ne!(first, draw(&spec, &DRIVE, 2, 3000, 256), "{spec}");
    }
}

#[test]
fn sources_without_a_length_are_endless() {
    for spec in every("") {
        let mut source = spec.source(&DRIVE, Seed(1), None).unwrap();
        let mut batch = Vec::new();
        (0..10).for_each(|_| assert_eq!(source.fill(&mut batch, 777), Ok(777)));
        assert_eq!(source.remaining(), None);
        batch.truncate(5000);
        assert_eq!(batch, draw(&spec, &DRIVE, 1, 5000, 100), "{spec}: the same stream as the finite one");
    }
}

#[test]
fn requests_stay_in_range_and_in_order() {
    for keys in
        ["", "range=0.3", "range=0.5,align=512B,write=0.5", "range=0.9,size=20KiB,align=4KiB", "rate=1000,trim=0.1"]
    {
        for spec in every(keys) {
            let end = if keys.contains("0.3") {
                39_322
            } else if keys.contains("0.5") {
                65_536
            } else {
                1 << 17
            };
            let mut last = Nanos(0);
            for request in draw(&spec, &DRIVE, 5, 20_000, 1024) {
                assert!(request.sectors > 0 && request.end_sector() <= end, "{spec}: {request:?}");
                assert!(request.arrival >= last, "{spec}: {request:?}");
                last = request.arrival;
                assert!(spec.pace() == Pace::Open || request.arrival == Nanos(0), "{spec}");
            }
        }
    }
}

#[test]
fn shares_of_writes_and_trims_are_as_asked() {
    for spec in every("write=0.6,trim=0.1") {
        let requests = draw(&spec, &DRIVE, 3, 50_000, 1000);
        let share = |kind| requests.iter().filter(|request| request.kind == kind).count() as f64 / 50_000.0;
        // One sigma is 0.0022; bursts of one kind in stand-ins make it up to 0.004.
        assert!((share(RequestKind::Write) - 0.6).abs() < 0.015, "{spec}: {}", share(RequestKind::Write));
        assert!((share(RequestKind::Trim) - 0.1).abs() < 0.015, "{spec}: {}", share(RequestKind::Trim));
    }
    for spec in every("write=0") {
        assert!(draw(&spec, &DRIVE, 3, 1000, 100).iter().all(|request| request.kind == RequestKind::Read), "{spec}");
    }
}

#[test]
fn reads_and_rate_do_not_shift_addresses() {
    let addresses = |text: &str| -> Vec<u64> {
        draw(&parse(text), &DRIVE, 4, 2000, 512).iter().map(|request| request.first_sector).collect()
    };
    for name in ["sequential", "uniform", "strided", "hot-cold", "zipf", "dftl-a", "dftl-b"] {
        let plain = addresses(&format!("{name}:write=1"));
        assert_eq!(plain, addresses(&format!("{name}:write=0.5")), "{name}");
        assert_eq!(plain, addresses(&format!("{name}:write=0.5,trim=0.2,rate=100")), "{name}");
    }
}

/// Mean gap within 2 % over 50,000 (one sigma of exponential gaps is 0.45 %); equal gaps are exact.
#[test]
fn open_loops_arrive_at_their_rate() {
    for spec in every("rate=2000") {
        if spec.label().is_some_and(|label| label.contains("locality of")) {
            continue; // its bursts last for minutes: heads_are_forced_to_the_published_statistics
        }
        let requests = draw(&spec, &DRIVE, 8, 50_000, 1000);
        let mean_ns = requests[49_999].arrival.0 as f64 / 50_000.0;
        assert!((mean_ns / 500_000.0 - 1.0).abs() < 0.03, "{spec}: {mean_ns}");
    }
    for spec in every("rate=2000,arrival=fixed") {
        let requests = draw(&spec, &DRIVE, 8, 100, 7);
        assert!(requests.iter().zip(1..).all(|(request, n)| request.arrival == Nanos(n * 500_000)), "{spec}");
    }
}

#[test]
fn a_drive_too_small_is_refused() {
    for spec in every("size=256KiB") {
        let drive = Target { logical_sectors: 511, page_sectors: 8 };
        let error = spec.source(&drive, Seed(1), None).err().expect("too small").to_string();
        assert!(error.contains("size: found 256 KiB (511 sectors in use)"), "{error}");
    }
}

#[test]
fn tiny_drives_work_or_say_why_not() {
    for sectors in [8, 16, 24, 64, 100, 1000] {
        for spec in every("") {
            match spec.source(&Target { logical_sectors: sectors, page_sectors: 8 }, Seed(1), Some(500)) {
                Ok(mut source) => {
                    let mut batch = Vec::new();
                    assert_eq!(source.fill(&mut batch, 1000), Ok(500), "{spec}");
                    assert!(batch.iter().all(|request| request.end_sector() <= sectors), "{spec} on {sectors}");
                }
                Err(error) => assert_eq!(error.faults.len(), 1, "{error}"),
            }
        }
    }
}

/// A stand-in whose alignment exceeds the part of the drive in use.
#[test]
fn a_slot_larger_than_the_part_in_use_stays_within_it() {
    let drive = Target { logical_sectors: 1370, page_sectors: 1 };
    let spec: WorkloadSpec = "stand-in:websearch1,write=0.5,trim=0.1,align=40KiB,range=0.0464".parse().unwrap();
    let mut batch = Vec::new();
    spec.source(&drive, Seed(0), Some(300)).unwrap().fill(&mut batch, 300).unwrap();
    assert!(batch.iter().all(|request| request.end_sector() <= 64), "{batch:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// The size of batches never shows in the stream.
    #[test]
    fn batches_of_any_size_give_the_same_stream(sizes in prop::collection::vec(0usize..300, 1..20), seed: u64) {
        for spec in every("write=0.7") {
            let whole = draw(&spec, &DRIVE, seed, 2000, 2000);
            let mut source = spec.source(&DRIVE, Seed(seed), Some(2000)).unwrap();
            let mut parts = Vec::new();
            for size in &sizes {
                let room = usize::try_from(source.remaining().unwrap()).unwrap();
                prop_assert_eq!(source.fill(&mut parts, *size), Ok((*size).min(room)));
            }
            prop_assert_eq!(&parts[..], &whole[..parts.len()], "{}", spec);
        }
    }

    /// On a drive of any size, with any grain, requests stay within the part in use; what does not fit says so.
    #[test]
    fn requests_stay_within_any_drive(
        sectors in 1u64..200_000,
        page in 1u32..64,
        range in 0.001..=1.0f64,
        size in prop::option::of(1u64..300),
        align in prop::option::of(1u64..300),
        seed: u64,
    ) {
        let key = |name: &str, sectors: Option<u64>| {
            sectors.map_or_else(String::new, |sectors| format!(",{name}={}B", sectors * 512))
        };
        let keys = format!("range={range},write=0.5,trim=0.1{}{}", key("size", size), key("align", align));
        let used = (sectors as f64 * range).round() as u64;
        let drive = Target { logical_sectors: sectors, page_sectors: page };
        for spec in every(&keys) {
            let Ok(mut source) = spec.source(&drive, Seed(seed), Some(300)) else { continue };
            let mut batch = Vec::new();
            source.fill(&mut batch, 300).unwrap();
            for request in batch {
                let within = request.sectors > 0 && request.end_sector() <= used;
                prop_assert!(within, "{} on {} of {}: {:?}", spec, used, sectors, request);
                let own = if spec.name().starts_with("dftl") { 8 } else { u64::from(page) }; // theirs is 4 KiB
                let grain = align.or(size).unwrap_or(own);
                // Those that have sizes of their own.
                let own_sizes = ["model", "stand-in", "cachelib", "kv-cache", "three-streams"];
                prop_assert!(own_sizes.contains(&spec.name()) || request.first_sector % grain == 0, "{}: {:?}", spec, request);
            }
        }
    }
}
