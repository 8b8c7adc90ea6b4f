//! The page at `/`, whose files are part of the program.

use crate::problem::Problem;
use crate::response::{Response, set, whole};
use hyper::{StatusCode, header};

/// Nothing but what this service sends, and no code within a page: a key or a
/// name that looks like markup stays text whatever else went wrong.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Files of the page: name, media type and content.
macro_rules! files {
    ($($name:literal: $media:literal),* $(,)?) => {
        &[$(($name, $media, include_bytes!(concat!("page/", $name)))),*]
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
    "en.js": "text/javascript; charset=utf-8",
    "filters.js": "text/javascript; charset=utf-8",
    "frame.js": "text/javascript; charset=utf-8",
    "kicks.js": "text/javascript; charset=utf-8",
    "playground.js": "text/javascript; charset=utf-8",
    "steps.js": "text/javascript; charset=utf-8",
    "texts.js": "text/javascript; charset=utf-8",
    "walk.js": "text/javascript; charset=utf-8",
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
        // Without a referrer, its own requests would have no origin, either.
        (header::REFERRER_POLICY, "same-origin"),
        // Another version of the program has other files.
        (header::CACHE_CONTROL, "no-cache"),
    ] {
        set(&mut response, name, value);
    }
    Ok(response)
}
