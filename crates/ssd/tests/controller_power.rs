//! Loss of power behind a controller: after a cut at a random time, in a flash operation, or in a mount, every sector holds what the
//! host may expect: what was last flushed, or something that it wrote later; never anything else.
//!
//! The unit is the sector here, because a write buffer holds sectors. Each is full of the number of the write that it is from.

use crate::common::*;
use crate::power::{any_drive, any_parallel_drive};
use flashwright_block::{
    BlockDevice, Completion, HoldsData, IoError, Nanos, Request, RequestKind, Rng, Seed, Tag, below, chance,
};
use flashwright_ftl::LpnRun;
use flashwright_nand::Lpn;
use flashwright_ssd::{Controller, DriveConfig, Keeps, Ssd};
use std::collections::BTreeMap;

const SECTOR: usize = 512;
/// The host uses the first so many of a larger drive.
const SECTORS_MAX: usize = 1 << 13;

type Drive = Controller<Ssd>;

/// What a sector may hold.
#[derive(Clone, Copy, Debug)]
struct Write {
    /// 0 for nothing.
    number: u64,
    of: Tag,
    answered: bool,
}

/// A request in flight, and for a flush the newest write of each sector that had been answered when it was sent.
#[derive(Clone)]
struct Sent {
    request: Request,
    answered: Vec<u64>,
}

#[derive(Clone)]
struct Host {
    /// By sector, in the order of the requests. The first one is safe.
    may_hold: Vec<Vec<Write>>,
    in_flight: BTreeMap<Tag, Sent>,
    last: u64,
    /// Sectors of a page.
    page: u64,
}

impl Host {
    fn new(drive: &Drive) -> Self {
        let nothing = vec![Write { number: 0, of: Tag(u64::MAX), answered: true }];
        let sectors = (drive.info().capacity.0 as usize / SECTOR).min(SECTORS_MAX);
        let page = drive.device().sectors_per_page();
        Self { may_hold: vec![nothing; sectors], in_flight: BTreeMap::new(), last: 0, page }
    }

    fn next_request(&self, rng: &mut Rng) -> Request {
        let all = self.may_hold.len() as u64;
        let space = if chance(rng, 0.6) { (all / 5).max(self.page) } else { all };
        let longest = if chance(rng, 0.1) { 40 } else { 6 };
        let first = below(rng, space);
        let count = (1 + below(rng, longest)).min(all - first);
        let kind = match below(rng, 20) {
            0 => RequestKind::Trim,
            1 | 2 => RequestKind::Flush,
            3 | 4 => RequestKind::Read,
            _ => RequestKind::Write,
        };
        let fua = kind == RequestKind::Write && chance(rng, 0.1);
        let (first, count) = match kind {
            RequestKind::Flush => (0, 0),
            // A trim of a part of a page need not do anything.
            RequestKind::Trim => {
                let first = first / self.page * self.page;
                (first, (count.div_ceil(self.page) * self.page).min(all - first))
            }
            _ => (first, count),
        };
        Request { fua, ..sectors(kind, first, count as u32) }
    }

    fn submit(&mut self, drive: &mut Drive, request: Request) -> Result<(), IoError> {
        let number = if request.kind == RequestKind::Write { self.last + 1 } else { 0 };
        let bytes: Vec<u8> = number.to_le_bytes().repeat(SECTOR / 8 * request.sectors as usize);
        let of = match request.kind {
            RequestKind::Write => drive.submit_with(request, &bytes)?,
            _ => drive.submit(request)?,
        };
        self.last = self.last.max(number);
        if matches!(request.kind, RequestKind::Write | RequestKind::Trim) {
            for writes in self.touched(&request) {
                writes.push(Write { number, of, answered: false });
            }
        }
        let newest = |writes: &Vec<Write>| writes.iter().rfind(|write| write.answered).unwrap().of.0;
        let is_flush = request.kind == RequestKind::Flush;
        let answered = if is_flush { self.may_hold.iter().map(newest).collect() } else { Vec::new() };
        self.in_flight.insert(of, Sent { request, answered });
        Ok(())
    }

    fn touched(&mut self, request: &Request) -> &mut [Vec<Write>] {
        &mut self.may_hold[request.first_sector as usize..request.end_sector() as usize]
    }

    fn completed(&mut self, completion: &Completion) {
        let Sent { request, answered } = self.in_flight.remove(&completion.tag).expect("it is in flight");
        if completion.result.is_err() {
            return;
        }
        if matches!(request.kind, RequestKind::Write | RequestKind::Trim) {
            for writes in self.touched(&request) {
                let mine = writes.iter().position(|write| write.of == completion.tag);
                let Some(mine) = mine else { continue };
                writes[mine].answered = true;
                if request.fua {
                    writes.drain(..mine);
                }
            }
        }
        for (writes, safe) in self.may_hold.iter_mut().zip(answered) {
            if let Some(safe) = writes.iter().position(|write| write.of.0 == safe) {
                writes.drain(..safe);
            }
        }
    }

    /// Takes what ends while the power is off: everything.
    fn all_end(&mut self, drive: &mut Drive, what: &dyn Fn() -> String) {
        let mut completion = Completion::default();
        while drive.wait(Nanos(u64::MAX), &mut completion).unwrap() {
            let failed = completion.result.clone().err();
            assert!(failed.is_none_or(|error| *error == IoError::PowerOff), "{}: {completion:?}", what());
            assert!(completion.end <= drive.now(), "{}: {completion:?}", what());
            self.completed(&completion);
        }
        assert!(self.in_flight.is_empty(), "{}: every request ends", what());
        assert_eq!((drive.in_flight(), drive.buffered_bytes()), (0, 0), "{}", what());
        let flush = sectors(RequestKind::Flush, 0, 0);
        assert_eq!(drive.submit(flush), Err(IoError::PowerOff), "{}", what());
    }

    /// Mounts the drive and compares all that it holds, which is safe from now on.
    fn mount_and_check(&mut self, drive: &mut Drive, what: &dyn Fn() -> String) {
        let before = drive.now();
        let mounted = drive.mount().unwrap_or_else(|error| panic!("{}: {error}", what()));
        assert_eq!(drive.now(), before + mounted.duration, "{}", what());
        let mut data = vec![1; self.may_hold.len() * SECTOR];
        let (mut completion, piece) = (Completion::default(), 64);
        for (first, data) in (0..).step_by(piece as usize).zip(data.chunks_mut(piece as usize * SECTOR)) {
            let read = sectors(RequestKind::Read, first, (data.len() / SECTOR) as u32);
            let tag = drive.submit_with(read, &[]).unwrap();
            assert!(drive.wait(Nanos(u64::MAX), &mut completion).unwrap());
            assert!(drive.take_data(tag, data), "{}: {completion:?}", what());
        }
        for (sector, (writes, data)) in self.may_hold.iter_mut().zip(data.chunks_exact(SECTOR)).enumerate() {
            let number = u64::from_le_bytes(data[..8].try_into().unwrap());
            assert!(data.chunks_exact(8).all(|part| part == &data[..8]), "{}: sector {sector} is mixed", what());
            assert!(
                writes.iter().any(|write| write.number == number),
                "{}: sector {sector} holds write {number}; the first of these was safe: {writes:?}",
                what()
            );
            *writes = vec![Write { number, of: Tag(u64::MAX), answered: true }];
        }
        assert_eq!(drive.device().audit(), [], "{}", what());
    }
}

fn build(config: &DriveConfig, seed: u64) -> Drive {
    Controller::of_drive(Ssd::new(config, Seed(seed), Keeps::Bytes).unwrap(), Seed(seed))
}

/// Settings of a controller, most with a write buffer.
pub fn any_controller(rng: &mut Rng) -> Vec<String> {
    let one = |rng: &mut Rng, of: &[&str]| (*pick(rng, of)).to_owned();
    let mut settings = vec![
        format!("controller.interface-rate={}", one(rng, &["none", "100 MB/s", "3 MB/s"])),
        format!("controller.interface={}", one(rng, &["half-duplex", "full-duplex"])),
        format!("controller.queue-depth={}", one(rng, &["0", "1", "2", "16"])),
        format!("controller.read-overhead={}", one(rng, &["0 ns", "20 us"])),
        format!("controller.write-overhead={}", one(rng, &["1 us", "30 us"])),
        format!("controller.command-limit={}", one(rng, &["0 B", "512 B", "3 KiB"])),
        format!("controller.turnaround={}", one(rng, &["0 ns", "50 us"])),
        format!("controller.noise={}", one(rng, &["0.0", "0.1"])),
        "host.partial-pages=read-modify-write".to_owned(),
    ];
    if chance(rng, 0.8) {
        settings.push(format!("controller.write-buffer.size={}", one(rng, &["1 KiB", "5 KiB", "32 KiB", "1 MiB"])));
        settings.push(format!("controller.write-buffer.kind={}", one(rng, &["fifo", "cache"])));
        settings.push(format!("controller.write-buffer.drain={}", one(rng, &["lazy", "eager"])));
        settings.push(format!("controller.write-buffer.oversized={}", one(rng, &["through", "stream"])));
        settings.push(format!("controller.write-buffer.combine={}", one(rng, &["true", "false"])));
        settings.push(format!("controller.write-buffer.flushes={}", one(rng, &["1", "3"])));
        settings.push(format!("controller.write-buffer.entry={}", one(rng, &["0 B", "1 KiB", "2560 B"])));
    }
    if chance(rng, 0.6) {
        settings.push("controller.read-buffer.size=6 KiB".to_owned());
        settings.push(format!("controller.read-buffer.prefetch={}", one(rng, &["0 B", "2 KiB"])));
    }
    settings
}

/// A drive of random shape behind a controller of random shape; none if it can't be built.
pub fn any_drive_behind_a_controller(rng: &mut Rng) -> Option<Vec<String>> {
    let is_parallel = chance(rng, 0.5);
    let mut settings = if is_parallel { any_parallel_drive(rng)? } else { any_drive(rng)? };
    if is_parallel && chance(rng, 0.3) {
        settings.push("chips.write-ram=64 KiB".to_owned());
    }
    settings.push("geometry.page-size=1 KiB".to_owned());
    settings.push("capacity.logical=0 B".to_owned());
    settings.push(format!("capacity.utilization=0.{}", 30 + below(rng, 40)));
    settings.extend(any_controller(rng));
    let config = flashwright_ssd::Config::default().with_settings(&settings).ok()?;
    Ssd::new(&config, Seed(1), Keeps::Bytes).ok()?;
    Some(settings)
}

/// What [`cut_behind_a_controller`] did.
#[derive(Default)]
pub struct Cuts {
    /// Requests sent.
    pub requests: u64,
    /// Cuts in which the write buffer held something.
    pub held: u64,
}

/// Keeps several requests in flight and cuts the power, at a random time or in an operation of the flash, `cuts` times on one drive.
/// Ends early where blocks are worn out.
pub fn cut_behind_a_controller(settings: &[String], cuts: u64, seed: u64) -> Cuts {
    cut_often(build(&config(settings), seed), &format!("{settings:?}, seed {seed}"), cuts, seed)
}

fn cut_often(mut drive: Drive, about: &str, cuts: u64, seed: u64) -> Cuts {
    let mut rng = Seed(seed).stream("test.power.controller");
    let (mut host, mut completion) = (Host::new(&drive), Completion::default());
    let mut done = Cuts::default();
    for nth in 0..cuts {
        let what = || format!("{about}, cut {nth}");
        let (depth, requests) = (1 + below(&mut rng, 16) as usize, 1 + below(&mut rng, 60));
        if chance(&mut rng, 0.6) {
            drive.device_mut().cut_after(below(&mut rng, 40));
        }
        for _ in 0..requests {
            let request = host.next_request(&mut rng);
            if !drive.device().is_on() || host.submit(&mut drive, request).is_err() {
                break;
            }
            done.requests += 1;
            while drive.device().is_on() && host.in_flight.len() >= depth {
                assert!(drive.wait(Nanos(u64::MAX), &mut completion).unwrap(), "{}", what());
                host.completed(&completion);
            }
        }
        let until = drive.now().0 + below(&mut rng, 1_500_000);
        while drive.wait(Nanos(until), &mut completion).unwrap() {
            host.completed(&completion);
        }
        done.held += u64::from(drive.buffered_bytes() > 0);
        drive.cut().unwrap();
        host.all_end(&mut drive, &what);
        drive.device_mut().cut_after(if chance(&mut rng, 0.2) { below(&mut rng, 6) } else { u64::MAX });
        if drive.mount().is_ok() && !drive.device().is_on() {
            host.all_end(&mut drive, &what);
        }
        drive.device_mut().cut_after(u64::MAX);
        if drive.device().flash().nand().blocks_retired() > 0 {
            break;
        }
        host.mount_and_check(&mut drive, &what);
    }
    done
}

/// Random drives; `FLASHWRIGHT_OPERATIONS` sets another number.
fn drives() -> u64 {
    std::env::var("FLASHWRIGHT_OPERATIONS").map_or(40, |given| given.parse().unwrap())
}

#[test]
fn power_may_be_cut_while_a_controller_holds_requests_and_data() {
    let (mut built, mut held) = (0, 0);
    for seed in 0..drives() {
        let mut rng = Seed(seed).stream("test.power.controller.drive");
        if let Some(settings) = any_drive_behind_a_controller(&mut rng) {
            held += cut_behind_a_controller(&settings, 20, seed).held;
            built += 1;
        }
    }
    assert!(built >= 8 && held >= 2 * built, "{built} drives, {held} cuts with data in a buffer");
}

#[test]
fn drives_of_today_may_be_cut() {
    for name in ["consumer-tlc", "dram-less", "enterprise-tlc", "qlc-coarse"] {
        let settings = [
            "geometry.channels=2",
            "geometry.dies-per-channel=1",
            "geometry.blocks-per-plane=28",
            "geometry.pages-per-block=12",
            "geometry.parity-dies=0",
            "capacity.utilization=0.45",
            "ftl.dftl.cmt-entries=200",
            "recovery.mount-by=scan",
            "controller.write-buffer={size=\"16 KiB\", drain=\"eager\", flushes=4}",
        ];
        let bundled = flashwright_ssd::bundled(name).unwrap();
        let mut drive = build(&bundled.with_settings(&settings).unwrap(), 1);
        // It ends in the middle of a unit of chips.
        let pages = drive.device().logical_pages() - 1;
        drive.device_mut().precondition(LpnRun { first: Lpn(0), pages, stream: 0 }).unwrap();
        for seed in 0..drives() / 40 {
            let done = cut_often(drive.clone(), &format!("{name}, seed {seed}"), 25, seed);
            assert!(done.requests > 100 && done.held > 0, "{name}: {} requests, {} cuts", done.requests, done.held);
        }
    }
}

/// A small drive behind a controller.
fn small(more: &[&str]) -> Vec<String> {
    let mut settings = one_plane(24, 8, 96);
    settings.extend(
        [
            "geometry.page-size=1 KiB",
            "capacity.logical=90 KiB",
            "recovery.mount-by=scan",
            "controller.write-buffer={size=\"6 KiB\", kind=\"cache\"}",
        ]
        .map(str::to_owned),
    );
    settings.extend(more.iter().map(|setting| (*setting).to_owned()));
    settings
}

/// Plays one request after the other, and cuts the power in every operation of the flash until there were so many.
fn cut_every_operation(settings: &[String], operations: u64, seed: u64) {
    let mut rng = Seed(seed).stream("test.power.controller.every");
    let mut drive = build(&config(settings), seed);
    let (mut host, mut completion) = (Host::new(&drive), Completion::default());
    let done = |drive: &Drive| drive.device().operations_done().unwrap();
    let mut left = 20 * operations;
    while done(&drive) < operations && left > 0 {
        left -= 1;
        let request = host.next_request(&mut rng);
        let (before, expected) = (drive.clone(), host.clone());
        host.submit(&mut drive, request).unwrap();
        assert!(drive.wait(Nanos(u64::MAX), &mut completion).unwrap());
        host.completed(&completion);
        for nth in 0..done(&drive) - done(&before) {
            let what = || format!("{settings:?}, operation {}, {request:?}", done(&before) + nth);
            let (mut cut, mut host) = (before.clone(), expected.clone());
            cut.device_mut().cut_after(nth);
            if host.submit(&mut cut, request).is_ok() {
                assert!(cut.wait(Nanos(u64::MAX), &mut completion).unwrap(), "{}", what());
                host.completed(&completion);
            }
            assert!(!cut.device().is_on(), "{}: the power failed", what());
            cut.cut().unwrap();
            host.all_end(&mut cut, &what);
            host.mount_and_check(&mut cut, &what);
        }
    }
    assert!(done(&drive) >= operations);
}

#[test]
fn every_operation_may_be_cut_behind_a_controller() {
    for model in ["none", "serial", "parallel"] {
        for (nth, drain) in (0..).zip(["eager", "lazy"]) {
            let buffer = format!("controller.write-buffer.drain={drain}");
            cut_every_operation(&small(&[&format!("timing.model={model}"), &buffer]), 200, nth);
        }
    }
}

#[test]
fn a_controller_that_ignores_flushes_is_caught() {
    let outcome = std::panic::catch_unwind(|| {
        cut_every_operation(&small(&["recovery.ignores-flush=true", "timing.model=serial"]), 1000, 1);
    });
    let message = *outcome.expect_err("what was flushed is lost").downcast::<String>().unwrap();
    assert!(message.contains("was safe"), "{message}");
}

#[test]
fn buffers_are_empty_after_a_mount() {
    let settings = small(&[
        "timing.model=parallel",
        "controller.interface-rate=300 MB/s",
        "controller.read-buffer={size=\"8 KiB\", prefetch=\"4 KiB\"}",
    ]);
    let mut drive = build(&config(&settings), 1);
    let mut completion = Completion::default();
    for request in
        [sectors(RequestKind::Write, 0, 4), sectors(RequestKind::Flush, 0, 0), sectors(RequestKind::Read, 0, 4)]
    {
        drive.execute(request, &mut completion).unwrap();
    }
    let read_hits = |drive: &mut Drive| {
        let before = drive.figures().read_buffer_hits;
        drive.execute(sectors(RequestKind::Read, 0, 4), &mut Completion::default()).unwrap();
        drive.figures().read_buffer_hits - before
    };
    assert_eq!(read_hits(&mut drive), 1);
    drive.execute(sectors(RequestKind::Write, 8, 4), &mut completion).unwrap();
    assert_eq!(drive.buffered_bytes(), 2048);
    let before = drive.now();
    let mounted = drive.mount().unwrap();
    assert!(mounted.duration > Nanos(0) && drive.now() == before + mounted.duration);
    assert_eq!((mounted.pages_mapped, drive.buffered_bytes()), (2, 0));
    assert_eq!(read_hits(&mut drive), 0, "the read buffer had lost them");
}

#[test]
fn a_restart_with_other_settings_keeps_what_the_controller_held() {
    let mut drive = build(&config(&small(&["timing.model=parallel"])), 1);
    drive.execute(sectors(RequestKind::Write, 8, 4), &mut Completion::default()).unwrap();
    let refused = drive.restart_with(&["timing.read=9 us".to_owned()]).unwrap_err().to_string();
    assert!(refused.contains("expected a setting of gc or ram"), "{refused}");
    assert_eq!(drive.buffered_bytes(), 2048, "it went on as before");
    let mounted = drive.restart_with(&["gc.victim=fifo".to_owned()]).unwrap();
    assert_eq!((mounted.pages_mapped, drive.buffered_bytes()), (2, 0));
    let mut plain = build(&config(&small(&["recovery.mount-by=nothing"])), 1);
    assert!(plain.cut().is_err() && plain.mount().is_err());
    plain.execute(sectors(RequestKind::Write, 8, 4), &mut Completion::default()).unwrap();
}
