//! A model of channels and dies that walks from moment to moment over plain lists and looks at everything each time. It is
//! written from the rules:
//!
//! * A die serves its operations one at a time from first phase to last; of a run of copies each is a read, then a
//!   program.
//! * In order of issue, one that depends on another's end waits at the head of its queue.
//! * In another order, a die that is free takes any operation whose predecessor has ended and that overtakes none which
//!   it must follow.
//! * Pipelined, the bus is held for commands and transfers only; otherwise for the whole operation.
//!   An erase also waits until the pages that cleaning copied out of its block are programmed, wherever.
//! * A free bus goes to the die that has been ready for it longest, ties to the operation issued earlier. With another bus
//!   order, dies that wait to send a command alone come first, or last.
//! * A die suspends a program or an erase whose array works, where the chip can, if a read of the host may be taken: not
//!   before it has run its least time, not more often than allowed, not if its end comes sooner than the suspension. Then it
//!   serves such reads, up to as many as may pass an operation, and resumes.
//! * The drive takes so many requests at once; the others wait and are taken in order as places get free.

use flashwright_ftl::{Cause, FlashOp, OpKind};
use flashwright_ssd::engine::OpClass;
use flashwright_ssd::{BusOrder, DriveConfig, Suspends};
use std::collections::VecDeque;
use std::ops::Range;

/// A stretch of an operation: on the bus or on the die alone.
#[derive(Clone, Copy, Debug)]
enum Phase {
    Bus(u64),
    Command(u64),
    Array(u64),
}

pub struct Operation {
    pub request: usize,
    /// Position in the log of its request, and number of the copy, from 1; 0 if it is none.
    pub entry: u32,
    pub copy: u32,
    pub kind: OpKind,
    pub class: OpClass,
    pub die: usize,
    block: u32,
    /// None for the read of a copy.
    pub page: Option<u32>,
    phases: VecDeque<Phase>,
    /// Its place in the list of all operations, where it depends on one.
    pub depends_on: Option<usize>,
    /// Of the program of a copy, the block that it was copied out of.
    copied_out_of: Option<u32>,
    pub start: Option<u64>,
    pub end: Option<u64>,
    pub suspensions: u32,
}

impl Operation {
    fn is_read_of_host(&self) -> bool {
        matches!(self.class, OpClass::HostRead | OpClass::Mapping)
            && matches!(self.kind, OpKind::Read | OpKind::OobRead)
    }

    /// Whether it may not overtake `earlier`, which waits for the same die.
    fn must_follow(&self, earlier: &Operation) -> bool {
        let any_page = self.page.is_none() || earlier.page.is_none();
        let same_block = self.block == earlier.block;
        let is = |op: &Operation, kind| op.kind == kind;
        if is(self, OpKind::Erase) || is(earlier, OpKind::Erase) {
            return same_block || any_page;
        }
        if is(self, OpKind::Program) {
            return is(earlier, OpKind::Program) && same_block;
        }
        is(earlier, OpKind::Program) && (self.page.is_none() || self.page == earlier.page)
    }
}

/// Chooses by position: of a die, what may be taken, oldest first.
pub type Chooser = Box<dyn FnMut(usize, &[&Operation]) -> usize>;

pub enum Order {
    OfIssue,
    By(Chooser),
}

#[derive(Clone, Copy, Debug)]
enum Doing {
    Nothing,
    /// Ready for the bus since then.
    WaitingForBus {
        operation: usize,
        since: u64,
    },
    Busy {
        operation: usize,
        until: u64,
    },
    /// Its array works.
    Array {
        operation: usize,
        from: u64,
        until: u64,
    },
    Suspending {
        until: u64,
    },
}

/// An operation that a die has suspended.
#[derive(Clone, Copy, Debug)]
struct Suspended {
    operation: usize,
    left: u64,
    served: u32,
}

pub struct Reference<'a> {
    config: &'a DriveConfig,
    requests: &'a [(u64, Vec<FlashOp>)],
    order: Order,
    pub operations: Vec<Operation>,
    /// By sequence, the last operation of an entry.
    last_of_entry: Vec<Option<usize>>,
    operations_of: Vec<Range<usize>>,
    queues: Vec<Vec<usize>>,
    doing: Vec<Doing>,
    suspended: Vec<Option<Suspended>>,
    pub die_busy: Vec<u64>,
    bus_until: Vec<u64>,
    pub bus_busy: Vec<u64>,
    /// The next request to be taken, in order; when each was taken and when it ended.
    next: usize,
    pub start: Vec<Option<u64>>,
    pub end: Vec<Option<u64>>,
}

impl<'a> Reference<'a> {
    pub fn new(config: &'a DriveConfig, requests: &'a [(u64, Vec<FlashOp>)], order: Order) -> Self {
        let g = &config.geometry;
        let (channels, dies) = (g.channels as usize, (g.channels * g.dies_per_channel) as usize);
        Self {
            config,
            requests,
            order,
            operations: Vec::new(),
            last_of_entry: Vec::new(),
            operations_of: Vec::new(),
            queues: vec![Vec::new(); dies],
            doing: vec![Doing::Nothing; dies],
            suspended: vec![None; dies],
            die_busy: vec![0; dies],
            bus_until: vec![0; channels],
            bus_busy: vec![0; channels],
            next: 0,
            start: vec![None; requests.len()],
            end: vec![None; requests.len()],
        }
    }

    fn phases(&self, kind: OpKind) -> VecDeque<Phase> {
        let t = self.config.times();
        let (command, array, transfer) = (t.command, t.array[kind as usize], t.transfer[kind as usize]);
        let all = match kind {
            _ if !t.pipelined => vec![Phase::Bus(command + array + transfer)],
            OpKind::Program => vec![Phase::Bus(command + transfer), Phase::Array(array)],
            OpKind::Erase => vec![Phase::Command(command), Phase::Array(array)],
            OpKind::Read | OpKind::OobRead => vec![Phase::Command(command), Phase::Array(array), Phase::Bus(transfer)],
        };
        // A command that takes no time needs no bus.
        let silent = t.pipelined && kind != OpKind::Program && command == 0;
        all.into_iter().skip(usize::from(silent)).collect()
    }

    fn channel(&self, die: usize) -> usize {
        die / self.config.geometry.dies_per_channel as usize
    }

    pub fn run(mut self) -> Self {
        let mut now = 0;
        loop {
            // Whatever can happen at this moment happens; buses are given away once nothing else is left to happen.
            while self.phases_end(now)
                || self.requests_end(now)
                || self.requests_are_taken(now)
                || self.dies_suspend(now)
                || self.dies_take_operations(now)
                || self.buses_are_given(now)
            {}
            let least = self.config.chips.run_least.0;
            let phase_ends = self.doing.iter().flat_map(|doing| match doing {
                Doing::Busy { until, .. } | Doing::Suspending { until } => [Some(*until), None],
                Doing::Array { from, until, .. } => [Some(*until), Some(*from + least)],
                _ => [None, None],
            });
            let phase_ends = phase_ends.flatten();
            let arrivals = self.requests[self.next..].iter().map(|(arrival, _)| *arrival).take(1);
            let moments = phase_ends.chain(self.bus_until.iter().copied()).chain(arrivals);
            match moments.filter(|moment| *moment > now).min() {
                Some(moment) => now = moment,
                None => return self,
            }
        }
    }

    fn phases_end(&mut self, now: u64) -> bool {
        let mut happened = false;
        for die in 0..self.doing.len() {
            match self.doing[die] {
                Doing::Busy { operation, until } | Doing::Array { operation, until, .. } if until == now => {
                    self.enter_next_phase(die, operation, now);
                    happened = true;
                }
                Doing::Suspending { until } if until == now => {
                    self.doing[die] = Doing::Nothing;
                    happened = true;
                }
                _ => {}
            }
        }
        happened
    }

    fn enter_next_phase(&mut self, die: usize, operation: usize, now: u64) {
        self.doing[die] = match self.operations[operation].phases.front().copied() {
            Some(Phase::Bus(_) | Phase::Command(_)) => Doing::WaitingForBus { operation, since: now },
            Some(Phase::Array(span)) => {
                self.operations[operation].phases.pop_front();
                Doing::Array { operation, from: now, until: now + span }
            }
            None => {
                let operation = &mut self.operations[operation];
                operation.end = Some(now);
                if self.suspended[die].is_none() {
                    self.die_busy[die] += now - operation.start.unwrap();
                }
                Doing::Nothing
            }
        };
    }

    fn requests_end(&mut self, now: u64) -> bool {
        let mut happened = false;
        for request in 0..self.next {
            if self.end[request].is_none()
                && self.operations[self.operations_of[request].clone()].iter().all(|op| op.end.is_some())
            {
                self.end[request] = Some(now);
                happened = true;
            }
        }
        happened
    }

    fn requests_are_taken(&mut self, now: u64) -> bool {
        let outstanding = (0..self.next).filter(|request| self.end[*request].is_none()).count();
        let Some((arrival, ops)) = self.requests.get(self.next) else { return false };
        if *arrival > now || outstanding >= self.config.host.queue_depth.requests() as usize {
            return false;
        }
        let first = self.operations.len();
        for (at, op) in ops.iter().enumerate() {
            self.issue(at, op);
        }
        if ops.is_empty() {
            self.last_of_entry.push(None);
        }
        self.operations_of.push(first..self.operations.len());
        self.start[self.next] = Some(now);
        self.next += 1;
        true
    }

    fn issue(&mut self, at: usize, op: &FlashOp) {
        let g = &self.config.geometry;
        let die_of = |page: u32| (page / g.pages_per_block / g.blocks_per_plane / g.planes_per_die) as usize;
        let (die, sequence) = (die_of(op.ppn.0), self.last_of_entry.len());
        // An operation of an earlier request counts if it is on the same die.
        let awaited = (op.after > 0)
            .then(|| sequence.checked_sub(op.after as usize).and_then(|awaited| self.last_of_entry[awaited]))
            .flatten()
            .filter(|awaited| op.after as usize <= at || self.operations[*awaited].die == die);
        let before = at.checked_sub(1).map(|before| &self.requests[self.next].1[before]);
        let copied_out_of = before.filter(|read| is_copy(read, op)).map(|read| read.ppn.0 / g.pages_per_block);
        for part in 0..(2 * op.copies).max(1) {
            let copies = op.copies > 0;
            let kind = if copies && part % 2 == 0 { OpKind::Read } else { op.kind };
            self.queues[die].push(self.operations.len());
            self.operations.push(Operation {
                request: self.next,
                entry: u32::try_from(at).unwrap(),
                copy: if copies { part / 2 + 1 } else { 0 },
                kind,
                class: OpClass::of(op),
                die,
                block: op.ppn.0 / self.config.geometry.pages_per_block,
                page: (!copies || part % 2 == 1).then_some(op.ppn.0 + part / 2),
                phases: self.phases(kind),
                depends_on: if part == 0 { awaited } else { Some(self.operations.len() - 1) },
                copied_out_of,
                start: None,
                end: None,
                suspensions: 0,
            });
        }
        self.last_of_entry.push(Some(self.operations.len() - 1));
    }

    /// The position in its queue of the oldest read of the host that a die may take, if no program of that rank comes first.
    fn waiting_read(&mut self, die: usize) -> Option<usize> {
        let now_programs = self.doing[die];
        let in_die = [
            self.suspended[die].map(|suspended| suspended.operation),
            match now_programs {
                Doing::Array { operation, .. } => Some(operation),
                _ => None,
            },
        ];
        let free = self.free(die);
        let first = free.into_iter().find(|at| {
            let op = &self.operations[self.queues[die][*at]];
            matches!(op.class, OpClass::HostRead | OpClass::Mapping)
                && !in_die.iter().flatten().any(|other| op.must_follow(&self.operations[*other]))
        })?;
        self.operations[self.queues[die][first]].is_read_of_host().then_some(first)
    }

    fn dies_suspend(&mut self, now: u64) -> bool {
        let chips = &self.config.chips;
        let (suspends, least, time, most) = (chips.suspends, chips.run_least.0, chips.suspend.0, chips.suspensions_max);
        let mut happened = false;
        for die in 0..self.doing.len() {
            let Doing::Array { operation, from, until } = self.doing[die] else { continue };
            let may = match self.operations[operation].kind {
                OpKind::Program => suspends == Suspends::ProgramsAndErases,
                OpKind::Erase => suspends != Suspends::Nothing,
                _ => false,
            };
            let soon = until <= now + time;
            if may
                && !soon
                && now >= from + least
                && self.operations[operation].suspensions < most
                && self.waiting_read(die).is_some()
            {
                self.operations[operation].suspensions += 1;
                self.suspended[die] = Some(Suspended { operation, left: until - now, served: 0 });
                self.doing[die] = Doing::Suspending { until: now + time };
                happened = true;
            }
        }
        happened
    }

    /// A die in a suspension takes a read, or resumes.
    fn goes_on(&mut self, die: usize, suspended: Suspended, now: u64) {
        let read = self.waiting_read(die).filter(|_| suspended.served < self.config.timing.passed_max);
        match read {
            Some(at) => {
                self.suspended[die] = Some(Suspended { served: suspended.served + 1, ..suspended });
                let operation = self.queues[die].remove(at);
                self.operations[operation].start = Some(now);
                self.enter_next_phase(die, operation, now);
            }
            None => {
                let Suspended { operation, left, .. } = suspended;
                let from = now + self.config.chips.resume.0;
                self.suspended[die] = None;
                self.doing[die] = Doing::Array { operation, from, until: from + left };
            }
        }
    }

    fn dies_take_operations(&mut self, now: u64) -> bool {
        let mut happened = false;
        for die in 0..self.doing.len() {
            if let (Doing::Nothing, Some(suspended)) = (self.doing[die], self.suspended[die]) {
                self.goes_on(die, suspended, now);
                happened = true;
                continue;
            }
            if matches!(self.doing[die], Doing::Nothing)
                && let Some(at) = self.chosen(die)
            {
                let operation = self.queues[die].remove(at);
                self.operations[operation].start = Some(now);
                self.enter_next_phase(die, operation, now);
                happened = true;
            }
        }
        happened
    }

    /// The position in its queue of what a free die takes.
    fn chosen(&mut self, die: usize) -> Option<usize> {
        let free = self.free(die);
        let queue: Vec<&Operation> = self.queues[die].iter().map(|operation| &self.operations[*operation]).collect();
        let Order::By(choose) = &mut self.order else {
            let awaited = queue.first()?.depends_on;
            return awaited.is_none_or(|awaited| self.operations[awaited].end.is_some()).then_some(0);
        };
        let candidates: Vec<&Operation> = free.iter().map(|at| queue[*at]).collect();
        (!free.is_empty()).then(|| free[choose(die, &candidates)])
    }

    /// The positions in its queue of what a die may take.
    fn free(&self, die: usize) -> Vec<usize> {
        let queue: Vec<&Operation> = self.queues[die].iter().map(|operation| &self.operations[*operation]).collect();
        free_of(&queue, |op| {
            op.depends_on.is_none_or(|awaited| self.operations[awaited].end.is_some()) && !self.is_source(op)
        })
    }

    /// Whether an operation erases a block while pages that were copied out of it are not yet programmed.
    fn is_source(&self, op: &Operation) -> bool {
        let copied = |other: &&Operation| other.copied_out_of == Some(op.block) && other.end.is_none();
        let earlier = |other: &&Operation| (other.request, other.entry) < (op.request, op.entry);
        op.kind == OpKind::Erase && self.operations.iter().filter(copied).any(|other| earlier(&other))
    }

    fn buses_are_given(&mut self, now: u64) -> bool {
        for channel in 0..self.bus_until.len() {
            let waiting =
                (0..self.doing.len()).filter(|die| self.channel(*die) == channel).filter_map(|die| {
                    match self.doing[die] {
                        Doing::WaitingForBus { operation, since } => {
                            let command = matches!(self.operations[operation].phases[0], Phase::Command(_));
                            let later = match self.config.timing.bus_order {
                                BusOrder::FirstCome => false,
                                BusOrder::CommandsFirst => !command,
                                BusOrder::DataFirst => command,
                            };
                            Some((later, since, operation))
                        }
                        _ => None,
                    }
                });
            if self.bus_until[channel] <= now
                && let Some((.., operation)) = waiting.min()
            {
                let Some(Phase::Bus(span) | Phase::Command(span)) = self.operations[operation].phases.pop_front()
                else {
                    unreachable!()
                };
                self.doing[self.operations[operation].die] = Doing::Busy { operation, until: now + span };
                self.bus_until[channel] = now + span;
                self.bus_busy[channel] += span;
                return true;
            }
        }
        false
    }
}

fn is_copy(read: &FlashOp, program: &FlashOp) -> bool {
    (read.kind, program.kind, program.after) == (OpKind::Read, OpKind::Program, 1)
        && read.cause == program.cause
        && matches!(read.cause, Cause::Gc | Cause::Merge | Cause::Wear)
}

fn free_of(queue: &[&Operation], awaits_nothing: impl Fn(&Operation) -> bool) -> Vec<usize> {
    let follows = |at: usize| queue[..at].iter().any(|op| queue[at].must_follow(op));
    (0..queue.len()).filter(|at| awaits_nothing(queue[*at]) && !follows(*at)).collect()
}
