//! Calculations for the page: numbers and pictures, which take longer than a thousand keys. They get a small share of
//! the processors, so that filter queries aren't slowed down.

use crate::problem::Problem;
use hyper::StatusCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, oneshot};

/// How many calculations run at the same time.
const PLACES: usize = 2;
/// How long a place rests after a calculation, as a multiple of its time: so all places together use at most half of
/// one processor.
const RESTS: u32 = 3;
/// How long a request waits for a place. Clients that are refused at once retry at once, which costs as much.
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) struct Pool {
    places: Arc<Semaphore>,
    patience: Duration,
}

impl Default for Pool {
    fn default() -> Self {
        Self::new(PLACES, PATIENCE)
    }
}

impl Pool {
    fn new(places: usize, patience: Duration) -> Self {
        let places = Arc::new(Semaphore::new(places));
        Self { places, patience }
    }

    /// Runs a calculation once there is a place.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let place = Arc::clone(&self.places).acquire_owned();
        let Ok(Ok(place)) = tokio::time::timeout(self.patience, place).await else {
            return Err(Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many plans and playgrounds are being asked for: try again",
            ));
        };
        let (tell, told) = oneshot::channel();
        // If a client disconnects, its place stays taken until the calculation ends.
        tokio::task::spawn_blocking(move || {
            let start = Instant::now();
            // The client may be gone.
            let _ = tell.send(work());
            std::thread::sleep(start.elapsed() * RESTS);
            drop(place);
        });
        told.await
            .map_err(|error| Problem::unavailable(&error.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn on_a_runtime<T>(work: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(work)
    }

    #[test]
    fn a_full_pool_refuses_and_serves_again() {
        on_a_runtime(async {
            let pool = Pool::new(1, Duration::from_millis(1));
            let (go_on, waits) = mpsc::channel::<()>();
            let mut busy = std::pin::pin!(pool.run(move || waits.recv().is_ok()));
            // The first takes the place when it is polled.
            assert!(
                tokio::time::timeout(Duration::ZERO, busy.as_mut())
                    .await
                    .is_err()
            );
            let refused = pool.run(|| ()).await.unwrap_err();
            assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
            go_on.send(()).unwrap();
            assert!(busy.await.unwrap());
            while pool.run(|| ()).await.is_err() {}
        });
    }

    /// Clients that disconnect repeatedly get no more than others.
    #[test]
    fn a_client_that_goes_away_leaves_its_place_taken() {
        on_a_runtime(async {
            let pool = Pool::new(1, Duration::from_millis(1));
            let (go_on, waits) = mpsc::channel::<()>();
            let gone = pool.run(move || waits.recv());
            assert!(tokio::time::timeout(Duration::ZERO, gone).await.is_err());
            assert!(pool.run(|| ()).await.is_err());
            go_on.send(()).unwrap();
            while pool.run(|| ()).await.is_err() {}
        });
    }

    #[test]
    fn a_work_that_panics_is_answered() {
        on_a_runtime(async {
            let pool = Pool::new(1, Duration::from_secs(60));
            assert!(pool.run(|| panic!("on purpose")).await.is_err());
            assert_eq!(pool.run(|| 7).await.unwrap(), 7);
        });
    }
}
