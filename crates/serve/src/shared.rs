//! What all threads of a server share.

use crate::command::{Taken, take};
use crate::exec::Drive;
use crate::input::Input;
use crate::listen::Stream;
use crate::negotiate::{Agreed, Export};
use crate::pace::Pacing;
use crate::watch::Sample;
use flashwright_sim::Latency;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::OwnedFd;
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// A server's state.
pub(crate) struct Shared<S> {
    pub export: Export,
    pub pacing: Pacing,
    drive: Mutex<Drive<S>>,
    /// A line for each thing that people should know.
    notes: Mutex<Vec<String>>,
    sockets: Mutex<BTreeMap<u64, Stream>>,
    pub counts: Counts,
    pub dropped: Dropped,
    /// See [`crate::Settings::in_flight_max`].
    pub in_flight_max: u64,
    pub rooms: Rooms,
    /// How late replies were, if they are paced.
    pub lateness: Mutex<Lateness>,
    /// Samples of every second, if somebody watches.
    pub samples: Mutex<VecDeque<Sample>>,
    pub started: Instant,
    stopping: AtomicBool,
    /// Readable once the server stops.
    pub bell: Bell,
    stop_wanted: (Mutex<bool>, Condvar),
}

/// How late replies left, compared with the drive's clock.
#[derive(Debug, Default)]
pub(crate) struct Lateness {
    pub all: Latency,
    /// Whether the host has kept up in the last second in which there was enough to judge by.
    pub keeps_up: Option<bool>,
    /// Seconds in which it has not.
    pub seconds_behind: u64,
}

/// What a server did not wait for when it stopped.
#[derive(Debug, Default)]
pub(crate) struct Dropped {
    /// Whole commands that had come and were not carried out.
    pub commands: AtomicU64,
    /// Requests that were carried out before the model's time.
    pub early: AtomicU64,
    /// Bytes of replies that their clients did not take.
    pub reply_bytes: AtomicU64,
}

impl Dropped {
    /// A line for people; none if all was waited for.
    pub fn note(&self) -> Option<String> {
        let parts = [
            (&self.commands, "commands that had come not carried out"),
            (&self.early, "requests carried out before the model's time"),
            (&self.reply_bytes, "bytes of replies not taken"),
        ];
        let said = parts.map(|(count, what)| (count.load(Ordering::Relaxed), what));
        let said: Vec<String> =
            said.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
        (!said.is_empty()).then(|| format!("the server stopped without waiting longer: {}", said.join(", ")))
    }
}

/// Room in memory that clients share for what is long.
#[derive(Debug, Default)]
pub(crate) struct Rooms {
    /// Bytes in use, and how many wait for some.
    used: Mutex<(u64, usize)>,
    freed: Condvar,
}

impl Rooms {
    /// Waits for room for `bytes`, of `most` for all; one gets it in any case. None if there is no use in waiting any more.
    pub fn take(&self, bytes: u64, most: u64, ends: impl Fn() -> bool) -> Option<Room<'_>> {
        const LOOK: Duration = Duration::from_millis(100);
        let mut used = locked(&self.used);
        used.1 += 1;
        while used.0 > 0 && used.0 + bytes > most && !ends() {
            used = self.freed.wait_timeout(used, LOOK).map_or_else(|error| error.into_inner().0, |(used, _)| used);
        }
        used.1 -= 1;
        let fits = used.0 == 0 || used.0 + bytes <= most;
        fits.then(|| {
            used.0 += bytes;
            Room(self, bytes)
        })
    }

    /// Whether somebody waits.
    pub fn are_wanted(&self) -> bool {
        locked(&self.used).1 > 0
    }
}

/// Bytes of [`Rooms`], until it is dropped.
pub(crate) struct Room<'a>(&'a Rooms, u64);

impl Drop for Room<'_> {
    fn drop(&mut self) {
        locked(&self.0.used).0 -= self.1;
        self.0.freed.notify_all();
    }
}

/// Counts of connections.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub connections: AtomicU64,
    pub open: AtomicU64,
    /// Ended because the client broke the protocol or went away in the midst of a message.
    pub broken: AtomicU64,
    /// Refused because there were too many.
    pub refused: AtomicU64,
}

/// How long connections have to take their replies when the server stops.
pub(crate) const GRACE: Duration = Duration::from_secs(1);
/// Largest number of connections at once.
pub(crate) const CONNECTIONS_MAX: usize = 256;

impl<S> Shared<S> {
    pub fn new(drive: Drive<S>, export: Export, pacing: Pacing, in_flight_max: u64) -> std::io::Result<Self> {
        Ok(Self {
            export,
            pacing,
            drive: Mutex::new(drive),
            notes: Mutex::default(),
            sockets: Mutex::default(),
            counts: Counts::default(),
            dropped: Dropped::default(),
            in_flight_max,
            rooms: Rooms::default(),
            lateness: Mutex::default(),
            samples: Mutex::default(),
            started: Instant::now(),
            stopping: AtomicBool::new(false),
            bell: Bell::new()?,
            stop_wanted: Default::default(),
        })
    }

    /// The drive; none if a thread has panicked with it, after which its state can't be trusted.
    pub fn drive(&self) -> Option<MutexGuard<'_, Drive<S>>> {
        self.drive.lock().ok()
    }

    /// The drive, when all threads have ended.
    pub fn into_drive(self) -> Option<Drive<S>> {
        self.drive.into_inner().ok()
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Begins to stop: nothing new is accepted, and connections end when they are answered.
    pub fn begin_to_stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.bell.ring();
        self.each_socket(|socket| socket.shut(false));
        self.want_stop();
    }

    /// Asks whoever owns the server to stop it.
    pub fn want_stop(&self) {
        *locked(&self.stop_wanted.0) = true;
        self.stop_wanted.1.notify_all();
    }

    /// Waits until somebody wants the server to stop, or for a time. Returns whether it is to stop.
    pub fn wait(&self, timeout: Duration) -> bool {
        let wanted = locked(&self.stop_wanted.0);
        let result = self.stop_wanted.1.wait_timeout_while(wanted, timeout, |wanted| !*wanted);
        result.map_or(true, |(wanted, _)| *wanted)
    }

    /// Sleeps for a time. Returns whether the server stops.
    pub fn sleep(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        while !self.is_stopping() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let left = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: i64::from(left.subsec_nanos()) };
            let _ = poll(&mut [PollFd::new(&self.bell, PollFlags::IN)], Some(&left));
        }
        true
    }

    pub fn note(&self, text: String) {
        locked(&self.notes).push(text);
    }

    pub fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut *locked(&self.notes))
    }

    /// Keeps a handle of a connection, to end it. None if there are too many.
    pub fn enter(&self, stream: &Stream) -> Option<u64> {
        let mut sockets = locked(&self.sockets);
        let handle = if sockets.len() < CONNECTIONS_MAX { stream.another().ok() } else { None };
        let Some(handle) = handle else {
            self.counts.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        let number = self.counts.connections.fetch_add(1, Ordering::Relaxed);
        self.counts.open.fetch_add(1, Ordering::Relaxed);
        sockets.insert(number, handle);
        drop(sockets);
        if self.is_stopping() {
            stream.shut(false); // it came while the others were told
        }
        Some(number)
    }

    /// Whether there is no place for another connection.
    pub fn is_full(&self) -> bool {
        locked(&self.sockets).len() >= CONNECTIONS_MAX
    }

    /// A connection has ended.
    pub fn leave(&self, number: u64, broken: bool) {
        locked(&self.sockets).remove(&number);
        self.counts.open.fetch_sub(1, Ordering::Relaxed);
        self.counts.broken.fetch_add(u64::from(broken), Ordering::Relaxed);
    }

    /// Counts the whole commands of an input that will not be carried out, and takes them from it.
    pub fn drop_commands(&self, input: &mut Input, agreed: Agreed) {
        loop {
            let (count, taken) = take(input.rest(), &self.export, agreed.allocation);
            if matches!(taken, Taken::More(_) | Taken::Disconnect | Taken::Broken(_)) {
                return;
            }
            self.dropped.commands.fetch_add(1, Ordering::Relaxed);
            input.take(count);
        }
    }

    pub fn each_socket(&self, what: impl Fn(&Stream)) {
        locked(&self.sockets).values().for_each(what);
    }
}

/// Ends all connections and asks for the end of the server if its thread panics, which is always our bug: the drive's state can't
/// be trusted then.
///
/// A connection's own thread names it; the thread that has all connections names none.
pub(crate) struct Farewell<'a, S>(pub &'a Shared<S>, pub Option<u64>);

impl<S> Drop for Farewell<'_, S> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.note("a thread of the server panicked; the drive is no longer served".to_owned());
            match self.1.and_then(|number| locked(&self.0.sockets).get(&number).map(|own| (number, own.shut(true)))) {
                // The others have threads that answer what has come.
                Some((number, ())) => {
                    self.0.each_socket(|socket| socket.shut(false));
                    self.0.leave(number, false);
                }
                None => self.0.each_socket(|socket| socket.shut(true)),
            }
            self.0.want_stop();
        }
    }
}

/// A lock that no panic leaves in a state that can't be used.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Wakes threads that wait for sockets.
#[derive(Debug)]
pub(crate) struct Bell(OwnedFd);

impl Bell {
    pub fn new() -> std::io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    pub fn ring(&self) {
        // It fails only where it was rung 2^64 times and nobody heard.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Makes it silent until it is rung again.
    pub fn hear(&self) {
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Waits until `listener` has a client or `bell` rings; a signal ends the wait early.
pub(crate) fn wait_for(listener: &impl AsFd, bell: &Bell) {
    let mut both = [PollFd::new(listener, PollFlags::IN), PollFd::new(bell, PollFlags::IN)];
    let _ = poll(&mut both, None);
}
