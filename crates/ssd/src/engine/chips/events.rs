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
    /// A die decides what to do.
    Decides = 2,
    /// A bus is given to a die.
    Grants = 3,
}

impl What {
    /// Whether it can still be decided otherwise by what is issued at its time.
    #[inline(always)]
    pub fn decides(self) -> bool {
        matches!(self, What::Decides | What::Grants)
    }
}

/// An event, packed so that the first is the smallest.
///
/// ```text
///   bits  64..128  time
///         62..64   what
///         24..62   epoch of a command, or sequence number of a request
///          0..24   command, request, die or bus
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Event(u128);

const ID_BITS: u32 = 24;
const ORDER_BITS: u32 = 38;

impl Event {
    #[inline(always)]
    fn new(at: u64, what: What, order: u64, id: u32) -> Self {
        assert!(id < 1 << ID_BITS, "fewer than 16 million are in flight");
        let order = order & ((1 << ORDER_BITS) - 1);
        Self(u128::from(at) << 64 | (what as u128) << 62 | u128::from(order) << ID_BITS | u128::from(id))
    }
    #[inline(always)]
    pub fn ended(at: u64, epoch: u16, id: u32) -> Self {
        Self::new(at, What::Ended, u64::from(epoch), id)
    }
    #[inline(always)]
    pub fn completed(at: u64, sequence: u64, slot: u32) -> Self {
        Self::new(at, What::Completed, sequence, slot)
    }
    #[inline(always)]
    pub fn decides(at: u64, die: usize) -> Self {
        Self::new(at, What::Decides, 0, u32::try_from(die).expect("dies are counted in 32 bits"))
    }
    #[inline(always)]
    pub fn grants(at: u64, bus: usize) -> Self {
        Self::new(at, What::Grants, 0, u32::try_from(bus).expect("channels are counted in 32 bits"))
    }
    #[inline(always)]
    pub fn at(self) -> u64 {
        (self.0 >> 64) as u64
    }
    #[inline(always)]
    pub fn what(self) -> What {
        match (self.0 >> 62) as u8 & 3 {
            0 => What::Ended,
            1 => What::Completed,
            2 => What::Decides,
            _ => What::Grants,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_then_kind_then_order() {
        let all = [
            Event::grants(5, 0),
            Event::decides(5, 3),
            Event::completed(5, 9, 1),
            Event::completed(5, 2, 7),
            Event::ended(5, 1, 4),
            Event::decides(4, 0),
        ];
        let mut events = Events::default();
        all.iter().for_each(|event| events.push(*event));
        let mut seen = Vec::new();
        while let Some(event) = events.first() {
            seen.push((event.at(), event.what(), event.id()));
            events.pop();
        }
        let expected = [
            (4, What::Decides, 0),
            (5, What::Ended, 4),
            (5, What::Completed, 7),
            (5, What::Completed, 1),
            (5, What::Decides, 3),
            (5, What::Grants, 0),
        ];
        assert_eq!(seen, expected);
    }
}
