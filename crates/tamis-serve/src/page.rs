//! The page at `/`, whose files are part of the program, and what it asks for
//! besides the filters.

use crate::problem::Problem;
use crate::{App, plan, playground};
use axum::Router;
use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};

/// Nothing but what this service sends, and no code within a page: a key or a
/// name that looks like markup stays text whatever else went wrong.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A file of the page: its name, its sort and its content.
macro_rules! files {
    ($($name:literal: $sort:literal),* $(,)?) => {
        &[$(($name, $sort, include_bytes!(concat!("page/", $name)))),*]
    };
}

const FILES: &[(&str, &str, &[u8])] = files![
    "index.html": "text/html; charset=utf-8",
    "style.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "card.png": "image/png",
    "app.js": "text/javascript; charset=utf-8",
    "calculator.js": "text/javascript; charset=utf-8",
    "cells.js": "text/javascript; charset=utf-8",
    "curve.js": "text/javascript; charset=utf-8",
    "dom.js": "text/javascript; charset=utf-8",
    "filters.js": "text/javascript; charset=utf-8",
    "playground.js": "text/javascript; charset=utf-8",
];

/// What is there for the page, of the paths that are described.
pub(crate) const PATHS: [&str; 2] = ["/v1/plan", "/v1/playground"];

pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/", get(async || file("index.html")))
        .route(
            "/page/{file}",
            get(async |Path(name): Path<String>| file(&name)),
        )
        .route("/v1/plan", get(plan::plan))
        .route("/v1/playground", post(playground::playground))
}

fn file(name: &str) -> Response {
    let Some((_, sort, content)) = FILES.iter().find(|(file, ..)| *file == name) else {
        let text = "the page has no such file";
        return Problem::new(StatusCode::NOT_FOUND, text).into_response();
    };
    let headers = [
        (header::CONTENT_TYPE, *sort),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // Without a referrer, its own requests would have no origin, either.
        (header::REFERRER_POLICY, "same-origin"),
        // Another version of the program has other files.
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, *content).into_response()
}
