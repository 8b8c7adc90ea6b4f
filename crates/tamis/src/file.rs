//! Locks on filters' files.

pub use crate::store::lock::FileLock;
