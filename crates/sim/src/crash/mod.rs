//! Crash tests: what was served is played again, the power fails in any flash operation, and what the drive then holds goes to a file.
//!
//! Whoever wrote to the drive can be asked whether it finds there what it was promised, as often as wanted: one recording allows as
//! many tests as it has flash operations. The idea of recording what a file system writes and of going back to every flush is that
//! of dm-log-writes; here the drive decides which of the later writes are there.

mod recording;

pub use recording::{About, Recording, RecordingError, RecordingWriter, Step};

use crate::machine::Machine;
use crate::{LiveRun, Precondition};
use flashwright_block::{BlockDevice, Completion, HoldsData, IoError, Nanos, Request, SECTOR_BYTES, Seed, Tag};
use flashwright_ftl::Ftl as _;
use flashwright_nand::Lpn;
use flashwright_ssd::{Config, Mounted, Ssd};
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Places in the recording from which it can be played on.
const RESUMED_FROM: usize = 32;
/// Bytes that are read at most when the drive is copied to a file.
const PIECE: u64 = 1 << 20;

/// A recording and the drive that it is played on.
///
/// ```
/// use flashwright_block::{Nanos, Request, RequestKind};
/// use flashwright_sim::crash::{About, CrashTest, Recording, RecordingWriter};
/// use flashwright_ssd::DriveConfig;
///
/// let folder = std::env::temp_dir().join(format!("flashwright-crash-{}", std::process::id()));
/// std::fs::create_dir_all(&folder)?;
/// let config = DriveConfig::default().with_settings(&["recovery.mount-by=scan"])?;
/// let about = About { config: config.to_toml(), seed: 1, precondition: "empty".to_owned() };
/// let mut writer = RecordingWriter::create(&folder.join("a.fwr"), &about)?;
/// for page in 0..8 {
///     let write = Request { first_sector: 8 * page, sectors: 8, kind: RequestKind::Write, ..Request::default() };
///     let number = writer.request(&write, &[1; 4096])?;
///     writer.completed(number)?;
/// }
/// writer.finish()?;
/// let test = CrashTest::new(Recording::read(&folder.join("a.fwr"))?, &[])?;
/// assert_eq!(test.operations(), 8);
/// let crashed = test.cut(3, None, &folder.join("a.image"))?;
/// assert_eq!((crashed.requests_completed, crashed.mounted.pages_mapped, crashed.mounted.pages_torn), (3, 3, 1));
/// # std::fs::remove_dir_all(folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct CrashTest {
    recording: Recording,
    /// Where the recording can be played on from, in order; the first is its beginning.
    from: Vec<Playing>,
    operations: u64,
}

/// What a loss of power left.
#[derive(Clone, Debug)]
pub struct Crashed {
    /// The program or erase in which the power failed, counted from 0 over the recording.
    pub operation: u64,
    /// Whether it failed once more while the drive was mounted.
    pub cut_in_mount: bool,
    /// Requests that had completed.
    pub requests_completed: u64,
    /// Marks that had been set: the first so many of the recording.
    pub marks: usize,
    /// The last mount.
    pub mounted: Mounted,
}

/// A drive in the middle of a recording.
#[derive(Clone, Debug)]
struct Playing {
    drive: Machine,
    next: usize,
    /// Requests taken, and those of them that have completed.
    taken: u64,
    completed: u64,
    in_flight: HashMap<Tag, u64>,
    marks: usize,
}

/// Why a recording can't be played.
#[derive(Debug, thiserror::Error)]
pub enum CrashError {
    /// The drive can't be built, or settings don't fit it.
    #[error("{0}")]
    Drive(String),
    /// The drive that was recorded can't be mounted again.
    #[error("{path}: recovery.mount-by: found \"nothing\", expected \"scan\" for a loss of power", path = .path.display())]
    NotKept {
        /// The recording.
        path: std::path::PathBuf,
    },
    /// The drive refused a request, can't be mounted, or contradicts itself.
    #[error("{path}: {what}", path = .path.display())]
    Played {
        /// The recording.
        path: std::path::PathBuf,
        /// What the drive says.
        what: String,
    },
    /// The copy of the drive can't be written.
    #[error("{path}: {text}", path = .path.display(), text = flashwright_block::system_says(source))]
    Image {
        /// The file.
        path: std::path::PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
}

impl Playing {
    /// Plays steps up to `end`, or until the power fails.
    fn play(&mut self, steps: &[Step], end: usize) -> Result<(), IoError> {
        while self.next < end && self.is_on() {
            match &steps[self.next] {
                Step::Request(request, data) => {
                    self.wait(request.arrival.max(self.drive.now()), None)?;
                    if !self.is_on() {
                        return Ok(());
                    }
                    let request = Request { arrival: request.arrival.max(self.drive.now()), ..*request };
                    let data = (!data.is_empty()).then_some(&data[..]);
                    match self.submit(request, data) {
                        Ok(tag) => self.in_flight.insert(tag, self.taken),
                        Err(_) if !self.is_on() => return Ok(()),
                        Err(error) => return Err(error),
                    };
                    self.taken += 1;
                }
                Step::Completed(number) => {
                    if self.in_flight.values().any(|flying| flying == number) {
                        self.wait(Nanos(u64::MAX), Some(*number))?;
                    }
                    if !self.is_on() {
                        return Ok(());
                    }
                }
                Step::Mark(_) => self.marks += 1,
            }
            self.next += 1;
        }
        Ok(())
    }

    fn submit(&mut self, request: Request, data: Option<&[u8]>) -> Result<Tag, IoError> {
        let device = self.drive.device();
        match data {
            Some(data) => device.holds_data().ok_or(IoError::KeepsNoData)?.submit_with(request, data),
            None => device.submit(request), // nobody wants what it reads
        }
    }

    fn is_on(&self) -> bool {
        self.drive.ssd().is_on()
    }

    /// Takes what completes by a time, or until a request has completed.
    fn wait(&mut self, until: Nanos, asked: Option<u64>) -> Result<(), IoError> {
        let mut completion = Completion::default();
        while self.drive.device().wait(until, &mut completion)? {
            let number = self.in_flight.remove(&completion.tag);
            match &completion.result {
                Ok(()) => self.completed += 1,
                Err(_) if !self.is_on() => {}
                Err(error) => return Err((**error).clone()),
            }
            if asked.is_some() && number == asked {
                break;
            }
        }
        Ok(())
    }

    fn operations(&self) -> u64 {
        self.drive.ssd().operations_done().unwrap_or_default()
    }
}

impl CrashTest {
    /// Builds the drive of a recording, with some settings changed, and plays the recording once without a loss of power.
    ///
    /// # Errors
    /// [`CrashError`] if the drive can't lose power, can't be built, or refuses a request.
    pub fn new(recording: Recording, settings: &[String]) -> Result<Self, CrashError> {
        let drive = |error: &dyn ToString| CrashError::Drive(error.to_string());
        let source = recording.path.display().to_string();
        let config = Config::from_toml(&recording.about.config, &source).map_err(|error| drive(&error))?;
        let config = config.with_settings(settings).map_err(|error| drive(&error))?;
        let played = |what: String| CrashError::Played { path: recording.path.clone(), what };
        if !config.recovery.can_mount() {
            return Err(CrashError::NotKept { path: recording.path });
        }
        let scheme = config.ftl.scheme;
        if scheme.writes_in_order() {
            let name = scheme.listed().name;
            let what = format!(
                "ftl.scheme: found {name:?}, expected a scheme that takes writes in any order: recordings know no zones"
            );
            return Err(CrashError::Drive(what));
        }
        let precondition: Precondition = recording.about.precondition.parse().map_err(|error: String| drive(&error))?;
        let live =
            LiveRun::new(&config, Seed(recording.about.seed), precondition, || false).map_err(|error| drive(&error))?;
        let drive = live.into_machine();
        let mut playing = Playing { drive, next: 0, taken: 0, completed: 0, in_flight: HashMap::new(), marks: 0 };
        let (mut from, before) = (Vec::with_capacity(RESUMED_FROM), playing.operations());
        let steps = recording.steps.len();
        for part in 0..RESUMED_FROM {
            from.push(playing.clone());
            playing
                .play(&recording.steps, steps * (part + 1) / RESUMED_FROM)
                .map_err(|error| played(error.to_string()))?;
        }
        playing.wait(Nanos(u64::MAX), None).map_err(|error| played(error.to_string()))?;
        let operations = playing.operations() - before;
        if operations == 0 {
            return Err(played("nothing was programmed while it was recorded, so there is nothing to cut".to_owned()));
        }
        Ok(Self { recording, from, operations })
    }

    /// The recording.
    #[must_use]
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Programs and erases of the recording: the moments at which power can fail.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// Lets the power fail in the middle of a program or an erase, numbered from 0, mounts the drive, and copies what it holds to a
    /// file. With `in_mount` it fails again while the drive is mounted, after so many operations, if the mount has more.
    ///
    /// # Errors
    /// [`CrashError`] if the drive can't be mounted or contradicts itself, or if the file can't be written.
    ///
    /// # Panics
    /// If the recording has no such operation.
    pub fn cut(&self, operation: u64, in_mount: Option<u64>, image: &Path) -> Result<Crashed, CrashError> {
        assert!(operation < self.operations, "operation {operation} of {}", self.operations);
        let played = |what: &dyn ToString| CrashError::Played {
            path: self.recording.path.clone(),
            what: format!("power failed in operation {operation}: {}", what.to_string()),
        };
        let at = self.from[0].operations() + operation;
        let from = self.from.partition_point(|from| from.operations() <= at).max(1) - 1;
        let mut playing = self.from[from].clone();
        let operations = at - playing.operations();
        playing.drive.ssd_mut().cut_after(operations);
        playing.play(&self.recording.steps, self.recording.steps.len()).map_err(|error| played(&error))?;
        if playing.is_on() {
            // It fails while the last requests are carried out.
            playing.wait(Nanos(u64::MAX), None).map_err(|error| played(&error))?;
        }
        if playing.is_on() {
            return Err(played(&"the operation did not come, although it did before"));
        }
        // Where the power failed in the background, the controller does not know yet.
        playing.drive.cut().map_err(|error| played(&error))?;
        // Completions that nobody has taken yet: those of requests that the power failed under, and of some before.
        playing.wait(Nanos(u64::MAX), None).map_err(|error| played(&error))?;
        let Playing { mut drive, completed, marks, .. } = playing;
        let mut cut_in_mount = false;
        if let Some(operations) = in_mount {
            drive.ssd_mut().cut_after(operations);
            drive.mount().map_err(|error| played(&error))?;
            cut_in_mount = !drive.ssd().is_on();
            drive.ssd_mut().cut_after(u64::MAX);
        }
        let mounted = drive.mount().map_err(|error| played(&error))?;
        // Nothing but the flash holds anything now.
        let ssd = drive.ssd_mut();
        if let Some(violation) = ssd.audit().first() {
            return Err(played(violation));
        }
        copy(ssd, image)?;
        Ok(Crashed { operation, cut_in_mount, requests_completed: completed, marks, mounted })
    }
}

/// Copies what a drive holds to a file of its size; where it holds nothing, the file has holes.
fn copy(ssd: &mut Ssd, path: &Path) -> Result<(), CrashError> {
    let failed = |source| CrashError::Image { path: path.to_owned(), source };
    let file = File::create(path).map_err(failed)?;
    let capacity = ssd.info().capacity.0;
    file.set_len(capacity).map_err(failed)?;
    let (page, pages) = (ssd.sectors_per_page() * SECTOR_BYTES, ssd.logical_pages());
    let most = u32::try_from((PIECE / page).max(1)).expect("a piece has few pages");
    let (mut buffer, mut completion) = (Vec::new(), Completion::default());
    let holds = |ssd: &Ssd, lpn: u32| ssd.scheme().lookup(Lpn(lpn), ssd.flash()).is_some();
    let mut first = 0;
    while first < pages {
        let count = (first..pages.min(first + most)).take_while(|lpn| holds(ssd, *lpn)).count() as u64;
        if count == 0 {
            first += 1;
            continue;
        }
        let start = u64::from(first) * page;
        let bytes = (count * page).min(capacity - start);
        let read = Request {
            first_sector: start / SECTOR_BYTES,
            sectors: u32::try_from(bytes / SECTOR_BYTES).expect("a piece has fewer"),
            arrival: ssd.now(),
            ..Request::default()
        };
        buffer.resize(usize::try_from(bytes).expect("a piece fits memory"), 0);
        let ended = ssd.submit_with(read, &[]).and_then(|tag| ssd.wait(Nanos(u64::MAX), &mut completion).map(|_| tag));
        let taken = ended.and_then(|tag| {
            assert!(tag == completion.tag, "nothing else is in flight");
            completion.result.clone().map_err(|error| *error).map(|()| ssd.take_data(tag, &mut buffer))
        });
        match taken {
            Ok(true) => file.write_all_at(&buffer, start).map_err(failed)?,
            Ok(false) => unreachable!("a read that succeeded has data"),
            Err(error) => return Err(failed(std::io::Error::other(error.to_string()))),
        }
        first += u32::try_from(count).expect("a piece has few pages");
    }
    Ok(())
}
