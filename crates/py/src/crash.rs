//! Crash tests for Python.

use crate::errors::{ConfigError, DeviceError, ServeError as ServeFailed, guarded};
use flashwright_sim::crash::{CrashError, CrashTest as Test, Recording};
use flashwright_sim::mounted_json;
use pyo3::prelude::*;
use serde_json::json;
use std::path::PathBuf;

/// A recording and the drive that it is played on.
#[pyclass(module = "flashwright._core", frozen)]
pub struct CrashTest {
    test: Test,
}

fn failed(error: &CrashError) -> PyErr {
    let text = error.to_string();
    match error {
        CrashError::Drive(_) => ConfigError::new_err(text),
        CrashError::NotKept { .. } => {
            ConfigError::new_err((text, "record a drive with recovery.mount-by = \"scan\", or set it here"))
        }
        CrashError::Image { .. } => ServeFailed::new_err((text, "")),
        _ => DeviceError::new_err(text),
    }
}

#[pymethods]
impl CrashTest {
    /// Reads a recording, and plays it once.
    #[new]
    fn new(py: Python<'_>, path: PathBuf, settings: Vec<String>) -> PyResult<Self> {
        guarded(py, || {
            let recording = Recording::read(&path).map_err(|error| {
                ServeFailed::new_err((error.to_string(), "`flashwright serve --record-data` makes recordings"))
            })?;
            Ok(Self { test: Test::new(recording, &settings).map_err(|error| failed(&error))? })
        })
    }

    /// Programs and erases in which power can fail.
    fn operations(&self) -> u64 {
        self.test.operations()
    }

    /// Requests of the recording.
    fn requests(&self) -> u64 {
        self.test.recording().requests()
    }

    /// What the client said, in order.
    fn marks(&self) -> Vec<String> {
        self.test.recording().marks().map(str::to_owned).collect()
    }

    /// Lets the power fail in an operation, and copies what the mounted drive holds to a file. Returns JSON.
    #[pyo3(signature = (operation, in_mount, image))]
    fn cut(&self, py: Python<'_>, operation: u64, in_mount: Option<u64>, image: PathBuf) -> PyResult<String> {
        guarded(py, || {
            let crashed = self.test.cut(operation, in_mount, &image).map_err(|error| failed(&error))?;
            Ok(json!({
                "cut_in_mount": crashed.cut_in_mount,
                "requests_completed": crashed.requests_completed,
                "marks": crashed.marks,
                "mounted": mounted_json(&crashed.mounted),
            })
            .to_string())
        })
    }
}
