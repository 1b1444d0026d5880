//! `flashwright-bench buffers`: the CPU cost of a write through RAM, as a ratio to the same write without RAM, under
//! `timing.model = "none"`.
//!
//! Block buffers run without padding over page mapping, so that the flash does the same work with and without them, and
//! with padding over BAST. Runs with and without RAM alternate, each in its own process on one core; the median of
//! three ratios counts.

use crate::cpu;
use flashwright_block::{RequestSource, Seed};
use flashwright_sim::{Phase, Precondition, RunSettings, Simulation, SourceSpec};
use std::process::Command;

/// Upper bound of the ratio.
const BOUND: f64 = 2.0;
pub(crate) const SIZES_MIB: [u32; 4] = [1, 4, 16, 64];
const WORKLOADS: [&str; 2] = ["uniform", "zipf"];

/// A scheme, host writes of a run, and the settings of each manager before it.
pub(crate) type Rows = (&'static str, u64, &'static [&'static [&'static str]]);

pub(crate) const ROWS: [Rows; 2] = [
    (
        "page",
        8_000_000,
        &[
            &["fifo"],
            &["lru"],
            &["cflru"],
            &["fab"],
            &["bplru", "ram.bplru.padding=false"],
            &["pud-lru", "ram.pud-lru.padding=false"],
        ],
    ),
    ("bast", 400_000, &[&["bplru"], &["pud-lru"]]),
];

/// The drive: 8 GiB in one plane, utilisation 0.8.
const DRIVE: [&str; 5] = [
    "timing.model=none",
    "geometry.channels=1",
    "geometry.dies-per-channel=1",
    "geometry.blocks-per-plane=32768",
    "gc.free-blocks-min=1",
];

/// Prints the table; with `quick` a tenth of the writes, and one round in place of three.
pub fn print(args: &[String]) -> Result<(), String> {
    let quick = match args {
        [] => false,
        [only] if only == "--quick" => true,
        _ => return Err(format!("buffers: found {}, known: --quick", args.join(" "))),
    };
    println!("machine: {}", cpu::machine());
    println!("core: {}\n", cpu::pin_to_one_core().map_or("not pinned".to_owned(), |core| core.to_string()));
    println!(
        "{:<8} {:<8} {:<8} {:>7} {:>11} {:>9} {:>7}  {:>9} {:>9}",
        "scheme", "workload", "manager", "RAM MiB", "without ns", "with ns", "ratio", "P without", "P with"
    );
    let mut beyond = 0;
    for (scheme, writes, managers) in ROWS {
        let writes = if quick { writes / 10 } else { writes };
        for workload in WORKLOADS {
            for settings in managers {
                for size in SIZES_MIB {
                    let rounds = rounds(scheme, workload, writes, settings, size, if quick { 1 } else { 3 })?;
                    let (without, with) = rounds[rounds.len() / 2];
                    let ratio = with.0 / without.0;
                    beyond += u32::from(ratio > BOUND);
                    println!(
                        "{scheme:<8} {workload:<8} {:<8} {size:>7} {:>11.1} {:>9.1} {ratio:>7.2}  {:>9.3} {:>9.3}",
                        settings[0], without.0, with.0, without.1, with.1
                    );
                }
            }
        }
    }
    println!("\n{beyond} beyond the bound of {BOUND}");
    Ok(())
}

/// CPU nanoseconds and programs of a host write.
type Cost = (f64, f64);

/// So many rounds without and with a manager, the smallest ratio first.
pub(crate) fn rounds(
    scheme: &str,
    workload: &str,
    writes: u64,
    settings: &[&str],
    size_mib: u32,
    count: u32,
) -> Result<Vec<(Cost, Cost)>, String> {
    let mut ram = vec![format!("ram.manager={}", settings[0]), format!("ram.size=\"{size_mib} MiB\"")];
    ram.extend(settings[1..].iter().map(|setting| (*setting).to_owned()));
    let round = |_| Ok((child(scheme, workload, writes, &[])?, child(scheme, workload, writes, &ram)?));
    let mut rounds = (0..count).map(round).collect::<Result<Vec<(Cost, Cost)>, String>>()?;
    rounds.sort_by(|(a, b), (c, d)| (b.0 / a.0).total_cmp(&(d.0 / c.0)));
    Ok(rounds)
}

/// [`Cost`], measured in a process of its own.
fn child(scheme: &str, workload: &str, writes: u64, ram: &[String]) -> Result<Cost, String> {
    let program = std::env::current_exe().map_err(|error| format!("this program's own path: {error}"))?;
    let mut command = Command::new(program);
    command.args(["buffered", workload, &writes.to_string(), &format!("ftl.scheme={scheme}")]).args(ram);
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut numbers = text.split_whitespace().map_while(|word| word.parse().ok());
    match (output.status.success(), numbers.next(), numbers.next()) {
        (true, Some(nanos), Some(programs)) => Ok((nanos, programs)),
        _ => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// `buffered WORKLOAD WRITES KEY=VALUE…`: a sequential fill, then writes of which the second half is timed. Prints CPU
/// nanoseconds and programs for a host write.
pub fn run(args: &[String]) -> Result<(), String> {
    let [workload, writes, changes @ ..] = args else {
        return Err("buffered: expected WORKLOAD WRITES KEY=VALUE…".to_owned());
    };
    let writes = writes.parse().map_err(|_| format!("writes: found {writes:?}, expected a number"))?;
    let changes: Vec<&str> = DRIVE.into_iter().chain(changes.iter().map(String::as_str)).collect();
    let (nanos, json) = play(workload, writes, &changes)?;
    println!("{nanos:.2} {}", json["write_amplification"]);
    Ok(())
}

/// CPU nanoseconds for a host write, and the result.
fn play(workload: &str, writes: u64, changes: &[&str]) -> Result<(f64, serde_json::Value), String> {
    let config = flashwright_ssd::bundled("container-marking")?.with_settings(changes).map_err(|e| e.to_string())?;
    let settings = RunSettings {
        workload: workload.to_owned(),
        precondition: Precondition::Sequential,
        warmup_requests: writes / 2,
        requests: Some(writes - writes / 2),
        ..RunSettings::default()
    };
    let mut simulation = Simulation::new(&config, settings).map_err(|e| e.to_string())?;
    let spec = workload.parse().map_err(|e: flashwright_workload::generate::SpecError| e.to_string())?;
    let mut source = SourceSpec::Workload(spec).open(simulation.ssd(), Seed(1)).map_err(|e| e.to_string())?;
    while simulation.progress(&source).phase != Phase::Measured {
        step(&mut simulation, &mut source)?;
    }
    let started = cpu::cpu_seconds();
    while !step(&mut simulation, &mut source)? {}
    let seconds = cpu::cpu_seconds() - started;
    let report = simulation.report().ok_or("nothing was measured")?;
    Ok((seconds * 1e9 / (writes - writes / 2) as f64, report.report.to_value()))
}

fn step(simulation: &mut Simulation, source: &mut dyn RequestSource) -> Result<bool, String> {
    simulation.step(source, 1 << 20).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every row runs on a small drive, and its RAM saves programs if the stream has locality. The digests are this program's own:
    /// an optimisation that changes a result shows here.
    #[test]
    fn every_row_runs_and_keeps_its_answers() {
        let small = ["geometry.blocks-per-plane=256"];
        let mut digests = Vec::new();
        for (scheme, _, managers) in ROWS {
            for settings in managers {
                let scheme = format!("ftl.scheme={scheme}");
                let manager = format!("ram.manager={}", settings[0]);
                let changes: Vec<&str> = DRIVE.into_iter().chain(small).chain([scheme.as_str()]).collect();
                let (_, without) = play("zipf", 20_000, &changes).unwrap();
                let with: Vec<&str> = changes
                    .iter()
                    .copied()
                    .chain([manager.as_str(), "ram.size=4 MiB"])
                    .chain(settings[1..].iter().copied())
                    .collect();
                let (_, with) = play("zipf", 20_000, &with).unwrap();
                let of = |json: &serde_json::Value| json["write_amplification"].as_f64().unwrap();
                assert!(of(&with) < of(&without), "{manager}: {} with, {} without", of(&with), of(&without));
                digests.push(format!("{} {}", settings[0], with["digest"].as_str().unwrap_or_default()));
            }
        }
        // Without reads CFLRU is LRU.
        let expected = [
            "fifo 98391303dfdc3484",
            "lru 0bea58b553bf9d2b",
            "cflru 0bea58b553bf9d2b",
            "fab eccdb51dae22e614",
            "bplru 77a0610c74a3c202",
            "pud-lru aec17e8d9495d61b",
            "bplru c9c22323a5f4f295",
            "pud-lru 8ac7ebf65599d117",
        ];
        assert_eq!(digests, expected);
    }
}
