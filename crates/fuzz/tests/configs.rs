//! Drive descriptions: bundled ones with random damage.

use crate::damage;
use flashwright_block::Seed;
use flashwright_ssd::{Config, Ssd};
use std::path::Path;

/// Blocks of a drive that is built, not only read.
const BLOCKS_MAX: u64 = 1 << 14;

fn check(text: &str) {
    let config = match Config::from_toml(text, "drive.toml") {
        Ok(config) => config,
        Err(error) => {
            assert!(!error.problems.is_empty(), "an error without a reason");
            return error.problems.iter().for_each(|problem| damage::assert_one_line(&problem.to_string()));
        }
    };
    let again = Config::from_toml(&config.to_toml(), "again.toml");
    assert_eq!(
        again.as_ref().map(|config| config.to_toml()),
        Ok(config.to_toml()),
        "it does not read as it was written"
    );
    let flash = &config.geometry;
    let planes = u64::from(flash.channels) * u64::from(flash.dies_per_channel) * u64::from(flash.planes_per_die);
    let blocks = planes.saturating_mul(u64::from(flash.blocks_per_plane));
    let pages = blocks.saturating_mul(u64::from(flash.pages_per_block));
    if blocks > BLOCKS_MAX || pages > BLOCKS_MAX * 64 {
        return;
    }
    match Ssd::new(&config, Seed(1), false) {
        Ok(ssd) => assert!(ssd.logical_pages() > 0),
        Err(error) => error.to_string().lines().for_each(damage::assert_one_line),
    }
}

#[test]
fn configurations() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config/devices");
    let mut files: Vec<Vec<u8>> = damage::corpus(&folder).into_iter().map(|(_, content)| content).collect();
    // Small ones, which are built.
    files.push(b"[geometry]\nchannels = 2\ndies-per-channel = 2\nblocks-per-plane = 32\npages-per-block = 16\n[ftl]\nscheme = \"dftl\"\n[gc]\nvictim = \"greedy\"\n[ram]\nmanager = \"bplru\"\nsize = \"1 MiB\"\n[timing]\nread = \"50 us\"\n".to_vec());
    files.push(b"[geometry]\nblocks-per-plane = 64\npages-per-block = 8\n[capacity]\nutilization = 0.7\n[ftl]\nscheme = \"fast\"\n[host]\nscheduler = \"deadline\"\nqueue-depth = 8\n[controller]\nqueue-depth = 4\n[wear]\nendurance = 100\n".to_vec());
    for file in &files {
        check(&String::from_utf8_lossy(file));
    }
    damage::fuzz("configurations", |draws| {
        let good = draws.pick(&files).clone();
        check(&String::from_utf8_lossy(&damage::damaged(draws, &good, &files)));
    });
}
