//! The model with extents against the real Postmark on ext4, recorded by `tools/record-postmark.sh` on
//! Linux 6.18: 50 files of 1 MiB in 10 directories, 200 transactions, calls of 4 KiB, 16 MiB dirty at most, sync at the end.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

use crate::support::{Device, play};
use flashwright_block::{Bytes, RequestSource, Seed};
use flashwright_fs::{Layout, Postmark, PostmarkSettings, Settings, System};

#[test]
fn extents_write_what_ext4_was_seen_to_write() {
    let settings = PostmarkSettings {
        files: 50,
        subdirectories: 10,
        transactions: 200,
        size_low: 1 << 20,
        size_high: 1 << 20,
        read_block: 4096,
        write_block: 4096,
        ..PostmarkSettings::default()
    };
    let fs = Settings {
        layout: Layout::Extents,
        memory: Bytes(160 << 20),
        request_max: Bytes(1280 << 10),
        ..Settings::default()
    };
    let (mut dropped, mut mean, mut small, mut metadata_reads, mut contiguous) = (0.0, 0.0, 0.0, 0.0, 0.0);
    let seeds = 10;
    for seed in 0..seeds {
        let mut system =
            System::new(Postmark::new(settings.clone(), Seed(seed)), fs.clone(), 2 << 21, Seed(seed)).unwrap();
        let (mut small_requests, mut requests) = (0.0, 0.0);
        play(&mut system, &mut Device::new(500_000), u64::MAX, |_, _, request, done| {
            if done && request.kind == flashwright_block::RequestKind::Write {
                requests += 1.0;
                small_requests += f64::from(u8::from(request.sectors <= 64));
            }
        });
        let figures: std::collections::BTreeMap<&str, f64> = system.figures().unwrap().into_iter().collect();
        dropped += figures["cache_pages_dropped"] / figures["cache_pages_written"] / seeds as f64;
        mean += figures["device_write_bytes_mean"] / seeds as f64;
        contiguous += figures["device_write_contiguous"] / seeds as f64;
        small += small_requests / requests / seeds as f64;
        metadata_reads += figures["device_read_requests"] / seeds as f64;
    }
    // Recorded twice: 11 and 16 % of the pages were deleted before they went.
    assert!((0.08..0.25).contains(&dropped), "{dropped}");
    // Recorded 0.84 and 0.78, where a quarter of all requests are blocks of the journal, one each.
    assert!((0.75..1.0).contains(&contiguous), "{contiguous}");
    // Recorded without those: 136 requests of 948 kB, 160 of 764 kB.
    assert!((750_000.0..1_100_000.0).contains(&mean), "{mean}");
    // Recorded 6 blocks of metadata read, and no data, as all of it is in memory.
    assert!((1.0..=6.0).contains(&metadata_reads), "{metadata_reads}");
    assert!(small < 0.05, "{small}");
}
