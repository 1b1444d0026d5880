//! Postmark and the profiles of Filebench: their counts are consistent, they end, and they are reproducible.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

use crate::support::{Device, in_blocks, play};
use flashwright_block::{Bytes, Nanos, RequestSource, Seed};
use flashwright_fs::{
    Application, Filebench, FilebenchSettings, Layout, Postmark, PostmarkSettings, Prepare, Profile, RequestUnit,
    Settings, System,
};
use std::collections::BTreeMap;

const SECTORS: u64 = 1 << 21; // 1 GiB

/// Figures by name, and a digest of all requests with their times.
fn run<A: Application>(app: A, settings: Settings) -> (BTreeMap<&'static str, f64>, u64, System<A>) {
    let mut system = System::new(app, settings, SECTORS, Seed(7)).unwrap();
    let mut digest = 0u64;
    play(&mut system, &mut Device::new(100_000), 1_000_000_000_000, |_, now, request, done| {
        let (kind, first, blocks) = in_blocks(request);
        for number in [now, kind as u64, first, u64::from(blocks), u64::from(done)] {
            digest = (digest ^ number).wrapping_mul(0x100_0000_01b3).rotate_left(23);
        }
    });
    assert_eq!(system.file_system().audit(), Vec::<String>::new());
    assert_eq!(system.file_system().dirty_pages(), (0, 0), "everything is written at the end");
    let figures = system.figures().unwrap().into_iter().collect();
    (figures, digest, system)
}

fn postmark(change: impl FnOnce(&mut PostmarkSettings)) -> (BTreeMap<&'static str, f64>, System<Postmark>) {
    let mut settings = PostmarkSettings { transactions: 2000, ..PostmarkSettings::default() };
    change(&mut settings);
    let (figures, _, system) = run(Postmark::new(settings, Seed(42)), Settings::default());
    (figures, system)
}

/// Each transaction reads or appends, then creates or deletes; whatever was made is deleted in the end.
#[test]
fn transactions_of_postmark_add_up() {
    let (figures, system) = postmark(|settings| settings.subdirectories = 10);
    let counts = system.application().counts();
    assert_eq!((counts.transactions, counts.created[0]), (2000, 500));
    assert_eq!(counts.created[1] + counts.deleted[0], 2000);
    assert_eq!(counts.created[0] + counts.created[1], counts.deleted[0] + counts.deleted[1]);
    // Fair biases: 1,000 of each, one sigma is 22. Appends fall out for files that are full.
    assert!((900..1100).contains(&counts.created[1]) && (900..1100).contains(&counts.read), "{counts:?}");
    assert!((850..1100).contains(&counts.appended), "{counts:?}");
    assert_eq!(figures["bytes_written"], counts.bytes_written as f64);
    // Sizes are even from 500 to 9,999 when made; 500 to 10,000 on the whole.
    let mean = counts.bytes_read as f64 / counts.read as f64;
    assert!((5000.0..8500.0).contains(&mean), "{mean}");
    assert!(figures["seconds"] > 0.0 && figures["seconds_with_sync"] >= figures["seconds"]);
    assert_eq!(figures["cache_pages_read"], figures["cache_page_hits"], "all fits in memory");
    assert_eq!(system.file_system().size(0), None);
}

/// Files of one size can't grow: no appends, and each file is written once.
#[test]
fn files_of_one_size_are_never_appended_to() {
    let (figures, system) = postmark(|settings| (settings.size_low, settings.size_high) = (64 << 10, 64 << 10));
    let counts = system.application().counts();
    assert_eq!(counts.appended, 0);
    assert_eq!(counts.bytes_written, (counts.created[0] + counts.created[1]) * (64 << 10));
    assert_eq!(counts.bytes_read, counts.read * (64 << 10));
    assert_eq!(figures["cache_pages_written"], counts.bytes_written as f64 / 4096.0);
    assert!(figures["cache_pages_dropped"] > 0.0, "files deleted within 5 s never reach the device");
}

#[test]
fn biases_of_postmark_leave_out_what_they_say() {
    let (_, system) = postmark(|settings| (settings.bias_read, settings.bias_create) = (Some(10), None));
    let counts = system.application().counts();
    assert_eq!((counts.read, counts.appended, counts.created[1], counts.deleted[0]), (2000, 0, 0, 0));
    let (_, system) = postmark(|settings| (settings.bias_read, settings.bias_create) = (None, Some(10)));
    let counts = system.application().counts();
    // The table holds twice the files at first: 500 more can be made, then nothing is.
    assert_eq!((counts.read, counts.appended, counts.created, counts.deleted[0]), (0, 0, [500, 500], 0));
}

fn filebench(profile: Profile, change: impl FnOnce(&mut FilebenchSettings)) -> (BTreeMap<&'static str, f64>, u64) {
    let mut settings = profile.settings();
    settings.files = settings.files.min(300);
    settings.duration = Nanos(2_000_000_000);
    change(&mut settings);
    let system = Settings { memory: Bytes(16 << 20), ..Settings::default() };
    let (figures, digest, _) = run(Filebench::new(profile, settings, Seed(3)), system);
    (figures, digest)
}

#[test]
fn profiles_run_their_time_and_repeat() {
    for profile in [Profile::Webserver, Profile::Fileserver, Profile::Oltp, Profile::Varmail] {
        let (figures, digest) = filebench(profile, |_| {});
        assert!((2.0..3.5).contains(&figures["seconds"]), "{profile:?}: {}", figures["seconds"]);
        assert!(figures["operations"] > 500.0 && figures["bytes_read"] > 0.0, "{profile:?}: {figures:?}");
        assert!(figures["device_write_requests"] > 0.0 && figures["bytes_written"] > 0.0, "{profile:?}: {figures:?}");
        assert_eq!(digest, filebench(profile, |_| {}).1, "{profile:?}");
        let seconds = figures["seconds"];
        assert!((figures["operations_per_s"] * seconds / figures["operations"] - 1.0).abs() < 1e-9);
    }
}

/// Ten files of 16 KiB on average to each append of 8 KiB on average.
#[test]
fn a_web_server_mostly_reads() {
    let (figures, _) = filebench(Profile::Webserver, |settings| settings.threads = 16);
    let ratio = figures["bytes_read"] / figures["bytes_written"];
    assert!((16.0..25.0).contains(&ratio), "{ratio}");
    assert_eq!(figures["files_created"], 0.0);
}

/// Writers of the file server stay within what readers and deletions leave: as many files made as deleted.
#[test]
fn a_file_server_keeps_its_number_of_files() {
    let (figures, _) = filebench(Profile::Fileserver, |_| {});
    let (created, deleted) = (figures["files_created"], figures["files_deleted"]);
    assert!(created > 100.0 && (created - deleted).abs() <= 60.0 + 50.0, "{created} {deleted}");
}

/// Writers of data take 1,000 units for 100 writes: ten reads let one write of data through, besides the first round.
#[test]
fn oltp_is_paced_by_its_reads() {
    let (figures, _) = filebench(Profile::Oltp, |settings| settings.duration = Nanos(8_000_000_000));
    let reads = figures["bytes_read"] / 2048.0;
    let log_writes = reads / 3200.0 + 1.0;
    let data_writes = (figures["bytes_written"] - log_writes * 262_144.0) / 2048.0;
    assert!(reads > 10_000.0, "{reads}");
    let expected = reads / 10.0 + 10.0 * 100.0;
    assert!((data_writes - expected).abs() < 0.3 * expected, "{data_writes} {expected}");
}

/// Placed files lie on the device without having been written.
#[test]
fn placed_files_cost_no_writes() {
    let app = |prepare| {
        let settings = FilebenchSettings { files: 100, prepare, duration: Nanos(0), ..Profile::Webserver.settings() };
        Filebench::new(Profile::Webserver, settings, Seed(3))
    };
    let written = |prepare| {
        let mut system = System::new(app(prepare), Settings::default(), SECTORS, Seed(7)).unwrap();
        let mut blocks = 0;
        play(&mut system, &mut Device::new(1000), u64::MAX, |system, _, request, done| {
            let (_, first, count) = in_blocks(request);
            let data = (0..100).any(|file| {
                system
                    .file_system()
                    .runs(file)
                    .iter()
                    .any(|run| u64::from(run.physical) == first && run.blocks >= count)
            });
            blocks += u64::from(data && !done) * u64::from(count);
        });
        blocks
    };
    assert!(written(Prepare::Written) > 300);
    assert_eq!(written(Prepare::Placed), 0);
}

/// The unit of requests changes what the device sees, not what is written.
#[test]
fn runs_are_the_same_blocks_in_fewer_requests() {
    let with = |request_unit, layout| {
        let settings = PostmarkSettings {
            files: 20,
            transactions: 100,
            size_low: 1 << 20,
            size_high: 1 << 20,
            ..PostmarkSettings::default()
        };
        let fs = Settings { request_unit, layout, memory: Bytes(64 << 20), ..Settings::default() };
        run(Postmark::new(settings, Seed(1)), fs).0
    };
    let (block, run) = (with(RequestUnit::Block, Layout::Ext3), with(RequestUnit::Run, Layout::Ext3));
    assert_eq!(block["device_write_bytes_mean"], 4096.0);
    assert!(run["device_write_bytes_mean"] > 100_000.0);
    let ratio = run["device_write_bytes"] / block["device_write_bytes"];
    assert!((0.8..1.25).contains(&ratio), "{ratio}");
    // An indirect block takes the alignment away: with extents runs are whole.
    assert!(with(RequestUnit::Run, Layout::Extents)["device_write_bytes_mean"] > run["device_write_bytes_mean"]);
}

#[test]
fn a_device_too_small_is_refused_in_one_line() {
    let error =
        System::new(Postmark::new(PostmarkSettings::default(), Seed(1)), Settings::default(), 64, Seed(1)).unwrap_err();
    let text = "file system: found a device of 32 KiB, expected one of at least 16 MiB and at most 16 TiB";
    assert_eq!(error.to_string(), text);
    let settings = PostmarkSettings { size_low: 8 << 20, size_high: 8 << 20, ..PostmarkSettings::default() };
    let error = Postmark::new(settings, Seed(1)).check_room(1 << 30).unwrap_err().to_string();
    assert!(
        error.starts_with("files: found ") && error.contains("8 MiB on a device of 1 GiB, expected one of at"),
        "{error}"
    );
    assert!(!error.contains('\n'));
    let settings = FilebenchSettings { size: 16 << 20, ..Profile::Webserver.settings() };
    assert!(Filebench::new(Profile::Webserver, settings, Seed(1)).check_room(8 << 30).is_err());
    // What fills up in spite of that says so.
    let settings = PostmarkSettings {
        files: 100,
        transactions: 0,
        size_low: 20 << 20,
        size_high: 20 << 20,
        ..PostmarkSettings::default()
    };
    let mut system = System::new(Postmark::new(settings, Seed(1)), Settings::default(), SECTORS, Seed(1)).unwrap();
    let full = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        play(&mut system, &mut Device::new(1000), u64::MAX, |_, _, _, _| {});
    }));
    let text = format!("{:?}", full.unwrap_err().downcast_ref::<String>().unwrap());
    assert!(text.contains("found no free block"), "{text}");
}
