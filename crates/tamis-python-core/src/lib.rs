//! The parts of the Python packages `tamis` and `pybloomfilter` that need no
//! Python: columns of keys and of times, as numpy and Arrow have them, and the mapped files
//! of pybloomfiltermmap3.

pub mod arrow;
pub mod column;
pub mod fixed;
pub mod float;
pub mod keys;
// Permissions, descriptors and attributes of files.
#[cfg(unix)]
pub mod pybloom;
pub mod text;
pub mod times;
