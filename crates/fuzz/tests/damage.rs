//! Damaged copies of good files, and the watch over those that read them.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

use flashwright_testing::Rounds;
use proptest::collection::vec;
use proptest::prelude::any;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Longer than this is a hang, whatever else the machine does: files are of some kilobytes.
const HANG: Duration = Duration::from_secs(20);
/// No input may take more of a processor.
const PROCESSOR_MAX: Duration = Duration::from_secs(2);
/// Of address space for the whole process, threads and libraries included.
const MEMORY_MAX: u64 = 2 << 30;
/// Copies in `make test`.
const SHORT: u32 = 300;

/// Numbers at which readers break.
const NUMBERS: [&str; 22] = [
    "0",
    "1",
    "-1",
    "7",
    "511",
    "65535",
    "65536",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "36893488147419103231",
    "1e308",
    "1e-308",
    "nan",
    "inf",
    "0.5",
    "2199023255040",
    "36028797018963967",
    "",
];

/// Draws from the bytes that the fuzzer gives: the same bytes make the same file.
pub struct Draws<'a>(&'a [u8]);

impl<'a> Draws<'a> {
    pub fn of(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    /// Below `bound`, which is above 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (0..3).fold(0, |sum, _| sum << 8 | usize::from(self.byte())) % bound
    }

    pub fn pick<'t, T>(&mut self, from: &'t [T]) -> &'t T {
        &from[self.below(from.len())]
    }

    fn is_over(&self) -> bool {
        self.0.is_empty()
    }
}

/// A copy with one to eight damaged places; `others` give what is spliced in.
pub fn damaged(draws: &mut Draws<'_>, good: &[u8], others: &[Vec<u8>]) -> Vec<u8> {
    let mut copy = good.to_vec();
    for _ in 0..1 + draws.below(8) {
        if draws.is_over() {
            break;
        }
        wound(draws, &mut copy, others);
    }
    copy
}

fn wound(draws: &mut Draws<'_>, copy: &mut Vec<u8>, others: &[Vec<u8>]) {
    let at = draws.below(copy.len() + 1);
    let end = (at + 1 + draws.below(40)).min(copy.len());
    match draws.below(9) {
        0 if at < copy.len() => copy[at] ^= 1 << draws.below(8),
        1 if at < copy.len() => copy[at] = draws.byte(),
        2 => copy.truncate(at),
        3 => drop(copy.drain(at..end.max(at))),
        4 => {
            let piece = copy[at..end.max(at)].to_vec();
            copy.splice(at..at, piece);
        }
        5 => {
            let other = draws.pick(others);
            let from = draws.below(other.len() + 1);
            copy.splice(at..at, other[from..(from + 60).min(other.len())].iter().copied());
        }
        6 => copy.splice(at..at, draws.pick(&NUMBERS).bytes()).for_each(drop),
        // The number that stands here, or the next one.
        7 | 8 => {
            let digit = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
            let Some(first) = copy[at..].iter().position(digit).map(|ahead| at + ahead) else { return };
            let first = first - copy[..first].iter().rev().take_while(|byte| digit(byte)).count();
            let last = first + copy[first..].iter().take_while(|byte| digit(byte)).count();
            copy.splice(first..last, draws.pick(&NUMBERS).bytes()).for_each(drop);
        }
        _ => copy.insert(at, draws.byte()),
    }
}

/// Files of a folder of the corpus.
pub fn corpus(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{}: an empty corpus", folder.display());
    files
}

/// A folder of this process in the build's folder, for files of a target.
pub fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}

/// Runs a target: some hundred inputs that are always the same, or as many as [`Rounds`] says.
pub fn fuzz(name: &'static str, target: impl Fn(&mut Draws<'_>)) {
    // An address sanitizer takes terabytes of it for itself.
    if std::env::var_os("ASAN_OPTIONS").is_none() {
        let memory = rustix::process::Rlimit { current: Some(MEMORY_MAX), maximum: None };
        rustix::process::setrlimit(rustix::process::Resource::As, memory).unwrap();
    }
    let watch = Watch::new(name);
    let config = Config { cases: SHORT, failure_persistence: None, ..Config::default() };
    let mut rounds = Rounds::new(name, 1);
    while let Some(seed) = rounds.next_seed() {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let mut runner = TestRunner::new_with_rng(config.clone(), TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
        let result = runner.run(&vec(any::<u8>(), 0..512), |input| {
            watch.begin(&input);
            let before = processor_time();
            target(&mut Draws(&input));
            let took = processor_time() - before;
            assert!(took < PROCESSOR_MAX, "{took:?} of a processor");
            watch.end();
            Ok(())
        });
        result.unwrap_or_else(|error| panic!("{name}: {error}"));
        rounds.count(u64::from(SHORT));
    }
}

/// What this thread has had of a processor.
fn processor_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap())
}

/// Ends the process when one input takes too long, and says which it was.
#[allow(clippy::type_complexity)] // named nowhere else
struct Watch(std::sync::Arc<Mutex<(Option<Instant>, Vec<u8>, bool)>>);

impl Watch {
    fn new(name: &'static str) -> Self {
        let shared = std::sync::Arc::new(Mutex::new((None::<Instant>, Vec::new(), false)));
        let seen = std::sync::Arc::clone(&shared);
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(Duration::from_millis(200));
                let state = seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                if state.2 {
                    return;
                }
                if state.0.is_some_and(|since| since.elapsed() > HANG) {
                    let _ = writeln!(std::io::stderr(), "{name}: more than {HANG:?} for the draws {:?}", state.1);
                    std::process::abort();
                }
            }
        });
        Self(shared)
    }

    fn begin(&self, input: &[u8]) {
        let mut state = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        (state.0, state.1) = (Some(Instant::now()), input.to_vec());
    }

    fn end(&self) {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).0 = None;
    }
}

/// Also when the target has failed, which is no hang.
impl Drop for Watch {
    fn drop(&mut self) {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).2 = true;
    }
}

/// The error of a reader for a bad file is one non-empty line.
pub fn assert_one_line(text: &str) {
    assert!(!text.trim().is_empty() && !text.contains(['\n', '\r']), "not one line: {text:?}");
    assert!(text.len() < 2_000, "a line of {} bytes: {text:?}", text.len());
}
