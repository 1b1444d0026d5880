//! Translation layers written in Python, behind the adapter for layers from outside.
//!
//! During a call the guarded flash moves into the object that the layer holds, and back when it returns, as the tables of policies do.

use crate::errors::{OutOfSpaceError, PolicyError};
use crate::foreign::{Maker, Method, NOT_BEGUN, Shared, Shown, described, held, number, opened};
use flashwright_ftl::{Cause, DecideFtl, FtlDrive, GuardedFlash, LpnRun, MakeFtl, OwnSettings};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::fmt;
use std::sync::{Arc, Mutex};

const CAUSES: [(&str, Cause); 7] = [
    ("host", Cause::Host),
    ("gc", Cause::Gc),
    ("merge", Cause::Merge),
    ("padding", Cause::Padding),
    ("translation", Cause::Translation),
    ("gc-translation", Cause::GcTranslation),
    ("wear", Cause::Wear),
];

fn cause_of(text: &str) -> Result<Cause, String> {
    CAUSES.iter().find(|(name, _)| *name == text).map(|(_, cause)| *cause).ok_or_else(|| {
        let names = CAUSES.map(|(name, _)| name).join(", ");
        format!("cause: found {text:?}, expected one of {names}")
    })
}

/// The flash of a drive, as a translation layer in Python sees it.
#[pyclass(module = "flashwright._core", name = "Flash", frozen)]
pub struct FlashHandle {
    shown: Mutex<Shown<GuardedFlash, ()>>,
}

impl FlashHandle {
    fn new() -> Self {
        Self { shown: Shown::new() }
    }

    fn with<R>(&self, step: impl FnOnce(&mut GuardedFlash) -> Result<R, String>) -> PyResult<R> {
        let mut shown = opened(&self.shown, "flash")?;
        let flash = shown.tables.as_mut().ok_or_else(|| {
            PolicyError::new_err("flash answers only while the drive calls the layer; lookup and figures go without it")
        })?;
        step(flash).map_err(PolicyError::new_err)
    }
}

#[pymethods]
impl FlashHandle {
    #[getter]
    fn now(&self) -> PyResult<u64> {
        self.with(|flash| Ok(flash.now()))
    }
    fn valid(&self, block: i64) -> PyResult<u32> {
        self.with(|flash| flash.valid(block))
    }
    fn valid_in<'py>(&self, py: Python<'py>, plane: i64) -> PyResult<Bound<'py, PyArray1<i64>>> {
        self.with(|flash| Ok(PyArray1::from_iter(py, flash.valid_in(plane)?.map(i64::from))))
    }
    fn written(&self, block: i64) -> PyResult<u32> {
        self.with(|flash| flash.written(block))
    }
    fn erases(&self, block: i64) -> PyResult<u32> {
        self.with(|flash| flash.erases(block))
    }
    fn is_good(&self, block: i64) -> PyResult<bool> {
        self.with(|flash| flash.is_good(block))
    }
    fn can_erase(&self, block: i64) -> PyResult<bool> {
        self.with(|flash| flash.can_erase(block))
    }
    fn live(&self, block: i64) -> PyResult<(Vec<u32>, Vec<u32>)> {
        self.with(|flash| flash.live(block))
    }
    #[pyo3(signature = (page, lpn, after = 0))]
    fn read(&self, page: i64, lpn: i64, after: u32) -> PyResult<u32> {
        self.with(|flash| flash.read(page, lpn, after))
    }
    fn read_unmapped(&self, lpn: i64) -> PyResult<()> {
        self.with(|flash| flash.read_unmapped(lpn))
    }
    #[pyo3(signature = (page, cause, after = 0))]
    fn read_internal(&self, page: i64, cause: &str, after: u32) -> PyResult<u32> {
        self.with(|flash| flash.read_internal(page, cause_of(cause)?, after))
    }
    #[pyo3(signature = (page, owner, cause = "host", after = 0))]
    fn program(&self, page: i64, owner: i64, cause: &str, after: u32) -> PyResult<u32> {
        self.with(|flash| flash.program(page, owner, cause_of(cause)?, after))
    }
    #[pyo3(signature = (pages, to, cause = "gc", after = 0))]
    #[allow(clippy::needless_pass_by_value)] // as Python passes it
    fn copy(&self, pages: Vec<i64>, to: i64, cause: &str, after: u32) -> PyResult<Vec<u32>> {
        self.with(|flash| flash.copy(&pages, to, cause_of(cause)?, after))
    }
    #[pyo3(signature = (block, cause = "gc"))]
    fn erase(&self, block: i64, cause: &str) -> PyResult<()> {
        self.with(|flash| flash.erase(block, cause_of(cause)?))
    }
    fn retire(&self, block: i64) -> PyResult<()> {
        self.with(|flash| flash.retire(block))
    }
    fn forget(&self, lpn: i64) -> PyResult<()> {
        self.with(|flash| flash.forget(lpn))
    }
    /// A copy of a layer gets a handle of its own from the drive that it serves.
    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
        Self::new()
    }
}

const METHODS: [&str; 7] = ["read", "write", "trim", "clean", "lookup", "figures", "reset_figures"];
const READ: usize = 0;
const WRITE: usize = 1;
const TRIM: usize = 2;
const CLEAN: usize = 3;
const LOOKUP: usize = 4;
const FIGURES: usize = 5;
const RESET_FIGURES: usize = 6;

struct Begun {
    instance: Py<PyAny>,
    methods: [Method; METHODS.len()],
    handle: Py<FlashHandle>,
}

struct Layer {
    shared: Arc<Shared>,
    begun: Option<Begun>,
}

impl fmt::Debug for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shared.handed.name)
    }
}

/// Lends the flash to the handle of a layer while it is called.
fn lending<R>(
    py: Python<'_>,
    handle: &Py<FlashHandle>,
    flash: &mut Box<GuardedFlash>,
    call: impl FnOnce() -> R,
) -> Result<R, String> {
    let shown = &handle.get().shown;
    opened(shown, "flash").map_err(|error| error.to_string())?.take_from(flash);
    let answer = call();
    held(py, shown).give_back(flash);
    Ok(answer)
}

impl MakeFtl for Maker {
    fn name(&self) -> &str {
        &self.0.handed.name
    }
    fn open_blocks(&self) -> u32 {
        self.0.handed.open_blocks
    }
    fn cleans(&self) -> bool {
        self.0.handed.cleans
    }
    fn make(
        &self,
        mut drive: FtlDrive,
        _: &OwnSettings,
        flash: &mut Box<GuardedFlash>,
    ) -> Result<Box<dyn DecideFtl>, String> {
        let seed = flashwright_block::below(&mut drive.rng, 1 << 63);
        let shared = Arc::clone(&self.0);
        let begun = Python::attach(|py| {
            let handle = Py::new(py, FlashHandle::new()).ok()?;
            let about = |about: &Bound<'_, PyDict>| {
                let geometry = &drive.geometry;
                let of = [
                    ("logical_pages", drive.logical_pages),
                    ("channels", geometry.channels()),
                    ("dies_per_channel", geometry.dies_per_channel()),
                    ("planes_per_die", geometry.planes_per_die()),
                    ("blocks_per_plane", geometry.blocks_per_plane()),
                    ("pages_per_block", geometry.pages_per_block()),
                    ("free_blocks_min", drive.free_blocks_min),
                    ("entry_bytes", drive.entry_bytes),
                ];
                of.into_iter().try_for_each(|(name, value)| about.set_item(name, value))?;
                about.set_item("page_bytes", geometry.page_size().0)?;
                about.set_item("plane_order", PyTuple::new(py, &drive.plane_order)?)?;
                about.set_item("flash", &handle)
            };
            let made = lending(py, &handle, flash, || shared.begin_with(seed, about, METHODS)).ok()??;
            Some(Begun { instance: made.0, methods: made.1, handle })
        });
        Ok(Box::new(Layer { shared, begun }))
    }
}

impl Layer {
    fn begun(&self) -> Result<&Begun, String> {
        self.begun.as_ref().ok_or_else(|| NOT_BEGUN.to_owned())
    }

    /// Calls a method with pages of the host, and returns whether they have a place.
    fn ask(&self, method: usize, arguments: (u32, u32), flash: &mut Box<GuardedFlash>) -> Result<bool, String> {
        let Begun { methods, handle, .. } = self.begun()?;
        Python::attach(|py| {
            let called = lending(py, handle, flash, || self.shared.called(py, &methods[method], arguments))?;
            match called {
                Ok(_) => Ok(true),
                Err(error) if method == WRITE && error.is_instance_of::<OutOfSpaceError>(py) => Ok(false),
                Err(error) => Err(self.shared.raised(py, methods[method].name, error)),
            }
        })
    }
}

impl DecideFtl for Layer {
    fn read(&mut self, run: LpnRun, flash: &mut Box<GuardedFlash>) -> Result<(), String> {
        self.ask(READ, (run.first.0, run.pages), flash).map(|_| ())
    }
    fn write(&mut self, run: LpnRun, flash: &mut Box<GuardedFlash>) -> Result<bool, String> {
        self.ask(WRITE, (run.first.0, run.pages), flash)
    }
    fn trim(&mut self, run: LpnRun, flash: &mut Box<GuardedFlash>) -> Result<(), String> {
        self.ask(TRIM, (run.first.0, run.pages), flash).map(|_| ())
    }
    fn clean(&mut self, plane: u32, budget: u32, flash: &mut Box<GuardedFlash>) -> Result<(), String> {
        self.ask(CLEAN, (plane, budget), flash).map(|_| ())
    }
    fn lookup(&self, lpn: u32) -> Result<Option<i64>, String> {
        Python::attach(|py| {
            let answer = self.shared.ask(py, &self.begun()?.methods[LOOKUP], (lpn,))?;
            if answer.is_none() {
                return Ok(None);
            }
            number(&answer, "lookup", "a page, or None").map(Some)
        })
    }
    fn figures(&self) -> Result<Vec<(String, f64)>, String> {
        Python::attach(|py| {
            let answer = self.shared.ask(py, &self.begun()?.methods[FIGURES], ())?;
            let wrong = || format!("figures answered {}, expected numbers by name", described(&answer));
            let figures = answer.cast::<PyDict>().map_err(|_| wrong())?;
            figures
                .iter()
                .map(|(name, value)| Some((name.extract().ok()?, value.extract().ok()?)))
                .collect::<Option<_>>()
                .ok_or_else(wrong)
        })
    }
    fn reset_figures(&mut self) -> Result<(), String> {
        Python::attach(|py| self.shared.ask(py, &self.begun()?.methods[RESET_FIGURES], ()).map(|_| ()))
    }
    fn again(&self) -> Box<dyn DecideFtl> {
        let shared = Arc::clone(&self.shared);
        let instance = self.begun.as_ref().map(|begun| &begun.instance);
        let begun = shared.copied(instance, METHODS).and_then(|(instance, methods)| {
            let handle = Python::attach(|py| {
                let handle = Py::new(py, FlashHandle::new())?;
                instance.bind(py).setattr("flash", &handle).map(|()| handle)
            });
            Some(Begun { instance, methods, handle: handle.ok()? })
        });
        Box::new(Self { shared, begun })
    }
}
