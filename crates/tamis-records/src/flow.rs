//! How many chunks are between being read and being printed.

// Of the standard library, or of the model that compiles this file, too.
use super::sync::{Condvar, Mutex, MutexGuard};

#[derive(Default)]
pub(crate) struct Flow {
    chunks: Mutex<u64>,
    none_left: Condvar,
}

/// While this lives, no chunk is on its way, and none enters.
pub(crate) struct Ebb<'a>(#[allow(dead_code, reason = "held")] MutexGuard<'a, u64>);

const NO_PANIC: &str = "nothing panics while it is locked";

impl Flow {
    /// A chunk was read. Only to be called by whoever holds the source, so that all chunks before it have entered.
    pub(crate) fn enter(&self) {
        *self.lock() += 1;
    }

    /// A chunk was printed.
    pub(crate) fn leave(&self) {
        let mut chunks = self.lock();
        *chunks -= 1;
        if *chunks == 0 {
            self.none_left.notify_all();
        }
    }

    /// If no chunk is on its way.
    pub(crate) fn ebb(&self) -> Option<Ebb<'_>> {
        let chunks = self.lock();
        (*chunks == 0).then_some(Ebb(chunks))
    }

    /// When no chunk is on its way. To be called by whoever holds the source: else others enter.
    pub(crate) fn wait_for_ebb(&self) -> Ebb<'_> {
        let mut chunks = self.lock();
        while *chunks > 0 {
            chunks = self.none_left.wait(chunks).expect(NO_PANIC);
        }
        Ebb(chunks)
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        self.chunks.lock().expect(NO_PANIC)
    }
}
