//! Which of several times comes first.

use serde::{Deserialize, Serialize};
use std::hint::select_unpredictable;

const NEVER: u64 = u64::MAX;
/// Times that are compared in one go: a loop over so few costs more than what it compares.
const GROUP: usize = 4;

/// Times by number: when something happens in each channel next, or [`NEVER`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Soonest {
    /// Filled up with [`NEVER`] to whole groups.
    times: Vec<u64>,
}

impl Soonest {
    /// So many times, all of them never.
    pub fn new(count: usize) -> Self {
        Self { times: vec![NEVER; count.next_multiple_of(GROUP)] }
    }

    #[inline(always)]
    pub fn of(&self, number: usize) -> u64 {
        self.times[number]
    }

    #[inline(always)]
    pub fn set(&mut self, number: usize, time: u64) {
        self.times[number] = time;
    }

    /// The number of the first time, ties to the lower one, and the time.
    #[inline(always)]
    pub fn first(&self) -> (usize, u64) {
        let mut first = (0, NEVER);
        for (at, [a, b, c, d]) in self.times.as_chunks::<GROUP>().0.iter().enumerate() {
            let at = at * GROUP;
            let of_group = sooner(sooner((at, *a), (at + 1, *b)), sooner((at + 2, *c), (at + 3, *d)));
            first = sooner(first, of_group);
        }
        first
    }

    /// How many of the times are not after `time`.
    #[inline(always)]
    pub fn count_up_to(&self, time: u64) -> u32 {
        let groups = self.times.as_chunks::<GROUP>().0.iter();
        groups.map(|group| group.iter().map(|other| u32::from(*other <= time)).sum::<u32>()).sum()
    }
}

/// The sooner of two, the first if they are the same. Without a branch: which one it is is a coin toss.
#[inline(always)]
fn sooner(one: (usize, u64), other: (usize, u64)) -> (usize, u64) {
    let other_is = other.1 < one.1;
    (select_unpredictable(other_is, other.0, one.0), select_unpredictable(other_is, other.1, one.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_any_number_of_times_and_how_many_are_not_after_one() {
        for count in 1..=9 {
            let mut times = Soonest::new(count);
            assert_eq!((times.first(), times.count_up_to(NEVER - 1)), ((0, NEVER), 0));
            for number in (0..count).rev() {
                times.set(number, 50);
                assert_eq!(times.first(), (number, 50), "ties go to the lower number");
            }
            for number in 0..count {
                times.set(number, 40);
                assert_eq!((times.first(), times.count_up_to(40)), ((number, 40), 1));
                assert_eq!(times.count_up_to(50), u32::try_from(count).unwrap());
                times.set(number, 50);
            }
        }
    }
}
