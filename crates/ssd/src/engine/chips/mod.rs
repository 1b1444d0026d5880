//! Chips with commands beyond a page at a time: several planes and pages of a cell at once, two passes, suspension, cached
//! commands, copyback, parity, and RAM that collects what is programmed together.
//!
//! [`Parallel`](super::Parallel) knows three operations with one time each, which lets it work ahead. Here every command has times
//! of its own, and its end may move while it runs, so the engine goes from event to event. At the same time, commands end first,
//! then requests complete and bring others, then dies decide, then buses are granted.
//!
//! ```text
//!   FlashOp ─► command ──waits for──► ready ──die decides──► command ─► data in ─► array ─► data out ─► ended
//!              (reads of the same row of planes join;                                ▲  │ a read of the host
//!               programs collect until their unit is full)                   resume └──▼ suspends it
//! ```
//!
//! A command waits for what the log says, and on its die
//!
//! - a program for the one before it in its block, and for the block's erase;
//! - an erase for all reads and programs of its block, and on all dies for the programs of pages that cleaning copied out of it,
//!   so that a page is always on flash, or in RAM that survives a power cut;
//! - a read for the program of its page, unless RAM still holds the page.
//!
//! What runs on a die at a time is one command, but for a program whose data cross the bus while the array programs the one
//! before, and a read that senses while the one before crosses the bus.

mod bus;
mod command;
mod die;
mod erases;
mod events;
mod firmware;
mod issue;
mod observed;
mod places;
mod power;
mod programs;
mod ram;
mod reserve;
mod run;

use super::erase_dependencies::EraseDependencies;
use super::order::Order;
use super::{BusyTimes, Observer};
use bus::Bus;
use command::{Commands, NONE};
use die::{Die, InBlock};
use events::{Due, Event, Events, What};
use firmware::CopyFirmware;
use flashwright_block::{Bytes, Nanos, Seed};
use flashwright_config::{ChipTimes, DriveConfig};
use flashwright_ftl::Flash;
use flashwright_nand::{BlockId, ErrorCounts, ErrorLayout, Errors};
pub use issue::{Awaits, Superseded};
pub use observed::Unfinished;
use places::Places;
use power::Power;
use ram::Room;
use reserve::Reserve;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A request in the engine.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Slot {
    /// Commands that it waits for, and 1 if it waits for RAM.
    left: u32,
    end: u64,
    sequence: u64,
}

/// What the chips did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Chips")]
pub struct ChipFigures {
    /// Reads of the array, without those of copies within a plane; several pages at once count as one.
    pub array_reads: u64,
    /// Programs of the array, without those of parity and of copies within a plane; each of two passes counts.
    pub array_programs: u64,
    /// Programs of parity.
    pub parity_programs: u64,
    /// Erases of the array, on each die of a block.
    pub array_erases: u64,
    /// Pages copied within a plane.
    pub copybacks: u64,
    /// Mapping units that crossed a bus.
    pub units_transferred: u64,
    /// Programs suspended.
    pub programs_suspended: u64,
    /// Erases suspended.
    pub erases_suspended: u64,
    /// Reads answered from RAM before their data were programmed.
    pub ram_reads: u64,
    /// Programs whose data crossed the bus while the array was busy.
    pub cached_programs: u64,
    /// Reads that sensed while the page before crossed the bus.
    pub cached_reads: u64,
    /// Programs and erases that waited for power.
    pub power_waits: u64,
    /// Reads of other dies that rebuilt a page from its parity.
    pub rebuilding_reads: u64,
}

/// The errors of a drive's blocks, if they are modelled.
pub(crate) fn errors_of(config: &DriveConfig, seed: Seed) -> Option<Errors> {
    let layout = config.layout();
    let of_blocks = ErrorLayout {
        blocks: layout.blocks(),
        pages_per_block: layout.pages_per_block(),
        page: layout.page_size(),
        bits_per_cell: config.geometry.bits_per_cell,
    };
    Errors::new(&config.errors, of_blocks, seed)
}

/// The engine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Chips<W = ()> {
    /// What hears of operations that have ended.
    pub observer: W,
    times: ChipTimes,
    places: Places,
    order: Order,
    /// Reads in a suspension, at most.
    passed_max: u32,
    /// Time between the last command of a request and its end.
    latency: u64,
    dies: Vec<Die>,
    buses: Vec<Bus>,
    commands: Commands,
    events: Events,
    due: Due,
    slots: Vec<Slot>,
    slots_free: Vec<u32>,
    /// Of every block on each of its dies.
    in_block: Vec<InBlock>,
    /// For each block, the program that collects pages, or [`NONE`].
    collecting: Vec<u32>,
    /// One bit a page: whether the unit that begins with it is in RAM.
    in_ram: Vec<u64>,
    /// Room for pages that the host writes, and for those that cleaning copies.
    ram: Room,
    copies: Room,
    copy_firmware: CopyFirmware,
    /// Until when dies start nothing.
    held_until: u64,
    /// What must be on flash before a block may be erased.
    erase_dependencies: EraseDependencies,
    /// Where a mount may need erased blocks to finish merges.
    reserve: Option<Box<Reserve>>,
    power: Power,
    errors: Option<Box<Errors>>,
    errors_before: ErrorCounts,
    /// Blocks whose errors ask for their data to be written again.
    to_rewrite: Vec<BlockId>,
    /// Issue order of commands, and of requests.
    sequence: u64,
    requests: u64,
    figures: ChipFigures,
    /// For the operations of a request, their commands; kept for its memory.
    #[serde(skip)]
    of_ops: Vec<u32>,
    /// The programs that an erase waits for; kept for its memory.
    #[serde(skip)]
    awaited: Vec<u32>,
}

impl<W: Observer> Chips<W> {
    /// An engine at rest. `latency` nanoseconds pass between the last command of a request and its end.
    #[must_use]
    pub fn new(config: &DriveConfig, latency: u64, seed: Seed, observer: W) -> Self {
        let (places, layout) = (Places::new(config), config.layout());
        let (blocks, dies) = (layout.blocks() as usize, places.dies() as usize);
        let room = |size: Bytes| Room::new(size.0 / layout.page_size().0);
        Self {
            observer,
            times: config.flash_times().chips,
            order: Order::new(config, dies),
            passed_max: config.timing.passed_max,
            latency,
            dies: vec![Die::default(); dies],
            buses: vec![Bus::FREE; config.geometry.channels as usize],
            commands: Commands::default(),
            events: Events::default(),
            due: Due::new(dies),
            slots: Vec::new(),
            slots_free: Vec::new(),
            in_block: vec![InBlock::NOTHING; blocks * places.dies_of_block() as usize],
            collecting: vec![NONE; blocks],
            in_ram: vec![0; (layout.pages() as usize).div_ceil(64)],
            ram: room(config.chips.write_ram),
            copies: room(config.chips.copy_ram),
            held_until: 0,
            copy_firmware: CopyFirmware::new(config.flash_times().copy_overhead),
            erase_dependencies: EraseDependencies::new(blocks),
            reserve: (config.recovery.can_mount() && !config.ftl.scheme.takes_checkpoints())
                .then(|| Reserve::new(blocks)),
            power: Power::new(config),
            errors: errors_of(config, seed).map(Box::new),
            errors_before: ErrorCounts::default(),
            to_rewrite: Vec::new(),
            sequence: 0,
            requests: 0,
            figures: ChipFigures::default(),
            of_ops: Vec::new(),
            awaited: Vec::new(),
            places,
        }
    }

    /// The next completion not after `until`: slot and end.
    ///
    /// What dies and buses do at `until` itself waits for the next call: a request that is issued at `until` may go first.
    pub fn next_completion(&mut self, until: u64) -> Option<(u32, u64)> {
        loop {
            let event = self.events.first().filter(|event| event.at() <= until);
            if self.due.is_something() && event.is_none_or(|event| event.at() > self.due.at) {
                if self.due.at >= until {
                    return None;
                }
                let now = self.due.at;
                // Until something comes at this very time again.
                while self.events.first().is_none_or(|event| event.at() > now) {
                    if let Some(die) = self.due.next_die() {
                        self.decide(die, now);
                    } else if let Some(channel) = self.due.next_channel() {
                        self.grant(channel, now);
                    } else {
                        break;
                    }
                }
                continue;
            }
            let event = event?;
            let at = event.at();
            self.events.pop();
            match event.what() {
                What::Ended => self.stage_over(event, at),
                What::Completed => {
                    let slot = event.id();
                    self.slots_free.push(slot);
                    return Some((slot, at));
                }
                What::LooksAgain => self.look_again(event.id() as usize, at),
                What::Prepared => self.go_on_prepared(at),
                What::BusFree => self.bus_freed(event.id() as usize, at),
            }
        }
    }

    /// The firmware clears the map of `bytes` of addresses from `now` on: answers how long that takes, in nanoseconds. Until then dies start
    /// no command.
    pub fn clear_map(&mut self, now: u64, bytes: u64) -> u64 {
        self.held_until = self.held_until.max(now) + self.times.trim_rate.transfer(bytes).0;
        self.held_until - now
    }

    /// The time of the next event, before which nothing completes; the largest number if there is none.
    #[must_use]
    pub fn next_event(&self) -> u64 {
        let due = if self.due.is_something() { self.due.at } else { u64::MAX };
        self.events.first().map_or(u64::MAX, |event| event.at()).min(due)
    }

    fn new_slot(&mut self, least: u64) -> u32 {
        let fresh = Slot { left: 0, end: least, sequence: self.requests };
        self.requests += 1;
        if let Some(slot) = self.slots_free.pop() {
            self.slots[slot as usize] = fresh;
            return slot;
        }
        self.slots.push(fresh);
        u32::try_from(self.slots.len() - 1).expect("slots in flight fit 32 bits")
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
        self.events.push(Event::completed(end + self.latency, sequence, slot));
    }

    /// Whether nothing is queued or in progress on a die of the layout.
    #[must_use]
    pub fn is_idle(&self, die: usize) -> bool {
        let mut dies = if self.places.dies_of_block() > 1 { self.dies.iter() } else { self.dies[die..=die].iter() };
        dies.all(|die| die.issued == 0)
    }

    /// Dies that a block of the layout lies on.
    #[must_use]
    pub fn dies_of_block(&self) -> u32 {
        self.places.dies_of_block()
    }

    /// How long dies and channels were busy, up to the last event.
    #[must_use]
    pub fn busy(&self) -> BusyTimes {
        BusyTimes {
            dies: self.dies.iter().map(|die| Nanos(die.busy)).collect(),
            channels: self.buses.iter().map(|bus| Nanos(bus.busy)).collect(),
        }
    }

    /// What reads met since the start or the last [`Self::reset_figures`], if errors are modelled.
    #[must_use]
    pub fn error_counts(&self) -> Option<ErrorCounts> {
        self.errors.as_ref().map(|errors| errors.counts().since(&self.errors_before))
    }

    /// A block whose data should be written again, if there is one.
    pub fn next_to_rewrite(&mut self) -> Option<BlockId> {
        self.to_rewrite.pop()
    }

    /// Measuring begins: data that are held get the age of `errors.age-at-start`, whether they were written in time or when the
    /// drive was preconditioned.
    pub fn age(&mut self, now: u64, flash: &Flash) {
        let Some(errors) = &mut self.errors else { return };
        for block in (0..flash.geometry().blocks()).map(BlockId) {
            errors.erased(block, flash.nand().erases(block));
            if flash.nand().next_page(block) > 0 {
                errors.programmed(block, now);
            }
        }
        errors.start(now);
    }

    /// Sets the figures to zero.
    pub fn reset_figures(&mut self) {
        self.figures = ChipFigures::default();
        if let Some(errors) = &self.errors {
            self.errors_before = errors.counts().clone();
        }
    }

    /// What the chips did since the start or the last [`Self::reset_figures`].
    #[must_use]
    pub fn figures(&self) -> ChipFigures {
        self.figures
    }
}
