//! The contract of [`BlockDevice`], checked for every device: a refused request changes nothing, and an accepted one
//! completes once, even if it fails.

#![allow(clippy::unwrap_used, clippy::print_stderr)] // a test that is skipped says so

use flashwright_block::{
    BlockDevice, Bytes, Completion, IoError, Nanos, Request, RequestKind, Rng, SECTOR_BYTES, Seed, below,
};
use flashwright_disk::{Access, Disk, DiskError, Effect, Faulty, Options, Which, open};
use flashwright_host::Stack;
use flashwright_ssd::{Config, Controller, Ssd};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

const NEVER: Nanos = Nanos(u64::MAX);

/// A small drive whose blocks survive this many erases.
fn ssd(cycles: u32, more: &[&str]) -> Ssd {
    let mut settings = vec![
        "geometry.channels=2".to_owned(),
        "geometry.dies-per-channel=1".to_owned(),
        "geometry.blocks-per-plane=16".to_owned(),
        "geometry.pages-per-block=16".to_owned(),
        "geometry.page-size=\"4 KiB\"".to_owned(),
        "capacity.utilization=0.6".to_owned(),
        "host.queue-depth=4".to_owned(),
        format!("wear.pe-cycles-max={cycles}"),
    ];
    settings.extend(more.iter().map(ToString::to_string));
    Ssd::new(&Config::default().with_settings(&settings).unwrap(), Seed(1), true).unwrap()
}

fn controller(cycles: u32, more: &[&str]) -> Controller<Ssd> {
    let ssd = ssd(cycles, more);
    let config = ssd.config().controller.clone();
    Controller::new(&config, Seed(1), ssd)
}

fn stack(cycles: u32, more: &[&str]) -> Stack<Controller<Ssd>> {
    let controller = controller(cycles, more);
    let host = controller.device().config().host.stack.clone();
    Stack::new(&host, controller).unwrap()
}

/// RAM is flushed from time to time, so that a buffer's losses show.
fn writes(rng: &mut Rng, n: u64, sectors: u64) -> Request {
    if n % 50 == 49 {
        return Request { kind: RequestKind::Flush, ..Request::default() };
    }
    let first_sector = below(rng, sectors / 8) * 8;
    Request { kind: RequestKind::Write, first_sector, sectors: 8, process: 1 + (n % 3) as u32, ..Request::default() }
}

fn reads(rng: &mut Rng, _: u64, sectors: u64) -> Request {
    Request { first_sector: below(rng, sectors / 8) * 8, sectors: 8, ..Request::default() }
}

/// Refused requests, with others in flight: the device's state and clock are as before, and the others complete.
/// `state` is the whole state of the device, if it is available.
fn refuses_without_a_trace<D: BlockDevice>(name: &str, device: &mut D, writable: bool, state: impl Fn(&D) -> Vec<u8>) {
    let info = device.info();
    let sectors = info.capacity.0 / SECTOR_BYTES;
    let block = u32::try_from(info.sector.0 / SECTOR_BYTES).unwrap();
    let at = |kind, first_sector, sectors| Request { kind, first_sector, sectors, ..Request::default() };
    let mut refused = Vec::new();
    for kind in [RequestKind::Read, RequestKind::Write, RequestKind::Trim] {
        refused.extend([at(kind, sectors, block), at(kind, sectors - u64::from(block), 2 * block)]);
        refused.push(at(kind, u64::MAX, block));
        if block > 1 {
            refused.extend([at(kind, 1, block), at(kind, 0, 1)]);
        }
        if !writable && kind != RequestKind::Read {
            refused.push(at(kind, 0, block));
        }
    }
    let mut open: HashSet<_> = (0..6).map(|n| device.submit(at(RequestKind::Read, 8 * n, 8)).unwrap()).collect();
    for request in refused {
        // An arrival in the future must not pass either.
        let request = Request { arrival: Nanos(device.now().0 + 1_000_000_000), ..request };
        let (before, clock) = (state(device), device.now());
        let error = device.submit(request).expect_err(name);
        let expected =
            matches!(error, IoError::OutOfRange { .. } | IoError::Misaligned { .. } | IoError::ReadOnly { .. });
        assert!(expected, "{name}: {error}");
        assert!(state(device) == before, "{name}: {request:?} left a trace");
        assert!(device.now().0 - clock.0 < 900_000_000, "{name}: time passed for {request:?}");
    }
    let mut completion = Completion::default();
    while device.wait(NEVER, &mut completion).unwrap() {
        assert!(open.remove(&completion.tag) && completion.result.is_ok(), "{name}: {completion:?}");
    }
    assert!(open.is_empty(), "{name}: {open:?} never completed");
}

/// Requests until `enough` have failed: each completes once, time continues, nothing is left, and the device still
/// reads.
fn ends_every_request<D: BlockDevice>(
    name: &str,
    device: &mut D,
    next: fn(&mut Rng, u64, u64) -> Request,
    enough: usize,
    in_flight: impl Fn(&D) -> usize,
) {
    let sectors = device.info().capacity.0 / SECTOR_BYTES;
    let mut rng = Seed(5).stream("test");
    let (mut open, mut failed, mut ended, mut last) = (HashSet::new(), 0, 0, device.now());
    let mut completion = Completion::default();
    let mut land = |device: &mut D, open: &mut HashSet<_>| {
        assert!(device.wait(NEVER, &mut completion).unwrap(), "{name}: {open:?} never complete");
        assert!(open.remove(&completion.tag), "{name}: {completion:?} completed twice");
        assert!(completion.start <= completion.end && completion.end <= device.now(), "{name}: {completion:?}");
        assert!(device.now() >= last, "{name}: the clock went back");
        last = device.now();
        ended += 1;
        failed += usize::from(completion.result.is_err());
        failed
    };
    for n in 0.. {
        assert!(n < 200_000, "{name}: does not fail");
        let request = Request { arrival: device.now(), ..next(&mut rng, n, sectors) };
        assert!(open.insert(device.submit(request).unwrap()), "{name}: a tag was given twice");
        if open.len() >= 12 && land(device, &mut open) >= enough {
            break;
        }
    }
    while !open.is_empty() {
        land(device, &mut open);
    }
    assert!(ended > failed, "{name}: some succeed");
    assert_eq!(device.wait(NEVER, &mut Completion::default()), Ok(false), "{name}: nothing is left");
    assert_eq!(in_flight(device), 0, "{name}");
    let until = Nanos(device.now().0 + 1_000_000);
    assert_eq!(device.wait(until, &mut Completion::default()), Ok(false), "{name}");
    assert!(device.now() >= until, "{name}: the clock stands");
    // An injector may hit one of two.
    let answers = [0, 8].map(|first_sector| {
        device.execute(Request { first_sector, sectors: 8, ..Request::default() }, &mut completion).unwrap();
        completion.result.is_ok()
    });
    assert!(answers.contains(&true), "{name}: can't be read any more");
}

const TIMINGS: [&str; 3] = ["timing.model=none", "timing.model=serial", "timing.model=parallel"];
const BUFFER: &str = "controller.write-buffer.size=\"64 KiB\"";
const CONTROLLERS: [&[&str]; 4] = [
    &[],
    &["controller.queue-depth=3", "controller.command-limit=\"2 KiB\""],
    &["controller.write-overhead=\"5 us\"", BUFFER],
    &["controller.read-buffer.size=\"64 KiB\"", BUFFER, "controller.write-buffer.drain=\"eager\""],
];
const SCHEDULERS: [&str; 3] = ["host.scheduler=noop", "host.scheduler=deadline", "host.scheduler=cfq"];

#[test]
fn refused_requests_change_nothing() {
    for timing in TIMINGS {
        refuses_without_a_trace(timing, &mut ssd(1000, &[timing]), true, |ssd| postcard::to_stdvec(ssd).unwrap());
    }
    for settings in CONTROLLERS {
        let name = format!("{settings:?}");
        let mut drive = controller(1000, settings);
        refuses_without_a_trace(&name, &mut drive, true, |drive| postcard::to_stdvec(drive).unwrap());
    }
    for scheduler in SCHEDULERS {
        let mut stack = stack(1000, &[scheduler]);
        refuses_without_a_trace(scheduler, &mut stack, true, |stack| postcard::to_stdvec(stack).unwrap());
    }
    let which = Which::Share { share: 0.0, seed: Seed(1) };
    let mut faulty = Faulty::new(ssd(1000, &[]), which, Effect::Fail);
    // Its state with its random draws, but without the drive's, which is checked above.
    refuses_without_a_trace("faults", &mut faulty, true, |faulty| format!("{faulty:?}").into_bytes());
    let image = Image::new("contract-refused");
    if let Some(mut disk) = image.disk() {
        refuses_without_a_trace("a file", &mut disk, false, |_| Vec::new());
    }
}

#[test]
fn requests_that_fail_complete_once_and_the_device_goes_on() {
    for timing in TIMINGS {
        ends_every_request(timing, &mut ssd(3, &[timing]), writes, 30, Ssd::in_flight);
    }
    for settings in CONTROLLERS {
        let mut drive = controller(3, settings);
        ends_every_request(&format!("{settings:?}"), &mut drive, writes, 30, Controller::in_flight);
    }
    for scheduler in SCHEDULERS {
        let mut stack = stack(3, &[scheduler]);
        ends_every_request(scheduler, &mut stack, writes, 30, |stack| stack.device().device().in_flight());
    }
    for effect in [Effect::Fail, Effect::Shorten] {
        let mut faulty = Faulty::new(ssd(1000, &[]), Which::Every(3), effect);
        ends_every_request(&format!("{effect:?}"), &mut faulty, reads, 30, |_| 0);
    }
    // Injected under a scheduler that merges: every request of the host that a failed one was made of fails.
    let config = Config::default().with_settings(&["host.scheduler=deadline".to_owned()]).unwrap();
    let faulty = Faulty::new(ssd(1000, &[]), Which::Every(3), Effect::Fail);
    let mut stack = Stack::new(&config.host.stack, faulty).unwrap();
    ends_every_request("faults under a scheduler", &mut stack, writes, 30, |_| 0);
    let image = Image::new("contract-failed");
    if let Some(disk) = image.disk() {
        let mut faulty = Faulty::new(disk, Which::Every(3), Effect::Fail);
        ends_every_request("faults on a file", &mut faulty, reads, 30, |_| 0);
    }
    if let Some(mut disk) = image.disk() {
        // The second half is gone: its reads fail in the kernel.
        std::fs::OpenOptions::new().write(true).open(&image.0).unwrap().set_len(BYTES / 2).unwrap();
        ends_every_request("a file that shrank", &mut disk, reads, 30, |_| 0);
    }
}

const BYTES: u64 = 1 << 20;

struct Image(PathBuf);

impl Image {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        std::fs::write(&path, vec![0xa5; usize::try_from(BYTES).unwrap()]).unwrap();
        Self(path)
    }

    /// Reads only; none if this kernel has no rings.
    fn disk(&self) -> Option<Disk> {
        let target = open(&self.0, Access::ReadOnly, Bytes(0)).unwrap();
        match Disk::new(target, Options { depth: 4, ..Options::default() }) {
            Ok(disk) => Some(disk),
            Err(DiskError::NoRing { reason, .. }) => {
                eprintln!("skipped: no io_uring here ({reason})");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).unwrap_or_default();
    }
}
