//! `make bench`: CPU time per host write against the floor, in one sitting, pinned to one core.
//!
//! Every measurement is a separate process (`flashwright-bench run …`), and floor and simulator alternate, so that
//! memory layout and drift of the machine affect both alike. Quote the ratios: seconds on a shared machine mean
//! nothing.
//!
//! ```text
//! flashwright-bench                 the whole table
//! flashwright-bench --quick         a tenth of the writes
//! flashwright-bench --only TEXT     the cases with this in their name
//! flashwright-bench --json FILE     the table for programs as well
//! flashwright-bench buffers         writes through RAM against the same without; takes --quick
//! flashwright-bench policies        victim and placement policies against greedy cleaning
//! flashwright-bench host            a request through each scheduler; takes --quick, --only CHAIN
//! flashwright-bench controller      a request through a drive's controller; takes --quick
//! flashwright-bench limits          every bound of crates/bench/src/limits.rs, with the floor, in one sitting
//! flashwright-bench instructions    instructions an operation on each path; takes --accept, --only TEXT
//! ```

#![allow(clippy::print_stdout, clippy::print_stderr)]

mod buffers;
mod child;
mod controllers;
mod cpu;
mod floor;
mod host;
mod instructions;
mod limits;
mod paths;
mod policies;
mod streams;
mod table;
mod traces;

use flashwright_block::{RequestSource, Seed};
use flashwright_sim::{Pace, Phase, Precondition, RunSettings, Simulation, SourceSpec};
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|first| first == "instructions") {
        return match instructions::check(&args[1..]) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::from(2)
            }
        };
    }
    let result = match args.first().map(String::as_str) {
        Some("run") => run(&args[1..]),
        Some("floor") => run_floor(&args[1..]),
        Some("buffers") => buffers::print(&args[1..]),
        Some("buffered") => buffers::run(&args[1..]),
        Some("policies") => policies::print(&args[1..]),
        Some("host") => host::print(&args[1..]),
        Some("controller") => controllers::print(&args[1..]),
        Some("limits") => limits::print(&args[1..]),
        Some("path") => instructions::run(&args[1..]),
        _ => table::print(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn number<T: std::str::FromStr>(args: &[String], at: usize, what: &str) -> Result<T, String> {
    let text = args.get(at).ok_or_else(|| format!("{what} is missing"))?;
    text.parse().map_err(|_| format!("{what}: found {text:?}, expected a number"))
}

/// `floor BLOCKS PAGES_PER_BLOCK UTILISATION WRITES [financial]`
fn run_floor(args: &[String]) -> Result<(), String> {
    let (blocks, pages) = (number(args, 0, "blocks")?, number(args, 1, "pages per block")?);
    let (utilisation, writes) = (number(args, 2, "utilisation")?, number(args, 3, "writes")?);
    let result = match load(args.get(4))? {
        Load::Uniform => floor::run(blocks, pages, utilisation, writes),
        Load::Financial => floor::run_financial(blocks, pages, utilisation, writes)?,
    };
    println!("write_amplification {:.4}", result.write_amplification);
    println!("host_writes_per_cpu_second {:.0}", 1e9 / result.nanos_per_write);
    Ok(())
}

/// Which writes are timed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Load {
    /// Single pages, uniformly random.
    Uniform,
    /// The writes of the stand-in for Financial1.
    Financial,
}

impl Load {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Financial => "financial",
        }
    }
}

fn load(name: Option<&String>) -> Result<Load, String> {
    match name.map(String::as_str) {
        None | Some("uniform") => Ok(Load::Uniform),
        Some("financial") => Ok(Load::Financial),
        Some(other) => Err(format!("load: found {other:?}, expected uniform or financial")),
    }
}

/// `run LOAD WRITES DEPTH KEY=VALUE…`: a sequential fill, then writes, of which the second half is timed.
fn run(args: &[String]) -> Result<(), String> {
    let (writes, depth): (u64, u32) = (number(args, 1, "writes")?, number(args, 2, "depth")?);
    let (pages_per_s, json) = play(load(args.first())?, writes, depth, &args[3..])?;
    println!("host_writes_per_cpu_second {pages_per_s:.0}");
    println!("write_amplification {}", json["write_amplification"]);
    let kinds = ["reads", "programs", "erases", "oob_reads"];
    let operations: f64 = kinds.iter().filter_map(|kind| json["flash"][kind]["total"].as_f64()).sum();
    println!("operations_per_write {}", operations / json["host"]["pages_written"].as_f64().unwrap_or(f64::NAN));
    println!("peak_rss_bytes {}", json["run"]["peak_rss_bytes"]);
    println!("physical_pages {}", json["drive"]["physical_pages"]);
    println!("digest {}", json["digest"]);
    Ok(())
}

/// Host page writes per CPU second, and the result.
fn play<S: AsRef<str>>(load: Load, writes: u64, depth: u32, changes: &[S]) -> Result<(f64, serde_json::Value), String> {
    let config = flashwright_ssd::bundled("container-marking")?.with_settings(changes).map_err(|e| e.to_string())?;
    let settings = RunSettings {
        workload: if load == Load::Uniform { "uniform" } else { streams::FINANCIAL }.to_owned(),
        precondition: Precondition::Sequential,
        pace: Pace::Closed { depth },
        warmup_requests: writes / 2,
        requests: Some(writes - writes / 2),
        ..RunSettings::default()
    };
    let mut simulation = Simulation::new(&config, settings).map_err(|e| e.to_string())?;
    let seconds = match load {
        Load::Uniform => {
            let spec = "uniform".parse().map_err(|e: flashwright_workload::generate::SpecError| e.to_string())?;
            let mut source = SourceSpec::Workload(spec).open(simulation.ssd(), Seed(1)).map_err(|e| e.to_string())?;
            timed(&mut simulation, &mut source)?
        }
        Load::Financial => {
            let mut source = streams::Stream::financial(simulation.ssd().logical_pages(), writes)?;
            timed(&mut simulation, &mut source)?
        }
    };
    let report = simulation.report().ok_or("nothing was measured")?;
    let json = report.report.to_value();
    let pages = json["host"]["pages_written"].as_f64().ok_or("no pages were counted")?;
    Ok((pages / seconds, json))
}

/// CPU seconds of the measured part.
fn timed(simulation: &mut Simulation, source: &mut dyn RequestSource) -> Result<f64, String> {
    while simulation.progress(source).phase != Phase::Measured {
        step(simulation, source)?;
    }
    let started = cpu::cpu_seconds();
    while !step(simulation, source)? {}
    Ok(cpu::cpu_seconds() - started)
}

fn step(simulation: &mut Simulation, source: &mut dyn RequestSource) -> Result<bool, String> {
    simulation.step(source, 1 << 20).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs every case of the table on a sixteenth of its drive, so that it stays working. The digest covers each
    /// request's completion and the drive's final state: an optimisation that changes a result shows here. The expected
    /// values are this program's own.
    #[test]
    fn small_runs_keep_their_answers() {
        let mut answers = Vec::new();
        for case in table::CASES {
            let (_, json) = play(case.load, case.small_writes(), case.depth, &table::small(case)).unwrap();
            let digest = json["digest"].as_str().unwrap_or_default();
            println!("{:<36} {digest}", case.name);
            answers.push((case.name, digest.to_owned()));
        }
        let expected: Vec<_> = table::CASES.iter().map(|case| (case.name, case.small_digest.to_owned())).collect();
        assert_eq!(answers, expected);
    }

    /// Every line of the policy table runs on a small drive and gives a different result, except partition FIFO, which
    /// is FIFO with one frontier, the age threshold, which takes greedy's blocks under uniform writes, and handles, which are
    /// streams by another name. The results are those of earlier versions of this program.
    #[test]
    fn every_policy_has_a_line_that_runs_and_keeps_its_answers() {
        let mut digests = Vec::new();
        for case in policies::cases() {
            let (_, json) = play(Load::Uniform, 100_000, 1, &[policies::drive(1024), case.settings].concat()).unwrap();
            println!("{} {}", case.name, json["digest"].as_str().unwrap_or_default());
            digests.push(json["digest"].as_str().unwrap_or_default().to_owned());
        }
        let of_all = digests
            .iter()
            .flat_map(|digest| digest.bytes())
            .fold(0_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29));
        assert_eq!(format!("{of_all:016x}"), "ef1e93bf1519bc3c", "a policy decides otherwise than it did");
        let different: std::collections::BTreeSet<&String> = digests.iter().collect();
        assert_eq!(different.len(), digests.len() - 3, "two lines are the same run");
    }
}
