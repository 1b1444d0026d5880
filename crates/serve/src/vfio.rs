//! Virtual machines that attach the drive over vfio-user, each on a socket of its own, one at a time.
//!
//! A function ([`flashwright_nvme::vfio`]) turns messages and queues into requests for the drive, and answers into completions;
//! here it has its socket. While commands come, its shadow doorbells are looked at, and no message is needed; before whoever looks
//! goes to sleep it arms them, so that the next command rings.

use crate::connection::{BATCH_BYTES, End, PATIENCE, came, send_patiently};
use crate::exec::{Drive, Executor};
use crate::guest::{Guest, WithDescriptors};
use crate::input::Input;
use crate::listen::Stream;
use crate::nvme::{self, LOOK, batch};
use crate::replies::Replies;
use crate::served::Served;
use crate::shared::Shared;
use flashwright_nvme::vfio::{Function, Queues};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a machine waits for the one before it to be gone.
const HANDOVER: Duration = Duration::from_secs(1);

/// The one place at a socket.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seat(Arc<AtomicBool>);

/// That it is taken, until this is dropped.
#[derive(Debug)]
pub(crate) struct Taken(Arc<AtomicBool>);

impl Seat {
    /// Takes the place. A machine that was killed and begins again finds its own place taken for a moment, so this waits for one.
    pub fn take(&self) -> Option<Taken> {
        let since = Instant::now();
        while self.0.swap(true, Ordering::AcqRel) {
            if since.elapsed() >= HANDOVER {
                return None;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Some(Taken(self.0.clone()))
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// The function of a machine, which has its place.
#[derive(Debug)]
pub(crate) struct Session {
    pub function: Function,
    begun: Instant,
    looked: Instant,
    _seat: Taken,
}

impl Session {
    /// Of a machine that has just connected. None if there are too many controllers.
    pub fn begin<S: Served>(drive: &mut Drive<S>, seat: Taken) -> Option<Self> {
        let function = Function::new(drive.subsystem.as_mut()?).ok()?;
        let now = Instant::now();
        Some(Self { function, begun: now, looked: now, _seat: seat })
    }

    /// Takes what has come. Returns the bytes taken.
    pub fn feed<S: Served>(&mut self, drive: &mut Drive<S>, replies: &mut Replies, input: &[u8]) -> usize {
        let Replies::Vfio(queues) = replies else { return 0 };
        let taken = {
            let Some((subsystem, mut behind)) = drive.with_subsystem() else { return 0 };
            self.function.feed(queues, subsystem, &mut behind, input)
        };
        // What was answered and can't be kept must not be seen.
        if drive.keep_namespaces().is_err() {
            self.function.give_up(queues);
        }
        taken
    }

    /// Whether the connection is over, looked at now and then. Tells of events on the way.
    pub fn look<S: Served>(&mut self, drive: &mut Drive<S>, replies: &mut Replies) -> Option<End> {
        let (Some((subsystem, mut behind)), Replies::Vfio(queues)) = (drive.with_subsystem(), replies) else {
            return Some(End::Broken);
        };
        if self.function.is_broken() || !self.function.is_open() && self.begun.elapsed() > PATIENCE {
            return Some(End::Broken);
        }
        if self.looked.elapsed() >= nvme::HEALTH_LOOK {
            self.looked = Instant::now();
            subsystem.look(&mut behind);
        }
        self.function.tell_events(queues, subsystem);
        None
    }

    /// The connection has ended.
    pub fn leave<S: Served>(&self, drive: &mut Drive<S>) {
        if let Some(subsystem) = &mut drive.subsystem {
            self.function.leave(subsystem);
        }
    }
}

/// What goes back to a machine.
pub(crate) fn replies() -> Replies {
    Replies::Vfio(Box::new(Queues::new(Guest::new())))
}

/// Carries out requests as fast as they go, until the connection ends.
pub(crate) fn transmit<S: Served>(shared: &Shared<S>, stream: &Stream, input: &mut Input, session: Session) -> End {
    let mut session = nvme::Session::Vfio(Box::new(session));
    let (mut replies, mut executor) = (replies(), Executor::default());
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
    session: &mut nvme::Session,
    replies: &mut Replies,
    executor: &mut Executor,
) -> End {
    let _ = stream.set_timeout(Some(LOOK));
    let is_stuck = |since: Instant| since.elapsed() > PATIENCE;
    let mut looked = Instant::now();
    let mut wait = LOOK;
    loop {
        if let Err(end) = receive(stream, input, session.message(), replies, wait) {
            return end;
        }
        let Some(mut drive) = shared.drive() else { return End::InOrder };
        let mut goes_on = batch(&mut drive, session, replies, input, executor);
        goes_on |= session.is_held() || !session.ready().is_empty();
        if looked.elapsed() >= LOOK || session.is_broken() {
            looked = Instant::now();
            if let Some(end) = session.look(&mut drive, replies) {
                let _ = send_patiently(stream, replies.out(), &is_stuck);
                return end;
            }
        }
        drop(drive);
        goes_on |= replies.flush();
        if let Err(end) = send_patiently(stream, replies.out(), &is_stuck) {
            return end;
        }
        if replies.out().capacity() > 2 * BATCH_BYTES {
            *replies.out() = Vec::new();
        }
        wait = if goes_on || replies.arm() { Duration::ZERO } else { LOOK };
    }
}

/// Reads what has come, or comes within a time.
fn receive(
    stream: &Stream,
    input: &mut Input,
    message: usize,
    replies: &mut Replies,
    wait: Duration,
) -> Result<(), End> {
    let wait = Timespec { tv_sec: 0, tv_nsec: i64::from(wait.subsec_nanos()) };
    let mut sockets = [PollFd::new(stream, PollFlags::IN)];
    let Replies::Vfio(queues) = replies else { return Err(End::Broken) };
    if poll(&mut sockets, Some(&wait)).is_ok() && sockets[0].revents().is_empty() {
        return Ok(());
    }
    let read = input.read(WithDescriptors { stream, guest: &mut queues.host }, message);
    came(&read, input).map(drop)
}
