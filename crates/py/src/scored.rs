//! Victim policies in Python that rate kinds of blocks.

use crate::errors::PolicyError;
use crate::foreign::{Column, Instance, NOT_BEGUN, Shown, described, float, look_at, shown_while};
use flashwright_ftl::policies::victim::{BlockKinds, Reads, ScoreBlocks};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use std::sync::Mutex;

#[derive(Default)]
struct KindColumns {
    valid: Column<f64>,
    age: Column<f64>,
    erases: Column<f64>,
    stream: Column<f64>,
}

/// The kinds of blocks of a unit, as a policy that rates them sees them.
#[pyclass(module = "flashwright._core", frozen)]
pub struct Kinds {
    shown: Mutex<Shown<BlockKinds, KindColumns>>,
}

impl Kinds {
    fn with<R>(&self, look: impl FnOnce(&BlockKinds, &mut KindColumns, u64) -> PyResult<R>) -> PyResult<R> {
        look_at(&self.shown, "kinds", "score", look)
    }
}

fn expect_read(is_read: bool, name: &str) -> PyResult<()> {
    let unread = || PolicyError::new_err(format!("kinds.{name}: found no '{name}' in reads, expected it there"));
    if is_read { Ok(()) } else { Err(unread()) }
}

macro_rules! kind_columns {
    ($($name:ident: |$kinds:ident| $is_read:expr, $numbers:expr),+ $(,)?) => {
        #[pymethods]
        impl Kinds {
            $(#[getter]
            fn $name(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
                self.with(|$kinds, columns, call| {
                    expect_read($is_read, stringify!($name))?;
                    let len = $kinds.valid.len();
                    columns.$name.show(py, call, len, len.next_power_of_two(), $numbers)
                })
            })+
            #[getter]
            fn now(&self) -> PyResult<u64> {
                self.with(|kinds, _, _| Ok(kinds.now))
            }
            #[getter]
            fn number(&self) -> PyResult<u32> {
                self.with(|kinds, _, _| Ok(kinds.unit))
            }
            #[getter]
            fn pages_per_block(&self) -> PyResult<u32> {
                self.with(|kinds, _, _| Ok(kinds.pages_per_block))
            }
            fn __len__(&self) -> PyResult<usize> {
                self.with(|kinds, _, _| Ok(kinds.valid.len()))
            }
        }
    };
}

kind_columns! {
    valid: |kinds| true, kinds.valid.iter().map(|valid| f64::from(*valid)),
    age: |kinds| kinds.reads.ages, kinds.ages.iter().map(|age| float(*age)),
    erases: |kinds| kinds.reads.erases, kinds.erases.iter().map(|erases| f64::from(*erases)),
    stream: |kinds| kinds.reads.streams, kinds.streams.iter().map(|stream| f64::from(*stream)),
}

/// What a policy reads, of the names that its class lists.
pub fn reads_of(names: &[String]) -> Reads {
    let has = |name: &str| names.iter().any(|listed| listed == name);
    Reads { ages: has("age"), erases: has("erases"), streams: has("stream") }
}

/// Adds the scores that `score` answered.
pub fn scores_of(answer: &Bound<'_, PyAny>, of: &str, scores: &mut Vec<f64>) -> Result<(), String> {
    let row = answer.extract::<PyReadonlyArray1<'_, f64>>().map_err(|_| {
        format!("score answered {}, expected an array of float64, a number for each {of}", described(answer))
    })?;
    scores.extend(row.as_array().iter());
    Ok(())
}

/// An instance that rates.
#[derive(Debug)]
pub struct Scoring {
    instance: Instance<1>,
    kinds: Option<Py<Kinds>>,
}

impl Scoring {
    pub fn new(instance: Instance<1>) -> Self {
        let kinds = Python::attach(|py| Py::new(py, Kinds { shown: Shown::new() })).ok();
        Self { instance, kinds }
    }
}

impl ScoreBlocks for Scoring {
    fn score(&mut self, kinds: &mut Box<BlockKinds>, scores: &mut Vec<f64>) -> Result<(), String> {
        let (score, shows) = (self.instance.method(0)?, self.kinds.as_ref().ok_or(NOT_BEGUN)?);
        Python::attach(|py| {
            let ask = || self.instance.shared.ask(py, score, (shows,));
            let answer = shown_while(py, &shows.get().shown, "kinds", kinds, ask)?;
            scores_of(&answer, "kind", scores)
        })
    }
    fn again(&self) -> Box<dyn ScoreBlocks> {
        Box::new(Self::new(self.instance.again()))
    }
}
