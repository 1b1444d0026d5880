//! `flashwright-bench limits`: every path that has a bound, with its floor, in one sitting: `make limits`.
//!
//! A path of the first table is a ratio to the floor ([`crate::floor`]), one through RAM to the same write without RAM, CAT
//! to greedy cleaning, all by turns; schedulers and controllers are CPU nanoseconds of a request. The median of three rounds
//! counts (five for nanoseconds), and the range is shown with it: where it is wide, the machine was not quiet.
//!
//! ```text
//! flashwright-bench limits               about a quarter of an hour
//! flashwright-bench limits --quick       a tenth of the writes, a fifth of the requests
//! flashwright-bench limits --only TEXT   the rows with this in their name
//! flashwright-bench limits --json FILE   the table for programs as well
//! ```

use crate::child::{self, Outcome};
use crate::{buffers, controllers, cpu, host, policies, table};

/// A row: its name, its bound, what lies beyond, and how it is measured.
struct Limit {
    name: String,
    bound: f64,
    moonshot: f64,
    what: What,
}

enum What {
    /// A case of the table.
    Floor(&'static table::Case),
    /// Settings of a manager of RAM, and its size in MiB.
    Ram(&'static [&'static str], u32),
    /// Settings of a victim policy.
    Victims(Vec<String>),
    /// A chain of schedulers, and requests outstanding.
    Scheduler(&'static str, usize),
    /// Settings of a controller, and whether requests come in runs.
    Controller(&'static str, bool),
}

/// Cases of the table with their bounds.
const FLOORS: [(&str, f64, f64); 7] = [
    ("none, 8 GiB", 1.4, 1.2),
    ("none, 8 GiB, 8 dies", 1.4, 1.2),
    ("parallel, 8 GiB, depth 1", 2.8, 2.0),
    ("parallel, 8 GiB, depth 32", 3.2, 2.0),
    ("parallel, 8 GiB, 64 dies, depth 256", 4.0, 2.5),
    ("dftl, uniform", 3.0, 2.0),
    ("dftl, greedy, uniform", 3.0, 2.0),
];
/// The schedulers that sort.
const SORTING: [&str; 4] = ["deadline", "anticipatory", "cfq", "mq-deadline"];

fn limits() -> Vec<Limit> {
    let mut limits = Vec::new();
    let mut add = |name: String, bound, moonshot, what| limits.push(Limit { name, bound, moonshot, what });
    for (name, bound, moonshot) in FLOORS {
        let case = table::CASES.iter().find(|case| case.name == name);
        add(name.to_owned(), bound, moonshot, What::Floor(case.expect("a case of the table")));
    }
    for manager in buffers::ROWS[0].2 {
        for size in buffers::SIZES_MIB {
            add(format!("RAM, {}, {size} MiB", manager[0]), 2.0, 1.5, What::Ram(manager, size));
        }
    }
    add("CAT against greedy".to_owned(), 1.5, 1.2, What::Victims(vec!["gc.victim=\"cat\"".to_owned()]));
    for name in SORTING {
        for outstanding in host::OUTSTANDING {
            let row = format!("scheduler {name}, {outstanding}");
            add(row, host::BOUND, 100.0, What::Scheduler(name, outstanding));
        }
    }
    for (parts, settings) in controllers::PARTS {
        for (load, in_runs) in [("random", false), ("runs", true)] {
            let row = format!("controller: {parts}, {load}");
            add(row, controllers::BOUND, 100.0, What::Controller(settings, in_runs));
        }
    }
    limits
}

/// What a row came to: what it is compared with and itself, in nanoseconds, and the figure's median and range.
struct Found {
    base_ns: Option<f64>,
    ours_ns: f64,
    figures: [f64; 3],
}

impl Found {
    /// Of rounds in order of their ratio.
    fn ratio(rounds: &[(f64, f64)]) -> Self {
        let ratio = |at: usize| rounds[at].1 / rounds[at].0;
        let (middle, last) = (rounds.len() / 2, rounds.len() - 1);
        let (base, ours) = rounds[middle];
        Self { base_ns: Some(base), ours_ns: ours, figures: [ratio(middle), ratio(0), ratio(last)] }
    }

    fn of_outcomes(rounds: &[(Outcome, Outcome)]) -> Self {
        let nanos = |(base, ours): &(Outcome, Outcome)| (1e9 / base.writes_per_s, 1e9 / ours.writes_per_s);
        Self::ratio(&rounds.iter().map(nanos).collect::<Vec<_>>())
    }

    /// Of nanoseconds in order.
    fn nanos(rounds: &[f64]) -> Self {
        let (middle, last) = (rounds.len() / 2, rounds.len() - 1);
        Self { base_ns: None, ours_ns: rounds[middle], figures: [rounds[middle], rounds[0], rounds[last]] }
    }
}

impl Limit {
    fn measure(&self, floor: Option<&std::path::Path>, quick: bool) -> Result<Found, String> {
        let (requests, nanos_rounds) = if quick { (100_000, 3) } else { (500_000, 5) };
        Ok(match &self.what {
            What::Floor(case) => Found::of_outcomes(&table::rounds(case, floor, quick)?),
            What::Ram(settings, size) => {
                let (scheme, writes, _) = buffers::ROWS[0];
                let writes = if quick { writes / 10 } else { writes };
                let rounds = buffers::rounds(scheme, "uniform", writes, settings, *size, 3)?;
                Found::ratio(&rounds.iter().map(|(without, with)| (without.0, with.0)).collect::<Vec<_>>())
            }
            What::Victims(settings) => {
                let writes = if quick { policies::WRITES / 10 } else { policies::WRITES };
                Found::of_outcomes(&policies::rounds(settings, writes)?)
            }
            What::Scheduler(chain, outstanding) => {
                Found::nanos(&host::rounds(chain, *outstanding, &host::requests(false, requests), nanos_rounds)?.0)
            }
            What::Controller(settings, in_runs) => {
                Found::nanos(&controllers::rounds(settings, &host::requests(*in_runs, requests), nanos_rounds)?.0)
            }
        })
    }
}

/// Measures and prints the rows.
pub fn print(args: &[String]) -> Result<(), String> {
    let (mut quick, mut only, mut json) = (false, String::new(), None);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--quick" => quick = true,
            "--only" => only.clone_from(args.next().ok_or("limits: --only needs a part of a row's name")?),
            "--json" => json = Some(args.next().ok_or("limits: --json needs a file")?),
            other => return Err(format!("limits: found {other}, known: --quick, --only TEXT, --json FILE")),
        }
    }
    let (machine, core, floor) = (cpu::machine(), cpu::pin_to_one_core(), child::c_floor());
    println!("machine: {machine}");
    println!("core: {}", core.map_or("not pinned".to_owned(), |core| core.to_string()));
    println!("floor: {}\n", floor.as_ref().map_or("the one in Rust", |_| "floor.c"));
    println!(
        "{:<52} {:>8} {:>8} {:>8} {:>18} {:>7} {:>9}",
        "path", "base ns", "ours ns", "figure", "range", "bound", "moonshot"
    );
    let (mut rows, mut missed) = (Vec::new(), 0);
    for limit in limits().into_iter().filter(|limit| limit.name.contains(&only)) {
        let found = limit.measure(floor.as_deref(), quick)?;
        let [median, least, most] = found.figures;
        let digits = usize::from(found.base_ns.is_some()) * 2;
        let base = found.base_ns.map_or("-".to_owned(), |base| format!("{base:.1}"));
        let range = format!("({least:.digits$} to {most:.digits$})");
        let mark = if median > limit.bound { "  missed" } else { "" };
        missed += u32::from(median > limit.bound);
        println!(
            "{:<52} {base:>8} {:>8.1} {median:>8.digits$} {range:>18} {:>7} {:>9}{mark}",
            limit.name, found.ours_ns, limit.bound, limit.moonshot
        );
        rows.push(serde_json::json!({
            "path": limit.name, "base_ns": found.base_ns, "ours_ns": found.ours_ns, "figure": median, "least": least,
            "most": most, "bound": limit.bound, "moonshot": limit.moonshot,
        }));
    }
    if let Some(path) = json {
        let text = serde_json::to_string_pretty(&serde_json::json!({ "machine": machine, "rows": rows }));
        std::fs::write(path, text.map_err(|e| e.to_string())?).map_err(|e| format!("{path}: {e}"))?;
    }
    println!("\n{missed} of {} beyond their bounds", rows.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_name_of_its_own_and_the_figures_are_median_and_range() {
        let mut names: Vec<String> = limits().into_iter().map(|limit| limit.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert_eq!(Found::ratio(&[(10.0, 20.0), (10.0, 25.0), (10.0, 40.0)]).figures, [2.5, 2.0, 4.0]);
        assert_eq!(Found::nanos(&[100.0, 120.0, 150.0]).figures, [120.0, 100.0, 150.0]);
    }
}
