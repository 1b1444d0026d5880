//! Smaller parts in Python: when cleaning runs, which data move for the sake of wear, which entry leaves a cached map, and which are
//! loaded ahead.

use crate::foreign::{Column, Instance, Maker, NOT_BEGUN, Shown, described, float, look_at, number, shown_while};
use crate::scored::scores_of;
use flashwright_block::Rng;
use flashwright_ftl::policies::map_cache::{
    CachedEntries, MakeMapCache, MapCacheContext, ReplaceEntries, Replacing, ScoreEntries,
};
use flashwright_ftl::policies::map_prefetch::{MakeMapPrefetch, Miss, PrefetchEntries};
use flashwright_ftl::policies::schedule::{
    CallForSteps, MakeSchedule, Moment, Occasion, ScheduleContext, ScheduleRules,
};
use flashwright_ftl::policies::wear::{LevelWear, MakeWear, WearContext, WornBlocks};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Mutex;

impl MakeSchedule for Maker {
    fn name(&self) -> &str {
        &self.0.handed.name
    }
    fn rules(&self) -> ScheduleRules {
        let (idle, one) = (self.0.handed.idle, self.0.handed.one_at_a_time);
        ScheduleRules { asked: true, needs_time: idle || one, uses_idle_time: idle, one_at_a_time: one }
    }
    fn make(&self, plane: u32, context: ScheduleContext, mut rng: Rng) -> Box<dyn CallForSteps> {
        let of = [
            ("number", plane),
            ("free_blocks_min", context.free_blocks_min),
            ("pages_per_block", context.pages_per_block),
            ("spare_blocks", context.spare_blocks),
        ];
        Box::new(Schedule(Instance::new(&self.0, &mut rng, &of, ["steps"])))
    }
}

#[derive(Debug)]
struct Schedule(Instance<1>);

impl CallForSteps for Schedule {
    fn steps(&mut self, moment: &Moment) -> Result<i64, String> {
        let method = self.0.method(0)?;
        let (occasion, pages) = match moment.occasion {
            Occasion::Written(pages) => ("written", pages),
            Occasion::Ended => ("ended", 0),
            Occasion::Idle => ("idle", 0),
        };
        Python::attach(|py| {
            let answer = self.0.shared.ask(py, method, (occasion, pages, moment.free_blocks, moment.copies))?;
            number(&answer, "steps", "a number of steps")
        })
    }
    fn again(&self) -> Box<dyn CallForSteps> {
        Box::new(Self(self.0.again()))
    }
}

#[derive(Default)]
struct WearColumns {
    wear: Column<f64>,
    valid: Column<f64>,
    sealed: Column<i64>,
    free: Column<i64>,
}

/// The blocks of a plane, as a wear policy sees them.
#[pyclass(module = "flashwright._core", frozen)]
pub struct PlaneWear {
    shown: Mutex<Shown<WornBlocks, WearColumns>>,
}

impl PlaneWear {
    fn with<R>(&self, look: impl FnOnce(&WornBlocks, &mut WearColumns, u64) -> PyResult<R>) -> PyResult<R> {
        look_at(&self.shown, "plane", "recycle", look)
    }
}

macro_rules! wear_columns {
    ($($name:ident: |$number:ident| $shown:expr),+ $(,)?) => {
        #[pymethods]
        impl PlaneWear {
            $(#[getter]
            fn $name(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
                self.with(|blocks, columns, call| {
                    let room = blocks.wear.len();
                    columns.$name.show(py, call, blocks.$name.len(), room, blocks.$name.iter().map(|$number| $shown))
                })
            })+
            #[getter]
            fn wear_max(&self) -> PyResult<u32> {
                self.with(|blocks, _, _| Ok(blocks.wear_max))
            }
            #[getter]
            fn now(&self) -> PyResult<u64> {
                self.with(|blocks, _, _| Ok(blocks.now))
            }
            #[getter]
            fn number(&self) -> PyResult<u32> {
                self.with(|blocks, _, _| Ok(blocks.plane))
            }
        }
    };
}

wear_columns! {
    wear: |wear| f64::from(*wear),
    valid: |valid| f64::from(*valid),
    sealed: |block| i64::from(*block),
    free: |block| i64::from(*block),
}

impl MakeWear for Maker {
    fn name(&self) -> &str {
        &self.0.handed.name
    }
    fn make(&self, plane: u32, context: &mut WearContext) -> Box<dyn LevelWear> {
        let of = [("number", plane), ("blocks", context.blocks)];
        let instance = Instance::new(&self.0, &mut context.rng, &of, ["recycle"]);
        Box::new(Leveling::new(instance))
    }
}

#[derive(Debug)]
struct Leveling {
    instance: Instance<1>,
    plane: Option<Py<PlaneWear>>,
}

impl Leveling {
    fn new(instance: Instance<1>) -> Self {
        let plane = Python::attach(|py| Py::new(py, PlaneWear { shown: Shown::new() })).ok();
        Self { instance, plane }
    }
}

impl LevelWear for Leveling {
    fn recycle(&mut self, nth: u32, blocks: &mut Box<WornBlocks>) -> Result<Option<(i64, Option<i64>)>, String> {
        let (method, plane) = (self.instance.method(0)?, self.plane.as_ref().ok_or(NOT_BEGUN)?);
        Python::attach(|py| {
            let ask = || self.instance.shared.ask(py, method, (plane, nth));
            let answer = shown_while(py, &plane.get().shown, "plane", blocks, ask)?;
            if answer.is_none() {
                return Ok(None);
            }
            if let Ok((block, into)) = answer.extract::<(i64, i64)>() {
                return Ok(Some((block, Some(into))));
            }
            let block = answer.extract::<i64>().map_err(|_| {
                format!(
                    "recycle answered {}, expected None, a block, or a block and the one that takes its pages",
                    described(&answer)
                )
            })?;
            Ok(Some((block, None)))
        })
    }
    fn again(&self) -> Box<dyn LevelWear> {
        Box::new(Self::new(self.instance.again()))
    }
}

impl MakeMapCache for Maker {
    fn name(&self) -> &str {
        &self.0.handed.name
    }
    fn make(&self, context: MapCacheContext, mut rng: Rng) -> Replacing {
        let of = [("entries", context.entries), ("entries_per_page", context.entries_per_page)];
        match self.0.handed.batch {
            Some(batch) => {
                let instance = Instance::new(&self.0, &mut rng, &of, ["score"]);
                Replacing::Score(Box::new(ScoredReplacement::new(instance)), batch)
            }
            None => {
                let methods = ["loaded", "used", "left", "evict"];
                Replacing::Following(Box::new(Replacement(Instance::new(&self.0, &mut rng, &of, methods))))
            }
        }
    }
}

#[derive(Default)]
struct EntryColumns {
    page: Column<i64>,
    age: Column<f64>,
    held_for: Column<f64>,
    uses: Column<f64>,
    dirty: Column<bool>,
}

/// The entries of a cached map, as a policy that rates them sees them.
#[pyclass(module = "flashwright._core", frozen)]
pub struct MapEntries {
    shown: Mutex<Shown<CachedEntries, EntryColumns>>,
}

impl MapEntries {
    fn with<R>(&self, look: impl FnOnce(&CachedEntries, &mut EntryColumns, u64) -> PyResult<R>) -> PyResult<R> {
        look_at(&self.shown, "entries", "score", look)
    }
}

macro_rules! entry_columns {
    ($($name:ident: |$entries:ident| $numbers:expr),+ $(,)?) => {
        #[pymethods]
        impl MapEntries {
            $(#[getter]
            fn $name(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
                self.with(|$entries, columns, call| {
                    let len = $entries.len();
                    columns.$name.show(py, call, len, len.next_power_of_two(), $numbers)
                })
            })+
            #[getter]
            fn now(&self) -> PyResult<u64> {
                self.with(|entries, _, _| Ok(entries.now))
            }
            fn __len__(&self) -> PyResult<usize> {
                self.with(|entries, _, _| Ok(entries.len()))
            }
        }
    };
}

entry_columns! {
    page: |entries| entries.pages().map(i64::from),
    age: |entries| entries.ages().map(float),
    held_for: |entries| entries.held_for().map(float),
    uses: |entries| entries.uses().map(f64::from),
    dirty: |entries| entries.dirty(),
}

#[derive(Debug)]
struct ScoredReplacement {
    instance: Instance<1>,
    entries: Option<Py<MapEntries>>,
}

impl ScoredReplacement {
    fn new(instance: Instance<1>) -> Self {
        let entries = Python::attach(|py| Py::new(py, MapEntries { shown: Shown::new() })).ok();
        Self { instance, entries }
    }
}

impl ScoreEntries for ScoredReplacement {
    fn score(&mut self, entries: &mut Box<CachedEntries>, scores: &mut Vec<f64>) -> Result<(), String> {
        let (score, shows) = (self.instance.method(0)?, self.entries.as_ref().ok_or(NOT_BEGUN)?);
        Python::attach(|py| {
            let ask = || self.instance.shared.ask(py, score, (shows,));
            let answer = shown_while(py, &shows.get().shown, "entries", entries, ask)?;
            scores_of(&answer, "entry", scores)
        })
    }
    fn again(&self) -> Box<dyn ScoreEntries> {
        Box::new(Self::new(self.instance.again()))
    }
}

#[derive(Debug)]
struct Replacement(Instance<4>);

impl Replacement {
    fn tell<A: for<'py> pyo3::call::PyCallArgs<'py>>(&self, nth: usize, arguments: A) -> Result<(), String> {
        let method = self.0.method(nth)?;
        Python::attach(|py| self.0.shared.ask(py, method, arguments).map(drop))
    }
}

impl ReplaceEntries for Replacement {
    fn loaded(&mut self, slot: u32, page: u32) -> Result<(), String> {
        self.tell(0, (slot, page))
    }
    fn used(&mut self, slot: u32) -> Result<(), String> {
        self.tell(1, (slot,))
    }
    fn left(&mut self, slot: u32) -> Result<(), String> {
        self.tell(2, (slot,))
    }
    fn evict(&mut self) -> Result<i64, String> {
        let method = self.0.method(3)?;
        Python::attach(|py| number(&self.0.shared.ask(py, method, ())?, "evict", "a slot with an entry"))
    }
    fn again(&self) -> Box<dyn ReplaceEntries> {
        Box::new(Self(self.0.again()))
    }
}

impl MakeMapPrefetch for Maker {
    fn name(&self) -> &str {
        &self.0.handed.name
    }
    fn make(&self, context: MapCacheContext, mut rng: Rng) -> Box<dyn PrefetchEntries> {
        let of = [("entries", context.entries), ("entries_per_page", context.entries_per_page)];
        Box::new(Prefetch(Instance::new(&self.0, &mut rng, &of, ["prefetch", "page_came", "page_left"])))
    }
}

#[derive(Debug)]
struct Prefetch(Instance<3>);

impl Prefetch {
    fn tell(&self, nth: usize, page: u32) -> Result<(), String> {
        if !self.0.shared.handed.follows_pages {
            return Ok(());
        }
        let method = self.0.method(nth)?;
        Python::attach(|py| self.0.shared.ask(py, method, (page,)).map(drop))
    }
}

impl PrefetchEntries for Prefetch {
    fn prefetch(&mut self, miss: &Miss) -> Result<(i64, i64), String> {
        let method = self.0.method(0)?;
        let arguments = (miss.lpn, miss.rest, miss.after, miss.cached_before());
        Python::attach(|py| {
            let answer = self.0.shared.ask(py, method, arguments)?;
            // Asked first, since it would take longer to fail to extract a pair from a number.
            if answer.is_instance_of::<PyTuple>()
                && let Ok(pair) = answer.extract()
            {
                return Ok(pair);
            }
            Ok((number(&answer, "prefetch", "how many entries after it, or a pair: after it, and before it")?, 0))
        })
    }
    fn page_came(&mut self, page: u32) -> Result<(), String> {
        self.tell(1, page)
    }
    fn page_left(&mut self, page: u32) -> Result<(), String> {
        self.tell(2, page)
    }
    fn again(&self) -> Box<dyn PrefetchEntries> {
        Box::new(Self(self.0.again()))
    }
}
