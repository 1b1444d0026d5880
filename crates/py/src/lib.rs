//! The border to Python: translates types and errors, releases the GIL, decides nothing.
//!
//! Structured data cross as TOML or JSON text, columns as NumPy arrays. Names, defaults and documentation are in
//! `python/flashwright`.

mod crash;
mod errors;
mod foreign;
mod layer;
mod parts;
mod proxy;
mod replay;
mod scored;
mod serve;
mod simulation;
mod source;
mod statistics;
mod target;

use errors::{ConfigError, TraceError, WorkloadError, guarded, interruptible, trace_error};
use flashwright_block::{ArbiterName, Nanos, Request, SECTOR_BYTES, Seed, WithReserve};
use flashwright_ftl::{
    Listed, MapCacheName, MapPrefetchName, OwnFtl, PlacementName, ScheduleName, SchemeName, VictimChoice, VictimName,
    WearName,
};
use flashwright_host::SchedulerName;
use flashwright_ssd::{Config, DriveConfig, ManagerName, Ssd, bundled_devices};
use flashwright_workload::generate::{SpecError, Target as DriveSize, WorkloadSpec, catalogue};
use flashwright_workload::model::{FitError, fit_sequence, fit_to};
use flashwright_workload::trace::{Part, Tenant, TraceInfo, TraceLabel, convert_part, formats, merge};
use numpy::IntoPyArray;
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value, json};
use source::TraceText;
use std::collections::TryReserveError;
use std::sync::OnceLock;

pub use flashwright_ftl;
pub use pyo3;

/// All that Rust allocates in a process of Python: where memory ends, an error follows and not the end of the process.
#[global_allocator]
static ALLOCATOR: WithReserve = WithReserve;

/// The digest of what this core was built from.
static SOURCE_DIGEST: OnceLock<&str> = OnceLock::new();

fn source_digest() -> &'static str {
    SOURCE_DIGEST.get().copied().unwrap_or_default()
}

/// Adds a translation layer to those that `ftl.scheme` names; to be called before [`fill`].
///
/// # Errors
/// `ConfigError`, as [`flashwright_ftl::register`].
pub fn register<T: OwnFtl>(name: &'static str) -> PyResult<()> {
    flashwright_ftl::register::<T>(name).map_err(ConfigError::new_err)
}

fn config_error(error: flashwright_ssd::ConfigError) -> PyErr {
    ConfigError::new_err(error.to_string())
}

fn read(text: &str, name: &str) -> PyResult<DriveConfig> {
    Config::from_toml(text, name).map_err(config_error)
}

/// A drive's TOML, validated and completed with the defaults, or with the values of the drive `base` if given.
#[pyfunction]
#[pyo3(signature = (text, name, base=None))]
fn config_read(text: &str, name: &str, base: Option<&str>) -> PyResult<String> {
    let config = match base {
        None => read(text, name)?,
        Some(base) => {
            let base = read(base, "base")?;
            Config::from_toml_over(&base, text, name).map_err(config_error)?
        }
    };
    let config = if config.name.is_empty() { config.named(name) } else { config };
    Ok(config.to_toml())
}

/// A bundled drive as TOML, completed with the defaults.
#[pyfunction]
fn config_bundled(name: &str) -> PyResult<String> {
    flashwright_ssd::bundled(name).map(|config| config.to_toml()).map_err(ConfigError::new_err)
}

/// The drive with `KEY=VALUE` settings applied.
#[pyfunction]
fn config_with(text: &str, settings: Vec<String>) -> PyResult<String> {
    Ok(read(text, "config")?.with_settings(&settings).map_err(config_error)?.to_toml())
}

/// The configuration of a result, as TOML: of the JSON that a run reports.
#[pyfunction]
fn config_of_json(json: &str) -> PyResult<String> {
    let json = serde_json::from_str(json)
        .map_err(|error| ConfigError::new_err(format!("config: {error}; expected what `simulate --json` writes")))?;
    Config::from_json(&json, "config").map_err(config_error).map(|config| config.to_toml())
}

/// The configuration as JSON, with every choice filled in that it leaves to the translation layer.
#[pyfunction]
fn config_json(text: &str) -> PyResult<String> {
    Ok(read(text, "config")?.resolved().to_json().to_string())
}

/// Finds errors that show only when a drive is laid out; returns its logical bytes, logical pages and physical pages, which
/// follow from the configuration.
#[pyfunction]
fn config_check(py: Python<'_>, text: &str) -> PyResult<(u64, u32, u64)> {
    let config = read(text, "config")?;
    guarded(py, || {
        Ssd::can_be_built(&config).map_err(|error| ConfigError::new_err(error.to_string()))?;
        let (layout, logical) = (config.layout(), config.logical_pages());
        Ok((u64::from(logical) * layout.page_size().0, logical, u64::from(layout.pages())))
    })
}

/// The canonical text of a workload, and its name in reports.
#[pyfunction]
fn workload_read(text: &str) -> PyResult<(String, Option<String>)> {
    let spec = WorkloadSpec::parse(text).map_err(|error| WorkloadError::new_err(error.to_string()))?;
    Ok((spec.to_string(), spec.label()))
}

/// Nanoseconds of a time with its unit.
#[pyfunction]
fn time_read(text: &str) -> PyResult<u64> {
    let time: flashwright_block::Nanos =
        text.parse().map_err(|error: flashwright_block::UnitError| WorkloadError::new_err(error.to_string()))?;
    Ok(time.0)
}

/// Bytes of a size.
#[pyfunction]
fn size_read(text: &str) -> PyResult<u64> {
    let size: flashwright_block::Bytes =
        text.parse().map_err(|error: flashwright_block::UnitError| WorkloadError::new_err(error.to_string()))?;
    Ok(size.0)
}

/// A share: a number, or one in percent.
#[pyfunction]
fn share_read(text: &str) -> PyResult<f64> {
    flashwright_block::read_share(text)
        .filter(|share| share.is_finite())
        .ok_or_else(|| WorkloadError::new_err(format!("found {text:?}, expected a share such as 0.87 or 87%")))
}

/// The memory that the tables of a drive need, in bytes.
#[pyfunction]
fn memory_needed(text: &str, verify: bool) -> PyResult<u64> {
    Ok(flashwright_ssd::memory_needed(&read(text, "config")?, verify.into()))
}

/// The memory that is left to this process, in bytes; none where the system does not say.
#[pyfunction]
fn memory_left() -> Option<u64> {
    flashwright_ssd::memory_left()
}

/// Checks the text of a precondition.
#[pyfunction]
fn precondition_read(text: &str) -> PyResult<String> {
    let precondition: flashwright_sim::Precondition = text.parse().map_err(WorkloadError::new_err)?;
    Ok(precondition.to_string())
}

/// The JSON Schema of the JSON of a run.
#[pyfunction]
fn schema_run() -> String {
    flashwright_sim::schema().to_string()
}

/// The JSON Schema of the options of a run.
#[pyfunction]
fn schema_options() -> String {
    flashwright_sim::schema_of_options().to_string()
}

/// Every key of a drive's description with its meaning, default and range, and every table, as JSON.
#[pyfunction]
fn settings() -> String {
    flashwright_ssd::keys::to_json().to_string()
}

/// The JSON schema of a drive's description.
#[pyfunction]
fn settings_schema() -> String {
    format!("{:#}", flashwright_ssd::keys::json_schema())
}

/// Name and TOML text of the bundled drives.
#[pyfunction]
fn devices() -> Vec<(&'static str, &'static str)> {
    bundled_devices().iter().map(|device| (device.name, device.text)).collect()
}

/// Everything pluggable as JSON: key, name, description.
#[pyfunction]
fn policies() -> String {
    fn rows(listed: impl Iterator<Item = Listed>) -> impl Iterator<Item = Value> {
        listed.map(|listed| json!({ "key": listed.key, "name": listed.name, "about": listed.about }))
    }
    let all: Vec<Value> = rows(SchemeName::all().map(SchemeName::listed))
        .chain(rows(VictimName::ALL.iter().map(|name| name.listed()).chain([VictimChoice::listed_default()])))
        .chain(rows(ScheduleName::ALL.iter().map(|name| name.listed())))
        .chain(rows(PlacementName::ALL.iter().map(|name| name.listed())))
        .chain(rows(WearName::ALL.iter().map(|name| name.listed())))
        .chain(rows(MapCacheName::ALL.iter().map(|name| name.listed())))
        .chain(rows(MapPrefetchName::ALL.iter().map(|name| name.listed())))
        .chain(rows(ManagerName::ALL.iter().map(|name| name.listed())))
        .chain(rows(ArbiterName::ALL.iter().map(|name| name.listed())))
        .chain(rows(SchedulerName::ALL.iter().map(|name| name.listed())))
        .collect();
    Value::Array(all).to_string()
}

/// The request generators with their keys as JSON.
#[pyfunction]
fn workloads() -> String {
    let all: Vec<Value> = catalogue()
        .into_iter()
        .map(|info| {
            let keys: Vec<Value> = info
                .keys
                .iter()
                .map(
                    |key| json!({ "name": key.name, "default": key.default, "allowed": key.allowed, "help": key.help }),
                )
                .collect();
            json!({ "name": info.name, "about": info.summary, "bare_key": info.bare_key, "interactive": info.interactive,
                "keys": keys })
        })
        .collect();
    Value::Array(all).to_string()
}

/// The trace formats: name, description, whether it can be written, and what writing loses.
#[pyfunction]
fn trace_formats() -> Vec<(&'static str, &'static str, bool, &'static str)> {
    formats().iter().map(|format| (format.name(), format.summary(), format.writable(), format.loses())).collect()
}

/// The content of a trace, as JSON.
#[pyfunction]
fn trace_info(py: Python<'_>, spec: &str) -> PyResult<String> {
    let spec = TraceText::read(spec)?;
    interruptible(py, move || {
        let info = TraceInfo::of(&spec.path, &spec.options()?).map_err(|error| trace_error(&error))?;
        serde_json::to_string(&info).map_err(|error| TraceError::new_err(error.to_string()))
    })
}

/// Writes a trace without its first `skip` requests in another format, with handles by first sector; returns a summary as JSON.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // the fields of one call
fn trace_convert(
    py: Python<'_>,
    spec: &str,
    to: &str,
    format: &str,
    label: String,
    note: String,
    skip: u64,
    handles: Vec<(u64, u16)>,
) -> PyResult<String> {
    let spec = TraceText::read(spec)?;
    guarded(py, || {
        let label = TraceLabel { label, note, origin: String::new() };
        let report = convert_part(&spec.path, to, &spec.options()?, format, &label, &Part { skip, handles })
            .map_err(|error| trace_error(&error))?;
        serde_json::to_string(&report).map_err(|error| TraceError::new_err(error.to_string()))
    })
}

/// Merges traces into one file; a name, options of a trace and a start in nanoseconds for each. Returns a summary as JSON.
#[pyfunction]
fn trace_merge(
    py: Python<'_>,
    tenants: Vec<(String, String, u64)>,
    to: &str,
    format: &str,
    label: String,
    note: String,
) -> PyResult<String> {
    let mut made = Vec::new();
    for (name, spec, start) in tenants {
        let spec = TraceText::read(&spec)?;
        made.push(Tenant { name, options: spec.options()?, path: spec.path.into(), start: Nanos(start) });
    }
    guarded(py, || {
        let label = TraceLabel { label, note, origin: String::new() };
        let report = merge(&made, to, format, &label).map_err(|error| trace_error(&error))?;
        serde_json::to_string(&report).map_err(|error| TraceError::new_err(error.to_string()))
    })
}

/// Requests read per batch.
const BATCH: usize = 4096;

/// The requests of a trace, or the first `most` of them, as columns.
#[pyfunction]
fn trace_columns<'py>(py: Python<'py>, spec: &str, most: Option<u64>) -> PyResult<Bound<'py, PyDict>> {
    let spec = TraceText::read(spec)?;
    let columns = interruptible(py, move || {
        let wrong = |error: flashwright_workload::trace::TraceError| trace_error(&error);
        let mut reader = spec.reader()?;
        let (mut columns, mut batch) = (Columns::default(), Vec::new());
        let mut left = most.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
        while left > 0 {
            batch.clear();
            let read = reader.read(&mut batch, BATCH.min(left)).map_err(wrong)?;
            if read == 0 {
                break;
            }
            left -= read;
            columns.extend(&batch)?;
        }
        Ok(columns)
    })?;
    columns.into_dict(py)
}

/// Requests as columns.
#[derive(Default)]
struct Columns {
    arrival: Vec<u64>,
    kind: Vec<u8>,
    first: Vec<u64>,
    sectors: Vec<u32>,
}

impl Columns {
    fn extend(&mut self, batch: &[Request]) -> PyResult<()> {
        self.try_reserve(batch.len())
            .map_err(|error| PyMemoryError::new_err(format!("no memory is left for more requests: {error}")))?;
        for request in batch {
            self.arrival.push(request.arrival.0);
            self.kind.push(request.kind as u8);
            self.first.push(request.first_sector);
            self.sectors.push(request.sectors);
        }
        Ok(())
    }

    fn try_reserve(&mut self, more: usize) -> Result<(), TryReserveError> {
        self.arrival.try_reserve(more)?;
        self.kind.try_reserve(more)?;
        self.first.try_reserve(more)?;
        self.sectors.try_reserve(more)
    }

    fn into_dict(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("arrival_ns", self.arrival.into_pyarray(py))?;
        dict.set_item("kind", self.kind.into_pyarray(py))?;
        dict.set_item("first_sector", self.first.into_pyarray(py))?;
        dict.set_item("sectors", self.sectors.into_pyarray(py))?;
        Ok(dict)
    }
}

/// The requests of a workload on a drive, as columns.
#[pyfunction]
fn workload_columns<'py>(
    py: Python<'py>,
    text: &str,
    logical_bytes: u64,
    page_bytes: u64,
    seed: u64,
    requests: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let wrong = |error: SpecError| WorkloadError::new_err(error.to_string());
    let spec = WorkloadSpec::parse(text).map_err(wrong)?;
    if spec.is_interactive() {
        let name = spec.name();
        return Err(WorkloadError::new_err(format!(
            "{name}: found a program that waits for a drive, expected a generator"
        )));
    }
    let columns = interruptible(py, move || {
        let target = DriveSize {
            logical_sectors: logical_bytes / SECTOR_BYTES,
            page_sectors: u32::try_from(page_bytes / SECTOR_BYTES).unwrap_or(u32::MAX),
        };
        let mut source = spec.source(&target, Seed(seed), Some(requests)).map_err(wrong)?;
        let (mut columns, mut batch) = (Columns::default(), Vec::new());
        loop {
            batch.clear();
            let failed = |error: flashwright_block::SourceError| WorkloadError::new_err(error.to_string());
            if source.fill(&mut batch, BATCH).map_err(failed)? == 0 {
                return Ok(columns);
            }
            columns.extend(&batch)?;
        }
    })?;
    columns.into_dict(py)
}

/// Fits a model to a trace, or to its first `most` requests: of its `sequence`, or else of statistics. Returns the model's text
/// and what it was fitted to, as JSON.
#[pyfunction]
fn trace_fit(py: Python<'_>, spec: &str, most: Option<u64>, sequence: bool) -> PyResult<(String, String)> {
    let spec = TraceText::read(spec)?;
    interruptible(py, move || {
        let wrong = |error: FitError| match error {
            FitError::Trace(error) => trace_error(&error),
            FitError::Memory(error) => errors::memory_ended(error),
            error => TraceError::new_err(format!("{}: {error}", spec.path)),
        };
        let internal = |error: serde_json::Error| TraceError::new_err(error.to_string());
        let mut reader = spec.reader()?;
        let (text, mut about) = if sequence {
            let model = fit_sequence(&mut reader, most).map_err(wrong)?;
            (model.to_text(), serde_json::json!({"fitted": model.fitted, "footprint": model.footprint}))
        } else {
            let model = fit_to(&mut reader, most).map_err(wrong)?;
            (model.to_text(), serde_json::to_value(&model).map_err(internal)?)
        };
        about["reading"] = source::reading(&reader);
        Ok((text, about.to_string()))
    })
}

/// Fills the module `flashwright._core`. `source_digest` is what `flashwright_digest` told of the crate that is this core, and
/// `built_with` says in words what it has beside ours, if anything.
///
/// # Errors
/// What Python raises.
pub fn fill(module: &Bound<'_, PyModule>, source_digest: &'static str, built_with: &'static str) -> PyResult<()> {
    errors::keep_panics();
    errors::check_memory()?;
    SOURCE_DIGEST.get_or_init(|| source_digest);
    module.add("SECTOR_BYTES", SECTOR_BYTES)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("source_digest", source_digest)?;
    module.add("built_with", built_with)?;
    macro_rules! classes {
        ($($class:ty),+) => { $(module.add_class::<$class>()?;)+ };
    }
    macro_rules! functions {
        ($($function:path),+) => { $(module.add_function(wrap_pyfunction!($function, module)?)?;)+ };
    }
    classes!(
        crash::CrashTest,
        foreign::Buffer,
        foreign::Unit,
        layer::FlashHandle,
        parts::MapEntries,
        parts::PlaneWear,
        replay::Replay,
        scored::Kinds,
        serve::Server,
        simulation::Columns,
        simulation::SharedDrive,
        simulation::Simulation,
        target::Target
    );
    functions!(
        config_bundled,
        config_check,
        config_json,
        config_of_json,
        config_read,
        config_with,
        devices,
        memory_left,
        memory_needed,
        policies,
        precondition_read,
        schema_options,
        schema_run,
        settings,
        settings_schema,
        share_read,
        size_read,
        statistics::statistics,
        statistics::statistics_distances,
        time_read,
        trace_columns,
        trace_convert,
        trace_fit,
        trace_formats,
        trace_info,
        trace_merge,
        workload_columns,
        workload_read,
        workloads
    );
    Ok(())
}
