//! vfio-user: a controller as a function on the PCI bus of a virtual machine, without its socket.
//!
//! ```text
//!   messages ─► Function::feed ─┬─► registers, doorbells ─► Function::work ─► Ready: what the drive is asked ─► …
//!                               └─► maps of the host's memory, vectors ─► Host
//!   … ─► Queues::data, Queues::ended ─► data and completions in the host's memory, and vectors: Queues::flush
//! ```
//!
//! The host reads and writes registers by messages; its queues, its data and its shadow doorbells are in its memory, which
//! [`Host`] reaches. As with [`crate::tcp`] the halves are apart, so that a command that is begun can end others.
//!
//! After the protocol vfio-user 0.0 as QEMU documents it, NVMe over PCIe Transport 1.1, and NVM Express Base 2.1.
//!
//! Invariants:
//!
//! - Memory of the host is touched only by commands of queues that there are: a reset or a deleted queue ends that at once, and
//!   what the drive still has of it lands nowhere.
//! - What is kept is bounded: each queue has its size of commands open, data within [`TRANSFER_WINDOW`], and no command is
//!   fetched while completions wait for room in its completion queue.

mod change;
pub mod config;
mod function;
mod message;
mod msix;
mod pointer;
mod queues;
pub mod registers;

pub use crate::flights::Ready;
pub use change::Change;
pub use function::Function;
pub use message::{Errno, HEADER_BYTES, MESSAGE_FDS_MAX, MESSAGE_MAX, Message, command, flag};
pub use msix::VECTORS;
pub use queues::Queues;

use crate::wire::Status;

/// Bytes of data from the host that wait for the drive, before further commands are fetched.
pub const TRANSFER_WINDOW: usize = 4 << 20;

pub(crate) use change::queue_fields;

/// A range of the host's memory, as a message maps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Map {
    /// Its first address.
    pub address: u64,
    /// Bytes.
    pub bytes: u64,
    /// Where it begins in the file that came with the message.
    pub offset: u64,
    /// Whether it may be written.
    pub is_writable: bool,
}

/// An address is in no range that the host has mapped, or that range has lost its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfReach;

impl From<OutOfReach> for Status {
    fn from(_: OutOfReach) -> Self {
        Self::DATA_TRANSFER
    }
}

/// The host: its memory, its vectors, and the descriptors that came with its messages.
pub trait Host {
    /// Reads memory.
    ///
    /// # Errors
    /// [`OutOfReach`]; likewise of the others.
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), OutOfReach>;

    /// Writes memory.
    ///
    /// # Errors
    /// [`OutOfReach`]; a part may have been written.
    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), OutOfReach>;

    /// Reads four bytes at once, before everything that is read later.
    ///
    /// # Errors
    /// [`OutOfReach`], also if they are not at a multiple of four.
    fn load(&self, address: u64) -> Result<u32, OutOfReach>;

    /// Writes four bytes at once, after everything that was written before.
    ///
    /// # Errors
    /// [`OutOfReach`], also if they are not at a multiple of four.
    fn store(&self, address: u64, value: u32) -> Result<(), OutOfReach>;

    /// Lets no read that follows pass a write before it: what was armed is seen before doorbells are looked at again.
    fn fence(&self);

    /// The next message of the input is handled: it has so many bytes, and its descriptors are those that the calls until the
    /// next one take.
    fn begin_message(&mut self, bytes: usize);

    /// Maps memory: the file is the descriptor of the message, or there is none and the range is out of reach.
    ///
    /// # Errors
    /// [`Errno`].
    fn map(&mut self, map: &Map) -> Result<(), Errno>;

    /// Takes maps back that lie in a range, or all. Returns their bytes.
    ///
    /// # Errors
    /// [`Errno::INVALID`] if a map lies there only in part.
    fn unmap(&mut self, range: Option<(u64, u64)>) -> Result<u64, Errno>;

    /// Ties vectors to the descriptors of the message, in order; without descriptors, unties them.
    ///
    /// # Errors
    /// [`Errno::INVALID`] if there are some, and not one for each.
    fn tie(&mut self, first: u16, count: u16) -> Result<(), Errno>;

    /// Signals a vector. Returns false if it is tied to nothing.
    fn signal(&self, vector: u16) -> bool;
}

#[allow(missing_docs)] // as the specification names them
impl Status {
    pub const DATA_TRANSFER: Self = Self::of(0, 0x04);
    pub const SQ_DELETED: Self = Self::passing(0, 0x08);
    pub const SGL_SEGMENT: Self = Self::of(0, 0x0d);
    pub const SGL_COUNT: Self = Self::of(0, 0x0e);
    pub const PRP_OFFSET: Self = Self::of(0, 0x13);
    pub const NO_COMPLETION_QUEUE: Self = Self::of(1, 0x00);
    pub const INVALID_QUEUE: Self = Self::of(1, 0x01);
    pub const INVALID_QUEUE_SIZE: Self = Self::of(1, 0x02);
    pub const INVALID_VECTOR: Self = Self::of(1, 0x08);
    pub const INVALID_QUEUE_DELETION: Self = Self::of(1, 0x0c);
}
