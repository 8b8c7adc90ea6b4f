//! What the service answers under `/v1/filters`, and its health.

use super::App;
use super::body;
use super::keys::Form;
use super::problem::{Problem, json};
use axum::Router;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::json as value;
use std::fmt::Write as _;

pub(super) fn routes() -> Router<App> {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/v1/filters", get(list))
        .route("/v1/filters/{name}", get(info))
        .route("/v1/filters/{name}/check", post(check))
        .route("/v1/filters/{name}/add", post(add))
}

async fn healthz() -> &'static str {
    "ok\n"
}

async fn list(State(app): State<App>) -> Result<Response, Problem> {
    let mut all = Vec::new();
    for served in app.filters.iter() {
        all.push(match served.about().await {
            Ok(about) => about,
            Err(problem) => value!({ "name": served.name(), "fault": problem.text }),
        });
    }
    Ok(json(&value!({ "filters": all })).into_response())
}

async fn info(State(app): State<App>, name: FilterName) -> Result<Response, Problem> {
    let about = app.filters.get(&name.0)?.about().await?;
    Ok(json(&about).into_response())
}

async fn check(
    State(app): State<App>,
    name: FilterName,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let body = body::read(&app, body).await?;
    let served = app.filters.get(&name.0)?;
    let form = Form::of_request(&headers)?;
    let found = served.check(form, body.bytes()).await?;
    Ok(match Form::of_response(&headers, form) {
        Form::Json => booleans("found", &found, ""),
        Form::Lines => lines(&found, ["yes\n", "no\n"]),
    })
}

async fn add(
    State(app): State<App>,
    name: FilterName,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    if let Err(refused) = app.guard.check_token(&headers) {
        body::discard(&app, body).await;
        return Err(refused);
    }
    let body = body::read(&app, body).await?;
    let served = app.filters.get(&name.0)?;
    let form = Form::of_request(&headers)?;
    let added = served.add(form, body.bytes()).await?;
    Ok(match Form::of_response(&headers, form) {
        Form::Json => {
            let saved = format!(",\"saved\":{}", added.saved);
            booleans("new", &added.new, &saved)
        }
        Form::Lines => lines(&added.new, ["new\n", "known\n"]),
    })
}

/// The name in the path.
struct FilterName(String);

impl FromRequestParts<App> for FilterName {
    type Rejection = Problem;

    async fn from_request_parts(head: &mut Parts, app: &App) -> Result<Self, Problem> {
        let name = Path::from_request_parts(head, app).await;
        let refuse = |error| Problem::bad_request(format!("the filter's name: {error}"));
        let Path(name) = name.map_err(|error: PathRejection| refuse(error.body_text()))?;
        Ok(Self(name))
    }
}

/// A JSON object with an array, written as it is: a tree of ten thousand values first would take
/// longer than the keys. `more` follows the array.
fn booleans(name: &str, answers: &[bool], more: &str) -> Response {
    let mut text = String::with_capacity(answers.len() * "false,".len() + 64);
    let _ = write!(text, "{{\"{name}\":[");
    for answer in answers {
        text.push_str(if *answer { "true," } else { "false," });
    }
    if !answers.is_empty() {
        text.pop();
    }
    let _ = writeln!(text, "]{more}}}");
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

/// One word a line.
fn lines(answers: &[bool], [yes, no]: [&str; 2]) -> Response {
    let mut text = String::with_capacity(answers.len() * yes.len().max(no.len()));
    for answer in answers {
        text.push_str(if *answer { yes } else { no });
    }
    ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
}
