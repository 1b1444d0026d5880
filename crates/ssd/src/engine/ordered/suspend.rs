//! Dies that suspend programs and erases, and dies that the firmware holds.

use super::command::Kind;
use super::{NEVER, Ordered, Stage};
use crate::engine::NONE;
use crate::engine::order::Group;

impl Ordered {
    /// Makes a die decide at `at`, unless it does before. To be followed by [`Ordered::plan`].
    #[cold]
    pub(super) fn decide_later(&mut self, die: usize, at: u64) {
        let state = &mut self.dies[die];
        state.looks_at = state.looks_at.min(at);
    }

    /// When the first die of a channel decides although nothing happens.
    pub(super) fn looks_at(&self, channel: usize) -> u64 {
        let first = channel * self.dies_per_channel;
        self.dies[first..first + self.dies_per_channel].iter().fold(NEVER, |first, die| first.min(die.looks_at))
    }

    /// Dies of a channel that were told to decide now do.
    pub(super) fn look_again(&mut self, channel: usize, now: u64) {
        let first = channel * self.dies_per_channel;
        for die in &mut self.dies[first..first + self.dies_per_channel] {
            if die.looks_at <= now {
                die.looks_at = NEVER;
                self.channels[channel].due |= die.bit;
            }
        }
    }

    #[inline(never)]
    pub(super) fn decide_suspending(&mut self, die: usize, now: u64) {
        let state = &self.dies[die];
        let until = state.suspends_until.max(self.held_until);
        if now < until {
            self.decide_later(die, until);
        } else if state.main == NONE && state.suspended == NONE {
            self.take_next(die, now);
        } else if state.main == NONE {
            self.goes_on_suspended(die, now);
        } else if state.stage == Stage::Array {
            self.suspends(die, now);
        }
    }

    /// Whether the oldest of the group of reads is a read.
    #[inline(always)]
    pub(super) fn waiting_read(&self, die: usize) -> bool {
        let first = self.dies[die].first[Group::Reads as usize];
        first != NONE && matches!(self.commands[first].kind, Kind::Read | Kind::OobRead)
    }

    /// During a suspension: the next read, or the suspended command goes on.
    fn goes_on_suspended(&mut self, die: usize, now: u64) {
        if self.dies[die].served < self.passed_max && self.waiting_read(die) {
            self.dies[die].served += 1;
            return self.start_first(die, Group::Reads, now);
        }
        let state = &mut self.dies[die];
        (state.main, state.part) = (std::mem::replace(&mut state.suspended, NONE), state.suspended_part);
        let left = state.left;
        self.works(die, now + self.times.resume, left);
        self.decide_at(die, now);
    }

    /// Suspends the command in the array if a read of the host waits and the rules allow it.
    fn suspends(&mut self, die: usize, now: u64) {
        let state = &self.dies[die];
        let (id, ends, from) = (state.main, state.ends, state.runs_from);
        let erases = self.commands[id].kind == Kind::Erase;
        let may = if erases { self.times.suspends_erases } else { self.times.suspends_programs };
        let spent = self.commands[id].suspensions >= self.times.suspensions_max;
        if !may || spent || !self.waiting_read(die) {
            return;
        }
        let earliest = from + self.times.run_least;
        if ends <= now.max(earliest) + self.times.suspend {
            return; // its end comes sooner
        }
        if now < earliest {
            return self.decide_later(die, earliest);
        }
        self.commands[id].suspensions += 1;
        match erases {
            true => self.figures.erases_suspended += 1,
            false => self.figures.programs_suspended += 1,
        }
        let state = &mut self.dies[die];
        (state.suspended, state.suspended_part, state.left) = (id, state.part, ends - now);
        (state.main, state.served) = (NONE, 0);
        state.suspends_until = now + self.times.suspend;
        self.lanes[die].ends = NEVER;
        if self.times.suspend == 0 {
            self.decide_at(die, now);
        } else {
            self.decide_later(die, now + self.times.suspend);
        }
    }
}
