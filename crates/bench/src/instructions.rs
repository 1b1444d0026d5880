//! `make instructions`: instructions per operation on each path of [`crate::paths`], counted by Callgrind and compared
//! with `instructions.toml`. Counts don't depend on other load of the machine, so a change of 3 % is a change of the
//! program.
//!
//! ```text
//! flashwright-bench instructions               the table; status 1 where a path left its limit
//! flashwright-bench instructions --accept      writes what is counted now as the limits
//! flashwright-bench instructions --only TEXT   the paths with this in their name
//! ```

use crate::paths::{Counted, PATHS};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Allowed change of a path in either direction, in percent.
const TOLERANCE: f64 = 3.0;
/// The same if the limits come from another compiler, which generates other code from the same source.
const TOLERANCE_OF_OTHERS: f64 = 10.0;
const RUSTC: &str = env!("FLASHWRIGHT_RUSTC");
const MEND: &str = "if this is intended, state it in the commit, then run `make instructions-accept`";

/// The file of limits.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Limits {
    /// The compiler that made the counted program.
    rustc: String,
    /// The processor's architecture.
    arch: String,
    /// Instructions per operation, by path.
    instructions: BTreeMap<String, f64>,
}

/// `instructions [--accept] [--only TEXT]`; false where a path left its limit.
pub fn check(args: &[String]) -> Result<bool, String> {
    let (mut accept, mut only) = (false, "");
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--accept" => accept = true,
            "--only" => only = args.next().ok_or("--only: the text is missing")?,
            other => return Err(format!("instructions: found {other}, known: --accept, --only TEXT")),
        }
    }
    if accept && !only.is_empty() {
        return Err("instructions: found --accept with --only, expected one of them: a file holds every path".into());
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("instructions.toml");
    let limits = if accept { Limits::default() } else { read(&file)? };
    let same = limits.rustc == RUSTC && limits.arch == std::env::consts::ARCH;
    let tolerance = if same { TOLERANCE } else { TOLERANCE_OF_OTHERS };
    if !accept && !same {
        println!(
            "the limits are of {} on {}, this is {RUSTC} on {}: {TOLERANCE_OF_OTHERS} % are allowed instead of {TOLERANCE} %\n",
            limits.rustc,
            limits.arch,
            std::env::consts::ARCH
        );
    }
    println!("{:<14} {:>10} {:>10} {:>8}  operation", "path", "now", "limit", "change");
    let (mut now, mut wrong) = (BTreeMap::new(), Vec::new());
    for path in PATHS.iter().filter(|path| path.name.contains(only)) {
        let found = count(path)?;
        let limit = limits.instructions.get(path.name).copied();
        let (shown, change) = match limit {
            Some(limit) => (format!("{limit:.1}"), format!("{:+.2} %", percent(found, limit))),
            None => ("-".to_owned(), "-".to_owned()),
        };
        println!("{:<14} {found:>10.1} {shown:>10} {change:>8}  {}", path.name, path.about);
        wrong.extend(fault(path.name, found, limit, tolerance).filter(|_| !accept));
        // Rounded: further digits are not significant.
        now.insert(path.name.to_owned(), (found * 10.0).round() / 10.0);
    }
    if accept {
        write(&file, &Limits { rustc: RUSTC.into(), arch: std::env::consts::ARCH.into(), instructions: now })?;
        println!("\nwritten to {}", file.display());
        return Ok(true);
    }
    let gone = limits.instructions.keys().filter(|name| PATHS.iter().all(|path| path.name != *name));
    wrong.extend(gone.map(|name| format!("{name}: in the file of limits, but no path; `make instructions-accept`")));
    wrong.iter().for_each(|line| eprintln!("error: {line}"));
    Ok(wrong.is_empty())
}

fn percent(found: f64, limit: f64) -> f64 {
    (found / limit - 1.0) * 100.0
}

/// The problem with a count, in one line.
fn fault(name: &str, found: f64, limit: Option<f64>, tolerance: f64) -> Option<String> {
    let Some(limit) = limit else { return Some(format!("{name}: has no limit yet; `make instructions-accept`")) };
    let change = percent(found, limit);
    (change.abs() > tolerance).then(|| {
        let (word, less) =
            if change > 0.0 { ("more", "") } else { ("fewer", " (the limit follows, so that it stays so)") };
        format!(
            "{name}: found {found:.1} instructions per operation, expected {limit:.1} within {tolerance} %: \
             {:.1} % {word}{less}; {MEND}",
            change.abs()
        )
    })
}

/// Instructions per operation, counted in a separate process.
fn count(path: &Counted) -> Result<f64, String> {
    let program = std::env::current_exe().map_err(|error| format!("this program's own path: {error}"))?;
    let out = std::env::temp_dir().join(format!("flashwright-callgrind-{}", std::process::id()));
    let mut command = Command::new("valgrind");
    command
        .args(["--quiet", "--tool=callgrind", "--collect-atstart=no", "--toggle-collect=*paths::measured*"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(program)
        .args(["path", path.name]);
    let output = command.output().map_err(|error| {
        format!("valgrind: {error}; tools/test-tools.sh installs what is needed (Debian's package: valgrind)")
    })?;
    let counts = std::fs::read_to_string(&out);
    std::fs::remove_file(&out).unwrap_or_default();
    let text = String::from_utf8_lossy(&output.stdout);
    let operations: f64 = match text.trim().parse() {
        Ok(number) if output.status.success() => number,
        _ => return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    };
    let counts = counts.map_err(|error| format!("{}: {error}", out.display()))?;
    let total =
        counts.lines().find_map(|line| line.strip_prefix("summary: ").or_else(|| line.strip_prefix("totals: ")));
    match total.and_then(|total| total.trim().parse::<f64>().ok()) {
        Some(total) if total > 0.0 => Ok(total / operations),
        _ => Err(format!("{}: Callgrind counted nothing", path.name)),
    }
}

/// `path NAME`: runs the operations of a path and prints their number.
pub fn run(args: &[String]) -> Result<(), String> {
    let names = || PATHS.iter().map(|path| path.name).collect::<Vec<_>>().join(", ");
    let path = args.first().and_then(|name| PATHS.iter().find(|path| path.name == *name));
    let path = path.ok_or_else(|| format!("path: found {args:?}, known: {}", names()))?;
    println!("{}", path.run()?);
    Ok(())
}

fn read(file: &PathBuf) -> Result<Limits, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    toml::from_str(&text).map_err(|error| format!("{}: {}", file.display(), error.message()))
}

fn write(file: &PathBuf, limits: &Limits) -> Result<(), String> {
    let text = toml::to_string(limits).map_err(|error| error.to_string())?;
    let about =
        "# Instructions per operation on the paths of src/paths.rs. `make instructions-accept` writes this file.\n";
    std::fs::write(file, format!("{about}{text}")).map_err(|error| format!("{}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_either_way_beyond_the_tolerance_is_told_with_what_to_do() {
        assert_eq!(fault("read", 102.9, Some(100.0), TOLERANCE), None);
        assert_eq!(fault("read", 97.1, Some(100.0), TOLERANCE), None);
        let more = fault("read", 103.2, Some(100.0), TOLERANCE).unwrap();
        assert_eq!(
            more,
            "read: found 103.2 instructions per operation, expected 100.0 within 3 %: 3.2 % more; if this is intended, state it in \
             the commit, then run `make instructions-accept`"
        );
        assert!(fault("read", 96.0, Some(100.0), TOLERANCE).unwrap().contains("4.0 % fewer"));
        assert_eq!(fault("read", 108.0, Some(100.0), TOLERANCE_OF_OTHERS), None);
        assert!(fault("read", 1.0, None, TOLERANCE).unwrap().contains("no limit yet"));
    }

    #[test]
    fn the_file_holds_a_limit_for_each_path() {
        let limits = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("instructions.toml")).unwrap();
        let mut names: Vec<&str> = PATHS.iter().map(|path| path.name).collect();
        names.sort_unstable();
        assert_eq!(limits.instructions.keys().map(String::as_str).collect::<Vec<_>>(), names);
        assert!(limits.rustc.starts_with("rustc "));
    }
}
