//! Responses and their bodies.

use crate::body::Room;
use crate::media::Form;
use crate::problem::Problem;
use crate::replies::Replies;
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{self, HeaderName, HeaderValue};
use serde_json::json;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

pub(crate) type Response = hyper::Response<Content>;

pub(crate) const JSON: &str = "application/json";
pub(crate) const TEXT: &str = "text/plain; charset=utf-8";
/// Bytes of answers that are written at once.
const PIECE: usize = 32 << 10;

/// The body of a response.
pub(crate) enum Content {
    Whole(Bytes),
    Answers(Text),
}

/// A response with a body of this media type.
pub(crate) fn respond(media: &'static str, content: Content) -> Response {
    let mut response = Response::new(content);
    set(&mut response, header::CONTENT_TYPE, media);
    response
}

pub(crate) fn whole(media: &'static str, content: impl Into<Bytes>) -> Response {
    respond(media, Content::Whole(content.into()))
}

/// Answers to keys, in a form. Their memory counts until they are written.
pub(crate) fn answers(replies: Replies, form: Form, words: Words, mut room: Room) -> Response {
    room.shrink_to(replies.memory() + PIECE);
    let (media, start, [yes, no], between, end) = match form {
        Form::Lines => (TEXT, String::new(), words.lines, "", String::new()),
        Form::Json => (
            JSON,
            format!("{{\"{}\":[", words.name),
            ["true", "false"],
            ",",
            format!("]{}}}\n", words.more),
        ),
    };
    let count = replies.keys() as usize;
    let items = replies.yes() as usize * yes.len() + replies.no() as usize * no.len();
    let text = Text {
        left: start.len() + items + count.saturating_sub(1) * between.len() + end.len(),
        count,
        replies,
        next: 0,
        start,
        words: [yes, no],
        between,
        end,
        _room: room,
    };
    respond(media, Content::Answers(text))
}

/// A JSON response, with a line end for terminals.
pub(crate) fn json(value: &serde_json::Value) -> Response {
    whole(JSON, format!("{value}\n"))
}

pub(crate) fn set(response: &mut Response, name: HeaderName, value: &'static str) {
    let headers = response.headers_mut();
    headers.insert(name, HeaderValue::from_static(value));
}

impl Body for Content {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.is_end_stream() {
            return Poll::Ready(None);
        }
        let piece = match &mut *self {
            Self::Whole(bytes) => std::mem::take(bytes),
            Self::Answers(text) => text.piece().into(),
        };
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.len() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.len() as u64)
    }
}

impl Content {
    fn len(&self) -> usize {
        match self {
            Self::Whole(bytes) => bytes.len(),
            Self::Answers(text) => text.left,
        }
    }
}

/// The response to a request that failed, with details if the client sent a token.
pub(crate) fn refusal(mut problem: Problem, is_known: bool) -> Response {
    let (status, header) = (problem.status, problem.header.take());
    let mut response = json(&json!({ "error": problem.text_for(is_known) }));
    *response.status_mut() = status;
    if let Some((name, value)) = header {
        set(&mut response, name, value);
    }
    response
}

/// The texts of answers.
pub(crate) struct Words {
    /// One line each.
    pub(crate) lines: [&'static str; 2],
    /// The array's name in JSON, and the text after it.
    pub(crate) name: &'static str,
    pub(crate) more: String,
}

/// Answers as text, produced piece by piece.
pub(crate) struct Text {
    replies: Replies,
    count: usize,
    /// The first answer not yet written.
    next: usize,
    start: String,
    words: [&'static str; 2],
    between: &'static str,
    end: String,
    /// Bytes not yet written.
    left: usize,
    _room: Room,
}

impl Text {
    fn piece(&mut self) -> Vec<u8> {
        // One more word may follow the last that fits.
        let mut piece = Vec::with_capacity(self.left.min(PIECE + self.end.len()) + 16);
        piece.extend_from_slice(std::mem::take(&mut self.start).as_bytes());
        while self.next < self.count && piece.len() < PIECE {
            if self.next > 0 {
                piece.extend_from_slice(self.between.as_bytes());
            }
            let [yes, no] = self.words;
            let word = if self.replies.get(self.next) { yes } else { no };
            piece.extend_from_slice(word.as_bytes());
            self.next += 1;
        }
        if self.next == self.count {
            piece.extend_from_slice(self.end.as_bytes());
        }
        self.left -= piece.len();
        piece
    }
}
