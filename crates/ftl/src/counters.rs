//! One counter for every pair of operation and cause.

use serde::{Deserialize, Serialize};

/// The kind of a flash operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum OpKind {
    /// A page read.
    Read = 0,
    /// A page program.
    Program = 1,
    /// A block erase.
    Erase = 2,
    /// A read of a spare area alone.
    OobRead = 3,
}

/// Number of [`OpKind`]s.
pub const OP_KINDS: usize = 4;

/// The cause of a flash operation. An erase has the cause of the work that it completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum Cause {
    /// The host asked for this page.
    Host = 0,
    /// Cleaning moved it.
    Gc = 1,
    /// A merge of log and data blocks moved it.
    Merge = 2,
    /// A buffer needed it to complete a block.
    Padding = 3,
    /// The mapping table on flash was read or written to answer the host.
    Translation = 4,
    /// The mapping table on flash was read or written because of cleaning.
    GcTranslation = 5,
    /// Wear levelling moved it.
    Wear = 6,
}

/// Number of [`Cause`]s.
pub const CAUSES: usize = 7;

/// Flash operations by kind and cause.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    by_cause: [[u64; CAUSES]; OP_KINDS],
    totals: [u64; OP_KINDS],
    /// Of all kinds.
    operations: u64,
    /// Reads of pages that were never written or have been trimmed: no flash operation.
    pub reads_unmapped: u64,
    /// Programmed pages of blocks at the time of their erase. Divided by the erases, it gives the utilization of
    /// blocks.
    pub pages_used_at_erase: u64,
}

impl Counters {
    /// Counts `n` operations.
    #[inline(always)]
    pub fn add(&mut self, kind: OpKind, cause: Cause, n: u64) {
        self.by_cause[kind as usize][cause as usize] += n;
        self.totals[kind as usize] += n;
        self.operations += n;
    }

    /// Operations of one kind and cause.
    #[must_use]
    pub fn get(&self, kind: OpKind, cause: Cause) -> u64 {
        self.by_cause[kind as usize][cause as usize]
    }

    /// Operations of one kind.
    #[inline(always)]
    #[must_use]
    pub fn total(&self, kind: OpKind) -> u64 {
        self.totals[kind as usize]
    }

    /// Operations of all kinds.
    #[inline(always)]
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// All totals, indexed by [`OpKind`].
    #[inline(always)]
    #[must_use]
    pub fn totals(&self) -> [u64; OP_KINDS] {
        self.totals
    }

    /// The counts since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Counters) -> Counters {
        let mut result = self.clone();
        for kind in 0..OP_KINDS {
            result.totals[kind] -= earlier.totals[kind];
            for cause in 0..CAUSES {
                result.by_cause[kind][cause] -= earlier.by_cause[kind][cause];
            }
        }
        result.operations -= earlier.operations;
        result.reads_unmapped -= earlier.reads_unmapped;
        result.pages_used_at_erase -= earlier.pages_used_at_erase;
        result
    }

    /// Whether each total is the sum of its causes, and the number of all operations that of the totals.
    #[must_use]
    pub fn is_consistent(&self) -> bool {
        self.operations == self.totals.iter().sum::<u64>()
            && self.by_cause.iter().zip(self.totals).all(|(causes, total)| causes.iter().sum::<u64>() == total)
    }
}
