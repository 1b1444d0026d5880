//! Models fitted to traces, to play them at any length: as their own sequence or as statistics alone.
//!
//! [`fit_sequence`] keeps the requests and [`segments`] plays them in segments drawn anew; all that lies in their order survives.
//! [`fit`](fn@fit) keeps a small, readable file of figures without any of the trace's addresses, which is further from the trace:
//! where it may be shared, and for the stand-ins. The workload `model` plays either ([`Fit`]). The rest is on statistics.
//!
//! ```text
//!   trace ─► Fitting ─► Model ─► text (TOML) ─► Model ─► Player ─► requests
//!               │         sizes, runs, mix, arrivals       │
//!               └──────── tree of blocks, lists ───────────┘   the same memory of what was used, asked and drawn from
//! ```
//!
//! **Places** are chosen by reuse distances at four granularities, as in "hierarchical reuse distance" (Maeda et al.,
//! HPCA 2017). A request that continues no run is a jump of one of nine kinds, a Markov chain: three classes of sizes, each
//!
//! - to a page near in the past: one of the 32 that requests of its class jumped to last;
//! - to another page of one of the eight blocks of 512 KiB used last, by the ranks of its parts;
//! - or to something further back or new: to an old page by the number of others jumped to since; or to a new one. Where that
//!   lies is decided from the coarsest block down: which region of 4 MiB, by how many others were used since; which block of
//!   512 KiB and 64 KiB of it, by the rank among its parts, given how long ago the block was used; and whether the request
//!   covers unused pages alone.
//!
//! Reads and writes have orders of their own, and may use what the other used last.
//!
//! Tried and left out: deciding every place from the coarsest block down (hot pages lose their rank among all pages, and
//! caches of mapping entries find too little); a memory of the page that came next last time, as a Markov prefetcher has
//! (played, it circles in short loops, and what repeats does not repeat as far back as in the trace).
//!
//! **Growth**: see [`curve`]. The footprint grows as the trace's did, up to the bound in the file.
//!
//! **Kinds** ([`kinds`]), **runs** ([`runs`]), **sizes** ([`sizes`]) and **arrivals** ([`gaps`]) are drawn separately.
//!
//! What no such model holds: repeated sequences of addresses beyond runs, the time of day, and how a process waits for
//! its own requests.

mod base64;
mod chances;
mod check;
mod curve;
mod file;
mod fit;
mod free;
mod gaps;
mod kinds;
mod order;
mod play;
mod recency;
mod room;
mod runs;
mod segments;
mod sequence;
mod sizes;
mod tree;

pub use chances::{Choice, Spot};
pub use file::{Direction, Fit, Fitted, Footprint, Model, ModelError};
pub use fit::{FitError, Fitting, fit, fit_sequence, fit_to};
pub use gaps::Arrivals;
pub use kinds::Mix;
pub(crate) use play::{Arrival, Play, Player, REGION_SECTORS, largest};
pub use runs::RunLaw;
pub(crate) use segments::{Segments, Space};
pub(crate) use sequence::BLOCK_SECTORS;
pub use sequence::{Sequence, Used};
pub use sizes::SizeRow;
pub(crate) use tree::{EXTENTS, extent};
