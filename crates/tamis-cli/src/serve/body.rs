//! Bodies of requests: whole, in time, and not too much of them at once.

use super::problem::Problem;
use super::{App, Limits};
use crate::human;
use axum::body::Body;
use axum::http::StatusCode;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use std::sync::atomic::Ordering::Relaxed;
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
                "too many keys are being sent at once: try again",
            )),
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.app.buffered.fetch_sub(self.bytes, Relaxed);
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
                "the body did not come within {} (--timeout)",
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
                "the body is larger than {} (--max-body): send fewer keys at once",
                human::size(most as u64)
            ),
        )
    };
    if body.size_hint().lower() > most as u64 {
        return Err(too_large());
    }
    let expected = body.size_hint().lower() as usize;
    let mut whole = BytesMut::new();
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
        match (whole.is_empty(), first.is_empty()) {
            (true, true) => first = data,
            (true, false) => {
                whole.reserve(expected);
                whole.extend_from_slice(&std::mem::take(&mut first));
                whole.extend_from_slice(&data);
            }
            (false, _) => whole.extend_from_slice(&data),
        }
    }
    let bytes = match whole.is_empty() {
        true => first,
        false => whole.freeze(),
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
