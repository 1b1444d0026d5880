//! When replies leave: as fast as they go, or when the model says.
//!
//! Paced, one thread has all connections. It maps the machine's clock to the drive's, submits each request at the moment when
//! it came, advances the drive to the present, sends the replies that are due, and sleeps until the next event of the drive or
//! of a socket. The machine's own work between a request's coming and its submission costs the model nothing: the request
//! arrives when its socket became readable.
//!
//! ```text
//!   machine's clock  ──┬──────────┬─────────────┬──►
//!                  request     (work)         reply
//!   drive's clock    ──┴────────────────────────┴──►     × 1 / time-scale
//! ```

use crate::command::{Taken, take};
use crate::connection::End;
use crate::exec::{Executor, Outs};
use crate::input::Input;
use crate::listen::Stream;
use crate::negotiate::Agreed;
use crate::served::Served;
use crate::shared::{Bell, Farewell, Shared, locked};
use crate::wire::{REQUEST_BYTES, Style};
use flashwright_block::{Completion, Nanos};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use serde::Serialize;
use std::io::{self, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// When replies leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// As soon as they are ready; the drive's clock runs on its own.
    #[default]
    None,
    /// When the model says, multiplied by a factor: with 0.5 the drive seems twice as fast.
    Real {
        /// Factor on the model's times, above 0.
        time_scale: f64,
    },
    /// When the device has carried them out: the only pace of a device in real time.
    Device,
}

/// How the machine's clock and the drive's belong together.
#[derive(Debug)]
pub(crate) struct Pacing {
    pace: Pace,
    epoch: Instant,
    /// When the first request came, on the machine's clock since the epoch; the drive's clock starts there. The largest number
    /// before.
    zero: AtomicU64,
}

impl Pacing {
    pub fn new(pace: Pace) -> Self {
        Self { pace, epoch: Instant::now(), zero: AtomicU64::new(u64::MAX) }
    }

    /// Of a device whose clock is the machine's.
    pub fn of_device(clock: Instant) -> Self {
        Self { pace: Pace::Device, epoch: clock, zero: AtomicU64::new(0) }
    }

    pub fn pace(&self) -> Pace {
        self.pace
    }

    pub fn is_none(&self) -> bool {
        self.pace == Pace::None
    }

    pub fn is_real(&self) -> bool {
        !self.is_none()
    }

    fn scale(&self) -> f64 {
        match self.pace {
            Pace::None | Pace::Device => 1.0,
            Pace::Real { time_scale } => time_scale,
        }
    }

    /// A moment of the machine, in nanoseconds since the epoch.
    #[allow(clippy::cast_possible_truncation)] // 584 years
    fn moment(&self, at: Instant) -> u64 {
        at.duration_since(self.epoch).as_nanos() as u64
    }

    /// A moment of the machine on the drive's clock.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)] // below 2^53
    pub fn drive_time(&self, at: Instant) -> Nanos {
        let moment = self.moment(at);
        let since = moment.saturating_sub(self.zero.load(Ordering::Relaxed).min(moment));
        Nanos(match self.pace {
            Pace::None => 0,
            Pace::Device | Pace::Real { time_scale: 1.0 } => since,
            Pace::Real { time_scale } => (since as f64 / time_scale) as u64,
        })
    }

    /// A time of the drive's clock on the machine's, in nanoseconds since the epoch, rounded up.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    fn due(&self, at: Nanos) -> u64 {
        let scale = self.scale();
        let since = if scale == 1.0 { at.0 } else { (at.0 as f64 * scale).ceil() as u64 };
        self.zero.load(Ordering::Relaxed).saturating_add(since)
    }

    fn begin(&self, at: Instant) {
        let _ = self.zero.compare_exchange(u64::MAX, self.moment(at), Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// The thread that has all connections.
pub(crate) struct Pacer {
    /// Connections that have negotiated.
    fresh: Mutex<Vec<Client>>,
    bell: Bell,
    /// Readable when a device in real time has requests that ended.
    wakes: Option<OwnedFd>,
}

/// A connection after its negotiation.
struct Client {
    number: u64,
    stream: Stream,
    agreed: Agreed,
    input: Input,
    /// Bytes of the message that is not whole yet.
    message: usize,
    out: Vec<u8>,
    sent: usize,
    /// Commands in the drive.
    in_flight: usize,
    /// The client sends nothing more: how it ends once it is answered.
    end: Option<End>,
    /// It takes no replies any more.
    is_gone: bool,
}

/// Commands of a client in the drive, and bytes that it has not fetched, beyond which nothing more is read from it.
const IN_FLIGHT_MAX: usize = 4096;
const UNSENT_MAX: usize = 64 << 20;
/// An event that is nearer than this is waited for without sleeping: the machine would wake up too late.
const SPIN: Duration = Duration::from_micros(25);
/// A drive that nobody asks is advanced this often, so that figures show what it does meanwhile.
const IDLE: Duration = Duration::from_millis(100);

impl Client {
    fn wants_more(&self) -> bool {
        self.end.is_none() && self.in_flight < IN_FLIGHT_MAX && self.out.len() - self.sent < UNSENT_MAX
    }

    fn is_over(&self) -> bool {
        self.end.is_some() && self.in_flight == 0 && (self.is_gone || self.out.is_empty())
    }

    fn send(&mut self) {
        while self.sent < self.out.len() && !self.is_gone {
            match (&self.stream).write(&self.out[self.sent..]) {
                Ok(count) if count > 0 => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => {
                    self.is_gone = true;
                    self.end.get_or_insert(End::Broken);
                }
            }
        }
        self.out.clear();
        self.sent = 0;
    }

    /// Reads what has come. Returns whether something has.
    fn receive(&mut self) -> bool {
        match self.input.read(&self.stream, self.message.max(REQUEST_BYTES)) {
            Ok(0) => self.end = Some(if self.input.rest().is_empty() { End::InOrder } else { End::Broken }),
            Ok(_) => return true,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => (self.is_gone, self.end) = (true, Some(End::Broken)),
        }
        false
    }
}

/// The connections, as replies find them, and how late these are.
struct Clients<'a> {
    slots: Vec<Option<Client>>,
    pacing: &'a Pacing,
    late: Vec<u64>,
}

impl Outs for Clients<'_> {
    fn out(&mut self, client: u32) -> Option<&mut Vec<u8>> {
        let client = self.slots[client as usize].as_mut()?;
        if client.is_gone { None } else { Some(&mut client.out) }
    }

    fn ended(&mut self, client: u32, end: Nanos) {
        if let Some(client) = &mut self.slots[client as usize] {
            client.in_flight -= 1;
        }
        if end > Nanos(0) {
            let now = self.pacing.moment(Instant::now());
            self.late.push(now.saturating_sub(self.pacing.due(end)));
        }
    }
}

impl Pacer {
    pub fn new(wakes: Option<OwnedFd>) -> io::Result<Self> {
        Ok(Self { fresh: Mutex::default(), bell: Bell::new()?, wakes })
    }

    /// Takes over a connection that has negotiated.
    pub fn take(&self, number: u64, stream: Stream, input: Input, agreed: Agreed) {
        let client = Client {
            number,
            stream,
            agreed,
            input,
            message: REQUEST_BYTES,
            out: Vec::new(),
            sent: 0,
            in_flight: 0,
            end: None,
            is_gone: false,
        };
        locked(&self.fresh).push(client);
        self.bell.ring();
    }

    /// Serves until the server stops and every client is answered.
    pub fn run<S: Served>(&self, shared: &Shared<S>) {
        let _farewell = Farewell(shared, None);
        // A wait may end a nanosecond late, instead of the usual 50 us.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        let mut clients = Clients { slots: Vec::new(), pacing: &shared.pacing, late: Vec::new() };
        let mut executor = if self.wakes.is_some() { Executor::one_by_one() } else { Executor::default() };
        let mut watch = Watch::new();
        let (mut wait, mut completion) = (Some(IDLE), Completion::default());
        loop {
            let ready = self.wait(shared, &clients, wait);
            let came = Instant::now();
            self.admit(&mut clients);
            let read = |(client, ready): (&mut Client, &bool)| *ready && client.wants_more() && client.receive();
            let mut has_more = false;
            for (slot, ready) in clients.slots.iter_mut().zip(&ready) {
                has_more |= slot.as_mut().is_some_and(|client| read((client, ready)));
            }
            let Some(mut drive) = shared.drive() else {
                shared.each_socket(|socket| socket.shut(true));
                break;
            };
            has_more |= ready.is_empty(); // those that were just admitted may have sent requests with their last option
            if has_more {
                (0..clients.slots.len())
                    .for_each(|slot| begin_all(shared, &mut drive, &mut executor, &mut clients, slot, came));
            }
            if self.wakes.is_some() {
                drive.served.clients_wait();
            }
            let now = shared.pacing.drive_time(Instant::now());
            executor.reap(&mut drive, &mut clients, now);
            let next = if executor.in_flight() > 0 {
                drive.served.none_completes_before().unwrap_or(now)
            } else {
                if drive.recorder.is_none() && now > Nanos(0) {
                    // The clock goes on for the drive too: it may clean when it is idle.
                    while drive.served.wait(now, &mut completion) == Ok(true) {}
                }
                Nanos(u64::MAX)
            };
            drop(drive);
            for slot in &mut clients.slots {
                if let Some(client) = slot {
                    client.send();
                }
                if slot.as_ref().is_some_and(Client::is_over)
                    && let Some(client) = slot.take()
                {
                    shared.leave(client.number, client.end == Some(End::Broken));
                }
            }
            watch.note(shared, &mut clients.late);
            if shared.is_stopping()
                && clients.slots.iter().all(Option::is_none)
                && shared.counts.open.load(Ordering::Relaxed) == 0
            {
                break;
            }
            wait = self.sleep(shared, next);
        }
    }

    /// How long to sleep until an event of the drive; none if it is so near that there is no time to sleep.
    fn sleep<S>(&self, shared: &Shared<S>, next: Nanos) -> Option<Duration> {
        if next == Nanos(u64::MAX) {
            return Some(IDLE);
        }
        let now = shared.pacing.moment(Instant::now());
        let left = Duration::from_nanos(shared.pacing.due(next).saturating_sub(now));
        left.checked_sub(SPIN).filter(|left| !left.is_zero()).map(|left| left.min(IDLE))
    }

    /// Waits for sockets, and says for each slot whether it is ready; an empty list stands for new connections.
    fn wait<S>(&self, shared: &Shared<S>, clients: &Clients<'_>, wait: Option<Duration>) -> Vec<bool> {
        let mut all = vec![PollFd::new(&self.bell, PollFlags::IN)];
        if !shared.is_stopping() {
            all.push(PollFd::new(&shared.bell, PollFlags::IN));
        }
        if let Some(wakes) = &self.wakes {
            all.push(PollFd::new(wakes, PollFlags::IN));
        }
        let mut slots = Vec::with_capacity(clients.slots.len());
        for client in clients.slots.iter() {
            let Some(client) = client else {
                slots.push(None);
                continue;
            };
            let mut wanted = PollFlags::empty();
            wanted.set(PollFlags::IN, client.wants_more());
            wanted.set(PollFlags::OUT, !client.out.is_empty());
            slots.push((!wanted.is_empty()).then_some(all.len()));
            if !wanted.is_empty() {
                all.push(PollFd::new(&client.stream, wanted));
            }
        }
        let time = wait.unwrap_or_default();
        let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        let _ = poll(&mut all, Some(&time));
        if !all[0].revents().is_empty() {
            self.bell.hear();
            return Vec::new();
        }
        let is_ready = |at: &Option<usize>| {
            at.is_some_and(|at| all[at].revents().intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR))
        };
        slots.iter().map(is_ready).collect()
    }

    fn admit(&self, clients: &mut Clients<'_>) {
        for client in std::mem::take(&mut *locked(&self.fresh)) {
            if client.stream.set_nonblocking(true).is_err() {
                continue;
            }
            match clients.slots.iter_mut().find(|slot| slot.is_none()) {
                Some(slot) => *slot = Some(client),
                None => clients.slots.push(Some(client)),
            }
        }
    }
}

/// Begins all commands of a client that are whole; they came at `came`.
fn begin_all<S: Served>(
    shared: &Shared<S>,
    drive: &mut crate::exec::Drive<S>,
    executor: &mut Executor,
    clients: &mut Clients<'_>,
    slot: usize,
    came: Instant,
) {
    let Some(client) = &mut clients.slots[slot] else { return };
    let (agreed, style) = (client.agreed, Style { structured: client.agreed.structured });
    let mut input = std::mem::replace(&mut client.input, Input::empty());
    let (mut end, mut message) = (None, REQUEST_BYTES);
    while end.is_none() {
        let (count, taken) = take(input.rest(), &shared.export, agreed.allocation);
        match taken {
            Taken::Command(command, data) => {
                shared.pacing.begin(came);
                if let Some(client) = &mut clients.slots[slot] {
                    client.in_flight += 1;
                }
                let arrival = shared.pacing.drive_time(came);
                let slot = u32::try_from(slot).expect("clients are few");
                executor.begin(drive, clients, slot, agreed, (command, data), arrival);
            }
            Taken::Refused { cookie, errno, why } => {
                if let Some(client) = &mut clients.slots[slot] {
                    style.put_error(&mut client.out, cookie, errno, why);
                }
            }
            Taken::More(bytes) => {
                message = bytes;
                break;
            }
            Taken::Disconnect => end = Some(End::InOrder),
            Taken::Broken(_) => end = Some(End::Broken),
        }
        input.take(count);
    }
    if let Some(client) = &mut clients.slots[slot] {
        (client.input, client.message) = (input, message);
        client.end = client.end.or(end);
    }
}

/// Judges each second whether the host keeps up.
struct Watch {
    since: Instant,
    replies: u64,
    late: u64,
    told: bool,
}

/// A reply that is later than this is late; with a tenth of them late, the host does not keep up.
const LATE_NS: u64 = 1_000_000;
const LATE_SHARE: u64 = 10;
/// Replies in a second that are enough to judge by.
const REPLIES_MIN: u64 = 20;

impl Watch {
    fn new() -> Self {
        Self { since: Instant::now(), replies: 0, late: 0, told: false }
    }

    fn note<S>(&mut self, shared: &Shared<S>, late: &mut Vec<u64>) {
        if late.is_empty() {
            return;
        }
        let mut lateness = locked(&shared.lateness);
        for nanos in late.drain(..) {
            lateness.all.record(nanos);
            self.replies += 1;
            self.late += u64::from(nanos > LATE_NS);
        }
        if self.since.elapsed() < Duration::from_secs(1) {
            return;
        }
        if self.replies >= REPLIES_MIN {
            let keeps_up = self.late * LATE_SHARE < self.replies;
            lateness.keeps_up = Some(keeps_up);
            lateness.seconds_behind += u64::from(!keeps_up);
            if !keeps_up && !self.told {
                self.told = true;
                let (late, replies) = (self.late, self.replies);
                let (whom, hint) = match shared.pacing.pace() {
                    Pace::Device => ("device", ""),
                    _ => ("model", " (a larger --time-scale slows the drive down)"),
                };
                shared.note(format!(
                    "the host does not keep up with the {whom}: within a second, {late} of {replies} replies left more than \
                     1 ms late{hint}"
                ));
            }
        }
        *self = Self { since: Instant::now(), replies: 0, late: 0, told: self.told };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clocks_start_with_the_first_request_and_run_by_their_scale() {
        let pacing = Pacing::new(Pace::Real { time_scale: 0.5 });
        let first = Instant::now() + Duration::from_millis(20);
        assert_eq!(pacing.drive_time(first), Nanos(0));
        pacing.begin(first);
        pacing.begin(first + Duration::from_secs(1)); // it has begun
        assert_eq!(pacing.drive_time(first + Duration::from_micros(30)), Nanos(60_000));
        assert_eq!(pacing.due(Nanos(60_001)) - pacing.moment(first), 30_001);
    }
}
