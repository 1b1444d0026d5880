//! What each grant of the bus brings, as a table.

use flashwright_config::{BusOrder, Times};
use flashwright_ftl::{OP_KINDS, OpKind};
use serde::{Deserialize, Serialize};

/// One use of the bus and what follows it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Phase {
    /// Time for which the bus is held.
    pub held: u64,
    /// Time from the bus's release to the end of the operation, or to the next wish for the bus.
    pub after: u64,
    /// The phase that follows if the entry goes on.
    pub next: u8,
    /// Time from there to that phase's wish for the bus.
    pub lead: u64,
    /// 1 if an operation, or one copy of a run, is done with it; else 0.
    pub completes: u32,
    /// Time from the grant to the end of the operation or copy, if the bus is free whenever it is wanted.
    pub rest: u64,
    /// Within a run: time from the release of the bus before this phase to the wish for it in this phase.
    pub gap: u64,
}

/// A copy alone: how long it takes, and for how long it holds the bus.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Cycle {
    pub time: u64,
    pub held: u64,
}

/// Phases by number: for each kind of entry the one of its command and the one of its transfer.
const ENTRY_KINDS: usize = OP_KINDS + 1;
pub(super) const COPY: u8 = OP_KINDS as u8;
const COPY_READ_OUT: u8 = 2 * COPY + 1;
/// A copy takes the phases of a read (its own, since it goes on) and then this one.
const COPY_PROGRAM: u8 = 2 * ENTRY_KINDS as u8;
/// Room for all of them; a power of two, so that no index has to be checked.
const PHASES: usize = 16;

/// The phases that send a command alone, one bit each: of both kinds of read, of the read of a copy, and of an erase.
const COMMANDS: u16 = 1 << (2 * OpKind::Read as u8)
    | 1 << (2 * OpKind::OobRead as u8)
    | 1 << (2 * COPY)
    | 1 << (2 * OpKind::Erase as u8 + 1);

/// What grants bring, and how each kind of entry begins.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Phases {
    pub table: [Phase; PHASES],
    /// By kind of entry: its first phase, and the time from its start to that phase's wish for the bus.
    pub first: [(u8, u64); ENTRY_KINDS],
    /// The time of an erase that needs no bus at all.
    pub silent_erase: Option<u64>,
    /// The phases that get the bus before others, one bit each; 0 if it goes to the die that has waited longest.
    pub preferred: u16,
    pub copy: Cycle,
}

impl Phases {
    pub fn new(times: &Times) -> Self {
        let mut table = [Phase::default(); PHASES];
        let mut first = [(0, 0); ENTRY_KINDS];
        let silent = times.pipelined && times.command == 0;
        for kind in [OpKind::Read, OpKind::Program, OpKind::Erase, OpKind::OobRead] {
            let (array, transfer) = (times.array[kind as usize], times.transfer[kind as usize]);
            let (command, last) = (2 * kind as u8, 2 * kind as u8 + 1);
            let reads = matches!(kind, OpKind::Read | OpKind::OobRead);
            table[usize::from(command)] = Phase { held: times.command, after: array, next: last, ..Phase::default() };
            let (held, after) = match kind {
                _ if !times.pipelined => (times.alone(kind), 0),
                _ if reads => (transfer, 0),
                _ => (times.command + transfer, array),
            };
            table[usize::from(last)] = Phase { held, after, completes: 1, ..Phase::default() };
            first[kind as usize] = match () {
                () if reads && silent => (last, array),
                () if reads && times.pipelined => (command, 0),
                () => (last, 0),
            };
        }
        let (read_command, read_last) = (2 * OpKind::Read as usize, 2 * OpKind::Read as usize + 1);
        let (command, last) = (2 * COPY, COPY_READ_OUT);
        let (first_read, lead) = first[OpKind::Read as usize];
        first[usize::from(COPY)] = (first_read + command - read_command as u8, lead);
        table[usize::from(command)] = Phase { next: last, ..table[read_command] };
        table[usize::from(last)] = Phase { next: COPY_PROGRAM, completes: 0, ..table[read_last] };
        let (next, lead) = first[usize::from(COPY)];
        table[usize::from(COPY_PROGRAM)] = Phase { next, lead, ..table[2 * OpKind::Program as usize + 1] };
        let copy = Self::close_cycle(&mut table, usize::from(next));
        for at in 0..table.len() {
            table[at].rest = Self::rest(&table, at);
        }
        let silent_erase = silent.then_some(times.array[OpKind::Erase as usize]);
        let preferred = match times.bus_order {
            BusOrder::FirstCome => 0,
            // An operation that holds the bus throughout has no command apart.
            _ if !times.pipelined => 0,
            BusOrder::CommandsFirst => COMMANDS,
            BusOrder::DataFirst => !COMMANDS,
        };
        Self { table, first, silent_erase, preferred, copy }
    }

    /// Goes once round the phases of a copy, noting the gap before each.
    fn close_cycle(table: &mut [Phase], first: usize) -> Cycle {
        let (mut at, mut cycle) = (first, Cycle::default());
        loop {
            let Phase { held, after, next, lead, .. } = table[at];
            cycle.time += held + after + lead;
            cycle.held += held;
            at = usize::from(next);
            table[at].gap = after + lead;
            if at == first {
                return cycle;
            }
        }
    }

    /// What a grant for this phase brings.
    #[inline(always)]
    pub fn of(&self, phase: u8) -> &Phase {
        &self.table[usize::from(phase) % PHASES]
    }

    /// Time from the grant for `phase` to the end of an entry of which `left` operations or copies are left, if the bus is free
    /// whenever it is wanted.
    #[inline(always)]
    pub fn rest_of(&self, phase: u8, left: u32) -> u64 {
        self.of(phase).rest + u64::from(left.saturating_sub(1)) * self.copy.time
    }

    /// What of a copy ends with this phase.
    #[inline(always)]
    pub fn ends_in_copy(phase: u8) -> Option<OpKind> {
        match phase {
            COPY_READ_OUT => Some(OpKind::Read),
            COPY_PROGRAM => Some(OpKind::Program),
            _ => None,
        }
    }

    fn rest(table: &[Phase], first: usize) -> u64 {
        let (mut at, mut rest) = (first, 0);
        loop {
            let phase = table[at];
            rest += phase.held + phase.after;
            if phase.completes > 0 {
                return rest;
            }
            rest += phase.lead;
            at = usize::from(phase.next);
        }
    }
}
