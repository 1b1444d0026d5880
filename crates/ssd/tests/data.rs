//! Drives that hold data, compared with a plain array of bytes.

#![allow(clippy::unwrap_used)] // helpers of tests count as library code

use crate::common::*;
use flashwright_block::{
    BlockDevice, Completion, HoldsData, IoError, Nanos, Request, RequestKind, Rng, SECTOR_BYTES, Seed, Tag, below,
    chance,
};
use flashwright_ftl::SchemeName;
use flashwright_nand::{Lpn, ProgramOrder};
use flashwright_ssd::{Controller, DriveConfig, Keeps, ManagerName, Ssd};
use std::collections::HashMap;

const SECTOR: usize = SECTOR_BYTES as usize;
/// Sectors of a page.
const GRAIN: u64 = 3;

/// What the host wrote last, sector by sector; none if a trim of a part of a page leaves that open.
struct Reference {
    sectors: Vec<Option<[u8; SECTOR]>>,
}

impl Reference {
    fn new(device: &dyn HoldsData) -> Self {
        let sectors = usize::try_from(device.info().capacity.0 / SECTOR_BYTES).unwrap();
        Self { sectors: vec![Some([0; SECTOR]); sectors] }
    }

    fn apply(&mut self, request: &Request, data: &[u8]) {
        for sector in request.first_sector..request.end_sector() {
            let at = usize::try_from(sector - request.first_sector).unwrap() * SECTOR;
            let held = &mut self.sectors[usize::try_from(sector).unwrap()];
            match request.kind {
                RequestKind::Write => *held = Some(data[at..at + SECTOR].try_into().unwrap()),
                RequestKind::Trim => {
                    let page = sector - sector % GRAIN;
                    let whole = request.first_sector <= page && page + GRAIN <= request.end_sector();
                    *held = whole.then_some([0; SECTOR]);
                }
                _ => {}
            }
        }
    }

    fn of(&self, request: &Request) -> Vec<Option<[u8; SECTOR]>> {
        let range = request.first_sector..request.end_sector();
        self.sectors[usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()].to_vec()
    }
}

fn data_of(rng: &mut Rng, request: &Request) -> Vec<u8> {
    let mut data = vec![0; if request.kind == RequestKind::Write { request.data_bytes() } else { 0 }];
    if !chance(rng, 0.1) {
        for word in data.chunks_mut(8) {
            word.copy_from_slice(&below(rng, u64::MAX).to_le_bytes());
        }
    }
    data
}

fn random(rng: &mut Rng, sectors: u64) -> Request {
    let kind = match below(rng, 100) {
        0..50 => RequestKind::Write,
        50..88 => RequestKind::Read,
        88..97 => RequestKind::Trim,
        _ => return crate::common::sectors(RequestKind::Flush, 0, 0),
    };
    let most = if chance(rng, 0.1) { 40 } else { 8 };
    // Mostly on the first third, so that pages are overwritten and read where they are.
    let space = if chance(rng, 0.7) { sectors / 3 } else { sectors };
    let first = below(rng, space);
    let count = (1 + below(rng, most)).min(sectors - first);
    let fua = kind == RequestKind::Write && chance(rng, 0.1);
    Request { fua, ..crate::common::sectors(kind, first, u32::try_from(count).unwrap()) }
}

/// Takes the data of a completed read and compares them with the expected data.
fn check(device: &mut dyn HoldsData, done: &Completion, expected: &[Option<[u8; SECTOR]>], at: &str) {
    let mut found = vec![0xEE; done.request.data_bytes()];
    assert!(device.take_data(done.tag, &mut found), "{at}: {done:?} left no data");
    assert!(!device.take_data(done.tag, &mut found), "{at}: data are taken once");
    for ((found, expected), sector) in found.chunks(SECTOR).zip(expected).zip(done.request.first_sector..) {
        if let Some(expected) = expected {
            assert!(found == expected, "{at}: {done:?} found wrong data in sector {sector}");
        }
    }
}

/// Some requests at a time, each read against what was written before it; answers the sectors compared.
fn play(device: &mut dyn HoldsData, seed: u64, requests: u64, at: &str) -> u64 {
    let mut reference = Reference::new(device);
    let sectors = reference.sectors.len() as u64;
    let (mut rng, mut compared) = (rng(seed), 0);
    let mut expected: HashMap<Tag, Vec<Option<[u8; SECTOR]>>> = HashMap::new();
    let mut done = Completion::default();
    let depth = 1 + usize::try_from(seed % 12).unwrap();
    let mut open = 0;
    for step in 0..=requests {
        while open > 0 && (open >= depth || step == requests) {
            assert!(device.wait(Nanos(u64::MAX), &mut done).unwrap(), "{at}: what is in flight ends");
            open -= 1;
            if let Some(expected) = expected.remove(&done.tag) {
                compared += expected.iter().flatten().count() as u64;
                check(device, &done, &expected, &format!("{at}, step {step}"));
            }
        }
        let request = Request { arrival: device.now(), ..random(&mut rng, sectors) };
        let data = data_of(&mut rng, &request);
        let tag = device.submit_with(request, &data).unwrap();
        reference.apply(&request, &data);
        open += 1;
        if request.kind == RequestKind::Read {
            expected.insert(tag, reference.of(&request));
        }
    }
    while device.wait(Nanos(u64::MAX), &mut done).unwrap() {}
    compared
}

/// Pages of three sectors, blocks of 6 pages.
fn tiny(scheme: SchemeName, ram: Option<ManagerName>, more: &[&str]) -> DriveConfig {
    let order = scheme.needs_order().unwrap_or(ProgramOrder::Any);
    let mut settings = shape(2, 1, 1, 40, 6, 0);
    settings.extend([
        "geometry.page-size=\"1536 B\"".to_owned(),
        format!("capacity.logical=\"{} B\"", 260 * 1536),
        format!("geometry.program-order={:?}", order_name(order)),
        format!("ftl.scheme={:?}", scheme.listed().name),
    ]);
    settings.extend(small_policies());
    if let Some(ram) = ram {
        settings.extend([format!("ram.manager={:?}", ram.listed().name), "ram.size=\"36 KiB\"".to_owned()]);
        let needs = ram.needs().iter().filter(|(of, ..)| *of == scheme.listed().name);
        settings.extend(needs.map(|(_, key, value)| format!("{key}={value}")));
    }
    settings.extend(more.iter().map(|setting| (*setting).to_owned()));
    config(&settings)
}

/// Every scheme, with every manager of RAM and without.
fn stacks() -> impl Iterator<Item = (SchemeName, Option<ManagerName>)> {
    let managers = || std::iter::once(None).chain(ManagerName::ALL.iter().copied().map(Some));
    any_order().flat_map(move |scheme| managers().map(move |manager| (scheme, manager)))
}

/// A controller whose buffers hold little, so that data pass through all of them; each setting once.
fn controller(seed: u64) -> Vec<String> {
    let kind = if seed.is_multiple_of(2) { "fifo" } else { "cache" };
    let drain = if seed.is_multiple_of(3) { "lazy" } else { "eager" };
    let oversized = if seed % 5 < 2 { "through" } else { "stream" };
    vec![
        "controller.interface-rate=\"300 MB/s\"".to_owned(),
        format!("controller.command-limit=\"{}\"", if seed.is_multiple_of(4) { "4 KiB" } else { "0 B" }),
        format!(
            "controller.write-buffer={{size=\"8 KiB\", kind={kind:?}, drain={drain:?}, oversized={oversized:?}, \
             combine={}, flushes=2}}",
            seed % 7 < 4
        ),
        "controller.read-buffer={size=\"6 KiB\", prefetch=\"3 KiB\"}".to_owned(),
    ]
}

#[test]
fn a_read_gives_the_bytes_that_were_written_last() {
    let (mut compared, mut cleaned, mut hits) = (0, 0, [0; 3]);
    for ((scheme, manager), seed) in stacks().zip(0..) {
        for (timing, within) in [("none", false), ("none", true), ("parallel", false), ("parallel", true)] {
            let at = format!("{scheme:?} {manager:?} {timing} {within}");
            let partial = if seed % 2 == 0 { "whole" } else { "read-modify-write" };
            let mut more = vec![format!("timing.model={timing:?}"), format!("host.partial-pages={partial:?}")];
            more.extend(if within { controller(seed) } else { Vec::new() });
            let config = tiny(scheme, manager, &more.iter().map(String::as_str).collect::<Vec<_>>());
            let ssd = Ssd::new(&config, Seed(seed), Keeps::Bytes).unwrap();
            let mut drive = Controller::new(&config.controller, Seed(1), ssd);
            compared += play(&mut drive, seed, 700, &at);
            cleaned += drive.device().flash().counters().total(flashwright_ftl::OpKind::Erase);
            let figures = drive.figures();
            let found = [figures.write_buffer_hits, figures.write_buffer_read_hits, figures.read_buffer_hits];
            hits.iter_mut().zip(found).for_each(|(sum, hits)| *sum += hits);
            assert_clean(drive.device(), &at);
        }
    }
    assert!(compared > 200_000 && cleaned > 10_000, "{compared} sectors compared, {cleaned} blocks erased");
    assert!(hits.iter().all(|hits| *hits > 40), "{hits:?}");
}

/// A drive that was saved with requests in flight and data in every buffer.
#[test]
fn a_saved_drive_holds_its_data() {
    let more = [controller(5), vec!["timing.model=\"parallel\"".to_owned()]].concat();
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    let config = tiny(SchemeName::Page, Some(ManagerName::Lru), &more);
    let mut drive = Controller::new(&config.controller, Seed(1), Ssd::new(&config, Seed(1), Keeps::Bytes).unwrap());
    let (mut reference, mut rng) = (Reference::new(&drive), rng(1));
    let sectors = reference.sectors.len() as u64;
    for step in 0..500 {
        let request = Request { arrival: Nanos(step * 50_000), ..random(&mut rng, sectors) };
        if request.kind != RequestKind::Read {
            let data = data_of(&mut rng, &request);
            drive.submit_with(request, &data).unwrap();
            reference.apply(&request, &data);
        }
    }
    assert!(drive.in_flight() > 10, "{}", drive.in_flight());
    let mut loaded: Controller<Ssd> = postcard::from_bytes(&postcard::to_stdvec(&drive).unwrap()).unwrap();
    let all = Request { sectors: u32::try_from(sectors).unwrap(), ..Request::default() };
    let (tag, mut done) = (loaded.submit_with(all, &[]).unwrap(), Completion::default());
    while done.tag != tag {
        assert!(loaded.wait(Nanos(u64::MAX), &mut done).unwrap());
    }
    check(&mut loaded, &done, &reference.of(&all), "after loading");
}

/// Timing studies and verify keep no bytes, and say so.
#[test]
fn a_drive_built_without_data_refuses_them() {
    let config = tiny(SchemeName::Page, None, &[]);
    for keeps in [Keeps::Nothing, Keeps::Stamps] {
        let mut ssd = Ssd::new(&config, Seed(1), keeps).unwrap();
        assert!(ssd.holds_data().is_none());
        let write = pages(&ssd, RequestKind::Write, 0, 1);
        assert_eq!(ssd.submit_with(write, &[1; 1536]), Err(IoError::KeepsNoData));
        assert_eq!((ssd.in_flight(), ssd.flash().host_writes()), (0, 0));
    }
}

/// One request after the other, so that what fails is known.
fn execute(ssd: &mut Ssd, request: Request, data: &[u8]) -> Result<Completion, IoError> {
    let mut done = Completion::default();
    ssd.submit_with(Request { arrival: ssd.now(), ..request }, data)?;
    assert!(ssd.wait(Nanos(u64::MAX), &mut done)?);
    match done.result.clone() {
        Ok(()) => Ok(done),
        Err(error) => Err(*error),
    }
}

fn read_all(ssd: &mut Ssd, request: &Request) -> Vec<[u8; SECTOR]> {
    let request = Request { kind: RequestKind::Read, fua: false, ..*request };
    let done = execute(ssd, request, &[]).unwrap();
    let mut data = vec![0xEE; request.data_bytes()];
    assert!(ssd.take_data(done.tag, &mut data));
    data.chunks(SECTOR).map(|sector| sector.try_into().unwrap()).collect()
}

/// A drive at its end refuses writes, forced and others. Up to a page what it was given is written; from there on it holds
/// what was acknowledged before, on flash or in RAM.
#[test]
fn a_write_that_fails_loses_nothing_that_was_acknowledged() {
    let (mut failed, mut in_part) = (0, 0);
    for ((scheme, manager), seed) in stacks().zip(0..) {
        let at = format!("{scheme:?} {manager:?}");
        let more = ["timing.model=\"none\"", "wear.pe-cycles-max=3"];
        let mut ssd = Ssd::new(&tiny(scheme, manager, &more), Seed(seed), Keeps::Bytes).unwrap();
        let mut reference = Reference::new(&ssd);
        let (sectors, mut rng, mut failures) = (reference.sectors.len() as u64, rng(seed), 0);
        for step in 0..20_000 {
            let mut request = random(&mut rng, sectors);
            request.fua |= request.kind == RequestKind::Write && chance(&mut rng, 0.3);
            let data = data_of(&mut rng, &request);
            let at = format!("{at}, step {step}: {request:?}");
            match execute(&mut ssd, request, &data) {
                Ok(done) if request.kind == RequestKind::Read => check(&mut ssd, &done, &reference.of(&request), &at),
                Ok(_) => reference.apply(&request, &data),
                Err(IoError::WornOut { .. }) => {
                    failures += 1;
                    if request.kind == RequestKind::Write {
                        in_part += u64::from(settle(&mut ssd, &mut reference, &request, &data, &at));
                    }
                    assert_clean(&ssd, &at);
                }
                Err(error) => panic!("{at}: {error}"),
            }
            if failures == 60 {
                break;
            }
        }
        let all = Request { sectors: u32::try_from(sectors).unwrap(), ..Request::default() };
        let done = execute(&mut ssd, all, &[]).unwrap();
        check(&mut ssd, &done, &reference.of(&all), &at);
        failed += failures;
    }
    assert!(failed > 1_000 && in_part > 100, "{failed} writes failed, {in_part} of them in part");
}

/// After a failed write: pages up to some hold the new data, the others the old. Returns whether there are both.
fn settle(ssd: &mut Ssd, reference: &mut Reference, request: &Request, data: &[u8], at: &str) -> bool {
    let found = read_all(ssd, request);
    let before = reference.of(request);
    reference.apply(request, data);
    let after = reference.of(request);
    let (mut new_pages, mut old_pages) = (0, 0);
    let mut from = 0;
    while from < found.len() {
        let to = found.len().min(from + usize::try_from(GRAIN - (request.first_sector + from as u64) % GRAIN).unwrap());
        let matches = |expected: &[Option<[u8; SECTOR]>]| {
            found[from..to]
                .iter()
                .zip(&expected[from..to])
                .all(|(found, expected)| expected.is_none_or(|e| e == *found))
        };
        if old_pages == 0 && matches(&after) {
            new_pages += 1;
        } else {
            assert!(matches(&before), "{at}: sectors {from}..{to} of it hold neither the old data nor the new");
            old_pages += 1;
            let first = usize::try_from(request.first_sector).unwrap();
            reference.sectors[first + from..first + to].copy_from_slice(&before[from..to]);
        }
        from = to;
    }
    new_pages > 0 && old_pages > 0
}

/// A forced write takes no room in RAM, but on flash there is none left: RAM keeps the page that was acknowledged.
#[test]
fn a_forced_write_that_fails_leaves_what_ram_holds() {
    let more = ["timing.model=\"none\"", "wear.pe-cycles-max=2"];
    let config = tiny(SchemeName::Page, Some(ManagerName::Lru), &more);
    let mut ssd = Ssd::new(&config, Seed(1), Keeps::Bytes).unwrap();
    let page = |lpn| pages(&ssd, RequestKind::Write, lpn, 1);
    let (kept, other) = (page(9), Request { fua: true, ..page(20) });
    execute(&mut ssd, kept, &[7; 1536]).unwrap();
    let mut writes = 0;
    while execute(&mut ssd, other, &[1; 1536]).is_ok() {
        writes += 1;
    }
    assert!(writes > 100);
    let error = execute(&mut ssd, Request { fua: true, ..kept }, &[8; 1536]).unwrap_err();
    assert!(matches!(error, IoError::WornOut { .. }));
    assert_eq!(ssd.ram().unwrap().is_dirty(Lpn(9)), Some(true));
    assert_eq!(read_all(&mut ssd, &kept).concat(), [7; 1536]);
    assert_clean(&ssd, "after the failure");
}
