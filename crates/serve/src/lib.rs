//! A drive over NBD, so that real software uses it: file systems, databases, virtual machines, load generators.
//!
//! ```text
//!   client ─► socket ─► negotiate ─► command ─► exec ─► Served: a simulated drive
//!                       (no I/O)     (no I/O)    ▲
//!                                   pace: when replies leave
//! ```
//!
//! [`wire`] has the bytes of the protocol; [`negotiate`] and [`command`] read them without I/O. The drive is behind the trait
//! [`Served`]; the protocol knows nothing of flash.

pub mod command;
pub mod control;
pub mod exec;
pub mod negotiate;
pub mod served;
pub mod wire;

mod clients;
mod connection;
mod http;
mod input;
mod listen;
mod metrics;
mod pace;
mod proxied;
mod record;
pub mod remote;
mod server;
mod shared;
mod watch;

pub use listen::{Address, ListenError};
pub use pace::Pace;
pub use proxied::OnClock;
pub use record::{DataRecorder, Recorder};
pub use remote::{Refused, Remote, RemoteOptions, Uri};
pub use served::Served;
pub use server::{ServeError, Server, Settings, Stopped};
