//! RAM that holds written data until a die has programmed them.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Room is given in order of arrival. Both counts only grow: what is in RAM is their difference.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct WriteRam {
    /// Pages; 0 for no RAM.
    size: u64,
    taken: u64,
    freed: u64,
    /// Requests without room: up to which page they need it.
    waiting: VecDeque<(u32, u64)>,
}

impl WriteRam {
    pub fn new(size: u64) -> Self {
        Self { size, ..Self::default() }
    }

    #[inline(always)]
    pub fn is_there(&self) -> bool {
        self.size > 0
    }

    /// Pages come in, of the request in `slot`; returns whether there is room for them.
    #[inline(always)]
    pub fn takes(&mut self, slot: u32, pages: u32) -> bool {
        self.taken += u64::from(pages);
        let has_room = self.waiting.is_empty() && self.taken - self.freed <= self.size;
        if !has_room {
            self.waiting.push_back((slot, self.taken));
        }
        has_room
    }

    /// Pages leave.
    #[inline(always)]
    pub fn frees(&mut self, pages: u32) {
        self.freed += u64::from(pages);
    }

    /// The next request that has room now.
    #[inline(always)]
    pub fn admits(&mut self) -> Option<u32> {
        let (slot, up_to) = *self.waiting.front()?;
        if up_to.saturating_sub(self.freed) > self.size {
            return None;
        }
        self.waiting.pop_front();
        Some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_given_in_order() {
        let mut ram = WriteRam::new(4);
        assert!(ram.takes(0, 3));
        assert!(!ram.takes(1, 2), "5 of 4");
        assert!(!ram.takes(2, 1), "behind request 1");
        ram.frees(1);
        assert_eq!((ram.admits(), ram.admits()), (Some(1), None));
        ram.frees(1);
        assert_eq!((ram.admits(), ram.admits()), (Some(2), None));
    }
}
