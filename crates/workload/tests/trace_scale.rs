//! Scaling, splitting and merging keep what they say.

#![allow(clippy::unwrap_used)] // helpers are outside of #[test]

use crate::trace_support::{Folder, insist, read, read_all};
use flashwright_block::{Nanos, Request, RequestKind};
use flashwright_workload::statistics::{Collector, Statistics};
use flashwright_workload::trace::{
    DeviceFilter, Tenant, TraceInfo, TraceLabel, TraceOptions, TraceReader, TraceWriter, convert, merge,
};
use proptest::prelude::*;
use std::path::Path;

const READ: RequestKind = RequestKind::Read;
const WRITE: RequestKind = RequestKind::Write;

fn request(arrival: u64, kind: RequestKind, first_sector: u64, sectors: u32) -> Request {
    Request { arrival: Nanos(arrival), first_sector, sectors, kind, ..Request::default() }
}

fn write(path: &Path, requests: &[Request]) {
    let mut writer = TraceWriter::create(path, "flashwright", &TraceLabel::default()).unwrap();
    requests.iter().for_each(|request| writer.write(request).unwrap());
    writer.finish().unwrap();
}

fn copies(copies: u32) -> TraceOptions {
    TraceOptions { copies, ..TraceOptions::default() }
}

fn range(first: u64, end: u64) -> TraceOptions {
    TraceOptions { range: Some(first..end), ..TraceOptions::default() }
}

fn statistics(requests: &[Request]) -> Statistics {
    let mut collector = Collector::default();
    requests.iter().for_each(|request| collector.add(request));
    collector.finish()
}

#[test]
fn two_copies_worked_by_hand() {
    let folder = Folder::new();
    let path = folder.path("t.fwt");
    // A mean gap of 100 ns; the second copy begins with the third request, and 100 ns after the fourth goes on.
    write(
        &path,
        &[request(0, WRITE, 0, 8), request(50, WRITE, 8, 8), request(100, READ, 16, 8), request(300, WRITE, 3000, 8)],
    );
    // The trace ends at sector 3008; the second copy begins at the next multiple of 2048.
    let found = read(&path, &copies(2)).unwrap();
    assert_eq!(
        found,
        [
            request(0, WRITE, 0, 8),
            request(0, READ, 4096 + 16, 8),
            request(50, WRITE, 8, 8),
            request(100, READ, 16, 8),
            request(200, WRITE, 4096 + 3000, 8),
            request(300, WRITE, 4096, 8),
            request(300, WRITE, 3000, 8),
            request(350, WRITE, 4096 + 8, 8),
        ]
        .map(|each| each)
    );
}

#[test]
fn a_trace_without_times_is_copied_in_turn() {
    let folder = Folder::new();
    let path = folder.path("t.fwt");
    write(&path, &(0..6).map(|n| request(0, WRITE, n * 8, 8)).collect::<Vec<_>>());
    let copy: Vec<_> = read(&path, &copies(3)).unwrap().iter().map(|each| each.first_sector / 2048).collect();
    assert_eq!(copy, [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2]);
}

#[test]
fn a_range_cuts_what_reaches_beyond_it() {
    let folder = Folder::new();
    let path = folder.path("t.fwt");
    let flush = Request { kind: RequestKind::Flush, ..request(60, READ, 0, 0) };
    write(
        &path,
        &[
            request(0, READ, 0, 50),
            request(10, WRITE, 90, 20),
            request(20, READ, 150, 8),
            request(30, WRITE, 190, 100),
            request(40, READ, 200, 8),
            flush,
        ],
    );
    let mut reader = TraceReader::open(&path, &range(100, 200)).unwrap();
    let found = read_all(&mut reader).unwrap();
    // Times begin with the first request that is kept.
    assert_eq!(
        found,
        [
            request(0, WRITE, 0, 10),
            request(10, READ, 50, 8),
            request(20, WRITE, 90, 10),
            Request { arrival: Nanos(50), ..flush }
        ]
    );
    assert_eq!(reader.stats().filtered_out, 2);
}

#[test]
fn tenants_are_merged_and_taken_apart_again() {
    let folder = Folder::new();
    let (one, other, both) = (folder.path("one.fwt"), folder.path("other.fwt"), folder.path("both.fwt"));
    let first: Vec<_> = (0..50).map(|n| request(n * 100, WRITE, n * 16, 8)).collect();
    let mut second: Vec<_> = (0..30).map(|n| request(n * 70, READ, n * 24, 16)).collect();
    // Flushes are told apart too.
    second.push(Request { kind: RequestKind::Flush, ..request(3000, READ, 0, 0) });
    write(&one, &first);
    write(&other, &second);
    let tenant = |name: &str, path: &Path, start| Tenant {
        name: name.to_owned(),
        path: path.to_owned(),
        options: TraceOptions::default(),
        start: Nanos(start),
    };
    let tenants = [tenant("db", &one, 0), tenant("web", &other, 1000)];
    let report = merge(&tenants, &both, "flashwright", &TraceLabel::default()).unwrap();
    assert_eq!((report.written, report.read.requests), (81, 81));
    let merged = read(&both, &TraceOptions::default()).unwrap();
    assert!(merged.is_sorted_by_key(|each| each.arrival));
    assert_eq!(merged.iter().find(|each| each.kind == READ), Some(&request(1000, READ, 2048, 16)));
    let part = |name: &str| {
        let devices = DeviceFilter::Only(vec![name.to_owned()]);
        read(&both, &TraceOptions { devices, ..TraceOptions::default() }).unwrap()
    };
    assert_eq!((part("db"), part("web")), (first, second));
}

#[test]
fn what_breaks_the_bounds_is_refused_in_one_line() {
    let folder = Folder::new();
    let path = folder.path("t.fwt");
    let flush = Request { kind: RequestKind::Flush, ..request(0, READ, 0, 0) };
    write(&path, &[request(0, READ, (1 << 54) - 8, 8), flush]);
    let said = |options: &TraceOptions| read(&path, options).unwrap_err().to_string();
    for count in [0, 65] {
        let expected = format!("trace option scale_footprint: found {count}, expected a whole number from 1 to 64");
        assert_eq!(said(&copies(count)), expected);
    }
    assert_eq!(said(&range(8, 8)), "trace option range: found sectors 8 to 8, expected at least one sector of 512 B");
    assert!(
        said(&copies(3))
            .ends_with("3 copies of a trace of 18014398509481984 sectors together reach past 2^64 B; use fewer")
    );
    assert!(said(&range(0, 8)).ends_with("no request in the whole trace: none of its 1 requests is within the range"));
}

#[test]
fn the_summary_and_a_converted_file_know_the_copies() {
    let folder = Folder::new();
    let (path, out) = (folder.path("t.fwt"), folder.path("out.fwt"));
    write(&path, &(0..100).map(|n| request(n * 1000, WRITE, n * 8, 8)).collect::<Vec<_>>());
    let info = TraceInfo::of(&path, &copies(4)).unwrap();
    assert_eq!((info.requests, info.pages, info.span_ns), (400, 400, 99_000));
    // A copy begins anew once, where its end meets its beginning; the first never does.
    assert!((info.sequential_percent - 100.0 * (99.0 + 3.0 * 98.0) / 400.0).abs() < 1e-9);
    convert(&path, &out, &copies(4), "flashwright", &TraceLabel::default()).unwrap();
    assert_eq!(read(&out, &TraceOptions::default()).unwrap(), read(&path, &copies(4)).unwrap());
    let faster = TraceOptions { time_scale: 0.5, ..copies(4) };
    let halved: Vec<_> = read(&path, &copies(4))
        .unwrap()
        .iter()
        .map(|each| Request { arrival: Nanos(each.arrival.0 / 2), ..*each })
        .collect();
    assert_eq!(read(&path, &faster).unwrap(), halved);
    assert!(insist("spc") != copies(1));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    #[test]
    fn copies_keep_what_they_say(
        rows in prop::collection::vec((0_u64..5000, any::<bool>(), 0_u64..4000, 1_u32..64), 2..300),
        count in 2_u32..9,
    ) {
        let folder = Folder::new();
        let path = folder.path("t.fwt");
        let mut now = 0;
        let requests: Vec<_> = rows
            .iter()
            .enumerate()
            .map(|(at, &(gap, write, first, sectors))| {
                now += if at == 0 { 0 } else { gap };
                request(now, if write { WRITE } else { READ }, first, sectors)
            })
            .collect();
        write(&path, &requests);
        let found = read(&path, &copies(count)).unwrap();
        prop_assert_eq!(found.len(), requests.len() * count as usize);
        prop_assert!(found.is_sorted_by_key(|each| each.arrival));
        let stride = requests.iter().map(Request::end_sector).max().unwrap().next_multiple_of(2048);
        let place = |each: &Request| (each.first_sector, each.sectors, each.kind);
        for copy in 0..u64::from(count) {
            // Each copy is the trace, turned by an equal share of its requests.
            let beginning = copy as usize * requests.len() / count as usize;
            let mut turned: Vec<_> = requests.iter().map(place).collect();
            turned.rotate_left(beginning);
            let part: Vec<_> = (found.iter())
                .filter(|each| each.first_sector / stride == copy)
                .map(|each| place(&Request { first_sector: each.first_sector - copy * stride, ..*each }))
                .collect();
            prop_assert_eq!(part, turned);
        }
        let (once, all) = (statistics(&requests), statistics(&found));
        prop_assert_eq!(all.footprint.pages, once.footprint.pages * u64::from(count));
        prop_assert_eq!(all.written_bytes, once.written_bytes * u64::from(count));
        prop_assert_eq!(all.write_share, once.write_share);
    }
}
