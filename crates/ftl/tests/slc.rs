//! The SLC cache, worked out by hand: sizes of blocks, where an in-order fill leaves the cache, and what folding moves.

#![allow(clippy::unwrap_used)] // helpers of tests count as library code

use flashwright_block::{Bytes, Seed, below};
use flashwright_ftl::schemes::SchemeContext;
use flashwright_ftl::{
    Cause, CleansInSteps, Flash, Ftl, FtlSettings, GcSettings, LpnRun, OpKind, PlacementConfig, PlacementName,
    Progress, Scheme, SchemeName, SlcCacheKind, SlcContext, SlcSettings, VictimName, WearName, WearSettings, WhenFull,
};
use flashwright_nand::{BlockId, Geometry, Lpn, Nand, PlaneId, ProgramOrder, WearLimit};

/// A drive of one plane.
#[derive(Clone, Debug)]
struct Drive {
    blocks: u32,
    pages: u32,
    bits: u32,
    logical: u32,
    slc: SlcSettings,
    wear: Option<WearName>,
    placement: PlacementName,
    free_blocks_min: u32,
    victim: VictimName,
}

fn plain() -> Drive {
    Drive {
        blocks: 32,
        pages: 12,
        bits: 3,
        logical: 1,
        slc: SlcSettings::default(),
        wear: None,
        placement: PlacementName::Single,
        free_blocks_min: 2,
        victim: VictimName::Greedy,
    }
}

/// Blocks of 12 pages, of which 4 exist in SLC mode.
fn tlc(blocks: u32, logical: u32, cache: SlcCacheKind, share: f64, when_full: WhenFull) -> Drive {
    let slc = SlcSettings { cache, block_share: share, when_full, ..SlcSettings::default() };
    Drive { blocks, pages: 12, bits: 3, logical, slc, ..plain() }
}

struct Bench {
    flash: Flash,
    scheme: Scheme,
}

impl Drive {
    fn build(&self) -> Result<Bench, Vec<String>> {
        let geometry = Geometry::new(1, 1, 1, self.blocks, self.pages, Bytes(4096));
        let nand = Nand::new(geometry, ProgramOrder::Ascending, WearLimit::Unlimited, &[]);
        let mut flash = Flash::new(nand, self.logical, false, true);
        let (ftl, wear) = (FtlSettings::default(), WearSettings { policy: self.wear, ..WearSettings::default() });
        let gc =
            GcSettings { free_blocks_min: self.free_blocks_min, victim: self.victim.into(), ..GcSettings::default() };
        let placement = PlacementConfig { policy: self.placement, ..PlacementConfig::single_in_turn() };
        let context = SchemeContext {
            logical_pages: self.logical,
            dies_per_way: 1,
            ftl: &ftl,
            gc: &gc,
            placement: &placement,
            wear: &wear,
            slc: SlcContext::new(&self.slc, self.bits),
            seed: Seed(1),
            foreign: None,
        };
        let problems = SchemeName::Page.problems(&context, &flash);
        if !problems.is_empty() {
            return Err(problems);
        }
        let scheme = SchemeName::Page.build(&context, &mut flash);
        Ok(Bench { flash, scheme })
    }

    /// The only validation error.
    fn problem(&self) -> String {
        let problems = self.build().err().expect("refused");
        assert_eq!(problems.len(), 1, "{problems:?}");
        problems[0].clone()
    }
}

impl Bench {
    fn write(&mut self, lpn: u32) {
        self.flash.host_writes_page(Lpn(lpn));
        self.scheme.write(LpnRun { first: Lpn(lpn), pages: 1, stream: 0 }, &mut self.flash).unwrap();
    }

    /// Writes pages in order. For each page: whether it went to a block in SLC mode, and the pages that were moved first.
    fn fill(&mut self, pages: u32) -> Vec<(bool, u64)> {
        (0..pages)
            .map(|lpn| {
                let before = self.moved();
                self.write(lpn);
                let ppn = self.scheme.lookup(Lpn(lpn), &self.flash).unwrap();
                (self.flash.is_slc(self.flash.geometry().block_of(ppn)), self.moved() - before)
            })
            .collect()
    }

    fn moved(&self) -> u64 {
        self.flash.counters().get(OpKind::Program, Cause::Gc)
    }

    fn figure(&self, name: &str) -> u64 {
        self.scheme.figures().extra.iter().find(|(known, _)| known == name).unwrap().1 as u64
    }

    /// Folds until nothing is left to fold.
    fn fold_all(&mut self) {
        while self.scheme.fold(PlaneId(0), 1, &mut self.flash) != Progress::Nothing {
            self.audit();
        }
    }

    fn audit(&self) {
        let mut violations = Vec::new();
        self.flash.audit(&mut violations);
        self.scheme.audit(&self.flash, &mut violations);
        violations.extend_from_slice(self.flash.stamps().unwrap().violations().1);
        assert!(violations.is_empty(), "{violations:#?}");
    }
}

/// The number of pages written before the first that `is` so.
fn first(written: &[(bool, u64)], is: impl Fn(&(bool, u64)) -> bool) -> usize {
    written.iter().position(is).unwrap_or(written.len())
}

/// 32 blocks of 12 pages. The cache takes 3/4 of the blocks that hold no normal data: 24 blocks of 4 pages each. Of the
/// other 8, normal writes leave 2 free: 6 blocks of 12 pages. Then each write that opens a block folds one first: 4 pages.
#[test]
fn a_large_dynamic_cache_then_normal_blocks_then_folding() {
    let mut bench = tlc(32, 320, SlcCacheKind::Dynamic, 0.75, WhenFull::Direct).build().unwrap();
    let written = bench.fill(320);
    assert_eq!(first(&written, |(slc, _)| !slc), 24 * 4);
    assert_eq!(first(&written, |(_, moved)| *moved > 0), 24 * 4 + 6 * 12);
    assert!(written[96..].iter().all(|(slc, _)| !slc), "a drive that is busy does not return to its cache");
    // A folded block of 4 pages makes 12 free: 4 for a third of the pages moved, 8 for the host. From page 168 on.
    let late: u64 = written[168..].iter().map(|(_, moved)| moved).sum();
    let expected = (320 - 168) / 2;
    assert!(late.abs_diff(expected) <= 12, "{late} pages moved, {expected} expected");
    assert_eq!(bench.figure("slc_pages_folded"), bench.moved(), "nothing but folding");
    assert_eq!(bench.figure("slc_pages_written"), 96);
    bench.audit();
}

/// The cache takes 3/8 of the blocks, 12 of 32, for 48 pages; the rest of the drive goes to normal blocks: 18 blocks of 12
/// pages until 2 are left, and the drive is full before.
#[test]
fn a_small_dynamic_cache_then_normal_blocks_to_the_end() {
    let logical = 48 + 18 * 12;
    let mut bench = tlc(32, logical, SlcCacheKind::Dynamic, 0.375, WhenFull::Direct).build().unwrap();
    let written = bench.fill(logical);
    assert_eq!(first(&written, |(slc, _)| !slc), 48);
    assert_eq!(bench.moved(), 0);
    bench.audit();
}

/// Blocks of 16 pages, 4 in SLC mode. The cache takes 16 of 32 blocks for 64 pages; then every fourth page opens a block,
/// for which the oldest is folded: its 4 pages. More as the cache shrinks with the blocks that hold no normal data.
#[test]
fn a_cache_that_folds_when_it_is_full_folds_at_once() {
    let slc = tlc(32, 1, SlcCacheKind::Dynamic, 0.5, WhenFull::Fold).slc;
    let drive = Drive { blocks: 32, pages: 16, bits: 4, logical: 400, slc, ..plain() };
    let mut bench = drive.build().unwrap();
    let written = bench.fill(300);
    assert_eq!(first(&written, |(_, moved)| *moved > 0), 64);
    assert!(written.iter().all(|(slc, _)| *slc), "every page of the host goes through the cache");
    let (pages, moved) = (300 - 64, written.iter().map(|(_, moved)| *moved).sum::<u64>());
    assert!(moved >= pages && moved <= pages + pages / 4, "{moved} pages moved for {pages} written");
    bench.audit();
}

/// The three drives of the reviews: 1 TB in blocks of 0.96 GB, with 1,060 or 1,166 GB of flash.
#[test]
fn the_cliffs_of_published_drives() {
    let cliffs = |blocks: u32, bits: u32, share: f64, when_full: WhenFull| {
        let slc = SlcSettings { cache: SlcCacheKind::Dynamic, block_share: share, when_full, ..SlcSettings::default() };
        let drive = Drive { blocks, pages: 96, bits, logical: 100_000, slc, ..plain() };
        let mut bench = drive.build().unwrap();
        let written = bench.fill(100_000);
        bench.audit();
        // Pages of 10 MB.
        [first(&written, |(slc, _)| !slc), first(&written, |(_, moved)| *moved > 0)].map(|pages| pages as f64 / 100.0)
    };
    let near = |found: f64, published: f64| {
        assert!((found / published - 1.0).abs() < 0.05, "{found} GB, published {published} GB");
    };
    // HP FX900: SLC to 280 GB, normal blocks to almost 500 GB.
    let [slc, folding] = cliffs(1104, 3, 0.793, WhenFull::Direct);
    near(slc, 280.0);
    near(folding, 498.0);
    // Samsung 980 Pro: SLC to 113 GB, then normal blocks to the end. With 1,166 GB of flash, 940 of 1,000 GB fit like that.
    let [slc, folding] = cliffs(1215, 3, 0.291, WhenFull::Direct);
    near(slc, 113.0);
    near(folding, 940.0);
    // Crucial P1: SLC to 140 GB, then folding.
    let [_, folding] = cliffs(1104, 4, 0.529, WhenFull::Fold);
    near(folding, 140.0);
}

/// A quarter of the blocks: 8 of 32, which hold 4 pages each and nothing but the cache.
#[test]
fn a_fixed_cache_has_blocks_of_its_own() {
    for when_full in [WhenFull::Direct, WhenFull::Fold] {
        let mut bench = tlc(32, 200, SlcCacheKind::Fixed, 0.25, when_full).build().unwrap();
        let written = bench.fill(200);
        let (direct, folds) = (first(&written, |(slc, _)| !slc), first(&written, |(_, moved)| *moved > 0));
        match when_full {
            WhenFull::Direct => assert_eq!((direct, folds), (32, 200)),
            WhenFull::Fold => assert_eq!((direct, folds), (200, 32)),
        }
        // Ten times as many writes keep the cache to its blocks.
        for step in 0..2000u32 {
            bench.write(step * 7 % 200);
        }
        assert!((0..8).map(BlockId).all(|block| bench.flash.is_slc(block)));
        assert!((8..32).map(BlockId).all(|block| !bench.flash.is_slc(block)));
        bench.audit();
        bench.fold_all();
        let moved = bench.moved();
        for lpn in 0..4 * 7 {
            bench.write(lpn);
        }
        assert_eq!(bench.moved(), moved, "{when_full:?}: folding gave the cache its blocks back");
    }
}

/// Pages that are overwritten in the cache are never folded: 8 pages again and again, in a cache of 96 pages.
#[test]
fn overwritten_pages_die_in_the_cache() {
    let mut bench = tlc(32, 200, SlcCacheKind::Dynamic, 0.75, WhenFull::Fold).build().unwrap();
    for step in 0..5000 {
        bench.write(step % 8);
    }
    assert_eq!((bench.moved(), bench.figure("slc_pages_folded")), (0, 0));
    assert_eq!(bench.figure("slc_pages_written"), 5000);
    // Every block of 4 pages was erased, but for the 24 in the cache.
    assert_eq!(bench.flash.counters().total(OpKind::Erase), 5000 / 4 - 24);
    assert_eq!(bench.figure("slc_blocks_folded"), 5000 / 4 - 24);
    bench.audit();
}

/// Folding all 24 blocks empties the cache, so that it takes as much as the free space allows again.
#[test]
fn folding_restores_the_cache() {
    let mut bench = tlc(32, 320, SlcCacheKind::Dynamic, 0.75, WhenFull::Direct).build().unwrap();
    bench.fill(96);
    bench.fold_all();
    assert_eq!((bench.moved(), bench.figure("slc_blocks_in_use")), (96, 0));
    // 96 pages in 8 normal blocks: 24 hold none, of which the cache takes 18.
    let written = (96..200).map(|lpn| {
        bench.write(lpn);
        let ppn = bench.scheme.lookup(Lpn(lpn), &bench.flash).unwrap();
        bench.flash.is_slc(bench.flash.geometry().block_of(ppn))
    });
    assert_eq!(written.take_while(|slc| *slc).count(), 18 * 4);
    bench.audit();
}

/// The host writes, reads and trims pages of a block while it is folded, one step at a time.
#[test]
fn a_block_can_change_while_it_is_folded() {
    let mut bench = tlc(32, 320, SlcCacheKind::Dynamic, 0.75, WhenFull::Direct).build().unwrap();
    bench.fill(96);
    assert_eq!(bench.scheme.fold(PlaneId(0), 1, &mut bench.flash), Progress::Worked(1));
    bench.audit();
    bench.write(1);
    bench.flash.host_trims_page(Lpn(2));
    bench.scheme.trim(LpnRun { first: Lpn(2), pages: 1, stream: 0 }, &mut bench.flash);
    bench.scheme.read(LpnRun { first: Lpn(0), pages: 4, stream: 0 }, &mut bench.flash);
    bench.audit();
    bench.fold_all();
    // Of the first block, page 1 was overwritten and page 2 trimmed.
    assert_eq!(bench.moved(), 94);
    bench.audit();
}

/// Drives as full as they may be, with steps of folding and cleaning between the writes of the host: none runs out of space.
#[test]
fn full_drives_fold_and_clean_at_any_time() {
    use SlcCacheKind::{Dynamic, Fixed};
    let mut folded = 0;
    for seed in 0..1200 {
        let mut rng = Seed(seed).stream("test");
        let mut draw = |bound: u32| below(&mut rng, u64::from(bound)) as u32;
        let slc = SlcSettings {
            cache: [Fixed, Dynamic][seed as usize % 2],
            block_share: 0.1 + f64::from(draw(4)) / 10.0,
            blocks_kept: 1 + draw(4),
            when_full: [WhenFull::Direct, WhenFull::Fold][draw(2) as usize],
            ..SlcSettings::default()
        };
        let mut drive = Drive {
            pages: 12 + draw(9),
            bits: 2 + draw(3),
            slc,
            placement: [PlacementName::Single, PlacementName::Dac][draw(2) as usize],
            // Full blocks as well: what they need is the most that a clean can.
            victim: [VictimName::Greedy, VictimName::Fifo][draw(2) as usize],
            free_blocks_min: 1 + draw(2),
            ..plain()
        };
        drive.logical = (1..32 * drive.pages)
            .rev()
            .find(|pages| Drive { logical: *pages, ..drive.clone() }.build().is_ok())
            .unwrap();
        let mut bench = drive.build().unwrap();
        bench.fill(drive.logical);
        for _ in 0..6000 {
            match draw(6) {
                0 => _ = bench.scheme.fold(PlaneId(0), 1 + draw(3), &mut bench.flash),
                1 => _ = bench.scheme.clean(1 + draw(3), &mut bench.flash),
                2 => bench.write(draw(drive.logical / 8)),
                _ => bench.write(draw(drive.logical)),
            }
        }
        bench.audit();
        folded += bench.figure("slc_pages_folded");
    }
    assert!(folded > 1_000_000, "{folded} pages folded");
}

#[test]
fn figures_count_from_their_reset() {
    let mut bench = tlc(32, 320, SlcCacheKind::Dynamic, 0.75, WhenFull::Direct).build().unwrap();
    bench.fill(6);
    assert_eq!(bench.figure("slc_pages_written"), 6);
    bench.scheme.reset_figures();
    assert_eq!(bench.figure("slc_pages_written"), 0);
    (6..11).for_each(|lpn| bench.write(lpn));
    assert_eq!(bench.figure("slc_pages_written"), 5);
    let plain = tlc(32, 320, SlcCacheKind::None, 0.75, WhenFull::Direct).build().unwrap();
    assert!(plain.scheme.figures().extra.is_empty(), "no figures without a cache");
}

#[test]
fn caches_that_cannot_work_are_refused_in_a_line() {
    use SlcCacheKind::{Dynamic, Fixed};
    let slc = Drive { bits: 1, ..tlc(32, 200, Dynamic, 0.5, WhenFull::Direct) };
    assert_eq!(
        slc.problem(),
        "slc.cache: found a cache, but cells of geometry.bits-per-cell = 1 hold one bit anyway; expected 2, 3 or 4 with it, \
         or slc.cache = \"none\""
    );
    let short = Drive { pages: 3, bits: 4, logical: 40, ..tlc(32, 200, Dynamic, 0.5, WhenFull::Direct) };
    assert!(short.problem().starts_with("slc.cache: found a cache, but geometry.pages-per-block = 3 leaves none"));
    let small = tlc(32, 200, Fixed, 0.01, WhenFull::Direct).problem();
    assert_eq!(small, "slc.block-share: found 0.01, less than a block of a plane with 32; expected 0.032 or more");
    // 32 blocks less 2 free and 2 open, and less 24 of the cache: 4 blocks of 12 pages. 200 pages need 17: 11 are left.
    let large = tlc(32, 200, Fixed, 0.75, WhenFull::Direct);
    assert_eq!(
        large.problem(),
        "slc.block-share: found 0.75, but besides the 24 blocks of the cache and 4 for cleaning a plane of 32 blocks does not \
         hold its share of 200 logical pages; expected at most 0.3593, or a lower capacity.utilization"
    );
    assert!(tlc(32, 200, Fixed, 0.3593, WhenFull::Direct).build().is_ok());
    assert!(tlc(32, 200, Fixed, 0.375, WhenFull::Direct).build().is_err(), "12 blocks");
    let full = tlc(32, 340, Dynamic, 0.5, WhenFull::Direct).problem();
    assert!(full.starts_with("capacity: 340 logical pages, but only 336 of 384"), "{full}");
    let mut kept = tlc(32, 200, Dynamic, 0.5, WhenFull::Direct);
    kept.slc.blocks_kept = 32;
    assert_eq!(kept.problem(), "slc.blocks-kept: found 32, expected less than the 32 blocks of a plane");
    let mut leveled = tlc(32, 200, Dynamic, 0.5, WhenFull::Direct);
    leveled.wear = Some(WearName::ALL[0]);
    assert!(leveled.problem().starts_with("wear.policy: found \"threshold\", expected \"none\" with an SLC cache"));
}
