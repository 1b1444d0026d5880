//! The core of Flashwright with a translation layer beside its own.

mod layer;

use flashwright_py::pyo3::{Bound, PyResult, pymodule, types::PyModule};

const BUILT_WITH: &str = concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION"));

#[pymodule]
#[pyo3(crate = "flashwright_py::pyo3")]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // A line for each layer, with the name that `ftl.scheme` takes.
    flashwright_py::register::<layer::PageMap>("@NAME@")?;
    flashwright_py::fill(module, env!("FLASHWRIGHT_SOURCE_DIGEST"), BUILT_WITH)
}
