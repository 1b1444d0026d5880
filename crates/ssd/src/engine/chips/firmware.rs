//! The processor that prepares what cleaning moves.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// It works on one page at a time, in order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct CopyFirmware {
    /// Time for a page; 0 if it takes none.
    each: u64,
    free_at: u64,
    /// Commands with the time when their last page is prepared.
    waiting: VecDeque<(u64, u32)>,
}

impl CopyFirmware {
    pub fn new(each: u64) -> Self {
        Self { each, ..Self::default() }
    }

    #[inline(always)]
    pub fn is_there(&self) -> bool {
        self.each > 0
    }

    /// Prepares pages of a command; answers whether the command waits for one thing more, and when to look again if it is the
    /// only one.
    pub fn prepares(&mut self, command: u32, pages: u32, now: u64) -> (bool, Option<u64>) {
        self.free_at = self.free_at.max(now) + self.each * u64::from(pages);
        match self.waiting.back_mut() {
            Some((ready_at, last)) if *last == command => {
                *ready_at = self.free_at;
                (false, None)
            }
            back => {
                let look_at = back.is_none().then_some(self.free_at);
                self.waiting.push_back((self.free_at, command));
                (true, look_at)
            }
        }
    }

    /// The next command whose pages are prepared by `now`; else when to look again, if any waits.
    pub fn prepared(&mut self, now: u64) -> Result<u32, Option<u64>> {
        match self.waiting.front() {
            Some((ready_at, command)) if *ready_at <= now => {
                let command = *command;
                self.waiting.pop_front();
                Ok(command)
            }
            front => Err(front.map(|(ready_at, _)| *ready_at)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_prepared_one_after_the_other() {
        let mut firmware = CopyFirmware::new(10);
        assert_eq!(firmware.prepares(1, 1, 100), (true, Some(110)));
        assert_eq!(firmware.prepares(1, 2, 100), (false, None));
        assert_eq!(firmware.prepares(2, 1, 105), (true, None));
        assert_eq!(firmware.prepared(110), Err(Some(130)));
        assert_eq!([firmware.prepared(130), firmware.prepared(130)], [Ok(1), Err(Some(140))]);
        assert_eq!([firmware.prepared(140), firmware.prepared(140)], [Ok(2), Err(None)]);
        assert_eq!(firmware.prepares(3, 1, 500), (true, Some(510)));
    }
}
