//! The source of a run's requests, as Python describes it and as a saved run stores it.

use crate::errors::{TraceError, WorkloadError, trace_error};
use flashwright_block::{Priority, SECTOR_BYTES};
use flashwright_sim::{NamespaceSize, OpenError, SourceSpec, TenantSpec, TenantsSpec};
use flashwright_workload::generate::WorkloadSpec;
use flashwright_workload::trace::{AddressMap, DeviceFilter, Layout, MapError, TraceOptions, TraceReader};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// A workload, a trace with all options to read it, or several of both at once.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceText {
    Workload(String),
    Trace(Box<TraceText>),
    Tenants(TenantsText),
}

/// See [`flashwright_sim::TenantsSpec`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TenantsText {
    all: Vec<TenantText>,
    alone: Option<usize>,
}

/// See [`flashwright_sim::TenantSpec`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TenantText {
    name: String,
    source: SourceText,
    depth: Option<u32>,
    time_scale: Option<f64>,
    share: Option<f64>,
    pages: Option<u64>,
    handle: Option<u16>,
    priority: Priority,
}

impl TenantText {
    fn spec(&self) -> PyResult<TenantSpec> {
        Ok(TenantSpec {
            name: self.name.clone(),
            source: self.source.spec()?,
            depth: self.depth,
            time_scale: self.time_scale,
            size: match (self.share, self.pages) {
                (Some(share), _) => NamespaceSize::Share(share),
                (None, Some(pages)) => NamespaceSize::Pages(pages),
                (None, None) => NamespaceSize::Rest,
            },
            handle: self.handle,
            priority: self.priority,
        })
    }
}

/// See [`flashwright_sim::TraceSpec`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TraceText {
    pub path: String,
    name: String,
    format: Option<String>,
    skip_bad_lines: bool,
    devices: Option<Vec<String>>,
    overlay: bool,
    /// None was asked for.
    addresses: Option<String>,
    repeat: u32,
    // Runs saved by earlier versions lack these.
    #[serde(default = "one")]
    time_scale: f64,
    /// First byte and one past the last.
    #[serde(default)]
    range: Option<(u64, u64)>,
    #[serde(default = "one_copy")]
    scale_footprint: u32,
    #[serde(default)]
    columns: Option<String>,
    #[serde(default)]
    member: Option<String>,
    #[serde(default)]
    order: Option<String>,
    #[serde(default)]
    time_unit: Option<String>,
    /// None: whichever the trace has.
    #[serde(default)]
    events: Option<String>,
    #[serde(default)]
    start: f64,
}

fn one() -> f64 {
    1.0
}

fn one_copy() -> u32 {
    1
}

impl TraceText {
    pub fn read(text: &str) -> PyResult<Self> {
        serde_json::from_str(text).map_err(|error| TraceError::new_err(format!("options of the trace: {error}")))
    }

    pub fn options(&self) -> PyResult<TraceOptions> {
        Ok(TraceOptions {
            format: self.format.clone(),
            columns: self.columns.clone(),
            member: self.member.clone(),
            skip_bad_lines: self.skip_bad_lines,
            devices: self.devices.clone().map_or(DeviceFilter::All, DeviceFilter::Only),
            layout: if self.overlay { Layout::Overlay } else { Layout::Concatenate },
            time_scale: self.time_scale,
            range: self.range.map(|(first, end)| first / SECTOR_BYTES..end / SECTOR_BYTES),
            copies: self.scale_footprint,
            order: word(self.order.as_deref())?,
            time_unit: word(self.time_unit.as_deref())?,
            events: word(self.events.as_deref())?,
            start: self.start,
            ..TraceOptions::default()
        })
    }

    /// Opens the trace, its addresses its own.
    pub fn reader(&self) -> PyResult<TraceReader> {
        TraceReader::open(&self.path, &self.options()?).map_err(|error| trace_error(&error))
    }
}

fn word<T: FromStr<Err = flashwright_workload::trace::TraceError>>(text: Option<&str>) -> PyResult<Option<T>> {
    text.map(|text| text.parse().map_err(|error| trace_error(&error))).transpose()
}

/// What was done to read a trace, and what speaks against it.
pub fn reading(reader: &TraceReader) -> serde_json::Value {
    serde_json::json!({"notes": reader.notes(), "doubts": reader.doubts()})
}

impl SourceText {
    /// Independent of the path that it is read from, for a saved run.
    pub fn kept(&self) -> Self {
        match self {
            Self::Workload(_) => self.clone(),
            Self::Tenants(TenantsText { all, alone }) => {
                let kept = |tenant: &TenantText| TenantText { source: tenant.source.kept(), ..tenant.clone() };
                Self::Tenants(TenantsText { all: all.iter().map(kept).collect(), alone: *alone })
            }
            Self::Trace(trace) => {
                let path = std::path::absolute(&trace.path).unwrap_or_else(|_| trace.path.clone().into());
                let path = path.to_string_lossy().into_owned();
                Self::Trace(Box::new(TraceText { path, ..TraceText::clone(trace) }))
            }
        }
    }

    pub fn is_trace(&self) -> bool {
        matches!(self, Self::Trace(_))
    }

    pub fn spec(&self) -> PyResult<SourceSpec> {
        match self {
            Self::Workload(text) => WorkloadSpec::parse(text)
                .map(SourceSpec::Workload)
                .map_err(|error| WorkloadError::new_err(error.to_string())),
            Self::Tenants(TenantsText { all, alone }) => Ok(SourceSpec::Tenants(TenantsSpec {
                all: all.iter().map(TenantText::spec).collect::<PyResult<_>>()?,
                alone: *alone,
            })),
            Self::Trace(trace) => Ok(SourceSpec::Trace(flashwright_sim::TraceSpec {
                path: trace.path.clone().into(),
                name: trace.name.clone(),
                options: trace.options()?,
                addresses: match &trace.addresses {
                    None => AddressMap::WrapFew,
                    Some(map) => map.parse().map_err(|error: MapError| TraceError::new_err(error.to_string()))?,
                },
                repeat: trace.repeat,
            })),
        }
    }
}

pub fn open_error(error: &OpenError) -> PyErr {
    match error {
        OpenError::Spec(error) => WorkloadError::new_err(error.to_string()),
        OpenError::Trace(error) => trace_error(error),
        OpenError::Tenants(what) => WorkloadError::new_err(what.clone()),
        error => TraceError::new_err(error.to_string()),
    }
}
