//! Programs above a file system as workloads: their keys, their messages, and that they play.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

use flashwright_block::{Completion, Nanos, Next, Seed, Tag};
use flashwright_workload::generate::{Pace, Target, WorkloadSpec, catalogue};

const DRIVE: Target = Target { logical_sectors: 1 << 21, page_sectors: 8 }; // 1 GiB

fn fault(text: &str) -> String {
    text.parse::<WorkloadSpec>().unwrap_err().to_string()
}

#[test]
fn keys_are_read_and_written() {
    for (text, canonical) in [
        ("postmark", "postmark"),
        (
            "postmark: files=200, size=8MiB, transactions=3000, seed=712",
            "postmark:files=200,transactions=3000,size=8MiB,seed=712",
        ),
        (
            "postmark:size-low=500B,layout=extents,sync-at-end=no",
            "postmark:size-low=500B,layout=extents,sync-at-end=no",
        ),
        ("filebench-oltp:threads=200,duration=90s,dirty=20%", "filebench-oltp:duration=90s,dirty=0.2"),
        (
            "filebench-webserver:size=16MiB,threads=16,prepare=placed",
            "filebench-webserver:size=16MiB,threads=16,prepare=placed",
        ),
        ("filebench-varmail:preallocated=0.5", "filebench-varmail:preallocated=0.5"),
    ] {
        let spec: WorkloadSpec = text.parse().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(spec.to_string(), canonical);
        assert_eq!(canonical.parse::<WorkloadSpec>().unwrap(), spec);
        assert_eq!(spec.pace(), Pace::Interactive);
    }
}

#[test]
fn what_is_wrong_is_said_in_one_line() {
    for (text, expected) in [
        ("postmark:depth=4", "depth: found an unknown key"),
        ("postmark:size=0", "size: found \"0\", expected a size from 1 B up to 1 TiB, such as 500, 8M or 8MiB"),
        (
            "postmark:size=8MiB,size-low=1B",
            "size: found size with size-low or size-high, expected either size, or size-low and size-high",
        ),
        ("postmark:size-low=2MiB,size-high=1MiB", "size-low: found 2 MiB, expected at most size-high, 1 MiB"),
        ("postmark:bias-read=11", "bias-read: found 11, expected a probability in tenths, 0 to 10"),
        ("postmark:layout=ext4", "layout: found \"ext4\", expected one of ext3, extents"),
        ("postmark:dirty=0.01", "dirty-background: found 0.05 and dirty=0.01"),
        ("postmark:barrier=maybe", "barrier: found \"maybe\", expected one of yes, no"),
        ("filebench-oltp:append=2MiB", "append: found 2 MiB, expected at most 1MiB"),
        ("filebench-fileserver:duration=5", "duration: found \"5\", expected a time with its unit"),
        ("filebench-web:threads=1", "did you mean filebench-webserver?"),
    ] {
        let said = fault(text);
        assert!(said.contains(expected) && !said.contains('\n'), "{text}: {said}");
    }
    let spec: WorkloadSpec = "postmark:files=200,size=8MiB".parse().unwrap();
    let said = spec.source(&DRIVE, Seed(1), None).err().unwrap().to_string();
    assert!(
        said.contains("files: found ") && said.contains("8 MiB on a device of 1 GiB, expected one of at least "),
        "{said}"
    );
    let said = spec.source(&DRIVE, Seed(1), Some(10)).err().unwrap().to_string();
    assert!(said.contains("requests: found 10, expected none"), "{said}");
    let tiny = Target { logical_sectors: 1024, ..DRIVE };
    let said =
        "postmark:files=1,transactions=0".parse::<WorkloadSpec>().unwrap().source(&tiny, Seed(1), None).err().unwrap();
    assert!(!said.to_string().contains('\n'), "{said}");
}

/// Every program plays on a device that takes 1 ms for each request, and reports; its other face refuses.
#[test]
fn programs_play_and_report() {
    let names: Vec<&str> = catalogue().iter().filter(|info| info.interactive).map(|info| info.name).collect();
    assert_eq!(names.len(), 5);
    for name in names {
        let few = if name == "postmark" { "transactions=50" } else { "duration=1s" };
        let spec: WorkloadSpec = format!("{name}:files=40,{few}").parse().unwrap();
        let mut source = spec.source(&DRIVE, Seed(1), None).unwrap();
        assert!(source.fill(&mut Vec::new(), 1).unwrap_err().to_string().contains("reacts to the device"));
        let (mut now, mut tag, mut waiting) = (0u64, 0u64, std::collections::VecDeque::new());
        let program = source.interactive().unwrap();
        loop {
            match program.next(Nanos(now)).unwrap() {
                Next::Submit(request) | Next::Arrived(request) => {
                    assert!(request.end_sector() <= DRIVE.logical_sectors);
                    waiting.push_back((Tag(tag), now + 1_000_000, request));
                    program.submitted(Tag(tag));
                    tag += 1;
                }
                Next::Wait(until) if waiting.front().is_none_or(|first| first.1 > until.0) => now = until.0,
                Next::Wait(_) | Next::WaitForCompletion => {
                    let (tag, end, request) = waiting.pop_front().unwrap();
                    now = now.max(end);
                    program.completed(&Completion { tag, request, end: Nanos(now), ..Completion::default() });
                }
                Next::Ended => break,
            }
        }
        let figures = source.figures().unwrap();
        let get =
            |key: &str| figures.iter().find(|figure| figure.0 == key).unwrap_or_else(|| panic!("{name}: {key}")).1;
        assert!(get("seconds") > 0.0 && get("device_write_requests") > 0.0 && get("bytes_written") > 0.0, "{name}");
        assert!(tag >= 5, "{name}: {tag}");
    }
}
