//! Explains why a request's head was refused. hyper answers such requests itself with only a status, and can't be
//! configured to say more, so its answer is replaced on its way out.

use hyper::StatusCode;
use serde_json::json;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How much of the last read to keep, to see what was wrong.
const REMEMBERED: usize = 4 << 10;

/// A connection on which hyper's own answers get a body.
pub(crate) struct Worded<S> {
    stream: S,
    /// The largest accepted body, in words.
    most: String,
    read: Vec<u8>,
    /// The text written instead of hyper's answer, and how much of it was written.
    instead: Option<(Vec<u8>, usize)>,
}

impl<S> Worded<S> {
    pub(crate) fn new(stream: S, most: String) -> Self {
        Self {
            stream,
            most,
            read: Vec::new(),
            instead: None,
        }
    }

    /// The status and the reason for the last read.
    fn reason(&self, status: StatusCode) -> (StatusCode, String) {
        let most = &self.most;
        if self.read.first() == Some(&0x16) {
            let text = "this is TLS, and the service speaks HTTP: ask by http://, or serve with a certificate";
            return (StatusCode::BAD_REQUEST, text.into());
        }
        if has_huge_length(&self.read) {
            let text =
                format!("the body is larger than {most} (--max-body): send fewer keys per request");
            return (StatusCode::PAYLOAD_TOO_LARGE, text);
        }
        let text = match status {
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => {
                "the head of the request is too large: expected at most 64 KB and 100 fields"
            }
            StatusCode::URI_TOO_LONG => {
                "the address is too long: expected at most 64 KB; send keys in the body"
            }
            _ => {
                "the head of the request can't be understood: expected HTTP/1.1, \
                 e.g. GET /v1/filters HTTP/1.1 and a line for each field, each like Host: localhost"
            }
        };
        (status, text.into())
    }

    /// The same bytes with an explanation, if they end with an answer that has none.
    fn worded(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let (start, status) = bare_answer(bytes)?;
        let (status, text) = self.reason(status);
        let body = format!("{}\n", json!({ "error": text }));
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nx-content-type-options: nosniff\r\n\
             cache-control: no-store\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        Some([&bytes[..start], head.as_bytes(), body.as_bytes()].concat())
    }
}

/// The start and the status of hyper's own answer, which is the last thing it writes. Our answers have more fields.
fn bare_answer(bytes: &[u8]) -> Option<(usize, StatusCode)> {
    let head = bytes.strip_suffix(b"\r\n\r\n")?;
    // Complete, it has about 120 bytes.
    let start = head.windows(7).rposition(|bytes| bytes == b"HTTP/1.")?;
    let head = std::str::from_utf8(&head[start..]).ok()?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let mut is_empty = false;
    for line in lines {
        match line.split_once(':')?.0 {
            "content-length" => is_empty = line == "content-length: 0",
            "connection" | "date" => {}
            _ => return None,
        }
    }
    (is_empty && (400..500).contains(&status)).then_some(())?;
    Some((start, StatusCode::from_u16(status).ok()?))
}

/// Whether the head declares a body length too large for a number.
fn has_huge_length(head: &[u8]) -> bool {
    head.split(|byte| *byte == b'\n').any(|line| {
        let Some((name, value)) = line.split_at_checked(15) else {
            return false;
        };
        let value = value.trim_ascii();
        let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
        let digits = value.iter().skip_while(|digit| **digit == b'0').count();
        name.eq_ignore_ascii_case(b"content-length:") && is_number && digits > 18
    })
}

impl<S: AsyncRead + Unpin> AsyncRead for Worded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let read = &buffer.filled()[before..];
        self.read.clear();
        self.read
            .extend_from_slice(&read[..read.len().min(REMEMBERED)]);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> Worded<S> {
    /// Writes the replacement for these bytes; nothing if they are fine. They count as written with its last byte.
    fn poll_instead(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Option<Poll<io::Result<usize>>> {
        if self.instead.is_none() {
            self.instead = Some((self.worded(bytes)?, 0));
        }
        let (instead, written) = self.instead.as_mut()?;
        while *written < instead.len() {
            match Pin::new(&mut self.stream).poll_write(context, &instead[*written..]) {
                Poll::Ready(Ok(0)) => {
                    return Some(Poll::Ready(Err(io::ErrorKind::WriteZero.into())));
                }
                Poll::Ready(Ok(more)) => *written += more,
                other => return Some(other),
            }
        }
        self.instead = None;
        Some(Poll::Ready(Ok(bytes.len())))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Worded<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.poll_instead(context, bytes) {
            Some(outcome) => outcome,
            None => Pin::new(&mut self.stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        // hyper's answer is a separate part, and the last.
        let Some((last, before)) = parts.split_last() else {
            return Poll::Ready(Ok(0));
        };
        if !before.is_empty() && bare_answer(last).is_some() {
            return Pin::new(&mut self.stream).poll_write_vectored(context, before);
        }
        if let ([], Some(outcome)) = (before, self.poll_instead(context, last)) {
            return outcome;
        }
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
