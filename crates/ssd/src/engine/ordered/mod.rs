//! Dies that choose what they do next, where every command is of one page or block on one die.
//!
//! [`Chips`](super::Chips) knows all that chips can do. Most drives whose dies choose by class need little of it: no planes that
//! work together, no RAM, no errors, no overlapping commands. For those ([`Ordered::suffices`]) this engine makes the same
//! schedule at a fraction of the cost. Without it, the counted path `chips-by-class` takes 10,864 instructions a request in place of 6,519:
//!
//! - A run of copies from one block to consecutive pages of another on the same die is one entry of its queue. The die takes
//!   it part by part, read and program in turn, so that whatever goes first may go between any two parts.
//! - A die has one command at a time, so its end is a field of the die, and the next event is a minimum over channels.
//! - When a read's array starts, it is known since when it will want the bus, so the end of the array is no event.
//! - Everything takes time, so what the dies of a channel decide at some moment, and whom its bus is granted to, depends on no
//!   other channel at that moment, and happens in one go.
//!
//! What waits for what is described in [`Chips`](super::Chips), as is the order of what happens at the same time. A test plays random
//! operations on both.

mod command;
mod issue;
mod run;
mod suspend;

use super::earliest::Earliest;
use super::erase_dependencies::EraseDependencies;
use super::order::{GROUPS, Heads, Order};
use super::{BusyTimes, ChipFigures, NONE};
use command::{COMMANDS, Commands, Kind};
use flashwright_block::Nanos;
use flashwright_config::{BITS_MAX, ChipTimes, DriveConfig, Programming};
use flashwright_ftl::SlcCacheKind;
use flashwright_nand::{Divisor, ErrorLaw};
use serde::{Deserialize, Serialize};

const NEVER: u64 = u64::MAX;

/// A request in the engine.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Slot {
    /// Commands and runs that it waits for.
    left: u32,
    end: u64,
    sequence: u64,
}

/// Bits of a slot in the list of completions.
const SLOT_BITS: u32 = 24;
const SLOT_MAX: u32 = (1 << SLOT_BITS) - 1;

/// How a command begins: when it wants the bus, for what, and for how long.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Begin {
    stage: Stage,
    is_command: bool,
    /// Time from its start to its wish for the bus.
    lead: u64,
    held: u64,
    /// What a further page that it reads adds to that.
    per_page: u64,
    /// Time of the array.
    array: u64,
}

/// What the command of a die does once it has the bus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Stage {
    /// It sends the command of a read, whose page then wants the bus.
    #[default]
    ReadCommand,
    /// It sends the command of an erase, or the page of a program; then the array works.
    Load,
    /// The array of a program or an erase works, or will as soon as its transfer is over.
    Array,
    /// It transfers the last that it has to, or holds the bus for all of its time.
    Last,
}

/// When something happens on a die: what it wants of its bus, and the end of its command. On a cache line of its own: those of a channel
/// are looked at for every event there.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[repr(align(64))]
struct Lane {
    /// When its command ends, if that is known; else [`NEVER`].
    ends: u64,
    /// Since when it wants the bus, which may lie in the future; [`NEVER`] if it doesn't.
    since: u64,
    /// For how long, and the sequence number of what wants it.
    held: u64,
    sequence: u64,
    /// Whether it sends a command alone, without data.
    is_command: bool,
}

impl Lane {
    const FREE: Self = Self { ends: NEVER, since: NEVER, held: 0, sequence: 0, is_command: false };
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Die {
    channel: u32,
    /// Its bit among the dies of its channel.
    bit: u64,
    /// The command that holds the die, or [`NONE`], and its part.
    main: u32,
    part: u32,
    stage: Stage,
    /// Time of its array; since when that has worked without a break, and until when.
    array: u64,
    runs_from: u64,
    ends: u64,
    /// The suspended command, or [`NONE`]; its part, and the time of the array that is left.
    suspended: u32,
    suspended_part: u32,
    left: u64,
    /// Reads served in this suspension.
    served: u32,
    /// Until when the die is busy with suspending.
    suspends_until: u64,
    /// When it decides next although nothing happens.
    looks_at: u64,
    busy_since: u64,
    busy: u64,
    /// Commands and runs issued that have not ended.
    issued: u32,
    /// Of the commands that wait, by group: the first, the last, and the sequence number of the first.
    first: [u32; GROUPS],
    last: [u32; GROUPS],
    heads: Heads,
}

impl Die {
    const IDLE: Self = Self {
        channel: 0,
        bit: 0,
        main: NONE,
        part: 0,
        stage: Stage::Last,
        array: 0,
        runs_from: 0,
        ends: 0,
        suspended: NONE,
        suspended_part: 0,
        left: 0,
        served: 0,
        suspends_until: 0,
        looks_at: NEVER,
        busy_since: NEVER,
        busy: 0,
        issued: 0,
        first: [NONE; GROUPS],
        last: [NONE; GROUPS],
        heads: Heads::EMPTY,
    };
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Channel {
    /// Until when its bus is held.
    free_at: u64,
    busy: u64,
    /// Its dies that decide now, one bit each.
    due: u64,
}

/// What is under way in a block.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct InBlock {
    /// Reads that have not started, since the latest erase was issued.
    reads: u32,
    /// The program or run issued last that has not ended, or [`NONE`].
    program: u32,
    /// The erase issued last that has not ended, or [`NONE`].
    erase: u32,
    /// Erases issued.
    generation: u32,
}

/// The engine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ordered {
    times: ChipTimes,
    order: Order,
    /// Reads in a suspension, at most.
    passed_max: u32,
    /// How commands begin: of each kind, by page of a cell.
    begins: [[Begin; BITS_MAX]; COMMANDS],
    /// Bits of a cell, and pages of a block, by which pages have their times.
    bits: u32,
    pages_per_block: Divisor,
    /// Whether all pages take the same time to read, so that runs need not know which pages they read; and also to program.
    reads_take_one_time: bool,
    all_take_one_time: bool,
    /// Whether a die may decide while nothing happens: it suspends, or the firmware holds it.
    may_look: bool,
    /// Time between the last command of a request and its end.
    latency: u64,
    dies_per_channel: usize,
    dies: Vec<Die>,
    /// By die.
    lanes: Vec<Lane>,
    channels: Vec<Channel>,
    /// By channel: twice the time of what happens there next, and 1 if dies or the bus act; ends of commands come first.
    keys: Earliest,
    commands: Commands,
    slots: Vec<Slot>,
    slots_free: Vec<u32>,
    /// Completions to come, the first last: end, order of issue, slot.
    done: Vec<u128>,
    /// When the first of them ends, or [`NEVER`].
    done_at: u64,
    in_block: Vec<InBlock>,
    /// One bit a page: whether its program has been issued and has not ended.
    pending: Vec<u64>,
    /// Until when dies start nothing.
    held_until: u64,
    /// What must be on flash before a block may be erased.
    erase_dependencies: EraseDependencies,
    /// Issue order of commands, and of requests.
    sequence: u64,
    requests: u64,
    figures: ChipFigures,
    /// For the operations of a request, their commands; kept for its memory.
    #[serde(skip)]
    of_ops: Vec<u32>,
}

impl Ordered {
    /// Whether a drive needs no more than this engine.
    #[must_use]
    pub fn suffices(config: &DriveConfig) -> bool {
        let (layout, chips) = (config.block_layout(), &config.chips);
        let has_ram = chips.write_ram.0 > 0 || chips.copy_ram.0 > 0 || chips.copy_overhead.0 > 0;
        let overlaps = chips.cache_program || chips.cache_read || chips.copyback;
        let times = config.flash_times().chips;
        // Where something takes no time, more than the rules of a die and its bus would say what comes first.
        let arrays = times.read.iter().chain(&times.program).chain([&times.oob_read, &times.erase]);
        let takes_time = arrays.chain([&times.data, &times.spare]).all(|time| *time > 0);
        takes_time
            && (layout.unit(), layout.dies) == (1, 1)
            && chips.programming == Programming::default()
            && !has_ram
            && !overlaps
            && config.energy.limit_mw <= 0.0
            && config.errors.law == ErrorLaw::None
            && config.slc.cache == SlcCacheKind::None
            && !config.recovery.can_mount()
    }

    /// An engine at rest, for a drive for which it [suffices](Self::suffices). `latency` nanoseconds pass between the last
    /// command of a request and its end.
    #[must_use]
    pub fn new(config: &DriveConfig, latency: u64) -> Self {
        let (layout, times) = (config.layout(), config.flash_times().chips);
        let (blocks, dies, channels) = (layout.blocks() as usize, layout.dies() as usize, layout.channels() as usize);
        let bits = config.geometry.bits_per_cell;
        let is_one_time = |times: &[u64]| times[..bits as usize].iter().all(|time| *time == times[0]);
        let (reads_take_one_time, programs_take_one_time) = (is_one_time(&times.read), is_one_time(&times.program));
        Self {
            order: Order::new(config, dies),
            passed_max: config.timing.passed_max,
            begins: Self::begins(&times),
            bits,
            pages_per_block: Divisor::new(layout.pages_per_block()),
            reads_take_one_time,
            all_take_one_time: reads_take_one_time && programs_take_one_time,
            may_look: times.suspends_erases || times.trim_rate.0.is_some(),
            times,
            latency,
            dies_per_channel: layout.dies_per_channel() as usize,
            dies: (0..layout.dies())
                .map(|die| Die {
                    channel: die / layout.dies_per_channel(),
                    bit: 1 << (die % layout.dies_per_channel()),
                    ..Die::IDLE
                })
                .collect(),
            lanes: vec![Lane::FREE; dies],
            channels: vec![Channel { free_at: 0, busy: 0, due: 0 }; channels],
            keys: Earliest::new(channels),
            commands: Commands::default(),
            slots: Vec::new(),
            slots_free: Vec::new(),
            done: Vec::new(),
            done_at: NEVER,
            in_block: vec![InBlock { reads: 0, program: NONE, erase: NONE, generation: 0 }; blocks],
            pending: vec![0; (layout.pages() as usize).div_ceil(64)],
            held_until: 0,
            erase_dependencies: EraseDependencies::new(blocks),
            sequence: 0,
            requests: 0,
            figures: ChipFigures::default(),
            of_ops: Vec::new(),
        }
    }

    fn begins(times: &ChipTimes) -> [[Begin; BITS_MAX]; COMMANDS] {
        let command = times.command;
        let of = |kind: Kind, page: u32| {
            let (array, data) = match kind {
                Kind::Read | Kind::Copies => (times.read_of(page, false), times.data),
                Kind::OobRead => (times.oob_read, times.spare),
                Kind::Program => (times.program_of(page, false), times.data),
                Kind::Erase => (times.erase, 0),
            };
            let reads = matches!(kind, Kind::Read | Kind::OobRead);
            let begin = Begin { array, per_page: if reads { data } else { 0 }, ..Begin::default() };
            match kind {
                _ if !times.pipelined => Begin { stage: Stage::Last, held: command + data + array, ..begin },
                Kind::Program => Begin { stage: Stage::Load, held: command + data, ..begin },
                // A command that takes no time needs no bus.
                Kind::Erase if command == 0 => Begin { stage: Stage::Array, ..begin },
                Kind::Erase => Begin { stage: Stage::Load, is_command: true, held: command, ..begin },
                _ if command == 0 => Begin { stage: Stage::Last, lead: array, held: data, ..begin },
                _ => Begin { stage: Stage::ReadCommand, is_command: true, held: command, per_page: 0, ..begin },
            }
        };
        [Kind::Read, Kind::OobRead, Kind::Program, Kind::Erase].map(|kind| [0, 1, 2, 3].map(|page| of(kind, page)))
    }

    /// The next completion not after `until`: slot and end.
    ///
    /// What dies and buses do at `until` itself waits for the next call: a request that is issued at `until` may go first.
    pub fn next_completion(&mut self, until: u64) -> Option<(u32, u64)> {
        let until = until.min(NEVER / 2);
        if self.may_look { self.run::<true>(until) } else { self.run::<false>(until) }
    }

    /// As [`Self::next_completion`]; `LOOKS` where a die may decide while nothing happens.
    fn run<const LOOKS: bool>(&mut self, until: u64) -> Option<(u32, u64)> {
        loop {
            let (channel, key) = self.keys.first();
            let (at, acts) = (key / 2, key % 2);
            // At the same time commands end first, then requests complete, then dies and buses act.
            if self.done_at < at + acts {
                return self.take_done(until);
            }
            if at + acts > until {
                return None;
            }
            if acts == 0 {
                let another = self.command_ends(channel, at);
                // Where nothing else ends or completes at this time, what follows needs no further look at the channels.
                let is_alone = !another && self.done_at > at && at < until && self.keys.count_up_to(key) == 1;
                if !is_alone || self.channels[channel].due == 0 {
                    self.plan::<LOOKS>(channel, at);
                    continue;
                }
            }
            self.act::<LOOKS>(channel, at);
        }
    }

    fn take_done(&mut self, until: u64) -> Option<(u32, u64)> {
        let end = self.done_at;
        if end > until {
            return None;
        }
        let slot = self.done.pop().expect("it has a time") as u32 & SLOT_MAX;
        self.done_at = self.done.last().map_or(NEVER, |key| (*key >> 64) as u64);
        self.slots_free.push(slot);
        Some((slot, end))
    }

    /// The time of the next event, before which nothing completes; the largest number if there is none.
    #[must_use]
    pub fn next_event(&self) -> u64 {
        match self.keys.first().1 {
            NEVER => self.done_at,
            key => self.done_at.min(key / 2),
        }
    }

    /// The firmware clears the map of `bytes` of addresses from `now` on: answers how long that takes, in nanoseconds. Until then dies start
    /// no command.
    pub fn clear_map(&mut self, now: u64, bytes: u64) -> u64 {
        self.held_until = self.held_until.max(now) + self.times.trim_rate.transfer(bytes).0;
        self.held_until - now
    }

    #[inline(always)]
    fn new_slot(&mut self, least: u64) -> u32 {
        let fresh = Slot { left: 0, end: least, sequence: self.requests };
        self.requests += 1;
        if let Some(slot) = self.slots_free.pop() {
            self.slots[slot as usize] = fresh;
            return slot;
        }
        self.slots.push(fresh);
        let slot = u32::try_from(self.slots.len() - 1).expect("slots in flight fit 32 bits");
        assert!(slot <= SLOT_MAX, "at most {SLOT_MAX} requests are in flight");
        slot
    }

    /// Something that a request waits for came at `at`.
    #[inline(always)]
    fn request_got(&mut self, slot: u32, at: u64) {
        let state = &mut self.slots[slot as usize];
        state.left -= 1;
        state.end = state.end.max(at);
        if state.left == 0 {
            self.complete(slot);
        }
    }

    fn complete(&mut self, slot: u32) {
        let Slot { end, sequence, .. } = self.slots[slot as usize];
        let key = u128::from(end + self.latency) << 64 | u128::from(sequence << SLOT_BITS | u64::from(slot));
        let mut at = self.done.len();
        self.done.push(key);
        while at > 0 && self.done[at - 1] < key {
            self.done.swap(at - 1, at);
            at -= 1;
        }
        self.done_at = self.done_at.min(end + self.latency);
    }

    /// Whether nothing is queued or in progress on a die.
    #[must_use]
    pub fn is_idle(&self, die: usize) -> bool {
        self.dies[die].issued == 0
    }

    /// How long dies and channels were busy, up to the last event.
    #[must_use]
    pub fn busy(&self) -> BusyTimes {
        BusyTimes {
            dies: self.dies.iter().map(|die| Nanos(die.busy)).collect(),
            channels: self.channels.iter().map(|channel| Nanos(channel.busy)).collect(),
        }
    }

    /// Sets the figures to zero.
    pub fn reset_figures(&mut self) {
        self.figures = ChipFigures::default();
    }

    /// What the chips did since the start or the last [`Self::reset_figures`].
    #[must_use]
    pub fn figures(&self) -> ChipFigures {
        self.figures
    }
}
