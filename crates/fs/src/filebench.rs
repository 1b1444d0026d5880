//! Four profiles of Filebench: web server, file server, on-line transactions, mail.
//!
//! Source: the profiles `webserver`, `fileserver`, `oltp` and `varmail` of the public Filebench repository, which
//! describe the loop of each thread; the numbers of files, threads and bytes are settings. File sizes are gamma
//! distributed with shape 1.5 about their mean, as Filebench draws them.

use crate::Misfit;
use crate::fs::FileSystem;
use crate::settings::BLOCK_BYTES;
use crate::system::{Application, Call};
use flashwright_block::{Bytes, Nanos, Rng, Seed, below, unit_interval};
use libm::{cos, log, sqrt};
use std::collections::VecDeque;
use std::f64::consts::TAU;

/// Which profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Ten files read whole, then a little appended to a log that all threads share.
    Webserver,
    /// A file created and written whole; one appended to; one read whole; one deleted; one inspected (stat).
    Fileserver,
    /// Readers at random places, and writers and a log writer that are paced by the reads, all synchronous.
    Oltp,
    /// A file deleted; one created and appended to; one read and appended to; one read; each append synced.
    Varmail,
}

/// How the initial files are created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prepare {
    /// Written through the cache before the measured part, then written back, and caches dropped.
    Written,
    /// Allocated without a request, as on a device that was filled before. Caches are dropped.
    Placed,
}

/// The settings of a profile.
#[derive(Clone, Debug, PartialEq)]
pub struct FilebenchSettings {
    /// Files of the set; for OLTP data files.
    pub files: u32,
    /// Mean bytes of a file.
    pub size: u64,
    /// Whether all files have the mean size.
    pub fixed: bool,
    /// Share of the set that exists at the start, 0 to 1.
    pub preallocated: f64,
    /// Files of a directory (`dirwidth`); 0 for all in the root.
    pub per_directory: u32,
    /// Threads; for OLTP those that read.
    pub threads: u32,
    /// For OLTP: threads that write data. (One more writes the log.)
    pub writers: u32,
    /// Bytes of a read or write call.
    pub unit: u64,
    /// Mean bytes of an append; for OLTP bytes of a write to the log.
    pub append: u64,
    /// For the web server: bytes of the log beyond which it is written over from its start, so that a run does not fill
    /// the device; 256 MiB, ours.
    pub log_max: u64,
    /// For OLTP: processor time of a reader between two reads.
    pub think: Nanos,
    /// How long it runs after the files are created.
    pub duration: Nanos,
    /// How the files are created.
    pub prepare: Prepare,
}

impl Profile {
    /// The profile's own settings in the public repository; `think` is ours (200,000 rounds of an empty loop there).
    #[must_use]
    pub fn settings(self) -> FilebenchSettings {
        let common = FilebenchSettings {
            files: 1000,
            size: 16 << 10,
            fixed: false,
            preallocated: 1.0,
            per_directory: 20,
            threads: 100,
            writers: 0,
            unit: 1 << 20,
            append: 16 << 10,
            log_max: 256 << 20,
            think: Nanos(0),
            duration: Nanos(60_000_000_000),
            prepare: Prepare::Written,
        };
        match self {
            Self::Webserver => common,
            Self::Fileserver => {
                FilebenchSettings { files: 10_000, size: 128 << 10, preallocated: 0.8, threads: 50, ..common }
            }
            Self::Oltp => FilebenchSettings {
                files: 10,
                size: 10 << 20,
                fixed: true,
                per_directory: 1024,
                threads: 200,
                writers: 10,
                unit: 2 << 10,
                append: 256 << 10,
                think: Nanos(200_000),
                ..common
            },
            Self::Varmail => FilebenchSettings { preallocated: 0.8, per_directory: 0, threads: 16, ..common },
        }
    }
}

/// Units that an OLTP writer takes at a time, and the most that its semaphore holds; then the log writer's. (The
/// profile's value and high water; a semaphore holds what one take needs at least.)
const WRITER_UNITS: (u32, u32) = (1000, 2000);
const LOG_UNITS: (u32, u32) = (3200, 3200);
/// Writes of an OLTP writer in a round.
const WRITER_BURST: u32 = 100;
/// The part of the log that is written over, 1 MiB.
const LOG_WORKING_SET: u64 = 1 << 20;
/// Files that a web server's thread reads in a round.
const WEB_READS: u32 = 10;
/// Shape of the gamma distribution of sizes.
const SHAPE: f64 = 1.5;

/// The program.
#[derive(Clone, Debug)]
pub struct Filebench {
    profile: Profile,
    settings: FilebenchSettings,
    rng: Rng,
    sizes: Rng,
    /// By thread.
    calls: Vec<VecDeque<Call>>,
    /// Existing files, missing files, and the index of each in its list.
    live: Vec<u32>,
    gone: Vec<u32>,
    place: Vec<u32>,
    /// How many threads use a file: it is not deleted then.
    users: Vec<u32>,
    /// By thread, the current call; its effects follow when it is done.
    under_way: Vec<Option<Call>>,
    begun: bool,
    prepared: bool,
    measured_from: Option<Nanos>,
    operations: u64,
    rounds: u64,
    log_at: u64,
    files_created: u64,
    files_deleted: u64,
    bytes_read: u64,
    bytes_written: u64,
}

/// Refuses a device with less room than `files` of `mean` bytes take, with a tenth to spare.
pub(crate) fn check_room(files: u64, mean: u64, device_bytes: u64) -> Result<(), Misfit> {
    let blocks = mean.div_ceil(BLOCK_BYTES) + mean.div_ceil(BLOCK_BYTES) / 1024 + 1;
    let needed = (files * blocks * BLOCK_BYTES / 10 * 11 + (64 << 20)).next_multiple_of(1 << 20);
    if needed > device_bytes {
        return Err(Misfit {
            what: "files",
            found: format!("{files} of {} on a device of {}", Bytes(mean), Bytes(device_bytes)),
            expected: format!("one of at least {}, or fewer or smaller files", Bytes(needed)),
        });
    }
    Ok(())
}

/// A number of the gamma distribution with shape [`SHAPE`] and mean 1 (Marsaglia and Tsang 2000, for shapes of 1 and
/// more; normal numbers after Box and Muller).
fn gamma(rng: &mut Rng) -> f64 {
    let d = SHAPE - 1.0 / 3.0;
    let c = 1.0 / sqrt(9.0 * d);
    loop {
        let radius = sqrt(-2.0 * log(1.0 - unit_interval(rng)));
        let x = radius * cos(TAU * unit_interval(rng));
        let v = (1.0 + c * x).powi(3);
        let u = 1.0 - unit_interval(rng);
        if v > 0.0 && log(u) < 0.5 * x * x + d - d * v + d * log(v) {
            return d * v / SHAPE;
        }
    }
}

impl Filebench {
    /// The program with its own stream of the seed.
    #[must_use]
    pub fn new(profile: Profile, settings: FilebenchSettings, seed: Seed) -> Self {
        let threads = match profile {
            Profile::Oltp => settings.threads + settings.writers + 1,
            _ => settings.threads,
        };
        let extra = u32::from(matches!(profile, Profile::Webserver | Profile::Oltp));
        Self {
            rng: seed.stream("filebench"),
            sizes: seed.stream("filebench.sizes"),
            calls: vec![VecDeque::new(); threads as usize],
            live: Vec::new(),
            gone: (0..settings.files).rev().collect(),
            place: vec![0; settings.files as usize],
            users: vec![0; (settings.files + extra) as usize],
            under_way: vec![None; threads as usize],
            begun: false,
            prepared: false,
            measured_from: None,
            operations: 0,
            rounds: 0,
            log_at: 0,
            files_created: 0,
            files_deleted: 0,
            bytes_read: 0,
            bytes_written: 0,
            profile,
            settings,
        }
    }

    /// Refuses a device too small for all files of the set.
    ///
    /// # Errors
    /// One line with the required device size.
    pub fn check_room(&self, device_bytes: u64) -> Result<(), Misfit> {
        let log = if self.profile == Profile::Webserver { self.settings.log_max } else { 0 };
        check_room(u64::from(self.settings.files), self.settings.size, device_bytes.saturating_sub(log))
    }

    /// The log, in addition to the set.
    fn log(&self) -> u32 {
        self.settings.files
    }

    fn draw(&mut self, bound: u64) -> u64 {
        below(&mut self.rng, bound.max(1))
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)] // far below 2^53
    fn draw_size(&mut self) -> u64 {
        if self.settings.fixed {
            return self.settings.size;
        }
        ((gamma(&mut self.sizes) * self.settings.size as f64) as u64).max(1)
    }

    /// The next number without a file becomes one that has a file.
    fn begin_file(&mut self) -> Option<u32> {
        let file = self.gone.pop()?;
        self.place[file as usize] = u32::try_from(self.live.len()).expect("files are numbered in 32 bits");
        self.live.push(file);
        Some(file)
    }

    fn end_file(&mut self, file: u32) {
        let at = self.place[file as usize] as usize;
        self.live.swap_remove(at);
        if let Some(moved) = self.live.get(at) {
            self.place[*moved as usize] = u32::try_from(at).expect("as before");
        }
    }

    fn pick(&mut self) -> Option<u32> {
        let files = self.live.len() as u64;
        if files == 0 {
            return None;
        }
        let at = usize::try_from(self.draw(files)).expect("an index into a list fits");
        Some(self.live[at])
    }

    /// A file that no thread uses: the first one from a random place on.
    fn pick_idle(&mut self) -> Option<u32> {
        let files = self.live.len();
        let start = usize::try_from(self.draw(files as u64)).expect("an index into a list fits");
        (0..files).map(|i| self.live[(start + i) % files]).find(|file| self.users[*file as usize] == 0)
    }

    fn prepare(&mut self) {
        if self.settings.per_directory > 0 {
            let directories = (self.settings.files + 1).div_ceil(self.settings.per_directory);
            self.calls[0].extend((0..directories).map(|_| Call::MakeDirectory));
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a share of a u32
        let first = (f64::from(self.settings.files) * self.settings.preallocated).round() as u32;
        for _ in 0..first {
            let Some(file) = self.begin_file() else { break };
            let bytes = self.draw_size();
            self.prepare_file(file, bytes);
        }
        match self.profile {
            Profile::Webserver => self.prepare_file(self.log(), 0),
            Profile::Oltp => self.prepare_file(self.log(), self.settings.size.max(LOG_WORKING_SET)),
            Profile::Fileserver | Profile::Varmail => {}
        }
        self.calls[0].extend([Call::Sync, Call::DropCaches]);
    }

    fn prepare_file(&mut self, file: u32, bytes: u64) {
        let directory = self.directory(file);
        self.calls[0].push_back(Call::Create { file, directory });
        match self.settings.prepare {
            Prepare::Placed => self.calls[0].push_back(Call::Place { file, bytes }),
            Prepare::Written => {
                self.calls[0].extend([Call::Open(file), Call::Append { file, bytes, unit: 1 << 20 }, Call::Close(file)])
            }
        }
    }

    fn open(&mut self, thread: usize, file: u32) {
        self.users[file as usize] += 1;
        self.calls[thread].push_back(Call::Open(file));
        self.operations += 1;
    }

    fn close(&mut self, thread: usize, file: u32) {
        self.calls[thread].push_back(Call::Close(file));
        self.operations += 1;
    }

    fn read_whole(&mut self, thread: usize, file: u32, fs: &FileSystem) {
        let bytes = fs.size(file).unwrap_or(0);
        self.calls[thread].push_back(Call::Read { file, offset: 0, bytes, unit: self.settings.unit });
        self.bytes_read += bytes;
        self.operations += 1;
    }

    fn append(&mut self, thread: usize, file: u32) {
        // Filebench draws an append's length uniformly up to its size.
        let bytes = 1 + self.draw(self.settings.append);
        self.calls[thread].push_back(Call::Append { file, bytes, unit: self.settings.unit });
        self.bytes_written += bytes;
        self.operations += 1;
    }

    fn create(&mut self, thread: usize) -> Option<u32> {
        let file = self.begin_file()?;
        self.users[file as usize] += 1;
        self.files_created += 1;
        self.operations += 1;
        let directory = self.directory(file);
        self.calls[thread].extend([Call::Create { file, directory }, Call::Open(file)]);
        Some(file)
    }

    fn delete(&mut self, thread: usize) {
        if let Some(file) = self.pick_idle() {
            self.end_file(file);
            self.calls[thread].push_back(Call::Delete(file));
            self.files_deleted += 1;
            self.operations += 1;
        }
    }

    fn webserver(&mut self, thread: usize, fs: &FileSystem) {
        for _ in 0..WEB_READS {
            let Some(file) = self.pick() else { return };
            self.open(thread, file);
            self.read_whole(thread, file, fs);
            self.close(thread, file);
        }
        self.append_to_log(thread, fs);
    }

    /// Appends until the log has its largest size; then it is written again from its start.
    fn append_to_log(&mut self, thread: usize, fs: &FileSystem) {
        let (file, size, unit) = (self.log(), fs.size(self.log()).unwrap_or(0), self.settings.unit);
        if size < self.settings.log_max {
            self.append(thread, file);
            return;
        }
        let bytes = 1 + self.draw(self.settings.append);
        if self.log_at + bytes > size {
            self.log_at = 0;
        }
        self.calls[thread].push_back(Call::Write { file, offset: self.log_at, bytes: bytes.min(size), unit });
        self.log_at += bytes;
        self.bytes_written += bytes;
        self.operations += 1;
    }

    fn fileserver(&mut self, thread: usize, fs: &FileSystem) {
        if let Some(file) = self.create(thread) {
            let bytes = self.draw_size();
            self.calls[thread].push_back(Call::Append { file, bytes, unit: self.settings.unit });
            self.bytes_written += bytes;
            self.operations += 1;
            self.close(thread, file);
        }
        if let Some(file) = self.pick_made(fs) {
            self.open(thread, file);
            self.append(thread, file);
            self.close(thread, file);
        }
        if let Some(file) = self.pick_made(fs) {
            self.open(thread, file);
            self.read_whole(thread, file, fs);
            self.close(thread, file);
        }
        self.delete(thread);
        if let Some(file) = self.pick_made(fs) {
            self.users[file as usize] += 1;
            self.calls[thread].push_back(Call::Stat(file));
            self.operations += 1;
        }
    }

    fn varmail(&mut self, thread: usize, fs: &FileSystem) {
        self.delete(thread);
        if let Some(file) = self.create(thread) {
            self.append(thread, file);
            self.fsync(thread, file);
            self.close(thread, file);
        }
        if let Some(file) = self.pick_made(fs) {
            self.open(thread, file);
            self.read_whole(thread, file, fs);
            self.append(thread, file);
            self.fsync(thread, file);
            self.close(thread, file);
        }
        if let Some(file) = self.pick_made(fs) {
            self.open(thread, file);
            self.read_whole(thread, file, fs);
            self.close(thread, file);
        }
    }

    fn fsync(&mut self, thread: usize, file: u32) {
        self.calls[thread].push_back(Call::Fsync { file, data_only: false });
        self.operations += 1;
    }

    /// A file that already exists: a number may be reserved for a thread that has not created its file yet.
    fn pick_made(&mut self, fs: &FileSystem) -> Option<u32> {
        (0..16).find_map(|_| self.pick().filter(|file| fs.size(*file).is_some()))
    }

    fn oltp(&mut self, thread: usize, fs: &FileSystem) {
        let unit = self.settings.unit;
        let semaphores = |units: u32, semaphore: u32| Call::Take { semaphore, units };
        if thread < self.settings.threads as usize {
            let Some((file, offset)) = self.place_in_data(fs) else { return };
            self.calls[thread].extend([
                Call::Read { file, offset, bytes: unit, unit },
                Call::Compute(self.settings.think),
                Call::Post { semaphore: 1, units: 1 },
                Call::Post { semaphore: 0, units: 1 },
            ]);
            self.bytes_read += unit;
            self.operations += 1;
        } else if thread < (self.settings.threads + self.settings.writers) as usize {
            for _ in 0..WRITER_BURST {
                let Some((file, offset)) = self.place_in_data(fs) else { return };
                self.calls[thread]
                    .extend([Call::Write { file, offset, bytes: unit, unit }, Call::Fsync { file, data_only: true }]);
                self.bytes_written += unit;
                self.operations += 1;
            }
            self.calls[thread].push_back(semaphores(WRITER_UNITS.0, 0));
        } else {
            let (file, bytes) = (self.log(), self.settings.append.min(LOG_WORKING_SET));
            let offset = self.draw((LOG_WORKING_SET - bytes) / BLOCK_BYTES + 1) * BLOCK_BYTES;
            self.calls[thread].extend([
                Call::Write { file, offset, bytes, unit: bytes },
                Call::Fsync { file, data_only: true },
                semaphores(LOG_UNITS.0, 1),
            ]);
            self.bytes_written += bytes;
            self.operations += 1;
        }
    }

    fn place_in_data(&mut self, fs: &FileSystem) -> Option<(u32, u64)> {
        let file = self.pick()?;
        let places = fs.size(file)? / self.settings.unit;
        Some((file, self.draw(places) * self.settings.unit))
    }

    /// A thread's call is done: its file may be deleted now, or its number given out again.
    fn done(&mut self, call: Call) {
        match call {
            Call::Close(file) | Call::Stat(file) => self.users[file as usize] -= 1,
            Call::Delete(file) => self.gone.push(file),
            _ => {}
        }
    }

    fn directory(&self, file: u32) -> u32 {
        file.checked_div(self.settings.per_directory).map_or(0, |at| 1 + at)
    }
}

impl Application for Filebench {
    fn threads(&self) -> u32 {
        u32::try_from(self.calls.len()).expect("threads are numbered in 32 bits")
    }

    fn semaphores(&self) -> Vec<u32> {
        if self.profile == Profile::Oltp { vec![WRITER_UNITS.1, LOG_UNITS.1] } else { Vec::new() }
    }

    fn next(&mut self, thread: u32, now: Nanos, fs: &FileSystem) -> Call {
        let at = thread as usize;
        if let Some(call) = self.under_way[at].take() {
            self.done(call);
        }
        if !self.prepared {
            if at > 0 {
                return Call::Hold;
            }
            if !std::mem::replace(&mut self.begun, true) {
                self.prepare();
            }
            if let Some(call) = self.calls[0].pop_front() {
                return call;
            }
            self.prepared = true;
            self.measured_from = Some(now);
            return Call::Release;
        }
        if self.calls[at].is_empty() {
            if now.0 - self.measured_from.map_or(0, |from| from.0) >= self.settings.duration.0 {
                return Call::Exit;
            }
            self.rounds += 1;
            match self.profile {
                Profile::Webserver => self.webserver(at, fs),
                Profile::Fileserver => self.fileserver(at, fs),
                Profile::Oltp => self.oltp(at, fs),
                Profile::Varmail => self.varmail(at, fs),
            }
        }
        match self.calls[at].pop_front() {
            Some(call) => {
                self.under_way[at] = Some(call);
                call
            }
            // There is no file to work on: skips a turn.
            None => Call::Compute(Nanos(1_000_000)),
        }
    }

    fn measured_from(&self) -> Option<Nanos> {
        self.measured_from
    }

    #[allow(clippy::cast_precision_loss)] // counts far below 2^53
    fn figures(&self, elapsed: Nanos) -> Vec<(&'static str, f64)> {
        let per_s = |count: u64| if elapsed.0 == 0 { 0.0 } else { count as f64 * 1e9 / elapsed.0 as f64 };
        vec![
            ("rounds", self.rounds as f64),
            ("operations", self.operations as f64),
            ("operations_per_s", per_s(self.operations)),
            ("files_created", self.files_created as f64),
            ("files_deleted", self.files_deleted as f64),
            ("bytes_read", self.bytes_read as f64),
            ("bytes_written", self.bytes_written as f64),
            ("read_bytes_per_s", per_s(self.bytes_read)),
            ("write_bytes_per_s", per_s(self.bytes_written)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean 1 and variance 1 / shape.
    #[test]
    fn sizes_are_gamma_distributed() {
        let mut rng = Seed(3).stream("test");
        let draws: Vec<f64> = (0..200_000).map(|_| gamma(&mut rng)).collect();
        let mean = draws.iter().sum::<f64>() / 200_000.0;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 200_000.0;
        // One sigma of the mean is 0.0018, of the variance about 0.0046.
        assert!((mean - 1.0).abs() < 0.01 && (variance - 1.0 / SHAPE).abs() < 0.02, "{mean} {variance}");
    }
}
