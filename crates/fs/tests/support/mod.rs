//! A device for tests, and a loop that plays a workload on it.
#![allow(dead_code, clippy::unwrap_used)] // each test file uses some of it; helpers fail by panicking

use flashwright_block::{Completion, Interactive, Nanos, Next, Request, RequestKind, Tag};
use flashwright_fs::{Application, Call, FileSystem, System};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Each request takes `latency` and 10 ns for each sector; many at once.
pub struct Device {
    pub now: u64,
    pub latency: u64,
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    requests: Vec<Request>,
}

impl Device {
    pub fn new(latency: u64) -> Self {
        Self { now: 0, latency, queue: BinaryHeap::new(), requests: Vec::new() }
    }
}

/// Plays until the end or `until`; `seen` gets each request when it is handed over (false) and when it is done (true).
pub fn play<A: Application>(
    system: &mut System<A>,
    device: &mut Device,
    until: u64,
    mut seen: impl FnMut(&mut System<A>, u64, &Request, bool),
) {
    loop {
        match system.next(Nanos(device.now)).unwrap() {
            Next::Submit(request) | Next::Arrived(request) => {
                seen(system, device.now, &request, false);
                let tag = device.requests.len() as u64;
                let end = device.now + device.latency + 10 * u64::from(request.sectors);
                device.requests.push(request);
                device.queue.push(Reverse((end, tag)));
                system.submitted(Tag(tag));
            }
            Next::Wait(wait) => {
                assert!(wait.0 > device.now, "a wait takes time");
                advance(system, device, wait.0, &mut seen);
            }
            Next::WaitForCompletion => advance(system, device, u64::MAX, &mut seen),
            Next::Ended => break,
        }
        if device.now > until {
            return;
        }
    }
    while !device.queue.is_empty() {
        advance(system, device, u64::MAX, &mut seen);
    }
}

fn advance<A: Application>(
    system: &mut System<A>,
    device: &mut Device,
    until: u64,
    seen: &mut impl FnMut(&mut System<A>, u64, &Request, bool),
) {
    match device.queue.peek() {
        Some(Reverse((end, tag))) if *end <= until => {
            let (end, tag) = (*end, *tag);
            device.queue.pop();
            device.now = device.now.max(end);
            let request = device.requests[usize::try_from(tag).unwrap()];
            let completion = Completion { tag: Tag(tag), request, end: Nanos(device.now), ..Completion::default() };
            seen(system, device.now, &request, true);
            system.completed(&completion);
        }
        _ => device.now = until,
    }
}

/// A program that makes a list of calls, one thread each.
pub struct Script(pub Vec<Vec<Call>>, Vec<usize>);

impl Script {
    pub fn new(threads: Vec<Vec<Call>>) -> Self {
        let at = vec![0; threads.len()];
        Self(threads, at)
    }
}

impl Application for Script {
    fn threads(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap()
    }
    fn next(&mut self, thread: u32, _: Nanos, _: &FileSystem) -> Call {
        let at = &mut self.1[thread as usize];
        *at += 1;
        self.0[thread as usize].get(*at - 1).copied().unwrap_or(Call::Exit)
    }
    fn figures(&self, _: Nanos) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}

/// A request in blocks: (kind, first block, blocks).
pub fn in_blocks(request: &Request) -> (RequestKind, u64, u32) {
    (request.kind, request.first_sector / 8, request.sectors / 8)
}
