//! What the service answers under `/v1/filters`, and its health.

use super::App;
use super::keys::Form;
use super::problem::{Problem, json};
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde_json::json as value;

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

async fn info(State(app): State<App>, Path(name): Path<String>) -> Result<Response, Problem> {
    let about = app.filters.get(&name)?.about().await?;
    Ok(json(&about).into_response())
}

async fn check(
    State(app): State<App>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let served = app.filters.get(&name)?;
    let form = Form::of_request(&headers)?;
    let body = read(&app, body).await?;
    let found = served.check(form, body).await?;
    Ok(match Form::of_response(&headers, form) {
        Form::Json => json(&value!({ "found": found })).into_response(),
        Form::Lines => lines(&found, ["yes\n", "no\n"]),
    })
}

async fn add(
    State(app): State<App>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let served = app.filters.get(&name)?;
    if !app.is_writing {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "the service was started without --write: nothing can be added",
        ));
    }
    let form = Form::of_request(&headers)?;
    let body = read(&app, body).await?;
    let added = served.add(form, body).await?;
    Ok(match Form::of_response(&headers, form) {
        Form::Json => json(&value!({ "new": added.new, "saved": added.saved })).into_response(),
        Form::Lines => lines(&added.new, ["new\n", "known\n"]),
    })
}

/// One word a line.
fn lines(answers: &[bool], [yes, no]: [&str; 2]) -> Response {
    let mut text = String::with_capacity(answers.len() * yes.len().max(no.len()));
    for answer in answers {
        text.push_str(if *answer { yes } else { no });
    }
    ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
}

/// The whole body of a request.
pub(super) async fn read(app: &App, body: Body) -> Result<Bytes, Problem> {
    let most = app.limits.body;
    let body = tokio::time::timeout(app.limits.time, Limited::new(body, most).collect());
    match body.await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!(
                "the body is larger than {} (--max-body): send fewer keys at once",
                crate::human::size(most as u64)
            ),
        )),
        Ok(Err(error)) => Err(Problem::bad_request(format!(
            "the body ends early: {error}"
        ))),
        Err(_) => Err(Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            format!(
                "the body did not come within {} (--timeout)",
                crate::human::duration(app.limits.time)
            ),
        )),
    }
}
