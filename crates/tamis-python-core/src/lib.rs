//! The parts of the Python packages `tamis` and `pybloomfilter` that don't need Python: columns of keys and times from
//! numpy and Arrow, and the mapped files of pybloomfiltermmap3.

pub mod arrow;
pub mod column;
pub mod fixed;
pub mod float;
pub mod keys;
// Uses file permissions, descriptors and extended attributes.
#[cfg(unix)]
pub mod pybloom;
pub mod text;
pub mod times;
