//! The filter that does not block, for services on Tokio.

use crate::backend::Backend;
use crate::multiplexed::Multiplexed;
use crate::{Location, Options};

/// A filter in Redis for services: the same methods as
/// [`tamis_redis::RedisFilter`](crate::RedisFilter), but they don't block.
/// Needs a Tokio runtime.
///
/// Clones are cheap. They share one connection to each node and multiplex their
/// commands over it, so give every task its own clone.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use tamis_redis::aio::RedisFilter;
/// use tamis_redis::{Location, Options};
///
/// let at: Location = "redis://localhost/seen".parse()?;
/// let seen = RedisFilter::open(&at, &Options::new()).await?;
/// let mut mine = seen.clone();
/// tokio::spawn(async move { mine.insert("https://example.org/").await }).await??;
/// # Ok(())
/// # }
/// ```
///
/// An operation that is dropped before it ends, like one that fails, has been
/// done in part or not at all.
pub struct RedisFilter {
    pub(crate) backend: Backend<Multiplexed>,
}

impl RedisFilter {
    pub(crate) fn link(at: &Location, options: &Options) -> Multiplexed {
        Multiplexed::new(at, options)
    }

    pub(crate) const fn of(backend: Backend<Multiplexed>) -> Self {
        Self { backend }
    }
}

impl Clone for RedisFilter {
    fn clone(&self) -> Self {
        Self::of(self.backend.another())
    }
}
