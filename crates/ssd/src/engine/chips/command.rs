//! Commands to dies, and what waits for them.

use super::ram::InRam;
pub(super) use crate::engine::NONE;
use crate::engine::OpClass;
pub(super) use crate::engine::order::Group;
use flashwright_ftl::{Cause, FlashOp, OpKind};
use serde::{Deserialize, Serialize};

/// What a die is told to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Kind {
    #[default]
    Read,
    Program,
    Erase,
    /// A page copied within its plane.
    Copyback,
}

/// A command, from its issue to its end.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Command {
    pub kind: Kind,
    pub group: Group,
    pub class: OpClass,
    /// Whether it reads a spare area.
    pub is_oob: bool,
    /// Whether its pages are on flash when it ends: not after the first of two passes.
    pub is_last: bool,
    /// Whether it is one of two passes.
    pub two_pass: bool,
    /// Whether its block was erased before its unit was full, so that it never runs.
    pub is_dropped: bool,
    /// Whether it has left its queue.
    pub is_started: bool,
    pub die: u32,
    /// Issue order over the whole drive: settles ties.
    pub sequence: u64,
    /// Time of the array; of a suspended command what is left of it.
    pub array: u64,
    /// Time on the bus for data.
    pub data: u64,
    /// The request that waits for it, or [`NONE`].
    pub slot: u32,
    /// What it waits for.
    pub unmet: u32,
    /// The state of the block on its die that it programs or erases, or [`NONE`].
    pub place: u32,
    /// The state of the block on its die that it reads, or [`NONE`].
    pub reads_in: u32,
    /// Erases of that block that had been issued before it.
    pub generation: u32,
    /// The same of the block that it programs.
    pub place_generation: u32,
    /// The first page that it programs, or [`NONE`] for parity.
    pub first: u32,
    /// Pages that it programs.
    pub pages: u32,
    /// The program of the same block and die issued before it, or of an erase the erase before; [`NONE`] or out of date if
    /// that has ended.
    pub before: u32,
    /// Pages that leave the RAM when it ends.
    pub held: InRam,
    pub suspensions: u32,
    /// What it draws under a limit, in microwatts.
    pub power: u64,
    /// Lists of [`Edge`]s: what waits until it starts, and until it ends; of the latter the first command stands here.
    pub on_start: u32,
    pub on_end: u32,
    pub first_on_end: u32,
    /// Tells its events from those of an earlier command in the same place.
    pub epoch: u16,
    /// Tells it from an earlier command in the same place; 0 once it has ended.
    pub born: u32,
}

impl Command {
    /// To be filled in; it waits for one thing until it is issued.
    pub const NOTHING: Self = Self {
        kind: Kind::Read,
        group: Group::Reads,
        class: OpClass::HostRead,
        is_oob: false,
        two_pass: false,
        pages: 0,
        is_last: false,
        is_dropped: false,
        is_started: false,
        die: 0,
        sequence: 0,
        array: 0,
        data: 0,
        slot: NONE,
        unmet: 1,
        place: NONE,
        reads_in: NONE,
        generation: 0,
        place_generation: 0,
        first: NONE,
        before: NONE,
        held: InRam::NOTHING,
        suspensions: 0,
        power: 0,
        on_start: NONE,
        on_end: NONE,
        first_on_end: NONE,
        epoch: 0,
        born: 0,
    };
}

/// A command that waits for another.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Edge {
    command: u32,
    next: u32,
}

/// All commands that have been issued and have not ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Commands {
    all: Vec<Command>,
    free: Vec<u32>,
    edges: Vec<Edge>,
    edges_free: Vec<u32>,
    born: u32,
}

impl std::ops::Index<u32> for Commands {
    type Output = Command;
    #[inline(always)]
    fn index(&self, id: u32) -> &Command {
        &self.all[id as usize]
    }
}

impl std::ops::IndexMut<u32> for Commands {
    #[inline(always)]
    fn index_mut(&mut self, id: u32) -> &mut Command {
        &mut self.all[id as usize]
    }
}

impl Commands {
    #[inline(always)]
    pub fn add(&mut self, mut command: Command) -> u32 {
        self.born = self.born.wrapping_add(1).max(1);
        command.born = self.born;
        if let Some(id) = self.free.pop() {
            let place = &mut self.all[id as usize];
            command.epoch = place.epoch.wrapping_add(1);
            *place = command;
            return id;
        }
        self.all.push(command);
        u32::try_from(self.all.len() - 1).expect("commands in flight fit 32 bits")
    }

    #[inline(always)]
    pub fn remove(&mut self, id: u32) {
        self.all[id as usize].born = 0;
        self.free.push(id);
    }

    /// All that have not ended.
    pub fn alive(&self) -> impl Iterator<Item = &Command> {
        self.all.iter().filter(|command| command.born != 0)
    }

    /// `later` waits until `earlier`, if there is one, has started.
    #[inline]
    pub fn after_start(&mut self, earlier: u32, later: u32) {
        if earlier == NONE || self.all[earlier as usize].is_started {
            return;
        }
        let next = self.all[earlier as usize].on_start;
        self.all[earlier as usize].on_start = self.edge(later, next);
    }

    /// `later` waits until `earlier`, if there is one, ends.
    #[inline]
    pub fn after_end(&mut self, earlier: u32, later: u32) {
        if earlier == NONE {
            return;
        }
        if self.all[earlier as usize].first_on_end == NONE {
            self.all[earlier as usize].first_on_end = later;
            self.all[later as usize].unmet += 1;
            return;
        }
        let next = self.all[earlier as usize].on_end;
        self.all[earlier as usize].on_end = self.edge(later, next);
    }

    fn edge(&mut self, command: u32, next: u32) -> u32 {
        self.all[command as usize].unmet += 1;
        let edge = Edge { command, next };
        if let Some(at) = self.edges_free.pop() {
            self.edges[at as usize] = edge;
            return at;
        }
        self.edges.push(edge);
        u32::try_from(self.edges.len() - 1).expect("edges fit 32 bits")
    }

    /// Takes the next command off a list of edges; returns the rest of the list and the command, if it waits for nothing any
    /// more.
    #[inline]
    pub fn follow(&mut self, edge: u32) -> (u32, Option<u32>) {
        let Edge { command, next } = self.edges[edge as usize];
        self.edges_free.push(edge);
        (next, self.met(command).then_some(command))
    }

    /// One thing that a command waited for has come; returns whether that was the last.
    #[inline(always)]
    pub fn met(&mut self, id: u32) -> bool {
        let command = &mut self.all[id as usize];
        command.unmet -= 1;
        command.unmet == 0
    }
}

/// Whether the copies of an operation's page may stay within its plane.
pub(super) fn is_copy_of_cleaning(read: &FlashOp, program: Option<&FlashOp>) -> bool {
    let moves = matches!(read.cause, Cause::Gc | Cause::Merge | Cause::Wear);
    moves
        && read.kind == OpKind::Read
        && program.is_some_and(|next| next.kind == OpKind::Program && next.after == 1 && next.cause == read.cause)
}
