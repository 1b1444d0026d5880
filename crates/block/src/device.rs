//! The block-device seam.

use crate::{Bytes, Completion, HoldsData, Nanos, Request, RequestKind};

/// What a device tells of itself: size and grain, nothing of its inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// A short name for reports.
    pub name: String,
    /// Addressable size.
    pub capacity: Bytes,
    /// Smallest unit that can be read or written.
    pub sector: Bytes,
    /// Requests that the device takes at once; more wait in the driver.
    pub queue_depth: u32,
}

/// Names a request in flight; unique while it is in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct Tag(pub u64);

/// What can go wrong with one request or with the device under it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub enum IoError {
    /// The request reaches past the end of the device.
    #[error("request of sectors {first_sector}..{end_sector} reaches past the device's end at sector {device_sectors}")]
    OutOfRange {
        /// First sector asked for.
        first_sector: u64,
        /// One past the last sector asked for.
        end_sector: u64,
        /// Size of the device.
        device_sectors: u64,
    },
    /// The request does not lie on the device's blocks.
    #[error(
        "request of sectors {first_sector}..{end_sector} is not aligned to the device's blocks of {block}; \
         it takes whole blocks only"
    )]
    Misaligned {
        /// First sector asked for.
        first_sector: u64,
        /// One past the last sector asked for.
        end_sector: u64,
        /// The smallest unit that the device reads and writes.
        block: Bytes,
    },
    /// The device was opened for reading, and the request would change it.
    #[error("{} of sectors {first_sector}..{end_sector} refused: the device is open for reading only", .kind.name())]
    ReadOnly {
        /// What was asked for.
        kind: RequestKind,
        /// First sector asked for.
        first_sector: u64,
        /// One past the last sector asked for.
        end_sector: u64,
    },
    /// The device cannot take writes any more.
    #[error("the drive cannot take this write: {reason}")]
    WornOut {
        /// Why, with the state that led to it.
        reason: String,
    },
    /// A policy that the user handed over failed, or answered what can't be done.
    #[error("{what}")]
    Policy {
        /// Which, where, and why.
        what: String,
    },
    /// A read did not give back what was last written, or the state of the device contradicts itself.
    #[error("verify violation: {what}")]
    Violation {
        /// What was expected and what was found.
        what: String,
    },
    /// The request came with data, but the device was built to keep none.
    #[error("the device keeps no data; it was built for times alone")]
    KeepsNoData,
    /// The device itself failed.
    #[error("the device failed: {0}")]
    Device(String),
}

/// Anything that takes requests and completes them on a clock of its own.
///
/// Filters (schedulers, recorders, faults) are block devices around block devices.
pub trait BlockDevice {
    /// Size and grain.
    fn info(&self) -> DeviceInfo;

    /// The device's own clock, virtual or monotonic.
    fn now(&self) -> Nanos;

    /// Hands a request over at `request.arrival` or now, whichever is later. Arrivals never decrease.
    ///
    /// # Errors
    /// [`IoError`] when the request cannot be taken; the device then stays as it was.
    fn submit(&mut self, request: Request) -> Result<Tag, IoError>;

    /// Puts the next completion in `completion` and answers true, or false if there is none by `until`; either way the
    /// clock gets there. With nothing in flight and `until` at [`Nanos`]`(u64::MAX)` the clock stays and the answer is
    /// false. (The completion is written in place: at some tens of nanoseconds a request, handing it up by value shows.)
    ///
    /// # Errors
    /// [`IoError`] when the device failed.
    fn wait(&mut self, until: Nanos, completion: &mut Completion) -> Result<bool, IoError>;

    /// Submits a request and waits for its end, with nothing else in flight.
    ///
    /// # Errors
    /// [`IoError`] as from [`BlockDevice::submit`] and [`BlockDevice::wait`]; `completion` is then as it was.
    #[inline]
    fn execute(&mut self, request: Request, completion: &mut Completion) -> Result<(), IoError> {
        self.submit(request)?;
        let ended = self.wait(Nanos(u64::MAX), completion)?;
        assert!(ended, "a device with a request in flight completes one");
        Ok(())
    }

    /// Says that `request` will be submitted soon. Devices may use it to warm caches of the simulating machine;
    /// it never changes a result.
    #[inline(always)]
    fn expect(&self, request: &Request, ahead: Ahead) {
        let _ = (request, ahead);
    }

    /// The device as one that keeps what is written to it, if it does.
    fn holds_data(&mut self) -> Option<&mut dyn HoldsData> {
        None
    }
}

/// A device that is only known when the program runs. Costs an indirect call a request.
impl<D: BlockDevice + ?Sized> BlockDevice for Box<D> {
    fn info(&self) -> DeviceInfo {
        (**self).info()
    }
    fn now(&self) -> Nanos {
        (**self).now()
    }
    fn submit(&mut self, request: Request) -> Result<Tag, IoError> {
        (**self).submit(request)
    }
    fn wait(&mut self, until: Nanos, completion: &mut Completion) -> Result<bool, IoError> {
        (**self).wait(until, completion)
    }
    fn execute(&mut self, request: Request, completion: &mut Completion) -> Result<(), IoError> {
        (**self).execute(request, completion)
    }
    fn expect(&self, request: &Request, ahead: Ahead) {
        (**self).expect(request, ahead);
    }
    fn holds_data(&mut self) -> Option<&mut dyn HoldsData> {
        (**self).holds_data()
    }
}

/// How far ahead of its submission a request is announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// Some tens of requests.
    Far,
    /// A few requests; it was announced as [`Ahead::Far`] before.
    Near,
}
