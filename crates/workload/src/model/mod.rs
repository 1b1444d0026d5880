//! Models fitted to traces: a small, readable file that decides what requests do to a drive, without any of the trace's
//! addresses.
//!
//! [`fit`](fn@fit) reads a trace and returns a [`Model`]; the workload `model` plays it at any length, footprint and rate.
//!
//! ```text
//!   trace ─► Fitting ─► Model ─► text (TOML) ─► Model ─► Player ─► requests
//!               │         sizes, runs, mix, arrivals       │
//!               └──────── tree of blocks, lists ───────────┘   the same memory of what was used, asked and drawn from
//! ```
//!
//! **Places** are chosen by reuse distances at four granularities (4 MiB, 512 KiB, 64 KiB, 4 KiB), as in "hierarchical
//! reuse distance" (Maeda et al., HPCA 2017), but from the coarsest down: which region, by how many others were used
//! since; then which part of it, by its rank among the parts, given how long ago the block was used; and so on to the
//! page. So pages that are used together lie together, at each granularity, which is what write buffers, log blocks and
//! caches of mapping tables live on. Reads and writes have orders of their own, and may use what the other used last.
//!
//! **Growth**: see [`curve`]. The footprint grows as the trace's did, up to the bound in the file.
//!
//! **Kinds** ([`kinds`]), **runs** ([`runs`]), **sizes** ([`sizes`]) and **arrivals** ([`gaps`]) are drawn separately.
//!
//! What no such model holds: repeated sequences of addresses beyond runs, the time of day, and how a process waits for
//! its own requests.

mod chances;
mod curve;
mod file;
mod fit;
mod gaps;
mod kinds;
mod order;
mod play;
mod recency;
mod runs;
mod sizes;
mod tree;

pub use chances::{Choice, Spot};
pub use file::{Direction, Fitted, Footprint, Model, ModelError};
pub use fit::{FitError, Fitting, fit};
pub use gaps::Arrivals;
pub use kinds::Mix;
pub(crate) use play::{Arrival, Play, Player, REGION_SECTORS, largest};
pub use runs::RunLaw;
pub use sizes::SizeRow;
