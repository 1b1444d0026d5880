//! The flash chip: addresses of pages, their states, and which steps are legal.
//!
//! ```text
//!  channel ── die ── plane ── block ── page        PPN = block * pages_per_block + page
//!                                                  block = plane * blocks_per_plane + index in the plane
//! ```
//!
//! [`Nand`] is the only place where the rules of NAND are asserted, in release builds too: a page is programmed once
//! between erases and in the order its chip demands, an erase takes a whole block, a retired or factory-bad block is
//! never erased or programmed. It knows nothing of validity or mapping.
//!
//! [`Errors`] is the model of raw bit errors. It stands beside the chip's state, and whoever keeps the time feeds it.

mod divide;
mod errors;
mod geometry;
mod ids;
mod memory;
mod nand;

pub use divide::Divisor;
pub use errors::{ErrorCounts, ErrorLaw, ErrorLayout, ErrorProblem, ErrorSettings, Errors, RateSettings, ReadOutcome};
pub use geometry::{Geometry, ProgramOrder};
pub use ids::{BlockId, DieId, Lpn, PlaneId, Ppn};
pub use memory::{prefetch, table};
pub use nand::{Condition, Nand, TORN, WearLimit};
