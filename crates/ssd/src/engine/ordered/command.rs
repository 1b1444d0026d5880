//! Commands, runs of copies, and what waits for them.

use crate::engine::NONE;
use crate::engine::order::Group;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Kind {
    #[default]
    Read,
    OobRead,
    Program,
    Erase,
    /// A run of copies, not itself a command: its parts are commands, read and program in turn, with sequence numbers that follow each other.
    Copies,
}

/// Kinds of commands.
pub(super) const COMMANDS: usize = Kind::Copies as usize;

/// A command or a run of copies, from its issue to its end.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Command {
    /// Issue order over the whole drive: settles ties. Of a run that of its first part.
    pub sequence: u64,
    pub kind: Kind,
    pub group: Group,
    /// Whether it, of a run its last program, has left its queue.
    pub is_started: bool,
    /// Whether it is in the queue of its die.
    pub is_queued: bool,
    pub die: u32,
    /// The request that waits for it.
    pub slot: u32,
    /// What it, of a run its next program, waits for.
    pub unmet: u32,
    /// The block that it programs or erases, or [`NONE`].
    pub block: u32,
    /// The block that it reads, or [`NONE`].
    pub from: u32,
    /// The page that it reads or programs; of a run the first that it programs.
    pub page: u32,
    /// Of a run its copies; else 0.
    pub copies: u32,
    /// Copies of a run whose read, and whose program, has started.
    pub reads: u32,
    pub programs: u32,
    /// Pages that a read transfers.
    pub transfers: u32,
    /// Erases that had been issued before it: of the block that it reads or erases, and of the one that it programs.
    pub generation: u32,
    pub block_generation: u32,
    /// The program of the same block issued before it, or of an erase the erase before; [`NONE`] or out of date if that has ended.
    pub before: u32,
    /// Suspensions of it, of a run of the current part.
    pub suspensions: u32,
    /// The next in the queue of its die.
    pub next: u32,
    /// Lists of [`Edge`]s: what waits until it starts, and until one of its parts ends; the first such part.
    pub on_start: u32,
    pub on_end: u32,
    pub awaited: u32,
    /// Tells it from an earlier command in the same place; 0 once it has ended.
    pub born: u32,
}

impl Command {
    /// To be filled in; it waits for one thing until it is issued.
    pub const NOTHING: Self = Self {
        sequence: 0,
        kind: Kind::Read,
        group: Group::Reads,
        is_started: false,
        is_queued: false,
        die: 0,
        slot: NONE,
        unmet: 1,
        block: NONE,
        from: NONE,
        page: NONE,
        copies: 0,
        reads: 0,
        programs: 0,
        transfers: 1,
        generation: 0,
        block_generation: 0,
        before: NONE,
        suspensions: 0,
        next: NONE,
        on_start: NONE,
        on_end: NONE,
        awaited: NONE,
        born: 0,
    };

    /// The number of its last part: 0 for a command alone; copy `n` of a run has the parts `2 n` and `2 n + 1`.
    #[inline(always)]
    pub fn last_part(&self) -> u32 {
        (2 * self.copies).saturating_sub(1)
    }

    /// Whether a run may go on: its next program waits for nothing, or a page is left to be read.
    #[inline(always)]
    pub fn may_go_on(&self) -> bool {
        self.programs < self.copies && (self.reads < self.copies || self.unmet == 0)
    }
}

/// A command that waits for a part of another.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Edge {
    command: u32,
    part: u32,
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
    pub fn add(&mut self, command: Command) -> u32 {
        self.born = self.born.wrapping_add(1).max(1);
        let command = Command { born: self.born, ..command };
        if let Some(id) = self.free.pop() {
            self.all[id as usize] = command;
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

    /// `later` waits until the last part of `earlier`, if there is one, has started.
    #[inline]
    pub fn after_start(&mut self, earlier: u32, later: u32) {
        if earlier == NONE || self[earlier].is_started {
            return;
        }
        let next = self[earlier].on_start;
        self[earlier].on_start = self.edge(Edge { command: later, part: 0, next });
    }

    /// `later` waits until a part of `earlier`, if there is one, ends.
    #[inline]
    pub fn after_part(&mut self, earlier: u32, part: u32, later: u32) {
        if earlier == NONE {
            return;
        }
        let next = self[earlier].on_end;
        let edge = self.edge(Edge { command: later, part, next });
        let command = &mut self[earlier];
        (command.on_end, command.awaited) = (edge, command.awaited.min(part));
    }

    /// `later` waits until `earlier`, if there is one, ends.
    #[inline(always)]
    pub fn after_end(&mut self, earlier: u32, later: u32) {
        if earlier != NONE {
            self.after_part(earlier, self[earlier].last_part(), later);
        }
    }

    fn edge(&mut self, edge: Edge) -> u32 {
        self[edge.command].unmet += 1;
        if let Some(at) = self.edges_free.pop() {
            self.edges[at as usize] = edge;
            return at;
        }
        self.edges.push(edge);
        u32::try_from(self.edges.len() - 1).expect("edges fit 32 bits")
    }

    /// Takes an edge off its list; answers the command that waits, for which part, and the rest of the list.
    #[inline(always)]
    pub fn cut(&mut self, edge: u32) -> (u32, u32, u32) {
        self.edges_free.push(edge);
        let Edge { command, part, next } = self.edges[edge as usize];
        (command, part, next)
    }

    /// Puts an edge that was cut back, now that it waits for the end of a later part.
    #[cold]
    pub fn mend(&mut self, earlier: u32, part: u32, later: u32) {
        self[later].unmet -= 1;
        self.after_part(earlier, part, later);
    }

    /// One thing that a command waited for has come; returns whether that was the last.
    #[inline(always)]
    pub fn met(&mut self, id: u32) -> bool {
        let command = &mut self.all[id as usize];
        command.unmet -= 1;
        command.unmet == 0
    }
}
