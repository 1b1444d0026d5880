//! Schedules worked out on paper, one file each in `tests/golden/host`.

use crate::common::{Recorder, request, written};
use flashwright_block::{BlockDevice, Completion, Nanos};
use flashwright_host::{SchedulerName, Stack, StackSettings};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// One schedule.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Schedule {
    /// What it shows, and how it was worked out.
    about: String,
    /// Sectors of the device.
    sectors: u64,
    /// Requests that the device takes at once; each takes a millisecond.
    depth: u32,
    /// The table `[host]`.
    host: toml::Table,
    /// The requests as the host submits them.
    requests: Vec<String>,
    /// What reaches the device, in order.
    dispatched: Vec<String>,
    /// When each request is done, in the order of `requests`, where that matters.
    #[serde(default)]
    completed: Vec<String>,
    /// The counts of the topmost scheduler, if they matter.
    #[serde(default)]
    figures: BTreeMap<String, f64>,
}

fn play(schedule: &Schedule) -> (Vec<String>, Vec<String>, Vec<(String, f64)>) {
    assert!(schedule.about.len() > 20);
    let settings: StackSettings = schedule.host.clone().try_into().expect("settings of the host");
    let device = Recorder::new(schedule.sectors, schedule.depth, |_| 1_000_000);
    let mut stack = Stack::new(&settings, device).expect("sound settings");
    let mut ends = vec![String::new(); schedule.requests.len()];
    let mut done = Completion::default();
    let mut note = |done: &Completion| ends[usize::try_from(done.tag.0).expect("few")] = done.end.to_string();
    for text in &schedule.requests {
        let request = request(text);
        while stack.wait(request.arrival, &mut done).expect("no faults") {
            note(&done);
        }
        stack.submit(request).expect("no faults");
    }
    // The host continues to run instead of only waiting: plugs and pending queues end at their own times.
    while stack.wait(Nanos(60_000_000_000), &mut done).expect("no faults") {
        note(&done);
    }
    let dispatched = stack.device().dispatched.iter().map(|(at, request)| written(*at, request)).collect();
    (dispatched, ends, stack.figures().swap_remove(0).extra)
}

#[test]
fn schedules_are_as_worked_by_hand() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/host");
    let mut schedulers_seen = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the folder of golden cases") {
        let path = entry.expect("readable").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("readable");
        let schedule: Schedule = toml::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let (dispatched, ends, figures) = play(&schedule);
        assert_eq!(dispatched, schedule.dispatched, "{name}: what reaches the device");
        assert!(!ends.iter().any(String::is_empty), "{name}: every request completes");
        if !schedule.completed.is_empty() {
            assert_eq!(ends, schedule.completed, "{name}: when requests complete");
        }
        for figure in &schedule.figures {
            assert!(figures.iter().any(|(key, count)| (key, count) == figure), "{name}: {figure:?} of {figures:?}");
        }
        let chain = schedule.host["scheduler"].as_str().expect("a chain").to_owned();
        schedulers_seen.extend(chain.split('+').map(str::to_owned));
    }
    for scheduler in SchedulerName::ALL {
        let name = scheduler.listed().name;
        assert!(schedulers_seen.iter().any(|seen| seen == name), "no schedule of {name} was worked by hand");
    }
}
