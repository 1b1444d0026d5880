//! Measurements in processes of their own, so that memory layout affects floor and simulator alike.

use std::path::PathBuf;
use std::process::Command;

/// The report of a child process.
#[derive(Default, Clone)]
pub(crate) struct Outcome {
    pub writes_per_s: f64,
    pub write_amplification: f64,
    pub operations: f64,
    pub rss: f64,
    pub pages: f64,
    pub digest: String,
}

/// A run in a separate process.
pub(crate) fn play(load: &str, writes: u64, depth: u32, settings: &[String]) -> Result<Outcome, String> {
    let numbers = ["run".to_owned(), load.to_owned(), writes.to_string(), depth.to_string()];
    run(Command::new(own_path()?).args(numbers).args(settings))
}

pub(crate) fn own_path() -> Result<PathBuf, String> {
    std::env::current_exe().map_err(|error| format!("this program's own path: {error}"))
}

/// Runs a child and reads its `name value` lines.
pub(crate) fn run(command: &mut Command) -> Result<Outcome, String> {
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
            "operations_per_write" => outcome.operations = number,
            "peak_rss_bytes" => outcome.rss = number,
            "physical_pages" => outcome.pages = number,
            "digest" => outcome.digest = value.trim_matches('"').to_owned(),
            _ => {}
        }
    }
    Ok(outcome)
}

/// The floor in C, compiled next to this program, if `FLASHWRIGHT_FLOOR` names its source and there is a compiler.
pub(crate) fn c_floor() -> Option<PathBuf> {
    let source = PathBuf::from(std::env::var_os("FLASHWRIGHT_FLOOR")?);
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
