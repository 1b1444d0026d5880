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
//!
//! A reply may be due much later, so what waits for it is bounded: in commands and bytes for each client, and in bytes for all
//! ([`crate::Settings::in_flight_max`]). A command beyond that stays in its client's input, nothing more is read from that
//! client, and its socket fills.

use crate::command::{Command, Taken, take};
use crate::connection::End;
use crate::exec::{Drive, Executor, Outs};
use crate::guest::WithDescriptors;
use crate::input::Input;
use crate::listen::Stream;
use crate::negotiate::Agreed;
use crate::nvme::{self, Session};
use crate::replies::Replies;
use crate::served::Served;
use crate::shared::{Bell, Farewell, GRACE, Shared, locked};
use crate::vfio;
use crate::wire::{Kind, PAYLOAD_MAX, REQUEST_BYTES};
use flashwright_block::{Completion, Nanos, TIME_MAX};
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
            Pace::Real { time_scale } => ((since as f64 / time_scale) as u64).min(TIME_MAX.0),
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

/// What a connection speaks.
#[derive(Debug)]
pub(crate) enum Requests {
    /// NBD, after its negotiation.
    Nbd(Agreed),
    /// NVMe; none while its commands are begun.
    Nvme(Option<Session>),
}

/// A connection.
struct Client {
    number: u64,
    stream: Stream,
    requests: Requests,
    input: Input,
    /// Bytes of the message that is not whole yet.
    message: usize,
    replies: Replies,
    sent: usize,
    /// When it last took a part of its replies, or had none to take.
    took: Instant,
    /// Commands in the drive, the bytes that they ask for or bring, and those among them that are kept in memory.
    in_flight: usize,
    in_flight_bytes: u64,
    in_flight_kept: u64,
    /// Whether a command of it is whole and waits until others are answered.
    waits: bool,
    /// Whether it has sent commands of which no message tells.
    has_rung: bool,
    /// The client sends nothing more: how it ends once it is answered.
    end: Option<End>,
    /// It takes no replies any more.
    is_gone: bool,
}

/// Commands of a client in the drive at once.
const IN_FLIGHT_MAX: usize = 4096;
/// A client has this part of the bytes of all.
const CLIENT_SHARE: u64 = 4;
/// While others wait for room, a client that takes none of its replies for so long is ended.
const PATIENCE: Duration = Duration::from_secs(30);
/// A longer buffer of replies is given back once they are sent.
const OUT_KEPT: usize = 4 << 20;
/// An event that is nearer than this is waited for without sleeping: the machine would wake up too late.
const SPIN: Duration = Duration::from_micros(25);
/// A drive that nobody asks is advanced this often, so that figures show what it does meanwhile.
const IDLE: Duration = Duration::from_millis(100);

/// Bytes that a command asks for, brings, or changes, which is also what it costs the drive.
fn asked_bytes(command: &Command) -> u64 {
    if command.kind == Kind::BlockStatus { 0 } else { u64::from(command.length) }
}

/// Bytes of a command that the server or the drive keeps until it is answered.
fn kept_bytes(command: &Command) -> u64 {
    if matches!(command.kind, Kind::Read | Kind::Write) { u64::from(command.length) } else { 0 }
}

impl Client {
    fn wants_more(&self) -> bool {
        self.end.is_none() && !self.waits && self.in_flight < IN_FLIGHT_MAX
    }

    fn is_over(&self) -> bool {
        self.end.is_some() && self.in_flight == 0 && (self.is_gone || (self.replies.bytes() == 0 && !self.waits))
    }

    fn unsent(&self) -> u64 {
        (self.replies.bytes() - self.sent) as u64
    }

    /// Bytes in memory for it, beside what comes of a message that is not whole yet.
    fn kept(&self) -> u64 {
        self.in_flight_kept + self.unsent()
    }

    /// Whether it may have another command of `bytes` in the drive, where a client may have `share` of them.
    fn has_room(&self, bytes: u64, share: u64) -> bool {
        let is_idle = self.in_flight == 0 && self.replies.bytes() == 0;
        is_idle || (self.in_flight < IN_FLIGHT_MAX && self.in_flight_bytes + self.unsent() + bytes <= share)
    }

    /// Whether a command waits for the client's own share of the bytes, and whether it fits beside what is kept for `others`,
    /// of `most` for all.
    fn room(&self, command: &Command, others: u64, most: u64) -> (bool, bool) {
        let all = others + self.kept();
        let waits = !self.has_room(asked_bytes(command), share_of(most));
        // Who waits for its own share keeps nobody else waiting.
        (waits, waits || all == 0 || all + kept_bytes(command) <= most)
    }

    /// A command of it is begun.
    fn take_up(&mut self, command: &Command) {
        self.in_flight += 1;
        self.in_flight_bytes += asked_bytes(command);
        self.in_flight_kept += kept_bytes(command);
    }

    /// Nobody is there to answer any more: commands that were not begun never will be.
    fn lose(&mut self) {
        (self.is_gone, self.waits) = (true, false);
        self.end.get_or_insert(End::Broken);
        (*self.replies.out(), self.sent) = (Vec::new(), 0);
        self.input = Input::empty();
    }

    /// Sends what it takes. Returns whether it took something.
    fn send(&mut self) -> bool {
        let before = self.unsent();
        self.has_rung = !self.is_gone && self.replies.flush();
        while self.sent < self.replies.bytes() && !self.is_gone {
            match (&self.stream).write(&self.replies.out()[self.sent..]) {
                Ok(count) if count > 0 => {
                    self.sent += count;
                    self.took = Instant::now();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return self.unsent() < before,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => self.lose(),
            }
        }
        (self.sent, self.took) = (0, Instant::now());
        let out = self.replies.out();
        out.clear();
        if out.capacity() > OUT_KEPT {
            *out = Vec::new();
        }
        before > 0
    }

    /// Ends it if its session is over.
    fn look<S: Served>(&mut self, drive: &mut Drive<S>) {
        if let Requests::Nvme(Some(session)) = &mut self.requests
            && let Some(end) = session.look(drive, &mut self.replies)
        {
            self.end.get_or_insert(end);
        }
    }

    /// Reads what has come. Returns whether something has.
    fn receive(&mut self, is_stopping: bool) -> bool {
        let read = match &mut self.replies {
            Replies::Vfio(queues) => {
                let from = WithDescriptors { stream: &self.stream, guest: &mut queues.host };
                self.input.read(from, self.message)
            }
            _ => self.input.read(&self.stream, self.message),
        };
        match read {
            // Nothing may be written into the memory of a machine that has let go of the drive.
            Ok(0) if !is_stopping && matches!(self.replies, Replies::Vfio(_)) => {
                self.end = Some(if self.input.rest().is_empty() { End::InOrder } else { End::Broken });
                self.lose();
            }
            Ok(0) => self.end = Some(if self.input.rest().is_empty() { End::InOrder } else { End::Broken }),
            Ok(_) => return true,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => self.lose(),
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
    fn replies(&mut self, client: u32) -> Option<&mut Replies> {
        let client = self.slots[client as usize].as_mut()?;
        if client.is_gone { None } else { Some(&mut client.replies) }
    }

    fn ended(&mut self, client: u32, command: &Command, end: Nanos) {
        if let Some(client) = &mut self.slots[client as usize] {
            client.in_flight -= 1;
            client.in_flight_bytes -= asked_bytes(command);
            client.in_flight_kept -= kept_bytes(command);
            if let Requests::Nvme(Some(session)) = &client.requests {
                client.waits |= session.has_more(&client.replies);
            }
        }
        if end > Nanos(0) {
            let now = self.pacing.moment(Instant::now());
            self.late.push(now.saturating_sub(self.pacing.due(end)));
        }
    }
}

impl Clients<'_> {
    /// Whether there are some, all `open` connections are among them, and nobody waits for an answer.
    fn are_gone(&self, open: u64) -> bool {
        let mut there = self.slots.iter().flatten();
        open > 0 && self.slots.iter().flatten().count() as u64 == open && there.all(|client| client.is_gone)
    }

    /// Whether a machine has sent commands of which no message tells. Before a sleep, machines are asked to tell.
    fn have_rung(&mut self, sleeps: bool) -> bool {
        let mut any = false;
        for client in self.slots.iter_mut().flatten().filter(|client| !client.waits && client.end.is_none()) {
            client.has_rung |= sleeps && !client.has_rung && client.replies.arm();
            any |= client.has_rung;
        }
        any
    }

    /// Makes room for those that wait: ends clients that have taken nothing of their replies for long.
    fn end_those_that_take_nothing(&mut self) {
        let stuck = |client: &&mut Client| client.replies.bytes() > 0 && client.took.elapsed() > PATIENCE;
        self.slots.iter_mut().flatten().filter(stuck).for_each(Client::lose);
    }
}

impl Pacer {
    pub fn new(wakes: Option<OwnedFd>) -> io::Result<Self> {
        Ok(Self { fresh: Mutex::default(), bell: Bell::new()?, wakes })
    }

    /// Takes over a connection that has negotiated, if its protocol does.
    pub fn take<S>(&self, shared: &Shared<S>, number: u64, stream: Stream, input: Input, requests: Requests) {
        let replies = match requests {
            Requests::Nbd(agreed) => Replies::nbd(agreed.structured),
            Requests::Nvme(Some(Session::Vfio(_))) => vfio::replies(),
            Requests::Nvme(_) => nvme::replies(),
        };
        if stream.set_nonblocking(true).is_err() {
            return shared.leave(number, true);
        }
        let client = Client {
            number,
            stream,
            requests,
            input,
            message: REQUEST_BYTES,
            replies,
            sent: 0,
            took: Instant::now(),
            in_flight: 0,
            in_flight_bytes: 0,
            in_flight_kept: 0,
            waits: false,
            has_rung: false,
            end: None,
            is_gone: false,
        };
        locked(&self.fresh).push(client);
        self.bell.ring();
    }

    /// Serves until the server stops and every client is answered, or has had its grace.
    pub fn run<S: Served>(&self, shared: &Shared<S>) {
        let _farewell = Farewell(shared, None);
        // A wait may end a nanosecond late, instead of the usual 50 us.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        let mut clients = Clients { slots: Vec::new(), pacing: &shared.pacing, late: Vec::new() };
        let mut executor = if self.wakes.is_some() { Executor::one_by_one() } else { Executor::default() };
        let mut watch = Watch::new();
        let (mut wait, mut completion) = (Some(IDLE), Completion::default());
        let (mut first, mut stopping, mut looked) = (0, None, Instant::now());
        loop {
            let ready = self.wait(shared, &mut clients, wait);
            let came = Instant::now();
            self.admit(&mut clients);
            let is_stopping = shared.is_stopping();
            let read =
                |(client, ready): (&mut Client, &bool)| *ready && client.wants_more() && client.receive(is_stopping);
            let mut has_more = false;
            for (slot, ready) in clients.slots.iter_mut().zip(&ready) {
                has_more |= slot.as_mut().is_some_and(|client| read((client, ready)));
            }
            let Some(mut drive) = shared.drive() else {
                shared.each_socket(|socket| socket.shut(true));
                break;
            };
            has_more |= ready.is_empty(); // those that were just admitted may have sent requests with their last option
            if shared.is_stopping() {
                let since: &mut Instant = stopping.get_or_insert_with(Instant::now);
                if since.elapsed() >= GRACE || clients.are_gone(shared.counts.open.load(Ordering::Relaxed)) {
                    drop_rest(shared, &mut drive, &mut executor, &mut clients);
                    break;
                }
            }
            drive.begin_chores(&mut executor, &mut clients, shared.pacing.drive_time(came));
            if has_more || clients.slots.iter().flatten().any(|client| client.waits || client.has_rung) {
                first = begin_all(shared, &mut drive, &mut executor, &mut clients, first, came);
            }
            if looked.elapsed() >= nvme::LOOK {
                looked = Instant::now();
                clients.slots.iter_mut().flatten().for_each(|client| client.look(&mut drive));
            }
            if self.wakes.is_some() {
                drive.served.clients_wait();
            }
            let now = shared.pacing.drive_time(Instant::now());
            let in_flight = executor.in_flight();
            executor.reap(&mut drive, &mut clients, now);
            let mut has_room = executor.in_flight() < in_flight;
            let next = if executor.in_flight() > 0 {
                drive.served.none_completes_before().unwrap_or(now)
            } else {
                if drive.recorder.is_none() && now > Nanos(0) {
                    // The clock goes on for the drive too: it may clean when it is idle.
                    while drive.served.wait(now, &mut completion) == Ok(true) {
                        drive.note_end(&completion);
                    }
                }
                Nanos(u64::MAX)
            };
            drop(drive);
            for slot in &mut clients.slots {
                if let Some(client) = slot {
                    has_room |= client.send();
                }
                if slot.as_ref().is_some_and(Client::is_over)
                    && let Some(client) = slot.take()
                {
                    if let (Requests::Nvme(Some(session)), Some(mut drive)) = (&client.requests, shared.drive()) {
                        session.leave(&mut drive);
                    }
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
            let goes_on = has_room && clients.slots.iter().flatten().any(|client| client.waits);
            wait = if goes_on { None } else { self.sleep(shared, next) };
            if clients.have_rung(wait.is_some()) {
                wait = None;
            }
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
    fn wait<S>(&self, shared: &Shared<S>, clients: &mut Clients<'_>, wait: Option<Duration>) -> Vec<bool> {
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
            wanted.set(PollFlags::OUT, client.replies.bytes() > 0);
            // Without a wish, whether the client has gone is told all the same.
            slots.push((!client.is_gone).then_some(all.len()));
            if !client.is_gone {
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
        let gone = PollFlags::HUP | PollFlags::ERR;
        let found: Vec<PollFlags> =
            slots.iter().map(|at| at.map_or(PollFlags::empty(), |at| all[at].revents())).collect();
        drop(all);
        for (client, found) in clients.slots.iter_mut().zip(&found) {
            // What it sent before it went is read as long as there is room for it.
            if let Some(client) = client
                && found.intersects(gone)
                && !client.wants_more()
            {
                client.lose();
            }
        }
        found.iter().map(|found| found.intersects(PollFlags::IN | gone)).collect()
    }

    fn admit(&self, clients: &mut Clients<'_>) {
        for client in std::mem::take(&mut *locked(&self.fresh)) {
            match clients.slots.iter_mut().find(|slot| slot.is_none()) {
                Some(slot) => *slot = Some(client),
                None => clients.slots.push(Some(client)),
            }
        }
    }
}

/// Begins the commands that are whole, as far as there is room; they came at `came`. Begins with the client in slot `first`.
/// Returns where to begin the next time: with the client that finds the bytes of all taken, so that others don't overtake it.
fn begin_all<S: Served>(
    shared: &Shared<S>,
    drive: &mut Drive<S>,
    executor: &mut Executor,
    clients: &mut Clients<'_>,
    first: usize,
    came: Instant,
) -> usize {
    let count = clients.slots.len();
    let mut all: u64 = clients.slots.iter().map(kept).sum();
    for slot in (first..count).chain(0..first.min(count)) {
        let others = all - kept(&clients.slots[slot]);
        let fits = begin_of(shared, drive, executor, clients, (slot, others), came);
        all = others + kept(&clients.slots[slot]);
        if !fits {
            clients.end_those_that_take_nothing();
            return slot;
        }
    }
    0
}

/// Begins the commands of a client, where `others` is what is kept for the others. Returns false if one of them finds the bytes
/// of all clients taken.
fn begin_of<S: Served>(
    shared: &Shared<S>,
    drive: &mut Drive<S>,
    executor: &mut Executor,
    clients: &mut Clients<'_>,
    (slot, others): (usize, u64),
    came: Instant,
) -> bool {
    let Some(client) = &mut clients.slots[slot] else { return true };
    if client.is_gone {
        return true;
    }
    let agreed = match &mut client.requests {
        Requests::Nbd(agreed) => *agreed,
        Requests::Nvme(session) => {
            let Some(mut session) = session.take() else { return true };
            let fits = begin_of_session(shared, drive, executor, clients, (slot, others), came, &mut session);
            if let Some(client) = &mut clients.slots[slot] {
                client.requests = Requests::Nvme(Some(session));
            }
            return fits;
        }
    };
    let mut input = std::mem::replace(&mut client.input, Input::empty());
    let (mut end, mut message, mut waits, mut fits) = (None, REQUEST_BYTES, false, true);
    while end.is_none() {
        let (count, taken) = take(input.rest(), &shared.export, agreed.allocation);
        match taken {
            Taken::Command(command, data) => {
                let Some(client) = &mut clients.slots[slot] else { break };
                (waits, fits) = client.room(&command, others, shared.in_flight_max);
                if waits || !fits {
                    break;
                }
                client.take_up(&command);
                set_off(shared, drive, executor, clients, (slot, came), (command, data));
            }
            Taken::Refused { cookie, errno, why } => {
                if let Some(client) = &mut clients.slots[slot] {
                    waits = !client.has_room(0, share_of(shared.in_flight_max));
                    if waits {
                        break;
                    }
                    client.replies.refuse(cookie, errno, why);
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
        (client.input, client.message, client.waits) = (input, message, waits || !fits);
        client.end = client.end.or(end);
    }
    fits
}

/// The same for a client that speaks NVMe.
fn begin_of_session<S: Served>(
    shared: &Shared<S>,
    drive: &mut Drive<S>,
    executor: &mut Executor,
    clients: &mut Clients<'_>,
    (slot, others): (usize, u64),
    came: Instant,
    session: &mut Session,
) -> bool {
    loop {
        drive.begin_chores(executor, clients, shared.pacing.drive_time(came));
        let Some(client) = &mut clients.slots[slot] else { return true };
        if let Some(command) = session.front(drive, &mut client.replies) {
            let (waits, fits) = client.room(&command, others, shared.in_flight_max);
            client.waits = waits || !fits;
            if client.waits {
                return fits;
            }
            client.take_up(&command);
            let ready = session.begin().expect("there is a front");
            set_off(shared, drive, executor, clients, (slot, came), (command, &ready.data));
            continue;
        }
        let taken = session.feed(drive, &mut client.replies, client.input.rest());
        client.input.take(taken);
        if taken == 0 && session.ready().is_empty() {
            (client.message, client.waits) = (session.message(), session.has_more(&client.replies));
            if session.is_broken() {
                client.end = client.end.or(Some(End::Broken));
            }
            return true;
        }
    }
}

/// Begins a command of the client in a slot, which came at `came`.
fn set_off<S: Served>(
    shared: &Shared<S>,
    drive: &mut Drive<S>,
    executor: &mut Executor,
    clients: &mut Clients<'_>,
    (slot, came): (usize, Instant),
    command: (Command, &[u8]),
) {
    shared.pacing.begin(came);
    let slot = u32::try_from(slot).expect("clients are few");
    executor.begin(drive, clients, slot, command, shared.pacing.drive_time(came));
}

/// The bytes of all that a client may have.
fn share_of(most: u64) -> u64 {
    (most / CLIENT_SHARE).max(u64::from(PAYLOAD_MAX))
}

fn kept(slot: &Option<Client>) -> u64 {
    slot.as_ref().map_or(0, Client::kept)
}

/// The end of a server whose grace is over. Of a simulated drive the commands in it are carried out without waiting for the
/// model's time, of a device they are waited for; those that were not begun, and replies that nobody takes, are dropped.
fn drop_rest<S: Served>(shared: &Shared<S>, drive: &mut Drive<S>, executor: &mut Executor, clients: &mut Clients<'_>) {
    let dropped = &shared.dropped;
    if shared.pacing.pace() == Pace::Device {
        while executor.in_flight() > 0 {
            drive.served.clients_wait();
            executor.reap(drive, clients, shared.pacing.drive_time(Instant::now()));
            std::thread::sleep(Duration::from_millis(1));
        }
    } else {
        dropped.early.fetch_add(executor.in_flight() as u64, Ordering::Relaxed);
        executor.reap(drive, clients, Nanos(u64::MAX));
    }
    for client in clients.slots.iter_mut().flatten() {
        client.send();
        dropped.reply_bytes.fetch_add(client.unsent(), Ordering::Relaxed);
        match &client.requests {
            Requests::Nbd(agreed) => shared.drop_commands(&mut client.input, *agreed),
            Requests::Nvme(Some(session)) => {
                dropped.commands.fetch_add(session.ready().len() as u64, Ordering::Relaxed);
            }
            Requests::Nvme(None) => {}
        }
        shared.leave(client.number, client.end == Some(End::Broken));
    }
    clients.slots.clear();
}

/// Judges each second whether the host keeps up.
struct Watch {
    since: Instant,
    replies: u64,
    late: u64,
    has_warned: bool,
}

/// A reply that is later than this is late; with a tenth of them late, the host does not keep up.
const LATE_NS: u64 = 1_000_000;
const LATE_SHARE: u64 = 10;
/// Replies in a second that are enough to judge by.
const REPLIES_MIN: u64 = 20;

impl Watch {
    fn new() -> Self {
        Self { since: Instant::now(), replies: 0, late: 0, has_warned: false }
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
            if !keeps_up && !self.has_warned {
                self.has_warned = true;
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
        *self = Self { since: Instant::now(), replies: 0, late: 0, has_warned: self.has_warned };
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
