//! Every numeric setting at its limits and one beyond: a drive runs, or one line states the error.

#![allow(clippy::unwrap_used)] // helpers of tests count as library code

use crate::common::{rng, shape};
use flashwright_block::{BlockDevice, Completion};
use flashwright_block::{Bytes, Nanos, Request, RequestKind, Seed, below};
use flashwright_ftl::{MapPrefetchName, ScheduleName};
use flashwright_host::Stack;
use flashwright_ssd::keys::{self, Key, Kind};
use flashwright_ssd::{Config, Controller, DriveConfig, Rate, Ssd};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The settings that make a key effective.
fn in_force(key: &Key) -> Vec<String> {
    let set = |all: &[&str]| all.iter().map(|&one| one.to_owned()).collect();
    let parts: Vec<&str> = key.path.split('.').collect();
    match parts[..] {
        ["ftl", "dftl", policy, _] if MapPrefetchName::ALL.iter().any(|known| known.listed().name == policy) => {
            vec!["ftl.scheme=dftl".into(), format!("ftl.dftl.prefetch={policy}")]
        }
        ["ftl", "dftl", policy, _] => vec!["ftl.scheme=dftl".into(), format!("ftl.dftl.replacement={policy}")],
        ["ftl", scheme, _] => vec![format!("ftl.scheme={scheme}"), "capacity.utilization=0.6".into()],
        ["gc", schedule, _] if ScheduleName::ALL.iter().any(|known| known.listed().name == schedule) => {
            vec![format!("gc.schedule={schedule}")]
        }
        ["gc", policy, _] => vec![format!("gc.victim={policy}"), "wear.pe-cycles-max=1000000".into()],
        ["placement", "hot-cold", _] => set(&["placement.policy=hot-cold", "placement.hot-cold.decay-writes=1000000"]),
        ["placement", policy, _] => vec![format!("placement.policy={policy}"), "capacity.utilization=0.5".into()],
        ["slc", key] => vec![
            format!("slc.cache={}", if key == "block-share" { "fixed" } else { "dynamic" }),
            "geometry.bits-per-cell=2".into(),
            "slc.fold-after=1 ms".into(),
        ],
        ["wear", policy, _] => vec![format!("wear.policy={policy}"), "wear.pe-cycles-max=1000000".into()],
        ["wear", "pe-cycles-spread" | "pe-cycles-weibull"] => set(&["wear.pe-cycles-max=1000000"]),
        ["errors", ..] => set(&["errors.law=power-law"]),
        ["ram", manager @ ("ap" | "gc-arm"), _] => vec![
            format!("ram.manager={manager}"),
            "ram.size=1 MiB".into(),
            "ftl.scheme=dftl".into(),
            "ftl.dftl.replacement=grouped".into(),
        ],
        ["ram", manager, _] => vec![format!("ram.manager={manager}"), "ram.size=1 MiB".into()],
        ["ram", "size" | "latency"] => set(&["ram.manager=lru", "ram.size=1 MiB"]),
        ["host", "block-layer", _] => set(&["host.scheduler=deadline"]),
        ["host", scheduler, _] => vec![
            format!("host.scheduler={scheduler}"),
            "host.profile.clustered-page=4 KiB".into(),
            "host.profile.clustered-block=32 KiB".into(),
            "host.profile.read-buffer=none".into(),
            "host.profile.write-buffer=none".into(),
        ],
        ["controller", "write-buffer", _] => set(&["controller.write-buffer.size=64 KiB"]),
        ["controller", "read-buffer", _] => set(&["controller.read-buffer.size=64 KiB"]),
        _ => Vec::new(),
    }
}

/// The key's smallest and largest value and one beyond each, as users write them, and whether they are allowed.
fn extremes(key: &Key) -> Vec<(String, bool)> {
    let (min, max) = key.limits().expect("a number");
    let range = key.range().expect("a number");
    let (open_below, open_above) = (range.contains("above"), range.contains("below"));
    if key.kind == Kind::Real {
        let (min, max): (f64, f64) = (min.parse().unwrap(), max.replace(',', "").parse().unwrap());
        let float = |value: f64| format!("{value:?}");
        return vec![
            (float(min), !open_below),
            (float(min + 1e-9), true),
            (float(max), !open_above),
            (float(max - 1e-9), true),
            (float(min - 1e-9), false),
            (float(max + 1e-6), false),
            ("nan".to_owned(), false),
            ("inf".to_owned(), false),
        ];
    }
    let whole = |text: &str| match key.kind {
        Kind::Time => text.parse::<Nanos>().unwrap().0,
        Kind::Size => text.parse::<Bytes>().unwrap().0,
        Kind::Rate => text.parse::<Rate>().unwrap().0.unwrap(),
        _ => text.replace(',', "").parse().unwrap(),
    };
    let written = |value: u64| match key.kind {
        Kind::Time => format!("{value} ns"),
        Kind::Size => format!("{value} B"),
        Kind::Rate => format!("{value} B/s"),
        _ => value.to_string(),
    };
    let (min, max) = (whole(min), whole(max));
    let mut all = vec![(written(min), true), (written(max), true), (written(max + 1), false)];
    all.push(if min > 0 { (written(min - 1), false) } else { ("-1".to_owned(), false) });
    all
}

/// Plays some requests of each kind, back to back and after each other.
fn play(config: &DriveConfig) -> Result<(), String> {
    let ssd = Ssd::new(config, Seed(1), false).map_err(|error| error.to_string())?;
    let sectors = u64::from(ssd.logical_pages()) * ssd.sectors_per_page();
    let controller = Controller::new(&config.controller, Seed(1), ssd);
    let mut drive = Stack::new(&config.host.stack, controller).map_err(|all| {
        all.into_iter().map(|one| format!("host.{}: {}", one.key, one.what)).collect::<Vec<_>>().join("\n")
    })?;
    let (mut rng, mut ended) = (rng(1), 0);
    let mut completion = Completion::default();
    for at in 0..400 {
        let length = 1 + below(&mut rng, 40).min(sectors - 1);
        let kind = match below(&mut rng, 8) {
            0 => RequestKind::Read,
            1 => RequestKind::Trim,
            _ => RequestKind::Write,
        };
        let request = Request {
            first_sector: below(&mut rng, sectors - length + 1),
            sectors: u32::try_from(length).unwrap(),
            kind,
            arrival: drive.now(),
            ..Request::default()
        };
        // A worn-out drive gives an error of one line.
        if drive.submit(request).is_err() {
            return Ok(());
        }
        while at - ended > 8 {
            match drive.wait(Nanos(u64::MAX), &mut completion) {
                Ok(true) => ended += 1,
                Ok(false) => return Err("a request never ends".into()),
                Err(_) => return Ok(()),
            }
        }
    }
    while drive.wait(Nanos(u64::MAX), &mut completion).unwrap_or(false) {}
    Ok(())
}

/// Most pages that a drive of this test may have: larger ones are checked, not built.
const PAGES_MAX: u32 = 1 << 20;

#[test]
fn every_number_at_its_extremes_runs_or_is_refused_in_a_line() {
    let small = Config::default().with_settings(&shape(2, 2, 1, 32, 8, 160)).unwrap();
    let mut wrong = Vec::new();
    let numbers = keys::all().iter().filter(|key| key.limits().is_some());
    for key in numbers {
        let base = small.with_settings(&in_force(key)).unwrap_or_else(|error| panic!("{}: {error}", key.path));
        for timing in ["parallel", "serial"] {
            for (value, allowed) in extremes(key) {
                let setting = format!("{}={value}", key.path);
                let said = catch_unwind(AssertUnwindSafe(|| {
                    let config = base.with_settings(&[&setting, &format!("timing.model={timing}")]);
                    let config = match config {
                        Ok(config) if allowed => config,
                        Ok(_) => return Some("passes the check".to_owned()),
                        // Rules that span keys may narrow a range.
                        Err(error) if allowed || error.problems[0].key == key.path => {
                            return unclear(&error.to_string());
                        }
                        Err(error) => return Some(format!("says {error}")),
                    };
                    if config.layout().pages() > PAGES_MAX {
                        return None;
                    }
                    play(&config).err().and_then(|error| unclear(&error))
                }));
                match said {
                    Ok(None) => {}
                    Ok(Some(what)) => wrong.push(format!("{setting} ({timing}): {what}")),
                    Err(_) => wrong.push(format!("{setting} ({timing}): panics")),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The problem with a message, if any: it must be one line that states what is expected or what to do.
fn unclear(message: &str) -> Option<String> {
    let clear = message.lines().count() == 1
        && [": found ", "expected", ";", ", but "].iter().any(|mark| message.contains(mark));
    (!clear).then(|| format!("says {message:?}"))
}

#[test]
fn every_key_says_what_it_means_and_every_number_has_a_range() {
    for key in keys::all() {
        assert!(key.about.len() > 8, "{} has no doc comment", key.path);
        let number = matches!(key.kind, Kind::Whole | Kind::Real | Kind::Time | Kind::Size | Kind::Rate);
        assert_eq!(number, key.range().is_some(), "{}", key.path);
        assert!(!key.default.is_empty() || key.path == "host.cfq.quantum", "{} has no default", key.path);
    }
    assert!(keys::all().len() > 200, "{}", keys::all().len());
}

/// The keys are those that a description writes, and what is left open.
#[test]
fn the_keys_are_those_of_a_description() {
    let text = DriveConfig::default().to_toml();
    let (mut table, mut written) = (String::new(), Vec::new());
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some(name) = line.strip_prefix('[') {
            table = format!("{}.", name.trim_end_matches(']'));
        } else {
            written.push(format!("{table}{}", line.split(" = ").next().unwrap()));
        }
    }
    let known = keys::all().iter().map(|key| key.path.clone()).filter(|path| path != "host.cfq.quantum");
    let (mut known, mut written) = (known.collect::<Vec<_>>(), written);
    // Another test of this process registers a layer, before or after the keys are listed.
    let is_ours = |path: &String| !path.starts_with("ftl.own-page.");
    known.retain(is_ours);
    written.retain(is_ours);
    known.sort();
    written.sort();
    assert_eq!(known, written);
}

#[test]
fn what_is_left_open_by_default_can_be_set() {
    let config = Config::default().with_settings(&["host.cfq.quantum=2"]).unwrap();
    assert_eq!(config.host.stack.schedulers.cfq.quantum, Some(2));
    let error = config.with_settings(&["host.cfq.quantum=0"]).unwrap_err().to_string();
    assert_eq!(error, "--set: host.cfq.quantum: found 0, expected at least 1");
}
