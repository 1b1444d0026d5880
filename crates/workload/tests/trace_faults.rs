//! Errors of a file are reported with the place and a remedy; nothing panics, nothing is silently empty.

#![allow(clippy::unwrap_used)] // helpers are outside of #[test]

use crate::trace_support::{Folder, insist, read, read_all, read_text};
use flashwright_block::RequestSource;
use flashwright_workload::trace::{
    DeviceFilter, Event, Layout, Order, TraceError, TraceInfo, TraceLabel, TraceOptions, TraceReader, convert, detect,
    formats,
};
use proptest::prelude::*;
use std::fs;
use std::io::Write;

const GOOD: &str = "0,100,512,r,0.0\n0,101,512,w,0.5\n0,102,512,r,1.0\n";

fn overlay() -> TraceOptions {
    TraceOptions { layout: Layout::Overlay, ..TraceOptions::default() }
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_first_line() {
    let marked = format!("\u{feff}{GOOD}");
    let want = read_text(GOOD, &TraceOptions::default()).unwrap();
    assert_eq!(read_text(&marked, &TraceOptions::default()).unwrap(), want);
    let folder = Folder::new();
    for (name, content) in compressed(marked.as_bytes()) {
        assert_eq!(read(&folder.file(&content), &TraceOptions::default()).unwrap(), want, "{name}");
    }
}

#[test]
fn bad_fields_are_named() {
    for (format, text, says) in [
        ("spc", "0,1,512,r,0\n0,x1,512,r,1\n", ":2: field LBA: found \"x1\", expected a whole number of 512 B sectors"),
        ("spc", "0,1,512,r,0\n0,1,512,q,1\n", ":2: field opcode: found \"q\", expected R or W"),
        ("spc", "0,1,512", ":1: field opcode: found \"\", expected one more field; the line ends too early"),
        ("spc", "0,1,512,r,1.2.3\n", ":1: field timestamp: found \"1.2.3\", expected a decimal number"),
        (
            "spc",
            "0,1,99999999999999,r,1\n",
            ":1: field size: found \"99999999999999\", expected a number of bytes below 2 TiB",
        ),
        ("msr", "99999999999999999999,h,0,Read,0,512,1\n", ":1: field Timestamp: found"),
        ("msr", "1,h,0,Raed,0,512,1\n", ":1: field Type: found \"Raed\", expected Read or Write"),
        ("etw", "BeginHeader\nDiskRead, TimeStamp\nEndHeader\n", ":2: field ByteOffset: found"),
        ("etw", "DiskRead, 1, p (1), 0\n", ":1: field event: found"),
        ("blkparse", "8,0 0 1 0.0 1 Q W 8 8\n", ":1: field +: found \"8\", expected a plus sign"),
        (
            "blkparse",
            "hello\n",
            ":1: field device: found \"hello\", expected an event line that begins with major,minor",
        ),
        ("fio", "fio version 9 iolog\n", ":1: field header: found \"fio version 9 iolog\""),
        ("fio", "fio version 2 iolog\nf jump 0 0\n", ":2: field action: found \"jump\""),
        ("disksim", "1.0 0 8 8\n", ":1: field operation: found \"\""),
        ("mqsim", "1.5 0 8 8 1\n", ":1: field time: found \"1.5\", expected a whole number"),
        ("tencent", "1,2,3,4,5\n", ":1: field IOType: found \"4\", expected 0 (read) or 1 (write)"),
        ("alibaba", "1,r,3,4,5\n", ":1: field opcode: found \"r\", expected R or W"),
        ("blktrace", "nothing of that kind, really\n", "no blktrace magic number"),
        ("flashwright", "nothing of that kind, really\n", "not a .fwt file"),
    ] {
        let error = read_text(text, &insist(format)).unwrap_err().to_string();
        assert!(error.contains(says), "{format}: {error}");
    }
}

#[test]
fn what_stands_before_a_fault_is_handed_out_and_the_fault_stays() {
    let folder = Folder::new();
    let path = folder.file(format!("{GOOD}0,103,512,x,2.0\n{GOOD}"));
    let mut reader = TraceReader::open(&path, &overlay()).unwrap();
    let mut batch = Vec::new();
    assert_eq!(reader.fill(&mut batch, 100).unwrap(), 3);
    for _ in 0..2 {
        let error = reader.fill(&mut batch, 100).unwrap_err().to_string();
        assert!(error.ends_with(":4: field opcode: found \"x\", expected R or W"), "{error}");
    }
    assert_eq!(batch.len(), 3);
    // The first pass over all devices finds the same.
    assert!(TraceReader::open(&path, &TraceOptions::default()).is_err());
}

#[test]
fn bad_lines_are_skipped_and_counted_when_asked() {
    let folder = Folder::new();
    let path = folder.file(format!("{GOOD}\n0,103,512,x,2.0\nnonsense\n{GOOD}"));
    let options = TraceOptions { skip_bad_lines: true, order: Some(Order::AsIs), ..TraceOptions::default() };
    let mut reader = TraceReader::open(&path, &options).unwrap();
    assert_eq!(read_all(&mut reader).unwrap().len(), 6);
    let stats = reader.stats();
    assert_eq!((stats.bad_lines, stats.first_bad_lines.len()), (2, 2));
    assert!(stats.first_bad_lines[0].ends_with(":5: field opcode: found \"x\", expected R or W"));
    assert_eq!(TraceInfo::of(&path, &options).unwrap().stats.bad_lines, 2);
}

fn compressed(content: &[u8]) -> [(&'static str, Vec<u8>); 4] {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(content).unwrap();
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
    xz.write_all(content).unwrap();
    let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bzip2.write_all(content).unwrap();
    [
        ("bzip2", bzip2.finish().unwrap()),
        ("gzip", gzip.finish().unwrap()),
        ("zstd", zstd::stream::encode_all(content, 1).unwrap()),
        ("xz", xz.finish().unwrap()),
    ]
}

#[test]
fn compression_is_seen_through_and_truncation_is_noticed() {
    let text: String =
        (0..20_000u64).map(|n| format!("0,{},512,r,{n}.5\n", n.wrapping_mul(2_654_435_761) % 999_983)).collect();
    let folder = Folder::new();
    let plain = read(&folder.file(&text), &TraceOptions::default()).unwrap();
    for (name, content) in compressed(text.as_bytes()) {
        assert_eq!(read(&folder.file(&content), &TraceOptions::default()).unwrap(), plain, "{name}");
        let twice = [content.as_slice(), content.as_slice()].concat();
        assert_eq!(
            read(&folder.file(twice), &TraceOptions { order: Some(Order::AsIs), ..overlay() }).unwrap().len(),
            2 * plain.len(),
            "{name}, two members"
        );

        let cut = &content[..content.len() * 2 / 3];
        let error = read(&folder.file(cut), &overlay()).unwrap_err();
        assert!(matches!(error, TraceError::Truncated { .. }), "{name}: {error}");
        let mut damaged = content.clone();
        let middle = damaged.len() / 2;
        damaged[middle..middle + 8].fill(0x5a);
        assert!(read(&folder.file(damaged), &overlay()).is_err(), "{name}");
    }
}

#[test]
fn a_text_that_begins_as_a_bzip2_file_does_is_a_text() {
    let folder = Folder::new();
    let error = detect(folder.file("BZh9 is no compression here\n")).unwrap_err().to_string();
    assert!(error.contains("it begins with \"BZh9 is no"), "{error}");
    // Cut within the magic number of its first block.
    let (_, whole) = &compressed(GOOD.as_bytes())[0];
    let error = detect(folder.file(&whole[..8])).unwrap_err().to_string();
    assert!(error.contains("the file is cut short"), "{error}");
}

#[test]
fn files_that_are_no_traces() {
    let folder = Folder::new();
    let open = |content: &[u8]| detect(folder.file(content)).unwrap_err();
    assert!(matches!(open(b""), TraceError::Empty { .. }));
    for (_, empty) in compressed(b"") {
        assert!(matches!(open(&empty), TraceError::Empty { .. }));
    }
    let error = open(b"Dear reader,\nthis is a letter.\n").to_string();
    assert!(error.contains("in no known format (tried flashwright, blktrace"), "{error}");
    assert!(error.contains("it begins with \"Dear reader,"), "{error}");
    assert!(matches!(detect(folder.path("")), Err(TraceError::Directory { .. })));
    let error = detect(folder.path("absent")).unwrap_err().to_string();
    assert!(error.contains("absent: cannot open the trace"), "{error}");
}

#[test]
fn look_alikes_must_be_named() {
    let folder = Folder::new();
    let could_be = |content: &str| detect(folder.file(content)).unwrap_err().to_string();
    let error = could_be("26.214000 0 303574 1 0\n26.214000 0 240840 1 0\n");
    let means = "could be disksim (first 2 requests: 0 s, 1.00 KiB) or flashsim (first 2 requests: 0 s, 8.00 KiB): choose one \
                 with --format";
    assert!(error.ends_with(means), "{error}");
    let error = could_be("1 0 3 1 0\n2 0 5 1 0\n");
    assert!(error.contains("or mqsim (first 2 requests: 1 ns, 1.00 KiB)"), "{error}");
    assert!(error.ends_with("choose one with --format"), "{error}");
}

#[test]
fn nothing_matched_is_an_error() {
    let folder = Folder::new();
    let path = folder.file(GOOD);
    let devices = DeviceFilter::Only(vec!["7".to_owned()]);
    let error = read(&path, &TraceOptions { devices: devices.clone(), ..TraceOptions::default() }).unwrap_err();
    assert!(error.to_string().ends_with("the trace has no device \"7\"; it has 0"), "{error}");
    let error = read(&path, &TraceOptions { devices, ..overlay() }).unwrap_err();
    assert!(error.to_string().ends_with("no device matched the filter; the trace has 0"), "{error}");
    let issued = "8,0 0 1 0.0 1 D W 8 + 8 [x]\n8,0 0 2 0.1 1 C W 8 + 8 [0]\n";
    let queued = TraceOptions { events: Some(Event::Queue), ..insist("blkparse") };
    let error = read_text(issued, &queued).unwrap_err().to_string();
    assert!(error.contains("no request in the whole trace: read as blkparse: 2 other events"), "{error}");
    assert!(
        error.ends_with("events: 1 C (complete), 1 D (issue) and no Q (queue); --events issue takes the D"),
        "{error}"
    );
    let options = TraceOptions { skip_bad_lines: true, ..insist("spc") };
    let error = read_text("a\nb\n", &options).unwrap_err();
    assert!(error.to_string().contains("2 bad lines"), "{error}");
}

#[test]
fn a_cut_or_changed_fwt_is_never_taken_for_a_whole_one() {
    let folder = Folder::new();
    let fwt = folder.path("out.fwt");
    convert(folder.file(GOOD), &fwt, &TraceOptions::default(), "flashwright", &TraceLabel::default()).unwrap();
    let whole = fs::read(&fwt).unwrap();
    for length in 0..whole.len() {
        assert!(read(&folder.file(&whole[..length]), &insist("flashwright")).is_err(), "cut to {length}");
    }
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 0x41;
        assert!(read(&folder.file(changed), &TraceOptions::default()).is_err(), "changed at {at}");
    }
    let longer = [whole.as_slice(), b"x"].concat();
    assert!(read(&folder.file(longer), &insist("flashwright")).is_err());
}

/// Each chunk is whole by itself; that it stands where it does is in the checksum too.
#[test]
fn chunks_of_a_fwt_that_changed_places_are_refused() {
    let folder = Folder::new();
    let fwt = folder.path("out.fwt");
    // Three chunks alike but for their times, so that the first two are of about one size.
    let text: String = (0..150_000).map(|n| format!("0,{},512,r,{n}\n", n % 7)).collect();
    convert(folder.file(text), &fwt, &TraceOptions::default(), "flashwright", &TraceLabel::default()).unwrap();
    let whole = fs::read(&fwt).unwrap();
    let number = |at: usize| u32::from_le_bytes(whole[at..at + 4].try_into().unwrap()) as usize;
    let first = 28 + number(12);
    let second = first + 16 + number(first + 4);
    let third = second + 16 + number(second + 4);
    let swapped = [&whole[..first], &whole[second..third], &whole[first..second], &whole[third..]].concat();
    let error = read(&folder.file(swapped), &TraceOptions::default()).unwrap_err().to_string();
    assert!(error.contains("checksum does not match: damaged"), "{error}");
}

/// As the first version of the format was written, of the three requests of `TWO_DEVICES`.
const VERSION_1: &[u8] = include_bytes!("trace_support/version-1.fwt");
const TWO_DEVICES: &str = "0,100,4096,w,0.0\n0,200,8192,r,0.5\n1,7,512,w,1.25\n";

#[test]
fn the_first_version_of_fwt_is_still_read() {
    let folder = Folder::new();
    let found = read(&folder.file(VERSION_1), &TraceOptions::default()).unwrap();
    assert_eq!(found, read_text(TWO_DEVICES, &insist("spc")).unwrap());
    for length in 0..VERSION_1.len() {
        assert!(read(&folder.file(&VERSION_1[..length]), &insist("flashwright")).is_err(), "cut to {length}");
    }
}

#[test]
fn another_version_of_fwt_is_told_from_a_damaged_one() {
    let folder = Folder::new();
    let fwt = folder.path("out.fwt");
    convert(folder.file(GOOD), &fwt, &TraceOptions::default(), "flashwright", &TraceLabel::default()).unwrap();
    let mut newer = fs::read(&fwt).unwrap();
    newer[8] = 3;
    let said = |bytes: &[u8]| read(&folder.file(bytes), &TraceOptions::default()).unwrap_err().to_string();
    assert!(said(&newer).contains("checksum does not match: damaged"));
    let header = 28 + u32::from_le_bytes(newer[12..16].try_into().unwrap()) as usize;
    let crc = crc32fast::hash(&[&newer[28..header], &newer[..24]].concat());
    newer[24..28].copy_from_slice(&crc.to_le_bytes());
    assert!(
        said(&newer).contains("found version 3, expected 1 or 2: a newer Flashwright wrote it"),
        "{}",
        said(&newer)
    );
}

/// Lines that are nearly right, so that the parsers get past their first field.
fn nearly_text() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        any::<u64>().prop_map(|number| number.to_string()),
        (0u32..100).prop_map(|number| number.to_string()),
        any::<u32>().prop_map(|number| format!("{}.{number}", number / 7)),
        any::<u32>().prop_map(|number| format!("{number:#x}")),
        prop::sample::select(vec![
            "r",
            "W",
            "Read",
            "Write",
            "1",
            "0",
            "28",
            "f",
            "read",
            "wait",
            "trim",
            "sync",
            "Q",
            "FWFS",
            "D",
            "+",
            "8,0",
            "[x]",
            "DiskRead",
            "DiskWrite",
            "BeginHeader",
            "EndHeader",
            "TimeStamp",
            "ByteOffset",
            "IOSize",
            "ElapsedTime",
            "DiskNum",
            "p (4)",
            "fio version 2 iolog",
            "fio version 3 iolog",
            "",
        ])
        .prop_map(str::to_owned),
    ];
    let line = (prop::collection::vec(word, 0..12), prop::sample::select(vec![",", " ", ", ", "\t"]))
        .prop_map(|(words, separator)| words.join(separator));
    prop::collection::vec(line, 0..12).prop_map(|lines| lines.join("\n").into_bytes())
}

/// Bytes that begin as a binary trace does.
fn nearly_binary() -> impl Strategy<Value = Vec<u8>> {
    let heads = vec![&b"\x89FWT\r\n\x1a\n\x01\0\0\0"[..], b"\x07tae", b"eat\x07", b"\x28\xb5\x2f\xfd", b"\x1f\x8b\x08"];
    (prop::sample::select(heads), prop::collection::vec(any::<u8>(), 0..400))
        .prop_map(|(head, rest)| [head, rest.as_slice()].concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(192) })]

    #[test]
    fn no_reader_panics(
        content in prop_oneof![prop::collection::vec(any::<u8>(), 0..600), nearly_text(), nearly_binary()],
        skip_bad_lines: bool,
        overlay: bool,
    ) {
        let folder = Folder::new();
        let path = folder.file(&content);
        let layout = if overlay { Layout::Overlay } else { Layout::Concatenate };
        let _ = detect(&path);
        for format in formats() {
            let format = Some(format.name().to_owned());
            let options = TraceOptions { format, skip_bad_lines, layout, ..TraceOptions::default() };
            if let Ok(requests) = read(&path, &options) {
                prop_assert!(!requests.is_empty());
                prop_assert!(requests.is_sorted_by_key(|request| request.arrival));
            }
        }
    }
}
