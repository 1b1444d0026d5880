//! A real device or file as a block device on the monotonic clock.
//!
//! ```text
//!  submit ─► waiting (all slots taken) ─► slot, buffer ─► ring ─► kernel
//!                                                                   │
//!  wait ◄──────── ready (ended while submit slept) ◄────────────────┘
//! ```
//!
//! A request starts when it is put into the ring, which is submitted at once. Collecting several requests first costs
//! fewer calls, but the drive idles meanwhile (a seventh of the rate at depth 32 on the virtual disk of
//! docs/explanation/speed.md). The end of a completion is the time at which it was seen. Nothing is allocated per
//! request: slots and buffers are created with the disk, and a buffer grows only at the first request of its size.

use crate::consent::{Access, Kind, Target};
use crate::held::{Held, Load};
use crate::noise::{Noise, Prepared};
use crate::ring::{Operation, Ring};
use flashwright_block::{
    BlockDevice, Bounds, Bytes, Completion, Contents, DeviceInfo, DriverQueue, Effects, HoldsData, IoError, Nanos,
    Request, RequestClass, RequestKind, SECTOR_BYTES, Seed, Tag, Waiting,
};
use std::collections::VecDeque;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// The largest number of requests in flight in the kernel.
pub const DEPTH_MAX: u32 = 4096;
/// The longest read or write. Linux transfers at most 2 GiB minus a page at once; this limit leaves every slot its own
/// buffer.
const BYTES_MAX: u64 = 256 << 20;
/// Size of preallocated buffers, in total and per slot: our choice, for request sizes that are common in traces.
const BUFFERS_BYTES: usize = 64 << 20;
const BUFFER_BYTES_MAX: usize = 128 << 10;

/// How to access a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Requests in the kernel at once, 1 to [`DEPTH_MAX`]; more wait in the driver.
    pub depth: u32,
    /// Seed of the written data.
    pub seed: Seed,
    /// Whether to poll for completions and for the time instead of sleeping: it keeps one core at full load, but
    /// latencies do not include the time to wake up.
    pub busy_poll: bool,
    /// Whether writes carry the bytes that they are submitted with, and zeros if with none, and reads return theirs: see
    /// [`HoldsData`]. Otherwise writes carry noise, and what is read is discarded.
    pub keeps_data: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { depth: 128, seed: Seed(1), busy_poll: false, keeps_data: false }
    }
}

/// Why a target could not be accessed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DiskError {
    /// The depth is out of range.
    #[error("depth: found {found}, expected 1 to {DEPTH_MAX}")]
    Depth {
        /// The requested depth.
        found: u32,
    },
    /// The kernel refused a ring.
    #[error("{target}: the kernel refuses io_uring: {reason}")]
    NoRing {
        /// The target as the user named it.
        target: String,
        /// The system's error.
        reason: String,
    },
}

impl DiskError {
    /// What to try.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Depth { .. } => "see --depth and --queue-depth",
            Self::NoRing { .. } => {
                "it may be disabled (`sysctl kernel.io_uring_disabled`), forbidden in this container (seccomp), or \
                 over the limits of `ulimit -l` or `ulimit -n`"
            }
        }
    }
}

/// A request in a slot.
#[derive(Clone, Copy, Debug, Default)]
struct Running {
    tag: Tag,
    request: Request,
    start: Nanos,
    /// What the buffer holds of an earlier write.
    prepared: Prepared,
    /// Whether it is a trim that punches a hole.
    as_hole: bool,
    /// Whether it is a write of zeros that the file system or the device lays out by itself.
    as_zeros: bool,
    /// Whether its data will be taken.
    wanted: bool,
}

/// A target as a block device. Its clock starts when it is created.
///
/// Data of reads are discarded and writes carry what [`BlockDevice::carries`] says, by default data that no drive can compress, unless
/// [`Options::keeps_data`]. Dropping the disk waits for requests in
/// flight.
pub struct Disk {
    info: DeviceInfo,
    bounds: Bounds,
    access: Access,
    busy_poll: bool,
    clock: Instant,
    ring: Ring,
    running: Vec<Running>,
    free: Vec<u32>,
    /// Requests that came while all slots were taken.
    queue: DriverQueue,
    /// Requests that completed while [`BlockDevice::submit`] slept.
    ready: VecDeque<Completion>,
    /// Why the ring can no longer be used.
    dead: Option<IoError>,
    noise: Noise,
    /// Data of clients, if it keeps them.
    held: Option<Held>,
    tags: u64,
    /// Whether trims are sent as discards; kernels before 6.12 and some devices accept only holes.
    discards: bool,
    /// Whether zeros are laid out by the file system or the device; some take only written ones.
    lays_zeros: bool,
    timers_sharp: bool,
}

impl Disk {
    /// Makes a target a block device.
    ///
    /// # Errors
    /// [`DiskError`]: one line.
    pub fn new(target: Target, options: Options) -> Result<Self, DiskError> {
        let depth = options.depth;
        if depth == 0 || depth > DEPTH_MAX {
            return Err(DiskError::Depth { found: depth });
        }
        let info = DeviceInfo {
            name: target.name.clone(),
            capacity: target.capacity,
            sector: target.block,
            queue_depth: depth,
        };
        let bytes = (BUFFERS_BYTES / depth as usize).min(BUFFER_BYTES_MAX);
        let kind = target.kind;
        let ring = Ring::new(target.file, depth, bytes)
            .map_err(|error| DiskError::NoRing { target: target.name, reason: error.to_string() })?;
        Ok(Self {
            bounds: info.bounds(),
            info,
            access: target.access,
            busy_poll: options.busy_poll,
            clock: Instant::now(),
            ring,
            running: vec![Running::default(); depth as usize],
            free: (0..depth).rev().collect(),
            queue: DriverQueue::new(depth),
            ready: VecDeque::with_capacity(depth as usize),
            dead: None,
            noise: Noise::new(options.seed),
            held: options.keeps_data.then(|| Held::new(bytes)),
            tags: 0,
            discards: kind == Kind::BlockDevice,
            lays_zeros: true,
            timers_sharp: false,
        })
    }

    fn check(&self, request: &Request) -> Result<(), IoError> {
        if request.kind == RequestKind::Flush {
            return Ok(());
        }
        if request.kind.is_for_zones() {
            return Err(IoError::NoZones { kind: request.kind });
        }
        self.bounds.check(request)?;
        let (first_sector, end_sector) = (request.first_sector, request.end_sector());
        if self.access == Access::ReadOnly && request.kind != RequestKind::Read {
            return Err(IoError::ReadOnly { kind: request.kind, first_sector, end_sector });
        }
        if request.kind != RequestKind::Trim && bytes_of(request) > BYTES_MAX {
            let longest = Bytes(BYTES_MAX);
            return Err(IoError::Device(format!("{} is longer than {longest} at once", place(request))));
        }
        Ok(())
    }

    /// Puts a request into the ring, or into the queue before it if all slots are taken.
    fn start(&mut self, tag: Tag, request: Request, load: Load<'_>) {
        if self.queue.goes_at_once(&request) {
            self.lay(tag, request, load);
        } else {
            if let Some(held) = &mut self.held {
                held.waits(tag, load);
            }
            self.queue.push(tag.0, request);
        }
    }

    /// Puts a request into a free slot of the ring.
    fn lay(&mut self, tag: Tag, request: Request, load: Load<'_>) {
        self.queue.take(request.kind, 1);
        let slot = self.free.pop().expect("there are as many slots as places");
        let (offset, bytes) = (request.first_sector * SECTOR_BYTES, bytes_of(&request));
        let short = || u32::try_from(bytes).expect("longer requests are refused");
        let mut prepared = self.running[slot as usize].prepared;
        // Only a write of bytes can be durable by itself.
        let as_zeros = self.held.is_some() && load == Load::None && self.lays_zeros && !request.fua;
        let operation = match request.kind {
            RequestKind::Write if self.held.is_some() => {
                if as_zeros {
                    Operation::Zeros { offset, bytes }
                } else {
                    load.put(self.ring.buffer(slot, bytes as usize), bytes as usize);
                    Operation::Write { offset, bytes: short(), durable: request.fua }
                }
            }
            RequestKind::Read => {
                prepared = Prepared::default();
                Operation::Read { offset, bytes: short() }
            }
            RequestKind::Write => {
                let bytes = short();
                let buffer = &mut self.ring.buffer(slot, bytes as usize)[..bytes as usize];
                prepared = self.noise.prepare(buffer, offset, prepared);
                Operation::Write { offset, bytes, durable: request.fua }
            }
            RequestKind::Trim if self.discards => Operation::Discard { offset, bytes },
            RequestKind::Trim => Operation::PunchHole { offset, bytes },
            RequestKind::Flush => Operation::Flush,
            _ => unreachable!("requests for zones are refused"),
        };
        let (as_hole, wanted) = (!self.discards, load == Load::Wanted);
        let start = self.now();
        self.running[slot as usize] = Running { tag, request, start, prepared, as_hole, as_zeros, wanted };
        self.ring.push(slot, operation);
    }

    /// Fetches a completion, if there is one.
    fn fetch(&mut self) -> Option<Completion> {
        loop {
            let (slot, result) = self.ring.pop()?;
            let Running { tag, request, start, as_hole, as_zeros, wanted, .. } = self.running[slot as usize];
            if request.kind == RequestKind::Write && as_zeros && refuses_discard(result) {
                // Written out, now and from now on.
                self.lays_zeros = false;
                self.running[slot as usize].as_zeros = false;
                let (offset, bytes) = (request.first_sector * SECTOR_BYTES, request.data_bytes());
                Load::None.put(self.ring.buffer(slot, bytes), bytes);
                let bytes = u32::try_from(bytes).expect("longer requests are refused");
                self.ring.push(slot, Operation::Write { offset, bytes, durable: false });
                self.hand_over();
                continue;
            }
            if request.kind == RequestKind::Trim && !as_hole && refuses_discard(result) {
                // Repeats the request as a hole; later trims are sent as holes directly.
                self.discards = false;
                self.running[slot as usize].as_hole = true;
                let (offset, bytes) = (request.first_sector * SECTOR_BYTES, bytes_of(&request));
                self.ring.push(slot, Operation::PunchHole { offset, bytes });
                self.hand_over();
                continue;
            }
            let result = fault(&request, result, as_zeros).map_or(Ok(()), |fault| Err(Box::new(fault)));
            if let Some(held) = &mut self.held {
                held.ended(&mut self.ring, slot, (wanted && result.is_ok()).then_some(tag));
            }
            self.free.push(slot);
            self.queue.release(request.kind, 1);
            let end = self.now();
            if let Some(Waiting { id, request }) = self.queue.pick() {
                let waited = self.held.as_mut().and_then(|held| held.goes(Tag(id)));
                self.lay(Tag(id), request, waited.as_ref().map_or(Load::None, |waited| waited.load()));
                self.hand_over();
            }
            return Some(Completion { tag, request, start, end, effects: Effects::default(), result });
        }
    }

    /// Submits the ring and waits for a completion, at most until the given time.
    fn enter_until(&mut self, until: Nanos) -> Result<(), IoError> {
        let left = until.0.saturating_sub(self.now().0);
        let entered = if self.busy_poll || left == 0 {
            self.ring.enter(0, None)
        } else if until.0 == u64::MAX {
            self.ring.enter(1, None)
        } else {
            self.sharpen_timers();
            self.ring.enter(1, Some(Duration::from_nanos(left)))
        };
        self.note(entered);
        self.alive()
    }

    /// Submits the entries of the ring. If that fails, the disk is dead, which the next call reports.
    fn hand_over(&mut self) {
        let entered = self.ring.enter(0, None);
        self.note(entered);
    }

    fn note(&mut self, entered: io::Result<()>) {
        if let Err(error) = entered {
            self.dead = Some(ring_failed(&error));
        }
    }

    /// Whether the ring can still be used; if not, why.
    fn alive(&self) -> Result<(), IoError> {
        self.dead.clone().map_or(Ok(()), Err)
    }

    /// Lets time pass with nothing in flight.
    fn sleep_until(&mut self, until: Nanos) {
        self.sharpen_timers();
        loop {
            let left = until.0.saturating_sub(self.now().0);
            if left == 0 {
                return;
            }
            if self.busy_poll {
                std::hint::spin_loop();
            } else {
                std::thread::sleep(Duration::from_nanos(left));
            }
        }
    }

    /// Makes the kernel wake this thread on time. By default it may be 50 us late, to save power. A refusal costs only
    /// that, so it is not an error.
    fn sharpen_timers(&mut self) {
        if !self.timers_sharp {
            self.timers_sharp = true;
            rustix::thread::set_current_timer_slack(NonZeroU64::new(1)).unwrap_or_default();
        }
    }
}

impl Disk {
    /// A handle that is readable when requests have ended, for those who wait for other things too.
    ///
    /// # Errors
    /// Of the system.
    pub fn wakes(&self) -> io::Result<OwnedFd> {
        self.ring.wakes()
    }

    /// When its clock began.
    #[must_use]
    pub fn clock(&self) -> Instant {
        self.clock
    }

    fn accept(&mut self, request: Request, load: Load<'_>) -> Result<Tag, IoError> {
        self.check(&request)?;
        self.alive()?;
        while request.arrival > self.now() {
            match self.fetch() {
                Some(ended) => self.ready.push_back(ended),
                None if self.ring.in_flight() > 0 => self.enter_until(request.arrival)?,
                None => self.sleep_until(request.arrival),
            }
        }
        let tag = Tag(self.tags);
        self.tags += 1;
        self.start(tag, request, load);
        self.hand_over();
        Ok(tag)
    }
}

/// Keeps data only with [`Options::keeps_data`].
impl HoldsData for Disk {
    fn submit_with(&mut self, request: Request, data: &[u8]) -> Result<Tag, IoError> {
        request.check_data(data);
        if self.held.is_none() {
            return Err(IoError::KeepsNoData);
        }
        let load = match request.kind.class() {
            RequestClass::Write => Load::Brings(data),
            RequestClass::Read => Load::Wanted,
            _ => Load::None,
        };
        self.accept(request, load)
    }

    fn take_data(&mut self, tag: Tag, data: &mut [u8]) -> bool {
        self.held.as_mut().is_some_and(|held| held.take(tag, data))
    }
}

impl BlockDevice for Disk {
    fn info(&self) -> DeviceInfo {
        self.info.clone()
    }

    #[inline]
    fn now(&self) -> Nanos {
        // 584 years fit.
        Nanos(u64::try_from(self.clock.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn submit(&mut self, request: Request) -> Result<Tag, IoError> {
        self.accept(request, Load::None)
    }

    fn wait(&mut self, until: Nanos, completion: &mut Completion) -> Result<bool, IoError> {
        loop {
            if let Some(ended) = self.ready.pop_front().or_else(|| self.fetch()) {
                *completion = ended;
                return Ok(true);
            }
            self.alive()?;
            if self.ring.in_flight() == 0 {
                if until.0 != u64::MAX {
                    self.sleep_until(until);
                }
                return Ok(false);
            }
            if until <= self.now() {
                return Ok(false);
            }
            self.enter_until(until)?;
        }
    }

    fn execute(&mut self, request: Request, completion: &mut Completion) -> Result<(), IoError> {
        if self.ring.in_flight() > 0 || !self.ready.is_empty() || request.arrival > self.now() {
            self.submit(request)?;
        } else {
            // Submitting and waiting are one system call.
            self.check(&request)?;
            self.alive()?;
            let tag = Tag(self.tags);
            self.tags += 1;
            self.start(tag, request, Load::None);
        }
        let ended = self.wait(Nanos(u64::MAX), completion)?;
        assert!(ended, "a request in flight ends");
        Ok(())
    }

    fn holds_data(&mut self) -> Option<&mut dyn HoldsData> {
        if self.held.is_some() { Some(self) } else { None }
    }

    fn carries(&mut self, contents: Contents) {
        self.noise.carries(contents);
    }
}

fn bytes_of(request: &Request) -> u64 {
    u64::from(request.sectors) * SECTOR_BYTES
}

/// Whether a trim failed because the device or the kernel does not support discards.
fn refuses_discard(result: i32) -> bool {
    const EINVAL: i32 = 22;
    const EOPNOTSUPP: i32 = 95;
    result == -EINVAL || result == -EOPNOTSUPP
}

/// A request in words: `read of 4 KiB at byte 8192`.
#[must_use]
pub fn place(request: &Request) -> String {
    let (bytes, offset) = (Bytes(bytes_of(request)), request.first_sector * SECTOR_BYTES);
    match request.kind {
        RequestKind::Flush => "flush".into(),
        kind => format!("{} of {bytes} at byte {offset}", kind.name()),
    }
}

/// The error of a request with this `result`, if it failed.
fn fault(request: &Request, result: i32, as_zeros: bool) -> Option<IoError> {
    if result < 0 {
        return Some(IoError::Device(format!("{}: {}", place(request), io::Error::from_raw_os_error(-result))));
    }
    if as_zeros {
        return None; // nothing was transferred
    }
    let moved = u64::from(result.unsigned_abs());
    if !request.kind.moves_data() {
        return None;
    }
    (moved != bytes_of(request)).then(|| cut_short(request, moved))
}

/// The error of a request of which only some bytes were transferred.
pub(crate) fn cut_short(request: &Request, moved: u64) -> IoError {
    let asked = bytes_of(request);
    IoError::Device(format!("{}: only {moved} of {asked} B were transferred; did the device shrink?", place(request)))
}

fn ring_failed(error: &io::Error) -> IoError {
    IoError::Device(format!("io_uring: {error}"))
}
