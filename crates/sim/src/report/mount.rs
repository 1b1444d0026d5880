//! What a loss of power at the end of a run would cost.

use crate::player::Pace;
use crate::simulation::Simulation;
use schemars::JsonSchema;
use serde::Serialize;

/// The mount of a copy of the drive that lost its power at the end of the run. The run itself goes on as if nothing had happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Mount")]
pub struct MountReport {
    /// How long it took. Null if the drive has no timing.
    pub duration_ns: Option<u64>,
    /// Spare areas read: of pages programmed since the newest checkpoint and of blocks, or of all pages.
    pub spare_areas_read: u64,
    /// Pages read, of checkpoints, the journal, maps on flash, and merges.
    pub pages_read: u64,
    /// Pages programmed, to finish what was under way and to write tables again.
    pub pages_programmed: u64,
    /// Blocks erased.
    pub blocks_erased: u64,
    /// Logical pages found.
    pub pages_mapped: u64,
}

impl MountReport {
    /// None if the drive can't be mounted, or is served: it is asked to mount then.
    pub(super) fn new(simulation: &Simulation) -> Option<Self> {
        let ssd = simulation.ssd();
        if simulation.settings().pace == Pace::Interactive || !ssd.config().recovery.can_mount() {
            return None;
        }
        let mounted = ssd.clone().mount().ok()?;
        Some(Self {
            duration_ns: simulation.measurement().tally.timed.then_some(mounted.duration.0),
            spare_areas_read: mounted.spare_areas_read,
            pages_read: mounted.pages_read,
            pages_programmed: mounted.pages_programmed,
            blocks_erased: mounted.blocks_erased,
            pages_mapped: mounted.pages_mapped,
        })
    }
}
