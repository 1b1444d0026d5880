//! What each reclaim group did, worked out on paper: two groups of a die each, of 6 blocks of 4 pages, which each hold 8 logical pages.
//!
//! ```text
//!   a plane cleans when it needs a block and has 1 free; the victim is the block with the fewest valid pages
//! ```

use flashwright_block::{BlockDevice, Completion, Nanos, Request, RequestKind, Seed};
use flashwright_sim::{LiveRun, Precondition};
use flashwright_ssd::Config;
use serde_json::{Value, json};

const DRIVE: &str = "[geometry]\nchannels = 1\ndies-per-channel = 2\nplanes-per-die = 1\nblocks-per-plane = 6\n\
                     pages-per-block = 4\npage-size = \"4 KiB\"\n[capacity]\nlogical = \"64 KiB\"\n\
                     [placement]\npolicy = \"fdp\"\nfdp.handles = 1\nfdp.groups = 2\n[gc]\nfree-blocks-min = 1\n";

/// Writes a page of the group.
fn write(live: &mut LiveRun, group: u16, page: u64) {
    let at = Request {
        arrival: live.now(),
        first_sector: page * 8,
        sectors: 8,
        kind: RequestKind::Write,
        stream: group << 15,
        ..Request::default()
    };
    live.submit(at).unwrap();
    while live.wait(Nanos(u64::MAX), &mut Completion::default()).unwrap() {}
}

/// The figures of groups by every way to them, which must agree.
fn groups(live: &mut LiveRun) -> Vec<Value> {
    let found = json!(live.figures());
    let report = live.report().report.to_value();
    assert_eq!(found["groups"], report["groups"]);
    let sum =
        |key: &str| report["groups"].as_array().unwrap().iter().map(|each| each[key].as_u64().unwrap()).sum::<u64>();
    let flash = &report["flash"];
    assert_eq!(sum("pages_written"), flash["programs"]["host"]);
    assert_eq!(sum("pages_programmed"), flash["programs"]["total"]);
    assert_eq!(sum("pages_moved"), flash["programs"]["gc"]);
    assert_eq!(sum("erases"), flash["erases"]["total"]);
    report["groups"].as_array().unwrap().clone()
}

#[test]
fn each_group_has_what_happens_on_its_dies() {
    let config = Config::from_toml(DRIVE, "test").unwrap();
    let mut live = LiveRun::new(&config, Seed(1), Precondition::Empty, || false).unwrap();
    let row = |group: u64, counts: [u64; 4], amplification: Value, free: u64| {
        let [written, programmed, moved, erases] = counts;
        json!({
            "group": group, "pages_written": written, "pages_programmed": programmed, "pages_moved": moved, "erases": erases,
            "write_amplification": amplification, "units": 6, "units_free": free,
        })
    };
    assert_eq!(groups(&mut live), [row(0, [0; 4], Value::Null, 6), row(1, [0; 4], Value::Null, 6)]);

    // Two blocks full, and pages 0 to 3 again ten times: the first three times take free blocks, and leave one. Each of the others needs a
    // block, and erases the oldest, in which nothing is valid.
    for page in (0..8).chain((0..40).map(|write| write % 4)) {
        write(&mut live, 0, page);
    }
    let first = row(0, [48, 48, 0, 7], json!(1.0), 1);
    assert_eq!(groups(&mut live), [first.clone(), row(1, [0; 4], Value::Null, 6)]);

    // A = 8 to 11 and B = 12 to 15; C, D and E hold two pages of A and of B each twice: pages 11 and 15 stay in A and B. Page 11 then
    // needs a block where one is free. One page of A or B moves to it, and is there with 11.
    for page in (8..16).chain([8, 12, 8, 12, 9, 13, 9, 13, 10, 14, 10, 14, 11]) {
        write(&mut live, 1, page);
    }
    assert_eq!(groups(&mut live), [first, row(1, [21, 22, 1, 1], json!(22.0 / 21.0), 1)]);

    // A group that holds its 8 pages takes none of another: page 0 stays where it is, whatever is named.
    write(&mut live, 1, 0);
    let [first, second] = groups(&mut live).try_into().unwrap();
    assert_eq!((&first["pages_written"], &second["pages_written"]), (&json!(49), &json!(21)));
}

#[test]
fn a_drive_of_one_group_has_no_figures_by_group() {
    for change in [("fdp.groups = 2", "fdp.groups = 1"), ("policy = \"fdp\"", "policy = \"single\"")] {
        let config = Config::from_toml(&DRIVE.replace(change.0, change.1), "test").unwrap();
        let mut live = LiveRun::new(&config, Seed(1), Precondition::Sequential, || false).unwrap();
        assert_eq!(live.report().report.to_value()["groups"], json!([]), "{change:?}");
    }
}
