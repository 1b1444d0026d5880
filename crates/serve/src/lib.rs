//! A drive over NBD, NVMe/TCP and vfio-user, so that real software uses it: kernels, file systems, databases, virtual machines, load
//! generators.
//!
//! ```text
//!   NBD client ─► socket ─► negotiate ─► command ─┐
//!                           (no I/O)     (no I/O) ├─► exec ─► Served: a simulated drive
//!   NVMe host  ─► socket ─► crate `nvme`: session ┤    ▲ └──► replies: in the client's protocol
//!   machine    ─► socket ─► crate `nvme`: function┘  pace: when replies leave
//!       └──── its memory ───────┘ (no I/O)
//! ```
//!
//! [`wire`] has the bytes of NBD; [`negotiate`] and [`command`] read them without I/O. The drive is behind the trait [`Served`];
//! no protocol knows anything of flash.

pub mod command;
pub mod control;
pub mod exec;
pub mod negotiate;
pub mod served;
pub mod wire;

mod arenas;
mod clients;
mod connection;
mod guest;
mod http;
mod input;
mod listen;
mod mapping;
mod metrics;
mod nvme;
mod pace;
mod proxied;
mod record;
pub mod remote;
pub mod replies;
mod server;
mod shared;
mod vfio;
mod watch;

pub use listen::{Address, ListenError};
pub use pace::Pace;
pub use proxied::OnClock;
pub use record::{DataRecorder, Recorder};
pub use remote::{EndsWhen, Refused, Remote, RemoteOptions, Uri};
pub use served::Served;
pub use server::{ServeError, Server, Settings, Stopped};
