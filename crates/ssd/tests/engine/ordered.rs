//! The engine of single pages makes the schedule of the engine of chip commands, which the reference model checks: with random
//! operations, and with what real drives log.

use super::chips::{Requests, Writer, cleaning, flash_of};
use super::random_config;
use crate::common::*;
use flashwright_block::{BlockDevice, Nanos, Rng, Seed, chance};
use flashwright_ftl::{FlashOp, OpKind};
use flashwright_nand::Geometry;
use flashwright_ssd::engine::{Awaits, Chips, Ordered};
use flashwright_ssd::{BusyTimes, ChipFigures, DriveConfig, Ssd};
use std::collections::BTreeMap;

/// What both engines can be asked.
trait Engine {
    fn issue(&mut self, now: u64, least: u64, ops: &[FlashOp]) -> u32;
    fn next(&mut self, until: u64) -> Option<(u32, u64)>;
    fn trim(&mut self, now: u64, bytes: u64) -> u64;
    fn next_event(&self) -> u64;
    /// Which dies are idle, how long each part was busy until now, and what was done.
    fn state(&self) -> (Vec<bool>, BusyTimes, ChipFigures);
}

impl Engine for (Chips, flashwright_ftl::Flash) {
    fn issue(&mut self, now: u64, least: u64, ops: &[FlashOp]) -> u32 {
        self.0.issue(now, least, ops, Awaits::Request, &self.1)
    }
    fn next(&mut self, until: u64) -> Option<(u32, u64)> {
        self.0.next_completion(until)
    }
    fn trim(&mut self, now: u64, bytes: u64) -> u64 {
        self.0.clear_map(now, bytes)
    }
    fn next_event(&self) -> u64 {
        self.0.next_event()
    }
    fn state(&self) -> (Vec<bool>, BusyTimes, ChipFigures) {
        let busy = self.0.busy();
        ((0..busy.dies.len()).map(|die| self.0.is_idle(die)).collect(), busy, self.0.figures())
    }
}

impl Engine for (Ordered, Geometry) {
    fn issue(&mut self, now: u64, least: u64, ops: &[FlashOp]) -> u32 {
        self.0.issue(now, least, ops, &self.1)
    }
    fn next(&mut self, until: u64) -> Option<(u32, u64)> {
        self.0.next_completion(until)
    }
    fn trim(&mut self, now: u64, bytes: u64) -> u64 {
        self.0.clear_map(now, bytes)
    }
    fn next_event(&self) -> u64 {
        self.0.next_event()
    }
    fn state(&self) -> (Vec<bool>, BusyTimes, ChipFigures) {
        let busy = self.0.busy();
        ((0..busy.dies.len()).map(|die| self.0.is_idle(die)).collect(), busy, self.0.figures())
    }
}

/// All that a run shows: each completion as it comes, and the engine's state at each arrival.
#[derive(Debug, Default, PartialEq)]
struct Played {
    ends: Vec<(u32, u64)>,
    trims: Vec<u64>,
    states: Vec<(Vec<bool>, BusyTimes, ChipFigures)>,
}

/// Plays requests at their arrivals; an empty one is a trim, which holds the dies where the firmware takes time for it.
fn play(engine: &mut impl Engine, requests: &Requests) -> Played {
    let mut played = Played::default();
    let arrivals = requests.iter().map(|(arrival, _)| *arrival).chain([u64::MAX]);
    for (at, until) in arrivals.enumerate() {
        let mut next_event = engine.next_event();
        while let Some((slot, end)) = engine.next(until) {
            assert!(end >= next_event, "a completion at {end} before the next event at {next_event}");
            played.ends.push((slot, end));
            next_event = engine.next_event();
        }
        if let Some((_, ops)) = requests.get(at) {
            if ops.is_empty() {
                played.trims.push(engine.trim(until, 4096 * at as u64));
            }
            let least = if at % 7 == 0 { 30_000 } else { 0 };
            engine.issue(until, least, ops);
        }
        played.states.push(engine.state());
    }
    played
}

fn compare(config: &DriveConfig, requests: &Requests, what: &str) -> ChipFigures {
    let mut chips = (Chips::new(config, 0, Seed(1), ()), flash_of(config));
    let mut ordered = (Ordered::new(config, 0), config.layout());
    let (expected, found) = (play(&mut chips, requests), play(&mut ordered, requests));
    let first = (0..expected.ends.len()).find(|at| found.ends.get(*at) != expected.ends.get(*at));
    let (these, those) = (first.map(|at| found.ends.get(at)), first.map(|at| expected.ends[at]));
    assert_eq!(
        first, None,
        "{what}: completion {these:?} instead of {those:?}; {:?}, {:?}",
        config.timing, config.chips
    );
    assert_eq!(found, expected, "{what}; {:?}, {:?}", config.timing, config.chips);
    expected.states.last().unwrap().2
}

/// Settings of a drive whose dies choose; pages of a cell may have times of their own.
fn orders(rng: &mut Rng) -> Vec<String> {
    let mut settings = vec![
        "host.queue-depth=65536".to_owned(),
        format!("timing.die-order={}", pick(rng, &["fifo", "by-class", "reads-first"])),
        format!("timing.passed-max={}", 1 + draw(rng, 4)),
        format!("chips.suspends={}", pick(rng, &["nothing", "nothing", "erases", "programs-and-erases"])),
        format!("chips.suspend={} ns", pick(rng, &[0, 1_000, 50_000])),
        format!("chips.resume={} ns", pick(rng, &[0, 3_000, 50_000])),
        format!("chips.run-least={} ns", pick(rng, &[0, 7_000, 100_000])),
        format!("chips.suspensions-max={}", 1 + draw(rng, 3)),
    ];
    if chance(rng, 0.2) {
        settings.push(format!("chips.trim-rate={}", pick(rng, &["40 MB/s", "1 GB/s"])));
    }
    settings
}

/// Copies from one block to the next pages of another on the same die, as cleaning makes them, now and then with a flaw: a
/// page twice, an operation between, an operation that awaits one of them.
fn run(writer: &mut Writer, rng: &mut Rng, geometry: &Geometry, ops: &mut Vec<FlashOp>) {
    let (pages, dies) = (geometry.pages_per_block(), geometry.dies());
    let die = draw(rng, dies) * (geometry.pages() / dies);
    let (from, to) = (die + draw(rng, 3) * pages, die + draw(rng, 3) * pages);
    let written = writer.next.get(&from).copied().unwrap_or(0);
    let cause = *pick(rng, &[flashwright_ftl::Cause::Gc, flashwright_ftl::Cause::Merge, flashwright_ftl::Cause::Wear]);
    for page in 0..written {
        let next = writer.next.entry(to).or_default();
        if *next == pages || from == to || chance(rng, 0.1) {
            break;
        }
        let page = if chance(rng, 0.05) { page.saturating_sub(1) } else { page };
        ops.push(FlashOp { cause, ..cleaning(OpKind::Read, from + page) });
        ops.push(FlashOp { cause, after: 1, ..cleaning(OpKind::Program, to + *next) });
        *next += 1;
        if chance(rng, 0.1) {
            let kind = *pick(rng, &[OpKind::Read, OpKind::OobRead]);
            let after = draw(rng, u32::try_from(ops.len()).unwrap() + 1);
            ops.push(FlashOp { cause, after, ..cleaning(kind, from + page) });
        }
    }
    if chance(rng, 0.5) && written > 0 && from != to {
        ops.push(FlashOp { cause, ..cleaning(OpKind::Erase, from) });
        writer.next.insert(from, 0);
    }
}

#[test]
fn random_operations_have_the_schedule_of_the_engine_of_chips() {
    let mut all = ChipFigures::default();
    for seed in 0..1_500 {
        let mut rng = rng(seed);
        let base = random_config(&mut rng);
        let mut settings = orders(&mut rng);
        if base.geometry.pages_per_block.is_multiple_of(2) && chance(&mut rng, 0.3) {
            let reads = *pick(&mut rng, &["50 us, 50 us", "50 us, 80 us"]);
            settings.push("geometry.bits-per-cell=2".to_owned());
            settings.extend([format!("chips.read-times={reads}"), "chips.program-times=200 us, 700 us".to_owned()]);
        }
        let config = base.with_settings(&settings).unwrap();
        if !Ordered::suffices(&config) {
            assert_eq!(config.timing.bus_rate.0, None, "only what takes no time is left to the other engine");
            continue;
        }
        let geometry = config.layout();
        let mut writer = Writer { next: BTreeMap::new() };
        let (mut arrival, burst, copies) = (0, *pick(&mut rng, &[0.3, 0.7, 0.95]), *pick(&mut rng, &[0.1, 0.5]));
        let requests: Requests = (0..80)
            .map(|_| {
                if !chance(&mut rng, burst) {
                    let odd = u64::from(draw(&mut rng, 2_000_000));
                    arrival += if chance(&mut rng, 0.7) { u64::from(draw(&mut rng, 60)) * 50_000 } else { odd };
                }
                let mut ops = Vec::new();
                if chance(&mut rng, copies) {
                    run(&mut writer, &mut rng, &geometry, &mut ops);
                }
                if ops.is_empty() || chance(&mut rng, 0.5) {
                    let before = u32::try_from(ops.len()).unwrap();
                    let more = writer.request(&mut rng, &geometry);
                    let awaits = |op: &FlashOp| op.after > 0 || before == 0;
                    ops.extend(more.iter().map(|op| FlashOp { after: if awaits(op) { op.after } else { 1 }, ..*op }));
                }
                (arrival, ops)
            })
            .collect();
        let figures = compare(&config, &requests, &format!("seed {seed}"));
        all.array_reads += figures.array_reads;
        all.array_programs += figures.array_programs;
        all.array_erases += figures.array_erases;
        all.programs_suspended += figures.programs_suspended;
        all.erases_suspended += figures.erases_suspended;
    }
    println!("{all:?}");
    let suspended = all.programs_suspended.min(all.erases_suspended);
    assert!(all.array_programs > 100_000 && all.array_erases > 10_000 && suspended > 500, "{all:?}: too easy");
}

/// Operations as translation layers log them: pages, a cached map, and merges of log blocks.
#[test]
fn what_drives_log_has_the_schedule_of_the_engine_of_chips() {
    let (mut drives, mut programs) = (0, 0);
    for seed in 0..150 {
        let mut rng = rng(seed);
        let scheme = *pick(&mut rng, &["page", "page", "dftl", "fast"]);
        let settings = [orders(&mut rng), vec![format!("ftl.scheme={scheme}")]].concat();
        let Ok(config) = random_config(&mut rng).with_settings(&settings) else { continue };
        let config = match config.timing.die_order {
            flashwright_ssd::DieOrderName::Fifo => config.with_settings(&["timing.die-order=by-class"]).unwrap(),
            _ => config,
        };
        if !Ordered::suffices(&config) {
            continue;
        }
        let Ok(mut drive) = Ssd::new(&config, Seed(seed), false) else { continue };
        fill(&mut drive, u32::MAX);
        let mut logged: Requests = Vec::new();
        let mut arrival = 0;
        for request in super::random_requests(&mut rng, &drive, 150) {
            arrival += u64::from(draw(&mut rng, 3)) * 100_000;
            drive.submit(flashwright_block::Request { arrival: Nanos(arrival), ..request }).unwrap();
            logged.push((arrival, drive.flash().log().to_vec()));
        }
        programs += compare(&config, &logged, &format!("seed {seed}, {scheme}")).array_programs;
        drives += 1;
    }
    println!("{drives} drives, {programs} programs");
    assert!(drives > 50 && programs > 20_000, "{drives} drives, {programs} programs: too easy");
}

/// What needs more than commands of one page or block, each with a time of its own, is left to the engine of chips.
#[test]
fn single_pages_suffice_unless_a_setting_asks_for_more() {
    let suffices = |settings: &[&str]| Ordered::suffices(&config(settings));
    for enough in [
        &["timing.die-order=by-class"][..],
        &["chips.suspends=programs-and-erases", "chips.trim-rate=1 GB/s"],
        &["geometry.bits-per-cell=2", "chips.read-times=40 us, 70 us", "timing.pipelined=false"],
    ] {
        assert!(suffices(enough), "{enough:?}");
    }
    for more in [
        &["geometry.superblock=drive", "chips.write-ram=1 MiB"][..],
        &["chips.cache-read=true"],
        &["chips.copyback=true"],
        &["chips.write-ram=1 MiB"],
        &["chips.copy-overhead=1 us"],
        &["geometry.mapping-unit=2 KiB", "chips.write-ram=1 MiB"],
        &["energy.limit-mw=500", "energy.program-uj=50"],
        &["errors.law=power-law"],
        &["timing.bus-rate=none"],
        &["timing.read=0 us"],
    ] {
        assert!(!suffices(more), "{more:?}");
    }
}
