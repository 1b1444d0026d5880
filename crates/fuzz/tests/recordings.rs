//! Recordings with data, damaged within their compressed part, whose checksum then holds: they are read, and played.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

use crate::damage::{self, Draws};
use flashwright_block::{Nanos, Request, RequestKind};
use flashwright_sim::crash::{About, CrashTest, Recording, RecordingWriter, Step};
use std::path::Path;

/// Bytes that name the format, before the compressed part.
const MAGIC_BYTES: usize = 8;
/// Sectors of requests that are played: what a recording asks for, the drive has to write.
const SECTORS_PLAYED: u64 = 1 << 12;
const SMALL: &str = "[geometry]\nchannels = 1\ndies-per-channel = 2\nblocks-per-plane = 16\npages-per-block = 8\n\
                     [capacity]\nutilization = 0.5\n[recovery]\nmount-by = \"scan\"\n";

fn recording(path: &Path, requests: u64) -> Vec<u8> {
    let about = About { config: SMALL.to_owned(), seed: 7, precondition: "empty".to_owned() };
    let mut writer = RecordingWriter::create(path, &about).unwrap();
    for nth in 0..requests {
        let (kind, sectors) = if nth % 5 == 4 { (RequestKind::Flush, 0) } else { (RequestKind::Write, 8) };
        let request =
            Request { kind, sectors, first_sector: nth * 8 % 64, arrival: Nanos(nth * 1000), ..Request::default() };
        let data = vec![u8::try_from(nth % 256).unwrap(); sectors as usize * 512];
        let number = writer.request(&request, &data).unwrap();
        writer.completed(number).unwrap();
    }
    writer.mark("done").unwrap();
    writer.finish().unwrap();
    std::fs::read(path).unwrap()
}

/// Reads and plays a file; whether that can be done.
fn check(path: &Path, content: &[u8]) -> bool {
    std::fs::write(path, content).unwrap();
    let read = match Recording::read(path) {
        Ok(read) => read,
        Err(error) => {
            damage::assert_one_line(&error.to_string());
            return false;
        }
    };
    let sectors = read.steps.iter().map(|step| match step {
        Step::Request(request, _) => u64::from(request.sectors),
        Step::Completed(_) | Step::Mark(_) => 0,
    });
    if sectors.sum::<u64>() > SECTORS_PLAYED || read.about.config != SMALL {
        return true;
    }
    match CrashTest::new(read, &[]) {
        Ok(test) => {
            let image = path.with_extension("image");
            if let Err(error) = test.cut(test.operations() / 2, None, &image) {
                damage::assert_one_line(&error.to_string());
            }
        }
        Err(error) => error.to_string().lines().for_each(damage::assert_one_line),
    }
    true
}

#[test]
fn recordings() {
    let path = damage::scratch("a.fwr");
    let files: Vec<Vec<u8>> = [0, 3, 40].map(|requests| recording(&path, requests)).to_vec();
    assert!(files.iter().all(|file| check(&path, file)), "they are good");
    let parts: Vec<Vec<u8>> =
        files.iter().map(|file| zstd::stream::decode_all(&file[MAGIC_BYTES..]).unwrap()).collect();
    damage::fuzz("recordings", |draws: &mut Draws<'_>| {
        let content = if draws.below(4) == 0 {
            let good = draws.pick(&files).clone();
            damage::damaged(draws, &good, &files)
        } else {
            let good = draws.pick(&parts).clone();
            let part = damage::damaged(draws, &good, &parts);
            [&files[0][..MAGIC_BYTES], &zstd::bulk::compress(&part, 1).unwrap()].concat()
        };
        check(&path, &content);
    });
}
