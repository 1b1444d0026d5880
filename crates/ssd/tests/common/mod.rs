//! Shared by several test modules: small drives, and a host that uses them.

#![allow(dead_code)] // each test binary uses a part of it

use flashwright_block::{BlockDevice, Completion, IoError, Nanos, Request, RequestKind, Rng, Seed, below};
use flashwright_ftl::{
    CAUSES, Cause, Counters, FlashOp, Ftl, Listed, LpnRun, OpKind, PlacementName, ScheduleName, SchemeName, VictimName,
};
use flashwright_nand::{Lpn, ProgramOrder};
use flashwright_ssd::{Config, DriveConfig, Ssd};

pub const CAUSE: [Cause; CAUSES] =
    [Cause::Host, Cause::Gc, Cause::Merge, Cause::Padding, Cause::Translation, Cause::GcTranslation, Cause::Wear];
pub const KIND: [OpKind; 4] = [OpKind::Read, OpKind::Program, OpKind::Erase, OpKind::OobRead];

/// Schemes that take writes in any order; `zones.rs` tests the other.
pub fn any_order() -> impl Iterator<Item = SchemeName> {
    SchemeName::ALL.iter().copied().filter(|scheme| !scheme.writes_in_order())
}

/// Policies whose defaults are for larger drives: windows and numbers of frontiers that the shapes have blocks for.
pub fn small_policies() -> Vec<String> {
    let victims = VictimName::ALL.iter().map(|name| small_of(name.listed(), name.small()));
    let placements = PlacementName::ALL.iter().map(|name| small_of(name.listed(), name.small()));
    let schedules = ScheduleName::ALL.iter().map(|name| small_of(name.listed(), name.small()));
    victims.chain(placements).chain(schedules).flatten().collect()
}

/// Settings of a policy with their keys.
pub fn small_of(policy: Listed, settings: &[&str]) -> Vec<String> {
    let (table, _) = policy.key.rsplit_once('.').unwrap();
    settings.iter().map(|setting| format!("{table}.{}.{setting}", policy.name)).collect()
}

/// The default drive with one frontier and planes in strict turn, and `settings` laid over, as `--set` takes them.
pub fn config<S: AsRef<str>>(settings: &[S]) -> DriveConfig {
    let plain = ["placement.policy=single", "placement.allocation=dynamic"];
    Config::default().with_settings(&plain).unwrap().with_settings(settings).unwrap()
}

/// The smallest shape that still cleans: `blocks` of `pages` pages on one plane, and so many logical pages.
pub fn one_plane(blocks: u32, pages: u32, logical: u32) -> Vec<String> {
    shape(1, 1, 1, blocks, pages, logical)
}

/// A drive of the given counts; times that are easy to distinguish in a failure.
pub fn shape(channels: u32, dies: u32, planes: u32, blocks: u32, pages: u32, logical: u32) -> Vec<String> {
    vec![
        format!("geometry.channels={channels}"),
        format!("geometry.dies-per-channel={dies}"),
        format!("geometry.planes-per-die={planes}"),
        format!("geometry.blocks-per-plane={blocks}"),
        format!("geometry.pages-per-block={pages}"),
        "geometry.page-size=\"4 KiB\"".to_owned(),
        format!("capacity.logical=\"{} B\"", u64::from(logical) * 4096),
        "timing.read=\"50 us\"".to_owned(),
        "timing.program=\"200 us\"".to_owned(),
        "timing.erase=\"700 us\"".to_owned(),
        "timing.oob-read=\"50 us\"".to_owned(),
        "timing.bus-rate=\"40 MB/s\"".to_owned(),
        "slc.page-read=\"50 us\"".to_owned(),
        "slc.page-program=\"200 us\"".to_owned(),
    ]
}

pub fn order_name(order: ProgramOrder) -> &'static str {
    match order {
        ProgramOrder::Ascending => "ascending",
        ProgramOrder::Any => "any",
    }
}

/// A request of whole pages.
pub fn pages(ssd: &Ssd, kind: RequestKind, first: u32, count: u32) -> Request {
    let grain = ssd.sectors_per_page();
    sectors(kind, u64::from(first) * grain, u32::try_from(u64::from(count) * grain).unwrap())
}

pub fn sectors(kind: RequestKind, first_sector: u64, sectors: u32) -> Request {
    Request { first_sector, sectors, kind, ..Request::default() }
}

/// Hands a request over and waits until nothing is in flight; the first failure if a request failed.
pub fn perform(ssd: &mut Ssd, request: Request) -> Result<Vec<Completion>, IoError> {
    ssd.submit(request)?;
    drain(ssd)
}

/// The next completion by `until`.
pub fn wait(ssd: &mut Ssd, until: Nanos) -> Result<Option<Completion>, IoError> {
    let mut completion = Completion::default();
    Ok(ssd.wait(until, &mut completion)?.then_some(completion))
}

/// Waits until nothing is in flight; the first failure if a request failed.
pub fn drain(ssd: &mut Ssd) -> Result<Vec<Completion>, IoError> {
    let mut completions = Vec::new();
    while let Some(completion) = wait(ssd, Nanos(u64::MAX))? {
        completions.push(completion);
    }
    match completions.iter().find_map(|completion| completion.result.clone().err()) {
        None => Ok(completions),
        Some(error) => Err(*error),
    }
}

/// A log with every run of copies written out, read by read and program by program.
pub fn written_out(log: &[FlashOp]) -> Vec<FlashOp> {
    let mut last_of_entry = Vec::new();
    let mut all: Vec<FlashOp> = Vec::new();
    for (entry, op) in log.iter().enumerate() {
        let awaited = (op.after > 0).then(|| last_of_entry[entry - op.after as usize]);
        let after = awaited.map_or(0, |awaited: usize| u32::try_from(all.len() - awaited).unwrap());
        let single = FlashOp { copies: 0, after, ..*op };
        if op.copies == 0 {
            all.push(single);
        }
        for copy in 0..op.copies {
            all.push(FlashOp { kind: OpKind::Read, after: if copy == 0 { after } else { 0 }, ..single });
            all.push(FlashOp { after: 1, ..single });
        }
        last_of_entry.push(all.len() - 1);
    }
    all
}

/// Keeps `depth` requests outstanding until `count` are done; returns the completions in order.
pub fn closed_loop(
    ssd: &mut Ssd,
    depth: usize,
    count: usize,
    mut next: impl FnMut(&Ssd) -> Request,
) -> Vec<Completion> {
    let mut done = Vec::with_capacity(count);
    let mut submitted = 0;
    while done.len() < count {
        while submitted < count && ssd.in_flight() < depth {
            let request = Request { arrival: ssd.now(), ..next(ssd) };
            ssd.submit(request).unwrap();
            submitted += 1;
        }
        done.push(wait(ssd, Nanos(u64::MAX)).unwrap().expect("requests are outstanding"));
    }
    done
}

/// Writes the first `count` pages in order, or all there are, without letting time pass.
pub fn fill(ssd: &mut Ssd, count: u32) {
    for lpn in 0..count.min(ssd.logical_pages()) {
        ssd.precondition(LpnRun { first: Lpn(lpn), pages: 1, stream: 0 }).unwrap();
    }
}

/// The whole state of a drive as bytes: two drives with the same bytes behave alike.
pub fn state(ssd: &Ssd) -> Vec<u8> {
    postcard::to_stdvec(ssd).unwrap()
}

pub fn assert_clean(ssd: &Ssd, at: &str) {
    let violations = ssd.audit();
    assert!(violations.is_empty(), "{at}: the audit found {violations:#?}");
    let counters = ssd.flash().counters();
    for kind in KIND {
        let by_cause: u64 = CAUSE.iter().map(|cause| counters.get(kind, *cause)).sum();
        assert_eq!(by_cause, counters.total(kind), "{at}: {kind:?} by cause and in total");
    }
    // Each page is programmed at most once between erases.
    let geometry = ssd.flash().geometry();
    let room = counters.total(OpKind::Erase) * u64::from(geometry.pages_per_block()) + u64::from(geometry.pages());
    assert!(counters.total(OpKind::Program) <= room, "{at}: more programs than {room} erased pages");
}

/// Programs per host page written.
pub fn amplification(counters: &Counters, host_pages: u64) -> f64 {
    counters.total(OpKind::Program) as f64 / host_pages as f64
}

/// Draws from a list.
pub fn pick<'a, T>(rng: &mut Rng, from: &'a [T]) -> &'a T {
    &from[usize::try_from(below(rng, from.len() as u64)).unwrap()]
}

pub fn draw(rng: &mut Rng, bound: u32) -> u32 {
    u32::try_from(below(rng, u64::from(bound))).unwrap()
}

pub fn rng(seed: u64) -> Rng {
    Seed(seed).stream("test")
}

/// The place of every logical page.
pub fn map(ssd: &Ssd) -> Vec<Option<u32>> {
    (0..ssd.logical_pages()).map(|lpn| ssd.scheme().lookup(Lpn(lpn), ssd.flash()).map(|ppn| ppn.0)).collect()
}
