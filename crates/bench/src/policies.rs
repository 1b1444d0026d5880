//! `flashwright-bench policies`: the CPU cost of each victim and placement policy, as a ratio to greedy cleaning with
//! one frontier.
//!
//! 8 GiB in one plane, timing none, uniform random writes at utilisation 0.8. Every policy of the lists with its
//! defaults; victims with one frontier, placement policies with greedy victims, and those made for each other together.
//! Greedy and the policy alternate, each in its own process; the median of three ratios counts.

use crate::child::{self, Outcome};
use crate::{Load, cpu};
use flashwright_ftl::{PlacementName, VictimName};

/// Host writes of a run, the second half of which is timed.
pub(crate) const WRITES: u64 = 16_000_000;

/// A line of the table.
pub(crate) struct Case {
    pub name: String,
    pub settings: Vec<String>,
    /// Upper bound of the ratio.
    bound: f64,
}

/// Every policy by itself, and those made for each other.
pub(crate) fn cases() -> Vec<Case> {
    let quoted = |key: &str, name: &str| format!("{key}={name:?}");
    let victim = |name: &str| quoted("gc.victim", name);
    let placement = |name: &str| quoted("placement.policy", name);
    let mut cases = Vec::new();
    for listed in VictimName::ALL.iter().map(|name| name.listed()) {
        cases.push(Case { name: listed.name.to_owned(), settings: vec![victim(listed.name)], bound: 1.5 });
    }
    // `single` is what victims run with, and `auto` is one of the first two.
    let others = PlacementName::ALL[1..].iter().filter(|name| **name != PlacementName::Auto);
    for listed in others.map(|name| name.listed()) {
        let settings = vec![placement(listed.name), free_blocks()];
        cases.push(Case { name: format!("greedy, {}", listed.name), settings, bound: 2.0 });
    }
    for (victim_name, placement_name) in [("container-marking", "container-marking"), ("partition-fifo", "envy")] {
        let settings = vec![victim(victim_name), placement(placement_name), free_blocks()];
        cases.push(Case { name: format!("{victim_name}, {placement_name}"), settings, bound: 2.0 });
    }
    cases
}

/// The report's cleaning threshold (20 blocks, as we interpret section 5.4), so that frontiers have blocks to open.
fn free_blocks() -> String {
    "gc.free-blocks-min=20".to_owned()
}

/// The drive of the table, with this many blocks.
pub(crate) fn drive(blocks: u32) -> Vec<String> {
    [
        "timing.model=none",
        "geometry.channels=1",
        "geometry.dies-per-channel=1",
        "gc.free-blocks-min=1",
        &format!("geometry.blocks-per-plane={blocks}"),
    ]
    .map(str::to_owned)
    .to_vec()
}

/// Runs all and prints the table.
pub fn print(args: &[String]) -> Result<(), String> {
    let quick = match args {
        [] => false,
        [only] if only == "--quick" => true,
        _ => return Err(format!("policies: found {args:?}, expected nothing or --quick")),
    };
    let writes = if quick { WRITES / 4 } else { WRITES };
    println!("machine: {}", cpu::machine());
    println!("core: {}\n", cpu::pin_to_one_core().map_or("not pinned".to_owned(), |core| core.to_string()));
    println!("{:<42} {:>10} {:>8} {:>7} {:>7}  {:>7}", "policies", "greedy ns", "its ns", "ratio", "bound", "WA");
    let mut missed = Vec::new();
    for case in cases() {
        let rounds = rounds(&case.settings, writes)?;
        let (base, its) = &rounds[1];
        let ratio = base.writes_per_s / its.writes_per_s;
        println!(
            "{:<42} {:>10.1} {:>8.1} {ratio:>7.2} {:>7.2}  {:>7.4}",
            case.name,
            1e9 / base.writes_per_s,
            1e9 / its.writes_per_s,
            case.bound,
            its.write_amplification
        );
        if ratio > case.bound {
            missed.push(case.name);
        }
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

/// Three rounds of greedy cleaning and a policy with these settings, the smallest ratio first.
pub(crate) fn rounds(settings: &[String], writes: u64) -> Result<Vec<(Outcome, Outcome)>, String> {
    let played = |settings: &[String]| {
        child::play(Load::Uniform.name(), writes, 1, &[drive(32_768), settings.to_vec()].concat())
    };
    let round = |_| Ok((played(&[])?, played(settings)?));
    let mut rounds = (0..3).map(round).collect::<Result<Vec<(Outcome, Outcome)>, String>>()?;
    rounds.sort_by(|(a, b), (c, d)| (a.writes_per_s / b.writes_per_s).total_cmp(&(c.writes_per_s / d.writes_per_s)));
    Ok(rounds)
}
