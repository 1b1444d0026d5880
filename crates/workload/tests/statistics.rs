//! Statistics against traces worked by hand and against naive reference models.

use flashwright_block::{Nanos, Request, RequestKind, Seed};
use flashwright_workload::generate::{Target, WorkloadSpec};
use flashwright_workload::statistics::{self, Collector, Distribution, Statistics};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const READ: RequestKind = RequestKind::Read;
const WRITE: RequestKind = RequestKind::Write;

fn request(arrival: u64, kind: RequestKind, page: u64, pages: u32) -> Request {
    Request { arrival: Nanos(arrival), first_sector: page * 8, sectors: pages * 8, kind, ..Request::default() }
}

fn of(requests: &[Request]) -> Statistics {
    let mut collector = Collector::default();
    requests.iter().for_each(|request| collector.add(request));
    collector.finish()
}

fn counts(values: &[(u64, f64)]) -> Distribution {
    let (values, weights) = values.iter().copied().unzip();
    Distribution { values, weights }
}

#[test]
fn a_small_trace_worked_by_hand() {
    let found = of(&[
        request(0, WRITE, 0, 2),
        request(1_000, READ, 1, 1),
        request(1_000, WRITE, 2, 1),
        request(5_000, WRITE, 0, 1),
        request(9_000, READ, 9, 1),
        Request { kind: RequestKind::Flush, sectors: 0, ..request(9_500, READ, 0, 0) },
        Request { kind: RequestKind::Trim, ..request(9_600, READ, 0, 4) },
    ]);
    assert_eq!((found.requests, found.reads, found.writes, found.trims, found.flushes), (7, 2, 3, 1, 1));
    assert_eq!((found.read_bytes, found.written_bytes, found.end_byte), (8192, 16384, 40960));
    assert_eq!(found.write_share, Some(0.6));
    assert_eq!(found.write_sizes.bytes, counts(&[(4096, 2.0), (8192, 1.0)]));
    // Pages 0 (any multiple: at most 1 MiB), 2 and 0.
    assert_eq!(found.write_sizes.alignment, counts(&[(8192, 1.0), (1 << 20, 2.0)]));
    // Page 2 follows pages 0 and 1; the write of page 0 stands alone.
    assert_eq!(found.write_runs.sequential_share, Some(1.0 / 3.0));
    assert_eq!(found.write_runs.requests, counts(&[(1, 1.0), (2, 1.0)]));
    assert_eq!(found.write_runs.bytes, counts(&[(4096, 1.0), (12288, 1.0)]));
    // Page 1 read right after it was written; page 0 written after pages 1 and 2.
    assert_eq!(found.reuse.reads_of_writes, counts(&[(0, 1.0)]));
    assert_eq!(found.reuse.writes_of_writes, counts(&[(2, 1.0)]));
    assert_eq!((found.reuse.reads_first, found.reuse.writes_first, found.reuse.sampled), (1.0, 3.0, 1.0));
    // Page 0 was the first page written and is the fourth.
    assert_eq!(found.reuse.overwrites, counts(&[(3, 1.0)]));
    assert_eq!((found.footprint.pages, found.footprint.pages_written), (4, 3));
    let growth: Vec<_> = found.footprint.growth.iter().map(|g| (g.accesses, g.pages, g.pages_written)).collect();
    assert_eq!(growth, [(1, 1, 1), (2, 2, 2), (4, 3, 3), (6, 4, 3)]);
    let arrivals = found.arrivals.unwrap();
    assert_eq!((arrivals.span_ns, arrivals.same_direction_share), (9_000, 0.25));
    // Gaps before writes: 0 and 4 us, a bin of which begins at 3,840.
    assert_eq!(arrivals.gaps_before_writes, counts(&[(0, 1.0), (3840, 1.0)]));
    assert_eq!(arrivals.scales, []);
}

#[test]
fn equal_gaps_have_no_dispersion_and_bursts_have_much() {
    let even = of(&(0..20_000).map(|n| request(n * 100_000, READ, n, 1)).collect::<Vec<_>>());
    // Ten at once every millisecond: in a window of 1 ms the same number, so bursts show below that scale only.
    let scales = even.arrivals.unwrap().scales;
    assert_eq!(
        scales.iter().map(|scale| (scale.windows, scale.dispersion)).collect::<Vec<_>>()[..2],
        [(1999, 0.0), (199, 0.0)]
    );
    assert_eq!(scales[0].reads_with_writes, None);
    // 50 reads and 50 writes in every tenth window of 1 ms. Mean 10, variance 100^2 / 10 - 10^2.
    let bursts: Vec<_> =
        (0..20_000_u64).map(|n| request(n / 100 * 10_000_000, if n % 2 == 0 { READ } else { WRITE }, n, 1)).collect();
    let scales = of(&bursts).arrivals.unwrap().scales;
    // The last window is left out, so the share of full ones is a little above a tenth.
    assert!((scales[0].dispersion - 90.0).abs() < 0.5, "{scales:?}");
    assert!((scales[0].reads_with_writes.unwrap() - 1.0).abs() < 1e-9);
    assert_eq!(scales[1].dispersion, 0.0);
}

#[test]
fn writes_gather_as_they_were_written() {
    // A window of 256 page writes: 64 blocks of 64 KiB, every fourth page of each.
    let scattered: Vec<_> = (0..256).map(|n| request(0, WRITE, n * 4, 1)).collect();
    let found = of(&scattered).gathering.found;
    let pages: Vec<_> =
        found.iter().map(|each| (each.window_pages, each.block_bytes >> 10, each.pages_per_block)).collect();
    assert_eq!(pages, [(256, 64, 4.0), (256, 256, 16.0), (256, 1024, 64.0), (256, 4096, 256.0)]);
    // A page that is written again in the window counts once.
    let again: Vec<_> = (0..256).map(|n| request(0, WRITE, n % 16, 1)).collect();
    assert_eq!(of(&again).gathering.found[0].pages_per_block, 16.0);
}

#[test]
fn hot_chunks_that_move_are_found_to_move() {
    // One of ten requests goes round a hundred chunks; the others go to one chunk, which moves every 4,096 requests.
    let play = |moves: bool| {
        let requests: Vec<_> = (0..65_536_u64)
            .map(|n| {
                let hot = 1000 + if moves { n / 4096 } else { 0 };
                request(0, WRITE, 16 * if n % 10 == 0 { n / 10 % 100 } else { hot }, 1)
            })
            .collect();
        of(&requests).drift
    };
    let (stays, moves) = (play(false), play(true));
    // 128 epochs of 512 were joined in pairs twice.
    assert_eq!((stays.epoch_requests, stays.lags.len()), (2048, 32));
    assert!(stays.lags.iter().all(|lag| lag.share > 0.9));
    assert!(moves.lags[0].share > 0.9);
    // Two epochs have the same hot chunk; then it is another.
    assert!((moves.lags[1].share - 0.5).abs() < 0.1, "{:?}", moves.lags[1]);
    assert!(moves.lags[4].share < 0.2);
}

#[test]
fn popularity_is_the_share_of_the_most_accessed() {
    // 16 pages: one written 17 times, the others once.
    let requests: Vec<_> = (0..32).map(|n| request(0, WRITE, if n < 16 { n } else { 3 }, 1)).collect();
    let found = of(&requests).popularity;
    assert_eq!((found.share_of_pages[0], found.share_of_writes[0]), (1.0 / 16.0, 17.0 / 32.0));
    assert_eq!((found.share_of_pages.last(), found.share_of_writes.last()), (Some(&1.0), Some(&1.0)));
    assert!(found.share_of_reads.is_empty());
}

#[test]
fn a_generator_is_apart_from_another_and_not_from_itself() {
    let play = |text: &str, seed| {
        let spec: WorkloadSpec = text.parse().unwrap();
        let target = Target { logical_sectors: 1 << 19, page_sectors: 8 };
        statistics::of(&mut *spec.source(&target, Seed(seed), None).unwrap(), Some(50_000)).unwrap()
    };
    let (one, same, other) = (play("zipf:rate=1000", 1), play("zipf:rate=1000", 2), play("uniform:rate=1000", 1));
    assert_eq!(one.requests, 50_000);
    let find = |a: &Statistics, b: &Statistics, name: &str| {
        let found = statistics::distances(a, b).into_iter().find(|each| each.name == name);
        found.unwrap_or_else(|| panic!("{name} is missing"))
    };
    let reuse = "writes of pages last written";
    assert!(find(&one, &same, reuse).largest_gap < 0.02);
    assert!(find(&one, &other, reuse).largest_gap > 0.2);
    assert!(find(&one, &other, "gaps before writes").largest_gap < 0.02);
    assert!(find(&one, &other, "writes of the most written 1/8 of pages").octaves.unwrap() > 1.0);
    assert!(find(&one, &same, "dispersion over 10 ms").octaves.unwrap() < 0.2);
    assert!(statistics::distances(&one, &one).iter().all(|each| each.largest_gap == 0.0 && each.octaves == Some(0.0)));
    assert!(statistics::distances(&one, &same).iter().all(|each| !each.name.contains("read")));
}

/// What a list says of reuse: exact distances by pair of directions, and page writes between overwrites.
#[derive(Default)]
struct Naive {
    /// The latest last, with its direction.
    order: Vec<(u64, RequestKind)>,
    written: BTreeMap<u64, u64>,
    writes: u64,
    pairs: BTreeMap<(bool, bool), Vec<u64>>,
    overwrites: Vec<u64>,
}

impl Naive {
    fn add(&mut self, page: u64, kind: RequestKind) {
        if let Some(at) = self.order.iter().position(|known| known.0 == page) {
            let since = self.order.len() - 1 - at;
            let (_, before) = self.order.remove(at);
            self.pairs.entry((kind == WRITE, before == WRITE)).or_default().push(since as u64);
        }
        self.order.push((page, kind));
        if kind == WRITE {
            self.writes += 1;
            if let Some(before) = self.written.insert(page, self.writes) {
                self.overwrites.push(self.writes - before);
            }
        }
    }
}

/// The distribution of numbers: exact below 16, else in bins of an eighth of an octave.
fn binned(values: &[u64]) -> Distribution {
    let mut bins = BTreeMap::new();
    for &value in values {
        let width = if value < 16 { 1 } else { (1 << value.ilog2()) / 8 };
        *bins.entry(value / width * width).or_insert(0.0) += 1.0;
    }
    Distribution { values: bins.keys().copied().collect(), weights: bins.values().copied().collect() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn reuse_is_that_of_a_list(
        // More than 4,096 accesses, so that places are used up.
        accesses in proptest::collection::vec((0_u64..120, any::<bool>(), 1_u32..40), 300..500),
    ) {
        let requests: Vec<_> =
            accesses.iter().map(|&(page, write, pages)| request(0, if write { WRITE } else { READ }, page, pages)).collect();
        let (found, mut naive, mut pages) = (of(&requests), Naive::default(), BTreeSet::new());
        for each in &requests {
            for page in each.first_sector / 8..each.end_sector() / 8 {
                naive.add(page, each.kind);
                pages.insert(page);
            }
        }
        let of_pair = |write, after_write| naive.pairs.get(&(write, after_write)).map_or(&[][..], Vec::as_slice);
        prop_assert_eq!(&found.reuse.reads_of_reads, &binned(of_pair(false, false)));
        prop_assert_eq!(&found.reuse.reads_of_writes, &binned(of_pair(false, true)));
        prop_assert_eq!(&found.reuse.writes_of_reads, &binned(of_pair(true, false)));
        prop_assert_eq!(&found.reuse.writes_of_writes, &binned(of_pair(true, true)));
        prop_assert_eq!(&found.reuse.overwrites, &binned(&naive.overwrites));
        prop_assert_eq!(found.footprint.pages, pages.len() as u64);
        prop_assert_eq!(found.footprint.pages_written, naive.written.len() as u64);
    }

    #[test]
    fn dispersion_is_that_of_a_list_of_counts(gaps in proptest::collection::vec(0_u64..3_000_000, 50..200)) {
        let mut now = 0;
        let arrivals: Vec<u64> = gaps.iter().map(|gap| { now += gap; now }).collect();
        let requests: Vec<_> = arrivals.iter().map(|&at| request(at, READ, 0, 1)).collect();
        let whole = (arrivals[arrivals.len() - 1] - arrivals[0]) / 1_000_000;
        let counts: Vec<f64> = (0..whole)
            .map(|window| arrivals.iter().filter(|at| (*at - arrivals[0]) / 1_000_000 == window).count() as f64)
            .collect();
        let found = of(&requests).arrivals.and_then(|arrivals| arrivals.scales.first().copied());
        prop_assert_eq!(found.is_some(), whole >= 10);
        if let Some(scale) = found {
            let mean = counts.iter().sum::<f64>() / whole as f64;
            let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / whole as f64;
            prop_assert_eq!(scale.windows, whole);
            prop_assert!((scale.dispersion - variance / mean).abs() < 1e-9);
        }
    }
}
