//! What the engine of chip commands keeps on flash or in RAM at any time, worked by hand: the drive of `chips.rs` (two dies, 100 us
//! a transfer, 50 us to read, 200 us to program, 700 us to erase).

use super::chips::{chip, cleaning, ends, flash_of, op};
use crate::common::*;
use flashwright_block::Seed;
use flashwright_ftl::FlashOp;
use flashwright_ftl::OpKind::{Erase, Program, Read};
use flashwright_nand::BlockId;
use flashwright_ssd::engine::{Awaits, Chips, Superseded};

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
        let mut engine = Chips::new(&config, 0, Seed(1));
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
        let mut engine = Chips::new(&config, 0, Seed(1));
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
        let mut engine = Chips::new(&config, 0, Seed(1));
        engine.issue(0, 0, &copies, Awaits::Work, &flash_of(&config));
        (engine.next_completion(u64::MAX).unwrap().1 / 1_000, engine.figures().array_reads)
    };
    // Each row but the first leaves while the one before is programmed: 250 and six times 400.
    assert_eq!([with("chips.copy-ram=0 B"), with("chips.copy-ram=16 KiB")], [(2_650, 6), (2_650, 6)]);
    assert_eq!(with("chips.copy-ram=20 KiB").1, 7);
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
        let order = *pick(&mut rng, &["fifo", "by-class"]);
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
