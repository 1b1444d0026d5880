//! A connection: its negotiation, and its requests as fast as they go.
//!
//! Without pacing, a connection takes all requests that its socket holds, carries them out under one lock of the drive, and
//! sends all replies at once. Whoever reads or writes more than a batch at once needs room for it, which all clients share
//! ([`crate::Settings::in_flight_max`]).

use crate::command::{Taken, take};
use crate::exec::Executor;
use crate::input::Input;
use crate::listen::Stream;
use crate::negotiate::{Agreed, Negotiation, Progress};
use crate::replies::Replies;
use crate::served::Served;
use crate::shared::Shared;
use crate::wire::{self, Errno, Kind, REQUEST_BYTES};
use flashwright_block::Nanos;
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// How long a client may take for the negotiation, and within it for a message; and how long one that has room may do
/// nothing while others wait for it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// The same where no other client finds a place.
const PATIENCE_FULL: Duration = Duration::from_secs(2);
/// Bytes of requests and replies after which replies are sent.
pub(crate) const BATCH_BYTES: usize = 1 << 20;
/// Interval between two looks at whether others wait for room, or for a place.
const LOOK: Duration = Duration::from_secs(1);

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The client said so, or closed between two messages, or the server stops.
    InOrder,
    /// The client broke the protocol, or vanished in the midst of a message.
    Broken,
}

/// Negotiates. None if the connection is over.
pub(crate) fn negotiate<S>(shared: &Shared<S>, stream: &Stream, input: &mut Input) -> Result<Agreed, End> {
    let _ = stream.set_timeout(Some(LOOK));
    let begun = Instant::now();
    let is_late = || begun.elapsed() > PATIENCE || begun.elapsed() > PATIENCE_FULL && shared.is_full();
    let (mut negotiation, mut out) = (Negotiation::default(), Vec::new());
    Negotiation::greet(&mut out);
    loop {
        let (taken, progress) = negotiation.step(&shared.export, input.rest(), &mut out);
        input.take(taken);
        if progress == Progress::Answered {
            continue;
        }
        let sent = send_patiently(stream, &mut out, &|_| is_late());
        if progress != Progress::Ended {
            sent?; // whoever ends the negotiation need not wait for the answer
        }
        match progress {
            Progress::Answered => {}
            Progress::More if is_late() => return Err(End::Broken),
            Progress::More => {
                let read = input.read(stream, 1);
                came(&read, input)?;
            }
            Progress::Transmission(agreed) => {
                let _ = stream.set_timeout(None);
                return Ok(agreed);
            }
            Progress::Ended => return Err(End::InOrder),
            Progress::Broken(_) => return Err(End::Broken),
        }
    }
}

fn send(mut stream: &Stream, out: &mut Vec<u8>) -> Result<(), End> {
    let sent = stream.write_all(out);
    out.clear();
    sent.map_err(|_| End::Broken)
}

/// Reads more.
fn read(stream: &Stream, input: &mut Input, message: usize) -> Result<(), End> {
    loop {
        match input.read(stream, message) {
            Ok(0) if input.rest().is_empty() => return Err(End::InOrder),
            Ok(0) => return Err(End::Broken),
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Err(End::Broken),
        }
    }
}

/// Carries out requests as fast as they go, until the connection ends.
pub(crate) fn transmit<S: Served>(shared: &Shared<S>, stream: &Stream, input: &mut Input, agreed: Agreed) -> End {
    let (mut executor, mut replies) = (Executor::default(), Replies::nbd(agreed.structured));
    loop {
        let step = step(shared, stream, input, agreed, &mut executor, &mut replies);
        if let Err(end) = step {
            if shared.is_stopping() {
                shared.drop_commands(input, agreed);
            }
            return end;
        }
        if replies.out().capacity() > 2 * BATCH_BYTES {
            *replies.out() = Vec::new();
        }
    }
}

/// Reads what is missing of the next request, or carries out those that are whole.
fn step<S: Served>(
    shared: &Shared<S>,
    stream: &Stream,
    input: &mut Input,
    agreed: Agreed,
    executor: &mut Executor,
    replies: &mut Replies,
) -> Result<(), End> {
    let (_, first) = take(input.rest(), &shared.export, agreed.allocation);
    let long = match first {
        Taken::Command(command, _) if command.kind == Kind::Read => command.length as usize,
        Taken::More(message) => message,
        _ => 0,
    };
    if long <= BATCH_BYTES {
        return match first {
            Taken::More(message) => read(stream, input, message),
            _ => batch(shared, input, agreed, executor, replies).and(send(stream, replies.out())),
        };
    }
    let message = if let Taken::More(message) = first { message } else { 0 };
    let _room = shared.rooms.take(long as u64, shared.in_flight_max, || shared.is_stopping()).ok_or(End::InOrder)?;
    let _ = stream.set_timeout(Some(LOOK));
    let is_stuck = |since: Instant| since.elapsed() > PATIENCE && shared.rooms.are_wanted();
    let mut done = Ok(());
    while input.rest().len() < message && done.is_ok() {
        done = patiently(&is_stuck, || input.read(stream, message)).map(|_| ());
    }
    done = done.and_then(|()| {
        batch(shared, input, agreed, executor, replies)?;
        send_patiently(stream, replies.out(), &is_stuck)
    });
    let _ = stream.set_timeout(None);
    done
}

/// Sends all to a client that may take its time.
pub(crate) fn send_patiently(
    mut stream: &Stream,
    out: &mut Vec<u8>,
    is_stuck: &impl Fn(Instant) -> bool,
) -> Result<(), End> {
    let mut left = out.as_slice();
    while !left.is_empty() {
        left = &left[patiently(is_stuck, || stream.write(left))?..];
    }
    out.clear();
    Ok(())
}

/// Tries until something moves. Fails where nothing does, and whoever asks has no patience left.
fn patiently(is_stuck: &impl Fn(Instant) -> bool, mut call: impl FnMut() -> io::Result<usize>) -> Result<usize, End> {
    let since = Instant::now();
    loop {
        match call() {
            Ok(0) => return Err(End::Broken),
            Ok(count) => return Ok(count),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut if !is_stuck(since) => {}
                io::ErrorKind::Interrupted => {}
                _ => return Err(End::Broken),
            },
        }
    }
}

/// Carries out the requests that have come, up to the size of a batch; the first in any case.
fn batch<S: Served>(
    shared: &Shared<S>,
    input: &mut Input,
    agreed: Agreed,
    executor: &mut Executor,
    replies: &mut Replies,
) -> Result<(), End> {
    let Some(mut drive) = shared.drive() else {
        refuse_all(shared, input, agreed, replies);
        return Err(End::InOrder);
    };
    let mut bytes = 0;
    let result = loop {
        let (count, taken) = take(input.rest(), &shared.export, agreed.allocation);
        match taken {
            Taken::Command(command, _) if bytes > 0 && bytes + command.length as usize > BATCH_BYTES => break Ok(()),
            Taken::Command(command, data) => {
                executor.begin(&mut drive, replies, 0, (command, data), Nanos(0));
                bytes += REQUEST_BYTES + command.length as usize;
            }
            Taken::Refused { cookie, errno, why } => replies.refuse(cookie, errno, why),
            Taken::More(_) => break Ok(()),
            Taken::Disconnect => break Err(End::InOrder),
            Taken::Broken(_) => break Err(End::Broken),
        }
        input.take(count);
        if bytes >= BATCH_BYTES {
            break Ok(());
        }
    };
    executor.reap(&mut drive, replies, Nanos(u64::MAX));
    result
}

/// Answers the requests that have come when there is no drive any more.
#[cold]
fn refuse_all<S>(shared: &Shared<S>, input: &mut Input, agreed: Agreed, replies: &mut Replies) {
    loop {
        let (count, taken) = take(input.rest(), &shared.export, agreed.allocation);
        match taken {
            Taken::Command(command, _) => {
                replies.refuse(command.cookie, Errno::Shutdown, "the drive is no longer served");
            }
            Taken::Refused { cookie, errno, why } => replies.refuse(cookie, errno, why),
            Taken::More(_) | Taken::Disconnect | Taken::Broken(_) => return,
        }
        input.take(count);
    }
}

const _: () = assert!(wire::PAYLOAD_MAX as usize > BATCH_BYTES, "one read may be larger than a batch");

/// Whether a read brought bytes; if not, nothing came in time.
///
/// # Errors
/// How the connection has ended.
pub(crate) fn came(read: &io::Result<usize>, input: &Input) -> Result<bool, End> {
    match read {
        Ok(0) if input.rest().is_empty() => Err(End::InOrder),
        Ok(0) => Err(End::Broken),
        Ok(_) => Ok(true),
        Err(error) if waits(error) => Ok(false),
        Err(_) => Err(End::Broken),
    }
}

/// Whether a socket has nothing to give or to take yet.
pub(crate) fn waits(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}
