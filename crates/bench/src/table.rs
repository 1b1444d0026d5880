//! The table: each case compared with the floor on the same drive.

use crate::child::{self, Outcome};
use crate::{Load, cpu, traces};
use std::path::Path;
use std::process::Command;

/// One line of the table.
pub(crate) struct Case {
    pub name: &'static str,
    blocks: u32,
    pages_per_block: u32,
    utilisation: f64,
    writes: u64,
    pub depth: u32,
    pub load: Load,
    settings: &'static [&'static str],
    /// Upper bound of the ratio to the floor.
    bound: Bound,
    /// The digest of the small run in the test suite.
    #[cfg_attr(not(test), allow(dead_code))]
    pub small_digest: &'static str,
}

/// The figure that is compared with the floor.
#[derive(Clone, Copy)]
enum Bound {
    /// CPU time per page that the host writes.
    Write(f64),
    /// CPU time per flash operation of any kind; schemes that copy whole blocks perform many per page.
    Operation(f64),
    /// None: for information only.
    None,
}

impl Case {
    /// Requests of the small run in the test suite.
    #[cfg(test)]
    pub fn small_writes(&self) -> u64 {
        if matches!(self.bound, Bound::Operation(_)) { 20_000 } else { 200_000 }
    }
}

/// One plane that holds the whole drive, as in the floor.
const ONE_PLANE: [&str; 2] = ["geometry.channels=1", "geometry.dies-per-channel=1"];

/// A drive of 8 GiB on one plane, counts only, with settings of the case.
macro_rules! one_plane {
    ($($setting:literal),*) => {
        &["timing.model=none", ONE_PLANE[0], ONE_PLANE[1], "geometry.blocks-per-plane=32768", $($setting),*]
    };
}

/// Common settings of the cases of translation layers, unless they state others.
const SCHEME: Case = Case {
    name: "",
    blocks: 32_768,
    pages_per_block: 64,
    utilisation: 0.8,
    writes: 10_000_000,
    depth: 1,
    load: Load::Uniform,
    settings: &[],
    bound: Bound::Operation(2.0),
    small_digest: "",
};

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "none, 8 GiB",
        blocks: 32_768,
        pages_per_block: 64,
        utilisation: 0.8,
        writes: 40_000_000,
        depth: 1,
        settings: &["timing.model=none", ONE_PLANE[0], ONE_PLANE[1], "geometry.blocks-per-plane=32768"],
        load: Load::Uniform,
        bound: Bound::Write(1.4),
        small_digest: "db0fe13dd1aafc0a",
    },
    Case {
        name: "none, 8 GiB, 8 dies",
        blocks: 32_768,
        pages_per_block: 64,
        utilisation: 0.8,
        writes: 40_000_000,
        depth: 1,
        settings: &["timing.model=none"],
        load: Load::Uniform,
        bound: Bound::Write(1.4),
        small_digest: "c9bc5e7d5dcca988",
    },
    Case {
        name: "none, 128 GiB",
        blocks: 131_072,
        pages_per_block: 256,
        utilisation: 0.9,
        writes: 60_000_000,
        depth: 1,
        settings: &[
            "timing.model=none",
            ONE_PLANE[0],
            ONE_PLANE[1],
            "geometry.blocks-per-plane=131072",
            "geometry.pages-per-block=256",
            "capacity.utilization=0.9",
        ],
        load: Load::Uniform,
        bound: Bound::Write(1.5),
        small_digest: "eed328da88402183",
    },
    Case {
        name: "serial, 8 GiB",
        blocks: 32_768,
        pages_per_block: 64,
        utilisation: 0.8,
        writes: 20_000_000,
        depth: 1,
        settings: &["timing.model=serial"],
        load: Load::Uniform,
        bound: Bound::Write(4.0),
        small_digest: "0141102c799d5f70",
    },
    Case {
        name: "parallel, 8 GiB, depth 1",
        blocks: 32_768,
        pages_per_block: 64,
        utilisation: 0.8,
        writes: 20_000_000,
        depth: 1,
        settings: &["timing.model=parallel"],
        load: Load::Uniform,
        bound: Bound::Write(2.8),
        small_digest: "0141102c799d5f70",
    },
    Case {
        name: "parallel, 8 GiB, depth 32",
        blocks: 32_768,
        pages_per_block: 64,
        utilisation: 0.8,
        writes: 20_000_000,
        depth: 32,
        settings: &["timing.model=parallel"],
        load: Load::Uniform,
        bound: Bound::Write(3.2),
        small_digest: "ad67a396f1109bf2",
    },
    Case {
        name: "parallel, 8 GiB, 64 dies, depth 256",
        writes: 20_000_000,
        depth: 256,
        settings: &["geometry.channels=8", "geometry.dies-per-channel=8", "geometry.blocks-per-plane=512"],
        bound: Bound::Write(4.0),
        small_digest: "1fb5c70b355323ba",
        ..SCHEME
    },
    Case {
        name: "parallel, not pipelined, depth 32",
        blocks: 32_768,
        pages_per_block: 64,
        utilisation: 0.8,
        writes: 20_000_000,
        depth: 32,
        settings: &["timing.model=parallel", "timing.pipelined=false"],
        load: Load::Uniform,
        bound: Bound::Write(4.0),
        small_digest: "ffa7bddf699a7900",
    },
    Case {
        name: "dftl, uniform",
        writes: 20_000_000,
        settings: one_plane!["ftl.scheme=dftl"],
        bound: Bound::Write(3.0),
        small_digest: "7b9207c6ffbbf71a",
        ..SCHEME
    },
    Case {
        name: "dftl, greedy, uniform",
        writes: 20_000_000,
        settings: one_plane!["ftl.scheme=dftl", "gc.victim=greedy"],
        bound: Bound::Write(3.0),
        small_digest: "0a804d985539f7f8",
        ..SCHEME
    },
    Case {
        name: "block, uniform",
        writes: 2_000_000,
        settings: one_plane!["ftl.scheme=block"],
        small_digest: "e1f8544268335c63",
        ..SCHEME
    },
    Case {
        name: "replacement, uniform",
        writes: 2_000_000,
        settings: one_plane!["ftl.scheme=replacement"],
        small_digest: "c9a703000bd1cb11",
        ..SCHEME
    },
    Case {
        name: "bast, uniform",
        writes: 2_000_000,
        settings: one_plane!["ftl.scheme=bast"],
        small_digest: "290e301ce197c060",
        ..SCHEME
    },
    Case {
        name: "fast, uniform",
        writes: 4_000_000,
        settings: one_plane!["ftl.scheme=fast"],
        small_digest: "22aa72327c443f73",
        ..SCHEME
    },
    Case {
        name: "last, uniform",
        writes: 2_000_000,
        settings: one_plane!["ftl.scheme=last"],
        small_digest: "4ed4c753f88f3909",
        ..SCHEME
    },
    Case {
        name: "superblock, uniform",
        settings: one_plane!["ftl.scheme=superblock", "ftl.superblock.blocks=16"],
        small_digest: "2a4946aca0bc1c8c",
        ..SCHEME
    },
    Case {
        name: "page, Financial1",
        writes: 20_000_000,
        settings: one_plane!["ftl.scheme=page"],
        load: Load::Financial,
        bound: Bound::None,
        small_digest: "78a103d3900b703d",
        ..SCHEME
    },
    Case {
        name: "dftl, Financial1",
        writes: 20_000_000,
        settings: one_plane!["ftl.scheme=dftl"],
        load: Load::Financial,
        bound: Bound::Write(3.0),
        small_digest: "773a82e5a918f33a",
        ..SCHEME
    },
    Case {
        name: "dftl, greedy, Financial1",
        writes: 20_000_000,
        settings: one_plane!["ftl.scheme=dftl", "gc.victim=greedy"],
        load: Load::Financial,
        bound: Bound::Write(3.0),
        small_digest: "b28fc49ac77f5e92",
        ..SCHEME
    },
    Case {
        name: "block, Financial1",
        writes: 2_000_000,
        settings: one_plane!["ftl.scheme=block"],
        load: Load::Financial,
        small_digest: "e6081d3ebcf3d4b3",
        ..SCHEME
    },
    Case {
        name: "replacement, Financial1",
        writes: 2_000_000,
        settings: one_plane!["ftl.scheme=replacement"],
        load: Load::Financial,
        small_digest: "d1eca55268ad4f57",
        ..SCHEME
    },
    Case {
        name: "bast, Financial1",
        writes: 2_000_000,
        settings: one_plane!["ftl.scheme=bast"],
        load: Load::Financial,
        small_digest: "0835e6d3415fda4f",
        ..SCHEME
    },
    Case {
        name: "fast, Financial1",
        writes: 4_000_000,
        settings: one_plane!["ftl.scheme=fast"],
        load: Load::Financial,
        small_digest: "a891b1d490792c09",
        ..SCHEME
    },
    Case {
        name: "last, Financial1",
        writes: 2_000_000,
        settings: one_plane!["ftl.scheme=last"],
        load: Load::Financial,
        small_digest: "725f99f77f0b3462",
        ..SCHEME
    },
    Case {
        name: "superblock, Financial1",
        settings: one_plane!["ftl.scheme=superblock", "ftl.superblock.blocks=16"],
        load: Load::Financial,
        small_digest: "299123c75ada5c4d",
        ..SCHEME
    },
];

/// The settings of a case on a sixteenth of its drive.
#[cfg(test)]
pub(crate) fn small(case: &Case) -> Vec<String> {
    let mut settings: Vec<String> = case.settings.iter().map(|setting| (*setting).to_owned()).collect();
    let planes = match settings.iter().find_map(|setting| setting.strip_prefix("geometry.channels=")) {
        Some("1") => 1,
        Some("8") => 64,
        _ => 8,
    };
    settings.push("gc.free-blocks-min=1".to_owned());
    settings.push(format!("geometry.blocks-per-plane={}", case.blocks / 16 / planes));
    settings
}

/// Smallest number of writes of the floor.
const FLOOR_WRITES_MIN: u64 = 10_000_000;

/// Bytes of memory that a run may take: 10 per flash page plus 64 MiB.
const BYTES_PER_PAGE_MAX: f64 = 10.0;
const BYTES_FIXED: f64 = 64.0 * 1024.0 * 1024.0;

/// Runs all cases and prints the table.
pub fn print(args: &[String]) -> Result<(), String> {
    let quick = args.iter().any(|arg| arg == "--quick");
    let json = args
        .iter()
        .position(|arg| arg == "--json")
        .map(|at| args.get(at + 1).ok_or("--json needs a file"))
        .transpose()?;
    let only = args
        .iter()
        .position(|arg| arg == "--only")
        .map(|at| args.get(at + 1).ok_or("--only needs a part of a case's name"))
        .transpose()?;
    if let Some(unknown) =
        args.iter().find(|arg| arg.starts_with("--") && !["--quick", "--json", "--only"].contains(&arg.as_str()))
    {
        return Err(format!("unknown option {unknown}; known: --quick, --only TEXT, --json FILE"));
    }
    let machine = cpu::machine();
    let core = cpu::pin_to_one_core();
    let floor = child::c_floor();
    println!("machine: {machine}");
    println!("core: {}", core.map_or("not pinned".to_owned(), |core| core.to_string()));
    println!("floor: {}\n", floor.as_ref().map_or("the one in Rust", |_| "floor.c"));
    println!(
        "{:<36} {:>9} {:>9} {:>7} {:>7} {:>8}  {:>8} {:>8} {:>8} {:>8}  digest",
        "case", "floor ns", "ours ns", "ratio", "per op", "bound", "WA floor", "WA ours", "op/write", "B/page"
    );
    let mut rows = Vec::new();
    let mut missed = Vec::new();
    for case in CASES.iter().filter(|case| only.is_none_or(|only| case.name.contains(only.as_str()))) {
        let (kept, row) = measure(case, floor.as_deref(), quick)?;
        if !kept {
            missed.push(case.name);
        }
        rows.push(row);
    }
    println!("\n{:<36} {:>20}  digest", "reading a trace", "requests per CPU s");
    let lines = if quick { 200_000 } else { 2_000_000 };
    for reading in traces::measure(lines).map_err(|error| error.to_string())? {
        let name = format!("{}, {}", reading.format, reading.passes);
        println!("{name:<36} {:>20.0}  {:016x}", reading.requests_per_cpu_s, reading.digest);
        rows.push(serde_json::json!({ "case": name, "requests": reading.requests, "requests_per_cpu_s": reading.requests_per_cpu_s }));
    }
    if let Some(path) = json {
        let text = serde_json::to_string_pretty(&serde_json::json!({ "machine": machine, "cases": rows }));
        std::fs::write(path, text.map_err(|e| e.to_string())?).map_err(|e| format!("{path}: {e}"))?;
    }
    println!(
        "\n{}",
        if missed.is_empty() {
            "every bound is kept".to_owned()
        } else {
            format!("beyond the bound: {}", missed.join(", "))
        }
    );
    Ok(())
}

/// Three rounds of floor and simulator, the smallest ratio first.
pub(crate) fn rounds(case: &Case, floor: Option<&Path>, quick: bool) -> Result<Vec<(Outcome, Outcome)>, String> {
    let writes = if quick { case.writes / 10 } else { case.writes };
    let round = || Ok((run_floor(case, floor, writes)?, run_ours(case, writes)?));
    let mut rounds = (0..3).map(|_| round()).collect::<Result<Vec<(Outcome, Outcome)>, String>>()?;
    rounds.sort_by(|(fa, oa), (fb, ob)| {
        (fa.writes_per_s / oa.writes_per_s).total_cmp(&(fb.writes_per_s / ob.writes_per_s))
    });
    Ok(rounds)
}

/// The median of three ratios, and whether it keeps its bound.
fn measure(case: &Case, floor: Option<&Path>, quick: bool) -> Result<(bool, serde_json::Value), String> {
    let rounds = rounds(case, floor, quick)?;
    let (base, ours) = &rounds[1];
    let ratio = base.writes_per_s / ours.writes_per_s;
    // A copy is a read and a program; blocks are erased as often as they are filled.
    let base_operations =
        2.0 * base.write_amplification - 1.0 + base.write_amplification / f64::from(case.pages_per_block);
    let per_operation = ratio * base_operations / ours.operations;
    let (kept, bound) = match case.bound {
        Bound::Write(bound) => (ratio <= bound, format!("{bound}")),
        Bound::None => (true, "-".to_owned()),
        Bound::Operation(bound) => (per_operation <= bound, format!("{bound} / op")),
    };
    let per_page = ours.rss / ours.pages;
    println!(
        "{:<36} {:>9.1} {:>9.1} {:>7.2} {:>7.2} {:>8}  {:>8.4} {:>8.4} {:>8.2} {:>8.2}  {}",
        case.name,
        1e9 / base.writes_per_s,
        1e9 / ours.writes_per_s,
        ratio,
        per_operation,
        bound,
        base.write_amplification,
        ours.write_amplification,
        ours.operations,
        per_page,
        ours.digest
    );
    // A stream generated ahead takes additional memory.
    if case.load == Load::Uniform && ours.rss > ours.pages * BYTES_PER_PAGE_MAX + BYTES_FIXED {
        println!("{:<36} memory beyond {BYTES_PER_PAGE_MAX} bytes a page and 64 MiB: {} bytes", "", ours.rss);
    }
    let row = serde_json::json!({
        "case": case.name, "floor_ns": 1e9 / base.writes_per_s, "ours_ns": 1e9 / ours.writes_per_s, "ratio": ratio,
        "ratio_per_operation": per_operation, "operations_per_write": ours.operations, "bound": bound, "peak_rss_bytes": ours.rss, "bytes_per_page": per_page, "digest": ours.digest,
    });
    Ok((kept, row))
}

fn run_floor(case: &Case, floor: Option<&Path>, writes: u64) -> Result<Outcome, String> {
    // Enough to clean as in the long run, however few writes the scheme gets.
    let writes = writes.max(FLOOR_WRITES_MIN);
    let numbers =
        [case.blocks.to_string(), case.pages_per_block.to_string(), case.utilisation.to_string(), writes.to_string()];
    match (floor, case.load) {
        (Some(program), Load::Uniform) => child::run(Command::new(program).args(numbers)),
        _ => child::run(Command::new(child::own_path()?).arg("floor").args(numbers).arg(case.load.name())),
    }
}

fn run_ours(case: &Case, writes: u64) -> Result<Outcome, String> {
    let settings: Vec<String> =
        std::iter::once("gc.free-blocks-min=1").chain(case.settings.iter().copied()).map(str::to_owned).collect();
    child::play(case.load.name(), writes, case.depth, &settings)
}
