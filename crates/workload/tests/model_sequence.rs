//! Models of sequences: segments of the trace come back as they were, what is hot stays so, and what is new grows as it did.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

use crate::model_support::{played_if_it_fits, requests_of, uniform, write};
use flashwright_block::{Request, RequestKind, Seed};
use flashwright_workload::generate::{SpecError, Target, WorkloadSpec};
use flashwright_workload::model::{Fit, FitError, Sequence};
use proptest::prelude::*;
use std::collections::HashSet;

const DRIVE: Target = Target { logical_sectors: 1 << 21, page_sectors: 8 }; // 1 GiB

/// The workload that plays `model` with the further keys `keys`; `name` is that of its file.
fn spec(model: &Sequence, name: &str, keys: &str) -> Result<WorkloadSpec, String> {
    let path = std::env::temp_dir().join(format!("flashwright-sequence-{name}-{}.toml", std::process::id()));
    std::fs::write(&path, model.to_text()).unwrap();
    let spec = format!("model:{}{keys}", path.display()).parse().map_err(|error: SpecError| error.to_string());
    std::fs::remove_file(&path).unwrap();
    spec
}

fn played(model: &Sequence, name: &str, seed: u64, count: usize) -> Vec<Request> {
    let mut batch = Vec::new();
    let mut source = spec(model, name, "").unwrap().source(&DRIVE, Seed(seed), Some(count as u64)).unwrap();
    source.fill(&mut batch, count).unwrap();
    batch
}

fn pages(requests: &[Request]) -> usize {
    requests.iter().map(|request| request.first_sector / 8).collect::<HashSet<_>>().len()
}

/// A round has each request once, in four segments whose order a seed decides; all but five neighbours stay neighbours.
#[test]
fn a_round_plays_each_request_once_in_segments() {
    let requests: Vec<Request> = (0..1000).map(|i| write(i * 7919 % 1000, i)).collect();
    let model = Sequence::of(&requests).unwrap();
    let expected: Vec<u64> = requests.iter().map(|request| request.first_sector).collect();
    let mut courses = HashSet::new();
    for seed in 1..6 {
        let round: Vec<u64> = played(&model, "round", seed, 1000).iter().map(|request| request.first_sector).collect();
        let (mut sorted, mut all) = (round.clone(), expected.clone());
        sorted.sort_unstable();
        all.sort_unstable();
        assert_eq!(sorted, all);
        let at = |sector: u64| expected.iter().position(|each| *each == sector).unwrap();
        let broken = round.windows(2).filter(|pair| (at(pair[0]) + 1) % 1000 != at(pair[1])).count();
        assert!(broken <= 4, "{broken}");
        courses.insert(round);
    }
    assert_eq!(courses.len(), 5);
    assert_eq!(played(&model, "round", 1, 3000), played(&model, "round", 1, 3000));
}

/// Arrivals are the trace's gaps, the first one the mean; faster if asked for.
#[test]
fn arrivals_are_the_gaps_of_the_trace() {
    let requests: Vec<Request> = (0..400).map(|i| write(i % 9, i + i / 20 * 99)).collect();
    let model = Sequence::of(&requests).unwrap();
    let long = |requests: &[Request]| {
        requests.windows(2).filter(|pair| pair[1].arrival.0 - pair[0].arrival.0 > 50_000_000).count()
    };
    let found = played(&model, "gaps", 2, 4000);
    assert!((187..=192).contains(&long(&found)), "{}", long(&found));
    let mut batch = Vec::new();
    let faster = spec(&model, "faster", ",rate-scale=4").unwrap();
    faster.source(&DRIVE, Seed(2), Some(4000)).unwrap().fill(&mut batch, 4000).unwrap();
    let ratio = found[3999].arrival.0 as f64 / batch[3999].arrival.0 as f64;
    assert!((ratio - 4.0).abs() < 1e-6, "{ratio}");
}

/// A log that never turns back grows on as far as the drive has room; requests that keep to their pages never leave them; between
/// the two the footprint follows the power law of the trace.
#[test]
fn what_is_new_grows_as_in_the_trace() {
    let log = Sequence::of(&(0..1600).map(|i| write(i, i)).collect::<Vec<_>>()).unwrap();
    assert!((log.footprint.growth - 1.0).abs() < 1e-9);
    let found = played(&log, "log", 1, 16_000);
    // Where a round begins within a block, some of its pages come back: one block in a hundred a round.
    assert!((15_600..=16_000).contains(&pages(&found)), "{}", pages(&found));
    let still = Sequence::of(&uniform(2000, 160, 1.0, 3)).unwrap();
    assert_eq!((still.footprint.growth, pages(&played(&still, "still", 1, 20_000))), (0.0, 160));
    // The n-th block of 64 KiB comes at request n^2: a growth of one half.
    let root = |i: u64| write(i.isqrt() * 16 + (i % 16), i);
    let root = Sequence::of(&(0..10_000).map(root).collect::<Vec<_>>()).unwrap();
    assert!((root.footprint.growth - 0.5).abs() < 0.01, "{}", root.footprint.growth);
    let blocks = |seed| -> HashSet<u64> {
        played(&root, "root", seed, 90_000).iter().map(|each| each.first_sector / 128).collect()
    };
    let found = blocks(1);
    // Nine times the requests, three times the blocks; of 200 draws one sigma is about 5 %.
    assert!((255..345).contains(&found.len()), "{}", found.len());
    // Every round has all requests, so without what is new there would be as many blocks under each seed.
    assert_eq!(found, blocks(1));
    let counts: HashSet<usize> = (1..6).map(|seed| blocks(seed).len()).collect();
    assert!(counts.len() > 1, "{counts:?}");
}

/// What is written in a block stays in one block, also where the block is new.
#[test]
fn neighbours_stay_neighbours() {
    let requests: Vec<Request> = (0..3200).map(|i| write(i / 16 * 160 + i % 16, i)).collect();
    let found = played(&Sequence::of(&requests).unwrap(), "blocks", 1, 9600);
    let broken = found
        .windows(2)
        .filter(|pair| pair[0].end_sector() != pair[1].first_sector && pair[1].first_sector % 128 != 0)
        .count();
    // Only segments may begin within a block: four of each of three rounds.
    assert!(broken <= 12, "{broken}");
}

#[test]
fn a_file_reads_back_and_edited_ones_are_refused_in_one_line() {
    let far = 987_654_321_000;
    let mixed = |i: u64| match i % 5 {
        0 => Request { kind: RequestKind::Flush, sectors: 0, first_sector: 0, ..write(0, i) },
        1 => Request { kind: RequestKind::Trim, first_sector: far + i * 64, sectors: 500, ..write(0, i) },
        2 => Request { kind: RequestKind::Read, first_sector: far + i * 900, sectors: 130, ..write(0, i) },
        _ => Request { first_sector: far + i * i * 8 % 9999, fua: i.is_multiple_of(2), ..write(0, i) },
    };
    let model = Sequence::of(&(0..5000).map(mixed).collect::<Vec<_>>()).unwrap();
    let text = model.to_text();
    let Fit::Sequence(read) = text.parse::<Fit>().unwrap() else { panic!("a sequence") };
    assert_eq!(read.to_text(), text);
    assert!(text.len() < 60_000, "{}", text.len());
    for (from, to, expected) in [
        ("version = 3", "version = 1", "version: found 1, expected 2 or 3: fit the model again"),
        ("[footprint]", "[footprints]", "found unknown field `footprints`"),
        ("\nblocks = ", "\nblocks = 1", "as its requests use"),
        ("\ngrowth = ", "\ngrowth = 7", "expected an exponent from 0 to 1"),
        ("'''\n", "'''\n?", "requests: found text that is no base64"),
        ("'''\n", "'''\nAAAA", "requests: found "),
        ("\nrequests = 5000", "\nrequests = 4999", "requests: found columns that do not hold 4999 requests"),
        (
            "\nrequests = 5000",
            "\nrequests = 4294967295",
            "requests: found columns that do not hold 4294967295 requests",
        ),
    ] {
        assert!(text.contains(from), "{from} in\n{text}");
        let error = text.replacen(from, to, 1).parse::<Fit>().unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains('\n'), "{error}");
    }
    let FitError::TooShort { found } = Sequence::of(&uniform(99, 10, 0.5, 1)).unwrap_err() else { panic!("too short") };
    assert_eq!(found, 99);
}

#[test]
fn what_a_sequence_contradicts_is_refused_in_one_line() {
    let model = Sequence::of(&uniform(3000, 4096, 0.5, 1)).unwrap();
    for (keys, expected) in [
        (",write=0.3", "write: found it given for a model that holds a trace's own sequence"),
        (",size=8KiB", "size: found it given"),
        (",scale=2", "scale: found 2, expected at most 1 for a sequence"),
        (",rate-scale=2,depth=4", "rate-scale: found rate-scale in a closed loop"),
    ] {
        let error = spec(&model, "keys", keys).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    let small = Target { logical_sectors: 2048 * 8, page_sectors: 8 };
    let error = spec(&model, "small", "").unwrap().source(&small, Seed(1), None).err().unwrap().to_string();
    assert!(error.contains("16 MiB, and the part of the drive in use has 8 MiB"), "{error}");
    assert!(error.contains("scale=0.5 to play"), "{error}");
    let mut batch = Vec::new();
    let scaled = spec(&model, "scaled", ",scale=0.5").unwrap();
    scaled.source(&small, Seed(1), None).unwrap().fill(&mut batch, 9000).unwrap();
    assert!(batch.iter().all(|request| request.end_sector() <= small.logical_sectors));
    // Pairs of pages share one: about as many as 3,000 draws find of 2,048.
    assert!((1500..1650).contains(&pages(&batch)), "{}", pages(&batch));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// Any requests have a model, it reads back, and plays on a drive of any size.
    #[test]
    fn any_requests_have_a_model(
        requests in prop::collection::vec((0u64..1 << 26, 1u32..3000, 0u8..5, 0u64..1 << 24), 200..400),
        sectors in 40_000u64..1 << 22,
        scale in 0.01f64..1.0,
    ) {
        let kinds = [RequestKind::Read, RequestKind::Write, RequestKind::Trim, RequestKind::Write, RequestKind::Flush];
        let Ok(model) = Sequence::of(&requests_of(requests, &kinds)) else { return Ok(()) };
        prop_assert_eq!(model.to_text().parse::<Fit>().map_err(|error| error.to_string()).is_ok(), true);
        let spec = spec(&model, "any", &format!(",scale={scale}")).unwrap();
        for request in played_if_it_fits(&spec, sectors)? {
            let barrier = request.kind == RequestKind::Flush;
            prop_assert!(barrier || (request.sectors > 0 && request.end_sector() <= sectors), "{:?}", request);
        }
    }
}
