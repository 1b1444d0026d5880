//! The paths whose instructions are counted: each is prepared, and then runs its operations within [`measured`], where
//! Callgrind counts.

use crate::host::Null;
use crate::step;
use crate::traces;
use flashwright_block::{Contents, Request, RequestKind, Rng, Seed, below};
use flashwright_host::{Stack, StackSettings};
use flashwright_probe::Pattern;
use flashwright_sim::{Pace, Phase, Precondition, RunSettings, Simulation, SourceSpec};
use flashwright_ssd::Ssd;
use flashwright_workload::generate::{Target, WorkloadSpec};
use flashwright_workload::trace::{Layout, TraceOptions, TraceReader, convert};
use std::path::Path;

/// One path.
pub struct Counted {
    pub name: &'static str,
    pub about: &'static str,
    /// Operations that are counted.
    operations: u64,
    what: What,
}

enum What {
    /// A run: workload, depth, settings of the drive.
    Run(&'static str, u32, &'static [&'static str]),
    Scheduler(&'static str),
    /// A controller with all its parts.
    Controller,
    ReadMsr,
    ReadFwt,
    Generate(&'static str),
    Probe,
}

const WRITES: &str = "uniform";
const READS: &str = "uniform:write=0";
const HALF: &str = "uniform:write=0.5";
const ONE_PLANE: [&str; 2] = ["geometry.channels=1", "geometry.dies-per-channel=1"];

/// A drive of 64 MiB on one plane without times, and settings of the path.
macro_rules! counts_only {
    ($($setting:literal),*) => {
        &["timing.model=none", ONE_PLANE[0], ONE_PLANE[1], "geometry.blocks-per-plane=256", $($setting),*]
    };
}

/// The same size on eight dies, with times.
macro_rules! timed {
    ($($setting:literal),*) => {
        &["geometry.blocks-per-plane=32", $($setting),*]
    };
}

pub const PATHS: &[Counted] = &[
    path("page-write", "host write, page mapping, greedy cleaning, no times", 60_000, WRITES, 1, counts_only!()),
    path("page-read", "host read, page mapping, no times", 60_000, READS, 1, counts_only!()),
    path("dftl-write", "host write, DFTL", 40_000, WRITES, 1, counts_only!("ftl.scheme=dftl")),
    path("fast-write", "host write, FAST", 10_000, WRITES, 1, counts_only!("ftl.scheme=fast")),
    path("block-write", "host write, block mapping", 4_000, WRITES, 1, counts_only!("ftl.scheme=block")),
    path("serial", "request, serial engine", 40_000, HALF, 1, timed!("timing.model=serial")),
    path("parallel", "request, parallel engine, 32 in flight", 40_000, HALF, 32, timed!()),
    path("parallel-alone", "request, parallel engine, one in flight", 40_000, HALF, 1, timed!()),
    path(
        "parallel-many",
        "request, parallel engine, 64 dies, 256 in flight",
        40_000,
        HALF,
        256,
        timed!("geometry.channels=8", "geometry.dies-per-channel=8"),
    ),
    path(
        "rate-limited",
        "request, parallel engine, cleaning at the rate of writes, 32 in flight",
        40_000,
        HALF,
        32,
        timed!("gc.schedule=rate-limited"),
    ),
    path(
        "chips-by-class",
        "request, dies that choose by class, cleaning at the rate of writes, 32 in flight",
        40_000,
        HALF,
        32,
        timed!("timing.die-order=by-class", "gc.schedule=rate-limited"),
    ),
    path(
        "chips-superblock",
        "request, superblocks of four planes and one-shot programs, 32 in flight",
        40_000,
        HALF,
        32,
        timed!(
            "geometry.superblock=drive",
            "geometry.planes-per-die=4",
            "geometry.bits-per-cell=3",
            "geometry.pages-per-block=96",
            "chips.programming=one-shot",
            "chips.suspends=programs-and-erases",
            "chips.write-ram=8 MiB",
            "timing.die-order=by-class"
        ),
    ),
    path(
        "controller",
        "request through a controller with a write buffer",
        20_000,
        HALF,
        32,
        timed!(
            "controller.interface-rate=300 MB/s",
            "controller.write-overhead=20 us",
            "controller.read-overhead=20 us",
            "controller.write-buffer.size=1 MiB"
        ),
    ),
    path(
        "ram-cflru",
        "host write through CFLRU",
        40_000,
        WRITES,
        1,
        counts_only!("ram.manager=cflru", "ram.size=1 MiB"),
    ),
    path(
        "ram-bplru",
        "host write through BPLRU",
        20_000,
        WRITES,
        1,
        counts_only!("ram.manager=bplru", "ram.bplru.padding=false", "ram.size=1 MiB"),
    ),
    Counted {
        name: "deadline",
        about: "request through the deadline scheduler, 32 in flight",
        operations: 40_000,
        what: What::Scheduler("deadline"),
    },
    Counted {
        name: "controller-all",
        about: "request through a controller with all its parts, 64 in flight",
        operations: 40_000,
        what: What::Controller,
    },
    Counted { name: "msr", about: "line of an MSR trace", operations: 60_000, what: What::ReadMsr },
    Counted { name: "fwt", about: "request of a .fwt trace", operations: 60_000, what: What::ReadFwt },
    Counted { name: "zipf", about: "request of the zipf generator", operations: 100_000, what: What::Generate("zipf") },
    Counted {
        name: "probe",
        about: "request of a pattern on the parallel engine",
        operations: 20_000,
        what: What::Probe,
    },
];

const fn path(
    name: &'static str,
    about: &'static str,
    operations: u64,
    workload: &'static str,
    depth: u32,
    settings: &'static [&'static str],
) -> Counted {
    Counted { name, about, operations, what: What::Run(workload, depth, settings) }
}

/// The counted function: Callgrind gets its name.
#[inline(never)]
pub fn measured<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    std::hint::black_box(work())
}

impl Counted {
    /// Prepares and runs the operations; returns their number.
    pub fn run(&self) -> Result<u64, String> {
        match self.what {
            What::Run(workload, depth, settings) => self.simulate(workload, depth, settings)?,
            What::Scheduler(name) => self.schedule(name)?,
            What::Controller => self.control()?,
            What::ReadMsr => in_a_folder(|folder| {
                let path = folder.join("trace.msr");
                traces::write_msr(&path, self.operations).map_err(|error| error.to_string())?;
                read(&path)
            })?,
            What::ReadFwt => in_a_folder(|folder| {
                let (text, path) = (folder.join("trace.msr"), folder.join("trace.fwt"));
                traces::write_msr(&text, self.operations).map_err(|error| error.to_string())?;
                convert(&text, &path, &TraceOptions::default(), "flashwright", &Default::default())
                    .map_err(|error| error.to_string())?;
                read(&path)
            })?,
            What::Generate(text) => self.generate(text)?,
            What::Probe => self.probe()?,
        }
        Ok(self.operations)
    }

    fn simulate(&self, workload: &str, depth: u32, settings: &[&str]) -> Result<(), String> {
        let config =
            flashwright_ssd::bundled("container-marking")?.with_settings(settings).map_err(|e| e.to_string())?;
        let run = RunSettings {
            workload: workload.to_owned(),
            precondition: Precondition::Sequential,
            pace: Pace::Closed { depth },
            warmup_requests: self.operations / 4,
            requests: Some(self.operations),
            ..RunSettings::default()
        };
        let mut simulation = Simulation::new(&config, run).map_err(|error| error.to_string())?;
        let spec: WorkloadSpec = parsed(workload)?;
        let mut source = SourceSpec::Workload(spec).open(simulation.ssd(), Seed(1)).map_err(|e| e.to_string())?;
        while simulation.progress(&source).phase != Phase::Measured {
            step(&mut simulation, &mut source)?;
        }
        measured(|| {
            while !step(&mut simulation, &mut source)? {}
            Ok(())
        })
    }

    fn schedule(&self, name: &str) -> Result<(), String> {
        let text = format!("scheduler = \"{name}\"\n");
        let settings: StackSettings = toml::from_str(&text).map_err(|error| error.to_string())?;
        let mut stack = Stack::new(&settings, Null::new()).map_err(|faults| faults[0].what.clone())?;
        let requests = crate::host::requests(false, usize::try_from(self.operations).unwrap_or(usize::MAX));
        measured(|| crate::host::play(&mut stack, 32, &requests))
    }

    fn control(&self) -> Result<(), String> {
        let (_, settings) = crate::controllers::PARTS[2];
        let mut controller = crate::controllers::above_nothing(settings)?;
        let requests = crate::host::requests(false, usize::try_from(self.operations).unwrap_or(usize::MAX));
        measured(|| crate::host::play(&mut controller, crate::controllers::OUTSTANDING, &requests))
    }

    fn generate(&self, text: &str) -> Result<(), String> {
        let drive = Target { logical_sectors: 1 << 24, page_sectors: 8 };
        let mut source = parsed(text)?.source(&drive, Seed(1), None).map_err(|error| error.to_string())?;
        let mut batch = Vec::with_capacity(1000);
        measured(|| {
            for _ in 0..self.operations / 1000 {
                batch.clear();
                source.fill(&mut batch, 1000).map_err(|error| error.to_string())?;
                std::hint::black_box(&batch);
            }
            Ok(())
        })
    }

    fn probe(&self) -> Result<(), String> {
        let settings = ["geometry.blocks-per-plane=32"];
        let config =
            flashwright_ssd::bundled("container-marking")?.with_settings(&settings).map_err(|e| e.to_string())?;
        let mut ssd = Ssd::new(&config, Seed(1), false).map_err(|error| error.to_string())?;
        let pages = u64::from(ssd.logical_pages());
        let mut rng: Rng = Seed(1).stream("bench.probe");
        let count = usize::try_from(self.operations).unwrap_or(usize::MAX);
        let first_sectors: Vec<u64> = (0..count).map(|_| below(&mut rng, pages) * ssd.sectors_per_page()).collect();
        let kinds: Vec<RequestKind> =
            (0..count).map(|at| if at % 2 == 0 { RequestKind::Write } else { RequestKind::Read }).collect();
        let sectors = vec![8; count];
        let pattern = Pattern {
            kinds: &kinds,
            first_sectors: &first_sectors,
            sectors: &sectors,
            depth: 8,
            contents: Contents::Noise,
        };
        measured(|| {
            let samples = flashwright_probe::play(&mut ssd, &pattern, || true).map_err(|error| error.to_string())?;
            std::hint::black_box(samples);
            Ok(())
        })
    }
}

fn parsed(text: &str) -> Result<WorkloadSpec, String> {
    text.parse().map_err(|error: flashwright_workload::generate::SpecError| error.to_string())
}

/// Reads a trace in one pass.
fn read(path: &Path) -> Result<(), String> {
    let options = TraceOptions { layout: Layout::Overlay, ..TraceOptions::default() };
    let mut reader = TraceReader::open(path, &options).map_err(|error| error.to_string())?;
    let mut batch: Vec<Request> = Vec::with_capacity(4096);
    measured(|| {
        while reader.read(&mut batch, 4096).map_err(|error| error.to_string())? > 0 {
            std::hint::black_box(&batch);
            batch.clear();
        }
        Ok(())
    })
}

fn in_a_folder(work: impl FnOnce(&Path) -> Result<(), String>) -> Result<(), String> {
    let folder = std::env::temp_dir().join(format!("flashwright-paths-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let result = work(&folder);
    std::fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every path works, and its drive is full enough for the operation that it measures.
    #[test]
    fn every_path_runs_and_is_called_by_a_name_of_its_own() {
        let mut names: Vec<&str> = PATHS.iter().map(|path| path.name).collect();
        for path in PATHS {
            assert_eq!(path.run(), Ok(path.operations), "{}", path.name);
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), PATHS.len());
    }
}
