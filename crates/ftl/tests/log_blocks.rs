//! Schemes that map whole blocks: every setting under random streams, and known properties of each scheme.
//!
//! The conformance suite drives every scheme under its default settings through a drive. Here the settings vary, the
//! drive is left out, and after each step the scheme's whole state is audited, reads are checked by stamps, and a model
//! says which pages hold data. Half of the streams run on flash that wears out, beyond the first write that fails.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers of tests count as library code

use flashwright_block::{Bytes, Rng, Seed, below};
use flashwright_ftl::schemes::{Coalesce, OutOfOrder, SchemeContext, VictimLog};
use flashwright_ftl::{
    Cause, Counters, Flash, FreeBlockOrder, Ftl, FtlSettings, GcSettings, LpnRun, Merges, OpKind, OutOfSpace,
    PlacementConfig, Scheme, SchemeName, Violation, WearSettings,
};
use flashwright_nand::{Geometry, Lpn, Nand, ProgramOrder, WearLimit};
use std::collections::BTreeSet;

const ORDERS: [ProgramOrder; 2] = [ProgramOrder::Ascending, ProgramOrder::Any];

/// A scheme over its flash, without a drive.
struct Bench {
    flash: Flash,
    scheme: Scheme,
    logical: u32,
}

/// What a bench is made of; the rest is default.
struct Shape {
    geometry: Geometry,
    order: ProgramOrder,
    limit: WearLimit,
    logical: u32,
    free_block: FreeBlockOrder,
}

impl Shape {
    /// One plane of `blocks` of `pages`, and so many logical pages.
    fn one_plane(blocks: u32, pages: u32, logical: u32) -> Self {
        Self::of(Geometry::new(1, 1, 1, blocks, pages, Bytes(4096)), logical)
    }

    fn of(geometry: Geometry, logical: u32) -> Self {
        let (order, limit) = (ProgramOrder::Ascending, WearLimit::Unlimited);
        Self { geometry, order, limit, logical, free_block: FreeBlockOrder::LeastWorn }
    }

    fn order(self, order: ProgramOrder) -> Self {
        Self { order, ..self }
    }

    fn build(self, ftl: &FtlSettings, verify: bool, seed: u64) -> Result<Bench, Vec<String>> {
        let Self { geometry, order, limit, logical, free_block } = self;
        let mut flash = Flash::new(Nand::new(geometry, order, limit, &[]), logical, verify, verify);
        let context = SchemeContext {
            logical_pages: logical,
            dies_per_way: 1,
            ftl,
            gc: &GcSettings::default(),
            placement: &PlacementConfig::default(),
            wear: &WearSettings { free_block, ..WearSettings::default() },
            seed: Seed(seed),
            slc: None,
            foreign: None,
        };
        let problems = ftl.scheme.problems(&context, &flash);
        if !problems.is_empty() {
            return Err(problems);
        }
        let scheme = ftl.scheme.build(&context, &mut flash);
        Ok(Bench { flash, scheme, logical })
    }
}

impl Bench {
    fn write(&mut self, first: u32, pages: u32) -> Result<(), OutOfSpace> {
        let run = LpnRun { first: Lpn(first), pages, stream: 0 };
        run.iter().for_each(|lpn| self.flash.host_writes_page(lpn));
        self.scheme.write(run, &mut self.flash).inspect_err(|_| {
            for lpn in run.iter() {
                let held = self.scheme.lookup(lpn, &self.flash);
                self.flash.host_write_failed(lpn, held);
            }
        })
    }

    fn read(&mut self, first: u32, pages: u32) {
        self.scheme.read(LpnRun { first: Lpn(first), pages, stream: 0 }, &mut self.flash);
    }

    fn trim(&mut self, first: u32, pages: u32) {
        let run = LpnRun { first: Lpn(first), pages, stream: 0 };
        run.iter().for_each(|lpn| self.flash.host_trims_page(lpn));
        self.scheme.trim(run, &mut self.flash);
    }

    fn fill(&mut self) {
        for lpn in 0..self.logical {
            self.write(lpn, 1).unwrap();
        }
        self.scheme.reset_figures();
    }

    /// The operations of `steps`.
    fn cost(&mut self, steps: impl FnOnce(&mut Self)) -> Counters {
        let before = self.flash.counters().clone();
        steps(self);
        self.flash.counters().since(&before)
    }

    fn merges(&self) -> Merges {
        self.scheme.figures().merges.unwrap()
    }

    fn extra(&self, name: &str) -> f64 {
        self.scheme.figures().extra.iter().find(|(known, _)| known == name).unwrap().1
    }

    fn mapped(&self) -> BTreeSet<u32> {
        (0..self.logical).filter(|lpn| self.scheme.lookup(Lpn(*lpn), &self.flash).is_some()).collect()
    }

    fn audit(&self, at: &str) {
        let mut violations: Vec<Violation> = Vec::new();
        self.flash.audit(&mut violations);
        self.scheme.audit(&self.flash, &mut violations);
        violations.extend_from_slice(self.flash.stamps().map_or(&[], |stamps| stamps.violations().1));
        assert!(violations.is_empty(), "{at}: {violations:#?}");
    }
}

fn settings(scheme: SchemeName) -> FtlSettings {
    FtlSettings { scheme, ..FtlSettings::default() }
}

fn bast(logs: u32) -> FtlSettings {
    let mut ftl = settings(SchemeName::Bast);
    ftl.schemes.bast.log_blocks = logs;
    ftl
}

fn fast(logs: u32) -> FtlSettings {
    let mut ftl = settings(SchemeName::Fast);
    ftl.schemes.fast.log_blocks = logs;
    ftl
}

fn draw(rng: &mut Rng, bound: u32) -> u32 {
    u32::try_from(below(rng, u64::from(bound))).unwrap()
}

/// All distinct settings.
fn variants() -> Vec<FtlSettings> {
    let mut all = Vec::new();
    for coalesce in [Coalesce::Request, Coalesce::Page] {
        let mut ftl = settings(SchemeName::Block);
        ftl.schemes.block.coalesce = coalesce;
        all.push(ftl);
    }
    for (max, reserve) in [(1, 1), (2, 1), (3, 2), (0, 2), (0, 1)] {
        let mut ftl = settings(SchemeName::Replacement);
        ftl.schemes.replacement.replacement_blocks_max = max;
        ftl.schemes.replacement.reserve_blocks = reserve;
        all.push(ftl);
    }
    for (logs, home_first, eager_switch) in [(1, true, true), (2, true, false), (3, false, true), (5, false, false)] {
        for victim_log in [VictimLog::Lru, VictimLog::Fifo, VictimLog::Random] {
            let mut ftl = bast(logs);
            let own = &mut ftl.schemes.bast;
            (own.home_first, own.eager_switch, own.victim_log) = (home_first, eager_switch, victim_log);
            all.push(ftl);
        }
    }
    for (logs, home_first) in [(2, true), (3, false), (6, true), (4, false)] {
        for out_of_order in [OutOfOrder::Fold, OutOfOrder::MergeThenLog] {
            for sw_needs_clean_rw in [false, true] {
                let mut ftl = fast(logs);
                let own = &mut ftl.schemes.fast;
                (own.home_first, own.out_of_order, own.sw_needs_clean_rw) =
                    (home_first, out_of_order, sw_needs_clean_rw);
                all.push(ftl);
            }
        }
    }
    all
}

#[test]
fn every_setting_keeps_every_page() {
    let mut seed = 0;
    let mut ended = 0;
    for ftl in variants() {
        for order in ORDERS {
            for limit in [WearLimit::Unlimited, WearLimit::Same(6)] {
                seed += 1;
                ended += u32::from(random_stream(&ftl, order, limit, seed));
            }
        }
    }
    println!("{seed} streams, {ended} drives came to their end");
    assert!(ended > seed as u32 / 4, "hardly any drive wore out");
}

/// Returns whether a write failed.
fn random_stream(ftl: &FtlSettings, order: ProgramOrder, limit: WearLimit, seed: u64) -> bool {
    let label = format!("seed {seed}, {order:?}, {limit:?}, {ftl:?}");
    let geometry = match seed % 3 {
        0 => Geometry::new(1, 1, 1, 28, 4, Bytes(4096)),
        1 => Geometry::new(2, 2, 1, 7, 3, Bytes(4096)),
        _ => Geometry::new(1, 2, 2, 8, 5, Bytes(4096)),
    };
    let np = geometry.pages_per_block();
    let worn = limit != WearLimit::Unlimited;
    // The last logical block is there in part.
    let logical = 16 * np + 2;
    let free_block = [FreeBlockOrder::LeastWorn, FreeBlockOrder::Fifo][(seed % 2) as usize];
    let shape = Shape { geometry, order, limit, logical, free_block };
    let mut bench = shape.build(ftl, true, seed).unwrap_or_else(|problems| panic!("{label}: {problems:?}"));
    let mut rng = Seed(seed).stream("log-blocks");
    let (hot, trims) = ([1, 4, 16][(seed % 3) as usize], [0, 10, 30][(seed / 3 % 3) as usize]);
    let (mut mapped, mut failed) = (BTreeSet::new(), 0);
    let mut last = 0;
    for step in 0..1200 {
        let first = match draw(&mut rng, 4) {
            0 => draw(&mut rng, logical),
            1 => (last + 1) % logical, // goes on
            2 => draw(&mut rng, 16) * np,
            _ => draw(&mut rng, hot * np),
        };
        let pages = 1 + if draw(&mut rng, 3) == 0 { draw(&mut rng, (2 * np).min(logical - first)) } else { 0 };
        let range = first..first + pages;
        last = range.end - 1;
        match draw(&mut rng, 100) {
            kind if kind < trims => {
                bench.trim(first, pages);
                range.for_each(|lpn| _ = mapped.remove(&lpn));
            }
            kind if kind > 90 => bench.read(first, pages),
            _ => match bench.write(first, pages) {
                Ok(()) => mapped.extend(range),
                Err(error) => {
                    assert!(worn, "{label}, step {step}: {error}");
                    failed += 1;
                    let now = bench.mapped();
                    assert!(mapped.is_subset(&now), "{label}, step {step}: a write that failed lost pages");
                    mapped = now;
                }
            },
        }
        bench.flash.clear_log();
        bench.audit(&format!("{label}, step {step}"));
        assert_eq!(bench.mapped(), mapped, "{label}, step {step}: mapped pages");
        if failed > 30 {
            break;
        }
    }
    bench.read(0, logical);
    bench.audit(&label);
    failed > 0
}

/// Whole blocks in order: nothing is copied, and from the second pass on each block costs one erase.
#[test]
fn whole_blocks_cost_one_erase() {
    for scheme in [SchemeName::Block, SchemeName::Bast, SchemeName::Fast] {
        for order in ORDERS {
            let mut bench = Shape::one_plane(32, 8, 24 * 8).order(order).build(&settings(scheme), false, 1).unwrap();
            bench.fill();
            let cost = bench.cost(|bench| (0..3 * 24).for_each(|block| bench.write(block % 24 * 8, 8).unwrap()));
            // The last sequential log of FAST waits for the next one.
            let erases = 3 * 24 - u64::from(scheme == SchemeName::Fast);
            assert_eq!((cost.total(OpKind::Program), cost.total(OpKind::Erase)), (3 * 24 * 8, erases), "{scheme:?}");
            assert_eq!(cost.total(OpKind::Read), 0, "{scheme:?}");
        }
    }
}

#[test]
fn block_mapping_amplifies_single_pages_by_the_block() {
    for order in ORDERS {
        let mut bench =
            Shape::one_plane(20, 8, 18 * 8).order(order).build(&settings(SchemeName::Block), false, 1).unwrap();
        bench.fill();
        let mut rng = Seed(1).stream("pages");
        let writes = 2000;
        let cost = bench.cost(|bench| {
            for _ in 0..writes {
                bench.write(draw(&mut rng, 18 * 8), 1).unwrap();
            }
        });
        assert_eq!(cost.total(OpKind::Program), 8 * writes);
        assert_eq!(cost.get(OpKind::Read, Cause::Merge), 7 * writes);
        assert_eq!(cost.get(OpKind::Erase, Cause::Merge), writes);
        assert_eq!(bench.extra("copied_per_rewrite_pages"), 7.0);
    }
}

/// More blocks than logs, one page of each in turn, not the first: each write merges a log that holds one page.
#[test]
fn bast_thrashes() {
    let np = 8;
    for order in ORDERS {
        let mut bench = Shape::one_plane(24, np, 16 * np).order(order).build(&bast(4), false, 1).unwrap();
        bench.fill();
        let blocks = 5; // one more than logs
        (0..4).for_each(|block| bench.write(block * np + 1, 1).unwrap());
        for turn in 4..100 {
            let cost = bench.cost(|bench| bench.write(turn % blocks * np + 1 + turn % (np - 1), 1).unwrap());
            assert_eq!(cost.get(OpKind::Program, Cause::Merge), u64::from(np), "turn {turn}");
            assert_eq!(cost.get(OpKind::Read, Cause::Merge), u64::from(np), "turn {turn}");
            assert_eq!(cost.total(OpKind::Erase), 2, "turn {turn}");
        }
        assert_eq!(bench.extra("log_used_at_merge_pages"), 1.0);
        assert_eq!(bench.merges(), Merges { full: 96, full_by_data_blocks: vec![0, 96], ..Merges::default() });
    }
}

/// One stream fills sequential logs to their end. Two at once take it from each other before.
#[test]
fn fast_knows_one_stream_only() {
    let (np, blocks) = (8, 16);
    for order in ORDERS {
        let build = || {
            let mut bench =
                Shape::one_plane(blocks + 12, np, blocks * np).order(order).build(&fast(10), false, 1).unwrap();
            bench.fill();
            bench
        };
        let mut one = build();
        (0..3 * blocks * np).for_each(|page| one.write(page % (blocks * np), 1).unwrap());
        let merges = one.merges();
        assert_eq!((merges.switch, merges.partial, merges.full), (u64::from(3 * blocks - 1), 0, 0));
        // The second stream is half the drive and half a block ahead.
        let mut two = build();
        let ahead = blocks / 2 * np + np / 2;
        let turns = blocks / 4 * np;
        for page in 0..turns {
            two.write(page, 1).unwrap();
            two.write(page + ahead, 1).unwrap();
        }
        // Each page at offset 0 opened a log, and all but the last were retired half full.
        let opened = u64::from(2 * turns / np);
        let merges = two.merges();
        assert_eq!((merges.switch, merges.partial, merges.full), (0, opened - 1, 0));
    }
}

/// A random log has pages of as many blocks as it has pages at most, and each of its reclaims merges all of them.
#[test]
fn fast_cascades_over_all_blocks_of_a_log() {
    let (np, blocks) = (8, 60);
    let mut bench = Shape::one_plane(80, np, blocks * np).build(&fast(6), false, 1).unwrap();
    bench.fill();
    let mut rng = Seed(3).stream("pages");
    let before = bench.flash.counters().total(OpKind::Erase);
    for _ in 0..20_000 {
        let block = draw(&mut rng, blocks);
        bench.write(block * np + 1 + draw(&mut rng, np - 1), 1).unwrap(); // never offset 0
    }
    let merges = bench.merges();
    assert!(merges.full_by_data_blocks.len() <= np as usize + 1, "{merges:?}");
    let (reclaims, data_blocks) = (0u64..)
        .zip(&merges.full_by_data_blocks)
        .fold((0, 0), |(reclaims, blocks), (touched, count)| (reclaims + count, blocks + touched * count));
    assert_eq!((merges.full, merges.switch, merges.partial), (data_blocks, 0, 0));
    // Each reclaim erases its log, and each full merge its data block.
    assert_eq!(bench.flash.counters().total(OpKind::Erase) - before, reclaims + data_blocks);
    assert!(data_blocks > 4 * reclaims, "{merges:?}: random pages lie in many blocks");
}

#[test]
fn chains_are_bounded() {
    for (max, order) in [(1, ORDERS[0]), (2, ORDERS[0]), (2, ORDERS[1]), (4, ORDERS[1])] {
        let mut ftl = settings(SchemeName::Replacement);
        ftl.schemes.replacement.replacement_blocks_max = max;
        let mut bench = Shape::one_plane(48, 6, 20 * 6).order(order).build(&ftl, false, 1).unwrap();
        bench.fill();
        let mut rng = Seed(4).stream("pages");
        for _ in 0..3000 {
            bench.write(draw(&mut rng, 20 * 6), 1).unwrap();
            let lpn = draw(&mut rng, 20 * 6);
            let cost = bench.cost(|bench| bench.read(lpn, 1));
            let looks = cost.total(OpKind::OobRead);
            assert!((1..=u64::from(max) + 1).contains(&looks), "K = {max}: {looks} reads of spare areas");
            assert_eq!(cost.total(OpKind::Read), 1);
        }
        assert!(bench.extra("chain_length_mean_blocks") <= f64::from(max) + 1.0);
        assert!(bench.extra("per_access_oob_reads") > 1.0);
    }
}

/// Consecutive logical blocks lie on different planes, and copies from die to die wait for what they read.
#[test]
fn blocks_spread_over_planes() {
    for scheme in [SchemeName::Block, SchemeName::Replacement, SchemeName::Bast, SchemeName::Fast] {
        let geometry = Geometry::new(2, 2, 1, 16, 4, Bytes(4096));
        let shape = Shape::of(geometry, 48 * 4);
        let mut bench = shape.build(&settings(scheme), true, 1).unwrap();
        bench.fill();
        bench.flash.clear_log();
        let die = |block: u32| geometry.die_of(bench.scheme.lookup(Lpn(block * 4), &bench.flash).unwrap());
        for block in 0..44 {
            let dies: BTreeSet<_> = (block..block + 4).map(die).collect();
            assert_eq!(dies.len(), 4, "{scheme:?}: blocks {block} to {}", block + 3);
        }
        let mut rng = Seed(5).stream("pages");
        let mut crossing = 0;
        for _ in 0..2000 {
            bench.write(draw(&mut rng, 48 * 4), 1).unwrap();
            for pair in bench.flash.log().windows(2).filter(|pair| pair[0].kind == OpKind::Read) {
                assert_eq!(
                    (pair[1].kind, pair[1].cause, pair[1].after),
                    (OpKind::Program, Cause::Merge, 1),
                    "{scheme:?}"
                );
                assert_ne!(geometry.die_of(pair[0].ppn), geometry.die_of(pair[1].ppn), "{scheme:?}");
                crossing += 1;
            }
            bench.flash.clear_log();
        }
        assert!(crossing > 100, "{scheme:?}: {crossing} copies from die to die");
        bench.audit("spread");
    }
}

/// 32 GiB of 4 KiB pages, 128 a block: 0.25 MiB for the blocks, 0.32 MiB for logs of 1 % (Hu 2012), 4 B an entry.
#[test]
fn ram_is_that_of_blocks_and_logs() {
    let geometry = Geometry::new(1, 1, 1, 65_536, 128, Bytes(4096));
    let logical = 64_000 * 128;
    let ram = |mut ftl: FtlSettings| {
        ftl.schemes.bast.log_fraction = 0.01;
        ftl.schemes.fast.log_fraction = 0.01;
        Shape::of(geometry, logical).build(&ftl, false, 1).unwrap().scheme.figures().ram_bytes
    };
    let blocks = 64_000 * 4;
    assert_eq!(ram(settings(SchemeName::Block)), blocks);
    assert_eq!(ram(settings(SchemeName::Page)), blocks * 128);
    assert_eq!(ram(settings(SchemeName::Replacement)), blocks);
    assert_eq!(ram(settings(SchemeName::Bast)), blocks + 655 * 128 * 4);
    assert_eq!(ram(settings(SchemeName::Fast)), blocks + 655 * 128 * 4 + 2 * 4);
}

#[test]
fn what_a_drive_lacks_is_said() {
    let problems = |ftl: &FtlSettings, logical| {
        Shape::one_plane(16, 4, logical).build(ftl, false, 1).map(|_| ()).unwrap_err().join("\n")
    };
    assert_eq!(
        problems(&bast(4), 48),
        "capacity: 48 logical pages take 12 data blocks, and 5 more are needed (4 log blocks by ftl.bast.log-fraction or \
         log-blocks, and one for full merges), but the drive has 16 good blocks; lower capacity.utilization to 0.687 or \
         less, or use more and smaller blocks"
    );
    assert_eq!(
        problems(&fast(1), 8),
        "ftl.fast.log-blocks: found 1, expected 2 or more, or 0 to take ftl.fast.log-fraction"
    );
    assert!(problems(&settings(SchemeName::Block), 61).contains("an erased block for a rewrite"));
    assert!(
        Shape::one_plane(16, 4, 60).build(&settings(SchemeName::Block), false, 1).is_ok(),
        "one block to spare will do"
    );
    assert!(Shape::one_plane(16, 4, 44).build(&bast(4), false, 1).is_ok());
}
