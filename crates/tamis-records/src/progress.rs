//! Reports from the threads of a run, and the request to end early.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// Counters of a run, and its end.
#[derive(Debug, Default)]
pub struct Progress {
    /// Bytes taken from the inputs as they lie there, maybe compressed: compare with the sizes of the files.
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
    /// Values that should be URLs and are not.
    pub not_urls: AtomicU64,
    /// Asks the run to end with what was read; also heeded while it waits for a silent pipe.
    pub stop: Arc<AtomicBool>,
}
