//! What the engine of chip commands keeps on flash or in RAM at any time, worked by hand: the drive of `chips.rs` (two dies, 100 us
//! a transfer, 50 us to read, 200 us to program, 700 us to erase).

use super::chips::{chip, cleaning, ends, flash_of, op};
use crate::common::*;
use flashwright_block::Seed;
use flashwright_ftl::FlashOp;
use flashwright_ftl::OpKind::{self, Erase, Program, Read};
use flashwright_nand::{BlockId, Ppn};
use flashwright_ssd::DriveConfig;
use flashwright_ssd::engine::{Awaits, Chips, EndedOp, OpClass, Superseded, Unfinished};

/// A page is copied out of block 0 into one of the other die, and block 0 is erased in the same breath. The copy is on flash at 450,
/// so the erase runs from 450 to 1,150; its own die would be free for it at 150.
#[test]
fn a_block_is_erased_once_its_copies_are_on_flash() {
    let moves = [cleaning(Read, 0), FlashOp { after: 1, ..cleaning(Program, 48) }];
    let erase = [cleaning(Erase, 0)];
    for order in ["timing.die-order=fifo", "timing.die-order=by-class"] {
        let config = chip(&[order, "chips.suspends=erases"]);
        assert_eq!(ends(&config, &[(0, &moves), (0, &erase)]), [450.0, 1_150.0], "{order}");
        // A block from which nothing was copied need not wait: it takes the die when the read has left.
        assert_eq!(ends(&config, &[(0, &moves), (0, &[cleaning(Erase, 6)])]), [450.0, 850.0], "{order}");
        // What the erase waited for is forgotten: the next erase of the block waits for nothing but this one.
        assert_eq!(ends(&config, &[(0, &moves), (0, &erase), (0, &erase)])[2], 1_850.0, "{order}");
    }
    // By class a write of the host, for the die of the copy, goes first: it loads while the copy is read and leaves, and ends
    // at 350. The copy loads from 350, is on flash at 650, and then block 0 is erased.
    let config = chip(&["timing.die-order=by-class"]);
    let write = [op(Program, 54)];
    assert_eq!(ends(&config, &[(0, &moves), (0, &erase), (0, &write)]), [600.0, 1_300.0, 300.0]);
}

/// The same on a drive whose RAM collects units of two planes: the erase waits for the programs of the units that are complete,
/// and not for the page that RAM keeps until its unit is.
#[test]
fn pages_in_protected_ram_hold_no_erase() {
    let config = chip(&["geometry.planes-per-die=2", "geometry.superblock=die", "chips.write-ram=64 KiB"]);
    // Block 0 has pages 0 to 11 on die 0; page 96 is the first of die 1.
    let copy = |from, to| [cleaning(Read, from), FlashOp { after: 1, ..cleaning(Program, to) }];
    let two = [&copy(0, 96)[..], &copy(1, 97), &[cleaning(Erase, 0)]].concat();
    let as_work = |ops: &[FlashOp]| {
        let mut engine = Chips::new(&config, 0, Seed(1), ());
        engine.issue(0, 0, ops, Awaits::Work, &flash_of(&config));
        engine.next_completion(u64::MAX).unwrap().1 as f64 / 1_000.0
    };
    // Both are read at once by 250, loaded by 450 and on flash at 650.
    assert_eq!(as_work(&two), 650.0 + 700.0);
    let three = [&two[..4], &copy(2, 98), &two[4..]].concat();
    // The third is sensed from 250 to 300 and leaves after the first two have loaded, from 450 to 550. Its unit is never full.
    assert_eq!(as_work(&three), 650.0 + 700.0);
}

/// Page 0 is written anew as page 48 of the other die, and block 0 erased: without RAM the old page stays until the new one is on
/// flash, at 300. A RAM that survives a power cut has the new one at once.
#[test]
fn a_superseded_page_stays_until_the_new_one_is_on_flash() {
    let ops = [op(Program, 48), cleaning(Erase, 0)];
    let superseded = [Superseded { at: 0, block: BlockId(0) }];
    let erased = |settings: &[&str], superseded: &[Superseded]| {
        let config = chip(settings);
        let mut engine = Chips::new(&config, 0, Seed(1), ());
        engine.issue_superseding(0, 0, &ops, superseded, Awaits::Work, &flash_of(&config));
        engine.next_completion(u64::MAX).unwrap().1 as f64 / 1_000.0
    };
    assert_eq!(erased(&["chips.cache-read=true"], &superseded), 1_000.0);
    assert_eq!(erased(&["chips.cache-read=true"], &[]), 700.0);
    assert_eq!(erased(&["chips.write-ram=64 KiB"], &superseded), 700.0);
}

/// Two pages of die 0 are copied to die 1. With RAM for both, the second is read while the first is programmed, from 150 on, and loads
/// when that ends at 450; with RAM for one it is read only then.
#[test]
fn a_copy_takes_room_from_its_read_to_its_program() {
    let copies: Vec<FlashOp> = [(0, 48), (6, 54)]
        .into_iter()
        .flat_map(|(from, to)| [cleaning(Read, from), FlashOp { after: 1, ..cleaning(Program, to) }])
        .collect();
    let with = |ram: &str| ends(&chip(&[ram, "chips.cache-read=true"]), &[(0, &copies)]);
    assert_eq!(with("chips.copy-ram=0 B"), [750.0]);
    assert_eq!(with("chips.copy-ram=8 KiB"), [750.0]);
    assert_eq!(with("chips.copy-ram=4 KiB"), [450.0 + 50.0 + 100.0 + 100.0 + 200.0]);
}

/// Pages of one row of two planes are read together, so RAM for two rows takes them in six reads. RAM for two and a half has the first
/// page of the third row read by itself.
#[test]
fn pages_that_are_read_together_take_room_together() {
    let with = |ram: &str| {
        let config = chip(&["geometry.planes-per-die=2", "geometry.superblock=die", "chips.write-ram=64 KiB", ram]);
        let copies: Vec<FlashOp> =
            (0..12).flat_map(|at| [cleaning(Read, at), FlashOp { after: 1, ..cleaning(Program, 96 + at) }]).collect();
        let mut engine = Chips::new(&config, 0, Seed(1), ());
        engine.issue(0, 0, &copies, Awaits::Work, &flash_of(&config));
        (engine.next_completion(u64::MAX).unwrap().1 / 1_000, engine.figures().array_reads)
    };
    // Each row but the first leaves while the one before is programmed: 250 and six times 400.
    assert_eq!([with("chips.copy-ram=0 B"), with("chips.copy-ram=16 KiB")], [(2_650, 6), (2_650, 6)]);
    assert_eq!(with("chips.copy-ram=20 KiB").1, 7);
}

/// The firmware prepares pages that cleaning moves one after the other. At 30 us a page the first copy is read from 30, and the second, ready
/// at 60, when its die is free at 180: 30 us later than without. At 300 us the second is read from 600: 50 + 100 + 100 + 200.
#[test]
fn the_firmware_takes_its_time_for_each_copied_page() {
    let copies: Vec<FlashOp> = [(0, 48), (6, 54)]
        .into_iter()
        .flat_map(|(from, to)| [cleaning(Read, from), FlashOp { after: 1, ..cleaning(Program, to) }])
        .collect();
    let with = |time: &str| ends(&chip(&[time]), &[(0, &copies)]);
    assert_eq!(with("chips.copy-overhead=30 us"), [780.0]);
    assert_eq!(with("chips.copy-overhead=300 us"), [1_050.0]);
    // With RAM for one page the second is prepared once that has room, at 480.
    let both = chip(&["chips.copy-overhead=30 us", "chips.copy-ram=4 KiB"]);
    assert_eq!(ends(&both, &[(0, &copies)]), [480.0 + 30.0 + 450.0]);
    // Reads and writes of the host take none.
    let config = chip(&["chips.copy-overhead=300 us"]);
    assert_eq!(ends(&config, &[(0, &[op(Program, 0)]), (0, &[op(Read, 48)])]), [300.0, 200.0]);
    // Two pages that are read together are read once both are prepared, at 60: 50, four transfers and 200 more.
    let planes = chip(&[
        "geometry.planes-per-die=2",
        "geometry.superblock=die",
        "chips.write-ram=64 KiB",
        "chips.copy-overhead=30 us",
    ]);
    let row: Vec<FlashOp> =
        (0..2).flat_map(|at| [cleaning(Read, at), FlashOp { after: 1, ..cleaning(Program, 96 + at) }]).collect();
    let mut engine = Chips::new(&planes, 0, Seed(1), ());
    engine.issue(0, 0, &row, Awaits::Work, &flash_of(&planes));
    assert_eq!(engine.next_completion(u64::MAX).unwrap().1, 710_000);
    assert_eq!(engine.figures().array_reads, 1);
}

/// Reads first, and the others as they came: a write waits behind the cleaning that was issued before it, where by class it would pass.
#[test]
fn writes_wait_behind_earlier_cleaning_where_reads_alone_go_first() {
    // Die 0 erases block 0 until 700; then block 1 is to be erased, block 2 written, and block 3 read.
    let list: [(u64, &[FlashOp]); 4] =
        [(0, &[cleaning(Erase, 0)]), (10, &[cleaning(Erase, 6)]), (20, &[op(Program, 12)]), (30, &[op(Read, 18)])];
    let of = |order: &str| ends(&chip(&[order]), &list);
    assert_eq!(of("timing.die-order=reads-first"), [700.0, 1_550.0, 1_850.0, 850.0]);
    assert_eq!(of("timing.die-order=by-class"), [700.0, 1_850.0, 1_150.0, 850.0]);
}

/// Page 0 is programmed from 0 to 300. A trim of 32 KiB at 100 takes 80 us at 409.6 MB/s, a second one as long behind it, and the page written
/// behind them, to the other die, loads from 260.
#[test]
fn a_trim_holds_the_dies() {
    use flashwright_block::{BlockDevice, Nanos, Request, RequestKind};
    use flashwright_ssd::Ssd;
    let run = |rate: &str| {
        let settings = ["timing.die-order=reads-first", "geometry.blocks-per-plane=12", "capacity.utilization=0.4"];
        let mut ssd = Ssd::new(&chip(&[&settings[..], &[rate]].concat()), Seed(1), true).unwrap();
        let at = |at: u64, kind, first, count, ssd: &Ssd| Request {
            arrival: Nanos(at * 1_000),
            ..pages(ssd, kind, first, count)
        };
        let list = [
            at(0, RequestKind::Write, 0, 1, &ssd),
            at(100, RequestKind::Trim, 8, 8, &ssd),
            at(100, RequestKind::Trim, 16, 8, &ssd),
            at(101, RequestKind::Write, 1, 1, &ssd),
        ];
        let mut ends: Vec<(u64, u64)> =
            list.iter().map(|request| ssd.submit(*request).unwrap().0).map(|tag| (tag, 0)).collect();
        for done in drain(&mut ssd).unwrap() {
            ends[usize::try_from(done.tag.0).unwrap()].1 = done.end.0 / 1_000;
        }
        ends.into_iter().map(|(_, end)| end).collect::<Vec<u64>>()
    };
    assert_eq!(run("chips.trim-rate=409.6 MB/s"), [300, 180, 260, 560]);
    assert_eq!(run("chips.trim-rate=none"), [300, 100, 100, 401]);
}

/// RAM for one page: the second write goes to the other die, but is not programmed before the first is on flash, at 300. So it loads
/// from then on and is on flash at 600, when the third is done.
#[test]
fn a_write_without_room_is_not_programmed() {
    let config = chip(&["chips.write-ram=4 KiB"]);
    let writes = [[op(Program, 0)], [op(Program, 48)], [op(Program, 1)]];
    let list: Vec<(u64, &[FlashOp])> = writes.iter().map(|ops| (0, &ops[..])).collect();
    assert_eq!(ends(&config, &list), [0.0, 300.0, 600.0]);
    // A request larger than the RAM goes page by page.
    let large = writes.concat();
    assert_eq!(ends(&config, &[(0, &large)]), [600.0]);
}

/// Drives of all kinds with as little RAM as they take: every request ends, whatever waits for room, for erases and for copies.
#[test]
fn little_ram_never_stops_a_drive() {
    use flashwright_block::{BlockDevice, RequestKind, chance};
    use flashwright_ssd::Ssd;
    for seed in 0..24 {
        let mut rng = rng(seed);
        let superblock = *pick(&mut rng, &["block", "die", "drive"]);
        let programming = *pick(&mut rng, &["page", "one-shot", "two-pass"]);
        let order = *pick(&mut rng, &["fifo", "by-class", "reads-first"]);
        let schedule = *pick(&mut rng, &["foreground", "rate-limited", "background"]);
        let placement = *pick(&mut rng, &["single", "gc-separate"]);
        let settings = [
            "geometry.planes-per-die=2".to_owned(),
            "geometry.blocks-per-plane=24".to_owned(),
            "geometry.bits-per-cell=2".to_owned(),
            "capacity.utilization=0.6".to_owned(),
            "gc.free-blocks-min=2".to_owned(),
            format!("geometry.mapping-unit={} KiB", pick(&mut rng, &[2, 4])),
            format!("geometry.superblock={superblock}"),
            format!("chips.programming={programming}"),
            format!("timing.die-order={order}"),
            format!("gc.schedule={schedule}"),
            format!("placement.policy={placement}"),
            "chips.first-pass=60 us".to_owned(),
            format!("chips.copy-overhead={} us", pick(&mut rng, &[0, 7])),
            "chips.write-ram=1 MiB".to_owned(),
        ];
        let config = config(&settings);
        // The least that validation accepts.
        let least = |key: &str| {
            (1..).map(|kib| format!("{key}={} KiB", 4 * kib)).find(|setting| {
                config.with_settings(&[setting]).is_ok_and(|config| Ssd::new(&config, Seed(1), false).is_ok())
            })
        };
        let ram = [least("chips.write-ram").unwrap(), least("chips.copy-ram").unwrap()];
        let mut ssd = Ssd::new(&config.with_settings(&ram).unwrap(), Seed(seed), true).unwrap();
        let logical = ssd.logical_pages();
        fill(&mut ssd, logical);
        let done = closed_loop(&mut ssd, 16, 3_000, |ssd| {
            let kind = if chance(&mut rng, 0.8) { RequestKind::Write } else { RequestKind::Read };
            let first = draw(&mut rng, logical);
            pages(ssd, kind, first, 1 + draw(&mut rng, 40.min(logical - first)))
        });
        assert_eq!((done.len(), ssd.in_flight()), (3_000, 0), "seed {seed}: {settings:?}, {ram:?}");
        assert_eq!(ssd.audit(), []);
        assert!(ssd.now().0 > 0);
    }
}

/// What was reported, in microseconds: kind, die, page, start and end.
type Reported = (OpKind, u32, Option<u32>, u64, u64);

/// Issues lists of operations, runs up to `until`, and answers what was reported and what has begun and not ended.
fn operations_heard(
    config: &DriveConfig,
    requests: &[(u64, &[FlashOp])],
    until: u64,
) -> (Vec<Reported>, Vec<Unfinished>) {
    let mut engine = Chips::new(config, 0, Seed(1), Vec::<EndedOp>::new());
    for (at, ops) in requests {
        while engine.next_completion(at * 1_000).is_some() {}
        engine.issue(at * 1_000, 0, ops, Awaits::Request, &flash_of(config));
    }
    while engine.next_completion(until * 1_000).is_some() {}
    let of = |op: &EndedOp| (op.kind, op.die, op.ppn.map(|ppn| ppn.0), op.start.0 / 1_000, op.end.0 / 1_000);
    (engine.observer.iter().map(of).collect(), engine.unfinished(until * 1_000))
}

fn unfinished(kind: OpKind, die: u32, first: u32, pages: u32) -> Unfinished {
    Unfinished { kind, die, ppn: Some(Ppn(first)), pages }
}

/// A read of block 1 comes while block 0 is erased, at 100: it senses from 120 to 170 and leaves by 270; the erase works from 300 to
/// 900. The program of the other die loads until 100, and again behind the read until 370.
#[test]
fn the_observer_hears_when_arrays_worked() {
    let config = chip(&["chips.suspends=erases", "chips.suspend=20 us", "chips.resume=30 us"]);
    let (erase, read, program) = ([cleaning(Erase, 0)], [op(Read, 6)], [op(Program, 48), op(Program, 49)]);
    let list: [(u64, &[FlashOp]); 3] = [(0, &erase), (0, &program), (100, &read)];
    let all = [
        (Read, 0, None, 120, 270),
        (Program, 1, Some(48), 100, 300),
        (Program, 1, Some(49), 400, 600),
        (Erase, 0, Some(0), 300, 900),
    ];
    assert_eq!(operations_heard(&config, &list, 1_000), (all.to_vec(), vec![]));
    let (first, second) = (unfinished(Program, 1, 48, 1), unfinished(Program, 1, 49, 1));
    let erased = unfinished(Erase, 0, 0, 0);
    // At 99 the first program has loaded in part; then it runs; at 350 the second loads. The erase is unfinished while it is
    // suspended, and while it resumes.
    for (until, reported, expected) in [
        (99, 0, vec![erased]),
        (150, 0, vec![first, erased]),
        (290, 1, vec![erased, first]),
        (350, 2, vec![erased]),
        (500, 2, vec![erased, second]),
        (900, 4, vec![]),
    ] {
        let (heard, mut found) = operations_heard(&config, &list, until);
        found.sort_by_key(|op| expected.iter().position(|other| other == op));
        assert_eq!((heard.len(), found), (reported, expected), "at {until}");
    }
}

/// Without pipelining a program holds the bus for 300 us, and its array works for the last 200 of them.
#[test]
fn arrays_work_after_transfers_without_pipelining_too() {
    let config = chip(&["timing.pipelined=false", "timing.die-order=by-class"]);
    let program = [op(Program, 0)];
    let at = |until| operations_heard(&config, &[(0, &program)], until);
    assert_eq!(at(99), (vec![], vec![]));
    assert_eq!(at(101), (vec![], vec![unfinished(Program, 0, 0, 1)]));
    assert_eq!(at(301), (vec![(Program, 0, Some(0), 100, 300)], vec![]));
}

/// Two word lines in two passes, as in `chips.rs`: coarse 0 from 200 to 260, coarse 1 by 520, exact 0 from 720 to 920, exact 1 from
/// 1,120 to 1,320. Each word line is unfinished from its first pass to the end of its second, and its pages are reported together.
#[test]
fn every_page_of_a_unit_is_reported_after_its_last_pass() {
    let config = chip(&[
        "geometry.bits-per-cell=2",
        "chips.programming=two-pass",
        "chips.first-pass=60 us",
        "chips.write-ram=64 KiB",
        "geometry.pages-per-block=4",
    ]);
    let lines: Vec<FlashOp> = (0..4).map(|page| op(Program, page)).collect();
    let at = |until| {
        let (heard, mut found) = operations_heard(&config, &[(0, &lines)], until);
        found.sort_by_key(|op| op.ppn);
        (heard, found.iter().map(|op| op.ppn.unwrap().0).collect::<Vec<_>>())
    };
    assert_eq!(at(199), (vec![], vec![]));
    assert_eq!(at(250), (vec![], vec![0]));
    assert_eq!(at(300), (vec![], vec![0]), "between its passes");
    assert_eq!(at(500), (vec![], vec![0, 2]));
    assert_eq!(at(800), (vec![], vec![0, 2]));
    let mut programs = vec![(Program, 0, Some(0), 720, 920), (Program, 0, Some(1), 720, 920)];
    assert_eq!(at(1_000), (programs.clone(), vec![2]));
    programs.extend([(Program, 0, Some(2), 1_120, 1_320), (Program, 0, Some(3), 1_120, 1_320)]);
    assert_eq!(at(1_400), (programs, vec![]));
    // One line alone: it is never programmed exactly.
    let (heard, found) = reported_of_one_line(&config, &lines[..2]);
    assert_eq!((heard.len(), found), (0, vec![unfinished(Program, 0, 0, 2)]));
}

fn reported_of_one_line(config: &DriveConfig, line: &[FlashOp]) -> (Vec<Reported>, Vec<Unfinished>) {
    operations_heard(config, &[(0, line)], 10_000)
}

/// Parity names no page; the class and who waits are those of the operations.
#[test]
fn parity_and_classes_are_reported() {
    let config = chip(&["geometry.superblock=drive", "geometry.parity-dies=2"]);
    let mut engine = Chips::new(&config, 0, Seed(1), Vec::<EndedOp>::new());
    let slot = engine.issue(0, 0, &[op(Program, 0), cleaning(Program, 1)], Awaits::Request, &flash_of(&config));
    while engine.next_completion(u64::MAX).is_some() {}
    let found: Vec<_> = engine
        .observer
        .iter()
        .map(|op| (op.ppn.map(|ppn| ppn.0), op.class, op.die, op.request == u64::from(slot)))
        .collect();
    let (host, cleaning) = (OpClass::HostWrite, OpClass::Cleaning);
    let mut expected =
        [(Some(0), host, 0, true), (None, host, 1, false), (Some(1), cleaning, 1, true), (None, cleaning, 0, false)];
    expected.sort_by_key(|entry| found.iter().position(|other| other == entry));
    assert_eq!(found, expected);
}

/// A whole drive under load, as an observer hears it: at every erase, the pages that the log said were copied out of the block are on
/// flash, or in RAM.
#[test]
fn no_block_is_erased_before_its_copies_end() {
    for (order, ram) in [("by-class", "0 B"), ("fifo", "0 B"), ("by-class", "64 KiB")] {
        let config =
            chip(&[&format!("timing.die-order={order}"), &format!("chips.copy-ram={ram}"), "chips.cache-read=true"]);
        let mut engine = Chips::new(&config, 0, Seed(1), Vec::<EndedOp>::new());
        let mut rng = rng(7);
        // Each block of die 0 is copied to the same one of die 1 and erased, while the host writes die 1.
        let mut copied = Vec::new();
        for round in 0..7u32 {
            let (from, to) = (6 * round, 48 + 6 * round);
            let mut ops: Vec<FlashOp> = Vec::new();
            for page in 0..5 {
                ops.extend([cleaning(Read, from + page), FlashOp { after: 1, ..cleaning(Program, to + page) }]);
                copied.push((from, to + page));
            }
            ops.push(cleaning(Erase, from));
            let at = u64::from(round * draw(&mut rng, 900) * 1_000);
            while engine.next_completion(at).is_some() {}
            engine.issue(at, 0, &ops, Awaits::Work, &flash_of(&config));
            engine.issue(at, 0, &[op(Program, to + 5)], Awaits::Request, &flash_of(&config));
        }
        while engine.next_completion(u64::MAX).is_some() {}
        let end_of = |page: u32| engine.observer.iter().find(|op| op.ppn == Some(Ppn(page))).unwrap().end;
        for (from, to) in copied {
            let erase = engine.observer.iter().find(|op| op.kind == Erase && op.ppn == Some(Ppn(from))).unwrap();
            assert!(end_of(to) <= erase.start, "{order}, {ram}: page {to} ended at {:?}: {erase:?}", end_of(to));
        }
    }
}
