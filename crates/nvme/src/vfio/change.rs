//! What admin commands change of a function's queues: the commands check their fields, the function does it.

use super::registers;
use crate::subsystem::QUEUE_MAX;
use crate::wire::{HOST_PAGE, Sqe, Status, u64_at};

/// A change of the queues, whose fields are right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A completion queue comes.
    CreateCompletion {
        /// Its number.
        queue: u16,
        /// Entries.
        size: u32,
        /// Where it is.
        address: u64,
        /// What tells the host of entries, if anything does.
        vector: Option<u16>,
    },
    /// A submission queue comes.
    CreateSubmission {
        /// Its number.
        queue: u16,
        /// Entries.
        size: u32,
        /// Where it is.
        address: u64,
        /// Where its completions go.
        completion: u16,
    },
    /// A completion queue goes.
    DeleteCompletion(u16),
    /// A submission queue goes.
    DeleteSubmission(u16),
    /// A command is to be aborted, if the drive has no part of it.
    Abort {
        /// Its submission queue.
        queue: u16,
        /// Its identifier.
        cid: u16,
    },
    /// The host keeps shadow doorbells from now on.
    Shadow {
        /// The page where it writes them.
        doorbells: u64,
        /// The page where it learns which of them it has to tell.
        events: u64,
    },
}

/// Number, entries and address that a command which creates a queue names. `most` is the largest number, `entry` the size that
/// the host has set for entries, and `expected` the one that there is, as powers of two.
pub(crate) fn queue_fields(sqe: &Sqe, most: u32, entry: u32, expected: u32) -> Result<(u16, u32, u64), Status> {
    let (queue, size) = ((sqe.dword(10) & 0xffff) as u16, (sqe.dword(10) >> 16) + 1);
    if queue == 0 || u32::from(queue) > most {
        return Err(Status::INVALID_QUEUE);
    }
    if size < registers::QUEUE_MIN || size > u32::from(QUEUE_MAX) || entry != expected {
        return Err(Status::INVALID_QUEUE_SIZE);
    }
    if sqe.dword(11) & 1 == 0 {
        return Err(Status::INVALID_FIELD); // CAP.CQR: queues are contiguous
    }
    let address = u64_at(&sqe.0, 24);
    if !address.is_multiple_of(HOST_PAGE as u64) {
        return Err(Status::PRP_OFFSET);
    }
    Ok((queue, size, address))
}
