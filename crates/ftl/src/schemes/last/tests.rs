use super::*;
use crate::{FtlSettings, GcSettings, OpKind, PlacementConfig, SchemeName, WearSettings};
use flashwright_block::{Rng, Seed, below};
use flashwright_nand::{Geometry, Nand, ProgramOrder, WearLimit};
use proptest::prelude::*;

struct Bench {
    flash: Flash,
    last: Last,
    pages: u32,
}

/// `blocks` of 8 pages on two dies, of which `data` hold data.
fn bench(settings: LastSettings, blocks: u32, data: u32, order: ProgramOrder, limit: WearLimit) -> Bench {
    let geometry = Geometry::new(1, 2, 1, blocks / 2, 8, Bytes(4096));
    let mut flash = Flash::new(Nand::new(geometry, order, limit, &[]), data * 8, false, true);
    let mut ftl = FtlSettings { scheme: SchemeName::Last, ..FtlSettings::default() };
    ftl.schemes.last = settings;
    let context = SchemeContext {
        logical_pages: data * 8,
        dies_per_way: 1,
        ftl: &ftl,
        gc: &GcSettings::default(),
        placement: &PlacementConfig::default(),
        wear: &WearSettings::default(),
        seed: Seed(1),
        slc: None,
        foreign: None,
    };
    assert_eq!(Last::problems(&context, &flash), Vec::<String>::new());
    let last = Last::new(&context, &mut flash);
    Bench { flash, last, pages: data * 8 }
}

fn logs(log_blocks: u32, sequential_logs: u32) -> LastSettings {
    LastSettings { log_blocks, sequential_logs, ..LastSettings::default() }
}

fn fresh(settings: LastSettings) -> Bench {
    let mut bench = bench(settings, 64, 40, ProgramOrder::Ascending, WearLimit::Unlimited);
    bench.write(0, 320).unwrap();
    bench.last.reset_figures();
    bench
}

impl Bench {
    fn write(&mut self, first: u32, pages: u32) -> Result<(), OutOfSpace> {
        let run = LpnRun { first: Lpn(first), pages, stream: 0 };
        run.iter().for_each(|lpn| self.flash.host_writes_page(lpn));
        self.last.write(run, &mut self.flash).inspect_err(|_| {
            for lpn in run.iter() {
                let held = self.last.lookup(lpn, &self.flash);
                self.flash.host_write_failed(lpn, held);
            }
        })
    }

    fn extra(&self, name: &str) -> f64 {
        self.last.figures().extra.iter().find(|(known, _)| known == name).unwrap().1
    }

    fn merge_copies(&self) -> u64 {
        self.flash.counters().get(OpKind::Program, Cause::Merge)
    }

    fn mapped(&self) -> BTreeSet<u32> {
        (0..self.pages).filter(|lpn| self.last.lookup(Lpn(*lpn), &self.flash).is_some()).collect()
    }

    fn audit(&self, at: &str) {
        let mut violations = Vec::new();
        self.flash.audit(&mut violations);
        self.last.audit(&self.flash, &mut violations);
        violations.extend_from_slice(self.flash.stamps().map_or(&[], |stamps| stamps.violations().1));
        assert!(violations.is_empty(), "{at}: {violations:#?}");
    }
}

fn draw(rng: &mut Rng, bound: u32) -> u32 {
    u32::try_from(below(rng, u64::from(bound))).unwrap()
}

/// Pages written cyclically leave the oldest hot log without valid pages, as long as the others hold them all.
#[test]
fn a_small_hot_set_costs_no_copies() {
    let mut bench = fresh(logs(9, 1)); // 4 hot logs
    let hot = 3 * 8;
    for turn in 0..100 * hot {
        bench.write(turn % hot * 9 % 320, 1).unwrap();
    }
    assert_eq!(bench.merge_copies(), 0);
    // The cold logs took each page once; all later writes are hot.
    assert_eq!(bench.last.figures.written, [u64::from(hot), u64::from(99 * hot), 0]);
    let reclaims = bench.extra("reclaims_blocks");
    assert_eq!(reclaims, bench.extra("reclaims_dead_blocks"));
    assert_eq!(bench.last.figures.merges.full, 0);
    bench.audit("at the end");
    // Of 30 pages the last three logs hold 24: the oldest log still has valid pages when its turn comes.
    let mut wide = fresh(logs(9, 1));
    (0..50 * 30).for_each(|turn| wide.write(turn % 30 * 9 % 320, 1).unwrap());
    assert!(wide.last.figures.merges.full > 0);
}

/// A write that finds a log without valid pages costs its erase; otherwise it merges as many blocks as the log has
/// pages of.
#[test]
fn dead_logs_go_first_and_copy_nothing() {
    let mut bench = fresh(logs(6, 1));
    let mut rng = Seed(2).stream("pages");
    let (mut dead, mut merged) = (0, 0);
    for _ in 0..20_000 {
        let (copies, erases) = (bench.merge_copies(), bench.flash.counters().total(OpKind::Erase));
        let before = (bench.extra("reclaims_blocks"), bench.extra("reclaims_dead_blocks"));
        let hot = draw(&mut rng, 10) < 8;
        let lpn = if hot { draw(&mut rng, 4) * 31 } else { draw(&mut rng, 320) };
        bench.write(lpn, 1).unwrap();
        let after = (bench.extra("reclaims_blocks"), bench.extra("reclaims_dead_blocks"));
        if after.0 > before.0 && after.0 - before.0 == after.1 - before.1 {
            assert_eq!(bench.merge_copies(), copies);
            assert_eq!((bench.flash.counters().total(OpKind::Erase) - erases) as f64, after.1 - before.1);
            dead += 1;
        } else {
            merged += u32::from(after.0 > before.0);
        }
    }
    assert!(dead > 100 && merged > 100, "{dead} dead, {merged} merged");
    let histogram = &bench.last.figures.merges.full_by_data_blocks;
    assert!(histogram.len() <= 9, "{histogram:?}: a log has pages of as many blocks as it has pages");
    let touched: u64 = (0..).zip(histogram).map(|(blocks, reclaims)| blocks * reclaims).sum();
    assert_eq!(touched, bench.last.figures.merges.full);
    bench.audit("at the end");
}

/// Streams with a log each do not disturb each other: all merges are switches. With one more stream than logs they do.
#[test]
fn as_many_streams_as_sequential_logs_only_switch() {
    for (streams, logs_enough) in [(3, true), (4, false)] {
        let mut bench = fresh(logs(8, 3));
        for step in 0..40 {
            for stream in 0..streams {
                bench.write(stream * 80 + step * 2, 2).unwrap();
            }
        }
        let merges = &bench.last.figures.merges;
        assert_eq!(merges.switch == u64::from(streams) * 10, logs_enough, "{merges:?}");
        assert_eq!((merges.partial + merges.full == 0, bench.merge_copies() == 0), (logs_enough, logs_enough));
        assert_eq!(bench.extra("writes_sequential_share"), 1.0);
        bench.audit("at the end");
    }
}

/// Above 4 KiB, in whole pages: two of 4 KiB are sequential, and with a greater threshold none.
#[test]
fn requests_are_told_apart_by_size() {
    for (threshold, sequential_from) in [(4095, 1), (4096, 2), (8191, 2), (8192, 3), (1 << 60, u32::MAX)] {
        let bench = fresh(LastSettings { seq_threshold: Bytes(threshold), ..logs(5, 1) });
        assert_eq!(bench.last.sequential_from, sequential_from, "{threshold}");
    }
}

#[test]
fn every_setting_keeps_every_page() {
    let mut ended = 0;
    for seed in 0..64u32 {
        let order = [ProgramOrder::Ascending, ProgramOrder::Any][(seed % 2) as usize];
        let limit = if seed % 4 < 2 { WearLimit::Unlimited } else { WearLimit::Same(5) };
        let (all, sequential) = [(2, 1), (3, 1), (5, 2), (8, 0), (9, 6)][(seed % 5) as usize];
        let settings = LastSettings {
            hot_share: [0.5, 0.0, 1.0][(seed % 3) as usize],
            recent_pages: [0, 1, 7, 1000][(seed / 3 % 4) as usize],
            home_first: seed % 7 != 0,
            seq_threshold: Bytes([4096, 1, 20_000][(seed / 5 % 3) as usize]),
            ..logs(all, sequential)
        };
        let label = format!("seed {seed}, {order:?}, {limit:?}, {settings:?}");
        let mut bench = bench(settings, 34, 16 + seed % 3 * 4, order, limit.clone());
        let mut rng = Seed(u64::from(seed)).stream("last");
        let (mut mapped, mut failed, mut next) = (BTreeSet::new(), 0, 0);
        for step in 0..2000 {
            let at = format!("{label}, step {step}");
            let hot = if seed % 3 == 0 { 20 } else { bench.pages };
            let first = match draw(&mut rng, 3) {
                0 => draw(&mut rng, bench.pages),
                1 => next % bench.pages,
                _ => draw(&mut rng, hot),
            };
            let count = if draw(&mut rng, 2) == 0 { 1 } else { 1 + draw(&mut rng, 20.min(bench.pages - first)) };
            let range = first..first + count;
            next = range.end;
            let run = LpnRun { first: Lpn(first), pages: count, stream: 0 };
            match draw(&mut rng, 20) {
                0 | 1 if seed % 8 < 5 => {
                    run.iter().for_each(|lpn| bench.flash.host_trims_page(lpn));
                    bench.last.trim(run, &mut bench.flash);
                    range.for_each(|lpn| _ = mapped.remove(&lpn));
                }
                2 => bench.last.read(run, &mut bench.flash),
                _ => match bench.write(first, count) {
                    Ok(()) => mapped.extend(range),
                    Err(error) => {
                        assert!(limit != WearLimit::Unlimited, "{at}: {error}");
                        let now = bench.mapped();
                        assert!(mapped.is_subset(&now), "{at}: a write that failed lost pages");
                        mapped = now;
                        failed += 1;
                    }
                },
            }
            bench.audit(&at);
            assert_eq!(bench.mapped(), mapped, "{at}");
            if failed > 20 {
                break;
            }
        }
        ended += u32::from(failed > 0);
    }
    assert!(ended > 20, "{ended} drives wore out");
}

proptest! {
    /// Few keys and places, so that probes run into each other.
    #[test]
    fn pairs_are_counted(steps in proptest::collection::vec((0u32..4, 0u32..6, any::<bool>()), 1..300)) {
        let (mut pairs, mut model) = (PairCounts::new(12), BTreeMap::new());
        for (log, lbn, add) in steps {
            let pages: u32 = model.get(&(log, lbn)).copied().unwrap_or(0);
            if add && (pages > 0 || model.len() < 12) {
                prop_assert_eq!(pairs.add(log, lbn), pages == 0);
                model.insert((log, lbn), pages + 1);
            } else if pages > 0 {
                prop_assert_eq!(pairs.remove(log, lbn), pages == 1);
                model.insert((log, lbn), pages - 1);
                model.retain(|_, pages| *pages > 0);
            }
            prop_assert_eq!(pairs.len, model.len());
            for (log, lbn) in (0..4).flat_map(|log| (0..6).map(move |lbn| (log, lbn))) {
                prop_assert_eq!(pairs.get(log, lbn), model.get(&(log, lbn)).copied().unwrap_or(0));
            }
        }
    }

    #[test]
    fn recent_pages_are_the_last_distinct_ones(lpns in proptest::collection::vec(0u32..12, 1..200)) {
        let (mut recent, mut model) = (Recent::new(5), Vec::new());
        for lpn in lpns {
            let known = model.contains(&lpn);
            prop_assert_eq!(recent.note(Lpn(lpn)), known);
            model.retain(|other| *other != lpn);
            model.push(lpn);
            if model.len() > 5 {
                model.remove(0);
            }
            let mut violations = Vec::new();
            recent.audit(&mut violations);
            prop_assert_eq!(violations, Vec::new());
        }
    }
}
