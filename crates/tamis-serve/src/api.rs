//! What the service answers under `/v1/filters`, and its health.

use crate::App;
use crate::body;
use crate::body::Held;
use crate::media::Form;
use crate::problem::{Problem, json};
use crate::replies::Words;
use axum::Router;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::json as value;

pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/v1/filters", get(list))
        .route("/v1/filters/{name}", get(info))
        .route("/v1/filters/{name}/check", post(check))
        .route("/v1/filters/{name}/add", post(add))
}

async fn healthz() -> &'static str {
    "ok\n"
}

/// Whether every filter answers and, if keys may be added, takes them.
async fn readyz(State(app): State<App>) -> Result<&'static str, Problem> {
    let mut obstacles = Vec::new();
    for served in app.filters.iter() {
        if let Some(obstacle) = served.obstacle().await {
            obstacles.push(format!("{}: {obstacle}", served.name()));
        }
    }
    match obstacles.is_empty() {
        true => Ok("ready\n"),
        false => Err(Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            obstacles.join("\n"),
        )),
    }
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
    let held = body::read(&app, &headers, body).await?;
    let served = app.filters.get(&name.0)?;
    let (form, back) = forms(&headers, &held)?;
    let Held { bytes, room } = with_scratch(form, held)?;
    let found = served.check(form, bytes).await?;
    let words = Words {
        lines: ["yes\n", "no\n"],
        name: "found",
        more: String::new(),
    };
    Ok(found.respond(back, words, room))
}

async fn add(
    State(app): State<App>,
    name: FilterName,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    if let Err(refused) = app.guard.check_token(&headers) {
        body::leave(&app, &headers, body).await;
        return Err(refused);
    }
    let held = body::read(&app, &headers, body).await?;
    let served = app.filters.get(&name.0)?;
    let (form, back) = forms(&headers, &held)?;
    let Held { bytes, room } = with_scratch(form, held)?;
    let added = served.add(form, bytes).await?;
    let words = Words {
        lines: ["new\n", "known\n"],
        name: "new",
        more: format!(",\"saved\":{}", added.saved),
    };
    Ok(added.new.respond(back, words, room))
}

/// The forms of keys and answers.
fn forms(headers: &HeaderMap, held: &Held) -> Result<(Form, Form), Problem> {
    let form = Form::of_request(headers)?;
    Form::check_text(headers, &held.bytes)?;
    Ok((form, Form::of_response(headers, form)?))
}

/// Counts what reading the keys takes besides: strings with escapes are written anew, in a buffer
/// and as a key.
fn with_scratch(form: Form, mut held: Held) -> Result<Held, Problem> {
    if form == Form::Json && memchr::memchr(b'\\', &held.bytes).is_some() {
        held.room.more(held.bytes.len() * 2)?;
    }
    Ok(held)
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
