//! The block-device interface.

use crate::{
    Bytes, Completion, Contents, HoldsData, Nanos, Placed, Request, RequestKind, SECTOR_BYTES, ZoneError, Zoned,
};

/// The visible properties of a device: size and grain, but no internals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// A short name for reports.
    pub name: String,
    /// Addressable size.
    pub capacity: Bytes,
    /// Smallest unit that can be read or written.
    pub sector: Bytes,
    /// Requests that the device accepts at once; more wait in the driver.
    pub queue_depth: u32,
}

impl DeviceInfo {
    /// The bounds that requests must keep.
    #[must_use]
    pub fn bounds(&self) -> Bounds {
        Bounds { sectors: self.capacity.0 / SECTOR_BYTES, block: self.sector }
    }

    /// Refuses a request that reaches past the device's end or does not lie on its blocks. See [`Bounds::check`].
    ///
    /// # Errors
    /// [`IoError::OutOfRange`] and [`IoError::Misaligned`].
    pub fn check(&self, request: &Request) -> Result<(), IoError> {
        self.bounds().check(request)
    }
}

/// The addresses that a device accepts: the part of its [`DeviceInfo`] that checks every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Bounds {
    /// Size in sectors.
    pub sectors: u64,
    /// The smallest unit that can be read or written.
    pub block: Bytes,
}

impl Bounds {
    /// Refuses a request that reaches past the end or does not lie on whole blocks. A flush has no addresses, so it
    /// always passes.
    ///
    /// ```
    /// # use flashwright_block::{Bounds, Bytes, Request};
    /// let bounds = Bounds { sectors: 1000, block: Bytes(4096) };
    /// let read = |first_sector, sectors| Request { first_sector, sectors, ..Request::default() };
    /// assert!(bounds.check(&read(992, 8)).is_ok());
    /// assert!(bounds.check(&read(992, 16)).is_err());
    /// assert!(bounds.check(&read(4, 8)).is_err());
    /// ```
    ///
    /// # Errors
    /// [`IoError::OutOfRange`] and [`IoError::Misaligned`].
    #[inline(always)]
    pub fn check(&self, request: &Request) -> Result<(), IoError> {
        if request.end_sector() <= self.sectors && (self.block.0 <= SECTOR_BYTES || self.is_aligned(request)) {
            return Ok(());
        }
        self.refuse(request)
    }

    fn is_aligned(&self, request: &Request) -> bool {
        let on_block = |sector: u64| sector.saturating_mul(SECTOR_BYTES).is_multiple_of(self.block.0);
        on_block(request.first_sector) && on_block(request.end_sector())
    }

    #[cold]
    fn refuse(&self, request: &Request) -> Result<(), IoError> {
        let (first_sector, end_sector) = (request.first_sector, request.end_sector());
        if request.kind == RequestKind::Flush {
            Ok(())
        } else if end_sector > self.sectors {
            Err(IoError::OutOfRange { first_sector, end_sector, device_sectors: self.sectors })
        } else {
            Err(IoError::Misaligned { first_sector, end_sector, block: self.block })
        }
    }
}

/// Names a request in flight; unique while it is in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct Tag(pub u64);

/// Why a device refused a request, why a request failed, or why the device is dead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub enum IoError {
    /// The request reaches past the end of the device.
    #[error("request of sectors {first_sector}..{end_sector} reaches past the device's end at sector {device_sectors}")]
    OutOfRange {
        /// First sector requested.
        first_sector: u64,
        /// One past the last sector requested.
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
        /// First sector requested.
        first_sector: u64,
        /// One past the last sector requested.
        end_sector: u64,
        /// The smallest unit that the device reads and writes.
        block: Bytes,
    },
    /// The device was opened for reading, and the request would change it.
    #[error("{} of sectors {first_sector}..{end_sector} refused: the device is open for reading only", .kind.name())]
    ReadOnly {
        /// The kind of request.
        kind: RequestKind,
        /// First sector requested.
        first_sector: u64,
        /// One past the last sector requested.
        end_sector: u64,
    },
    /// The request breaks a rule of zones.
    #[error(transparent)]
    Zone(#[from] ZoneError),
    /// The request is for zones, and the device has none.
    #[error("{} refused: the device has no zones", .kind.name())]
    NoZones {
        /// The kind of request.
        kind: RequestKind,
    },
    /// The device can no longer take writes.
    #[error("the drive cannot take this write: {reason}")]
    WornOut {
        /// The reason, with the state that led to it.
        reason: String,
    },
    /// A policy that the user passed in failed or gave an impossible answer.
    #[error("{what}")]
    Policy {
        /// Which policy, where, and why.
        what: String,
    },
    /// A read did not return what was last written, or the state of the device contradicts itself.
    #[error("verify violation: {what}")]
    Violation {
        /// What was expected and what was found.
        what: String,
    },
    /// The request came with data, but the device was built to keep none.
    #[error("the device keeps no data; it was built for timing only")]
    KeepsNoData,
    /// The device has no power: what was in flight has failed, and nothing is taken until it is mounted again.
    #[error("the device failed: the power is off; mount the drive first")]
    PowerOff,
    /// The device itself failed.
    #[error("the device failed: {0}")]
    Device(String),
}

/// A device that takes requests and completes them on its own clock.
///
/// Every device follows this contract, including filters (schedulers, controllers, injected faults), which are devices
/// around devices:
///
/// - [`submit`](Self::submit) either takes a request or refuses it. An accepted request completes exactly once, under
///   the tag that `submit` returned, whether it succeeds or fails. A refused request leaves the device unchanged.
/// - A failed request has an error in [`Completion::result`]. Other requests in flight are not affected, and the device
///   continues: its clock runs, and it takes further requests.
/// - [`wait`](Self::wait) fails only when the device is dead: when it can no longer complete anything, so there is no
///   tag to return. From then on every call of `submit` and `wait` fails.
pub trait BlockDevice {
    /// Size and grain.
    fn info(&self) -> DeviceInfo;

    /// The device's own clock, virtual or monotonic.
    fn now(&self) -> Nanos;

    /// Submits a request at `request.arrival` or now, whichever is later. Arrivals never decrease. Once the request is
    /// accepted, its completion reports any error.
    ///
    /// # Errors
    /// [`IoError`] when the device refuses the request (out of range, misaligned, read-only), or when it is dead.
    /// Either way there is no tag, the device is unchanged, and no time passes.
    fn submit(&mut self, request: Request) -> Result<Tag, IoError>;

    /// Writes the next completion to `completion` and returns true, or returns false if there is none by `until`;
    /// either way the clock advances to that time. With nothing in flight and `until` at [`Nanos`]`(u64::MAX)` the
    /// clock stays and the result is false. (The completion is written in place because, at some tens of nanoseconds
    /// per request, returning it by value is measurable.)
    ///
    /// # Errors
    /// [`IoError`] when the device is dead. A failed request is not an error here: see [`Completion::result`].
    fn wait(&mut self, until: Nanos, completion: &mut Completion) -> Result<bool, IoError>;

    /// Submits a request and waits for its completion, with nothing else in flight. As with [`BlockDevice::wait`], a
    /// failed request is not an error of this call: see [`Completion::result`].
    ///
    /// # Errors
    /// [`IoError`] as from [`BlockDevice::submit`] and [`BlockDevice::wait`]; `completion` is then unchanged.
    #[inline]
    fn execute(&mut self, request: Request, completion: &mut Completion) -> Result<(), IoError> {
        self.submit(request)?;
        let ended = self.wait(Nanos(u64::MAX), completion)?;
        assert!(ended, "a device with a request in flight completes one");
        Ok(())
    }

    /// Announces that `requests` will be submitted soon. Devices may use this to warm CPU caches; it never changes a
    /// result.
    #[inline(always)]
    fn expect(&self, requests: &[Request], ahead: Ahead) {
        let _ = (requests, ahead);
    }

    /// The device as one that keeps data, if it does.
    fn holds_data(&mut self) -> Option<&mut dyn HoldsData> {
        None
    }

    /// The device as one that places data by handle, if it does.
    fn placed(&mut self) -> Option<&mut dyn Placed> {
        None
    }

    /// The device as one that has zones, if it does.
    fn zoned(&mut self) -> Option<&mut dyn Zoned> {
        None
    }

    /// What the bytes of later writes are like that bring no data. Ignored by devices to which all data are alike, as
    /// simulated drives, and by those whose clients bring the data.
    fn carries(&mut self, contents: Contents) {
        let _ = contents;
    }
}

/// A device chosen at run time. Costs an indirect call per request.
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
    fn expect(&self, requests: &[Request], ahead: Ahead) {
        (**self).expect(requests, ahead);
    }
    fn holds_data(&mut self) -> Option<&mut dyn HoldsData> {
        (**self).holds_data()
    }
    fn placed(&mut self) -> Option<&mut dyn Placed> {
        (**self).placed()
    }
    fn zoned(&mut self) -> Option<&mut dyn Zoned> {
        (**self).zoned()
    }
    fn carries(&mut self, contents: Contents) {
        (**self).carries(contents);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn success_costs_a_null_pointer() {
        assert_eq!(size_of::<Result<(), Box<IoError>>>(), size_of::<usize>());
        assert_eq!(size_of::<Completion>(), 72);
    }

    #[test]
    fn one_rule_says_which_requests_fit() {
        let bounds = Bounds { sectors: 1024, block: Bytes(4096) };
        let read = |first_sector, sectors| Request { first_sector, sectors, ..Request::default() };
        for fits in [read(0, 8), read(1016, 8), read(0, 1024), read(1024, 0)] {
            assert_eq!(bounds.check(&fits), Ok(()), "{fits:?}");
        }
        for past in [read(1016, 16), read(1024, 8), read(u64::MAX, 8), read(0, u32::MAX)] {
            assert!(matches!(bounds.check(&past), Err(IoError::OutOfRange { device_sectors: 1024, .. })), "{past:?}");
        }
        for odd in [read(4, 8), read(0, 4)] {
            assert!(matches!(bounds.check(&odd), Err(IoError::Misaligned { block: Bytes(4096), .. })), "{odd:?}");
        }
        let flush = Request { kind: RequestKind::Flush, ..read(5000, 1) };
        assert_eq!(bounds.check(&flush), Ok(()), "a flush has no addresses");
        let small = Bounds { block: Bytes(512), ..bounds };
        assert_eq!(small.check(&read(3, 1)), Ok(()));
    }
}
