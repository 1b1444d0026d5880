//! Requirements on every translation layer, under every policy, program order and timing model on the lists.
//!
//! A stream of random requests is played on a tiny drive, on which rare states are common, and on a reference model
//! that knows only which logical pages hold data. After every step the drive's whole state is audited, and the stamps
//! that `verify` puts on pages show whether each read returned what was last written. Weights of the kinds of request
//! are drawn per stream, some of them zero, and so are skew, lengths, and the settings that no list names.
//!
//! A scheme or policy that joins its list is tested here without another line. If a scheme refuses a shape, another is
//! tried; each scheme must accept at least one. A failing stream prints its case and the command that repeats it.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)] // helpers of tests count as library code

use crate::common::*;
use flashwright_block::{BlockDevice, IoError, Nanos, Request, RequestKind, Rng, Seed, chance};
use flashwright_ftl::{
    CAUSES, Cause, Ftl, LpnRun, OpKind, PlacementName, ScheduleName, SchemeName, VictimName, WearName,
};
use flashwright_nand::{BlockId, Lpn, ProgramOrder};
use flashwright_ssd::{DriveConfig, ManagerName, Ssd};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Steps over all streams of [`random_streams`]: shared out among the cases, so that the lists may grow.
const STEPS: usize = 270_000;
/// Set to the case that a failure printed to run that one alone.
const ONLY: &str = "FLASHWRIGHT_CASE";
/// Set to a number to run every case this many times, each time with another seed.
const ROUNDS: &str = "FLASHWRIGHT_ROUNDS";

/// Policies made for each other.
const COMPANIONS: [(VictimName, PlacementName); 2] =
    [(VictimName::ContainerMarking, PlacementName::ContainerMarking), (VictimName::PartitionFifo, PlacementName::Envy)];

/// Drives whose chips do more than a page at a time, each under a name that stands for a timing model, and whether every scheme
/// takes it.
const CHIPS: [(&str, bool, &[&str]); 5] = [
    ("blocking", true, &["timing.cleaning-blocks=controller"]),
    (
        "suspending",
        true,
        &[
            "timing.die-order=by-class",
            "chips.suspends=programs-and-erases",
            "chips.run-least=30 us",
            "timing.passed-max=3",
        ],
    ),
    ("copying-back", true, &["chips.copyback=true", "chips.cache-program=true", "chips.cache-read=true"]),
    (
        "superblocks",
        false,
        &[
            "geometry.superblock=drive",
            "geometry.pages-per-block=6",
            "geometry.blocks-per-plane=24",
            "geometry.bits-per-cell=3",
            "chips.programming=one-shot",
            "chips.read-times=40 us, 50 us, 70 us",
            "chips.suspends=programs-and-erases",
            "chips.cache-program=true",
            "chips.write-ram=3 MiB",
            "timing.die-order=by-class",
            "capacity.logical=0 B",
            "capacity.utilization=0.5",
        ],
    ),
    (
        "two-pass",
        false,
        &[
            "geometry.superblock=die",
            "geometry.mapping-unit=512 B",
            "geometry.pages-per-block=6",
            "geometry.blocks-per-plane=24",
            "geometry.bits-per-cell=2",
            "chips.programming=two-pass",
            "chips.first-pass=90 us",
            "chips.suspends=erases",
            "chips.cache-read=true",
            "chips.write-ram=3 MiB",
            "capacity.logical=0 B",
            "capacity.utilization=0.5",
        ],
    ),
];

/// `slc.cache`, `slc.when-full` and `geometry.bits-per-cell`.
type Slc = (&'static str, &'static str, u32);

/// Every kind of SLC cache.
const SLC: [Slc; 5] = [
    ("fixed", "direct", 2),
    ("dynamic", "direct", 3),
    ("fixed", "fold", 3),
    ("dynamic", "fold", 2),
    ("dynamic", "fold", 4),
];

/// One point of the product of all lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Case {
    scheme: SchemeName,
    victim: VictimName,
    placement: PlacementName,
    ram: Option<ManagerName>,
    wear: Option<WearName>,
    schedule: ScheduleName,
    slc: Option<Slc>,
    order: ProgramOrder,
    timing: &'static str,
}

impl Case {
    /// Schemes with every manager of RAM; those that leave cleaning and placement to policies with every policy by itself, and
    /// each victim policy with another placement policy than the first, so that all meet; and with
    /// every wear policy where they level wear; with every SLC cache where they have one, under every schedule and manager
    /// of RAM.
    fn all() -> Vec<Self> {
        let (mut cases, mut schedules, mut caches) = (Vec::new(), Vec::new(), Vec::new());
        for scheme in any_order() {
            for order in [ProgramOrder::Ascending, ProgramOrder::Any] {
                if scheme.needs_order().is_some_and(|needed| needed != order) {
                    continue;
                }
                for timing in ["none", "serial", "parallel"] {
                    let (victims, placements) = (VictimName::ALL, PlacementName::ALL);
                    let plain = Self {
                        scheme,
                        victim: victims[0],
                        placement: placements[0],
                        ram: None,
                        wear: None,
                        schedule: ScheduleName::Foreground,
                        slc: None,
                        order,
                        timing,
                    };
                    cases.push(plain);
                    if timing == "parallel" && !scheme.asks_policies() {
                        schedules.extend(Self::with_chips(&plain));
                    }
                    cases.extend(ManagerName::ALL.iter().map(|ram| Self { ram: Some(*ram), ..plain }));
                    if !scheme.asks_policies() {
                        continue;
                    }
                    cases.extend(victims[1..].iter().map(|victim| Self { victim: *victim, ..plain }));
                    cases.extend(placements[1..].iter().map(|placement| Self { placement: *placement, ..plain }));
                    let others = placements.iter().copied().skip(1).cycle();
                    cases.extend(victims.iter().zip(others).map(|(victim, placement)| Self {
                        victim: *victim,
                        placement,
                        ..plain
                    }));
                    cases.extend(COMPANIONS.map(|(victim, placement)| Self { victim, placement, ..plain }));
                    cases.dedup();
                    if scheme.cleans_in_steps() {
                        let works = |schedule: &&ScheduleName| timing != "none" || !schedule.needs_time();
                        let others = || ScheduleName::ALL[1..].iter().filter(works).copied();
                        schedules.extend(others().map(|schedule| Self { schedule, ..plain }));
                        let rams = ManagerName::ALL.iter().copied().cycle();
                        schedules.extend(others().zip(rams).map(|(schedule, ram)| Self {
                            schedule,
                            ram: Some(ram),
                            wear: Some(WearName::ALL[0]),
                            ..plain
                        }));
                    }
                    if timing == "parallel" {
                        schedules.extend(Self::with_chips(&plain));
                    }
                    if scheme.caches_in_slc() {
                        let with = |slc: &Slc| Self { slc: Some(*slc), ..plain };
                        let works = |schedule: &&ScheduleName| timing != "none" || !schedule.needs_time();
                        caches.extend(SLC.iter().map(with));
                        let turns = || SLC.iter().map(with).cycle();
                        let others = ScheduleName::ALL[1..].iter().filter(works);
                        caches.extend(others.zip(turns()).map(|(schedule, one)| Self { schedule: *schedule, ..one }));
                        let rams = ManagerName::ALL.iter().copied();
                        caches.extend(rams.zip(turns()).map(|(ram, one)| Self { ram: Some(ram), ..one }));
                        let pairs = placements[1..].iter().zip(victims.iter().cycle());
                        caches.extend(pairs.zip(turns()).map(|((placement, victim), one)| Self {
                            placement: *placement,
                            victim: *victim,
                            ..one
                        }));
                    }
                    if scheme.levels_wear() {
                        cases.extend(WearName::ALL.iter().map(|wear| Self { wear: Some(*wear), ..plain }));
                    }
                }
            }
        }
        cases.extend(schedules);
        cases.extend(caches);
        cases
    }

    /// A case on each of the [`CHIPS`] that its scheme takes, under every schedule that it follows.
    fn with_chips(plain: &Self) -> Vec<Self> {
        let chips = CHIPS.iter().filter(|(_, all, _)| *all || plain.scheme.asks_policies());
        let schedules = if plain.scheme.cleans_in_steps() { ScheduleName::ALL } else { &ScheduleName::ALL[..1] };
        let mut cases: Vec<Self> = chips
            .flat_map(|(timing, ..)| schedules.iter().map(|schedule| Self { timing, schedule: *schedule, ..*plain }))
            .collect();
        if plain.scheme.caches_in_slc() {
            for (timing, bits_per_cell) in [("superblocks", 3), ("two-pass", 2)] {
                let slc = SLC.iter().filter(|(.., bits)| *bits == bits_per_cell).cycle();
                let of = cases.iter().filter(|case| case.timing == timing && case.slc.is_none());
                let cached: Vec<Self> = of.zip(slc).map(|(case, slc)| Self { slc: Some(*slc), ..*case }).collect();
                cases.extend(cached);
            }
        }
        cases
    }

    /// The cases without RAM before the translation layer.
    fn without_ram(cases: Vec<Self>) -> Vec<Self> {
        cases.into_iter().filter(|case| case.ram.is_none()).collect()
    }

    /// The cases that differ in what the translation layer sees.
    fn with_timing(timing: &'static str) -> Vec<Self> {
        Self::all().into_iter().filter(|case| case.timing == timing).collect()
    }

    fn name(self) -> String {
        format!(
            "{}/{}/{}/{}/{}/{}/{}/{}/{}",
            self.scheme.listed().name,
            self.victim.listed().name,
            self.placement.listed().name,
            self.ram.map_or("none", |ram| ram.listed().name),
            self.wear.map_or("none", |wear| wear.listed().name),
            self.schedule.listed().name,
            self.slc.map_or("none".to_owned(), |(cache, when_full, bits)| format!("{cache}-{when_full}-{bits}")),
            order_name(self.order),
            self.timing
        )
    }

    fn settings(self) -> Vec<String> {
        let mut settings = vec![
            format!("ftl.scheme={:?}", self.scheme.listed().name),
            format!("gc.victim={:?}", self.victim.listed().name),
            format!("placement.policy={:?}", self.placement.listed().name),
            format!("gc.schedule={:?}", self.schedule.listed().name),
            format!("geometry.program-order={:?}", order_name(self.order)),
        ];
        match CHIPS.iter().find(|(name, ..)| *name == self.timing) {
            None => settings.push(format!("timing.model={:?}", self.timing)),
            Some((.., chips)) => settings.extend(chips.iter().map(|setting| (*setting).to_owned())),
        }
        if self.timing == "parallel" && self.schedule != ScheduleName::Foreground {
            settings.push("timing.die-order=by-class".to_owned());
        }
        if let Some((cache, when_full, bits)) = self.slc {
            settings.push(format!("slc.cache={cache}"));
            settings.push(format!("slc.when-full={when_full}"));
            settings.push(format!("geometry.bits-per-cell={bits}"));
            // Small values, so that pauses are long enough and drives large enough.
            settings.extend(["slc.block-share=0.2", "slc.blocks-kept=3", "slc.fold-after=1 ms"].map(str::to_owned));
        }
        settings.extend(self.ram.map(|ram| format!("ram.manager={:?}", ram.listed().name)));
        settings.extend(small_policies());
        let needs = self.ram.iter().flat_map(|ram| ram.needs());
        let needs = needs.filter(|(scheme, ..)| *scheme == self.scheme.listed().name);
        settings.extend(needs.map(|(_, key, value)| format!("{key}={value}")));
        if let Some(wear) = self.wear {
            settings.push(format!("wear.policy={:?}", wear.listed().name));
            settings.push("wear.pe-cycles-max=2000".to_owned());
            settings.extend(small_of(wear.listed(), wear.small()));
        }
        settings
    }

    /// For a drive that is to wear out: RAM that can't hold all of it.
    fn small_ram(self) -> Option<String> {
        self.ram.map(|_| "ram.size=\"32 KiB\"".to_owned())
    }

    /// The configuration of this case over a shape.
    fn over(self, shape: &[String], more: &[String]) -> DriveConfig {
        // What odds and ends may not draw for these chips.
        let chips = CHIPS.iter().any(|(name, ..)| *name == self.timing);
        let pipelined = chips.then(|| "timing.pipelined=true".to_owned());
        let in_turn = (self.timing == "superblocks").then(|| "placement.order=CWDP".to_owned());
        config(&[shape, &self.settings(), more, pipelined.as_slice(), in_turn.as_slice()].concat())
    }

    /// A drive of this case: the first shape from `from` on, going round, that the scheme takes.
    fn drive(self, from: usize, more: &[String], seed: Seed) -> Ssd {
        let mut ram = Vec::new();
        if self.ram.is_some() && !more.iter().any(|setting| setting.starts_with("ram.size")) {
            let mut rng = seed.stream("ram");
            // From a block of the largest shape to more than some shapes have pages.
            ram.push(format!("ram.size=\"{} KiB\"", pick(&mut rng, &[32, 36, 68, 256])));
            ram.push(format!("ram.power-protected={}", pick(&mut rng, &[true, false])));
            ram.push(format!("ram.charge-metadata={}", pick(&mut rng, &[true, false, false])));
        }
        let shapes = shapes();
        let build = |step: usize, ram: &[String]| {
            let shape = &shapes[(from + step) % shapes.len()];
            Ssd::new(&self.over(shape, &[more, ram].concat()), seed, true).ok()
        };
        // A manager whose own tables fill the RAM that was drawn gets it without them.
        (0..shapes.len())
            .find_map(|step| build(step, &ram))
            .or_else(|| (0..shapes.len()).find_map(|step| build(step, ram.get(..2)?)))
            .unwrap_or_else(|| panic!("{} takes none of the shapes", self.name()))
    }
}

/// Tiny drives: blocks of 3, 4, 6 and 8 pages, one to four planes, spare space from little to plenty; one with pages of
/// three sectors.
fn shapes() -> Vec<Vec<String>> {
    vec![
        shape(1, 1, 1, 16, 4, 40),
        shape(2, 1, 1, 16, 3, 54),
        shape(1, 2, 2, 16, 6, 200),
        shape(2, 2, 1, 20, 4, 220),
        shape(1, 1, 1, 64, 6, 300),
        shape(2, 2, 1, 32, 8, 512),
        shape(1, 1, 1, 32, 4, 32),
        shape(1, 2, 1, 64, 8, 512),
        [
            shape(2, 1, 1, 24, 6, 0),
            vec!["geometry.page-size=\"1536 B\"".to_owned(), format!("capacity.logical=\"{} B\"", 180 * 1536)],
        ]
        .concat(),
    ]
}

/// Runs `body` for each case and reports which case and seed failed and how to repeat it.
fn for_each_case(test: &str, cases: &[Case], body: impl Fn(Case, u64)) {
    let only = std::env::var(ONLY).ok();
    let rounds = std::env::var(ROUNDS).map_or(1, |rounds| rounds.parse().unwrap());
    for (at, case) in cases.iter().enumerate() {
        let seeds = match only.as_ref().map(|only| only.split_once('@').unwrap()) {
            Some((name, seed)) if name == case.name() => vec![seed.parse().unwrap()],
            Some(_) => Vec::new(),
            None => (0..rounds).map(|round| round * cases.len() as u64 + at as u64).collect(),
        };
        for seed in seeds {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| body(*case, seed))) {
                let name = format!("{}@{seed}", case.name());
                eprintln!(
                    "case {name} failed; repeat with\n  {ONLY}='{name}' cargo test -p flashwright-ssd --test all {test}"
                );
                resume_unwind(panic);
            }
        }
    }
}

/// What the host knows: which pages hold data.
struct Model {
    mapped: BTreeSet<u32>,
    pages_written: u64,
}

impl Model {
    fn new() -> Self {
        Self { mapped: BTreeSet::new(), pages_written: 0 }
    }

    fn apply(&mut self, request: &Request, grain: u64) {
        let first = u32::try_from(request.first_sector / grain).unwrap();
        let end = u32::try_from(request.end_sector().div_ceil(grain)).unwrap();
        match request.kind {
            RequestKind::Write if request.sectors > 0 => {
                self.pages_written += u64::from(end - first);
                self.mapped.extend(first..end);
            }
            RequestKind::Trim => {
                let whole = u32::try_from(request.first_sector.div_ceil(grain)).unwrap()
                    ..u32::try_from(request.end_sector() / grain).unwrap();
                for lpn in whole {
                    self.mapped.remove(&lpn);
                }
            }
            _ => {}
        }
    }

    /// Compares the scheme's map with the model; each mapped page is on its own flash page, which names it.
    fn check(&self, ssd: &Ssd, at: &str) {
        let mut taken = BTreeSet::new();
        for lpn in 0..ssd.logical_pages() {
            let found = ssd.scheme().lookup(Lpn(lpn), ssd.flash());
            assert_eq!(holds(ssd, lpn), self.mapped.contains(&lpn), "{at}: lpn {lpn} lies at {found:?}");
            if let Some(ppn) = found {
                assert!(taken.insert(ppn.0), "{at}: lpn {lpn} shares page {} with another", ppn.0);
                assert_eq!(ssd.flash().nand().spare(ppn), Some(Lpn(lpn)), "{at}: the owner of page {}", ppn.0);
                assert!(ssd.flash().is_valid(ppn), "{at}: lpn {lpn} lies on the invalid page {}", ppn.0);
            }
        }
        let host = ssd.flash().counters().get(OpKind::Program, crate::common::CAUSE[0]);
        assert!(host <= self.pages_written, "{at}: {host} host programs for {} pages written", self.pages_written);
        assert_eq!(ssd.flash().host_writes(), self.pages_written, "{at}: pages written");
    }

    /// Reads everything as the host; `verify` checks the stamps.
    fn read_back(&self, ssd: &mut Ssd, at: &str) {
        let unmapped = ssd.flash().counters().reads_unmapped;
        for lpn in 0..ssd.logical_pages() {
            let request = pages(ssd, RequestKind::Read, lpn, 1);
            perform(ssd, request).unwrap();
        }
        let unmapped = ssd.flash().counters().reads_unmapped - unmapped;
        assert_eq!(unmapped, u64::from(ssd.logical_pages()) - self.mapped.len() as u64, "{at}: reads of nothing");
        assert_clean(ssd, at);
    }
}

/// Whether a logical page holds data, in RAM or on flash.
fn holds(ssd: &Ssd, lpn: u32) -> bool {
    ssd.ram().is_some_and(|ram| ram.is_dirty(Lpn(lpn)).is_some())
        || ssd.scheme().lookup(Lpn(lpn), ssd.flash()).is_some()
}

/// Draws requests of one stream: weights, skew and lengths are the stream's own.
struct Mix {
    rng: Rng,
    /// Writes, reads, trims, flushes, pauses.
    weights: [u32; 5],
    /// Share of accesses that go to the first eighth of the space.
    hot: f64,
    /// Share of requests that do not lie on page borders.
    partial: f64,
    pages_max: u32,
}

/// The next step.
enum Step {
    Request(Request),
    Pause(Nanos),
}

impl Mix {
    fn new(seed: u64) -> Self {
        let mut rng = Seed(seed).stream("mix");
        let mut weights = [0; 5];
        for weight in &mut weights[1..] {
            *weight = *pick(&mut rng, &[0, 0, 1, 5, 20]);
        }
        weights[0] = *pick(&mut rng, &[10, 40, 80]); // without writes there is nothing to see
        Self {
            weights,
            hot: *pick(&mut rng, &[0.0, 0.5, 0.95]),
            partial: *pick(&mut rng, &[0.0, 0.2, 0.8]),
            pages_max: *pick(&mut rng, &[1, 2, 5, 17]),
            rng,
        }
    }

    fn next(&mut self, logical: u32, grain: u64) -> Step {
        let rng = &mut self.rng;
        let mut at = draw(rng, self.weights.iter().sum());
        let what = self.weights.iter().position(|weight| {
            let mine = at < *weight;
            at = at.saturating_sub(*weight);
            mine
        });
        let kind = match what.unwrap() {
            0 => RequestKind::Write,
            1 => RequestKind::Read,
            2 => RequestKind::Trim,
            3 => return Step::Request(sectors(RequestKind::Flush, 0, 0)),
            _ => return Step::Pause(Nanos(u64::from(draw(rng, 5_000_000)))),
        };
        let space = if chance(rng, self.hot) { (logical / 8).max(1) } else { logical };
        let first = draw(rng, space);
        let count = 1 + draw(rng, self.pages_max.min(logical - first));
        let (mut first, mut count) = (u64::from(first) * grain, u64::from(count) * grain);
        if chance(rng, self.partial) {
            let cut = u64::from(draw(rng, u32::try_from(grain).unwrap()));
            first += cut;
            count = (count - cut).saturating_sub(u64::from(draw(rng, u32::try_from(grain).unwrap()))).max(1);
        }
        let fua = kind == RequestKind::Write && chance(rng, 0.05);
        let stream = u16::try_from(first / grain % 4).unwrap();
        Step::Request(Request { fua, stream, ..sectors(kind, first, u32::try_from(count).unwrap()) })
    }
}

/// Settings that no list names, drawn for a stream.
fn odds_and_ends(rng: &mut Rng) -> Vec<String> {
    vec![
        format!("gc.invalidate={:?}", pick(rng, &["at-program", "before-gc"])),
        format!("gc.free-blocks-min={}", pick(rng, &[1, 2])),
        format!("placement.allocation={:?}", pick(rng, &["by-room", "dynamic", "static"])),
        format!("placement.order={:?}", pick(rng, &["CWDP", "PDWC", "DPCW"])),
        format!("wear.free-block={:?}", pick(rng, &["fifo", "least-worn", "most-worn", "graded"])),
        format!("host.partial-pages={:?}", pick(rng, &["whole", "read-modify-write"])),
        format!("host.queue-depth={}", pick(rng, &[1, 3, 32])),
        format!("timing.pipelined={}", pick(rng, &[true, false])),
        format!("timing.command={:?}", pick(rng, &["0 ns", "200 ns"])),
        format!("timing.bus-order={:?}", pick(rng, &["first-come", "commands-first", "data-first"])),
    ]
}

#[test]
fn random_streams() {
    let cases = Case::all();
    let steps = (STEPS / cases.len()).clamp(200, 8_000);
    println!("{} cases of {steps} steps", cases.len());
    let (recycled, folded) = (std::cell::RefCell::new(BTreeMap::new()), std::cell::RefCell::new(BTreeMap::new()));
    for_each_case("random_streams", &cases, |case, seed| {
        // Four streams a case, so that zero weights and odd settings of one do not hide another's states.
        for part in 0..4 {
            let stream = seed * 4 + part;
            let mut rng = Seed(stream).stream("odds");
            let more = odds_and_ends(&mut rng);
            let shape = usize::try_from(stream).unwrap();
            let drive = case.drive(shape, &more, Seed(stream));
            let (erases, folds) = random_stream(drive, Mix::new(stream), steps / 4, &format!("part {part}"));
            if let Some(slc) = case.slc {
                *folded.borrow_mut().entry(slc).or_insert(0) += folds;
            }
            if let Some(wear) = case.wear {
                *recycled.borrow_mut().entry((case.scheme.listed().name, wear.listed().name)).or_insert(0) += erases;
            }
        }
    });
    let recycled = recycled.into_inner();
    println!("blocks recycled: {recycled:?}, pages folded: {folded:?}");
    assert!(folded.into_inner().values().all(|pages| *pages > 0), "an SLC cache that is never folded");
    assert!(recycled.values().all(|erases| *erases > 0), "a wear policy that never acted: {recycled:?}");
}

/// Returns the erases for wear levelling and the pages folded from the SLC cache.
fn random_stream(mut ssd: Ssd, mut mix: Mix, steps: usize, label: &str) -> (u64, u64) {
    let (logical, grain) = (ssd.logical_pages(), ssd.sectors_per_page());
    let depth = ssd.config().host.queue_depth.requests() as usize;
    let mut model = Model::new();
    let (mut submitted, mut completed) = (0u64, BTreeSet::new());
    let mut note = |completion: flashwright_block::Completion| {
        assert!(completion.start >= completion.request.arrival && completion.end >= completion.start);
        assert!(completed.insert(completion.tag.0), "tag {} completed twice", completion.tag.0);
    };
    for step in 0..steps {
        let at = format!("{label}, step {step}");
        match mix.next(logical, grain) {
            Step::Request(request) => {
                ssd.submit(request).unwrap_or_else(|error| panic!("{at}: {request:?}: {error}"));
                submitted += 1;
                model.apply(&request, grain);
            }
            Step::Pause(span) => {
                let until = ssd.now() + span;
                while let Some(completion) = wait(&mut ssd, until).unwrap() {
                    note(completion);
                }
                assert_eq!(ssd.now(), until, "{at}: the clock gets there");
            }
        }
        // Requests that wait in the driver have not reached the translation layer yet.
        if ssd.in_flight() > depth || ssd.waiting() > 0 || chance(&mut mix.rng, 0.3) {
            drain(&mut ssd).unwrap().into_iter().for_each(&mut note);
        }
        model.check(&ssd, &at);
        assert_clean(&ssd, &at);
    }
    drain(&mut ssd).unwrap().into_iter().for_each(&mut note);
    assert_eq!(completed.len() as u64, submitted, "{label}: every request completes once");
    model.read_back(&mut ssd, label);
    let folded =
        ssd.figures().extra.iter().find(|(name, _)| name == "slc_pages_folded").map_or(0, |(_, pages)| *pages as u64);
    (ssd.flash().counters().get(OpKind::Erase, Cause::Wear), folded)
}

/// Kind, first page and number of pages of each request.
type Stream = Vec<(RequestKind, u32, u32)>;

/// Streams designed to cause trouble.
fn adversaries(logical: u32, pages_per_block: u32) -> Vec<(&'static str, Stream)> {
    use RequestKind::{Trim, Write};
    let writes = |lpns: Vec<u32>| lpns.into_iter().map(|lpn| (Write, lpn, 1)).collect::<Vec<_>>();
    let np = pages_per_block;
    let blocks = logical / np;
    // Cyclically over more blocks than the log blocks cover, one page of each at a time.
    let thrash = (0..6 * np).flat_map(|turn| (0..blocks).map(move |block| block * np + turn % np)).collect();
    vec![
        ("sequential", writes((0..4 * logical).map(|i| i % logical).collect())),
        ("in blocks", (0..4 * blocks).map(|i| (Write, i % blocks * np, np)).collect()),
        ("one hot page", writes(vec![logical / 2; 6 * logical as usize])),
        ("strided", writes((0..4 * logical).map(|i| i.wrapping_mul(np + 1) % logical).collect())),
        ("backwards", writes((0..4 * logical).map(|i| logical - 1 - i % logical).collect())),
        ("log-block thrash", writes(thrash)),
        (
            "write and trim",
            (0..4 * blocks)
                .flat_map(|i| {
                    let first = i % blocks * np;
                    [(Write, first, np), (Trim, first + i % np, 1), (Trim, first, np)]
                })
                .collect(),
        ),
        ("whole drive at once", (0..5).map(|_| (Write, 0, logical)).collect()),
        ("off by one", (0..3 * blocks).map(|i| (Write, (i % blocks * np).min(logical - np - 1) + 1, np)).collect()),
    ]
}

#[test]
fn adversarial_streams() {
    for_each_case("adversarial_streams", &Case::with_timing("parallel"), |case, seed| {
        let probe = case.drive(usize::try_from(seed).unwrap(), &[], Seed(seed));
        let np = probe.flash().geometry().pages_per_block();
        for (name, stream) in adversaries(probe.logical_pages(), np) {
            let (mut ssd, mut model) = (probe.clone(), Model::new());
            for (step, (kind, first, count)) in stream.into_iter().enumerate() {
                let request = pages(&ssd, kind, first, count);
                perform(&mut ssd, request).unwrap_or_else(|error| panic!("{name}, step {step}: {error}"));
                model.apply(&request, ssd.sectors_per_page());
                if step % 16 == 0 {
                    assert_clean(&ssd, &format!("{name}, step {step}"));
                }
            }
            model.check(&ssd, name);
            model.read_back(&mut ssd, name);
        }
    });
}

/// Blocks that are bad from the factory, and few erases each: the drive wears out with an error, and everything that it
/// acknowledged can still be read.
#[test]
fn drives_end_well() {
    for_each_case("drives_end_well", &Case::with_timing("serial"), |case, seed| {
        let mut more = vec![
            format!("wear.pe-cycles-max={}", 2 + seed % 7),
            format!("wear.factory-bad={}", [0.0, 0.05, 0.1][usize::try_from(seed % 3).unwrap()]),
            format!("wear.free-block={:?}", ["least-worn", "fifo"][usize::try_from(seed % 2).unwrap()]),
            format!("wear.pe-cycles-spread={}", [0.0, 0.3][usize::try_from(seed / 2 % 2).unwrap()]),
        ];
        more.extend(case.small_ram());
        let mut ssd = case.drive(usize::try_from(seed).unwrap(), &more, Seed(seed));
        let geometry = *ssd.flash().geometry();
        let (logical, grain) = (ssd.logical_pages(), ssd.sectors_per_page());
        let (mut model, mut rng) = (Model::new(), rng(seed));
        let mut ended = 0;
        // Each block is filled once more than it is erased.
        let cycles = (0..geometry.blocks()).map(|block| ssd.flash().nand().cycles_left(BlockId(block)).unwrap());
        let budget = cycles.map(|cycles| u64::from(cycles + 1) * u64::from(geometry.pages_per_block())).sum::<u64>();
        while ended < 20 {
            let first = draw(&mut rng, logical);
            let request = pages(&ssd, RequestKind::Write, first, 1 + draw(&mut rng, 3.min(logical - first)));
            let before = map(&ssd);
            match perform(&mut ssd, request) {
                Ok(_) => model.apply(&request, grain),
                Err(IoError::WornOut { .. }) => {
                    ended += 1;
                    // Pages before the one that failed are new, the others as they were: nothing mapped gets lost.
                    for lpn in (0..logical).filter(|lpn| before[*lpn as usize].is_some()) {
                        assert!(holds(&ssd, lpn), "lpn {lpn} was lost by a write that failed");
                    }
                    let mapped = (0..logical).filter(|lpn| holds(&ssd, *lpn)).collect();
                    model = Model { mapped, pages_written: ssd.flash().host_writes() };
                }
                Err(other) => panic!("{other}"),
            }
            let programs = ssd.flash().counters().total(OpKind::Program);
            assert!(programs <= budget, "{programs} pages programmed on a drive that stands {budget}");
            if ended > 0 || model.pages_written % 32 == 0 {
                assert_clean(&ssd, &format!("after {} pages", model.pages_written));
            }
        }
        model.check(&ssd, "at the end");
        model.read_back(&mut ssd, "at the end");
    });
}

/// Preconditioning a drive until it wears out leaves it as consistent as requests do.
#[test]
fn preconditioning_may_end_a_drive() {
    for_each_case("preconditioning_may_end_a_drive", &Case::with_timing("none"), |case, seed| {
        let mut more = vec!["wear.pe-cycles-max=2".to_owned()];
        more.extend(case.small_ram());
        let mut ssd = case.drive(usize::try_from(seed).unwrap(), &more, Seed(seed));
        let (mut rng, logical) = (rng(seed), ssd.logical_pages());
        let run = |rng: &mut Rng| {
            let first = draw(rng, logical);
            LpnRun { first: Lpn(first), pages: 1 + draw(rng, 4.min(logical - first)), stream: 0 }
        };
        let ended = (0..4 * ssd.flash().geometry().pages()).any(|_| ssd.precondition(run(&mut rng)).is_err());
        assert!(ended, "the drive outlives its cycles");
        assert_clean(&ssd, "at the end");
        let mapped = (0..logical).filter(|lpn| holds(&ssd, *lpn)).collect();
        let model = Model { mapped, pages_written: ssd.flash().host_writes() };
        model.read_back(&mut ssd, "at the end");
    });
}

/// A drive wears out while requests wait in its driver: each of them completes, with or without success.
#[test]
fn requests_that_wait_at_the_end_of_life_are_answered() {
    let failed_while_waiting = std::cell::Cell::new(0);
    for_each_case(
        "requests_that_wait_at_the_end_of_life_are_answered",
        &Case::with_timing("parallel"),
        |case, seed| {
            for depth in [1, 4] {
                let mut more = vec!["wear.pe-cycles-max=2".to_owned(), format!("host.queue-depth={depth}")];
                more.extend(case.small_ram());
                let mut ssd = case.drive(usize::try_from(seed).unwrap(), &more, Seed(seed));
                let (mut rng, logical) = (rng(seed), ssd.logical_pages());
                let (mut taken, mut done, mut failed) = (0, 0, 0);
                // Until the flash cannot take another page, whatever the scheme.
                for burst in 0..8 * ssd.flash().geometry().pages() / 20 {
                    for _ in 0..20 {
                        let lpn = draw(&mut rng, logical);
                        let request = pages(&ssd, RequestKind::Write, lpn, 1);
                        ssd.submit(request).expect("a worn-out drive refuses nothing: its requests fail");
                        taken += 1;
                    }
                    while ssd.in_flight() > 0 {
                        match wait(&mut ssd, Nanos(u64::MAX)).unwrap() {
                            Some(completion) if completion.result.is_ok() => done += 1,
                            Some(_) => failed += 1,
                            None => panic!("burst {burst}: {} requests in flight, none ends", ssd.in_flight()),
                        }
                    }
                    assert_eq!(done + failed, taken, "burst {burst}: every request that was taken ends");
                }
                assert!(failed > 0, "the drive takes {done} writes and goes on");
                failed_while_waiting.set(failed_while_waiting.get() + failed);
                assert_clean(&ssd, "at the end");
            }
        },
    );
    assert!(std::env::var(ONLY).is_ok() || failed_while_waiting.get() > 0, "no drive ended while requests waited");
}

/// Saved, loaded, cloned, or built twice from one seed: the same completions and the same state from then on.
#[test]
fn saved_cloned_and_rebuilt_drives_go_on_alike() {
    for_each_case("saved_cloned_and_rebuilt_drives_go_on_alike", &Case::all(), |case, seed| {
        let mut odds = Seed(seed).stream("odds");
        let more = odds_and_ends(&mut odds);
        let build = || case.drive(usize::try_from(seed).unwrap(), &more, Seed(seed));
        let (mut first, mut second) = (build(), build());
        let go = |ssd: &mut Ssd, mix: &mut Mix, steps: usize| {
            let mut completions = Vec::new();
            for _ in 0..steps {
                match mix.next(ssd.logical_pages(), ssd.sectors_per_page()) {
                    Step::Request(request) => {
                        ssd.submit(request).unwrap();
                    }
                    Step::Pause(span) => {
                        let until = ssd.now() + span;
                        while let Some(completion) = wait(ssd, until).unwrap() {
                            completions.push(completion);
                        }
                    }
                }
            }
            completions
        };
        let (mut mix, mut same_mix) = (Mix::new(seed), Mix::new(seed));
        assert_eq!(go(&mut first, &mut mix, 60), go(&mut second, &mut same_mix, 60), "built twice");
        let bytes = state(&first);
        assert!(bytes == state(&second), "built twice: the state");
        let mut loaded: Ssd = postcard::from_bytes(&bytes).unwrap();
        assert!(bytes == state(&loaded), "loaded: the state");
        let mut cloned = first.clone();
        let after: Vec<_> = [&mut first, &mut second, &mut loaded, &mut cloned]
            .into_iter()
            .map(|ssd| {
                let mut mix = Mix::new(seed + 1_000_000);
                let mut completions = go(ssd, &mut mix, 60);
                completions.extend(drain(ssd).unwrap());
                assert_clean(ssd, "afterwards");
                (completions, state(ssd))
            })
            .collect();
        for (other, name) in after[1..].iter().zip(["built twice", "saved and loaded", "cloned"]) {
            assert_eq!(after[0].0, other.0, "{name}: completions");
            assert!(after[0].1 == other.1, "{name}: the state at the end");
        }
    });
}

#[test]
fn two_drives_interleaved_are_as_apart() {
    for_each_case("two_drives_interleaved_are_as_apart", &Case::with_timing("parallel"), |case, seed| {
        let build = |nth: u64| case.drive(usize::try_from(seed + nth).unwrap(), &[], Seed(seed + nth));
        let step = |ssd: &mut Ssd, mix: &mut Mix| match mix.next(ssd.logical_pages(), ssd.sectors_per_page()) {
            Step::Request(request) => perform(ssd, request).unwrap(),
            Step::Pause(span) => {
                let until = ssd.now() + span;
                wait(ssd, until).unwrap().into_iter().collect()
            }
        };
        let apart: Vec<_> = (0..2)
            .map(|nth| {
                let (mut ssd, mut mix) = (build(nth), Mix::new(seed + nth));
                let done: Vec<_> = (0..150).flat_map(|_| step(&mut ssd, &mut mix)).collect();
                (done, state(&ssd))
            })
            .collect();
        let (mut one, mut other) = (build(0), build(1));
        let (mut one_mix, mut other_mix) = (Mix::new(seed), Mix::new(seed + 1));
        let (mut one_done, mut other_done) = (Vec::new(), Vec::new());
        for _ in 0..150 {
            one_done.extend(step(&mut one, &mut one_mix));
            other_done.extend(step(&mut other, &mut other_mix));
        }
        assert!(apart == [(one_done, state(&one)), (other_done, state(&other))]);
    });
}

/// With every time doubled and the bus rate halved, a closed loop takes exactly twice as long at every moment.
#[test]
fn doubled_times_double_a_closed_loop() {
    let timed = [Case::with_timing("serial"), Case::with_timing("parallel")].concat();
    for_each_case("doubled_times_double_a_closed_loop", &timed, |case, seed| {
        for (depth, pipelined, command) in [(1, true, 0), (4, true, 150), (16, false, 0), (7, true, 0)] {
            let run = |factor: u64| {
                let more = [
                    format!("timing.read=\"{} ns\"", 50_000 * factor),
                    format!("timing.program=\"{} ns\"", 200_000 * factor),
                    format!("timing.erase=\"{} ns\"", 700_000 * factor),
                    format!("slc.page-read=\"{} ns\"", 40_000 * factor),
                    format!("slc.page-program=\"{} ns\"", 130_000 * factor),
                    format!("timing.oob-read=\"{} ns\"", 30_000 * factor),
                    format!("timing.command=\"{} ns\"", command * factor),
                    format!("timing.bus-rate=\"{} MB/s\"", 80 / factor),
                    format!("timing.pipelined={pipelined}"),
                    format!("gc.throttled.delay-max=\"{} ns\"", 300_000 * factor),
                    "host.partial-pages=read-modify-write".to_owned(),
                ];
                let mut ssd = case.drive(usize::try_from(seed).unwrap(), &more, Seed(seed));
                let mut mix = Mix::new(seed);
                mix.weights[4] = 0; // pauses would not double
                closed_loop(&mut ssd, depth, 250, |ssd| match mix.next(ssd.logical_pages(), ssd.sectors_per_page()) {
                    Step::Request(request) => request,
                    Step::Pause(_) => unreachable!("pauses have no weight"),
                })
            };
            for (once, twice) in run(1).into_iter().zip(run(2)) {
                assert_eq!(once.tag, twice.tag, "depth {depth}: the order of completions");
                assert_eq!(
                    [once.request.arrival.0 * 2, once.start.0 * 2, once.end.0 * 2],
                    [twice.request.arrival.0, twice.start.0, twice.end.0],
                    "depth {depth}: tag {:?}",
                    once.tag
                );
            }
        }
    });
}

/// Under page mapping with dynamic allocation a page's number means nothing: renamed pages do exactly the same. Not so where
/// placement looks at it: partitions start as parts of the space, and a Bloom filter hashes it.
#[test]
fn relabelled_pages_cost_the_same_under_page_mapping() {
    let cases: Vec<Case> = Case::without_ram(Case::with_timing("none"))
        .into_iter()
        .filter(|case| case.scheme == SchemeName::Page)
        .filter(|case| ![PlacementName::Envy, PlacementName::HotCold].contains(&case.placement))
        .collect();
    for_each_case("relabelled_pages_cost_the_same_under_page_mapping", &cases, |case, seed| {
        let mut ssd = case.drive(usize::try_from(seed).unwrap(), &[], Seed(seed));
        let mut renamed = ssd.clone();
        let (logical, mut rng) = (ssd.logical_pages(), rng(seed));
        let mut names: Vec<u32> = (0..logical).collect();
        for at in (1..logical).rev() {
            names.swap(at as usize, draw(&mut rng, at + 1) as usize);
        }
        for _ in 0..20 * logical {
            let space = if chance(&mut rng, 0.7) { logical / 4 } else { logical };
            let lpn = draw(&mut rng, space);
            let kind = if chance(&mut rng, 0.9) { RequestKind::Write } else { RequestKind::Trim };
            let (request, other) = (pages(&ssd, kind, lpn, 1), pages(&ssd, kind, names[lpn as usize], 1));
            perform(&mut ssd, request).unwrap();
            perform(&mut renamed, other).unwrap();
            assert_eq!(ssd.flash().counters(), renamed.flash().counters());
        }
    });
}

/// Whatever its settings, a drive that could be built holds all its pages, and their overwrites.
#[test]
fn a_drive_that_is_built_can_be_filled() {
    for_each_case("a_drive_that_is_built_can_be_filled", &Case::with_timing("none"), |case, seed| {
        let (mut built, mut rng) = (0, Seed(seed).stream("fill"));
        for attempt in 0..40 {
            let mut more = odds_and_ends(&mut rng);
            more.extend([
                "capacity.logical=\"0 B\"".to_owned(),
                format!("capacity.utilization={}", f64::from(30 + draw(&mut rng, 68)) / 100.0),
                format!("wear.factory-bad={}", pick(&mut rng, &["0.0", "0.1", "0.25"])),
            ]);
            more.extend(case.small_ram());
            let shapes = shapes();
            let shape: &Vec<String> = pick(&mut rng, &shapes);
            let config = case.over(shape, &more);
            let Ok(mut ssd) = Ssd::new(&config, Seed(attempt), true) else { continue };
            built += 1;
            let logical = ssd.logical_pages();
            for step in 0..3 * logical {
                let lpn = if step < logical { step } else { draw(&mut rng, logical) };
                let request = pages(&ssd, RequestKind::Write, lpn, 1);
                perform(&mut ssd, request).unwrap_or_else(|error| panic!("write {step}: {error}; {more:?}"));
            }
            assert_clean(&ssd, "filled");
        }
        assert!(built > 0, "none could be built");
    });
}

/// Whether a drive can be built is found out without its tables of pages, in the words in which building it says so; and its
/// sizes follow from its configuration.
#[test]
fn what_speaks_against_a_drive_is_found_without_building_it() {
    let (mut built, mut refused) = (0, 0);
    for (number, case) in Case::all().into_iter().enumerate() {
        let mut rng = Seed(number as u64).stream("checked");
        for _ in 0..4 {
            let mut more = odds_and_ends(&mut rng);
            more.extend([
                "capacity.logical=\"0 B\"".to_owned(),
                format!("capacity.utilization={}", f64::from(30 + draw(&mut rng, 70)) / 100.0),
                format!("wear.factory-bad={}", pick(&mut rng, &["0.0", "0.1", "0.25"])),
                format!("ram.size=\"{} B\"", pick(&mut rng, &["0", "1000", "20000", "200000"])),
            ]);
            let shapes = shapes();
            let shape: &Vec<String> = pick(&mut rng, &shapes);
            let more: Vec<&str> = more.iter().map(String::as_str).collect();
            let Ok(config) = case.over(shape, &[]).with_settings(&more) else { continue };
            let found = Ssd::can_be_built(&config).map_err(|error| error.to_string());
            match Ssd::new(&config, Seed(0), false) {
                Ok(ssd) => {
                    built += 1;
                    assert_eq!(found, Ok(()), "{more:?}");
                    let (layout, logical) = (config.layout(), config.logical_pages());
                    assert_eq!((ssd.logical_pages(), ssd.flash().geometry().pages()), (logical, layout.pages()));
                    assert_eq!(ssd.info().capacity.0, u64::from(logical) * layout.page_size().0);
                }
                Err(error) => {
                    refused += 1;
                    assert_eq!(found, Err(error.to_string()), "{more:?}");
                }
            }
        }
    }
    assert!(built > 50 && refused > 50, "{built} built, {refused} refused");
}

/// A scheme without wear levelling refuses it and names the schemes that have it.
#[test]
fn schemes_without_wear_levelling_refuse_a_policy_in_a_line() {
    for scheme in any_order().filter(|scheme| !scheme.levels_wear()) {
        let case = Case::all().into_iter().find(|case| case.scheme == scheme).unwrap();
        let config = case.drive(0, &[], Seed(1)).config().clone();
        let error = Ssd::new(&config.with_settings(&["wear.policy=dual-pool"]).unwrap(), Seed(1), true).unwrap_err();
        let name = scheme.listed().name;
        assert_eq!(
            error.to_string(),
            format!(
                "{}: wear.policy: found \"dual-pool\", but ftl.scheme = \"{name}\" takes only \"none\"; a wear policy works \
                 with page, dftl",
                config.name
            )
        );
    }
}

/// A request must not reach past the end, or change anything when refused.
#[test]
fn requests_past_the_end_are_refused_and_change_nothing() {
    for_each_case("requests_past_the_end_are_refused_and_change_nothing", &Case::all(), |case, seed| {
        let mut ssd = case.drive(usize::try_from(seed).unwrap(), &[], Seed(seed));
        let end = u64::from(ssd.logical_pages()) * ssd.sectors_per_page();
        let request = pages(&ssd, RequestKind::Write, 0, 3);
        perform(&mut ssd, request).unwrap();
        let before = state(&ssd);
        for (first, count) in [(end, 1), (end - 1, 2), (0, u32::try_from(end + 1).unwrap()), (u64::MAX, 8)] {
            for kind in [RequestKind::Read, RequestKind::Write, RequestKind::Trim] {
                let error = ssd.submit(sectors(kind, first, count)).unwrap_err();
                assert!(matches!(error, IoError::OutOfRange { .. }), "{error}");
            }
        }
        assert!(before == state(&ssd));
        // The last page is a page like any other.
        let request = sectors(RequestKind::Write, end - 1, 1);
        perform(&mut ssd, request).unwrap();
        assert_clean(&ssd, "the last sector");
    });
}

/// After a flush, and after a forced write, what was acknowledged is on flash; unless the RAM survives a loss of power.
#[test]
fn what_is_flushed_is_on_flash() {
    let cases = Case::all().into_iter().filter(|case| case.ram.is_some() && case.timing != "serial");
    for_each_case("what_is_flushed_is_on_flash", &cases.collect::<Vec<_>>(), |case, seed| {
        for protected in [false, true] {
            let mut config =
                case.drive(usize::try_from(seed).unwrap(), &[], Seed(seed)).config().clone().into_written();
            config.ram.power_protected = protected;
            let mut ssd = Ssd::new(&config.check().unwrap(), Seed(seed), true).unwrap();
            let (logical, mut rng, mut programs) = (ssd.logical_pages(), rng(seed), 0);
            let newest = |ssd: &Ssd, lpn: u32| {
                let stamps = ssd.flash().stamps().unwrap();
                !stamps.is_written(Lpn(lpn))
                    || ssd.scheme().lookup(Lpn(lpn), ssd.flash()).is_some_and(|ppn| stamps.is_newest(Lpn(lpn), ppn))
            };
            for step in 0..300 {
                let first = draw(&mut rng, logical);
                let count = 1 + draw(&mut rng, 5.min(logical - first));
                let fua = chance(&mut rng, 0.1);
                let request = Request { fua, ..pages(&ssd, RequestKind::Write, first, count) };
                perform(&mut ssd, request).unwrap();
                if fua && !protected {
                    assert!((first..first + count).all(|lpn| newest(&ssd, lpn)), "step {step}: a forced write");
                }
                if chance(&mut rng, 0.05) {
                    programs = ssd.flash().counters().total(OpKind::Program);
                    perform(&mut ssd, sectors(RequestKind::Flush, 0, 0)).unwrap();
                    if protected {
                        assert_eq!(programs, ssd.flash().counters().total(OpKind::Program), "a flush is free");
                    } else {
                        assert!((0..logical).all(|lpn| newest(&ssd, lpn)), "step {step}: a flush");
                    }
                }
                assert_clean(&ssd, &format!("step {step}"));
            }
            assert!(protected || programs > 0, "nothing was ever written");
        }
    });
}

/// Every name on the lists is in a case, and counters know every cause.
#[test]
fn the_lists_are_covered() {
    let cases = Case::all();
    for scheme in SchemeName::ALL.iter().copied().filter(|scheme| scheme.asks_policies()) {
        let of = |case: &&Case| case.scheme == scheme && case.timing == "none";
        let has = |victim, placement| {
            cases.iter().filter(of).any(|case| case.victim == victim && case.placement == placement)
        };
        let (first_victim, first_placement) = (VictimName::ALL[0], PlacementName::ALL[0]);
        assert!(VictimName::ALL.iter().all(|victim| has(*victim, first_placement)), "{scheme:?}");
        assert!(PlacementName::ALL.iter().all(|placement| has(first_victim, *placement)), "{scheme:?}");
        assert!(COMPANIONS.iter().all(|(victim, placement)| has(*victim, *placement)), "{scheme:?}");
        let crossed = |victim: &VictimName| {
            cases.iter().filter(of).any(|case| case.victim == *victim && case.placement != first_placement)
        };
        assert!(VictimName::ALL.iter().all(crossed), "{scheme:?}");
    }
    let stepping = SchemeName::ALL.iter().copied().filter(|scheme| scheme.cleans_in_steps());
    for scheme in stepping.clone() {
        let has = |schedule| cases.iter().any(|case| case.scheme == scheme && case.schedule == schedule);
        assert!(ScheduleName::ALL.iter().all(|schedule| has(*schedule)), "{scheme:?}");
    }
    assert!(stepping.count() >= 2, "page mapping and DFTL clean in steps");
    for scheme in any_order() {
        let has = |ram| cases.iter().any(|case| case.scheme == scheme && case.ram == ram);
        assert!(has(None) && ManagerName::ALL.iter().all(|ram| has(Some(*ram))), "{scheme:?}");
    }
    let has = |slc: &Slc| cases.iter().any(|case| case.scheme == SchemeName::Page && case.slc == Some(*slc));
    assert!(SLC.iter().all(has), "page mapping has an SLC cache");
    let leveling = SchemeName::ALL.iter().copied().filter(|scheme| scheme.levels_wear());
    for scheme in leveling.clone() {
        let has = |wear| cases.iter().any(|case| case.scheme == scheme && case.wear == Some(wear));
        assert!(WearName::ALL.iter().all(|wear| has(*wear)), "{scheme:?}");
    }
    assert!(leveling.count() >= 2, "page mapping and DFTL level wear");
    assert_eq!(crate::common::CAUSE.len(), CAUSES);
    assert!(crate::common::CAUSE.iter().enumerate().all(|(at, cause)| *cause as usize == at));
}
