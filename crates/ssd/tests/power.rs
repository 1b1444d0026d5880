//! Loss of power: after a cut in the middle of any flash operation, and after cuts during the mount itself, every page holds what the
//! host may expect: what it last flushed, or something that it wrote later; never anything else.
//!
//! The stamps of pages tell which write each content is from. A drive is cloned before each request, and every clone loses power in
//! another operation of that request.

use crate::common::*;
use flashwright_block::{BlockDevice, HoldsData, IoError, Nanos, Request, RequestKind, Rng, Seed, Tag, below, chance};
use flashwright_ftl::{PlacementName, SchemeName, VictimName, WearName};
use flashwright_nand::Lpn;
use flashwright_ssd::{Keeps, ManagerName, Ssd};
use std::collections::{BTreeMap, BTreeSet};

/// What each page may hold after a loss of power, as stamps; 0 for nothing.
#[derive(Clone)]
pub struct Promises {
    /// What the host last saw to be safe.
    safe: Vec<u32>,
    /// What it wrote since.
    since: Vec<BTreeSet<u32>>,
}

impl Promises {
    pub fn new(pages: u32) -> Self {
        Self { safe: vec![0; pages as usize], since: vec![BTreeSet::new(); pages as usize] }
    }

    /// A request was carried out, or cut short.
    pub fn note(&mut self, ssd: &Ssd, request: &Request, is_done: bool) {
        let (first, count) = ssd.pages_of(request);
        let stamps = ssd.flash().stamps().unwrap();
        match request.kind {
            RequestKind::Write | RequestKind::Trim => {
                for lpn in first..first + count {
                    let now = if request.kind == RequestKind::Trim { 0 } else { stamps.latest(Lpn(lpn)) };
                    self.since[lpn as usize].insert(now);
                    if is_done && request.kind == RequestKind::Write && request.fua {
                        self.make_safe(lpn, now);
                    }
                }
            }
            RequestKind::Flush if is_done => {
                for lpn in 0..ssd.logical_pages() {
                    self.make_safe(lpn, stamps.latest(Lpn(lpn)));
                }
            }
            _ => {}
        }
    }

    fn make_safe(&mut self, lpn: u32, stamp: u32) {
        self.safe[lpn as usize] = stamp;
        self.since[lpn as usize].clear();
    }

    /// Checks what a mounted drive holds, which is safe from now on.
    pub fn check(&mut self, ssd: &Ssd, what: &dyn Fn() -> String) {
        let stamps = ssd.flash().stamps().unwrap();
        for lpn in 0..ssd.logical_pages() {
            let found = stamps.latest(Lpn(lpn));
            let at = lpn as usize;
            assert!(
                found == self.safe[at] || self.since[at].contains(&found),
                "{}: page {lpn} holds write {found}; write {} was safe, later ones are {:?}",
                what(),
                self.safe[at],
                self.since[at]
            );
            self.make_safe(lpn, found);
        }
        assert_eq!(ssd.audit(), [], "{}", what());
    }
}

/// Random requests: runs short and long, trims, flushes, forced writes.
pub fn next_request(ssd: &Ssd, rng: &mut Rng) -> Request {
    let logical = ssd.logical_pages();
    let hot = (logical / 5).max(1);
    let space = if chance(rng, 0.6) { hot } else { logical };
    let first = below(rng, u64::from(space)) as u32;
    let longest = if chance(rng, 0.1) { 20 } else { 3 };
    let count = (1 + below(rng, longest) as u32).min(logical - first);
    let kind = match below(rng, 20) {
        0 | 1 => RequestKind::Trim,
        2 | 3 => RequestKind::Flush,
        4 => RequestKind::Read,
        _ => RequestKind::Write,
    };
    let fua = kind == RequestKind::Write && chance(rng, 0.1);
    Request { fua, ..pages(ssd, kind, first, if kind == RequestKind::Flush { 0 } else { count }) }
}

fn mount_and_check(ssd: &mut Ssd, promises: &mut Promises, what: &dyn Fn() -> String) {
    ssd.mount().unwrap_or_else(|error| panic!("{}: {error}", what()));
    promises.check(ssd, what);
    // A mount that is not followed by anything changes nothing.
    ssd.mount().unwrap_or_else(|error| panic!("{}: again: {error}", what()));
    promises.check(ssd, &|| format!("{}, mounted again", what()));
}

/// Plays requests until `operations` programs and erases are done, and cuts the power in every one of them.
fn cut_everywhere(settings: &[String], operations: u64, seed: u64) -> u64 {
    let mut rng = Seed(seed).stream("test.power");
    let mut ssd = Ssd::new(&config(settings), Seed(seed), Keeps::Stamps).unwrap();
    let mut promises = Promises::new(ssd.logical_pages());
    let mut cuts = 0;
    let mut left = 20 * operations; // RAM that holds the whole drive never writes
    while ssd.operations_done().unwrap() < operations && left > 0 {
        left -= 1;
        let request = next_request(&ssd, &mut rng);
        let before = ssd.clone();
        let done = ssd.operations_done().unwrap();
        perform(&mut ssd, request).unwrap();
        for nth in 0..ssd.operations_done().unwrap() - done {
            let (mut cut, mut promised) = (before.clone(), promises.clone());
            cut.cut_after(nth);
            let outcome = perform(&mut cut, request);
            assert!(outcome.is_err() && !cut.is_on(), "the power failed in operation {nth} of {request:?}");
            promised.note(&cut, &request, false);
            // Some fail again during the mount, after this many operations.
            let again: Option<u64> = chance(&mut rng, 0.2).then(|| below(&mut rng, 6));
            let what =
                || format!("{settings:?}, seed {seed}, operation {} cut, then {again:?}, {request:?}", done + nth);
            if let Some(operations) = again {
                cut.cut_after(operations);
                cut.mount().unwrap_or_else(|error| panic!("{}: {error}", what()));
                cuts += u64::from(!cut.is_on());
            }
            mount_and_check(&mut cut, &mut promised, &what);
            if chance(&mut rng, 0.05) {
                go_on(&mut cut, &mut promised, &mut rng, &|| format!("{}, and went on", what()));
            }
            cuts += 1;
        }
        promises.note(&ssd, &request, true);
    }
    assert_eq!(ssd.audit(), []);
    cuts
}

/// A mounted drive goes on as any other, and loses power once more.
fn go_on(ssd: &mut Ssd, promises: &mut Promises, rng: &mut Rng, what: &dyn Fn() -> String) {
    ssd.cut_after(20 + below(rng, 100));
    for _ in 0..2000 {
        if !ssd.is_on() {
            break;
        }
        let request = next_request(ssd, rng);
        let outcome = perform(ssd, request);
        promises.note(ssd, &request, outcome.is_ok());
        assert_eq!(outcome.is_err(), !ssd.is_on(), "{}, then {request:?}", what());
    }
    mount_and_check(ssd, promises, what);
}

/// What each page may hold while requests are in flight: stamps in the order of their requests, and whether the request was answered.
/// The first one is safe.
struct InFlight {
    since: Vec<Vec<(u32, Tag, bool)>>,
}

impl InFlight {
    /// For each page the newest write that was answered.
    fn answered(&self) -> Vec<(u32, Tag)> {
        let newest = |since: &Vec<(u32, Tag, bool)>| since.iter().rfind(|(.., answered)| *answered).copied();
        self.since.iter().map(|since| newest(since).map(|(stamp, tag, _)| (stamp, tag)).unwrap()).collect()
    }

    /// A write has its stamps once it has started: at once, or when cleaning no longer blocks the controller.
    fn note_started(&mut self, ssd: &Ssd, submitted_last: &mut Option<(Request, Tag)>) {
        if ssd.waiting() > 0 {
            return;
        }
        let Some((request, tag)) = submitted_last.take() else { return };
        if matches!(request.kind, RequestKind::Write | RequestKind::Trim) {
            let (first, count) = ssd.pages_of(&request);
            for lpn in first..first + count {
                let stamp = ssd.flash().stamps().unwrap().latest(Lpn(lpn));
                self.since[lpn as usize].push((stamp, tag, false));
            }
        }
    }

    fn make_safe(&mut self, lpn: usize, (stamp, tag): (u32, Tag)) {
        if let Some(at) = self.since[lpn].iter().position(|(other, of, _)| (*other, *of) == (stamp, tag)) {
            self.since[lpn].drain(..at);
        }
    }
}

/// Whether erase budgets have cost the drive blocks.
pub fn is_worn(ssd: &Ssd) -> bool {
    ssd.flash().nand().blocks_retired() > 0
}

/// Keeps several requests in flight, cuts the power at a random time, mounts and checks, `cuts` times on one drive or until it is worn
/// out. Returns the number of requests, and of pages compared.
pub fn cut_in_flight(settings: &[String], cuts: u64, seed: u64) -> (u64, u64) {
    let mut rng = Seed(seed).stream("test.power.in-flight");
    let mut ssd = Ssd::new(&config(settings), Seed(seed), Keeps::Stamps).unwrap();
    let nothing = vec![(0, Tag(u64::MAX), true)];
    let mut promises = InFlight { since: vec![nothing; ssd.logical_pages() as usize] };
    let mut submitted = 0;
    for nth in 0..cuts {
        let depth = 1 + below(&mut rng, 16) as usize;
        let mut in_flight: BTreeMap<Tag, (Request, Vec<(u32, Tag)>)> = BTreeMap::new();
        let (requests, mut played) = (below(&mut rng, 60), 0);
        let last_wait = below(&mut rng, 1_500_000);
        let mut submitted_last: Option<(Request, Tag)> = None;
        loop {
            promises.note_started(&ssd, &mut submitted_last);
            let mut until = Nanos(u64::MAX);
            if submitted_last.is_none() && in_flight.len() < depth && played < requests {
                played += 1;
                submitted += 1;
                let request = next_request(&ssd, &mut rng);
                let answered = if request.kind == RequestKind::Flush { promises.answered() } else { Vec::new() };
                let tag = ssd.submit(request).unwrap();
                in_flight.insert(tag, (request, answered));
                submitted_last = Some((request, tag));
                continue;
            }
            if played == requests {
                until = Nanos(ssd.now().0 + last_wait);
            }
            let Some(completion) = wait(&mut ssd, until).unwrap() else { break };
            if let Err(error) = &completion.result {
                assert!(is_worn(&ssd), "{settings:?}, seed {seed}, before cut {nth}: {error:?}");
                return (submitted, nth * u64::from(ssd.logical_pages()));
            }
            let (request, answered) = in_flight.remove(&completion.tag).unwrap();
            let (first, count) = ssd.pages_of(&request);
            if matches!(request.kind, RequestKind::Write | RequestKind::Trim) {
                for lpn in (first..first + count).map(|lpn| lpn as usize) {
                    let mine = promises.since[lpn].iter_mut().find(|(_, tag, _)| *tag == completion.tag);
                    let Some((stamp, tag, answered)) = mine else { continue };
                    *answered = true;
                    let safe = (*stamp, *tag);
                    if request.fua {
                        promises.make_safe(lpn, safe);
                    }
                }
            }
            for (lpn, safe) in answered.into_iter().enumerate() {
                promises.make_safe(lpn, safe);
            }
            if played == requests {
                break;
            }
        }
        promises.note_started(&ssd, &mut submitted_last);
        let what = || format!("{settings:?}, seed {seed}, cut {nth} at {}", ssd.now());
        let text = what();
        ssd.cut().unwrap();
        while let Some(completion) = wait(&mut ssd, Nanos(u64::MAX)).unwrap() {
            in_flight.remove(&completion.tag).unwrap();
            let error = completion.result.err().map(|error| *error);
            assert!(error.is_none_or(|error| error == IoError::PowerOff) || is_worn(&ssd), "{text}");
        }
        assert!(in_flight.is_empty(), "{text}: every request ends");
        if chance(&mut rng, 0.2) {
            ssd.cut_after(below(&mut rng, 6));
            if let Err(error) = ssd.mount() {
                assert!(is_worn(&ssd), "{text}: {error}");
                return (submitted, nth * u64::from(ssd.logical_pages()));
            }
        }
        if let Err(error) = ssd.mount() {
            assert!(is_worn(&ssd), "{text}: {error}");
            return (submitted, nth * u64::from(ssd.logical_pages()));
        }
        let stamps = ssd.flash().stamps().unwrap();
        for (lpn, since) in (0..).zip(&mut promises.since) {
            let found = stamps.latest(Lpn(lpn));
            assert!(
                since.iter().any(|(stamp, ..)| *stamp == found),
                "{text}: page {lpn} holds write {found}, expected one of {since:?}"
            );
            *since = vec![(found, Tag(u64::MAX), true)];
        }
        assert_eq!(ssd.audit(), [], "{text}");
    }
    (submitted, cuts * u64::from(ssd.logical_pages()))
}

/// As [`any_drive`], with dies that work side by side.
pub fn any_parallel_drive(rng: &mut Rng) -> Option<Vec<String>> {
    let mut settings = any_drive(rng)?;
    settings.extend(["timing.model=parallel", "geometry.channels=2"].map(str::to_owned));
    settings.push(format!("geometry.planes-per-die={}", 1 + below(rng, 2)));
    settings.push("capacity.logical=0 B".to_owned());
    settings.push(format!("capacity.utilization=0.{}", 30 + below(rng, 50)));
    if chance(rng, 0.5) {
        settings.extend(["timing.die-order=by-class", "chips.suspends=programs-and-erases"].map(str::to_owned));
    }
    if chance(rng, 0.3) {
        settings.push("timing.cleaning-blocks=controller".to_owned());
    }
    let config = flashwright_ssd::Config::default().with_settings(&settings).ok()?;
    Ssd::new(&config, Seed(1), Keeps::Stamps).ok()?;
    Some(settings)
}

#[test]
fn power_may_be_cut_with_requests_in_flight() {
    let mut built = 0;
    for seed in 0..operations() {
        let mut rng = Seed(seed).stream("test.power.drive");
        if let Some(settings) = any_parallel_drive(&mut rng) {
            cut_in_flight(&settings, 30, seed);
            built += 1;
        }
    }
    assert!(built >= operations() / 10, "{built} drives of {}", operations());
}

fn drive(scheme: SchemeName, ram: Option<ManagerName>, planes: u32) -> Vec<String> {
    let mut settings = shape(1, planes, 1, 24, 8, 24 * 8 * planes / 2);
    settings.push(format!("ftl.scheme={}", scheme.listed().name));
    settings.push("recovery.mount-by=scan".to_owned());
    settings.push("timing.model=none".to_owned());
    settings.push(format!("geometry.program-order={}", order_name(scheme.needs_order().unwrap_or_default())));
    if let Some(ram) = ram {
        settings.push(format!("ram.manager={}", ram.listed().name));
        settings.push("ram.size=\"96 KiB\"".to_owned());
        let needs = ram.needs().iter().filter(|(of, ..)| *of == scheme.listed().name);
        settings.extend(needs.map(|(_, key, value)| format!("{key}={value}")));
    }
    settings.extend(small_policies());
    settings
}

/// Settings of an SLC cache for a drive of page mapping with at least 30 blocks a plane.
fn slc_cache(rng: &mut Rng) -> Vec<String> {
    let cache = ["fixed", "dynamic"][below(rng, 2) as usize];
    let share = if cache == "fixed" { 0.1 } else { 0.6 };
    vec![
        format!("slc.cache={cache}"),
        format!("slc.block-share={share}"),
        format!("slc.when-full={}", ["direct", "fold"][below(rng, 2) as usize]),
        format!("geometry.bits-per-cell={}", 2 + below(rng, 3)),
        format!("slc.fold-after={} us", 100 + below(rng, 5000)),
    ]
}

#[test]
fn every_operation_may_be_cut_with_an_slc_cache() {
    for seed in 0..12 {
        let mut rng = Seed(seed).stream("test.power.slc");
        let mut settings = drive(SchemeName::Page, None, 1 + below(&mut rng, 2) as u32);
        settings.extend(["geometry.blocks-per-plane=40", "geometry.pages-per-block=12"].map(str::to_owned));
        settings.extend(slc_cache(&mut rng));
        settings.push(format!("timing.model={}", ["none", "serial"][below(&mut rng, 2) as usize]));
        if chance(&mut rng, 0.5) {
            settings.push("recovery.checkpoint-interval=\"64 KiB\"".to_owned());
        }
        assert!(cut_everywhere(&settings, operations(), seed) >= operations());
    }
}

/// A drive of random shape, scheme and policies; none if they don't go together.
pub fn any_drive(rng: &mut Rng) -> Option<Vec<String>> {
    let one_of = |rng: &mut Rng, names: &[&str]| names[below(rng, names.len() as u64) as usize].to_owned();
    let names = |of: Vec<&'static str>| of;
    let schemes: Vec<SchemeName> = any_order().collect();
    let scheme = schemes[below(rng, schemes.len() as u64) as usize];
    let (planes, per_block) = (1 + below(rng, 3) as u32, [4, 8, 16][below(rng, 3) as usize]);
    let checkpoints = scheme.takes_checkpoints() && chance(rng, 0.6);
    let blocks = 16 + below(rng, 30) as u32 + if checkpoints { 16 } else { 0 };
    let physical = planes * blocks * per_block;
    let share = 0.3 + 0.55 * (below(rng, 1000) as f64 / 1000.0);
    let mut settings = shape(1, planes, 1, blocks, per_block, (f64::from(physical) * share) as u32);
    let order = if scheme.needs_order().is_none() && chance(rng, 0.3) { "any" } else { "" };
    let order = if order.is_empty() { order_name(scheme.needs_order().unwrap_or_default()) } else { order };
    settings.push(format!("geometry.program-order={order}"));
    settings.push(format!("ftl.scheme={}", scheme.listed().name));
    settings.push("recovery.mount-by=scan".to_owned());
    settings.push("timing.model=serial".to_owned());
    if checkpoints {
        let pages = [4, 16, 64, 256][below(rng, 4) as usize];
        settings.push(format!("recovery.checkpoint-interval=\"{} KiB\"", pages * 4));
    }
    settings.push(format!("ftl.fast.log-blocks={}", 2 + below(rng, 4)));
    settings.push(format!("ftl.last.log-blocks={}", 3 + below(rng, 4)));
    settings.push(format!("ftl.bast.log-blocks={}", 1 + below(rng, 5)));
    settings.push(format!("ftl.superblock.blocks={}", 1 + below(rng, 4)));
    settings.push(format!("ftl.dftl.cmt-entries={}", 2 + below(rng, 60)));
    settings.extend(small_policies());
    if scheme.asks_policies() {
        let victims = names(VictimName::ALL.iter().map(|name| name.listed().name).collect());
        let placements = names(PlacementName::ALL.iter().map(|name| name.listed().name).collect());
        settings.push(format!("gc.victim={}", one_of(rng, &victims)));
        settings.push(format!("placement.policy={}", one_of(rng, &placements)));
        settings
            .push(format!("gc.schedule={}", one_of(rng, &["foreground", "foreground", "preemptive", "rate-limited"])));
    }
    if scheme == SchemeName::Page && blocks >= 30 && chance(rng, 0.4) {
        settings.extend(slc_cache(rng));
    } else if scheme.levels_wear() && chance(rng, 0.4) {
        let policies = names(WearName::ALL.iter().map(|name| name.listed().name).collect());
        settings.push(format!("wear.policy={}", one_of(rng, &policies)));
    }
    if chance(rng, 0.3) {
        settings.push(format!("wear.pe-cycles-max={}", 20 + below(rng, 100)));
    }
    if chance(rng, 0.5) {
        let ram = ManagerName::ALL[below(rng, ManagerName::ALL.len() as u64) as usize];
        settings.push(format!("ram.manager={}", ram.listed().name));
        settings.push(format!("ram.size=\"{} KiB\"", 64 + 32 * below(rng, 4)));
        settings.push(format!("ram.power-protected={}", chance(rng, 0.2)));
        let needs = ram.needs().iter().filter(|(of, ..)| *of == scheme.listed().name);
        settings.extend(needs.map(|(_, key, value)| format!("{key}={value}")));
    }
    let config = flashwright_ssd::Config::default().with_settings(&settings).ok()?;
    Ssd::new(&config, Seed(1), Keeps::Stamps).ok()?;
    Some(settings)
}

#[test]
fn random_drives_may_be_cut_anywhere() {
    let mut built = 0;
    for seed in 0..operations() / 2 {
        let mut rng = Seed(seed).stream("test.power.drive");
        if let Some(settings) = any_drive(&mut rng) {
            cut_everywhere(&settings, 200, seed);
            built += 1;
        }
    }
    assert!(built >= operations() / 20, "{built} drives of {}", operations() / 2);
}

/// Programs and erases of each run; `FLASHWRIGHT_OPERATIONS` sets more.
fn operations() -> u64 {
    std::env::var("FLASHWRIGHT_OPERATIONS").map_or(250, |given| given.parse().unwrap())
}

#[test]
fn every_operation_of_every_scheme_may_be_cut() {
    for scheme in any_order() {
        for planes in [1, 2] {
            let settings = drive(scheme, None, planes);
            assert!(cut_everywhere(&settings, operations(), u64::from(planes)) >= operations());
        }
    }
}

/// As [`drive`] with more blocks, some of which hold checkpoints, taken after so many pages.
fn with_checkpoints(scheme: SchemeName, planes: u32, every: u32) -> Vec<String> {
    let mut settings = drive(scheme, None, planes);
    settings.push("geometry.blocks-per-plane=36".to_owned());
    settings.push(format!("recovery.checkpoint-interval=\"{} KiB\"", every * 4));
    settings
}

#[test]
fn every_operation_may_be_cut_with_checkpoints() {
    for scheme in SchemeName::ALL.iter().filter(|scheme| scheme.takes_checkpoints()) {
        for (planes, every) in [(1, 5), (1, 40), (2, 17)] {
            let settings = with_checkpoints(*scheme, planes, every);
            assert!(cut_everywhere(&settings, operations(), u64::from(every)) >= operations());
        }
    }
}

#[test]
fn every_operation_behind_every_ram_may_be_cut() {
    for (nth, ram) in (0..).zip(ManagerName::ALL) {
        for scheme in any_order() {
            let settings = drive(scheme, Some(*ram), 1);
            if flashwright_ssd::Config::default().with_settings(&settings).is_err() {
                continue;
            }
            for protected in [false, true] {
                let mut settings = settings.clone();
                settings.push(format!("ram.power-protected={protected}"));
                if Ssd::new(&config(&settings), Seed(1), Keeps::Stamps).is_ok() {
                    cut_everywhere(&settings, operations() / 4, nth);
                }
            }
        }
    }
}

#[test]
fn a_drive_that_ignores_flushes_is_caught() {
    for ram in [Some(ManagerName::Lru), None] {
        let mut settings = drive(SchemeName::Page, ram, 1);
        settings.push("recovery.ignores-flush=true".to_owned());
        let outcome = std::panic::catch_unwind(|| cut_everywhere(&settings, 1000, 1));
        let message = *outcome.expect_err("what was flushed is lost").downcast::<String>().unwrap();
        assert!(message.contains("was safe"), "{message}");
    }
}

/// A drive of one plane of 24 blocks of 4 pages, 5 of which hold the journal.
fn small() -> Ssd {
    let mut settings = one_plane(24, 4, 40);
    settings.extend(["recovery.mount-by=scan", "timing.model=serial"].map(str::to_owned));
    Ssd::new(&config(&settings), Seed(1), Keeps::Bytes).unwrap()
}

#[test]
fn a_mount_reads_a_spare_area_for_every_page_and_one_more_for_every_block_with_room() {
    let mut ssd = small();
    let write = pages(&ssd, RequestKind::Write, 7, 3);
    perform(&mut ssd, write).unwrap();
    let mounted = ssd.mount().unwrap();
    assert_eq!((mounted.spare_areas_read, mounted.pages_mapped, mounted.pages_torn), (3 + 1 + 18, 3, 0));
    assert_eq!((mounted.pages_read, mounted.pages_programmed, mounted.blocks_erased), (0, 0, 0));
    let alone = ssd.config().times().alone(flashwright_ftl::OpKind::OobRead);
    assert_eq!(mounted.duration, Nanos(22 * alone));
}

#[test]
fn a_mount_reads_the_newest_checkpoint_and_what_was_programmed_after_it() {
    let mut settings = one_plane(40, 4, 40);
    settings.extend(["recovery.mount-by=scan", "timing.model=serial"].map(str::to_owned));
    settings.push("recovery.checkpoint-interval=\"12 KiB\"".to_owned());
    let mut ssd = Ssd::new(&config(&settings), Seed(1), Keeps::Stamps).unwrap();
    let programs = |ssd: &Ssd| ssd.flash().counters().total(flashwright_ftl::OpKind::Program);
    for (nth, programmed) in [(1, 1), (2, 2), (3, 3 + 2), (4, 4 + 2)] {
        let write = pages(&ssd, RequestKind::Write, nth, 1);
        perform(&mut ssd, write).unwrap();
        assert_eq!(programs(&ssd), programmed, "a page of places and states of blocks, and the end, after the third");
    }
    // The fifth page is part of the next checkpoint, which the power cuts: in its first page, then in its end.
    for operations in [1, 2] {
        let mut cut = ssd.clone();
        for nth in 5..7 {
            let write = pages(&cut, RequestKind::Write, nth, 1);
            cut.cut_after(if nth == 6 { operations } else { 9 });
            assert_eq!(perform(&mut cut, write).is_err(), nth == 6);
        }
        let mounted = cut.mount().unwrap();
        assert_eq!((mounted.pages_mapped, mounted.pages_read), (6, 2), "the older one holds");
        // All pages of the open block of checkpoints; of data the first block's first and last page, two pages of the second block and
        // the erased one behind them, and the first page of each other block.
        assert_eq!(mounted.spare_areas_read, (3 + 3) + 2 + 3 + 30);
    }
    let mounted = ssd.mount().unwrap();
    // Of checkpoints the first page of each block and the others of the newest one, one erased; of data the first page of each
    // block, and the one programmed afterwards.
    assert_eq!((mounted.spare_areas_read, mounted.pages_read), (3 + 2 + 32 + 1, 2));
    assert_eq!((mounted.pages_mapped, mounted.pages_programmed, mounted.blocks_erased), (4, 0, 0));
}

#[test]
fn a_mount_from_a_checkpoint_takes_no_longer_than_one_from_all_spare_areas() {
    let mounted = |model: &str, scheme: SchemeName, kib: u64| {
        let mut settings = shape(2, 1, 2, 64, 32, 4096);
        settings.extend(small_policies());
        settings.push(format!("ftl.scheme={}", scheme.listed().name));
        settings.push(format!("timing.model={model}"));
        settings.push("recovery.mount-by=scan".to_owned());
        settings.push(format!("recovery.checkpoint-interval=\"{kib} KiB\""));
        let mut ssd = Ssd::new(&config(&settings), Seed(1), Keeps::Stamps).unwrap();
        let mut rng = Seed(1).stream("test.power.checkpoints");
        for _ in 0..20_000 {
            let write = pages(&ssd, RequestKind::Write, below(&mut rng, 4096) as u32, 1);
            perform(&mut ssd, write).unwrap();
        }
        let mounted = ssd.mount().unwrap();
        assert_eq!(ssd.audit(), []);
        mounted
    };
    for scheme in SchemeName::ALL.iter().filter(|scheme| scheme.takes_checkpoints()) {
        for model in ["serial", "parallel"] {
            let scan = mounted(model, *scheme, 0);
            for kib in [256, 1024, 4096] {
                let found = mounted(model, *scheme, kib);
                let what = format!("{scheme:?}, {model}, {kib} KiB: {found:?}, all spare areas: {scan:?}");
                assert!(found.duration <= scan.duration, "{what}");
                // Two more for each block that had room, those of the maps of superblocks, and the pages of checkpoints.
                let of_maps = if *scheme == SchemeName::Superblock { 4096 / 8 + 4096 / 64 } else { 0 };
                assert!(found.spare_areas_read <= kib / 4 + 2 * 256 + of_maps + 3 * 32, "{what}");
                assert!(found.pages_read > 0, "{what}");
            }
        }
    }
}

#[test]
fn a_write_that_is_cut_keeps_whole_pages() {
    let mut ssd = small();
    let (write, read) = (pages(&ssd, RequestKind::Write, 7, 3), pages(&ssd, RequestKind::Read, 7, 3));
    let (old, new) = (vec![1; 3 * 4096], vec![2; 3 * 4096]);
    ssd.submit_with(write, &old).unwrap();
    drain(&mut ssd).unwrap();
    ssd.cut_after(1);
    ssd.submit_with(write, &new).unwrap();
    assert_eq!(drain(&mut ssd), Err(IoError::PowerOff));
    let refused = ssd.submit(read).unwrap_err();
    assert_eq!(refused.to_string(), "the device failed: the power is off; mount the drive first");
    let mounted = ssd.mount().unwrap();
    assert_eq!((mounted.pages_mapped, mounted.pages_torn), (3, 1));
    let tag = ssd.submit_with(read, &[]).unwrap();
    drain(&mut ssd).unwrap();
    let mut found = vec![0; 3 * 4096];
    assert!(ssd.take_data(tag, &mut found));
    assert_eq!([found[0], found[4095], found[4096], found[8192]], [2, 2, 1, 1]);
}

#[test]
fn a_trim_that_was_flushed_stays_although_an_older_copy_is_left() {
    let mut ssd = small();
    let of = |ssd: &Ssd, kind| pages(ssd, kind, 5, 1);
    for _ in 0..2 {
        let write = of(&ssd, RequestKind::Write);
        perform(&mut ssd, write).unwrap();
    }
    let trim = of(&ssd, RequestKind::Trim);
    perform(&mut ssd, trim).unwrap();
    let mut lost = ssd.clone();
    assert_eq!(lost.mount().unwrap().pages_mapped, 1, "nothing made the trim safe");
    perform(&mut ssd, sectors(RequestKind::Flush, 0, 0)).unwrap();
    let mounted = ssd.mount().unwrap();
    assert_eq!((mounted.pages_mapped, mounted.pages_read), (0, 1), "the journal has one page");
}

#[test]
fn what_cannot_be_mounted_is_said() {
    let refused = |settings: &[&str]| {
        let mut all = one_plane(24, 4, 40);
        all.extend(settings.iter().map(|setting| (*setting).to_owned()));
        Ssd::new(&config(&all), Seed(1), Keeps::Nothing).unwrap_err().to_string()
    };
    let before = refused(&["recovery.mount-by=scan", "gc.invalidate=before-gc"]);
    assert!(before.contains("gc.invalidate: found \"before-gc\", expected \"after-gc\""), "{before}");
    let few = refused(&["recovery.mount-by=scan", "geometry.blocks-per-plane=12", "geometry.pages-per-block=8"]);
    assert!(few.contains("the journal of trims takes 5 blocks, expected at most a quarter"), "{few}");
    let useless = refused(&["recovery.checkpoint-interval=1 MiB"]);
    assert!(
        useless.contains("recovery.checkpoint-interval: found 1 MiB, expected 0 B, or recovery.mount-by"),
        "{useless}"
    );
    let scan = "recovery.mount-by=scan";
    let merged = refused(&[scan, "recovery.checkpoint-interval=1 MiB", "ftl.scheme=fast"]);
    assert!(
        merged.contains("expected 0 B with ftl.scheme = \"fast\"") && merged.contains("page, superblock, dftl"),
        "{merged}"
    );
    let few = refused(&[scan, "recovery.checkpoint-interval=1 MiB"]);
    assert!(few.contains("checkpoints take 3 blocks and the journal of trims 5"), "{few}");
    let mut plain = Ssd::new(&config(&one_plane(24, 4, 40)), Seed(1), Keeps::Nothing).unwrap();
    let error = plain.mount().unwrap_err().to_string();
    assert!(error.starts_with("recovery.mount-by: found \"nothing\", expected \"scan\""), "{error}");
}
