//! Replays on simulated drives, compared with runs on the same, and on a device of known times, worked out on paper.

#![allow(clippy::unwrap_used)] // helpers of tests count as library code

use flashwright_block::{
    BlockDevice, Bytes, Completion, DeviceInfo, Effects, IoError, Nanos, Request, RequestKind, RequestSource, Seed,
    SourceError, Tag,
};
use flashwright_host::{BlockLayerSettings, StackSettings};
use flashwright_sim::{Pace, Replay, ReplaySettings, RunSettings, Simulation, SourceSpec, scan};
use flashwright_ssd::{Config, Ssd};
use serde_json::{Value, json};
use std::collections::VecDeque;

/// Takes one request after the other, each for `service`; submitting one costs the host `handing`.
struct Fixed {
    now: Nanos,
    free: Nanos,
    service: u64,
    handing: u64,
    fails: Option<u64>,
    submitted: u64,
    flying: VecDeque<Completion>,
    kinds: Vec<RequestKind>,
}

impl Fixed {
    fn new(service: u64, handing: u64) -> Self {
        Self {
            now: Nanos(0),
            free: Nanos(0),
            service,
            handing,
            fails: None,
            submitted: 0,
            flying: VecDeque::new(),
            kinds: Vec::new(),
        }
    }
}

impl BlockDevice for Fixed {
    fn info(&self) -> DeviceInfo {
        DeviceInfo { name: "fixed".into(), capacity: Bytes(1 << 20), sector: Bytes(4096), queue_depth: 64 }
    }
    fn now(&self) -> Nanos {
        self.now
    }
    fn submit(&mut self, request: Request) -> Result<Tag, IoError> {
        self.now = Nanos(self.now.max(request.arrival).0 + self.handing);
        let start = self.free.max(self.now);
        let end = Nanos(start.0 + self.service);
        self.free = end;
        let tag = Tag(self.submitted);
        self.submitted += 1;
        self.kinds.push(request.kind);
        self.flying.push_back(Completion { tag, request, start, end, effects: Effects::default(), result: Ok(()) });
        Ok(tag)
    }
    fn wait(&mut self, until: Nanos, completion: &mut Completion) -> Result<bool, IoError> {
        match self.flying.front() {
            Some(ended) if ended.end <= until => {
                *completion = self.flying.pop_front().unwrap();
                self.now = self.now.max(completion.end);
                if Some(completion.tag.0) == self.fails {
                    completion.result = Err(Box::new(IoError::Device("read at byte 5: no".into())));
                }
                Ok(true)
            }
            _ => {
                if until.0 != u64::MAX {
                    self.now = self.now.max(until);
                }
                Ok(false)
            }
        }
    }
}

struct List(VecDeque<Request>);

impl RequestSource for List {
    fn fill(&mut self, batch: &mut Vec<Request>, at_most: usize) -> Result<usize, SourceError> {
        let n = at_most.min(self.0.len());
        batch.extend(self.0.drain(..n));
        Ok(n)
    }
}

/// Pages 0, 1, 2, ... every `gap`, with the kinds one after the other.
fn list(count: u64, gap: u64, kinds: &[RequestKind]) -> List {
    let one = |n: u64| Request {
        arrival: Nanos(n * gap),
        first_sector: n % 64 * 8,
        sectors: 8,
        kind: kinds[usize::try_from(n).unwrap() % kinds.len()],
        ..Request::default()
    };
    List((0..count).map(one).collect())
}

const READS: &[RequestKind] = &[RequestKind::Read];

fn settings(pace: Pace) -> ReplaySettings {
    ReplaySettings {
        workload: "a list".into(),
        config: json!({ "name": "fixed" }),
        host: StackSettings::default(),
        seed: Seed(1),
        pace,
        requests: None,
        time_limit: None,
        writes: true,
        real_time: false,
        timed: true,
    }
}

const OPEN: Pace = Pace::Open { time_scale: 1.0 };

fn played(device: Fixed, source: &mut List, settings: ReplaySettings) -> (Value, Vec<RequestKind>) {
    let mut replay = Replay::new(device, settings).unwrap();
    while !replay.step(source, 7) {}
    let report = replay.report();
    let json = report.report.to_value();
    let rows: u64 = report.rows.iter().map(|row| row.requests).sum();
    assert_eq!(json!(rows), json["measured"]["requests"], "windows hold every request once");
    (json, replay.device().kinds.clone())
}

#[test]
fn a_replay_finds_what_a_run_of_the_same_drive_finds() {
    let config = Config::default().with_settings(&["geometry.blocks-per-plane=64".to_owned()]).unwrap();
    for (workload, pace, host) in [
        ("uniform:write=0.5", Pace::Closed { depth: 1 }, "host.scheduler=none"),
        ("zipf:write=0.7", Pace::Closed { depth: 16 }, "host.scheduler=none"),
        ("uniform:write=0.3,rate=2000", Pace::Open { time_scale: 0.5 }, "host.scheduler=none"),
        ("sequential:write=0.5", Pace::Closed { depth: 64 }, "host.scheduler=noop"),
        ("uniform:write=0.3,rate=9000", Pace::Open { time_scale: 1.0 }, "host.scheduler=deadline"),
    ] {
        let config = config.with_settings(&[host.to_owned()]).unwrap();
        let run_settings =
            RunSettings { workload: workload.to_owned(), pace, requests: Some(20_000), ..RunSettings::default() };
        let spec = SourceSpec::Workload(workload.parse().unwrap());
        let mut run = Simulation::new(&config, run_settings).unwrap();
        let mut source = spec.open(run.ssd(), Seed(1)).unwrap();
        while !run.step(&mut source, 1000).unwrap() {}
        let run = run.report().unwrap().report.to_value();

        let device: Box<dyn BlockDevice> = Box::new(Ssd::new(&config, Seed(1), false).unwrap());
        let looked_at = Ssd::new(&config, Seed(1), false).unwrap();
        let mut source = spec.open(&looked_at, Seed(1)).unwrap();
        let mut replay = Replay::new(
            device,
            ReplaySettings { requests: Some(20_000), host: config.host.stack.clone(), ..settings(pace) },
        )
        .unwrap();
        while !replay.step(&mut source, 777) {}
        let found = replay.report().report.to_value();
        for name in ["measured", "response_time_ns", "service_time_ns", "throughput", "host_layers", "pace"] {
            assert_eq!(found[name], run[name], "{workload}: {name}");
        }
        assert_eq!(found["host"]["bytes"], run["host"]["bytes"]);
        assert_documented(&run, &found, "");
    }
}

/// Every figure of a run that programs script against is in a replay too, if only as null.
fn assert_documented(run: &Value, replay: &Value, at: &str) {
    // Figures that the contract does not name are a run's own.
    const OWN: &[&str] = &["config", "pace", "busy", "drive", "scheme", "digest"];
    const DOCUMENTED: &[&str] = &["gc", "flash", "mapping_cache", "merges", "buffer", "wear"];
    let (Value::Object(run), Value::Object(replay)) = (run, replay) else { return };
    for (name, value) in run {
        if at.is_empty() && OWN.contains(&name.as_str()) {
            continue;
        }
        let inside_own = DOCUMENTED.iter().any(|top| at.starts_with(top));
        if !inside_own {
            assert!(replay.contains_key(name), "{at}.{name} is missing");
        }
        if let Some(found) = replay.get(name) {
            assert_documented(value, found, &format!("{}{name}.", if at.is_empty() { "" } else { at }));
        }
    }
}

#[test]
fn lateness_is_what_the_host_falls_behind() {
    // Submitting takes 3 us, requests arrive every 2 us: the n-th (from 0) is due at 2n and comes at 3n, so that it is
    // n us late. At 4 us each none is late. The device's 1 us never matters.
    let late =
        |gap| played(Fixed::new(1000, 3000), &mut list(101, gap, READS), settings(OPEN)).0["lateness_ns"].clone();
    let found = late(2000);
    assert_eq!((&found["count"], &found["mean"], &found["max"]), (&json!(101), &json!(50_000.0), &json!(100_000)));
    // Of 101 values 0, 1, ... 100 us the middle one is 50, to three digits.
    assert!(found["p50"].as_u64().unwrap().abs_diff(50_000) <= 50, "{found}");
    assert_eq!(late(4000)["max"], json!(0));
    let closed = played(Fixed::new(1000, 0), &mut list(10, 0, READS), settings(Pace::Closed { depth: 4 })).0;
    assert_eq!(closed["lateness_ns"], Value::Null, "a closed loop asks for no time");
}

#[test]
fn lateness_is_part_of_the_response_behind_a_scheduler_too() {
    let block_layer = BlockLayerSettings { merge: false, plug_requests: 0, ..BlockLayerSettings::default() };
    let host = StackSettings { scheduler: "noop".parse().unwrap(), block_layer, ..StackSettings::default() };
    for host in [StackSettings::default(), host] {
        // As above: submitting takes 3 us, requests are due every 2 us.
        let mut source = list(101, 2000, READS);
        let (json, _) = played(Fixed::new(1000, 3000), &mut source, ReplaySettings { host, ..settings(OPEN) });
        let mean = |name: &str| json[name]["mean"].as_f64().unwrap();
        let response = json["response_time_ns"]["all"]["mean"].as_f64().unwrap();
        assert!(mean("lateness_ns") > 10_000.0, "{json}");
        assert!(response > mean("lateness_ns") + 1000.0, "{response} against {json}");
    }
}

#[test]
fn times_and_rates_are_the_devices() {
    // Depth 4 on a device that takes 10 us each, one by one: 100 requests in 1 ms, responses of 10, 20, 30, then 40 us.
    let (json, _) = played(Fixed::new(10_000, 0), &mut list(100, 0, READS), settings(Pace::Closed { depth: 4 }));
    assert_eq!(json["measured"], json!({ "requests": 100, "duration_ns": 1_000_000, "warmup_requests": 0 }));
    assert_eq!(json["throughput"], json!({ "iops": 100_000.0, "bytes_per_s": 409_600_000.0 }));
    assert_eq!(json["response_time_ns"]["read"]["mean"], json!((10.0 + 20.0 + 30.0 + 97.0 * 40.0) * 10.0));
    assert_eq!(json["service_time_ns"]["all"]["max"], json!(10_000));
    assert_eq!(json["response_time_ns"]["write"]["mean"], Value::Null);
    assert_eq!(json["write_amplification"], Value::Null);
}

#[test]
fn a_drive_without_timing_has_no_times() {
    let config = Config::default().with_settings(&["timing.model=none".to_owned()]).unwrap();
    let ssd = Ssd::new(&config, Seed(1), false).unwrap();
    let untimed = ReplaySettings { timed: false, ..settings(Pace::Closed { depth: 1 }) };
    let mut replay = Replay::new(ssd, untimed).unwrap();
    while !replay.step(&mut list(300, 0, READS), 1000) {}
    let json = replay.report().report.to_value();
    assert_eq!(json["measured"], json!({ "requests": 300, "duration_ns": null, "warmup_requests": 0 }));
    assert_eq!(json["response_time_ns"]["all"], json!(flashwright_sim::LatencySummary::default()));
    assert_eq!(json["throughput"], json!({ "iops": null, "bytes_per_s": null }));
}

#[test]
fn without_consent_only_reads_reach_the_device() {
    use RequestKind::{Flush, Read, Trim, Write};
    let mut source = list(1000, 0, &[Write, Read, Trim, Write, Flush]);
    let found = ReplaySettings { writes: false, ..settings(Pace::Closed { depth: 2 }) };
    let (json, kinds) = played(Fixed::new(1, 0), &mut source, found);
    assert!(kinds.iter().all(|kind| *kind == Read));
    assert_eq!(json["left_out"], json!({ "writes": 400, "trims": 200, "flushes": 200 }));
    assert_eq!((kinds.len(), &json["measured"]["requests"]), (200, &json!(200)));
    // Requests left out count as taken: the first 10 requests of the list have 2 reads.
    let found = ReplaySettings { writes: false, requests: Some(10), ..settings(Pace::Closed { depth: 2 }) };
    let (json, _) = played(Fixed::new(1, 0), &mut list(1000, 0, &[Write, Read, Trim, Write, Flush]), found);
    assert_eq!((&json["measured"]["requests"], &json["ended"]), (&json!(2), &json!("complete")));
    assert_eq!(json["left_out"], json!({ "writes": 4, "trims": 2, "flushes": 2 }));
}

#[test]
fn a_time_limit_ends_the_issuing() {
    // At 10 us each, requests are issued at 0, 10, ... 90 us: ten of them, and all are waited for.
    let limited = |pace| ReplaySettings { time_limit: Some(Nanos(100_000)), ..settings(pace) };
    let (json, _) = played(Fixed::new(10_000, 0), &mut list(1000, 0, READS), limited(Pace::Closed { depth: 1 }));
    assert_eq!((&json["ended"], &json["measured"]["requests"]), (&json!("time-limit"), &json!(10)));
    // In an open loop what arrives at the limit or later is not issued: at 0, 30, 60, 90 us.
    let (json, _) = played(Fixed::new(10_000, 0), &mut list(1000, 30_000, READS), limited(OPEN));
    assert_eq!((&json["ended"], &json["measured"]["requests"]), (&json!("time-limit"), &json!(4)));
}

#[test]
fn a_stop_keeps_what_was_finished() {
    let mut replay = Replay::new(Fixed::new(10_000, 0), settings(Pace::Closed { depth: 4 })).unwrap();
    let (mut source, watch) = (list(1000, 0, READS), replay.watch());
    assert!(!replay.step(&mut source, 100));
    assert_eq!(watch.progress().completed, 96, "of a hundred issued four are in flight");
    watch.stop();
    assert!(replay.step(&mut source, 100));
    let json = replay.report().report.to_value();
    assert_eq!((&json["ended"], &json["measured"]["requests"]), (&json!("interrupted"), &json!(100)));
    assert!(replay.step(&mut source, 100), "what has ended stays so");
}

#[test]
fn a_failing_device_ends_the_replay_and_the_rest_counts() {
    let device = Fixed { fails: Some(20), ..Fixed::new(10_000, 0) };
    let (json, _) = played(device, &mut list(1000, 0, READS), settings(Pace::Closed { depth: 4 }));
    assert_eq!(json["ended"], json!("failed"));
    assert_eq!(json["note"], json!("the device failed: read at byte 5: no"));
    // Number 20 (from 0) failed; 0 to 19 had ended, 21 to 23 were in flight and ended well.
    assert_eq!(json["measured"]["requests"], json!(23));
}

#[test]
fn long_replays_keep_few_windows() {
    // A request each 10 s for 100,000 s, of which a hundred thousand follow at the end.
    let mut requests = list(10_000, 10_000_000_000, READS).0;
    requests.extend(std::iter::repeat_n(
        Request { arrival: Nanos(100_000_000_000_000), sectors: 8, ..Request::default() },
        100_000,
    ));
    let mut replay = Replay::new(Fixed::new(1000, 0), settings(OPEN)).unwrap();
    let mut source = List(requests);
    while !replay.step(&mut source, 1000) {}
    let rows = replay.report().rows;
    assert!(rows.len() <= 1001, "{} windows", rows.len());
    assert_eq!(rows.iter().map(|row| row.requests).sum::<u64>(), 110_000);
    assert_eq!(rows.last().unwrap().requests_end, 110_000);
    assert!(rows.windows(2).all(|pair| pair[0].time_end_ns < pair[1].time_end_ns));
}

#[test]
fn what_does_not_fit_is_found_before_anything_is_played() {
    let info = Fixed::new(0, 0).info();
    let look = |source: &mut List, writes| scan(source, &info, writes, u64::MAX, || false);
    let found = look(&mut list(100, 0, READS), false).unwrap();
    assert_eq!((found.played, found.left_out, found.end_sector), (100, 0, 512));
    let with = |at: usize, change: fn(&mut Request)| {
        let mut source = list(100, 0, READS);
        change(&mut source.0[at]);
        look(&mut source, false).map_err(|error| error.to_string())
    };
    assert_eq!(
        with(41, |request| request.first_sector = 2048),
        Err("request 42 (read of 4 KiB) ends at 1028 KiB, but the device has 1 MiB".into())
    );
    assert_eq!(
        with(6, |request| request.first_sector = 1),
        Err("request 7 (read of 4 KiB at byte 512) is not aligned to the device's blocks of 4 KiB".into())
    );
    // Requests that are not played may have any address.
    let beyond: fn(&mut Request) = |request| (request.kind, request.first_sector) = (RequestKind::Write, u64::MAX - 9);
    assert_eq!(with(6, beyond).unwrap().left_out, 1);
    assert_eq!(
        look(&mut list(0, 0, READS), false).unwrap_err().to_string(),
        "nothing to play: the workload has no requests"
    );
    assert!(look(&mut list(9, 0, &[RequestKind::Write]), false).unwrap_err().to_string().contains("all 9 requests"));
    assert_eq!(look(&mut list(9, 0, &[RequestKind::Write]), true).unwrap().played, 9);
}
