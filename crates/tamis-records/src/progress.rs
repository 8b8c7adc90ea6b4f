//! Progress of a run's threads, and the request to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// Counters of a run, and its stop flag.
#[derive(Debug, Default)]
pub struct Progress {
    /// Bytes read from the inputs, possibly compressed: compare with the sizes of the files.
    pub consumed: AtomicU64,
    /// Bytes of records, decompressed.
    pub bytes: AtomicU64,
    /// Records read.
    pub records: AtomicU64,
    /// Records for which the answer was yes.
    pub chosen: AtomicU64,
    /// Records without the key that the rule asks for.
    pub without_key: AtomicU64,
    /// Records without the time that the rule asks for, or with one that can't be read.
    pub without_time: AtomicU64,
    /// Values that should be URLs but aren't.
    pub not_urls: AtomicU64,
    /// Asks the run to end after the records read so far; works also while it waits for a silent pipe.
    pub stop: Arc<AtomicBool>,
}
