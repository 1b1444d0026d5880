//! CPU time, and pinning to one core.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// CPU time of the process in seconds.
#[allow(clippy::cast_precision_loss)]
pub fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Pins the process to the last core that it may use; children inherit it. Returns the core, or none if it was refused.
pub fn pin_to_one_core() -> Option<usize> {
    let allowed = sched_getaffinity(None).ok()?;
    let core = (0..CpuSet::MAX_CPU).rev().find(|core| allowed.is_set(*core))?;
    let mut one = CpuSet::new();
    one.set(core);
    sched_setaffinity(None, &one).ok()?;
    Some(core)
}

/// The processor's name, as the system reports it.
pub fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':').map(|(_, name)| name.trim()));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{}, {cores} cores", model.unwrap_or("unknown processor"))
}
