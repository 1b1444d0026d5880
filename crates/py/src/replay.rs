//! A replay controlled from Python: opened, started on its own thread, watched, stopped, reported.

use crate::errors::{
    ConfigError, InternalError, TargetError, TraceError, WorkloadError, caught, check_memory, interruptible, run_error,
    spawned,
};
use crate::source::{SourceText, open_error};
use flashwright_block::{BlockDevice, Bytes, DeviceInfo, Nanos, SECTOR_BYTES, Seed};
use flashwright_disk::{Access, Disk, Options, Refusal};
use flashwright_host::StackSettings;
use flashwright_serve::Remote;
use flashwright_sim::{
    Pace, Precondition, PreconditionReport, Preconditioning, ReplayReport, ReplaySettings, RequestWindow, RunError,
    ScanError, Source, Watch, scan,
};
use flashwright_ssd::{Config, Controller, ControllerFigures, DriveConfig, Ssd, TimingModel};
use flashwright_workload::generate::Target as Space;
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, TryLockError};
use std::time::Duration;

/// The settings of a replay from Python, as JSON text.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    target: TargetText,
    seed: u64,
    depth: Option<u32>,
    time_scale: Option<f64>,
    requests: Option<u64>,
    time_limit_ns: Option<u64>,
    /// Whether addresses beyond the device's end wrap around.
    wrap: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
enum TargetText {
    /// A path.
    Disk {
        path: String,
        destroys_data: bool,
        queue_depth: Option<u32>,
        busy_poll: bool,
        /// `host.KEY=VALUE` settings of the schedulers.
        host: Vec<String>,
    },
    /// An export of an NBD server, or a subsystem of NVMe/TCP.
    Remote {
        uri: String,
        destroys_data: bool,
        queue_depth: Option<u32>,
        /// `host.KEY=VALUE` settings of the schedulers.
        host: Vec<String>,
    },
    /// A drive's TOML and its preconditioning.
    Ssd { config: String, precondition: String },
}

/// A device that is ready, or will be once it is preconditioned.
enum Device {
    Disk(Box<Disk>),
    Remote(Box<Remote>),
    Ssd(Box<(Ssd, Preconditioning)>),
}

/// Everything that the playing thread needs.
struct Ready {
    device: Device,
    source: Source,
    settings: ReplaySettings,
    precondition: Option<String>,
    from_trace: bool,
}

enum Stage {
    Ready(Box<Ready>),
    Running(Receiver<PyResult<Option<Found>>>),
    Done(Option<Box<Found>>),
}

/// The result of the thread.
pub struct Found {
    pub report: ReplayReport,
    pub notes: Vec<String>,
}

/// Progress of preconditioning, for other threads.
#[derive(Default)]
struct Pages {
    done: AtomicU64,
    total: AtomicU64,
}

/// One replay.
#[pyclass(module = "flashwright._core", frozen)]
pub struct Replay {
    stage: Mutex<Stage>,
    watch: Arc<Watch>,
    pages: Arc<Pages>,
}

/// Phase, pages or requests done in it, their total, requests completed, requests left out.
type Progress = (&'static str, u64, Option<u64>, u64, u64);

/// Default number of requests that the device has at once in an open loop: Linux's default for a queue
/// (`BLKDEV_DEFAULT_RQ`).
const QUEUE_DEPTH: u32 = 128;
/// Requests of a generator that are scanned first.
const LOOK: u64 = 4096;
/// Requests or pages between two checks of the clock and of the stop flag.
const STEP: u64 = 1024;

pub fn target_refused(refusal: &Refusal) -> PyErr {
    TargetError::new_err((refusal.to_string(), refusal.hint()))
}

fn scan_error(error: &ScanError, from_trace: bool) -> PyErr {
    let text = error.to_string();
    let with = |hint: &'static str| WorkloadError::new_err((error.to_string(), hint));
    match error {
        ScanError::PastEnd { .. } => with(
            "use a larger device, or --addresses scale to fit the trace to it (wrap takes addresses modulo its size)",
        ),
        ScanError::Misaligned { .. } => with("use a device with smaller blocks (`blockdev --getss`)"),
        ScanError::Writes => with("--destroys-data plays it and overwrites the data on the device"),
        ScanError::OnlyWrites { .. } => with(
            "set write=0 in --workload to play only reads; --destroys-data plays writes too and overwrites the data on the device",
        ),
        ScanError::Source(_) if from_trace => TraceError::new_err(text),
        _ => WorkloadError::new_err(text),
    }
}

/// Opens device and source, and checks that they fit. Nothing is played or written.
fn open(source: &str, settings: &str, watch: &Watch) -> PyResult<Ready> {
    let bad = |error: serde_json::Error| WorkloadError::new_err(format!("settings of the replay: {error}"));
    let text: SourceText = serde_json::from_str(source).map_err(bad)?;
    let given: Settings = serde_json::from_str(settings).map_err(bad)?;
    let seed = Seed(given.seed);
    let spec = text.spec()?;
    let Opened { mut device, mut config, host, writes, precondition } = open_target(&given.target, given.depth, seed)?;
    let info = match &device {
        Device::Disk(disk) => disk.info(),
        Device::Remote(remote) => remote.info(),
        Device::Ssd(ssd) => ssd.0.info(),
    };
    let page_sectors = match &device {
        Device::Disk(_) | Device::Remote(_) => u32::try_from(info.sector.0.max(4096) / SECTOR_BYTES).unwrap_or(8),
        Device::Ssd(ssd) => u32::try_from(ssd.0.sectors_per_page()).unwrap_or(8),
    };
    // Unless addresses wrap around, a trace's addresses are compared with the device here and not by the reader:
    // requests that are left out may have any address.
    let bounded = given.wrap || !text.is_trace();
    let sectors = info.capacity.0 / SECTOR_BYTES;
    let page = u64::from(page_sectors);
    let logical_sectors = if bounded { sectors - sectors % page } else { u64::MAX };
    let space = Space { logical_sectors, page_sectors };
    let open_source = || spec.open_on(&space, seed).map_err(|error| open_error(&error));
    let source = open_source()?;
    let pace = match (given.depth, given.time_scale) {
        (Some(_), _) | (_, Some(_)) if source.is_interactive() => {
            let text =
                "a program above a file system is paced by its threads: found a depth or time scale, expected none";
            return Err(WorkloadError::new_err(text));
        }
        (Some(depth), _) => Pace::Closed { depth },
        (None, Some(time_scale)) => Pace::Open { time_scale },
        (None, None) => source.pace(),
    };
    if let (Device::Ssd(both), Pace::Closed { depth }) = (&mut device, pace) {
        both.0.widen_queue(depth);
        config = both.0.config_in_force().to_json();
    }
    let requests = given.requests.or(if given.time_limit_ns.is_some() { None } else { source.requests_default() });
    look_through(&mut open_source()?, &info, writes, requests, text.is_trace(), watch)?;
    Ok(Ready {
        settings: ReplaySettings {
            workload: source.description().to_owned(),
            config,
            host,
            seed,
            pace,
            requests,
            time_limit: given.time_limit_ns.map(Nanos),
            writes,
            real_time: !matches!(device, Device::Ssd(_)),
            timed: match &device {
                Device::Disk(_) | Device::Remote(_) => true,
                Device::Ssd(ssd) => ssd.0.config().timing.model != TimingModel::None,
            },
        },
        device,
        source,
        precondition,
        from_trace: text.is_trace(),
    })
}

/// A target that passed the checks.
struct Opened {
    device: Device,
    /// Its name in reports.
    config: Value,
    host: StackSettings,
    writes: bool,
    precondition: Option<String>,
}

/// A drive of which only the host's side counts, with `host.KEY=VALUE` settings.
pub fn host_of(settings: &[String]) -> PyResult<DriveConfig> {
    Config::default().with_settings(settings).map_err(crate::config_error)
}

/// Requests that a device has at once, if nobody says: a scheduler can choose only among those that it does not have yet.
pub fn usual_depth(described: &DriveConfig, depth: Option<u32>) -> u32 {
    if described.host.stack.scheduler.0.is_empty() {
        depth.unwrap_or(QUEUE_DEPTH)
    } else {
        described.host.queue_depth.requests()
    }
}

fn open_target(target: &TargetText, depth: Option<u32>, seed: Seed) -> PyResult<Opened> {
    match target {
        TargetText::Disk { path, destroys_data, queue_depth, busy_poll, host } => {
            // The layers before a drive are described in one place, whether the drive is simulated or not.
            let described = host_of(host)?;
            let host = described.host.stack.clone();
            let access = if *destroys_data { Access::DestroysData } else { Access::ReadOnly };
            let target = flashwright_disk::open(Path::new(path), access, Bytes(0))
                .map_err(|refusal| target_refused(&refusal))?;
            let depth = queue_depth.unwrap_or_else(|| usual_depth(&described, depth));
            let config = json!({
                "name": target.name,
                "kind": if target.kind == flashwright_disk::Kind::File { "file" } else { "block-device" },
                "queue-depth": depth,
                "busy-poll": busy_poll,
                "destroys-data": destroys_data,
                "host": host,
            });
            let disk = Disk::new(target, Options { depth, seed, busy_poll: *busy_poll, ..Options::default() })
                .map_err(|error| TargetError::new_err((error.to_string(), error.hint())))?;
            let device = Device::Disk(Box::new(disk));
            Ok(Opened { device, config, host, writes: *destroys_data, precondition: None })
        }
        TargetText::Remote { uri, destroys_data, queue_depth, host } => {
            let described = host_of(host)?;
            let host = described.host.stack.clone();
            let depth = queue_depth.unwrap_or_else(|| usual_depth(&described, depth));
            let config = json!({
                "name": uri, "kind": crate::target::kind_of(uri), "queue-depth": depth, "destroys-data": destroys_data, "host": host,
            });
            let device = Device::Remote(Box::new(crate::target::remote(uri, *destroys_data, depth, seed)?));
            Ok(Opened { device, config, host, writes: *destroys_data, precondition: None })
        }
        TargetText::Ssd { config, precondition } => {
            let wanted: Precondition = precondition.parse().map_err(WorkloadError::new_err)?;
            if let Precondition::Workload { .. } | Precondition::Auto = wanted {
                return Err(WorkloadError::new_err((
                    format!("precondition: found {wanted}, expected empty, sequential, random or steady for a replay"),
                    "only simulate can precondition with the workload; a replay plays it once",
                )));
            }
            let config = Config::from_toml(config, "config").map_err(crate::config_error)?;
            let ssd = Ssd::new(&config, seed, false).map_err(|error| run_error(&error.into(), false))?;
            let preconditioning =
                Preconditioning::new(wanted, &ssd, seed).map_err(|error| WorkloadError::new_err(error.0))?;
            let json = ssd.config().resolved().to_json();
            let device = Device::Ssd(Box::new((ssd, preconditioning)));
            let precondition = Some(wanted.to_string());
            Ok(Opened { device, config: json, host: config.host.stack.clone(), writes: true, precondition })
        }
    }
}

/// Finds requests that do not fit before anything is played, and counts the requests to play.
fn look_through(
    source: &mut Source,
    info: &DeviceInfo,
    writes: bool,
    requests: Option<u64>,
    is_trace: bool,
    watch: &Watch,
) -> PyResult<()> {
    let all = requests.unwrap_or(u64::MAX);
    // A generator stays within its space; its first requests are representative.
    let at_most = if is_trace { all } else { all.min(LOOK) };
    let found =
        scan(source, info, writes, at_most, || watch.is_stopped()).map_err(|error| scan_error(&error, is_trace))?;
    let looked_at = found.played + found.left_out;
    if looked_at == 0 {
        return Ok(()); // a program, whose requests are known only while it runs
    }
    if is_trace || looked_at < at_most {
        watch.expect_requests(found.played);
    } else if all < u64::MAX {
        let expected = u128::from(all) * u128::from(found.played) / u128::from(looked_at.max(1));
        watch.expect_requests(u64::try_from(expected).unwrap_or(u64::MAX));
    }
    Ok(())
}

/// Preconditions and plays on its own thread. None if it was stopped before anything was played.
fn play(ready: Ready, watch: &Arc<Watch>, pages: &Pages) -> PyResult<Option<Found>> {
    let Ready { device, mut source, settings, precondition, from_trace } = ready;
    let played = Played { settings, watch };
    match device {
        Device::Disk(disk) => played.on(disk as Box<dyn BlockDevice>, &mut source, |_| None).map(Some),
        Device::Remote(mut remote) => {
            let asked = Arc::clone(watch);
            remote.ends_when(Some(Box::new(move || asked.is_stopped())));
            played.on(remote as Box<dyn BlockDevice>, &mut source, |_| None).map(Some)
        }
        Device::Ssd(both) => {
            let (mut ssd, mut preconditioning) = *both;
            pages.total.store(preconditioning.progress().1, Relaxed);
            while !preconditioning
                .step(&mut ssd, STEP)
                .map_err(|error| run_error(&RunError::Precondition(error), from_trace))?
            {
                pages.done.store(preconditioning.progress().0, Relaxed);
                if watch.is_stopped() {
                    return Ok(None);
                }
            }
            pages.total.store(0, Relaxed);
            let drive = Controller::boxed(ssd, played.settings.seed);
            let mut found = played.on(drive, &mut source, |drive| drive.controller_figures())?;
            found.report.report.precondition =
                precondition.map(|spec| PreconditionReport::of_fill(spec, &preconditioning));
            Ok(Some(found))
        }
    }
}

/// What playing needs besides device and source.
struct Played<'a> {
    settings: ReplaySettings,
    watch: &'a Arc<Watch>,
}

impl Played<'_> {
    /// Plays to the end; `controller` returns the figures of a simulated drive's controller.
    fn on<D: BlockDevice>(
        self,
        device: D,
        source: &mut Source,
        controller: impl Fn(&D) -> Option<ControllerFigures>,
    ) -> PyResult<Found> {
        let mut replay =
            flashwright_sim::Replay::watched(device, self.settings, Arc::clone(self.watch)).map_err(|faults| {
                let line = |fault: &flashwright_host::StackError| format!("host.{}: {}", fault.key, fault.what);
                ConfigError::new_err(faults.iter().map(line).collect::<Vec<_>>().join("\n"))
            })?;
        while !replay.step(source, STEP) {}
        let mut report = replay.report();
        let notes = source.notes();
        report.report.workload_notes.clone_from(&notes);
        report.report.warnings = source.warnings();
        report.report.application = source.application();
        report.report.controller = controller(replay.device());
        Ok(Found { report, notes })
    }
}

#[pymethods]
impl Replay {
    #[new]
    fn new(py: Python<'_>, source: String, settings: String) -> PyResult<Self> {
        let watch = Arc::new(Watch::default());
        let looking = Arc::clone(&watch);
        let ready = interruptible(py, move || open(&source, &settings, &looking)).inspect_err(|_| watch.stop())?;
        Ok(Self { stage: Mutex::new(Stage::Ready(Box::new(ready))), watch, pages: Arc::default() })
    }

    /// Starts playing on its own thread, or waits for up to `seconds`; returns true when it has ended. Playing
    /// continues between calls.
    fn wait(&self, py: Python<'_>, seconds: f64) -> PyResult<bool> {
        py.detach(|| {
            let mut stage = self.stage.lock().expect("no call before this one panicked");
            if let Stage::Ready(_) = *stage {
                let Stage::Ready(ready) = std::mem::replace(&mut *stage, Stage::Done(None)) else { unreachable!() };
                let (done, waiting) = channel();
                let (watch, pages) = (Arc::clone(&self.watch), Arc::clone(&self.pages));
                spawned(move || {
                    // There may be no receiver left.
                    done.send(caught(|| play(*ready, &watch, &pages))).unwrap_or_default();
                })?;
                *stage = Stage::Running(waiting);
            }
            let Stage::Running(waiting) = &*stage else { return Ok(true) };
            match waiting.recv_timeout(Duration::from_secs_f64(seconds.clamp(0.0, 3600.0))) {
                Ok(result) => {
                    let (found, failed) = match result {
                        Ok(found) => (found, None),
                        Err(error) => (None, Some(error)),
                    };
                    *stage = Stage::Done(found.map(Box::new));
                    failed.map_or(Ok(true), Err)
                }
                Err(RecvTimeoutError::Timeout) => check_memory().inspect_err(|_| self.watch.stop()).map(|()| false),
                Err(RecvTimeoutError::Disconnected) => {
                    Err(InternalError::new_err("internal error: a thread ended without a result"))
                }
            }
        })
    }

    /// Stops issuing requests; [`Replay::wait`] then reaches the end.
    fn stop(&self) {
        self.watch.stop();
    }

    /// Phase, pages or requests done in it and in total, requests completed, requests left out.
    fn progress(&self) -> Progress {
        let now = self.watch.progress();
        match self.pages.total.load(Relaxed) {
            0 => ("measured", now.completed, now.total, now.completed, now.left_out),
            pages => ("precondition", self.pages.done.load(Relaxed), Some(pages), 0, 0),
        }
    }

    /// The result after the end; none if nothing was played.
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        // Whoever waits in another thread keeps it meanwhile; waiting for that with the GIL would stop every thread.
        let stage = loop {
            match self.stage.try_lock() {
                Err(TryLockError::WouldBlock) => py.detach(std::thread::yield_now),
                found => break found.expect("no call before this one panicked"),
            }
        };
        let Stage::Done(Some(found)) = &*stage else { return Ok(None) };
        as_dict(py, found).map(Some)
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        // The watcher is gone.
        self.watch.stop();
    }
}

pub fn as_dict<'py>(py: Python<'py>, found: &Found) -> PyResult<Bound<'py, PyDict>> {
    let report = &found.report;
    let dict = PyDict::new(py);
    dict.set_item("json", report.report.to_json())?;
    dict.set_item("notes", &found.notes)?;
    dict.set_item("windows", windows(py, &report.rows)?)?;
    let distribution = PyDict::new(py);
    let all = report.response_distribution.iter().chain([&report.lateness_distribution]);
    for (name, points) in ["all", "read", "write", "lateness"].into_iter().zip(all) {
        let (times, shares): (Vec<u64>, Vec<f64>) = points.iter().copied().unzip();
        distribution.set_item(name, (times.into_pyarray(py), shares.into_pyarray(py)))?;
    }
    dict.set_item("distributions", distribution)?;
    Ok(dict)
}

/// Columns of the time series; NaN is a null.
#[allow(clippy::cast_precision_loss)] // nanoseconds far below 2^53
fn windows<'py>(py: Python<'py>, rows: &[RequestWindow]) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let counts = |of: fn(&RequestWindow) -> u64| rows.iter().map(of).collect::<Vec<u64>>().into_pyarray(py);
    let figures = |of: fn(&RequestWindow) -> Option<f64>| {
        rows.iter().map(|row| of(row).unwrap_or(f64::NAN)).collect::<Vec<f64>>().into_pyarray(py)
    };
    dict.set_item("requests_end", counts(|row| row.requests_end))?;
    dict.set_item("time_end_ns", counts(|row| row.time_end_ns))?;
    dict.set_item("requests", counts(|row| row.requests))?;
    dict.set_item("bytes_read", counts(|row| row.bytes_read))?;
    dict.set_item("bytes_written", counts(|row| row.bytes_written))?;
    dict.set_item("response_mean_ns", figures(RequestWindow::response_mean_ns))?;
    dict.set_item("response_p99_ns", figures(|row| row.response_p99_ns.map(|nanos| nanos as f64)))?;
    dict.set_item("iops", figures(RequestWindow::iops))?;
    Ok(dict)
}
