//! Statistics of traces and workloads, and distances between them.

use crate::errors::{InternalError, TraceError, WorkloadError, interruptible, memory_ended};
use crate::source::{self, SourceText};
use flashwright_block::{RequestSource, SECTOR_BYTES, Seed};
use flashwright_workload::generate::{Target, WorkloadSpec};
use flashwright_workload::statistics::{self as statistic, Statistics, StatisticsError};
use pyo3::prelude::*;

fn internal(error: impl std::fmt::Display) -> PyErr {
    InternalError::new_err(format!("internal error: {error}"))
}

/// The statistics of a source or of its first requests, as JSON, with what was done to read a trace. A workload is generated for a drive of this size; of a
/// trace the addresses are its own.
#[pyfunction]
pub fn statistics(
    py: Python<'_>,
    source: &str,
    requests: Option<u64>,
    logical_bytes: u64,
    page_bytes: u32,
    seed: u64,
) -> PyResult<String> {
    let source: SourceText = serde_json::from_str(source).map_err(internal)?;
    interruptible(py, move || {
        let mut read = serde_json::Value::Null;
        let found = match &source {
            SourceText::Trace(trace) => {
                let mut reader = trace.reader()?;
                read = source::reading(&reader);
                statistic::of(&mut reader, requests).map_err(failed(TraceError::new_err))?
            }
            SourceText::Workload(text) => {
                let wrong = |error: &dyn std::fmt::Display| WorkloadError::new_err(error.to_string());
                let spec = WorkloadSpec::parse(text).map_err(|error| wrong(&error))?;
                let page_sectors = page_bytes / u32::try_from(SECTOR_BYTES).map_err(internal)?;
                let target = Target { logical_sectors: logical_bytes / SECTOR_BYTES, page_sectors };
                let mut generated = spec.source(&target, Seed(seed), requests).map_err(|error| wrong(&error))?;
                statistic::of(generated.as_mut() as &mut dyn RequestSource, requests)
                    .map_err(failed(WorkloadError::new_err))?
            }
            SourceText::Tenants(_) => {
                return Err(WorkloadError::new_err("workload: found several tenants, expected one workload or trace"));
            }
        };
        let mut found = serde_json::to_value(&found).map_err(internal)?;
        found["reading"] = read;
        Ok(found.to_string())
    })
}

/// Of the kind `of` where the source failed, or of memory that ended.
fn failed(of: fn(String) -> PyErr) -> impl Fn(StatisticsError) -> PyErr {
    move |error| match error {
        StatisticsError::Source(error) => of(error.to_string()),
        StatisticsError::Memory(error) => memory_ended(error),
    }
}

/// The distances between two of [`statistics`], as JSON.
#[pyfunction]
pub fn statistics_distances(first: &str, second: &str) -> PyResult<String> {
    let read = |text: &str| serde_json::from_str::<Statistics>(text).map_err(internal);
    serde_json::to_string(&statistic::distances(&read(first)?, &read(second)?)).map_err(internal)
}
