//! `make bench`: CPU time per host write against the floor, in one sitting, pinned to one core.
//!
//! Every measurement is a process of its own (`flashwright-bench run …`), the floor and ours in turn, so that memory
//! layout and drift of the machine meet both alike. Quote the ratios: seconds on a shared machine mean nothing.
//!
//! ```text
//! flashwright-bench                 the whole table
//! flashwright-bench --quick         a tenth of the writes
//! flashwright-bench --json FILE     the table for programs as well
//! flashwright-bench policies        victim and placement policies against greedy cleaning
//! ```

#![allow(clippy::print_stdout, clippy::print_stderr)]

mod cpu;
mod floor;
mod policies;
mod table;
mod traces;

use flashwright_block::{RequestSource, Seed};
use flashwright_sim::{Pace, Phase, Precondition, RunSettings, Simulation, SourceSpec, Window};
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let result = match args.first().map(String::as_str) {
        Some("run") => run(&args[1..]),
        Some("floor") => run_floor(&args[1..]),
        Some("policies") => policies::print(&args[1..]),
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

/// `floor BLOCKS PAGES_PER_BLOCK UTILISATION WRITES`
fn run_floor(args: &[String]) -> Result<(), String> {
    let (blocks, pages) = (number(args, 0, "blocks")?, number(args, 1, "pages per block")?);
    let result = floor::run(blocks, pages, number(args, 2, "utilisation")?, number(args, 3, "writes")?);
    println!("write_amplification {:.4}", result.write_amplification);
    println!("host_writes_per_cpu_second {:.0}", 1e9 / result.nanos_per_write);
    Ok(())
}

/// `run WRITES DEPTH KEY=VALUE…`: a sequential fill, then uniform random writes, of which the second half is timed.
fn run(args: &[String]) -> Result<(), String> {
    let (writes, depth): (u64, u32) = (number(args, 0, "writes")?, number(args, 1, "depth")?);
    let (writes_per_s, json) = play(writes, depth, &args[2..])?;
    println!("host_writes_per_cpu_second {writes_per_s:.0}");
    println!("write_amplification {}", json["write_amplification"]);
    println!("peak_rss_bytes {}", json["run"]["peak_rss_bytes"]);
    println!("physical_pages {}", json["drive"]["physical_pages"]);
    println!("digest {}", json["digest"]);
    Ok(())
}

/// Host writes a CPU second, and the result.
fn play<S: AsRef<str>>(writes: u64, depth: u32, changes: &[S]) -> Result<(f64, serde_json::Value), String> {
    let config = flashwright_ssd::bundled("container-marking")?.with_settings(changes).map_err(|e| e.to_string())?;
    let settings = RunSettings {
        workload: "uniform".to_owned(),
        seed: Seed(1),
        precondition: Precondition::Sequential,
        pace: Pace::Closed { depth },
        warmup_requests: writes / 2,
        requests: Some(writes - writes / 2),
        window: Window::Off,
        keep_requests: false,
        verify: false,
        audit_every: 0,
    };
    let mut simulation = Simulation::new(&config, settings).map_err(|e| e.to_string())?;
    let spec = "uniform".parse().map_err(|e: flashwright_workload::generate::SpecError| e.to_string())?;
    let mut source = SourceSpec::Workload(spec).open(simulation.ssd(), Seed(1)).map_err(|e| e.to_string())?;
    while simulation.progress(&source).phase != Phase::Measured {
        step(&mut simulation, &mut source)?;
    }
    let started = cpu::cpu_seconds();
    while !step(&mut simulation, &mut source)? {}
    let seconds = cpu::cpu_seconds() - started;
    let report = simulation.report().ok_or("nothing was measured")?;
    Ok(((writes - writes / 2) as f64 / seconds, report.json))
}

fn step(simulation: &mut Simulation, source: &mut dyn RequestSource) -> Result<bool, String> {
    simulation.step(source, 1 << 20).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every case of the table on a sixteenth of its drive, so that it can't rot. The digest covers each request's end and
    /// the drive's final state: an optimisation that changes an answer shows here. The values are this program's own.
    #[test]
    fn small_runs_keep_their_answers() {
        let mut answers = Vec::new();
        for case in table::CASES {
            let (_, json) = play(200_000, case.depth, &table::small(case)).unwrap();
            let digest = json["digest"].as_str().unwrap_or_default();
            println!("{:<36} {digest}", case.name);
            answers.push((case.name, digest.to_owned()));
        }
        let expected: Vec<_> = table::CASES.iter().map(|case| (case.name, case.small_digest.to_owned())).collect();
        assert_eq!(answers, expected);
    }

    /// Every line of the table of policies runs, on a small drive, and is a run of its own; but for partition FIFO, which is FIFO
    /// with one frontier, and for the age threshold, which under uniform writes takes greedy's blocks.
    #[test]
    fn every_policy_has_a_line_that_runs() {
        let mut digests = Vec::new();
        for case in policies::cases() {
            let (_, json) = play(100_000, 1, &[policies::drive(1024), case.settings].concat()).unwrap();
            digests.push(json["digest"].as_str().unwrap_or_default().to_owned());
        }
        let different: std::collections::BTreeSet<&String> = digests.iter().collect();
        assert_eq!(different.len(), digests.len() - 2, "two lines are the same run");
    }
}
