//! The extension module behind the Python packages `tamis` and `pybloomfilter`.

use pyo3::prelude::*;

// Mapped files, permissions and descriptors: as the original, not on Windows.
#[cfg(unix)]
mod pybloom;

#[pymodule]
mod _tamis {
    #[cfg(unix)]
    #[pymodule_export]
    use super::pybloom::BloomFilter;
}
