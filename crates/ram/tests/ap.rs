//! Adaptive partitioning on workloads whose outcome is known (algorithms 3.9).

#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers of tests count as library code

use crate::common::*;
use flashwright_block::{Bytes, Seed, chance};
use flashwright_ftl::{GcSettings, SchemeName};
use flashwright_ram::{ApSettings, ManagerName, ManagerSettings, RamSettings};

const LOGICAL: u32 = 8192;

fn drive(scheme: SchemeName, charge: bool, count_gc: bool) -> Result<Drive, Vec<String>> {
    with(scheme, charge, ApSettings { count_gc, ..ApSettings::default() })
}

fn with(scheme: SchemeName, charge: bool, ap: ApSettings) -> Result<Drive, Vec<String>> {
    let ap = ApSettings { window: 50, step: Bytes(4 * PAGE), ..ap };
    let settings = RamSettings {
        manager: Some(ManagerName::Ap),
        size: Bytes(96 * PAGE),
        charge_metadata: charge,
        managers: ManagerSettings { ap, ..ManagerSettings::default() },
        ..RamSettings::default()
    };
    Drive::new(&settings, flash(scheme, 800, 16, LOGICAL, 64, &GcSettings::default()), LOGICAL)
}

fn buffer(drive: &Drive) -> u32 {
    drive.ram.figures().partition.last().unwrap().buffer_pages
}

/// A loop of writes over 50 pages with a buffer of 48: each page left one or two departures ago. The second window gives the
/// buffer a step; in the third two pages come back that are still outside, which gives it another; then nothing is missed.
#[test]
fn a_loop_a_little_larger_than_the_buffer_makes_it_grow() {
    for count_gc in [false, true] {
        let mut drive = drive(SchemeName::Dftl, false, count_gc).unwrap();
        assert_eq!(buffer(&drive), 48);
        (0..600).for_each(|at| drive.write(at % 50 * 160, 1));
        assert_eq!(buffer(&drive), 56);
        assert!(drive.extra("ghost_buffer_hits") > 40.0);
        assert_eq!((drive.extra("buffer_grown_steps"), drive.extra("map_grown_steps")), (2.0, 0.0));
        drive.assert_clean("afterwards");
    }
}

/// Reads anywhere: a step of entries is 64 times as many as a step of pages, so they are what comes back.
#[test]
fn random_reads_make_the_table_grow() {
    let mut drive = drive(SchemeName::Dftl, false, false).unwrap();
    let mut rng = Seed(1).stream("reads");
    (0..LOGICAL / 16).for_each(|block| drive.write(block * 16, 16));
    drive.ram.reset_figures();
    (0..6000).for_each(|_| drive.read(draw(&mut rng, LOGICAL), 1));
    assert_eq!(buffer(&drive), 4, "all but a step");
    assert!(drive.extra("ghost_map_hits") > 100.0 && drive.extra("map_grown_steps") >= 11.0);
    drive.assert_clean("afterwards");
}

/// With reads kept, pages read again come from the buffer; without, only what is written does, and reads of what left it speak
/// for a larger one all the same.
#[test]
fn reads_are_kept_or_not() {
    for keeps_reads in [true, false] {
        let mut drive = with(SchemeName::Dftl, false, ApSettings { keeps_reads, ..ApSettings::default() }).unwrap();
        // Twenty pages that have left for flash, read twice.
        (0..20).for_each(|at| drive.write(3 + at * 160, 1));
        (0..50).for_each(|at| drive.write(80 + at * 160, 1));
        (0..20).for_each(|at| drive.read(3 + at * 160, 1));
        drive.ram.reset_figures();
        (0..20).for_each(|at| drive.read(3 + at * 160, 1));
        assert_eq!(drive.ram.figures().read_hits, if keeps_reads { 20 } else { 0 });
        // More pages in turn than RAM has: of those that left the last are read first.
        (0..100).for_each(|at| drive.write(4096 + at * 16, 1));
        let before = drive.extra("ghost_buffer_hits");
        (0..100).rev().for_each(|at| drive.read(4096 + at * 16, 1));
        assert!(drive.extra("ghost_buffer_hits") > before, "keeps reads: {keeps_reads}");
        drive.assert_clean("afterwards");
    }
}

/// Whatever comes, both sides make up the RAM, and keep a step.
#[test]
fn the_total_never_changes() {
    let mut drive = drive(SchemeName::Dftl, false, true).unwrap();
    let mut rng = Seed(2).stream("total");
    for step in 0..20_000 {
        let space = [LOGICAL, 60, 700][step / 1500 % 3];
        let lpn = draw(&mut rng, space);
        if chance(&mut rng, 0.6) {
            drive.write(lpn, 1)
        } else {
            drive.read(lpn, 1)
        }
        if chance(&mut rng, 0.01) {
            drive.trim(lpn, 1);
        }
    }
    let points = drive.ram.figures().partition;
    assert!(points.len() > 10, "{points:?}");
    for point in &points {
        assert_eq!(u64::from(point.buffer_pages) + u64::from(point.map_entries) / 64, 96, "{point:?}");
        assert!(point.buffer_pages >= 4 && point.map_entries >= 256);
    }
    drive.assert_clean("afterwards");
}

/// 12 B a page held leave 93 pages; the ghosts' identifiers, 4 pages and 256 entries of 8 B, take 2,080 B more: 5 pages.
#[test]
fn ghosts_are_charged() {
    let drive = drive(SchemeName::Dftl, true, false).unwrap();
    let point = drive.ram.figures().partition[0];
    assert_eq!(u64::from(point.buffer_pages) + u64::from(point.map_entries) / 64, 93 - 5);
}

/// Without a table in RAM all of it is page cache.
#[test]
fn page_mapping_has_nothing_to_share() {
    let mut drive = drive(SchemeName::Page, false, false).unwrap();
    (0..600).for_each(|at| drive.write(at % 96 * 80, 1));
    let figures = drive.ram.figures();
    assert_eq!((figures.write_hits, figures.destages, figures.partition.len()), (504, 0, 0));
}
