//! Carries out commands on the drive, and writes their replies.
//!
//! ```text
//!   command ─► begin ─► requests of the drive ─┐
//!   reply   ◄─ reap  ◄─ completions  ◄─────────┘
//! ```

use crate::command::Command;
use crate::record::{DataRecorder, Recorder};
use crate::replies::Replies;
use crate::served::Served;
use crate::wire::{self, Kind, PAYLOAD_MAX, flag};
use flashwright_block::{
    Completion, IoError, Nanos, Request, RequestClass, RequestKind, SECTOR_BYTES, Tag, check_memory,
};
use flashwright_nvme::Subsystem;
use flashwright_sim::Latency;
use std::collections::HashMap;

/// What is served, with what goes on beside it: all that is under one lock.
pub struct Drive<S> {
    /// The device.
    pub served: S,
    /// The trace of what is served.
    pub recorder: Option<Recorder>,
    /// The recording with data of what is served.
    pub data_recorder: Option<DataRecorder>,
    /// Commands that failed in the drive.
    pub failed: u64,
    /// Response times of reads and writes since somebody last took them away; none if nobody does.
    pub recent: Option<Latency>,
    /// What hosts of NVMe see; none if nobody listens for them.
    pub subsystem: Option<Subsystem>,
    /// Power cuts, and how often the drive was mounted after one.
    pub cuts: u64,
    /// See [`Self::cuts`].
    pub mounts: u64,
}

impl<S: Served> Drive<S> {
    /// Submits a request at `arrival` or now, whichever is later. Where the memory of the process has ended, data are refused.
    fn submit(&mut self, request: Request, data: Option<&[u8]>, arrival: Nanos) -> Result<Tag, IoError> {
        if data.is_some_and(|data| !data.is_empty()) {
            check_memory().map_err(|error| IoError::Device(error.to_string()))?;
        }
        let request = Request { arrival: arrival.max(self.served.now()), ..request };
        let tag = match data {
            Some(data) => self.served.submit_with(request, data)?,
            None => self.served.submit(request)?,
        };
        if let Some(recorder) = &mut self.recorder {
            recorder.take(&request);
        }
        if let Some(recorder) = &mut self.data_recorder {
            recorder.take(tag, &request, data);
        }
        Ok(tag)
    }

    /// A request has ended: whoever records or watches is told.
    pub fn note_end(&mut self, completion: &Completion) {
        if let Some(recent) = &mut self.recent
            && completion.request.kind.moves_data()
        {
            recent.record(completion.response_time().0);
        }
        if let Some(recorder) = &mut self.data_recorder {
            recorder.ended(completion.tag, completion.result.is_ok());
        }
    }

    /// What the subsystem has asked for itself has ended, and what follows from that is kept.
    #[cold]
    fn note_chore(&mut self, command: &Command, is_done: bool) {
        if let Some(subsystem) = &mut self.subsystem {
            subsystem.chore_ended(command.offset, command.length, is_done);
        }
        // If it can't be kept, the image is lost, and every later request of the drive fails.
        let _ = self.keep_namespaces();
    }

    /// Trims the whole drive, in pieces of a GiB. Returns the tags of those that have not been waited for: all of them.
    ///
    /// # Errors
    /// [`IoError`] of a drive that refuses it.
    pub fn trim_all(&mut self, arrival: Nanos) -> Result<Vec<Tag>, IoError> {
        const PIECE: u64 = (1 << 30) / SECTOR_BYTES;
        let end = self.served.info().capacity.0 / SECTOR_BYTES;
        let piece = |first_sector: u64| Request {
            kind: RequestKind::Trim,
            first_sector,
            sectors: u32::try_from((end - first_sector).min(PIECE)).expect("a GiB at most"),
            ..Request::default()
        };
        (0..end).step_by(PIECE as usize).map(|first| self.submit(piece(first), None, arrival)).collect()
    }
}

/// The client of what the subsystem asks of the drive for itself.
pub const NOBODY: u32 = u32::MAX;

/// Where replies go.
pub trait Outs {
    /// The replies to a client; none if it has gone.
    fn replies(&mut self, client: u32) -> Option<&mut Replies>;

    /// A command of a client was answered, or there was nobody to answer; its last request ended at `end` on the drive's
    /// clock.
    fn ended(&mut self, client: u32, command: &Command, end: Nanos) {
        let _ = (client, command, end);
    }
}

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// The drive failed it.
    Drive(IoError),
    /// Zeros were to be fast and would not be.
    NotFast,
}

/// A command in the drive.
#[derive(Debug)]
struct Pending {
    client: u32,
    command: Command,
    /// Requests of it that have not completed.
    left: u32,
    /// What follows once they have: the flush of a forced trim, on a device that may carry out both at once.
    then: Option<Request>,
    failure: Option<Failure>,
}

/// The commands in the drive.
#[derive(Debug, Default)]
pub struct Executor {
    pending: Vec<Pending>,
    free: Vec<u32>,
    /// The command of each request in flight.
    flights: HashMap<Tag, u32>,
    parts: Vec<Request>,
    completion: Completion,
    /// For data that nobody takes.
    unwanted: Vec<u8>,
    /// Whether a flush waits for the other requests of its command.
    one_by_one: bool,
}

/// Most stretches in a reply about what is mapped, and most pages looked at for it.
const STRETCHES_MAX: usize = 1024;
const PAGES_LOOKED_AT: u64 = 1 << 16;

impl Executor {
    /// For a device that may carry out what it has in any order.
    #[must_use]
    pub fn one_by_one() -> Self {
        Self { one_by_one: true, ..Self::default() }
    }

    /// Requests in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.flights.len()
    }

    /// Begins a command, with the data of a write. It arrives at `arrival` on the drive's clock, or now if that is later. What
    /// has ended until then is answered on the way.
    pub fn begin<S: Served>(
        &mut self,
        drive: &mut Drive<S>,
        outs: &mut impl Outs,
        client: u32,
        (command, data): (Command, &[u8]),
        arrival: Nanos,
    ) {
        if command.kind == Kind::BlockStatus {
            if let Some(replies) = outs.replies(client) {
                replies.block_status(&command, &stretches(&drive.served, &command));
            }
            return outs.ended(client, &command, Nanos(0));
        }
        let mut parts = std::mem::take(&mut self.parts);
        parts.clear();
        // Without holes, no page is whole.
        let holes_of = if drive.served.trims_to_zeros() { drive.served.page_bytes() } else { u64::MAX };
        if !divide(&command, holes_of, &mut parts) {
            if let Some(replies) = outs.replies(client) {
                replies.answer(&command, Some(&Failure::NotFast));
            }
            self.parts = parts;
            return outs.ended(client, &command, Nanos(0));
        }
        let last_waits = self.one_by_one && parts.len() > 1;
        let then = parts.pop_if(|last| last_waits && last.kind == RequestKind::Flush);
        let id = self.add(Pending { client, command, left: 1, then, failure: None });
        for part in &parts {
            let arrival = arrival.max(drive.served.now());
            self.reap(drive, outs, arrival);
            let brings = match command.kind {
                Kind::Write | Kind::OfZones(RequestKind::Append) => Some(data),
                Kind::Read => Some(&[][..]),
                _ => None,
            };
            match drive.submit(*part, brings, arrival) {
                Ok(tag) => {
                    self.flights.insert(tag, id);
                    self.pending[id as usize].left += 1;
                }
                Err(error) => {
                    self.pending[id as usize].failure = Some(Failure::Drive(error));
                    break;
                }
            }
        }
        self.parts = parts;
        self.part_over(drive, outs, id, None); // the one that stood for the command while it was divided
    }

    /// Answers what completes by `until` on the drive's clock. With everything answered the clock stays.
    pub fn reap<S: Served>(&mut self, drive: &mut Drive<S>, outs: &mut impl Outs, until: Nanos) {
        while !self.flights.is_empty() {
            let mut completion = std::mem::take(&mut self.completion);
            let ended = drive.served.wait(until, &mut completion);
            match ended {
                Ok(true) => {
                    drive.note_end(&completion);
                    if let Some(id) = self.flights.remove(&completion.tag) {
                        if let Err(error) = std::mem::replace(&mut completion.result, Ok(())) {
                            self.pending[id as usize].failure = Some(Failure::Drive(*error));
                        }
                        self.part_over(drive, outs, id, Some(&completion));
                    }
                }
                Ok(false) => {}
                Err(ref error) => self.fail_all(drive, outs, error),
            }
            self.completion = completion;
            if ended == Ok(false) {
                return;
            }
        }
    }

    /// The drive is dead: nothing that is in flight will complete.
    #[cold]
    fn fail_all<S: Served>(&mut self, drive: &mut Drive<S>, outs: &mut impl Outs, error: &IoError) {
        let mut flights: Vec<(Tag, u32)> = self.flights.drain().collect();
        flights.sort_unstable();
        for (_, id) in flights {
            self.pending[id as usize].failure = Some(Failure::Drive(error.clone()));
            self.part_over(drive, outs, id, None);
        }
    }

    fn add(&mut self, pending: Pending) -> u32 {
        if let Some(id) = self.free.pop() {
            self.pending[id as usize] = pending;
            return id;
        }
        self.pending.push(pending);
        u32::try_from(self.pending.len() - 1).expect("commands in flight fit 32 bits")
    }

    /// A request of a command is over; with the last one, the command is answered.
    fn part_over<S: Served>(&mut self, drive: &mut Drive<S>, outs: &mut impl Outs, id: u32, of: Option<&Completion>) {
        let pending = &mut self.pending[id as usize];
        pending.left -= 1;
        if pending.left > 0 {
            return;
        }
        if let (Some(request), None) = (pending.then.take(), &pending.failure) {
            match drive.submit(request, None, Nanos(0)) {
                Ok(tag) => {
                    pending.left = 1;
                    self.flights.insert(tag, id);
                    return;
                }
                Err(error) => pending.failure = Some(Failure::Drive(error)),
            }
        }
        let (command, client, failure) = (pending.command, pending.client, pending.failure.take());
        self.free.push(id);
        if client == NOBODY {
            return drive.note_chore(&command, failure.is_none());
        }
        // What breaks a rule of zones is the host's fault.
        let is_fault = |failure: &Failure| !matches!(failure, Failure::Drive(IoError::Zone(_)));
        drive.failed += u64::from(failure.as_ref().is_some_and(is_fault));
        let mut replies = outs.replies(client);
        if let (None, Kind::Read, Some(&Completion { tag, .. })) = (&failure, command.kind, of) {
            let data = match &mut replies {
                Some(replies) => replies.data(&command),
                None => {
                    self.unwanted.resize(command.length as usize, 0);
                    &mut self.unwanted
                }
            };
            let taken = drive.served.take_data(tag, data);
            debug_assert!(taken, "a read that succeeded has data");
        }
        if let Some(replies) = replies {
            if let (Kind::OfZones(RequestKind::Append), Some(completion)) = (command.kind, of) {
                replies.appended(&command, completion.request.first_sector * SECTOR_BYTES);
            }
            replies.answer(&command, failure.as_ref());
        }
        outs.ended(client, &command, of.map_or(Nanos(0), |completion| completion.end));
    }
}

/// The requests of a command, in order. Returns false for zeros that are to be fast and would not be.
fn divide(command: &Command, page_bytes: u64, parts: &mut Vec<Request>) -> bool {
    let (first, end) = (command.offset, command.offset + u64::from(command.length));
    let fua = command.has(flag::FUA);
    let of = |kind: RequestKind, first: u64, end: u64| Request {
        kind,
        first_sector: first / SECTOR_BYTES,
        sectors: u32::try_from((end - first) / SECTOR_BYTES).expect("a command has 32 bits of bytes"),
        fua: fua && kind.class() == RequestClass::Write,
        stream: command.stream,
        queue: command.queue,
        ..Request::default()
    };
    let flush = Request { kind: RequestKind::Flush, queue: command.queue, ..Request::default() };
    let zeros = |parts: &mut Vec<Request>, first: u64, end: u64| {
        let pieces = (first..end).step_by(PAYLOAD_MAX as usize);
        parts.extend(pieces.map(|at| of(RequestKind::Write, at, end.min(at + u64::from(PAYLOAD_MAX)))));
    };
    match command.kind {
        // What a cache is told to fetch is read, and goes nowhere.
        Kind::Read | Kind::Cache => parts.push(of(RequestKind::Read, first, end)),
        Kind::Write => parts.push(of(RequestKind::Write, first, end)),
        Kind::OfZones(kind) => parts.push(of(kind, first, end)),
        Kind::Flush => parts.push(flush),
        Kind::Trim => {
            parts.push(of(RequestKind::Trim, first, end));
            parts.extend(fua.then_some(flush));
        }
        Kind::WriteZeroes => {
            let (whole_first, whole_end) =
                (first.checked_next_multiple_of(page_bytes).unwrap_or(end), end - end % page_bytes);
            let holes = !command.has(flag::NO_HOLE) && whole_first < whole_end;
            let is_fast = holes && whole_first == first && whole_end == end;
            if command.has(flag::FAST_ZERO) && !is_fast {
                return false;
            }
            if !holes {
                zeros(parts, first, end);
                return true;
            }
            zeros(parts, first, whole_first);
            parts.push(of(RequestKind::Trim, whole_first, whole_end));
            zeros(parts, whole_end, end);
            parts.extend(fua.then_some(flush));
        }
        Kind::Disconnect | Kind::BlockStatus => unreachable!("these ask nothing of the drive"),
    }
    true
}

/// What is mapped in the range of a command, in bytes and flags.
fn stretches(served: &impl Served, command: &Command) -> Vec<(u32, u32)> {
    let most = if command.has(flag::REQ_ONE) { 1 } else { STRETCHES_MAX };
    let (mut at, end) = (command.offset / SECTOR_BYTES, (command.offset + u64::from(command.length)) / SECTOR_BYTES);
    let end = end.min(at + PAGES_LOOKED_AT * (served.page_bytes() / SECTOR_BYTES));
    let mut found = Vec::new();
    while at < end && found.len() < most {
        let (holds, sectors) = served.stretch(at, end - at);
        let bytes = u32::try_from(sectors * SECTOR_BYTES).expect("a command has 32 bits of bytes");
        found.push((bytes, if holds { 0 } else { wire::HOLE_OF_ZEROS }));
        at += sectors;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(kind: Kind, flags: u16, offset: u64, length: u32) -> Option<Vec<(RequestKind, u64, u32, bool)>> {
        let mut parts = Vec::new();
        let fits = divide(&Command { cookie: 0, kind, flags, offset, length, stream: 0, queue: 0 }, 4096, &mut parts);
        let of = |part: &Request| (part.kind, part.first_sector, part.sectors, part.fua);
        fits.then(|| parts.iter().map(of).collect())
    }

    #[test]
    fn zeros_are_holes_where_pages_are_whole() {
        use RequestKind::{Flush, Trim, Write};
        assert_eq!(parts(Kind::WriteZeroes, 0, 4096, 8192), Some(vec![(Trim, 8, 16, false)]));
        let cut = vec![(Write, 7, 1, true), (Trim, 8, 8, false), (Write, 16, 2, true), (Flush, 0, 0, false)];
        assert_eq!(parts(Kind::WriteZeroes, flag::FUA, 3584, 5632), Some(cut));
        assert_eq!(parts(Kind::WriteZeroes, 0, 512, 7680 - 512), Some(vec![(Write, 1, 14, false)]));
        assert_eq!(parts(Kind::WriteZeroes, flag::NO_HOLE, 0, 4096), Some(vec![(Write, 0, 8, false)]));
        let pieces = parts(Kind::WriteZeroes, flag::NO_HOLE, 0, PAYLOAD_MAX + 512).unwrap();
        assert_eq!(pieces, [(Write, 0, 65_536, false), (Write, 65_536, 1, false)]);
    }

    #[test]
    fn zeros_that_must_be_fast_are_refused_where_they_are_written() {
        assert!(parts(Kind::WriteZeroes, flag::FAST_ZERO, 4096, 4096).is_some());
        assert_eq!(parts(Kind::WriteZeroes, flag::FAST_ZERO, 512, 8192), None);
        assert_eq!(parts(Kind::WriteZeroes, flag::FAST_ZERO | flag::NO_HOLE, 4096, 4096), None);
    }

    #[test]
    fn a_forced_trim_is_flushed() {
        let found = parts(Kind::Trim, flag::FUA, 0, 4096).unwrap();
        assert_eq!(found, [(RequestKind::Trim, 0, 8, false), (RequestKind::Flush, 0, 0, false)]);
        assert_eq!(parts(Kind::Write, flag::FUA, 0, 512).unwrap(), [(RequestKind::Write, 0, 1, true)]);
        assert_eq!(parts(Kind::Cache, 0, 0, 512).unwrap(), [(RequestKind::Read, 0, 1, false)]);
    }
}
