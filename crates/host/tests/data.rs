//! Data behind schedulers: a read returns what was last written before it, whatever is merged, cut and reordered, and the order
//! is the same as without data.

use crate::common::Recorder;
use crate::properties::{Host, SECTORS, names, settings};
use flashwright_block::{
    BlockDevice, Completion, DeviceInfo, HoldsData, IoError, Nanos, Request, RequestKind, SECTOR_BYTES, Tag,
};
use flashwright_host::Stack;
use std::collections::BTreeMap;
use std::ops::Range;

/// A recorder that keeps what is written. The recorder refuses overlaps in flight, so a request may take effect at once. It
/// fails writes to a range of sectors.
struct Memory {
    recorder: Recorder,
    bytes: Vec<u8>,
    reads: BTreeMap<Tag, Vec<u8>>,
    broken: Range<u64>,
    failing: Vec<Tag>,
}

impl Memory {
    fn new(depth: u32, broken: Range<u64>) -> Self {
        let recorder = Recorder::new(SECTORS, depth, |request| 20_000 + 1_000 * u64::from(request.sectors));
        let bytes = vec![0; (SECTORS * SECTOR_BYTES) as usize];
        Self { recorder, bytes, reads: BTreeMap::new(), broken, failing: Vec::new() }
    }

    fn breaks(&self, request: &Request) -> bool {
        let overlaps = request.first_sector < self.broken.end && self.broken.start < request.end_sector();
        overlaps && request.kind == RequestKind::Write
    }
}

fn span(request: &Request) -> Range<usize> {
    (request.first_sector * SECTOR_BYTES) as usize..(request.end_sector() * SECTOR_BYTES) as usize
}

impl BlockDevice for Memory {
    fn info(&self) -> DeviceInfo {
        self.recorder.info()
    }
    fn now(&self) -> Nanos {
        self.recorder.now()
    }
    fn submit(&mut self, request: Request) -> Result<Tag, IoError> {
        let tag = self.recorder.submit(request)?;
        if self.breaks(&request) {
            self.failing.push(tag);
        } else if matches!(request.kind, RequestKind::Write | RequestKind::Trim) {
            self.bytes[span(&request)].fill(0);
        }
        Ok(tag)
    }
    fn wait(&mut self, until: Nanos, completion: &mut Completion) -> Result<bool, IoError> {
        let ended = self.recorder.wait(until, completion)?;
        if ended && self.failing.contains(&completion.tag) {
            completion.result = Err(Box::new(IoError::Device("broken".to_owned())));
        }
        Ok(ended)
    }
    fn holds_data(&mut self) -> Option<&mut dyn HoldsData> {
        Some(self)
    }
}

impl HoldsData for Memory {
    fn submit_with(&mut self, request: Request, data: &[u8]) -> Result<Tag, IoError> {
        request.check_data(data);
        let tag = self.submit(request)?;
        match request.kind {
            RequestKind::Write if !self.breaks(&request) => self.bytes[span(&request)].copy_from_slice(data),
            RequestKind::Read => drop(self.reads.insert(tag, self.bytes[span(&request)].to_vec())),
            _ => {}
        }
        Ok(tag)
    }
    fn take_data(&mut self, tag: Tag, data: &mut [u8]) -> bool {
        self.reads.remove(&tag).is_some_and(|found| {
            data.copy_from_slice(&found);
            true
        })
    }
}

/// Bytes that say who wrote them: number and sector.
fn written(number: usize, request: &Request) -> Vec<u8> {
    let sector = |at: u64| [(number as u64).to_le_bytes(), at.to_le_bytes()].concat().repeat(32);
    (request.first_sector..request.end_sector()).flat_map(sector).collect()
}

fn check(chain: &str, depth: u32, seed: u64, count: usize) {
    let mut stack = Stack::new(&settings(chain, true), Memory::new(depth, 0..0)).expect("sound settings");
    let bare = Recorder::new(SECTORS, depth, |request| 20_000 + 1_000 * u64::from(request.sectors));
    let mut simulated = Stack::new(&settings(chain, true), bare).expect("sound settings");
    let mut host = Host::new(seed);
    let mut model = vec![0; (SECTORS * SECTOR_BYTES) as usize];
    let (mut wanted, mut done) = (BTreeMap::new(), Completion::default());
    let mut reads = 0;
    for number in 0..count {
        let request = host.next();
        while simulated.wait(request.arrival, &mut done).expect("no faults") {}
        simulated.submit(request).expect("no faults");
        while stack.wait(request.arrival, &mut done).expect("no faults") {
            reads += usize::from(compare(&mut stack, &done, &mut wanted, chain));
        }
        // Some writes are of zeros, and the data of some reads nobody wants.
        let has_data = request.kind.moves_data() && number % 5 != 0;
        let tag = if has_data {
            let is_write = request.kind == RequestKind::Write;
            let data = if is_write { written(number, &request) } else { Vec::new() };
            let tag = stack.submit_with(request, &data).expect("no faults");
            if is_write {
                model[span(&request)].copy_from_slice(&data);
            }
            tag
        } else {
            stack.submit(request).expect("no faults")
        };
        match request.kind {
            RequestKind::Read if has_data => drop(wanted.insert(tag, model[span(&request)].to_vec())),
            RequestKind::Write if !has_data => model[span(&request)].fill(0),
            RequestKind::Trim => model[span(&request)].fill(0),
            _ => {}
        }
    }
    while simulated.wait(Nanos(u64::MAX), &mut done).expect("no faults") {}
    while stack.wait(Nanos(u64::MAX), &mut done).expect("no faults") {
        reads += usize::from(compare(&mut stack, &done, &mut wanted, chain));
    }
    assert!(wanted.is_empty() && reads > count / 10, "{chain}: {reads} reads");
    assert!(stack.device().bytes == model, "{chain}: the device holds what was written last");
    assert!(stack.device().reads.is_empty(), "{chain}: all that was read was taken");
    assert_eq!(stack.device().recorder.dispatched, simulated.device().dispatched, "{chain}: data change no order");
}

/// Compares what a read brought with what was expected. Returns whether it was one that wanted data.
fn compare(stack: &mut Stack<Memory>, done: &Completion, wanted: &mut BTreeMap<Tag, Vec<u8>>, chain: &str) -> bool {
    let mut found = vec![1; done.request.data_bytes()];
    let Some(expected) = wanted.remove(&done.tag) else {
        assert!(!stack.take_data(done.tag, &mut found), "{chain}: nothing is left for {done:?}");
        return false;
    };
    assert!(stack.take_data(done.tag, &mut found), "{chain}: {done:?} brings data");
    assert!(found == expected, "{chain}: {done:?} returns what was written last before it");
    true
}

#[test]
fn data_follow_their_requests_through_every_scheduler_and_change_no_order() {
    for name in names() {
        for depth in [1, 8] {
            check(name, depth, 31 + u64::from(depth), 3_000);
        }
    }
    for chain in ["pasa+pai", "pas+pai+noop", "pasa+deadline", "deadline+pai", &names().join("+")] {
        check(chain, 4, 33, 5_000);
    }
}

#[test]
fn a_failed_part_fails_its_requests_and_no_other() {
    let mut stack = Stack::new(&settings("pasa", true), Memory::new(4, 100..101)).expect("sound settings");
    let of = |kind, first_sector, sectors| Request { kind, first_sector, sectors, ..Request::default() };
    let asked = [of(RequestKind::Write, 90, 10), of(RequestKind::Write, 100, 4), of(RequestKind::Write, 300, 8)];
    for (number, request) in asked.iter().enumerate() {
        stack.submit_with(*request, &written(number, request)).expect("it is taken");
    }
    let (mut done, mut results) = (Completion::default(), BTreeMap::new());
    while stack.wait(Nanos(u64::MAX), &mut done).expect("the device lives") {
        results.insert(done.tag.0, done.result.is_ok());
    }
    assert!(!results[&1] && results[&2], "{results:?}");
    let read = of(RequestKind::Read, 296, 16);
    let tag = stack.submit_with(read, &[]).expect("it is taken");
    stack.wait(Nanos(u64::MAX), &mut done).expect("the device lives");
    let mut found = vec![0; read.data_bytes()];
    assert!(stack.take_data(tag, &mut found));
    assert_eq!(found[4 * 512..12 * 512], written(2, &asked[2]));
}

#[test]
fn a_device_without_data_takes_none_behind_a_scheduler_either() {
    let mut stack = Stack::new(&settings("noop", true), Recorder::new(SECTORS, 4, |_| 1)).expect("sound settings");
    let read = Request { sectors: 8, ..Request::default() };
    assert_eq!(stack.submit_with(read, &[]), Err(IoError::KeepsNoData));
    assert!(stack.holds_data().is_none());
}
