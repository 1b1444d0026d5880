//! The duration of each operation: the times of `[timing]` with transfers computed.

use crate::schema::{BusOrder, Config};
use flashwright_ftl::{OP_KINDS, OpKind};
use serde::{Deserialize, Serialize};

/// Durations in nanoseconds.
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

impl Times {
    /// The times of a drive; none if one of them, or a whole operation, exceeds 64 bits of nanoseconds.
    pub(crate) fn of(config: &Config) -> Option<Self> {
        let timing = &config.timing;
        // Parts of a clustered page transfer in parallel if they lie on different channels, and one after the other if
        // they share one. Their array times overlap unless an operation occupies its channel for its whole duration;
        // then only erases, which move no data, overlap.
        let in_turn = u64::from(config.geometry.cluster_dies);
        let held = if timing.pipelined { 1 } else { in_turn };
        let spare = config.geometry.spare_size.0;
        let page = config.geometry.page_size.0.checked_add(if timing.transfer_spare { spare } else { 0 })?;
        let transfer = |bytes| in_turn.checked_mul(timing.bus_rate.transfer(bytes).0);
        let (page, spare) = (transfer(page)?, transfer(spare)?);
        let array = |time: u64| held.checked_mul(time);
        // By [`OpKind`]: read, program, erase, read of a spare area.
        let times = Self {
            command: timing.command.0,
            pipelined: timing.pipelined,
            bus_order: timing.bus_order,
            array: [array(timing.read.0)?, array(timing.program.0)?, timing.erase.0, array(timing.oob_read.0)?],
            transfer: [page, page, 0, spare],
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
