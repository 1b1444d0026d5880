//! What happens when.

use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What an event is, in the order in which events of the same time come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A stage of a command is over.
    Ended = 0,
    /// A request is complete.
    Completed = 1,
    /// A die was told to look again at this time.
    LooksAgain = 2,
    /// A bus is free that others wait for.
    BusFree = 3,
    /// Pages that cleaning moves are prepared.
    Prepared = 4,
}

/// An event, packed so that the first is the smallest.
///
/// ```text
///   bits  64..128  time
///         61..64   what
///         24..61   epoch of a command, or sequence number of a request
///          0..24   command, request, die or bus
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Event(u128);

const ID_BITS: u32 = 24;
const ORDER_BITS: u32 = 37;

impl Event {
    #[inline(always)]
    fn new(at: u64, what: What, order: u64, id: u32) -> Self {
        assert!(id < 1 << ID_BITS, "fewer than 16 million are in flight");
        let order = order & ((1 << ORDER_BITS) - 1);
        Self(u128::from(at) << 64 | (what as u128) << 61 | u128::from(order) << ID_BITS | u128::from(id))
    }
    #[inline(always)]
    pub fn ended(at: u64, epoch: u16, id: u32) -> Self {
        Self::new(at, What::Ended, u64::from(epoch), id)
    }
    #[inline(always)]
    pub fn completed(at: u64, sequence: u64, slot: u32) -> Self {
        Self::new(at, What::Completed, sequence, slot)
    }
    #[inline]
    pub fn looks_again(at: u64, die: usize) -> Self {
        Self::new(at, What::LooksAgain, 0, u32::try_from(die).expect("dies are counted in 32 bits"))
    }
    pub fn prepared(at: u64) -> Self {
        Self::new(at, What::Prepared, 0, 0)
    }
    #[inline(always)]
    pub fn bus_free(at: u64, channel: usize) -> Self {
        Self::new(at, What::BusFree, 0, u32::try_from(channel).expect("channels are counted in 32 bits"))
    }
    #[inline(always)]
    pub fn at(self) -> u64 {
        (self.0 >> 64) as u64
    }
    #[inline(always)]
    pub fn what(self) -> What {
        match (self.0 >> 61) as u8 & 7 {
            0 => What::Ended,
            1 => What::Completed,
            2 => What::LooksAgain,
            3 => What::BusFree,
            _ => What::Prepared,
        }
    }
    #[inline(always)]
    pub fn epoch(self) -> u16 {
        (self.0 >> ID_BITS) as u16
    }
    #[inline(always)]
    pub fn id(self) -> u32 {
        self.0 as u32 & ((1 << ID_BITS) - 1)
    }
}

/// The events to come.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Events(BinaryHeap<Reverse<Event>>);

impl Events {
    #[inline(always)]
    pub fn push(&mut self, event: Event) {
        self.0.push(Reverse(event));
    }
    #[inline(always)]
    pub fn first(&self) -> Option<Event> {
        self.0.peek().map(|Reverse(event)| *event)
    }
    #[inline(always)]
    pub fn pop(&mut self) {
        self.0.pop();
    }
}

/// What happens at a time once commands have ended and requests completed: dies that decide, then buses that are granted; each
/// in order of number.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Due {
    pub at: u64,
    /// Dies that decide.
    count: u32,
    dies: Vec<u64>,
    channels: u64,
}

impl Due {
    pub fn new(dies: usize) -> Self {
        Self { at: 0, count: 0, dies: vec![0; dies.div_ceil(64)], channels: 0 }
    }
    #[inline(always)]
    pub fn decide(&mut self, die: usize, now: u64) {
        self.at = now;
        let word = &mut self.dies[die / 64];
        self.count += u32::from(*word >> (die % 64) & 1 == 0);
        *word |= 1 << (die % 64);
    }
    #[inline(always)]
    pub fn grant(&mut self, channel: usize, now: u64) {
        self.at = now;
        self.channels |= 1 << channel;
    }
    #[inline(always)]
    pub fn is_something(&self) -> bool {
        self.channels != 0 || self.count > 0
    }
    /// Takes the next die that decides.
    #[inline(always)]
    pub fn next_die(&mut self) -> Option<usize> {
        if self.count == 0 {
            return None;
        }
        self.count -= 1;
        let word = self.dies.iter().position(|dies| *dies != 0)?;
        let bit = self.dies[word].trailing_zeros() as usize;
        self.dies[word] &= self.dies[word] - 1;
        Some(word * 64 + bit)
    }
    /// Takes the next channel whose bus is granted.
    #[inline(always)]
    pub fn next_channel(&mut self) -> Option<usize> {
        let channel = self.channels.trailing_zeros() as usize;
        (self.channels != 0).then(|| {
            self.channels &= self.channels - 1;
            channel
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_then_kind_then_order() {
        let all = [
            Event::looks_again(5, 3),
            Event::completed(5, 9, 1),
            Event::completed(5, 2, 7),
            Event::ended(5, 1, 4),
            Event::looks_again(4, 0),
        ];
        let mut events = Events::default();
        all.iter().for_each(|event| events.push(*event));
        let mut seen = Vec::new();
        while let Some(event) = events.first() {
            seen.push((event.at(), event.what(), event.id()));
            events.pop();
        }
        let expected = [
            (4, What::LooksAgain, 0),
            (5, What::Ended, 4),
            (5, What::Completed, 7),
            (5, What::Completed, 1),
            (5, What::LooksAgain, 3),
        ];
        assert_eq!(seen, expected);
    }
}
