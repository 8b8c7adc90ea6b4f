//! What the service has done, as Prometheus reads it.

use crate::filters::{PATIENCE, Saving, seconds};
use crate::{App, log};
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use serde_json::Value;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tamis_report::human;

/// Upper ends of the classes of times that answers take.
const SECONDS: [f64; 8] = [0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 1.0, 10.0];
/// How often a line of the log is spent on requests without the token.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// Counts of all filters.
#[derive(Default)]
pub(crate) struct Metrics {
    /// By the first digit of the status.
    statuses: [AtomicU64; 6],
    /// By time, the last class being open.
    times: [AtomicU64; SECONDS.len() + 1],
    nanoseconds: AtomicU64,
    pub(crate) connections: AtomicU64,
    pub(crate) refused_connections: AtomicU64,
    pub(crate) strangers: Strangers,
}

/// Requests to write without the token, or with another one.
#[derive(Default)]
pub(crate) struct Strangers {
    all: AtomicU64,
    /// When they were last told of, and how many there were then.
    told: Mutex<Option<(Instant, u64)>>,
}

impl Strangers {
    /// Counts one, and says so if nothing was said for a while.
    pub(crate) fn seen(&self, from: IpAddr) {
        let all = self.all.fetch_add(1, Relaxed) + 1;
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match *told {
            Some((at, _)) if at.elapsed() < TELL_EVERY => return,
            Some((_, before)) => before,
            None => 0,
        };
        *told = Some((Instant::now(), all));
        let new = human::counted(all.saturating_sub(before), "request");
        log(format_args!(
            "{new} to add keys without the token or with a wrong one, the last from {from}"
        ));
    }
}

impl Metrics {
    pub(crate) fn answered(&self, status: StatusCode, took: Duration) {
        let class = usize::from(status.as_u16() / 100);
        self.statuses[class.min(self.statuses.len() - 1)].fetch_add(1, Relaxed);
        let seconds = took.as_secs_f64();
        let class = SECONDS.partition_point(|&end| end < seconds);
        self.times[class].fetch_add(1, Relaxed);
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(nanoseconds, Relaxed);
    }
}

pub(crate) fn routes() -> Router<App> {
    Router::new().route("/metrics", get(metrics))
}

async fn metrics(State(app): State<App>) -> impl IntoResponse {
    let mut page = Page::default();
    tell_requests(&app.metrics, &mut page);
    tell_saving(&app, &mut page);
    tell_filters(&app, &mut page).await;
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], page.0)
}

fn tell_requests(metrics: &Metrics, page: &mut Page) {
    page.about("tamis_requests_total", "counter", "Requests, by status.");
    for (class, count) in metrics.statuses.iter().enumerate().skip(1) {
        let labels = format!("status=\"{class}xx\"");
        page.sample("tamis_requests_total", &labels, count.load(Relaxed) as f64);
    }
    let name = "tamis_request_seconds";
    page.about(
        name,
        "histogram",
        "Time from a request's head to its response.",
    );
    let mut sum = 0;
    for (class, count) in metrics.times.iter().enumerate() {
        sum += count.load(Relaxed);
        let end = SECONDS.get(class).map_or("+Inf".to_owned(), f64::to_string);
        let labels = format!("le=\"{end}\"");
        page.sample("tamis_request_seconds_bucket", &labels, sum as f64);
    }
    let seconds = metrics.nanoseconds.load(Relaxed) as f64 / 1e9;
    page.sample("tamis_request_seconds_sum", "", seconds);
    page.sample("tamis_request_seconds_count", "", sum as f64);
    page.about("tamis_connections", "gauge", "Open connections.");
    page.sample(
        "tamis_connections",
        "",
        metrics.connections.load(Relaxed) as f64,
    );
    let name = "tamis_connections_refused_total";
    page.about(name, "counter", "Connections above --max-connections.");
    page.sample(name, "", metrics.refused_connections.load(Relaxed) as f64);
    let name = "tamis_unauthorized_total";
    page.about(name, "counter", "Requests to add keys without the token.");
    page.sample(name, "", metrics.strangers.all.load(Relaxed) as f64);
}

/// What became of additions to files.
fn tell_saving(app: &App, page: &mut Page) {
    type Figure = fn(&Saving) -> Option<f64>;
    let figures: [(&str, &str, Figure); 3] = [
        (
            "tamis_filter_unsaved_keys",
            "Keys that were added and are not on disk.",
            |saving| Some(saving.unsaved_keys as f64),
        ),
        (
            "tamis_filter_last_saved_at",
            "When additions were last saved, since 1970.",
            |saving| saving.last_saved_at.map(|at| seconds(at) as f64),
        ),
        (
            "tamis_filter_save_failed",
            "1 if the last save failed: nothing is added until one succeeds.",
            |saving| Some(f64::from(u8::from(saving.failed.is_some()))),
        ),
    ];
    for (name, help, figure) in figures {
        page.about(name, "gauge", help);
        for served in app.filters.iter() {
            if let Some(value) = served.saving().as_ref().and_then(figure) {
                page.sample(name, &format!("filter=\"{}\"", served.name()), value);
            }
        }
    }
}

async fn tell_filters(app: &App, page: &mut Page) {
    let labels = |name: &str| format!("filter=\"{name}\"");
    let name = "tamis_keys_total";
    page.about(name, "counter", "Keys asked for and added, by answer.");
    for served in app.filters.iter() {
        let all = served.tally.all();
        for (answer, count) in [
            ("yes", all.yes),
            ("no", all.no),
            ("new", all.new),
            ("known", all.known),
        ] {
            let labels = format!("{},answer=\"{answer}\"", labels(served.name()));
            page.sample(name, &labels, count as f64);
        }
    }
    let name = "tamis_filter_fault";
    page.about(
        name,
        "gauge",
        "1 if the file in place can't be served, and an older one is.",
    );
    for served in app.filters.iter() {
        let fault = served.fault().is_some();
        page.sample(name, &labels(served.name()), f64::from(u8::from(fault)));
    }
    let name = "tamis_filter_replaced_total";
    page.about(name, "counter", "How often another file was taken.");
    for served in app.filters.iter() {
        let times = served.times_replaced() as f64;
        page.sample(name, &labels(served.name()), times);
    }
    let mut told = Vec::new();
    for served in app.filters.iter() {
        let about = tokio::time::timeout(PATIENCE, served.about()).await;
        if let Ok(Ok(about)) = about {
            told.push((served.name(), about));
        }
    }
    for (name, field, help) in [
        ("tamis_filter_keys", "keys", "Keys in the filter."),
        ("tamis_filter_capacity", "capacity", "Keys it was made for."),
        (
            "tamis_filter_rate",
            "rate",
            "The promised rate of false \"yes\" answers.",
        ),
        (
            "tamis_filter_rate_now",
            "rate_now",
            "The expected rate of false \"yes\" answers now.",
        ),
        ("tamis_filter_bytes", "bytes", "The size of the filter."),
        (
            "tamis_filter_loaded_at",
            "loaded_at",
            "When its file was read, since 1970.",
        ),
    ] {
        page.about(name, "gauge", help);
        for (filter, about) in &told {
            if let Some(value) = about.get(field).and_then(Value::as_f64) {
                page.sample(name, &labels(filter), value);
            }
        }
    }
}

/// The text format, version 0.0.4. Names of filters need no escapes.
#[derive(Default)]
struct Page(String);

impl Page {
    fn about(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a String can't fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &str, value: f64) {
        let _ = match labels {
            "" => writeln!(self.0, "{name} {value}"),
            labels => writeln!(self.0, "{name}{{{labels}}} {value}"),
        };
    }
}
