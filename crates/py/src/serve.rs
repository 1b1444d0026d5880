//! A drive that is served, controlled from Python: started, watched, stopped.

use crate::errors::{
    DeviceError, InternalError, ServeError as ServeFailed, TraceError, WorkloadError, guarded, interruptible, run_error,
};
use flashwright_block::Seed;
use flashwright_serve::{Address, Pace, ServeError, Server as Serving, Settings, Stopped};
use flashwright_sim::{LiveRun, Precondition, RunError};
use flashwright_ssd::Config;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Deserialize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

/// How a drive is served, as JSON text from Python.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    nbd: Vec<String>,
    listen_anywhere: bool,
    read_only: bool,
    /// None for as fast as it goes.
    time_scale: Option<f64>,
    record: Option<PathBuf>,
    ctl: Option<String>,
    metrics: Option<String>,
    watch: Option<String>,
    /// None if none was given.
    precondition: Option<String>,
    seed: u64,
    /// The file that the drive lives in.
    image: Option<PathBuf>,
}

impl Text {
    fn settings(&self) -> PyResult<Settings> {
        let nbd = self.nbd.iter().map(|text| text.parse::<Address>());
        let nbd: Result<Vec<Address>, _> = nbd.collect();
        let of = |option, text: &Option<String>, prefix: &str| {
            let parsed = text.as_ref().map(|text| format!("{prefix}{text}").parse::<Address>()).transpose();
            parsed.map_err(|error| refused(&ServeError::Listen { option, error }))
        };
        let ctl = of("ctl", &self.ctl, "")?;
        if let Some(Address::Tcp(_)) = ctl {
            let text = self.ctl.as_deref().unwrap_or_default();
            return Err(ServeFailed::new_err((format!("ctl: found {text:?}, expected unix:PATH"), "")));
        }
        Ok(Settings {
            ctl,
            metrics: of("metrics", &self.metrics, "tcp:")?,
            watch: of("watch", &self.watch, "tcp:")?,
            nbd: nbd.map_err(|error| refused(&ServeError::Listen { option: "nbd", error }))?,
            anywhere: self.listen_anywhere,
            read_only: self.read_only,
            pace: self.time_scale.map_or(Pace::None, |time_scale| Pace::Real { time_scale }),
            record: self.record.clone(),
        })
    }
}

fn refused(error: &ServeError) -> PyErr {
    let text = error.to_string();
    match error {
        ServeError::Listen { error, .. } => ServeFailed::new_err((text, error.hint)),
        ServeError::Record(_) => TraceError::new_err(text),
        _ => ServeFailed::new_err((text, "")),
    }
}

/// A drive that is served by threads of its own.
#[pyclass(module = "flashwright._core", frozen)]
pub struct Server {
    serving: RwLock<Option<Serving<LiveRun>>>,
    uris: Vec<String>,
    addresses: Vec<(&'static str, String)>,
}

#[pymethods]
impl Server {
    /// Builds and preconditions a drive, then serves it.
    #[new]
    fn new(py: Python<'_>, config: String, settings: &str) -> PyResult<Self> {
        let text: Text = serde_json::from_str(settings)
            .map_err(|error| WorkloadError::new_err(format!("settings of the server: {error}")))?;
        let settings = text.settings()?;
        let cancelled = Arc::new(Cancelled::default());
        let asked = cancelled.clone();
        let _drop = CancelOnDrop(cancelled);
        let serving = interruptible(py, move || {
            let config = Config::from_toml(&config, "config").map_err(crate::config_error)?;
            let precondition = text.precondition.as_deref().map(str::parse::<Precondition>).transpose();
            let precondition = precondition.map_err(WorkloadError::new_err)?;
            let (seed, cancelled) = (Seed(text.seed), || asked.0.load(Ordering::Relaxed));
            let drive = match &text.image {
                None => LiveRun::new(&config, seed, precondition.unwrap_or_default(), cancelled),
                Some(path) => LiveRun::on_image(path, &config, seed, precondition, cancelled),
            };
            let drive = drive.map_err(|error| match error {
                RunError::Image(error) => ServeFailed::new_err((error.what, error.hint)),
                error => run_error(&error, false),
            })?;
            Serving::start(drive, &settings).map_err(|error| refused(&error))
        })?;
        let (uris, addresses) = (serving.uris().to_vec(), serving.addresses().to_vec());
        Ok(Self { serving: RwLock::new(Some(serving)), uris, addresses })
    }

    /// Where NBD clients connect, one for each address.
    fn uris(&self) -> Vec<String> {
        self.uris.clone()
    }

    /// Where all else is, by the name of its setting.
    fn addresses(&self) -> Vec<(&'static str, String)> {
        self.addresses.clone()
    }

    /// Waits until somebody wants the server to stop, or for a time. Returns whether it is to stop, and notes for people.
    fn wait(&self, py: Python<'_>, seconds: f64) -> PyResult<(bool, Vec<String>)> {
        let timeout = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        self.with(py, move |serving| {
            let ends = serving.wait(timeout);
            Ok((ends, serving.notes()))
        })
    }

    /// The figures so far, as JSON.
    fn stats(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |serving| match serving.stats() {
            serde_json::Value::Null => Err(InternalError::new_err("internal error: a thread of the server panicked")),
            stats => Ok(stats.to_string()),
        })
    }

    /// Gives a command as a client of the control socket does, with arguments as JSON. Returns the answer as JSON.
    fn command(&self, py: Python<'_>, name: String, arguments: &str) -> PyResult<String> {
        let arguments = serde_json::from_str(arguments)
            .map_err(|error| WorkloadError::new_err(format!("arguments of a command: {error}")))?;
        self.with(py, move |serving| {
            serving
                .command(&name, &arguments)
                .map(|answer| answer.to_string())
                .map_err(|error| ServeFailed::new_err((error, "")))
        })
    }

    /// Stops in order. Returns what the drive has to report, as of a run, the last figures as JSON, and notes.
    fn stop<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyDict>, String, Vec<String>)> {
        let (report, stats, notes) = guarded(py, || {
            let serving = self.serving.write().expect("no call before this one panicked").take();
            let serving = serving.ok_or_else(closed)?;
            let Stopped { served, stats, mut notes } = serving.stop();
            let mut drive =
                served.ok_or_else(|| InternalError::new_err("internal error: a thread of the server panicked"))?;
            let report = drive.report();
            let closed = drive.close();
            notes.extend(drive.take_notes());
            notes.extend(closed.err().filter(|why| !notes.iter().any(|note| note.starts_with(why))));
            Ok((report, stats.to_string(), notes))
        })?;
        Ok((crate::simulation::as_dict(py, report)?, stats, notes))
    }
}

impl Server {
    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&Serving<LiveRun>) -> PyResult<T> + Send) -> PyResult<T> {
        guarded(py, || {
            let serving = self.serving.read().expect("no call before this one panicked");
            work(serving.as_ref().ok_or_else(closed)?)
        })
    }
}

fn closed() -> PyErr {
    DeviceError::new_err("the drive is no longer served")
}

/// Whether whoever waits for a drive has given up.
#[derive(Default)]
struct Cancelled(AtomicBool);

struct CancelOnDrop(Arc<Cancelled>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}
