//! Playing that fails: it waits for everything outstanding, and the error contains the measurements.

use flashwright_block::{
    BlockDevice, Bytes, Completion, Contents, DeviceInfo, IoError, Nanos, Request, RequestKind, Tag,
};
use flashwright_probe::{NEVER_ENDED, Pattern, play};
use std::collections::VecDeque;

/// Takes 10 us for each request, one after the other; fails one, refuses one, or dies after a given number.
#[derive(Default)]
struct Device {
    now: u64,
    free_at: u64,
    submitted: u64,
    flights: VecDeque<Completion>,
    fails: Option<u64>,
    refuses: Option<u64>,
    dies_after: Option<u64>,
    ended: u64,
}

impl BlockDevice for Device {
    fn info(&self) -> DeviceInfo {
        DeviceInfo { name: "fails".into(), capacity: Bytes(1 << 20), sector: Bytes(512), queue_depth: 8 }
    }
    fn now(&self) -> Nanos {
        Nanos(self.now)
    }
    fn submit(&mut self, request: Request) -> Result<Tag, IoError> {
        if self.refuses == Some(self.submitted) {
            self.refuses = None;
            return Err(IoError::Device("refused".into()));
        }
        let (tag, start) = (Tag(self.submitted), Nanos(self.now));
        self.submitted += 1;
        self.free_at = self.free_at.max(self.now) + 10_000;
        let failed = self.fails == Some(tag.0);
        let result = if failed { Err(Box::new(IoError::Device("failed".into()))) } else { Ok(()) };
        let end = Nanos(self.free_at);
        self.flights.push_back(Completion { tag, request, start, end, result, ..Completion::default() });
        Ok(tag)
    }
    fn wait(&mut self, _: Nanos, completion: &mut Completion) -> Result<bool, IoError> {
        if self.dies_after == Some(self.ended) {
            return Err(IoError::Device("dead".into()));
        }
        let Some(done) = self.flights.pop_front() else { return Ok(false) };
        self.now = done.end.0;
        self.ended += 1;
        *completion = done;
        Ok(true)
    }
}

const PATTERN: Pattern<'_> = Pattern {
    kinds: &[RequestKind::Read; 20],
    first_sectors: &[0; 20],
    sectors: &[8; 20],
    depth: 4,
    contents: Contents::Noise,
};

fn us(times: &[Nanos]) -> Vec<u64> {
    times.iter().map(|time| time.0 / 1000).collect()
}

/// Number 5 fails at 60 us; 6 to 8 were outstanding then and end at 70 to 90.
#[test]
fn what_is_outstanding_at_a_failure_is_waited_for_and_told() {
    let mut device = Device { fails: Some(5), ..Device::default() };
    let failed = play(&mut device, &PATTERN, || true).unwrap_err();
    assert_eq!((failed.to_string().as_str(), failed.request), ("the device failed: failed", Some(5)));
    assert_eq!(us(&failed.samples.submitted), [0, 0, 0, 0, 10, 20, 30, 40, 50]);
    assert_eq!(us(&failed.samples.ended), [10, 20, 30, 40, 50, 60, 70, 80, 90]);
    assert!(device.flights.is_empty(), "nothing is left behind");
    // So the next play begins with a device that has nothing in flight.
    let samples = play(&mut device, &PATTERN, || true).unwrap();
    assert_eq!((samples.ended.len(), us(&samples.ended)[0]), (20, 100));
}

#[test]
fn a_refused_request_ends_a_play_likewise() {
    let mut device = Device { refuses: Some(5), ..Device::default() };
    let failed = play(&mut device, &PATTERN, || true).unwrap_err();
    assert_eq!((failed.error, failed.request), (IoError::Device("refused".into()), Some(5)));
    assert_eq!(us(&failed.samples.ended), [10, 20, 30, 40, 50]);
    assert!(device.flights.is_empty());
}

#[test]
fn a_dead_device_ends_a_play_with_what_had_ended() {
    let mut device = Device { dies_after: Some(2), ..Device::default() };
    let failed = play(&mut device, &PATTERN, || true).unwrap_err();
    assert_eq!((failed.error, failed.request), (IoError::Device("dead".into()), None));
    assert_eq!(failed.samples.submitted.len(), 6);
    assert_eq!(us(&failed.samples.ended[..2]), [10, 20]);
    assert!(failed.samples.ended[2..].iter().all(|end| *end == NEVER_ENDED));
}
