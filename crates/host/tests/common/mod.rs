//! A device that records the requests that schedulers dispatch.

#![allow(dead_code)] // each test file uses its part

use flashwright_block::{
    BlockDevice, Bytes, Completion, DeviceInfo, Effects, IoError, Nanos, Request, RequestKind, Tag,
};
use std::collections::BTreeMap;

/// Takes up to `depth` requests at once, each for its own time, and records them with their times. More than that is an
/// error. What is in flight at once may be done in any order, so overlapping requests must not be.
#[derive(Clone, Debug)]
pub struct Recorder {
    pub sectors: u64,
    pub depth: u32,
    pub service: fn(&Request) -> u64,
    pub dispatched: Vec<(Nanos, Request)>,
    /// How many requests are noted at most.
    pub keep: usize,
    now: u64,
    tag: u64,
    in_flight: BTreeMap<(u64, u64), (Request, u64)>,
}

impl Recorder {
    pub fn new(sectors: u64, depth: u32, service: fn(&Request) -> u64) -> Self {
        let (dispatched, in_flight) = (Vec::new(), BTreeMap::new());
        Self { sectors, depth, service, dispatched, keep: usize::MAX, now: 0, tag: 0, in_flight }
    }
}

impl BlockDevice for Recorder {
    fn info(&self) -> DeviceInfo {
        let (capacity, sector) = (Bytes(self.sectors * 512), Bytes(512));
        DeviceInfo { name: "recorder".into(), capacity, sector, queue_depth: self.depth }
    }

    fn now(&self) -> Nanos {
        Nanos(self.now)
    }

    fn submit(&mut self, request: Request) -> Result<Tag, IoError> {
        assert!(request.arrival.0 <= self.now, "a filter hands on what may go now");
        assert!(self.in_flight.len() < self.depth as usize, "no more than the depth at once");
        assert!(request.end_sector() <= self.sectors);
        for (other, _) in self.in_flight.values() {
            let apart = other.end_sector() <= request.first_sector || request.end_sector() <= other.first_sector;
            let reads = other.kind == RequestKind::Read && request.kind == RequestKind::Read;
            assert!(apart || reads, "{request:?} overlaps {other:?}, which is in flight");
        }
        let tag = self.tag;
        self.tag += 1;
        if self.dispatched.len() < self.keep {
            self.dispatched.push((Nanos(self.now), request));
        }
        self.in_flight.insert((self.now + (self.service)(&request), tag), (request, self.now));
        Ok(Tag(tag))
    }

    fn wait(&mut self, until: Nanos, completion: &mut Completion) -> Result<bool, IoError> {
        match self.in_flight.first_key_value() {
            Some((&(end, tag), &(request, start))) if end <= until.0 => {
                self.in_flight.remove(&(end, tag));
                self.now = self.now.max(end);
                let (start, end) = (Nanos(start), Nanos(end));
                *completion = Completion {
                    tag: Tag(tag),
                    request,
                    start,
                    end,
                    effects: Effects { flash_ops: 1, ..Effects::default() },
                    result: Ok(()),
                };
                Ok(true)
            }
            _ => {
                if until.0 != u64::MAX {
                    self.now = self.now.max(until.0);
                }
                Ok(false)
            }
        }
    }
}

/// `"2 ms R 50+8 p3 fua"`: arrival, kind (R, W, T, F), sectors, the process if it matters, and whether it is to be
/// durable.
pub fn request(text: &str) -> Request {
    let parts: Vec<&str> = text.split_whitespace().collect();
    let [time, unit, kind, run, rest @ ..] = parts.as_slice() else { panic!("{text:?} is no request") };
    let (first, sectors) = run.split_once('+').expect("first+sectors");
    assert!(rest.iter().all(|word| *word == "fua" || word.starts_with('p')), "{text:?} has words too many");
    Request {
        arrival: format!("{time} {unit}").parse().expect("a time"),
        first_sector: first.parse().expect("a sector"),
        sectors: sectors.parse().expect("a number of sectors"),
        kind: match *kind {
            "R" => RequestKind::Read,
            "W" => RequestKind::Write,
            "T" => RequestKind::Trim,
            "F" => RequestKind::Flush,
            other => panic!("{other:?} is no kind"),
        },
        process: rest
            .iter()
            .find_map(|word| word.strip_prefix('p'))
            .map_or(0, |process| process.parse().expect("a process")),
        fua: rest.contains(&"fua"),
        ..Request::default()
    }
}

/// The dispatched requests, in the form of [`request`].
pub fn written(at: Nanos, request: &Request) -> String {
    let kind = ["R", "W", "T", "F"][request.kind as usize];
    format!("{at} {kind} {}+{}", request.first_sector, request.sectors)
}
