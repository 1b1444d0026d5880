//! A connection: its negotiation, and its requests as fast as they go.
//!
//! Without pacing, a connection takes all requests that its socket holds, carries them out under one lock of the drive, and
//! sends all replies at once.

use crate::command::{Taken, take};
use crate::exec::Executor;
use crate::input::Input;
use crate::listen::Stream;
use crate::negotiate::{Agreed, Negotiation, Progress};
use crate::served::Served;
use crate::shared::Shared;
use crate::wire::{self, Errno, REQUEST_BYTES, Style};
use flashwright_block::Nanos;
use std::io::{self, Write};
use std::time::Duration;

/// How long a client may take for each step of the negotiation.
const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes of requests and replies after which replies are sent.
const BATCH_BYTES: usize = 4 << 20;

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
    let _ = stream.set_timeout(Some(PATIENCE));
    let (mut negotiation, mut out) = (Negotiation::default(), Vec::new());
    Negotiation::greet(&mut out);
    loop {
        let (taken, progress) = negotiation.step(&shared.export, input.rest(), &mut out);
        input.take(taken);
        if progress == Progress::Answered {
            continue;
        }
        let sent = send(stream, &mut out);
        if progress != Progress::Ended {
            sent?; // whoever ends the negotiation need not wait for the answer
        }
        match progress {
            Progress::Answered => {}
            Progress::More => read(stream, input, 1)?,
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
    let (mut executor, mut out) = (Executor::default(), Vec::new());
    loop {
        let (message, end) = match batch(shared, input, agreed, &mut executor, &mut out) {
            Ok(message) => (message, None),
            Err(end) => (0, Some(end)),
        };
        let sent = send(stream, &mut out);
        if let Some(end) = end.or(sent.err()) {
            return end;
        }
        if message > 0
            && let Err(end) = read(stream, input, message)
        {
            return end;
        }
        if out.capacity() > 2 * BATCH_BYTES {
            out = Vec::new();
        }
    }
}

/// Carries out the requests that have come. Returns how many bytes the next one has that is not whole yet; 0 if there may be
/// more whole ones.
fn batch<S: Served>(
    shared: &Shared<S>,
    input: &mut Input,
    agreed: Agreed,
    executor: &mut Executor,
    out: &mut Vec<u8>,
) -> Result<usize, End> {
    let style = Style { structured: agreed.structured };
    if let (_, Taken::More(message)) = take(input.rest(), &shared.export, agreed.allocation) {
        return Ok(message);
    }
    let Some(mut drive) = shared.drive() else {
        refuse_all(shared, input, agreed, out);
        return Err(End::InOrder);
    };
    let mut bytes = 0;
    let result = loop {
        let (count, taken) = take(input.rest(), &shared.export, agreed.allocation);
        match taken {
            Taken::Command(command, data) => {
                executor.begin(&mut drive, out, 0, agreed, (command, data), Nanos(0));
                bytes += REQUEST_BYTES + command.length as usize;
            }
            Taken::Refused { cookie, errno, why } => style.put_error(out, cookie, errno, why),
            Taken::More(message) => break Ok(message),
            Taken::Disconnect => break Err(End::InOrder),
            Taken::Broken(_) => break Err(End::Broken),
        }
        input.take(count);
        if bytes >= BATCH_BYTES {
            break Ok(0);
        }
    };
    executor.reap(&mut drive, out, Nanos(u64::MAX));
    result
}

/// Answers the requests that have come when there is no drive any more.
#[cold]
fn refuse_all<S>(shared: &Shared<S>, input: &mut Input, agreed: Agreed, out: &mut Vec<u8>) {
    let style = Style { structured: agreed.structured };
    loop {
        let (count, taken) = take(input.rest(), &shared.export, agreed.allocation);
        match taken {
            Taken::Command(command, _) => {
                style.put_error(out, command.cookie, Errno::Shutdown, "the drive is no longer served");
            }
            Taken::Refused { cookie, errno, why } => style.put_error(out, cookie, errno, why),
            Taken::More(_) | Taken::Disconnect | Taken::Broken(_) => return,
        }
        input.take(count);
    }
}

/// Tells a client that has just connected that there is no place, as the protocol allows: by ending the connection.
pub(crate) fn turn_away(stream: &Stream) {
    stream.shut(true);
}

const _: () = assert!(wire::PAYLOAD_MAX as usize > BATCH_BYTES, "one read may be larger than a batch");
