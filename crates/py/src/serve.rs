//! A drive that is served, controlled from Python: started, watched, stopped.

use crate::errors::{
    DeviceError, InternalError, ServeError as ServeFailed, TraceError, WorkloadError, caught, guarded, interruptible,
    run_error,
};
use crate::foreign::{Given, Handed};
use crate::proxy::{Before, Reported, Running};
use flashwright_block::Seed;
use flashwright_serve::{Address, Pace, ServeError, Server as Serving, Settings};
use flashwright_sim::crash::About;
use flashwright_sim::{LiveRun, Precondition, RunError};
use flashwright_ssd::Config;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

/// How a drive is served, as JSON text from Python.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    nbd: Vec<String>,
    nvme_tcp: Vec<String>,
    vfio_user: Vec<PathBuf>,
    listen_anywhere: bool,
    read_only: bool,
    /// None for as fast as it goes.
    time_scale: Option<f64>,
    /// Bytes of commands in flight; none for the usual.
    in_flight_max: Option<u64>,
    record: Option<PathBuf>,
    record_data: Option<PathBuf>,
    ctl: Option<String>,
    metrics: Option<String>,
    watch: Option<String>,
    /// None if none was given.
    precondition: Option<String>,
    seed: u64,
    /// The file that the drive lives in.
    image: Option<PathBuf>,
}

/// How an address is written.
#[derive(Clone, Copy)]
enum Form {
    /// `unix:PATH` or `tcp:ADDRESS:PORT`.
    Any,
    /// `ADDRESS:PORT`.
    Tcp,
}

impl Form {
    fn parse(self, text: &str, option: &'static str) -> PyResult<Address> {
        match self {
            Self::Any => text.parse().map_err(|error| refused(&ServeError::Listen { option, error })),
            Self::Tcp if text.contains(':') => Ok(Address::Tcp(text.to_owned())),
            Self::Tcp => {
                let what = format!("{option}: found {text:?}, expected ADDRESS:PORT");
                Err(ServeFailed::new_err((what, "such as 127.0.0.1:4420")))
            }
        }
    }
}

impl Text {
    fn settings(&self, config: &str) -> PyResult<Settings> {
        let precondition = || self.precondition.clone().unwrap_or_else(|| Precondition::default().to_string());
        let about = || About { config: config.to_owned(), seed: self.seed, precondition: precondition() };
        let all = |option, texts: &[String], form: Form| {
            texts.iter().map(|text| form.parse(text, option)).collect::<PyResult<_>>()
        };
        let of =
            |option, text: &Option<String>, form: Form| text.as_ref().map(|text| form.parse(text, option)).transpose();
        let ctl = of("ctl", &self.ctl, Form::Any)?;
        if let Some(Address::Tcp(_)) = ctl {
            let text = self.ctl.as_deref().unwrap_or_default();
            return Err(ServeFailed::new_err((format!("ctl: found {text:?}, expected unix:PATH"), "")));
        }
        Ok(Settings {
            ctl,
            metrics: of("metrics", &self.metrics, Form::Tcp)?,
            watch: of("watch", &self.watch, Form::Tcp)?,
            nbd: all("nbd", &self.nbd, Form::Any)?,
            nvme_tcp: all("nvme_tcp", &self.nvme_tcp, Form::Tcp)?,
            vfio_user: self.vfio_user.clone(),
            anywhere: self.listen_anywhere,
            read_only: self.read_only,
            in_flight_max: self.in_flight_max.unwrap_or_else(|| Settings::default().in_flight_max),
            pace: self.time_scale.map_or(Pace::None, |time_scale| Pace::Real { time_scale }),
            record: self.record.clone(),
            record_data: self.record_data.clone().map(|path| (path, about())),
        })
    }
}

fn refused(error: &ServeError) -> PyErr {
    let text = error.to_string();
    match error {
        ServeError::Listen { error, .. } => ServeFailed::new_err((text, error.hint)),
        ServeError::Record(_) => TraceError::new_err(text),
        ServeError::RecordData(_) => ServeFailed::new_err((text, "")),
        _ => ServeFailed::new_err((text, "")),
    }
}

/// A drive that is served by threads of its own.
#[pyclass(module = "flashwright._core", frozen)]
pub struct Server {
    serving: RwLock<Option<Running>>,
    policies: Given,
    uris: Vec<String>,
    addresses: Vec<(&'static str, String)>,
}

#[pymethods]
impl Server {
    /// Builds and preconditions a drive, then serves it.
    #[new]
    fn new(py: Python<'_>, config: String, settings: &str, policies: Vec<Handed>) -> PyResult<Self> {
        let text: Text = serde_json::from_str(settings)
            .map_err(|error| WorkloadError::new_err(format!("settings of the server: {error}")))?;
        let settings = text.settings(&config)?;
        let cancelled = Arc::new(Cancelled::default());
        let asked = cancelled.clone();
        let _drop = CancelOnDrop(cancelled);
        let (serving, policies) = interruptible(py, move || {
            let config = Config::from_toml(&config, "config").map_err(crate::config_error)?;
            let (policies, handed) = Given::new(policies, &config);
            let precondition = text.precondition.as_deref().map(str::parse::<Precondition>).transpose();
            let precondition = precondition.map_err(WorkloadError::new_err)?;
            let (seed, cancelled) = (Seed(text.seed), || asked.0.load(Ordering::Relaxed));
            let drive = match &text.image {
                None => LiveRun::with_policies(&config, seed, precondition.unwrap_or_default(), &handed, cancelled),
                Some(_) if !policies.is_empty() => {
                    let what = format!("image: found one with {}, expected none", policies.names());
                    return Err(ServeFailed::new_err((what, "the state of a class in Python is not part of an image")));
                }
                Some(path) => LiveRun::on_image(path, &config, seed, precondition, cancelled),
            };
            policies.check()?;
            let drive = drive.map_err(|error| match error {
                RunError::Image(error) => ServeFailed::new_err((error.what, error.hint)),
                error => run_error(&error, false),
            })?;
            let serving = Serving::start(drive, &settings).map(Running::Simulated);
            Ok((serving.map_err(|error| refused(&error))?, policies))
        })?;
        Ok(Self::of(serving, policies))
    }

    /// Serves a device that exists, with schedulers before it; `device` is described as JSON.
    #[staticmethod]
    fn before(py: Python<'_>, device: &str, settings: &str) -> PyResult<Self> {
        let wrong = |error| WorkloadError::new_err(format!("settings of the server: {error}"));
        let device: Before = serde_json::from_str(device).map_err(wrong)?;
        let text: Text = serde_json::from_str(settings).map_err(wrong)?;
        let settings = Settings { read_only: text.read_only || !device.writes(), ..text.settings("")? };
        guarded(py, || {
            let proxied = device.open()?;
            let serving = Serving::start(proxied, &settings).map_err(|error| refused(&error))?;
            Ok(Self::of(Running::Device(serving), Given::none()))
        })
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
            self.policies.check()?;
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
        let arguments: Map<String, Value> = serde_json::from_str(arguments)
            .map_err(|error| WorkloadError::new_err(format!("arguments of a command: {error}")))?;
        self.with(py, move |serving| {
            serving
                .command(&name, &arguments)
                .map(|answer| answer.to_string())
                .map_err(|error| ServeFailed::new_err((error, "")))
        })
    }

    /// Stops in order.
    fn stop<'py>(&self, py: Python<'py>) -> PyResult<Stopped<'py>> {
        // Also where memory has ended: what it was served for is still to be saved.
        let stopped = py.detach(|| {
            caught(|| {
                let serving = self.serving.write().expect("no call before this one panicked").take();
                let serving = serving.ok_or_else(closed)?;
                serving.stop().ok_or_else(|| InternalError::new_err("internal error: a thread of the server panicked"))
            })
        });
        let (mut report, stats, [notes, lost]) = stopped?;
        if let Reported::Simulated(report) = &mut report {
            self.policies.tell(&mut report.report);
        }
        Ok((report.into_dict(py)?, stats, notes, lost))
    }
}

/// What the drive has to report, as of a run; the last figures as JSON; notes, and those of them that tell of a lost output.
type Stopped<'py> = (Bound<'py, PyDict>, String, Vec<String>, Vec<String>);

impl Server {
    fn of(serving: Running, policies: Given) -> Self {
        let (uris, addresses) = serving.places();
        Self { serving: RwLock::new(Some(serving)), policies, uris, addresses }
    }

    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&Running) -> PyResult<T> + Send) -> PyResult<T> {
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
