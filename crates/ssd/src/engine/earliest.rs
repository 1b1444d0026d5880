//! Which of several times comes first.

use serde::{Deserialize, Serialize};
use std::hint::select_unpredictable;

const NEVER: u64 = u64::MAX;
/// Times that are compared in one go: a loop over so few costs more than what it compares.
const GROUP: usize = 4;

/// Groups that need no memory of their own.
const HERE: usize = 4;

/// Times by number: when something happens in each channel next, or [`NEVER`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Earliest {
    /// The first groups lie here, since most drives have no others.
    here: [[u64; GROUP]; HERE],
    /// Those of them that are in use beyond the first.
    others: usize,
    /// The groups after them, filled up with [`NEVER`].
    more: Vec<[u64; GROUP]>,
}

impl Earliest {
    /// So many times, all of them never.
    pub fn new(count: usize) -> Self {
        let groups = count.div_ceil(GROUP).max(1);
        Self {
            here: [[NEVER; GROUP]; HERE],
            others: groups.min(HERE) - 1,
            more: vec![[NEVER; GROUP]; groups.saturating_sub(HERE)],
        }
    }

    #[inline(always)]
    pub fn of(&self, number: usize) -> u64 {
        match self.here.as_flattened().get(number) {
            Some(time) => *time,
            None => self.more[number / GROUP - HERE][number % GROUP],
        }
    }

    #[inline(always)]
    pub fn set(&mut self, number: usize, time: u64) {
        match self.here.as_flattened_mut().get_mut(number) {
            Some(of) => *of = time,
            None => self.more[number / GROUP - HERE][number % GROUP] = time,
        }
    }

    /// The number of the first time, ties to the lower one, and the time.
    #[inline(always)]
    pub fn first(&self) -> (usize, u64) {
        let mut first = first_of(&self.here[0]);
        for at in 1..=self.others {
            let (number, time) = first_of(&self.here[at % HERE]);
            first = sooner(first, (at * GROUP + number, time));
        }
        if self.others == HERE - 1 {
            for (at, group) in self.more.iter().enumerate() {
                let (number, time) = first_of(group);
                first = sooner(first, ((at + HERE) * GROUP + number, time));
            }
        }
        first
    }

    /// How many of the times are not after `time`.
    #[inline(always)]
    pub fn count_up_to(&self, time: u64) -> u32 {
        let groups = self.here[..=self.others].iter().chain(&self.more);
        groups.map(|group| group.iter().map(|other| u32::from(*other <= time)).sum::<u32>()).sum()
    }
}

#[inline(always)]
fn first_of([a, b, c, d]: &[u64; GROUP]) -> (usize, u64) {
    sooner(sooner((0, *a), (1, *b)), sooner((2, *c), (3, *d)))
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
        for count in (1..=9).chain([16, 17, 21]) {
            let mut times = Earliest::new(count);
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
