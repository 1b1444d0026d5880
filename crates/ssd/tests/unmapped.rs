//! `timing.unmapped-read`: the time of a read of pages without data.

#![allow(clippy::unwrap_used)] // helpers of tests count as library code

use crate::common::*;
use flashwright_block::{BlockDevice, RequestKind, Seed};
use flashwright_ssd::Ssd;

/// One die of two channels each; a read takes 50 + 102.4 us. Pages 0 to 3 hold data, and no others.
fn drive(more: &[&str]) -> Ssd {
    let more = more.iter().map(|setting| (*setting).to_owned()).collect();
    let mut ssd = Ssd::new(&config(&[shape(2, 1, 1, 16, 4, 80), more].concat()), Seed(0), true).unwrap();
    fill(&mut ssd, 4);
    ssd
}

/// Service time of a read of so many pages.
fn read(ssd: &mut Ssd, lpn: u32, count: u32) -> u64 {
    let request = pages(ssd, RequestKind::Read, lpn, count);
    let done = perform(ssd, request).unwrap();
    (done[0].end - done[0].start).0
}

#[test]
fn a_read_of_pages_without_data_takes_what_is_set() {
    for model in ["serial", "parallel"] {
        let timing = format!("timing.model={model}");
        let mut free = drive(&[&timing]);
        assert_eq!(read(&mut free, 40, 4), 0, "{model}: none is set");

        let mut ssd = drive(&[&timing, "timing.unmapped-read=\"20 us\""]);
        assert_eq!(read(&mut ssd, 40, 1), 20_000, "{model}: no page holds data");
        assert_eq!(read(&mut ssd, 40, 4), 20_000, "{model}: it is a time of the request, not of a page");
        assert_eq!(read(&mut ssd, 0, 1), 152_400, "{model}: a page on flash");
        assert_eq!(read(&mut ssd, 3, 2), 152_400, "{model}: the flash takes longer");
        assert_eq!(ssd.flash().counters().reads_unmapped, 6);

        let mut slow = drive(&[&timing, "timing.unmapped-read=\"200 us\""]);
        assert_eq!(read(&mut slow, 3, 2), 200_000, "{model}: the flash takes less");

        let mut buffered = drive(&[
            &timing,
            "timing.unmapped-read=\"20 us\"",
            "ram.manager=lru",
            "ram.size=\"8 KiB\"",
            "ram.latency=\"1 us\"",
        ]);
        assert_eq!(read(&mut buffered, 40, 1), 21_000, "{model}: the RAM's time comes on top");
    }
}

/// A serial drive does one thing at a time. Of others, the controller answers while the dies work.
#[test]
fn no_die_is_busy_with_it() {
    for (model, ends) in [("serial", [20_000, 172_400, 192_400]), ("parallel", [20_000, 152_400, 20_000])] {
        let mut ssd = drive(&[&format!("timing.model={model}"), "timing.unmapped-read=\"20 us\""]);
        for lpn in [40, 0, 41] {
            let request = pages(&ssd, RequestKind::Read, lpn, 1);
            ssd.submit(request).unwrap();
        }
        let mut done = drain(&mut ssd).unwrap();
        done.sort_by_key(|completion| completion.tag);
        assert_eq!(done.iter().map(|completion| completion.end.0).collect::<Vec<_>>(), ends, "{model}");
        let busy: u64 = ssd.busy_times().dies.iter().map(|time| time.0).sum();
        assert_eq!(busy, 152_400, "{model}");
    }
}
