//! Cleaning in steps, for page mapping and DFTL: steps of any size may come between any two requests of the host.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers of tests count as library code

use flashwright_block::{Bytes, Seed};
use flashwright_ftl::schemes::{DftlSettings, SchemeContext};
use flashwright_ftl::{
    Allocation, Cause, CleansInSteps, Flash, Ftl, FtlSettings, GcSettings, InvalidateOrder, LpnRun, OpKind,
    PlacementConfig, PlacementName, Progress, Scheme, SchemeName, SchemeSettings, ServesRam, SlcCacheKind, SlcContext,
    SlcSettings, VictimName, Watch, WearName, WearSettings, WhenFull,
};
use flashwright_nand::{Geometry, Lpn, Nand, PlaneId, ProgramOrder, WearLimit};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// A drive under test.
#[derive(Clone, Debug)]
struct Drive {
    scheme: SchemeName,
    victim: VictimName,
    wear: Option<WearName>,
    placement: PlacementName,
    allocation: Allocation,
    invalidate: InvalidateOrder,
    free_blocks_min: u32,
    entries: u32,
    dies: u32,
    seed: u64,
    cycles: Option<u32>,
    slc: Option<SlcContext>,
}

/// An event. Pages are shares of the drive in 1/256.
#[derive(Clone, Copy, Debug)]
enum Event {
    Write(u8, u8),
    WriteBlock(u8),
    Read(u8, u8),
    Trim(u8, u8),
    Clean(u32),
    Fold(u32),
    Resize(u8),
    SaveAndLoad,
}

fn drives(cycles: bool) -> impl Strategy<Value = Drive> {
    let wear = proptest::option::of(proptest::sample::select(WearName::ALL));
    let policies = (
        proptest::sample::select(vec![SchemeName::Page, SchemeName::Dftl]),
        proptest::sample::select(VictimName::ALL),
        wear,
        proptest::sample::select(PlacementName::ALL),
        proptest::sample::select(vec![Allocation::ByRoom, Allocation::Dynamic, Allocation::Static]),
        proptest::sample::select(vec![InvalidateOrder::AtProgram, InvalidateOrder::BeforeGc]),
    );
    let cycles = if cycles { (2..8u32).prop_map(Some).boxed() } else { Just(None).boxed() };
    (policies, 1..4u32, 1..20u32, 1..3u32, any::<u64>(), cycles).prop_map(
        |((scheme, victim, wear, placement, allocation, invalidate), free_blocks_min, entries, dies, seed, cycles)| {
            let wear = wear.filter(|wear| !wear.needs_limit() || cycles.is_some());
            Drive {
                scheme,
                victim,
                wear,
                placement,
                allocation,
                invalidate,
                free_blocks_min,
                entries,
                dies,
                seed,
                cycles,
                slc: None,
            }
        },
    )
}

/// Page-mapped drives with an SLC cache.
fn cached_drives(cycles: bool) -> impl Strategy<Value = Drive> {
    let kinds = (
        proptest::sample::select(vec![SlcCacheKind::Fixed, SlcCacheKind::Dynamic]),
        proptest::sample::select(vec![WhenFull::Direct, WhenFull::Fold]),
    );
    let slc = (kinds, 2..5u32, 0.05..0.3f64, 1..9u32);
    (drives(cycles), slc).prop_map(|(drive, ((cache, when_full), bits_per_cell, block_share, blocks_kept))| {
        let settings = SlcSettings { cache, block_share, blocks_kept, when_full, ..SlcSettings::default() };
        let slc = Some(SlcContext { settings, bits_per_cell });
        Drive { scheme: SchemeName::Page, wear: None, slc, ..drive }
    })
}

/// Every other clean becomes a fold.
fn with_folds(events: Vec<Event>) -> impl Iterator<Item = Event> {
    events.into_iter().enumerate().map(|(nth, event)| match event {
        Event::Clean(budget) if nth % 2 == 0 => Event::Fold(budget),
        event => event,
    })
}

fn budgets() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 1..3u32, 2 => 3..12u32, 1 => Just(u32::MAX)]
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        8 => (any::<u8>(), 1..5u8).prop_map(|(first, pages)| Event::Write(first, pages)),
        // A hot eighth, so that blocks hold old pages.
        8 => (0..32u8, 1..3u8).prop_map(|(first, pages)| Event::Write(first, pages)),
        1 => any::<u8>().prop_map(Event::WriteBlock),
        2 => (any::<u8>(), 1..9u8).prop_map(|(first, pages)| Event::Read(first, pages)),
        2 => (any::<u8>(), 1..9u8).prop_map(|(first, pages)| Event::Trim(first, pages)),
        12 => budgets().prop_map(Event::Clean),
        1 => (1..20u8).prop_map(Event::Resize),
        1 => Just(Event::SaveAndLoad),
    ];
    proptest::collection::vec(event, 300..600)
}

struct Bench {
    flash: Flash,
    scheme: Scheme,
    logical: u32,
    holds: BTreeSet<u32>,
    /// How many times a write is tried.
    tries: u32,
}

impl Bench {
    /// A drive as full as the scheme takes it.
    fn new(drive: &Drive) -> Self {
        let Drive { scheme, victim, placement: policy, allocation, invalidate, free_blocks_min, .. } = *drive;
        let dftl = DftlSettings { cmt_entries: drive.entries, ..DftlSettings::default() };
        let ftl = FtlSettings {
            entry_bytes: 512,
            schemes: SchemeSettings { dftl, ..SchemeSettings::default() },
            ..FtlSettings::default()
        };
        let mut gc = GcSettings { victim: victim.into(), invalidate, free_blocks_min, ..GcSettings::default() };
        gc.victims.windowed_greedy.window = 8;
        gc.victims.container_marking.window_blocks = 8;
        let placement = PlacementConfig { policy, allocation, ..PlacementConfig::default() };
        let mut wear = WearSettings { policy: drive.wear, ..WearSettings::default() };
        // Often enough to matter here.
        wear.policies.threshold.gap = 1;
        wear.policies.dual_pool.threshold = 1;
        wear.policies.r#static.threshold = 2;
        let limit = drive.cycles.map_or(WearLimit::Unlimited, WearLimit::Same);
        let context = SchemeContext {
            logical_pages: 0,
            dies_per_way: 1,
            ftl: &ftl,
            gc: &gc,
            placement: &placement,
            wear: &wear,
            seed: Seed(drive.seed),
            slc: drive.slc,
            foreign: None,
        };
        // A policy that draws may draw full blocks only, until the write gives up: that is no end of the space.
        let draws = matches!(victim, VictimName::Random | VictimName::DChoices);
        let tries = if draws && drive.cycles.is_none() { 50 } else { 1 };
        for (blocks, pages) in [(28, 4), (40, 4), (80, 4), (120, 8)] {
            let geometry = Geometry::new(1, drive.dies, 1, blocks, pages, Bytes(4096));
            let flash = |logical| {
                Flash::new(Nand::new(geometry, ProgramOrder::Ascending, limit.clone(), &[]), logical, true, true)
            };
            let takes = |logical: u32| {
                scheme.problems(&SchemeContext { logical_pages: logical, ..context }, &flash(logical)).is_empty()
            };
            let least = geometry.pages() / 4;
            if !takes(least) {
                continue;
            }
            let (mut logical, mut step) = (least, geometry.pages().next_power_of_two() / 2);
            while step > 0 {
                if logical + step < geometry.pages() && takes(logical + step) {
                    logical += step;
                }
                step /= 2;
            }
            let mut flash = flash(logical);
            let mut scheme = scheme.build(&SchemeContext { logical_pages: logical, ..context }, &mut flash);
            scheme.watch(Watch { reclaimable: true, map_ghosts: 3 }, &flash);
            return Self { flash, scheme, logical, holds: BTreeSet::new(), tries };
        }
        panic!("{drive:?} takes none of the shapes")
    }

    fn run(&self, first: u8, pages: u8) -> LpnRun {
        let first = u32::from(first) * self.logical / 256;
        LpnRun { first: Lpn(first), pages: u32::from(pages).min(self.logical - first), stream: 0 }
    }

    /// Lets an event happen; returns whether the drive could do it.
    fn happen(&mut self, event: Event) -> bool {
        let Self { flash, scheme, .. } = self;
        match event {
            Event::Write(..) | Event::WriteBlock(_) => {
                let run = match event {
                    Event::Write(first, pages) => self.run(first, pages),
                    Event::WriteBlock(first) => self.run(first, 4),
                    _ => unreachable!(),
                };
                // Page by page, so that what a failed write leaves is known.
                for lpn in run.iter() {
                    let one = LpnRun { first: lpn, pages: 1, ..run };
                    self.flash.host_writes_page(lpn);
                    let written = (0..self.tries).any(|_| match event {
                        Event::Write(..) => self.scheme.write(one, &mut self.flash).is_ok(),
                        _ => {
                            self.scheme.look_up_block(one, &mut self.flash);
                            self.scheme.supersede(&[lpn.0], &mut self.flash);
                            self.scheme.write_block(&[lpn.0], &mut self.flash).is_ok()
                        }
                    });
                    if !written {
                        let held_in = self.scheme.lookup(lpn, &self.flash);
                        if matches!(event, Event::WriteBlock(_)) && held_in.is_none() {
                            // `supersede` dropped the old copy: RAM, which alone calls it, still holds the page.
                            self.flash.old_content_dropped(lpn);
                        }
                        self.flash.host_write_failed(lpn, held_in);
                        if held_in.is_none() {
                            self.holds.remove(&lpn.0);
                        }
                        return false;
                    }
                    self.holds.insert(lpn.0);
                }
            }
            Event::Read(first, pages) => {
                let run = self.run(first, pages);
                self.scheme.read(run, &mut self.flash);
            }
            Event::Trim(first, pages) => {
                let run = self.run(first, pages);
                run.iter().for_each(|lpn| self.flash.host_trims_page(lpn));
                self.scheme.trim(run, &mut self.flash);
                run.iter().for_each(|lpn| _ = self.holds.remove(&lpn.0));
            }
            Event::Clean(budget) | Event::Fold(budget) => {
                let before = flash.counters().clone();
                let progress = if matches!(event, Event::Clean(_)) {
                    scheme.clean(budget, flash)
                } else {
                    scheme.fold(PlaneId(budget % flash.geometry().planes()), budget, flash)
                };
                let done = flash.counters().since(&before);
                let steps = done.total(OpKind::Program) + done.total(OpKind::Erase);
                let reported = if let Progress::Worked(steps) = progress { u64::from(steps) } else { 0 };
                assert_eq!(reported, steps, "steps reported and made");
                assert_eq!(done.get(OpKind::Program, Cause::Host), 0);
            }
            Event::Resize(entries) => self.scheme.resize_map_cache(u32::from(entries), &mut self.flash),
            Event::SaveAndLoad => {
                let saved = postcard::to_stdvec(&(&*scheme, &*flash)).unwrap();
                let (loaded, chip): (Scheme, Flash) = postcard::from_bytes(&saved).unwrap();
                (self.scheme, self.flash) = (loaded, chip);
            }
        }
        true
    }

    fn audit(&mut self) {
        self.flash.clear_log();
        let mut violations = Vec::new();
        self.flash.audit(&mut violations);
        self.scheme.audit(&self.flash, &mut violations);
        violations.extend_from_slice(self.flash.stamps().unwrap().violations().1);
        assert!(violations.is_empty(), "{violations:#?}");
        for lpn in 0..self.logical {
            assert_eq!(self.scheme.lookup(Lpn(lpn), &self.flash).is_some(), self.holds.contains(&lpn), "lpn {lpn}");
        }
    }

    /// Reads everything, which the stamps check.
    fn read_all(&mut self) {
        self.scheme.read(LpnRun { first: Lpn(0), pages: self.logical, stream: 0 }, &mut self.flash);
        self.audit();
    }

    fn fill(&mut self) {
        for first in 0..=255 {
            let pages = u8::try_from(self.logical.div_ceil(256)).unwrap();
            self.happen(Event::Write(first, pages));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever steps come in between, the drive stays consistent after each, loses nothing and never runs out of space.
    #[test]
    fn steps_may_come_at_any_time(drive in drives(false), events in events()) {
        let mut bench = Bench::new(&drive);
        bench.fill();
        for (nth, event) in events.into_iter().enumerate() {
            prop_assert!(bench.happen(event), "event {nth}, {event:?}: out of space");
            bench.audit();
        }
        bench.read_all();
    }

    /// On a drive that wears out, writes finally fail, whatever the progress of cleaning; nothing else is lost.
    #[test]
    fn the_end_may_come_in_the_middle_of_a_clean(drive in drives(true), events in events()) {
        let mut bench = Bench::new(&drive);
        bench.fill();
        for event in events {
            bench.happen(event);
            bench.audit();
        }
        bench.read_all();
    }

    /// The same with an SLC cache, which is folded in steps as well.
    #[test]
    fn steps_may_come_at_any_time_beside_an_slc_cache(drive in cached_drives(false), events in events()) {
        let mut bench = Bench::new(&drive);
        bench.fill();
        for (nth, event) in with_folds(events).enumerate() {
            prop_assert!(bench.happen(event), "event {nth}, {event:?}: out of space");
            bench.audit();
        }
        bench.read_all();
    }

    /// The end of life with an SLC cache.
    #[test]
    fn the_end_may_come_in_the_middle_of_a_fold(drive in cached_drives(true), events in events()) {
        let mut bench = Bench::new(&drive);
        bench.fill();
        for event in with_folds(events) {
            bench.happen(event);
            bench.audit();
        }
        bench.read_all();
    }

    /// A clean in single steps leaves the drive as one in a single call does, if nothing comes in between.
    #[test]
    fn steps_add_up_to_a_clean(drive in drives(false), events in events(), budget in 1..6u32) {
        let mut whole = Bench::new(&drive);
        whole.fill();
        for event in events.into_iter().filter(|event| !matches!(event, Event::Clean(_) | Event::SaveAndLoad)) {
            whole.happen(event);
        }
        for _ in 0..20 {
            let (scheme, flash) = (whole.scheme.clone(), whole.flash.clone());
            let mut parts = Bench { scheme, flash, holds: whole.holds.clone(), ..whole };
            let Progress::Worked(all) = whole.scheme.clean(u32::MAX, &mut whole.flash) else { break };
            let mut made = 0;
            while made < all {
                let Progress::Worked(steps) = parts.scheme.clean(budget.min(all - made), &mut parts.flash) else {
                    panic!("{made} of {all} steps, then nothing")
                };
                made += steps;
                parts.audit();
            }
            prop_assert_eq!(made, all);
            prop_assert_eq!(parts.flash.counters(), whole.flash.counters());
            for lpn in (0..whole.logical).map(Lpn) {
                prop_assert_eq!(parts.scheme.lookup(lpn, &parts.flash), whole.scheme.lookup(lpn, &whole.flash));
            }
            prop_assert_eq!(parts.scheme.figures(), whole.scheme.figures());
        }
        whole.audit();
    }
}

/// Under every victim policy, steps clean until there is nothing more to gain.
#[test]
fn cleaning_ends_when_nothing_is_to_be_gained() {
    let mut cleaned = 0;
    for scheme in [SchemeName::Page, SchemeName::Dftl] {
        for (nth, victim) in VictimName::ALL.iter().copied().enumerate() {
            let drive = Drive {
                scheme,
                victim,
                wear: WearName::ALL.get(nth % WearName::ALL.len()).copied().filter(|wear| !wear.needs_limit()),
                placement: PlacementName::ALL[nth % PlacementName::ALL.len()],
                allocation: Allocation::Dynamic,
                invalidate: InvalidateOrder::AtProgram,
                free_blocks_min: 1,
                entries: 8,
                dies: 2,
                seed: 1,
                cycles: None,
                slc: None,
            };
            let mut bench = Bench::new(&drive);
            bench.fill();
            for first in 0..64 {
                bench.happen(Event::Write(first, 2));
            }
            let mut calls = 0;
            while bench.scheme.clean(3, &mut bench.flash) != Progress::Nothing {
                bench.audit();
                calls += 1;
                assert!(calls < 100_000, "{drive:?}: cleaning does not end");
            }
            cleaned += u32::from(calls > 0);
            bench.read_all();
        }
    }
    // A policy that goes round all blocks, such as FIFO, may stop at one without an old page.
    assert!(cleaned >= 12, "only {cleaned} drives of 20 were cleaned");
}
