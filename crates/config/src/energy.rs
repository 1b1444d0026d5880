//! `[energy]`: what operations of the flash cost in energy.

use crate::problems::Problems;
use crate::schema::Config;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[energy]`: energy of operations, power of the rest of the drive, and a limit. Zeros leave energy out of the results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct EnergyConfig {
    /// Microjoules of one read of the array of a die, of however many planes.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub read_uj: f64,
    /// Microjoules of one program of the array of a die, of however many pages.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub program_uj: f64,
    /// Microjoules of one erase on a die.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub erase_uj: f64,
    /// Picojoules of moving one byte over a channel.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub transfer_pj_per_byte: f64,
    /// Milliwatts that the drive draws all the time: controller, RAM, idle flash.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub idle_mw: f64,
    /// Milliwatts that the drive may draw, or 0 for no limit. A program or an erase does not start while its power, on top of
    /// those under way and `idle-mw`, would exceed the limit; one always may.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub limit_mw: f64,
}

impl EnergyConfig {
    /// Whether anything costs energy.
    #[must_use]
    pub fn is_known(&self) -> bool {
        Self { limit_mw: 0.0, ..self.clone() } != Self::default()
    }
}

impl Config {
    #[allow(clippy::neg_cmp_op_on_partial_ord)] // what is no number has a message of its own
    pub(crate) fn energy_problems(&self, problems: &mut Problems) {
        let energy = &self.energy;
        problems.unless(
            !(energy.limit_mw > 0.0) || energy.program_uj > 0.0 || energy.erase_uj > 0.0,
            "energy.limit-mw",
            energy.limit_mw,
            "energy.program-uj or energy.erase-uj with it: without them nothing draws power",
        );
        problems.unless(
            !(energy.limit_mw > 0.0) || energy.limit_mw > energy.idle_mw,
            "energy.limit-mw",
            energy.limit_mw,
            &format!("more than energy.idle-mw = {}, or 0 for no limit", energy.idle_mw),
        );
    }
}
