//! CFQ's slices over many requests; each takes a millisecond, one at a time.

use crate::common::Recorder;
use flashwright_block::{BlockDevice, Completion, Nanos, Request, RequestKind};
use flashwright_host::{Stack, StackSettings};

/// Submits requests that all come at 0, and returns how many of a kind and process went in a row each time.
fn runs(settings: &str, requests: impl Iterator<Item = (RequestKind, u32)>) -> Vec<(RequestKind, u32, u32)> {
    let text = format!(
        "scheduler = \"cfq\"\nblock-layer = {{ plug-requests = 0, queue-requests = 1000 }}\ncfq = {{ {settings} }}"
    );
    let settings: StackSettings = toml::from_str(&text).expect("sound settings");
    let mut stack = Stack::new(&settings, Recorder::new(1 << 20, 1, |_| 1_000_000)).expect("sound settings");
    for (at, (kind, process)) in (0..).zip(requests) {
        let request = Request { first_sector: at * 100, sectors: 8, kind, process, ..Request::default() };
        stack.submit(request).expect("no faults");
    }
    while stack.wait(Nanos(10_000_000_000), &mut Completion::default()).expect("no faults") {}
    let mut runs: Vec<(RequestKind, u32, u32)> = Vec::new();
    for (_, request) in &stack.device().dispatched {
        match runs.last_mut() {
            Some((kind, process, count)) if (*kind, *process) == (request.kind, request.process) => *count += 1,
            _ => runs.push((request.kind, request.process, 1)),
        }
    }
    runs
}

/// The slice begins when the first request of a turn is done, so a slice of 100 ms holds 101 requests. Four times 100 ms
/// are more than 300 ms, so 2.6.38 gives 75 ms each.
#[test]
fn slices_shrink_to_the_target_latency() {
    for (settings, slice) in
        [("version = \"2.6.24\"", 101), ("target-latency = \"0 ns\"", 101), ("version = \"2.6.38\"", 76)]
    {
        let requests = (0..800).map(|at| (RequestKind::Read, at % 4));
        let runs = runs(settings, requests);
        let expected: Vec<_> = (0..4).map(|process| (RequestKind::Read, process, slice)).collect();
        assert_eq!(runs[..4], expected, "{settings}");
    }
}

/// Sixty reads, then twenty writes, in slices of 20 ms and 16 ms. A process goes 21 reads a slice. Its next turn stands at
/// 21 ms plus 1.8 x 20 - 20 = 16 ms, so at 37 ms; that of writes at 0 plus 1.8 x 20 - 16 = 20 ms, so they are next. After
/// eight of their 16 ms they are cut short, at 28 ms, and stand at 48 ms. Reads go on until 50 ms, and stand at 66 ms then;
/// and so on. 2.6.24 counts no writes: 17 go in 16 ms.
#[test]
fn writes_of_a_slice_are_limited_while_reads_wait() {
    let requests = || {
        let reads = std::iter::repeat_n((RequestKind::Read, 1), 60);
        reads.chain(std::iter::repeat_n((RequestKind::Write, 1), 20))
    };
    let slices = "slice-sync = \"20 ms\", slice-async = \"16 ms\", slice-idle = \"0 ns\"";
    let counts = |settings: &str| -> Vec<u32> {
        runs(&format!("{slices}, {settings}"), requests()).into_iter().map(|(_, _, count)| count).collect()
    };
    assert_eq!(counts("slice-async-rq = 1"), [21, 8, 21, 8, 18, 4]);
    assert_eq!(counts("version = \"2.6.24\"")[..2], [21, 17]);
}

#[test]
fn settings_that_a_version_lacks_are_refused() {
    let text = "scheduler = \"cfq\"\ncfq = { version = \"2.6.24\", rotational = true }";
    let settings: StackSettings = toml::from_str(text).expect("a table");
    let Err(problems) = Stack::new(&settings, Recorder::new(1000, 1, |_| 1)) else { panic!("it cannot be built") };
    let problems: Vec<String> = problems.iter().map(|problem| format!("{}: {}", problem.key, problem.what)).collect();
    assert_eq!(problems, ["cfq.rotational: 2.6.24 has no such setting; leave it out or choose version = \"2.6.38\""]);
}
