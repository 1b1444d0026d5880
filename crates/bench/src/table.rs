//! The table: each case of ours in turn with the floor on the same drive.

use crate::{cpu, traces};
use std::path::{Path, PathBuf};
use std::process::Command;

/// One line of the table.
pub(crate) struct Case {
    pub name: &'static str,
    blocks: u32,
    pages_per_block: u32,
    utilisation: f64,
    writes: u64,
    pub depth: u32,
    settings: &'static [&'static str],
    /// What the ratio to the floor must not exceed.
    bound: f64,
    /// The digest of the small run in the test suite.
    #[cfg_attr(not(test), allow(dead_code))]
    pub small_digest: &'static str,
}

/// One plane that holds the whole drive, as the floor has it.
const ONE_PLANE: [&str; 2] = ["geometry.channels=1", "geometry.dies-per-channel=1"];

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "none, 8 GiB",
        blocks: 32_768,
        pages_per_block: 64,
        utilisation: 0.8,
        writes: 40_000_000,
        depth: 1,
        settings: &["timing.model=none", ONE_PLANE[0], ONE_PLANE[1], "geometry.blocks-per-plane=32768"],
        bound: 1.5,
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
        bound: 1.5,
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
        bound: 1.5,
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
        bound: 4.0,
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
        bound: 4.0,
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
        bound: 4.0,
        small_digest: "ad67a396f1109bf2",
    },
    Case {
        name: "parallel, not pipelined, depth 32",
        blocks: 32_768,
        pages_per_block: 64,
        utilisation: 0.8,
        writes: 20_000_000,
        depth: 32,
        settings: &["timing.model=parallel", "timing.pipelined=false"],
        bound: 4.0,
        small_digest: "ffa7bddf699a7900",
    },
];

/// The settings of a case on a sixteenth of its drive.
#[cfg(test)]
pub(crate) fn small(case: &Case) -> Vec<String> {
    let mut settings: Vec<String> = case.settings.iter().map(|setting| (*setting).to_owned()).collect();
    let planes = if settings.iter().any(|setting| setting == ONE_PLANE[0]) { 1 } else { 8 };
    settings.push("gc.free-blocks-min=1".to_owned());
    settings.push(format!("geometry.blocks-per-plane={}", case.blocks / 16 / planes));
    settings
}

/// Bytes of memory that a run may take: 10 for each flash page and 64 MiB.
const BYTES_PER_PAGE_MAX: f64 = 10.0;
const BYTES_FIXED: f64 = 64.0 * 1024.0 * 1024.0;

/// What a child reported.
#[derive(Default, Clone)]
pub(crate) struct Outcome {
    pub writes_per_s: f64,
    pub write_amplification: f64,
    rss: f64,
    pages: f64,
    digest: String,
}

/// Runs all cases and prints the table.
pub fn print(args: &[String]) -> Result<(), String> {
    let quick = args.iter().any(|arg| arg == "--quick");
    let json = args
        .iter()
        .position(|arg| arg == "--json")
        .map(|at| args.get(at + 1).ok_or("--json needs a file"))
        .transpose()?;
    if let Some(unknown) =
        args.iter().find(|arg| arg.starts_with("--") && !["--quick", "--json"].contains(&arg.as_str()))
    {
        return Err(format!("unknown option {unknown}; known: --quick, --json FILE"));
    }
    let machine = cpu::machine();
    let core = cpu::pin_to_one_core();
    let floor = c_floor();
    println!("machine: {machine}");
    println!("core: {}", core.map_or("not pinned".to_owned(), |core| core.to_string()));
    println!("floor: {}\n", floor.as_ref().map_or("twin in Rust", |_| "floor.c"));
    println!(
        "{:<36} {:>9} {:>9} {:>7} {:>7}  {:>8} {:>8} {:>8}  digest",
        "case", "floor ns", "ours ns", "ratio", "bound", "WA floor", "WA ours", "B/page"
    );
    let mut rows = Vec::new();
    let mut missed = Vec::new();
    for case in CASES {
        let (ratio, row) = measure(case, floor.as_deref(), quick)?;
        if ratio > case.bound {
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

/// Three rounds of floor and ours in turn; the median ratio.
fn measure(case: &Case, floor: Option<&Path>, quick: bool) -> Result<(f64, serde_json::Value), String> {
    let writes = if quick { case.writes / 10 } else { case.writes };
    let mut rounds = Vec::new();
    for _ in 0..3 {
        let base = run_floor(case, floor, writes)?;
        let ours = run_ours(case, writes)?;
        rounds.push((base, ours));
    }
    rounds.sort_by(|(fa, oa), (fb, ob)| {
        (fa.writes_per_s / oa.writes_per_s).total_cmp(&(fb.writes_per_s / ob.writes_per_s))
    });
    let (base, ours) = &rounds[1];
    let ratio = base.writes_per_s / ours.writes_per_s;
    let per_page = ours.rss / ours.pages;
    println!(
        "{:<36} {:>9.1} {:>9.1} {:>7.2} {:>7.2}  {:>8.4} {:>8.4} {:>8.2}  {}",
        case.name,
        1e9 / base.writes_per_s,
        1e9 / ours.writes_per_s,
        ratio,
        case.bound,
        base.write_amplification,
        ours.write_amplification,
        per_page,
        ours.digest
    );
    if ours.rss > ours.pages * BYTES_PER_PAGE_MAX + BYTES_FIXED {
        println!("{:<36} memory beyond {BYTES_PER_PAGE_MAX} bytes a page and 64 MiB: {} bytes", "", ours.rss);
    }
    let row = serde_json::json!({
        "case": case.name, "floor_ns": 1e9 / base.writes_per_s, "ours_ns": 1e9 / ours.writes_per_s, "ratio": ratio,
        "bound": case.bound, "peak_rss_bytes": ours.rss, "bytes_per_page": per_page, "digest": ours.digest,
    });
    Ok((ratio, row))
}

fn run_floor(case: &Case, floor: Option<&Path>, writes: u64) -> Result<Outcome, String> {
    let numbers =
        [case.blocks.to_string(), case.pages_per_block.to_string(), case.utilisation.to_string(), writes.to_string()];
    match floor {
        Some(program) => run(Command::new(program).args(numbers)),
        None => run(Command::new(own_path()?).arg("floor").args(numbers)),
    }
}

fn run_ours(case: &Case, writes: u64) -> Result<Outcome, String> {
    let settings: Vec<String> =
        std::iter::once("gc.free-blocks-min=1").chain(case.settings.iter().copied()).map(str::to_owned).collect();
    play_in_child(writes, case.depth, &settings)
}

/// A run in a process of its own.
pub(crate) fn play_in_child(writes: u64, depth: u32, settings: &[String]) -> Result<Outcome, String> {
    let numbers = ["run".to_owned(), writes.to_string(), depth.to_string()];
    run(Command::new(own_path()?).args(numbers).args(settings))
}

fn own_path() -> Result<PathBuf, String> {
    std::env::current_exe().map_err(|error| format!("this program's own path: {error}"))
}

/// Runs a child and reads its `name value` lines.
fn run(command: &mut Command) -> Result<Outcome, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    let mut outcome = Outcome::default();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Some((name, value)) = line.split_once(' ') else { continue };
        let number = value.parse().unwrap_or_default();
        match name {
            "host_writes_per_cpu_second" => outcome.writes_per_s = number,
            "write_amplification" => outcome.write_amplification = number,
            "peak_rss_bytes" => outcome.rss = number,
            "physical_pages" => outcome.pages = number,
            "digest" => outcome.digest = value.trim_matches('"').to_owned(),
            _ => {}
        }
    }
    Ok(outcome)
}

/// The floor in C, compiled beside this program, where its source and a compiler are at hand.
fn c_floor() -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/bench/floor.c");
    let target = own_path().ok()?.with_file_name("floor");
    let compiled = source.exists()
        && Command::new("cc")
            .args(["-O3", "-march=native", "-o"])
            .arg(&target)
            .arg(&source)
            .status()
            .is_ok_and(|s| s.success());
    compiled.then_some(target)
}
