//! Managers that share the RAM with the mapping table, on drives as full as DFTL allows.
//!
//! The conformance suite runs them on drives whose whole table fits one page, so that nothing of it ever leaves. Here a
//! translation page holds eight entries, RAM a part of the table, and windows are short: the border moves all the time.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers of tests count as library code

use crate::common::*;
use flashwright_block::{IoError, Request, RequestKind, Rng, Seed, chance};
use flashwright_ftl::{MapCacheName, VictimName};
use flashwright_ssd::Ssd;

/// Draws a drive, full to the last page that the scheme accepts, with a manager that shares its RAM with the table.
fn drive(rng: &mut Rng, seed: u64, more: &[String]) -> Ssd {
    let (channels, planes) = *pick(rng, &[(1, 1), (1, 1), (2, 1), (1, 2)]);
    let (blocks, np) = (20 + draw(rng, 12), *pick(rng, &[2, 4, 8]));
    let manager = *pick(rng, &["ap", "gc-arm", "gc-arm"]);
    let replacement = if manager == "ap" { pick(rng, MapCacheName::ALL).listed().name } else { "grouped" };
    let settings = [
        shape(channels, 1, planes, blocks, np, 0),
        small_policies(),
        vec![
            "geometry.page-size=\"512 B\"".to_owned(),
            "ftl.scheme=dftl".to_owned(),
            "ftl.entry-bytes=64".to_owned(),
            format!("timing.model={}", pick(rng, &["none", "parallel"])),
            format!("ftl.dftl.replacement={replacement}"),
            format!("ftl.dftl.grouped.keep-clean={}", pick(rng, &[true, false])),
            format!("ftl.dftl.batch-on-evict={}", pick(rng, &[true, false])),
            format!("ftl.dftl.same-page-read={}", pick(rng, &["separate", "shared"])),
            format!("gc.victim={}", pick(rng, VictimName::ALL).listed().name),
            format!("gc.free-blocks-min={}", 1 + draw(rng, 4)),
            format!("placement.policy={}", pick(rng, &["single", "gc-separate"])),
            format!("placement.allocation={}", pick(rng, &["dynamic", "dynamic", "static"])),
            format!("ram.manager={manager}"),
            format!("ram.size=\"{} B\"", 512 * (4 + draw(rng, 30))),
            format!("ram.power-protected={}", pick(rng, &[true, false])),
            "ram.ap.step=\"512 B\"".to_owned(),
            format!("ram.ap.window={}", 1 + draw(rng, 40)),
            format!("ram.ap.count-gc={}", pick(rng, &[true, false])),
            "ram.gc-arm.step=\"512 B\"".to_owned(),
            format!("ram.gc-arm.window={}", 1 + draw(rng, 40)),
            format!("ram.gc-arm.block-destage={}", pick(rng, &["own", "own", "append"])),
            format!("ram.gc-arm.randomness={}", pick(rng, &["fixed", "measured"])),
            format!("ram.gc-arm.tie={}", pick(rng, &["page", "block"])),
        ],
        more.to_vec(),
    ]
    .concat();
    (16..channels * planes * blocks * np)
        .rev()
        .find_map(|logical| {
            let size = [format!("capacity.logical=\"{} B\"", logical * 512)];
            Ssd::new(&config(&[&settings[..], &size[..]].concat()), Seed(seed), true).ok()
        })
        .unwrap_or_else(|| panic!("no size is taken: {settings:?}"))
}

fn request(rng: &mut Rng, ssd: &Ssd, space: u32) -> Request {
    let logical = ssd.logical_pages();
    let kind = match draw(rng, 40) {
        0 => return sectors(RequestKind::Flush, 0, 0),
        1..=2 => RequestKind::Trim,
        3..=10 => RequestKind::Read,
        _ => RequestKind::Write,
    };
    let first = draw(rng, space.clamp(1, logical));
    let count = if chance(rng, 0.3) { 1 + draw(rng, (logical - first).min(9)) } else { 1 };
    Request { fua: kind == RequestKind::Write && chance(rng, 0.03), ..pages(ssd, kind, first, count) }
}

/// Without wear no write fails; every read gives back what was written; buffer and table never take more than the RAM.
#[test]
fn full_drives_part_their_ram() {
    let (mut moves, mut blocks, mut evictions) = (0, 0, 0);
    for seed in 0..120 {
        let mut rng = rng(seed);
        let mut ssd = drive(&mut rng, seed, &["gc.invalidate=at-program".to_owned()]);
        let size = ssd.config().ram.size.0;
        for lpn in 0..ssd.logical_pages() {
            let write = pages(&ssd, RequestKind::Write, lpn, 1);
            perform(&mut ssd, write).unwrap_or_else(|error| panic!("seed {seed}, fill {lpn}: {error}"));
        }
        let mut space = 0;
        for step in 0..600 {
            if step % 60 == 0 {
                space = *pick(&mut rng, &[ssd.logical_pages(), 40, 6]);
            }
            let request = request(&mut rng, &ssd, space);
            perform(&mut ssd, request)
                .unwrap_or_else(|error| panic!("seed {seed}, step {step}: {error}\n{}", ssd.config().to_toml()));
            if step % 5 == 0 {
                assert_clean(&ssd, &format!("seed {seed}, step {step}"));
            }
        }
        assert_clean(&ssd, &format!("seed {seed}"));
        let (ram, cache) = (ssd.ram_figures().unwrap(), ssd.figures().mapping_cache.unwrap());
        for point in &ram.partition {
            let used = u64::from(point.buffer_pages) * 512 + u64::from(point.map_entries) * 8;
            assert!(
                used <= size && point.buffer_pages > 0 && point.map_entries > 0,
                "seed {seed}: {point:?} of {size} B"
            );
        }
        moves += ram.partition.len();
        blocks += ram.block_destages;
        evictions += cache.evictions;
        for lpn in 0..ssd.logical_pages() {
            let read = pages(&ssd, RequestKind::Read, lpn, 1);
            perform(&mut ssd, read).unwrap();
        }
        assert_clean(&ssd, &format!("seed {seed}, read back"));
    }
    assert!(moves > 500 && blocks > 500 && evictions > 5000, "{moves} moves, {blocks} blocks, {evictions} evictions");
}

/// With few cycles the drive ends with an error; what it acknowledged can still be read.
#[test]
fn worn_drives_end_with_their_data() {
    for seed in 0..40 {
        let mut rng = rng(1000 + seed);
        let more = [format!("wear.pe-cycles-max={}", 1 + seed % 5), "gc.invalidate=at-program".to_owned()];
        let mut ssd = drive(&mut rng, seed, &more);
        let mut failed = 0;
        for step in 0..20_000 {
            let space = ssd.logical_pages();
            let request = request(&mut rng, &ssd, space);
            match perform(&mut ssd, request) {
                Ok(_) => {}
                Err(IoError::WornOut { .. }) => failed += 1,
                Err(other) => panic!("seed {seed}, step {step}: {other}"),
            }
            if step % 16 == 0 || failed > 0 {
                assert_clean(&ssd, &format!("seed {seed}, step {step}"));
            }
            if failed > 30 {
                break;
            }
        }
        assert!(failed > 30, "seed {seed}: the drive outlives its cycles");
        for lpn in 0..ssd.logical_pages() {
            let read = pages(&ssd, RequestKind::Read, lpn, 1);
            perform(&mut ssd, read).unwrap();
        }
        assert_clean(&ssd, &format!("seed {seed}, read back"));
    }
}
