//! An export of an NBD server, or a namespace of an NVMe/TCP target, as a block device on the monotonic clock: what
//! `flashwright serve` offers, seen from the other end.
//!
//! ```text
//!  submit ─► waiting (all places taken) ─► request, with noise ─► socket ─► server
//!                                                                             │
//!  wait ◄── ready ◄── Replies (no I/O; data of reads are dropped) ◄───────────┘
//! ```
//!
//! A request starts when its bytes are handed to the socket, and ends when the last byte of its reply was read. So the times
//! contain the way through both sockets.

mod hello;
mod nvme;
mod replies;
mod uri;

pub use hello::Terms;
pub use replies::{Known, Replies, Reply};
pub use uri::{Refused, Uri};

use crate::listen::Stream;
use crate::wire::{Head, export, flag};
use flashwright_block::{
    BlockDevice, Bounds, Bytes, Completion, Contents, DeviceInfo, DriverQueue, Effects, IoError, Nanos, Request,
    RequestKind, SECTOR_BYTES, Seed, Tag, Waiting,
};
use flashwright_disk::{Noise, Prepared};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::{HashMap, VecDeque};
use std::io::{self, Read as _, Write as _};
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

/// How to use an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteOptions {
    /// Whether the user agreed that the export's data may be destroyed. Otherwise it is only read.
    pub destroys_data: bool,
    /// Requests that the server has at once, 1 or more; more wait here.
    pub depth: u32,
    /// Seed of the written data.
    pub seed: Seed,
}

/// Bytes that are read from the socket at once.
const CHUNK: usize = 256 << 10;
/// Longest piece of a trim.
const TRIM_BYTES: u64 = 1 << 30;
/// With requests at the server, a longer time without an answer, or without so many bytes of one, means that it is gone.
const SILENCE: Duration = Duration::from_secs(60);
const PROGRESS_BYTES: usize = 64 << 10;
/// How long to wait for answers once the end is wanted, and the interval between two looks at whether it is.
const GRACE: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(100);

/// Says whether nobody waits for the answers any more.
pub type EndsWhen = Box<dyn FnMut() -> bool + Send>;

/// An export as a block device. Its clock starts when it is created.
///
/// Data of reads are dropped, and writes carry what [`BlockDevice::carries`] says, by default data that no drive can compress.
pub struct Remote {
    uri: Uri,
    info: DeviceInfo,
    bounds: Bounds,
    terms: Terms,
    writes: bool,
    clock: Instant,
    stream: Stream,
    /// Bytes that the socket did not take yet.
    out: Vec<u8>,
    sent: usize,
    input: Vec<u8>,
    protocol: Protocol,
    asked: Asked,
    queue: DriverQueue,
    ready: VecDeque<Completion>,
    filler: Filler,
    tags: u64,
    /// When an answer last came, or a part of one, and bytes since then.
    moved: (Instant, usize),
    ends_when: Option<EndsWhen>,
    /// When it first said so.
    ends_since: Option<Instant>,
    dead: Option<IoError>,
    timers_sharp: bool,
}

/// What is spoken with the server.
enum Protocol {
    Nbd(Replies),
    Nvme(Box<nvme::Queue>),
}

/// Data of writes.
struct Filler {
    data: Vec<u8>,
    prepared: Prepared,
    noise: Noise,
}

impl Filler {
    /// Data for `bytes` of the drive from `offset` on.
    fn data(&mut self, offset: u64, bytes: usize) -> &[u8] {
        self.data.resize(self.data.len().max(bytes), 0);
        self.prepared = self.noise.prepare(&mut self.data[..bytes], offset, self.prepared);
        &self.data[..bytes]
    }
}

/// A request at the server.
#[derive(Debug)]
struct Running {
    tag: Tag,
    request: Request,
    start: Nanos,
    /// Its messages that were not answered.
    left: u32,
    /// Whether a flush follows, since the server knows no forced writes.
    flushes: bool,
    failure: Option<String>,
}

/// A message that was not answered.
#[derive(Clone, Copy, Debug)]
struct Piece {
    of: Tag,
    /// Bytes that it asks for, and those that came.
    wanted: u64,
    came: u64,
}

/// What was asked and not answered.
#[derive(Debug, Default)]
struct Asked {
    running: HashMap<Tag, Running>,
    pieces: HashMap<u64, Piece>,
    cookies: u64,
}

impl Known for Asked {
    fn expects(&self, cookie: u64) -> Option<u64> {
        self.pieces.get(&cookie).map(|piece| piece.wanted)
    }
    fn brought(&mut self, cookie: u64, bytes: u64) -> bool {
        let Some(piece) = self.pieces.get_mut(&cookie) else { return false };
        piece.came += bytes;
        piece.came <= piece.wanted
    }
}

impl Remote {
    /// Connects to a server.
    ///
    /// # Errors
    /// [`Refused`]: one line.
    pub fn open(uri: &Uri, options: RemoteOptions) -> Result<Self, Refused> {
        let (stream, terms, protocol) = if uri.is_nvme() {
            let (stream, terms, queue) = nvme::hello(uri)?;
            (stream, terms, Protocol::Nvme(Box::new(queue)))
        } else {
            let (stream, terms) = hello::hello(uri)?;
            (stream, terms, Protocol::Nbd(Replies::default()))
        };
        if options.destroys_data && terms.flags & export::READ_ONLY != 0 {
            let hint = "leave out --destroys-data to play only the reads";
            return Err(Refused { what: format!("{uri}: the export is read-only"), hint });
        }
        let (block, depth) = (u64::from(terms.minimum), options.depth.max(1));
        let info = DeviceInfo {
            name: uri.to_string(),
            capacity: Bytes(terms.bytes - terms.bytes % block),
            sector: Bytes(block),
            queue_depth: depth,
        };
        Ok(Self {
            uri: uri.clone(),
            bounds: info.bounds(),
            info,
            terms,
            writes: options.destroys_data,
            clock: Instant::now(),
            stream,
            out: Vec::new(),
            sent: 0,
            input: vec![0; CHUNK],
            protocol,
            asked: Asked::default(),
            queue: DriverQueue::new(depth),
            ready: VecDeque::new(),
            filler: Filler { data: Vec::new(), prepared: Prepared::default(), noise: Noise::new(options.seed) },
            tags: 0,
            moved: (Instant::now(), 0),
            ends_when: None,
            ends_since: None,
            dead: None,
            timers_sharp: false,
        })
    }

    /// What server and client agreed on.
    #[must_use]
    pub fn terms(&self) -> Terms {
        self.terms
    }

    /// What is asked, ten times a second, while the server owes answers and says nothing. Two seconds after it says so first,
    /// requests that are not answered fail, and the device with them. None asks nobody.
    pub fn ends_when(&mut self, ends_when: Option<EndsWhen>) {
        (self.ends_when, self.ends_since) = (ends_when, None);
    }

    fn offers(&self, flag: u16) -> bool {
        self.terms.flags & flag != 0
    }

    fn check(&self, request: &Request) -> Result<(), IoError> {
        let lacks = |what: &str| Err(IoError::Device(format!("{}: the server takes no {what}", self.uri)));
        match request.kind {
            RequestKind::Flush if !self.offers(export::SEND_FLUSH) => return lacks("flush"),
            RequestKind::Flush => return Ok(()),
            kind if kind.is_for_zones() => return Err(IoError::NoZones { kind }),
            _ => self.bounds.check(request)?,
        }
        if request.kind != RequestKind::Read && !self.writes {
            let (first_sector, end_sector) = (request.first_sector, request.end_sector());
            return Err(IoError::ReadOnly { kind: request.kind, first_sector, end_sector });
        }
        match request.kind {
            RequestKind::Trim if !self.offers(export::SEND_TRIM) => lacks("trim"),
            RequestKind::Write if request.fua && !self.offers(export::SEND_FUA) && !self.offers(export::SEND_FLUSH) => {
                lacks("forced write")
            }
            _ => Ok(()),
        }
    }

    /// Sends a request, in pieces that the server takes.
    fn lay(&mut self, tag: Tag, request: Request) {
        self.queue.take(request.kind, 1);
        let (mut first, bytes) = (request.first_sector * SECTOR_BYTES, u64::from(request.sectors) * SECTOR_BYTES);
        if request.kind == RequestKind::Flush {
            first = 0; // it has no place
        }
        let (kind, most) = match request.kind {
            RequestKind::Read => (0, u64::from(self.terms.maximum)),
            RequestKind::Write => (1, u64::from(self.terms.maximum)),
            RequestKind::Flush => (3, u64::MAX),
            RequestKind::Trim => (4, TRIM_BYTES),
            _ => unreachable!("requests for zones are refused"),
        };
        let forced = request.fua && request.kind == RequestKind::Write;
        let flags = if forced && self.offers(export::SEND_FUA) { flag::FUA } else { 0 };
        let start = self.now();
        let (mut at, end, mut left) = (first, first + bytes, 0);
        while left == 0 || at < end {
            let length = (end - at).min(most);
            self.send_piece((tag, request.stream), flags, kind, at, length);
            (at, left) = (at + length, left + 1);
        }
        let flushes = forced && flags == 0;
        if self.asked.running.is_empty() {
            self.moved = (Instant::now(), 0);
        }
        self.asked.running.insert(tag, Running { tag, request, start, left, flushes, failure: None });
        self.send();
    }

    fn send_piece(&mut self, (of, stream): (Tag, u16), flags: u16, kind: u16, offset: u64, bytes: u64) {
        let cookie = self.asked.cookies;
        self.asked.cookies += 1;
        self.asked.pieces.insert(cookie, Piece { of, wanted: if kind == 0 { bytes } else { 0 }, came: 0 });
        let length = u32::try_from(bytes).expect("pieces are short");
        let filler = &mut self.filler;
        match &mut self.protocol {
            Protocol::Nbd(_) => {
                Head::put(&mut self.out, flags, kind, cookie, offset, length);
                if kind == 1 {
                    self.out.extend_from_slice(filler.data(offset, length as usize));
                }
            }
            Protocol::Nvme(queue) => {
                let is_durable = flags & flag::FUA != 0;
                let message = nvme::Message { cookie, kind, is_durable, offset, length, stream };
                queue.push(&mut self.out, message, &mut |at, data| data.copy_from_slice(filler.data(at, data.len())));
            }
        }
    }

    /// Hands over what the socket takes.
    fn send(&mut self) {
        while self.sent < self.out.len() {
            match (&self.stream).write(&self.out[self.sent..]) {
                Ok(count) if count > 0 => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(_) => return self.dies("the server has ended the connection"),
                Err(error) => return self.dies_of(&error),
            }
        }
        self.out.clear();
        self.sent = 0;
    }

    /// Reads once what has come. Returns whether something had.
    fn receive(&mut self) -> bool {
        let mut input = std::mem::take(&mut self.input);
        let found = (&self.stream).read(&mut input);
        match found {
            Ok(0) => self.dies("the server has ended the connection"),
            Ok(count) => {
                self.moved.1 += count;
                let mut said = Vec::new();
                let done = |_: &mut Asked, reply| said.push(reply);
                let filler = &mut self.filler;
                let taken = match &mut self.protocol {
                    Protocol::Nbd(replies) => replies.take(&input[..count], &mut self.asked, done),
                    Protocol::Nvme(queue) => {
                        let taken = queue.take(&input[..count], &mut self.asked, done);
                        let mut fill = |at, data: &mut [u8]| data.copy_from_slice(filler.data(at, data.len()));
                        queue.put_wanted(&mut self.out, &mut fill);
                        queue.advance(&mut self.out, &mut fill);
                        taken
                    }
                };
                if let Err(why) = taken {
                    self.dies(why);
                }
                if !said.is_empty() || self.moved.1 >= PROGRESS_BYTES {
                    self.moved = (Instant::now(), 0);
                }
                said.into_iter().for_each(|reply| self.answered(reply));
                self.send(); // data that were asked for
            }
            Err(ref error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(ref error) => self.dies_of(error),
        }
        self.input = input;
        found.is_ok()
    }

    fn answered(&mut self, reply: Reply) {
        let (cookie, failure) = match reply {
            Reply::Done(cookie) => (cookie, None),
            Reply::Failed(cookie, errno, why) => (cookie, Some(words(errno, &why))),
        };
        let Some(piece) = self.asked.pieces.remove(&cookie) else { return };
        let is_short = failure.is_none() && piece.came < piece.wanted;
        let failure = if is_short { Some("the reply brings less than was asked for".to_owned()) } else { failure };
        let Some(running) = self.asked.running.get_mut(&piece.of) else { return };
        running.left -= 1;
        running.failure = running.failure.take().or(failure);
        if running.left > 0 {
            return;
        }
        if std::mem::take(&mut running.flushes) && running.failure.is_none() {
            running.left = 1;
            self.send_piece((piece.of, 0), 0, 3, 0, 0);
            return self.send();
        }
        let Some(Running { tag, request, start, failure, .. }) = self.asked.running.remove(&piece.of) else { return };
        let place = flashwright_disk::place(&request);
        let result = failure.map_or(Ok(()), |why| Err(Box::new(IoError::Device(format!("{place}: {why}")))));
        let end = self.now();
        self.ready.push_back(Completion { tag, request, start, end, effects: Effects::default(), result });
        self.queue.release(request.kind, 1);
        if let Some(Waiting { id, request }) = self.queue.pick() {
            self.lay(Tag(id), request);
        }
    }

    fn dies_of(&mut self, error: &io::Error) {
        let gone = matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe);
        let why = if gone { "the server has ended the connection".to_owned() } else { hello::in_words(error) };
        self.dies(&why);
    }

    /// Nothing will be answered any more.
    fn dies(&mut self, why: &str) {
        let flying = self.asked.running.len();
        let lost = if flying > 0 { format!(" with {flying} requests unanswered") } else { String::new() };
        self.dead.get_or_insert(IoError::Device(format!("{}: {why}{lost}", self.uri)));
    }

    fn alive(&self) -> Result<(), IoError> {
        self.dead.clone().map_or(Ok(()), Err)
    }

    /// Waits for the socket, at most until the given time.
    fn sleep_until(&mut self, until: Nanos) {
        if !self.timers_sharp {
            self.timers_sharp = true;
            // By default a wait may end 50 us late; a refusal costs only that.
            rustix::thread::set_current_timer_slack(NonZeroU64::new(1)).unwrap_or_default();
        }
        let waits = !self.asked.running.is_empty();
        let left = Duration::from_nanos(until.0.saturating_sub(self.now().0));
        let looks = waits && self.ends_when.is_some();
        let time = left.min(if looks { LOOK } else { SILENCE });
        let mut wanted = PollFlags::empty();
        wanted.set(PollFlags::IN, waits);
        wanted.set(PollFlags::OUT, self.sent < self.out.len());
        let spec = Timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: i64::from(time.subsec_nanos()) };
        let found = if wanted.is_empty() {
            poll(&mut [], Some(&spec)) // a server that goes away while nobody asks is noticed at the next request
        } else {
            poll(&mut [PollFd::new(&self.stream, wanted)], Some(&spec))
        };
        if waits && found == Ok(0) {
            self.look();
        }
    }

    /// Whether to go on waiting for answers.
    fn look(&mut self) {
        if self.moved.0.elapsed() >= SILENCE {
            return self.dies("no answer within 60 s");
        }
        if self.ends_since.is_none() && self.ends_when.as_mut().is_some_and(|ends| ends()) {
            self.ends_since = Some(Instant::now());
        }
        if self.ends_since.is_some_and(|since| since.elapsed() >= GRACE) {
            self.dies("no answer before the end");
        }
    }

    /// Sends, receives, and waits once if nothing came.
    fn step(&mut self, until: Nanos) -> Result<(), IoError> {
        self.send();
        if self.receive() || !self.ready.is_empty() {
            if self.ready.is_empty() && self.moved.0.elapsed() >= LOOK {
                self.look(); // parts of an answer alone are no reason to wait for ever
            }
            return Ok(()); // what came before a death counts
        }
        self.alive()?;
        if until > self.now() {
            self.sleep_until(until);
        }
        Ok(())
    }
}

/// An error of the protocol in words.
fn words(errno: u32, said: &str) -> String {
    if said.is_empty() { io::Error::from_raw_os_error(errno.cast_signed()).to_string() } else { said.to_owned() }
}

impl BlockDevice for Remote {
    fn info(&self) -> DeviceInfo {
        self.info.clone()
    }

    fn now(&self) -> Nanos {
        // 584 years fit.
        Nanos(u64::try_from(self.clock.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn submit(&mut self, request: Request) -> Result<Tag, IoError> {
        self.check(&request)?;
        self.alive()?;
        while request.arrival > self.now() {
            self.step(request.arrival)?;
        }
        let tag = Tag(self.tags);
        self.tags += 1;
        if self.queue.goes_at_once(&request) {
            self.lay(tag, request);
        } else {
            self.queue.push(tag.0, request);
        }
        Ok(tag)
    }

    fn wait(&mut self, until: Nanos, completion: &mut Completion) -> Result<bool, IoError> {
        loop {
            if let Some(ended) = self.ready.pop_front() {
                *completion = ended;
                return Ok(true);
            }
            self.alive()?;
            let now = self.now();
            if self.asked.running.is_empty() {
                if until.0 == u64::MAX || until <= now {
                    return Ok(false);
                }
                self.sleep_until(until);
                continue;
            }
            self.step(until)?;
            if self.ready.is_empty() && until <= now {
                return Ok(false);
            }
        }
    }

    fn carries(&mut self, contents: Contents) {
        self.filler.noise.carries(contents);
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let mut bye = Vec::new();
        Head::put(&mut bye, 0, 2, 0, 0, 0);
        let says_so = matches!(self.protocol, Protocol::Nbd(_));
        if says_so && self.dead.is_none() && self.out.is_empty() {
            // A server that is gone needs no farewell.
            let _ = (&self.stream).write(&bye);
        }
    }
}
