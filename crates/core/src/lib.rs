//! The compiled core of the package: the border to Python, as a module that Python loads. A crate of one's own takes the place of this
//! one where a core has layers beside ours (`flashwright new ftl`).

use flashwright_py::pyo3::{Bound, PyResult, pymodule, types::PyModule};

#[pymodule]
#[pyo3(crate = "flashwright_py::pyo3")]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    flashwright_py::fill(module, env!("FLASHWRIGHT_SOURCE_DIGEST"), "")
}
