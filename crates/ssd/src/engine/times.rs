//! How long commands take, and which of them may overlap.

use flashwright_config::{BusOrder, DriveConfig, Programming, Rate, Suspends};
use serde::{Deserialize, Serialize};

pub(super) const BITS_MAX: usize = 4;

/// Durations in nanoseconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct ChipTimes {
    pub command: u64,
    /// Whether a command holds its channel only for transfers.
    pub pipelined: bool,
    /// Array times, by page of a cell.
    pub read: [u64; BITS_MAX],
    pub program: [u64; BITS_MAX],
    pub oob_read: u64,
    /// Of blocks with one bit a cell.
    pub slc_read: u64,
    pub slc_program: u64,
    /// The first of two passes.
    pub first_pass: u64,
    pub erase: u64,
    /// Transfer of a mapping unit, and of the spare area of a page.
    pub data: u64,
    pub spare: u64,
    pub suspends_programs: bool,
    pub suspends_erases: bool,
    pub suspend: u64,
    pub resume: u64,
    pub suspensions_max: u32,
    pub run_least: u64,
    pub cache_program: bool,
    pub cache_read: bool,
    pub copyback: bool,
    pub bus_order: BusOrder,
    pub trim_rate: Rate,
}

impl ChipTimes {
    pub fn new(config: &DriveConfig) -> Self {
        let (timing, chips, geometry) = (&config.timing, &config.chips, &config.geometry);
        let by_page = |times: &[flashwright_block::Nanos], all: u64| {
            std::array::from_fn(|page| times.get(page).map_or(all, |time| time.0))
        };
        let unit = config.layout().page_size().0;
        let spare = geometry.spare_size.0 * unit / geometry.page_size.0;
        let transfer = |bytes| timing.bus_rate.transfer(bytes).0;
        Self {
            command: timing.command.0,
            pipelined: timing.pipelined,
            read: by_page(&chips.read_times.0, timing.read.0),
            program: by_page(&chips.program_times.0, timing.program.0),
            oob_read: timing.oob_read.0,
            slc_read: config.slc.page_read.0,
            slc_program: config.slc.page_program.0,
            first_pass: if chips.programming == Programming::TwoPass { chips.first_pass.0 } else { 0 },
            erase: timing.erase.0,
            data: transfer(if timing.transfer_spare { unit + spare } else { unit }),
            spare: transfer(geometry.spare_size.0),
            suspends_programs: chips.suspends == Suspends::ProgramsAndErases,
            suspends_erases: chips.suspends != Suspends::Nothing,
            suspend: chips.suspend.0,
            resume: chips.resume.0,
            suspensions_max: chips.suspensions_max,
            run_least: chips.run_least.0,
            cache_program: chips.cache_program,
            cache_read: chips.cache_read,
            copyback: chips.copyback,
            bus_order: timing.bus_order,
            trim_rate: chips.trim_rate,
        }
    }

    /// Array time of reading a page.
    #[inline(always)]
    pub fn read_of(&self, page_of_cell: u32, is_slc: bool) -> u64 {
        if is_slc { self.slc_read } else { self.read[page_of_cell as usize % BITS_MAX] }
    }

    /// Array time of programming a unit.
    #[inline(always)]
    pub fn program_of(&self, page_of_cell: u32, is_slc: bool) -> u64 {
        if is_slc { self.slc_program } else { self.program[page_of_cell as usize % BITS_MAX] }
    }
}
