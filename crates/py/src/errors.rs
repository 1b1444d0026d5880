//! Errors of the crates as the exceptions of `flashwright/errors.py`.

use flashwright_block::{IoError, MemoryEnded, room_for};
use flashwright_sim::RunError;
use flashwright_ssd::SsdError;
use flashwright_workload::trace::TraceError as Trace;
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pyo3::import_exception!(flashwright.errors, ConfigError);
pyo3::import_exception!(flashwright.errors, WorkloadError);
pyo3::import_exception!(flashwright.errors, TraceError);
pyo3::import_exception!(flashwright.errors, DeviceError);
pyo3::import_exception!(flashwright.errors, WornOutError);
pyo3::import_exception!(flashwright.errors, VerifyError);
pyo3::import_exception!(flashwright.errors, SavedStateError);
pyo3::import_exception!(flashwright.errors, TargetError);
pyo3::import_exception!(flashwright.errors, ServeError);
pyo3::import_exception!(flashwright.errors, PolicyError);
pyo3::import_exception!(flashwright.errors, OutOfSpaceError);
pyo3::import_exception!(flashwright.errors, InternalError);

/// A failed run; the type of a source's error depends on whether it is a trace.
pub fn run_error(error: &RunError, from_trace: bool) -> PyErr {
    let text = error.to_string();
    match error {
        RunError::Ssd(SsdError::Config(_)) => ConfigError::new_err(text),
        RunError::Source(_) if from_trace => TraceError::new_err(text),
        RunError::Source(_) => WorkloadError::new_err(text),
        RunError::NothingMeasured { .. } => {
            WorkloadError::new_err((text, "a smaller --warmup, or more passes of a trace (--repeat)"))
        }
        RunError::Saved { .. } => SavedStateError::new_err(text),
        RunError::Memory(_) => PyMemoryError::new_err(text),
        RunError::Device(error) | RunError::Precondition(error) => match error {
            IoError::WornOut { .. } => WornOutError::new_err(text),
            IoError::Violation { .. } => VerifyError::new_err(text),
            IoError::Policy { .. } => PolicyError::new_err(text),
            _ => DeviceError::new_err(text),
        },
        _ => DeviceError::new_err(text),
    }
}

/// An error of a trace. Those that say what to choose have no further hint.
pub fn trace_error(error: &Trace) -> PyErr {
    let text = error.to_string();
    match error {
        Trace::TimesGoBack { .. }
        | Trace::Implausible { .. }
        | Trace::Ambiguous { .. }
        | Trace::Archive { .. }
        | Trace::Columns { .. }
        | Trace::NothingMatched { .. } => TraceError::new_err((text, "")),
        Trace::Option { .. } => WorkloadError::new_err((text, "")),
        _ => TraceError::new_err(text),
    }
}

thread_local! {
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Panics are stored for [`guarded`] and not printed.
pub fn keep_panics() {
    std::panic::set_hook(Box::new(|info| PLACE.set(info.to_string().replace('\n', " "))));
}

/// Runs `work` without the GIL. A panic, which is always our bug, becomes an exception, and so does memory that ends.
pub fn guarded<T: Send>(py: Python<'_>, work: impl FnOnce() -> PyResult<T> + Send) -> PyResult<T> {
    py.detach(|| within_memory(work))
}

/// [`caught`], and an error where memory ends meanwhile, or ended before.
pub fn within_memory<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    check_memory()?;
    let done = caught(work)?;
    check_memory().map(|()| done)
}

/// An error where the memory of the process has ended.
pub fn check_memory() -> PyResult<()> {
    flashwright_block::check_memory().map_err(memory_ended)
}

/// An error where so many bytes can't be allocated, for what allocates them as if that never failed.
pub fn check_room(bytes: usize) -> PyResult<()> {
    room_for(bytes).map_err(memory_ended)
}

/// Memory that ended, as Python says it.
pub fn memory_ended(error: MemoryEnded) -> PyErr {
    PyMemoryError::new_err(error.to_string())
}

/// Runs `work` on a thread of its own.
pub fn spawned(work: impl FnOnce() + Send + 'static) -> PyResult<()> {
    let started = std::thread::Builder::new().spawn(work);
    started.map(drop).map_err(|error| PyMemoryError::new_err(format!("no thread can be started: {error}")))
}

/// As [`guarded`], for work that may take long and only reads: Ctrl-C is handled meanwhile and discards the rest of the
/// work.
pub fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> PyResult<T> + Send + 'static,
) -> PyResult<T> {
    let result = Arc::new(Mutex::new(None));
    let place = Arc::clone(&result);
    let put = move || *place.lock().expect("no thread panics that holds it") = Some(within_memory(work));
    wait_for(py, Box::new(put))?;
    let ended = || Err(InternalError::new_err("internal error: a thread ended without a result"));
    result.lock().expect("no thread panics that holds it").take().unwrap_or_else(ended)
}

/// Waits for `work` on a thread of its own, and handles Ctrl-C meanwhile.
fn wait_for(py: Python<'_>, work: Box<dyn FnOnce() + Send>) -> PyResult<()> {
    let (working, mut waiting) = mpsc::channel::<()>();
    spawned(move || {
        work();
        drop(working);
    })?;
    loop {
        let heard;
        (waiting, heard) = py.detach(move || {
            let heard = waiting.recv_timeout(Duration::from_millis(50));
            (waiting, heard)
        });
        match heard {
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            _ => return Ok(()),
        }
    }
}

/// What a panic says where zstd, whose memory is of the C library, found none: of data, and of a context.
const NO_MEMORY: [&str; 2] = ["not enough memory", "null pointer when creating new context"];

pub fn caught<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let place = PLACE.take();
        let wants_memory = NO_MEMORY.iter().any(|words| place.contains(words));
        Err(if wants_memory {
            memory_ended(MemoryEnded)
        } else {
            InternalError::new_err(format!("internal error: {place}"))
        })
    })
}
