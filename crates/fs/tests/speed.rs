//! The cost of the model: requests per second of processor time, on a device that costs nothing.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

use crate::support::{Device, play};
use flashwright_block::Seed;
use flashwright_fs::{Postmark, PostmarkSettings, RequestUnit, Settings, System};

/// Quick in the suite; `cargo test --release -p flashwright-fs --test all speed -- --nocapture` prints the figure.
#[test]
fn postmark_gives_many_requests_a_second() {
    let settings = PostmarkSettings {
        files: 50,
        subdirectories: 10,
        transactions: 400,
        size_low: 1 << 20,
        size_high: 1 << 20,
        read_block: 4096,
        write_block: 4096,
        ..PostmarkSettings::default()
    };
    let fs = Settings {
        request_unit: RequestUnit::Block,
        memory: flashwright_block::Bytes(64 << 20),
        ..Settings::default()
    };
    let mut system = System::new(Postmark::new(settings, Seed(712)), fs, 1 << 21, Seed(712)).unwrap();
    let (started, mut requests, mut bytes) = (std::time::Instant::now(), 0u64, 0u64);
    play(&mut system, &mut Device::new(10_000), u64::MAX, |_, _, request, done| {
        requests += u64::from(done);
        bytes += u64::from(done) * u64::from(request.sectors) * 512;
    });
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{requests} requests of {bytes} bytes in {seconds:.3} s: {:.2} million a second",
        requests as f64 / seconds / 1e6
    );
    assert!(requests > 40_000, "{requests}");
    assert_eq!(system.file_system().audit(), Vec::<String>::new());
}
