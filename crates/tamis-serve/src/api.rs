//! Answers under `/v1/filters`, and the service's readiness.

use crate::body::{self, Budget, Held};
use crate::filters::Filters;
use crate::guard::Guard;
use crate::media::Form;
use crate::problem::Problem;
use crate::replies::{Lateness, Replies};
use crate::response::{Response, Words, answers, json};
use crate::when::When;
use hyper::body::Incoming;
use hyper::{HeaderMap, StatusCode};
use serde_json::json as value;
use std::sync::Arc;

/// Whether every filter answers queries and, if keys may be added, accepts them.
pub(crate) async fn ready(filters: &Filters, is_known: bool) -> Result<(), Problem> {
    let mut obstacles = Vec::new();
    for served in filters.iter() {
        if let Some(obstacle) = served.obstacle(is_known).await {
            obstacles.push(format!("{}: {obstacle}", served.name()));
        }
    }
    if obstacles.is_empty() {
        return Ok(());
    }
    let text = obstacles.join("\n");
    Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, text))
}

pub(crate) async fn list(filters: &Filters, is_known: bool) -> Response {
    let mut all = Vec::new();
    for served in filters.iter() {
        all.push(match served.about(is_known).await {
            Ok(about) => about,
            Err(problem) => {
                value!({ "name": served.name(), "fault": problem.text_for(is_known) })
            }
        });
    }
    json(&value!({ "filters": all }))
}

pub(crate) async fn info(
    filters: &Filters,
    name: &str,
    is_known: bool,
) -> Result<Response, Problem> {
    let about = filters.get(name)?.about(is_known).await?;
    Ok(json(&about))
}

pub(crate) async fn check(
    filters: &Filters,
    name: &str,
    query: &str,
    budget: &Arc<Budget>,
    headers: &HeaderMap,
    body: Incoming,
) -> Result<Response, Problem> {
    let mut held = body::read(budget, headers, body).await?;
    let served = filters.get(name)?;
    let when = When::of_query(query)?;
    let (form, back) = forms(headers, &mut held)?;
    let Held { bytes, room } = with_scratch(form, held)?;
    let found = served.check(form, bytes, when).await?;
    let words = Words {
        lines: match found.lateness() {
            Lateness::InTime => ["yes\n", "no\n"],
            Lateness::Late => ["yes\n", "no, late\n"],
            Lateness::TooOld => ["yes\n", "no, too old\n"],
        },
        name: "found",
        more: lateness(&found).into(),
    };
    Ok(answers(found, back, words, room))
}

pub(crate) async fn add(
    filters: &Filters,
    name: &str,
    query: &str,
    guard: &Guard,
    budget: &Arc<Budget>,
    headers: &HeaderMap,
    body: Incoming,
) -> Result<Response, Problem> {
    if let Err(refused) = guard.check_token(headers) {
        body::leave(budget, headers, body).await;
        return Err(refused);
    }
    let mut held = body::read(budget, headers, body).await?;
    let served = filters.get(name)?;
    let when = When::of_query(query)?;
    let (form, back) = forms(headers, &mut held)?;
    let Held { bytes, room } = with_scratch(form, held)?;
    let added = served.add(form, bytes, when).await?;
    let words = Words {
        lines: match added.new.lateness() {
            Lateness::InTime => ["new\n", "known\n"],
            Lateness::Late => ["new, late\n", "known\n"],
            Lateness::TooOld => ["new, too old\n", "known\n"],
        },
        name: "new",
        more: format!(",\"saved\":{}{}", added.saved, lateness(&added.new)),
    };
    Ok(answers(added.new, back, words, room))
}

/// The end of JSON answers to a request with an earlier time.
fn lateness(replies: &Replies) -> &'static str {
    match replies.lateness() {
        Lateness::InTime => "",
        Lateness::Late => ",\"late\":true",
        Lateness::TooOld => ",\"late\":true,\"too_old\":true",
    }
}

/// The forms of keys and answers. Drops bytes before the text.
fn forms(headers: &HeaderMap, held: &mut Held) -> Result<(Form, Form), Problem> {
    let form = Form::of_request(headers)?;
    let start = Form::start_of_text(headers, &held.bytes)?;
    held.bytes = held.bytes.slice(start..);
    Ok((form, Form::of_response(headers, form)?))
}

/// Counts the memory that reading the keys takes in addition: strings with escapes are copied, into a buffer and as a
/// key.
fn with_scratch(form: Form, mut held: Held) -> Result<Held, Problem> {
    if form == Form::Json && memchr::memchr(b'\\', &held.bytes).is_some() {
        held.room.more(held.bytes.len() * 2)?;
    }
    Ok(held)
}
