//! The engine of chip commands alone: with random operations against the reference model, and worked by hand.

use super::random_config;
use super::reference::{Operation, Order, Reference};
use crate::common::*;
use flashwright_block::{Rng, Seed, chance};
use flashwright_ftl::{Cause, Flash, FlashOp, OpKind};
use flashwright_nand::{Geometry, Nand, Ppn, ProgramOrder, WearLimit};
use flashwright_ssd::engine::{Awaits, Chips, OpClass};
use flashwright_ssd::{DieOrderName, DriveConfig};
use std::collections::BTreeMap;

pub type Requests = Vec<(u64, Vec<FlashOp>)>;

pub fn op(kind: OpKind, page: u32) -> FlashOp {
    FlashOp { ppn: Ppn(page), kind, cause: Cause::Host, after: 0, copies: 0 }
}

/// Operations that keep the chip's law: few blocks, pages programmed in order, no page read twice in a request.
pub struct Writer {
    /// By block, the next page to program.
    pub next: BTreeMap<u32, u32>,
}

impl Writer {
    /// Copies a page as cleaning does.
    fn copy(&mut self, rng: &mut Rng, geometry: &Geometry, ops: &mut Vec<FlashOp>) -> bool {
        let written: Vec<(u32, u32)> = self.next.iter().map(|(first, next)| (*first, *next)).collect();
        let (pages, dies) = (geometry.pages_per_block(), geometry.dies());
        let to = draw(rng, dies) * (geometry.pages() / dies) + draw(rng, 3) * pages;
        let sources: Vec<&(u32, u32)> = written.iter().filter(|(first, next)| *first != to && *next > 0).collect();
        let next = self.next.entry(to).or_default();
        if sources.is_empty() || *next == pages {
            return false;
        }
        let (first, count) = **pick(rng, &sources);
        let from = first + draw(rng, count);
        if ops.iter().any(|other| other.ppn.0 == from && matches!(other.kind, OpKind::Read)) {
            return false; // it would join the other
        }
        ops.extend([cleaning(Read, from), FlashOp { after: 1, ..cleaning(Program, to + *next) }]);
        *next += 1;
        true
    }

    pub fn request(&mut self, rng: &mut Rng, geometry: &Geometry) -> Vec<FlashOp> {
        let (pages, per_die) = (geometry.pages_per_block(), geometry.pages() / geometry.dies());
        let mut ops: Vec<FlashOp> = Vec::new();
        for _ in 0..draw(rng, 8) {
            if chance(rng, 0.05) && self.copy(rng, geometry, &mut ops) {
                continue;
            }
            let first = draw(rng, geometry.dies()) * per_die + draw(rng, 3) * pages;
            let next = self.next.entry(first).or_default();
            let wanted = *pick(
                rng,
                &[OpKind::Read, OpKind::OobRead, OpKind::Read, OpKind::Program, OpKind::Program, OpKind::Erase],
            );
            let (kind, page) = match wanted {
                OpKind::Program if *next == pages => (OpKind::Erase, 0),
                OpKind::Read | OpKind::OobRead if *next == 0 => (OpKind::Program, 0),
                OpKind::Read | OpKind::OobRead => (wanted, draw(rng, *next)),
                _ => (wanted, *next),
            };
            let (kind, page) = if kind == OpKind::Erase { (kind, 0) } else { (kind, page) };
            *next = match kind {
                OpKind::Program => *next + 1,
                OpKind::Erase => 0,
                _ => *next,
            };
            let ppn = first + page;
            let reads = |kind| matches!(kind, OpKind::Read | OpKind::OobRead);
            if reads(kind) && ops.iter().any(|other| other.ppn.0 == ppn && reads(other.kind)) {
                continue; // it would join the other
            }
            let cause = if chance(rng, 0.5) { Cause::Host } else { *pick(rng, &CAUSE) };
            let after = if chance(rng, 0.4) { draw(rng, u32::try_from(ops.len()).unwrap() + 1) } else { 0 };
            ops.push(FlashOp { cause, after, ..op(kind, ppn) });
        }
        ops
    }
}

/// What the engine asks about blocks: none has been erased, none holds one bit a cell.
pub fn flash_of(config: &DriveConfig) -> Flash {
    let nand = Nand::new(config.layout(), ProgramOrder::Ascending, WearLimit::Unlimited, &[]);
    Flash::new(nand, config.logical_pages(), true, false)
}

pub fn play(config: &DriveConfig, requests: &Requests) -> (Vec<u64>, Chips) {
    let flash = flash_of(config);
    let mut engine = Chips::new(config, 0, Seed(1), ());
    let (mut ends, mut in_slot) = (vec![0; requests.len()], BTreeMap::new());
    let arrivals = requests.iter().map(|(arrival, _)| *arrival).chain([u64::MAX]);
    for (at, until) in arrivals.enumerate() {
        while let Some((slot, end)) = engine.next_completion(until) {
            ends[in_slot[&slot]] = end;
        }
        if let Some((_, ops)) = requests.get(at) {
            in_slot.insert(engine.issue(until, 0, ops, Awaits::Request, &flash), at);
        }
    }
    (ends, engine)
}

/// Written a second time.
fn naive_in_classes(passed_max: u32, dies: usize, others_as_one: bool) -> Order {
    let mut passed = vec![0; dies];
    let rank = move |op: &Operation| match op.class {
        OpClass::HostRead | OpClass::Mapping => 0,
        OpClass::Cleaning | OpClass::WearLevelling if !others_as_one => 2,
        _ => 1,
    };
    Order::By(Box::new(move |die, all: &[&Operation]| {
        let best = (0..all.len()).min_by_key(|at| (rank(all[*at]), *at)).unwrap();
        let at = if passed[die] < passed_max { best } else { 0 };
        passed[die] = if at == 0 { 0 } else { passed[die] + 1 };
        at
    }))
}

#[test]
fn orders_and_suspensions_agree_with_the_reference_model() {
    let (mut operations, mut suspended) = (0, 0);
    for seed in 0..1_000 {
        let mut rng = rng(seed);
        let suspends = *pick(&mut rng, &["nothing", "erases", "programs-and-erases"]);
        let order = *pick(&mut rng, &["fifo", "by-class", "reads-first"]);
        let config = random_config(&mut rng)
            .with_settings(&[
                "host.queue-depth=65536".to_owned(),
                format!("timing.die-order={order}"),
                format!("timing.passed-max={}", 1 + draw(&mut rng, 4)),
                format!("chips.suspends={suspends}"),
                format!("chips.suspend={} ns", pick(&mut rng, &[0, 1_000, 50_000])),
                format!("chips.resume={} ns", pick(&mut rng, &[0, 3_000, 50_000])),
                format!("chips.run-least={} ns", pick(&mut rng, &[0, 7_000, 100_000])),
                format!("chips.suspensions-max={}", 1 + draw(&mut rng, 3)),
            ])
            .unwrap();
        let geometry = config.layout();
        let mut writer = Writer { next: BTreeMap::new() };
        let (mut arrival, burst) = (0, *pick(&mut rng, &[0.3, 0.7, 0.95]));
        let requests: Requests = (0..60)
            .map(|_| {
                if !chance(&mut rng, burst) {
                    let odd = u64::from(draw(&mut rng, 2_000_000));
                    arrival += if chance(&mut rng, 0.7) { u64::from(draw(&mut rng, 60)) * 50_000 } else { odd };
                }
                (arrival, writer.request(&mut rng, &geometry))
            })
            .collect();
        let naive = match config.timing.die_order {
            DieOrderName::Fifo => Order::By(Box::new(|_, _| 0)),
            order => {
                let others_as_one = order == DieOrderName::ReadsFirst;
                naive_in_classes(config.timing.passed_max, geometry.dies() as usize, others_as_one)
            }
        };
        let reference = Reference::new(&config, &requests, naive).run();
        let (ends, engine) = play(&config, &requests);
        let expected: Vec<u64> = reference.end.iter().map(|end| end.unwrap()).collect();
        let what = format!("seed {seed}, {order}, {:?}, {:?}", config.timing, config.chips);
        assert_eq!(ends, expected, "{what}: requests");
        let busy = engine.busy();
        assert_eq!(busy.dies.iter().map(|time| time.0).collect::<Vec<_>>(), reference.die_busy, "{what}: dies");
        assert_eq!(busy.channels.iter().map(|time| time.0).collect::<Vec<_>>(), reference.bus_busy, "{what}: buses");
        let counted: u32 = reference.operations.iter().map(|op| op.suspensions).sum();
        let figures = engine.figures();
        assert_eq!(figures.programs_suspended + figures.erases_suspended, u64::from(counted), "{what}: suspensions");
        operations += reference.operations.len();
        suspended += counted;
    }
    println!("{operations} operations, {suspended} suspensions");
    assert!(operations > 100_000 && suspended > 2_500, "{operations}, {suspended}: too easy");
}

// --- worked by hand ---

/// One channel of two dies with 6-page blocks of 4 KiB, 100 us a transfer, 50 us to read, 200 us to program, 700 us to erase.
pub fn chip(settings: &[&str]) -> DriveConfig {
    let base = [
        "geometry.channels=1",
        "geometry.dies-per-channel=2",
        "geometry.blocks-per-plane=8",
        "geometry.pages-per-block=6",
        "timing.read=50 us",
        "timing.program=200 us",
        "timing.erase=700 us",
        "timing.bus-rate=40.96 MB/s",
    ];
    config(&[&base, settings].concat())
}

/// Issues lists of operations at their times and answers when each was done, in microseconds.
pub fn ends(config: &DriveConfig, requests: &[(u64, &[FlashOp])]) -> Vec<f64> {
    let requests: Requests = requests.iter().map(|(at, ops)| (at * 1_000, ops.to_vec())).collect();
    play(config, &requests).0.into_iter().map(|end| end as f64 / 1_000.0).collect()
}

use OpKind::{Erase, Program, Read};

pub fn cleaning(kind: OpKind, page: u32) -> FlashOp {
    FlashOp { cause: Cause::Gc, ..op(kind, page) }
}

/// The erase of block 0 starts at 0. A read of block 1 comes at 100: the die suspends until 120, senses until 170, transfers
/// until 270, and resumes: 30 us, and the 600 us that were left.
#[test]
fn a_read_suspends_an_erase() {
    let waits = chip(&[]);
    let (erase, read) = ([cleaning(Erase, 0)], [op(Read, 6)]);
    assert_eq!(ends(&chip(&["chips.cache-read=true"]), &[(0, &erase), (100, &read)]), [700.0, 850.0]);
    let settings = ["chips.suspends=erases", "chips.suspend=20 us", "chips.resume=30 us"];
    let suspends = chip(&settings);
    assert_eq!(ends(&suspends, &[(0, &erase), (100, &read)]), [900.0, 270.0]);
    // Two reads in one suspension; the second comes while the first is served.
    assert_eq!(ends(&suspends, &[(0, &erase), (100, &read), (200, &read)]), [1_050.0, 270.0, 420.0]);
    // 15 us before its end a suspension of 20 us does not pay.
    assert_eq!(ends(&suspends, &[(0, &erase), (685, &read)]), [700.0, 850.0]);
    // It must have run 300 us; and a second read, at 500, finds its one suspension spent.
    let once = chip(&[&settings[..], &["chips.run-least=300 us", "chips.suspensions-max=1"]].concat());
    assert_eq!(ends(&once, &[(0, &erase), (100, &read), (500, &read)]), [900.0, 470.0, 1_050.0]);
    // Cleaning's own reads suspend nothing.
    assert_eq!(ends(&suspends, &[(0, &erase), (100, &[cleaning(Read, 6)])]), [700.0, 850.0]);
    assert_eq!(waits.chips.suspends, flashwright_ssd::Suspends::Nothing);
}

/// A program that loads from 0 to 100 is suspended at 150 with 150 us left.
#[test]
fn a_read_suspends_a_program_where_the_chip_can() {
    let settings = ["chips.suspend=20 us", "chips.resume=30 us"];
    let list: [(u64, &[FlashOp]); 2] = [(0, &[op(Program, 0)]), (150, &[op(Read, 6)])];
    let of = |suspends: &str| ends(&chip(&[&settings[..], &[suspends]].concat()), &list);
    assert_eq!(of("chips.suspends=erases"), [300.0, 450.0]);
    assert_eq!(of("chips.suspends=programs-and-erases"), [320.0 + 30.0 + 150.0, 320.0]);
}

/// The planes of a die: two pages load one after the other and are programmed together; read together, they leave one after
/// the other; an erase of both blocks takes one erase.
#[test]
fn planes_work_together() {
    let one = ["geometry.planes-per-die=2", "chips.write-ram=64 KiB"];
    let two = ["geometry.planes-per-die=2", "chips.write-ram=64 KiB", "geometry.superblock=die"];
    // One plane after the other: blocks 0 and 8 are the first of planes 0 and 1.
    let apart: [(u64, &[FlashOp]); 1] = [(0, &[cleaning(Program, 0), cleaning(Program, 48)])];
    let as_work = |config: &DriveConfig, ops: &[FlashOp]| {
        let mut engine = Chips::new(config, 0, Seed(1), ());
        engine.issue(0, 0, ops, Awaits::Work, &flash_of(config));
        engine.next_completion(u64::MAX).unwrap().1 as f64 / 1_000.0
    };
    assert_eq!(as_work(&chip(&one), apart[0].1), 600.0);
    let both = chip(&two);
    assert_eq!(as_work(&both, &[cleaning(Program, 0), cleaning(Program, 1)]), 400.0);
    assert_eq!(as_work(&both, &[cleaning(Read, 0), cleaning(Read, 1)]), 250.0);
    assert_eq!(as_work(&both, &[cleaning(Read, 1), cleaning(Read, 2)]), 300.0, "different rows");
    assert_eq!(as_work(&both, &[cleaning(Erase, 0)]), 700.0);
}

/// Programs of one die: the second loads while the first is programmed (100 to 300), so its array starts at 300.
#[test]
fn data_cross_the_bus_during_a_program() {
    let list: [(u64, &[FlashOp]); 1] = [(0, &[op(Program, 0), op(Program, 1), op(Program, 2)])];
    assert_eq!(ends(&chip(&["chips.cache-read=true"]), &list), [900.0]);
    assert_eq!(ends(&chip(&["chips.cache-program=true"]), &list), [700.0]);
}

/// Reads of one die: the second senses (50 to 100) while the first crosses the bus (50 to 150).
#[test]
fn a_die_senses_while_a_page_leaves() {
    let list: [(u64, &[FlashOp]); 1] = [(0, &[op(Read, 0), op(Read, 1), op(Read, 2)])];
    assert_eq!(ends(&chip(&["chips.cache-program=true"]), &list), [450.0]);
    assert_eq!(ends(&chip(&["chips.cache-read=true"]), &list), [350.0]);
}

/// A copy within a plane takes a read and a program, and no transfer.
#[test]
fn copyback_needs_no_bus() {
    let moves = |to| [cleaning(Read, 0), FlashOp { after: 1, ..cleaning(Program, to) }];
    let (within, across) = (moves(6), moves(48));
    let config = chip(&["chips.copyback=true"]);
    assert_eq!(ends(&config, &[(0, &within)]), [250.0]);
    assert_eq!(ends(&config, &[(0, &across)]), [450.0], "to the other die");
    // A read of the copied page waits for it.
    assert_eq!(ends(&config, &[(0, &within), (10, &[op(Read, 6)])]), [250.0, 400.0]);
}

/// Two bits a cell: page 0 is the lower of its word line, page 1 the upper.
#[test]
fn pages_of_a_cell_have_their_own_times() {
    let config =
        chip(&["geometry.bits-per-cell=2", "chips.read-times=40 us, 70 us", "chips.program-times=100 us, 900 us"]);
    assert_eq!(ends(&config, &[(0, &[op(Program, 0)]), (500, &[op(Read, 0)])]), [200.0, 640.0]);
    assert_eq!(ends(&config, &[(0, &[op(Program, 1)]), (2_000, &[op(Read, 1)])]), [1_000.0, 2_170.0]);
}

/// A word line of three pages is programmed at once: three transfers and one program. RAM takes the pages, so the host does not
/// wait, and answers reads of them until the program ends at 500.
#[test]
fn a_word_line_is_programmed_in_one_shot() {
    let config = chip(&[
        "geometry.bits-per-cell=3",
        "chips.programming=one-shot",
        "chips.write-ram=64 KiB",
        "chips.read-times=40 us, 50 us, 60 us",
    ]);
    let line = [op(Program, 0), op(Program, 1), op(Program, 2)];
    let read = [op(Read, 2)];
    assert_eq!(ends(&config, &[(0, &line), (499, &read), (500, &read)]), [0.0, 499.0, 660.0]);
    // Two of three pages wait for the third.
    assert_eq!(ends(&config, &[(0, &line[..2]), (5_000, &[op(Read, 0)])]), [0.0, 5_000.0]);
}

/// Two word lines of a block in two passes of 60 and 200 us: coarse 0, coarse 1, exact 0, exact 1, each with two transfers.
#[test]
fn the_second_pass_follows_the_next_word_line() {
    let config = chip(&[
        "geometry.bits-per-cell=2",
        "chips.programming=two-pass",
        "chips.first-pass=60 us",
        "chips.write-ram=64 KiB",
        "geometry.pages-per-block=4",
    ]);
    let line = |first| [op(Program, first), op(Program, first + 1)];
    // The first pass of line 0 ends at 260; exact 0 at 260 + 260 + 400 = 920; exact 1 at 1,320.
    let (lines, reads) = ([line(0), line(2)].concat(), [[op(Read, 0)], [op(Read, 2)]]);
    let list: [(u64, &[FlashOp]); 5] =
        [(0, &lines), (919, &reads[0]), (919, &reads[1]), (1_319, &reads[1]), (1_320, &reads[0])];
    assert_eq!(ends(&config, &list), [0.0, 919.0, 919.0, 1_319.0, 1_470.0]);
}

/// Two dies, one of them with parity in turn: the page of row 0 goes to die 0 and its parity to die 1, over the same bus.
#[test]
fn parity_takes_a_program_on_another_die() {
    let config = chip(&["geometry.superblock=drive", "geometry.parity-dies=2"]);
    assert_eq!(config.layout().pages_per_block(), 6);
    let (_, mut engine) = play(&config, &vec![(0, vec![op(Program, 0), op(Program, 1)])]);
    assert_eq!(engine.next_completion(u64::MAX), None);
    // Each die programs a page and a parity, one after the other: 2 x 300, and the bus delays die 1 by 100.
    assert_eq!(engine.busy().dies.iter().map(|busy| busy.0 / 1_000).collect::<Vec<_>>(), [600, 700]);
    let figures = engine.figures();
    assert_eq!((figures.array_programs, figures.parity_programs), (2, 2));
}

/// RAM for two pages and no more than one program at a time: the third write waits until the first page is on flash.
#[test]
fn a_write_waits_for_room_in_ram() {
    let config = chip(&["chips.write-ram=8 KiB"]);
    let writes: Vec<[FlashOp; 1]> = (0..4).map(|page| [op(Program, page)]).collect();
    let list: Vec<(u64, &[FlashOp])> = writes.iter().map(|ops| (0, &ops[..])).collect();
    assert_eq!(ends(&config, &list), [0.0, 0.0, 300.0, 600.0]);
}

/// Everything that a drive of today's kind does at once, over a long random stream: nothing is lost, and what a read waits for
/// is never more than the longest chain of what its die may do first.
#[test]
fn a_drive_of_today_keeps_what_was_written() {
    use flashwright_block::{BlockDevice, RequestKind};
    use flashwright_ssd::Ssd;
    let config = chip(&[
        "geometry.channels=4",
        "geometry.planes-per-die=2",
        "geometry.blocks-per-plane=40",
        "geometry.pages-per-block=12",
        "geometry.mapping-unit=1 KiB",
        "geometry.superblock=drive",
        "geometry.bits-per-cell=3",
        "geometry.parity-dies=4",
        "chips.programming=one-shot",
        "chips.suspends=programs-and-erases",
        "chips.write-ram=1 MiB",
        "timing.die-order=by-class",
        "gc.schedule=rate-limited",
        "gc.free-blocks-min=2",
        "capacity.utilization=0.7",
    ]);
    let mut ssd = Ssd::new(&config, Seed(5), true).unwrap();
    let (mut rng, logical) = (rng(5), ssd.logical_pages());
    closed_loop(&mut ssd, 16, 120_000, |ssd| {
        let kind = if chance(&mut rng, 0.7) { RequestKind::Write } else { RequestKind::Read };
        let first = draw(&mut rng, logical);
        pages(ssd, kind, first, 1 + draw(&mut rng, 6.min(logical - first)))
    });
    assert_eq!(ssd.audit(), []);
    let figures = ssd.chip_figures().unwrap();
    assert!(figures.programs_suspended > 1_000 && figures.ram_reads > 100, "{figures:?}");
    // A group of three units has a parity.
    assert_eq!(figures.parity_programs, figures.array_programs / 3, "{figures:?}");
    assert!(ssd.now().0 > 0);
}

/// Errors from age alone, 0.0448 of the bits, which each retry halves: of the 32,768 bits of a codeword 1,468, 734, 367 and 184
/// are wrong, and 288 can be corrected. So a read senses four times and its page crosses the bus four times.
const HALVING: [&str; 10] = [
    "errors.law=power-law",
    "errors.codeword=4 KiB",
    "errors.correctable=288",
    "errors.soft-correctable=500",
    "errors.block-sigma=0.0",
    "errors.retry-keep=0.5",
    "errors.retry-floor=0.0",
    "errors.rates.fresh=0.0",
    "errors.rates.wear=0.0",
    "errors.rates.retention=0.0448",
];
const AGE_ALONE: [&str; 2] = ["errors.rates.retention-wear-power=0.0", "errors.rates.retention-power=0.0"];

/// Writes page 0, begins measuring, and reads it: the drive, and how long the read took in microseconds.
fn read_of_aged_data(settings: &[&str]) -> (flashwright_ssd::Ssd, f64) {
    use flashwright_block::{BlockDevice, RequestKind};
    let config = chip(&[&HALVING[..], &AGE_ALONE, &["capacity.utilization=0.4"], settings].concat());
    let mut ssd = flashwright_ssd::Ssd::new(&config, Seed(1), true).unwrap();
    fill(&mut ssd, 4); // less than a block, which stays open: nothing is written again
    ssd.reset_figures();
    let read = pages(&ssd, RequestKind::Read, 0, 1);
    let took = perform(&mut ssd, read).unwrap()[0].end.0;
    assert!(ssd.now().0 >= took);
    (ssd, took as f64 / 1_000.0)
}

#[test]
fn a_retry_senses_and_transfers_again() {
    let (ssd, took) = read_of_aged_data(&[]);
    assert_eq!(took, 4.0 * 50.0 + 4.0 * 100.0);
    let (counts, _) = ssd.error_counts().unwrap();
    assert_eq!((counts.reads, counts.retries(), counts.uncorrectable), (1, 3, 0));
    // Two retries are not enough; soft decoding reads twice more and takes 50 us.
    assert_eq!(read_of_aged_data(&["errors.retries-max=2"]).1, 5.0 * 50.0 + 50.0 + 5.0 * 100.0);
}

/// What nothing corrects is rebuilt from the other die of its parity group, which a read of 150 us takes.
#[test]
fn parity_rebuilds_what_correction_cannot() {
    let hopeless = ["errors.retries-max=0", "errors.soft-reads=0"];
    let (ssd, took) = read_of_aged_data(&hopeless);
    assert_eq!((took, ssd.error_counts().unwrap().0.uncorrectable), (150.0, 1));
    assert_eq!(ssd.chip_figures().unwrap().rebuilding_reads, 0, "nothing to rebuild it from");
    let parity = ["geometry.superblock=drive", "geometry.parity-dies=2"];
    let (ssd, took) = read_of_aged_data(&[&hopeless[..], &parity].concat());
    assert_eq!((took, ssd.chip_figures().unwrap().rebuilding_reads), (300.0, 1));
}

/// A block is written again after so many reads, in the background: all data stay, and the host waits only for its dies.
#[test]
fn a_block_that_is_read_often_is_written_again() {
    use flashwright_block::RequestKind;
    use flashwright_ssd::Ssd;
    let config = chip(&[
        "errors.law=power-law",
        "errors.reclaim-reads=20",
        "geometry.bits-per-cell=3",
        "capacity.utilization=0.5",
    ]);
    let mut ssd = Ssd::new(&config, Seed(1), true).unwrap();
    let logical = ssd.logical_pages();
    fill(&mut ssd, logical);
    ssd.reset_figures();
    closed_loop(&mut ssd, 4, 4_000, |ssd| pages(ssd, RequestKind::Read, 0, 1));
    let (counts, rewritten) = ssd.error_counts().unwrap();
    assert!(rewritten > 20 && counts.reclaims >= rewritten, "{rewritten}, {counts:?}");
    assert_eq!(ssd.audit(), []);
    // Twice as many reads between rewrites, half as many of these.
    let calm = config.with_settings(&["errors.reclaim-reads=40"]).unwrap();
    let mut other = Ssd::new(&calm, Seed(1), true).unwrap();
    fill(&mut other, logical);
    other.reset_figures();
    closed_loop(&mut other, 4, 4_000, |ssd| pages(ssd, RequestKind::Read, 0, 1));
    let fewer = other.error_counts().unwrap().1;
    assert!((rewritten / 2).abs_diff(fewer) <= 2, "{rewritten} and {fewer}");
}

/// Wear-out by errors: blocks differ in how many erases they survive, and the drive ends as with a budget of cycles.
#[test]
fn errors_of_fresh_data_end_a_block() {
    use flashwright_ssd::Ssd;
    let settings = [
        "capacity.utilization=0.4",
        "errors.law=power-law",
        "geometry.bits-per-cell=3",
        "errors.pe-cycles-at-start=2100",
    ];
    let ssd = Ssd::new(&chip(&settings), Seed(1), false).unwrap();
    let nand = ssd.flash().nand();
    let left: Vec<u32> = (0..16).map(|block| nand.cycles_left(flashwright_nand::BlockId(block)).unwrap()).collect();
    assert!(left.iter().min() < left.iter().max() && *left.iter().max().unwrap() < 2_000, "{left:?}");
    let fewer = chip(&[&settings[..], &["wear.pe-cycles-max=3"]].concat());
    let ssd = Ssd::new(&fewer, Seed(1), false).unwrap();
    assert_eq!(ssd.flash().nand().cycles_left(flashwright_nand::BlockId(0)), Some(3));
}

/// A block with one bit a cell: the page is programmed in 90 us and read in 20; folding it takes a read of 20, a transfer each
/// way, and a program of 200 us.
#[test]
fn the_slc_cache_has_times_of_its_own() {
    folds(&["chips.cache-read=true"], 20.0 + 100.0 + 100.0 + 200.0);
    // Within the plane it needs no bus.
    folds(&["chips.copyback=true"], 20.0 + 200.0);
}

/// What folding a page takes.
fn folds(settings: &[&str], copy: f64) {
    use flashwright_block::{BlockDevice, Nanos, RequestKind};
    use flashwright_ssd::Ssd;
    let base = [
        "geometry.dies-per-channel=1",
        "geometry.bits-per-cell=3",
        "slc.cache=dynamic",
        "slc.block-share=1.0",
        "slc.page-read=20 us",
        "slc.page-program=90 us",
        "slc.fold-after=1 ms",
        "capacity.utilization=0.3",
        "gc.free-blocks-min=1",
        "slc.blocks-kept=3",
    ];
    let config = chip(&[&base, settings].concat());
    let mut ssd = Ssd::new(&config, Seed(1), true).unwrap();
    let took = |ssd: &mut Ssd, kind, first, count| {
        let (request, from) = (pages(ssd, kind, first, count), ssd.now().0);
        (perform(ssd, flashwright_block::Request { arrival: Nanos(from), ..request }).unwrap()[0].end.0 - from) as f64
            / 1e3
    };
    assert_eq!(took(&mut ssd, RequestKind::Write, 0, 1), 190.0);
    assert_eq!(took(&mut ssd, RequestKind::Read, 0, 1), 120.0);
    // The second page fills the block, so idle time folds both.
    assert_eq!(took(&mut ssd, RequestKind::Write, 1, 1), 190.0);
    let folds_from = ssd.now().0 + 1_000_000;
    let until = Nanos(folds_from + 10_000_000);
    assert_eq!(wait(&mut ssd, until).unwrap(), None);
    assert_eq!(took(&mut ssd, RequestKind::Read, 0, 1), 150.0, "from a block with three bits a cell");
    // One copy after the other, and the erase.
    let busy = ssd.busy_times().dies[0].0 as f64 / 1e3;
    let host = 190.0 + 120.0 + 190.0 + 150.0;
    assert_eq!(busy - host, 2.0 * copy + 700.0);
    assert_eq!(ssd.audit(), []);
}

/// Under a limit for one program at a time, two dies take turns; without it they program side by side.
#[test]
fn a_power_limit_keeps_dies_waiting() {
    let list: [(u64, &[FlashOp]); 1] = [(0, &[op(Program, 0), op(Program, 48)])];
    let power = ["energy.program-uj=100.0", "energy.erase-uj=100.0", "energy.idle-mw=1000.0"];
    // 100 uJ in 200 us are 500 mW.
    let with = |limit: &'static str| ends(&chip(&[&power[..], &[limit]].concat()), &list);
    assert_eq!(with("energy.limit-mw=2000.0"), [400.0]);
    assert_eq!(with("energy.limit-mw=1900.0"), [600.0]);
}

/// Pages that RAM collects for a unit are no work of a die: the drive is idle, and cleans in the background.
#[test]
fn a_drive_with_a_unit_half_full_is_idle() {
    use flashwright_block::{Nanos, Request, RequestKind};
    use flashwright_ftl::Cause;
    use flashwright_ssd::Ssd;
    let config = chip(&[
        "geometry.superblock=drive",
        "geometry.blocks-per-plane=40",
        "geometry.bits-per-cell=3",
        "chips.programming=one-shot",
        "chips.write-ram=1 MiB",
        "gc.schedule=background",
        "gc.background.start-blocks=12",
        "gc.background.stop-blocks=13",
        "capacity.utilization=0.6",
    ]);
    let cleaned = |schedule: &str| {
        let config = config.with_settings(&[format!("gc.schedule={schedule}")]).unwrap();
        let mut ssd = Ssd::new(&config, Seed(3), true).unwrap();
        let (mut rng, logical) = (rng(3), ssd.logical_pages());
        for at in 0..2_000 {
            let write = pages(&ssd, RequestKind::Write, draw(&mut rng, logical), 1);
            perform(&mut ssd, Request { arrival: Nanos(at * 20_000_000), ..write }).unwrap();
        }
        assert_eq!(ssd.audit(), []);
        ssd.flash().counters().get(OpKind::Program, Cause::Gc)
    };
    let (background, foreground) = (cleaned("background"), cleaned("foreground"));
    assert!(background > foreground + foreground / 4, "{background} and {foreground}");
}
