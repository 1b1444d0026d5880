//! What a controller counts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Counts of a [`super::Controller`]. Bytes that came are flushed, dropped by a trim, or still in the buffer:
/// `write_buffer_bytes - write_buffer_hit_bytes = flushed_bytes + dropped_bytes +` what waits there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Controller")]
pub struct ControllerFigures {
    /// Writes, or parts of writes larger than the buffer, for which the write buffer needed no new room.
    pub write_buffer_hits: u64,
    /// Bytes of writes that went into the write buffer.
    pub write_buffer_bytes: u64,
    /// Bytes of those that replaced buffered ones.
    pub write_buffer_hit_bytes: u64,
    /// Reads served from the write buffer.
    pub write_buffer_read_hits: u64,
    /// Bytes of writes that passed by the write buffer, or found none.
    pub write_through_bytes: u64,
    /// Entries of the write buffer that went to the flash.
    pub flushes: u64,
    /// Those of them that something waited for: room, a flush, a request for the same sectors.
    pub flushes_forced: u64,
    /// Bytes of the write buffer that went to the flash.
    pub flushed_bytes: u64,
    /// Bytes of the write buffer that a trim made needless.
    pub dropped_bytes: u64,
    /// Reads served from the read buffer.
    pub read_buffer_hits: u64,
    /// Bytes read ahead.
    pub prefetched_bytes: u64,
    /// Bytes read ahead that a read was served with.
    pub prefetched_used_bytes: u64,
    /// Times that the flash changed between reading and writing, if that costs time.
    pub turnarounds: u64,
}
