//! Counts the chunks between being read and being printed.

// From the standard library, or from the model that also compiles this file.
use super::sync::{Condvar, Mutex, MutexGuard};

#[derive(Default)]
pub(crate) struct Flow {
    chunks: Mutex<u64>,
    none_left: Condvar,
}

/// While this exists, no chunk is in flight, and none enters.
pub(crate) struct Ebb<'a>(#[allow(dead_code, reason = "held")] MutexGuard<'a, u64>);

const NO_PANIC: &str = "nothing panics while it is locked";

impl Flow {
    /// Counts a chunk that was read. Only call this while holding the source, so that all earlier chunks have entered.
    pub(crate) fn enter(&self) {
        *self.lock() += 1;
    }

    /// Counts a chunk that was printed.
    pub(crate) fn leave(&self) {
        let mut chunks = self.lock();
        *chunks -= 1;
        if *chunks == 0 {
            self.none_left.notify_all();
        }
    }

    /// A guard, if no chunk is in flight.
    pub(crate) fn ebb(&self) -> Option<Ebb<'_>> {
        let chunks = self.lock();
        (*chunks == 0).then_some(Ebb(chunks))
    }

    /// Waits until no chunk is in flight. Only call this while holding the source, otherwise more chunks enter.
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
