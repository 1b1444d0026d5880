//! Written and read again, a trace is the same, up to what the format can hold; and targets are whole or absent.

#![allow(clippy::unwrap_used)] // helpers are outside of #[test]

use crate::trace_support::{Folder, insist, read, read_all};
use flashwright_block::{Nanos, Request, RequestKind};
use flashwright_workload::trace::{
    DeviceFilter, Layout, Part, TraceError, TraceInfo, TraceLabel, TraceOptions, TraceReader, TraceWriter, convert,
    convert_part, detect, formats,
};
use proptest::prelude::*;
use std::fs;
use std::path::Path;

const KINDS: [RequestKind; 4] = [RequestKind::Read, RequestKind::Write, RequestKind::Trim, RequestKind::Flush];

/// Requests from arrival 0 on, in order, of all kinds.
fn requests() -> impl Strategy<Value = Vec<Request>> {
    let request = (0u64..5_000_000_000, 0u64..1 << 50, 1u32..5000, 0usize..4, any::<(u32, u16, bool)>());
    prop::collection::vec(request, 1..200).prop_map(|rows| {
        let mut arrival = 0;
        let mut made = Vec::new();
        for (gap, first_sector, sectors, kind, (process, stream, fua)) in rows {
            arrival += if made.is_empty() { 0 } else { gap };
            let kind = KINDS[kind];
            let flush = kind == RequestKind::Flush;
            made.push(Request {
                arrival: Nanos(arrival),
                first_sector: if flush { 0 } else { first_sector },
                sectors: if flush { 0 } else { sectors },
                process,
                stream,
                kind,
                fua: fua && kind == RequestKind::Write,
                ..Request::default()
            });
        }
        made
    })
}

/// What is left of `requests` in a format with this time step that keeps these kinds and nothing else.
fn left(requests: &[Request], step: u64, kinds: &[RequestKind]) -> Vec<Request> {
    let mut left: Vec<_> = requests.iter().filter(|request| kinds.contains(&request.kind)).copied().collect();
    let zero = left.first().map_or(0, |request| request.arrival.0 / step * step);
    for request in &mut left {
        request.arrival = Nanos(request.arrival.0 / step * step - zero);
        (request.process, request.stream, request.fua) = (0, 0, false);
    }
    left
}

fn write(path: &Path, format: &str, requests: &[Request]) -> Option<flashwright_workload::trace::ConvertReport> {
    let mut writer = TraceWriter::create(path, format, &TraceLabel::default()).unwrap();
    requests.iter().for_each(|request| writer.write(request).unwrap());
    writer.finish().ok()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn what_is_written_is_read(requests in requests()) {
        let folder = Folder::new();
        let data = &KINDS[..2];
        for (format, step, kinds) in [("spc", 1, data), ("msr", 100, data), ("disksim", 1, data), ("fio", 1_000, &KINDS[..])] {
            let path = folder.path(format);
            let expected = left(&requests, step, kinds);
            match write(&path, format, &requests) {
                Some(report) => {
                    prop_assert_eq!(read(&path, &insist(format)).unwrap(), expected.clone(), "{}", format);
                    prop_assert_eq!(report.written as usize, expected.len());
                    let dropped = report.dropped_trims + report.dropped_flushes;
                    prop_assert_eq!((report.written + dropped) as usize, requests.len());
                }
                None => prop_assert!(expected.is_empty()),
            }
        }
        let path = folder.path("fwt");
        let report = write(&path, "flashwright", &requests).unwrap();
        prop_assert_eq!((report.lost_fua, report.lost_process, report.rounded_times), (0, 0, 0));
        prop_assert_eq!(detect(&path).unwrap().name(), "flashwright");
        prop_assert_eq!(read(&path, &TraceOptions::default()).unwrap(), requests);
    }
}

#[test]
fn many_chunks() {
    let requests: Vec<_> = (0..200_000u64)
        .map(|n| Request {
            arrival: Nanos(n * n),
            first_sector: n * 7919 % 1_000_003,
            sectors: 8,
            ..Request::default()
        })
        .collect();
    let folder = Folder::new();
    let path = folder.path("many.fwt");
    write(&path, "flashwright", &requests).unwrap();
    let mut reader = TraceReader::open(&path, &TraceOptions::default()).unwrap();
    assert_eq!(flashwright_block::RequestSource::remaining(&reader), Some(200_000));
    assert_eq!(read_all(&mut reader).unwrap(), requests);
    let bytes = fs::metadata(&path).unwrap().len();
    assert!(bytes < 200_000 * 6, "{bytes} B for 200,000 requests of 24 B in memory");
}

const TWO_DEVICES: &str = "0,100,512,r,0.0\n5,7,4096,w,0.25\n0,101,512,w,0.5\n";

#[test]
fn a_conversion_gives_requests_the_handle_of_their_address() {
    let folder = Folder::new();
    let (source, fwt) = (folder.file("0,100,512,r,0.0\n0,99,512,w,0.25\n0,200,4096,w,0.5\n"), folder.path("a.fwt"));
    let with = |skip, handles: &[(u64, u16)]| {
        let (options, label) = (TraceOptions::default(), TraceLabel::default());
        convert_part(&source, &fwt, &options, "flashwright", &label, &Part { skip, handles: handles.to_vec() })?;
        Ok::<_, TraceError>(read(&fwt, &options).unwrap().iter().map(|request| request.stream).collect::<Vec<_>>())
    };
    assert_eq!(with(0, &[]).unwrap(), [0, 0, 0]);
    assert_eq!(with(0, &[(100, 3), (150, 0), (200, 7)]).unwrap(), [3, 0, 7]);
    assert_eq!(with(1, &[(100, 3)]).unwrap(), [0, 3]);
    assert!(with(3, &[]).unwrap_err().to_string().contains("nothing to write"));
    let error = with(0, &[(100, 3), (100, 4)]).unwrap_err().to_string();
    assert!(error.contains("handles: found sector 100 before 100, expected first sectors in rising order"), "{error}");
}

#[test]
fn a_conversion_keeps_devices_label_and_origin() {
    let folder = Folder::new();
    let (source, fwt, again) = (folder.file(TWO_DEVICES), folder.path("a.fwt"), folder.path("b.fwt"));
    let label =
        TraceLabel { label: "recorded: by hand\nhere".to_owned(), note: "a \\ b".to_owned(), ..TraceLabel::default() };
    let report = convert(&source, &fwt, &TraceOptions::default(), "flashwright", &label).unwrap();
    assert_eq!((report.written, report.read.requests), (3, 3));
    convert(&fwt, &again, &TraceOptions::default(), "flashwright", &TraceLabel::default()).unwrap();
    let expected = read(&source, &TraceOptions::default()).unwrap();
    for path in [&fwt, &again] {
        let reader = TraceReader::open(path, &TraceOptions::default()).unwrap();
        assert_eq!(
            (reader.label(), reader.note(), reader.origin()),
            (label.label.as_str(), label.note.as_str(), "spc")
        );
        assert_eq!(read(path, &TraceOptions::default()).unwrap(), expected);
        let (ours, theirs) =
            (TraceInfo::of(path, &TraceOptions::default()), TraceInfo::of(&source, &TraceOptions::default()));
        let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
        assert_eq!(ours.devices, theirs.devices);
        assert!((ours.sequential_percent - theirs.sequential_percent).abs() < 1e-9);
    }
    // Devices can still be distinguished, and overlaid.
    let only = TraceOptions { devices: DeviceFilter::Only(vec!["5".to_owned()]), ..TraceOptions::default() };
    assert_eq!(read(&fwt, &only).unwrap(), read(&source, &only).unwrap());
    let overlay = TraceOptions { layout: Layout::Overlay, ..TraceOptions::default() };
    assert_eq!(read(&fwt, &overlay).unwrap(), read(&source, &overlay).unwrap());
    convert(&source, &fwt, &overlay, "flashwright", &label).unwrap();
    assert_eq!(read(&fwt, &TraceOptions::default()).unwrap(), read(&source, &overlay).unwrap());
}

#[test]
fn a_failed_conversion_leaves_the_target_alone() {
    let folder = Folder::new();
    let target = folder.path("target");
    fs::write(&target, "precious").unwrap();
    let source = folder.file(format!("{TWO_DEVICES}0,1,512,x,1\n"));
    let overlay = TraceOptions { layout: Layout::Overlay, ..TraceOptions::default() };
    assert!(convert(&source, &target, &overlay, "msr", &TraceLabel::default()).is_err());
    assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
    let mut left: Vec<_> = fs::read_dir(folder.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["target", "trace"]);

    let error = convert(&source, &target, &overlay, "etw", &TraceLabel::default()).unwrap_err().to_string();
    assert!(
        error.contains("etw can be read but not written; writable: flashwright, fio, spc, msr, disksim"),
        "{error}"
    );
    assert!(formats().iter().filter(|format| format.writable()).count() == 5);
}

/// A device keeps its place, and a link stays a link to the file that is replaced.
#[test]
#[cfg(unix)]
fn only_plain_files_are_replaced() {
    use std::os::unix::fs::FileTypeExt;
    let folder = Folder::new();
    let source = folder.file("0,0,512,w,0\n");
    let to =
        |target: &std::path::Path| convert(&source, target, &TraceOptions::default(), "spc", &TraceLabel::default());
    let error = to(std::path::Path::new("/dev/null")).unwrap_err().to_string();
    assert!(error.contains("/dev/null") && error.contains("not a regular file"), "{error}");
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    let (file, link) = (folder.path("file"), folder.path("link"));
    fs::write(&file, "old").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    to(link.as_ref()).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&file).unwrap(), fs::read_to_string(&link).unwrap());
    assert!(fs::read_to_string(&file).unwrap().starts_with("0,0,512,"));
}

#[test]
fn what_a_format_cannot_hold_is_counted() {
    let folder = Folder::new();
    let source =
        folder.file("fio version 2 iolog\nf write 0 512\nf wait 1500 0\nf trim 0 512\nf sync 0 0\nf read 0 512\n");
    let report = convert(&source, folder.path("a"), &TraceOptions::default(), "spc", &TraceLabel::default()).unwrap();
    assert_eq!((report.written, report.dropped_trims, report.dropped_flushes), (2, 1, 1));
    // 1,500 ns are cut down to 1 us.
    let source = folder.file("0,0,512,w,0\n0,0,512,r,0.0000015\n");
    let report = convert(&source, folder.path("a"), &TraceOptions::default(), "fio", &TraceLabel::default()).unwrap();
    assert_eq!((report.written, report.rounded_times), (2, 1));
    let mut writer = TraceWriter::create(folder.path("b"), "spc", &TraceLabel::default()).unwrap();
    let trim = Request { kind: RequestKind::Trim, sectors: 1, ..Request::default() };
    writer.write(&trim).unwrap();
    assert!(writer.finish().unwrap_err().to_string().contains("nothing to write (1 trims"));
}
