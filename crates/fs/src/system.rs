//! The machine: threads that make calls, processors that execute them, and the device below.

use crate::Misfit;
use crate::fs::{Extent, FileSystem, Load, Step, Task};
use crate::settings::{BLOCK_BYTES, Settings};
use flashwright_block::{
    Completion, Interactive, Nanos, Next, Request, RequestSource, SECTOR_BYTES, Seed, SourceError, Tag,
};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

/// The next call of a thread. The program numbers its files; directories are numbered from 1 in order of creation (0 is
/// the root).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Creates the next directory, below the root.
    MakeDirectory,
    /// Creates an empty file under an unused number.
    Create {
        /// Its number.
        file: u32,
        /// Its directory.
        directory: u32,
    },
    /// Allocates a file without a request, as if it had existed before; only right after [`Call::Create`].
    Place {
        /// The file.
        file: u32,
        /// Its size.
        bytes: u64,
    },
    /// Opens a file.
    Open(u32),
    /// Closes a file that this or another thread opened.
    Close(u32),
    /// Reads a file's inode (stat).
    Stat(u32),
    /// Reads part of a file.
    Read {
        /// The file.
        file: u32,
        /// Start of the range.
        offset: u64,
        /// Number of bytes; stops at the end of the file.
        bytes: u64,
        /// Bytes per call.
        unit: u64,
    },
    /// Writes part of a file, from its end at most.
    Write {
        /// The file.
        file: u32,
        /// Start of the range.
        offset: u64,
        /// Number of bytes.
        bytes: u64,
        /// Bytes per call.
        unit: u64,
    },
    /// Appends at the current end of a file.
    Append {
        /// The file.
        file: u32,
        /// Number of bytes.
        bytes: u64,
        /// Bytes per call.
        unit: u64,
    },
    /// Syncs a file; with `data_only` without its times.
    Fsync {
        /// The file.
        file: u32,
        /// Whether it is `fdatasync`.
        data_only: bool,
    },
    /// Deletes a file that no thread has open.
    Delete(u32),
    /// Writes everything.
    Sync,
    /// Drops clean data in memory.
    DropCaches,
    /// Uses a processor for this time.
    Compute(Nanos),
    /// Takes units from a semaphore, waiting for them.
    Take {
        /// The semaphore.
        semaphore: u32,
        /// Units.
        units: u32,
    },
    /// Adds units to a semaphore, waiting while it is full.
    Post {
        /// The semaphore.
        semaphore: u32,
        /// Units.
        units: u32,
    },
    /// The thread waits for another to wake it with [`Call::Release`].
    Hold,
    /// Wakes every thread that holds.
    Release,
    /// The thread ends.
    Exit,
}

/// A program of one or more threads. The same seed gives the same program; the behaviour of its threads may depend on
/// time.
pub trait Application {
    /// The number of threads.
    fn threads(&self) -> u32;

    /// The capacity of each semaphore; none by default.
    fn semaphores(&self) -> Vec<u32> {
        Vec::new()
    }

    /// The next call of a thread, whose last call ended at `now`, counted from the start. `fs` is read-only.
    fn next(&mut self, thread: u32, now: Nanos, fs: &FileSystem) -> Call;

    /// Its counts, by name, after `elapsed`.
    fn figures(&self, elapsed: Nanos) -> Vec<(&'static str, f64)>;

    /// When its measured part began, if not at the start: earlier requests do not count.
    fn measured_from(&self) -> Option<Nanos> {
        Some(Nanos(0))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    /// Uses a processor until a timer says otherwise.
    Computing,
    /// Waits for the file system.
    Blocked,
    /// Waits for a semaphore or another thread.
    Waiting,
    Ended,
}

#[derive(Clone, Copy, Debug)]
struct Thread {
    state: State,
    call: Option<Call>,
    task: Task,
    /// The call is done when the processor is.
    done: bool,
}

#[derive(Clone, Debug)]
struct Semaphore {
    units: u32,
    most: u32,
    takers: VecDeque<(u32, u32)>,
    posters: VecDeque<(u32, u32)>,
}

/// Requests of the device, by kind.
#[derive(Clone, Copy, Debug, Default)]
struct Kind {
    requests: u64,
    bytes: u64,
    contiguous: u64,
    last_end: u64,
}

/// Tags are consecutive numbers: one multiplication spreads them.
#[derive(Clone, Copy, Debug, Default)]
struct TagHasher(u64);

impl Hasher for TagHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }
    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
}

/// A program on a file system: a workload that reacts to the device.
#[derive(Debug)]
pub struct System<A> {
    app: A,
    fs: FileSystem,
    threads: Vec<Thread>,
    semaphores: Vec<Semaphore>,
    ready: VecDeque<u32>,
    timers: BinaryHeap<Reverse<(u64, u32)>>,
    /// When each processor is free.
    processors: Vec<u64>,
    in_flight: HashMap<Tag, u32, BuildHasherDefault<TagHasher>>,
    writes_in_flight: u32,
    writes_max: u32,
    handed_over: u32,
    started: Option<u64>,
    /// The time of the last question.
    latest: u64,
    next_flush: u64,
    /// Threads of the program that have not ended.
    alive: u32,
    app_ended: Option<u64>,
    ended: Option<u64>,
    kinds: [Kind; 4],
    measuring: bool,
}

impl<A: Application> System<A> {
    /// A program on a new file system on a device of `sectors`.
    ///
    /// # Errors
    /// [`Misfit`] if the device is too small for a file system.
    pub fn new(app: A, settings: Settings, sectors: u64, seed: Seed) -> Result<Self, Misfit> {
        let mut fs = FileSystem::new(settings, sectors / (BLOCK_BYTES / SECTOR_BYTES), seed)?;
        let count = app.threads();
        // One additional thread writes the remaining dirty data at the end.
        let thread = |number| Thread { state: State::Ready, call: None, task: Task::of(number), done: false };
        let threads: Vec<Thread> = (0..=count).map(thread).collect();
        fs.journal.process = count + 3;
        Ok(Self {
            ready: (0..count).collect(),
            semaphores: app
                .semaphores()
                .into_iter()
                .map(|most| Semaphore { units: 0, most, takers: VecDeque::new(), posters: VecDeque::new() })
                .collect(),
            threads,
            timers: BinaryHeap::new(),
            processors: vec![0; fs.settings.processors.max(1) as usize],
            in_flight: HashMap::default(),
            writes_in_flight: 0,
            writes_max: fs.settings.writes_in_flight(),
            handed_over: 0,
            started: None,
            latest: 0,
            next_flush: 0,
            alive: count,
            app_ended: None,
            ended: None,
            kinds: [Kind::default(); 4],
            measuring: false,
            app,
            fs,
        })
    }

    /// The file system, read-only.
    #[must_use]
    pub fn file_system(&self) -> &FileSystem {
        &self.fs
    }
    /// The file system, mutable, so that a reference model can record its changes.
    pub fn file_system_mut(&mut self) -> &mut FileSystem {
        &mut self.fs
    }
    /// The program.
    #[must_use]
    pub fn application(&self) -> &A {
        &self.app
    }

    fn flusher(&self) -> u32 {
        self.fs.journal.process - 1
    }

    fn wake(&mut self, number: u32) {
        if let Some(thread) = self.threads.get_mut(number as usize)
            && thread.state == State::Blocked
        {
            thread.state = State::Ready;
            self.ready.push_back(number);
        }
    }

    fn wake_all(&mut self) {
        while let Some(thread) = self.fs.wakes.pop() {
            self.wake(thread);
        }
    }

    /// A thread that waited for another continues with its next call.
    fn resume(&mut self, number: u32) {
        let thread = &mut self.threads[number as usize];
        assert_eq!(thread.state, State::Waiting);
        (thread.state, thread.call) = (State::Ready, None);
        self.ready.push_back(number);
    }

    /// Continues a thread's call, or its next one, for one slice.
    fn run(&mut self, number: u32, now: u64) -> Result<(), SourceError> {
        let at = number as usize;
        let call = match self.threads[at].call {
            Some(call) => call,
            None => {
                let elapsed = Nanos(now - self.started.unwrap_or(now));
                let last = at == self.threads.len() - 1;
                let call = match (last, self.threads[at].done) {
                    (false, _) => self.app.next(number, elapsed, &self.fs),
                    (true, false) => Call::Sync,
                    (true, true) => Call::Exit,
                };
                self.threads[at].call = Some(call);
                self.threads[at].done = false;
                self.threads[at].task = Task::of(number);
                self.begin_measuring(now);
                call
            }
        };
        let mut task = self.threads[at].task;
        let extent = |file, offset, bytes, unit: u64| Extent { file, offset, bytes, unit: unit.max(1) };
        let step = match call {
            Call::MakeDirectory => self.fs.make_directory(&mut task, now)?,
            Call::Create { file, directory } => self.fs.create(&task, file, directory, now)?,
            Call::Place { file, bytes } => {
                self.fs.place_file(file, bytes)?;
                Step::Done(0)
            }
            Call::Open(file) => self.fs.open(&task, file),
            Call::Close(file) => self.fs.close(file),
            Call::Stat(file) => self.fs.look_up(&task, file),
            Call::Read { file, offset, bytes, unit } => self.fs.read(&mut task, extent(file, offset, bytes, unit), now),
            Call::Write { file, offset, bytes, unit } => {
                self.fs.write(&mut task, extent(file, offset, bytes, unit), now)?
            }
            Call::Append { file, bytes, unit } => {
                // Others may append between two slices of this.
                let offset = self.fs.size(file).unwrap_or(0).saturating_sub(task.done);
                self.fs.write(&mut task, extent(file, offset, bytes, unit), now)?
            }
            Call::Fsync { file, data_only } => self.fs.fsync(&mut task, file, data_only, now)?,
            Call::Delete(file) => self.fs.delete(&task, file, now),
            Call::Sync => self.fs.sync(&mut task, now)?,
            Call::DropCaches => self.fs.drop_caches(),
            Call::Compute(time) => Step::Done(time.0),
            Call::Take { semaphore, units } => return self.take(number, semaphore, units, now),
            Call::Post { semaphore, units } => return self.post(number, semaphore, units, now),
            Call::Hold => {
                self.threads[at].state = State::Waiting;
                return Ok(());
            }
            Call::Release => {
                let call_of = |thread: &Thread| (thread.state, thread.call) == (State::Waiting, Some(Call::Hold));
                for other in 0..u32::try_from(self.threads.len()).expect("threads are numbered in 32 bits") {
                    if call_of(&self.threads[other as usize]) {
                        self.resume(other);
                    }
                }
                Step::Done(0)
            }
            Call::Exit => {
                self.exit(number, now);
                return Ok(());
            }
        };
        let thread = &mut self.threads[at];
        thread.task = task;
        match step {
            Step::Blocked => thread.state = State::Blocked,
            Step::Done(time) | Step::More(time) => {
                thread.done = matches!(step, Step::Done(_));
                self.compute(number, time, now);
            }
        }
        Ok(())
    }

    /// Assigns the first free processor to a thread.
    fn compute(&mut self, number: u32, time: u64, now: u64) {
        let processor = self.processors.iter_mut().min().expect("there is a processor");
        *processor = (*processor).max(now) + time;
        let until = *processor;
        let thread = &mut self.threads[number as usize];
        if until <= now {
            thread.state = State::Ready;
            if thread.done {
                thread.call = None;
            }
            self.ready.push_back(number);
        } else {
            thread.state = State::Computing;
            self.timers.push(Reverse((until, number)));
        }
    }

    fn exit(&mut self, number: u32, now: u64) {
        self.threads[number as usize].state = State::Ended;
        if number as usize == self.threads.len() - 1 {
            self.ended = Some(now);
            return;
        }
        self.alive -= 1;
        if self.alive == 0 {
            self.app_ended = Some(now);
            if self.fs.settings.sync_at_end {
                self.ready.push_back(number_of_last(&self.threads));
            } else {
                self.ended = Some(now);
            }
        }
    }

    fn take(&mut self, number: u32, semaphore: u32, units: u32, now: u64) -> Result<(), SourceError> {
        let entry = &mut self.semaphores[semaphore as usize];
        if entry.takers.is_empty() && entry.units >= units {
            entry.units -= units;
            self.threads[number as usize].done = true;
            self.compute(number, self.fs.settings.call_time.0, now);
        } else {
            entry.takers.push_back((number, units));
            self.threads[number as usize].state = State::Waiting;
        }
        self.settle(semaphore);
        Ok(())
    }

    fn post(&mut self, number: u32, semaphore: u32, units: u32, now: u64) -> Result<(), SourceError> {
        let entry = &mut self.semaphores[semaphore as usize];
        if entry.posters.is_empty() && entry.units + units <= entry.most {
            entry.units += units;
            self.threads[number as usize].done = true;
            self.compute(number, self.fs.settings.call_time.0, now);
        } else {
            entry.posters.push_back((number, units));
            self.threads[number as usize].state = State::Waiting;
        }
        self.settle(semaphore);
        Ok(())
    }

    /// Wakes threads, first come first served, that a semaphore has units or room for.
    fn settle(&mut self, semaphore: u32) {
        loop {
            let entry = &mut self.semaphores[semaphore as usize];
            let resumed = match (entry.takers.front().copied(), entry.posters.front().copied()) {
                (Some((thread, units)), _) if entry.units >= units => {
                    entry.units -= units;
                    entry.takers.pop_front();
                    thread
                }
                (_, Some((thread, units))) if entry.units + units <= entry.most => {
                    entry.units += units;
                    entry.posters.pop_front();
                    thread
                }
                _ => return,
            };
            self.resume(resumed);
        }
    }

    fn begin_measuring(&mut self, now: u64) {
        if !self.measuring
            && let Some(from) = self.app.measured_from()
            && from.0 + self.started.unwrap_or(now) <= now
        {
            self.measuring = true;
            self.fs.counts = crate::Counts::default();
            self.kinds = self.kinds.map(|kind| Kind { last_end: kind.last_end, ..Kind::default() });
        }
    }

    /// The next request to submit, if one may go.
    #[inline]
    fn request(&mut self) -> Option<Request> {
        let io = match self.fs.reads.pop_front() {
            Some(io) => io,
            None if self.writes_in_flight < self.writes_max => {
                let io = self.fs.writes.pop_front()?;
                self.writes_in_flight += 1;
                io
            }
            None => return None,
        };
        self.handed_over = io;
        let io = self.fs.io(io);
        let sectors_per_block = BLOCK_BYTES / SECTOR_BYTES;
        let request = Request {
            arrival: Nanos(0),
            first_sector: u64::from(io.block) * sectors_per_block,
            sectors: io.blocks * u32::try_from(sectors_per_block).expect("8"),
            process: io.process,
            kind: io.kind,
            fua: io.fua,
            ..Request::default()
        };
        let kind = &mut self.kinds[request.kind as usize];
        kind.requests += 1;
        kind.bytes += u64::from(request.sectors) * SECTOR_BYTES;
        kind.contiguous += u64::from(kind.last_end == request.first_sector && request.sectors > 0);
        kind.last_end = request.end_sector();
        Some(request)
    }

    fn all_wait(&self) -> bool {
        self.threads.iter().all(|thread| !matches!(thread.state, State::Computing | State::Blocked))
    }

    fn end_waiting(&mut self, now: u64) {
        for number in 0..number_of_last(&self.threads) {
            if self.threads[number as usize].state == State::Waiting {
                self.exit(number, now);
            }
        }
    }

    /// The time of the next event that does not wait for a request.
    fn next_time(&self) -> u64 {
        let timer = self.timers.peek().map_or(u64::MAX, |Reverse((time, _))| *time);
        let commit = self.fs.commit_due().filter(|_| self.fs.journal.is_idle()).unwrap_or(u64::MAX);
        timer.min(self.next_flush).min(commit)
    }
}

fn number_of_last(threads: &[Thread]) -> u32 {
    u32::try_from(threads.len() - 1).expect("threads are numbered in 32 bits")
}

impl<A: Application> Interactive for System<A> {
    fn next(&mut self, now: Nanos) -> Result<Next, SourceError> {
        let now = now.0;
        self.latest = now;
        if self.started.is_none() {
            self.started = Some(now);
            self.next_flush = now + self.fs.settings.flush_every.0;
        }
        loop {
            if let Some(request) = self.request() {
                return Ok(Next::Submit(request));
            }
            while let Some(Reverse((time, number))) = self.timers.peek().copied()
                && time <= now
            {
                self.timers.pop();
                let thread = &mut self.threads[number as usize];
                thread.state = State::Ready;
                if thread.done {
                    thread.call = None;
                }
                self.ready.push_back(number);
            }
            if let Some(number) = self.ready.pop_front() {
                self.run(number, now)?;
                self.wake_all();
                continue;
            }
            if self.ended.is_some() {
                return Ok(Next::Ended);
            }
            if now >= self.next_flush {
                self.next_flush = now + self.fs.settings.flush_every.0;
                self.fs.flush_tick(self.flusher(), now);
                continue;
            }
            self.fs.commit_if_due(now);
            if self.fs.writes.is_empty() && self.fs.flush_some(self.flusher(), now)? {
                continue;
            }
            self.wake_all();
            if !self.ready.is_empty() || !self.fs.reads.is_empty() {
                continue;
            }
            if !self.fs.writes.is_empty() && self.writes_in_flight < self.writes_max {
                continue;
            }
            if self.timers.is_empty() && self.in_flight.is_empty() && self.all_wait() {
                if (self.alive as usize) < self.threads.len() - 1 {
                    // The threads that others waited for have ended, so the program ends too.
                    self.end_waiting(now);
                    continue;
                }
                return Err(SourceError("all threads of the program wait for each other (deadlock)".into()));
            }
            let until = self.next_time();
            assert!(until > now, "what is due is done before waiting");
            return Ok(Next::Wait(Nanos(until)));
        }
    }

    #[inline]
    fn submitted(&mut self, tag: Tag) {
        self.in_flight.insert(tag, self.handed_over);
    }

    #[inline]
    fn completed(&mut self, completion: &Completion) {
        let io = self.in_flight.remove(&completion.tag).expect("a completion has the tag of a request in flight");
        let is_read = matches!(self.fs.io(io).load, Load::PagesIn { .. } | Load::MetaIn);
        self.writes_in_flight -= u32::from(!is_read);
        self.fs.io_done(io, completion.end.0);
        self.wake_all();
        if let Some(ended) = &mut self.ended {
            *ended = (*ended).max(completion.end.0);
        }
    }
}

impl<A: Application> RequestSource for System<A> {
    fn fill(&mut self, _: &mut Vec<Request>, _: usize) -> Result<usize, SourceError> {
        Err(SourceError(
            "workload: found one that reacts to the device, expected one with a fixed list of requests; play it on a \
             device, or record it there"
                .into(),
        ))
    }

    fn interactive(&mut self) -> Option<&mut dyn Interactive> {
        Some(self)
    }

    #[allow(clippy::cast_precision_loss)] // counts far below 2^53
    fn figures(&self) -> Option<Vec<(&'static str, f64)>> {
        let started = self.started.unwrap_or(0);
        let from = self.app.measured_from().unwrap_or(Nanos(0)).0;
        let span = |end: u64| end.saturating_sub(started).saturating_sub(from);
        let seconds = |nanos: u64| nanos as f64 / 1e9;
        let end = self.app_ended.unwrap_or(self.latest);
        let ratio = |a: u64, b: u64| if b == 0 { 0.0 } else { a as f64 / b as f64 };
        let mut figures =
            vec![("seconds", seconds(span(end))), ("seconds_with_sync", seconds(span(self.ended.unwrap_or(end))))];
        figures.extend(self.app.figures(Nanos(span(end))));
        let [read, write, _, flush] = self.kinds;
        let counts = self.fs.counts();
        figures.extend([
            ("device_read_requests", read.requests as f64),
            ("device_read_bytes", read.bytes as f64),
            ("device_read_bytes_mean", ratio(read.bytes, read.requests)),
            ("device_read_contiguous", ratio(read.contiguous, read.requests)),
            ("device_write_requests", write.requests as f64),
            ("device_write_bytes", write.bytes as f64),
            ("device_write_bytes_mean", ratio(write.bytes, write.requests)),
            ("device_write_contiguous", ratio(write.contiguous, write.requests)),
            ("device_flush_requests", flush.requests as f64),
            ("cache_pages_read", counts.pages_read as f64),
            ("cache_page_hits", counts.page_hits as f64),
            ("cache_hit_ratio", ratio(counts.page_hits, counts.pages_read)),
            ("cache_pages_written", counts.pages_written as f64),
            ("cache_pages_dropped", counts.pages_dropped as f64),
            ("writers_throttled", counts.throttled as f64),
            ("journal_commits", counts.commits as f64),
            ("journal_blocks", counts.journal_blocks as f64),
            ("journal_checkpoints", counts.checkpoints as f64),
            ("metadata_blocks_read", counts.metadata_blocks_read as f64),
            ("metadata_blocks_written", counts.metadata_blocks_written as f64),
        ]);
        debug_assert!(!figures.iter().any(|(_, value)| value.is_nan()), "figures are numbers");
        Some(figures)
    }
}
