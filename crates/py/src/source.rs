//! Where the requests of a run come from, as Python says it.

use crate::errors::{TraceError, WorkloadError};
use flashwright_block::{Request, RequestSource, Seed, SourceError};
use flashwright_sim::Pace;
use flashwright_workload::generate::{Pace as WorkloadPace, Target, WorkloadSpec};
use flashwright_workload::trace::{AddressMap, DeviceFilter, Layout, Mapped, TraceOptions, TraceReader};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A workload or a trace with all that tells how to read it; saved with a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceSpec {
    Workload(String),
    Trace(TraceSpec),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TraceSpec {
    pub path: String,
    pub format: Option<String>,
    #[serde(default)]
    pub skip_bad_lines: bool,
    #[serde(default)]
    pub devices: Option<Vec<String>>,
    #[serde(default)]
    pub overlay: bool,
    #[serde(default = "wrap")]
    pub addresses: String,
    #[serde(default = "one")]
    pub repeat: u32,
}

fn wrap() -> String {
    "wrap".to_owned()
}
fn one() -> u32 {
    1
}

impl SourceSpec {
    /// For an endless workload, the length that it has by nature on a drive, if any; none for what ends by itself.
    pub fn length(&self, target: &Target) -> PyResult<Option<Option<u64>>> {
        match self {
            Self::Workload(text) => {
                let spec = WorkloadSpec::parse(text).map_err(|error| WorkloadError::new_err(error.to_string()))?;
                Ok(Some(spec.natural_requests(target)))
            }
            Self::Trace(_) => Ok(None),
        }
    }
}

impl TraceSpec {
    pub fn options(&self) -> TraceOptions {
        TraceOptions {
            format: self.format.clone(),
            skip_bad_lines: self.skip_bad_lines,
            devices: self.devices.clone().map_or(DeviceFilter::All, DeviceFilter::Only),
            layout: if self.overlay { Layout::Overlay } else { Layout::Concatenate },
            ..TraceOptions::default()
        }
    }
}

/// The source at work.
pub enum Source {
    Generated { source: Box<dyn RequestSource + Send>, spec: WorkloadSpec, target: Target },
    Traced { source: Box<Mapped<Repeated>>, spec: TraceSpec },
}

impl Source {
    pub fn open(spec: &SourceSpec, target: &Target, seed: Seed, requests: Option<u64>) -> PyResult<Self> {
        match spec {
            SourceSpec::Workload(text) => {
                let fail = |error: flashwright_workload::generate::SpecError| WorkloadError::new_err(error.to_string());
                let spec = WorkloadSpec::parse(text).map_err(fail)?;
                let source = spec.source(target, seed, requests).map_err(fail)?;
                Ok(Self::Generated { source, spec, target: *target })
            }
            SourceSpec::Trace(spec) => {
                let map: AddressMap = spec.addresses.parse().map_err(|error: flashwright_workload::trace::MapError| {
                    TraceError::new_err(error.to_string())
                })?;
                let source = Repeated::open(spec).map_err(|error| TraceError::new_err(error.to_string()))?;
                let source = Mapped::new(source, map, target.logical_sectors)
                    .map_err(|error| TraceError::new_err(error.to_string()))?;
                Ok(Self::Traced { source: Box::new(source), spec: spec.clone() })
            }
        }
    }

    pub fn requests(&mut self) -> &mut dyn RequestSource {
        match self {
            Self::Generated { source, .. } => source.as_mut(),
            Self::Traced { source, .. } => source.as_mut(),
        }
    }

    pub fn as_source(&self) -> &dyn RequestSource {
        match self {
            Self::Generated { source, .. } => source.as_ref(),
            Self::Traced { source, .. } => source.as_ref(),
        }
    }

    pub fn is_trace(&self) -> bool {
        matches!(self, Self::Traced { .. })
    }

    /// The workload in words.
    pub fn description(&self) -> String {
        match self {
            Self::Generated { spec, .. } => match spec.label() {
                Some(label) => format!("{spec} ({label})"),
                None => spec.to_string(),
            },
            Self::Traced { source, spec } => {
                let reader = &source.inner().reader;
                let name = if reader.label().is_empty() { spec.path.as_str() } else { reader.label() };
                format!("trace {name}")
            }
        }
    }

    pub fn pace(&self) -> Pace {
        match self {
            Self::Generated { spec, .. } => match spec.pace() {
                WorkloadPace::Closed { depth } => Pace::Closed { depth },
                WorkloadPace::Open => Pace::Open { time_scale: 1.0 },
            },
            Self::Traced { .. } => Pace::Open { time_scale: 1.0 },
        }
    }

    /// What reports say of the source beside its name, as far as it has been read.
    pub fn report(&self) -> Value {
        match self {
            Self::Generated { spec, target, .. } => json!({
                "kind": "workload",
                "spec": spec.to_string(),
                "label": spec.label(),
                "notes": spec.notes(target),
            }),
            Self::Traced { source, spec } => {
                let reader = &source.inner().reader;
                json!({
                    "kind": "trace",
                    "path": spec.path,
                    "format": reader.format().name(),
                    "label": reader.label(),
                    "notes": if reader.note().is_empty() { vec![] } else { vec![reader.note()] },
                    "addresses": spec.addresses,
                    "repeat": spec.repeat,
                    "map": source.report(),
                    "read": reader.stats(),
                })
            }
        }
    }
}

/// A trace played several times, one after the other.
pub struct Repeated {
    reader: TraceReader,
    spec: TraceSpec,
    left: u32,
    base: u64,
    last: u64,
}

impl Repeated {
    fn open(spec: &TraceSpec) -> Result<Self, flashwright_workload::trace::TraceError> {
        let reader = TraceReader::open(&spec.path, &spec.options())?;
        Ok(Self { reader, spec: spec.clone(), left: spec.repeat.saturating_sub(1), base: 0, last: 0 })
    }
}

impl RequestSource for Repeated {
    fn fill(&mut self, batch: &mut Vec<Request>, at_most: usize) -> Result<usize, SourceError> {
        let before = batch.len();
        let mut got = RequestSource::fill(&mut self.reader, batch, at_most)?;
        if got == 0 && self.left > 0 {
            self.left -= 1;
            self.base = self.last;
            self.reader = TraceReader::open(&self.spec.path, &self.spec.options())?;
            got = RequestSource::fill(&mut self.reader, batch, at_most)?;
        }
        for request in &mut batch[before..] {
            request.arrival.0 += self.base;
            self.last = request.arrival.0;
        }
        Ok(got)
    }

    fn remaining(&self) -> Option<u64> {
        if self.left == 0 { self.reader.remaining() } else { None }
    }

    fn progress(&self) -> Option<f64> {
        let played = f64::from(self.spec.repeat.max(1) - 1 - self.left);
        self.reader.progress().map(|share| (played + share) / f64::from(self.spec.repeat.max(1)))
    }
}
