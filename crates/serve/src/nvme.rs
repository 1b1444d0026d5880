//! Clients that speak NVMe: their sessions, and the drive that these ask.
//!
//! A session of NVMe/TCP ([`flashwright_nvme::tcp`]) turns bytes into requests for the drive and answers into bytes; here its
//! requests become commands of the executor, which every protocol has. [`vfio`] has the sessions of virtual machines.

use crate::command::Command;
use crate::connection::{BATCH_BYTES, End, PATIENCE, came, send_patiently};
use crate::exec::{Drive, Executor, NOBODY, Outs};
use crate::input::Input;
use crate::listen::Stream;
use crate::record::Recorder;
use crate::replies::Replies;
use crate::served::Served;
use crate::shared::Shared;
use crate::vfio;
use crate::wire::{Kind, PAYLOAD_MAX, flag};
use flashwright_block::{Bytes, IoError, Moved, Nanos, Placed, Placement, RequestKind, SECTOR_BYTES, Zoned};
use flashwright_nvme::subsystem::Place;
use flashwright_nvme::tcp::{Reader, Ready, Writer};
use flashwright_nvme::wire::HOST_PAGE;
use flashwright_nvme::wire::identify::ZEROES_MAX;
use flashwright_nvme::{Health, Io, Media, Op, Subsystem};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Zeros reach a zone as one write, so that it is carried out or refused as a whole.
const _: () = assert!(HOST_PAGE << ZEROES_MAX <= PAYLOAD_MAX as usize);
/// Interval between two looks at whether a host is still there, and whether there is an event for it.
pub(crate) const LOOK: Duration = Duration::from_millis(250);
/// How often the health of the drive is looked at, for events.
pub(crate) const HEALTH_LOOK: Duration = Duration::from_secs(2);

/// The requests of a client, over its transport.
#[derive(Debug)]
pub(crate) enum Session {
    /// A connection of NVMe/TCP.
    Tcp(Box<Connection>),
    /// A function of a virtual machine.
    Vfio(Box<vfio::Session>),
}

impl Session {
    /// Requests for the drive, in order.
    pub fn ready(&self) -> &VecDeque<Ready> {
        match self {
            Self::Tcp(connection) => &connection.reader.ready,
            Self::Vfio(session) => &session.function.ready,
        }
    }

    /// Takes the next request for the drive, which is begun now.
    pub fn begin(&mut self) -> Option<Ready> {
        match self {
            Self::Tcp(connection) => connection.reader.begin(),
            Self::Vfio(session) => session.function.begin(),
        }
    }

    /// The next request for the drive. Requests whose namespace is gone are answered on the way.
    pub fn front<S: Served>(&mut self, drive: &Drive<S>, replies: &mut Replies) -> Option<Command> {
        let subsystem = drive.subsystem.as_ref()?;
        while let Some(ready) = self.ready().front() {
            match subsystem.check(&ready.io) {
                Ok(()) => {
                    let queue = self.place(replies, ready).map_or(0, |place| subsystem.queue_number(place));
                    let cookie = u64::from(ready.flight) | u64::from(ready.at) << 32;
                    return Some(asked(&ready.io, cookie, queue));
                }
                Err(status) => {
                    replies.ended(ready.flight, status);
                    self.begin();
                }
            }
        }
        None
    }

    /// Where the command of a request came from.
    fn place(&self, replies: &Replies, ready: &Ready) -> Option<Place> {
        match (self, replies) {
            (Self::Tcp(connection), _) => connection.reader.queue().map(|queue| queue.place),
            (Self::Vfio(session), Replies::Vfio(queues)) => Some(session.function.place(queues, ready)),
            _ => None,
        }
    }

    /// Whether it goes on without further bytes of its client: once requests have ended, or answers were sent.
    pub fn has_more(&self, replies: &Replies) -> bool {
        match (self, replies) {
            (Self::Tcp(connection), Replies::Nvme(writer)) => connection.reader.has_more(writer),
            (Self::Vfio(session), Replies::Vfio(queues)) => {
                session.function.is_held() || session.function.has_more(queues)
            }
            _ => false,
        }
    }

    /// Bytes of the message that is not whole yet.
    pub fn message(&self) -> usize {
        match self {
            Self::Tcp(connection) => connection.reader.message(),
            Self::Vfio(session) => session.function.message(),
        }
    }

    /// Whether the client broke its transport.
    pub fn is_broken(&self) -> bool {
        match self {
            Self::Tcp(connection) => connection.reader.is_broken(),
            Self::Vfio(session) => session.function.is_broken(),
        }
    }

    /// Whether messages that have come wait until answers were sent.
    pub fn is_held(&self) -> bool {
        matches!(self, Self::Vfio(session) if session.function.is_held())
    }

    /// Takes what has come. Returns the bytes taken.
    pub fn feed<S: Served>(&mut self, drive: &mut Drive<S>, replies: &mut Replies, input: &[u8]) -> usize {
        match self {
            Self::Tcp(connection) => connection.feed(drive, replies, input),
            Self::Vfio(session) => session.feed(drive, replies, input),
        }
    }

    /// Whether the connection is over, looked at now and then. Tells of events on the way.
    pub fn look<S: Served>(&mut self, drive: &mut Drive<S>, replies: &mut Replies) -> Option<End> {
        match self {
            Self::Tcp(connection) => connection.look(drive, replies),
            Self::Vfio(session) => session.look(drive, replies),
        }
    }

    /// The connection has ended.
    pub fn leave<S: Served>(&self, drive: &mut Drive<S>) {
        match self {
            Self::Tcp(connection) => connection.leave(drive),
            Self::Vfio(session) => session.leave(drive),
        }
    }
}

/// The requests of a connection of NVMe/TCP, with what tells whether its host is still there.
#[derive(Debug)]
pub(crate) struct Connection {
    reader: Reader,
    /// When its controller was last known to have taken a command, and how many it had taken then.
    heard: (Instant, u64),
    looked: Instant,
}

impl Connection {
    pub fn new() -> Self {
        let now = Instant::now();
        Self { reader: Reader::default(), heard: (now, 0), looked: now }
    }

    /// Takes what has come. Returns the bytes taken.
    pub fn feed<S: Served>(&mut self, drive: &mut Drive<S>, replies: &mut Replies, input: &[u8]) -> usize {
        let Replies::Nvme(writer) = replies else { return 0 };
        let answered = writer.out.len();
        let taken = {
            let Some((subsystem, mut behind)) = drive.with_subsystem() else { return 0 };
            self.reader.feed(writer, subsystem, &mut behind, input)
        };
        if drive.keep_namespaces().is_err() {
            self.reader.give_up(writer, answered);
        }
        taken
    }

    /// Whether the connection is over, looked at now and then: its controller is gone, the transport was broken, or the host
    /// has been silent for too long. Tells of events on the way.
    pub fn look<S: Served>(&mut self, drive: &mut Drive<S>, replies: &mut Replies) -> Option<End> {
        let (Some((subsystem, mut behind)), Replies::Nvme(writer)) = (drive.with_subsystem(), replies) else {
            return Some(End::Broken);
        };
        if self.reader.is_broken() {
            return Some(End::Broken);
        }
        if self.reader.is_over(subsystem) {
            return Some(End::InOrder);
        }
        let Some(place) = self.reader.queue().map(|queue| queue.place) else {
            return (self.heard.0.elapsed() > PATIENCE).then_some(End::Broken);
        };
        if place.queue != 0 {
            self.reader.obey_aborts(writer, subsystem);
            return None;
        }
        if self.looked.elapsed() >= HEALTH_LOOK {
            self.looked = Instant::now();
            subsystem.look(&mut behind);
        }
        self.reader.tell_events(writer, subsystem);
        let controller = subsystem.controller(place.controller)?;
        if controller.commands != self.heard.1 {
            self.heard = (Instant::now(), controller.commands);
        }
        let patience = Duration::from_millis(u64::from(controller.keep_alive_ms));
        // A host may be as late as the interval at which it is looked after.
        (!patience.is_zero() && self.heard.0.elapsed() > patience + LOOK).then_some(End::Broken)
    }

    /// The connection has ended.
    pub fn leave<S: Served>(&self, drive: &mut Drive<S>) {
        if let (Some(subsystem), Some(queue)) = (&mut drive.subsystem, self.reader.queue()) {
            subsystem.leave(queue);
        }
    }
}

/// The drive behind a subsystem.
pub(crate) struct Behind<'a, S> {
    served: &'a mut S,
    recorder: &'a mut Option<Recorder>,
    /// Commands that failed, power cuts, and mounts.
    counts: [u64; 3],
}

impl<S: Served> Media for Behind<'_, S> {
    fn health(&self) -> Health {
        let [media_errors, unsafe_shutdowns, mounts] = self.counts;
        Health { media_errors, unsafe_shutdowns, power_cycles: 1 + mounts, ..self.served.health() }
    }
    fn is_written(&self, first_byte: u64, bytes: u32) -> bool {
        let sectors = u64::from(bytes) / SECTOR_BYTES;
        self.served.stretch(first_byte / SECTOR_BYTES, sectors) == (true, sectors)
    }
    fn placed(&mut self) -> Option<&mut dyn Placed> {
        if self.served.placed().is_some() { Some(self) } else { None }
    }
    fn zoned(&mut self) -> Option<&mut dyn Zoned> {
        self.served.zoned()
    }
}

impl<S: Served> Behind<'_, S> {
    fn inner(&mut self) -> &mut dyn Placed {
        self.served.placed().expect("a drive that places data goes on to")
    }
}

/// A recording is told of what is no request.
impl<S: Served> Placed for Behind<'_, S> {
    fn placement(&mut self) -> Placement {
        self.inner().placement()
    }
    fn room(&mut self, stream: u16) -> Result<Bytes, IoError> {
        self.inner().room(stream)
    }
    fn renew(&mut self, stream: u16) -> Result<Option<Bytes>, IoError> {
        let left = self.inner().renew(stream)?;
        if let (Some(recorder), Some(_)) = (&mut *self.recorder, left) {
            recorder.note_update();
        }
        Ok(left)
    }
    fn watch_moves(&mut self, handles: u64) {
        self.inner().watch_moves(handles);
    }
    fn take_moved(&mut self) -> Vec<Moved> {
        self.inner().take_moved()
    }
}

impl<S: Served> Drive<S> {
    /// The subsystem, and the drive behind it.
    pub(crate) fn with_subsystem(&mut self) -> Option<(&mut Subsystem, Behind<'_, S>)> {
        let Self { served, recorder, subsystem, failed, cuts, mounts, .. } = self;
        let counts = [*failed, *cuts, *mounts];
        subsystem.as_mut().map(|subsystem| (subsystem, Behind { served, recorder, counts }))
    }

    /// Keeps with the drive what has changed of its namespaces.
    ///
    /// # Errors
    /// One line if it can't.
    pub(crate) fn keep_namespaces(&mut self) -> Result<(), String> {
        let kept = self.subsystem.as_mut().and_then(Subsystem::take_changed);
        kept.map_or(Ok(()), |kept| self.served.keep(&kept))
    }

    /// Begins what the subsystem asks of the drive for itself.
    pub(crate) fn begin_chores(&mut self, executor: &mut Executor, outs: &mut impl Outs, arrival: Nanos) {
        while let Some(io) = self.subsystem.as_mut().and_then(Subsystem::next_chore) {
            executor.begin(self, outs, NOBODY, (asked(&io, 0, 0), &[]), arrival);
        }
    }

    /// Carries out what the subsystem asks of the drive for itself, while nothing else is in the drive.
    pub(crate) fn carry_out_chores(&mut self) {
        let (mut executor, mut nobody) = (Executor::default(), replies());
        self.begin_chores(&mut executor, &mut nobody, Nanos(0));
        executor.reap(self, &mut nobody, Nanos(u64::MAX));
    }
}

/// A client of NVMe/TCP that has just connected.
pub(crate) fn session() -> Session {
    Session::Tcp(Box::new(Connection::new()))
}

/// The replies to a client of NVMe/TCP.
pub(crate) fn replies() -> Replies {
    Replies::Nvme(Box::<Writer>::default())
}

/// The flight of a command of a session, and where its data begin in those of the flight.
pub(crate) fn flight(command: &Command) -> (u32, u32) {
    ((command.cookie & 0xffff_ffff) as u32, (command.cookie >> 32) as u32)
}

/// What is asked of the drive, as a command of the executor.
fn asked(io: &Io, cookie: u64, queue: u16) -> Command {
    let (kind, flags) = match io.op {
        Op::Read => (Kind::Read, 0),
        Op::Write => (Kind::Write, 0),
        Op::Flush => (Kind::Flush, 0),
        Op::Deallocate => (Kind::Trim, 0),
        Op::WriteZeroes(true) => (Kind::WriteZeroes, 0),
        Op::WriteZeroes(false) => (Kind::WriteZeroes, flag::NO_HOLE),
        Op::Verify => (Kind::Cache, 0),
        Op::Append => (Kind::OfZones(RequestKind::Append), 0),
        Op::OpenZone => (Kind::OfZones(RequestKind::ZoneOpen), 0),
        Op::CloseZone => (Kind::OfZones(RequestKind::ZoneClose), 0),
        Op::FinishZone => (Kind::OfZones(RequestKind::ZoneFinish), 0),
        Op::ResetZone => (Kind::OfZones(RequestKind::ZoneReset), 0),
    };
    let flags = flags | if io.is_durable { flag::FUA } else { 0 };
    Command { cookie, kind, flags, offset: io.offset, length: io.bytes, stream: io.stream, queue }
}

/// Carries out requests as fast as they go, until the connection ends.
pub(crate) fn transmit<S: Served>(shared: &Shared<S>, stream: &Stream, input: &mut Input) -> End {
    let (mut session, mut replies, mut executor) = (session(), replies(), Executor::default());
    let end = exchange(shared, stream, input, &mut session, &mut replies, &mut executor);
    if let Some(mut drive) = shared.drive() {
        session.leave(&mut drive);
    }
    end
}

fn exchange<S: Served>(
    shared: &Shared<S>,
    stream: &Stream,
    input: &mut Input,
    session: &mut Session,
    replies: &mut Replies,
    executor: &mut Executor,
) -> End {
    let _ = stream.set_timeout(Some(LOOK));
    // A host may take its time for its answers, but not for ever.
    let is_stuck = |since: Instant| since.elapsed() > PATIENCE;
    let mut looked = Instant::now();
    loop {
        let read = input.read(stream, session.message());
        let came = match came(&read, input) {
            Ok(came) => came,
            Err(end) => return end,
        };
        loop {
            let Some(mut drive) = shared.drive() else { return End::InOrder };
            let goes_on = came && batch(&mut drive, session, replies, input, executor);
            let mut end = None;
            if !goes_on && (!came || session.is_broken() || looked.elapsed() >= LOOK) {
                looked = Instant::now();
                end = session.look(&mut drive, replies);
            }
            drop(drive);
            let sent = send_patiently(stream, replies.out(), &is_stuck);
            if let Some(end) = end.or(sent.err()) {
                return end;
            }
            if replies.out().capacity() > 2 * BATCH_BYTES {
                *replies.out() = Vec::new();
            }
            if !goes_on {
                break;
            }
        }
    }
}

/// Carries out what has come, up to the size of a batch. Returns whether there may be more.
pub(crate) fn batch<S: Served>(
    drive: &mut Drive<S>,
    session: &mut Session,
    replies: &mut Replies,
    input: &mut Input,
    executor: &mut Executor,
) -> bool {
    let mut bytes = 0;
    let is_full = loop {
        drive.begin_chores(executor, replies, Nanos(0));
        while let Some(command) = session.front(drive, replies) {
            let ready = session.begin().expect("there is a front");
            executor.begin(drive, replies, 0, (command, &ready.data), Nanos(0));
            bytes += command.length as usize;
            if bytes >= BATCH_BYTES {
                break;
            }
        }
        if bytes >= BATCH_BYTES {
            break true;
        }
        let taken = session.feed(drive, replies, input.rest());
        input.take(taken);
        if taken == 0 && session.ready().is_empty() {
            break false;
        }
    };
    executor.reap(drive, replies, Nanos(u64::MAX));
    let has_more = session.has_more(replies);
    // Answers may have made room for R2Ts, and commands that failed go to the error log.
    session.feed(drive, replies, &[]);
    is_full || has_more || !session.ready().is_empty()
}
