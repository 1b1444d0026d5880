//! The commands of a queue that are not answered, and those that the drive has. Every transport keeps them so.
//!
//! ```text
//!   Outcome ─► Flights::begin ─► Ready, Ready, …  ─► the drive ─► Flights::gather, Flights::ended ─► Over
//!                                                                       └─► Ready, …: the writes of a copy
//! ```
//!
//! A read of one piece has its data put where they are sent from. Where the data of several pieces belong together, or are compared
//! or copied, they are gathered here; [`Flights::gathered`] bounds how many.

use crate::commands::{Io, Op, Outcome};
use crate::wire::{Sqe, Status};
use std::collections::VecDeque;

/// What the drive is asked for a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The command, to which its transport is told the end.
    pub flight: u32,
    /// Where the data of this request begin in those of the command, in bytes.
    pub at: u32,
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

/// Data that are gathered, and what becomes of them. A command that has none, brings them, or reads in one piece gathers none.
#[derive(Debug)]
struct Gathers {
    data: Vec<u8>,
    then: Then,
}

#[derive(Debug)]
enum Then {
    /// They go to the host.
    Return,
    /// They are compared with these.
    Compare(Vec<u8>),
    /// They are written in these places.
    Write(Vec<Io>),
}

/// A command in the drive, `with` what its transport keeps of it.
#[derive(Debug)]
pub(crate) struct Flight<T> {
    pub sqe: Sqe,
    /// Requests of it, as long as any of them may be one that has not begun.
    pieces: u32,
    /// Requests that have not ended.
    left: u32,
    status: Status,
    result: u64,
    gathers: Option<Box<Gathers>>,
    pub with: T,
}

/// A command that has ended.
#[derive(Debug)]
pub(crate) struct Over<T> {
    pub sqe: Sqe,
    pub status: Status,
    /// Dwords 0 and 1 of the completion.
    pub result: u64,
    /// Data for the host that were gathered.
    pub data: Option<Vec<u8>>,
    pub with: T,
}

/// The commands in the drive.
#[derive(Debug)]
pub(crate) struct Flights<T> {
    slots: Vec<Option<Flight<T>>>,
    free: Vec<u32>,
    gathered: usize,
}

impl<T> Default for Flights<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), gathered: 0 }
    }
}

impl<T> Flights<T> {
    /// Bytes that are kept for commands that gather.
    pub fn gathered(&self) -> usize {
        self.gathered
    }

    /// The drive is to be asked for a command, which brings `data`. Returns false if nothing is asked: the command is over.
    pub fn begin(&mut self, sqe: &Sqe, outcome: Outcome, data: Vec<u8>, with: T, mut ready: impl FnMut(Ready)) -> bool {
        if let Outcome::Io(io) = outcome {
            let flight = self.add(sqe, 1, None, with);
            let data = if io.op.stores_data() { data } else { Vec::new() };
            ready(Ready { flight, at: 0, io, data });
            return true;
        }
        self.begin_several(sqe, outcome, data, with, ready)
    }

    #[cold]
    fn begin_several(
        &mut self,
        sqe: &Sqe,
        outcome: Outcome,
        data: Vec<u8>,
        with: T,
        mut ready: impl FnMut(Ready),
    ) -> bool {
        let (ios, then) = match outcome {
            Outcome::Done(..) | Outcome::Held | Outcome::Queues(_) => return false,
            Outcome::Io(io) => (vec![io], None),
            Outcome::Several(ios) => {
                let returns = ios.first().is_some_and(|io| io.op == Op::Read);
                (ios, returns.then_some(Then::Return))
            }
            Outcome::Compare(ios) => (ios, Some(Then::Compare(data.clone()))),
            Outcome::Copy(copy) => (copy.reads, Some(Then::Write(copy.writes))),
        };
        let Ok(count @ 1..) = u32::try_from(ios.len()) else { return false };
        let bytes = ios.iter().map(|io| io.bytes as usize).sum();
        let gathers = then.map(|then| Box::new(Gathers { data: vec![0; bytes], then }));
        self.gathered += if gathers.is_some() { bytes } else { 0 };
        let flight = self.add(sqe, count, gathers, with);
        put_ready(flight, ios, &data, &mut ready);
        true
    }

    fn add(&mut self, sqe: &Sqe, left: u32, gathers: Option<Box<Gathers>>, with: T) -> u32 {
        let flight = Flight { sqe: *sqe, pieces: left, left, status: Status::SUCCESS, result: 0, gathers, with };
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

    /// A command that has not ended and is the one that is looked for.
    pub fn find(&self, is_it: impl Fn(&Flight<T>) -> bool) -> Option<u32> {
        let found = self.slots.iter().position(|slot| slot.as_ref().is_some_and(&is_it))?;
        u32::try_from(found).ok()
    }

    /// Takes back a command that has not begun: its requests are among those that wait. Removes these, and returns the command and the bytes of
    /// data that they bring; none if the drive has a part of it.
    pub fn take_back(&mut self, at: u32, waiting: &mut VecDeque<Ready>) -> Option<(Over<T>, usize)> {
        let flight = self.slots[at as usize].as_mut().expect("a command that has not ended");
        let mine = |ready: &&Ready| ready.flight == at;
        if waiting.iter().filter(mine).count() != flight.pieces as usize {
            return None;
        }
        let bytes = waiting.iter().filter(mine).map(|ready| ready.data.len()).sum();
        waiting.retain(|ready| ready.flight != at);
        if let Some(gathers) = flight.gathers.take() {
            self.gathered -= gathers.data.len();
        }
        Some((self.take(at), bytes))
    }

    /// Where the data of a read are to be put, if they are gathered.
    pub fn gather(&mut self, flight: u32, at: u32, bytes: usize) -> Option<&mut [u8]> {
        let flight = self.slots[flight as usize].as_mut().expect("a command that has not ended");
        flight.gathers.as_mut()?.data.get_mut(at as usize..at as usize + bytes)
    }

    /// An append of so many bytes went to a place so many bytes behind the start of its zone, which its completion tells in blocks.
    pub fn appended(&mut self, flight: u32, behind: u64, bytes: u32) {
        let flight = self.slots[flight as usize].as_mut().expect("a command that has not ended");
        let block = u64::from(bytes) / flight.sqe.blocks();
        flight.result = flight.sqe.first_block() + behind / block;
    }

    /// A request of a command has ended. Returns the command if that was the last one; what follows otherwise goes to `ready`.
    pub fn ended(&mut self, at: u32, status: Status, ready: impl FnMut(Ready)) -> Option<Over<T>> {
        let flight = self.slots[at as usize].as_mut().expect("a command that has not ended");
        flight.left -= 1;
        if flight.status.is_ok() {
            flight.status = status;
        }
        if flight.left > 0 {
            return None;
        }
        if flight.gathers.is_some() {
            return self.has_gathered(at, ready);
        }
        Some(self.take(at))
    }

    /// The last request of a command that gathers has ended.
    #[cold]
    fn has_gathered(&mut self, at: u32, mut ready: impl FnMut(Ready)) -> Option<Over<T>> {
        let flight = self.slots[at as usize].as_mut().expect("a command that has not ended");
        let mut gathers = flight.gathers.take().expect("it gathers");
        if let (Then::Write(writes), true) = (&mut gathers.then, flight.status.is_ok())
            && !writes.is_empty()
        {
            let writes = std::mem::take(writes);
            flight.left = u32::try_from(writes.len()).expect("a copy has few pieces");
            flight.pieces = u32::MAX; // it has begun
            put_ready(at, writes, &gathers.data, &mut ready);
            flight.gathers = Some(gathers);
            return None;
        }
        let Gathers { data, then } = *gathers;
        self.gathered -= data.len();
        let mut over = self.take(at);
        match then {
            Then::Return => over.data = Some(data),
            Then::Compare(brings) if over.status.is_ok() && brings != data => over.status = Status::COMPARE_FAILED,
            Then::Compare(_) | Then::Write(_) => {}
        }
        Some(over)
    }

    fn take(&mut self, at: u32) -> Over<T> {
        self.free.push(at);
        let Flight { sqe, status, result, with, .. } = self.slots[at as usize].take().expect("it was there");
        Over { sqe, status, result, data: None, with }
    }
}

/// Requests of a command, each with its part of the data if it writes.
fn put_ready(flight: u32, ios: Vec<Io>, data: &[u8], ready: &mut impl FnMut(Ready)) {
    let mut at = 0;
    for io in ios {
        let moves = matches!(io.op, Op::Read | Op::Write);
        let end = at + if moves { io.bytes as usize } else { 0 };
        let part = if io.op == Op::Write { data[at..end].to_vec() } else { Vec::new() };
        ready(Ready { flight, at: u32::try_from(at).expect("a command moves a MiB at most"), io, data: part });
        at = end;
    }
}
