//! The page at `/`, whose files are part of the program.

use super::App;
use axum::Router;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

pub(super) fn routes() -> Router<App> {
    Router::new().route("/", get(index))
}

async fn index() -> Response {
    file(
        "text/html; charset=utf-8",
        include_bytes!("page/index.html"),
    )
}

fn file(content_type: &'static str, bytes: &'static [u8]) -> Response {
    let headers = [(header::CONTENT_TYPE, content_type)];
    (headers, bytes).into_response()
}
