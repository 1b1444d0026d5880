//! The counts of a controller.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Counts of a [`super::Controller`]. Until a loss of power, buffered bytes are flushed, dropped by a trim, or still in the buffer:
/// `write_buffer_bytes - write_buffer_hit_bytes = flushed_bytes + dropped_bytes +` the bytes still buffered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Controller")]
pub struct ControllerFigures {
    /// Writes, or parts of writes larger than the buffer, for which the write buffer needed no new room.
    pub write_buffer_hits: u64,
    /// Bytes of writes that went into the write buffer.
    pub write_buffer_bytes: u64,
    /// Bytes of writes that replaced buffered ones.
    pub write_buffer_hit_bytes: u64,
    /// Reads served from the write buffer.
    pub write_buffer_read_hits: u64,
    /// Bytes of writes that bypassed the write buffer, or were made without one.
    pub write_through_bytes: u64,
    /// Entries of the write buffer that were written to the flash.
    pub flushes: u64,
    /// Flushed entries that something waited for: room, a flush, a request for the same sectors.
    pub flushes_forced: u64,
    /// Bytes of the write buffer that were written to the flash.
    pub flushed_bytes: u64,
    /// Bytes of the write buffer that a trim dropped.
    pub dropped_bytes: u64,
    /// Reads served from the read buffer.
    pub read_buffer_hits: u64,
    /// Bytes read ahead.
    pub prefetched_bytes: u64,
    /// Bytes read ahead that served a read.
    pub prefetched_used_bytes: u64,
    /// Number of times that the flash switched between reading and writing, if that costs time.
    pub turnarounds: u64,
}
