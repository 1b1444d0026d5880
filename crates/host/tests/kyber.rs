//! Kyber's limits follow latencies.

use crate::common::Recorder;
use flashwright_block::{BlockDevice, Completion, Nanos, Request, RequestKind};
use flashwright_host::{Stack, StackSettings};

fn figure(stack: &Stack<Recorder>, name: &str) -> f64 {
    stack.figures()[0].extra.iter().find(|(known, _)| known == name).expect("kyber counts it").1
}

/// Reads of 100 us each 2 ms, far below their target of 2 ms; writes of 30 ms each 25 ms, far above theirs of 10 ms.
///
/// Each second or so the p90 of writes is taken, from about 40 samples, and says congestion; reads then have a p99 from
/// 500 samples or more, in the first quarter of their target. So the limit of reads falls to a quarter: 256, 64, 16, 4.
/// Writes never come to 500 samples, so theirs stays.
#[test]
fn fast_reads_are_held_back_for_slow_writes() {
    let settings: StackSettings = toml::from_str("scheduler = \"kyber\"").expect("sound settings");
    let service = |request: &Request| if request.kind == RequestKind::Read { 100_000 } else { 30_000_000 };
    let mut stack = Stack::new(&settings, Recorder::new(1 << 20, 64, service)).expect("sound settings");
    let mut done = Completion::default();
    let mut fell = vec![(0, 256.0)];
    for millis in (0..3_700).filter(|millis| millis % 2 == 0 || millis % 25 == 0) {
        let arrival = Nanos(millis * 1_000_000);
        while stack.wait(arrival, &mut done).expect("no faults") {}
        for (kind, every, first_sector) in [(RequestKind::Read, 2, 0), (RequestKind::Write, 25, 1 << 19)] {
            if millis % every == 0 {
                let first_sector = first_sector + millis * 16;
                let request = Request { arrival, first_sector, sectors: 8, kind, ..Request::default() };
                stack.submit(request).expect("no faults");
            }
        }
        let tokens = figure(&stack, "read_tokens");
        if fell.last().is_some_and(|(_, last)| *last != tokens) {
            fell.push((millis, tokens));
        }
    }
    let limits: Vec<f64> = fell.iter().map(|(_, tokens)| *tokens).collect();
    assert_eq!(limits, [256.0, 64.0, 16.0, 4.0], "{fell:?}");
    for pair in fell.windows(2) {
        assert!((1_000..1_300).contains(&(pair[1].0 - pair[0].0)), "about a second apart: {fell:?}");
    }
    assert_eq!((figure(&stack, "write_tokens"), figure(&stack, "windows_congested")), (128.0, 3.0));

    // Eight reads at once: four go, four wait for them, though the device would take 64.
    while stack.wait(Nanos(3_800_000_000), &mut done).expect("no faults") {}
    let before = stack.device().dispatched.len();
    for at in 0..8 {
        let arrival = Nanos(3_800_000_000);
        let request = Request { arrival, first_sector: at * 100, sectors: 8, ..Request::default() };
        stack.submit(request).expect("no faults");
    }
    while stack.wait(Nanos(3_850_000_000), &mut done).expect("no faults") {}
    let times: Vec<u64> = stack.device().dispatched[before..].iter().map(|(at, _)| at.0 - 3_800_000_000).collect();
    assert_eq!(times, [0, 0, 0, 0, 100_000, 100_000, 100_000, 100_000]);
}
