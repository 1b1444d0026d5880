//! Writers of zones: what they ask for keeps the rules of a drive that knows nothing but write pointers.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

use flashwright_block::{Request, RequestKind, Seed};
use flashwright_workload::generate::{Target, WorkloadSpec, ZonedTarget};

const DRIVE: Target = Target { logical_sectors: 20 * 1024, page_sectors: 8 };
/// Twenty zones of 512 KiB, of which 400 KiB can be written.
const ZONES: ZonedTarget = ZonedTarget { size_sectors: 1024, capacity_sectors: 800 };

fn draw(text: &str, seed: u64, count: u64, batch: usize) -> Vec<Request> {
    let spec: WorkloadSpec = text.parse().unwrap_or_else(|error| panic!("{error}"));
    let mut source = spec.source_on_zones(&DRIVE, Some(ZONES), Seed(seed), Some(count)).unwrap();
    let mut all = Vec::new();
    while source.fill(&mut all, batch).unwrap() > 0 {}
    assert_eq!(all.len() as u64, count, "{text}");
    all
}

#[test]
fn every_request_keeps_the_rules() {
    for (text, open_most, is_finished) in [
        ("zones", 4, false),
        ("zones:writers=1,size=64KiB", 1, false),
        ("zones:writers=7,by=append,size=12KiB,write=0.6", 7, false),
        ("zones:writers=3,fill=0.55,size=16KiB,write=0.8,range=0.5", 3, true),
        ("zones:writers=20,by=append,fill=0.3,size=100KiB", 20, true),
    ] {
        let (mut pointers, mut full) = ([0u64; 20], [false; 20]);
        let (mut seen, mut open) = ([0u64; RequestKind::COUNT], 0);
        for request in draw(text, 5, 6000, 256) {
            let (zone, at) = ((request.first_sector / 1024) as usize, request.first_sector % 1024);
            let sectors = u64::from(request.sectors);
            seen[request.kind as usize] += 1;
            match request.kind {
                RequestKind::Read => assert!(at + sectors <= pointers[zone] && sectors > 0, "{text}: {request:?}"),
                RequestKind::Write | RequestKind::Append => {
                    let from = if request.kind == RequestKind::Write { at } else { pointers[zone] };
                    assert!(
                        from == pointers[zone] && !full[zone] && sectors % 8 == 0 && sectors > 0,
                        "{text}: {request:?}"
                    );
                    assert!(request.kind == RequestKind::Write || at == 0, "{text}: {request:?}");
                    pointers[zone] += sectors;
                    assert!(pointers[zone] <= 800, "{text}: {request:?}");
                    full[zone] = pointers[zone] == 800;
                }
                RequestKind::ZoneFinish => {
                    assert!(at == 0 && pointers[zone] < 800 && !full[zone], "{text}: {request:?}");
                    full[zone] = true;
                }
                RequestKind::ZoneReset => {
                    assert!(at == 0 && (full[zone] || pointers[zone] == 0), "{text}: {request:?}");
                    (pointers[zone], full[zone]) = (0, false);
                }
                other => panic!("{text}: {other:?}"),
            }
            open = open.max((0..20).filter(|zone| pointers[*zone] > 0 && !full[*zone]).count());
        }
        assert_eq!(open, open_most, "{text}");
        assert_eq!(seen[RequestKind::ZoneFinish as usize] > 0, is_finished, "{text}: {seen:?}");
        assert!(seen[RequestKind::ZoneReset as usize] > 20, "{text}: every zone was reset before it was written again");
        let reads = seen[RequestKind::Read as usize] as f64 / 6000.0;
        let share = if text.contains("write=0.6") {
            0.4
        } else if text.contains("write=0.8") {
            0.2
        } else {
            0.0
        };
        assert!((reads - share).abs() < 0.03, "{text}: {reads}");
    }
}

#[test]
fn one_seed_gives_one_stream_whatever_the_batches() {
    let text = "zones:write=0.5,by=append,rate=1000";
    assert_eq!(draw(text, 1, 3000, 256), draw(text, 1, 3000, 7));
    assert_ne!(draw(text, 1, 3000, 256), draw(text, 2, 3000, 256));
}

#[test]
fn what_does_not_go_together_is_told_in_a_line() {
    let says = |text: &str, zones| {
        let spec: WorkloadSpec = text.parse().unwrap();
        spec.source_on_zones(&DRIVE, zones, Seed(1), None).map(|_| ()).unwrap_err().to_string()
    };
    for (text, zones, expected) in [
        (
            "uniform",
            Some(ZONES),
            "workload: found uniform, which does not write zones in order, on a zoned drive, expected zones, such as zones:writers=4",
        ),
        ("sequential:write=0.1", Some(ZONES), "found sequential, which does not write zones in order"),
        (
            "zones",
            None,
            "workload: found zones on a drive without zones, expected a zoned drive for it (ftl.scheme = \"zoned\")",
        ),
        ("zones:writers=21", Some(ZONES), "writers: found 21, expected at most the zones in use, 20"),
        (
            "zones:size=6KiB",
            Some(ZONES),
            "size: found 12 sectors, expected whole pages of 8 sectors, up to the 800 of a zone",
        ),
        ("zones:size=800KiB", Some(ZONES), "size: found 1600 sectors, expected whole pages of 8 sectors"),
    ] {
        let found = says(text, zones);
        assert!(found.contains(expected) && found.lines().count() == 1, "{found}");
    }
    assert!(
        "uniform:write=0".parse::<WorkloadSpec>().unwrap().source_on_zones(&DRIVE, Some(ZONES), Seed(1), None).is_ok()
    );
    for (text, expected) in [
        ("zones:trim=0.1", "trim: found 0.1, expected 0"),
        ("zones:fill=0", "fill: found 0, expected a share above 0"),
        ("zones:write=0", "write: found 0, expected a share above 0"),
        ("zones:by=trim", "by: found \"trim\", expected one of write, append"),
    ] {
        let found = text.parse::<WorkloadSpec>().unwrap_err().to_string();
        assert!(found.contains(expected), "{found}");
    }
}
