//! Drives with zones: each request ends as the table of zones says, every read is checked, no page is programmed but for the host or
//! as padding, and after a cut in any operation each zone has what was promised.

use crate::common::*;
use flashwright_block::{
    BlockDevice, Completion, HoldsData, IoError, Nanos, Request, RequestClass, RequestKind, Rng, Seed, ZoneRule,
    ZoneState, below, chance,
};
use flashwright_ftl::{Cause, OpKind, ZoneAction, Zones};
use flashwright_nand::{Condition, Lpn};
use flashwright_ssd::{Controller, Keeps, Ssd};
use std::collections::BTreeSet;

/// Drives of one to four planes; zones of one row of blocks, of several, of part of a block, narrower than the drive.
fn drives() -> Vec<(&'static str, Vec<String>)> {
    let zoned = |shape: Vec<String>, more: &[&str]| {
        let mut settings = shape;
        settings.push("ftl.scheme=zoned".to_owned());
        settings.extend(more.iter().map(|setting| (*setting).to_owned()));
        settings
    };
    vec![
        (
            "plain",
            zoned(
                shape(2, 1, 1, 24, 8, 300),
                &["timing.model=none", "ftl.zoned.max-open-zones=3", "ftl.zoned.max-active-zones=5"],
            ),
        ),
        (
            "rows",
            zoned(
                shape(2, 2, 1, 20, 4, 250),
                &[
                    "timing.model=serial",
                    "ftl.zoned.zone-capacity=\"156 KiB\"",
                    "ftl.zoned.zone-size=\"256 KiB\"",
                    "ftl.zoned.max-open-zones=2",
                ],
            ),
        ),
        (
            "narrow",
            zoned(
                shape(2, 2, 1, 20, 4, 250),
                &[
                    "timing.model=parallel",
                    "ftl.zoned.zone-planes=2",
                    "ftl.zoned.zone-capacity=\"100 KiB\"",
                    "wear.factory-bad=0.04",
                    "ftl.zoned.max-active-zones=4",
                ],
            ),
        ),
        (
            "part of a block",
            zoned(shape(1, 1, 1, 40, 8, 200), &["timing.model=parallel", "ftl.zoned.zone-capacity=\"20 KiB\""]),
        ),
        (
            "superblocks",
            zoned(
                shape(2, 1, 2, 24, 6, 0),
                &[
                    "timing.model=parallel",
                    "timing.pipelined=true",
                    "geometry.superblock=drive",
                    "geometry.mapping-unit=1 KiB",
                    "geometry.bits-per-cell=3",
                    "chips.write-ram=3 MiB",
                    "capacity.utilization=0.8",
                    "ftl.zoned.max-open-zones=4",
                ],
            ),
        ),
    ]
}

fn table(ssd: &Ssd) -> &Zones {
    ssd.scheme().zoned().unwrap().table()
}

/// A request that keeps the rules as a rule; some don't if `strays`.
fn next_request(ssd: &Ssd, rng: &mut Rng, strays: bool) -> Request {
    let (zones, layout) = (table(ssd), table(ssd).layout());
    let mut draw = |bound: u32| below(rng, u64::from(bound)) as u32;
    let zone = draw(layout.count);
    let (start, written) = (layout.start(zone), zones.written(zone));
    let left = (layout.capacity - written).max(1);
    let longest = if draw(6) == 0 { 40 } else { 7 };
    let count = 1 + draw(left.min(longest));
    let stray = u32::from(strays && draw(12) == 0) * draw(layout.size);
    let (kind, first, count) = match draw(32) {
        0..10 => (RequestKind::Write, start + (written + stray).min(layout.size - 1), count),
        10..20 => (RequestKind::Append, start + stray, count + u32::from(strays) * (draw(20) / 19) * left),
        20..24 => (RequestKind::Read, start + draw(layout.size - 4), 1 + draw(4)),
        24 => (RequestKind::ZoneOpen, start + stray, 0),
        25 => (RequestKind::ZoneClose, start + stray, 0),
        26 => (RequestKind::ZoneFinish, start + stray, 0),
        27..29 => (RequestKind::ZoneReset, start + stray, 0),
        29 => (RequestKind::Flush, 0, 0),
        30 => (RequestKind::Trim, start, layout.size),
        _ => (RequestKind::Write, start + written.min(layout.size - 1), left),
    };
    let count = count.min(ssd.logical_pages() - first);
    pages(ssd, kind, first, count)
}

/// What the table says of a request; the first page of a write.
fn expected(zones: &mut Zones, request: &Request, per_page: u64) -> Result<Option<u32>, ZoneRule> {
    let (first, count) = ((request.first_sector / per_page) as u32, (u64::from(request.sectors) / per_page) as u32);
    let action = match request.kind {
        RequestKind::Write => {
            let zone = zones.check_write(first, count).map_err(|error| error.rule)?;
            zones.wrote(zone, count);
            return Ok(Some(first));
        }
        RequestKind::Append => {
            let at = zones.check_append(first, count).map_err(|error| error.rule)?;
            zones.wrote(zones.layout().split(at).0, count);
            return Ok(Some(at));
        }
        RequestKind::ZoneOpen => ZoneAction::Open,
        RequestKind::ZoneClose => ZoneAction::Close,
        RequestKind::ZoneFinish => ZoneAction::Finish,
        RequestKind::ZoneReset => ZoneAction::Reset,
        _ => return Ok(None),
    };
    let zone = zones.check_action(action, first).map_err(|error| error.rule)?;
    zones.act(action, zone);
    Ok(None)
}

#[test]
fn requests_end_as_the_table_of_zones_says() {
    let mut refused = BTreeSet::new();
    for (name, settings) in drives() {
        let mut rng = Seed(7).stream(name);
        let mut ssd =
            Ssd::new(&config(&settings), Seed(3), Keeps::Stamps).unwrap_or_else(|error| panic!("{name}: {error}"));
        let per_page = ssd.sectors_per_page();
        let mut twin = table(&ssd).clone();
        let (mut written, mut padded, mut resets) = (0, 0, 0);
        for step in 0..6000 {
            let request = next_request(&ssd, &mut rng, true);
            let before = twin.clone();
            let says = expected(&mut twin, &request, per_page);
            ssd.submit(Request { arrival: ssd.now(), ..request }).unwrap();
            let done = wait(&mut ssd, Nanos(u64::MAX)).unwrap().unwrap();
            match (&says, &done.result) {
                (Ok(first), Ok(())) => {
                    let at = done.request.first_sector / per_page;
                    assert!(
                        first.is_none_or(|first| u64::from(first) == at),
                        "{name}, {step}: {request:?} went to page {at}"
                    );
                    let (_, count) = ssd.pages_of(&done.request);
                    let (zone, _) = twin.layout().split((request.first_sector / per_page) as u32);
                    written += u64::from(if first.is_some() { count } else { 0 });
                    resets +=
                        u64::from(request.kind == RequestKind::ZoneReset && before.state(zone) != ZoneState::Empty);
                    let finishes = request.kind == RequestKind::ZoneFinish && before.state(zone) != ZoneState::Full;
                    padded += u64::from(if finishes && before.written(zone) > 0 {
                        twin.layout().capacity - before.written(zone)
                    } else {
                        0
                    });
                    if request.kind == RequestKind::ZoneReset {
                        assert_eq!(u64::from(done.request.sectors), u64::from(before.written(zone)) * per_page);
                    }
                }
                (Err(rule), Err(error)) => {
                    let IoError::Zone(error) = **error else { panic!("{name}, {step}: {error}") };
                    let (zone, _) = twin.layout().split((request.first_sector / per_page) as u32);
                    let pointer = u64::from(twin.layout().start(zone) + twin.written(zone)) * per_page;
                    assert_eq!(
                        (error.rule, error.zone, error.pointer),
                        (*rule, zone, pointer),
                        "{name}, {step}: {request:?}"
                    );
                    refused.insert(rule.name());
                }
                _ => panic!("{name}, {step}: {request:?} ended as {:?}, expected {says:?}", done.result),
            }
            assert_eq!(*table(&ssd), twin, "{name}, {step}: after {request:?}");
            if step % 50 == 0 {
                assert_eq!(ssd.audit(), [], "{name}, {step}");
            }
        }
        let counters = ssd.flash().counters();
        assert!(
            written > 1000 && padded > 20 && resets > 50,
            "{name}: {written} written, {padded} padded, {resets} resets"
        );
        assert_eq!(counters.get(OpKind::Program, Cause::Host), written, "{name}");
        assert_eq!(counters.get(OpKind::Program, Cause::Padding), padded, "{name}");
        assert_eq!(counters.total(OpKind::Program), written + padded, "{name}: no page is moved");
        let figures = ssd.figures().zones.unwrap();
        assert_eq!(figures.resets, resets, "{name}");
        assert!(figures.refusals.iter().sum::<u64>() > 100, "{name}");
    }
    let never = [ZoneRule::Offline, ZoneRule::ReadOnly].map(ZoneRule::name); // these take a drive that wears out
    let missing: Vec<_> =
        ZoneRule::ALL.iter().filter(|rule| !refused.contains(rule.name())).map(|rule| rule.name()).collect();
    assert_eq!(missing, never);
}

#[test]
fn bytes_come_back_from_where_an_append_went() {
    let (_, settings) = drives().swap_remove(2);
    let mut ssd = Ssd::new(&config(&settings), Seed(3), Keeps::Bytes).unwrap();
    let start = table(&ssd).layout().start(3);
    let mut places = Vec::new();
    for nth in 1..6u8 {
        let request = pages(&ssd, RequestKind::Append, start, u32::from(nth));
        ssd.submit_with(request, &vec![nth; request.data_bytes()]).unwrap();
        places.push(drain(&mut ssd).unwrap()[0].request);
    }
    for (nth, place) in (1u8..).zip(&places) {
        let read = Request { kind: RequestKind::Read, arrival: ssd.now(), ..*place };
        let tag = ssd.submit_with(read, &[]).unwrap();
        drain(&mut ssd).unwrap();
        let mut data = vec![0; read.data_bytes()];
        assert!(
            ssd.take_data(tag, &mut data) && data.iter().all(|byte| *byte == nth),
            "append {nth} at {}",
            place.first_sector
        );
    }
}

/// A controller before the zones keeps the order of requests, and tells where appends went and what resets cleared.
#[test]
fn requests_behind_a_controller_end_as_the_table_says() {
    let (_, mut settings) = drives().swap_remove(4);
    settings.extend(
        ["controller.interface-rate=\"300 MB/s\"", "controller.read-overhead=3 us", "controller.write-overhead=5 us"]
            .map(str::to_owned),
    );
    let config = config(&settings);
    let ssd = Ssd::new(&config, Seed(3), Keeps::Bytes).unwrap();
    let (mut twin, mut rng, per_page) = (table(&ssd).clone(), Seed(13).stream("controller"), ssd.sectors_per_page());
    let mut drive = Controller::new(&config.controller, Seed(1), ssd);
    let mut refused = 0;
    for round in 0..600u64 {
        let mut asked = Vec::new();
        for _ in 0..1 + round % 6 {
            // What was asked before has not reached the drive yet: the twin says where zones stand.
            let zone = below(&mut rng, u64::from(twin.layout().count)) as u32;
            let (start, written) = (twin.layout().start(zone), twin.written(zone));
            let kinds = [
                RequestKind::Write,
                RequestKind::Append,
                RequestKind::Append,
                RequestKind::ZoneReset,
                RequestKind::ZoneFinish,
            ];
            let kind = kinds[below(&mut rng, 5) as usize];
            let count = if kind.class() == RequestClass::Manage { 0 } else { 1 + below(&mut rng, 30) as u32 };
            let first = start + if kind == RequestKind::Write { written.min(twin.layout().size - count) } else { 0 };
            let request = Request { arrival: drive.now(), ..pages(drive.device(), kind, first, count) };
            let cleared = twin.written(zone);
            let says = expected(&mut twin, &request, per_page);
            let data = if count > 0 { vec![round as u8; request.data_bytes()] } else { Vec::new() };
            asked.push((drive.submit_with(request, &data).unwrap(), request, says, cleared));
        }
        let mut done = Completion::default();
        while drive.wait(Nanos(u64::MAX), &mut done).unwrap() {
            let at = asked.iter().position(|(tag, ..)| *tag == done.tag).unwrap();
            let (_, request, says, cleared) = asked.swap_remove(at);
            match (says, &done.result) {
                (Ok(Some(first)), Ok(())) => {
                    assert_eq!(done.request.first_sector, u64::from(first) * per_page, "{request:?}")
                }
                (Ok(None), Ok(())) if request.kind == RequestKind::ZoneReset => {
                    assert_eq!(u64::from(done.request.sectors), u64::from(cleared) * per_page);
                }
                (Ok(None), Ok(())) => {}
                (Err(rule), Err(error)) => {
                    assert!(matches!(**error, IoError::Zone(found) if found.rule == rule), "{request:?}: {error}");
                    refused += 1;
                }
                (says, found) => panic!("{request:?} ended as {found:?}, expected {says:?}"),
            }
        }
        assert!(asked.is_empty());
        assert_eq!(*table(drive.device()), twin, "round {round}");
    }
    assert!(refused > 50, "{refused}");
    assert_eq!(drive.device().audit(), []);
}

/// What is no request of zones, or not of whole pages, is refused in a line.
#[test]
fn requests_off_the_pages_and_on_drives_without_zones_fail_in_a_line() {
    let (_, settings) = drives().swap_remove(0);
    let mut ssd = Ssd::new(&config(&settings), Seed(3), Keeps::Stamps).unwrap();
    let misaligned = perform(&mut ssd, sectors(RequestKind::Write, 0, 3)).unwrap_err();
    assert!(matches!(misaligned, IoError::Misaligned { block, .. } if block.0 == 4096), "{misaligned}");
    let end = pages(&ssd, RequestKind::ZoneReset, ssd.logical_pages(), 0);
    assert!(matches!(perform(&mut ssd, end), Err(IoError::OutOfRange { .. })));
    for timing in ["none", "serial", "parallel"] {
        let plain = config(&[shape(1, 1, 1, 16, 4, 40), vec![format!("timing.model={timing}")]].concat());
        let mut plain = Ssd::new(&plain, Seed(3), Keeps::Stamps).unwrap();
        let error = perform(&mut plain, pages(&ssd, RequestKind::Append, 0, 1)).unwrap_err();
        assert_eq!(error.to_string(), "append refused: the device has no zones");
        assert!(perform(&mut plain, pages(&ssd, RequestKind::ZoneReset, 0, 0)).is_err());
        assert!(perform(&mut plain, pages(&ssd, RequestKind::Write, 0, 1)).is_ok());
    }
}

#[test]
fn settings_that_contradict_each_other_are_told_in_a_line_each() {
    let of = |more: &[&str]| {
        let mut settings = shape(2, 1, 1, 24, 8, 300);
        settings.push("ftl.scheme=zoned".to_owned());
        settings.extend(more.iter().map(|setting| (*setting).to_owned()));
        Ssd::new(&config(&settings), Seed(1), Keeps::Nothing).map(|_| ()).unwrap_err().to_string()
    };
    for (more, says) in [
        (&["ftl.zoned.zone-capacity=\"100 B\""][..], "zone-capacity: found 100 B, expected whole pages of 4 KiB"),
        (
            &["ftl.zoned.zone-capacity=\"100 MiB\""],
            "zone-capacity: found 100 MiB, expected at most what the drive has room for, 1200 KiB",
        ),
        (
            &["ftl.zoned.zone-size=\"32 KiB\""],
            "zone-size: found 32 KiB, expected at least the capacity of a zone, 64 KiB",
        ),
        (&["ftl.zoned.zone-planes=3"], "zone-planes: found 3, expected at most the drive's planes, 2"),
        (
            &["ftl.zoned.max-open-zones=3", "ftl.zoned.max-active-zones=2"],
            "max-open-zones: found 3, expected at most ftl.zoned.max-active-zones = 2",
        ),
        (
            &["ftl.zoned.zone-capacity=\"36 KiB\"", "capacity.utilization=0.9", "capacity.logical=0 B"],
            "38 zones of 2 erase blocks take 76, but the drive has 48 good ones",
        ),
        (
            &["ram.manager=lru", "ram.size=64 KiB"],
            "ram.manager: found one with ftl.scheme = \"zoned\", expected \"none\"",
        ),
        (&["host.scheduler=deadline"], "host.scheduler: found one with ftl.scheme = \"zoned\""),
        (
            &["controller.write-buffer={size=\"8 KiB\"}"],
            "controller.write-buffer.size: found one with ftl.scheme = \"zoned\", expected \"0 B\"",
        ),
        (&["controller.read-buffer={size=\"8 KiB\"}"], "controller.read-buffer.size: found one with"),
        (&["controller.command-limit=\"4 KiB\""], "controller.command-limit: found one with"),
    ] {
        let found = of(more);
        assert!(found.contains(says) && found.lines().count() == 1, "{more:?}: {found}");
    }
}

/// Blocks wear out until zones go: first no empty zone finds its blocks and is offline, or one that has begun is read-only.
#[test]
fn zones_go_where_blocks_are_worn_out() {
    let (_, mut settings) = drives().swap_remove(0);
    settings.push("wear.pe-cycles-max=12".to_owned());
    let mut ssd = Ssd::new(&config(&settings), Seed(3), Keeps::Stamps).unwrap();
    let mut rng = Seed(9).stream("worn");
    let mut worn = 0;
    for _ in 0..20_000 {
        let request = next_request(&ssd, &mut rng, false);
        match perform(&mut ssd, request) {
            Err(IoError::WornOut { .. }) => worn += 1,
            Err(IoError::Zone(_)) | Ok(_) => {}
            Err(other) => panic!("{other}"),
        }
    }
    let gone = table(&ssd).count(ZoneState::Offline) + table(&ssd).count(ZoneState::ReadOnly);
    assert!(worn > 0 && gone as u64 >= worn, "{worn} writes without room, {gone} zones gone");
    assert_eq!(ssd.audit(), []);
    let blocks = (0..ssd.flash().geometry().blocks()).map(flashwright_nand::BlockId);
    let (least, most) = blocks
        .filter(|block| ssd.flash().nand().condition(*block) != Condition::FactoryBad)
        .map(|block| ssd.flash().nand().erases(block))
        .fold((u32::MAX, 0), |(least, most), erases| (least.min(erases), most.max(erases)));
    assert!(least >= 6 && most <= 12, "the least worn block is taken first: {least} to {most} erases");
}

/// What each page may hold after a loss of power, as stamps; 0 for nothing.
#[derive(Clone)]
struct Promises {
    safe: Vec<u32>,
    since: Vec<BTreeSet<u32>>,
}

impl Promises {
    fn new(pages: u32) -> Self {
        Self { safe: vec![0; pages as usize], since: vec![BTreeSet::new(); pages as usize] }
    }

    /// A request was carried out or cut short; `places` are the pages that it writes or clears.
    fn note(&mut self, ssd: &Ssd, request: &Request, places: std::ops::Range<u32>, is_done: bool) {
        let stamps = ssd.flash().stamps().unwrap();
        let resets = request.kind == RequestKind::ZoneReset;
        for lpn in places {
            let now = if resets { 0 } else { stamps.latest(Lpn(lpn)) };
            self.since[lpn as usize].insert(now);
            if resets && is_done {
                self.make_safe(lpn, 0); // a reset that was answered is durable
            }
        }
        if request.kind == RequestKind::Flush && is_done {
            (0..ssd.logical_pages()).for_each(|lpn| self.make_safe(lpn, stamps.latest(Lpn(lpn))));
        }
    }

    fn make_safe(&mut self, lpn: u32, stamp: u32) {
        self.safe[lpn as usize] = stamp;
        self.since[lpn as usize].clear();
    }

    /// Checks what a mounted drive holds, which is safe from now on.
    fn check(&mut self, ssd: &Ssd, what: &dyn Fn() -> String) {
        let stamps = ssd.flash().stamps().unwrap();
        let layout = table(ssd).layout();
        for lpn in 0..ssd.logical_pages() {
            let (found, at) = (stamps.latest(Lpn(lpn)), lpn as usize);
            assert!(
                found == self.safe[at] || self.since[at].contains(&found),
                "{}: page {lpn} holds write {found}; write {} was safe, later ones are {:?}",
                what(),
                self.safe[at],
                self.since[at]
            );
            let (zone, place) = layout.split(lpn);
            assert!(
                found == 0 || place < table(ssd).written(zone),
                "{}: page {lpn} lies behind the write pointer",
                what()
            );
            self.make_safe(lpn, found);
        }
        assert_eq!(ssd.audit(), [], "{}", what());
    }
}

/// The pages that a request writes or clears on a drive in this state.
fn places(ssd: &Ssd, request: &Request) -> std::ops::Range<u32> {
    let mut zones = table(ssd).clone();
    let per_page = ssd.sectors_per_page();
    let first = (request.first_sector / per_page) as u32;
    match expected(&mut zones, request, per_page) {
        Ok(Some(at)) => at..at + (u64::from(request.sectors) / per_page) as u32,
        Ok(None) if request.kind == RequestKind::ZoneReset => {
            first..first + table(ssd).written(zones.layout().split(first).0)
        }
        _ => 0..0,
    }
}

#[test]
fn every_operation_may_be_cut() {
    let mut cuts = 0;
    for (name, mut settings) in drives() {
        settings.push("recovery.mount-by=scan".to_owned());
        settings.push("capacity.logical=0 B".to_owned());
        settings.push("capacity.utilization=0.5".to_owned());
        let mut rng = Seed(11).stream(name);
        let mut ssd =
            Ssd::new(&config(&settings), Seed(3), Keeps::Stamps).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut promises = Promises::new(ssd.logical_pages());
        let goal = 600;
        while ssd.operations_done().unwrap() < goal {
            let request = next_request(&ssd, &mut rng, false);
            let (before, places) = (ssd.clone(), places(&ssd, &request));
            let done = ssd.operations_done().unwrap();
            match perform(&mut ssd, request) {
                Ok(_) | Err(IoError::Zone(_)) => {}
                Err(other) => panic!("{name}: {request:?}: {other}"),
            }
            for nth in 0..ssd.operations_done().unwrap() - done {
                let (mut cut, mut promised) = (before.clone(), promises.clone());
                cut.cut_after(nth);
                let _ = perform(&mut cut, request);
                if cut.is_on() {
                    continue; // an erase behind the request
                }
                cuts += 1;
                promised.note(&cut, &request, places.clone(), false);
                let what = || format!("{name}: {request:?} cut in operation {nth}");
                if chance(&mut rng, 0.3) {
                    cut.cut_after(below(&mut rng, 4));
                }
                cut.mount().unwrap_or_else(|error| panic!("{}: {error}", what()));
                if !cut.is_on() {
                    cut.mount().unwrap_or_else(|error| panic!("{}: again: {error}", what()));
                }
                cut.cut_after(u64::MAX);
                promised.check(&cut, &what);
                for _ in 0..3 {
                    let next = next_request(&cut, &mut rng, false);
                    if let Err(other) = perform(&mut cut, next)
                        && !matches!(other, IoError::Zone(_))
                    {
                        panic!("{}, then {next:?}: {other}", what());
                    }
                }
                assert_eq!(cut.audit(), [], "{}, and went on", what());
            }
            promises.note(&ssd, &request, places, true);
            if chance(&mut rng, 0.05) {
                ssd.mount().unwrap();
                promises.check(&ssd, &|| format!("{name}: cut between requests"));
            }
        }
    }
    assert!(cuts > 1500, "{cuts} cuts");
}
