//! What all threads of a server share.

use crate::exec::Drive;
use crate::listen::Stream;
use crate::negotiate::Export;
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

/// Largest number of connections at once.
pub(crate) const CONNECTIONS_MAX: usize = 256;

impl<S> Shared<S> {
    pub fn new(drive: Drive<S>, export: Export, pacing: Pacing) -> std::io::Result<Self> {
        Ok(Self {
            export,
            pacing,
            drive: Mutex::new(drive),
            notes: Mutex::default(),
            sockets: Mutex::default(),
            counts: Counts::default(),
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

    /// A connection has ended.
    pub fn leave(&self, number: u64, broken: bool) {
        locked(&self.sockets).remove(&number);
        self.counts.open.fetch_sub(1, Ordering::Relaxed);
        self.counts.broken.fetch_add(u64::from(broken), Ordering::Relaxed);
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
