//! Energy of a simulated drive: what its flash did, times the figures in `[energy]`.

use flashwright_ftl::{Counters, OpKind};
use flashwright_ssd::Ssd;

/// Joules by kind of operation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Joules {
    pub reads: f64,
    pub programs: f64,
    pub erases: f64,
    pub transfers: f64,
}

impl Joules {
    /// What these counts of a drive took, and the chip commands since its figures were last reset. Without figures of the chips, each
    /// operation of the translation layer is one of a die.
    #[allow(clippy::cast_precision_loss)] // counts far below 2^53
    pub fn of(ssd: &Ssd, counters: &Counters) -> Self {
        let config = &ssd.config().energy;
        let page = ssd.flash().geometry().page_size().0 as f64;
        let [reads, programs, erases, transferred] = match ssd.chip_figures() {
            Some(chips) => {
                let programs = chips.array_programs + chips.parity_programs + chips.copybacks;
                [chips.array_reads + chips.copybacks, programs, chips.array_erases, chips.units_transferred]
            }
            None => {
                let [reads, programs] = [OpKind::Read, OpKind::Program].map(|kind| counters.total(kind));
                let read_at_all = reads + counters.total(OpKind::OobRead);
                [read_at_all, programs, counters.total(OpKind::Erase), reads + programs]
            }
        };
        let joules = |count: u64, each_uj: f64| count as f64 * each_uj * 1e-6;
        Self {
            reads: joules(reads, config.read_uj),
            programs: joules(programs, config.program_uj),
            erases: joules(erases, config.erase_uj),
            transfers: transferred as f64 * page * config.transfer_pj_per_byte * 1e-12,
        }
    }

    /// All of it.
    pub fn sum(&self) -> f64 {
        self.reads + self.programs + self.erases + self.transfers
    }
}
