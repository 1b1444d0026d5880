//! Each pattern compared with values worked out on paper or its own theory.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

use flashwright_block::{Request, RequestKind, Seed};
use flashwright_workload::generate::{Target, WorkloadSpec};

/// Requests of `text` on a drive of `pages` pages of 4 KiB.
fn draw(text: &str, pages: u64, count: u64) -> Vec<Request> {
    let spec: WorkloadSpec = text.parse().unwrap_or_else(|error| panic!("{error}"));
    let mut source =
        spec.source(&Target { logical_sectors: pages * 8, page_sectors: 8 }, Seed(11), Some(count)).unwrap();
    let mut batch = Vec::new();
    source.fill(&mut batch, usize::try_from(count).unwrap()).unwrap();
    batch
}

/// First pages of the requests; all must start on one.
fn pages(text: &str, pages: u64, count: u64) -> Vec<u64> {
    let requests = draw(text, pages, count);
    assert!(requests.iter().all(|request| request.first_sector % 8 == 0), "{text}");
    requests.iter().map(|request| request.first_sector / 8).collect()
}

fn counts(pages: &[u64], n: usize) -> Vec<u32> {
    let mut counts = vec![0; n];
    pages.iter().for_each(|page| counts[usize::try_from(*page).unwrap()] += 1);
    counts
}

#[test]
fn sequential_wraps() {
    assert_eq!(pages("sequential", 4, 10), [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]);
    assert_eq!(pages("sequential:size=8KiB", 5, 5), [0, 2, 0, 2, 0]); // page 4 has no room for two
    assert_eq!(pages("sequential:size=8KiB,align=4KiB", 5, 5), [0, 2, 0, 2, 0]);
    assert_eq!(pages("sequential:range=0.5", 4, 3), [0, 1, 0]);
    // 6 KiB at multiples of 4 KiB: each starts at the first place behind the last one's end.
    assert_eq!(pages("sequential:size=6KiB,align=4KiB", 8, 5), [0, 2, 4, 6, 0]);
}

#[test]
fn mixed_writes_go_on_where_they_stopped_whatever_is_read_between() {
    let all = draw("mixed:write=0.5", 64, 4000);
    let (writes, reads): (Vec<&Request>, Vec<&Request>) =
        all.iter().partition(|request| request.kind == RequestKind::Write);
    assert!(writes.iter().enumerate().all(|(at, write)| write.first_sector == at as u64 % 64 * 8));
    let mut read = [0u32; 64];
    reads.iter().for_each(|request| read[(request.first_sector / 8) as usize] += 1);
    assert!(reads.len() > 1800 && read.iter().all(|count| *count > 8), "{read:?}");
}

#[test]
fn strides_cover_the_space() {
    assert_eq!(pages("strided:step=16KiB", 10, 12), [0, 4, 8, 1, 5, 9, 2, 6, 3, 7, 0, 4]);
    assert_eq!(pages("strided:step=16KiB,size=8KiB,align=4KiB", 10, 8), [0, 4, 8, 2, 6, 0, 4, 8]);
    assert_eq!(pages("strided:step=64KiB", 3, 5), [0, 1, 2, 0, 1]); // a step past the end: every pass is one request
    assert!(counts(&pages("strided:step=28KiB", 1000, 3000), 1000).iter().all(|count| *count == 3));
}

/// Chi-square of 100 cells has mean 99 and sigma 14; 50 to 170 is 3.5 to 5 sigma.
#[test]
fn uniform_is_uniform() {
    let counts = counts(&pages("uniform", 100, 100_000), 100);
    let chi: f64 = counts.iter().map(|count| (f64::from(*count) - 1000.0).powi(2) / 1000.0).sum();
    assert!((50.0..170.0).contains(&chi), "{chi}");
    // 64 KiB at 4 KiB grain on 20 pages: places 0 to 4, each about 2,000 of 10,000 (sigma 40).
    let counts = self::counts(&pages("uniform:size=64KiB,align=4KiB", 20, 10_000), 20);
    assert!(
        counts[..5].iter().all(|count| (1800..2200).contains(count)) && counts[5..].iter().all(|count| *count == 0)
    );
}

/// 90 % of 100,000 on the first 100 of 1,000 pages: sigma 95 requests.
#[test]
fn hot_and_cold_get_their_shares() {
    let all = pages("hot-cold:hot-space=0.1,hot-access=0.9", 1000, 100_000);
    let hot = all.iter().filter(|page| **page < 100).count();
    assert!((89_500..90_500).contains(&hot), "{hot}");
    let counts = counts(&all, 1000);
    assert!(counts[..100].iter().all(|count| (750..1050).contains(count))); // 900, sigma 30
    assert!(counts[100..].iter().all(|count| *count < 40)); // 11, sigma 3.3
    let scattered = pages("hot-cold:hot-space=0.1,hot-access=0.9,placement=scattered", 1000, 100_000);
    let mut scattered = self::counts(&scattered, 1000);
    assert!(scattered[..100].iter().filter(|count| **count > 100).count() < 25, "the hot part is spread");
    scattered.sort_unstable_by(|a, b| b.cmp(a));
    let hot: u32 = scattered[..100].iter().sum();
    assert!((89_500..90_500).contains(&hot), "{hot}");
    assert!(pages("hot-cold:hot-access=1", 1000, 10_000).iter().all(|page| *page < 200));
    assert!(pages("hot-cold:hot-access=0", 1000, 10_000).iter().all(|page| *page >= 200));
}

#[test]
fn static_pages_are_read_and_never_written() {
    let requests = draw("dynamic-static:static=0.7,write=0.5", 1000, 200_000);
    let touched = |kind| {
        let mut pages = vec![0u32; 1000];
        requests
            .iter()
            .filter(|r| r.kind == kind)
            .for_each(|r| pages[usize::try_from(r.first_sector / 8).unwrap()] += 1);
        pages
    };
    let (written, read) = (touched(RequestKind::Write), touched(RequestKind::Read));
    assert_eq!(written.iter().filter(|count| **count > 0).count(), 300);
    assert!(written.iter().all(|count| *count == 0 || (230..440).contains(count)), "333 each, sigma 18");
    assert!(read.iter().all(|count| (50..160).contains(count)), "100 each, sigma 10");
    // Spread over the space: 30 +- 14 (three sigma) in each tenth.
    let tenths = written.chunks(100).map(|tenth| tenth.iter().filter(|count| **count > 0).count());
    assert!(tenths.clone().all(|count| (14..47).contains(&count)), "{:?}", tenths.collect::<Vec<_>>());
    let all = draw("dynamic-static:static=0", 100, 10_000);
    assert!(counts(&all.iter().map(|r| r.first_sector / 8).collect::<Vec<_>>(), 100).iter().all(|count| *count > 0));
}

/// 1,000 chunks of 4 pages: the hottest 200 get 95 % of 400,000 (sigma 0.03 %), chunk i has i^-1.3920.
#[test]
fn zipf_has_its_share_and_its_slope() {
    let text = "zipf:accesses=0.95,space=0.2,chunk=16KiB,placement=identity";
    let all = pages(text, 4000, 400_000);
    let share = all.iter().filter(|page| **page < 800).count() as f64 / 400_000.0;
    assert!((share - 0.95).abs() < 0.002, "{share}");
    let by_page = counts(&all, 4000);
    let chunk = |i: usize| f64::from(by_page[4 * i..4 * i + 4].iter().sum::<u32>());
    for i in [1, 3, 9] {
        let ratio = chunk(0) / chunk(i) / ((i + 1) as f64).powf(1.3920);
        assert!((ratio - 1.0).abs() < 0.05, "chunk {i}: {ratio}");
    }
    assert!(by_page[..4].iter().all(|count| (f64::from(*count) / chunk(0) - 0.25).abs() < 0.01), "uniform within");

    let scattered = pages(&text.replace("identity", "scattered"), 4000, 400_000);
    let mut chunks: Vec<u32> = counts(&scattered, 4000).chunks(4).map(|pages| pages.iter().sum()).collect();
    assert!(chunks[..200].iter().sum::<u32>() < 300_000, "the hottest fifth is not at the front");
    chunks.sort_unstable_by(|a, b| b.cmp(a));
    let share = f64::from(chunks[..200].iter().sum::<u32>()) / 400_000.0;
    assert!((share - 0.95).abs() < 0.003, "{share}");
}

/// Over 1,000 places of a page, rank k has k^-0.99 / 7.73 of 400,000 requests: 51,752 of the first, sigma 212.
#[test]
fn an_exponent_ranks_places_and_scatters_them() {
    let total: f64 = (1..=1000).map(|k| f64::from(k).powf(-0.99)).sum();
    let of_rank = |k: i32| 400_000.0 * f64::from(k).powf(-0.99) / total;
    let by_page = counts(&pages("zipf:theta=0.99,placement=identity", 1000, 400_000), 1000);
    for (k, at) in [(1, 0), (2, 1), (10, 9), (100, 99)] {
        let (found, mean) = (f64::from(by_page[at]), of_rank(k));
        assert!((found - mean).abs() < 4.5 * mean.sqrt(), "rank {k}: {found}, not {mean}");
    }
    let scattered = counts(&pages("zipf:0.99", 1000, 400_000), 1000);
    let mut ranked = scattered.clone();
    ranked.sort_unstable_by(|a, b| b.cmp(a));
    assert!((f64::from(ranked[0]) - of_rank(1)).abs() < 4.5 * of_rank(1).sqrt());
    assert!(scattered[..200].iter().sum::<u32>() < 200_000, "the hottest are not at the front");
    // In chunks of four pages popularity is constant within a chunk.
    let chunked = counts(&pages("zipf:1.2,chunk=16KiB,placement=identity", 1000, 400_000), 1000);
    let first = f64::from(chunked[0]);
    assert!(chunked[1..4].iter().all(|count| (f64::from(*count) / first - 1.0).abs() < 0.05), "{:?}", &chunked[..4]);
}

#[test]
fn zipf_on_a_drive_smaller_than_a_chunk_is_uniform() {
    let counts = counts(&pages("zipf", 10, 10_000), 10);
    assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
}

/// Share of requests that continue the last one: 5 % and 80 % by 200,000 requests (sigma 0.1 % and 0.4 %).
#[test]
fn the_dftl_papers_workloads_have_their_runs() {
    for (text, share, writes) in [("dftl-a", 0.05, 0.8), ("dftl-b", 0.8, 0.8), ("dftl-b:run=16,write=0.3", 0.8, 0.3)] {
        let requests = draw(text, 1 << 20, 200_000);
        let follow = requests.windows(2).filter(|pair| pair[0].end_sector() == pair[1].first_sector).count();
        assert!((follow as f64 / 200_000.0 - share).abs() < 0.02, "{text}: {follow}");
        let found = requests.iter().filter(|request| request.kind == RequestKind::Write).count() as f64 / 200_000.0;
        assert!((found - writes).abs() < 0.006, "{text}: {found}");
        assert!(requests.iter().all(|request| request.sectors == 8));
    }
}

/// Gaps of an open loop are exponential: mean 1 ms, and `1 - 1/e` of them shorter than the mean.
#[test]
fn poisson_gaps_are_exponential() {
    let arrivals: Vec<u64> = draw("uniform:rate=1000", 1000, 100_000).iter().map(|r| r.arrival.0).collect();
    let gaps: Vec<f64> = arrivals.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let below = gaps.iter().filter(|gap| **gap < 1e6).count() as f64 / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    assert!((mean / 1e6 - 1.0).abs() < 0.015 && (below - 0.632).abs() < 0.006, "{mean} {below}");
    assert!((variance.sqrt() / 1e6 - 1.0).abs() < 0.03, "{variance}");
}

/// Requests name the class of their place where they are asked to, and change in nothing else.
#[test]
fn classes_are_named_as_streams() {
    for (text, hot) in [
        ("hot-cold:hot-space=0.1,hot-access=0.9", 100),
        ("hot-cold:hot-space=0.1,hot-access=0.9,placement=scattered", 100),
        ("zipf:accesses=0.8,space=0.2,chunk=16KiB,write=0.5", 200),
        ("zipf:accesses=0.8,space=0.2,chunk=16KiB,placement=identity", 200),
        ("dynamic-static:static=0.7", 300),
    ] {
        let plain = draw(text, 1000, 20_000);
        let named = draw(&format!("{text},streams=class"), 1000, 20_000);
        assert!(plain.iter().all(|request| request.stream == 0), "{text}");
        let mut classes = [0u16; 1000];
        for (plain, named) in plain.iter().zip(&named) {
            assert_eq!(*plain, flashwright_block::Request { stream: 0, ..*named }, "{text}");
            let class = &mut classes[usize::try_from(named.first_sector / 8).unwrap()];
            assert!([1, 2].contains(&named.stream) && [0, named.stream].contains(class), "{text}: one class a page");
            *class = named.stream;
        }
        assert_eq!(classes.iter().filter(|class| **class == 2).count(), hot, "{text}: hot pages");
    }
}

#[test]
fn passes_come_to_every_place_once_in_a_new_order() {
    let all = pages("uniform:places=passes", 500, 1500);
    let each: Vec<&[u64]> = all.chunks(500).collect();
    for pass in &each {
        assert!(counts(pass, 500).iter().all(|count| *count == 1));
    }
    assert!(each[0] != each[1] && each[1] != each[2]);
}

/// Shares of the bytes that requests of each stream write, from stream 1 on.
fn byte_shares(requests: &[Request], streams: usize) -> Vec<f64> {
    let mut sectors = vec![0u64; streams];
    requests.iter().for_each(|request| sectors[usize::from(request.stream) - 1] += u64::from(request.sectors));
    let all: u64 = sectors.iter().sum();
    sectors.iter().map(|of| *of as f64 / all as f64).collect()
}

#[test]
fn a_flash_cache_writes_buckets_at_random_and_regions_in_order() {
    let pages = 16_384; // 64 MiB
    let all = draw("cachelib:small-space=0.25,small-writes=0.2,streams=class", pages, 40_000);
    let (small, large): (Vec<&Request>, Vec<&Request>) = all.iter().partition(|request| request.stream == 1);
    let part = pages * 8 / 4;
    assert!(small.iter().all(|request| request.sectors == 8 && request.end_sector() <= part));
    assert!(large.windows(2).all(|pair| {
        pair[1].first_sector == pair[0].end_sector()
            || pair[1].first_sector == part && pair[0].end_sector() == pages * 8
    }));
    let mut hits = vec![0; 64];
    small.iter().for_each(|request| hits[(request.first_sector * 64 / part) as usize] += 1);
    let mean = small.len() as f64 / 64.0;
    assert!(hits.iter().all(|hits| (f64::from(*hits) / mean - 1.0).abs() < 0.3), "{hits:?}");
    let shares = byte_shares(&all, 2);
    assert!((shares[0] - 0.2).abs() < 0.02, "{shares:?}");
    // Without streams the same requests name none.
    let unnamed = draw("cachelib:small-space=0.25,small-writes=0.2", pages, 40_000);
    assert!(unnamed.iter().zip(&all).all(|(one, other)| *one == Request { stream: 0, ..*other }));
}

#[test]
fn workers_of_language_models_write_whole_objects_in_their_parts() {
    // 855 GiB: objects have their own sizes, in pieces of 128 KiB.
    let all = draw("kv-cache:streams=class", 855 << 18, 300_000);
    let sizes = [4u64, 32, 16, 2, 1];
    for class in 1..=5u16 {
        let of: Vec<&Request> = all.iter().filter(|request| request.stream == class).collect();
        let pieces = sizes[usize::from(class) - 1] * 8;
        let begins = of.iter().filter(|request| request.first_sector.is_multiple_of(pieces * 256)).count();
        let wanted = of.len() as f64 / pieces as f64;
        assert!((begins as f64 / wanted - 1.0).abs() < 0.1, "class {class}: {begins} objects begun of {wanted}");
    }
    let shares = byte_shares(&all, 5);
    for (share, workers) in shares.iter().zip([2.0, 1.0, 2.0, 3.0, 1.0]) {
        assert!((share - workers / 9.0).abs() < 0.01, "{shares:?}");
    }
    let by_space = byte_shares(&draw("kv-cache:rates=space,streams=class", 855 << 18, 100_000), 5);
    assert!((by_space[1] - 180.0 / 855.0).abs() < 0.01 && (by_space[4] - 45.0 / 855.0).abs() < 0.01, "{by_space:?}");
    // The oldest first: each worker goes through its part in order.
    let oldest = draw("kv-cache:order=oldest,streams=class", 855 << 18, 50_000);
    let long: Vec<&Request> = oldest.iter().filter(|request| request.stream == 2).collect();
    assert!(long.windows(2).all(|pair| pair[1].first_sector == pair[0].end_sector()));
}

#[test]
fn three_streams_share_nine_tenths_and_one_tenth() {
    let pages = 40_960;
    let all = draw("three-streams:law=zoned,streams=class,in-order=0.5,apart=0.2", pages, 60_000);
    let edge = pages * 8 / 10 * 9;
    let second: Vec<u64> =
        all.iter().filter(|request| request.stream == 2).map(|request| request.first_sector).collect();
    assert!(all.iter().all(|request| (request.stream == 3) == (request.first_sector >= edge)));
    assert!(all.iter().all(|request| request.sectors == if request.stream == 1 { 256 } else { 8 }));
    let within = |from: f64, to: f64| {
        let sectors = edge as f64;
        let inside = second.iter().filter(|at| (from * sectors..to * sectors).contains(&(**at as f64)));
        inside.count() as f64 / second.len() as f64
    };
    let found = [within(0.0, 0.2), within(0.2, 0.4), within(0.4, 1.0)];
    assert!(found.iter().zip([0.8, 0.1, 0.1]).all(|(found, wanted)| (found - wanted).abs() < 0.01), "{found:?}");
    let shares = byte_shares(&all, 3);
    assert!(shares.iter().zip([0.5, 0.3, 0.2]).all(|(found, wanted)| (found - wanted).abs() < 0.03), "{shares:?}");
    let zipf = draw("three-streams:law=zipf,theta=2.2,streams=class", pages, 60_000);
    let first = zipf.iter().filter(|request| request.stream == 2 && request.first_sector == 0).count();
    let of = zipf.iter().filter(|request| request.stream == 2).count();
    // Rank 1 of Zipf's law with exponent 2.2: one over zeta(2.2).
    assert!((first as f64 / of as f64 - 1.0 / 1.4905).abs() < 0.02, "{}", first as f64 / of as f64);
}
