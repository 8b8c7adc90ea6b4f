//! The extension module behind the Python packages `tamis` and `pybloomfilter`.

use pyo3::prelude::*;

#[pymodule]
mod _tamis {}
