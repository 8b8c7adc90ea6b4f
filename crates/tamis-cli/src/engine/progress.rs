//! What the threads of a run tell the rest of the program, and how it ends them early.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Bytes taken from the inputs as they lie there, maybe compressed: compare with the sizes of the files.
    pub(crate) consumed: AtomicU64,
    /// Bytes of records, decompressed.
    pub(crate) bytes: AtomicU64,
    pub(crate) records: AtomicU64,
    /// Records for which the answer was yes.
    pub(crate) chosen: AtomicU64,
    /// Records without the key that the rule asks for.
    pub(crate) without_key: AtomicU64,
    /// Values that should be URLs and are not.
    pub(crate) not_urls: AtomicU64,
    /// Asks the run to end with what was read; also heeded while it waits for a silent pipe.
    pub(crate) stop: Arc<AtomicBool>,
}
