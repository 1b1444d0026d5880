//! What a die is doing, and what waits for it.

use super::command::{Group, NONE};
use super::ram::InRam;
use crate::engine::order::{GROUPS, Heads};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Where a command is on its way through a die.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Stage {
    /// Wants the bus for its command, or has it.
    #[default]
    Command,
    /// Wants the bus for its data, or has it.
    DataIn,
    /// Its data are in the register; the array is still busy with the command before.
    Loaded,
    /// The array works until `ends`.
    Array,
    /// The page is in the register; the one before still crosses the bus.
    Sensed,
    /// Wants the bus for the page, or has it.
    DataOut,
}

/// A command in a die.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Active {
    pub id: u32,
    pub stage: Stage,
    /// Since when its array has worked without a break, and until when.
    pub runs_from: u64,
    pub ends: u64,
}

impl Active {
    pub fn new(id: u32, stage: Stage) -> Self {
        Self { id, stage, runs_from: 0, ends: 0 }
    }
}

/// Commands that wait, oldest first in each group: sequence number and command.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Waiting {
    groups: [VecDeque<(u64, u32)>; GROUPS],
    heads: Heads,
}

impl Default for Waiting {
    fn default() -> Self {
        Self { groups: std::array::from_fn(|_| VecDeque::new()), heads: Heads::EMPTY }
    }
}

impl Waiting {
    #[inline(always)]
    pub fn push(&mut self, group: Group, sequence: u64, id: u32) {
        let queue = &mut self.groups[group as usize];
        if queue.back().is_none_or(|(last, _)| *last < sequence) {
            queue.push_back((sequence, id));
        } else if queue.front().is_some_and(|(first, _)| *first > sequence) {
            // The program of a copy whose read has just ended is older than the reads behind it.
            queue.push_front((sequence, id));
        } else {
            queue.insert(queue.partition_point(|(other, _)| *other < sequence), (sequence, id));
        }
        self.look_at(group);
    }

    /// The oldest command of a group.
    #[inline(always)]
    pub fn first(&self, group: Group) -> Option<u32> {
        self.groups[group as usize].front().map(|(_, id)| *id)
    }

    #[inline]
    pub fn pop(&mut self, group: Group) -> Option<u32> {
        let first = self.groups[group as usize].pop_front().map(|(_, id)| id);
        self.look_at(group);
        first
    }

    #[inline(always)]
    fn look_at(&mut self, group: Group) {
        self.heads.set(group, self.groups[group as usize].front().map_or(Heads::NOTHING, |(sequence, _)| *sequence));
    }

    /// What an order chooses from.
    #[inline(always)]
    pub fn heads(&self) -> &Heads {
        &self.heads
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Die {
    pub waiting: Waiting,
    /// The command that holds the die.
    pub main: Option<Active>,
    /// The command that overlaps it: a program that loads, or a read that senses.
    pub behind: Option<Active>,
    /// The suspended command.
    pub suspended: Option<u32>,
    /// Reads served in this suspension.
    pub served: u32,
    /// Until when the die is busy with suspending.
    pub suspends_until: u64,
    /// When it decides next.
    pub decides_at: u64,
    pub busy_since: u64,
    pub busy: u64,
    /// Commands issued that have not ended.
    pub issued: u32,
}

impl Default for Die {
    fn default() -> Self {
        Self {
            waiting: Waiting::default(),
            main: None,
            behind: None,
            suspended: None,
            served: 0,
            suspends_until: 0,
            decides_at: u64::MAX,
            busy_since: u64::MAX,
            busy: 0,
            issued: 0,
        }
    }
}

/// What is under way in a block on a die.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct InBlock {
    /// Reads that have not started, since the latest erase was issued.
    pub reads: u32,
    /// The program issued last that has not ended, or [`NONE`].
    pub program: u32,
    /// The erase issued last that has not ended, or [`NONE`].
    pub erase: u32,
    /// Erases issued.
    pub generation: u32,
    /// The unit that lacks its second pass: its first page, or [`NONE`], its die and its pages in RAM.
    pub second_first: u32,
    pub second_die: u32,
    pub second_held: InRam,
}

impl InBlock {
    pub const NOTHING: Self = Self {
        reads: 0,
        program: NONE,
        erase: NONE,
        generation: 0,
        second_first: NONE,
        second_die: 0,
        second_held: InRam::NOTHING,
    };
}
