//! Traces whose times go back: each kind against the same requests in order of time.

#![allow(clippy::unwrap_used)] // helpers are outside of #[test]

use crate::trace_support::{Folder, read, read_all};
use flashwright_block::Request;
use flashwright_workload::trace::{
    DoubtKind, Layout, Order, TimeUnit, TraceInfo, TraceLabel, TraceOptions, TraceReader, convert, detect,
};
use std::fs;
use std::path::Path;

/// A line: its time in us, its device, and what makes it unlike the others.
type Row = (u64, u64, u64);

/// Requests of two devices, 1 ms apart on average, the first at `start`.
fn rows(count: u64, start: u64) -> Vec<Row> {
    (0..count).map(|at| (start + at * 1_000 + at * at % 700, at % 2, at)).collect()
}

fn spc(rows: &[Row]) -> String {
    let line = |&(us, device, at): &Row| {
        format!("{device},{},4096,w,{}.{:06}\n", at * 8 % 4096, us / 1_000_000, us % 1_000_000)
    };
    rows.iter().map(line).collect()
}

fn sorted(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort_by_key(|row| row.0);
    rows
}

fn ordered(order: Order) -> TraceOptions {
    TraceOptions { order: Some(order), ..TraceOptions::default() }
}

struct Case {
    folder: Folder,
    twin: Vec<Request>,
}

impl Case {
    /// Rows as they stand in a file, and the same in order of time.
    fn new(rows: &[Row]) -> (Self, std::path::PathBuf) {
        let folder = Folder::new();
        let twin = read(&folder.file(spc(&sorted(rows.to_vec()))), &TraceOptions::default()).unwrap();
        let path = folder.path("odd.spc");
        fs::write(&path, spc(rows)).unwrap();
        (Case { folder, twin }, path)
    }

    fn is_twin(&self, path: &Path, options: &TraceOptions) -> TraceReader {
        let mut reader = TraceReader::open(path, options).unwrap();
        assert_eq!(read_all(&mut reader).unwrap(), self.twin);
        reader
    }

    fn is_refused(&self, path: &Path, says: &str) {
        let error = read(path, &TraceOptions::default()).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
        assert!(error.contains("Choose --order sort (") && !error.contains('\n'), "{error}");
        let to = self.folder.path("out.fwt");
        assert_eq!(
            convert(path, &to, &TraceOptions::default(), "flashwright", &TraceLabel::default())
                .unwrap_err()
                .to_string(),
            error
        );
        assert!(!to.exists());
        assert_eq!(TraceInfo::of(path, &TraceOptions::default()).unwrap_err().to_string(), error);
        self.is_twin(path, &ordered(Order::Sort));
    }
}

#[test]
fn requests_that_are_a_little_late_are_sorted_without_a_word() {
    let mut rows = rows(20_000, 0);
    rows.chunks_mut(7).for_each(<[Row]>::reverse);
    let (case, path) = Case::new(&rows);
    let reader = case.is_twin(&path, &TraceOptions::default());
    assert!(reader.notes().is_empty() && reader.doubts().is_empty());
    assert!(reader.stats().reordered > 10_000 && reader.stats().out_of_order == 0);
    // In one pass too.
    let overlay = TraceOptions { layout: Layout::Overlay, ..TraceOptions::default() };
    let mut reader = TraceReader::open(&path, &overlay).unwrap();
    assert!(read_all(&mut reader).unwrap().is_sorted_by_key(|request| request.arrival));
    assert_eq!(reader.stats().out_of_order, 0);
}

#[test]
fn stragglers_beyond_the_window_are_sorted() {
    // Each hundredth request of 30,000 stands 6,000 places later: a fifth of the span is not reached.
    let mut rows = rows(120_000, 0);
    for at in (0..100_000).step_by(10_000) {
        let row = rows.remove(at);
        rows.insert(at + 6_000, row);
    }
    let (case, path) = Case::new(&rows);
    let reader = case.is_twin(&path, &TraceOptions::default());
    assert_eq!(reader.notes(), ["10 of 120,000 requests out of order: sorted by time"]);
}

#[test]
fn a_file_by_device_is_merged() {
    let mut rows = rows(400, 3);
    rows.sort_by_key(|row| row.1);
    let (case, path) = Case::new(&rows);
    let reader = case.is_twin(&path, &TraceOptions::default());
    assert!(reader.notes()[0].starts_with("in order by device, not by time: the 2 devices are merged by time"));
    // Overlaid, the devices are known only once the file is read; nothing was handed out before.
    let overlay = TraceOptions { layout: Layout::Overlay, ..TraceOptions::default() };
    let twin = case.folder.file(spc(&sorted(rows)));
    assert_eq!(read(&path, &overlay).unwrap(), read(&twin, &overlay).unwrap());
}

#[test]
fn a_clock_of_its_own_is_one_clock() {
    // From the year 2020 on, sorted by address.
    let mut rows = rows(400, 1_577_808_000_000_000);
    rows.sort_by_key(|row| row.2 * 7919 % 400);
    let (case, path) = Case::new(&rows);
    case.is_twin(&path, &TraceOptions::default());
}

#[test]
fn recordings_one_after_the_other_are_the_users_choice() {
    let all = rows(400, 5);
    let (even, odd): (Vec<Row>, Vec<Row>) = all.iter().copied().partition(|row| row.2 / 2 % 2 == 0);
    let (case, path) = Case::new(&[even.clone(), odd.clone()].concat());
    case.is_refused(
        &path,
        "the times of 198 of 400 requests go back, first at line 201 from 397 ms to 2.00 ms: the clock starts again once, \
         as in 2 recordings one after the other",
    );
    // The second begins a mean gap after the end of the first.
    let mut reader = TraceReader::open(&path, &ordered(Order::Concatenate)).unwrap();
    let found = read_all(&mut reader).unwrap();
    let arrivals: Vec<u64> = found.iter().map(|request| request.arrival.0).collect();
    let of = |rows: &[Row]| -> Vec<u64> { rows.iter().map(|row| (row.0 - rows[0].0) * 1_000).collect() };
    let first = of(&even);
    let base = first[199] + first[199] / 199;
    assert_eq!(arrivals, [first, of(&odd).iter().map(|time| base + time).collect()].concat());
    assert_eq!(reader.notes(), ["2 recordings, played one after the other"]);
    // As they stand, half arrives at one instant, and a warning says so.
    let mut reader = TraceReader::open(&path, &ordered(Order::AsIs)).unwrap();
    let found = read_all(&mut reader).unwrap();
    assert!(found[200..].iter().all(|request| request.arrival >= found[199].arrival));
    assert_eq!((reader.doubts().len(), reader.doubts()[0].kind), (1, DoubtKind::Order));
    assert!(reader.doubts()[0].text.starts_with("198 of 400 requests have times before"));
}

#[test]
fn three_recordings_of_unlike_lengths() {
    let parts = [rows(500, 0), rows(30, 9), rows(200, 4)];
    let (case, path) = Case::new(&parts.concat());
    case.is_refused(&path, "the clock starts again twice, as in 3 recordings");
    let found = read(&path, &ordered(Order::Concatenate)).unwrap();
    assert!(found.is_sorted_by_key(|request| request.arrival));
    let span: u64 = parts.iter().map(|part| (part[part.len() - 1].0 - part[0].0) * 1_000).sum();
    let last = found[729].arrival.0;
    assert!(last > span && last < span + 3_000_000, "{last} of {span}");
}

#[test]
fn a_short_recording_before_a_long_one_is_not_taken_for_requests_in_flight() {
    // 40 ms of 2 s.
    let (case, path) = Case::new(&[rows(41, 0), rows(2_000, 3)].concat());
    case.is_refused(&path, "the clock starts again once, as in 2 recordings");
    assert_eq!(read(&path, &ordered(Order::Concatenate)).unwrap().len(), 2_041);
}

#[test]
fn texts_of_blkparse_are_sorted_unless_the_clock_starts_again() {
    let line =
        |&(us, _, at): &Row| format!("8,0 0 {at} {}.{:06} 7 Q W {} + 8 [x]\n", us / 1_000_000, us % 1_000_000, at * 8);
    let text = |rows: &[Row]| -> String { rows.iter().map(line).collect() };
    let folder = Folder::new();
    let rows = rows(300, 4);
    let twin = read(&folder.file(text(&rows)), &TraceOptions::default()).unwrap();
    let mut by_address = rows.clone();
    by_address.sort_by_key(|row| row.2 * 7919 % 300);
    assert_eq!(read(&folder.file(text(&by_address)), &TraceOptions::default()).unwrap(), twin);
    let twice = [text(&rows), text(&rows)];
    for between in ["", "CPU0 (8,0):\n Reads Queued: 0\n"] {
        let error = read(&folder.file(twice.join(between)), &TraceOptions::default()).unwrap_err().to_string();
        assert!(error.contains("as in 2 recordings one after the other"), "{error}");
    }
}

#[test]
fn no_order_at_all_is_the_users_choice() {
    let mut reversed = rows(400, 0);
    reversed.reverse();
    // Of one device, or each device would be as unordered.
    reversed.iter_mut().for_each(|row| row.1 = 0);
    let (case, path) = Case::new(&reversed);
    case.is_refused(&path, "they are in no order, up to ");
    let error = read(&path, &ordered(Order::Concatenate)).unwrap_err().to_string();
    assert!(error.contains("nothing to concatenate"), "{error}");
}

#[test]
fn sections_of_a_fio_log_are_jobs_that_ran_at_once() {
    let section = |times: &[u64], at: u64| -> String {
        let lines: String = times.iter().map(|time| format!("{time} f write {} 4096\n", at + time * 4096)).collect();
        format!("fio version 3 iolog\n0 f add\n1 f open\n{lines}{} f close\n", times[times.len() - 1])
    };
    let (first, second) = (vec![300, 900, 5_000, 9_000], vec![350, 2_000, 4_000, 9_500]);
    let folder = Folder::new();
    let path = folder.file(section(&first, 0) + &section(&second, 1 << 30));
    let mut reader = TraceReader::open(&path, &TraceOptions::default()).unwrap();
    let arrivals: Vec<u64> = read_all(&mut reader).unwrap().iter().map(|request| request.arrival.0 / 1_000).collect();
    assert_eq!(arrivals, [0, 50, 600, 1_700, 3_700, 4_700, 8_700, 9_200]);
    assert!(reader.notes()[0].starts_with("2 sections, each with times from the start: merged by time"));
    // Sections are borders however short they are.
    let found = read(&path, &ordered(Order::Concatenate)).unwrap();
    let arrivals: Vec<u64> = found.iter().map(|request| request.arrival.0 / 1_000).collect();
    assert_eq!(arrivals, [0, 600, 4_700, 8_700, 11_600, 13_250, 15_250, 20_750]);
}

#[test]
fn what_was_done_stays_in_a_converted_trace() {
    let mut rows = rows(400, 0);
    rows.sort_by_key(|row| row.1);
    let (case, path) = Case::new(&rows);
    let to = case.folder.path("out.fwt");
    let label = TraceLabel { note: "mine".to_owned(), ..TraceLabel::default() };
    let done = convert(&path, &to, &TraceOptions::default(), "flashwright", &label).unwrap();
    assert_eq!(done.notes.len(), 1);
    let reader = case.is_twin(&to, &TraceOptions::default());
    assert_eq!(reader.note(), format!("mine; {}", done.notes[0]));
    assert!(reader.notes().is_empty());
}

#[test]
fn times_in_another_unit() {
    // What a second-format holds where the times are in us: an hour for 400 ms.
    let rows = rows(400, 3);
    let text: String = rows.iter().map(|row| format!("{},{},8,1,7\n", row.0, row.2 * 8)).collect();
    let folder = Folder::new();
    let path = folder.file(text);
    let error = detect(&path).err().unwrap().to_string();
    assert!(error.contains("its columns are those of tencent ("), "{error}");
    assert!(error.contains("--time-unit us (399 ms) or ms (399 s)"), "{error}");
    let options = TraceOptions { format: Some("tencent".to_owned()), ..TraceOptions::default() };
    let reader = TraceReader::open(&path, &options).unwrap();
    assert_eq!((reader.doubts().len(), reader.doubts()[0].kind), (1, DoubtKind::Content));
    let options = TraceOptions { time_unit: Some(TimeUnit::Us), ..options };
    let mut reader = TraceReader::open(&path, &options).unwrap();
    assert!(reader.doubts().is_empty());
    assert_eq!(read_all(&mut reader).unwrap()[399].arrival.0, (rows[399].0 - rows[0].0) * 1_000);
    // A unit makes no sense where the file states its own.
    let to = folder.path("out.fwt");
    convert(&path, &to, &options, "flashwright", &TraceLabel::default()).unwrap();
    let error = read(&to, &TraceOptions { time_unit: Some(TimeUnit::Us), ..TraceOptions::default() }).unwrap_err();
    assert!(error.to_string().contains("whose times have a unit of their own"), "{error}");
}

#[test]
fn sizes_in_another_unit() {
    let folder = Folder::new();
    let lines = |line: &dyn Fn(u64) -> String| folder.file((0..100).map(line).collect::<String>());
    let refused = |path: &Path, says: &str| {
        let error = detect(path).err().unwrap().to_string();
        assert!(error.contains(says), "{error}");
        assert!(error.contains("--columns to say what each column is; --format "), "{error}");
    };
    let scattered = |at: u64| at * 7919 % 4000;
    let sectors = |at: u64| [8, 16, 32][at as usize % 3];
    let no_size = "no size is a multiple of 512 bytes: the sizes look like sectors";
    refused(&lines(&|at| format!("0,{},{},W,{}.5\n", scattered(at), sectors(at), at)), no_size);
    refused(&lines(&|at| format!("0,W,{},{},{}\n", scattered(at) * 8 + 8, sectors(at), at * 1000)), no_size);
    let bytes = |at: u64| format!("{},{},{},1,5\n", 1_538_323_200 + at, scattered(at) * 4096, 4096 * (1 + at % 2));
    refused(&lines(&bytes), "all sizes are multiples of 512, up to 4.00 MiB if they were sectors");
    // As published: nothing to say.
    let good = |at: u64| format!("{},{},{},1,{}\n", 1_538_323_200 + at / 8, scattered(at) * 8, sectors(at), at % 5);
    let path = lines(&good);
    assert_eq!(detect(&path).unwrap().name(), "tencent");
    assert!(TraceReader::open(&path, &TraceOptions::default()).unwrap().doubts().is_empty());
}
