//! An NVMe subsystem without I/O, without a clock and without flash.
//!
//! ```text
//!   bytes ─► tcp::Reader ─► Subsystem::execute ─► Outcome ─┬─ data and status ─► tcp::Writer ─► bytes
//!                              commands/*.rs               └─ Io: what the drive is asked ─► whoever owns the drive
//! ```
//!
//! [`wire`] holds the bytes: submission and completion queue entries, the structures of identify and of log pages, the PDUs of
//! NVMe/TCP. [`commands`] is a list with a file for each command; the Commands Supported and Effects log is made from it.
//! [`Subsystem`] has the namespaces and the controllers of the hosts that are connected. [`tcp`] is a transport.
//!
//! Terms are those of the specifications, which each file names: NVM Express Base 2.1, NVM Command Set 1.1, Zoned Namespace Command
//! Set 1.2, NVMe over TCP 1.1.
//!
//! Invariants:
//!
//! - Whatever bytes come, nothing panics: a command ends with a status, and a PDU that breaks the transport ends its connection.
//! - Memory for a connection is bounded: its queue, and the data of commands within [`tcp::TRANSFER_WINDOW`].
//! - A command that the drive was asked for is answered once, when all its [`Io`]s have ended.
//! - No request reaches a range of the drive that does not belong to its namespace when it is begun ([`Subsystem::check`]).

mod chores;
pub mod commands;
pub mod fabrics;
mod flights;
pub mod namespace;
mod placement;
mod sanitize;
pub mod subsystem;
pub mod tcp;
mod uncorrectable;
pub mod vfio;
pub mod wire;

pub use commands::{Io, Op, Outcome};
pub use subsystem::{Controller, Health, Media, Subsystem};
pub use wire::{Cqe, Sqe, Status};
