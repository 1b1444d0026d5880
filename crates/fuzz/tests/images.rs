//! Images of drives with damage: an image is refused in one line, or what was flushed is read back as it was written.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

use crate::damage::{self, Draws};
use flashwright_block::{
    BlockDevice as _, Completion, HoldsData as _, Nanos, Request, RequestKind, SECTOR_BYTES, Seed, Tag,
};
use flashwright_sim::LiveRun;
use flashwright_ssd::Config;
use std::path::Path;

/// 32 blocks of 8 pages of a sector.
const DRIVE: [&str; 7] = [
    "geometry.channels=2",
    "geometry.dies-per-channel=1",
    "geometry.blocks-per-plane=16",
    "geometry.pages-per-block=8",
    "geometry.page-size=512 B",
    "capacity.utilization=0.5",
    "recovery.mount-by=scan",
];
/// Pages that hold data; the others hold none.
const PAGES: u64 = 60;

fn open(path: &Path) -> Result<LiveRun, String> {
    let config = Config::default().with_settings(&DRIVE).unwrap();
    LiveRun::on_image(path, &config, Seed(1), None, || false).map_err(|error| error.to_string())
}

fn end(drive: &mut LiveRun) {
    let mut completion = Completion::default();
    while drive.wait(Nanos(u64::MAX), &mut completion).unwrap() {}
}

fn request(drive: &LiveRun, kind: RequestKind, page: u64) -> Request {
    let sectors = u32::from(kind != RequestKind::Flush);
    Request { kind, first_sector: page, sectors, arrival: drive.now(), ..Request::default() }
}

/// What a page holds after `rounds` of writes.
fn stamp(page: u64, rounds: u64) -> u8 {
    if page < PAGES && rounds > 0 { u8::try_from((page + 60 * rounds) % 251 + 1).unwrap() } else { 0 }
}

/// An image of a drive that was written over so often, flushed and ended in order.
fn image(path: &Path, rounds: u64) -> Vec<u8> {
    let _ = std::fs::remove_file(path);
    let mut drive = open(path).unwrap();
    for round in 1..=rounds {
        for page in 0..PAGES {
            let write = request(&drive, RequestKind::Write, page);
            drive.submit_with(write, &[stamp(page, round); SECTOR_BYTES as usize]).unwrap();
            end(&mut drive);
        }
    }
    drive.submit(request(&drive, RequestKind::Flush, 0)).unwrap();
    end(&mut drive);
    drive.close().unwrap();
    drop(drive);
    std::fs::read(path).unwrap()
}

/// Whether an image is taken; what it holds is then right.
fn check(path: &Path, content: &[u8], rounds: u64) -> bool {
    std::fs::write(path, content).unwrap();
    let mut drive = match open(path) {
        Ok(drive) => drive,
        Err(why) => {
            damage::assert_one_line(&why);
            return false;
        }
    };
    let pages = drive.info().capacity.0 / SECTOR_BYTES;
    for page in 0..pages {
        let tag: Tag = drive.submit_with(request(&drive, RequestKind::Read, page), &[]).unwrap();
        end(&mut drive);
        let mut data = [0; SECTOR_BYTES as usize];
        assert!(drive.take_data(tag, &mut data), "page {page} can't be read");
        let expected = stamp(page, rounds);
        assert!(data.iter().all(|byte| *byte == expected), "page {page}: found {:?}, not {expected}", &data[..4]);
    }
    true
}

#[test]
fn images() {
    let path = damage::scratch("a.img");
    let rounds = [0, 1, 4];
    let files: Vec<Vec<u8>> = rounds.iter().map(|rounds| image(&path, *rounds)).collect();
    assert!(files.iter().zip(rounds).all(|(file, rounds)| check(&path, file, rounds)), "they are good");
    let used: Vec<Vec<usize>> =
        files.iter().map(|file| (0..file.len()).filter(|at| file[*at] != 0).collect()).collect();
    damage::fuzz("images", |draws: &mut Draws<'_>| {
        let which = draws.below(files.len());
        let mut content = files[which].clone();
        if draws.below(3) == 0 {
            content = damage::damaged(draws, &content, &files);
        } else {
            for _ in 0..1 + draws.below(3) {
                let at = *draws.pick(&used[which]);
                match draws.below(3) {
                    0 => content[at] ^= 1 << draws.below(8),
                    1 => content[at] = draws.byte(),
                    _ => {
                        let end = (at + 1 + draws.below(600)).min(content.len());
                        content[at..end].fill(0);
                    }
                }
            }
        }
        check(&path, &content, rounds[which]);
    });
}
