//! What a server serves: a simulated drive, or a device that exists with schedulers before it.

use crate::errors::{ConfigError, TargetError};
use crate::replay::{Found, host_of, target_refused, usual_depth};
use flashwright_block::Bytes;
use flashwright_disk::{Access, Disk, Kind, Options};
use flashwright_serve::{Server as Serving, Stopped};
use flashwright_sim::{LiveRun, Proxied, RunReport};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::time::Duration;

/// A device with schedulers before it, as JSON text from Python.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Before {
    path: String,
    destroys_data: bool,
    queue_depth: Option<u32>,
    /// `host.KEY=VALUE` settings of the schedulers.
    host: Vec<String>,
}

impl Before {
    /// Whether clients may write.
    pub fn writes(&self) -> bool {
        self.destroys_data
    }

    /// Opens the device after the checks that its access requires.
    pub fn open(&self) -> PyResult<Proxied<Disk>> {
        let described = host_of(&self.host)?;
        let host = &described.host.stack;
        let access = if self.destroys_data { Access::DestroysData } else { Access::ReadOnly };
        let target = flashwright_disk::open(Path::new(&self.path), access, Bytes(0))
            .map_err(|refusal| target_refused(&refusal))?;
        let depth = self.queue_depth.unwrap_or_else(|| usual_depth(&described, None));
        let config = json!({
            "name": target.name,
            "kind": if target.kind == Kind::File { "file" } else { "block-device" },
            "queue-depth": depth,
            "destroys-data": self.destroys_data,
            "host": host,
        });
        let disk = Disk::new(target, Options { depth, keeps_data: true, ..Options::default() })
            .map_err(|error| TargetError::new_err((error.to_string(), error.hint())))?;
        Proxied::new(disk, host, config, self.destroys_data).map_err(|problems| {
            let line = |problem: &flashwright_host::StackError| format!("host.{}: {}", problem.key, problem.what);
            ConfigError::new_err(problems.iter().map(line).collect::<Vec<_>>().join("\n"))
        })
    }
}

/// A server that runs.
pub enum Running {
    Simulated(Serving<LiveRun>),
    Device(Serving<Proxied<Disk>>),
}

/// What a server has to report.
pub enum Reported {
    Simulated(Box<RunReport>),
    Device(Box<Found>),
}

macro_rules! each {
    ($self:ident, $serving:ident => $call:expr) => {
        match $self {
            Self::Simulated($serving) => $call,
            Self::Device($serving) => $call,
        }
    };
}

impl Running {
    /// Where NBD clients connect, and where all else is.
    pub fn places(&self) -> (Vec<String>, Vec<(&'static str, String)>) {
        each!(self, serving => (serving.uris().to_vec(), serving.addresses().to_vec()))
    }

    /// See [`Serving::wait`].
    pub fn wait(&self, timeout: Duration) -> bool {
        each!(self, serving => serving.wait(timeout))
    }

    /// See [`Serving::notes`].
    pub fn notes(&self) -> Vec<String> {
        each!(self, serving => serving.notes())
    }

    /// See [`Serving::stats`].
    pub fn stats(&self) -> Value {
        each!(self, serving => serving.stats())
    }

    /// See [`Serving::command`].
    pub fn command(&self, name: &str, arguments: &Map<String, Value>) -> Result<Value, String> {
        each!(self, serving => serving.command(name, arguments))
    }

    /// Stops in order. Returns the report, the last figures as JSON, notes, and those of them that tell of a lost output; none
    /// if a thread panicked with the device.
    pub fn stop(self) -> Option<(Reported, String, [Vec<String>; 2])> {
        match self {
            Self::Simulated(serving) => {
                let Stopped { served, stats, mut notes, mut lost } = serving.stop();
                let mut drive = served?;
                let report = Box::new(drive.report());
                let closed = drive.close();
                notes.extend(drive.take_notes());
                if let Err(why) = closed {
                    if !notes.iter().any(|note| note.starts_with(&why)) {
                        notes.push(why.clone());
                    }
                    lost.push(why);
                }
                Some((Reported::Simulated(report), stats.to_string(), [notes, lost]))
            }
            Self::Device(serving) => {
                let Stopped { served, stats, notes, lost } = serving.stop();
                let found = Found { report: served?.report(), notes: Vec::new() };
                Some((Reported::Device(Box::new(found)), stats.to_string(), [notes, lost]))
            }
        }
    }
}

impl Reported {
    /// As Python takes the result of a run, or of a replay.
    pub fn into_dict(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        match self {
            Self::Simulated(report) => crate::simulation::as_dict(py, *report),
            Self::Device(found) => crate::replay::as_dict(py, &found),
        }
    }
}
