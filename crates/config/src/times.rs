//! How long operations of the flash take: the one place where the times of `[timing]`, `[chips]` and `[slc]` become durations.
//!
//! ```text
//!   [timing] [chips] [slc] ──FlashTimes::of──► by_kind ───────► serial, parallel
//!                                              chips ─────────► ordered, chips
//!                                              copy_overhead ─► chips
//!                                              unmapped_read ─► the drive
//! ```

use crate::chips::{ChipsConfig, Programming, Suspends};
use crate::schema::{BusOrder, Config, TimingConfig};
use crate::values::Rate;
use flashwright_block::{Bytes, Nanos};
use flashwright_ftl::{OP_KINDS, OpKind, SlcSettings};
use serde::{Deserialize, Serialize};

/// Pages that share cells, at most.
pub const BITS_MAX: usize = 4;

/// All that follows from the times in the settings of a drive. Each engine takes its view of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlashTimes {
    /// For engines that know operations by their kind.
    pub by_kind: Times,
    /// For engines that know the commands of chips.
    pub chips: ChipTimes,
    /// Firmware time for each mapping unit that cleaning moves.
    pub copy_overhead: u64,
    /// What a read of pages without data lasts at least.
    pub unmapped_read: u64,
}

/// Durations of operations by their kind, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// Bus cycles of a command.
    pub command: u64,
    /// Whether an operation occupies its channel only during transfers.
    pub pipelined: bool,
    /// Which waiting die gets a free bus.
    pub bus_order: BusOrder,
    /// Array times, by [`OpKind`].
    pub array: [u64; OP_KINDS],
    /// Transfers on the bus, by [`OpKind`].
    pub transfer: [u64; OP_KINDS],
}

/// Durations of the commands of chips, in nanoseconds, and which of them may overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChipTimes {
    /// Bus cycles of a command.
    pub command: u64,
    /// Whether a command holds its channel only for transfers.
    pub pipelined: bool,
    /// Array times of reads, by page of a cell.
    pub read: [u64; BITS_MAX],
    /// Array times of programs, by page of a cell.
    pub program: [u64; BITS_MAX],
    /// Array time of reading a spare area alone.
    pub oob_read: u64,
    /// Array time of reading a page of a block with one bit a cell.
    pub slc_read: u64,
    /// Array time of programming a page of such a block.
    pub slc_program: u64,
    /// Array time of the first of two passes.
    pub first_pass: u64,
    /// Array time of an erase.
    pub erase: u64,
    /// Transfer of a mapping unit.
    pub data: u64,
    /// Transfer of the spare area of a page.
    pub spare: u64,
    /// Whether dies suspend programs.
    pub suspends_programs: bool,
    /// Whether dies suspend erases.
    pub suspends_erases: bool,
    /// Time from the command to suspend until the die can read.
    pub suspend: u64,
    /// Extra array time after each suspension.
    pub resume: u64,
    /// Suspensions of one operation, at most.
    pub suspensions_max: u32,
    /// Time that an operation runs at least before it is suspended.
    pub run_least: u64,
    /// Whether the data of a program can cross the bus while the die executes the one before.
    pub cache_program: bool,
    /// Whether a die can read the next page while the one before crosses the bus.
    pub cache_read: bool,
    /// Whether cleaning copies a page within a plane without the bus.
    pub copyback: bool,
    /// Which waiting die gets a free bus.
    pub bus_order: BusOrder,
    /// Rate at which the firmware clears the map of what a trim covers.
    pub trim_rate: Rate,
}

impl FlashTimes {
    /// The times of a drive whose mapping units, as the translation layer sees them, have `unit` bytes; none if a time of
    /// [`Times`], or a whole operation, exceeds 64 bits of nanoseconds.
    pub(crate) fn of(config: &Config, unit: Bytes) -> Option<Self> {
        Some(Self {
            by_kind: Times::of(config)?,
            chips: ChipTimes::of(config, unit)?,
            copy_overhead: config.chips.copy_overhead.0,
            unmapped_read: config.timing.unmapped_read.0,
        })
    }
}

/// Bytes of a transfer of `data` bytes with their `spare` area, if that is transferred too.
fn with_spare(transfer_spare: bool, data: u64, spare: u64) -> Option<u64> {
    data.checked_add(if transfer_spare { spare } else { 0 })
}

// Both views take the settings apart field by field: a new one compiles only when its meaning for each of them is decided.
impl Times {
    fn of(config: &Config) -> Option<Self> {
        let &TimingConfig {
            read,
            program,
            erase,
            oob_read,
            command,
            bus_order,
            bus_rate,
            transfer_spare,
            pipelined,
            // The drive takes this one.
            unmapped_read: _,
            // No durations: which engine there is, in which order its dies take operations, and what waits for cleaning.
            model: _,
            die_order: _,
            passed_max: _,
            cleaning_blocks: _,
        } = &config.timing;
        let geometry = &config.geometry;
        let (page, spare) = (geometry.page_size.0, geometry.spare_size.0);
        // Parts of a clustered page transfer in parallel if they lie on different channels, and one after the other if
        // they share one. Their array times overlap unless an operation occupies its channel for its whole duration;
        // then only erases, which move no data, overlap.
        let in_turn = u64::from(geometry.cluster_dies);
        let held = if pipelined { 1 } else { in_turn };
        let array = |time: Nanos| held.checked_mul(time.0);
        let parts = |bytes| in_turn.checked_mul(bus_rate.transfer(bytes).0);
        let (page_moves, spare_moves) = (parts(with_spare(transfer_spare, page, spare)?)?, parts(spare)?);
        // By [`OpKind`]: read, program, erase, read of a spare area.
        let times = Self {
            command: command.0,
            pipelined,
            bus_order,
            array: [array(read)?, array(program)?, erase.0, array(oob_read)?],
            transfer: [page_moves, page_moves, 0, spare_moves],
        };
        let whole = |kind: usize| times.command.checked_add(times.array[kind])?.checked_add(times.transfer[kind]);
        (0..OP_KINDS).all(|kind| whole(kind).is_some()).then_some(times)
    }

    /// Duration of a single operation on an idle drive.
    #[inline(always)]
    #[must_use]
    pub fn alone(&self, kind: OpKind) -> u64 {
        self.command + self.array[kind as usize] + self.transfer[kind as usize]
    }
}

impl ChipTimes {
    fn of(config: &Config, unit: Bytes) -> Option<Self> {
        let &TimingConfig {
            read,
            program,
            erase,
            oob_read,
            command,
            bus_order,
            bus_rate,
            transfer_spare,
            pipelined,
            // The drive takes this one.
            unmapped_read: _,
            // No durations: which engine there is, in which order its dies take operations, and what waits for cleaning.
            model: _,
            die_order: _,
            passed_max: _,
            cleaning_blocks: _,
        } = &config.timing;
        let &ChipsConfig {
            programming,
            ref read_times,
            ref program_times,
            first_pass,
            suspends,
            suspend,
            resume,
            suspensions_max,
            run_least,
            cache_program,
            cache_read,
            copyback,
            trim_rate,
            // The firmware of the engine takes this one.
            copy_overhead: _,
            // Sizes.
            write_ram: _,
            copy_ram: _,
        } = &config.chips;
        let &SlcSettings {
            page_read,
            page_program,
            // No times of the flash.
            fold_after: _,
            cache: _,
            block_share: _,
            blocks_kept: _,
            when_full: _,
            fold_idle: _,
        } = &config.slc;
        let (page, spare) = (config.geometry.page_size.0, config.geometry.spare_size.0);
        let spare_of_unit = spare.checked_mul(unit.0)? / page;
        let transfer = |bytes| bus_rate.transfer(bytes).0;
        let by_page =
            |times: &[Nanos], all: Nanos| std::array::from_fn(|page| times.get(page).map_or(all.0, |time| time.0));
        Some(Self {
            command: command.0,
            pipelined,
            read: by_page(&read_times.0, read),
            program: by_page(&program_times.0, program),
            oob_read: oob_read.0,
            slc_read: page_read.0,
            slc_program: page_program.0,
            first_pass: if programming == Programming::TwoPass { first_pass.0 } else { 0 },
            erase: erase.0,
            data: transfer(with_spare(transfer_spare, unit.0, spare_of_unit)?),
            spare: transfer(spare),
            suspends_programs: suspends == Suspends::ProgramsAndErases,
            suspends_erases: suspends != Suspends::Nothing,
            suspend: suspend.0,
            resume: resume.0,
            suspensions_max,
            run_least: run_least.0,
            cache_program,
            cache_read,
            copyback,
            bus_order,
            trim_rate,
        })
    }

    /// Array time of reading a page.
    #[inline(always)]
    #[must_use]
    pub fn read_of(&self, page_of_cell: u32, is_slc: bool) -> u64 {
        if is_slc { self.slc_read } else { self.read[page_of_cell as usize % BITS_MAX] }
    }

    /// Array time of programming a unit.
    #[inline(always)]
    #[must_use]
    pub fn program_of(&self, page_of_cell: u32, is_slc: bool) -> u64 {
        if is_slc { self.slc_program } else { self.program[page_of_cell as usize % BITS_MAX] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Worked out by hand: the reference models of the engines take their times from here.
    #[test]
    fn times_of_a_drive() {
        let settings = [
            "geometry.page-size=16 KiB",
            "geometry.spare-size=1 KiB",
            "geometry.mapping-unit=4 KiB",
            "chips.write-ram=64 KiB",
            "timing.read=50 us",
            "timing.program=600 us",
            "timing.erase=3 ms",
            "timing.oob-read=20 us",
            "timing.command=300 ns",
            "timing.bus-rate=1 GB/s",
            "timing.unmapped-read=7 us",
            "chips.copy-overhead=2 us",
        ];
        let of = |more: &[&str]| {
            let settings: Vec<&str> = settings.iter().chain(more).copied().collect();
            *Config::default().with_settings(&settings).unwrap().flash_times()
        };
        let plain = of(&[]);
        assert_eq!((plain.by_kind.command, plain.copy_overhead, plain.unmapped_read), (300, 2_000, 7_000));
        assert_eq!(plain.by_kind.array, [50_000, 600_000, 3_000_000, 20_000]);
        assert_eq!(plain.by_kind.transfer, [16_384, 16_384, 0, 1_024]);
        assert_eq!((plain.chips.data, plain.chips.spare), (4_096, 1_024));
        assert_eq!((plain.chips.read, plain.chips.program), ([50_000; BITS_MAX], [600_000; BITS_MAX]));
        let with_spare = of(&["timing.transfer-spare=true"]);
        assert_eq!(with_spare.by_kind.transfer, [17_408, 17_408, 0, 1_024]);
        assert_eq!((with_spare.chips.data, with_spare.chips.spare), (4_096 + 256, 1_024));
    }
}
