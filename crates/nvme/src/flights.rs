//! The commands of a queue that are not answered, and those that the drive has. Every transport keeps them so.

use crate::commands::Io;
use crate::wire::{Sqe, Status};

/// What the drive is asked for a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The command, to which its transport is told the end.
    pub flight: u32,
    /// What is asked.
    pub io: Io,
    /// The data of a write.
    pub data: Vec<u8>,
}

/// Commands that are not answered, by their identifiers.
#[derive(Debug)]
pub(crate) struct Open {
    bits: Box<[u64; 1024]>,
    count: usize,
}

impl Default for Open {
    fn default() -> Self {
        Self { bits: Box::new([0; 1024]), count: 0 }
    }
}

/// Where a command's bit is.
fn place_of(cid: u16) -> (usize, u64) {
    (usize::from(cid >> 6), 1 << (cid & 63))
}

impl Open {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Marks a command as not answered. Returns false if there is one of its identifier already.
    pub fn insert(&mut self, cid: u16) -> bool {
        let (word, bit) = place_of(cid);
        if self.bits[word] & bit != 0 {
            return false;
        }
        self.bits[word] |= bit;
        self.count += 1;
        true
    }

    /// A command that was marked is answered.
    pub fn remove(&mut self, cid: u16) {
        let (word, bit) = place_of(cid);
        self.bits[word] &= !bit;
        self.count -= 1;
    }
}

/// A command in the drive, `with` what its transport keeps of it.
#[derive(Debug)]
pub(crate) struct Flight<T> {
    pub sqe: Sqe,
    /// Requests that have not ended.
    left: u32,
    status: Status,
    /// What a Compare brings.
    compares: Option<Vec<u8>>,
    pub with: T,
}

/// The commands in the drive.
#[derive(Debug)]
pub(crate) struct Flights<T> {
    slots: Vec<Option<Flight<T>>>,
    free: Vec<u32>,
    /// What was read and goes to no host: for a Compare, or when nobody waits.
    found: Vec<u8>,
}

impl<T> Default for Flights<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), found: Vec::new() }
    }
}

impl<T> Flights<T> {
    /// A command is begun as so many requests. `compares` is what a Compare brings. Returns its number.
    pub fn begin(&mut self, sqe: &Sqe, left: u32, compares: Option<Vec<u8>>, with: T) -> u32 {
        let flight = Flight { sqe: *sqe, left, status: Status::SUCCESS, compares, with };
        if let Some(at) = self.free.pop() {
            self.slots[at as usize] = Some(flight);
            return at;
        }
        self.slots.push(Some(flight));
        u32::try_from(self.slots.len() - 1).expect("commands are bounded by their queues")
    }

    /// A command that has not ended.
    pub fn get(&self, at: u32) -> &Flight<T> {
        self.slots[at as usize].as_ref().expect("a command that has not ended")
    }

    /// All that have not ended.
    pub fn all(&self) -> impl Iterator<Item = &Flight<T>> {
        self.slots.iter().flatten()
    }

    /// Whether what is read is compared, and goes to no host.
    pub fn is_compare(&self, at: u32) -> bool {
        self.get(at).compares.is_some()
    }

    /// Room for what is read and compared, or wanted by nobody.
    pub fn found(&mut self, length: usize) -> &mut [u8] {
        self.found.resize(length, 0);
        &mut self.found
    }

    /// A request of a command has ended, with a status. After its last one returns the command, and how it ended.
    pub fn ended(&mut self, at: u32, status: Status) -> Option<(Flight<T>, Status)> {
        let flight = self.slots[at as usize].as_mut().expect("a command that has not ended");
        flight.left -= 1;
        if flight.status.is_ok() {
            flight.status = status;
        }
        if flight.left > 0 {
            return None;
        }
        let flight = self.slots[at as usize].take().expect("it was there");
        self.free.push(at);
        let differs = flight.compares.as_ref().is_some_and(|data| *data != self.found);
        let status = if flight.status.is_ok() && differs { Status::COMPARE_FAILED } else { flight.status };
        Some((flight, status))
    }
}
