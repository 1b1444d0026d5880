//! Foreground: a write that finds its plane short of free blocks waits until whole victims are cleaned; nothing is
//! cleaned at other times.

use super::{Moment, Occasion, SchedulePolicy};
use serde::{Deserialize, Serialize};

/// Cleans when a write lacks room, as much as the write needs.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Foreground;

impl SchedulePolicy for Foreground {
    #[inline]
    fn steps(&mut self, moment: Moment) -> u32 {
        match moment.occasion {
            Occasion::Write if moment.free_blocks <= moment.free_blocks_min => u32::MAX,
            Occasion::Write | Occasion::Idle => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_write_that_lacks_free_blocks_cleans() {
        let steps = |occasion, free_blocks| Foreground.steps(Moment { occasion, free_blocks, free_blocks_min: 2 });
        assert_eq!([1, 2, 3].map(|free| steps(Occasion::Write, free)), [u32::MAX, u32::MAX, 0]);
        assert_eq!([1, 2, 3].map(|free| steps(Occasion::Idle, free)), [0, 0, 0]);
    }
}
