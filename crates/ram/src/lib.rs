//! The RAM of a drive, between the host and the translation layer.
//!
//! A manager ([`RamManager`]) keeps tables of the pages in RAM and chooses what to evict; it moves no data and knows no
//! flash operation. [`Ram`] carries out the manager's choices: it makes room before it takes a page, pads blocks,
//! passes runs to the translation layer, handles flushes, and counts.
//!
//! ```text
//!   host write ─► held? ── yes ─► overwritten in place: no flash work
//!                   │ no
//!                 full? ── yes ─► manager: what leaves? ─► (padding: read the rest of its block) ─► Ftl::write
//!                   │ no  ◄──────────────────────────────────────────┘
//!                 taken in
//! ```
//!
//! Time: an access to RAM adds `ram.latency` to its request; the flash work of making room belongs to the request that
//! needs the room, which completes after it. Only a read does not wait for the room that its copy takes.

mod at_work;
mod bits;
mod groups;
mod heaps;
mod index;
pub mod managers;
mod order;
mod pages;
mod partition;
mod queue;
mod ram;
use flashwright_block::registry;
mod settings;

pub use groups::Groups;
pub use managers::{
    ApSettings, BlockDestage, BlockUpdates, BufferRules, ChooseLeaving, GcArmSettings, HeldGroups, Leaves, MakeManager,
    Manager, ManagerName, ManagerSettings, RamContext, RamManager, Randomness, Tie, View,
};
pub use pages::Pages;
pub use ram::{Destage, PartitionPoint, Ram, RamDrive, RamFigures};
pub use settings::RamSettings;
