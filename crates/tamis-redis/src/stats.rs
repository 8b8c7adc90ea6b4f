//! Events of a client: counters for monitoring and, with the feature `tracing`,
//! events.

use std::collections::HashSet;
use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Counts of events since a filter's client was opened, including its clones:
/// see [`RedisFilter::stats`](crate::RedisFilter::stats). All numbers except
/// `connections` stay 0 while nothing fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Connections opened, including the first to each node.
    pub connections: u64,
    /// Connections opened to nodes that had one before.
    pub reconnects: u64,
    /// Requests sent again because the answer was lost or the server wasn't
    /// ready for them.
    pub retries: u64,
    /// Requests redirected to another node because their slot has moved.
    pub redirects: u64,
    /// Keys reported as new without certainty: they were sent again after an
    /// answer was lost.
    pub ambiguous_keys: u64,
    /// Keys older than their window: reported as new, but not added.
    pub too_old_keys: u64,
    /// Keys more than a generation ahead of the server's clock: treated as if they belonged to the
    /// newest generation.
    pub future_keys: u64,
}

/// The counters behind [`Stats`], which all clones share.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    connections: AtomicU64,
    reconnects: AtomicU64,
    retries: AtomicU64,
    redirects: AtomicU64,
    ambiguous_keys: AtomicU64,
    too_old_keys: AtomicU64,
    future_keys: AtomicU64,
    /// The nodes that have had a connection.
    known: Mutex<HashSet<String>>,
}

impl Counters {
    pub(crate) fn connected(&self, node: &impl Display) {
        self.connections.fetch_add(1, Relaxed);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let again = !known.insert(node.to_string());
        self.reconnects.fetch_add(again.into(), Relaxed);
        #[cfg(feature = "tracing")]
        tracing::debug!(%node, again, "connected");
    }

    /// A request goes to another node.
    pub(crate) fn redirected(&self, why: &impl Display) {
        self.redirects.fetch_add(1, Relaxed);
        event(why, "redirected");
    }

    /// A request is sent again.
    pub(crate) fn retried(&self, why: &impl Display) {
        self.retries.fetch_add(1, Relaxed);
        event(why, "sent again");
    }

    pub(crate) fn ambiguous(&self, keys: u64) {
        self.ambiguous_keys.fetch_add(keys, Relaxed);
    }

    pub(crate) fn out_of_window(&self, too_old: u64, future: u64) {
        self.too_old_keys.fetch_add(too_old, Relaxed);
        self.future_keys.fetch_add(future, Relaxed);
    }

    pub(crate) fn stats(&self) -> Stats {
        Stats {
            connections: self.connections.load(Relaxed),
            reconnects: self.reconnects.load(Relaxed),
            retries: self.retries.load(Relaxed),
            redirects: self.redirects.load(Relaxed),
            ambiguous_keys: self.ambiguous_keys.load(Relaxed),
            too_old_keys: self.too_old_keys.load(Relaxed),
            future_keys: self.future_keys.load(Relaxed),
        }
    }
}

fn event(why: &impl Display, what: &str) {
    #[cfg(feature = "tracing")]
    tracing::debug!(reason = %why, "{what}");
    #[cfg(not(feature = "tracing"))]
    let _ = (why, what);
}

/// All requests are still open; they are sent again after a pause.
pub(crate) fn pausing(pause: Duration, open: usize) {
    #[cfg(feature = "tracing")]
    tracing::warn!(
        ?pause,
        open,
        "requests are open; trying again after a pause"
    );
    #[cfg(not(feature = "tracing"))]
    let _ = (pause, open);
}
