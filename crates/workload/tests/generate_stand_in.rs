//! Every statistic that a stand-in claims, measured over its natural length on a small drive.
//!
//! The expected numbers are typed here from the publications, not taken from the generator's own table.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

use flashwright_block::{Request, RequestKind, Seed};
use flashwright_workload::generate::{Target, WorkloadSpec};

/// What a publication says of a trace; none if it says nothing.
#[derive(Clone, Copy, Default)]
struct Claim {
    spec: &'static str,
    /// Per cent of requests that read.
    reads: f64,
    /// Mean size of all requests, KiB.
    kib: Option<f64>,
    /// Mean size of reads and of writes, KiB.
    kib_by_kind: Option<(f64, f64)>,
    /// Mean gap, ms.
    gap_ms: f64,
    /// Per cent of requests that start where the last one ended.
    sequential: Option<f64>,
    /// Per cent of writes within 1.5 ms of the last.
    close: Option<f64>,
    /// Requests, and distinct start addresses or pages of the whole trace.
    starts: Option<(f64, f64)>,
    pages: Option<(f64, f64)>,
    /// Per cent of written start addresses with three writes or more.
    updated: Option<f64>,
}

const CLAIMS: &[Claim] = &[
    Claim {
        spec: "stand-in:financial1,variant=statistics-only",
        reads: 23.2,
        kib: Some(3.38),
        gap_ms: 8.13,
        sequential: Some(2.0),
        starts: Some((5_334_987.0, 710_908.0)),
        updated: Some(30.0),
        ..NOTHING
    },
    Claim {
        spec: "stand-in:financial1,variant=gupta09-statistics-only",
        reads: 9.0,
        kib: Some(4.38),
        gap_ms: 133.5,
        sequential: Some(2.0),
        ..NOTHING
    },
    Claim {
        spec: "stand-in:financial1,variant=other-statistics-only",
        reads: 18.9,
        kib: Some(7.1),
        gap_ms: 1000.0 / 47.0,
        ..NOTHING
    },
    Claim {
        spec: "stand-in:financial2,variant=statistics-only",
        reads: 82.35,
        kib: Some(2.38),
        gap_ms: 1000.0 / 54.0,
        starts: Some((3_699_194.0, 296_072.0)),
        updated: Some(40.0),
        ..NOTHING
    },
    Claim {
        spec: "stand-in:financial2,variant=hu12-statistics-only",
        reads: 100.0 / 1.24,
        kib: Some(2.38),
        gap_ms: 1000.0 / 54.0,
        updated: Some(40.0),
        ..NOTHING
    },
    Claim {
        spec: "stand-in:cello99",
        reads: 35.0,
        kib: Some(5.03),
        gap_ms: 41.01,
        sequential: Some(1.0),
        close: Some(31.0),
        ..NOTHING
    },
    Claim {
        spec: "stand-in:cello99,variant=other",
        reads: 19.6,
        kib: Some(7.06),
        gap_ms: 1000.0 / 74.0,
        close: Some(31.0),
        ..NOTHING
    },
    Claim {
        spec: "stand-in:tpc-h",
        reads: 95.0,
        kib: Some(12.82),
        gap_ms: 155.56,
        sequential: Some(18.0),
        close: Some(11.0),
        ..NOTHING
    },
    Claim {
        spec: "stand-in:tpc-h,variant=other",
        reads: 91.8,
        kib: Some(31.6),
        gap_ms: 1000.0 / 173.0,
        close: Some(11.0),
        ..NOTHING
    },
    Claim {
        spec: "stand-in:websearch1,variant=statistics-only",
        reads: 99.98,
        kib: Some(14.86),
        gap_ms: 9.97,
        sequential: Some(14.0),
        starts: Some((1_055_448.0, 480_446.0)),
        ..NOTHING
    },
    Claim {
        spec: "stand-in:websearch1,variant=gupta09-statistics-only",
        reads: 99.0,
        kib: Some(14.86),
        gap_ms: 9.97,
        sequential: Some(14.0),
        ..NOTHING
    },
    Claim {
        spec: "stand-in:exchange,variant=statistics-only",
        reads: 48.63,
        kib_by_kind: Some((11.7, 18.59)),
        gap_ms: 1000.0 / 601.9,
        pages: Some((52_254_526.0, 9_559_605.0)),
        updated: Some(35.0),
        ..NOTHING
    },
    Claim {
        spec: "stand-in:exchange,variant=hu12-statistics-only",
        reads: 100.0 / 2.53,
        kib: Some(12.5),
        gap_ms: 1000.0 / 611.0,
        updated: Some(35.0),
        ..NOTHING
    },
    Claim {
        spec: "stand-in:build,variant=statistics-only",
        reads: 48.15,
        kib_by_kind: Some((32.75, 28.11)),
        gap_ms: 1000.0 / 129.4,
        pages: Some((10_919_540.0, 16_311_208.0)),
        updated: Some(13.0),
        ..NOTHING
    },
    Claim {
        spec: "stand-in:build,variant=hu12-statistics-only",
        reads: 41.0,
        kib: Some(4.14),
        gap_ms: 1000.0 / 1980.0,
        updated: Some(13.0),
        ..NOTHING
    },
    Claim {
        spec: "stand-in:msn,variant=statistics-only",
        reads: 68.97,
        kib_by_kind: Some((10.5, 13.15)),
        gap_ms: 1000.0 / 1292.4,
        pages: Some((28_071_688.0, 5_865_820.0)),
        updated: Some(9.0),
        ..NOTHING
    },
    Claim {
        spec: "stand-in:msn,variant=hu12-statistics-only",
        reads: 66.7,
        kib: Some(22.52),
        gap_ms: 1000.0 / 106.0,
        updated: Some(9.0),
        ..NOTHING
    },
    Claim {
        spec: "stand-in:tpc-e",
        reads: 90.31,
        kib_by_kind: Some((8.26, 11.06)),
        gap_ms: 1000.0 / 24845.7,
        pages: Some((112_707_336.0, 8_460_835.0)),
        updated: Some(1.0),
        ..NOTHING
    },
    Claim {
        spec: "stand-in:tpc-e,variant=hu12",
        reads: 83.9,
        kib: Some(12.75),
        gap_ms: 1000.0 / 308.0,
        updated: Some(1.0),
        ..NOTHING
    },
];

const NOTHING: Claim = Claim {
    spec: "",
    reads: 0.0,
    kib: None,
    kib_by_kind: None,
    gap_ms: 0.0,
    sequential: None,
    close: None,
    starts: None,
    pages: None,
    updated: None,
};

/// 512 MiB: footprints shrink to between 0.8 % and 44 % of the traces'.
const DRIVE: Target = Target { logical_sectors: 1 << 20, page_sectors: 8 };

fn parse(text: &str) -> WorkloadSpec {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn draw(spec: &WorkloadSpec, count: u64) -> Vec<Request> {
    let mut requests = Vec::new();
    spec.source(&DRIVE, Seed(1), Some(count)).unwrap().fill(&mut requests, usize::MAX).unwrap();
    requests
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    sum / count
}

/// Complains unless `found` is within `tolerance` of `published`, both in the unit of the statistic.
fn near(faults: &mut Vec<String>, claim: &Claim, what: &str, found: f64, published: f64, tolerance: f64) {
    if (found - published).abs() > tolerance {
        faults.push(format!("{}: {what} is {found:.3}, published {published:.3} +- {tolerance:.3}", claim.spec));
    }
}

fn kib(request: &Request) -> f64 {
    f64::from(request.sectors) / 2.0
}

/// Distinct 4 KiB pages touched, and per 4 KiB start block the writes that start there.
fn coverage(requests: &[Request]) -> (f64, f64, Vec<u32>) {
    let (mut pages, mut starts) = (vec![false; 1 << 17], vec![false; 1 << 17]);
    let mut writes = vec![0u32; 1 << 17];
    for request in requests {
        let first = usize::try_from(request.first_sector / 8).unwrap();
        starts[first] = true;
        pages[first..=usize::try_from((request.end_sector() - 1) / 8).unwrap()].fill(true);
        writes[first] += u32::from(request.kind == RequestKind::Write);
    }
    let count = |flags: &[bool]| flags.iter().filter(|flag| **flag).count() as f64;
    (count(&starts), count(&pages), writes)
}

/// Share of writes within 1.5 ms of the write before, per cent.
fn close_writes(requests: &[Request]) -> f64 {
    let times: Vec<u64> =
        requests.iter().filter(|request| request.kind == RequestKind::Write).map(|request| request.arrival.0).collect();
    100.0 * mean(times.windows(2).map(|pair| f64::from(u8::from(pair[1] - pair[0] <= 1_500_000))))
}

/// The list of claims is complete: one for each trace and each variant of it.
#[test]
fn every_variant_has_its_claim() {
    let claimed = |text: &str| CLAIMS.iter().any(|claim| claim.spec == text);
    for trace in "financial1 financial2 cello99 tpc-h websearch1 exchange build msn tpc-e".split(' ') {
        let default = format!("stand-in:{trace},variant=statistics-only");
        assert!(claimed(&default) || claimed(&format!("stand-in:{trace}")), "{trace}");
        let mut variants = 0;
        for variant in ["whole", "hu12", "gupta09", "other"] {
            let text = format!("stand-in:{trace},variant={variant}");
            if text.parse::<WorkloadSpec>().is_ok() {
                let only = if variant == "whole" { default.clone() } else { format!("{text}-statistics-only") };
                // A variant that gives the default's requests is the default, under its full name.
                let same = draw(&parse(&only), 1000) == draw(&parse(&default), 1000);
                assert!(same || claimed(&text) || claimed(&only), "{text}");
                variants += 1;
            }
        }
        assert!(variants >= 2, "{trace}");
    }
}

/// Tolerances: reads 1 point; sizes 2 %; gap 2 %; sequential 1 point; close writes 2 points; distinct addresses 4 %
/// (the scaled drive keeps whole chunks only, and chance leaves some slots out); updated more than once 2 points.
#[test]
fn every_published_statistic_is_met() {
    let mut faults = Vec::new();
    for claim in CLAIMS {
        let spec = parse(claim.spec);
        let natural = spec.natural_requests(&DRIVE).unwrap_or(200_000);
        let requests = draw(&spec, natural);
        let total = requests.len() as f64;
        let of = |kind| requests.iter().filter(move |request| request.kind == kind);
        near(&mut faults, claim, "reads %", 100.0 * of(RequestKind::Read).count() as f64 / total, claim.reads, 1.0);
        if let Some(published) = claim.kib {
            near(&mut faults, claim, "KiB", mean(requests.iter().map(kib)), published, 0.02 * published);
        }
        if let Some((reads, writes)) = claim.kib_by_kind {
            near(&mut faults, claim, "KiB read", mean(of(RequestKind::Read).map(kib)), reads, 0.02 * reads);
            near(&mut faults, claim, "KiB written", mean(of(RequestKind::Write).map(kib)), writes, 0.02 * writes);
        }
        let gap_ms = requests.last().unwrap().arrival.0 as f64 / 1e6 / total;
        near(&mut faults, claim, "gap ms", gap_ms, claim.gap_ms, 0.02 * claim.gap_ms);
        if let Some(published) = claim.sequential {
            let follows = requests.windows(2).filter(|pair| pair[0].end_sector() == pair[1].first_sector).count();
            near(&mut faults, claim, "sequential %", 100.0 * follows as f64 / total, published, 1.0);
        }
        if let Some(published) = claim.close {
            near(&mut faults, claim, "close writes %", close_writes(&requests), published, 2.0);
        }
        let (starts, pages, writes) = coverage(&requests);
        for (what, found, published) in [("starts", starts, claim.starts), ("pages", pages, claim.pages)] {
            if let Some((whole, addresses)) = published {
                let scaled = addresses * natural as f64 / whole;
                near(&mut faults, claim, what, found, scaled, 0.04 * scaled);
            }
        }
        if let Some(published) = claim.updated {
            let written = writes.iter().filter(|count| **count > 0).count() as f64;
            let updated = writes.iter().filter(|count| **count >= 3).count() as f64;
            near(&mut faults, claim, "updated %", 100.0 * updated / written, published, 2.0);
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Stand-ins with a head's locality are forced to what is published of mix, sizes and rate, and stay within the number of
/// addresses. Tolerances: reads 1 point, sizes 3 %, gap 10 %: the longest bursts of a head are minutes long.
#[test]
fn heads_are_forced_to_the_published_statistics() {
    let mut faults = Vec::new();
    let of_heads = CLAIMS.iter().filter(|claim| claim.spec.ends_with("statistics-only"));
    for claim in of_heads {
        let text = claim.spec.replace(",variant=statistics-only", "").replace("-statistics-only", "");
        let spec = parse(&text);
        assert!(spec.label().unwrap().contains("locality of"), "{text}");
        let requests = draw(&spec, 1_000_000);
        let total = requests.len() as f64;
        let of = |kind| requests.iter().filter(move |request| request.kind == kind);
        near(&mut faults, claim, "reads %", 100.0 * of(RequestKind::Read).count() as f64 / total, claim.reads, 1.0);
        if let Some(published) = claim.kib {
            near(&mut faults, claim, "KiB", mean(requests.iter().map(kib)), published, 0.03 * published);
        }
        if let Some((reads, writes)) = claim.kib_by_kind {
            near(&mut faults, claim, "KiB read", mean(of(RequestKind::Read).map(kib)), reads, 0.03 * reads);
            near(&mut faults, claim, "KiB written", mean(of(RequestKind::Write).map(kib)), writes, 0.03 * writes);
        }
        let gap_ms = requests.last().unwrap().arrival.0 as f64 / 1e6 / total;
        near(&mut faults, claim, "gap ms", gap_ms, claim.gap_ms, 0.1 * claim.gap_ms);
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// What heads are for: pages that are written close in time lie in the same blocks of 512 KiB, as in the head and unlike in
/// requests that have the statistics only.
#[test]
fn heads_gather_writes_in_blocks() {
    let gathered = |text: &str| {
        let requests = draw(&parse(text), 100_000);
        let writes = requests.iter().filter(|request| request.kind == RequestKind::Write);
        let pages: Vec<u64> = writes.map(|request| request.first_sector / 8).collect();
        // Distinct pages in each block that 2,000 writes touch.
        mean(pages.chunks(2000).map(|part| {
            let distinct: std::collections::BTreeSet<u64> = part.iter().copied().collect();
            let blocks: std::collections::BTreeSet<u64> = distinct.iter().map(|page| page / 128).collect();
            distinct.len() as f64 / blocks.len() as f64
        }))
    };
    let (head, only) = (gathered("stand-in:financial1"), gathered("stand-in:financial1,variant=statistics-only"));
    assert!(head > 2.0 * only, "{head} pages a block with the head's locality, {only} without");
}

/// The popular part takes most requests at any scale: what the hottest tenth of pages gets differs by 3 points at
/// most between a drive and one of a quarter of its size.
#[test]
fn scaling_keeps_the_locality() {
    for text in [
        "stand-in:financial1,variant=statistics-only",
        "stand-in:exchange,variant=statistics-only",
        "stand-in:msn,variant=statistics-only",
    ] {
        let share = |text: &str| {
            let spec = parse(text);
            let requests = draw(&spec, spec.natural_requests(&DRIVE).unwrap());
            let (_, pages, mut writes) = coverage(&requests);
            writes.sort_unstable_by(|a, b| b.cmp(a));
            let hottest = (pages / 10.0) as usize;
            writes[..hottest].iter().map(|count| f64::from(*count)).sum::<f64>()
                / writes.iter().map(|count| f64::from(*count)).sum::<f64>()
        };
        let (whole, quarter) = (share(text), share(&format!("{text},range=0.25")));
        assert!((whole - quarter).abs() < 0.03, "{text}: {whole} {quarter}");
        assert!(whole > 0.3, "{text}: {whole}");
    }
}

#[test]
fn they_always_say_what_they_are() {
    for claim in CLAIMS {
        let label = parse(claim.spec).label().unwrap();
        assert!(label.starts_with("stand-in for ") && label.contains("(synthetic, calibrated to published"), "{label}");
    }
    assert_eq!(
        parse("stand-in:financial1").label().unwrap(),
        "stand-in for Financial1 (synthetic, calibrated to published statistics, locality of the first 50,000 requests of Financial1)"
    );
    assert_eq!(
        parse("stand-in:cello99,variant=gupta09").label().unwrap(),
        "stand-in for Cello99 (synthetic, calibrated to published statistics; variant gupta09)"
    );
    assert_eq!(parse("uniform").label(), None);
    assert_eq!(
        parse("stand-in:financial1,variant=statistics-only").notes(&DRIVE),
        ["Financial1: footprint scaled to 18.437 % of the trace's, 2.712 GiB to 512 MiB, to fit the drive"]
    );
    let large = Target { logical_sectors: 8 << 21, page_sectors: 8 };
    assert!(parse("stand-in:financial1,variant=statistics-only").notes(&large).is_empty());
    assert_eq!(parse("stand-in:financial1,variant=statistics-only").natural_requests(&large), Some(5_334_987));
    assert_eq!(parse("uniform").natural_requests(&large), None);
    assert_eq!(parse("stand-in:tpc-h").natural_requests(&large), None);
}

/// The common keys override the trace's own: size, share of writes, pace.
#[test]
fn common_keys_override_the_trace() {
    let requests = draw(&parse("stand-in:financial1,variant=statistics-only,size=8KiB,write=0.25,rate=1000"), 100_000);
    assert!(requests.iter().all(|request| request.sectors == 16));
    let writes = requests.iter().filter(|request| request.kind == RequestKind::Write).count();
    assert!((24_500..25_500).contains(&writes), "{writes}"); // sigma 137
    let seconds = requests[99_999].arrival.0 as f64 / 1e9;
    assert!((98.0..102.0).contains(&seconds), "{seconds}"); // sigma 0.3
}

/// A rate stretches the trace's own bursts instead of smoothing them: still 31 % of writes of cello99 within 1.5 ms
/// of trace time, which at twice the rate is 0.75 ms.
#[test]
fn a_rate_stretches_bursts() {
    let mut requests = draw(&parse(&format!("stand-in:cello99,rate={}", 2000.0 / 41.01)), 200_000);
    requests.iter_mut().for_each(|request| request.arrival.0 *= 2);
    let close = close_writes(&requests);
    assert!((close - 31.0).abs() < 2.0, "{close}");
}
