//! What the engine tells of its commands: to an observer when they end, and at any time which have not.

use super::Chips;
use super::command::{Command, Kind, NONE};
use super::die::{Active, Stage};
use crate::engine::{EndedOp, NO_REQUEST, Observer};
use flashwright_block::Nanos;
use flashwright_ftl::OpKind;
use flashwright_nand::Ppn;
use std::collections::BTreeSet;

/// A program or an erase that has begun and not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// [`OpKind::Program`] or [`OpKind::Erase`].
    pub kind: OpKind,
    /// The die, counted over the drive.
    pub die: u32,
    /// The first page; of an erase that of the block. None for parity.
    pub ppn: Option<Ppn>,
    /// Pages from there on: those of the program, or for an erase 0.
    pub pages: u32,
}

impl<W: Observer> Chips<W> {
    /// Programs and erases whose array has begun by `at`, the time up to which the engine has run, and has not ended: a power cut
    /// would leave their pages unreadable. They include suspended ones and, of two passes, word lines that have had the first and lack the second.
    #[must_use]
    pub fn unfinished(&self, at: u64) -> Vec<Unfinished> {
        let mut found = Vec::new();
        for die in &self.dies {
            let begun = |active: &Active| active.runs_from <= at && active.ends > 0;
            let works = |active: &Active| active.stage == Stage::Array || !self.times.pipelined;
            let in_array = die.main.filter(|main| works(main) && begun(main)).map(|main| main.id);
            // Resumed, its array waits before it goes on.
            let resumes = die.main.filter(|main| self.commands[main.id].suspensions > 0).map(|main| main.id);
            found.extend(in_array.or(resumes).into_iter().chain(die.suspended).filter_map(|id| self.unfinished_of(id)));
        }
        self.between_passes(&mut found);
        found
    }

    fn unfinished_of(&self, id: u32) -> Option<Unfinished> {
        let command = &self.commands[id];
        let (kind, pages) = match command.kind {
            Kind::Read => return None,
            Kind::Program | Kind::Copyback => (OpKind::Program, command.pages),
            Kind::Erase => (OpKind::Erase, 0),
        };
        Some(Unfinished { kind, die: command.die, ppn: self.first_page(command), pages })
    }

    /// Word lines that lie between their passes.
    fn between_passes(&self, found: &mut Vec<Unfinished>) {
        if !self.places.two_pass(false) {
            return;
        }
        let alive = || self.commands.alive().filter(|command| command.kind == Kind::Program && command.first != NONE);
        let coarse: BTreeSet<u32> =
            alive().filter(|command| !command.is_last && !command.is_dropped).map(|command| command.first).collect();
        let exact = alive().filter(|command| command.is_last && command.two_pass);
        let mut of = |first: u32, die: u32| {
            let (ppn, pages) = (Some(Ppn(first)), self.places.unit());
            if !coarse.contains(&first) && found.iter().all(|other| other.ppn != ppn) {
                found.push(Unfinished { kind: OpKind::Program, die, ppn, pages });
            }
        };
        exact.for_each(|command| of(command.first, command.die));
        for state in self.in_block.iter().filter(|state| state.second_first != NONE) {
            of(state.second_first, state.second_die);
        }
    }

    fn first_page(&self, command: &Command) -> Option<Ppn> {
        match command.kind {
            Kind::Read => None,
            Kind::Erase => Some(Ppn(self.places.first_page(command.place))),
            Kind::Program | Kind::Copyback => (command.first != NONE).then_some(Ppn(command.first)),
        }
    }

    /// Whether the data of a page that was programmed are not on flash yet: they are in RAM or, if cleaning copies the page and
    /// has not read it, where it lies now.
    #[must_use]
    pub fn is_on_its_way(&self, ppn: Ppn, is_slc: bool, geometry: &flashwright_nand::Geometry) -> bool {
        self.is_pending(self.places.of(ppn, is_slc, geometry).unit_first)
    }

    /// Tells the observer that a command has ended: every page of a program, an erase of a block on one die, a read.
    #[inline(always)]
    pub(super) fn tell(&mut self, id: u32, array_from: u64, now: u64) {
        if self.observer.listens() {
            self.tell_all(id, array_from, now);
        }
    }

    fn tell_all(&mut self, id: u32, array_from: u64, now: u64) {
        let command = &self.commands[id];
        let (kind, pages) = match command.kind {
            Kind::Read if command.is_oob => (OpKind::OobRead, 1),
            Kind::Read => (OpKind::Read, 1),
            Kind::Program | Kind::Copyback if !command.is_last => return, // its pages are not on flash yet
            Kind::Program | Kind::Copyback => (OpKind::Program, if command.first == NONE { 1 } else { command.pages }),
            Kind::Erase => (OpKind::Erase, 1),
        };
        let first = self.first_page(command);
        let ended = EndedOp {
            request: if command.slot == NONE { NO_REQUEST } else { u64::from(command.slot) },
            entry: 0,
            copy: 0,
            ppn: first,
            kind,
            class: command.class,
            die: command.die,
            start: Nanos(array_from),
            end: Nanos(now),
        };
        for page in 0..pages {
            self.observer.ended(EndedOp { ppn: first.map(|first| Ppn(first.0 + page)), ..ended });
        }
    }
}
