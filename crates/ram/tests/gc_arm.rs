//! GC-ARM compared with the dissertation's figure and numbers, workloads with known outcome, and a reference model of
//! plain lists (Hu 2012, chapter 3).

#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers of tests count as library code

use crate::common::*;
use flashwright_block::{Bytes, Nanos, RequestKind, Seed, chance};
use flashwright_ftl::{Cause, Flash, Ftl, GcSettings, InvalidateOrder, OpKind, Scheme, SchemeName, ServesRam};
use flashwright_nand::Lpn;
use flashwright_ram::{
    BlockDestage, Destage, GcArmSettings, ManagerName, ManagerSettings, Ram, RamContext, RamDrive, RamSettings,
    Randomness, Tie, View,
};
use std::collections::BTreeSet;

fn settings(bytes: u64, gc_arm: GcArmSettings) -> RamSettings {
    let managers = ManagerSettings { gc_arm, ..ManagerSettings::default() };
    RamSettings { manager: Some(ManagerName::GcArm), size: Bytes(bytes), managers, ..RamSettings::default() }
}

fn append() -> GcArmSettings {
    GcArmSettings { block_destage: BlockDestage::Append, ..GcArmSettings::default() }
}

/// Steps of 4 pages or 256 entries, decided every 50 requests.
fn small_steps() -> GcArmSettings {
    GcArmSettings { step: Bytes(4 * PAGE), window: 50, ..GcArmSettings::default() }
}

/// Figure 3.2. B1 = 0 2 1 7, B2 holds 11, B3 other pages, all valid; one spare block. The old copy of what is written
/// becomes invalid before cleaning.
///
/// Page at a time: 0 makes B1 the victim, 2 1 7 and 0 fill the spare block; 11 moves the other three of B2; 1 is among what
/// moved before, so again three move; 2 likewise. Group: 0 1 2 leave one valid page in B1, the 7; then 11 moves three.
#[test]
fn figure_3_2() {
    let gc = GcSettings { free_blocks_min: 1, invalidate: InvalidateOrder::BeforeGc, ..GcSettings::default() };
    let play = |ram: &RamSettings| {
        let (mut flash, mut scheme) = flash(SchemeName::Page, 4, 4, 12, 8, &gc);
        for lpn in [0, 2, 1, 7, 11, 3, 4, 5, 6, 8, 9, 10] {
            flash.host_writes_page(Lpn(lpn));
            scheme.write(run(lpn, 1), &mut flash).unwrap();
        }
        assert_eq!(flash.counters().total(OpKind::Erase), 0);
        let mut drive = Drive::new(ram, (flash, scheme), 12).unwrap();
        [0, 11, 1, 2].into_iter().for_each(|lpn| drive.write(lpn, 1));
        drive.flush();
        drive.assert_clean("afterwards");
        (drive.count(OpKind::Erase, Cause::Gc), drive.count(OpKind::Program, Cause::Gc), drive.ram.figures())
    };
    let one_by_one = RamSettings { manager: Some(ManagerName::Fifo), size: Bytes(4 * PAGE), ..RamSettings::default() };
    let (erases, copies, _) = play(&one_by_one);
    assert_eq!((erases, copies), (4, 12), "page at a time");
    let (erases, copies, figures) = play(&settings(4 * PAGE, append()));
    assert_eq!((erases, copies), (2, 4), "grouped");
    assert_eq!((figures.destages, figures.pages_destaged, figures.pages_padded), (2, 4, 0));
}

/// Np = 128 and a victim with 40 invalid pages: 90 pages of a block have the value 52 and leave together; 84 have 40, a tie;
/// 80 have 32.
#[test]
fn the_benefits_of_section_3_2_2() {
    let left = |held: u32| {
        let (mut flash, mut scheme) = flash(SchemeName::Page, 20, 128, 1280, 8, &GcSettings::default());
        let pages = [(0, 128), (0, 40)];
        for (first, count) in pages {
            (first..first + count).for_each(|lpn| flash.host_writes_page(Lpn(lpn)));
            scheme.write(run(first, count), &mut flash).unwrap();
        }
        let mut drive =
            Drive::new(&settings(u64::from(held) * PAGE, GcArmSettings::default()), (flash, scheme), 1280).unwrap();
        drive.write(384, held);
        drive.write(1000, 1);
        drive.assert_clean("afterwards");
        assert_eq!(drive.extra("benefit_page_mean_pages"), 40.0);
        (drive.extra("benefit_block_mean_pages"), drive.ram.figures().pages_destaged)
    };
    assert_eq!(left(90), (52.0, 90));
    assert_eq!(left(84), (40.0, 1));
    assert_eq!(left(80), (32.0, 1));
}

/// Whole blocks in sequence, again and again: cleaning finds blocks without a valid page, so it copies nothing and gains all
/// pages of a victim. Every departure is a block, padded with nothing; where ties go to pages, while every sealed block is
/// valid.
#[test]
fn whole_blocks_in_sequence() {
    for (scheme, tie) in
        [SchemeName::Page, SchemeName::Dftl].into_iter().flat_map(|scheme| [(scheme, Tie::Page), (scheme, Tie::Block)])
    {
        let np = 8;
        let (mut flash, mut scheme) = flash(scheme, 60, np, 400, 64, &GcSettings::default());
        // Something sealed, so that an erase has a value.
        (392..400).for_each(|lpn| flash.host_writes_page(Lpn(lpn)));
        scheme.write(run(392, np), &mut flash).unwrap();
        let ram = GcArmSettings { step: Bytes(8 * PAGE), tie, ..GcArmSettings::default() };
        let mut drive = Drive::new(&settings(64 * PAGE, ram), (flash, scheme), 400).unwrap();
        let blocks_only = |drive: &Drive| {
            let figures = drive.ram.figures();
            assert!(figures.destages > 30);
            assert_eq!((figures.block_destages, figures.pages_padded), (figures.destages, 0));
            assert_eq!(figures.pages_destaged, u64::from(np) * figures.destages);
            assert_eq!(drive.extra("benefit_block_mean_pages"), 8.0);
        };
        (0..48).for_each(|block| drive.write(block * np, np));
        blocks_only(&drive);
        for _ in 0..10 {
            (0..50).for_each(|block| drive.write(block * np, np));
        }
        drive.assert_clean("afterwards");
        if tie == Tie::Block {
            blocks_only(&drive);
        } else {
            assert!(drive.extra("block_destages_share") < 0.5, "a victim without a valid page is worth as much");
        }
        let figures = drive.scheme.figures();
        assert!(figures.collections > 400);
        assert_eq!(drive.count(OpKind::Program, Cause::Gc), 0, "copies");
        if matches!(drive.scheme, Scheme::Page(_)) {
            assert_eq!(figures.victim_pages_invalid, figures.collections * u64::from(np), "GC efficiency");
        }
    }
}

/// Single pages anywhere on a wide space: blocks in the buffer stay nearly empty, so only pages leave.
#[test]
fn random_pages_leave_alone() {
    for scheme in [SchemeName::Page, SchemeName::Dftl] {
        let parts = flash(scheme, 1400, 16, 16_000, 64, &GcSettings::default());
        let ram = GcArmSettings { step: Bytes(8 * PAGE), ..GcArmSettings::default() };
        let mut drive = Drive::new(&settings(64 * PAGE, ram), parts, 16_000).unwrap();
        let mut rng = Seed(3).stream("random");
        (0..6000).for_each(|_| drive.write(draw(&mut rng, 16_000), 1));
        drive.assert_clean("afterwards");
        let figures = drive.ram.figures();
        assert!(figures.destages > 5000);
        assert_eq!((figures.block_destages, figures.pages_padded), (0, 0));
        assert_eq!((figures.pages_destaged, drive.extra("block_destages_share")), (figures.destages, 0.0));
    }
}

/// Random writes give the table all but a step, writes to few blocks give it back, reads of few blocks change nothing. Buffer
/// and table make up the same RAM all the time. By the fixed rule and by measuring; what measuring needs is below.
#[test]
fn the_partition_follows_the_workload() {
    let (logical, ram) = (8192, 96 * PAGE);
    let mut drive = Drive::new(
        &settings(ram, small_steps()),
        flash(SchemeName::Dftl, 800, 16, logical, 64, &GcSettings::default()),
        logical,
    )
    .unwrap();
    let pages = |drive: &Drive| drive.ram.figures().partition.last().unwrap().buffer_pages;
    let mut rng = Seed(5).stream("partition");
    assert_eq!(pages(&drive), 48, "half and half");
    // One window: a step.
    (0..50).for_each(|_| drive.write(draw(&mut rng, logical), 1));
    assert_eq!(pages(&drive), 44);
    (0..950).for_each(|_| drive.write(draw(&mut rng, logical), 1));
    assert_eq!(pages(&drive), 4, "a step stays");
    (0..500).for_each(|_| drive.read(draw(&mut rng, 64), 1));
    assert_eq!(pages(&drive), 4, "few blocks, but reads");
    (0..100).for_each(|_| drive.write(draw(&mut rng, 64), 1));
    assert_eq!(pages(&drive), 12);
    (0..1500).for_each(|_| drive.write(draw(&mut rng, 64), 1));
    assert_eq!(pages(&drive), 92, "the table keeps a step");
    let figures = drive.ram.figures();
    for point in &figures.partition {
        assert_eq!(u64::from(point.buffer_pages) * PAGE + u64::from(point.map_entries) * 8, ram, "{point:?}");
    }
    assert_eq!((drive.extra("map_grown_steps"), drive.extra("buffer_grown_steps")), (11.0, 22.0));
    drive.assert_clean("afterwards");
}

/// A table that the RAM can hold whole grows no further; the rest stays with the buffer.
#[test]
fn a_whole_table_stops_growing() {
    let logical = 1000; // 16 pages of RAM hold 1,024 entries
    let parts = flash(SchemeName::Dftl, 120, 16, logical, 64, &GcSettings::default());
    let mut drive = Drive::new(&settings(20 * PAGE, small_steps()), parts, logical).unwrap();
    let mut rng = Seed(5).stream("whole");
    (0..2000).for_each(|_| drive.write(draw(&mut rng, logical), 1));
    let last = *drive.ram.figures().partition.last().unwrap();
    assert_eq!((last.buffer_pages, last.map_entries), (4, 1000));
    let parts = flash(SchemeName::Dftl, 120, 16, logical, 64, &GcSettings::default());
    let drive = Drive::new(&settings(400 * PAGE, small_steps()), parts, logical).unwrap();
    let first = drive.ram.figures().partition[0];
    assert_eq!((first.buffer_pages, first.map_entries), (384, 1000));
}

/// By measuring: a loop of writes a little larger than the buffer makes it grow, whatever the blocks; random reads make the
/// table grow, though they touch as many blocks as the loop.
#[test]
fn measured_randomness() {
    let logical = 8192;
    let ram = GcArmSettings { randomness: Randomness::Measured, ..small_steps() };
    let new = || {
        let parts = flash(SchemeName::Dftl, 800, 16, logical, 64, &GcSettings::default());
        Drive::new(&settings(96 * PAGE, ram.clone()), parts, logical).unwrap()
    };
    let pages = |drive: &Drive| drive.ram.figures().partition.last().unwrap().buffer_pages;
    let mut drive = new();
    (0..600).for_each(|at| drive.write(at % 50 * 160, 1));
    assert!(pages(&drive) > 48, "{} pages, {} hits", pages(&drive), drive.extra("ghost_buffer_hits"));
    let mut drive = new();
    let mut rng = Seed(7).stream("measured");
    (0..8000).for_each(|_| drive.read(draw(&mut rng, logical), 1));
    assert!(pages(&drive) < 20 && drive.extra("ghost_map_hits") > 50.0, "{}", pages(&drive));
    drive.assert_clean("afterwards");
}

/// Where the fixed rule and measuring part: a loop over one page of each of 50 blocks is random by the count of blocks, and so
/// it loses its buffer, though nothing is as easy to hold. Flash time at 25 us a read, 200 us a program and 1.5 ms an erase,
/// over all causes; on random writes over everything, where both give the table what they can, they are alike.
#[test]
fn measured_against_fixed() {
    let logical = 8192;
    let time = |randomness: Randomness, next: &mut dyn FnMut(u32) -> u32| {
        let parts = flash(SchemeName::Dftl, 560, 16, logical, 64, &GcSettings::default());
        let ram = GcArmSettings { randomness, ..small_steps() };
        let mut drive = Drive::new(&settings(96 * PAGE, ram), parts, logical).unwrap();
        (0..logical / 16).for_each(|block| drive.write(block * 16, 16));
        let before = drive.flash.counters().clone();
        (0..20_000).for_each(|at| drive.write(next(at), 1));
        drive.assert_clean("afterwards");
        let [reads, programs, erases, _] = drive.flash.counters().since(&before).totals();
        let micros = reads * 25 + programs * 200 + erases * 1500;
        println!("{randomness:?}: {reads} reads, {programs} programs, {erases} erases, {micros} us");
        micros as f64
    };
    let mut loop_of_blocks = |at: u32| at % 50 * 160;
    let ratio = time(Randomness::Measured, &mut loop_of_blocks) / time(Randomness::Fixed, &mut loop_of_blocks);
    assert!(ratio < 0.05, "a loop: {ratio}");
    let random = |randomness| {
        let mut rng = Seed(13).stream("against");
        time(randomness, &mut |_| draw(&mut rng, logical))
    };
    let ratio = random(Randomness::Measured) / random(Randomness::Fixed);
    assert!((0.9..1.1).contains(&ratio), "random: {ratio}");
}

/// Log-block and block-mapped layers: a page that leaves alone costs a merge there, so its value falls to a page or so, and
/// blocks leave that would not where a page costs little.
#[test]
fn other_layers_tell_the_cost_of_a_page() {
    for (scheme, most) in [(SchemeName::Block, 1.1), (SchemeName::Bast, 4.0), (SchemeName::Fast, 8.0)] {
        let (logical, np) = (1024, 16);
        let parts = flash(scheme, 100, np, logical, 64, &GcSettings::default());
        let mut drive = Drive::new(&settings(64 * PAGE, GcArmSettings::default()), parts, logical).unwrap();
        (0..logical / np).for_each(|block| drive.write(block * np, np));
        let mut rng = Seed(11).stream("others");
        (0..3000).for_each(|_| drive.write(draw(&mut rng, logical), 1));
        drive.ram.reset_figures();
        (0..3000).for_each(|_| drive.write(draw(&mut rng, logical), 1));
        let value = drive.extra("benefit_page_mean_pages");
        assert!(value > 0.0 && value <= most, "{scheme:?}: {value} pages an erase");
        // Twelve of sixteen pages: the value 8.
        drive.ram.reset_figures();
        (0..40).for_each(|block| drive.write(block * np, 12));
        assert!(drive.ram.figures().block_destages > 30, "{scheme:?}: {:?}", drive.ram.figures());
        assert!(drive.ram.figures().pages_padded > 100);
        drive.assert_clean("afterwards");
    }
}

/// Settings that contradict each other give a line with the key and what to change.
#[test]
fn conflicts_are_explained() {
    use flashwright_ftl::schemes::{DftlSettings, SchemeContext};
    use flashwright_ftl::{FtlSettings, MapCacheName, PlacementConfig, WearSettings};
    use flashwright_nand::{Geometry, Nand, ProgramOrder, WearLimit};
    let problems = |dftl: DftlSettings, ram: &RamSettings| {
        let geometry = Geometry::new(1, 1, 1, 120, 16, Bytes(PAGE));
        let nand = Nand::new(geometry, ProgramOrder::Ascending, WearLimit::Unlimited, &[]);
        let mut flash = Flash::new(nand, 1000, false, false);
        let mut ftl = FtlSettings { scheme: SchemeName::Dftl, ..FtlSettings::default() };
        ftl.schemes.dftl = dftl;
        let (gc, placement, wear) = (GcSettings::default(), PlacementConfig::single_in_turn(), WearSettings::default());
        let context = SchemeContext {
            logical_pages: 1000,
            dies_per_way: 1,
            ftl: &ftl,
            gc: &gc,
            placement: &placement,
            wear: &wear,
            seed: Seed(1),
            slc: None,
            foreign: None,
        };
        let mut scheme = SchemeName::Dftl.build(&context, &mut flash);
        let drive = RamDrive { logical_pages: 1000, read: Nanos(1), program: Nanos(1), seed: Seed(1) };
        Ram::new(ram, drive, &mut scheme, &mut flash).err().unwrap_or_default()
    };
    let grouped = || DftlSettings { replacement: MapCacheName::Grouped, ..DftlSettings::default() };
    let fits = settings(20 * PAGE, small_steps());
    assert_eq!(problems(grouped(), &fits), Vec::<String>::new());
    let one = |dftl: DftlSettings, ram: &RamSettings, words: &[&str]| {
        let found = problems(dftl, ram);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(words.iter().all(|word| found[0].contains(word)), "{}", found[0]);
        assert!(!found[0].contains('\n'));
    };
    one(DftlSettings::default(), &fits, &["ftl.dftl.replacement", "\"grouped\"", "gc-arm"]);
    one(DftlSettings { cmt_entries: 9, ..grouped() }, &fits, &["ftl.dftl.cmt-entries", "ram.size"]);
    one(DftlSettings { ram: Bytes(800), ..grouped() }, &fits, &["ftl.dftl.ram", "ram.size"]);
    one(grouped(), &settings(7 * PAGE, small_steps()), &["ram.size", "7 pages", "ram.gc-arm.step"]);
    let tiny = GcArmSettings { step: Bytes(100), ..small_steps() };
    one(grouped(), &settings(20 * PAGE, tiny), &["ram.gc-arm.step", "100 B"]);
}

/// The reference model: a list of pages with their last writes, searched in full for every question.
struct Reference {
    pages: Vec<(u32, u64)>,
    now: u64,
    np: u32,
    entries_per_page: u32,
    buffer: u32,
    map: u32,
    window: Vec<(RequestKind, u32, u32)>,
    /// Different blocks from which a window of 40 counts as random.
    random: usize,
}

impl Reference {
    fn write(&mut self, lpn: u32) -> bool {
        self.now += 1;
        let now = self.now;
        match self.pages.iter_mut().find(|(known, _)| *known == lpn) {
            Some((_, at)) => {
                *at = now;
                true
            }
            None => false,
        }
    }

    fn choose(&self, scheme: &Scheme, flash: &Flash) -> (Vec<u32>, bool) {
        let blocks: BTreeSet<u32> = self.pages.iter().map(|(lpn, _)| lpn / self.np).collect();
        let of = |block: u32| self.pages.iter().filter(move |(lpn, _)| lpn / self.np == block);
        let fullest = blocks
            .into_iter()
            .min_by_key(|block| (usize::MAX - of(*block).count(), of(*block).map(|(_, at)| *at).max()));
        let mut pages: Vec<u32> = of(fullest.unwrap()).map(|(lpn, _)| *lpn).collect();
        let value = 2 * i64::try_from(pages.len()).unwrap() - i64::from(self.np);
        if value > i64::from(scheme.reclaimable_pages(flash).unwrap()) {
            pages.sort_unstable();
            return (pages, true);
        }
        let oldest =
            |pages: &mut dyn Iterator<Item = &(u32, u64)>| pages.min_by_key(|(_, at)| *at).map(|(lpn, _)| *lpn);
        let cache = scheme.map_cache();
        let group = cache.filter(|cache| cache.has_clean == Some(false)).and_then(|cache| cache.largest_group);
        let in_group = group
            .and_then(|page| oldest(&mut self.pages.iter().filter(|(lpn, _)| lpn / self.entries_per_page == page)));
        (vec![in_group.or_else(|| oldest(&mut self.pages.iter())).unwrap()], false)
    }

    /// The rule of section 3.2.3 over a finished window of 40, with steps of 4 pages.
    fn decide(&mut self) {
        let blocks: BTreeSet<u32> =
            self.window.iter().flat_map(|(_, first, pages)| first / self.np..=(first + pages - 1) / self.np).collect();
        let writes = self.window.iter().filter(|(kind, ..)| *kind == RequestKind::Write).count();
        if blocks.len() >= self.random {
            if self.buffer >= 8 {
                (self.buffer, self.map) = (self.buffer - 4, self.map + 4);
            }
        } else if writes >= 20 && self.map >= 8 {
            (self.buffer, self.map) = (self.buffer + 4, self.map - 4);
        }
        self.window.clear();
    }
}

/// Random streams of writes, reads and trims of changing locality: at every eviction the reference model chooses the
/// same pages, and at every request the same partition.
#[test]
fn the_reference_model_decides_alike() {
    let (mut blocks_left, mut by_group, mut by_age, mut moves) = (0, 0, 0, 0);
    for seed in 0..30 {
        let mut rng = Seed(seed).stream("twin");
        let (scheme, np, logical) =
            ([SchemeName::Dftl, SchemeName::Dftl, SchemeName::Page][seed as usize % 3], 8, 4096);
        let (mut flash, mut scheme) = flash(scheme, 640, np, logical, 32, &GcSettings::default());
        let own = seed % 2 == 0;
        // Of 40 pages, and of 40 requests.
        let (map_start, random) = [(20, 20), (10, 12), (36, 30)][seed as usize / 3 % 3];
        let gc_arm = GcArmSettings {
            step: Bytes(4 * PAGE),
            window: 40,
            random_share: f64::from(random) / 40.0,
            // More than all but a step is all but a step.
            map_start_share: if map_start == 36 { 1.0 } else { f64::from(map_start) / 40.0 },
            block_destage: if own { BlockDestage::Own } else { BlockDestage::Append },
            ..GcArmSettings::default()
        };
        let context = RamContext {
            pages: 40,
            page_bytes: PAGE,
            pages_per_block: np,
            logical_pages: logical,
            map_cache: scheme.map_cache(),
            read: Nanos(1),
            program: Nanos(8),
            charged: false,
            seed: Seed(1),
        };
        let mut manager = ManagerName::GcArm.build(&ManagerSettings { gc_arm, ..ManagerSettings::default() }, context);
        scheme.watch(manager.watch(), &flash);
        // A fortieth of what the RAM would hold, so that groups leave.
        let shrink = |entries: u32| entries / 40 + 4;
        let shared = manager.map_entries().is_some();
        manager.map_entries().into_iter().for_each(|entries| scheme.resize_map_cache(shrink(entries), &mut flash));
        let (buffer, map) = if shared { (40 - map_start, map_start) } else { (40, 0) };
        let mut reference = Reference {
            pages: Vec::new(),
            now: 0,
            np,
            entries_per_page: 32,
            buffer,
            map,
            window: Vec::new(),
            random: random as usize,
        };
        let mut space = logical;
        for step in 0..1500 {
            let at = format!("seed {seed}, step {step}");
            if step % 100 == 0 {
                space = [logical, 400, 60][draw(&mut rng, 3) as usize];
            }
            let mut first = draw(&mut rng, space);
            let mut count = 1;
            if chance(&mut rng, 0.3) {
                first = first / np * np + draw(&mut rng, 2);
                count = (5 + draw(&mut rng, 4)).min(logical - first);
            }
            let kind = match draw(&mut rng, 12) {
                0..=8 => RequestKind::Write,
                9..=10 => RequestKind::Read,
                _ => RequestKind::Trim,
            };
            for lpn in first..first + count {
                match kind {
                    RequestKind::Write => {
                        let held = reference.write(lpn);
                        assert_eq!(manager.overwrite(Lpn(lpn)), held, "{at}");
                        while !held && manager.pages() >= manager.capacity() {
                            leave(&mut manager, &mut reference, &mut scheme, &mut flash, own, &at, |block, group| {
                                *(if block {
                                    &mut blocks_left
                                } else if group {
                                    &mut by_group
                                } else {
                                    &mut by_age
                                }) += 1;
                            });
                        }
                        if !held {
                            manager.take_in(Lpn(lpn), true);
                            reference.pages.push((lpn, reference.now));
                        }
                    }
                    RequestKind::Read => {
                        assert_eq!(
                            manager.read(Lpn(lpn)),
                            reference.pages.iter().any(|(held, _)| *held == lpn),
                            "{at}"
                        );
                        scheme.read(run(lpn, 1), &mut flash);
                    }
                    _ => {
                        manager.remove(Lpn(lpn));
                        reference.pages.retain(|(held, _)| *held != lpn);
                        scheme.trim(run(lpn, 1), &mut flash);
                    }
                }
            }
            if kind != RequestKind::Trim {
                reference.window.push((kind, first, count));
                let moved = manager.request_done(kind, run(first, count), View { scheme: &scheme, flash: &flash });
                let before = reference.buffer;
                if reference.window.len() == 40 {
                    reference.decide();
                }
                if !shared {
                    (reference.buffer, reference.map) = (40, 0);
                }
                assert_eq!((moved, manager.capacity()), (reference.buffer != before, reference.buffer), "{at}");
                assert_eq!(manager.map_entries(), shared.then_some(reference.map * 64), "{at}");
                moves += u32::from(moved);
                while manager.pages() > manager.capacity() {
                    leave(&mut manager, &mut reference, &mut scheme, &mut flash, own, &at, |_, _| {});
                }
                if moved {
                    scheme.resize_map_cache(shrink(manager.map_entries().unwrap()), &mut flash);
                }
            }
            let mut violations = Vec::new();
            manager.audit(&mut violations);
            assert!(violations.is_empty(), "{at}: {violations:?}");
        }
    }
    assert!(
        blocks_left > 300 && by_group > 300 && by_age > 300 && moves > 100,
        "{blocks_left} {by_group} {by_age} {moves}"
    );
}

/// An eviction: the reference model chooses the same.
fn leave(
    manager: &mut flashwright_ram::Manager,
    reference: &mut Reference,
    scheme: &mut Scheme,
    flash: &mut Flash,
    own: bool,
    at: &str,
    mut note: impl FnMut(bool, bool),
) {
    let mut out = Destage::default();
    let (expected, block) = reference.choose(scheme, flash);
    manager.choose(View { scheme, flash }, &mut out);
    assert_eq!(out.pages, expected, "{at}");
    assert_eq!(out.own_block, block && own, "{at}");
    assert_eq!(out.pad_block, (block && own).then(|| expected[0] / reference.np), "{at}");
    note(block, scheme.map_cache().is_some_and(|cache| cache.has_clean == Some(false)));
    out.pages.iter().for_each(|lpn| flash.host_writes_page(Lpn(*lpn)));
    scheme.write_block(&out.pages, flash).unwrap();
    manager.left(&out);
    reference.pages.retain(|(lpn, _)| !expected.contains(lpn));
}
