//! Excerpts of published traces: requests, reads and devices as counted with standard text tools, means and spans as
//! stated where the excerpts were collected.
//!
//! The files are not part of this repository. They are looked for in `FLASHWRIGHT_TRACES`, else beside the
//! repository in `shared/traces`; a test whose file is absent is skipped and says so.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers are outside of #[test]

use crate::trace_support::insist;
use flashwright_testing::{Lacks, skip};
use flashwright_workload::trace::{TraceInfo, TraceOptions, detect};
use std::path::{Path, PathBuf};

fn find(name: &str) -> Option<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder =
        std::env::var_os("FLASHWRIGHT_TRACES").map_or_else(|| workspace.join("../shared/traces"), PathBuf::from);
    let path = folder.join(name);
    if path.exists() {
        return Some(path);
    }
    skip(Lacks::File(&path));
    None
}

struct Expected {
    file: &'static str,
    format: &'static str,
    /// The format detected from the content; `None` if that is impossible.
    detected: Option<&'static str>,
    requests: u64,
    reads: u64,
    kib_mean: f64,
    span_s: f64,
    devices: usize,
}

fn check(expected: &Expected) {
    let Some(path) = find(expected.file) else { return };
    match (expected.detected, detect(&path)) {
        (Some(name), found) => assert_eq!(found.unwrap().name(), name),
        (None, found) => {
            let error = found.unwrap_err().to_string();
            assert!(error.contains("could be disksim (first 400 requests: "), "{error}");
            assert!(error.contains(") or flashsim (") && error.ends_with("choose one with --format"), "{error}");
        }
    }
    let info = TraceInfo::of(&path, &insist(expected.format)).unwrap();
    assert_eq!(info.reads + info.writes, expected.requests);
    assert_eq!(info.requests, expected.requests);
    assert_eq!(info.reads, expected.reads);
    // The stated means and spans are rounded to a digit of their own.
    assert!((info.bytes_mean / 1024.0 - expected.kib_mean).abs() < 0.06, "{}", info.bytes_mean / 1024.0);
    let span_s = info.span_ns as f64 / 1e9;
    assert!((span_s - expected.span_s).abs() < 0.01 * expected.span_s + 0.06, "{span_s}");
    assert_eq!(info.devices.len(), expected.devices);
    assert_eq!(info.devices.iter().map(|device| device.requests).sum::<u64>(), info.requests);
    assert_eq!(info.stats.bad_lines, 0);
}

macro_rules! published {
    ($($test:ident: $file:literal, $format:literal, $detected:expr, $requests:literal, $read:literal, $kib:literal, $span:literal, $devices:literal;)*) => {
        $(#[test]
        fn $test() {
            check(&Expected {
                file: $file,
                format: $format,
                detected: $detected,
                requests: $requests,
                reads: $read,
                kib_mean: $kib,
                span_s: $span,
                devices: $devices,
            });
        })*
    };
}

published! {
    financial1_spc: "financial1-first10k.spc.zst", "spc", Some("spc"), 10_000, 4_077, 5.40, 260.0, 22;
    financial1_flashsim: "financial1-first50k.flashsim.zst", "flashsim", None, 50_000, 29_199, 7.0, 853.0, 1;
    websearch1_flashsim: "websearch1-first50k.flashsim.zst", "flashsim", None, 50_000, 49_990, 15.1, 129.0, 1;
    websearch1_mqsim: "websearch1-small.mqsim.zst", "mqsim", Some("mqsim"), 24_783, 24_779, 15.1, 60.0, 6;
    prxy_0: "prxy_0-first20k.msr.csv.zst", "msr", Some("msr"), 20_000, 336, 2.6, 939.0, 1;
    msr_cut: "msr-cut-rw40_60.bytes.zst", "bytes", Some("bytes"), 10_000, 4_054, 4.8, 86.0, 1;
    msn_disksim: "msn-fs-150k.disksim.zst", "disksim", Some("disksim"), 149_999, 130_483, 17.1, 143.0, 1;
    msn_etw: "msn-fs-sample.etw.csv.zst", "etw", Some("etw"), 926, 759, 11.1, 1.5, 4;
    tpcc: "tpcc-small.mqsim.zst", "mqsim", Some("mqsim"), 6_999, 4_381, 8.3, 0.14, 16;
    hplajw: "hplajw-1week.csv.zst", "hplajw", Some("hplajw"), 44_519, 13_040, 5.8, 604_800.0, 2;
    cloudphysics: "cloudphysics-sample.csv.zst", "cloudphysics", Some("cloudphysics"), 113_872, 46_974, 36.1, 7200.0, 1;
    blktrace: "sample.blktrace.0.zst", "blktrace", Some("blktrace"), 963, 963, 4.0, 0.345, 1;
}

/// 335 MB is the size of the machine's root disk (HP 2200A): the sectors are read at their right size.
#[test]
fn hplajw_fits_its_disk() {
    let Some(path) = find("hplajw-1week.csv.zst") else { return };
    let info = TraceInfo::of(path, &TraceOptions::default()).unwrap();
    let root = &info.devices[0];
    assert!((330_000_000..336_000_000).contains(&(root.sectors * 512)), "{root:?}");
}

/// Pages, pages written, written twice, three times; sequential percent; end in bytes. Counted by a separate script
/// with sets and counters, devices laid out by hand.
#[test]
fn pages_and_sequences() {
    for (file, pages, sequential, end) in [
        ("financial1-first10k.spc.zst", [7_322, 3_734, 3_028, 915], 45.24, 5_888_061_440),
        ("prxy_0-first20k.msr.csv.zst", [2_980, 1_615, 1_009, 701], 69.975, 21_985_604_608),
        ("msn-fs-sample.etw.csv.zst", [2_445, 798, 108, 21], 8.099_352, 400_152_612_864),
    ] {
        let Some(path) = find(file) else { continue };
        let info = TraceInfo::of(path, &TraceOptions::default()).unwrap();
        let found = [info.pages, info.pages_written, info.pages_written_twice, info.pages_written_thrice];
        assert_eq!((found, info.end_byte), (pages, end), "{file}");
        assert!((info.sequential_percent - sequential).abs() < 1e-5, "{file}");
    }
}
