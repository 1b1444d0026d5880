//! Reclaim units of handles: what they have room for, and that a host may leave them when it wants.

use flashwright_block::{BlockDevice, Bytes, Completion, IoError, Nanos, Request, RequestKind, Rng, Seed, below};
use flashwright_ssd::{DriveConfig, Keeps, Ssd};

const SMALL: &[&str] = &[
    "geometry.channels=2",
    "geometry.dies-per-channel=2",
    "geometry.planes-per-die=1",
    "geometry.blocks-per-plane=40",
    "geometry.pages-per-block=8",
    "geometry.page-size=4 KiB",
    "geometry.superblock=drive",
    "capacity.utilization=0.6",
    "placement.policy=fdp",
    "placement.fdp.handles=4",
];

/// A drive of 40 units of 32 pages.
fn drive(more: &[&str]) -> Ssd {
    let config = DriveConfig::default().with_settings(&[SMALL, more].concat()).unwrap();
    Ssd::new(&config, Seed(1), Keeps::Stamps).unwrap()
}

fn ask(drive: &mut Ssd, kind: RequestKind, page: u64, pages: u32, stream: u16) {
    let request = Request {
        kind,
        first_sector: 8 * page,
        sectors: 8 * pages,
        stream,
        arrival: drive.now(),
        ..Request::default()
    };
    let mut completion = Completion::default();
    drive.submit(request).unwrap();
    assert!(drive.wait(Nanos(u64::MAX), &mut completion).unwrap());
    assert_eq!(completion.result, Ok(()));
}

fn pages(room: Result<Bytes, IoError>) -> u64 {
    room.unwrap().0 / 4096
}

#[test]
fn a_unit_fills_by_what_is_written_and_is_left_when_the_host_says() {
    let mut drive = drive(&[]);
    let offered = drive.placement().unwrap();
    assert_eq!((offered.handles, offered.stays_isolated, offered.unit), (4, true, Bytes(32 * 4096)));
    let rooms = |drive: &mut Ssd| [0, 1, 2, 3].map(|handle| pages(drive.unit_room(handle)));
    assert_eq!(rooms(&mut drive), [32; 4], "fresh");
    ask(&mut drive, RequestKind::Write, 0, 10, 2);
    assert_eq!(rooms(&mut drive), [32, 32, 22, 32]);
    ask(&mut drive, RequestKind::Write, 10, 23, 2); // a unit is full, and one page is in the next
    ask(&mut drive, RequestKind::Write, 100, 1, 9); // no handle: handle 0
    assert_eq!(rooms(&mut drive), [31, 32, 31, 32]);
    // What is left has a hole; what nothing was written to stays.
    assert_eq!(drive.renew_unit(2), Ok(Some(Bytes(31 * 4096))));
    assert_eq!(drive.renew_unit(2), Ok(None));
    assert_eq!(drive.renew_unit(1), Ok(None));
    assert_eq!(rooms(&mut drive), [31, 32, 32, 32]);
    ask(&mut drive, RequestKind::Write, 33, 32, 2);
    assert_eq!(rooms(&mut drive), [31, 32, 32, 32], "exactly full");
    ask(&mut drive, RequestKind::Read, 0, 65, 0);
    assert_eq!(drive.audit(), []);
}

#[test]
fn drives_without_a_unit_for_each_handle_offer_none() {
    for more in [
        &["placement.policy=single"][..],
        &["placement.policy=multi-stream"],
        &["geometry.superblock=block"],
        &["ram.manager=lru", "ram.size=64 KiB"],
    ] {
        assert_eq!(drive(more).placement(), None, "{more:?}");
    }
    let shared = drive(&["placement.fdp.isolation=initial"]).placement().unwrap();
    assert!(!shared.stays_isolated);
    assert_eq!(drive(&["ftl.scheme=dftl"]).placement().unwrap().handles, 4);
}

#[test]
fn whenever_units_are_left_the_drive_keeps_its_data_and_its_books() {
    let chips: &[&str] = &[
        "timing.model=parallel",
        "chips.programming=one-shot",
        "chips.write-ram=128 KiB",
        "geometry.bits-per-cell=3",
        "geometry.pages-per-block=12",
    ];
    let two_passes: Vec<&str> = chips
        .iter()
        .map(|setting| setting.replace("one-shot", "two-pass").replace("128 KiB", "1 MiB").leak() as &str)
        .collect();
    let mounts = [chips, &["recovery.mount-by=scan", "gc.free-blocks-min=6", "capacity.utilization=0.5"]].concat();
    let makes: [&[&str]; 9] = [
        &[],
        &["placement.fdp.isolation=initial"],
        &["ftl.scheme=dftl"],
        &["gc.schedule=background", "timing.model=parallel"],
        &["gc.victim=fifo"],
        chips,
        &two_passes,
        &mounts,
        &["recovery.mount-by=scan", "timing.model=parallel"],
    ];
    for more in makes {
        let mut drive = drive(more);
        let logical = u64::from(drive.logical_pages());
        let mut random: Rng = Seed(7).stream("units");
        let mut left = 0;
        for _ in 0..6_000 {
            let (page, handle) = (below(&mut random, logical), below(&mut random, 4) as u16);
            match below(&mut random, 10) {
                0 => left += u32::from(drive.renew_unit(handle).unwrap().is_some()),
                1 => ask(&mut drive, RequestKind::Trim, page, 1, 0),
                2 => ask(&mut drive, RequestKind::Read, page, 1, 0),
                _ => {
                    let count = (1 + below(&mut random, 8)).min(logical - page);
                    ask(&mut drive, RequestKind::Write, page, u32::try_from(count).unwrap(), handle);
                }
            }
            assert!(pages(drive.unit_room(handle)) > 0);
        }
        assert!(left > 300, "{left}");
        ask(&mut drive, RequestKind::Read, 0, u32::try_from(logical).unwrap(), 0);
        assert_eq!(drive.audit(), [], "{more:?}");
    }
}

#[test]
fn a_mount_goes_on_in_the_units_that_it_finds() {
    let mut drive = drive(&["recovery.mount-by=scan", "timing.model=parallel"]);
    let written = |drive: &mut Ssd, page: u64, handle: u16| ask(drive, RequestKind::Write, page, 5, handle);
    for (page, handle) in [(0, 1), (5, 2), (10, 3)] {
        written(&mut drive, page, handle);
    }
    assert_eq!(drive.renew_unit(3), Ok(Some(Bytes(27 * 4096))));
    written(&mut drive, 15, 3);
    drive.cut().unwrap();
    assert_eq!((drive.unit_room(1), drive.renew_unit(1)), (Err(IoError::PowerOff), Err(IoError::PowerOff)));
    drive.mount().unwrap();
    assert_eq!([0, 1, 2, 3].map(|handle| pages(drive.unit_room(handle))), [32, 27, 27, 27]);
    written(&mut drive, 20, 3);
    assert_eq!(pages(drive.unit_room(3)), 22);
    ask(&mut drive, RequestKind::Read, 0, 25, 0);
    assert_eq!(drive.audit(), []);
}

#[test]
fn what_cleaning_moves_is_told_of_the_handles_that_are_watched() {
    let mut drive = drive(&[]);
    let logical = u64::from(drive.logical_pages());
    for page in 0..logical {
        ask(&mut drive, RequestKind::Write, page, 1, u16::try_from(page % 2).unwrap());
    }
    let moved_before =
        drive.figures().handles.iter().map(|each| each.pages_moved_for.iter().sum::<u64>()).collect::<Vec<_>>();
    drive.watch_moves(1 << 1);
    let (mut moved, mut random): (Vec<_>, Rng) = (Vec::new(), Seed(7).stream("units"));
    for _ in 0..4_000 {
        let page = below(&mut random, logical);
        ask(&mut drive, RequestKind::Write, page, 1, u16::try_from(page % 2).unwrap());
        drive.take_moved(&mut moved);
    }
    let moved_after =
        drive.figures().handles.iter().map(|each| each.pages_moved_for.iter().sum::<u64>()).collect::<Vec<_>>();
    assert!(moved_after[0] > moved_before[0]);
    assert!(moved.iter().all(|each| each.handle == 1 && each.first_sector / 8 % 2 == 1));
    let sum: u64 = moved.iter().map(|each| u64::from(each.sectors) / 8).sum();
    assert_eq!(sum, moved_after[1] - moved_before[1]);
    assert!(sum > 100);
}
