//! RAM that holds pages until a die has programmed them.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Pages in RAM that wait for their program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct InRam {
    /// Written by the host.
    pub host: u32,
    /// Copied by cleaning.
    pub copies: u32,
}

impl InRam {
    pub const NOTHING: Self = Self { host: 0, copies: 0 };
}

/// What waits for room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Waiter {
    /// A request that is done when its data have room.
    Request(u32),
    /// A command that can't go before its pages have room.
    Command(u32),
}

/// RAM of one kind. Room is given page by page in order of issue, so that whatever holds room was issued before what waits for it. Both counts
/// only grow: what is in RAM is their difference.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Room {
    /// Pages; 0 if it is not modelled.
    size: u64,
    taken: u64,
    freed: u64,
    /// Up to which page each needs room, and how many of its own wait for it.
    waiting: VecDeque<(Waiter, u64, u32)>,
}

impl Room {
    pub fn new(size: u64) -> Self {
        Self { size, ..Self::default() }
    }

    #[inline(always)]
    pub fn is_there(&self) -> bool {
        self.size > 0
    }

    /// A page comes in; answers whether `waiter` waits for one thing more.
    #[inline(always)]
    pub fn takes(&mut self, waiter: Waiter) -> bool {
        self.taken += 1;
        if self.waiting.is_empty() && self.taken - self.freed <= self.size || self.size == 0 {
            return false;
        }
        self.queues(waiter, 1)
    }

    #[cold]
    fn queues(&mut self, waiter: Waiter, pages: u32) -> bool {
        match self.waiting.back_mut() {
            Some((last, up_to, own)) if *last == waiter => {
                *up_to = self.taken;
                *own += pages;
                false
            }
            _ => {
                self.waiting.push_back((waiter, self.taken, pages));
                true
            }
        }
    }

    /// A page comes in if that makes `waiter`, which has a page here already, wait for nothing more than it does; answers whether
    /// it did.
    #[inline(always)]
    pub fn takes_with(&mut self, waiter: Waiter) -> bool {
        let does = match self.waiting.back() {
            None => self.size == 0 || self.taken - self.freed < self.size,
            Some((last, ..)) => *last == waiter,
        };
        if does {
            self.takes(waiter);
        }
        does
    }

    /// Whether `waiter` must wait until the page that came in last has room.
    #[inline(always)]
    pub fn waits(&mut self, waiter: Waiter) -> bool {
        !self.waiting.is_empty() && self.queues(waiter, 0)
    }

    /// Pages leave.
    #[inline(always)]
    pub fn frees(&mut self, pages: u32) {
        self.freed += u64::from(pages);
    }

    /// Whether `waiter` is the last that waits.
    pub fn keeps_waiting(&self, waiter: Waiter) -> bool {
        self.waiting.back().is_some_and(|(last, ..)| *last == waiter)
    }

    /// The next that has room now, and how many of its pages waited for it.
    #[inline(always)]
    pub fn admits(&mut self) -> Option<(Waiter, u32)> {
        let (waiter, up_to, own) = *self.waiting.front()?;
        if up_to.saturating_sub(self.freed) > self.size {
            return None;
        }
        self.waiting.pop_front();
        Some((waiter, own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_given_in_order() {
        use Waiter::{Command, Request};
        let mut room = Room::new(4);
        assert_eq!([1, 1, 2].map(|id| room.takes(Command(id))), [false; 3]);
        assert!(!room.waits(Request(0)));
        // 4 and 5 of 4: the command waits once, for its last page.
        assert_eq!([3, 3, 3].map(|id| room.takes(Command(id))), [false, true, false]);
        assert!(room.waits(Request(1)));
        assert!(!room.takes_with(Command(3)), "the request is behind it");
        assert!(room.takes(Command(4)) && room.takes_with(Command(4)));
        room.frees(1);
        assert_eq!(room.admits(), None, "6 of 4 + 1");
        room.frees(1);
        assert_eq!([room.admits(), room.admits(), room.admits()], [Some((Command(3), 2)), Some((Request(1), 0)), None]);
        room.frees(2);
        assert_eq!([room.admits(), room.admits()], [Some((Command(4), 2)), None]);
    }
}
