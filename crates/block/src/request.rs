//! Requests, completions, and where requests come from.

use crate::{IoError, Nanos, Tag};
use serde::{Deserialize, Serialize};

/// The unit of addresses at the block-device seam.
pub const SECTOR_BYTES: u64 = 512;

/// What a request asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum RequestKind {
    /// Give back what was last written.
    #[default]
    Read = 0,
    /// Keep this.
    Write = 1,
    /// The content is no longer needed (discard, deallocate).
    Trim = 2,
    /// Make everything acknowledged so far durable.
    Flush = 3,
}

impl RequestKind {
    /// Whether it reads or writes, so that its time is that of an operation on data.
    #[inline(always)]
    #[must_use]
    pub fn moves_data(self) -> bool {
        matches!(self, Self::Read | Self::Write)
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
        }
    }
}

/// One request of a host. Addresses and lengths are in sectors of [`SECTOR_BYTES`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// When it reaches the host driver, from the start of the run. Closed-loop players set it at issue.
    pub arrival: Nanos,
    /// First sector touched.
    pub first_sector: u64,
    /// Sectors touched, 0 only for [`RequestKind::Flush`].
    pub sectors: u32,
    /// The process that asked, where the trace tells; 0 where it does not.
    pub process: u32,
    /// The stream the workload names for placement; 0 where it names none.
    pub stream: u16,
    /// What is asked for.
    pub kind: RequestKind,
    /// Force unit access: the write is to be durable when it completes.
    pub fua: bool,
}

impl Request {
    /// The sector after the last one touched. A request that would reach past the last number there is ends at that
    /// number, so that no device takes it for a small one.
    #[inline]
    #[must_use]
    pub fn end_sector(&self) -> u64 {
        self.first_sector.saturating_add(u64::from(self.sectors))
    }
}

/// How a request ended. All times are on the device's clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    /// The tag that [`crate::BlockDevice::submit`] gave.
    pub tag: Tag,
    /// The request as it was submitted.
    pub request: Request,
    /// When the device took it, that is when it left the driver's queue.
    pub start: Nanos,
    /// When it was done.
    pub end: Nanos,
    /// Flash operations that it set off, cleaning included; 0 for a device that does not tell.
    pub flash_ops: u32,
    /// Blocks erased on its behalf; 0 for a device that does not tell.
    pub erases: u32,
    /// Whether the device did what was asked, and if not, why. Success is a null pointer and allocates nothing.
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
            flash_ops: 0,
            erases: 0,
            result: Ok(()),
        }
    }
}

impl Completion {
    /// Time from the device taking the request to its end.
    #[inline]
    #[must_use]
    pub fn service_time(&self) -> Nanos {
        self.end - self.start
    }

    /// Time from arrival at the host driver to the end, queueing included.
    #[inline]
    #[must_use]
    pub fn response_time(&self) -> Nanos {
        self.end - self.request.arrival
    }
}

/// A source that failed: one line that says where, what was found and what was expected.
///
/// Sources keep their own error enums; what crosses this seam is the text for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SourceError(pub String);

/// How often a recording is played once it has started over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passes {
    /// Once.
    One,
    /// As often as was asked for when it was opened.
    All,
}

/// Where requests come from: a trace reader or a generator. Requests are handed over in batches, in constant
/// memory, in order of arrival; one source gives the same requests each time it is built from the same settings.
pub trait RequestSource {
    /// Appends up to `at_most` requests to `batch` and says how many; 0 means that the source has ended.
    ///
    /// # Errors
    /// [`SourceError`] when the input is malformed or unreadable. What was appended before stays valid.
    fn fill(&mut self, batch: &mut Vec<Request>, at_most: usize) -> Result<usize, SourceError>;

    /// Requests still to come, where the source knows it; drives progress and time left.
    fn remaining(&self) -> Option<u64> {
        None
    }

    /// How far a source of unknown length has come, 0 to 1 (for a file: bytes read over its size).
    fn progress(&self) -> Option<f64> {
        None
    }

    /// Starts over with the first request and says so, where the source is a recording that ends; a source that goes on
    /// for ever in the same way has nothing to start over, answers false and stays where it is.
    ///
    /// # Errors
    /// [`SourceError`] when the recording can't be read again.
    fn start_over(&mut self, passes: Passes) -> Result<bool, SourceError> {
        let _ = passes;
        Ok(false)
    }

    /// The source as one that reacts to the device, if it is such a one. It is then played by asking it, and
    /// [`RequestSource::fill`] only says so.
    fn interactive(&mut self) -> Option<&mut dyn Interactive> {
        None
    }

    /// What the source itself counted, by name; none for sources that only hand requests over.
    fn figures(&self) -> Option<Vec<(&'static str, f64)>> {
        None
    }
}

/// A workload that reacts to the device: programs that wait for what they read. It is asked for its next step and told
/// of every completion. All times are on the device's clock, virtual or real.
///
/// ```text
///   player ── next(now) ──► Submit(request) ──► device ── tag ──► submitted(tag)
///                           Wait, WaitForCompletion ──► device.wait ──► completed(completion)
/// ```
pub trait Interactive {
    /// What to do at `now`. Each answer is carried out before the next question; after a wait that ended early because
    /// a request completed, the question comes again.
    ///
    /// # Errors
    /// [`SourceError`] when the workload can't go on.
    fn next(&mut self, now: Nanos) -> Result<Next, SourceError>;

    /// The device took the request of the last [`Next::Submit`] under this tag, by which its completion is known again.
    fn submitted(&mut self, tag: Tag);

    /// A request has ended. After one that failed the player asks for nothing more, but still tells of the requests that
    /// were in flight with it.
    fn completed(&mut self, completion: &Completion);
}

/// The next step of an [`Interactive`] workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Hand this over now; its arrival time is not looked at.
    Submit(Request),
    /// Nothing to do before this time or the next completion, whichever is first. Lies after the time asked at.
    Wait(Nanos),
    /// Nothing to do before the next completion.
    WaitForCompletion,
    /// Nothing will be submitted any more.
    Ended,
}
