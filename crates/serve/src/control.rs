//! Commands to a server: a line of JSON each, answered by a line of JSON.
//!
//! ```text
//!   {"command": "stats"}          {"result": {…}}
//!   {"command": "rest"}           {"error": "command: found …"}
//! ```

use crate::clients::serve_each;
use crate::listen::{Listener, Stream};
use crate::pace::Pace;
use crate::served::Served;
use crate::server::stats;
use crate::shared::{GRACE, Shared};
use flashwright_block::{Completion, Nanos};
use serde_json::{Value, json};
use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

/// A command that every device takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// The figures so far.
    Stats,
    /// Trim the whole drive.
    TrimAll,
    /// Note in the recording with data that something is done.
    Mark,
    /// End the server in order.
    Stop,
}

const ALL: [(&str, Command); 4] =
    [("stats", Command::Stats), ("trim-all", Command::TrimAll), ("mark", Command::Mark), ("stop", Command::Stop)];
/// Longest line of a command.
const LINE_MAX: usize = 64 << 10;
/// Control connections at once; each has a thread.
const CLIENTS_MAX: usize = 64;
/// Where all places are taken, a connection that asks nothing for so long gives its place away.
const PATIENCE: Duration = Duration::from_secs(2);
/// Interval between two looks at whether the server stops.
const LOOK: Duration = Duration::from_millis(100);

/// Answers one line.
pub(crate) fn answer<S: Served>(shared: &Shared<S>, line: &str) -> Value {
    match carry_out(shared, line) {
        Ok(result) => json!({ "result": result }),
        Err(error) => json!({ "error": error }),
    }
}

/// Carries out one line.
pub(crate) fn carry_out<S: Served>(shared: &Shared<S>, line: &str) -> Result<Value, String> {
    let wrong = || format!("command: found {:?}, expected a line such as {{\"command\": \"stats\"}}", line.trim());
    let asked: Value = serde_json::from_str(line).map_err(|_| wrong())?;
    let name = asked.get("command").and_then(Value::as_str).ok_or_else(wrong)?;
    let found = ALL.iter().find(|(known, _)| *known == name).map(|(_, command)| *command);
    let gone = || "the drive is gone: a thread of the server panicked".to_owned();
    match found {
        Some(Command::Stats) => Ok(stats(shared)),
        Some(Command::Stop) => {
            shared.want_stop();
            Ok(json!("stopping"))
        }
        Some(Command::TrimAll) => {
            if shared.pacing.pace() == Pace::Device {
                return Err(
                    "trim-all: found a device that exists, expected a simulated drive: `blkdiscard` trims a device"
                        .to_owned(),
                );
            }
            let mut drive = shared.drive().ok_or_else(gone)?;
            let arrival = shared.pacing.drive_time(Instant::now());
            let tags = drive.trim_all(arrival).map_err(|error| error.to_string())?;
            if shared.pacing.is_none() {
                // Nobody else has requests in flight while the drive is locked.
                let mut completion = Completion::default();
                while drive.served.wait(Nanos(u64::MAX), &mut completion) == Ok(true) {
                    drive.note_end(&completion);
                }
            }
            Ok(json!({ "requests": tags.len() }))
        }
        Some(Command::Mark) => {
            let text = asked.get("text").and_then(Value::as_str);
            let text = text.ok_or_else(|| "mark: found no text, expected one that names what is done".to_owned())?;
            let mut drive = shared.drive().ok_or_else(gone)?;
            match &mut drive.data_recorder {
                None => Err("mark: found no recording with data, expected a server with --record-data".to_owned()),
                Some(recorder) => {
                    let early = || "mark: the recording with data has ended early; the server says why".to_owned();
                    recorder.mark(text).then(|| json!({ "requests": recorder.written() })).ok_or_else(early)
                }
            }
        }
        None => {
            let mut drive = shared.drive().ok_or_else(gone)?;
            if drive.data_recorder.is_some() && matches!(name, "cut" | "mount" | "set") {
                return Err(format!(
                    "{name}: found a recording with data under way, which can't hold this; expected none"
                ));
            }
            let own = drive.served.command(name, &asked);
            if matches!(own, Some(Ok(_))) {
                drive.cuts += u64::from(name == "cut");
                drive.mounts += u64::from(name == "mount");
                if let Some(subsystem) = drive.subsystem.as_mut().filter(|_| name == "mount") {
                    subsystem.power_is_back();
                    // Paced, the thread that has all clients begins it; otherwise nothing is in a drive that is locked.
                    if shared.pacing.is_none() {
                        drive.carry_out_chores();
                    }
                }
            }
            if matches!(own, Some(Ok(_)))
                && matches!(name, "cut" | "mount" | "set")
                && let Some(recorder) = &mut drive.recorder
                && let Some(why) = recorder.note_change(name)
            {
                shared.note(why);
            }
            own.unwrap_or_else(|| {
                let known: Vec<&str> =
                    ALL.iter().map(|(known, _)| *known).chain(drive.served.commands().iter().copied()).collect();
                Err(format!("command: found {name:?}, expected one of {}", known.join(", ")))
            })
        }
    }
}

/// Takes connections until the server stops.
pub(crate) fn listen<S: Served>(listener: Listener, shared: &Shared<S>) {
    serve_each(listener, shared, ("ctl", CLIENTS_MAX), |stream, is_full| talk(shared, &stream, is_full));
}

/// Answers the lines of a connection, also those that came before the server stops.
fn talk<S: Served>(shared: &Shared<S>, stream: &Stream, is_full: &dyn Fn() -> bool) {
    if stream.set_timeout(Some(LOOK)).is_err() {
        return;
    }
    let (mut line, mut bytes, mut asked) = (Vec::new(), [0; 4096], Instant::now());
    let mut until = None; // after that, a client that goes on asking is no longer answered
    loop {
        let mut stream = stream;
        if shared.is_stopping() && Instant::now() > *until.get_or_insert_with(|| Instant::now() + GRACE) {
            return;
        }
        match stream.read(&mut bytes) {
            Ok(0) => return,
            Ok(count) => {
                for byte in &bytes[..count] {
                    if *byte != b'\n' {
                        line.push(*byte);
                        continue;
                    }
                    let mut answered = answer(shared, &String::from_utf8_lossy(&line)).to_string();
                    answered.push('\n');
                    line.clear();
                    asked = Instant::now();
                    if stream.write_all(answered.as_bytes()).is_err() {
                        return;
                    }
                }
                if line.len() > LINE_MAX {
                    return;
                }
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                if shared.is_stopping() {
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
        if asked.elapsed() > PATIENCE && is_full() {
            return;
        }
    }
}
