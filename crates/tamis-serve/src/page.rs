//! The page at `/`, whose files are part of the program, and calculations that the service offers like the page. The
//! page itself uses WebAssembly for these (`tamis.wasm`).

use crate::body::{self, Budget};
use crate::pool::Pool;
use crate::problem::Problem;
use crate::response::{Response, json, set, whole};
use hyper::body::Incoming;
use hyper::{HeaderMap, StatusCode, header};
use serde_json::Value;
use std::sync::Arc;

/// Allows only files from this service and no inline code: a key or name that looks like markup stays text, whatever
/// else goes wrong. The page contains the same policy, for other servers.
const POLICY: &str = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; \
                      style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

/// Files of the page: name, media type and content.
macro_rules! files {
    ($($name:literal: $media:literal),* $(,)?) => {
        &[$(($name, $media, include_bytes!(concat!("page/", $name)))),*]
    };
}

const FILES: &[(&str, &str, &[u8])] = files![
    "index.html": "text/html; charset=utf-8",
    "tamis.wasm": "application/wasm",
    "style.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "card.png": "image/png",
    "app.js": "text/javascript; charset=utf-8",
    "calculator.js": "text/javascript; charset=utf-8",
    "cells.js": "text/javascript; charset=utf-8",
    "curve.js": "text/javascript; charset=utf-8",
    "dom.js": "text/javascript; charset=utf-8",
    "dropped.js": "text/javascript; charset=utf-8",
    "en.js": "text/javascript; charset=utf-8",
    "filters.js": "text/javascript; charset=utf-8",
    "frame.js": "text/javascript; charset=utf-8",
    "filter.js": "text/javascript; charset=utf-8",
    "kicks.js": "text/javascript; charset=utf-8",
    "playground.js": "text/javascript; charset=utf-8",
    "steps.js": "text/javascript; charset=utf-8",
    "tamis.js": "text/javascript; charset=utf-8",
    "texts.js": "text/javascript; charset=utf-8",
    "walk.js": "text/javascript; charset=utf-8",
    "worker.js": "text/javascript; charset=utf-8",
    "why.js": "text/javascript; charset=utf-8",
    "zh.js": "text/javascript; charset=utf-8",
];

/// A file of the page. Its name needs no decoding.
pub(crate) fn file(name: &str) -> Result<Response, Problem> {
    let Some((_, media, content)) = FILES.iter().find(|(file, ..)| *file == name) else {
        let text = "the page has no such file";
        return Err(Problem::new(StatusCode::NOT_FOUND, text));
    };
    let mut response = whole(media, *content);
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        // Without a referrer, its own requests would also lack an origin.
        (header::REFERRER_POLICY, "same-origin"),
        // Another version of the program has other files.
        (header::CACHE_CONTROL, "no-cache"),
    ] {
        set(&mut response, name, value);
    }
    Ok(response)
}

/// The files of the page for another server: their paths in a folder, and their content. The first is the one that a
/// browser requests first.
pub fn page_files() -> impl Iterator<Item = (String, &'static [u8])> {
    FILES.iter().map(|(name, _, content)| match *name {
        index @ "index.html" => (index.to_owned(), *content),
        name => (format!("page/{name}"), *content),
    })
}

/// Answers a query with the page's own calculation.
pub(crate) async fn calculate(
    pool: &Pool,
    query: &str,
    answer: fn(&str) -> Result<Value, String>,
) -> Result<Response, Problem> {
    let query = query.to_owned();
    let answered = pool.run(move || answer(&query)).await?;
    Ok(json(&answered.map_err(Problem::bad_request)?))
}

/// The same for a body.
pub(crate) async fn playground(
    pool: &Pool,
    budget: &Arc<Budget>,
    headers: &HeaderMap,
    body: Incoming,
) -> Result<Response, Problem> {
    let held = body::read(budget, headers, body).await?;
    let answer = move || tamis_report::page::playground(&held.bytes);
    let answered = pool.run(answer).await?;
    Ok(json(&answered.map_err(Problem::bad_request)?))
}
