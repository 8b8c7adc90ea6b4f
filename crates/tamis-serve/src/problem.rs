//! What a client is told when it can't get what it asked for.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tamis_report::human;

/// A status and a text for people, as JSON: `{"error": "..."}`.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    pub(crate) text: String,
    /// What programs should know of the way out.
    header: Option<(HeaderName, &'static str)>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, text: impl Into<String>) -> Self {
        let header = match status {
            StatusCode::UNAUTHORIZED => Some((header::WWW_AUTHENTICATE, "Bearer")),
            StatusCode::SERVICE_UNAVAILABLE => Some((header::RETRY_AFTER, "1")),
            _ => None,
        };
        Self {
            status,
            text: text.into(),
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

    /// The fault is on this side.
    pub(crate) fn unavailable(error: &anyhow::Error) -> Self {
        let text = human::hide_passwords(&format!("{error:#}"));
        Self::new(StatusCode::SERVICE_UNAVAILABLE, text)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = json(&json!({ "error": self.text }));
        let mut response = (self.status, body).into_response();
        if let Some((name, value)) = self.header {
            let value = HeaderValue::from_static(value);
            response.headers_mut().insert(name, value);
        }
        response
    }
}

/// A JSON response, with a line's end for those who read it in a terminal.
pub(crate) fn json(value: &serde_json::Value) -> impl IntoResponse + use<> {
    let mut text = value.to_string();
    text.push('\n');
    ([(header::CONTENT_TYPE, "application/json")], text)
}
