//! Runs the traces of `tests/golden`, whose figures were worked out on paper. The format is in the README beside them.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers of tests count as library code

use crate::common::*;
use flashwright_block::{BlockDevice, Completion, Nanos, Request, RequestKind, Seed};
use flashwright_ftl::{CAUSES, Counters, LpnRun, OP_KINDS};
use flashwright_nand::Lpn;
use flashwright_ssd::{Config, Ssd};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use toml::{Table, Value};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Trace {
    about: String,
    schemes: Vec<String>,
    config: Table,
    #[serde(default)]
    columns: BTreeMap<String, Vec<String>>,
    step: Vec<Step>,
    #[serde(default)]
    end: End,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Step {
    write: Option<Pages>,
    read: Option<Pages>,
    trim: Option<Pages>,
    precondition: Option<Pages>,
    write_sectors: Option<[u32; 2]>,
    read_sectors: Option<[u32; 2]>,
    trim_sectors: Option<[u32; 2]>,
    #[serde(default)]
    fua: bool,
    #[serde(default)]
    flush: bool,
    idle: Option<Nanos>,
    expect: Option<Each<String>>,
    at: Option<Each<String>>,
    ram: Option<Each<String>>,
    arrival: Option<Nanos>,
    start: Option<Each<Nanos>>,
    end: Option<Each<Nanos>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    totals: Option<Each<String>>,
    map: Option<Each<String>>,
    erases: Option<Each<Vec<u32>>>,
    figures: Option<Value>,
    ram: Option<Value>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Pages {
    One(u32),
    Run([u32; 2]),
}

impl Pages {
    fn run(self) -> (u32, u32) {
        match self {
            Self::One(lpn) => (lpn, 1),
            Self::Run([first, count]) => (first, count),
        }
    }
}

/// The same for all columns, or by column.
#[derive(Deserialize)]
#[serde(untagged)]
enum Each<T> {
    All(T),
    By(BTreeMap<String, T>),
}

impl<T> Each<T> {
    fn of(&self, column: &str) -> &T {
        match self {
            Self::All(value) => value,
            Self::By(values) => values.get(column).unwrap_or_else(|| panic!("no value for column {column}")),
        }
    }
}

impl Step {
    fn request(&self, ssd: &Ssd) -> Option<Request> {
        use RequestKind::{Flush, Read, Trim, Write};
        let whole = [(Write, self.write), (Read, self.read), (Trim, self.trim)]
            .into_iter()
            .filter_map(|(kind, run)| run.map(|run| pages(ssd, kind, run.run().0, run.run().1)));
        let part = [(Write, self.write_sectors), (Read, self.read_sectors), (Trim, self.trim_sectors)]
            .into_iter()
            .filter_map(|(kind, run)| run.map(|[first, count]| sectors(kind, u64::from(first), count)));
        let flush = self.flush.then(|| sectors(Flush, 0, 0));
        let all: Vec<Request> = whole.chain(part).chain(flush).collect();
        let others = usize::from(self.precondition.is_some()) + usize::from(self.idle.is_some());
        assert_eq!(all.len() + others, 1, "a step does one thing");
        all.first().map(|request| Request { arrival: self.arrival.unwrap_or_default(), fua: self.fua, ..*request })
    }
}

/// Operations by kind and cause, as the traces write them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Ops {
    by_cause: [[u64; CAUSES]; OP_KINDS],
    unmapped: u64,
}

const KINDS: [&str; OP_KINDS] = ["R", "P", "E", "O"];
const SUFFIXES: [&str; CAUSES] = ["", "g", "m", "p", "t", "gt", "w"];

impl Ops {
    fn counted(counters: &Counters) -> Self {
        Self {
            by_cause: KIND.map(|kind| CAUSE.map(|cause| counters.get(kind, cause))),
            unmapped: counters.reads_unmapped,
        }
    }

    fn read(text: &str) -> Self {
        let mut ops = Self::default();
        for word in text.split_whitespace() {
            let split =
                word.find(|c: char| !c.is_ascii_digit()).unwrap_or_else(|| panic!("{word:?} names no operation"));
            let count: u64 = word[..split].parse().unwrap_or_else(|_| panic!("{word:?} has no number"));
            let (kind, cause) = word[split..].split_at(1);
            if (kind, cause) == ("U", "") {
                ops.unmapped += count;
                continue;
            }
            let kind = KINDS.iter().position(|known| *known == kind).unwrap_or_else(|| panic!("operation of {word:?}"));
            let cause =
                SUFFIXES.iter().position(|known| *known == cause).unwrap_or_else(|| panic!("cause of {word:?}"));
            ops.by_cause[kind][cause] += count;
        }
        ops
    }

    fn text(&self) -> String {
        let mut words = Vec::new();
        for (kind, causes) in KINDS.iter().zip(self.by_cause) {
            for (suffix, count) in SUFFIXES.iter().zip(causes).filter(|(_, count)| *count > 0) {
                words.push(format!("{count}{kind}{suffix}"));
            }
        }
        if self.unmapped > 0 {
            words.push(format!("{}U", self.unmapped));
        }
        words.join(" ")
    }
}

fn assert_ops(found: &Counters, expected: &str, at: &str) {
    let (found, expected) = (Ops::counted(found), Ops::read(expected));
    assert!(found == expected, "{at}: found {:?}, expected {:?}", found.text(), expected.text());
}

fn assert_places(ssd: &Ssd, expected: &str, at: &str) {
    use flashwright_ftl::Ftl;
    for word in expected.split_whitespace() {
        let (lpn, place) = word.split_once(':').unwrap_or_else(|| panic!("{word:?} is not LPN:BLOCK.PAGE"));
        let geometry = ssd.flash().geometry();
        let found = ssd
            .scheme()
            .lookup(Lpn(lpn.parse().unwrap()), ssd.flash())
            .map_or("-".to_owned(), |ppn| format!("B{}.{}", geometry.block_of(ppn).0, geometry.page_in_block(ppn)));
        assert_eq!(found, place, "{at}: where lpn {lpn} lies");
    }
}

/// The logical pages in RAM.
fn assert_held(ssd: &Ssd, expected: &str, at: &str) {
    let ram = ssd.ram().unwrap_or_else(|| panic!("{at}: the drive has no RAM"));
    let held: Vec<u32> = (0..ssd.logical_pages()).filter(|lpn| ram.is_dirty(Lpn(*lpn)).is_some()).collect();
    let expected: Vec<u32> = expected.split_whitespace().map(|lpn| lpn.parse().unwrap()).collect();
    assert_eq!(held, expected, "{at}: pages in RAM");
}

/// Whether `found` has all that `expected` names.
fn assert_part(found: &Value, expected: &Value, at: &str) {
    match (found, expected) {
        (Value::Table(found), Value::Table(expected)) => {
            for (key, expected) in expected {
                let found = found.get(key).unwrap_or_else(|| panic!("{at}: no figure {key}"));
                assert_part(found, expected, &format!("{at}.{key}"));
            }
        }
        _ => assert_eq!(found, expected, "{at}"),
    }
}

fn run(trace: &Trace, scheme: &str, column: &str, settings: &[String], label: &str) {
    let mut config = trace.config.clone();
    // Worked by hand: a frontier for all pages, planes in strict turn.
    let placement = config.entry("placement").or_insert_with(|| Value::Table(Table::new()));
    let placement = placement.as_table_mut().expect("a table");
    placement.entry("policy").or_insert_with(|| "single".into());
    placement.entry("allocation").or_insert_with(|| "dynamic".into());
    let base = Config::from_toml(&config.to_string(), label).unwrap_or_else(|error| panic!("{error}"));
    let scheme = format!("ftl.scheme={scheme:?}");
    let config = base.with_settings(&[&[scheme], settings].concat()).unwrap_or_else(|error| panic!("{label}: {error}"));
    let mut ssd = Ssd::new(&config, Seed(1), true).unwrap_or_else(|error| panic!("{label}: {error}"));
    let timed = trace.step.iter().any(|step| step.end.is_some());
    let (mut tags, mut completions) = (BTreeMap::new(), Vec::<Completion>::new());
    for (number, step) in trace.step.iter().enumerate() {
        let at = format!("{label}, step {number}");
        let before = ssd.flash().counters().clone();
        if let Some(request) = step.request(&ssd) {
            let tag = ssd.submit(request).unwrap_or_else(|error| panic!("{at}: {error}"));
            assert!(tags.insert(tag, number).is_none());
        } else if let Some(run) = step.precondition {
            let (first, pages) = run.run();
            ssd.precondition(LpnRun { first: Lpn(first), pages, stream: 0 }).unwrap();
        } else if let Some(span) = step.idle {
            let until = ssd.now() + span;
            while let Some(completion) = wait(&mut ssd, until).unwrap() {
                completions.push(completion);
            }
        }
        if !timed {
            completions.extend(drain(&mut ssd).unwrap());
        }
        if let Some(expected) = &step.expect {
            assert_ops(&ssd.flash().counters().since(&before), expected.of(column), &at);
        }
        if let Some(expected) = &step.at {
            assert_places(&ssd, expected.of(column), &at);
        }
        if let Some(expected) = &step.ram {
            assert_held(&ssd, expected.of(column), &at);
        }
        assert_clean(&ssd, &at);
    }
    completions.extend(drain(&mut ssd).unwrap());
    assert_eq!(completions.len(), tags.len(), "{label}: every request completes");
    for completion in completions {
        let number = tags[&completion.tag];
        let step = &trace.step[number];
        for (name, expected, found) in [("start", &step.start, completion.start), ("end", &step.end, completion.end)] {
            if let Some(expected) = expected {
                let expected = *expected.of(column);
                assert!(found == expected, "{label}, step {number}: {name} is {found}, expected {expected}");
            }
        }
    }
    if let Some(expected) = &trace.end.totals {
        assert_ops(ssd.flash().counters(), expected.of(column), &format!("{label}: totals"));
    }
    if let Some(expected) = &trace.end.map {
        assert_places(&ssd, expected.of(column), &format!("{label}: at the end"));
    }
    if let Some(expected) = &trace.end.erases {
        let found: Vec<u32> = (0..ssd.flash().geometry().blocks())
            .map(|block| ssd.flash().nand().erases(flashwright_nand::BlockId(block)))
            .collect();
        assert_eq!(&found, expected.of(column), "{label}: erases by block");
    }
    for (what, expected, found) in [
        ("figures", &trace.end.figures, Value::try_from(ssd.figures()).ok()),
        ("ram", &trace.end.ram, ssd.ram_figures().and_then(|figures| Value::try_from(figures).ok())),
    ] {
        if let Some(expected) = expected {
            let found = found.unwrap_or_else(|| panic!("{label}: no {what}"));
            let by_column = expected.get(column).filter(|_| trace.columns.contains_key(column));
            assert_part(&found, by_column.unwrap_or(expected), &format!("{label}: {what}"));
        }
    }
}

#[test]
fn every_trace_gives_its_figures() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let paths: BTreeSet<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    assert!(!paths.is_empty(), "no traces in {}", folder.display());
    for path in paths {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let trace: Trace = toml::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        println!("{name}: {}", trace.about);
        assert!(!trace.schemes.is_empty(), "{name} names no scheme");
        for scheme in &trace.schemes {
            if trace.columns.is_empty() {
                run(&trace, scheme, "", &[], &format!("{name}/{scheme}"));
            }
            for (column, settings) in &trace.columns {
                run(&trace, scheme, column, settings, &format!("{name}/{scheme}/{column}"));
            }
        }
    }
}
