//! The counts of a filter: the composition of the requests that it dispatches (Kim et al., Table 4), merging, and
//! waiting times.

use crate::pool::{Queued, side};
use crate::profile::Profile;
use flashwright_block::{Nanos, RequestKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Requests dispatched to the device below, counted as in Table 4 of Kim et al.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DispatchedCounts {
    /// All requests.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Requests that begin at a multiple of the clustered page. Null if its size is unknown.
    pub aligned_at_start: Option<u64>,
    /// Requests that begin and end at a multiple of the clustered page. Null if its size is unknown.
    pub aligned_at_both_ends: Option<u64>,
    /// Requests no longer than the drive's buffer of their direction. Null if that buffer is unknown or absent.
    pub within_buffer: Option<u64>,
    /// Requests longer than the drive's buffer of their direction. Null if that buffer is unknown or absent.
    pub above_buffer: Option<u64>,
}

/// How long requests waited in the filter before they were dispatched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Waits {
    /// Sum over all dispatched requests, in nanoseconds.
    pub total_ns: u64,
    /// The longest wait: the starvation time.
    pub longest_ns: u64,
}

/// The counts of one filter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LayerFigures {
    /// The name of its scheduler.
    pub scheduler: String,
    /// Requests received from the layer above.
    pub requests: u64,
    /// Back merges: requests appended to a queued one.
    pub back_merges: u64,
    /// Front merges: requests prepended to a queued one.
    pub front_merges: u64,
    /// Queued requests that grew until they were adjacent and were joined.
    pub joined: u64,
    /// Requests that waited for an earlier one on the same sectors.
    pub held_for_order: u64,
    /// Requests that found the queue full.
    pub held_for_room: u64,
    /// Reads dispatched.
    pub reads: DispatchedCounts,
    /// Writes dispatched.
    pub writes: DispatchedCounts,
    /// Trims and flushes dispatched.
    pub others: u64,
    /// Waits of reads.
    pub read_waits: Waits,
    /// Waits of writes.
    pub write_waits: Waits,
    /// Counts of this scheduler alone, by name with the unit last.
    pub extra: Vec<(String, f64)>,
}

/// The drive's sizes, ready for counting.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Yardstick {
    page: Option<u64>,
    /// Read buffer, write buffer.
    buffers: [Option<u64>; 2],
}

impl Yardstick {
    pub fn new(profile: &Profile) -> Self {
        Self {
            page: profile.clustered_page.sectors(),
            buffers: [profile.read_buffer.sectors(), profile.write_buffer.sectors()],
        }
    }
}

impl DispatchedCounts {
    fn new(page: Option<u64>, buffer: Option<u64>) -> Self {
        let (aligned, buffered) = (page.map(|_| 0), buffer.map(|_| 0));
        Self {
            aligned_at_start: aligned,
            aligned_at_both_ends: aligned,
            within_buffer: buffered,
            above_buffer: buffered,
            ..Self::default()
        }
    }
}

impl LayerFigures {
    pub(crate) fn new(scheduler: String, yardstick: &Yardstick) -> Self {
        Self {
            scheduler,
            reads: DispatchedCounts::new(yardstick.page, yardstick.buffers[0]),
            writes: DispatchedCounts::new(yardstick.page, yardstick.buffers[1]),
            ..Self::default()
        }
    }

    #[inline]
    pub(crate) fn handed_on(&mut self, queued: &Queued, now: Nanos, yardstick: &Yardstick) {
        if !queued.kind.moves_data() {
            self.others += 1;
            return;
        }
        // Direction and alignment are unpredictable, so neither is a branch.
        let (counts, waits) = if queued.kind == RequestKind::Read {
            (&mut self.reads, &mut self.read_waits)
        } else {
            (&mut self.writes, &mut self.write_waits)
        };
        let buffer = yardstick.buffers[side(queued.kind)];
        counts.requests += 1;
        counts.bytes += queued.sectors() * flashwright_block::SECTOR_BYTES;
        if let (Some(page), Some(start), Some(both)) =
            (yardstick.page, &mut counts.aligned_at_start, &mut counts.aligned_at_both_ends)
        {
            // Nearly all sizes are powers of two, and a division takes as long as all the rest of this.
            let is_multiple = |sector: u64| {
                if page.is_power_of_two() { sector & (page - 1) == 0 } else { sector.is_multiple_of(page) }
            };
            let aligned = is_multiple(queued.first_sector);
            *start += u64::from(aligned);
            *both += u64::from(aligned & is_multiple(queued.end_sector));
        }
        if let (Some(buffer), Some(within), Some(above)) = (buffer, &mut counts.within_buffer, &mut counts.above_buffer)
        {
            *(if queued.sectors() <= buffer { within } else { above }) += 1;
        }
        let waited = now.0 - queued.queued_at.0;
        waits.total_ns += waited;
        waits.longest_ns = waits.longest_ns.max(waited);
    }
}
