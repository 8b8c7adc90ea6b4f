//! Bodies of requests: whole, in time, and not too much of them at once.

use super::problem::Problem;
use super::{App, Limits};
use crate::human;
use axum::body::Body;
use axum::http::StatusCode;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Bodies that all clients together may have in memory, in bodies of the largest size.
const AT_ONCE: usize = 32;
/// What is read of a body that nobody wants, in bodies of the largest size: a client that is still
/// sending would not see why it was refused.
const DISCARDED: usize = 4;
const DISCARDED_FOR: Duration = Duration::from_secs(5);

/// A body in memory, which counts until it is dropped.
pub(super) struct Held {
    bytes: Bytes,
    _room: Room,
}

impl Held {
    pub(super) fn bytes(&self) -> Bytes {
        // Cheap: the bytes are shared.
        self.bytes.clone()
    }
}

/// Memory that is spoken for.
struct Room {
    app: App,
    bytes: usize,
}

impl Room {
    fn more(&mut self, bytes: usize) -> Result<(), Problem> {
        self.bytes += bytes;
        let all = self.app.buffered.fetch_add(bytes, Relaxed) + bytes;
        match all > self.app.limits.body.saturating_mul(AT_ONCE) {
            false => Ok(()),
            true => Err(Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many keys are being sent at the same time: try again",
            )),
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.app.buffered.fetch_sub(self.bytes, Relaxed);
    }
}

/// A buffer that is used again: large memory that is new is zeroed by the system page by page, which
/// takes longer than to read the keys in it.
struct Pooled(Vec<u8>);

/// Buffers that wait, and how large each may be.
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

/// The whole body of a request.
pub(super) async fn read(app: &App, mut body: Body) -> Result<Held, Problem> {
    let time = app.limits.time;
    match tokio::time::timeout(time, collect(app, &mut body)).await {
        Ok(Ok(held)) => Ok(held),
        Ok(Err(problem)) => {
            discard(app, body).await;
            Err(problem)
        }
        Err(_) => Err(Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            format!(
                "the body did not arrive within {} (--timeout)",
                human::duration(time)
            ),
        )),
    }
}

async fn collect(app: &App, body: &mut Body) -> Result<Held, Problem> {
    let Limits { body: most, .. } = app.limits;
    let mut room = Room {
        app: App::clone(app),
        bytes: 0,
    };
    let too_large = || {
        Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!(
                "the body is larger than {} (--max-body): send fewer keys per request",
                human::size(most as u64)
            ),
        )
    };
    if body.size_hint().lower() > most as u64 {
        return Err(too_large());
    }
    let mut whole = Pooled(Vec::new());
    let mut first = Bytes::new();
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| Problem::bad_request(format!("the body ends early: {error}")))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if room.bytes + data.len() > most {
            return Err(too_large());
        }
        room.more(data.len())?;
        // Most bodies come in one piece, and need no copy.
        match (whole.0.is_empty(), first.is_empty()) {
            (true, true) => first = data,
            (true, false) => {
                whole = Pooled::take();
                whole.0.extend_from_slice(&std::mem::take(&mut first));
                whole.0.extend_from_slice(&data);
            }
            (false, _) => whole.0.extend_from_slice(&data),
        }
    }
    let bytes = match whole.0.is_empty() {
        true => first,
        false => Bytes::from_owner(whole),
    };
    Ok(Held { bytes, _room: room })
}

/// Reads on for a while, so that the client sees the response.
pub(super) async fn discard(app: &App, mut body: Body) {
    let mut left = app.limits.body.saturating_mul(DISCARDED);
    let reading = async {
        while let Some(Ok(frame)) = body.frame().await {
            let len = frame.data_ref().map_or(0, Bytes::len);
            match left.checked_sub(len) {
                Some(less) => left = less,
                None => return,
            }
        }
    };
    let _ = tokio::time::timeout(app.limits.time.min(DISCARDED_FOR), reading).await;
}
