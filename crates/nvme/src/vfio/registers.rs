//! The registers of a function, and where they are in its first BAR (NVMe over PCIe Transport 1.1, section 3.1).
//!
//! ```text
//!   0x0000  properties of the controller, and those that only PCIe has
//!   0x1000  doorbells: of each queue the tail of its submissions, then the head of its completions
//!   0x2000  the table of MSI-X vectors
//!   0x3000  their pending bits
//! ```

use super::msix::VECTORS;
use crate::subsystem::IO_QUEUES_MAX;

/// Bytes of the BAR.
pub const BAR_BYTES: u64 = 0x4000;
/// Where doorbells begin.
pub const DOORBELLS: u64 = 0x1000;
/// Where the table of vectors begins.
pub const VECTOR_TABLE: u64 = 0x2000;
/// Where the pending bits begin.
pub const PENDING_BITS: u64 = 0x3000;

/// The fewest entries of a queue, since one is always free.
pub const QUEUE_MIN: u32 = 2;
/// Bytes of a submission queue entry that CC.IOSQES has to say, as a power of two.
pub const SQE_SHIFT: u32 = 6;
/// Bytes of a completion queue entry that CC.IOCQES has to say, as a power of two.
pub const CQE_SHIFT: u32 = 4;

/// Offsets of the registers.
pub mod at {
    #![allow(missing_docs)] // as the specification names them
    pub const CAP: u32 = 0x00;
    pub const VS: u32 = 0x08;
    pub const CC: u32 = 0x14;
    pub const CSTS: u32 = 0x1c;
    pub const NSSR: u32 = 0x20;
    pub const AQA: u32 = 0x24;
    pub const ASQ: u32 = 0x28;
    pub const ACQ: u32 = 0x30;
    pub const CRTO: u32 = 0x68;
}

/// Fields of CC.
pub(crate) mod config {
    pub const ENABLE: u32 = 1;
    pub const SHUTDOWN: u32 = 3 << 14;
    /// Command set, memory page size and arbitration: all are 0 where only one choice is told in CAP.
    pub const CHOICES: u32 = 0x7 << 4 | 0xf << 7 | 0x7 << 11;

    /// CC.IOSQES.
    pub fn submission_entry(config: u32) -> u32 {
        config >> 16 & 0xf
    }

    /// CC.IOCQES.
    pub fn completion_entry(config: u32) -> u32 {
        config >> 20 & 0xf
    }
}

/// Fields of CSTS.
pub(crate) mod status {
    pub const FATAL: u32 = 1 << 1;
    pub const SHUTDOWN: u32 = 3 << 2;
    pub const SHUTTING_DOWN: u32 = 1 << 2;
}

/// A doorbell: the queue, and whether it is that of its completions. None beyond the last queue that there may be.
pub(crate) fn doorbell(offset: u64) -> Option<(u16, bool)> {
    let index = offset.checked_sub(DOORBELLS)? / 4;
    let queue = u16::try_from(index / 2).ok().filter(|queue| *queue <= IO_QUEUES_MAX)?;
    Some((queue, index % 2 == 1))
}

const _: () = assert!(DOORBELLS + 8 * (IO_QUEUES_MAX as u64 + 1) <= VECTOR_TABLE, "doorbells end before the vectors");
const _: () = assert!(VECTOR_TABLE + 16 * VECTORS as u64 <= PENDING_BITS, "the vectors end before their pending bits");
