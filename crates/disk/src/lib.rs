//! Real block devices and files behind the block-device interface.
//!
//! ```text
//!   path ── consent ──► Target ──► Disk ── ring ──► kernel (O_DIRECT, io_uring)
//!            │  the one place that decides whether data may be destroyed
//! ```
//!
//! [`open`] checks before it opens: without [`Access::DestroysData`] the target is opened for reading only, so that the
//! kernel itself refuses a write; with it, a list of checks must pass first. [`Disk`] then plays requests on it in real
//! time. It bypasses the page cache, so that the device itself is measured.

mod consent;
mod disk;
mod faulty;
mod held;
mod noise;
mod ring;

pub use consent::{Access, Kind, Refusal, Target, Why, open};
pub use disk::{DEPTH_MAX, Disk, DiskError, Options, place};
pub use faulty::{Effect, Faulty, Which};
pub use noise::{Noise, Prepared};
