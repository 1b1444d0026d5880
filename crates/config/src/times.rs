//! How long each operation takes: the times of `[timing]` with the transfers worked out.

use crate::schema::Config;
use flashwright_ftl::{OP_KINDS, OpKind};
use serde::{Deserialize, Serialize};

/// Durations in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// The bus cycles of a command.
    pub command: u64,
    /// Whether a channel is held only during transfers.
    pub pipelined: bool,
    /// Array times, by [`OpKind`].
    pub array: [u64; OP_KINDS],
    /// Transfers on the bus, by [`OpKind`].
    pub transfer: [u64; OP_KINDS],
}

impl Times {
    /// The times of a drive; none where one of them, or an operation, takes longer than 64 bits of nanoseconds.
    pub(crate) fn of(config: &Config) -> Option<Self> {
        let timing = &config.timing;
        // Of a clustered page the parts on different channels cross side by side, those on one channel in turn. Their
        // array times pass side by side, unless the channel is held for whole operations; then only an erase, which
        // moves no data, is one for all.
        let in_turn = u64::from(config.geometry.cluster_dies);
        let held = if timing.pipelined { 1 } else { in_turn };
        let spare = config.geometry.spare_size.0;
        let page = config.geometry.page_size.0.checked_add(if timing.transfer_spare { spare } else { 0 })?;
        let transfer = |bytes| in_turn.checked_mul(timing.bus_rate.transfer(bytes).0);
        let (page, spare) = (transfer(page)?, transfer(spare)?);
        let array = |time: u64| held.checked_mul(time);
        // By OpKind: read, program, erase, read of a spare area.
        let times = Self {
            command: timing.command.0,
            pipelined: timing.pipelined,
            array: [array(timing.read.0)?, array(timing.program.0)?, timing.erase.0, array(timing.oob_read.0)?],
            transfer: [page, page, 0, spare],
        };
        let whole = |kind: usize| times.command.checked_add(times.array[kind])?.checked_add(times.transfer[kind]);
        (0..OP_KINDS).all(|kind| whole(kind).is_some()).then_some(times)
    }

    /// An operation alone on an idle drive.
    #[inline(always)]
    #[must_use]
    pub fn alone(&self, kind: OpKind) -> u64 {
        self.command + self.array[kind as usize] + self.transfer[kind as usize]
    }
}
