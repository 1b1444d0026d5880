//! Disks over regular files: transfers, times, and injected faults. Each test has its own file in the build folder,
//! which supports direct I/O; if the kernel refuses a ring, the tests are skipped with a message.

#![allow(clippy::unwrap_used)] // helpers of tests count as library code

use flashwright_block::{
    BlockDevice, Bytes, Completion, HoldsData, IoError, Nanos, Request, RequestKind, Rng, Seed, Tag, below,
};
use flashwright_disk::{Access, Disk, DiskError, Effect, Faulty, Options, Which, open};
use flashwright_testing::{Lacks, skip};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

struct Image(PathBuf);

impl Image {
    fn new(name: &str, bytes: usize) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        let mut file = std::fs::File::create(&path).unwrap();
        file.write_all(&vec![0xa5; bytes]).unwrap();
        file.sync_all().unwrap();
        Self(path)
    }
    fn bytes(&self) -> Vec<u8> {
        std::fs::read(&self.0).unwrap()
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).unwrap_or_default();
    }
}

/// The disk, or none if this kernel has no rings.
fn disk(image: &Image, access: Access, options: Options) -> Option<Disk> {
    match Disk::new(open(&image.0, access, Bytes(0)).unwrap(), options) {
        Ok(disk) => Some(disk),
        Err(DiskError::NoRing { reason, .. }) => {
            skip(Lacks::Kernel(&format!("no io_uring here ({reason})")));
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn request(kind: RequestKind, page: u64, pages: u32) -> Request {
    Request { kind, first_sector: page * 8, sectors: pages * 8, ..Request::default() }
}

const NEVER: Nanos = Nanos(u64::MAX);

#[test]
fn every_request_ends_once_whatever_the_depth() {
    let image = Image::new("ends", 1 << 20);
    for (depth, busy_poll) in [(1, false), (7, true), (64, false)] {
        let Some(mut disk) = disk(&image, Access::ReadOnly, Options { depth, busy_poll, ..Options::default() }) else {
            return;
        };
        let mut rng: Rng = Seed(3).stream("test");
        let mut due = BTreeSet::new();
        for _ in 0..200 {
            // From 4 KiB to 256 KiB, so that buffers grow; beyond the depth they wait in the driver.
            let pages = 1u32 << below(&mut rng, 7);
            due.insert(disk.submit(request(RequestKind::Read, below(&mut rng, 192), pages)).unwrap());
        }
        let (mut completion, mut last_end) = (Completion::default(), Nanos(0));
        while disk.wait(NEVER, &mut completion).unwrap() {
            assert!(due.remove(&completion.tag), "{:?} ended twice", completion.tag);
            assert!(completion.start <= completion.end && last_end <= completion.end);
            last_end = completion.end;
        }
        assert_eq!(due, BTreeSet::new());
    }
    assert!(image.bytes().iter().all(|byte| *byte == 0xa5), "reading changed the file");
}

#[test]
fn writes_land_where_they_should_and_nowhere_else() {
    let image = Image::new("writes", 1 << 20);
    let Some(mut disk) = disk(&image, Access::DestroysData, Options { depth: 4, ..Options::default() }) else { return };
    let mut completion = Completion::default();
    for page in [1, 7, 3] {
        disk.submit(request(RequestKind::Write, page, 2)).unwrap();
    }
    disk.submit(Request { fua: true, ..request(RequestKind::Write, 100, 1) }).unwrap();
    while disk.wait(NEVER, &mut completion).unwrap() {}
    disk.execute(request(RequestKind::Flush, 0, 0), &mut completion).unwrap();
    let written: BTreeSet<usize> = image
        .bytes()
        .chunks(4096)
        .enumerate()
        .filter(|(_, page)| page.iter().any(|b| *b != 0xa5))
        .map(|p| p.0)
        .collect();
    assert_eq!(written, BTreeSet::from([1, 2, 3, 4, 7, 8, 100]));
    let bytes = image.bytes();
    assert_ne!(bytes[4096..8192], bytes[8192..12288], "pages of one write are alike");
}

#[test]
fn data_depends_on_the_seed_alone() {
    let written = |name: &str, seed| {
        let image = Image::new(name, 1 << 16);
        let mut disk =
            disk(&image, Access::DestroysData, Options { depth: 1, seed: Seed(seed), ..Options::default() })?;
        let mut completion = Completion::default();
        for kind in [RequestKind::Write, RequestKind::Read, RequestKind::Write] {
            disk.execute(request(kind, 4, 4), &mut completion).unwrap();
        }
        Some(image.bytes())
    };
    let Some(first) = written("seed-a", 1) else { return };
    assert_eq!(written("seed-b", 1), Some(first.clone()));
    assert_ne!(written("seed-c", 2), Some(first));
}

#[test]
fn a_trim_gives_the_space_back() {
    let image = Image::new("trim", 1 << 20);
    let Some(mut disk) = disk(&image, Access::DestroysData, Options::default()) else { return };
    let before = std::fs::metadata(&image.0).unwrap().blocks();
    let mut completion = Completion::default();
    // Two at once: the first finds out that files take no discards, the second is on its way already.
    disk.submit(request(RequestKind::Trim, 16, 16)).unwrap();
    disk.submit(request(RequestKind::Trim, 64, 16)).unwrap();
    let mut ended = 0;
    loop {
        match disk.wait(NEVER, &mut completion) {
            Ok(true) => match &completion.result {
                Ok(()) => ended += 1,
                Err(error) if error.to_string().contains("not supported") => {
                    return skip(Lacks::Kernel(&format!("the file system of {} punches no holes", image.0.display())));
                }
                Err(error) => panic!("{error}"),
            },
            Ok(false) => break,
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(ended, 2);
    let after = std::fs::metadata(&image.0).unwrap();
    assert_eq!((after.len(), before - after.blocks()), (1 << 20, 2 * 16 * 8), "two holes of 64 KiB");
    assert!(image.bytes()[16 * 4096..32 * 4096].iter().all(|byte| *byte == 0));
}

#[test]
fn time_is_kept() {
    let image = Image::new("time", 1 << 16);
    let Some(mut disk) = disk(&image, Access::ReadOnly, Options::default()) else { return };
    let mut completion = Completion::default();
    let began = disk.now();
    assert!(!disk.wait(NEVER, &mut completion).unwrap(), "nothing in flight: nothing to wait for");
    let until = Nanos(disk.now().0 + 5_000_000);
    assert!(!disk.wait(until, &mut completion).unwrap());
    assert!(disk.now() >= until && began < until);
    // The disk sleeps until an arrival in the future; completions meanwhile are kept.
    disk.submit(request(RequestKind::Read, 0, 1)).unwrap();
    let arrival = Nanos(disk.now().0 + 20_000_000);
    let second = disk.submit(Request { arrival, ..request(RequestKind::Read, 1, 1) }).unwrap();
    assert!(disk.now() >= arrival);
    assert!(disk.wait(NEVER, &mut completion).unwrap());
    assert!(completion.end < arrival, "the first ended while the second was slept for");
    assert!(disk.wait(NEVER, &mut completion).unwrap());
    assert_eq!(completion.tag, second);
    assert!(completion.start >= arrival && completion.response_time() >= completion.service_time());
    // An arrival in the past stays what it was: the response time holds the lateness.
    disk.execute(Request { arrival: Nanos(1), ..request(RequestKind::Read, 0, 1) }, &mut completion).unwrap();
    assert_eq!(completion.request.arrival, Nanos(1));
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_else_happens() {
    let image = Image::new("refused", (1 << 16) + 100);
    let Some(mut disk) = disk(&image, Access::ReadOnly, Options::default()) else { return };
    let info = disk.info();
    assert_eq!(info.capacity, Bytes((1 << 16) / info.sector.0 * info.sector.0), "the tail is no whole block");
    let past = disk.submit(request(RequestKind::Read, 15, 2)).unwrap_err();
    assert_eq!(past.to_string(), "request of sectors 120..136 reaches past the device's end at sector 128");
    let write = disk.submit(request(RequestKind::Write, 2, 1)).unwrap_err();
    assert_eq!(write.to_string(), "write of sectors 16..24 refused: the device is open for reading only");
    if info.sector.0 > 512 {
        let odd = disk.submit(Request { first_sector: 1, sectors: 8, ..Request::default() }).unwrap_err();
        assert!(matches!(odd, IoError::Misaligned { first_sector: 1, end_sector: 9, .. }), "{odd}");
    }
    assert_eq!(disk.wait(NEVER, &mut Completion::default()), Ok(false));
    for depth in [0, 4097] {
        let target = open(&image.0, Access::ReadOnly, Bytes(0)).unwrap();
        let error = Disk::new(target, Options { depth, ..Options::default() }).err().unwrap();
        assert_eq!(error.to_string(), format!("depth: found {depth}, expected 1 to 4096"));
    }
}

#[test]
fn a_target_that_shrinks_is_an_error_that_says_where() {
    let image = Image::new("shrinks", 1 << 16);
    let Some(mut disk) = disk(&image, Access::ReadOnly, Options::default()) else { return };
    std::fs::OpenOptions::new().write(true).open(&image.0).unwrap().set_len(1 << 15).unwrap();
    let mut completion = Completion::default();
    disk.execute(request(RequestKind::Read, 0, 1), &mut completion).unwrap();
    disk.execute(request(RequestKind::Read, 7, 2), &mut completion).unwrap();
    let error = completion.result.clone().unwrap_err();
    assert_eq!(
        error.to_string(),
        "the device failed: read of 8 KiB at byte 28672: only 4096 of 8192 B were transferred; did the device shrink?"
    );
    disk.execute(request(RequestKind::Read, 1, 1), &mut completion).unwrap();
    assert_eq!(completion.result, Ok(()));
}

#[test]
fn dropping_waits_for_what_is_in_flight() {
    let image = Image::new("dropped", 1 << 20);
    for _ in 0..20 {
        let Some(mut disk) = disk(&image, Access::DestroysData, Options::default()) else { return };
        for page in 0..32 {
            disk.submit(request(RequestKind::Write, page * 8, 8)).unwrap();
        }
        drop(disk);
    }
    // Had a write still been under way, the lock of the next round would have been refused, or this one.
    open(&image.0, Access::DestroysData, Bytes(0)).unwrap();
}

#[test]
fn faults_hit_the_requests_they_name() {
    let image = Image::new("faulty", 1 << 20);
    let failed = |which, effect| -> Option<Vec<(u64, String)>> {
        let inner = disk(&image, Access::ReadOnly, Options { depth: 4, ..Options::default() })?;
        let mut device = Faulty::new(inner, which, effect);
        let mut failed = Vec::new();
        for n in 1..=20 {
            let mut completion = Completion::default();
            device.execute(request(RequestKind::Read, n, 4), &mut completion).unwrap();
            assert_eq!(completion.request, request(RequestKind::Read, n, 4), "the request as it was asked for");
            if let Err(error) = completion.result {
                failed.push((n, error.to_string()));
            }
        }
        Some(failed)
    };
    let numbers = |failed: Vec<(u64, String)>| failed.into_iter().map(|(n, _)| n).collect::<Vec<_>>();
    let Some(nth) = failed(Which::Nth(3), Effect::Fail) else { return };
    assert_eq!(nth, [(3, "the device failed: read of 16 KiB at byte 12288: Input/output error (injected)".to_owned())]);
    assert_eq!(numbers(failed(Which::Every(6), Effect::Fail).unwrap()), [6, 12, 18]);
    let cut = failed(Which::Nth(2), Effect::Shorten).unwrap();
    assert!(cut[0].1.contains("only 8192 of 16384 B were transferred"), "{cut:?}");
    let share = Which::Share { share: 0.5, seed: Seed(4) };
    let hit = numbers(failed(share, Effect::Fail).unwrap());
    assert_eq!(hit, numbers(failed(share, Effect::Fail).unwrap()), "one seed, the same requests");
    // A fair coin lands outside of 3..=17 of 20 in less than one of 2,000 seeds.
    assert!((3..=17).contains(&hit.len()), "{hit:?}");
}

#[test]
fn tags_are_unique_over_the_whole_run() {
    let image = Image::new("tags", 1 << 16);
    let Some(mut disk) = disk(&image, Access::ReadOnly, Options { depth: 2, ..Options::default() }) else { return };
    let mut completion = Completion::default();
    let tags: Vec<Tag> = (0..10)
        .map(|_| {
            disk.execute(request(RequestKind::Read, 0, 1), &mut completion).unwrap();
            completion.tag
        })
        .collect();
    assert_eq!(tags, (0..10).map(Tag).collect::<Vec<_>>());
}

#[test]
fn data_of_clients_are_kept_whatever_waits() {
    let image = Image::new("keeps", 1 << 20);
    for depth in [1, 3, 16] {
        let options = Options { depth, keeps_data: true, ..Options::default() };
        let Some(mut disk) = disk(&image, Access::DestroysData, options) else { return };
        let mut done = Completion::default();
        // Twice as many as there are slots, of lengths that make buffers grow.
        for page in 0..32u32 {
            let pages = 1 + page % 4;
            let write = request(RequestKind::Write, u64::from(page) * 4, pages);
            let data = vec![u8::try_from(page).unwrap(); pages as usize * 4096];
            disk.submit_with(Request { fua: page % 5 == 0, ..write }, &data).unwrap();
        }
        disk.submit(request(RequestKind::Write, 200, 20)).unwrap(); // zeros
        disk.submit(Request { fua: true, ..request(RequestKind::Write, 220, 2) }).unwrap();
        while disk.wait(NEVER, &mut done).unwrap() {
            assert_eq!(done.result, Ok(()));
        }
        let tags: Vec<_> =
            (0..32).map(|page| disk.submit_with(request(RequestKind::Read, page * 4, 5), &[]).unwrap()).collect();
        let unwanted = disk.submit(request(RequestKind::Read, 0, 1)).unwrap();
        let mut ended = Vec::new();
        while disk.wait(NEVER, &mut done).unwrap() {
            ended.push(done.tag);
        }
        // Taken late and in another order than they ended.
        for (page, tag) in tags.iter().enumerate().rev() {
            let mut found = vec![9; 5 * 4096];
            assert!(ended.contains(tag) && disk.take_data(*tag, &mut found));
            assert_eq!(found[..4096], [u8::try_from(page).unwrap(); 4096], "page {page} at depth {depth}");
            assert!(!disk.take_data(*tag, &mut found), "once");
        }
        assert!(!disk.take_data(unwanted, &mut [0; 4096]));
        drop(disk);
        let bytes = image.bytes();
        assert!(bytes[200 * 4096..222 * 4096].iter().all(|byte| *byte == 0), "zeros");
        assert_eq!((bytes[199 * 4096], bytes[222 * 4096]), (0xa5, 0xa5), "and nowhere else");
    }
}

#[test]
fn a_disk_without_data_takes_none() {
    let image = Image::new("keepsnone", 1 << 16);
    let Some(mut disk) = disk(&image, Access::ReadOnly, Options::default()) else { return };
    assert!(disk.holds_data().is_none());
    let refused = disk.submit_with(request(RequestKind::Read, 0, 1), &[]);
    assert_eq!(refused, Err(IoError::KeepsNoData));
}
