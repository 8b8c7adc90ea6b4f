//! Errors for clients.

use hyper::StatusCode;
use hyper::header::{self, HeaderName};

/// A status and a text for people, as JSON: `{"error": "..."}`.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    pub(crate) text: String,
    /// The text for clients with a token.
    pub(crate) details: Option<String>,
    /// A header that tells programs what to do.
    pub(crate) header: Option<(HeaderName, &'static str)>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, text: impl Into<String>) -> Self {
        let header = match status {
            StatusCode::UNAUTHORIZED => Some((header::WWW_AUTHENTICATE, "Bearer")),
            StatusCode::SERVICE_UNAVAILABLE => Some((header::RETRY_AFTER, "1")),
            _ => None,
        };
        let text = text.into();
        Self {
            status,
            text,
            details: None,
            header,
        }
    }

    pub(crate) fn with(self, name: HeaderName, value: &'static str) -> Self {
        let header = Some((name, value));
        Self { header, ..self }
    }

    /// The request can't be understood.
    pub(crate) fn bad_request(text: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, text)
    }

    /// A filter's server can't be reached. Its address and its reply aren't for clients without a token.
    pub(crate) fn of_redis(error: &anyhow::Error) -> Self {
        let details = Self::unavailable(error).text;
        let text = "the filter's Redis can't be asked: the log says why, and so does this answer to \
                    clients that send a token";
        let details = Some(details);
        Self {
            details,
            ..Self::new(StatusCode::SERVICE_UNAVAILABLE, text)
        }
    }

    /// The text for a client.
    pub(crate) fn text_for(self, is_known: bool) -> String {
        match self.details {
            Some(details) if is_known => details,
            _ => self.text,
        }
    }

    /// The server is at fault, not the client.
    pub(crate) fn unavailable(error: &anyhow::Error) -> Self {
        let text = tamis_redis::hide_passwords(&format!("{error:#}"));
        Self::new(StatusCode::SERVICE_UNAVAILABLE, text)
    }
}
