//! The timing of a drive's RAM: which requests wait for which operations.

#![allow(clippy::unwrap_used)] // helpers of tests count as library code

use crate::common::*;
use flashwright_block::{Nanos, RequestKind, Seed};
use flashwright_ssd::Ssd;

/// One die of two channels each; a read takes 50 + 102.4 us, a program 102.4 + 200 us.
fn drive(more: &[&str]) -> Ssd {
    let more = more.iter().map(|setting| (*setting).to_owned()).collect();
    let mut ssd = Ssd::new(&config(&[shape(2, 1, 1, 16, 4, 80), more].concat()), Seed(0), true).unwrap();
    fill(&mut ssd, 80);
    ssd
}

fn times(ssd: &mut Ssd, kind: RequestKind, lpn: u32) -> (Nanos, Nanos) {
    let request = pages(ssd, kind, lpn, 1);
    let done = perform(ssd, request).unwrap();
    assert_eq!(done.len(), 1);
    (done[0].start, done[0].end)
}

/// Two pages of RAM hold what preconditioning wrote last. A read takes the place of a dirty page, but does not wait for
/// its program; a write does.
#[test]
fn a_read_does_not_wait_for_the_room_of_its_copy() {
    for model in ["serial", "parallel"] {
        let mut ssd =
            drive(&["ram.manager=lru", "ram.size=\"8 KiB\"", "ram.latency=\"1 us\"", &format!("timing.model={model}")]);
        assert_eq!(
            (ssd.ram().unwrap().is_dirty(flashwright_nand::Lpn(79)), ssd.ram().unwrap().pages()),
            (Some(true), 2)
        );
        let (start, end) = times(&mut ssd, RequestKind::Read, 0);
        assert_eq!((start.0, end.0), (0, 153_400), "{model}: 50 + 102.4 us and the RAM's");
        assert_eq!(
            ssd.flash().counters().total(flashwright_ftl::OpKind::Program),
            79,
            "{model}: page 78 went to flash"
        );
        // A hit is answered at once, but a serial drive is busy with that program.
        let (start, end) = times(&mut ssd, RequestKind::Read, 0);
        let busy_until = if model == "serial" { 153_400 + 302_400 } else { 153_400 };
        assert_eq!((start.0, end.0), (busy_until, busy_until + 1_000), "{model}: a hit");
        // Page 79 is the oldest and dirty: the write that needs its room waits for its program.
        let (start, end) = times(&mut ssd, RequestKind::Write, 40);
        assert!(end.0 - start.0 >= 303_400, "{model}: {} ns for a write that waits for room", (end - start).0);
        let (start, end) = times(&mut ssd, RequestKind::Write, 40);
        assert_eq!((end - start).0, 1_000, "{model}: an overwrite in RAM");
        assert_clean(&ssd, model);
    }
}

/// A flush waits for every page that it writes; with RAM that outlives a loss of power it is free.
#[test]
fn a_flush_takes_the_time_of_its_programs() {
    for (protected, service) in [(false, 3 * 302_400), (true, 0)] {
        let protected = format!("ram.power-protected={protected}");
        let mut ssd = drive(&["ram.manager=fifo", "ram.size=\"12 KiB\"", "timing.model=serial", &protected]);
        let done = perform(&mut ssd, sectors(RequestKind::Flush, 0, 0)).unwrap();
        assert_eq!((done[0].end - done[0].start).0, service, "{protected}");
    }
}
