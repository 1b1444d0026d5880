//! The power that programs and erases draw, and the limit on it.

use super::command::Kind;
use flashwright_config::DriveConfig;
use serde::{Deserialize, Serialize};

/// In microwatts; an array draws its energy evenly over its time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Power {
    /// What programs and erases may draw together; 0 for no limit.
    limit: u64,
    drawn: u64,
    program_nj: f64,
    erase_nj: f64,
    /// Dies that wait for power, by number.
    waiting: Vec<u32>,
}

impl Power {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // ranges keep both far below 2^63
    pub fn new(config: &DriveConfig) -> Self {
        let energy = &config.energy;
        let limit = ((energy.limit_mw - energy.idle_mw) * 1e3).max(0.0);
        Self {
            limit: if energy.limit_mw > 0.0 { limit as u64 } else { 0 },
            program_nj: energy.program_uj * 1e3,
            erase_nj: energy.erase_uj * 1e3,
            ..Self::default()
        }
    }

    #[inline(always)]
    pub fn is_limited(&self) -> bool {
        self.limit > 0
    }

    /// What a command draws whose array takes `array` nanoseconds.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    pub fn of(&self, kind: Kind, array: u64) -> u64 {
        let energy = match kind {
            Kind::Read => return 0,
            Kind::Program | Kind::Copyback => self.program_nj,
            Kind::Erase => self.erase_nj,
        };
        (energy * 1e6 / array.max(1) as f64) as u64
    }

    /// Takes the power of a command for a die, or notes that the die waits for it.
    pub fn take(&mut self, power: u64, die: usize) -> bool {
        if self.drawn > 0 && self.drawn + power > self.limit {
            let die = u32::try_from(die).expect("dies are counted in 32 bits");
            if !self.waiting.contains(&die) {
                self.waiting.push(die);
            }
            return false;
        }
        self.drawn += power;
        true
    }

    /// A command has ended; answers the dies that may try again.
    pub fn give_back(&mut self, power: u64) -> Vec<u32> {
        self.drawn -= power;
        std::mem::take(&mut self.waiting)
    }
}
