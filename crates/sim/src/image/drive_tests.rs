//! Whole drives on images: killed, and after crashes of the machine, again and again.
//!
//! `FLASHWRIGHT_ROUNDS` sets how often each is ended, 8 by default; another number also draws other requests. After each end every page holds what it held at the last flush that was answered, or something that the host wrote later.

use super::tests::{Folder, crash, keep_synced};
use crate::LiveRun;
use flashwright_block::{
    BlockDevice, Completion, HoldsData, Nanos, Request, RequestKind, Rng, Seed, Tag, below, chance,
};
use flashwright_ftl::SchemeName;
use flashwright_nand::ProgramOrder;
use flashwright_ssd::DriveConfig;
use std::collections::BTreeMap;

/// 32 blocks of 8 pages of 512 B, most of them in use.
const DRIVE: [&str; 7] = [
    "geometry.channels=2",
    "geometry.dies-per-channel=1",
    "geometry.blocks-per-plane=16",
    "geometry.pages-per-block=8",
    "geometry.page-size=512 B",
    "capacity.utilization=0.5",
    "recovery.mount-by=scan",
];

/// What a page may hold, oldest first: stamps that fill it, 0 for nothing.
struct Held {
    /// The number of the first of them.
    first: usize,
    allowed: Vec<u8>,
}

impl Held {
    fn newest(&self) -> usize {
        self.first + self.allowed.len() - 1
    }

    /// Nothing older than this one is allowed any more.
    fn is_safe(&mut self, number: usize) {
        let older = number.saturating_sub(self.first);
        self.allowed.drain(..older);
        self.first += older;
    }
}

struct Host {
    pages: Vec<Held>,
    stamp: u8,
    draw: Rng,
}

impl Host {
    fn new(pages: u64, seed: u64) -> Self {
        let pages = (0..pages).map(|_| Held { first: 0, allowed: vec![0] }).collect();
        Self { pages, stamp: 0, draw: Seed(seed).stream("host") }
    }

    /// Keeps up to 8 requests in flight; `requests` in all, after which some may still be there.
    fn load(&mut self, drive: &mut LiveRun, requests: u32) {
        let mut flights: BTreeMap<Tag, Vec<usize>> = BTreeMap::new();
        for _ in 0..requests {
            let page = below(&mut self.draw, self.pages.len() as u64);
            let kind = match below(&mut self.draw, 20) {
                0 => RequestKind::Flush,
                1 | 2 => RequestKind::Trim,
                _ => RequestKind::Write,
            };
            let (first_sector, sectors) = if kind == RequestKind::Flush { (0, 0) } else { (page, 1) };
            let fua = kind == RequestKind::Write && chance(&mut self.draw, 0.05);
            let request = Request { kind, first_sector, sectors, fua, arrival: drive.now(), ..Request::default() };
            self.stamp = self.stamp % 250 + 1;
            let held = &mut self.pages[page as usize].allowed;
            let tag = match kind {
                RequestKind::Write => {
                    held.push(self.stamp);
                    drive.submit_with(request, &[self.stamp; 512]).unwrap()
                }
                RequestKind::Trim => {
                    held.push(0);
                    drive.submit(request).unwrap()
                }
                _ => drive.submit(request).unwrap(),
            };
            flights.insert(tag, self.pages.iter().map(Held::newest).collect());
            let depth = below(&mut self.draw, 8) as usize;
            while flights.len() > depth {
                self.one_ends(drive, &mut flights);
            }
        }
    }

    fn one_ends(&mut self, drive: &mut LiveRun, flights: &mut BTreeMap<Tag, Vec<usize>>) {
        let mut done = Completion::default();
        assert!(drive.wait(Nanos(u64::MAX), &mut done).unwrap());
        done.result.unwrap();
        let newest = flights.remove(&done.tag).unwrap();
        let page = done.request.first_sector as usize;
        if done.request.kind == RequestKind::Flush {
            // NBD asks it only of requests that were answered before the flush was sent.
            self.pages.iter_mut().zip(newest).for_each(|(held, number)| held.is_safe(number));
        } else if done.request.fua {
            self.pages[page].is_safe(newest[page]);
        }
    }

    fn check(&mut self, drive: &mut LiveRun, what: &dyn Fn() -> String) {
        assert_eq!(drive.ssd().audit(), [], "{}", what());
        for (page, held) in (0..).zip(&mut self.pages) {
            let allowed = &held.allowed;
            let request = Request { first_sector: page, sectors: 1, arrival: drive.now(), ..Request::default() };
            let tag = drive.submit_with(request, &[]).unwrap();
            let (mut done, mut data) = (Completion::default(), [1; 512]);
            while drive.wait(Nanos(u64::MAX), &mut done).unwrap() && done.tag != tag {}
            assert!(drive.take_data(tag, &mut data), "{}", what());
            assert!(data.iter().all(|byte| *byte == data[0]), "page {page} is mixed: {}", what());
            assert!(allowed.contains(&data[0]), "page {page}: {}, expected {allowed:?}: {}", data[0], what());
            *held = Held { first: 0, allowed: vec![data[0]] };
        }
    }
}

/// Schemes that take writes in any order.
fn any_order() -> impl Iterator<Item = SchemeName> {
    SchemeName::ALL.iter().copied().filter(|scheme| !scheme.writes_in_order())
}

fn kinds() -> Vec<(String, DriveConfig)> {
    let ram = ["ram.manager=lru", "ram.size=8 KiB"];
    let mut kinds = Vec::new();
    for scheme in any_order() {
        let name = scheme.listed().name;
        let order = if scheme.needs_order() == Some(ProgramOrder::Any) { "any" } else { "ascending" };
        let (order, scheme) = (format!("geometry.program-order={order}"), format!("ftl.scheme={name}"));
        let mut add = |more: &[&str]| {
            let settings = [&DRIVE, &[scheme.as_str(), order.as_str()][..], more].concat();
            kinds.push((format!("{name} {more:?}"), DriveConfig::default().with_settings(&settings).unwrap()));
        };
        add(&["timing.model=none"]);
        add(&["timing.model=parallel"]);
        add(&[&["timing.model=serial"], &ram[..]].concat());
        add(&["timing.model=parallel", "chips.write-ram=64 KiB"]);
        add(&["timing.model=parallel", "controller.write-buffer={size=\"8 KiB\", kind=\"cache\", flushes=2}"]);
    }
    kinds
}

/// Ends a drive `rounds` times, each time by a kill or, if `crashes`, by a crash of the machine. Returns whether there is such a drive.
fn end_often(name: &str, config: &DriveConfig, rounds: u64, crashes: bool) -> bool {
    let folder = Folder::new();
    let open = || LiveRun::on_image(&folder.file(), config, Seed(1), None, || false);
    let mut drive = match open() {
        Ok(drive) => drive,
        Err(crate::RunError::Ssd(_)) => return false,
        Err(other) => panic!("{name}: {other}"),
    };
    let mut host = Host::new(drive.info().capacity.0 / 512, rounds);
    for round in 0..rounds {
        if crashes {
            keep_synced(&folder.file());
        }
        let requests = 1 + below(&mut host.draw, 300) as u32;
        host.load(&mut drive, requests);
        drop(drive);
        if crashes {
            crash(&folder.file(), &mut host.draw);
        }
        drive = open().unwrap_or_else(|error| panic!("{name}, round {round}: {error}"));
        host.check(&mut drive, &|| format!("{name}, round {round}"));
    }
    true
}

fn end_all_often(crashes: bool) {
    let rounds = std::env::var("FLASHWRIGHT_ROUNDS").map_or(8, |rounds| rounds.parse().unwrap());
    let ended = kinds().iter().filter(|(name, config)| end_often(name, config, rounds, crashes)).count();
    assert!(ended >= 3 * any_order().count(), "only {ended} drives could be built");
}

#[test]
fn killed_drives_keep_what_they_flushed() {
    end_all_often(false);
}

#[test]
fn drives_keep_what_they_flushed_when_the_machine_crashes() {
    end_all_often(true);
}
