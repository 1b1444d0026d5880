//! The queues of a function in the host's memory, and the commands that the drive has.
//!
//! A completion is written in two steps: the entry with the phase of the round before, then its last four bytes at once. A host
//! that sees the new phase sees the whole entry. Entries behind it come first, since a host looks at them in order.

use super::msix::Msix;
use super::pointer::Places;
use super::{Host, OutOfReach};
use crate::commands::READ;
use crate::flights::{Flights, Open, Over, Ready};
use crate::subsystem::IO_QUEUES_MAX;
use crate::wire::identify::AERL;
use crate::wire::{CQE_BYTES, Cqe, SQE_BYTES, Sqe, Status, put, u32_at};
use std::collections::VecDeque;

/// Queues with their admin queue.
const QUEUES: usize = IO_QUEUES_MAX as usize + 1;
/// Entries that are fetched from a queue in its turn.
pub(super) const BURST: usize = 16;
/// Completions that wait to be written, beyond which nothing is fetched from their submission queues.
const WAITING_MAX: usize = 256;

/// A submission queue.
#[derive(Debug)]
pub(super) struct Submissions {
    address: u64,
    size: u32,
    completion: u16,
    /// The next entry to be fetched, and the one behind the last.
    head: u32,
    tail: u32,
    /// A number that no other queue ever had: commands in the drive outlive their queue.
    number: u64,
    open: Open,
}

/// A completion queue.
#[derive(Debug)]
struct Completions {
    address: u64,
    size: u32,
    /// The next entry that the host takes, and the next to be written.
    head: u32,
    tail: u32,
    phase: bool,
    vector: Option<u16>,
    /// What is to be written.
    waiting: VecDeque<Cqe>,
    /// Submission queues whose completions go here.
    users: u32,
}

impl Completions {
    /// Entries that the host has not taken.
    fn untaken(&self) -> u32 {
        (self.tail + self.size - self.head) % self.size
    }

    /// Entries for which there is room.
    fn room(&self) -> usize {
        (self.size - 1 - self.untaken()) as usize
    }

    /// Whether the host may have taken entries up to `head`.
    fn may_take(&self, head: u32) -> bool {
        head < self.size && (head + self.size - self.head) % self.size <= self.untaken()
    }
}

/// Where a command's completion and its data go.
#[derive(Debug)]
pub(super) struct Landing {
    pub queue: u16,
    pub number: u64,
    pub places: Places,
}

/// Where shadow doorbells are, and where the host learns which it has to tell.
#[derive(Clone, Copy, Debug)]
struct Shadow {
    doorbells: u64,
    events: u64,
}

/// A wrong doorbell, as the event about it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// There is no such queue.
    Register = 0,
    /// The value is none that the queue can have.
    Value = 1,
}

/// The queues, and all that goes back to the host.
#[derive(Debug)]
pub struct Queues<H> {
    /// The host.
    pub host: H,
    /// Answers to messages, which are to be sent.
    pub out: Vec<u8>,
    pub(super) msix: Msix,
    pub(super) flights: Flights<Landing>,
    /// What follows on requests that have ended, and has not gone to the function.
    pub(super) next: Vec<Ready>,
    submissions: Vec<Option<Submissions>>,
    completions: Vec<Option<Completions>>,
    /// Numbers of the submission queues that there are.
    pub(super) active: Vec<u16>,
    /// Completion queues with something to be written.
    touched: Vec<u16>,
    /// Commands that failed in the drive, with their queues, for the error log.
    pub(super) failed: Vec<(u16, Sqe, Status)>,
    last_number: u64,
    shadow: Option<Shadow>,
    /// Commands are fetched: the controller is enabled, and not shut down.
    pub(super) is_enabled: bool,
    /// A queue is out of reach: the controller can't go on.
    pub(super) is_fatal: bool,
    /// The flush of a shutdown that has not ended.
    pub(super) shutdown: Option<u32>,
    /// What was read and is to be written to its command's places.
    found: Vec<u8>,
}

impl<H: Host> Queues<H> {
    /// Of a host that has told nothing yet.
    #[must_use]
    pub fn new(host: H) -> Self {
        Self {
            host,
            out: Vec::new(),
            msix: Msix::default(),
            flights: Flights::default(),
            next: Vec::new(),
            submissions: (0..QUEUES).map(|_| None).collect(),
            completions: (0..QUEUES).map(|_| None).collect(),
            active: Vec::new(),
            touched: Vec::new(),
            failed: Vec::new(),
            last_number: 0,
            shadow: None,
            is_enabled: false,
            is_fatal: false,
            shutdown: None,
            found: Vec::new(),
        }
    }

    /// The controller is reset: there are no queues any more, and what the drive has lands nowhere.
    pub(super) fn reset(&mut self) {
        self.submissions.iter_mut().for_each(|queue| *queue = None);
        self.completions.iter_mut().for_each(|queue| *queue = None);
        self.active.clear();
        self.touched.clear();
        self.failed.clear();
        (self.shadow, self.is_enabled, self.is_fatal, self.shutdown) = (None, false, false, None);
        self.msix.reset();
    }

    /// Whether commands are fetched.
    pub(super) fn is_running(&self) -> bool {
        self.is_enabled && !self.is_fatal
    }

    pub(super) fn create_completion(
        &mut self,
        queue: u16,
        size: u32,
        address: u64,
        vector: Option<u16>,
    ) -> Result<(), Status> {
        let slot = &mut self.completions[usize::from(queue)];
        if slot.is_some() {
            return Err(Status::INVALID_QUEUE);
        }
        let waiting = VecDeque::new();
        *slot = Some(Completions { address, size, head: 0, tail: 0, phase: true, vector, waiting, users: 0 });
        Ok(())
    }

    pub(super) fn create_submission(
        &mut self,
        queue: u16,
        size: u32,
        address: u64,
        completion: u16,
    ) -> Result<(), Status> {
        let slot = &mut self.submissions[usize::from(queue)];
        if slot.is_some() || usize::from(completion) >= QUEUES || (completion == 0) != (queue == 0) {
            return Err(Status::INVALID_QUEUE);
        }
        let completions = self.completions[usize::from(completion)].as_mut().ok_or(Status::NO_COMPLETION_QUEUE)?;
        completions.users += 1;
        self.last_number += 1;
        let (number, open) = (self.last_number, Open::default());
        *slot = Some(Submissions { address, size, completion, head: 0, tail: 0, number, open });
        self.active.push(queue);
        Ok(())
    }

    pub(super) fn delete_completion(&mut self, queue: u16) -> Result<(), Status> {
        let slot = self.completions.get_mut(usize::from(queue)).filter(|slot| queue != 0 && slot.is_some());
        let slot = slot.ok_or(Status::INVALID_QUEUE)?;
        if slot.as_ref().is_some_and(|found| found.users > 0) {
            return Err(Status::INVALID_QUEUE_DELETION);
        }
        *slot = None;
        self.touched.retain(|each| *each != queue);
        Ok(())
    }

    /// A submission queue goes: commands of it that the drive has are answered as aborted, and land nowhere.
    pub(super) fn delete_submission(&mut self, queue: u16) -> Result<(), Status> {
        let slot = self.submissions.get(usize::from(queue)).and_then(Option::as_ref).filter(|_| queue != 0);
        let number = slot.ok_or(Status::INVALID_QUEUE)?.number;
        let of_queue = self.flights.all().filter(|flight| flight.with.number == number);
        let cids: Vec<u16> = of_queue.map(|flight| flight.sqe.cid()).collect();
        for cid in cids {
            self.complete(queue, cid, 0, Status::SQ_DELETED);
        }
        let gone = self.submissions[usize::from(queue)].take().expect("it was there");
        if let Some(completions) = &mut self.completions[usize::from(gone.completion)] {
            completions.users -= 1;
        }
        self.active.retain(|each| *each != queue);
        Ok(())
    }

    /// The number that no other submission queue ever had.
    pub(super) fn number_of(&self, queue: u16) -> Option<u64> {
        self.submissions.get(usize::from(queue))?.as_ref().map(|found| found.number)
    }

    /// The host keeps shadow doorbells: those of I/O queues begin where the doorbells are.
    pub(super) fn keep_shadow(&mut self, doorbells: u64, events: u64) {
        self.shadow = Some(Shadow { doorbells, events });
        self.tell_admin_shadow();
        self.arm();
    }

    /// Where a doorbell is in a page of the shadow.
    fn of_shadow(page: u64, queue: u16, is_completion: bool) -> u64 {
        page.saturating_add(8 * u64::from(queue) + 4 * u64::from(is_completion))
    }

    /// Keeps the shadow of the admin queue at what its register was told: hosts exist that write only the register there.
    fn tell_admin_shadow(&mut self) {
        let (Some(shadow), Some(admin)) = (self.shadow, &self.submissions[0]) else { return };
        let stored = self.host.store(Self::of_shadow(shadow.doorbells, 0, false), admin.tail);
        self.note_reach(stored);
    }

    /// A doorbell is rung.
    pub(super) fn ring(&mut self, queue: u16, is_completion: bool, value: u32) -> Result<(), Wrong> {
        if is_completion {
            return self.take_back(queue, value);
        }
        let found = self.submissions.get_mut(usize::from(queue)).and_then(Option::as_mut).ok_or(Wrong::Register)?;
        if value >= found.size {
            return Err(Wrong::Value);
        }
        found.tail = value;
        if queue == 0 {
            self.tell_admin_shadow();
        }
        Ok(())
    }

    /// The host has taken completions up to `head`.
    fn take_back(&mut self, queue: u16, head: u32) -> Result<(), Wrong> {
        let found = self.completions.get_mut(usize::from(queue)).and_then(Option::as_mut).ok_or(Wrong::Register)?;
        if !found.may_take(head) {
            return Err(Wrong::Value);
        }
        found.head = head;
        if !found.waiting.is_empty() && !self.touched.contains(&queue) {
            self.touched.push(queue);
        }
        Ok(())
    }

    fn note_reach<T>(&mut self, result: Result<T, OutOfReach>) -> Option<T> {
        self.is_fatal |= result.is_err();
        result.ok()
    }

    /// Looks at the shadow doorbells of a queue. Returns what is wrong with them.
    pub(super) fn look(&mut self, queue: u16) -> Result<(), Wrong> {
        let Some(shadow) = self.shadow.filter(|_| queue != 0) else { return Ok(()) };
        let Some(found) = &self.submissions[usize::from(queue)] else { return Ok(()) };
        let (completion, tail) = (found.completion, Self::of_shadow(shadow.doorbells, queue, false));
        let tail = self.host.load(tail);
        if let Some(tail) = self.note_reach(tail) {
            self.ring(queue, false, tail)?;
        }
        self.look_for_room(completion)
    }

    /// Looks at the shadow doorbell of a completion queue where more waits than there is room for.
    fn look_for_room(&mut self, queue: u16) -> Result<(), Wrong> {
        let Some(shadow) = self.shadow.filter(|_| queue != 0) else { return Ok(()) };
        let found = self.completions[usize::from(queue)].as_ref();
        if found.is_none_or(|found| found.waiting.len() <= found.room()) {
            return Ok(());
        }
        let head = self.host.load(Self::of_shadow(shadow.doorbells, queue, true));
        match self.note_reach(head) {
            Some(head) => self.take_back(queue, head),
            None => Ok(()),
        }
    }

    /// Whether there is something to fetch, as far as is known.
    #[must_use]
    pub fn has_work(&self) -> bool {
        let is_there = |queue: &u16| {
            let found = self.submissions[usize::from(*queue)].as_ref();
            found.is_some_and(|found| found.head != found.tail && self.may_fetch(found) > 0)
        };
        self.is_running() && self.active.iter().any(is_there)
    }

    /// Tells the host to ring the doorbells of all queues from now on, since nobody looks at the shadow. Returns whether it has
    /// rung meanwhile. Without a shadow it rings always.
    pub fn arm(&mut self) -> bool {
        let Some(shadow) = self.shadow else { return false };
        let mut stored = Ok(());
        for queue in &self.active {
            let Some(found) = &self.submissions[usize::from(*queue)] else { continue };
            stored = stored.and(self.host.store(Self::of_shadow(shadow.events, *queue, false), found.tail));
            // Of completions that were taken only a queue without room is told.
            let to = self.completions[usize::from(found.completion)].as_ref();
            if let Some(to) = to.filter(|to| !to.waiting.is_empty()) {
                stored = stored.and(self.host.store(Self::of_shadow(shadow.events, found.completion, true), to.head));
            }
        }
        self.note_reach(stored);
        self.host.fence();
        self.has_rung()
    }

    /// Whether a shadow doorbell tells what is not known yet.
    #[must_use]
    pub fn has_rung(&self) -> bool {
        let Some(shadow) = self.shadow.filter(|_| self.is_running()) else { return false };
        self.active.iter().filter(|queue| **queue != 0).any(|queue| {
            let Some(found) = &self.submissions[usize::from(*queue)] else { return false };
            let tail = self.host.load(Self::of_shadow(shadow.doorbells, *queue, false));
            let completions = self.completions[usize::from(found.completion)].as_ref();
            let waits = completions.filter(|completions| !completions.waiting.is_empty());
            let has_room = waits.is_some_and(|completions| {
                let head = self.host.load(Self::of_shadow(shadow.doorbells, found.completion, true));
                head.is_ok_and(|head| head != completions.head && completions.may_take(head))
            });
            tail.is_ok_and(|tail| tail != found.tail && tail < found.size) || has_room
        })
    }

    /// Entries that may be fetched from a queue, at most.
    fn may_fetch(&self, found: &Submissions) -> usize {
        let to = self.completions[usize::from(found.completion)].as_ref();
        let waits = to.is_none_or(|to| to.waiting.len() >= WAITING_MAX);
        let room = (found.size as usize + usize::from(AERL) + 1).saturating_sub(found.open.count());
        if waits { 0 } else { room }
    }

    /// The entries that come next in a queue, up to the end of a round. Each is taken by [`Self::fetched`].
    pub(super) fn next(&mut self, queue: u16, into: &mut [u8; BURST * SQE_BYTES]) -> usize {
        let Some(found) = &self.submissions[usize::from(queue)] else { return 0 };
        let end = if found.tail < found.head { found.size } else { found.tail };
        let count = ((end - found.head) as usize).min(BURST).min(self.may_fetch(found));
        if count == 0 {
            return 0;
        }
        let address = found.address.saturating_add(u64::from(found.head) * SQE_BYTES as u64);
        let read = self.host.read(address, &mut into[..count * SQE_BYTES]);
        if self.note_reach(read).is_some() { count } else { 0 }
    }

    /// A command is taken from its queue. Returns its queue's number, or none if there is no queue any more, or a command of its
    /// identifier is not answered.
    pub(super) fn fetched(&mut self, queue: u16, cid: u16) -> Option<u64> {
        let found = self.submissions[usize::from(queue)].as_mut()?;
        found.head = (found.head + 1) % found.size;
        if found.open.insert(cid) {
            return Some(found.number);
        }
        self.answer(queue, cid, 0, Status::CID_CONFLICT);
        None
    }

    /// Answers a command and forgets it.
    pub(super) fn complete(&mut self, queue: u16, cid: u16, result: u64, status: Status) {
        if let Some(found) = &mut self.submissions[usize::from(queue)] {
            found.open.remove(cid);
            self.answer(queue, cid, result, status);
        }
    }

    fn answer(&mut self, queue: u16, cid: u16, result: u64, status: Status) {
        let Some(found) = &self.submissions[usize::from(queue)] else { return };
        let sq_head = u16::try_from(found.head).expect("a queue has 1,024 entries at most");
        let to = found.completion;
        let Some(completions) = &mut self.completions[usize::from(to)] else { return };
        if completions.waiting.is_empty() && !self.touched.contains(&to) {
            self.touched.push(to);
        }
        completions.waiting.push_back(Cqe { result, sq_head, queue, cid, status });
    }

    /// Where the data of a read are to be put, which begin at `at` in those of its command. [`Queues::ended`] follows at once.
    pub fn data(&mut self, flight: u32, at: u32, length: usize) -> &mut [u8] {
        if self.flights.gather(flight, at, length).is_some() {
            return self.flights.gather(flight, at, length).expect("it was there");
        }
        self.found.resize(length, 0);
        &mut self.found
    }

    /// An append of so many bytes went to a place so many bytes behind the start of its zone. [`Queues::ended`] follows.
    pub fn appended(&mut self, flight: u32, behind: u64, bytes: u32) {
        self.flights.appended(flight, behind, bytes);
    }

    /// A request of a command has ended, with a status.
    pub fn ended(&mut self, at: u32, status: Status) {
        let Landing { queue, number, .. } = self.flights.get(at).with;
        let is_there = self.submissions[usize::from(queue)].as_ref().is_some_and(|found| found.number == number);
        // Nothing follows on a command whose queue is gone.
        let status = if is_there { status } else { Status::ABORTED };
        let Self { flights, next, .. } = self;
        let Some(Over { sqe, mut status, result, data, with }) = flights.ended(at, status, |ready| next.push(ready))
        else {
            return;
        };
        if self.shutdown == Some(at) {
            self.shutdown = None;
        }
        if !is_there {
            return;
        }
        if status.is_ok() && sqe.opcode() == READ {
            let found = data.as_ref().unwrap_or(&self.found);
            status = with.places.write(&self.host, found).map_or_else(Status::from, |()| status);
        }
        self.complete(queue, sqe.cid(), result, status);
        if !status.is_ok() {
            self.failed.push((queue, sqe, status));
        }
    }

    /// Writes completions as far as there is room for them, and tells the host.
    pub fn flush(&mut self) {
        for queue in std::mem::take(&mut self.touched) {
            let _ = self.look_for_room(queue); // a wrong value is told of when the queue is looked at
            let Some(found) = &mut self.completions[usize::from(queue)] else { continue };
            let Ok(count) = post(&self.host, found) else {
                self.is_fatal = true;
                found.waiting.clear();
                continue;
            };
            if let (1.., Some(vector)) = (count, found.vector) {
                self.msix.raise(&self.host, vector);
            }
        }
    }
}

/// Writes completions to their queue, as far as there is room. Returns how many.
fn post(host: &impl Host, found: &mut Completions) -> Result<usize, OutOfReach> {
    let count = found.waiting.len().min(found.room());
    if count == 0 {
        return Ok(0);
    }
    let mut entries = Vec::with_capacity(count * CQE_BYTES);
    let to_end = (found.size - found.tail) as usize; // behind the last place the phase turns
    for (at, cqe) in found.waiting.drain(..count).enumerate() {
        let phase = found.phase ^ (at >= to_end);
        let mut bytes = cqe.bytes();
        bytes[14] |= u8::from(phase);
        entries.extend(bytes);
    }
    let address = found.address.saturating_add(u64::from(found.tail) * CQE_BYTES as u64);
    let last = u32_at(&entries, 12);
    put(&mut entries, 12, &(last ^ 1 << 16).to_le_bytes()); // as the round before left it
    let (here, next) = entries.split_at(entries.len().min(to_end * CQE_BYTES));
    if !next.is_empty() {
        host.write(found.address, next)?;
    }
    host.write(address, here)?;
    host.store(address.saturating_add(12), last)?;
    found.tail += u32::try_from(count).expect("a queue has 1,024 entries at most");
    if found.tail >= found.size {
        found.tail -= found.size;
        found.phase = !found.phase;
    }
    Ok(count)
}
