//! The services of schemes that clean planes to RAM managers: erase blocks of their own, the fewest valid pages of a
//! sealed block, another size of the cached mapping table. Audits run after every step; `B_page` is compared with a
//! search.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers of tests count as library code

use flashwright_block::{Bytes, Rng, Seed, below, chance};
use flashwright_ftl::schemes::{DftlSettings, SchemeContext};
use flashwright_ftl::{
    Cause, Flash, Ftl, FtlSettings, GcSettings, InvalidateOrder, LpnRun, MapCacheName, OpKind, PlacementConfig,
    PlacementName, Scheme, SchemeName, ServesRam, VictimName, Watch, WearSettings,
};
use flashwright_nand::{BlockId, Condition, Geometry, Lpn, Nand, ProgramOrder, WearLimit};
use std::collections::BTreeSet;

fn draw(rng: &mut Rng, end: u32) -> u32 {
    u32::try_from(below(rng, u64::from(end))).unwrap()
}

fn one_of<'a, T>(rng: &mut Rng, of: &'a [T]) -> &'a T {
    &of[draw(rng, u32::try_from(of.len()).unwrap()) as usize]
}

fn run(first: u32, pages: u32) -> LpnRun {
    LpnRun { first: Lpn(first), pages, stream: 0 }
}

/// A scheme over erased flash, if its own check of the configuration accepts it.
fn build(
    scheme: SchemeName,
    geometry: Geometry,
    logical_pages: u32,
    gc: &GcSettings,
    dftl: DftlSettings,
    limit: WearLimit,
) -> Option<(Flash, Scheme)> {
    let nand = Nand::new(geometry, ProgramOrder::Ascending, limit, &[]);
    let mut flash = Flash::new(nand, logical_pages, false, true);
    // Eight entries a translation page of 512 B.
    let mut ftl = FtlSettings { scheme, entry_bytes: 64, ..FtlSettings::default() };
    ftl.schemes.dftl = dftl;
    let (mut placement, wear) = (PlacementConfig::single_in_turn(), WearSettings::default());
    placement.policy = PlacementName::ALL[logical_pages as usize % 2];
    let context = SchemeContext {
        logical_pages,
        dies_per_way: 1,
        ftl: &ftl,
        gc,
        placement: &placement,
        wear: &wear,
        seed: Seed(1),
        slc: None,
        foreign: None,
    };
    if !scheme.problems(&context, &flash).is_empty() {
        return None;
    }
    let scheme = scheme.build(&context, &mut flash);
    Some((flash, scheme))
}

fn assert_clean(scheme: &Scheme, flash: &Flash, at: &str) {
    let mut violations = Vec::new();
    flash.audit(&mut violations);
    scheme.audit(flash, &mut violations);
    violations.extend_from_slice(flash.stamps().unwrap().violations().1);
    assert!(violations.is_empty(), "{at}: {violations:?}");
}

/// What an erase of a block programmed to its end would free at most; the audits look at blocks sealed early as well.
fn reclaimable(flash: &Flash) -> u32 {
    let pages = flash.geometry().pages_per_block();
    (0..flash.geometry().blocks())
        .map(BlockId)
        .filter(|block| flash.nand().condition(*block) == Condition::Good)
        .filter(|block| flash.nand().next_page(*block) == pages)
        .map(|block| pages - flash.pages_valid(block))
        .max()
        .unwrap_or(0)
}

/// Drives as full as their checks let them be, under every victim policy: writes anywhere, blocks of their own of any
/// length, trims, and caches that grow and shrink. No write fails, nothing is lost, and what greedy would free is known.
#[test]
fn full_drives_take_blocks_of_their_own() {
    let (mut own, mut shared_reads, mut early) = (0, 0, 0);
    for seed in 0..160 {
        let mut rng = Seed(seed).stream("own");
        let scheme = *one_of(&mut rng, &[SchemeName::Page, SchemeName::Dftl]);
        let (channels, planes) = *one_of(&mut rng, &[(1, 1), (1, 1), (2, 1), (2, 2)]);
        let np = *one_of(&mut rng, &[2u32, 3, 4, 8]);
        let geometry = Geometry::new(channels, 1, planes, 11 + draw(&mut rng, 14), np, Bytes(512));
        let gc = GcSettings {
            victim: flashwright_ftl::VictimChoice::Named(*one_of(&mut rng, VictimName::ALL)),
            free_blocks_min: 1 + draw(&mut rng, 3),
            invalidate: *one_of(&mut rng, &[InvalidateOrder::AtProgram, InvalidateOrder::BeforeGc]),
            ..GcSettings::default()
        };
        let dftl = DftlSettings {
            cmt_entries: 1 + draw(&mut rng, 14),
            replacement: *one_of(&mut rng, MapCacheName::ALL),
            ..DftlSettings::default()
        };
        let built = (20..geometry.pages()).rev().find_map(|logical| {
            let built = build(scheme, geometry, logical, &gc, dftl.clone(), WearLimit::Unlimited)?;
            Some((logical, built))
        });
        let Some((logical, (mut flash, mut scheme))) = built else { continue };
        scheme.watch(Watch { reclaimable: true, map_ghosts: draw(&mut rng, 5) }, &flash);
        let entry_pages = u64::from(np.div_ceil(8) + 1);
        for step in 0..600 {
            let at = format!("seed {seed}, step {step}");
            let first = draw(&mut rng, logical);
            match draw(&mut rng, 10) {
                0..=4 => {
                    flash.host_writes_page(Lpn(first));
                    scheme.write(run(first, 1), &mut flash).unwrap_or_else(|error| panic!("{at}: {error}"));
                }
                5..=7 => {
                    let start = first / np * np;
                    let lpns: Vec<u32> = (start..(start + np).min(logical)).filter(|_| chance(&mut rng, 0.8)).collect();
                    lpns.iter().for_each(|lpn| flash.host_writes_page(Lpn(*lpn)));
                    let reads = flash.counters().get(OpKind::Read, Cause::Translation);
                    let evictions = scheme.map_cache().map(|cache| cache.evictions);
                    scheme.look_up_block(run(start, np.min(logical - start)), &mut flash);
                    if evictions == scheme.map_cache().map(|cache| cache.evictions) {
                        let reads = flash.counters().get(OpKind::Read, Cause::Translation) - reads;
                        assert!(reads <= entry_pages, "{at}: {reads} reads of the table for one block");
                        shared_reads += 1;
                    }
                    scheme.supersede(&lpns, &mut flash);
                    scheme.write_block(&lpns, &mut flash).unwrap_or_else(|error| panic!("{at}: {error}"));
                    let block_of = |lpn: &u32| flash.geometry().block_of(scheme.lookup(Lpn(*lpn), &flash).unwrap());
                    let blocks: BTreeSet<u32> = lpns.iter().map(|lpn| block_of(lpn).0).collect();
                    if let [block] = Vec::from_iter(blocks)[..]
                        && flash.pages_valid(BlockId(block)) == u32::try_from(lpns.len()).unwrap()
                        && flash.nand().next_page(BlockId(block)) == u32::try_from(lpns.len()).unwrap()
                    {
                        own += 1;
                        early += u32::from(lpns.len() < np as usize);
                    }
                }
                8 => {
                    flash.host_trims_page(Lpn(first));
                    scheme.trim(run(first, 1), &mut flash);
                }
                _ => {
                    let entries = 1 + draw(&mut rng, 20);
                    scheme.resize_map_cache(entries, &mut flash);
                }
            }
            assert_clean(&scheme, &flash, &at);
            let counted = scheme.reclaimable_pages(&flash).unwrap();
            assert!(counted >= reclaimable(&flash) && counted <= np, "{at}: {counted} pages");
        }
    }
    assert!(own > 2000 && early > 500 && shared_reads > 2000, "{own} own, {early} early, {shared_reads} shared reads");
}

/// Worn drives end with an error and keep what they hold, sealed early or not.
#[test]
fn worn_drives_keep_their_blocks() {
    for seed in 0..60 {
        let mut rng = Seed(seed).stream("worn");
        let scheme = [SchemeName::Page, SchemeName::Dftl][seed as usize % 2];
        let dftl = DftlSettings {
            cmt_entries: 1 + draw(&mut rng, 9),
            replacement: *one_of(&mut rng, MapCacheName::ALL),
            ..DftlSettings::default()
        };
        let geometry = Geometry::new(1, 1, 2, 20, 4, Bytes(512));
        let limit = WearLimit::Same(1 + draw(&mut rng, 5));
        let (mut flash, mut scheme) = build(scheme, geometry, 64, &GcSettings::default(), dftl, limit).unwrap();
        scheme.watch(Watch { reclaimable: true, map_ghosts: 2 }, &flash);
        let mut failed = 0;
        for step in 0..20_000 {
            let first = draw(&mut rng, 64);
            let lpns: Vec<u32> = if chance(&mut rng, 0.5) { (first / 4 * 4..first + 1).collect() } else { vec![first] };
            lpns.iter().for_each(|lpn| flash.host_writes_page(Lpn(*lpn)));
            let result = match draw(&mut rng, 3) {
                0 => scheme.write(run(first, 1), &mut flash),
                _ => scheme.write_block(&lpns, &mut flash),
            };
            failed += u32::from(result.is_err());
            for lpn in &lpns {
                flash.host_write_failed(Lpn(*lpn), scheme.lookup(Lpn(*lpn), &flash));
            }
            scheme.resize_map_cache(1 + draw(&mut rng, 9), &mut flash);
            assert_clean(&scheme, &flash, &format!("seed {seed}, step {step}"));
            if failed > 20 {
                break;
            }
        }
        assert!(failed > 20, "seed {seed}: the drive outlives its cycles");
    }
}

/// Eight entries a translation page, blocks of 4 pages, a table in groups. The cost of each step is worked out on
/// paper.
#[test]
fn a_block_costs_one_read_of_its_translation_page() {
    let geometry = Geometry::new(1, 1, 1, 40, 4, Bytes(512));
    let cost = |entries: u32, steps: &[[u32; 2]]| -> Vec<[u64; 3]> {
        let dftl = DftlSettings { cmt_entries: entries, replacement: MapCacheName::Grouped, ..DftlSettings::default() };
        let (mut flash, mut scheme) =
            build(SchemeName::Dftl, geometry, 64, &GcSettings::default(), dftl, WearLimit::Unlimited).unwrap();
        let counts = |flash: &Flash| {
            let counters = flash.counters();
            [
                counters.get(OpKind::Read, Cause::Translation),
                counters.get(OpKind::Program, Cause::Translation),
                counters.get(OpKind::Program, Cause::Host),
            ]
        };
        let each = steps.iter().map(|[first, count]| {
            let before = counts(&flash);
            let lpns: Vec<u32> = (*first..first + count).collect();
            lpns.iter().for_each(|lpn| flash.host_writes_page(Lpn(*lpn)));
            scheme.write_block(&lpns, &mut flash).unwrap();
            assert_clean(&scheme, &flash, "a block");
            let after = counts(&flash);
            std::array::from_fn(|at| after[at] - before[at])
        });
        each.collect()
    };
    // 8 entries: two blocks fit; those of pages 0 to 3 leave in a group of four, written longest ago, for 16 to 19; the
    // block written again is found in the cache.
    assert_eq!(cost(8, &[[0, 4], [8, 4], [16, 4], [16, 4]]), [[1, 0, 4], [1, 0, 4], [2, 1, 4], [0, 0, 4]]);
    // 6 entries: 4 and 2 dirty ones of different pages; the next block pushes out the group of 4, then fits.
    assert_eq!(cost(6, &[[0, 4], [8, 2], [16, 4]]), [[1, 0, 4], [1, 0, 2], [2, 1, 4]]);
    // 3 entries can't hold a block: its translation page is written through, once for each block.
    assert_eq!(cost(3, &[[0, 4], [0, 4]]), [[1, 1, 4], [1, 1, 4]]);
}

/// A cache that shrinks writes what no longer fits, at the cost of any eviction; one that grows costs nothing. Entries that
/// come back soon after they left are counted.
#[test]
fn a_cache_changes_its_size() {
    let dftl = DftlSettings { cmt_entries: 8, replacement: MapCacheName::Lru, ..DftlSettings::default() };
    let geometry = Geometry::new(1, 1, 1, 40, 4, Bytes(512));
    let (mut flash, mut scheme) =
        build(SchemeName::Dftl, geometry, 64, &GcSettings::default(), dftl, WearLimit::Unlimited).unwrap();
    scheme.watch(Watch { reclaimable: false, map_ghosts: 2 }, &flash);
    assert_eq!(scheme.reclaimable_pages(&flash), None, "nobody asked");
    let translation =
        |flash: &Flash| [OpKind::Read, OpKind::Program].map(|kind| flash.counters().get(kind, Cause::Translation));
    // Entries 0, 8, 16, 24 written, 32 and 40 read: six loads.
    for lpn in [0, 8, 16, 24] {
        flash.host_writes_page(Lpn(lpn));
        scheme.write(run(lpn, 1), &mut flash).unwrap();
    }
    for lpn in [32, 40] {
        scheme.read(run(lpn, 1), &mut flash);
    }
    assert_eq!(translation(&flash), [6, 0]);
    // Down to 3: 0, 8 and 16 leave, each dirty and on a page of its own.
    scheme.resize_map_cache(3, &mut flash);
    assert_eq!(translation(&flash), [9, 3]);
    let cache = scheme.map_cache().unwrap();
    assert_eq!((cache.capacity, cache.evictions, cache.dirty_evictions, cache.ghost_hits), (3, 3, 3, 0));
    // Up to 8: free. 8 and 16 left last and are ghosts, 0 is forgotten; 56 never was here.
    scheme.resize_map_cache(8, &mut flash);
    for lpn in [0, 8, 56, 16] {
        scheme.read(run(lpn, 1), &mut flash);
    }
    assert_eq!(translation(&flash), [13, 3]);
    assert_eq!(scheme.map_cache().unwrap().ghost_hits, 2);
    // No more than one entry a page, no less than one.
    scheme.resize_map_cache(1000, &mut flash);
    assert_eq!(scheme.map_cache().unwrap().capacity, 64);
    scheme.resize_map_cache(0, &mut flash);
    assert_eq!(scheme.map_cache().unwrap().capacity, 1);
    assert_clean(&scheme, &flash, "at the end");
}
