//! The controller between a drive's interface and its flash: link, firmware, buffers.
//!
//! ```text
//!            firmware      link in     write buffer
//!  host ──►  (one at   ──► writes  ──►  (sectors)  ──► gate ──► the device below: translation layer, flash
//!   ▲        a time)       reads                    (turnaround)      │
//!   │           └───────────────────────────────────────┘            │
//!   └──────────────────────  link out ◄── read buffer ◄──────────────┘
//! ```
//!
//! A block device around a block device, in virtual time; everything is off by default. It follows these rules:
//!
//! - The firmware works on commands in the order in which the drive takes them from the driver. Writes, trims and
//!   flushes take effect in that order; a read overtakes them only if it shares no sector with them. So a read returns
//!   what was last written before it.
//! - Requests to the device below take effect there in the order of submission, as in [`crate::Ssd`].
//! - Data cross the link in order of command among those that are ready; without a rate, at once.
//! - At the same time, completions of the device below come first, then the link, then the gate, then doorbells, then the firmware.
//!
//! Sources: Kim, Seo, Jung, Kim, Huh: "Parameter-aware I/O management for solid state disks" (2011), sections 4.1 to 4.3
//! for the buffers; Hu's dissertation (2012), section 5.1.3 for the turnaround.

mod claims;
mod doorbells;
mod figures;
mod inside;
mod link;
mod noise;
mod payloads;
mod power;
mod read_buffer;
mod reads;
mod regions;
#[cfg(test)]
mod tests;
mod write_buffer;
mod writes;

pub use figures::ControllerFigures;
use flashwright_config::{ControllerConfig, Drain, Oversized, controller_as_toml};

use crate::ssd::Ssd;
use claims::{Claim, Claims};
use doorbells::{Doorbells, Interrupts};
use flashwright_block::{
    Ahead, AnyArbiter, Arbiter, BlockDevice, Bounds, Completion, DeviceInfo, DriverQueue, Effects, HoldsData, IoError,
    Nanos, Request, RequestClass, RequestKind, SECTOR_BYTES, Seed, Tag, Waiting,
};
use link::Link;
use noise::Noise;
use payloads::Payloads;
use read_buffer::ReadBuffer;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use write_buffer::{Extent, WriteBuffer};

const NEVER: u64 = u64::MAX;

/// The stage of a write, trim or flush. Reads have none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Stage {
    /// Waits for its turn, or for an earlier command that shares sectors.
    #[default]
    Start,
    /// Waits for room in the write buffer.
    Room,
    /// Its data, or a part, cross the link.
    Crossing,
    /// Its data have arrived, but a buffer hit that they relied on is gone, so they wait for room again.
    Here,
    /// Waits until flash holds everything before it.
    Barrier,
    /// The device below makes it durable.
    Syncing,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Command {
    request: Request,
    tag: u64,
    /// Its number among the commands that the drive took: the order in which they take effect. If the driver passes
    /// them on as they come, it is the tag.
    order: u64,
    start: u64,
    stage: Stage,
    /// Sectors that crossed the link, or are in the write buffer.
    crossed: u64,
    /// Sectors submitted to the device below.
    sent: u64,
    /// Sectors that the device below has completed.
    done: u64,
    /// Sectors queued for the link.
    asked: u64,
    working: bool,
    /// The place of its claim until it takes effect.
    claim: Option<u32>,
    failed: bool,
    fills: Option<u64>,
    effects: Effects,
}

impl Command {
    fn extent(&self) -> Extent {
        Extent::of(&self.request)
    }
    fn sectors(&self) -> u64 {
        u64::from(self.request.sectors)
    }
}

/// The owner of a job of the device below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Owner {
    /// A part of a command, or all of it.
    Command(u32),
    /// An entry of the write buffer.
    Entry(u64),
    /// Read-ahead.
    Ahead(u64),
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Job {
    request: Request,
    owner: Owner,
}

/// The jobs of the device below.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Inside {
    /// Jobs waiting at the gate.
    queue: VecDeque<Job>,
    /// Whether the last job through the gate wrote; none before the first.
    wrote: Option<bool>,
    /// When the gate opens for the first of the queue.
    opens_at: u64,
    /// In order of submission: most complete in it.
    under_way: VecDeque<(Tag, Owner)>,
    /// Jobs that write or trim, queued or in progress.
    writes: u32,
    /// Entries of the write buffer, queued or in progress.
    flushes: u32,
    /// Jobs that the device below refused.
    refused: VecDeque<Owner>,
}

/// A drive's interface, firmware and buffers around the device that keeps the data.
///
/// A flush is acknowledged when flash holds everything before it, a forced write likewise. A command fails when the device
/// below fails a part of it. When buffered data of a write that was acknowledged can't be put on flash, the next write, trim
/// or flush to complete fails with that error, as SCSI drives report a deferred error. When the device below loses its power, all
/// commands fail, and what the buffers held is gone.
///
/// ```
/// # use flashwright_block::{BlockDevice, Bytes, Completion, Nanos, Request, RequestKind, Seed};
/// # use flashwright_ssd::{Config, Controller, Ssd};
/// let config = Config::from_toml("[controller]\ninterface-rate = \"300 MB/s\"\nwrite-buffer.size = \"256 KiB\"", "doc")?;
/// let mut drive = Controller::of_drive(Ssd::new(&config, Seed(1), false)?, Seed(1));
/// let mut completion = Completion::default();
/// drive.execute(Request { sectors: 300, kind: RequestKind::Write, ..Request::default() }, &mut completion)?;
/// assert_eq!(completion.end, Nanos(512_000)); // 300 x 512 B at 300 MB/s; flash comes later
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Controller<D, A = AnyArbiter> {
    #[serde(with = "controller_as_toml")]
    config: ControllerConfig,
    /// Whether the device below gets all requests directly: every setting is off, or the power is.
    off: bool,
    /// Whether the device below has lost its power, and commands and buffers do not know yet.
    power_lost: bool,
    /// Whether flushes and forced writes are answered without being carried out.
    ignores_flush: bool,
    device: D,
    bounds: Bounds,
    /// Places of commands in the drive, and the commands that wait in the driver.
    queue: DriverQueue<A>,
    /// Sectors of one command that the device below works on at a time.
    piece: u64,
    now: u64,
    next_tag: u64,
    next_order: u64,
    commands: Vec<Command>,
    free: Vec<u32>,
    /// Commands in the firmware, with the time when it finishes them.
    firmware: VecDeque<(u64, u32)>,
    firmware_free_at: u64,
    unsettled: Claims,
    /// Reads that wait for an earlier write, or for data being read ahead.
    held: Vec<u32>,
    /// Writes, trims and flushes, in order.
    writers: VecDeque<u32>,
    /// Whether an event occurred that held reads and writers may have waited for.
    recheck: bool,
    link: Link,
    inside: Inside,
    buffer: WriteBuffer,
    read_buffer: ReadBuffer,
    /// Completions, in the order in which the host sees them.
    ready: VecDeque<Completion>,
    /// The delay until the host sees a completion.
    noise: Noise,
    interrupts: Interrupts,
    doorbells: Doorbells,
    /// When the drive has fetched the next command of [`Self::doorbells`].
    fetched_at: u64,
    /// Errors of failed commands, by slot.
    errors: Vec<(u32, Box<IoError>)>,
    /// Errors by which buffered data of acknowledged writes were lost; the next command that changes data reports one.
    deferred: Option<Box<IoError>>,
    /// What flushes and reads ahead caused, for the next command that is no read to report.
    owed: Effects,
    figures: ControllerFigures,
    /// The bytes of commands and buffers, if the device below holds data.
    payloads: Option<Box<Payloads>>,
}

impl<D: BlockDevice> Controller<D> {
    /// A controller with the settings `config` around `device`, which must not have been used yet; `seed` is the run's.
    /// Commands that wait in the driver are taken by the arbiter of the settings.
    #[must_use]
    pub fn new(config: &ControllerConfig, seed: Seed, device: D) -> Self {
        let arbiter = config.queues.arbiter.build(&config.queues.arbiters, ());
        Self::with_arbiter(config, seed, device, arbiter)
    }
}

impl Controller<Ssd> {
    /// The controller that a drive's settings give it. With `recovery.ignores-flush` it answers flushes and forced writes while
    /// their data are in its write buffer.
    #[must_use]
    pub fn of_drive(ssd: Ssd, seed: Seed) -> Self {
        let (config, ignores_flush) = (ssd.config().controller.clone(), ssd.config().recovery.ignores_flush);
        Self { ignores_flush, ..Self::new(&config, seed, ssd) }
    }

    /// As [`Controller::of_drive`], for callers that play on any device: it is compiled once, here.
    #[must_use]
    pub fn boxed(ssd: Ssd, seed: Seed) -> Box<dyn ControlledDrive> {
        Box::new(Self::of_drive(ssd, seed))
    }
}

/// A drive behind its controller.
pub trait ControlledDrive: BlockDevice + Send {
    /// What the controller counted; none if it is off.
    fn controller_figures(&self) -> Option<ControllerFigures>;
}

impl ControlledDrive for Controller<Ssd> {
    fn controller_figures(&self) -> Option<ControllerFigures> {
        (!self.config.is_off()).then_some(self.figures)
    }
}

impl<A: Arbiter> Controller<Ssd, A> {
    /// As [`Ssd::none_completes_before`].
    #[must_use]
    pub fn none_completes_before(&self) -> Option<Nanos> {
        if self.off {
            return self.ready.front().map(|next| next.end).or_else(|| self.device.none_completes_before());
        }
        if self.in_flight() == 0 {
            return None;
        }
        // What the flash completes may be a flush of the buffer that a command waits for.
        let below = if self.inside.under_way.is_empty() { None } else { self.device.none_completes_before() };
        let ready = self.ready.front().map_or(NEVER, |next| next.end.0);
        Some(Nanos(self.next_event().min(ready).min(below.map_or(NEVER, |at| at.0))))
    }
}

impl<D: BlockDevice, A: Arbiter> Controller<D, A> {
    /// As [`Controller::new`], but `arbiter` decides which of the commands that wait in the driver is taken next.
    #[must_use]
    pub fn with_arbiter(config: &ControllerConfig, seed: Seed, mut device: D, arbiter: A) -> Self {
        let info = device.info();
        let limit = config.command_limit.0 / SECTOR_BYTES;
        Self {
            off: config.is_off(),
            power_lost: false,
            ignores_flush: false,
            bounds: info.bounds(),
            queue: DriverQueue::with_arbiter(
                if config.queue_depth == 0 { info.queue_depth.max(1) } else { config.queue_depth },
                arbiter,
            ),
            piece: if limit == 0 { u64::MAX } else { limit },
            now: device.now().0,
            next_tag: 0,
            next_order: 0,
            commands: Vec::new(),
            free: Vec::new(),
            firmware: VecDeque::new(),
            firmware_free_at: 0,
            unsettled: Claims::new(),
            held: Vec::new(),
            writers: VecDeque::new(),
            recheck: false,
            link: Link::new(config),
            inside: Inside::default(),
            buffer: WriteBuffer::new(&config.write_buffer, config.command_limit.0),
            read_buffer: ReadBuffer::new(&config.read_buffer),
            ready: VecDeque::new(),
            noise: Noise::new(config.noise, seed),
            interrupts: Interrupts::new(&config.queues),
            doorbells: Doorbells::default(),
            fetched_at: NEVER,
            errors: Vec::new(),
            deferred: None,
            owed: Effects::default(),
            figures: ControllerFigures::default(),
            payloads: device.holds_data().map(|_| Box::default()),
            config: config.clone(),
            device,
        }
    }

    /// The device below.
    #[inline(always)]
    pub fn device(&self) -> &D {
        &self.device
    }
    /// The device below, for what needs no time, such as preconditioning. The controller's buffers must hold nothing then.
    #[inline(always)]
    pub fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }
    /// Its settings.
    #[must_use]
    pub fn config(&self) -> &ControllerConfig {
        &self.config
    }
    /// The counts since the start or the last [`Self::reset_figures`].
    #[must_use]
    pub fn figures(&self) -> ControllerFigures {
        self.figures
    }
    /// Resets the counts to zero, for the end of a warm-up.
    pub fn reset_figures(&mut self) {
        self.figures = ControllerFigures::default();
    }
    /// Requests submitted and not yet fetched, without background writes to the flash. If everything is off, it does
    /// not count the requests that go directly to the device below.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.doorbells.len() + self.queue.taken() as usize + self.queue.len() + self.ready.len()
    }
    /// Bytes in the write buffer, those on their way to the flash included.
    #[must_use]
    pub fn buffered_bytes(&self) -> u64 {
        self.buffer.used() * SECTOR_BYTES
    }

    /// Whether the write buffer holds a sector of this stretch.
    #[must_use]
    pub fn buffers(&self, first_sector: u64, sectors: u64) -> bool {
        self.buffer.touches(Extent { first: first_sector, end: first_sector.saturating_add(sectors) })
    }

    // --- the event loop ---

    /// Processes the next event by `until`; returns false if there is none.
    #[inline]
    fn step(&mut self, until: u64) -> Result<bool, IoError> {
        let next = self.next_event();
        if !self.inside.under_way.is_empty() {
            let mut completion = Completion::default();
            if self.device.wait(Nanos(next.min(until)), &mut completion)? {
                self.now = self.now.max(completion.end.0);
                self.job_over(completion);
                self.settle_down();
                return Ok(true);
            }
        }
        if next > until || next == NEVER {
            return Ok(false);
        }
        self.now = next;
        if let Some(owner) = self.inside.refused.pop_front() {
            self.ended(owner, Effects::default());
        } else if self.link.next() == next {
            let crossing = self.link.take(next);
            self.crossed(crossing);
        } else if !self.inside.queue.is_empty() && self.inside.opens_at == next {
            self.open_gate();
        } else if self.fetched_at == next {
            self.fetch();
        } else {
            let (_, slot) =
                self.firmware.pop_front().expect("the firmware is the last thing that an event can come from");
            self.decide(slot);
        }
        self.settle_down();
        Ok(true)
    }

    /// The time of the controller's next own event.
    #[inline(always)]
    fn next_event(&self) -> u64 {
        if !self.inside.refused.is_empty() {
            return self.now;
        }
        let gate = if self.inside.queue.is_empty() { NEVER } else { self.inside.opens_at };
        let firmware = self.firmware.front().map_or(NEVER, |(at, _)| *at);
        self.link.next().min(gate).min(firmware).min(self.fetched_at)
    }

    /// Processes everything that follows immediately from the last event. Commands of the driver are taken here in a
    /// loop, so that a long queue does not lead to deep recursion.
    #[inline]
    fn settle_down(&mut self) {
        loop {
            if self.recheck {
                self.recheck = false;
                if self.power_lost {
                    return self.lose_power();
                }
                self.retry_held();
                self.run_writers();
            } else if self.link.is_free() && self.link.next() == self.now {
                let crossing = self.link.take(self.now);
                self.crossed(crossing);
            } else if let Some(Waiting { id, request }) = self.queue.pick() {
                self.take(id, request);
            } else {
                break;
            }
        }
        self.drain();
    }

    // --- commands ---

    #[inline(always)] // a request that is passed in memory just after it was written is read slowly
    fn take(&mut self, tag: u64, request: Request) {
        let command = Command { request, tag, order: self.next_order, start: self.now, ..Command::default() };
        self.next_order += 1;
        let slot = match self.free.pop() {
            Some(slot) => {
                self.commands[slot as usize] = command;
                slot
            }
            None => {
                self.commands.push(command);
                u32::try_from(self.commands.len() - 1).expect("the queue depth fits 32 bits")
            }
        };
        self.queue.take(request.kind, 1);
        let overhead = match request.kind.class() {
            RequestClass::Read => self.config.read_overhead.0,
            RequestClass::Write => self.config.write_overhead.0,
            _ => 0,
        };
        self.firmware_free_at = self.firmware_free_at.max(self.now) + overhead;
        if self.firmware.is_empty() && self.firmware_free_at == self.now {
            self.decide(slot);
        } else {
            self.firmware.push_back((self.firmware_free_at, slot));
        }
    }

    /// The firmware has finished a command and decides how it continues.
    #[inline]
    fn decide(&mut self, slot: u32) {
        let command = self.commands[slot as usize];
        let (order, extent) = (command.order, command.extent());
        match command.request.kind.class() {
            RequestClass::Barrier | RequestClass::Manage => self.writers.push_back(slot),
            _ if command.request.sectors == 0 => return self.finish(slot),
            RequestClass::Read => {
                self.claim(slot, order, extent, false);
                if self.unsettled.must_wait(order, extent, false) || !self.serve(slot) {
                    self.held.push(slot);
                }
                return;
            }
            RequestClass::Write | RequestClass::Discard => {
                self.claim(slot, order, extent, true);
                self.writers.push_back(slot);
            }
        }
        self.run_writers();
    }

    /// Until a command takes effect, those that share sectors with it wait.
    #[inline(always)]
    fn claim(&mut self, slot: u32, order: u64, extent: Extent, writes: bool) {
        self.commands[slot as usize].claim = Some(self.unsettled.add(Claim { order, slot, extent, writes }));
    }

    /// A command has taken effect: later ones may touch its sectors.
    #[inline]
    fn settle(&mut self, slot: u32) {
        if let Some(place) = self.commands[slot as usize].claim.take() {
            if let Some(moved) = self.unsettled.settle(place) {
                self.commands[moved as usize].claim = Some(place);
            }
            self.recheck |= !self.held.is_empty() || !self.writers.is_empty();
        }
    }

    fn finish(&mut self, slot: u32) {
        self.settle(slot);
        let command = &self.commands[slot as usize];
        let (tag, request, start, failed) = (command.tag, command.request, command.start, command.failed);
        let mut effects = command.effects;
        self.free.push(slot);
        self.queue.release(request.kind, 1);
        if let Some(payloads) = &mut self.payloads {
            payloads.finished(tag, failed);
        }
        let mut result = if failed { self.result_of(slot) } else { Ok(()) };
        if request.kind != RequestKind::Read {
            if let Some(error) = self.deferred.take() {
                result = result.and(Err(error));
            }
            effects += std::mem::take(&mut self.owed);
        }
        let (tag, start, noise) = (Tag(tag), Nanos(start), self.noise.on(self.now - start));
        let end = Nanos(self.interrupts.seen(tag, request.queue, self.now, noise, &mut self.ready));
        doorbells::put(&mut self.ready, Completion { tag, request, start, end, effects, result });
    }

    /// How many of the sectors from `first` on form one piece: up to the next multiple of the limit.
    #[inline(always)]
    fn piece_of(&self, first: u64, left: u64) -> u64 {
        if self.piece == u64::MAX { left } else { left.min(self.piece - first % self.piece) }
    }

    /// The result of a failed command, from its stored error.
    #[cold]
    fn result_of(&mut self, slot: u32) -> Result<(), Box<IoError>> {
        let at = self.errors.iter().position(|(failed, _)| *failed == slot);
        Err(self.errors.swap_remove(at.expect("a command that failed has an error")).1)
    }
}

impl<D: BlockDevice, A: Arbiter> BlockDevice for Controller<D, A> {
    fn info(&self) -> DeviceInfo {
        let info = self.device.info();
        if self.config.is_off() { info } else { DeviceInfo { queue_depth: self.queue.depth(), ..info } }
    }

    #[inline(always)]
    fn now(&self) -> Nanos {
        if self.off { self.device.now() } else { Nanos(self.now) }
    }

    #[inline(always)]
    fn submit(&mut self, mut request: Request) -> Result<Tag, IoError> {
        if self.off {
            return self.device.submit(request);
        }
        self.bounds.check(&request)?;
        request.arrival = request.arrival.max(Nanos(self.now));
        if request.arrival.0 > self.now {
            while self.step(request.arrival.0)? {}
            self.now = request.arrival.0;
        }
        let tag = self.next_tag;
        self.next_tag += 1;
        if self.config.queues.doorbell.0 > 0 {
            self.ring(tag, request);
        } else if self.queue.goes_at_once(&request) {
            self.take(tag, request);
            self.settle_down();
        } else {
            self.queue.push(tag, request);
        }
        Ok(Tag(tag))
    }

    #[inline(always)]
    fn execute(&mut self, request: Request, completion: &mut Completion) -> Result<(), IoError> {
        if self.off {
            return self.device.execute(request, completion);
        }
        self.submit(request)?;
        let ended = self.wait(Nanos(NEVER), completion)?;
        assert!(ended, "a request in flight ends");
        Ok(())
    }

    #[inline(always)]
    fn wait(&mut self, until: Nanos, completion: &mut Completion) -> Result<bool, IoError> {
        if self.off {
            // When the power failed, everything ended.
            return match self.ready.pop_front() {
                Some(next) => {
                    *completion = next;
                    Ok(true)
                }
                None => self.device.wait(until, completion),
            };
        }
        loop {
            if let Some(next) = self.ready.front_mut() {
                // Before the host sees this completion, another command may complete that it sees first.
                let seen = next.end.0.min(until.0);
                if seen > self.now {
                    if !self.step(seen)? {
                        self.now = seen;
                    }
                    continue;
                }
                if next.end > until {
                    return Ok(false);
                }
                std::mem::swap(completion, next);
                self.ready.pop_front();
                return Ok(true);
            }
            // Background work does not advance the clock of a host that waits for nothing.
            if self.queue.taken() == 0 && self.fetched_at == NEVER && until.0 == NEVER {
                return Ok(false);
            }
            if !self.step(until.0)? {
                if until.0 != NEVER {
                    self.now = self.now.max(until.0);
                }
                return Ok(false);
            }
        }
    }

    #[inline(always)]
    fn expect(&self, requests: &[Request], ahead: Ahead) {
        self.device.expect(requests, ahead);
    }

    fn holds_data(&mut self) -> Option<&mut dyn HoldsData> {
        if self.payloads.is_some() { Some(self) } else { None }
    }
}

impl<D: BlockDevice, A: Arbiter> HoldsData for Controller<D, A> {
    fn submit_with(&mut self, request: Request, data: &[u8]) -> Result<Tag, IoError> {
        let tag = self.next_tag;
        let (Some(payloads), Some(device)) = (&mut self.payloads, self.device.holds_data()) else {
            return Err(IoError::KeepsNoData);
        };
        if self.off {
            return device.submit_with(request, data);
        }
        request.check_data(data);
        payloads.submitted(tag, &request, data);
        let result = self.submit(request);
        if let (Err(_), Some(payloads)) = (&result, &mut self.payloads) {
            payloads.finished(tag, true);
        }
        result
    }

    fn take_data(&mut self, tag: Tag, data: &mut [u8]) -> bool {
        if self.config.is_off() {
            return self.device.holds_data().is_some_and(|device| device.take_data(tag, data));
        }
        let taken = self.payloads.as_mut().and_then(|payloads| payloads.taken(tag.0));
        taken.inspect(|taken| data.copy_from_slice(taken)).is_some()
    }
}
