//! Request bodies: read completely, in time, decompressed, and within a memory budget.

use crate::media::Packing;
use crate::problem::Problem;
use bytes::Bytes;
use flate2::bufread::MultiGzDecoder;
use hyper::body::{Body as _, Frame, Incoming};
use hyper::{HeaderMap, StatusCode, header};
use std::future::poll_fn;
use std::io::{self, Read as _};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tamis_report::human;

/// How many bodies of the largest size all clients together may have in memory.
const AT_ONCE: usize = 32;
/// How many bodies of the largest size to read and discard: a client that is still sending would not see the response.
const DISCARDED: usize = 4;
const DISCARDED_FOR: Duration = Duration::from_secs(5);

/// Bytes that are decompressed at once.
const UNPACKED: usize = 64 << 10;

/// A body in memory, counted until it is dropped.
pub(crate) struct Held {
    pub(crate) bytes: Bytes,
    pub(crate) room: Room,
}

/// Limits on the memory of bodies and answers, and on time.
pub(crate) struct Budget {
    /// The largest body in bytes.
    largest: usize,
    /// The time limit for a body to arrive.
    time: Duration,
    /// Bytes in use.
    taken: AtomicUsize,
}

impl Budget {
    pub(crate) fn new(largest: usize, time: Duration) -> Arc<Self> {
        let taken = AtomicUsize::new(0);
        Arc::new(Self {
            largest,
            time,
            taken,
        })
    }

    fn too_large(&self, what: &str) -> Problem {
        let most = human::size(self.largest as u64);
        let text =
            format!("the {what} is larger than {most} (--max-body): send fewer keys per request");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, text)
    }
}

/// Reserved memory, for bodies and the answers made from them.
pub(crate) struct Room {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Room {
    fn new(budget: &Arc<Budget>) -> Self {
        let budget = Arc::clone(budget);
        Self { budget, bytes: 0 }
    }

    pub(crate) fn more(&mut self, bytes: usize) -> Result<(), Problem> {
        self.bytes += bytes;
        let all = self.budget.taken.fetch_add(bytes, Relaxed) + bytes;
        if all > self.budget.largest.saturating_mul(AT_ONCE) {
            let text = "too many keys are being sent at the same time: try again";
            return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, text));
        }
        Ok(())
    }

    /// Returns memory to the budget.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        let less = self.bytes.saturating_sub(bytes);
        self.bytes -= less;
        self.budget.taken.fetch_sub(less, Relaxed);
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

/// A reusable buffer: the system zeroes new large memory page by page, which takes longer than reading the keys in it.
struct Pooled(Vec<u8>);

/// Unused buffers, and the size limit of each.
static POOL: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
const POOLED: usize = 8;
const POOLED_BYTES: usize = 4 << 20;

impl Pooled {
    fn take() -> Self {
        let pool = POOL.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Self(pool.unwrap_or_default())
    }
}

impl AsRef<[u8]> for Pooled {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        let mut buffer = std::mem::take(&mut self.0);
        buffer.clear();
        let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
        if pool.len() < POOLED && (1..=POOLED_BYTES).contains(&buffer.capacity()) {
            pool.push(buffer);
        }
    }
}

/// The complete body of a request, decompressed.
pub(crate) async fn read(
    budget: &Arc<Budget>,
    headers: &HeaderMap,
    mut body: Incoming,
) -> Result<Held, Problem> {
    let packing = Packing::of_request(headers).and_then(|packing| {
        if body.size_hint().lower() > budget.largest as u64 {
            return Err(budget.too_large("body"));
        }
        Ok(packing)
    });
    let packing = match packing {
        Ok(packing) => packing,
        Err(problem) => {
            leave(budget, headers, body).await;
            return Err(problem);
        }
    };
    let held = match tokio::time::timeout(budget.time, collect(budget, &mut body)).await {
        Ok(Ok(held)) => held,
        Ok(Err(problem)) => {
            discard(budget, body).await;
            return Err(problem);
        }
        Err(_) => {
            let time = human::duration(budget.time);
            let text = format!("the body did not arrive within {time} (--timeout)");
            return Err(Problem::new(StatusCode::REQUEST_TIMEOUT, text));
        }
    };
    match packing {
        Packing::None => Ok(held),
        // A few bytes may expand to many.
        Packing::Gzip => tokio::task::block_in_place(|| unpack(budget, &held.bytes)),
    }
}

/// The next piece of a body.
async fn next(body: &mut Incoming) -> Option<Result<Frame<Bytes>, hyper::Error>> {
    poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await
}

fn unpack(budget: &Arc<Budget>, packed: &[u8]) -> Result<Held, Problem> {
    let mut room = Room::new(budget);
    let mut whole = Pooled::take();
    let mut decoder = MultiGzDecoder::new(packed);
    loop {
        let len = whole.0.len();
        whole.0.resize(len + UNPACKED, 0);
        let more = loop {
            match decoder.read(&mut whole.0[len..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                more => break more,
            }
        };
        let more = more.map_err(|error| {
            Problem::bad_request(format!(
                "the body is not the gzip that it should be: {error}"
            ))
        })?;
        whole.0.truncate(len + more);
        if more == 0 {
            let bytes = Bytes::from_owner(whole);
            return Ok(Held { bytes, room });
        }
        if whole.0.len() > budget.largest {
            return Err(budget.too_large("unpacked body"));
        }
        room.more(more)?;
    }
}

async fn collect(budget: &Arc<Budget>, body: &mut Incoming) -> Result<Held, Problem> {
    let mut room = Room::new(budget);
    let mut whole = Pooled(Vec::new());
    let mut first = Bytes::new();
    while let Some(frame) = next(body).await {
        let frame =
            frame.map_err(|error| Problem::bad_request(format!("the body ends early: {error}")))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if room.bytes + data.len() > budget.largest {
            return Err(budget.too_large("body"));
        }
        room.more(data.len())?;
        // Most bodies come in one piece, which needs no copy.
        if whole.0.is_empty() && first.is_empty() {
            first = data;
            continue;
        }
        if whole.0.is_empty() {
            whole = Pooled::take();
            whole.0.extend_from_slice(&std::mem::take(&mut first));
        }
        whole.0.extend_from_slice(&data);
    }
    let bytes = if whole.0.is_empty() {
        first
    } else {
        Bytes::from_owner(whole)
    };
    Ok(Held { bytes, room })
}

/// Ignores a body. A client that waits for `100 Continue` sees the response at once.
pub(crate) async fn leave(budget: &Budget, headers: &HeaderMap, body: Incoming) {
    if !headers.contains_key(header::EXPECT) {
        discard(budget, body).await;
    }
}

/// Continues reading for a while, so that the client sees the response.
async fn discard(budget: &Budget, mut body: Incoming) {
    let mut left = budget.largest.saturating_mul(DISCARDED);
    let reading = async {
        while let Some(Ok(frame)) = next(&mut body).await {
            let len = frame.data_ref().map_or(0, Bytes::len);
            match left.checked_sub(len) {
                Some(less) => left = less,
                None => return,
            }
        }
    };
    let _ = tokio::time::timeout(budget.time.min(DISCARDED_FOR), reading).await;
}
