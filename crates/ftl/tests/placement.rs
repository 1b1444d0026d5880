//! Placement policies on whole drives: limits at which one is another, where pages end up, and what separation gains.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers of tests count as library code

use flashwright_block::{Bytes, Rng, Seed, below, chance};
use flashwright_ftl::policies::placement::{Demotion, Detector, GcClass, Isolation};
use flashwright_ftl::schemes::SchemeContext;
use flashwright_ftl::{
    Cause, Counters, Flash, Ftl, FtlSettings, GcSettings, LpnRun, OpKind, PlacementConfig, PlacementName, Scheme,
    SchemeName, VictimName, WearSettings,
};
use flashwright_nand::{Geometry, Lpn, Nand, ProgramOrder, WearLimit};

const BLOCKS: u32 = 1024;
const NP: u32 = 32;
const LOGICAL: u32 = BLOCKS * NP / 10 * 8;

struct Drive {
    flash: Flash,
    scheme: Scheme,
}

impl Drive {
    /// One plane, 0.8 full, filled in order; 8 free blocks kept.
    fn new(victim: VictimName, policy: PlacementName, change: impl Fn(&mut GcSettings, &mut PlacementConfig)) -> Self {
        let mut gc = GcSettings { victim: victim.into(), free_blocks_min: 8, ..GcSettings::default() };
        let mut placement = PlacementConfig { policy, ..PlacementConfig::single_in_turn() };
        change(&mut gc, &mut placement);
        let nand = Nand::new(
            Geometry::new(1, 1, 1, BLOCKS, NP, Bytes(4096)),
            ProgramOrder::Ascending,
            WearLimit::Unlimited,
            &[],
        );
        let mut flash = Flash::new(nand, LOGICAL, false, false);
        let context = SchemeContext {
            logical_pages: LOGICAL,
            dies_per_way: 1,
            ftl: &FtlSettings::default(),
            gc: &gc,
            placement: &placement,
            wear: &WearSettings::default(),
            seed: Seed(1),
            slc: None,
            foreign: None,
        };
        assert_eq!(SchemeName::Page.problems(&context, &flash), Vec::<String>::new());
        let scheme = SchemeName::Page.build(&context, &mut flash);
        let mut drive = Self { flash, scheme };
        (0..LOGICAL).for_each(|lpn| drive.write(lpn, 0));
        drive
    }

    fn plain(victim: VictimName, policy: PlacementName) -> Self {
        Self::new(victim, policy, |_, _| {})
    }

    fn write(&mut self, lpn: u32, stream: u32) {
        self.flash.host_writes_page(Lpn(lpn));
        self.scheme.write(LpnRun { first: Lpn(lpn), pages: 1, stream }, &mut self.flash).unwrap();
    }

    /// Programs per host write over so many drive writes.
    fn run(&mut self, drive_writes: u32, mut draw: impl FnMut() -> (u32, u32)) -> f64 {
        let (programs, host) = (self.flash.counters().total(OpKind::Program), self.flash.host_writes());
        for _ in 0..drive_writes * LOGICAL {
            let (lpn, stream) = draw();
            self.write(lpn, stream);
        }
        let programs = self.flash.counters().total(OpKind::Program) - programs;
        programs as f64 / (self.flash.host_writes() - host) as f64
    }

    /// The stream of the block that holds a page.
    fn stream_of(&self, lpn: u32) -> u8 {
        let ppn = self.scheme.lookup(Lpn(lpn), &self.flash).unwrap();
        self.flash.stream_of(self.flash.geometry().block_of(ppn))
    }

    fn counters(&self) -> Counters {
        self.flash.counters().clone()
    }
}

fn draw(rng: &mut Rng, bound: u32) -> u32 {
    u32::try_from(below(rng, u64::from(bound))).unwrap()
}

fn uniform(seed: u64) -> impl FnMut() -> (u32, u32) {
    let mut rng = Seed(seed).stream("test");
    move || (draw(&mut rng, LOGICAL), 0)
}

/// 90 % of the writes on every tenth page, named as stream 2, the others as 1.
fn skewed(seed: u64) -> impl FnMut() -> (u32, u32) {
    let mut rng = Seed(seed).stream("test");
    move || {
        if chance(&mut rng, 0.9) {
            (draw(&mut rng, LOGICAL / 10) * 10, 2)
        } else {
            (draw(&mut rng, LOGICAL / 10) * 10 + 1 + draw(&mut rng, 9), 1)
        }
    }
}

#[test]
fn one_frontier_is_one_frontier() {
    type Change = fn(&mut GcSettings, &mut PlacementConfig);
    let cases: [(PlacementName, Change); 3] = [
        (PlacementName::Dac, |_, placement| placement.policies.dac.regions = 1),
        (PlacementName::Envy, |_, placement| placement.policies.envy.partitions = 1),
        (PlacementName::MultiStream, |_, placement| placement.policies.multi_stream.streams = 1),
    ];
    let mut single = Drive::plain(VictimName::Fifo, PlacementName::Single);
    single.run(3, skewed(1));
    for (policy, change) in cases {
        for victim in [VictimName::Fifo, VictimName::PartitionFifo] {
            let mut drive = Drive::new(victim, policy, change);
            drive.run(3, skewed(1));
            assert_eq!(drive.counters(), single.counters(), "{policy:?}, {victim:?}");
        }
    }
    // No page moves between partitions: streams that nobody names are one, too.
    let mut unnamed = Drive::plain(VictimName::Fifo, PlacementName::MultiStream);
    let mut writes = skewed(1);
    unnamed.run(3, || (writes().0, 0));
    assert_eq!(unnamed.counters(), single.counters());
    // A marker that can't rise or fall: all pages have L = 1 or 2; with one write each the drive is filled in marker 1.
    let mut marked = Drive::new(VictimName::Fifo, PlacementName::ContainerMarking, |_, placement| {
        placement.policies.container_marking.levels = 1;
        placement.policies.container_marking.demotion = Demotion::Never;
    });
    assert!((0..LOGICAL).all(|lpn| marked.stream_of(lpn) == 0));
    marked.run(40, uniform(3));
    assert!((0..LOGICAL).filter(|lpn| marked.stream_of(*lpn) == 1).count() as f64 > 0.999 * f64::from(LOGICAL));
}

/// All pages are written 24 times in a row and climb; then only every tenth is written, and the others sink as FIFO
/// cleaning moves them.
#[test]
fn static_pages_end_in_the_coldest_region() {
    for policy in [PlacementName::Dac, PlacementName::ContainerMarking] {
        let mut drive = Drive::plain(VictimName::Fifo, policy);
        let top = if policy == PlacementName::Dac { 2 } else { 15 };
        let mut rng = Seed(2).stream("test");
        for lpn in 0..LOGICAL {
            (0..24).for_each(|_| drive.write(lpn, 0));
            // Cleans in between may have taken it down a little.
            assert!(drive.stream_of(lpn) + 3 >= top, "{policy:?}: a page written again and again");
        }
        let drive_writes = if policy == PlacementName::Dac { 8 } else { 60 };
        drive.run(drive_writes, || (draw(&mut rng, LOGICAL / 10) * 10, 0));
        let (mut cold, mut hot) = (0, 0);
        for lpn in 0..LOGICAL {
            cold += u32::from(lpn % 10 != 0 && drive.stream_of(lpn) == 0);
            hot += u32::from(lpn % 10 == 0 && drive.stream_of(lpn) == top);
        }
        let shares = [f64::from(cold) / f64::from(LOGICAL) / 0.9, f64::from(hot) / f64::from(LOGICAL) / 0.1];
        println!("{policy:?}: {shares:.4?} of the static pages at the bottom, of the others at the top");
        assert!(shares[0] > 0.98 && shares[1] > 0.95, "{policy:?}: {shares:?}");
    }
}

/// Pages stay in the stream that their last write named, through all cleans; what names none or too high a one shares
/// number 0.
#[test]
fn named_streams_stay_apart() {
    let mut drive = Drive::plain(VictimName::Greedy, PlacementName::MultiStream);
    let (mut rng, mut named) = (Seed(4).stream("test"), vec![0; LOGICAL as usize]);
    for _ in 0..5 * LOGICAL {
        let (lpn, stream) = (draw(&mut rng, LOGICAL), draw(&mut rng, 6));
        drive.write(lpn, stream);
        named[lpn as usize] = if stream < 4 { u8::try_from(stream).unwrap() } else { 0 };
    }
    assert!((0..LOGICAL).all(|lpn| drive.stream_of(lpn) == named[lpn as usize]));
}

/// Uniform writes give partitions no reason to differ; skewed ones gather what is written often at the hot end.
#[test]
fn partitions_even_out_their_cost() {
    let mut drive = Drive::plain(VictimName::PartitionFifo, PlacementName::Envy);
    let amplification = drive.run(20, uniform(5));
    let mut pages = [0u32; 16];
    (0..LOGICAL).for_each(|lpn| pages[usize::from(drive.stream_of(lpn))] += 1);
    println!("uniform: {amplification:.3}; pages by partition {pages:?}");
    let mean = f64::from(LOGICAL) / 16.0;
    assert!(pages.iter().all(|pages| (f64::from(*pages) / mean - 1.0).abs() < 0.15), "{pages:?}");
    let mut single = Drive::plain(VictimName::Fifo, PlacementName::Single);
    single.run(20, skewed(6));
    let mut drive = Drive::plain(VictimName::PartitionFifo, PlacementName::Envy);
    drive.run(40, skewed(6));
    let (gathered, plain) = (drive.run(5, skewed(7)), single.run(5, skewed(7)));
    println!("skewed: gathered {gathered:.3}, one frontier {plain:.3}");
    assert!(gathered < 0.97 * plain, "{gathered}, {plain}");
    let place = |drive: &Drive, hot: bool| {
        let of: Vec<f64> =
            (0..LOGICAL).filter(|lpn| (lpn % 10 == 0) == hot).map(|lpn| f64::from(drive.stream_of(lpn))).collect();
        of.iter().sum::<f64>() / of.len() as f64
    };
    assert!(place(&drive, true) > place(&drive, false) + 1.0, "hot pages lie nearer the hot end");
}

/// Under skew each way of separating beats one frontier; under uniform writes none costs much.
#[test]
fn separation_pays_under_skew() {
    type Change = fn(&mut GcSettings, &mut PlacementConfig);
    let cases: [(&str, VictimName, PlacementName, Change); 8] = [
        ("oracle", VictimName::Greedy, PlacementName::HotCold, |_, placement| {
            placement.policies.hot_cold.detector = Detector::Oracle;
            placement.policies.hot_cold.gc_class = GcClass::Keep;
        }),
        ("count", VictimName::Greedy, PlacementName::HotCold, |_, _| {}),
        ("count, kept", VictimName::Greedy, PlacementName::HotCold, |_, placement| {
            placement.policies.hot_cold.gc_class = GcClass::Keep;
        }),
        ("recent", VictimName::Greedy, PlacementName::HotCold, |_, placement| {
            placement.policies.hot_cold.detector = Detector::Recent;
            placement.policies.hot_cold.recent_writes = u64::from(LOGICAL / 2);
        }),
        ("dac", VictimName::Greedy, PlacementName::Dac, |_, _| {}),
        ("dac, cost-benefit", VictimName::CostBenefit, PlacementName::Dac, |_, _| {}),
        ("marking, all oldest", VictimName::ContainerMarking, PlacementName::ContainerMarking, |_, _| {}),
        ("marking, greedy", VictimName::Greedy, PlacementName::ContainerMarking, |_, _| {}),
    ];
    let measure = |victim, policy, change: Change| {
        let mut drive = Drive::new(victim, policy, change);
        drive.run(40, skewed(8));
        let skewed = drive.run(10, skewed(9));
        let mut drive = Drive::new(victim, policy, change);
        drive.run(6, uniform(8));
        [skewed, drive.run(4, uniform(9))]
    };
    let single = measure(VictimName::Greedy, PlacementName::Single, |_, _| {});
    println!("one frontier, greedy: {single:.3?}");
    for (name, victim, policy, change) in cases {
        let found = measure(victim, policy, change);
        println!("{name}: {found:.3?}");
        assert!(found[0] < 0.85 * single[0], "{name}: {found:?} against {single:?}");
        assert!(found[1] < 1.1 * single[1], "{name}: {found:?} against {single:?}");
    }
    // The size of a run does not matter here: all are hot, and only cleaning separates, as with two frontiers.
    let by_size = measure(VictimName::Greedy, PlacementName::HotCold, |_, placement| {
        placement.policies.hot_cold.detector = Detector::Size;
    });
    assert_eq!(by_size, measure(VictimName::Greedy, PlacementName::GcSeparate, |_, _| {}));
}

/// Handles of flexible data placement that keep moved pages apart are streams by another name: the same operations, and each count
/// is the flash's own.
#[test]
fn isolated_handles_are_streams_that_are_counted() {
    let mut fdp = Drive::plain(VictimName::Greedy, PlacementName::Fdp);
    let mut streams = Drive::new(VictimName::Greedy, PlacementName::MultiStream, |_, placement| {
        placement.policies.multi_stream.streams = 8;
    });
    fdp.run(6, skewed(1));
    streams.run(6, skewed(1));
    assert_eq!(fdp.counters(), streams.counters());
    let handles = fdp.scheme.figures().handles;
    let written: u64 = handles.iter().map(|handle| handle.pages_written).sum();
    let moved: u64 = handles.iter().flat_map(|handle| &handle.pages_moved_for).sum();
    assert_eq!(written, fdp.flash.host_writes());
    assert_eq!(moved, fdp.counters().get(OpKind::Program, Cause::Gc));
    // The fill named handle 0; handles 1 and 2 write, and make all the room.
    assert_eq!(handles[0].pages_written, u64::from(LOGICAL));
    assert!(handles[3..].iter().all(|handle| handle.pages_written == 0));
    assert!(handles[1].pages_moved_for[2] > 0, "pages that rarely change move for those that often do");
}

/// What is written in order as a ring, by two writers, is never moved if each has its handle; with one frontier for both it is.
#[test]
fn rings_of_different_lengths_cost_nothing_apart() {
    let rings = || {
        let (mut at, mut turn) = ([0, 0], 0u32);
        move || {
            // The second ring has a tenth of the pages and half of the writes.
            turn += 1;
            let ring = usize::from(turn.is_multiple_of(2));
            let (first, pages) = [(0, LOGICAL / 10 * 9), (LOGICAL / 10 * 9, LOGICAL / 10)][ring];
            at[ring] = (at[ring] + 1) % pages;
            (first + at[ring], 1 + ring as u32)
        }
    };
    for isolation in [Isolation::Persistent, Isolation::Initial] {
        let mut apart = Drive::new(VictimName::Greedy, PlacementName::Fdp, |_, placement| {
            placement.policies.fdp.isolation = isolation;
        });
        apart.run(4, rings());
        assert_eq!(apart.run(4, rings()), 1.0, "{isolation:?}");
    }
    let mut together = Drive::plain(VictimName::Greedy, PlacementName::Single);
    together.run(4, rings());
    let amplification = together.run(4, rings());
    println!("one frontier: {amplification:.3}");
    assert!(amplification > 1.1, "{amplification}");
}

/// Pages that were moved share blocks if handles are only initially isolated: skewed writes then cost more.
#[test]
fn initial_isolation_costs_more() {
    let mut cost = |isolation| {
        let mut drive = Drive::new(VictimName::Greedy, PlacementName::Fdp, |_, placement| {
            placement.policies.fdp.isolation = isolation;
        });
        drive.run(10, skewed(2));
        let cost = drive.run(6, skewed(3));
        let moved = (0..LOGICAL).filter(|lpn| drive.stream_of(*lpn) == 8).count();
        assert_eq!(moved > 0, isolation == Isolation::Initial);
        cost
    };
    let [persistent, initial] = [Isolation::Persistent, Isolation::Initial].map(&mut cost);
    println!("persistently {persistent:.3}, initially {initial:.3}");
    assert!(persistent < initial);
}
