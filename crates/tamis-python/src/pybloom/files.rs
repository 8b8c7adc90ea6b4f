//! New files, the files they replace, and errors of the system.

use std::io;
use std::path::{Path, PathBuf};

use pyo3::exceptions::{
    PyFileExistsError, PyIsADirectoryError, PyOSError, PyRuntimeWarning, PyTypeError, PyValueError,
};
use pyo3::prelude::*;

use tamis_formats::pybloomfilter::Shape;
use tamis_python_core::pybloom::file::{self, Existing};
use tamis_python_core::pybloom::filter::Filter;

pub(super) fn same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

pub(super) fn create(
    py: Python<'_>,
    path: PathBuf,
    perm: Option<u32>,
    shape: Shape,
) -> PyResult<Filter> {
    let perm = perm.ok_or_else(|| PyTypeError::new_err("perm: expected an int, got None"))?;
    make_way(py, &path)?;
    Filter::create(path.clone(), perm, shape).map_err(|e| os_error(&e, &path))
}

/// Refuses to replace files that aren't filters, and warns if keys are lost.
pub(super) fn make_way(py: Python<'_>, path: &Path) -> PyResult<()> {
    match file::existing(path).map_err(|e| os_error(&e, path))? {
        Existing::Nothing => Ok(()),
        Existing::Folder => Err(PyIsADirectoryError::new_err((
            libc::EISDIR,
            "Is a directory",
            path.as_os_str().to_owned(),
        ))),
        Existing::Foreign => Err(PyFileExistsError::new_err((
            libc::EEXIST,
            "File exists and is not a BloomFilter: remove it first",
            path.as_os_str().to_owned(),
        ))),
        Existing::Filter => {
            let there = Filter::open(path.to_path_buf(), false, None);
            if there.is_ok_and(|filter| !filter.bits.any_set()) {
                return Ok(());
            }
            let text = format!(
                "replacing the BloomFilter in {} and its keys",
                path.display()
            );
            warn(py, text)
        }
    }
}

pub(super) fn warn(py: Python<'_>, text: String) -> PyResult<()> {
    let text =
        std::ffi::CString::new(text).map_err(|_| PyValueError::new_err("embedded null byte"))?;
    PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, 1)
}

pub(super) fn io_error(filter: &Filter, error: &io::Error) -> PyErr {
    let path = filter.bits.file().map(|file| file.path.as_path());
    os_error(error, path.unwrap_or(Path::new("")))
}

pub(super) fn os_error(error: &io::Error, path: &Path) -> PyErr {
    match error.raw_os_error() {
        Some(code) => {
            // "No such file or directory (os error 2)": Python adds the number.
            let text = error.to_string();
            let text = text.split(" (os error").next().unwrap_or(&text).to_owned();
            // Python chooses the class by the number.
            PyOSError::new_err((code, text, path.as_os_str().to_owned()))
        }
        None => PyOSError::new_err(format!("{error}: {}", path.display())),
    }
}
