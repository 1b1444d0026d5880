//! Policies written in Python, behind the adapters for policies from outside.
//!
//! During a call, the native tables move into the object that the policy reads, and back when it returns. So only
//! columns that it reads are copied, and an object that the policy keeps shows nothing afterwards. A column is a NumPy
//! array, created once and filled when it is first read in a call.

use crate::errors::PolicyError;
use crate::scored::{Scoring, reads_of};
use flashwright_block::Rng;
use flashwright_ftl::policies::placement::{HostRun, MakePlacement, MovedPages, PlacePages, PlacementContext};
use flashwright_ftl::policies::victim::{Choosing, MakeVictim, PickVictim, SealedBlocks, VictimContext};
use flashwright_ftl::{FaultCell, Foreign, LpnRun};
use flashwright_sim::{PolicyUsed, Report};
use flashwright_ssd::{BufferRules, ChooseLeaving, DriveConfig, HeldGroups, MakeManager, Policies, RamContext};
use numpy::{Element, PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PySlice};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

/// A policy as `flashwright/policies.py` passes it in.
#[derive(FromPyObject)]
pub struct Handed {
    /// The configuration key of the policy that it replaces.
    key: String,
    pub name: String,
    /// Creates and initialises an instance, given a seed and the drive's parameters.
    make: Py<PyAny>,
    /// Its description in results, as JSON text.
    about: String,
    streams: u8,
    /// Whether it is called for pages that cleaning moves.
    moves: bool,
    by_block: bool,
    keeps_reads: bool,
    reads_are_uses: bool,
    padding: bool,
    /// Whether a buffer policy is asked which pages come in.
    admits: bool,
    /// Blocks of a plane that a translation layer fills side by side, and whether it cleans where no write waits.
    pub open_blocks: u32,
    pub cleans: bool,
    /// What a victim policy that rates kinds of blocks reads of them; none if it picks.
    reads: Option<Vec<String>>,
    /// Of a replacement policy that rates entries: how many leave by one rating, 0 for a share of the cache.
    pub batch: Option<u32>,
    /// Whether a prefetch policy is told of translation pages that come and go.
    pub follows_pages: bool,
    /// Whether a schedule is asked when a die is idle, and whether it makes one round of steps at a time.
    pub idle: bool,
    pub one_at_a_time: bool,
}

/// State that the parts of one policy share.
pub struct Shared {
    pub handed: Handed,
    /// What the drive's configuration has in its place.
    replaced: String,
    calls: AtomicU64,
    fault: FaultCell,
    cause: Arc<Mutex<Option<PyErr>>>,
}

/// The policies of a run.
pub struct Given {
    shared: Vec<Arc<Shared>>,
    fault: FaultCell,
    cause: Arc<Mutex<Option<PyErr>>>,
}

impl Given {
    /// No policies.
    pub fn none() -> Self {
        Self { shared: Vec::new(), fault: FaultCell::default(), cause: Arc::default() }
    }

    /// Policies that were passed in for a drive, in the form that it is built with.
    pub fn new(handed: Vec<Handed>, config: &DriveConfig) -> (Self, Policies) {
        let (fault, cause) = (FaultCell::default(), Arc::default());
        let mut policies = Policies { ftl: Foreign { fault: fault.clone(), ..Foreign::default() }, manager: None };
        let mut given = Self { shared: Vec::new(), fault: fault.clone(), cause };
        let written = (!handed.is_empty()).then(|| json!(config.resolved()));
        for handed in handed {
            let choice = written.as_ref().and_then(|config| config.pointer(&pointer_of(&handed.key)));
            let shared = Arc::new(Shared {
                replaced: choice.and_then(Value::as_str).unwrap_or_default().to_owned(),
                handed,
                calls: AtomicU64::new(0),
                fault: fault.clone(),
                cause: Arc::clone(&given.cause),
            });
            given.shared.push(Arc::clone(&shared));
            match shared.handed.key.as_str() {
                "ftl.scheme" => policies.ftl.ftl = Some(Box::new(Maker(shared))),
                "gc.victim" => policies.ftl.victim = Some(Box::new(Maker(shared))),
                "ftl.dftl.replacement" => policies.ftl.map_cache = Some(Box::new(Maker(shared))),
                "ftl.dftl.prefetch" => policies.ftl.map_prefetch = Some(Box::new(Maker(shared))),
                "wear.policy" => policies.ftl.wear = Some(Box::new(Maker(shared))),
                "gc.schedule" => policies.ftl.schedule = Some(Box::new(Maker(shared))),
                "placement.policy" => policies.ftl.placement = Some(Box::new(Maker(shared))),
                _ => policies.manager = Some(Box::new(Maker(shared))),
            }
        }
        (given, policies)
    }

    pub fn is_empty(&self) -> bool {
        self.shared.is_empty()
    }

    /// The names of the policies.
    pub fn names(&self) -> String {
        self.shared.iter().map(|shared| shared.handed.name.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Why the run can't continue, if a policy caused it. A signal during a policy's call is raised as itself, once.
    pub fn check(&self) -> PyResult<()> {
        let Some(what) = self.fault.get() else { return Ok(()) };
        Python::attach(|py| {
            let mut cause = self.cause.lock().expect("nobody panics holding it");
            if let Some(signal) = cause.take_if(|error| !error.is_instance_of::<PyException>(py)) {
                return Err(signal);
            }
            let error = PolicyError::new_err(what.to_owned());
            error.set_cause(py, cause.as_ref().map(|cause| cause.clone_ref(py)));
            Err(error)
        })
    }

    /// Adds the policies' names to the configuration in a result.
    pub fn tell(&self, report: &mut Report) {
        report.policies = self.shared.iter().map(|shared| shared.used()).collect();
        for shared in &self.shared {
            if let Some(value) = report.config.pointer_mut(&pointer_of(&shared.handed.key)) {
                *value = json!(shared.handed.name);
            }
        }
    }
}

impl Shared {
    /// Its description in a result.
    fn used(&self) -> PolicyUsed {
        let about = serde_json::from_str::<PolicyUsed>(&self.handed.about).expect("written by policies.py");
        PolicyUsed { replaced: self.replaced.clone(), calls: self.calls.load(Relaxed), ..about }
    }
}

/// Where JSON of a configuration has a key.
fn pointer_of(key: &str) -> String {
    format!("/{}", key.replace('.', "/"))
}

impl Shared {
    /// Calls a method of an instance and counts the call.
    pub fn ask<'py, A: pyo3::call::PyCallArgs<'py>>(
        &self,
        py: Python<'py>,
        method: &Method,
        arguments: A,
    ) -> Result<Bound<'py, PyAny>, String> {
        self.called(py, method, arguments).map_err(|error| self.raised(py, method.name, error))
    }

    /// As [`Shared::ask`], for an exception that may be an answer.
    pub fn called<'py, A: pyo3::call::PyCallArgs<'py>>(
        &self,
        py: Python<'py>,
        method: &Method,
        arguments: A,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.calls.fetch_add(1, Relaxed);
        method.bound.bind(py).call1(arguments)
    }

    /// Stores the exception and returns one line about it.
    #[cold]
    pub fn raised(&self, py: Python<'_>, method: &str, error: PyErr) -> String {
        // Before Python 3.12 the exception does not have its traceback yet.
        let traced = error.traceback(py).map_or(Ok(()), |trace| error.value(py).setattr("__traceback__", trace));
        let message = traced
            .and_then(|()| py.import("flashwright.drive.policies"))
            .and_then(|module| module.getattr("_message_of")?.call1((error.value(py),)))
            .and_then(|text| text.extract::<String>())
            .unwrap_or_else(|_| error.to_string());
        self.cause.lock().expect("nobody panics holding it").get_or_insert(error);
        format!("{method} raised {message}")
    }

    /// An initialised instance, and its methods. An instance that can't be created ends the run.
    pub fn begin_with<const N: usize>(
        &self,
        seed: u64,
        tell: impl FnOnce(&Bound<'_, PyDict>) -> PyResult<()>,
        methods: [&'static str; N],
    ) -> Option<(Py<PyAny>, [Method; N])> {
        Python::attach(|py| {
            let made = (|| {
                let about = PyDict::new(py);
                tell(&about)?;
                let instance = self.handed.make.bind(py).call1((seed, about))?;
                Ok((instance.clone().unbind(), methods_of(&instance, methods)?))
            })();
            made.map_err(|error| {
                let message = self.raised(py, "begin", error);
                self.fault.set(format!("{}: {message}", self.handed.name));
            })
            .ok()
        })
    }

    /// A copy of an instance, and its methods.
    pub fn copied<const N: usize>(
        &self,
        instance: Option<&Py<PyAny>>,
        methods: [&'static str; N],
    ) -> Option<(Py<PyAny>, [Method; N])> {
        let instance = instance?;
        Python::attach(|py| {
            let copied = (|| {
                let copy = py.import("copy")?.getattr("deepcopy")?.call1((instance.bind(py),))?;
                Ok((copy.clone().unbind(), methods_of(&copy, methods)?))
            })();
            copied
                .map_err(|error| {
                    let message = self.raised(py, "a copy", error);
                    self.fault.set(format!("{}: {message}", self.handed.name));
                })
                .ok()
        })
    }
}

/// An instance with its methods; none if it could not be created.
pub struct Instance<const N: usize> {
    pub shared: Arc<Shared>,
    names: [&'static str; N],
    begun: Option<(Py<PyAny>, [Method; N])>,
}

impl<const N: usize> Instance<N> {
    /// One that is told these counts, with a seed of its own.
    pub fn new(shared: &Arc<Shared>, rng: &mut Rng, of: &[(&str, u32)], names: [&'static str; N]) -> Self {
        let seed = flashwright_block::below(rng, 1 << 63);
        let tell = |about: &Bound<'_, PyDict>| of.iter().try_for_each(|(name, value)| about.set_item(name, value));
        Self { shared: Arc::clone(shared), names, begun: shared.begin_with(seed, tell, names) }
    }

    pub fn again(&self) -> Self {
        let instance = self.begun.as_ref().map(|(instance, _)| instance);
        Self { shared: Arc::clone(&self.shared), names: self.names, begun: self.shared.copied(instance, self.names) }
    }

    pub fn method(&self, nth: usize) -> Result<&Method, String> {
        self.begun.as_ref().map(|(_, methods)| &methods[nth]).ok_or_else(|| NOT_BEGUN.to_owned())
    }
}

impl<const N: usize> fmt::Debug for Instance<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shared.handed.name)
    }
}

/// A method of an instance.
pub struct Method {
    pub name: &'static str,
    bound: Py<PyAny>,
}

fn methods_of<const N: usize>(instance: &Bound<'_, PyAny>, names: [&'static str; N]) -> PyResult<[Method; N]> {
    let found: PyResult<Vec<Method>> =
        names.iter().map(|name| Ok(Method { name, bound: instance.getattr(*name)?.unbind() })).collect();
    Ok(found?.try_into().unwrap_or_else(|_| unreachable!("one for each name")))
}

/// A number that a method returned.
pub fn number(answer: &Bound<'_, PyAny>, method: &str, expected: &str) -> Result<i64, String> {
    if !answer.is_instance_of::<PyBool>()
        && let Ok(number) = answer.extract()
    {
        return Ok(number);
    }
    Err(format!("{method} answered {}, expected {expected}", described(answer)))
}

#[cold]
pub fn described(answer: &Bound<'_, PyAny>) -> String {
    if answer.is_none() {
        return "None".to_owned();
    }
    let kind = answer.get_type().name().map_or_else(|_| "an object".to_owned(), |name| name.to_string());
    let text = answer.repr().map_or_else(|_| String::new(), |text| text.to_string());
    let line: String = text.replace('\n', " ").chars().take(60).collect();
    format!("{line} ({kind})")
}

pub const NOT_BEGUN: &str = "the policy could not be created";

/// A NumPy array of one column, created once and refilled.
pub struct Column<T> {
    array: Option<Py<PyArray1<T>>>,
    /// The filled part, read-only, which is passed to Python; by its length, since to make one takes as long as to fill some
    /// hundred rows.
    shown: HashMap<usize, Py<PyAny>>,
    /// The call for which it was filled.
    filled: u64,
}

/// Filled parts that a column keeps.
const SHOWN_MAX: usize = 256;

impl<T> Default for Column<T> {
    fn default() -> Self {
        Self { array: None, shown: HashMap::new(), filled: 0 }
    }
}

impl<T: Element + Copy> Column<T> {
    pub fn show(
        &mut self,
        py: Python<'_>,
        call: u64,
        len: usize,
        room: usize,
        numbers: impl Iterator<Item = T>,
    ) -> PyResult<Py<PyAny>> {
        if self.array.as_ref().is_none_or(|array| array.bind(py).len().is_ok_and(|found| found < len)) {
            self.array = Some(PyArray1::zeros(py, room.max(len), false).unbind());
            self.shown.clear();
        }
        let array = self.array.as_ref().expect("just made").bind(py);
        if self.filled != call {
            let mut rows = array.try_readwrite().map_err(|error| PolicyError::new_err(error.to_string()))?;
            for (row, number) in rows.as_slice_mut()?.iter_mut().zip(numbers) {
                *row = number;
            }
            self.filled = call;
        }
        if let Some(view) = self.shown.get(&len) {
            return Ok(view.clone_ref(py));
        }
        let end = isize::try_from(len).expect("a length");
        let view = array.get_item(PySlice::new(py, 0, end, 1))?;
        view.call_method1("setflags", (false,))?;
        let view = view.unbind();
        if self.shown.len() == SHOWN_MAX {
            self.shown.clear();
        }
        self.shown.insert(len, view.clone_ref(py));
        Ok(view)
    }
}

#[allow(clippy::cast_precision_loss)] // counts far below 2^53
pub fn float(count: u64) -> f64 {
    count as f64
}

/// The data that an object shows during a call of its policy; `tables` is none at any other time.
pub struct Shown<T, C> {
    pub tables: Option<Box<T>>,
    /// A placeholder for the tables in their original place.
    spare: Option<Box<T>>,
    pub call: u64,
    pub columns: C,
}

impl<T: Default, C: Default> Shown<T, C> {
    pub fn new() -> Mutex<Self> {
        Mutex::new(Self { tables: None, spare: Some(Box::default()), call: 0, columns: C::default() })
    }
    pub fn take_from(&mut self, tables: &mut Box<T>) {
        if let Some(spare) = self.spare.take() {
            self.tables = Some(std::mem::replace(tables, spare));
            self.call += 1;
        }
    }
    pub fn give_back(&mut self, tables: &mut Box<T>) {
        if let Some(own) = self.tables.take() {
            self.spare = Some(std::mem::replace(tables, own));
        }
    }
}

/// Never waits: waiting for a lock while holding the GIL can deadlock.
pub fn opened<'a, T>(shown: &'a Mutex<T>, what: &str) -> PyResult<MutexGuard<'a, T>> {
    shown.try_lock().map_err(|_| PolicyError::new_err(format!("{what} is in use by another thread")))
}

/// Waits for another thread that reads, and lets it run meanwhile.
pub fn held<'a, T>(py: Python<'_>, shown: &'a Mutex<T>) -> MutexGuard<'a, T> {
    loop {
        match shown.try_lock() {
            Err(TryLockError::WouldBlock) => py.detach(std::thread::yield_now),
            found => return found.expect("nobody panics holding it"),
        }
    }
}

/// Shows tables while a method is asked.
pub fn shown_while<T: Default, C: Default, R>(
    py: Python<'_>,
    shown: &Mutex<Shown<T, C>>,
    what: &str,
    tables: &mut Box<T>,
    ask: impl FnOnce() -> Result<R, String>,
) -> Result<R, String> {
    opened(shown, what).map_err(|error| error.to_string())?.take_from(tables);
    let answer = ask();
    held(py, shown).give_back(tables);
    answer
}

/// Looks at tables that are shown during a method.
pub fn look_at<T, C, R>(
    shown: &Mutex<Shown<T, C>>,
    what: &str,
    method: &str,
    look: impl FnOnce(&T, &mut C, u64) -> PyResult<R>,
) -> PyResult<R> {
    let mut shown = opened(shown, what)?;
    let Shown { tables, columns, call, .. } = &mut *shown;
    look(tables.as_ref().ok_or_else(|| gone(what, method))?, columns, *call)
}

pub fn gone(what: &str, method: &str) -> PyErr {
    PolicyError::new_err(format!("{what} is valid only during {method}; copy the values that you keep"))
}

#[derive(Default)]
struct BlockColumns {
    blocks: Column<i64>,
    valid: Column<f64>,
    age: Column<f64>,
    sealed_for: Column<f64>,
    erases: Column<f64>,
    stream: Column<f64>,
}

/// The sealed blocks of a unit, as a victim policy sees them.
#[pyclass(module = "flashwright._core", frozen)]
pub struct Unit {
    shown: Mutex<Shown<SealedBlocks, BlockColumns>>,
}

impl Unit {
    fn with<R>(&self, look: impl FnOnce(&SealedBlocks, &mut BlockColumns, u64) -> PyResult<R>) -> PyResult<R> {
        look_at(&self.shown, "unit", "pick", look)
    }
}

macro_rules! block_columns {
    ($($name:ident: |$tables:ident| $numbers:expr),+ $(,)?) => {
        #[pymethods]
        impl Unit {
            $(#[getter]
            fn $name(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
                self.with(|$tables, columns, call| {
                    let (len, room) = ($tables.blocks().len(), $tables.blocks_in_unit());
                    columns.$name.show(py, call, len, room, $numbers)
                })
            })+
            #[getter]
            fn now(&self) -> PyResult<u64> {
                self.with(|tables, _, _| Ok(tables.now))
            }
            #[getter]
            fn number(&self) -> PyResult<u32> {
                self.with(|tables, _, _| Ok(tables.unit))
            }
            #[getter]
            fn pages_per_block(&self) -> PyResult<u32> {
                self.with(|tables, _, _| Ok(tables.pages_per_block))
            }
            fn __len__(&self) -> PyResult<usize> {
                self.with(|tables, _, _| Ok(tables.blocks().len()))
            }
        }
    };
}

block_columns! {
    blocks: |tables| tables.blocks().iter().map(|block| i64::from(*block)),
    valid: |tables| tables.valid().map(f64::from),
    age: |tables| tables.ages().map(float),
    sealed_for: |tables| tables.sealed_for().map(float),
    erases: |tables| tables.erases().map(f64::from),
    stream: |tables| tables.streams().map(f64::from),
}

#[derive(Default)]
struct GroupColumns {
    blocks: Column<i64>,
    pages: Column<f64>,
    dirty: Column<f64>,
    age: Column<f64>,
    held_for: Column<f64>,
}

/// The content of the RAM, as a buffer policy sees it.
#[pyclass(module = "flashwright._core", frozen)]
pub struct Buffer {
    shown: Mutex<Shown<HeldGroups, GroupColumns>>,
}

impl Buffer {
    fn with<R>(&self, look: impl FnOnce(&HeldGroups, &mut GroupColumns, u64) -> PyResult<R>) -> PyResult<R> {
        look_at(&self.shown, "buffer", "choose", look)
    }
}

macro_rules! group_columns {
    ($($name:ident: |$tables:ident| $numbers:expr),+ $(,)?) => {
        #[pymethods]
        impl Buffer {
            $(#[getter]
            fn $name(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
                self.with(|$tables, columns, call| {
                    let len = $tables.len() as usize;
                    columns.$name.show(py, call, len, len.next_power_of_two(), $numbers)
                })
            })+
            #[getter]
            fn oldest(&self) -> PyResult<u32> {
                self.with(|tables, _, _| tables.oldest().ok_or_else(|| gone("buffer", "choose")))
            }
            #[getter]
            fn now(&self) -> PyResult<u64> {
                self.with(|tables, _, _| Ok(tables.now))
            }
            #[getter]
            fn host_writes(&self) -> PyResult<u64> {
                self.with(|tables, _, _| Ok(tables.host_writes))
            }
            fn __len__(&self) -> PyResult<usize> {
                self.with(|tables, _, _| Ok(tables.len() as usize))
            }
        }
    };
}

group_columns! {
    blocks: |tables| tables.blocks().map(i64::from),
    pages: |tables| tables.pages().map(f64::from),
    dirty: |tables| tables.dirty().map(f64::from),
    age: |tables| tables.ages().map(float),
    held_for: |tables| tables.held_for().map(float),
}

/// Creates the instances of one policy.
pub struct Maker(pub Arc<Shared>);

impl MakeVictim for Maker {
    fn name(&self) -> &str {
        &self.0.handed.name
    }
    fn make(&self, unit: u32, mut context: VictimContext) -> Choosing {
        let of = [
            ("number", unit),
            ("blocks", context.blocks),
            ("pages_per_block", context.pages_per_block),
            ("streams", u32::from(context.streams)),
            ("logical_pages", context.logical_pages),
        ];
        let mut begun = |method| Instance::new(&self.0, &mut context.rng, &of, [method]);
        match &self.0.handed.reads {
            Some(reads) => Choosing::Score(Box::new(Scoring::new(begun("score"))), reads_of(reads)),
            None => Choosing::Pick(Box::new(Victim::new(begun("pick")))),
        }
    }
}

#[derive(Debug)]
struct Victim {
    instance: Instance<1>,
    unit: Option<Py<Unit>>,
}

impl Victim {
    fn new(instance: Instance<1>) -> Self {
        let unit = Python::attach(|py| Py::new(py, Unit { shown: Shown::new() })).ok();
        Self { instance, unit }
    }
}

impl PickVictim for Victim {
    fn pick(&mut self, blocks: &mut Box<SealedBlocks>) -> Result<i64, String> {
        let (pick, unit) = (self.instance.method(0)?, self.unit.as_ref().ok_or(NOT_BEGUN)?);
        Python::attach(|py| {
            let ask = || self.instance.shared.ask(py, pick, (unit,));
            let answer = shown_while(py, &unit.get().shown, "unit", blocks, ask)?;
            number(&answer, "pick", "one of unit.blocks")
        })
    }
    fn again(&self) -> Box<dyn PickVictim> {
        Box::new(Self::new(self.instance.again()))
    }
}

impl MakePlacement for Maker {
    fn name(&self) -> &str {
        &self.0.handed.name
    }
    fn streams(&self) -> u8 {
        self.0.handed.streams
    }
    fn make(&self, mut context: PlacementContext) -> Box<dyn PlacePages> {
        let of = [
            ("blocks", context.blocks),
            ("pages_per_block", context.pages_per_block),
            ("physical_pages", context.physical_pages),
            ("logical_pages", context.logical_pages),
        ];
        Box::new(Placement(Instance::new(&self.0, &mut context.rng, &of, ["host", "moved"])))
    }
}

#[derive(Debug)]
struct Placement(Instance<2>);

impl PlacePages for Placement {
    fn host(&mut self, run: &HostRun, streams: &mut Vec<i64>) -> Result<(), String> {
        let host = self.0.method(0)?;
        Python::attach(|py| {
            let answer = self.0.shared.ask(py, host, (run.first.0, run.pages, run.stream, run.now))?;
            streams_of(&answer, "host", streams)
        })
    }
    fn moved(&mut self, pages: &MovedPages, streams: &mut Vec<i64>) -> Result<(), String> {
        if !self.0.shared.handed.moves {
            streams.push(i64::from(pages.stream));
            return Ok(());
        }
        let moved = self.0.method(1)?;
        Python::attach(|py| {
            let lpns = PyArray1::from_iter(py, pages.lpns.iter().map(|lpn| i64::from(*lpn)));
            let answer = self.0.shared.ask(py, moved, (lpns, pages.stream, pages.now))?;
            streams_of(&answer, "moved", streams)
        })
    }
    fn again(&self) -> Box<dyn PlacePages> {
        Box::new(Self(self.0.again()))
    }
}

/// One stream for all pages, or a row of them: numbers, or truth values for streams 0 and 1.
fn streams_of(answer: &Bound<'_, PyAny>, method: &str, streams: &mut Vec<i64>) -> Result<(), String> {
    if let Ok(stream) = answer.extract::<bool>() {
        streams.push(i64::from(stream));
    } else if let Ok(stream) = answer.extract::<i64>() {
        streams.push(stream);
    } else if let Ok(row) = answer.extract::<PyReadonlyArray1<'_, i64>>() {
        streams.extend(row.as_array().iter());
    } else if let Ok(row) = answer.extract::<PyReadonlyArray1<'_, bool>>() {
        streams.extend(row.as_array().iter().map(|stream| i64::from(*stream)));
    } else if let Ok(row) = answer.extract::<PyReadonlyArray1<'_, u8>>() {
        streams.extend(row.as_array().iter().map(|stream| i64::from(*stream)));
    } else if let Ok(row) = answer.extract::<Vec<i64>>() {
        streams.extend(row);
    } else {
        return Err(format!(
            "{method} answered {}, expected the number of a stream, or a list or an array (int64, uint8, bool) of them",
            described(answer)
        ));
    }
    Ok(())
}

impl MakeManager for Maker {
    fn name(&self) -> &str {
        &self.0.handed.name
    }
    fn rules(&self) -> BufferRules {
        let Handed { by_block, keeps_reads, reads_are_uses, padding, admits, .. } = self.0.handed;
        BufferRules { by_block, keeps_reads, reads_are_uses, padding, admits }
    }
    fn make(&self, context: &RamContext) -> Box<dyn ChooseLeaving> {
        let mut rng = context.seed.stream("ram.manager");
        let of = [
            ("pages", context.pages),
            ("pages_per_block", context.pages_per_block),
            ("logical_pages", context.logical_pages),
        ];
        Box::new(Choice::new(Instance::new(&self.0, &mut rng, &of, ["choose", "admit"])))
    }
}

#[derive(Debug)]
struct Choice {
    instance: Instance<2>,
    buffer: Option<Py<Buffer>>,
}

impl Choice {
    fn new(instance: Instance<2>) -> Self {
        let buffer = Python::attach(|py| Py::new(py, Buffer { shown: Shown::new() })).ok();
        Self { instance, buffer }
    }
}

impl ChooseLeaving for Choice {
    fn choose(&mut self, groups: &mut Box<HeldGroups>) -> Result<i64, String> {
        let (choose, buffer) = (self.instance.method(0)?, self.buffer.as_ref().ok_or(NOT_BEGUN)?);
        Python::attach(|py| {
            let ask = || self.instance.shared.ask(py, choose, (buffer,));
            let answer = shown_while(py, &buffer.get().shown, "buffer", groups, ask)?;
            number(&answer, "choose", "one of buffer.blocks")
        })
    }
    fn admits(&mut self, run: LpnRun, is_write: bool) -> Result<bool, String> {
        let admit = self.instance.method(1)?;
        Python::attach(|py| {
            let answer = self.instance.shared.ask(py, admit, (run.first.0, run.pages, is_write))?;
            answer.extract().map_err(|_| format!("admit answered {}, expected a truth value", described(&answer)))
        })
    }
    fn again(&self) -> Box<dyn ChooseLeaving> {
        Box::new(Self::new(self.instance.again()))
    }
}
