//! Answers on their way to the client. A body of line ends has as many keys as bytes, so an answer
//! is a bit until it is written, and is written piece by piece.

use crate::body::Room;
use crate::media::Form;
use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// What is written at once.
const PIECE: usize = 32 << 10;

/// One answer a key, in order.
#[derive(Debug, Default)]
pub(crate) struct Replies {
    bits: Vec<u64>,
    len: usize,
    yes: usize,
}

impl Replies {
    pub(crate) fn extend(&mut self, answers: &[bool]) {
        for &answer in answers {
            if self.len.is_multiple_of(64) {
                self.bits.push(0);
            }
            if let Some(last) = self.bits.last_mut() {
                *last |= u64::from(answer) << (self.len % 64);
            }
            self.len += 1;
            self.yes += usize::from(answer);
        }
    }

    fn get(&self, nth: usize) -> bool {
        self.bits[nth / 64] >> (nth % 64) & 1 == 1
    }

    pub(crate) const fn yes(&self) -> u64 {
        self.yes as u64
    }

    pub(crate) const fn no(&self) -> u64 {
        (self.len - self.yes) as u64
    }

    pub(crate) const fn keys(&self) -> u64 {
        self.len as u64
    }

    /// As a response; its memory counts until it is written.
    pub(crate) fn respond(self, form: Form, words: Words, mut room: Room) -> Response {
        room.shrink_to(self.bits.capacity() * size_of::<u64>() + PIECE);
        let (kind, start, [yes, no], between, end) = match form {
            Form::Lines => (
                "text/plain; charset=utf-8",
                String::new(),
                words.lines,
                "",
                String::new(),
            ),
            Form::Json => (
                "application/json",
                format!("{{\"{}\":[", words.name),
                ["true", "false"],
                ",",
                format!("]{}}}\n", words.more),
            ),
        };
        let separators = self.len.saturating_sub(1) * between.len();
        let items = self.yes * yes.len() + (self.len - self.yes) * no.len();
        let text = Text {
            left: start.len() + items + separators + end.len(),
            replies: self,
            next: 0,
            start,
            words: [yes, no],
            between,
            end,
            _room: room,
        };
        ([(header::CONTENT_TYPE, kind)], Body::new(text)).into_response()
    }
}

/// How answers are told.
pub(crate) struct Words {
    /// A line each.
    pub(crate) lines: [&'static str; 2],
    /// The array's name in JSON, and what follows it.
    pub(crate) name: &'static str,
    pub(crate) more: String,
}

/// Answers as text.
struct Text {
    replies: Replies,
    /// The first that is not written.
    next: usize,
    start: String,
    words: [&'static str; 2],
    between: &'static str,
    end: String,
    /// Bytes that are not written.
    left: usize,
    _room: Room,
}

impl Text {
    fn piece(&mut self) -> Vec<u8> {
        // A word more may follow the last that fits.
        let mut piece = Vec::with_capacity(self.left.min(PIECE + self.end.len()) + 16);
        piece.extend_from_slice(std::mem::take(&mut self.start).as_bytes());
        while self.next < self.replies.len && piece.len() < PIECE {
            if self.next > 0 {
                piece.extend_from_slice(self.between.as_bytes());
            }
            let [yes, no] = self.words;
            let word = if self.replies.get(self.next) { yes } else { no };
            piece.extend_from_slice(word.as_bytes());
            self.next += 1;
        }
        if self.next == self.replies.len {
            piece.extend_from_slice(self.end.as_bytes());
        }
        self.left -= piece.len();
        piece
    }
}

impl HttpBody for Text {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(match self.left {
            0 => None,
            _ => Some(Ok(Frame::data(self.piece().into()))),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left as u64)
    }
}
