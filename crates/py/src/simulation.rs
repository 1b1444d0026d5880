//! A run controlled from Python: stepped, watched, reported, saved.

use crate::errors::{PolicyError, SavedStateError, WorkloadError, check_room, guarded, interruptible, run_error};
use crate::foreign::{Given, Handed};
use crate::source::{SourceText, open_error};
use flashwright_block::Effects;
use flashwright_sim::{
    Made, OptionsError, Phase, Preconditioned, RequestColumns, RunError, RunOptions, RunReport, Snapshot, Snapshots,
    Source, WindowRow,
};
use flashwright_ssd::{Config, DriveConfig, Keeps, Ssd, memory_needed};
use numpy::{IntoPyArray, PyArray1, PyArray2};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, TryLockError};

/// Copies of a run's tables and rows that are in memory at a time while it is saved: as they are, compressed, and with
/// the description of the source.
const SAVED_COPIES: usize = 3;

struct State {
    run: flashwright_sim::Simulation,
    source: Source,
    text: SourceText,
    options: RunOptions,
    policies: Given,
    /// Where it finds or leaves the drive of other runs that begin alike.
    shared: Option<SharedDrive>,
}

/// The drive that one of several runs preconditioned last for the others: one, so that memory holds no more than that.
#[pyclass(module = "flashwright._core", frozen)]
#[derive(Clone, Default)]
pub struct SharedDrive(Arc<Mutex<Option<Box<Preconditioned>>>>);

#[pymethods]
impl SharedDrive {
    #[new]
    fn new() -> Self {
        Self::default()
    }
}

/// What a saved run holds beside itself.
#[derive(Deserialize, Serialize)]
struct Kept {
    source: SourceText,
    options: RunOptions,
}

impl State {
    /// What makes the run again, as far as the core knows it.
    fn made(&self) -> Made {
        let json = |value: Result<serde_json::Value, serde_json::Error>| value.expect("it is plain data");
        Made {
            source_digest: crate::source_digest().to_owned(),
            source: json(serde_json::to_value(self.text.kept())),
            options: json(serde_json::to_value(&self.options)),
            trace_sha256: None,
            command: None,
            platform: None,
        }
    }

    /// What the requests depend on beside drive and seed.
    fn source_name(&self) -> String {
        serde_json::to_string(&self.text.kept()).expect("it is plain data")
    }

    /// Begins with the drive that another run preconditioned, if it fits; else hands on its own.
    fn share(&mut self, of: &SharedDrive) -> PyResult<()> {
        let name = self.source_name();
        let mut shared = of.0.lock().expect("nothing that holds it panics");
        if let Some(drive) = shared.as_deref()
            && self
                .run
                .take_over(drive, &mut self.source, &name)
                .map_err(|error| run_error(&error, self.text.is_trace()))?
        {
            return Ok(());
        }
        *shared = None;
        self.run.hand_on(&name);
        Ok(())
    }
}

/// One run.
#[pyclass(module = "flashwright._core", frozen)]
pub struct Simulation {
    state: Mutex<State>,
    /// Whether it has policies in Python.
    calls_python: bool,
}

/// Phase, amount done in it, its total, share of the source, requests in total.
type Progress = (&'static str, u64, Option<u64>, Option<f64>, u64);

const NOT_SAVED: &str =
    "the run can't be saved: its workload reacts to the drive and can't be fast-forwarded; let it run to its end";

impl State {
    fn can_be_saved(&self) -> PyResult<()> {
        if self.source.is_interactive() || !self.source.tenants().is_empty() {
            return Err(SavedStateError::new_err(NOT_SAVED));
        }
        if !self.policies.is_empty() {
            let what = format!(
                "the run can't be saved: {} is written in Python, and its state is not part of a saved run",
                self.policies.names()
            );
            return Err(SavedStateError::new_err((what, "leave out the checkpoint and let the run finish")));
        }
        if self.run.ssd().has_foreign_policies() {
            let scheme = self.run.ssd().config().ftl.scheme.listed().name;
            let what = format!("the run can't be saved: the state of the layer {scheme} is not part of a saved run");
            return Err(SavedStateError::new_err((what, "leave out the checkpoint and let the run finish")));
        }
        if self.run.requests_taken() {
            return Err(SavedStateError::new_err((
                "the run can't be saved: rows of its requests were taken out of it",
                "leave out the checkpoint, or take no rows before the run has ended",
            )));
        }
        Ok(())
    }
}

fn open(config: &DriveConfig, source: &str, settings: &str, policies: Vec<Handed>) -> PyResult<State> {
    let bad = |error: serde_json::Error| WorkloadError::new_err(format!("settings of the run: {error}"));
    let text: SourceText = serde_json::from_str(source).map_err(bad)?;
    let options: RunOptions = serde_json::from_str(settings).map_err(bad)?;
    let (policies, handed) = Given::new(policies, config);
    let ssd = Ssd::with_policies(config, options.seed(), options.verifies(), &handed)
        .map_err(|error| run_error(&error.into(), false))?;
    policies.check()?;
    let spec = text.spec()?;
    let source = spec.open(&ssd, options.seed()).map_err(|error| open_error(&error))?;
    let run = options.run(ssd, &spec, &source).map_err(|error| match error {
        OptionsError::Run(error) => run_error(&error, false),
        OptionsError::Option { what, hint: Some(hint) } => WorkloadError::new_err((what, hint)),
        error => WorkloadError::new_err(error.to_string()),
    })?;
    Ok(State { run, source, text, options, policies, shared: None })
}

#[pymethods]
impl Simulation {
    #[new]
    #[pyo3(signature = (config, source, settings, policies, shared = None))]
    fn new(
        py: Python<'_>,
        config: String,
        source: String,
        settings: String,
        policies: Vec<Handed>,
        shared: Option<&SharedDrive>,
    ) -> PyResult<Self> {
        let shared = shared.cloned();
        let state = interruptible(py, move || {
            let config = Config::from_toml(&config, "config").map_err(crate::config_error)?;
            let mut state = open(&config, &source, &settings, policies)?;
            if let Some(drive) = &shared {
                state.share(drive)?;
            }
            state.shared = shared;
            Ok(state)
        })?;
        Ok(Self::of(state))
    }

    /// Continues by about `budget` pages or requests; returns true when the run has ended.
    fn step(&self, py: Python<'_>, budget: u64) -> PyResult<bool> {
        self.with(py, |state| {
            let from_trace = state.text.is_trace();
            let result = state.run.step(&mut state.source, budget);
            if let Some(shared) = &state.shared
                && let Some(drive) = state.run.take_preconditioned()
            {
                *shared.0.lock().expect("nothing that holds it panics") = Some(drive);
            }
            state.policies.check()?;
            result.map_err(|error| run_error(&error, from_trace))
        })
    }

    /// Phase, pages or requests done in it and in total, share of the source that was read, requests played.
    fn progress(&self, py: Python<'_>) -> PyResult<Progress> {
        self.with(py, |state| {
            let progress = state.run.progress(&state.source);
            let phase = match progress.phase {
                Phase::Precondition => "precondition",
                Phase::Settling => "settling",
                Phase::Warmup => "warmup",
                Phase::Measured => "measured",
                Phase::Done => "done",
            };
            Ok((phase, progress.done, progress.total, progress.share, progress.requests))
        })
    }

    /// The result so far; none before measuring began.
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let report = self.with(py, |state| {
            check_room(state.run.report_bytes())?;
            let (notes, application) = (state.source.notes(), state.source.application());
            let warnings = state.source.warnings();
            Ok(state.run.report().map(|mut report| {
                report.report.workload_notes = notes;
                // What was played comes before how it went.
                report.report.warnings.splice(..0, warnings);
                report.report.application = application;
                report.report.run.made = Some(state.made());
                state.policies.tell(&mut report.report);
                report
            }))
        })?;
        report.map(|report| as_dict(py, report)).transpose()
    }

    /// The configuration as TOML.
    fn config(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |state| Ok(state.run.ssd().config().to_toml()))
    }

    /// Whether a row is kept for every request.
    fn keeps_requests(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |state| Ok(state.run.settings().keep_requests))
    }

    /// The rows of the requests that completed since the last call, as columns, and what made them as JSON, in the names of
    /// a report; none before measuring began, or where no rows are kept. Reports have no rows from then on.
    fn take_requests<'py>(&self, py: Python<'py>) -> PyResult<Option<(Bound<'py, PyDict>, String)>> {
        let taken = self.with(py, |state| {
            let Some(rows) = state.run.take_requests() else { return Ok(None) };
            let made_by = serde_json::json!({
                "version": env!("CARGO_PKG_VERSION"),
                "config": { "name": state.run.ssd().config().name },
                "workload": state.run.settings().workload,
                "workload_notes": state.source.notes(),
                "seed": state.run.settings().seed.0,
            });
            Ok(Some((rows, made_by.to_string())))
        })?;
        taken.map(|(rows, made_by)| Ok((requests(py, rows)?, made_by))).transpose()
    }

    /// Whether rows of consecutive requests are kept.
    fn keeps_closeup(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |state| Ok(state.run.settings().closeup.is_some()))
    }

    /// Erases of all blocks since the drive was new, and pages and bytes that the host has written since then.
    fn wear(&self, py: Python<'_>) -> PyResult<(u64, u64, u64)> {
        self.with(py, |state| Ok(state.run.wear()))
    }

    /// Erases of each block since the drive was new.
    fn erases_per_block<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        Ok(self.with(py, |state| Ok(state.run.erases_per_block()))?.into_pyarray(py))
    }

    /// Raises an error for a run that can't be saved, before any time is spent on it.
    fn expect_to_save(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |state| state.can_be_saved())
    }

    /// The whole run, including the description of its source; `sealed.py` adds checksum and version.
    fn save(&self, py: Python<'_>) -> PyResult<Vec<u8>> {
        self.with(py, |state| {
            state.can_be_saved()?;
            let config = state.run.ssd().config();
            let tables = usize::try_from(memory_needed(config, Keeps::Nothing)).unwrap_or(usize::MAX);
            check_room((tables + state.run.report_bytes()).saturating_mul(SAVED_COPIES))?;
            let kept = Kept { source: state.text.kept(), options: state.options.clone() };
            let text = serde_json::to_vec(&kept)
                .map_err(|error| SavedStateError::new_err(format!("the run can't be saved: {error}")))?;
            let length = u64::try_from(text.len()).unwrap_or(u64::MAX).to_le_bytes();
            Ok([length.as_slice(), &text, &state.run.save()].concat())
        })
    }

    /// Restores a saved run and fast-forwards it to its position. The bytes are those that `save` returned, as verified
    /// by their checksum.
    #[staticmethod]
    fn load(py: Python<'_>, bytes: Vec<u8>, path: String) -> PyResult<Self> {
        let state = interruptible(py, move || {
            let fail = |what: &str| SavedStateError::new_err(format!("{path}: the saved run is damaged: {what}"));
            let parts = bytes
                .split_first_chunk::<8>()
                .and_then(|(length, rest)| rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?));
            let (text, saved) = parts.ok_or_else(|| fail("it ends too early"))?;
            let Kept { source: text, options } =
                serde_json::from_slice(text).map_err(|error| fail(&error.to_string()))?;
            let failed = |error: RunError| run_error(&error, text.is_trace());
            let mut run = flashwright_sim::Simulation::load_without_source(saved, &path).map_err(failed)?;
            let mut source = text.spec()?.open(run.ssd(), run.settings().seed).map_err(|error| open_error(&error))?;
            run.rewind(&mut source).map_err(failed)?;
            Ok(State { run, source, text, options, policies: Given::none(), shared: None })
        })?;
        Ok(Self::of(state))
    }
}

impl Simulation {
    fn of(state: State) -> Self {
        Self { calls_python: !state.policies.is_empty(), state: Mutex::new(state) }
    }

    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut State) -> PyResult<T> + Send) -> PyResult<T> {
        guarded(py, || {
            let found = match self.state.try_lock() {
                // Its policies call Python, and what they call may ask this run: whoever waited then would wait for good.
                Err(TryLockError::WouldBlock) if self.calls_python => {
                    return Err(PolicyError::new_err((
                        "the run is at work, and its policies can't ask it",
                        "let a policy keep for itself what it needs to know",
                    )));
                }
                Err(TryLockError::WouldBlock) => self.state.lock().map_err(TryLockError::from),
                found => found,
            };
            // After a panic the state can't be trusted, and the next call raises an error.
            let mut state = found.expect("no step before this one panicked");
            work(&mut state)
        })
    }
}

/// What a report holds beside its figures, until arrays are made of it: those take NumPy, which most commands do without.
#[pyclass(module = "flashwright._core", frozen)]
pub struct Columns(Mutex<Option<RunReport>>);

#[pymethods]
impl Columns {
    /// The columns as arrays; they can be taken once.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let report = self.0.lock().expect("nothing panics between lock and release").take();
        arrays(py, report.ok_or_else(|| PyRuntimeError::new_err("the columns have been taken"))?)
    }
}

/// A report: its figures as text, and its columns.
pub fn as_dict(py: Python<'_>, report: RunReport) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("json", report.report.to_json())?;
    dict.set_item("columns", Bound::new(py, Columns(Mutex::new(Some(report))))?)?;
    Ok(dict)
}

/// The columns of a report as arrays.
fn arrays(py: Python<'_>, report: RunReport) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("windows", windows(py, &report.windows)?)?;
    dict.set_item("requests", report.requests.map(|columns| requests(py, columns)).transpose()?)?;
    let closeup = report.closeup.map(|closeup| {
        let columns = requests(py, closeup.rows)?;
        columns.set_item("request", closeup.request.into_pyarray(py))?;
        Ok::<_, PyErr>(columns)
    });
    dict.set_item("closeup", closeup.transpose()?)?;
    dict.set_item("snapshots", report.snapshots.map(|found| snapshots(py, &found)).transpose()?)?;
    dict.set_item("erases_per_block", report.erases_per_block.into_pyarray(py))?;
    dict.set_item("valid_per_block", report.valid_per_block.into_pyarray(py))?;
    let distribution = PyDict::new(py);
    for (name, points) in ["all", "read", "write"].into_iter().zip(report.response_distribution) {
        let (times, shares): (Vec<u64>, Vec<f64>) = points.into_iter().unzip();
        distribution.set_item(name, (times.into_pyarray(py), shares.into_pyarray(py)))?;
    }
    dict.set_item("response_distribution", distribution)?;
    Ok(dict)
}

/// Blocks per cell, the moments, and a row of cells for each of them.
fn snapshots<'py>(py: Python<'py>, found: &Snapshots) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let rows =
        |of: fn(&Snapshot) -> &Vec<f32>| -> Vec<Vec<f32>> { found.taken.iter().map(|one| of(one).clone()).collect() };
    dict.set_item("joined", found.joined)?;
    dict.set_item("requests_end", found.taken.iter().map(|one| one.requests_end).collect::<Vec<_>>().into_pyarray(py))?;
    dict.set_item("time_end_ns", found.taken.iter().map(|one| one.time_end_ns).collect::<Vec<_>>().into_pyarray(py))?;
    dict.set_item("erases", PyArray2::from_vec2(py, &rows(|one| &one.erases)).expect("rows are of one length"))?;
    dict.set_item("valid", PyArray2::from_vec2(py, &rows(|one| &one.valid)).expect("rows are of one length"))?;
    Ok(dict)
}

/// Columns of the time series. Values that do not apply to a window are NaN, which Arrow turns into null.
#[allow(clippy::cast_precision_loss)] // nanoseconds far below 2^53
fn windows<'py>(py: Python<'py>, rows: &[WindowRow]) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let counts = |of: fn(&WindowRow) -> u64| rows.iter().map(of).collect::<Vec<u64>>().into_pyarray(py);
    let figures = |of: fn(&WindowRow) -> Option<f64>| {
        rows.iter().map(|row| of(row).unwrap_or(f64::NAN)).collect::<Vec<f64>>().into_pyarray(py)
    };
    dict.set_item("requests_end", counts(|row| row.of.requests_end))?;
    dict.set_item("time_end_ns", counts(|row| row.of.time_end_ns))?;
    dict.set_item("requests", counts(|row| row.of.requests))?;
    dict.set_item("pages_read", counts(|row| row.flash.pages_read))?;
    dict.set_item("pages_written", counts(|row| row.flash.pages_written))?;
    dict.set_item("programs", counts(|row| row.flash.programs))?;
    dict.set_item("programs_gc", counts(|row| row.flash.programs_gc))?;
    dict.set_item("reads_flash", counts(|row| row.flash.reads_flash))?;
    dict.set_item("erases", counts(|row| row.flash.erases))?;
    dict.set_item("collections", counts(|row| row.flash.collections))?;
    dict.set_item("victim_pages_valid_mean", figures(|row| row.flash.victim_pages_valid_mean()))?;
    dict.set_item("write_amplification", figures(|row| row.flash.write_amplification()))?;
    dict.set_item("response_mean_ns", figures(|row| row.of.response_mean_ns()))?;
    dict.set_item("response_p99_ns", figures(|row| row.of.response_p99_ns.map(|nanos| nanos as f64)))?;
    dict.set_item("iops", figures(|row| row.of.iops()))?;
    dict.set_item("power_w", figures(WindowRow::power_w))?;
    dict.set_item("blocks_worn_out", counts(|row| row.flash.blocks_worn_out))?;
    Ok(dict)
}

fn requests(py: Python<'_>, columns: RequestColumns) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    macro_rules! move_columns {
        ($($name:ident),+) => { $(dict.set_item(stringify!($name), columns.$name.into_pyarray(py))?;)+ };
    }
    move_columns!(arrival_ns, start_ns, completion_ns, kind, lpn, pages);
    for (name, column) in Effects::NAMES.into_iter().zip(columns.effects) {
        dict.set_item(name, column.into_pyarray(py))?;
    }
    Ok(dict)
}
