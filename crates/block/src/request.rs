//! Requests, completions, and where requests come from.

use crate::{IoError, Nanos, Rng, Tag};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::ops::{Add, AddAssign};
use std::sync::Arc;

/// The unit of addresses of block devices.
pub const SECTOR_BYTES: u64 = 512;

/// The kind of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum RequestKind {
    /// Return what was last written.
    #[default]
    Read = 0,
    /// Store data.
    Write = 1,
    /// The content is no longer needed (discard, deallocate).
    Trim = 2,
    /// Make everything acknowledged so far durable.
    Flush = 3,
    /// Store data at the write pointer of the zone that begins at the first sector. The completion's request has the sector where they
    /// went in its place.
    Append = 4,
    /// Open the zone that begins at the first sector, until it is closed.
    ZoneOpen = 5,
    /// Close that zone.
    ZoneClose = 6,
    /// Write no more to that zone.
    ZoneFinish = 7,
    /// Forget what that zone holds. The completion's request has the sectors that it cleared.
    ZoneReset = 8,
}

impl RequestKind {
    /// The number of kinds.
    pub const COUNT: usize = 9;
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Read,
        Self::Write,
        Self::Trim,
        Self::Flush,
        Self::Append,
        Self::ZoneOpen,
        Self::ZoneClose,
        Self::ZoneFinish,
        Self::ZoneReset,
    ];
}

/// What a request of a kind does, for code to which kinds that do the same are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestClass {
    /// It returns data.
    Read,
    /// It stores data.
    Write,
    /// It drops data.
    Discard,
    /// It has no addresses.
    Barrier,
    /// It changes the state of a zone.
    Manage,
}

impl RequestClass {
    /// The sum of what was counted of its kinds.
    #[must_use]
    pub fn sum(self, by_kind: &[u64; RequestKind::COUNT]) -> u64 {
        RequestKind::ALL.iter().zip(by_kind).filter(|(kind, _)| kind.class() == self).map(|(_, count)| count).sum()
    }
}

impl RequestKind {
    /// What requests of the kind do.
    #[inline(always)]
    #[must_use]
    pub const fn class(self) -> RequestClass {
        match self {
            Self::Read => RequestClass::Read,
            Self::Write | Self::Append => RequestClass::Write,
            Self::Trim => RequestClass::Discard,
            Self::Flush => RequestClass::Barrier,
            Self::ZoneOpen | Self::ZoneClose | Self::ZoneFinish | Self::ZoneReset => RequestClass::Manage,
        }
    }

    /// Whether only a device with zones takes it.
    #[inline(always)]
    #[must_use]
    pub const fn is_for_zones(self) -> bool {
        self as u8 >= Self::Append as u8
    }

    /// Whether it reads or writes, so that its time counts as that of a data operation.
    #[inline(always)]
    #[must_use]
    pub fn moves_data(self) -> bool {
        matches!(self.class(), RequestClass::Read | RequestClass::Write)
    }
}

impl RequestKind {
    /// Its name as users see it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
            Self::Flush => "flush",
            Self::Append => "append",
            Self::ZoneOpen => "zone open",
            Self::ZoneClose => "zone close",
            Self::ZoneFinish => "zone finish",
            Self::ZoneReset => "zone reset",
        }
    }
}

/// The priority class of a submission queue (NVM Express Base 2.1, field QPRIO of Create I/O Submission Queue). Only an arbiter
/// that weighs queues looks at it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Priority {
    /// Before all other classes.
    Urgent = 0,
    /// The first weighted class.
    High = 1,
    /// The second weighted class.
    #[default]
    Medium = 2,
    /// The third weighted class.
    Low = 3,
}

/// One request of a host. Addresses and lengths are in sectors of [`SECTOR_BYTES`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// When it reaches the host driver, measured from the start of the run. Closed-loop players set it at issue.
    pub arrival: Nanos,
    /// First sector touched.
    pub first_sector: u64,
    /// Sectors touched; 0 for [`RequestKind::Flush`] and the management of zones.
    pub sectors: u32,
    /// The process that made the request, if the trace records it; else 0.
    pub process: u32,
    /// The stream that the workload names for placement; 0 if it names none. [`crate::GroupBits`] says how it names a reclaim group.
    pub stream: u16,
    /// The submission queue that it came through; 0 for a host with one queue.
    pub queue: u16,
    /// The class of that queue.
    pub priority: Priority,
    /// The kind of request.
    pub kind: RequestKind,
    /// Force unit access: the write must be durable when it completes.
    pub fua: bool,
}

impl Request {
    /// The sector after the last one touched. It saturates at the largest number, so that no device mistakes a request
    /// that overflows for a small one.
    #[inline]
    #[must_use]
    pub fn end_sector(&self) -> u64 {
        self.first_sector.saturating_add(u64::from(self.sectors))
    }
}

/// Writes [`Effects`] from the list of its counts: all that carries them on goes by [`Effects::NAMES`], so a new count is a line
/// here and a value where the drive fills it in.
macro_rules! effects {
    ($($(#[doc = $about:literal])+ $name:ident),+ $(,)?) => {
        /// What a request caused in the device: counts, each a column of the rows of requests. Sums saturate.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub struct Effects {
            $($(#[doc = $about])+ pub $name: u32,)+
        }

        impl Effects {
            /// The names of the counts.
            pub const NAMES: [&str; [$(stringify!($name)),+].len()] = [$(stringify!($name)),+];

            /// The counts, in the order of their names.
            #[inline(always)]
            #[must_use]
            pub fn counts(self) -> [u32; Self::NAMES.len()] {
                [$(self.$name),+]
            }
        }

        impl Add for Effects {
            type Output = Self;
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                Self { $($name: self.$name.saturating_add(other.$name)),+ }
            }
        }
    };
}

effects! {
    /// Flash operations, cleaning included.
    flash_ops,
    /// Blocks erased on its behalf.
    erases,
}

impl AddAssign for Effects {
    #[inline(always)]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// The completion of a request. All times are on the device's clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    /// The tag that [`crate::BlockDevice::submit`] returned.
    pub tag: Tag,
    /// The request as it was submitted, but for what [`RequestKind::Append`] and [`RequestKind::ZoneReset`] add.
    pub request: Request,
    /// When the device accepted it, that is, when it left the driver's queue.
    pub start: Nanos,
    /// When it completed.
    pub end: Nanos,
    /// What it caused in the device; all 0 for a device that does not report it.
    pub effects: Effects,
    /// Whether the request succeeded, and if not, why. Success is a null pointer and allocates nothing.
    pub result: Result<(), Box<IoError>>,
}

impl Default for Completion {
    #[inline]
    fn default() -> Self {
        Self {
            tag: Tag(0),
            request: Request::default(),
            start: Nanos(0),
            end: Nanos(0),
            effects: Effects::default(),
            result: Ok(()),
        }
    }
}

impl Completion {
    /// Time from when the device accepts the request to its completion.
    #[inline]
    #[must_use]
    pub fn service_time(&self) -> Nanos {
        self.end - self.start
    }

    /// Time from arrival at the host driver to completion, queueing included.
    #[inline]
    #[must_use]
    pub fn response_time(&self) -> Nanos {
        self.end - self.request.arrival
    }
}

/// The error of a source: one line that states where, what was found and what was expected.
///
/// Sources have their own error enums; only the text for the user crosses this interface.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SourceError(pub String);

/// How often a recorded trace is played after it has started over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passes {
    /// Once.
    One,
    /// As often as requested when it was opened.
    All,
}

/// A source of requests: a trace reader or a generator. It returns requests in batches, in constant memory, in order of
/// arrival. Built from the same settings, a source returns the same requests.
pub trait RequestSource {
    /// Appends up to `at_most` requests to `batch` and returns their number; 0 means that the source has ended.
    ///
    /// # Errors
    /// [`SourceError`] when the input is malformed or unreadable. Requests appended before remain valid.
    fn fill(&mut self, batch: &mut Vec<Request>, at_most: usize) -> Result<usize, SourceError>;

    /// Requests still to come, if the source knows; used for progress and remaining time.
    fn remaining(&self) -> Option<u64> {
        None
    }

    /// The progress of a source of unknown length, 0 to 1 (for a file: bytes read divided by its size).
    fn progress(&self) -> Option<f64> {
        None
    }

    /// If the source is a recorded trace, starts over with the first request and returns true. A source that continues
    /// in the same way forever has nothing to start over: it returns false and keeps its position.
    ///
    /// # Errors
    /// [`SourceError`] when the trace can't be read again.
    fn start_over(&mut self, passes: Passes) -> Result<bool, SourceError> {
        let _ = passes;
        Ok(false)
    }

    /// The source as one that reacts to the device, if it does. It is then played through [`Interactive`], and
    /// [`RequestSource::fill`] returns an error.
    fn interactive(&mut self) -> Option<&mut dyn Interactive> {
        None
    }

    /// How often its places are written, if that is known by construction and each request is of one place.
    fn popularity(&self) -> Option<Arc<dyn Popularity>> {
        None
    }

    /// The source's own counts, by name; none for sources that only return requests.
    fn figures(&self) -> Option<Vec<(&'static str, f64)>> {
        None
    }
}

/// The places that a source writes, ranked by how often: rank 0 is written most often, and equally popular places have ranks side
/// by side. Writes are independent of each other.
pub trait Popularity: Debug + Send + Sync {
    /// Places: ranks are below this.
    fn places(&self) -> u64;
    /// Sectors of a place, from one to the next. Together the places are as many sectors from the first of the drive on.
    fn sectors(&self) -> u64;
    /// Draws the rank of a write.
    fn draw(&self, rng: &mut Rng) -> u64;
    /// The place of a rank, counted from the start of the drive.
    fn place(&self, rank: u64) -> u64;
}

/// A workload that reacts to the device: programs that wait for data they read. The player asks it for its next step
/// and reports every completion. All times are on the device's clock, virtual or real.
///
/// ```text
///   player ── next(now) ──► Submit(request) ──► device ── tag ──► submitted(tag)
///                           Wait, WaitForCompletion ──► device.wait ──► completed(completion)
/// ```
pub trait Interactive {
    /// The next step at `now`. The player carries out each step before it asks again; it also asks again after a wait
    /// that a completion ended early.
    ///
    /// # Errors
    /// [`SourceError`] when the workload can't continue.
    fn next(&mut self, now: Nanos) -> Result<Next, SourceError>;

    /// Requests that it drew in the last step and will issue later, told once, so that the device may prepare for them.
    fn drawn(&mut self) -> &[Request] {
        &[]
    }

    /// The device accepted the request of the last [`Next::Submit`] under this tag, which identifies its completion.
    fn submitted(&mut self, tag: Tag);

    /// A request has completed. After a failed request the player asks for no more steps, but still reports the
    /// requests that were in flight with it.
    fn completed(&mut self, completion: &Completion);
}

/// The next step of an [`Interactive`] workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Submit this request now; its arrival time is ignored.
    Submit(Request),
    /// Submit this request, which arrived at its arrival time: now, or before if nobody asked then.
    Arrived(Request),
    /// Nothing to do before this time or the next completion, whichever is first. It is later than `now`.
    Wait(Nanos),
    /// Nothing to do before the next completion.
    WaitForCompletion,
    /// The workload has ended.
    Ended,
}
